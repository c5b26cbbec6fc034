#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The drop-in for ncp: its interface and texts; and one test for each bug of such a sandbox, in which the bug shows in one
// that is made as usual (naive.mjs), so that no test passes because nothing is tried.

import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import { SubprocessSandbox, createSubprocessSandbox } from '../../sdk/node/compat/ncp.js';
import { BINARY, allowToStay, check, checkEqual, checkIn, checkThrows, eventually, main, skip, testNode as test } from '../lib/vitrotest.mjs';
import { NaiveSandbox } from './naive.mjs';

process.env.VITRO_BINARY = BINARY;
allowToStay((words) => words.includes(' supervise')); // one serves all sandboxes, and ends with this program
const TERMINATED = 'Execution terminated (timeout or resource limit)';
const NONE = async () => undefined;

const ours = (config = {}) => createSubprocessSandbox(config);
const naive = (config = {}) => new NaiveSandbox(config);
const tool = (name) => ({ name, description: 'A tool.' });

// ---- the interface ---------------------------------------------------------------------------------

test('ncp: the body of a strict async function: return, await, declarations; no require', async () => {
	const { result, logs, error, duration } = await ours().execute(`
		const a = 1; let b = await Promise.resolve(2); function f() { return this; }
		class C { x = 3 }
		return [a + b + new C().x, f() === undefined, typeof require, typeof URL, typeof TextEncoder, typeof structuredClone, typeof setTimeout];`, [], NONE);
	checkEqual([error, result, logs], [undefined, [6, true, 'undefined', 'function', 'function', 'function', 'function'], []], 'what came back');
	check(Number.isInteger(duration) && duration >= 0, `duration is ${duration}`);
	checkEqual(new SubprocessSandbox().isRunning(), false, 'isRunning()');
});

test('ncp: tools as ns.method(params), many at once, with their errors', async () => {
	const asked = [];
	const executor = async (name, params) => {
		asked.push([name, params]);
		if (name === 'web-api:fail')
			throw new Error('no such page');
		await sleep(params?.ms ?? 0);
		return { name, params };
	};
	const { result, error } = await ours().execute(`
		const one = await math.add({ a: 1, b: undefined, when: new Date(0) });
		const many = await Promise.all([30, 20, 10].map((ms) => math.add({ ms })));
		let caught; try { await web_api.fail({}) } catch (e) { caught = [e.message, e instanceof Error] }
		return [one, many.map((x) => x.params.ms), caught, await math.none()];`, ['math:add', 'web-api:fail', 'math:none'].map(tool), executor);
	checkEqual(error, undefined, 'its error');
	checkEqual(result, [{ name: 'math:add', params: { a: 1, when: '1970-01-01T00:00:00.000Z' } }, [30, 20, 10], ['no such page', true], { name: 'math:none' }], 'what came back');
	checkEqual(asked[0], ['math:add', { a: 1, when: '1970-01-01T00:00:00.000Z' }], 'what the host was asked');
});

test('ncp: tools whose names are those of functions, or have more than one colon', async () => {
	const names = ['fetch:fetch', 'fetch:call', 'a:b:c', 'x:y', 'x:y:z', 'p:q:r', 'p:q', 'console:show', 'console:log'];
	const { result, error, logs } = await ours().execute(`
		console.log('as ever');
		const calls = [fetch.fetch({}), a.b({}), a['b:c']({}), x.y({}), x['y:z']({}), p.q({}), p['q:r']({}), tools['fetch:call']({}), console.show({})];
		return [...await Promise.all(calls), typeof fetch, fetch.call === Function.prototype.call];`, names.map(tool), async (name) => name);
	checkEqual([error, logs], [undefined, ['[log] "as ever"']], 'its error, and its logs');
	checkEqual(result, ['fetch:fetch', 'a:b:c', 'a:b:c', 'x:y', 'x:y:z', 'p:q', 'p:q:r', 'fetch:call', 'console:show', 'function', true], 'which was called');
});

