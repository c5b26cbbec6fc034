#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/*
 * JavaScript in cells beside what Node has itself: bench/node.mjs [--quick] [--check] [--pin CPU] [--only TEXT] [--json FILE] [BINARY]
 *
 * Each row is `return 2 + 3` done by vitro, in a fresh sealed Node each time, from the call to the value in the caller's
 * hands, and by another, which is not sealed: `node -e 0`, started and waited for. All are timed in the same run, in turns
 * and in random order; a ratio is the median of those within the rounds. All of it runs with forks of a warm Node, and
 * with processes that are started anew (as where a version cannot be forked), once pinned to one CPU and once not.
 *
 * `node -e 0` gets PATH and no other variable, as cells do: certificates that NODE_EXTRA_CA_CERTS names would be read at each
 * start, and make it two or three times as slow.
 *
 *   spaced          calls 20 ms apart
 *   back to back    bursts of calls, each while the pool's parked occupants last
 *   nothing ready   the pool is empty: a cell is made, the zygote forks, and the call runs
 *     its floor     a cell by hand, a fork of a warm Node, and an expression in it (bench/node_floor.mjs): nothing of vitro's way,
 *                   so that it shows how far off the bar is from there
 *   call-back       a tool of the caller's, asked 300 times or 5000 times from within a fresh cell; beside it a byte that goes
 *                   from a fresh plain Node to another, by a Unix socket, and back
 *     ... warm      the same beside a plain Node that has asked 20,000 times before: no cell ever has, so there is no bar
 *   throughput      calls on all CPUs, beside cold starts on as many
 *   sustained       one call after the other for a minute: as fast as the pool is refilled
 */

import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { Floor } from './node_floor.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ECHO = "require('net').createServer((s) => s.pipe(s)).listen(process.argv[1], () => console.log('on'))";
const ASKER = `const [, path, count, before] = process.argv;
const socket = require('net').connect(path);
let heard;
socket.on('data', () => heard());
(async () => {
	const times = [];
	for (let i = -before; i < count; i++) {
		const began = performance.now();
		await new Promise((settle) => { heard = settle; socket.write('x'); });
		if (i >= 0)
			times.push(performance.now() - began);
	}
	process.stdout.write(JSON.stringify(times), () => process.exit());
})();`;
const BURST = 20, READY = 24;
// What vitro's time may be of the other's at the most, by forks; of a process that is started anew there is none.
const BARS = new Map([['spaced', 1 / 50], ['back to back', 1 / 50], ['nothing ready', 1 / 15], ['a call-back', 4], ['a call-back, of thousands', 4]]);
const RATE_BAR = 10;

async function timed(act) {
	const began = performance.now();
	await act();
	return performance.now() - began;
}

