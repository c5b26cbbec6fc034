// SPDX-License-Identifier: Apache-2.0
// Nothing of a call is there in another: what a process holds, what is random, and what modules that are loaded ahead leave.

import { chmodSync, copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BINARY, check, checkEqual, checkIn, main } from '../lib/vitrotest.mjs';
import { both, cells, evalIn } from './both.mjs';

const ADDON = join(process.env.VITRO_TEST_BIN ?? join(BINARY, '..', 'test'), 'vitro-attack.node');

/* What can be seen of a process, as far as calls of one pool have it in common. */
const LOOK = `const fs = await import('node:fs'), os = await import('node:os'), events = await import('node:events');
	const { createRequire } = await import('node:module');
	const require = createRequire('/tmp/');
	const roots = [Object, Function, Array, String, Number, RegExp, Date, Map, Set, Promise, Error, Uint8Array, Buffer, URL, events.EventEmitter];
	const tryOr = (act) => { try { return act() } catch (error) { return error.code } };
	const names = (thing) => Reflect.ownKeys(thing).map(String).sort().join();
	return {
		globals: names(globalThis), process: names(process), env: Object.keys(process.env).sort().join(), prototypes: roots.map((root) => names(root.prototype) + names(root)),
		built: ['fs', 'os', 'net', 'util', 'crypto', 'module', 'events'].map((name) => names(require(name))), cache: Object.keys(require.cache),
		math: [names(Math), names(JSON), names(console), names(Reflect)], cwd: process.cwd() === os.tmpdir() || process.cwd() === process.env.HOME, umask: process.umask(), title: process.title,
		listeners: process.eventNames().map(String), active: process.getActiveResourcesInfo().filter((name) => name !== 'Timeout').sort(),
		temporary: tryOr(() => fs.readdirSync(os.tmpdir()).sort()), shared: tryOr(() => fs.existsSync('/dev/shm/left')),
		descriptors: tryOr(() => fs.readdirSync('/proc/self/fd').map((fd) => { try { return fd + ' ' + fs.readlinkSync('/proc/self/fd/' + fd).replace(/\\d+/g, '') } catch { return '' } }).filter(Boolean).sort()),
		priority: os.getPriority(), limits: tryOr(() => fs.readFileSync('/proc/self/limits', 'utf8')), signals: tryOr(() => /^Sig(?:Blk|Ign|Cgt):.*$/gm[Symbol.match](fs.readFileSync('/proc/self/status', 'utf8'))),
		exitCode: process.exitCode, maps: process.sourceMapsEnabled ?? null, changed: [' a '.trim(), Math.max(1, 2)], zone: new Date(0).getTimezoneOffset(),
	};`;

const SOIL = `const fs = await import('node:fs'), os = await import('node:os');
	const { createRequire } = await import('node:module');
	const require = createRequire('/tmp/');
	globalThis.left = 1;
	for (const root of [Object, Function, Array, String, Map, Promise, Error, Buffer, URL]) { root.left = 1; root.prototype.left = 1; }
	String.prototype.trim = Math.max = () => 'left';
	JSON.left = Math.left = console.left = process.left = 1;
	for (const name of ['fs', 'os', 'net', 'util', 'crypto', 'module', 'events']) require(name).left = 1;
	process.env.LEFT = process.env.TZ = 'Asia/Tokyo';
	for (const path of [os.tmpdir() + '/left', '/dev/shm/left']) try { fs.writeFileSync(path, 'left') } catch {}
	fs.writeFileSync(os.tmpdir() + '/left.cjs', 'module.exports = 1');
	require(os.tmpdir() + '/left.cjs');
	fs.mkdirSync(os.tmpdir() + '/elsewhere');
	process.chdir(os.tmpdir() + '/elsewhere');
	process.umask(0);
	process.title = 'left';
	process.exitCode = 7;
	process.setSourceMapsEnabled(true);
	try { os.setPriority(10) } catch {}
	process.on('SIGUSR2', () => {}).on('exit', () => {}).on('uncaughtException', () => {});
	process.setMaxListeners(1000);
	setInterval(() => {}, 5);
	setTimeout(() => {}, 1e6);
	fs.openSync('/etc/passwd');
	new (require('worker_threads').BroadcastChannel)('left').unref();
	require('child_process').spawn('/bin/sleep', ['60'], { detached: true, stdio: 'ignore' }).unref();
	return 1;`;

both('nothing that a call does to its process is there in another', async (pool) => {
	const before = await evalIn(pool, LOOK);
	for (let round = 0; round < 3; round++) {
		checkEqual(await evalIn(pool, SOIL), 1, 'a call that leaves all that it can');
		const after = await evalIn(pool, LOOK);
		for (const [name, value] of Object.entries(before))
			checkEqual(after[name], value, name);
	}
	const own = await evalIn(pool, `await (async () => { ${SOIL} })(); ${LOOK}`);
	const same = Object.keys(before).filter((name) => JSON.stringify(own[name]) === JSON.stringify(before[name]));
	check(same.length < 6, `the control: a call that leaves something sees it itself, but for ${same}`);
});

both('a call shares no memory with the Node that it is forked from', async (pool) => {
	const maps = await evalIn(pool, "return (await import('node:fs')).readFileSync('/proc/self/maps', 'utf8')");
	check(/ rw-p /.test(maps), 'the control: what it has is listed');
	checkEqual(maps.split('\n').filter((line) => / .w.s /.test(line)), [], 'what is shared');
}, ['forked']);

