#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// What mistakes are told: those of the program that uses the package, and those of the code that it runs, by the package and
// by vitro eval.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';

import { Sandbox, ToolError, ToolHost, VitroError } from '../../sdk/node/index.js';
import { BINARY, ROOT, check, checkEqual, checkIn, checkThrows, main, skip, testNode as test } from '../lib/vitrotest.mjs';
import { withSandbox } from './sandbox.mjs';

const { say } = createRequire(import.meta.url)('../../runtimes/node/complain.cjs');
const LOOP = {};
LOOP.list = [1, LOOP];

test('options that are wrong', () => withSandbox(async (sandbox) => {
	const wrong = [
		[() => new Sandbox('strict'), 'options are an object, not a string: a policy goes by { policy: "strict" }'],
		[() => new Sandbox(null), 'options are an object, not null'],
		[() => new Sandbox({ polic: {} }), "there is no option 'polic'; did you mean 'policy'?"],
		[() => new Sandbox({ timeout: 3000 }), 'timeout goes to each call, or to the policy: limits.wall_ms'],
		[() => new Sandbox({ memory: 3000 }), 'memory goes to the policy: limits.memory_mb'],
		[() => new Sandbox({ network: 'host' }), 'network goes to the policy: network'],
		[() => new Sandbox({ files: {} }), 'files goes to the policy: files.read and files.write'],
		[() => new ToolHost({ write: ['/srv'] }), 'write goes to the policy: files.write'],
		[() => sandbox.run(['true'], { cwd: '/' }), 'cwd goes to the policy: files.cwd'],
		[() => sandbox.eval('', { env: {} }), 'env goes to the policy: env.set and env.pass'],
		[() => new ToolHost('strict'), 'options are an object, not a string: a policy goes by { policy: "strict" }'],
		[() => new ToolHost({ zzz: 1 }), "there is no option 'zzz'; there are sandbox, timeout,"],
		[() => sandbox.eval('return 1', null), 'options are an object, not null'],
		[() => sandbox.eval('return 1', { tols: {} }), "there is no option 'tols'; did you mean 'tools'?"],
		[() => sandbox.eval(5), 'code is a text, not a number'],
		[() => sandbox.eval('', { files: ['a'] }), 'files is an object, or a Map, by names, not an array'],
		[() => sandbox.eval('', { files: { '../x': '' } }), `files: "../x" is not a name below the cell's working directory`],
		[() => sandbox.eval('', { files: { x: 5 } }), 'files["x"] is neither text nor bytes, but a number'],
		[() => sandbox.eval('', { collect: '*' }), 'collect is an array of patterns, not a string'],
		[() => sandbox.eval('', { collect: ['/x'] }), '"/x" is not a relative pattern'],
		[() => sandbox.eval('', { collect: ['*'] }), 'collect gives files in the result: add result: true'],
		[() => sandbox.eval('', { tools: 'x' }), 'tools is an object, or a Map, by names, not a string'],
		[() => sandbox.eval('', { tools: [() => 1] }), 'tools is an object of functions by their names, { search }, not an array of functions'],
		[() => sandbox.run(['echo', 'a', 5]), 'argv[2] is neither text nor bytes, but a number'],
		[() => sandbox.run(['echo', 'a\0']), 'argv[1] has a NUL in it'],
		[() => sandbox.run('echo hi'), "no shell reads it; ['sh', '-c', command] has one"],
		[() => sandbox.callModule('node:path', 'join', [LOOP]), 'args[0]["list"][1] is args[0] itself, and what holds itself cannot be sent'],
	];
	for (const [act, message] of wrong)
		checkIn(message, (await checkThrows(TypeError, act, message)).message, 'the message');
	const named = new Sandbox({ policy: 'strct' });
	checkEqual((await checkThrows(VitroError, () => named.run(['true']), 'a policy')).message.slice(0, 24), 'policy: there is no file', 'a policy that is not there');
	await named.close();
}));

