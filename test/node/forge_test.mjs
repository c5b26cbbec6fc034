// SPDX-License-Identifier: Apache-2.0
/*
 * Code that turns on what runs it: the protocol's descriptor, and the built-ins that the harness uses. It can spoil its own
 * call, and nothing else: that ends by its deadline, calls beside it and after it are as ever, and the host gets plain data.
 */
import { check, checkEqual, main, testNode as test } from '../lib/vitrotest.mjs';
import { Cells } from './cell.mjs';

const DEADLINE_MS = 700; // some of them compute for as long as they may
const STATUSES = ['ok', 'error', 'crashed', 'timeout', 'memory_limit', 'no_result', 'result_limit'];

/* A message as src/launch/talk.h has it. */
const SEND = `const fs = await import('node:fs');
	const send = (kind, { name = '', body = '', id = 0, flags = 0, claim, nameClaim } = {}) => {
		const head = Buffer.alloc(32);
		head.writeUInt32LE(kind, 0);
		head.writeUInt32LE(flags, 4);
		head.writeUInt32LE(nameClaim ?? Buffer.byteLength(name), 8);
		head.writeBigUInt64LE(BigInt(id), 16);
		head.writeBigUInt64LE(BigInt(claim ?? Buffer.byteLength(body)), 24);
		fs.writeSync(3, Buffer.concat([head, Buffer.from(name), Buffer.from(body)]));
	};
	const EXECUTE = 1, ANSWER = 2, ASK = 3, LOG = 4, RESULT = 5, ERROR = 6;
	const wait = () => new Promise((settle) => setTimeout(settle, 300));`;

const forgeries = {
	'a kind that there is not': 'send(99)',
	'what only a supervisor says': 'send(EXECUTE, { body: "x" }); send(ANSWER, { id: 1, body: "x" })',
	'a result for another call': 'for (let id = 0; id < 50; id++) send(RESULT, { id, body: "forged" })',
	'two results': 'send(RESULT, { body: "first" }); send(RESULT, { body: "second" })',
	'a result and then an error': 'send(RESULT, { body: "first" }); send(ERROR, { name: "E", body: "second" })',
	'a size beyond all': 'send(RESULT, { claim: 2n ** 64n - 1n })',
	'a size beyond the limit': 'send(RESULT, { claim: 2n ** 40n })',
	'a name beyond all': 'send(LOG, { nameClaim: 2 ** 32 - 1 })',
	'half of a message': 'send(RESULT, { claim: 100 }); await wait()',
	'half of a head': 'fs.writeSync(3, Buffer.alloc(5)); await wait()',
	'questions for a tool that there is not': 'for (let id = 0; id < 100; id++) send(ASK, { name: "nothing", id, body: "x" }); await wait()',
	'the same question again and again': 'for (let i = 0; i < 100; i++) send(ASK, { name: "twice", id: 7, body: "x" }); await wait()',
	'a question of the largest number': 'send(ASK, { name: "twice", id: 2n ** 64n - 1n, body: "x" }); await wait()',
	'a question behind the result': 'send(RESULT, { body: "x" }); send(ASK, { name: "twice", id: 1, body: "x" })',
	'a log of no level, or with NULs': 'send(LOG, { body: "x" }); send(LOG, { name: "a\\0b", body: "x" }); return 1',
	'a log of level vitro.traceback, often': 'for (let i = 0; i < 100; i++) send(LOG, { name: "vitro.traceback", body: "x".repeat(60000) }); return 1',
	'an error whose name steers a terminal': 'send(ERROR, { name: "\\x1b[2J", body: "\\x1b]0;x\\x07" })',
	'an error whose name is not UTF-8': 'const head = Buffer.alloc(34); head[0] = 6; head[8] = 2; head[32] = 255; head[33] = 254; fs.writeSync(3, head)',
	'noise to every descriptor': 'for (let fd = 0; fd < 64; fd++) try { fs.writeSync(fd, Buffer.alloc(4096, 0xa5)) } catch {} await wait()',
	'every descriptor closed': 'for (let fd = 3; fd < 64; fd++) try { fs.closeSync(fd) } catch {} return 1',
	'the protocol read by the code': 'try { fs.readSync(3, Buffer.alloc(100)) } catch {} return await tools.twice(1)',
	'the protocol by a socket of its own': 'new (await import("node:net")).Socket({ fd: 3 }).on("error", () => {}).end(Buffer.alloc(64, 1)); await wait()',
	'the protocol handed to a child': '(await import("node:child_process")).spawn("/bin/sh", ["-c", "cat /dev/zero >&3"], { stdio: ["ignore", "ignore", "ignore", 3], detached: true }).unref(); await wait(); return 1',
};

