#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Code in cells, by the package: what it returns, its tools, its files, how it ends; functions of modules.

import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import * as vitro from '../../sdk/node/index.js';
import { check, checkEqual, checkIn, checkThrows, eventually, main, skip, testNode as test } from '../lib/vitrotest.mjs';
import { POLICY, withSandbox } from './sandbox.mjs';

test('eval: what NODE_OPTIONS names, and calls can write, is loaded by what a call starts, and never ahead of calls', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-options-'));
	chmodSync(folder, 0o777); // a bare cell of root's has a user of its own
	try {
		writeFileSync(join(folder, 'planted.cjs'), 'globalThis.planted = process.pid;');
		const set = { NODE_OPTIONS: `--require ${folder}/planted.cjs` };
		await withSandbox(async (sandbox) => {
			const code = `const { execFileSync } = await import('node:child_process');
return [globalThis.planted ?? null, process.pid, process.env.NODE_OPTIONS, execFileSync(process.execPath, ['-p', 'planted === process.pid'], { encoding: 'utf8' })]`;
			const [planted, pid, ...rest] = await sandbox.eval(code);
			check(planted === null || planted === pid, () => `process ${planted} has loaded it, ahead of the call`); // a Node that is not forked loads it sealed
			checkEqual(rest, [set.NODE_OPTIONS, 'true\n'], 'the variable, and a program of the call');
		}, { policy: { ...POLICY, files: { write: [folder] }, env: { set } } });
	} finally {
		rmSync(folder, { recursive: true });
	}
});

// What is loaded ahead, and how it gets to what calls can write: links, as npm has them of a workspace, and paths.
const WAYS = {
	'imports.cjs': 'exports.done = import("ecma").catch(() => {});',
	'hidden.cjs': 'exports.done = import // not by a look at the text\n("ecma").catch(() => {});',
	'later.cjs': 'exports.done = Promise.resolve().then(() => require("common")).catch(() => {});',
	'unclear.js': 'import "ecma"; export default { done: 1 };',
	'clear.mjs': 'import "ecma"; export default { done: 1 };',
	'required.cjs': 'try { require("./unclear.js") } catch {}',
	'unresolved.cjs': 'const m = new module.constructor(FREE + "/common/index.js"); try { m.load(m.id) } catch {}',
	'read.cjs': 'try { eval(require("fs").readFileSync(FREE + "/common/index.js", "utf8")) } catch {}',
	'stream.cjs': 'exports.done = (async () => { for await (const part of require("fs").createReadStream(FREE + "/common/index.js")) eval(String(part)) })().catch(() => {});',
	'program.cjs': 'try { eval(require("child_process").execFileSync("/bin/cat", [FREE + "/common/index.js"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] })) } catch {}',
	'shell.cjs': 'exports.done = new Promise((done) => require("child_process").exec("cat " + FREE + "/common/index.js", (error, out) => { eval(error ? "" : out); done(); }));',
	'descriptor.cjs': 'const fs = require("fs"); try { eval(fs.readFileSync(fs.openSync(FREE + "/../free/common/index.js"), "utf8")) } catch {}',
};

test('eval: what calls can write is not loaded ahead of them by a module that is, whatever the way', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-ahead-'));
	const [free, fixed] = ['free', 'fixed'].map((name) => join(folder, name));
	try {
		chmodSync(folder, 0o755);
		for (const name of ['ecma', 'common']) {
			mkdirSync(join(free, name), { recursive: true });
			mkdirSync(join(fixed, 'node_modules'), { recursive: true });
			symlinkSync(join(free, name), join(fixed, 'node_modules', name));
		}
		writeFileSync(join(free, 'ecma', 'package.json'), '{"name": "ecma", "type": "module", "exports": "./index.js"}');
		writeFileSync(join(free, 'ecma', 'index.js'), 'globalThis.planted = process.pid;');
		writeFileSync(join(free, 'common', 'index.js'), 'globalThis.planted = process.pid;');
		for (const [name, text] of Object.entries(WAYS)) {
			for (const file of [name, `again-${name}`]) // for the control: what was loaded is not loaded again
				writeFileSync(join(fixed, file), text.replaceAll('FREE', JSON.stringify(free)));
			const code = `const planted = globalThis.planted ?? null;
await (await import(${JSON.stringify(pathToFileURL(join(fixed, `again-${name}`)).href)})).default?.done;
return [planted, process.pid, globalThis.planted ?? null, (await import(${JSON.stringify(pathToFileURL(join(free, 'ecma', 'index.js')).href)}), globalThis.planted)]`;
			await withSandbox(async (sandbox) => {
				const [planted, pid, loaded, again] = await sandbox.eval(code);
				check(planted === null || planted === pid, () => `${name}: process ${planted} has loaded it, ahead of the call`);
				// Node 20 up to 20.18 has no way for two of them.
				check(loaded === pid || ['unclear.js', 'required.cjs'].includes(name), () => `${name}: it does not get there in a call, either`);
				checkEqual(again, pid, `${name}: a call can`);
			}, { preload: [join(fixed, name)], policy: { ...POLICY, files: { write: [free], read: [fixed] } } });
		}
	} finally {
		rmSync(folder, { recursive: true });
	}
});