test('ncp: what has no text is told, and what holds itself is logged', async () => {
	for (const code of ["throw ''", "throw new (class extends Error { name = '' })()", "return Promise.reject('')"])
		checkEqual(await ours().execute(code, [], NONE).then(({ result, error }) => [result, error]), [null, 'Error'], code);
	const { logs } = await ours().execute(`
		const one = { a: 1, big: 2n, list: [] }; one.self = one; one.list.push(one, { twice: one.list });
		const shared = {}; console.log(one); console.warn('x', one.list, [shared, shared]); console.log({ toJSON() { throw 1; } }); console.log(5n);`, [], NONE);
	checkEqual(logs, [
		'[log] {"a":1,"big":"2","list":["[Circular]",{"twice":"[Circular]"}],"self":"[Circular]"}',
		'[warn] ["x",[{"a":1,"big":"2","list":"[Circular]","self":"[Circular]"},{"twice":"[Circular]"}],[{},{}]]',
		'[log] "what cannot be said in JSON"', '[log] 5',
	], 'what was logged');
});

test('ncp: the working directory is readable, unless it is the home folder or one around it, which is a warning, once', async () => {
	const place = mkdtempSync(join(tmpdir(), 'vitro-test-home-'));
	const folder = join(place, 'folder');
	const [cwd, { HOME }, warnings] = [process.cwd(), process.env, []];
	const hear = ({ message }) => warnings.push(message);
	mkdirSync(folder, { mode: 0o755 });
	writeFileSync(join(folder, 'key'), 'secret', { mode: 0o644 });
	chmodSync(place, 0o755);
	const read = () => ours().execute(`return (await import('node:fs')).readFileSync(${JSON.stringify(join(folder, 'key'))}, 'utf8')`, [], NONE);
	process.on('warning', hear);
	try {
		process.chdir(folder);
		checkEqual((await read()).result, 'secret', 'the control: it is not the home folder');
		process.env.HOME = folder;
		for (const wide of [folder, place, place, '/']) {
			process.chdir(wide);
			checkIn('ENOENT', (await read()).error ?? 'it was read', wide);
		}
		await sleep(0);
		checkEqual(warnings.map((message) => /'(.*?)' is the home folder/.exec(message)?.[1]), [folder, place, '/'], 'warnings');
	} finally {
		process.off('warning', hear);
		process.chdir(cwd);
		process.env.HOME = HOME;
		rmSync(place, { recursive: true });
	}
});

test("ncp: values by JSON's rules", async () => {
	for (const [code, want] of [['return undefined', undefined], ['', undefined], ['return null', null], ['return new Date(0)', '1970-01-01T00:00:00.000Z'], ['return [NaN, undefined, () => 1]', [null, null, null]], ['return { a: undefined, b: 1 }', { b: 1 }], ['return () => 1', undefined], ['return new Map([[1, 2]])', {}]]) {
		const { result, error } = await ours().execute(code, [], NONE);
		checkEqual([result, error], [want, undefined], code);
	}
	checkIn('BigInt', (await ours().execute('return 1n', [], NONE)).error, 'a BigInt');
	checkIn('circular', (await ours().execute('const a = []; a.push(a); return a', [], NONE)).error, 'a cycle');
});

