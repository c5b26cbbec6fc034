// SPDX-License-Identifier: Apache-2.0
/*
 * A tiny harness for tests in JavaScript: registration, TAP, and a look at what was left. The same words as
 * vitrotest.py has: a test file registers functions with test('promise', …) and ends with `await main()`; what returns
 * has passed. The first argument chooses among the tests by a regular expression.
 */

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { inspect, isDeepStrictEqual } from 'node:util';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const BINARY = process.env.VITRO_BINARY ?? join(ROOT, 'build', 'vitro');
export const IS_ROOT = process.geteuid() === 0;
const TEST_MS = 60_000;

const tests = [];

class Failed extends Error {}
class Skipped extends Error {}

export function test(name, run) {
	tests.push({ name, run });
}

export function skip(reason) {
	throw new Skipped(reason);
}

/** Skips where the build was made without node_api.h. */
export function needNode() {
	if (!existsSync(join(dirname(BINARY), 'node', 'harness.cjs')))
		skip('this build has no pools of Node');
}

/** A test of what runs in pools of Node. */
export function testNode(name, run) {
	test(name, () => {
		needNode();
		return run();
	});
}

export function check(condition, message) {
	if (!condition)
		throw new Failed(typeof message === 'function' ? message() : message);
}

export function checkEqual(got, want, what) {
	if (!isDeepStrictEqual(got, want))
		throw new Failed(`${what}: got ${brief(got)}, want ${brief(want)}`);
}

export function checkIn(part, whole, what) {
	if (typeof whole?.includes !== 'function' || !whole.includes(part))
		throw new Failed(`${what}: ${brief(part)} is not in ${brief(whole)}`);
}

/** The error that an act ends with, thrown or rejected, which is of the class. */
export async function checkThrows(Class, act, what) {
	let value;
	try {
		value = await act();
	} catch (error) {
		if (!(error instanceof Class))
			throw new Failed(`${what}: got ${error?.stack ?? inspect(error)}, want a ${Class.name}`);
		return error;
	}
	throw new Failed(`${what}: got ${brief(value)}, want a ${Class.name}`);
}

function brief(value) {
	const text = inspect(value, { depth: 8, breakLength: Infinity });
	return text.length > 2000 ? `${text.slice(0, 2000)}…` : text;
}

/** Waits until a condition holds, for some seconds. */
export async function eventually(condition, what, ms = 5000) {
	for (const end = performance.now() + ms; !await condition(); await sleep(20))
		check(performance.now() < end, `not within ${ms} ms: ${what}`);
}

export function childrenOf(pid) {
	try {
		return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
	} catch {
		return [];
	}
}

let mayStay = () => false;

/** Says which processes, with all below them, may live on between tests, by their command lines. */
export function allowToStay(matches) {
	mayStay = matches;
}

/** Living processes below this one; what a test leaves there is a failure. Any of them may end meanwhile. */
export function descendants(pid = process.pid) {
	const children = orNothing(() => readdirSync(`/proc/${pid}/task`)).flatMap((task) =>
		orNothing(() => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean).map(Number)));
	return children.filter((child) => isAlive(child) && !mayStay(describeProcess(child))).flatMap((child) => [child, ...descendants(child)]);
}

function orNothing(look) {
	try {
		return look();
	} catch {
		return [];
	}
}

export function isAlive(pid) {
	try {
		const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
		return !'ZX'.includes(stat[stat.lastIndexOf(')') + 2]);
	} catch {
		return false;
	}
}

async function runOne({ run }) {
	const deadline = new AbortController();
	const tooLong = sleep(TEST_MS, undefined, { signal: deadline.signal }).then(
		() => { throw new Failed(`not over within ${TEST_MS / 1000} s`); }, () => {});
	try {
		await Promise.race([run(), tooLong]);
		let left = [];
		await eventually(() => !(left = descendants()).length, 'all processes of the test are gone').catch(() => {});
		check(!left.length, () => `processes were left: ${left.map(describeProcess).join('; ')}`);
	} finally {
		deadline.abort();
	}
}

function describeProcess(pid) {
	try {
		return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').slice(0, 200)}`;
	} catch {
		return String(pid);
	}
}

export async function main() {
	const wanted = new RegExp(process.argv[2] ?? '');
	const chosen = tests.filter(({ name }) => wanted.test(name));
	console.log(`1..${chosen.length}`);
	let failed = 0;
	for (const [index, one] of chosen.entries()) {
		const told = `${index + 1} - ${one.name.replaceAll('#', 'no.')}`;
		try {
			await runOne(one);
			console.log(`ok ${told}`);
		} catch (error) {
			if (error instanceof Skipped) {
				console.log(`ok ${told} # SKIP ${error.message}`);
				continue;
			}
			failed++;
			console.log(`not ok ${told}`);
			const text = error instanceof Failed ? error.message : error?.stack ?? inspect(error);
			console.log(text.split('\n').map((line) => `# ${line}`).join('\n'));
		}
	}
	process.exit(failed ? 1 : 0);
}
