// SPDX-License-Identifier: Apache-2.0
/*
 * node soak.mjs [CALLS] [SEED]: calls in a row with random work, three at once, by the package. Each ends as it would in a
 * plain Node, none hangs, and when all are over nothing has grown: no memory, descriptor or process of the client's, the
 * supervisor's or the zygote's, no mount, cgroup or file. soak_test.mjs has it do some.
 *
 * node soak.mjs --obey [SOCKET]: a client of test/soak, by a server's socket or a supervisor of its own. A line "go SECONDS" on
 * standard input: calls for so long, and then a line of JSON tells what came of them.
 */
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInterface } from 'node:readline';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { fileURLToPath } from 'node:url';
import { Sandbox } from '../../sdk/node/index.js';
import { childrenOf, descendants } from '../lib/vitrotest.mjs';
import { POLICY } from './sandbox.mjs';
import { works } from './works.mjs';

const AT_ONCE = 3;
const GROWTH_KB = 8192; // that may come to lie in a heap by chance
const SOURCE = readFileSync(new URL('works.mjs', import.meta.url));
const NOT_HERE = new Set(['names of hosts', 'output']); // what has no resolver, and what only prints

let seed = Number(process.argv[3]) || Date.now() % 1e6;
const SEED = seed;

function random(below) {
	seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
	return Math.floor(seed / 2 ** 31 * below);
}

/* Code, and what becomes of it: a status, and where that is ok the value. */
const endings = [
	['return 2 + 3', 'ok', 5],
	['return await tools.twice(4)', 'ok', 8],
	['return (await Promise.all(Array.from({ length: 20 }, (_, i) => tools.twice(i)))).length', 'ok', 20],
	['for (let i = 0; i < 100; i++) console.log("line", i); return 1', 'ok', 1],
	['process.stdout.write("x".repeat(1e5)); return 1', 'ok', 1],
	['return "y".repeat(1e6).length', 'ok', 1e6],
	['throw new RangeError("x")', 'error'],
	['throw null', 'error'],
	['process.exit(3)', 'error'],
	['process.abort()', 'crashed'],
	['await new Promise(() => {})', 'error'],
	['for (;;);', 'timeout'],
	['setTimeout(() => { throw 1 }, 1); await new Promise((settle) => setTimeout(settle, 500))', 'error'],
	['Promise.reject(new Error("x")); await new Promise((settle) => setTimeout(settle, 500))', 'error'],
	['(await import("node:child_process")).spawn("/bin/sleep", ["60"], { detached: true, stdio: "ignore" }).unref(); return 1', 'ok', 1],
	['new ((await import("node:worker_threads")).Worker)("for (;;);", { eval: true }); return 1', 'ok', 1],
];

const kinds = [...endings, ...Object.keys(works).filter((name) => !NOT_HERE.has(name)).map((name) =>
	[`const { works } = await import('/tmp/works.mjs'); await works[${JSON.stringify(name)}](); return 'done'`, 'ok', 'done'])];

async function callOnce(sandbox, wrong, hurt = null, times = []) {
	const [code, status, value] = hurt && random(3) === 0 ? kinds[0] : kinds[random(kinds.length)]; // plain ones are timed
	const began = performance.now();
	const files = value === 'done' ? { 'works.mjs': SOURCE } : {};
	const told = await sandbox.eval(code, { files, tools: { twice: (n) => n * 2 }, timeout: status === 'timeout' ? 100 : 29_000, result: true });
	if (code === kinds[0][0])
		times.push(performance.now() - began);
	if (told.status !== status && hurt && ['lost', 'crashed'].includes(told.status))
		hurt.push(told.status);
	else if (told.status !== status || (status === 'ok' && told.value !== value))
		wrong.push(`${code.slice(0, 100)}: ${told.status}: ${told.error?.message ?? told.value}\n${told.error?.traceback ?? ''}`);
}

function readOr(file, otherwise = '') {
	try {
		return readFileSync(file, 'latin1');
	} catch {
		return otherwise; // it is gone, or not for us to see
	}
}

function listOr(folder) {
	try {
		return readdirSync(folder);
	} catch {
		return [];
	}
}

function countCgroups(name, folder = '/sys/fs/cgroup', depth = 6) {
	return depth ? listOr(folder).reduce((sum, entry) => entry.includes('.') && !entry.startsWith('vitro-') ? sum
		: sum + entry.startsWith(name) + countCgroups(name, `${folder}/${entry}`, depth - 1), 0) : 0;
}

