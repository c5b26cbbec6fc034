#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/*
 * Packs the package: pack.mjs BUILD OUT writes OUT/vitro-sandbox-VERSION.tgz. It carries the program and its runtime for
 * Node in bin, as `make build` leaves them in BUILD. Links are followed: npm would leave them out.
 */

import { execFileSync } from 'node:child_process';
import { accessSync, chmodSync, constants, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TOP = join(HERE, '..', '..');
const SOURCES = ['index.js', 'index.d.ts', 'lib', 'adapters', 'compat', 'README.md', 'package.json'];
const RUNTIME = /\.(?:mjs|cjs|node)$/;

/** The one version, of the whole project. */
function readVersion() {
	const match = /^\s*version: '([^']+)'/m.exec(readFileSync(join(TOP, 'meson.build'), 'utf8'));
	if (match === null)
		throw new Error('meson.build names no version');
	return match[1];
}

function stage(build, folder) {
	for (const name of SOURCES)
		cpSync(join(HERE, name), join(folder, name), { recursive: true, dereference: true });
	cpSync(join(TOP, 'LICENSE'), join(folder, 'LICENSE'));
	const described = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
	writeFileSync(join(folder, 'package.json'), `${JSON.stringify({ ...described, version: readVersion(), os: ['linux'], cpu: [process.arch] }, null, 2)}\n`);
	mkdirSync(join(folder, 'bin', 'node'), { recursive: true });
	accessSync(join(build, 'vitro'), constants.X_OK);
	cpSync(join(build, 'vitro'), join(folder, 'bin', 'vitro'));
	chmodSync(join(folder, 'bin', 'vitro'), 0o755);
	const runtime = existsSync(join(build, 'node')) ? readdirSync(join(build, 'node')).filter((name) => RUNTIME.test(name)) : [];
	if (!runtime.some((name) => name.endsWith('.node')))
		throw new Error(`${join(build, 'node')} has no runtime: install libnode-dev, or set -Dnode_headers, and make build`);
	for (const name of runtime)
		cpSync(join(build, 'node', name), join(folder, 'bin', 'node', name), { dereference: true });
}

const [build, out] = process.argv.slice(2).map((path) => resolve(path));
if (out === undefined)
	throw new Error('usage: pack.mjs BUILD OUT');
const folder = mkdtempSync(join(tmpdir(), 'vitro-pack-'));
try {
	stage(build, folder);
	mkdirSync(out, { recursive: true });
	const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--pack-destination', out], { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
	console.log(join(out, basename(packed.trim().split('\n').at(-1))));
} finally {
	rmSync(folder, { recursive: true });
}
