// SPDX-License-Identifier: Apache-2.0
/*
 * What a call that finds nothing ready costs at the least, for bench/node.mjs: a cell by hand (bench/hand.c: a cell's own
 * namespaces and mounts, and nothing else), then a fork of a warm Node, which evaluates and answers. No supervisor stands
 * between, nothing is sealed, bounded or checked, the fork is not in the cell, and the code is no more than an expression.
 *
 * Nothing but vitro's addon forks a Node, so the fork itself is by it (`sprout`, which the tests of forks have).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname, join } from 'node:path';

const CALL = 3; // the only descriptor above 2 that a fork keeps
const WARM = `const [, path] = process.argv;
const host = { exports: {} };
process.dlopen(host, path);
const addon = host.exports, vm = require('vm');
const order = Buffer.alloc(64);
const answer = (code) => Buffer.from(String(vm.runInThisContext(code)));
const hear = () => addon.receive(${CALL}, order, 0, 1);
for (let i = 0; i < 1500; i++)
	answer('2 + ' + i % 7);
addon.enlarge();
setImmediate(() => {
	addon.send(${CALL}, Buffer.from('on'), 0);
	for (let size; (size = hear()) > 0;) {
		const pid = addon.sprout();
		if (!pid) {
			addon.send(${CALL}, answer(order.latin1Slice(0, size)), 0);
			addon.pause();
		}
		hear(); // that it was heard
		addon.reap(pid, 0);
		addon.send(${CALL}, Buffer.from('gone'), 0);
	}
	addon.exit(0);
});`;

export class Floor {
	#hand;
	#warm;
	#call;

	static async make(binary) {
		const floor = new Floor();
		const build = dirname(binary);
		const addon = join(build, 'node', 'vitro_zygote.node');
		floor.#hand = spawn(join(build, 'bench', 'vitro-bench-hand'), [binary], { stdio: ['pipe', 'pipe', 'inherit'] });
		floor.#warm = spawn(process.execPath, ['--single-threaded', '--v8-pool-size=1', '-e', WARM, addon],
			{ stdio: ['ignore', 'inherit', 'inherit', 'pipe'], env: { ...process.env, LD_PRELOAD: addon } });
		floor.#call = floor.#warm.stdio[CALL];
		await once(floor.#call, 'data');
		return floor;
	}

	/** Asks one of them, and waits for what it says. */
	async #ask(to, from, order) {
		to.write(order);
		return String((await once(from, 'data'))[0]);
	}

	async turn() {
		await this.#ask(this.#hand.stdin, this.#hand.stdout, 'm');
		if (await this.#ask(this.#call, this.#call, '2 + 3') !== '5')
			throw new Error('2 + 3 is not 5');
	}

	/** Ends what the turn has made. */
	async tidy() {
		await this.#ask(this.#call, this.#call, 'e');
		await this.#ask(this.#hand.stdin, this.#hand.stdout, 'e');
	}

	async close() {
		this.#call.end();
		this.#hand.stdin.end();
		await Promise.all([this.#warm, this.#hand].map((child) => child.exitCode ?? once(child, 'exit')));
	}
}
