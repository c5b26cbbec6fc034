// SPDX-License-Identifier: Apache-2.0
/*
 * A running Node can be forked, and a fork can do all that a process does: docs/node.md. VITRO_TEST_NODES names more
 * interpreters, with spaces between; VITRO_TEST_ROUNDS how often each work is done.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BINARY, check, checkEqual, main, skip, test } from '../lib/vitrotest.mjs';

const ADDON = join(dirname(BINARY), 'node', 'vitro_zygote.node');
const FORKED = join(import.meta.dirname ?? dirname(new URL(import.meta.url).pathname), 'forked.mjs');
const FLAGS = ['--single-threaded', '--v8-pool-size=1'];
const PARTS = 9; // of all works, each a test: on a machine with other load one takes a while
const ROUNDS = process.env.VITRO_TEST_ROUNDS ?? '1';
const nodes = [process.execPath, ...(process.env.VITRO_TEST_NODES ?? '').split(' ').filter(Boolean)];

function fork(node, works, env) {
	const { stdout, stderr, signal } = spawnSync(node, [...FLAGS, FORKED, ADDON, ROUNDS, works], { env: { ...process.env, ...env } });
	check(!signal && stdout.length, () => `it ended by ${signal}: ${stderr}`);
	return { ...JSON.parse(stdout.toString().trim().split('\n').pop()), stderr: stderr.toString() };
}

for (const node of nodes)
	for (let part = 0; part < PARTS; part++)
		test(`a fork of ${node} does what a process does (${part + 1} of ${PARTS})`, () => {
			if (!existsSync(ADDON))
				skip('this vitro was built without Node');
			const told = fork(node, `${part}/${PARTS}`, { LD_PRELOAD: ADDON });
			if (parseInt(told.version.slice(1), 10) < 20)
				skip(`${told.version} is not forked: ${Object.keys(told.failed)}`);
			checkEqual(told.failed, {}, told.stderr);
			check(told.forks >= 5 * Number(ROUNDS), `only ${told.forks} forks`);
		});

test('without the handlers of pthread_atfork() a fork cannot start a process: the control', () => {
	if (!existsSync(ADDON))
		skip('this vitro was built without Node');
	const told = fork(process.execPath, 'child processes', { LD_PRELOAD: '' });
	check(told.failed['child processes']?.length, 'it could');
});

await main();
