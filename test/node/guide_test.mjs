#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Every example in JavaScript of the documentation runs.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { BINARY, ROOT, check, checkEqual, main, skip, testNode as test } from '../lib/vitrotest.mjs';

const NPM = process.env.VITRO_TEST_NPM ?? join(ROOT, 'build', 'npm');
const PAGES = ['README.md', ...['docs', 'docs/guide', 'sdk/node'].flatMap((at) =>
	readdirSync(join(ROOT, at)).filter((name) => name.endsWith('.md')).map((name) => `${at}/${name}`))];
const PRINTED = { 'README.md': ['1816', 'Linux'], 'sdk/node/README.md': ['6', 'hello'] };

/** A folder where the package is installed, and what else there is. */
function makeFolder() {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-guide-'));
	const modules = join(folder, 'node_modules');
	mkdirSync(modules);
	symlinkSync(join(ROOT, 'sdk', 'node'), join(modules, 'vitro-sandbox'));
	if (existsSync(join(NPM, 'stamp')))
		for (const name of readdirSync(join(NPM, 'node_modules')).filter((one) => !one.startsWith('.')))
			symlinkSync(join(NPM, 'node_modules', name), join(modules, name));
	return folder;
}

/** What an example imports beside Node's own modules and the package. */
function needs(example) {
	return [...example.matchAll(/from '([^']+)'/g)].map(([, name]) => name).filter((name) => !/^(?:node:|vitro-sandbox)/.test(name));
}

function run(example, printed) {
	const others = needs(example);
	if (others.length && !existsSync(join(NPM, 'stamp')))
		skip(`build/npm has no ${others.join(', ')}: tools/setup test`);
	if (others.length && parseInt(process.versions.node, 10) < 20)
		skip('the frameworks need Node 20');
	const folder = makeFolder();
	try {
		writeFileSync(join(folder, 'example.mjs'), example);
		const said = execFileSync(process.execPath, ['example.mjs'], { cwd: folder, encoding: 'utf8', env: { ...process.env, VITRO_BINARY: BINARY } });
		if (printed !== undefined)
			checkEqual(said.split('\n').filter(Boolean), printed, 'what it prints');
	} finally {
		rmSync(folder, { recursive: true });
	}
}

let found = 0;
for (const page of PAGES) {
	const examples = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(([, text]) => text);
	for (const [at, example] of examples.entries())
		test(`${page}: example ${at + 1}`, () => run(example, at === 0 ? PRINTED[page] : undefined));
	found += examples.length;
}
test('there are examples', () => check(found > 15, found));

await main();
