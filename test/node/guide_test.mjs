#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Every example in JavaScript, of the README and of the package's own, runs.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { BINARY, ROOT, check, checkEqual, main, testNode as test } from '../lib/vitrotest.mjs';

const PRINTED = { 'README.md': ['1816', 'Linux'], 'sdk/node/README.md': ['6', 'hello'] };

for (const [page, printed] of Object.entries(PRINTED))
	test(`the examples of ${page}`, () => {
		const folder = mkdtempSync(join(tmpdir(), 'vitro-guide-'));
		try {
			mkdirSync(join(folder, 'node_modules'));
			symlinkSync(join(ROOT, 'sdk', 'node'), join(folder, 'node_modules', 'vitro-sandbox'));
			const examples = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)];
			check(examples.length === 1, `there are ${examples.length} examples`);
			writeFileSync(join(folder, 'example.mjs'), examples[0][1]);
			const said = execFileSync(process.execPath, ['example.mjs'], { cwd: folder, encoding: 'utf8', env: { ...process.env, VITRO_BINARY: BINARY } });
			checkEqual(said.split('\n').filter(Boolean), printed, 'what it prints');
		} finally {
			rmSync(folder, { recursive: true });
		}
	});

await main();