const privateKb = (pid) => [...readOr(`/proc/${pid}/smaps_rollup`).matchAll(/^Private_\w+:\s+(\d+)/gm)].reduce((sum, [, kb]) => sum + Number(kb), 0);

/** What there is of all, when nothing is under way. */
async function look(sandbox, supervisor, place) {
	for (let quiet = 0; quiet < 5; await sleep(100)) {
		const { live, refilling } = await sandbox.counts();
		quiet = live || refilling ? 0 : quiet + 1;
	}
	collect();
	const below = descendants(supervisor);
	const isZygote = (pid) => readOr(`/proc/${pid}/cmdline`).includes('vitro_zygote.node') && Number(/^Threads:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1]) > 2;
	const zygote = below.find(isZygote);
	return {
		memory: { client: process.memoryUsage().heapUsed >> 10, supervisor: privateKb(supervisor), zygote: privateKb(zygote) },
		counts: {
			descriptors: [process.pid, supervisor, zygote].map((pid) => listOr(`/proc/${pid}/fd`).length), processes: below.length,
			mounts: [supervisor, zygote].map((pid) => readOr(`/proc/${pid}/mountinfo`).split('\n').length),
			cgroups: countCgroups(`vitro-${supervisor}`), files: listOr(place),
		},
	};
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

function findGrowth(before, after) {
	const grown = Object.entries(after.memory).filter(([who, kb]) => kb > before.memory[who] + GROWTH_KB).map(([who, kb]) => `memory of the ${who}: ${before.memory[who]} to ${kb} KB`);
	for (const [what, count] of Object.entries(after.counts))
		if (JSON.stringify(count) !== JSON.stringify(before.counts[what]))
			grown.push(`${what}: ${before.counts[what]} to ${count}`);
	return grown;
}

/** Does so many calls. Tells what is wrong: lists that are empty where nothing is. */
export async function soak(calls, onward = () => {}) {
	const place = mkdtempSync(join(tmpdir(), 'node-soak-'));
	process.env.TMPDIR = place;
	const sandbox = new Sandbox({ readyMin: 4, readyMax: 4, policy: { ...POLICY, network: 'loopback', limits: { memory_mb: 768 } } });
	const wrong = [];
	let done = 0;
	const doMany = (end) => Promise.all(Array.from({ length: AT_ONCE }, async () => {
		while (done < end) {
			if (++done % 500 === 0)
				onward(done);
			await callOnce(sandbox, wrong);
		}
	}));
	try {
		await doMany(Math.max(60, Math.floor(calls / 10)));
		const [supervisor] = childrenOf(process.pid).filter((pid) => readOr(`/proc/${pid}/cmdline`).includes('supervise'));
		const before = await look(sandbox, supervisor, place);
		await doMany(calls);
		const after = await look(sandbox, supervisor, place);
		return { seed: SEED, calls, wrong, grown: findGrowth(before, after), before, after };
	} finally {
		await sandbox.close();
		delete process.env.TMPDIR;
		rmSync(place, { recursive: true });
	}
}

async function obey(socket) {
	const sandbox = new Sandbox({ socket, readyMin: 2, readyMax: 2, policy: { ...POLICY, network: 'loopback', limits: { memory_mb: 768 } } });
	for await (const line of createInterface({ input: process.stdin })) {
		const until = performance.now() + Number(line.split(' ')[1]) * 1e3, wrong = [], hurt = [], times = [];
		let calls = 0;
		await Promise.all(Array.from({ length: 2 }, async () => {
			for (; performance.now() < until; calls++)
				await callOnce(sandbox, wrong, hurt, times);
		}));
		times.sort((a, b) => a - b);
		const micro = (share) => Math.round((times[Math.floor(times.length * share)] ?? 0) * 1e3);
		wrong.slice(0, 20).forEach((text) => console.error(text));
		collect();
		console.log(JSON.stringify({ calls, wrong: wrong.length, hurt: hurt.length, p50_us: micro(0.5), p99_us: micro(0.99) }));
	}
	await sandbox.close();
}

if (process.argv[2] === '--obey') {
	await obey(process.argv[3]);
} else if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const began = Date.now();
	const told = await soak(Number(process.argv[2] ?? 10_000), (done) => console.log(`${done} calls, ${((Date.now() - began) / 1e3).toFixed(0)} s`));
	console.log(JSON.stringify(told, null, 1));
	process.exit(told.wrong.length || told.grown.length ? 1 : 0);
}