test("the stack of what a call throws has the caller's lines and the code's, and none of the package", () => withSandbox(async (sandbox) => {
	const outer = async (code) => await sandbox.eval(code);
	const error = await checkThrows(ToolError, () => outer('function f() {\n\tthrow new RangeError("\\x1b[31mno");\n}\nf();'), 'code that throws');
	const [first, ...lines] = error.stack.split('\n');
	checkEqual([first, error.message], ['ToolError: RangeError: \\u{1b}[31mno', '\\u{1b}[31mno'], 'what it is');
	checkIn('    at async outer (file:', lines[0], "the caller's line");
	checkIn('\n  in the cell:\n    eval.mjs:2:8\n    \tthrow', error.stack, 'where it was thrown');
	checkIn('\n        at f (eval.mjs:2:8)\n', error.stack, 'the frames in the cell');
	const failed = await checkThrows(ToolError, async () => await sandbox.run(['false']), 'a command');
	checkEqual([error, failed].filter(({ stack }) => /sdk.node.lib|\x1b/.test(stack)), [], 'lines of the package');
	checkIn('messages_test.mjs', failed.stack, 'where a command was run');
	error.stack = 'other';
	checkEqual([error.stack, Object.keys(error)], ['other', ['result']], 'it can be set, as any other');
	checkIn('ToolError', (await sandbox.eval('null.x').then(() => null, (reason) => reason)).stack, 'nobody awaits');
}));

test('a short deadline is told with its unit', () => withSandbox(async (sandbox) => {
	const past = async (timeout) => (await sandbox.run(['sleep', '9'], { timeout, result: true })).error.message;
	checkIn('(timeout is in milliseconds)', await past(30), 'a short one');
	check(!(await past(150)).includes('milliseconds'), 'another');
}));

test('a result is shown with what was printed as text', () => withSandbox(async (sandbox) => {
	const result = await sandbox.run(['sh', '-c', 'echo hi; echo oh >&2'], { result: true });
	const shown = inspect(result);
	for (const part of ["stdout: 'hi\\n'", "stderr: 'oh\\n'", "status: 'ok'", 'Result {'])
		checkIn(part, shown, 'what is shown');
	check(!shown.includes('Bytes'), shown);
}));

/** Code, the place that a message has, the line with its mark, and more of the message. */
const WRONG_CODE = [
	['const a = 1;\nconst b = ;\nreturn a', ':2:11', 'const b = ;\n          ^\n', "Unexpected token ';'"],
	['return await 1 +* 2', ':1:17', 'return await 1 +* 2\n                ^\n', "Unexpected token '*'"],
	['if (true) {\n\treturn 1;\n', ':2:11', '\treturn 1;\n\t         ^\n', 'the code ends before it is complete'],
	['await 0;\nreturn `abc', ':2:12', 'return `abc\n           ^\n', 'the code ends before it is complete'],
	['for await (const x of []) ;\nawait 1; return 1; }', ':2:20', 'await 1; return 1; }\n                   ^\n', "Unexpected token '}'"],
	['return 1; })(); (async () => {', ':1:11', 'return 1; })(); (async () => {\n          ^\n', "Unexpected token '}'"],
	['import fs from "node:fs";', ':1:1', 'import fs from "node:fs";\n^\n', "const fs = await import('node:fs')"],
	['export default 1', ':1:1', 'export default 1\n^\n', 'return the value'],
	['const a = 1;\n  require("fs");', ':2:3', '  require("fs");\n  ^\n', "const fs = await import('node:fs')"],
	['function f() {\n\tthrow new RangeError("far");\n}\nf();', ':2:8', '\tthrow new RangeError("far");\n\t      ^\n', 'RangeError: far'],
	['const fs = await import("node:fs");\nfs.readFileSync("/none");', ':2:4', 'fs.readFileSync("/none");\n   ^\n', 'ENOENT'],
];