both('memory that could be made writable, and is shared later than a module was loaded, is in no call', async (pool) => {
	const code = `const fs = await import('node:fs'), module = await import('node:module');
		const { at } = module.createRequire(process.env.AHEAD + '/')('./later.cjs');
		return [at, fs.readFileSync('/proc/self/maps', 'utf8')]`;
	for (const [kind, isKept] of [[0x02, true], [0x01, false]]) // the control is private
		await loadAhead(pool, {
			'later.cjs': `const m = { exports: {} }, fs = require('fs'), [map, file] = process.arch === 'arm64' ? [222, 279] : [9, 319];
				process.dlopen(m, __dirname + '/brought.node');
				setImmediate(() => {
					const fd = m.exports.syscall(file, Buffer.from('later\\0'), 0);
					fs.ftruncateSync(fd, 4096);
					exports.at = m.exports.syscall(map, 0, 4096, 1, ${kind}, fd, 0);
				})`,
		}, { code, binaries: [ADDON], act: async (tell) => {
			const [at, maps] = await tell();
			check(at > 0, `it is mapped: ${at}`);
			checkEqual(maps.includes(`${at.toString(16)}-`), isKept, `a call has it, mapped with ${kind}`);
		} });
}, ['forked']);

const RANDOM = `const node = await import('node:crypto');
	const { Worker } = await import('node:worker_threads');
	const thread = () => new Promise((settle, reject) => new Worker('require("worker_threads").parentPort.postMessage(Math.random())', { eval: true }).on('message', settle).on('error', reject));
	return { first: Math.random(), more: Array.from({ length: 70 }, Math.random).join(), uuid: crypto.randomUUID(), uuids: Array.from({ length: 200 }, () => node.randomUUID()).join(),
		int: node.randomInt(2 ** 47), bytes: node.randomBytes(8).toString('hex'), values: crypto.getRandomValues(new Uint32Array(2)).join(), one: await thread(), other: await thread() };`;

async function checkScattered(draw) {
	const seen = [];
	for (let i = 0; i < 5; i++)
		seen.push(await draw());
	for (const name of Object.keys(seen[0]))
		checkEqual(new Set(seen.map((one) => one[name])).size, seen.length, `${name}: ${seen.map((one) => one[name])}`);
	check(seen.every(({ one, other, first }) => one !== other && one !== first), 'threads of one process are alike');
}

both('what is random differs among calls, and among threads of one', async (pool) => {
	await checkScattered(() => evalIn(pool, RANDOM));
});

/** Has modules loaded ahead, and does something with what makes calls of the code. */
async function loadAhead(pool, files, { code = 'return 1', binaries = [], act = (tell) => tell() } = {}) {
	const folder = mkdtempSync(join(tmpdir(), 'node-ahead-'));
	chmodSync(folder, 0o755);
	for (const [name, text] of Object.entries(files))
		writeFileSync(join(folder, name), text);
	for (const file of binaries)
		copyFileSync(file, join(folder, 'brought.node'));
	try {
		const at = await pool({ policy: { files: { read: [folder] }, env: { set: { AHEAD: folder } } }, setup: { path: [folder], preload: Object.keys(files).map((name) => `./${name}`) } });
		const tell = async () => {
			const told = await cells.eval(at, code);
			check(told.status === 'ok', () => `${told.error}\n${cells.logs.join('\n')}`);
			return told.value;
		};
		await act(tell);
	} finally {
		rmSync(folder, { recursive: true });
	}
}

both('what is random differs even where modules that are loaded ahead have drawn', async (pool) => {
	await loadAhead(pool, {
		'draws.cjs': 'const c = require("crypto"); exports.all = [Math.random(), c.randomUUID(), c.randomInt(5), c.randomBytes(3)]; const { random } = Math; exports.random = random;',
		'draws.mjs': 'import { randomUUID } from "node:crypto"; export const all = [Math.random(), randomUUID()]',
	}, { code: RANDOM, act: checkScattered });
});

both('a module whose threads or memory calls would share or lack is not loaded ahead', async (pool) => {
	await loadAhead(pool, {
		'waits.cjs': 'new (require("worker_threads").Worker)("setInterval(() => {}, 1000)", { eval: true }).unref()',
		'spins.cjs': 'new (require("worker_threads").Worker)("for (;;);", { eval: true }).unref()',
		'shares.cjs': 'const m = { exports: {} }; process.dlopen(m, `${__dirname}/brought.node`); m.exports.syscall(process.arch === "arm64" ? 222 : 9, 0, 4096, 3, 0x21, -1, 0)',
		'fine.cjs': 'exports.fine = 1; require("fs").promises.stat("/")',
	}, { binaries: [ADDON] });
	for (const [name, why] of [['waits', 'starts threads'], ['spins', 'starts threads'], ['shares', 'memory that all calls would share']])
		check(cells.logs.some((line) => line.includes(`./${name}.cjs`) && line.includes(why)), () => `${name}: ${cells.logs.join('\n')}`);
	check(!cells.logs.some((line) => line.includes('./fine.cjs')), () => cells.logs.join('\n'));
}, ['forked']);

both('a module that fails later than it was loaded ends nothing', async (pool) => {
	await loadAhead(pool, { 'later.cjs': 'Promise.reject(new RangeError("nobody hears"))' });
	checkIn('nobody hears', cells.logs.join('\n'), 'the log');
}, ['forked']);

await main();
