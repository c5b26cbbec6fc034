// SPDX-License-Identifier: Apache-2.0
// Kinds of work that a Node does, each a function that throws where it is not done.

import assert from 'node:assert';
import { AsyncLocalStorage } from 'node:async_hooks';
import * as cp from 'node:child_process';
import crypto from 'node:crypto';
import dns from 'node:dns';
import fs from 'node:fs';
import http from 'node:http';
import inspector from 'node:inspector';
import { createRequire } from 'node:module';
import os from 'node:os';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import readline from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import v8 from 'node:v8';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';
import zlib from 'node:zlib';

const require = createRequire(import.meta.url);
// (module (func (export "add") (param i32 i32) (result i32) …) (memory 1) (func (export "load") (param i32) (result i32) …))
const ADDING = Buffer.from('0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b', 'hex');
const LOADING = Buffer.from('0061736d0100000001060160017f017f030201000503010001070801046c6f616400000a0901070020002802000b', 'hex');

function listen(server) {
	return new Promise((settle) => server.listen(0, '127.0.0.1', () => settle(server.address().port)));
}

function hear(source, event) {
	return new Promise((settle, reject) => source.once(event, settle).once('error', reject));
}

function makeFolder() {
	return fs.mkdtempSync(`${os.tmpdir()}/forked-`);
}