const spoils = {
	'Object.prototype.then': 'Object.prototype.then = function (settle) { settle(666) }; return {}',
	'a getter as Object.prototype.then': 'Object.defineProperty(Object.prototype, "then", { get() { throw new Error("mine") } }); return {}',
	'Array.prototype[Symbol.iterator]': 'Array.prototype[Symbol.iterator] = function* () { yield 666 }; return [1]',
	'Promise.prototype.then': 'Promise.prototype.then = function () { return this }; return 1',
	'Promise itself': 'globalThis.Promise = class { constructor() { throw 1 } }; return 1',
	'JSON.stringify': 'JSON.stringify = () => "{\\"value\\": {\\"$int\\": []}}"; return 1',
	'JSON.parse': 'JSON.parse = () => { throw 1 }; return await tools.twice(2)',
	'Buffer.concat, Buffer.from, Buffer.alloc': 'Buffer.concat = Buffer.from = Buffer.alloc = () => new Uint8Array(7); return 1',
	'writeUInt32LE': 'Buffer.prototype.writeUInt32LE = function (v, at) { this.fill(255); return at + 4 }; return 1',
	'Buffer gone': 'delete globalThis.Buffer; return 1',
	'process.emit': 'process.emit = () => { throw 1 }; setTimeout(() => { throw 2 }, 1); await new Promise((settle) => setTimeout(settle, 50)); return 1',
	'process._fatalException': 'process._fatalException = () => false; setTimeout(() => { throw 2 }, 1); await new Promise((settle) => setTimeout(settle, 50)); return 1',
	structuredClone: 'globalThis.structuredClone = () => 666; return new Map([[1, 2]])',
	'Error.prepareStackTrace': 'Error.prepareStackTrace = () => { for (;;); }; throw new Error("x")',
	'Error.stackTraceLimit': 'Object.defineProperty(Error, "stackTraceLimit", { get() { throw 1 } }); throw new Error("x")',
	'an error whose members throw': 'throw new Proxy(new Error("x"), { get() { throw 1 }, getPrototypeOf() { throw 2 } })',
	'async_hooks': '(await import("node:async_hooks")).createHook({ init() { throw 1 }, before() { throw 2 } }).enable(); return await tools.twice(1)',
	'Map, Set and Reflect': 'Map.prototype.get = Map.prototype.set = Set.prototype.has = Reflect.apply = () => { throw 1 }; return await tools.twice(1)',
	'Array.prototype.push': 'Array.prototype.push = () => { throw 1 }; return [new Date(0)]',
	'Object.keys, Object.entries': 'Object.keys = Object.entries = () => ["__proto__"]; return { a: 1 }',
	'setInterval, clearTimeout': 'globalThis.setInterval = globalThis.clearTimeout = null; await new Promise(() => {})',
	'process.exit and its kin': 'process.exit = process.reallyExit = () => {}; process.exit(1); return 1',
	'process.stdout': 'Object.defineProperty(process, "stdout", { value: { writableLength: 1, write() {} } }); return 1',
	'fs.closeSync, fs.writeFileSync': 'const fs = (await import("node:fs")).default; for (const name of Object.keys(fs)) try { fs[name] = () => { throw 1 } } catch {} return 1',
	'a value that changes as it is read': 'let n = 0; return { get a() { return n++ % 2 ? 1n : new Map([[1, this]]) } }',
	'a value without end': 'const a = {}; a.a = a; return a',
	'a value that is a proxy': 'return new Proxy({}, { ownKeys() { for (;;); } })',
	'a value of many parts': 'return Array.from({ length: 3e6 }, () => ({}))',
	'a thenable that never settles': 'return { then() {} }',
	'a thenable that settles again and again': 'return { then(settle) { settle(1); settle(2); settle({ then(more) { more(3) } }) } }',
	'a microtask that never ends': 'const again = () => Promise.resolve().then(again); again(); return 1',
	'promises that reject without end': 'const again = () => { Promise.reject(1); setImmediate(again) }; process.on("unhandledRejection", () => {}); again(); await new Promise(() => {})',
	'listeners of the end': 'process.on("exit", () => { for (;;); }); process.on("beforeExit", () => { for (;;); }); process.exit(0)',
	'signals that are not heeded': 'for (const name of ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1"]) process.on(name, () => {}); for (;;);',
	'children without end': 'const { spawn } = await import("node:child_process"); for (;;) { try { spawn("/bin/sleep", ["60"], { detached: true, stdio: "ignore" }).on("error", () => {}).unref() } catch {} await null }',
	'workers without end': 'const { Worker } = await import("node:worker_threads"); for (let i = 0; i < 20; i++) new Worker("for (;;);", { eval: true }).on("error", () => {}); await new Promise(() => {})',
};