test('eval: where calls can write, modules of both kinds are loaded ahead from elsewhere', async () => {
	if (parseInt(process.versions.node, 10) < 20)
		skip('this Node is not forked');
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-ahead-'));
	const [free, fixed] = ['free', 'fixed'].map((name) => join(folder, name));
	try {
		chmodSync(folder, 0o755);
		mkdirSync(free);
		mkdirSync(fixed);
		for (const name of ['ecma.mjs', 'common.cjs'])
			writeFileSync(join(fixed, name), `(globalThis.ahead ??= []).push(${JSON.stringify(name)});`);
		await withSandbox(async (sandbox) => {
			const { value, isolation } = await sandbox.eval('return globalThis.ahead ?? []', { result: true });
			checkEqual(value, isolation.processes === 'pidns' ? ['ecma.mjs', 'common.cjs'] : [], 'what a call finds');
		}, { preload: [join(fixed, 'ecma.mjs'), join(fixed, 'common.cjs')], policy: { ...POLICY, files: { write: [free], read: [fixed] } } });
	} finally {
		rmSync(folder, { recursive: true });
	}
});

test('eval: variables that have Node write or find files are not heeded ahead of calls, and are in calls as the policy has them', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-variables-'));
	chmodSync(folder, 0o777); // a bare cell of root's has a user of its own
	try {
		mkdirSync(join(folder, 'by-path'));
		writeFileSync(join(folder, 'by-path', 'found.js'), 'module.exports = "by NODE_PATH";');
		writeFileSync(join(folder, 'ahead.cjs'), 'process.emitWarning("ahead of calls"); exports.seen = { ...process.env };');
		writeFileSync(join(folder, 'finds.cjs'), 'exports.find = () => require("found");');
		const led = { NODE_PATH: join(folder, 'by-path'), NODE_REDIRECT_WARNINGS: join(folder, 'warnings'), NODE_V8_COVERAGE: join(folder, 'coverage') };
		const plain = { NODE_ENV: 'test', API_URL: 'http://a' };
		const names = Object.keys({ ...led, ...plain });
		const options = { preload: [join(folder, 'ahead.cjs')], policy: { ...POLICY, files: { read: [folder] }, env: { set: { ...led, ...plain } } } };
		await withSandbox(async (sandbox) => {
			const ahead = JSON.stringify(pathToFileURL(join(folder, 'ahead.cjs')).href);
			const [seen, now] = await sandbox.eval(`return [(await import(${ahead})).seen, { ...process.env }]`);
			checkEqual(Object.fromEntries(names.map((name) => [name, now[name]])), { ...led, ...plain }, 'in a call');
			checkEqual([seen.NODE_ENV, seen.API_URL], ['test', 'http://a'], 'what is ordinary, ahead of calls');
			if (parseInt(process.versions.node, 10) >= 20) // older ones are not forked: a call has loaded it
				checkEqual(Object.keys(led).filter((name) => name in seen), [], 'what leads to files, ahead of calls');
			checkEqual(await sandbox.callModule(pathToFileURL(join(folder, 'finds.cjs')), 'find'), 'by NODE_PATH', 'what a call finds by it');
		}, options);
		checkEqual(readdirSync(folder).sort(), ['ahead.cjs', 'by-path', 'finds.cjs'], 'nothing was written');
	} finally {
		rmSync(folder, { recursive: true });
	}
});

