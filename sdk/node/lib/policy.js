// SPDX-License-Identifier: Apache-2.0
// A policy as it is given in JavaScript, as the sources that the wire takes; and what a deadline makes of it.

import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const BUILT_IN = new Set(['default', 'strict', 'compute']);
const WALL_MS = 30_000; // the default's
const FILE_MB = 64; // the default's
const WALL_MAX_MS = 86_400_000;

/** The sources of a policy: an object as in a policy file, the name of a built-in one, or a file's path or URL. */
export function sourcesOf(policy) {
	if (policy === undefined || policy === null)
		return [];
	if (typeof policy === 'string')
		return [{ load: BUILT_IN.has(policy) ? policy : resolve(policy) }];
	if (policy instanceof URL)
		return [{ load: fileURLToPath(policy) }];
	if (typeof policy !== 'object' || Array.isArray(policy))
		throw new TypeError(`policy is an object, the name of a built-in policy or a path, not ${typeof policy}`);
	return [{ json: JSON.stringify(makeAbsolute(policy)) }];
}

/** A path by the working directory, as a flag's is. What is no path stays, to be refused by name. */
function absolutePath(path) {
	if (path instanceof URL)
		return fileURLToPath(path);
	if (typeof path !== 'string' || !path)
		return path;
	if (!path.split('/').includes('..'))
		return resolve(path);
	try {
		return realpathSync(path); // after a link ".." leads elsewhere than it seems to
	} catch {
		return resolve(path);
	}
}

function makeAbsolute(policy) {
	const made = { ...policy };
	if (typeof made.extends === 'string' && !BUILT_IN.has(made.extends) || made.extends instanceof URL)
		made.extends = absolutePath(made.extends);
	if (made.files !== null && typeof made.files === 'object') {
		made.files = { ...made.files };
		for (const key of ['read', 'write', 'deny', 'sockets'])
			if (Array.isArray(made.files[key]))
				made.files[key] = made.files[key].map(absoluteGrant);
		if ('cwd' in made.files)
			made.files.cwd = absolutePath(made.files.cwd);
	}
	return made;
}

function absoluteGrant(grant) {
	const isMoved = grant !== null && typeof grant === 'object' && !(grant instanceof URL);
	return isMoved ? { ...grant, from: absolutePath(grant.from) } : absolutePath(grant);
}

/** A limit that a policy sets, where that can be told without reading files. usual: what the built-in ones have. */
function limitOf(policy, key, usual) {
	if (policy === undefined || policy === null || BUILT_IN.has(policy))
		return usual;
	if (typeof policy !== 'object' || policy instanceof URL || !BUILT_IN.has(policy.extends ?? 'default'))
		return null;
	const found = policy.limits?.[key] ?? usual;
	return Number.isInteger(found) ? found : null;
}

/** How large a file may be, or null. */
export function fileMbOf(policy) {
	return limitOf(policy, 'file_mb', FILE_MB);
}

/**
 * What a timeout in milliseconds adds to the sources of a policy, and the call's own wall_ms. A call can shorten the
 * policy's deadline, and only a policy can make it longer. Longer ones come in steps, so that calls with many
 * different timeouts share a few pools.
 */
export function deadline(policy, timeout) {
	if (timeout === undefined || timeout === null)
		return { sources: [], wallMs: 0 };
	if (typeof timeout !== 'number')
		throw new TypeError(`timeout is a number of milliseconds, not ${typeof timeout}`);
	if (timeout > 0 && timeout < 1)
		throw new RangeError(`timeout is in milliseconds, not ${timeout}: 500 is half a second`);
	if (!(timeout > 0 && timeout <= WALL_MAX_MS))
		throw new RangeError(`timeout must be positive, and a day at the most, not ${timeout}`);
	const wallMs = Math.ceil(timeout);
	const known = limitOf(policy, 'wall_ms', WALL_MS);
	if (known !== null && wallMs <= known)
		return { sources: [], wallMs };
	let step = WALL_MS;
	while (step < wallMs)
		step *= 2;
	return { sources: [{ key: 'limits.wall_ms', value: `${Math.min(step, WALL_MAX_MS)}ms` }], wallMs };
}
