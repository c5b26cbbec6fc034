// SPDX-License-Identifier: Apache-2.0
// Options as they are given: an object, with the names that there are.

import { closest } from './say.js';

export function checkObject(options) {
	if (options === null || typeof options !== 'object' || Array.isArray(options))
		throw new TypeError(`options are an object, not ${kindOf(options)}`);
}

/** A value that is wrong, though its type is right: the program may have it from elsewhere, so it is no mistake in the program. */
export class WrongValue extends TypeError {
	get name() {
		return 'TypeError';
	}
}

/** What is tried first, and where it goes. */
const ELSEWHERE = new Map(Object.entries({
	timeout: 'each call, or to the policy: limits.wall_ms', memory: 'the policy: limits.memory_mb', network: 'the policy: network',
	files: 'the policy: files.read and files.write', read: 'the policy: files.read', write: 'the policy: files.write',
	cwd: 'the policy: files.cwd', env: 'the policy: env.set and env.pass',
}));

/** Those of a sandbox, or of what has one: a text would be a policy. */
export function checkSandboxNames(options, known) {
	if (typeof options === 'string')
		throw new TypeError(`options are an object, not a string: a policy goes by { policy: ${JSON.stringify(options)} }`);
	checkPolicyNames(options, known);
}

/** The same of options beside which there is a policy. */
export function checkPolicyNames(options, known) {
	checkObject(options);
	for (const name of Object.keys(options))
		if (!known.includes(name) && ELSEWHERE.has(name))
			throw new TypeError(`${name} goes to ${ELSEWHERE.get(name)}`);
	checkNames(options, known);
}

/** Throws TypeError where options are none, or have a name that is not known. */
export function checkNames(options, known) {
	checkObject(options);
	for (const name of Object.keys(options))
		if (!known.includes(name)) {
			const near = closest(name, known);
			throw new TypeError(`there is no option '${name}'${near === null ? `; there are ${known.join(', ')}` : `; did you mean '${near}'?`}`);
		}
}

/** What a value is, in a word or two. */
export function kindOf(value) {
	if (value === null || value === undefined)
		return String(value);
	if (Array.isArray(value))
		return 'an array';
	return typeof value === 'object' ? `an object of class ${value.constructor?.name ?? 'Object'}` : `a ${typeof value}`;
}