test('eval: a file that is called __proto__, or like a part of every object, is a file as any other', () => withSandbox(async (sandbox) => {
	const code = "const fs = await import('node:fs'); for (const name of ['__proto__', 'constructor']) fs.writeFileSync(name, 'text'); return 1";
	const { files } = await sandbox.eval(code, { collect: ['*'], result: true });
	checkEqual([...files].map(([name, data]) => [name, String(data)]), [['__proto__', 'text'], ['constructor', 'text']], 'what is collected');
	checkEqual(Object.keys(Object.prototype), [], 'nothing became of all objects');
}));

test('eval: the body of a strict async function', () => withSandbox(async (sandbox) => {
	checkEqual(await sandbox.eval('return 2 + 3'), 5, 'return');
	checkEqual(await sandbox.eval('1 + 1'), undefined, 'no return');
	checkEqual(await sandbox.eval('return (0, eval)("[...\'abcdefghijklmnopqrstuvwxyz\'].filter((name) => eval(`typeof ${name}`) !== \'undefined\')")'), [], 'no short names but the code\'s own');
	checkEqual(await sandbox.eval('const { basename } = await import("node:path"); return basename(await Promise.resolve("/a/b"))'), 'b', 'await and import()');
	checkEqual(await sandbox.eval('return (function () { return this })()'), undefined, 'strict');
	checkEqual(await sandbox.eval('return [typeof require, typeof URL, typeof TextEncoder, typeof structuredClone, typeof AbortController, typeof crypto.subtle, typeof fetch]'), ['undefined', 'function', 'function', 'function', 'function', 'object', 'function'], 'globals');
	const error = await checkThrows(vitro.ToolError, () => sandbox.eval('return }'), 'no code');
	checkEqual(error.type, 'SyntaxError', 'its type');
}));

test('eval: values of all kinds come back as they are', () => withSandbox(async (sandbox) => {
	const value = await sandbox.eval(`return { n: null, u: undefined, b: 1n << 70n, z: -0, nan: NaN, inf: [Infinity, -Infinity], d: new Date(5), m: new Map([[1, new Set(['a'])], [{}, 2]]),
		t: new Float64Array([1.5]), i: new BigInt64Array([-1n]), buf: Buffer.from('x'), raw: new ArrayBuffer(2), text: 'é😀\\0\\ud800', $int: { $int: 'x' } }`);
	checkEqual(value, {
		n: null, u: undefined, b: 1n << 70n, z: -0, nan: NaN, inf: [Infinity, -Infinity], d: new Date(5), m: new Map([[1, new Set(['a'])], [{}, 2]]),
		t: new Float64Array([1.5]), i: new BigInt64Array([-1n]), buf: Buffer.from('x'), raw: Buffer.alloc(2), text: 'é😀\0\ud800', $int: { $int: 'x' },
	}, 'the value');
	const error = await checkThrows(vitro.ToolError, () => sandbox.eval('class P {}; return { a: [new P()] }'), 'what is no plain data');
	checkIn('result["a"][0] is an instance of P', error.message, 'where');
	const evil = await sandbox.eval(`return JSON.parse('{"__proto__": {"admin": true}}')`);
	check(evil instanceof Map && Object.assign({}, evil).admin === undefined, 'a prototype was changed');
}));

test('eval: results of 300 kB, 10 MB, 100 MB, as text and as bytes', () => withSandbox(async (sandbox) => {
	for (const size of [300_000, 10_000_000, 100_000_000]) {
		checkEqual((await sandbox.eval(`return 'x'.repeat(${size})`)).length, size, `text of ${size}`);
		const bytes = await sandbox.eval(`return Buffer.alloc(${size}, 'ab')`);
		checkEqual([bytes.length, bytes[0], bytes[size - 1]], [size, 97, 98], `bytes of ${size}`);
	}
	await checkThrows(vitro.ResultLimit, () => sandbox.eval('return Buffer.alloc(300 << 20)'), 'more than limits.result_mb');
}, { policy: { ...POLICY, limits: { result_mb: 200, memory_mb: 1500 } } }));

test('eval: tools by namespace and by exact name, whatever it is', () => withSandbox(async (sandbox) => {
	const names = ['plain', 'math:add', 'math.mul', 'a-b:c', '1st:x', 'console:ask', 'class:of', 'weird name €', 'constructor', '__proto__'];
	const tools = new Map(names.map((name) => [name, (params) => [name, params]]));
	for (const name of names)
		checkEqual(await sandbox.eval(`console.log('works'); return tools[${JSON.stringify(name)}]({ n: 1 })`, { tools }), [name, { n: 1 }], name);
	checkEqual(await sandbox.eval('return [(await math.add(1))[0], (await math.mul(2))[0], (await a_b.c(3))[0], (await plain(4))[0]]', { tools }), ['math:add', 'math.mul', 'a-b:c', 'plain'], 'by namespaces');
}));

