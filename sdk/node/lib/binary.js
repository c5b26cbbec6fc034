// SPDX-License-Identifier: Apache-2.0
// Which program is the supervisor: what VITRO_BINARY names, else the one that this package carries, else `vitro` on PATH.

import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Unsupported } from './errors.js';

const CARRIED = fileURLToPath(new URL('../bin/vitro', import.meta.url));

/** The path of the program. Throws Unsupported where there is none. */
export function findBinary() {
	if (process.platform !== 'linux')
		throw new Unsupported(`vitro seals calls by means of the Linux kernel; this is ${process.platform}`);
	const given = process.env.VITRO_BINARY;
	if (given) {
		if (!canExecute(given))
			throw new Unsupported(`VITRO_BINARY names '${given}', which cannot be executed`);
		return resolve(given);
	}
	if (canExecute(CARRIED))
		return CARRIED;
	const found = (process.env.PATH ?? '').split(delimiter).filter(Boolean).map((folder) => join(folder, 'vitro')).find(canExecute);
	if (found === undefined)
		throw new Unsupported(`there is no program 'vitro': neither '${CARRIED}' nor on PATH; install it, or name it by VITRO_BINARY`);
	return resolve(found);
}

function canExecute(path) {
	try {
		accessSync(path, constants.X_OK);
		return statSync(path).isFile();
	} catch {
		return false;
	}
}
