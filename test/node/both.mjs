// SPDX-License-Identifier: Apache-2.0
// Tests of pools of Node, each done by forks, and by processes that are started anew, as a Node has them that cannot be forked.

import { allowToStay, check, checkEqual, skip, testNode } from '../lib/vitrotest.mjs';
import { Cells } from './cell.mjs';

const CAN_FORK = parseInt(process.versions.node, 10) >= 20; // FORKABLE of zygote.cjs
export let cells; // of the test that runs

/** A supervisor, and its pools by their options. */
class Supervised {
	cells = new Cells();
	#pools = new Map();

	constructor(kind) {
		this.pool = (options = {}) => {
			const key = JSON.stringify(options);
			if (!this.#pools.has(key)) // a promise, so that who asks meanwhile has the same
				this.#pools.set(key, this.cells.pool({ ...options, setup: { fork: kind === 'forked', ...options.setup } }));
			return this.#pools.get(key);
		};
	}

	async end() {
		checkEqual(await this.cells.end(), 0, "the supervisor's exit code");
	}
}

function testKinds(name, kinds, run) {
	for (const kind of kinds)
		testNode(`${kind}: ${name}`, async () => {
			if (kind === 'forked' && !CAN_FORK)
				skip('this Node is not forked');
			await run(kind);
		});
}

/** A test of both kinds of occupants, which has its own supervisor, and gets pools from it. */
export function both(name, run, kinds = ['forked', 'anew']) {
	testKinds(name, kinds, async (kind) => {
		const own = new Supervised(kind);
		cells = own.cells;
		try {
			await run(own.pool, kind);
		} finally {
			await own.end();
		}
	});
}

const shared = new Map(); // by kind
allowToStay((words) => [...shared.values()].some(({ cells: { pid } }) => words.startsWith(`${pid} `)));

/** The same with a supervisor, and pools, that all such tests of a kind have: what leaves nothing that others could notice. */
export function together(name, run, kinds = ['forked', 'anew']) {
	testKinds(name, kinds, async (kind) => {
		if (!shared.has(kind))
			shared.set(kind, new Supervised(kind));
		cells = shared.get(kind).cells;
		await run(shared.get(kind).pool, kind);
	});
}

/** When the shared ones end, nothing is left of what all these tests did. */
export function endTogether() {
	testKinds('what was done together leaves nothing', ['forked', 'anew'], async (kind) => {
		const one = shared.get(kind);
		shared.delete(kind);
		await one?.end();
	});
}

export async function evalIn(pool, code, options) {
	const told = await cells.eval(await pool(), code, options);
	check(told.status === 'ok', () => `${code}: ${told.status}: ${told.type}: ${told.error}\n${told.traceback ?? told.stderr}`);
	return told.value;
}

export async function failIn(pool, code, options) {
	const told = await cells.eval(await pool(), code, options);
	check(told.status !== 'ok', () => `${code}: it gave ${told.value}`);
	return told;
}