test('ncp: logs', async () => {
	const { logs } = await ours().execute(`
		console.log('a'); console.info({ b: 1 }); console.warn('c', 2); console.error(null); console.debug([1]); console.log(undefined); console.log();
		console.log('€😀'.repeat(30000)); process.stdout.write('one\\ntwo\\n'); process.stderr.write('three'); console.log(1n);`, [], NONE);
	const said = logs.filter((line) => !/^\[std/.test(line));
	checkEqual(said.map((line) => line.slice(0, 40)), ['[log] "a"', '[log] {"b":1}', '[warn] ["c",2]', '[error] null', '[debug] [1]', '[log] undefined', '[log] []', `[log] "${'€😀'.repeat(20)}`.slice(0, 40), '[log] 1'], 'what was logged');
	checkEqual(said[7], `[log] "${'€😀'.repeat(30000)}"`, 'a long line');
	checkEqual(logs.filter((line) => /^\[std/.test(line)).sort(), ['[stderr] three', '[stdout] one', '[stdout] two'], 'what was printed');
});

test('ncp: texts of failures', async () => {
	for (const [code, want, config] of [
		['throw new Error("mine")', 'mine'], ['null.x', "Cannot read properties of null (reading 'x')"], ['setTimeout(() => { throw new Error("later") }, 1); await new Promise(() => {})', 'Uncaught exception: later'],
		['Promise.reject(new Error("lost")); await new Promise(() => {})', 'Unhandled rejection: lost'], ['Promise.reject("text"); return 5', 'Unhandled rejection: text'],
		['process.exit(3)', 'Process exited with code 3'], ['for (;;);', TERMINATED, { timeout: 700 }], ['await new Promise((r) => setTimeout(r, 60000))', TERMINATED, { timeout: 700 }],
		['Object.prototype.polluted = 1', 'Cannot add property polluted, object is not extensible'],
	]) {
		const { result, error } = await ours(config).execute(code, [], NONE);
		checkEqual([result, error], [null, want], code);
	}
	checkIn('Unexpected', (await ours().execute('return }', [], NONE)).error, 'what is no code');
	checkIn('Unexpected', (await ours().execute('}); (async function () {', [], NONE)).error, 'the end of one body and the beginning of another');
	checkIn('of a prototype', (await ours().execute('Array.prototype.push = 1', [], NONE)).error, 'a change of a prototype');
});

test('ncp: the environment, the working directory, and what the policy says', async () => {
	process.env.VITRO_TEST_SECRET = 'secret';
	const code = 'return [Object.keys(process.env).sort(), process.env.NODE_ENV, process.env.VITRO_TEST_SECRET]';
	checkEqual((await ours().execute(code, [], NONE)).result, [['NODE_ENV', 'PATH'], 'sandbox', null], 'minimalEnv');
	checkEqual((await ours({ minimalEnv: false }).execute(code, [], NONE)).result[2], 'secret', 'the whole environment');
	delete process.env.VITRO_TEST_SECRET;
	const denied = (await ours({ policy: { files: { read: [] } } }).execute('const fs = await import("node:fs"); return fs.writeFileSync("/usr/x", "")', [], NONE)).error;
	checkIn('files.write', denied, 'a denial names its key');
	await checkThrows(Error, () => ours({ policy: { nonsense: 1 } }).execute('return 1', [], NONE), 'what cannot start');
});

test('ncp: a cell that logs without end does not fill its host', async () => {
	const { logs, error } = await ours({ timeout: 4000, memoryLimit: 512 }).execute("const line = 'x'.repeat(14000); for (;;) console.log(line)", [], NONE);
	checkEqual(error, TERMINATED, 'its error');
	const size = logs.reduce((total, line) => total + line.length, 0);
	check(size < 70 << 20, `${size} characters were kept`);
	check(logs.length > 100, 'few were kept');
});

test('ncp: what reading a result costs is bounded, and no name in it leads to a prototype', async () => {
	const forged = await ours().execute(`return JSON.parse('{"a": 1, "__proto__": {"admin": true}}')`, [], NONE);
	checkEqual([forged.result, Object.assign({}, forged.result).admin], [{ a: 1 }, undefined], 'a name that leads to a prototype');
	const nest = (depth) => `let made = []; for (let at = 1; at < ${depth}; at++) made = [made]; return made`;
	checkEqual((await ours().execute(nest(512), [], NONE)).error, undefined, 'the control: as deep as may be');
	const list = (length) => `return Array.from({ length: ${length} }, () => ({}))`;
	checkEqual((await ours({ memoryLimit: 1024 }).execute(list(1e5), [], NONE)).result.length, 1e5, 'the control: as many parts as may be');
	for (const [code, why] of [[nest(513), 'the message nests too deep'], [list(2.1e6), 'the message has too many parts']]) {
		const { result, error } = await ours({ memoryLimit: 1024, timeout: 20_000 }).execute(code, [], NONE);
		checkEqual([result, error], [null, why], why);
	}
});

// ---- the bugs --------------------------------------------------------------------------------------

test('ncp bug: results over 300 kB silently become null', async () => {
	const code = (size) => `return 'x'.repeat(${size})`;
	const control = await naive().execute(code(30e6), [], NONE);
	checkEqual([control.result, control.error], [null, undefined], 'the control loses it');
	for (const size of [300_000, 10_000_000, 100_000_000]) {
		const { result, error } = await ours({ memoryLimit: 1024 }).execute(code(size), [], NONE);
		checkEqual([error, result?.length], [undefined, size], `${size} bytes`);
	}
});

test('ncp bug: of 10,000 log lines some are lost', async () => {
	const code = 'for (let i = 0; i < 10000; i++) console.log(i, "x".repeat(100));';
	check((await naive().execute(code, [], NONE)).logs.length < 10000, 'the control keeps them all');
	const { logs } = await ours().execute(code, [], NONE);
	checkEqual([logs.length, logs.every((line, index) => line.startsWith(`[log] [${index},`))], [10000, true], 'lines, in order');
});

async function withSecret(act) {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-secret-'));
	try {
		writeFileSync(join(folder, 'key'), 'a secret');
		return await act(JSON.stringify(join(folder, 'key')));
	} finally {
		rmSync(folder, { recursive: true });
	}
}

test('ncp bug: await import("node:fs") reads the host\'s files', () => withSecret(async (file) => {
	const code = `const fs = await import('node:fs'); return fs.readFileSync(${file}, 'utf8')`;
	checkEqual((await naive().execute(code, [], NONE)).result, 'a secret', 'the control reads it');
	const { result, error } = await ours().execute(code, [], NONE);
	checkEqual(result, null, 'what was read');
	checkIn('ENOENT', error, 'why');
	checkIn('files.read', error, 'a file that is not there may be a denial');
}));

test('ncp bug: process.getBuiltinModule reads the host\'s files', () => withSecret(async (file) => {
	if (process.getBuiltinModule === undefined)
		skip('this Node has no process.getBuiltinModule()');
	const code = `return (await import('node:fs')).readFileSync(${file}, 'utf8')`;
	checkEqual((await naive().execute(code, [], NONE)).result, 'a secret', 'the control reads it');
	const { result, error } = await ours().execute(code, [], NONE);
	check(result === null && error, `it was read: ${result}`);
}));

test('ncp bug: node:net reaches the host\'s network', async () => {
	const server = createServer((socket) => socket.end('reached')).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const code = `const net = await import('node:net'); const socket = net.connect(${server.address().port}, '127.0.0.1'); let text = '';
		for await (const chunk of socket) text += chunk; return text;`;
	checkEqual((await naive().execute(code, [], NONE)).result, 'reached', 'the control reaches it');
	const { result, error } = await ours().execute(code, [], NONE);
	check(result === null && error, `it was reached: ${result}`);
	server.close();
});

test('ncp bug: process.send() forges messages of the protocol', async () => {
	const code = "process.send?.({ type: 'result', data: 'forged' }); await new Promise((r) => setTimeout(r, 200)); process.exit(0)";
	checkEqual((await naive().execute(code, [], NONE)).result, 'forged', 'the control believes it');
	const { result, error } = await ours().execute(code, [], NONE);
	checkEqual([result, error], [null, 'Process exited with code 0'], 'what came back');
});

test('ncp bug: failed code is run again, and so has its effects twice', async () => {
	let count = 0;
	const executor = async () => ++count;
	const code = 'await fx.act({}); throw new Error("after the effect")';
	const control = naive();
	if ((await control.execute(code, [tool('fx:act')], executor)).error) // what its caller does then
		await naive().execute(code, [tool('fx:act')], executor);
	checkEqual(count, 2, 'effects of the control');
	count = 0;
	for (const failing of [code, 'await fx.act({}); process.exit(1)', 'await fx.act({}); for (;;);'])
		check((await ours({ timeout: 1500 }).execute(failing, [tool('fx:act')], executor)).error, 'it does not fail');
	checkEqual(count, 3, 'effects of three calls');
});

test('ncp bug: the memory limit covers only the heap of V8', async () => {
	const code = "const kept = []; for (let i = 0; i < 40; i++) kept.push(new Uint8Array(25 << 20).fill(1)); return kept.length";
	checkEqual((await naive({ memoryLimit: 128 }).execute(code, [], NONE)).result, 40, 'the control has a gigabyte');
	const { result, error } = await ours({ memoryLimit: 128 }).execute(code, [], NONE);
	checkEqual([result, error], [null, TERMINATED], 'what came back');
	checkEqual((await ours({ memoryLimit: 64 }).execute('return new Uint8Array(20 << 20).fill(1).length', [], NONE)).result, 20 << 20, 'what fits');
});

test("ncp bug: a tool's name breaks all code: none for a namespace, a dot, a digit, console", async () => {
	for (const name of ['plain', 'a.b', 'ns:a.b', '1st:go', 'console:ask', 'class:of', 'Math:more', 'tools:x', '']) {
		if (name === '')
			continue;
		if (!['plain', 'ns:a.b', 'Math:more', 'tools:x'].includes(name)) {
			const control = await naive().execute('console.log("works"); return 1', [tool(name)], NONE);
			check(control.error || !control.logs.includes('[log] "works"'), `the control works with ${name}`);
		}
		const { result, error, logs } = await ours().execute(`console.log('works'); return [Math.max(1, 2), await tools[${JSON.stringify(name)}]({ n: 1 })]`, [tool(name)], async (asked, params) => [asked, params]);
		checkEqual([error, result, logs], [undefined, [2, [name, { n: 1 }]], ['[log] "works"']], name);
	}
	const { result } = await ours().execute('return [await console.ask(1), await Math.more(2), await a_b.c(3)]', ['console:ask', 'Math:more', 'a.b:c'].map(tool), async (name) => name);
	checkEqual(result, ['console:ask', 'Math:more', 'a.b:c'], 'beside what was there');
});

test('ncp bug: frozen prototypes break this.name = in an Error, and o.toString =', async () => {
	const code = `
		class MyError extends Error { constructor(m) { super(m); this.name = 'MyError'; this.message = m + '!'; } }
		const o = {}; o.toString = () => 'mine'; o.constructor = 5; const list = []; list.map = 7;
		function Old() {} Old.prototype.toString = () => 'old'; Old.prototype = { constructor: Old };
		return [new MyError('x').name, new MyError('x').message, String(o), o.constructor, list.map, [...[1, 2]].map((n) => n * 2), Object.keys(o)];`;
	check((await naive().execute(code, [], NONE)).error, 'the control has no trouble');
	const { result, error } = await ours().execute(code, [], NONE);
	checkEqual([error, result], [undefined, ['MyError', 'x!', 'mine', 5, 7, [2, 4], ['toString', 'constructor']]], 'what came back');
});

test('ncp bug: a tool that throws an empty message counts as success', async () => {
	const code = 'try { return ["went well", await ns.fail({})] } catch (error) { return ["threw", error.message] }';
	const executor = async () => { throw new Error(''); };
	checkEqual((await naive().execute(code, [tool('ns:fail')], executor)).result[0], 'went well', 'the control goes on');
	checkEqual((await ours().execute(code, [tool('ns:fail')], executor)).result, ['threw', ''], 'ours');
	check((await ours().execute('await ns.fail({})', [tool('ns:fail')], executor)).error, 'it counts as success');
	checkEqual((await ours().execute(code, [tool('ns:fail')], async () => { throw null; })).result, ['threw', 'null'], 'a tool that throws null');
});

test('ncp bug: throw null gives an internal error', async () => {
	const control = await naive().execute('throw null', [], NONE);
	check(control.error !== 'null', `the control says ${control.error}`);
	for (const [code, want] of [['throw null', 'null'], ['throw undefined', 'undefined'], ['throw "text"', 'text'], ['throw 5', '5'], ['throw new Error()', 'Error'], ['throw Object.create(null)', 'an error that cannot be shown'], ['await Promise.reject(null)', 'null']])
		checkEqual((await ours().execute(code, [], NONE)).error, want, code);
});

test('ncp bug: process.exit(0) is success with null', async () => {
	const control = await naive().execute('process.exit(0)', [], NONE);
	checkEqual([control.result, control.error], [null, undefined], 'the control');
	checkEqual((await ours().execute('process.exit(0)', [], NONE)).error, 'Process exited with code 0', 'ours');
	checkEqual((await ours().execute('process.abort()', [], NONE)).error, 'Process exited with code 134', 'process.abort()');
});

test('ncp bug: output is cut where a pipe was read, not at lines, and can be lost', async () => {
	const code = 'process.stdout.write("al"); await new Promise((r) => setTimeout(r, 150)); process.stdout.write("pha\\nbeta\\n"); for (let i = 0; i < 5000; i++) process.stdout.write("line " + i + "\\n");';
	const printed = (logs) => logs.filter((line) => line.startsWith('[stdout]'));
	check(printed((await naive().execute(code, [], NONE)).logs)[0] !== '[stdout] alpha', 'the control keeps lines whole');
	const lines = printed((await ours().execute(code, [], NONE)).logs);
	checkEqual([lines.length, lines[0], lines[1], lines[5001]], [5002, '[stdout] alpha', '[stdout] beta', '[stdout] line 4999'], 'lines');
});

/** Processes whose command line has the text. */
function processesWith(text) {
	return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).filter((pid) => {
		try {
			return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(text);
		} catch {
			return false;
		}
	}).map(Number);
}

test('ncp bug: grandchildren survive', async () => {
	const code = (seconds) => `const { spawn } = await import('node:child_process'); const child = spawn('sleep', ['${seconds}'], { detached: true, stdio: 'ignore' }); child.unref();
		await new Promise((r) => setTimeout(r, 100)); return child.pid > 0`;
	const mark = `71.${process.pid}`;
	checkEqual((await naive().execute(code(`${mark}1`), [], NONE)).result, true, 'the control starts one');
	const left = processesWith(`sleep ${mark}1`);
	checkEqual(left.length, 1, 'the control leaves it');
	process.kill(left[0], 'SIGKILL');
	checkEqual((await ours().execute(code(`${mark}2`), [], NONE)).result, true, 'ours starts one');
	await eventually(() => !processesWith(`sleep ${mark}2`).length, 'it is gone');
});

test('ncp bug: terminate() with two runs kills only the last', async () => {
	const code = 'await ns.begun({}); await new Promise((r) => setTimeout(r, 30000)); return "survived"';
	const short = code.replace('30000', '2500');
	const runTwo = async (sandbox, text) => {
		let begun = 0;
		const executor = async () => { begun++; };
		const runs = [sandbox.execute(text, [tool('ns:begun')], executor), sandbox.execute(text, [tool('ns:begun')], executor)];
		await eventually(() => begun === 2, 'both run', 20_000);
		sandbox.terminate();
		return Promise.all(runs);
	};
	checkIn('survived', (await runTwo(naive(), short)).map(({ result }) => result), 'the control');
	const sandbox = ours();
	checkEqual((await runTwo(sandbox, code)).map(({ error }) => error), [TERMINATED, TERMINATED], 'ours');
	checkEqual(sandbox.isRunning(), false, 'isRunning()');
	checkEqual((await sandbox.execute('return 1', [], NONE)).result, 1, 'it can be used again');
});

await main();