test('code that is wrong has its own line and column, and no line of what runs it', () => withSandbox(async (sandbox) => {
	for (const [code, place, line, message] of WRONG_CODE) {
		const error = await checkThrows(ToolError, () => sandbox.eval(code), code);
		checkIn(`eval.mjs${place}\n${line}`, error.traceback, 'the package: the line');
		checkIn(message, `${error.type}: ${error.message}\n${error.traceback}`, 'the package: the message');
		const said = spawnSync(BINARY, ['eval', '--lang', 'node', code], { encoding: 'utf8' });
		checkIn(`Uncaught <eval>${place}\n${line}`, said.stderr, 'vitro eval: the line');
		checkIn(message, said.stderr, 'vitro eval: the message');
		for (const text of [error.traceback, said.stderr])
			checkEqual(text.split('\n').filter((part) => /vitro:|node:internal|data:|\}\)$|\[eval\]/.test(part) && !code.includes(part)), [], 'lines of others');
	}
}));

/** Code after `fs`, and the end of the message, which is the one that Python has. */
const OWN = (key) => `; the call began in a /tmp of its own: the policy's keys are ${key} and files.cwd, or eval() takes it by files`;
const DENIED = (key) => `; if the cell was denied it, the policy's key is ${key}`;
const BELOW = 'files.read (files.write to write there)';
const LACKING = [
	["fs.readFileSync('data.csv')", OWN('files.read')],
	["fs.writeFileSync('out/a', '')", OWN(BELOW)],
	["await fs.promises.readFile('/tmp/x')", DENIED('files.read')],
	["fs.readFileSync('/etc/not-there')", DENIED('files.read')],
	["fs.writeFileSync('/srv/nothing/a', '')", DENIED(BELOW)],
	["fs.readFileSync('/usr/not-there')", "'/usr/not-there'"],
	["fs.writeFileSync('/usr/x', '')", DENIED('files.write')],
	["try { fs.readFileSync('/etc/not-there'); } catch (cause) { throw new Error('wrapped', { cause }); }", DENIED('files.read')],
	["await fetch('http://a.example/')", DENIED('network')],
	["await (await import('node:dns')).promises.lookup('a.example')", DENIED('network')],
	["(await import('node:child_process')).execFileSync('no-such-program')", 'ENOENT'],
	["throw Object.assign(new Error('mine'), { code: 'ENOENT' })", 'mine (ENOENT)'],
];

test("an error that looks like a denial names the policy's key", () => withSandbox(async (sandbox) => {
	if (!(await sandbox.capabilities()).files.startsWith('mountns'))
		skip('what is closed is there, and says so itself');
	for (const [code, end] of LACKING) {
		const { message } = await checkThrows(ToolError, () => sandbox.eval(`const fs = await import('node:fs'); ${code}`), code);
		checkEqual(message.slice(-end.length), end, code);
	}
	const place = mkdtempSync(join(tmpdir(), 'test-'));
	try {
		writeFileSync(join(place, '.env'), '');
		const policy = { require: 'best-effort', files: { write: [place], cwd: place, deny: [join(place, '.env')] } };
		const { message } = await checkThrows(ToolError, () => sandbox.eval("(await import('node:fs')).readFileSync('.env')", { policy }), 'what is denied');
		checkIn("; if the cell was denied it, the policy's keys are files.read and files.deny", message, 'both keys');
		writeFileSync(join(place, '.envrc'), '');
		for (const [call, keys] of [["writeFileSync('.envrc', '')", 'keys are files.write and files.protect'], ["unlinkSync('.envrc')", 'key is files.protect']]) {
			const kept = await checkThrows(ToolError, () => sandbox.eval(`(await import('node:fs')).${call}`, { policy: { files: { write: [place], cwd: place } } }), call);
			checkIn(`; if the cell was denied it, the policy's ${keys}`, kept.message, call);
		}
	} finally {
		rmSync(place, { recursive: true });
	}
}));

