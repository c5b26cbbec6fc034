// SPDX-License-Identifier: Apache-2.0
// A sandbox of the package with the vitro that is tested, on whatever machine.

import { Sandbox } from '../../sdk/node/index.js';
import { BINARY } from '../lib/vitrotest.mjs';

process.env.VITRO_BINARY = BINARY;
export const POLICY = { require: 'best-effort' };

/** Has one do something, and closes it. */
export async function withSandbox(act, options = {}) {
	const sandbox = new Sandbox({ policy: POLICY, ...options });
	try {
		return await act(sandbox);
	} finally {
		await sandbox.close();
	}
}
