// SPDX-License-Identifier: Apache-2.0
// Options as they are given: an object, with the names that there are.

import { closest } from './say.js';

export function checkObject(options) {
	if (options === null || typeof options !== 'object' || Array.isArray(options))
		throw new TypeError(`options are an object, not ${kindOf(options)}`);
}

/** Those of a sandbox, or of what has one: a text would be a policy. */
export function checkSandboxNames(options, known) {
	if (typeof options === 'string')
		throw new TypeError(`options are an object, not a string: a policy goes by { policy: ${JSON.stringify(options)} }`);
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
