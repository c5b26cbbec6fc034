// SPDX-License-Identifier: Apache-2.0
// Tests of pools of Node, each done by forks, and by processes that are started anew, as a Node has them that cannot be forked.

import { check, checkEqual, skip, testNode } from '../lib/vitrotest.mjs';
import { Cells } from './cell.mjs';

const CAN_FORK = parseInt(process.versions.node, 10) >= 20; // FORKABLE of zygote.cjs
export let cells; // of the test that runs

/** A test of both kinds of occupants, which has its own supervisor, and gets pools from it. */
export function both(name, run, kinds = ['forked', 'anew']) {
	for (const kind of kinds)
		testNode(`${kind}: ${name}`, async () => {
			if (kind === 'forked' && !CAN_FORK)
				skip('this Node is not forked');
			const pools = new Map();
			const mine = cells = new Cells();
			try {
				await run((options = {}) => {
					const key = JSON.stringify(options);
					if (!pools.has(key)) // a promise, so that who asks meanwhile has the same
						pools.set(key, mine.pool({ ...options, setup: { fork: kind === 'forked', ...options.setup } }));
					return pools.get(key);
				}, kind);
			} finally {
				checkEqual(await mine.end(), 0, "the supervisor's exit code");
			}
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