test('eval: files that are too large, or have no place to be written to', () => withSandbox(async (sandbox) => {
	const refused = await checkThrows(vitro.Refused, () => sandbox.eval('return 1', { files: { 'a/big': Buffer.alloc((64 << 20) + 1) } }), 'too large');
	checkEqual(refused.message, `files["a/big"] has ${(64 << 20) + 1} bytes, and the policy's limits.file_mb allows 64 MB`, 'which, and why');
	const policy = { ...POLICY, files: { ...POLICY.files, cwd: '/usr' } };
	for (const name of ['x', 'in/x']) {
		const { message } = await checkThrows(vitro.ToolError, () => sandbox.eval('return 1', { files: { [name]: '' }, policy }), 'for reading');
		checkEqual(message, `files ${JSON.stringify(name)} needs a working directory that can be written to, and '/usr' cannot: grant it by files.write, or leave out files.cwd`, 'why');
	}
}));

test('eval: many tools at once; their errors have message and code; arguments and values are of all kinds', () => withSandbox(async (sandbox) => {
	const tools = {
		wait: async ({ ms }) => (await sleep(ms), ms),
		fail: () => { throw Object.assign(new RangeError('too far'), { code: 'E_FAR' }); },
		failOddly: () => { throw null; },
		same: (value) => value,
		bad: () => () => 1,
	};
	const began = performance.now();
	checkEqual(await sandbox.eval('return Promise.all(Array.from({ length: 100 }, (_, i) => tools.wait({ ms: 300 - i })))', { tools }), Array.from({ length: 100 }, (_, index) => 300 - index), 'a hundred');
	check(performance.now() - began < 15_000, 'one after the other');
	checkEqual(await sandbox.eval('try { await tools.fail({}) } catch (e) { return [e.name, e.message, e.code, e instanceof Error] }', { tools }), ['RangeError', 'too far', 'E_FAR', true], 'an error');
	checkEqual(await sandbox.eval('try { await tools.failOddly({}) } catch (e) { return [e.message, e instanceof Error] }', { tools }), ['null', true], 'what is none');
	checkEqual(await sandbox.eval('return tools.same({ d: new Date(3), m: new Map([[1n, new Uint8Array(2)]]), u: undefined })', { tools }), { d: new Date(3), m: new Map([[1n, new Uint8Array(2)]]), u: undefined }, 'values');
	checkIn('what bad gave is a function', (await checkThrows(vitro.ToolError, () => sandbox.eval('return tools.bad()', { tools }), 'no plain data')).message, 'why');
	for (const args of ['3, 4', '{}, undefined'])
		checkEqual(await sandbox.eval(`try { return await same(${args}) } catch (e) { return e.name + ': ' + e.message }`, { tools }), 'TypeError: same takes one object: same({ ... })', `more than one argument: ${args}`);
	checkEqual(await sandbox.eval('return [await same(3), await same(), await same([1, 2])]', { tools }), [3, undefined, [1, 2]], 'one, of any kind, or none');
	const uncaught = await checkThrows(vitro.ToolError, () => sandbox.eval('return tools.fail({})', { tools }), 'nobody catches it');
	checkEqual([uncaught.type, uncaught.result.status], ['RangeError', 'error'], 'its type');
}));

