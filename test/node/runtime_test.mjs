// SPDX-License-Identifier: Apache-2.0
/*
 * Pools of Node: what code in a cell finds, and what comes back of it. Each test is done by forks, and by
 * processes that are started anew (setup.fork: false), as a Node has them that cannot be forked.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { check, checkEqual, checkIn, descendants, main } from '../lib/vitrotest.mjs';
import { both, cells, endTogether, evalIn, failIn, together } from './both.mjs';

// ---- values and errors

together('code is the body of a strict async function', async (pool, kind) => {
	checkEqual(await evalIn(pool, 'return 2 + 3'), 5, 'a value');
	checkEqual(cells.logs.some((line) => line.includes('started anew for each call')), kind === 'anew', 'the log tells which');
	checkEqual(await evalIn(pool, 'const x = await Promise.resolve(4);\nreturn [x, this === undefined]'), [4, true], 'await, and strictness');
	checkEqual(await evalIn(pool, '1 + 1'), undefined, 'no return');
	checkEqual(await evalIn(pool, 'return (await import("node:os")).EOL'), '\n', 'import()');
	checkEqual(await evalIn(pool, 'return 1 // a comment'), 1, 'a comment at the end');
	checkIn('SyntaxError', (await failIn(pool, '}); (async function () {')).type, 'code that leaves its body');
});

together('values are what they were', async (pool) => {
	const value = await evalIn(pool, 'return {n: 2n ** 70n, d: new Date(5), m: new Map([[1, {a: 2}]]), s: new Set(["x"]), b: Buffer.from("hi"), f: new Float64Array([1.5]), u: undefined, i: -Infinity}');
	checkEqual(value.n, 2n ** 70n, 'a BigInt');
	checkEqual(value.d, new Date(5), 'a Date');
	checkEqual(value.m, new Map([[1, { a: 2 }]]), 'a Map');
	checkEqual(value.s, new Set(['x']), 'a Set');
	checkEqual(value.b.toString(), 'hi', 'a Buffer');
	checkEqual([...value.f], [1.5], 'a typed array');
	check('u' in value && value.u === undefined && value.i === -Infinity, 'undefined, and -Infinity');
	checkIn('result', (await failIn(pool, 'return () => 1')).error, 'a function');
});

together('results of 300 kB, 10 MB and 50 MB', async (pool) => {
	for (const size of [300_000, 10 << 20, 50 << 20]) {
		const value = await evalIn(pool, `return Buffer.alloc(${size}, 7)`);
		check(value.length === size && value[size - 1] === 7, `${size} bytes`);
	}
	checkEqual((await evalIn(pool, 'return "ä".repeat(3e6)')).length, 3e6, 'a text');
	checkEqual((await failIn(pool, 'return Buffer.alloc(80 << 20)')).status, 'result_limit', 'more than limits.result_mb');
});

together('errors have a name, a message, and the line where they were thrown', async (pool) => {
	const told = await failIn(pool, 'const a = 1;\nfunction f() {\n  throw new RangeError("too far");\n}\nf();');
	checkEqual([told.status, told.type, told.error], ['error', 'RangeError', 'too far'], 'an error');
	checkIn('<eval>:3:9', told.traceback, 'its line');
	check(!/vitro:|node:internal/.test(told.traceback), () => `frames of what runs it: ${told.traceback}`);
	const wrong = await failIn(pool, 'let x = 1;\nlet y = ;');
	checkEqual(wrong.type, 'SyntaxError', 'no code');
	checkIn('<eval>:2', wrong.traceback, 'its line');
});

together('whatever is thrown is told', async (pool) => {
	for (const [thrown, said] of [['null', 'null'], ['undefined', 'undefined'], ['"a text"', 'a text'], ['{a: 1}', '{ a: 1 }'], ['Object.create(null)', '[Object: null prototype] {}']]) {
		const told = await failIn(pool, `throw ${thrown}`);
		checkEqual([told.status, told.type, told.error], ['error', 'Thrown', said], thrown);
	}
	checkEqual((await failIn(pool, 'const e = new Error("x"); Object.defineProperty(e, "message", {get() { throw 1 }}); throw e')).status, 'error', 'an error that cannot be shown');
});

together('errors that nobody catches end the call', async (pool) => {
	checkEqual((await failIn(pool, 'Promise.reject(new TypeError("left")); await new Promise((r) => setTimeout(r, 1000))')).type, 'TypeError', 'a rejection');
	checkEqual((await failIn(pool, 'setTimeout(() => { throw new TypeError("late") }, 1); await new Promise((r) => setTimeout(r, 1000))')).error, 'late', 'a timer');
	checkEqual(await evalIn(pool, 'let n = 0; process.on("uncaughtException", () => n++); setTimeout(() => { throw 1 }, 1); await new Promise((r) => setTimeout(r, 20)); return n'), 1, 'a handler of its own');
});

together('a process that ends is told of', async (pool) => {
	const left = await failIn(pool, 'process.stdout.write("bye"); process.exit(3)');
	checkEqual([left.status, left.head.exit_code, left.stdout], ['error', 3, 'bye'], 'process.exit');
	const aborted = await failIn(pool, 'process.abort()');
	checkEqual([aborted.status, aborted.head.signal], ['crashed', 6], 'process.abort');
	checkEqual((await failIn(pool, 'process.kill(process.pid, "SIGKILL"); await new Promise((r) => setTimeout(r, 1000))')).status, 'crashed', 'process.kill');
});

together('nothing hangs: what never comes is told, and what never ends is ended', async (pool) => {
	const start = Date.now();
	checkIn('never happen', (await failIn(pool, 'await new Promise(() => {})')).error, 'a promise that nobody settles');
	check(Date.now() - start < 5000, 'it took as long as a deadline');
	checkEqual((await failIn(pool, 'for (;;);', { wall_ms: 300 })).status, 'timeout', 'a loop');
	checkEqual(await evalIn(pool, 'await new Promise((r) => setTimeout(r, 200)); return 1'), 1, 'a timer is something that happens');
	checkEqual(await evalIn(pool, 'return await new Promise((r) => require("child_process").execFile("/bin/sleep", ["0.2"], () => r(2)))'.replace('require("child_process")', '(await import("child_process"))').replace('new Promise((r)', 'new Promise(async (r)')), 2, 'and so is a child');
});

// ---- output, logs, files, tools

together('output is output, and console goes to the log where that is wanted', async (pool) => {
	const printed = await cells.eval(await pool(), 'console.log("a", {b: 1}); console.error("c"); return 1');
	checkEqual([printed.stdout, printed.stderr, printed.logs], ['a { b: 1 }\n', 'c\n', []], 'output');
	const told = await cells.call(await pool(), { op: 'eval', code: 'for (let i = 0; i < 10000; i++) console.log(i); console.warn("%d!", 5); return 1', console: 'log' });
	checkEqual(told.logs.length, 10_001, 'lines');
	check(told.logs.slice(0, 10_000).every((line, i) => line.text === String(i) && line.level === 'info'), 'their order');
	checkEqual(told.logs[10_000], { level: 'warning', text: '5!' }, 'a warning');
	const much = await cells.eval(await pool(), 'process.stdout.write("x".repeat(5e5)); return 1');
	checkEqual(much.stdout.length, 5e5, 'much output');
});

together('tools: by their names, many at once, with their errors', async (pool) => {
	const tools = {
		add: ({ a, b }) => a + b,
		'math.double': async (x) => { await sleep(x % 7); return x * 2; },
		'what-ever name': () => new Map([[1, 2]]),
		fail: () => { throw Object.assign(new RangeError('no such thing'), { code: 'ENOTHING' }); },
		odd: () => { throw Object.assign(new Error('odd'), { name: 'OddError' }); },
	};
	checkEqual(await evalIn(pool, 'return [await add({a: 1, b: 2}), await math.double(4), await tools["what-ever name"](), await tools.add({a: 2n, b: 2n})]', { tools }), [3, 8, new Map([[1, 2]]), 4n], 'values');
	checkEqual(await evalIn(pool, 'return (await Promise.all(Array.from({length: 200}, (_, i) => math.double(i)))).reduce((a, b) => a + b)', { tools }), 39_800, 'many at once');
	checkEqual(await evalIn(pool, 'try { await fail() } catch (e) { return [e instanceof RangeError, e.message, e.code] }', { tools }), [true, 'no such thing', 'ENOTHING'], 'an error');
	checkEqual(await evalIn(pool, 'try { await odd() } catch (e) { return [e instanceof Error, e.name, e.message] }', { tools }), [true, 'OddError', 'odd'], 'an error of no class here');
	checkEqual(await evalIn(pool, 'const add = 1; return add', { tools }), 1, 'a name that is taken');
	checkEqual((await evalIn(pool, 'return (await Promise.all([1, 2, 3, 4].map(() => tools.echo(Buffer.alloc(3e6, 1))))).map((b) => b.length)', { tools: { echo: (x) => x } })), [3e6, 3e6, 3e6, 3e6], 'large ones at once');
});

together('files and standard input come along, and files come back', async (pool) => {
	const told = await cells.call(await pool(), { op: 'eval', code: 'const fs = await import("fs"); fs.mkdirSync("out"); fs.writeFileSync("out/a.txt", fs.readFileSync("in/x", "utf8") + fs.readFileSync(0, "utf8")); return 1', files: { 'in/x': 0 }, stdin: 1, collect: ['out/**'] }, { buffers: [Buffer.from('file '), Buffer.from('input')] });
	checkEqual([told.status, told.files && Object.entries(told.files).map(([name, data]) => [name, data.toString()])], ['ok', [['out/a.txt', 'file input']]], 'files');
});

together('a function of a module', async (pool) => {
	const folder = mkdtempSync(join(tmpdir(), 'node-module-'));
	writeFileSync(join(folder, 'm.mjs'), 'import { two } from "./n.mjs"; export const add = async (a, b) => a + b + two; export default (x) => [x];');
	writeFileSync(join(folder, 'n.mjs'), 'export const two = 2;');
	const policy = { files: { read: [folder] } };
	try {
		const at = await pool({ policy });
		const url = pathToFileURL(join(folder, 'm.mjs')).href;
		checkEqual((await cells.call(at, { op: 'module', url, export: 'add', args: [1, 2] })).value, 5, 'an export');
		checkEqual((await cells.call(at, { op: 'module', url, args: ['x'] })).value, ['x'], 'the default');
		checkIn("no function 'nothing'", (await cells.call(at, { op: 'module', url, export: 'nothing', args: [] })).error, 'none');
		const ahead = await pool({ policy, setup: { preload: [url], path: [folder] } });
		checkEqual((await cells.call(ahead, { op: 'module', url, export: 'add', args: [1, 2] })).value, 5, 'loaded ahead');
	} finally {
		rmSync(folder, { recursive: true });
	}
});

// ---- a process of its own

together('the process is as one of its own', async (pool) => {
	const found = await evalIn(pool, `const fs = await import("fs");
		return {pid: process.pid, real: Number(fs.readlinkSync("/proc/self")), cwd: process.cwd(), argv: process.argv.length, exec: process.execArgv, fds: fs.readdirSync("/proc/self/fd").length < 24,
			names: ["fs", "require", "module", "addon", "LD_PRELOAD"].filter((name) => name in globalThis || name in process.env),
			web: [URL, TextEncoder, structuredClone, AbortController, crypto.subtle, fetch, Blob, performance, queueMicrotask, WebAssembly].every(Boolean), proc: typeof process, buf: typeof Buffer, con: typeof console.log}`);
	checkEqual(found.pid, found.real, 'process.pid');
	checkEqual([found.cwd, found.argv, found.exec, found.names, found.web, found.fds], ['/tmp', 2, [], [], true, true], 'what it finds');
});

together('threads, children, WebAssembly and crypto work in a cell', async (pool) => {
	checkEqual(await evalIn(pool, 'const {Worker} = await import("worker_threads"); const w = new Worker("require(\\"worker_threads\\").parentPort.postMessage(6)", {eval: true}); return await new Promise((r, j) => { w.on("message", r); w.on("error", j) })'), 6, 'a worker');
	checkEqual(await evalIn(pool, 'return (await import("child_process")).execFileSync("/bin/echo", ["hi"]).toString()'), 'hi\n', 'a child');
	checkEqual(await evalIn(pool, 'return (await import("child_process")).execFileSync(process.execPath, ["-p", "6*7"]).toString()'), '42\n', 'a child that is a Node');
	checkEqual(await evalIn(pool, 'const {instance} = await WebAssembly.instantiate(Buffer.from("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b", "hex")); return instance.exports.add(2, 3)'), 5, 'WebAssembly');
	checkEqual(await evalIn(pool, 'const c = await import("crypto"); const {promisify} = await import("util"); return (await promisify(c.pbkdf2)("a", "b", 1000, 8, "sha1")).length'), 8, 'crypto, by threads');
	checkEqual(await evalIn(pool, 'const fs = await import("fs/promises"); await fs.writeFile("a", "x"); return await fs.readFile("a", "utf8")'), 'x', 'files, by threads');
});

both('memory beyond V8 is bounded too, and grandchildren end with their call', async (pool) => {
	const told = await cells.eval(await pool({ policy: { limits: { memory_mb: 128 } } }), 'const kept = []; for (let i = 0; i < 64; i++) kept.push(new Uint8Array(16 << 20).fill(1)); return kept.length', { wall_ms: 20_000 });
	checkEqual(told.status, 'memory_limit', `a gigabyte of typed arrays: ${told.error}`);
	const started = Date.now();
	checkEqual(await evalIn(pool, '(await import("child_process")).spawn("/bin/sleep", ["60"], {detached: true, stdio: "inherit"}).unref(); return 1'), 1, 'a grandchild that keeps the pipes');
	check(Date.now() - started < 5000, 'it was waited for');
});

endTogether();

// ---- the zygote

both('what is wrong with an interpreter or a setup is said', async (pool, kind) => {
	const told = await cells.eval(await cells.pool({ setup: { version: 2, fork: kind === 'forked' } }), 'return 1');
	checkIn('version 1', told.error, 'a setup');
	const other = await cells.eval(await cells.pool({ node: '/bin/true' }), 'return 1');
	checkIn('is it Node 18 or newer?', other.error, 'another program');
});

both('a module that ends its zygote, or cannot be loaded, is left out', async (pool) => {
	const folder = mkdtempSync(join(tmpdir(), 'node-ends-'));
	writeFileSync(join(folder, 'ends.cjs'), 'process.exit(3)');
	writeFileSync(join(folder, 'fails.mjs'), 'throw new RangeError("no")');
	try {
		const at = await pool({ policy: { files: { read: [folder] } }, setup: { path: [folder], preload: ['./fails.mjs', './ends.cjs'] } });
		checkEqual((await cells.eval(at, 'return 1')).value, 1, 'a call');
		check(cells.logs.some((line) => line.includes('./fails.mjs') && line.includes('RangeError: no')), () => cells.logs.join('\n'));
		check(cells.logs.some((line) => line.includes('./ends.cjs') && line.includes('not imported ahead')), () => cells.logs.join('\n'));
	} finally {
		rmSync(folder, { recursive: true });
	}
}, ['forked']);

both('a zygote that dies is replaced', async (pool) => {
	checkEqual(await evalIn(pool, 'return 1'), 1, 'a call before');
	const isZygote = (pid) => { // an occupant has V8's worker alone beside it
		try {
			return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('vitro_zygote.node') &&
				readFileSync(`/proc/${pid}/status`, 'latin1').match(/^Threads:\s+(\d+)/m)[1] > 2;
		} catch {
			return false; // it is gone
		}
	};
	const zygotes = descendants().filter(isZygote);
	check(zygotes.length > 0, 'there is none');
	for (const pid of zygotes)
		process.kill(pid, 'SIGKILL');
	for (let i = 0; i < 5; i++)
		checkEqual(await evalIn(pool, `return ${i}`), i, 'a call after');
}, ['forked']);

both("V8's heap lies in one place, so that a fork needs few page tables", async (pool) => {
	const code = `const { readFileSync } = await import('node:fs');
const [, kilobytes] = readFileSync('/proc/self/status', 'latin1').match(/^VmPTE:\\s+(\\d+) kB$/m);
return Number(kilobytes);`;
	const kilobytes = await evalIn(pool, code);
	check(kilobytes < 400, () => `${kilobytes} kB of page tables`); // 570 where each page of the heap has its own
}, ['forked']);

both('the pool has no cells left, and calls still end', async (pool) => {
	const all = await Promise.all(Array.from({ length: 40 }, async (_, i) => await cells.eval(await pool(), `return ${i}`)));
	checkEqual(all.map((told) => told.value), all.map((_, i) => i), 'forty at once');
}, ['forked']);

await main();