function at(times, share) {
	const sorted = [...times].sort((left, right) => left - right);
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

const short = (ms) => ms < 10 ? `${(ms * 1e3).toFixed(0)} µs` : `${ms.toFixed(1)} ms`;
const shuffle = (list) => list.map((item) => [Math.random(), item]).sort(([left], [right]) => left - right).map(([, item]) => item);
const ratioOf = (ours, theirs) => at(ours.map((block, index) => at(block, 0.5) / at(theirs[index], 0.5)), 0.5);

/** The times of some, round by round, in random order in each: for each of them a list of blocks. */
async function inTurns(rounds, pause, contestants, { burst = contestants.map(() => 1), prepare = () => {} } = {}) {
	const times = contestants.map(() => []);
	for (let round = 0; round < rounds; round++)
		for (const which of shuffle([...contestants.keys()])) {
			await prepare();
			const block = [];
			for (let i = 0; i < burst[which]; i++) {
				await sleep(pause);
				block.push(await contestants[which]());
			}
			times[which].push(block);
		}
	return times;
}

/** Rows of what was measured, and the bars that are not held. */
class Table {
	bad = [];
	bars = [];
	facts = [];
	#only;

	constructor(only) {
		this.#only = only;
		this.#print('', '', ['min', 'p50', 'p99'], 'ratio');
	}

	wants(name) {
		return name.includes(this.#only);
	}

	#print(name, who, figures, says = '') {
		console.log(`${name.padEnd(32)} ${who.padStart(10)} ${figures.map((figure) => figure.padStart(9)).join(' ')}  ${says}`.trimEnd());
	}

	/** floors: what the same takes with nothing of vitro in it, as a share of the other's time. */
	judge(name, value, bar, holds, { isLeast = false, floors = {} } = {}) {
		const others = Object.entries(floors).map(([other, ratio]) => `${other} ${ratio.toFixed(3)}`);
		if (bar !== undefined) {
			this.bars.push({ name, value, limit: bar, at_least: isLeast, held: holds, floors });
			others.unshift(`bar ${bar.toFixed(3)}: ${holds ? 'held' : 'MISSED'}`);
			if (!holds)
				this.bad.push(name);
		}
		return `${value.toFixed(3)}${others.length ? ` (${others.join('; ')})` : ''}`;
	}

	/** rows: blocks of times, by whose they are. The first is the one that the bar is for; there may be a "floor". */
	add(name, ours, rows, bar) {
		const [theirs] = Object.values(rows);
		const ratio = ratioOf(ours, theirs);
		const floors = rows.floor ? { floor: ratioOf(rows.floor, theirs) } : {};
		for (const [who, blocks] of [['vitro', ours], ...Object.entries(rows)]) {
			const figures = [0, 0.5, 0.99].map((share) => short(at(blocks.flat(), share)));
			this.#print(who === 'vitro' ? name : '', who, figures, who === 'vitro' ? this.judge(name, ratio, bar, ratio <= bar, { floors }) : '');
		}
	}

	/** Adds it to what is in the file. */
	write(path, pinning) {
		const told = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { bars: [], facts: [] };
		told.bars.push(...this.bars.map((bar) => ({ ...bar, name: `${bar.name}, ${pinning}` })));
		told.facts.push(...this.facts.map((fact) => `${fact} (${pinning})`));
		writeFileSync(path, JSON.stringify(told));
	}

	addFact(name, fact) {
		this.facts.push(`${name}: ${fact}`);
		console.log(`${name.padEnd(32)} ${fact}`);
	}
}

async function runCold() {
	const [code] = await once(spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', env: { PATH: process.env.PATH } }), 'exit');
	if (code !== 0)
		throw new Error('node -e 0 fails');
}

async function add(sandbox) {
	if (await sandbox.eval('return 2 + 3') !== 5)
		throw new Error('2 + 3 is not 5');
}

/** Waits until so many cells are ready. */
async function settle(sandbox, ready) {
	for (let i = 0; i < 6000; i++, await sleep(10)) {
		const counts = await sandbox.counts();
		if (counts.ready >= ready && !counts.refilling)
			return;
	}
}

class Bench {
	#options;
	#vitro;
	#rounds;
	#kind;

	constructor(options, vitro, table, kind) {
		this.#options = options;
		this.#vitro = vitro;
		this.table = table;
		this.#rounds = options.quick ? 5 : 60;
		this.#kind = kind;
	}

	async #with(options, act) {
		const sandbox = new this.#vitro.Sandbox({ ...options, fork: this.#kind.isForked });
		try {
			await add(sandbox);
			return await act(sandbox);
		} finally {
			await sandbox.close();
		}
	}

	#bar(name) {
		return this.#kind.isForked ? BARS.get(name) : undefined;
	}

	#add(name, ours, rows) {
		this.table.add(`${name}${this.#kind.mark}`, ours, rows, this.#bar(name));
	}

	async measureReady() {
		await this.#with({ readyMin: READY, readyMax: READY }, async (sandbox) => {
			const rest = async () => {
				await settle(sandbox, READY);
				await sleep(50);
			};
			await rest();
			const all = [() => timed(() => add(sandbox)), () => timed(runCold)];
			const [spaced, its] = await inTurns(this.#rounds, 20, all, { burst: [5, 1] });
			this.#add('spaced', spaced, { node: its });
			const rounds = this.#kind.isForked ? Math.ceil(this.#rounds / 4) : this.#options.quick ? 1 : 3;
			const [inRow, theirs] = await inTurns(rounds, 0, all, { burst: [BURST, 2], prepare: rest });
			this.#add('back to back', inRow, { node: theirs });
			// The control: what is so fast is sealed.
			const seen = await sandbox.eval('const fs = await import("node:fs"); return [process.pid, fs.existsSync("/home"), fs.readdirSync("/proc").filter((n) => +n).length]');
			if (String(seen) !== '2,false,1')
				throw new Error(`it is not sealed: ${seen}`);
		});
	}

	async measureEmpty() {
		await this.#with({ readyMin: 1, readyMax: 1 }, async (sandbox) => {
			const ours = async () => {
				for (;;) {
					await settle(sandbox, 1);
					await sleep(20);
					const before = await sandbox.counts();
					await add(sandbox);
					const took = await timed(() => add(sandbox));
					if ((await sandbox.counts()).cold_calls === before.cold_calls + 1) // the second found none
						return took;
				}
			};
			const floor = this.#kind.isForked ? await Floor.make(process.env.VITRO_BINARY) : null;
			const least = async () => {
				const took = await timed(() => floor.turn());
				await floor.tidy();
				return took;
			};
			const [mine, node, by] = await inTurns(Math.ceil(this.#rounds / 2), 20, [ours, () => timed(runCold), ...floor ? [least] : []]);
			this.#add('nothing ready', mine, { node, ...floor && { floor: by } });
			await floor?.close();
		});
	}

	/** Both who ask are fresh processes, both who answer were there before. */
	async measureCallBacks() {
		const folder = mkdtempSync(join(tmpdir(), 'bench-node-'));
		const path = join(folder, 'socket');
		const echo = spawn(process.execPath, ['-e', ECHO, path], { stdio: ['ignore', 'pipe', 'inherit'] });
		const run = promisify(execFile);
		try {
			await once(echo.stdout, 'data');
			await this.#with({}, async (sandbox) => {
				const few = this.#options.quick;
				const kinds = [['a call-back', 300, few ? 3 : 10, 0], ['a call-back, of thousands', few ? 2000 : 5000, few ? 1 : 3, 0],
					['a call-back, by a warm socket', 300, 10, 20_000]];
				for (const [name, count, rounds, before] of few ? kinds.slice(0, 2) : kinds) { // the last has no bar
					const code = `const times = []; for (let i = 0; i < ${count}; i++) { const began = performance.now(); await tools.same(1); times.push(performance.now() - began); } return times`;
					const contestants = [
						() => sandbox.eval(code, { tools: { same: (x) => x } }),
						async () => JSON.parse((await run(process.execPath, ['-e', ASKER, path, String(count), String(before)])).stdout),
					];
					await inTurns(few ? 1 : 3, 0, contestants); // who answers has done so before
					const [ours, socket] = (await inTurns(rounds, 0, contestants)).map((blocks) => blocks.map((block) => block.flat()));
					this.#add(name, ours, { socket });
				}
			});
		} finally {
			echo.kill();
			rmSync(folder, { recursive: true });
		}
	}

	/** How often it is done in a time, by so many at once. */
	async #rate(act, many, ms) {
		let count = 0;
		const end = performance.now() + ms;
		const began = performance.now();
		await Promise.all(Array.from({ length: many }, async () => {
			for (; performance.now() < end; count++)
				await act();
		}));
		return count / (performance.now() - began) * 1e3;
	}

	async measureThroughput() {
		const many = availableParallelism();
		const rates = [[], []];
		await this.#with({ readyMax: 2 * many }, async (sandbox) => {
			for (let round = 0; round < (this.#options.quick ? 1 : 10); round++) {
				rates[1].push(await this.#rate(runCold, many, 1000));
				await this.#rate(() => add(sandbox), 2 * many, 500); // what is ready would be counted, and made while nobody counts
				rates[0].push(await this.#rate(() => add(sandbox), 2 * many, 1000));
				await settle(sandbox, 2);
			}
		});
		const [ours, theirs] = rates.map((list) => at(list, 0.5));
		const ratio = at(rates[0].map((rate, index) => rate / rates[1][index]), 0.5);
		const name = `throughput${this.#kind.mark}`;
		const says = this.table.judge(name, ratio, this.#kind.isForked ? RATE_BAR : undefined, ratio >= RATE_BAR, { isLeast: true });
		this.table.addFact(name, `${many} CPUs: ${ours.toFixed(0)} calls/s; node -e 0: ${theirs.toFixed(1)}/s  ${says}`);
	}

	async measureSustained() {
		const seconds = this.#options.quick ? 1 : 60;
		await this.#with({}, async (sandbox) => {
			for (let i = 0; i < 30; i++)
				await add(sandbox);
			const before = await sandbox.counts();
			const times = [];
			for (const end = performance.now() + seconds * 1e3; performance.now() < end;)
				times.push(await timed(() => add(sandbox)));
			const cold = ((await sandbox.counts()).cold_calls - before.cold_calls) / times.length;
			this.table.addFact(`sustained${this.#kind.mark}`, `${(times.length / seconds).toFixed(0)} calls/s for ${seconds} s: p50 ${short(at(times, 0.5))}, ` +
				`p99 ${short(at(times, 0.99))}, ${(100 * cold).toFixed(0)}% found no cell ready`);
		});
	}

	async run() {
		const all = this.#kind.isForked || !this.#options.quick; // what is started anew has no bars
		const alone = all && this.#options.pin === undefined;
		for (const [name, measure, isWanted] of [['ready', () => this.measureReady(), true], ['nothing ready', () => this.measureEmpty(), all],
			['a call-back', () => this.measureCallBacks(), all], ['throughput', () => this.measureThroughput(), alone],
			['sustained', () => this.measureSustained(), alone]])
			if (isWanted && this.table.wants(name))
				await measure();
	}
}