export const works = {
	async code() {
		assert.equal(await new Function('return (async () => 2 + 3)()')(), 5);
	},
	async garbage() {
		let kept = [];
		for (let i = 0; i < 300_000; i++) {
			kept.push({ i, s: `x${i}` });
			if (kept.length > 5000)
				kept = [];
		}
	},
	async 'a large heap'() {
		const kept = [];
		for (let i = 0; i < 1_000_000; i++)
			kept.push({ i, s: `x${i}` });
		const map = new Map();
		for (let i = 0; i < 200_000; i++)
			map.set(`k${i}`, i);
		assert.equal(kept.length + map.size, 1_200_000);
	},
	async 'forced collections'() {
		v8.setFlagsFromString('--expose-gc');
		const collect = vm.runInNewContext('gc');
		for (let i = 0; i < 3; i++)
			collect();
	},
	async finalizers() {
		const registry = new FinalizationRegistry(() => {});
		for (let i = 0; i < 1000; i++)
			registry.register({ i });
		const kept = [];
		for (let i = 0; i < 500_000; i++)
			kept.push([i]);
		await sleep(5);
	},
	async timers() {
		let count = 0;
		await new Promise((settle) => {
			const timer = setInterval(() => {
				if (++count === 5)
					settle(clearInterval(timer));
			}, 1);
		});
		await new Promise((settle) => setImmediate(settle));
		await sleep(3);
	},
	async promises() {
		let sum = 0;
		for (let i = 0; i < 20_000; i++)
			sum += await i;
		await Promise.all(Array.from({ length: 1000 }, async (_, i) => i));
		assert.equal(sum, 199_990_000);
	},
	async 'context of async calls'() {
		const storage = new AsyncLocalStorage();
		await storage.run(4, async () => {
			await sleep(1);
			assert.equal(storage.getStore(), 4);
		});
	},
	async 'files, by threads'() {
		const folder = makeFolder();
		await Promise.all(Array.from({ length: 20 }, (_, i) => fs.promises.writeFile(`${folder}/${i}`, 'x'.repeat(i * 1000))));
		assert.equal((await fs.promises.readdir(folder)).length, 20);
		assert.equal((await fs.promises.readFile(`${folder}/7`)).length, 7000);
		await fs.promises.rm(folder, { recursive: true });
	},
	async 'streams of files'() {
		const folder = makeFolder();
		const blocks = async function* blocks() {
			for (let i = 0; i < 50; i++)
				yield Buffer.alloc(10_000);
		};
		await pipeline(blocks, zlib.createGzip(), fs.createWriteStream(`${folder}/z`));
		assert.equal(zlib.gunzipSync(fs.readFileSync(`${folder}/z`)).length, 500_000);
		fs.rmSync(folder, { recursive: true });
	},
	async 'watching a folder'() {
		const folder = makeFolder();
		await new Promise((settle) => {
			const watcher = fs.watch(folder, () => settle(watcher.close()));
			setTimeout(() => fs.writeFileSync(`${folder}/a`, 'x'), 2);
		});
		fs.rmSync(folder, { recursive: true });
	},
	async lines() {
		let count = 0;
		for await (const _ of readline.createInterface({ input: fs.createReadStream(new URL(import.meta.url)) }))
			count++;
		assert(count > 100);
	},
	async 'crypto at once'() {
		crypto.pbkdf2Sync('a', 'b', 1000, 32, 'sha256');
		crypto.createHash('sha512').update('x').digest();
		crypto.scryptSync('a', 'b', 32, { N: 1024 });
		crypto.generateKeyPairSync('ec', { namedCurve: 'P-256' });
	},
	async 'crypto, by threads'() {
		await Promise.all(Array.from({ length: 6 }, () => promisify(crypto.pbkdf2)('a', 'b', 1000, 32, 'sha256')));
		await promisify(crypto.generateKeyPair)('ec', { namedCurve: 'P-256' });
		await promisify(crypto.randomBytes)(100);
	},
	async 'crypto.subtle'() {
		const { subtle } = crypto.webcrypto;
		const key = await subtle.generateKey({ name: 'AES-GCM', length: 256 }, true, ['encrypt', 'decrypt']);
		const iv = crypto.randomBytes(12);
		const secret = await subtle.encrypt({ name: 'AES-GCM', iv }, key, Buffer.from('hi'));
		assert.equal(Buffer.from(await subtle.decrypt({ name: 'AES-GCM', iv }, key, secret)).toString(), 'hi');
	},
	async 'compression, by threads'() {
		const packed = await promisify(zlib.brotliCompress)(Buffer.alloc(100_000));
		assert.equal((await promisify(zlib.brotliDecompress)(packed)).length, 100_000);
	},
	async 'child processes, waited for'() {
		assert.equal(cp.execFileSync('/bin/echo', ['hi']).toString(), 'hi\n');
	},
	async 'child processes'() {
		const all = await Promise.all([1, 2, 3].map((i) => promisify(cp.execFile)('/bin/sh', ['-c', `echo ${i}`])));
		assert.equal(all.map((one) => one.stdout).join(''), '1\n2\n3\n');
	},
	async 'a child that is a Node'() {
		const { stdout } = await promisify(cp.execFile)(process.execPath, ['-e', 'console.log(7)']);
		assert.equal(stdout, '7\n');
	},
	async 'a child that talks'() {
		const folder = makeFolder();
		fs.writeFileSync(`${folder}/kid.cjs`, 'process.send({x: 1})');
		const kid = cp.fork(`${folder}/kid.cjs`);
		assert.equal((await hear(kid, 'message')).x, 1);
		kid.kill();
		fs.rmSync(folder, { recursive: true });
	},
	async WebAssembly() {
		const { instance } = await WebAssembly.instantiate(ADDING);
		let sum = 0;
		for (let i = 0; i < 300_000; i++)
			sum = instance.exports.add(sum, 1);
		assert.equal(sum, 300_000);
		void new WebAssembly.Instance(await WebAssembly.compile(ADDING));
		new WebAssembly.Memory({ initial: 100 }).grow(100);
	},
	async 'WebAssembly that is streamed'() {
		const answer = new Response(ADDING, { headers: { 'content-type': 'application/wasm' } });
		const { instance } = await WebAssembly.instantiateStreaming(answer);
		assert.equal(instance.exports.add(2, 3), 5);
	},
	async 'WebAssembly beyond its memory'() {
		const { instance } = await WebAssembly.instantiate(LOADING);
		assert.equal(instance.exports.load(0), 0);
		assert.throws(() => instance.exports.load(1 << 20), WebAssembly.RuntimeError);
	},
	async 'a worker thread'() {
		const worker = new Worker('const k = []; for (let i = 0; i < 1e5; i++) k.push({i}); require("worker_threads").parentPort.postMessage(k.length)', { eval: true });
		assert.equal(await hear(worker, 'message'), 100_000);
		await worker.terminate();
	},
	async 'worker threads with shared memory'() {
		const shared = new Int32Array(new SharedArrayBuffer(8));
		const code = 'const {workerData: d} = require("worker_threads"); for (let i = 0; i < 1000; i++) Atomics.add(d, 0, 1)';
		const workers = [1, 2, 3].map(() => new Worker(code, { eval: true, workerData: shared }));
		await Promise.all(workers.map((worker) => hear(worker, 'exit')));
		assert.equal(shared[0], 3000);
	},
	async 'waiting for shared memory'() {
		const shared = new Int32Array(new SharedArrayBuffer(8));
		Atomics.wait(shared, 0, 0, 5);
		await Atomics.waitAsync?.(shared, 0, 0, 5).value;
	},
	async 'big buffers'() {
		const all = Buffer.concat(Array.from({ length: 10 }, () => Buffer.alloc(16 << 20, 1)));
		assert.equal(all.length, 160 << 20);
	},
	async 'typed arrays'() {
		const numbers = new Float64Array(4e6).fill(1.5).sort();
		assert.equal(structuredClone(numbers)[3], 1.5);
	},
	async 'regular expressions'() {
		const text = 'abc123 '.repeat(20_000);
		assert.equal(text.match(/([a-z]+)(\d+)/g).length, 20_000);
		assert.equal(/(?<y>\d{4})-(?<m>\d\d)/u.exec('2024-05').groups.y, '2024');
		text.replace(/b(?=c)/g, (found) => found.toUpperCase());
	},
	async Intl() {
		new Intl.DateTimeFormat('de-DE', { dateStyle: 'full', timeZone: 'Asia/Tokyo' }).format(0);
		new Intl.NumberFormat('hi-IN', { style: 'currency', currency: 'INR' }).format(1e6);
		assert([...new Intl.Segmenter('ja', { granularity: 'word' }).segment('日本語の文')].length > 1);
		assert.equal('ä'.localeCompare('z', 'sv'), 1);
	},
	async 'code that gets hot'() {
		const fibonacci = (n) => (n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2));
		assert.equal(fibonacci(27), 196_418);
	},
	async 'a deep stack'() {
		const descend = (n) => descend(n + 1) + 1;
		assert.throws(() => descend(0), RangeError);
	},
	async 'other contexts'() {
		const context = vm.createContext({ x: 1 });
		for (let i = 0; i < 20; i++)
			vm.runInContext('x += 1', context);
		assert.equal(context.x, 21);
		assert.throws(() => vm.runInNewContext('for (;;);', {}, { timeout: 20 }), /timed out/);
	},
	async 'dynamic import'() {
		assert((await import('node:os')).cpus);
		assert.equal((await import('data:text/javascript,export default 7')).default, 7);
		const folder = makeFolder();
		fs.writeFileSync(`${folder}/m.mjs`, 'export const x = 3;');
		assert.equal((await import(`${folder}/m.mjs`)).x, 3);
		fs.rmSync(folder, { recursive: true });
	},
	async 'source maps'() {
		process.setSourceMapsEnabled(true);
		const map = JSON.stringify({ version: 3, sources: ['first.ts'], names: [], mappings: 'AAAA;AACA;AACA' });
		const folder = makeFolder();
		fs.writeFileSync(`${folder}/m.cjs`, '"use strict";\nfunction f() { throw new Error("m") }\nmodule.exports = f;\n' +
			`//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}`);
		assert.throws(require(`${folder}/m.cjs`), (error) => /first\.ts:2/.test(error.stack));
		fs.rmSync(folder, { recursive: true });
	},
	async 'a server and its client'() {
		const server = http.createServer((_, response) => response.end('ok'));
		const port = await listen(server);
		assert.equal(await (await fetch(`http://127.0.0.1:${port}`)).text(), 'ok');
		server.close();
	},
	async 'names of hosts'() {
		await dns.promises.lookup('localhost');
	},
	async signals() {
		const heard = hear(process, 'SIGUSR2');
		process.kill(Number(fs.readlinkSync('/proc/self')), 'SIGUSR2');
		await heard;
	},
	async 'channels between contexts'() {
		const one = new BroadcastChannel('x'), other = new BroadcastChannel('x');
		await new Promise((settle) => {
			other.onmessage = settle;
			one.postMessage(1);
		});
		one.close();
		other.close();
	},
	async 'streams of the web'() {
		const { readable, writable } = new TransformStream();
		const writer = writable.getWriter();
		writer.write('a');
		writer.close();
		for await (const part of readable)
			assert.equal(part, 'a');
		assert.equal(await new Blob(['xyz']).text(), 'xyz');
	},
	async 'a signal after a time'() {
		const signal = AbortSignal.timeout(3);
		await new Promise((settle) => {
			signal.onabort = settle;
		});
	},
	async 'a picture of the heap'() {
		let size = 0;
		for await (const part of v8.getHeapSnapshot())
			size += part.length;
		assert(size > 1000);
	},
	async 'a profile'() {
		const session = new inspector.Session();
		session.connect();
		for (const act of ['Profiler.enable', 'Profiler.start', 'Profiler.stop'])
			await new Promise((settle, reject) => session.post(act, (error) => (error ? reject(error) : settle())));
		session.disconnect();
	},
	async 'figures of the process'() {
		performance.mark('a');
		monitorEventLoopDelay().enable();
		await sleep(3);
		assert(process.memoryUsage().rss && process.resourceUsage() && os.cpus().length);
	},
	async output() {
		for (let i = 0; i < 100; i++)
			process.stdout.write('.');
	},
};