test('eval: parameters are checked against the inputSchema before the function runs', () => withSandbox(async (sandbox) => {
	let count = 0;
	const tools = [{ name: 'math:add', inputSchema: { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'], additionalProperties: false }, run: ({ a }) => (count++, a + 1) }];
	checkEqual(await sandbox.eval('return tools["math:add"]({ a: 1 })', { tools }), 2, 'what fits');
	for (const params of ['{}', '{ a: "1" }', '{ a: 1.5 }', '{ a: 1, b: 2 }', '5', '', 'null', '{ a: 1 }, 2'])
		checkEqual(await sandbox.eval(`try { return await tools["math:add"](${params}) } catch (e) { return e.code ?? e.name }`, { tools }), params === '{ a: 1 }, 2' ? 'TypeError' : 'INVALID_PARAMS', params);
	checkEqual(count, 1, 'times that it ran');
	await checkThrows(TypeError, () => sandbox.eval('return 1', { tools: { x: { input_schema: {}, run() {} } } }));
	await checkThrows(vitro.SchemaError, () => sandbox.eval('return 1', { tools: [{ name: 'x', inputSchema: { type: 'no' }, run() {} }] }), 'a wrong schema');
}));

test('eval: what a tool threw, and no code caught, is the cause, with its stack; code cannot name any but those', () => withSandbox(async (sandbox) => {
	class Odd extends Error {
		name = 'Odd';
	}
	const kinds = { type: new TypeError('bob'), coded: Object.assign(new Error('no such'), { code: 'ENOENT' }), odd: new Odd('why'), empty: new Odd(''), long: new RangeError('x'.repeat(9000)) };
	const tools = {
		tool: ({ what }) => {
			throw kinds[what];
		},
		later: async ({ what }) => {
			await sleep(1);
			throw kinds[what];
		},
		fail: ({ n }) => {
			throw new Error(`${n}`);
		},
		functions: () => () => 1,
	};
	const fail = async (code) => await checkThrows(vitro.ToolError, () => sandbox.eval(code, { tools }));
	for (const [what, error] of Object.entries(kinds))
		for (const name of ['tool', 'later'])
			check((await fail(`await ${name}({ what: '${what}' })`)).cause === error, () => `${name} ${what}`);
	const caught = "await tool({ what: 'type' }).catch(() => {}); ";
	for (const code of ["throw new TypeError('alice')", "throw new Error('bob')", "throw new TypeError('bob, and more')", "throw 'bob'", 'await functions()'])
		checkEqual((await fail(caught + code)).cause, undefined, code);
	checkEqual((await fail("throw new TypeError('bob')")).cause, undefined, 'of a call whose tools threw nothing');
	const many = 'for (let n = 0; n < 50; n++) await fail({ n }).catch(() => {}); ';
	checkEqual((await fail(`${many}throw new Error('3')`)).cause, undefined, 'of many the last few are kept');
	checkEqual((await fail(`${many}throw new Error('49')`)).cause.message, '49', 'the control: the last one is');
}));

test('eval: a tool runs only while its call does, and hears of its end', () => withSandbox(async (sandbox) => {
	let heard = null;
	const tools = { slow: (_, { signal }) => new Promise((resolve) => signal.addEventListener('abort', () => { heard = 'over'; resolve(); })) };
	await checkThrows(vitro.Timeout, () => sandbox.eval('await tools.slow({})', { tools, timeout: 500 }), 'a deadline');
	checkEqual(heard, 'over', 'what the tool heard');
	const flood = await sandbox.eval('for (let i = 0; i < 20000; i++) tools.never({}); await tools.never({})', { tools: { never: () => new Promise(() => {}) }, result: true });
	checkEqual(flood.status, 'cancelled', 'one that asks without end');
	checkIn('more at once than is answered', flood.error.message, 'why');
	checkEqual(await sandbox.eval('return tools.outer({})', { tools: { outer: () => sandbox.eval('return 7') } }), 7, 'a tool that makes calls');
}));

test('eval: a tool that takes its time holds no more in memory than what it was asked', () => withSandbox(async (sandbox) => {
	setFlagsFromString('--expose-gc');
	const collect = runInNewContext('gc');
	const count = 400;
	let asked = 0;
	let finish;
	const finished = new Promise((resolve) => { finish = resolve; });
	const tools = { slow: () => {
		asked++;
		return finished;
	} };
	const call = sandbox.eval(`const all = []; for (let i = 0; i < ${count}; i++) { all.push(slow({ i })); console.log('x'.repeat(60_000)); } await Promise.all(all);`, { tools });
	call.catch(() => {}); // where the test ends before it
	await eventually(() => asked === count, 'all are asked', 20_000);
	await eventually(() => {
		collect(); // V8 gives memory back beside the program, and some of it later
		return process.memoryUsage().arrayBuffers < 8 << 20;
	}, 'what came around them is given back', 5_000);
	finish();
	await call;
}));

test('eval: files, standard input, collected files, logs and output', () => withSandbox(async (sandbox) => {
	const lines = [];
	const result = await sandbox.eval(`
		const fs = await import('node:fs');
		fs.mkdirSync('out'); fs.writeFileSync('out/copy', fs.readFileSync('in/a.txt', 'utf8') + fs.readFileSync(0, 'utf8')); fs.writeFileSync('other', '');
		console.log('a', { b: 1 }); console.warn('w'); console.error('e'); console.debug('d');
		process.stdout.write('printed'); process.stderr.write('said');
		return 1`, { files: { 'in/a.txt': 'A' }, stdin: Buffer.from('B'), collect: ['out/**'], result: true, onLog: (line) => lines.push(line) });
	checkEqual([result.value, [...result.files], result.stdout, result.stderr], [1, [['out/copy', Buffer.from('AB')]], 'printed', 'said'], 'what came back');
	checkEqual(result.logs, [{ level: 'info', text: 'a { b: 1 }' }, { level: 'warning', text: 'w' }, { level: 'error', text: 'e' }, { level: 'debug', text: 'd' }], 'logs');
	checkEqual(lines, result.logs, 'as they came');
	await checkThrows(Error, () => sandbox.eval('', { files: { '../x': '' } }), 'a name that leads elsewhere');
	const many = await sandbox.eval('for (let i = 0; i < 10000; i++) console.log(i)', { result: true });
	checkEqual([many.logs.length, many.logs.every(({ text }, index) => text === String(index))], [10000, true], '10,000 lines in order');
}));

test('eval: how code can end, each with its own status', () => withSandbox(async (sandbox) => {
	for (const [code, status, says, options] of [
		['throw null', 'error', 'null'], ['throw undefined', 'error', 'undefined'], ['throw "text"', 'error', 'text'], ['throw new Error("")', 'error', ''],
		['process.exit(0)', 'no_result', ''], ['process.exit(3)', 'error or no_result', ''], ['process.abort()', 'crashed', 'SIGABRT'], ['for (;;);', 'timeout', 'deadline', { timeout: 500 }],
		['setTimeout(() => { throw new Error("later") }, 5); await new Promise(() => {})', 'error', 'later'], ['Promise.reject(new Error("lost")); await new Promise(() => {})', 'error', 'lost'],
		['const a = []; for (;;) a.push(new Uint8Array(10 << 20).fill(1))', 'memory_limit', ''], ['process.kill(process.pid, "SIGKILL")', 'crashed', ''],
	]) {
		const result = await sandbox.eval(code, { ...options, result: true });
		check(status.split(' or ').includes(result.status), `${code}: ${result.status} ${result.error?.message}`);
		checkIn(says, result.error.message, code);
	}
	checkEqual((await sandbox.eval('process.exit(3)', { result: true })).exitCode, 3, 'its exit code');
}, { policy: { ...POLICY, limits: { memory_mb: 200 } } }));

test('eval: an AbortSignal ends a busy cell at once', () => withSandbox(async (sandbox) => {
	await sandbox.eval('return 1');
	const began = performance.now();
	const error = await checkThrows(vitro.Cancelled, () => sandbox.eval('for (;;);', { signal: AbortSignal.timeout(200) }), 'aborted');
	check(performance.now() - began < 5000 && error.cause.name === 'TimeoutError', `after ${performance.now() - began} ms`);
	await eventually(async () => (await sandbox.counts()).live === 0, 'no cell is left');
}));

test('eval: nothing is left of a call in the next', () => withSandbox(async (sandbox) => {
	await sandbox.eval(`globalThis.left = 1; Array.prototype.left = 1; process.env.LEFT = '1'; const fs = (await import('node:fs')).default; fs.writeFileSync('left', ''); fs.left = 1; process.left = 1; setInterval(() => {}, 10)`);
	for (let round = 0; round < 5; round++)
		checkEqual(await sandbox.eval(`const fs = (await import('node:fs')).default; return [typeof left, [].left, process.env.LEFT, fs.existsSync('left'), fs.left, process.left]`), ['undefined', undefined, undefined, false, undefined, undefined], 'what is there');
	const numbers = await Promise.all(Array.from({ length: 8 }, () => sandbox.eval('return [Math.random(), crypto.randomUUID()]')));
	checkEqual(new Set(numbers.flat()).size, 16, 'what is random differs');
}));

function makeModules(act) {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-modules-'));
	chmodSync(folder, 0o755);
	mkdirSync(join(folder, 'lib'));
	writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
	writeFileSync(join(folder, 'other.js'), 'export const base = 40;');
	writeFileSync(join(folder, 'lib', 'tool.mjs'), `import { base } from '../other.js';
		export const add = async (n) => base + n;
		export function echo(...args) { console.log('hm'); return args; }
		export default () => 'default';
		export const constant = 5;`);
	return Promise.resolve(act(folder)).finally(() => rmSync(folder, { recursive: true }));
}

test('preload: a module that cannot be loaded is a warning, once for each sandbox', () => makeModules(async (folder) => {
	const warnings = [];
	const hear = (warning) => warnings.push(`${warning.name}: ${warning.message}`);
	const bad = join(folder, 'bad.mjs');
	writeFileSync(bad, "throw new Error('it is \\x1b[2J broken')");
	process.on('warning', hear);
	try {
		const options = { preload: ['nosuchmod', bad, 'node:zlib', join(folder, 'other.js')], policy: { ...POLICY, files: { read: [folder] } } };
		await withSandbox(async (sandbox) => {
			for (const timeout of [20000, 20001])
				checkEqual(await sandbox.eval('return 1', { timeout }), 1, 'a call');
			await sandbox.eval('return 2', { policy: { ...options.policy, env: { set: { A: 'b' } } } }); // a pool of its own
			await sleep(1);
		}, options);
		checkEqual(warnings.length, 2, `warnings: ${warnings}`);
		checkEqual(warnings[0], "VitroWarning: 'nosuchmod' is not loaded ahead of calls: Error: Cannot find module 'nosuchmod'", 'one that is not there');
		checkIn(`'${pathToFileURL(bad)}' is not loaded ahead of calls: Error: it is \\u001b[2J broken`, warnings[1], 'one that throws');
	} finally {
		process.off('warning', hear);
	}
}));

test('callModule: a function that a module exports', () => makeModules((folder) => withSandbox(async (sandbox) => {
	const url = pathToFileURL(join(folder, 'lib', 'tool.mjs'));
	checkEqual(await sandbox.callModule(url, 'add', [2]), 42, 'its value');
	checkEqual(await sandbox.callModule(url.href, 'default'), 'default', 'the default');
	const args = [1n, new Date(1), new Map([[1, 2]]), undefined, Buffer.from('x')];
	const result = await sandbox.callModule(url, 'echo', args, { result: true });
	checkEqual([result.value, result.logs], [args, [{ level: 'info', text: 'hm' }]], 'arguments, and what it logs');
	checkEqual(await sandbox.callModule('node:path', 'basename', ['/a/b']), 'b', "one of Node's own");
	checkIn("no function 'constant'", (await checkThrows(vitro.ToolError, () => sandbox.callModule(url, 'constant'), 'no function')).message, 'why');
	await checkThrows(vitro.ToolError, () => sandbox.callModule(pathToFileURL(join(folder, 'none.mjs')), 'x'), 'no such file');
	await checkThrows(vitro.NotPlain, () => sandbox.callModule(url, 'echo', [() => 1]), 'an argument that is a function');
})));

test('tool host: functions of modules, and by their source, in cells', () => makeModules(async (folder) => {
	const host = new vitro.ToolHost({ policy: POLICY });
	const outside = 5;
	host.register({ module: join(folder, 'lib', 'tool.mjs'), export: 'echo' }, { description: 'Echoes.' });
	host.register(({ n }) => n * 2, { name: 'twice', inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } });
	host.register(() => outside, { name: 'closure' });
	checkEqual((await host.call('echo', { a: 1 })).value, [{ a: 1 }], 'of a module');
	checkEqual((await host.call('twice', '{"n": 4}')).value, 8, 'by its source');
	checkEqual((await host.call('twice', { n: 'x' })).error.type, 'InvalidArguments', 'what does not fit');
	const closure = await host.call('closure');
	checkEqual([closure.status, closure.error.type], ['error', 'ReferenceError'], 'what it does not have in it');
	await host.close();
}));

test('preload: modules that cells have imported already', () => makeModules((folder) => withSandbox(async (sandbox) => {
	checkEqual(await sandbox.eval('return (await import("node:zlib")).constants.Z_BEST_SPEED'), 1, "one of Node's own");
	const url = pathToFileURL(join(folder, 'other.js')).href;
	checkEqual(await sandbox.eval(`return (await import(${JSON.stringify(url)})).base`), 40, 'one of a file');
}, { preload: ['node:zlib', join(folder, 'other.js')], policy: { ...POLICY, files: { read: [folder] } } })));

await main();