async function measure(options) {
	const vitro = await import('../sdk/node/index.js');
	const isPinned = options.pin !== undefined;
	const pages = readFileSync('/sys/kernel/mm/transparent_hugepage/enabled', 'utf8').split('[')[1].split(']')[0];
	console.log(`\nNode ${process.version}, Linux ${release()}, ${isPinned ? `all pinned to CPU ${options.pin}` : `${cpus().length} CPUs, not pinned`}, ` +
		`load ${loadavg()[0].toFixed(1)}, THP ${pages}`);
	const table = new Table(options.only);
	const kinds = [{ isForked: true, mark: '' }, { isForked: false, mark: ', started anew' }];
	for (const kind of options.quick ? kinds.slice(0, 1) : kinds) // what is started anew has no bars
		await new Bench(options, vitro, table, kind).run();
	console.log(`load at the end ${loadavg()[0].toFixed(1)}; ${table.bad.length ? `MISSED: ${table.bad.join('; ')}` : table.bars.length ? 'all bars held' : 'no bars'}`);
	if (options.json)
		table.write(options.json, isPinned ? 'one CPU' : 'all CPUs');
	return table.bad;
}

const { values: options, positionals: [binary = join(ROOT, 'build', 'vitro')] } = parseArgs({
	allowPositionals: true,
	options: {
		quick: { type: 'boolean' }, check: { type: 'boolean' }, pin: { type: 'string' }, only: { type: 'string', default: '' },
		one: { type: 'boolean' }, json: { type: 'string' },
	},
});
process.env.VITRO_BINARY = resolve(binary);
if (options.one) {
	const bad = await measure(options);
	process.exit(bad.length && options.check ? 1 : 0);
}
const pins = options.pin !== undefined ? [options.pin] : options.quick ? [undefined] : ['0', undefined];
const codes = pins.map((pin) => {
	const words = [process.execPath, process.argv[1], '--one', ...process.argv.slice(2), ...pin !== undefined && options.pin === undefined ? ['--pin', pin] : []];
	const all = pin === undefined ? words : ['taskset', '-c', pin, ...words];
	return spawnSync(all[0], all.slice(1), { stdio: 'inherit' }).status ?? 1;
});
process.exit(Math.max(...codes));