test('what code finds is the same in vitro eval and in the package', () => withSandbox(async (sandbox) => {
	const code = `const names = ['require', 'module', 'exports', '__filename', 'fs', 'os', 'vm', 'process', 'console', 'crypto', 'fetch', 'Buffer', 'URL', 'structuredClone'];
		return JSON.stringify([names.filter((name) => { try { return typeof eval(name) !== 'undefined'; } catch { return false; } }), this === undefined, typeof (await import('node:fs')).readFileSync]);`;
	const said = spawnSync(BINARY, ['eval', '--lang', 'node', code], { encoding: 'utf8' });
	checkEqual([said.stdout.trim(), said.stderr], [await sandbox.eval(code), ''], 'what there is, and no warning');
	checkIn('"process","console","crypto","fetch","Buffer","URL","structuredClone"],true,"function"', said.stdout, 'it');
}));

test('a result that holds itself, or nests too deep', () => withSandbox(async (sandbox) => {
	const loop = await checkThrows(ToolError, () => sandbox.eval('const a = { x: [] }; a.x.push(new Map([[1, a.x]])); return a;'), 'a loop');
	checkEqual(loop.message, 'result["x"][0][1] is result["x"] itself, and what holds itself cannot be sent: return plain data', 'where it is');
	const deep = await checkThrows(ToolError, () => sandbox.eval('let a = 1; for (let n = 0; n < 300; n++) a = [a]; return a;'), 'depth');
	checkEqual(deep.message, `result${'[0]'.repeat(7)}...${'[0]'.repeat(8)} nests more than 200 deep: return plain data`, 'a short message');
}));

test('a failure of a tool has the line of the code that asked', () => withSandbox(async (sandbox) => {
	const tools = { look: () => { throw Object.assign(new Error('not there'), { name: 'Missing', code: 'NONE' }); } };
	const error = await checkThrows(ToolError, () => sandbox.eval('const a = 1;\nreturn await look({});', { tools }), 'a tool');
	checkEqual([error.type, error.message], ['Missing', 'not there (NONE)'], 'its words');
	checkEqual(error.traceback, "eval.mjs:2:8\nreturn await look({});\n       ^\n\nMissing: not there\n    at async eval.mjs:2:8 {\n  code: 'NONE'\n}\n", 'its traceback');
}));

test('tools are reached by their exact names, whatever these are', () => withSandbox(async (sandbox) => {
	const names = ['read-file', 'web', 'web:search', 'web:call', 'a.b', 'a:c:d', 'tools', 'tools:x', 'console:log', 'constructor', '__proto__', 'class', '1', 'ü ß', 'process'];
	for (const order of [names, [...names].reverse()]) {
		const tools = new Map(order.map((name) => [name, () => name]));
		const code = 'const got = []; for (const name of names()) got.push(await tools[name]({})); return got;'.replace('names()', JSON.stringify(names));
		checkEqual(await sandbox.eval(code, { tools }), names, 'by their names');
		checkEqual(await sandbox.eval("return [await web(), await web.search(), await web.call(), await a.b(), await a['c:d'](), typeof process.exit, typeof console.log]", { tools }),
			['web', 'web:search', 'web:call', 'a.b', 'a:c:d', 'function', 'function'], 'as functions');
	}
}));

test('denials: all cases of test/vectors/denials.json', () => {
	const cases = JSON.parse(readFileSync(join(ROOT, 'test', 'vectors', 'denials.json'), 'utf8'));
	const before = process.cwd();
	process.chdir('/tmp');
	for (const { description, code, act, path, advice } of cases) {
		const error = Object.assign(new Error(`${code}: text`), { code, syscall: act, ...path === null ? {} : { path } });
		checkEqual(say(error), `${code}: text${advice && `; ${advice}`}`, description);
	}
	process.chdir(before);
	check(cases.length >= 23, 'the file lost its cases');
});

await main();
