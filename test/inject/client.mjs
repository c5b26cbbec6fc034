// SPDX-License-Identifier: Apache-2.0
// Runs the probe in a cell of a Node pool: client.mjs PROBE. Prints what came of it as JSON.

import { Sandbox } from '../../sdk/node/index.js';

const code = `const { closeSync } = await import('node:fs');
const mark = () => { try { closeSync(1986622064); } catch { /* a descriptor that nobody has: MARK of vitro-inject */ } };
mark();
const { execFileSync } = await import('node:child_process');
process.stdout.write(execFileSync(${JSON.stringify(process.argv[2])}));
mark();`;
let told;
try {
	const sandbox = new Sandbox({ readyMin: 1, readyMax: 1, policy: { files: { read: [process.argv[2]] } } });
	const result = await sandbox.eval(code, { result: true });
	await sandbox.close();
	told = { status: result.status, stdout: result.stdout, isolation: result.isolation, error: result.error && { message: result.error.message } };
} catch (error) {
	told = { status: 'refused', stdout: '', isolation: null, error: { message: error.message } };
}
console.log(JSON.stringify(told));
