// SPDX-License-Identifier: Apache-2.0
/*
 * Calls with random work, on one pool: `node soak.mjs [CALLS] [NODE] [SEED]`. Each must end as a plain Node would have it, none may hang, and neither
 * the supervisor nor the zygote may grow.
 */
import { readFileSync } from 'node:fs';
import { childrenOf } from '../lib/vitrotest.mjs';
import { Cells } from './cell.mjs';

const calls = Number(process.argv[2] ?? 10_000);
const node = process.argv[3] ?? process.execPath;
let seed = Number(process.argv[4] ?? Date.now() % 1e6);

function random(below) {
	seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
	return Math.floor(seed / 2 ** 31 * below);
}

/* Code, and what becomes of it: a status, and where that is ok the value. */
const works = [
	['return 2 + 3', 'ok', 5],
	['let k = []; for (let i = 0; i < 2e5; i++) { k.push({i, s: "x" + i}); if (k.length > 5e3) k = [] } return 1', 'ok', 1],
	['await new Promise((r) => setTimeout(r, 5)); return 1', 'ok', 1],
	['return (await Promise.all(Array.from({length: 300}, async (_, i) => i))).length', 'ok', 300],
	['const fs = await import("fs/promises"); await fs.writeFile("a", "x".repeat(1e5)); return (await fs.readFile("a")).length', 'ok', 100_000],
	['const c = await import("crypto"); const {promisify} = await import("util"); return (await promisify(c.pbkdf2)("a", "b", 500, 8, "sha1")).length', 'ok', 8],
	['return (await crypto.subtle.digest("SHA-256", new Uint8Array(1e5))).byteLength', 'ok', 32],
	['return (await import("child_process")).execFileSync("/bin/echo", ["hi"]).toString()', 'ok', 'hi\n'],
	['const {Worker} = await import("worker_threads"); const w = new Worker("require(\\"worker_threads\\").parentPort.postMessage(6)", {eval: true}); return await new Promise((r, j) => { w.on("message", r); w.on("error", j) })', 'ok', 6],
	['const {Worker} = await import("worker_threads"); const w = new Worker("for (let i = 0, k = []; i < 1e5; i++) k.push({i})", {eval: true}); return await new Promise((r) => w.on("exit", r))', 'ok', 0],
	['const {instance} = await WebAssembly.instantiate(Buffer.from("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b", "hex")); return instance.exports.add(2, 3)', 'ok', 5],
	['return Buffer.alloc(2 << 20, 1).length', 'ok', 2 << 20],
	['return "abc123 ".repeat(5e3).match(/([a-z]+)(\\d+)/g).length', 'ok', 5000],
	['return new Intl.NumberFormat("de").format(1234.5)', 'ok', '1.234,5'],
	['return await tools.twice(4)', 'ok', 8],
	['return (await Promise.all(Array.from({length: 20}, (_, i) => tools.twice(i)))).length', 'ok', 20],
	['for (let i = 0; i < 100; i++) console.log("line", i); return 1', 'ok', 1],
	['throw new RangeError("x")', 'error'],
	['process.exit(3)', 'error'],
	['process.abort()', 'crashed'],
	['await new Promise(() => {})', 'error'],
	['for (;;);', 'timeout'],
	['setTimeout(() => { throw 1 }, 1); await new Promise((r) => setTimeout(r, 500))', 'error'],
];

function memoryOf(pid) {
	const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
	return Number(/^Private_Dirty:\s+(\d+)/m.exec(text)?.[1] ?? 0) + Number(/^Private_Clean:\s+(\d+)/m.exec(text)?.[1] ?? 0);
}

const cells = new Cells();
const pool = await cells.pool({ node, ready: 4 });
const [supervisor] = childrenOf(process.pid);
const wrong = {};
let done = 0, early = 0;

async function work() {
	while (done < calls) {
		done++;
		const [code, status, value] = works[random(works.length)];
		const told = await cells.eval(pool, code, { tools: { twice: (x) => x * 2 }, wall_ms: status === 'timeout' ? 100 : 25_000 });
		if (told.status !== status || (status === 'ok' && told.value !== value)) {
			const key = `${code.slice(0, 60)}: ${told.status}: ${told.error ?? told.value}`;
			wrong[key] = (wrong[key] ?? 0) + 1;
		}
		if (done === Math.floor(calls / 4))
			early = memoryOf(supervisor);
	}
}

const start = Date.now();
await Promise.all([work(), work(), work()]);
const late = memoryOf(supervisor);
console.log(JSON.stringify({ node, calls: done, seconds: (Date.now() - start) / 1000, wrong, supervisor_kb: [early, late], logs: cells.logs.slice(0, 5), exit: await cells.end() }));
process.exit(Object.keys(wrong).length ? 1 : 0);