async function withPool(kind, act) {
	const cells = new Cells();
	try {
		const pool = await cells.pool({ setup: { fork: kind === 'forked' }, ready: 2, policy: { limits: { memory_mb: 256, pids: 64 } } });
		await act(cells, pool);
	} finally {
		checkEqual(await cells.end(), 0, "the supervisor's exit code");
	}
}

const tools = { twice: (n) => n * 2 };

async function checkHonest(cells, pool, where) {
	const told = await cells.eval(pool, `await new Promise((settle) => setTimeout(settle, 100));
return [await tools.twice(21), new Map([[1, { a: [] }]]), {}.then, [...[1, 2]], JSON.stringify({ a: 1 })]`, { tools });
	checkEqual([told.status, told.value], ['ok', [42, new Map([[1, { a: [] }]]), undefined, [1, 2], '{"a":1}']], `${where}: ${told.error}`);
}

/** The call of each ends, and one beside it and one after it are what they are: what is beside one comes after the one before. */
async function spoil(cells, pool, codes) {
	let before = 'nothing';
	for (const [name, code] of codes) {
		const began = Date.now();
		const [spoiled] = await Promise.all([cells.eval(pool, code, { tools, wall_ms: DEADLINE_MS }), checkHonest(cells, pool, `beside ${name}, after ${before}`)]);
		check(STATUSES.includes(spoiled.status) && Date.now() - began < 20_000, () => `${name}: ${spoiled.status} after ${Date.now() - began} ms`);
		check(({}).then === undefined && ({}).forged === undefined, `${name}: a prototype of the host was changed`);
		before = name;
	}
	await checkHonest(cells, pool, `after ${before}`);
}

for (const kind of ['forked', 'anew']) {
	for (const part of [0, 1])
		test(`${kind}: what is forged on the protocol's descriptor is about its own call (${part + 1} of 2)`, () => withPool(kind, (cells, pool) =>
			spoil(cells, pool, Object.entries(forgeries).filter((_, at) => at % 2 === part).map(([name, code]) => [name, `${SEND}\n${code}`]))));

	for (const part of [0, 1, 2])
		test(`${kind}: what the harness uses can be spoilt for the own call alone (${part + 1} of 3)`, () => withPool(kind, (cells, pool) =>
			spoil(cells, pool, Object.entries(spoils).filter((_, at) => at % 3 === part))));

	test(`${kind}: the control: what is sent there arrives`, () => withPool(kind, async (cells, pool) => {
		const told = await cells.eval(pool, `${SEND}\nsend(LOG, { name: 'info', body: 'heard' }); send(RESULT, { body: 'mine' }); await wait()`);
		checkEqual([told.status, told.bytes.toString(), told.logs], ['ok', 'mine', [{ level: 'info', text: 'heard' }]], 'its own call');
	}));
}

await main();
