// SPDX-License-Identifier: Apache-2.0
/*
 * `return 2 + 3`, in one way, for each line: nodes.mjs WAY; or the isolation check in that way, once: nodes.mjs WAY --probe
 * PORT SECRET
 */

import { createInterface } from 'node:readline';
import vm from 'node:vm';
import { Worker } from 'node:worker_threads';

// As bench/probe.c has it. What hides names, and no more, is asked by another name.
const PROBE = (port, secret) => `
const node = typeof process === 'undefined' ? this.constructor.constructor('return process')() : process;
const load = (name) => node.getBuiltinModule ? node.getBuiltinModule(name) : node.mainModule.require(name);
const fs = load('fs'), net = load('net');
const read = (path) => { try { return fs.readFileSync(path, 'utf8'); } catch { return undefined; } };
const writes = (folder) => { const path = folder + '/vitro-bench.' + node.pid; try { fs.writeFileSync(path, '', { flag: 'wx' }); fs.unlinkSync(path); return true; } catch { return false; } };
const status = (key) => /\\d+/.exec(read('/proc/self/status').split('\\n').find((line) => line.startsWith(key)))[0];
const connects = await new Promise((settle) => { const socket = net.connect(${port}, '127.0.0.1', () => { socket.destroy(); settle(true); }); socket.on('error', () => settle(false)); });
const open = [fs.readdirSync('/proc').some((name) => +name && read('/proc/' + name + '/comm') === 'bench-neighbour\\n'), connects,
	read(${JSON.stringify(secret)}) !== undefined, status('Seccomp:') !== '2', status('NoNewPrivs:') !== '1', writes('')];
return 'holes ' + open.reduce((sum, bit, number) => sum + (bit << number), 0) + ' scratch ' + +writes('/tmp');
`;

const WAYS = {
	async vitro() {
		const { Sandbox } = await import('../../sdk/node/index.js');
		const sandbox = new Sandbox({ readyMin: 8 });
		return { run: (code) => sandbox.eval(code), end: () => sandbox.close() };
	},
	async worker() {
		const source = "const { parentPort, workerData } = require('worker_threads');" +
			"new (async () => {}).constructor(workerData)().then((value) => parentPort.postMessage(value));";
		return { run: (code) => new Promise((settle, fail) => {
			const worker = new Worker(source, { eval: true, workerData: code });
			worker.on('message', settle);
			worker.on('error', fail);
		}), end() {} };
	},
	async vm() {
		return { run: (code) => vm.runInContext(`(async function () { ${code} }).call(this)`, vm.createContext({})), end() {} };
	},
	async ncp() {
		const { NaiveSandbox } = await import('../../test/node/naive.mjs');
		return { run: async (code) => (await new NaiveSandbox().execute(code, [])).result, end() {} };
	},
};

const [, , name, ...rest] = process.argv;
const way = await WAYS[name]();
if (rest[0] === '--probe') {
	console.log(await way.run(PROBE(rest[1], rest[2])));
} else {
	for await (const _ of createInterface({ input: process.stdin })) {
		const began = process.hrtime.bigint();
		const value = await way.run('return 2 + 3');
		const took = process.hrtime.bigint() - began;
		if (value !== 5)
			throw new Error(`2 + 3 is ${value}`);
		process.stdout.write(`${took}\n`);
	}
}
await way.end();
process.exit();
