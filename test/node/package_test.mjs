#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Packing the package, installing it from its tarball where no registry can be reached, and what is then there; from plain
// JavaScript and from TypeScript.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { BINARY, ROOT, check, checkEqual, main, skip, testNode as test } from '../lib/vitrotest.mjs';

const TYPESCRIPT = join(process.env.VITRO_TEST_NPM ?? join(ROOT, 'build', 'npm'), 'node_modules');
const SAMPLES = join(ROOT, 'test', 'node', 'typescript');

/** An environment that names neither the source nor a registry that answers. */
function clean(home) {
	const { VITRO_BINARY: _, NODE_PATH: __, ...rest } = process.env;
	return { ...rest, HOME: home, npm_config_registry: 'http://127.0.0.1:9', npm_config_offline: 'true', npm_config_update_notifier: 'false', npm_config_cache: join(home, '.npm') };
}

function execute(command, args, options) {
	try {
		return execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], ...options });
	} catch (error) {
		check(false, `${command} ${args.join(' ')}: ${error.message}\n${error.stdout}`);
	}
}

let made = null;

/** A project that has the package from its tarball, and nothing else; one for all tests. */
function useProject() {
	made ??= makeProject();
	return made;
}

function makeProject() {
	const place = mkdtempSync(join(tmpdir(), 'vitro-test-package-'));
	process.on('exit', () => rmSync(place, { recursive: true }));
	const env = clean(place);
	const tarball = execute(process.execPath, [join(ROOT, 'sdk', 'node', 'pack.mjs'), dirname(BINARY), place], { env }).trim();
	const project = join(place, 'project');
	mkdirSync(project);
	writeFileSync(join(project, 'package.json'), '{"name": "user", "private": true, "type": "module"}\n');
	execute('npm', ['install', '--no-audit', '--no-fund', tarball], { cwd: project, env });
	return { project, env, installed: join(project, 'node_modules', 'vitro-sandbox'), tarball };
}

test('the tarball has all that is needed, and runs nothing when it is installed', () => {
	const { installed, tarball, project } = useProject();
	const described = JSON.parse(readFileSync(join(installed, 'package.json'), 'utf8'));
	const version = /^\s*version: '([^']+)'/m.exec(readFileSync(join(ROOT, 'meson.build'), 'utf8'))[1];
	checkEqual([described.version, described.scripts, described.dependencies], [version, undefined, undefined], 'what package.json says');
	check(tarball.endsWith(`vitro-sandbox-${version}.tgz`), tarball);
	const source = JSON.parse(readFileSync(join(ROOT, 'sdk', 'node', 'package.json'), 'utf8'));
	checkEqual(source.version, version, "the source's package.json");
	for (const name of ['index.js', 'index.d.ts', 'lib/codec.mjs', 'compat/ncp.js', 'compat/ncp.d.ts', 'adapters/ai.js', 'adapters/ai.d.ts', 'adapters/workspace.d.ts', 'bin/vitro', 'LICENSE', 'README.md'])
		check(existsSync(join(installed, name)), `${name} is not there`);
	checkEqual(Object.keys(JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')).packages).length, 2, 'packages that were installed');
});

test('it works from plain JavaScript, with the program and the runtime that it carries', () => {
	const { project, env, installed } = useProject();
	writeFileSync(join(project, 'use.mjs'), `
		import { Sandbox } from 'vitro-sandbox';
		import { findBinary } from './node_modules/vitro-sandbox/lib/binary.js';
		const sandbox = new Sandbox({ policy: { require: 'best-effort' } });
		console.log(JSON.stringify([findBinary(), (await sandbox.run(['echo', 'x'])).stdout, await sandbox.eval('return 1 + 1')]));
		await sandbox.close();`);
	const [binary, printed, value] = JSON.parse(execute(process.execPath, ['use.mjs'], { cwd: project, env }));
	checkEqual([binary, printed, value], [join(installed, 'bin', 'vitro'), 'x\n', 2], 'what it does');
	const command = join(project, 'node_modules', '.bin', 'vitro');
	checkEqual(execute(command, ['run', '--set', 'require=best-effort', '--', 'echo', 'x'], { cwd: project, env }), 'x\n', 'the command');
});

/** Compiles a file of the project. */
function compile(file, more) {
	const { project, env } = useProject();
	const compilerOptions = { strict: true, target: 'es2022', module: 'nodenext', types: ['node'], typeRoots: [join(TYPESCRIPT, '@types')], ...more };
	writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: [file] }));
	execute(process.execPath, [join(TYPESCRIPT, 'typescript', 'bin', 'tsc'), '-p', '.'], { cwd: project, env });
}

test('the adapters are what the types of the frameworks say', () => {
	const { project } = useProject();
	if (!existsSync(join(TYPESCRIPT, '..', 'stamp')))
		skip('build/npm has no frameworks: tools/setup test');
	cpSync(join(SAMPLES, 'frameworks.ts'), join(project, 'frameworks.ts'));
	const paths = { ai: ['ai/dist/index.d.ts'], deepagents: ['deepagents/dist/index.d.ts'], '@openai/agents': ['@openai/agents/dist/index.d.ts'] };
	compile('frameworks.ts', { noEmit: true, skipLibCheck: true, paths: Object.fromEntries(Object.entries(paths).map(([name, [file]]) => [name, [join(TYPESCRIPT, file)]])) });
});

/** The names of an object's members in the text of a type, on one level. */
function membersOf(text) {
	return [...text.replace(/\{[^{}]*\}/g, '').matchAll(/(?<=^|[\s;{])([$\w]+)\?:/g)].map(([, name]) => name).sort();
}

test('a policy has the members in TypeScript that its schema has', () => {
	const { properties } = JSON.parse(readFileSync(join(dirname(BINARY), 'docs', 'policy.schema.json'), 'utf8'));
	const [, body] = /export interface PolicyObject \{\n(.*?)\n\}/s.exec(readFileSync(join(ROOT, 'sdk', 'node', 'index.d.ts'), 'utf8'));
	checkEqual(membersOf(body), Object.keys(properties).sort(), 'its members');
	for (const name of ['limits', 'files', 'env']) {
		const [, inner] = new RegExp(`\\b${name}\\?: \\{([^{}]*)\\}`, 's').exec(body);
		checkEqual(membersOf(inner), Object.keys(properties[name].properties).sort(), name);
	}
	for (const name of ['network', 'require'])
		for (const value of properties[name].enum)
			check(new RegExp(`\\b${name}\\?: [^;]*'${value}'`).test(body), `${name}: ${value}`);
});

test('it works from TypeScript, under --strict', () => {
	const { project, env } = useProject();
	if (!existsSync(join(TYPESCRIPT, 'typescript')))
		skip('build/npm has no typescript: tools/setup test');
	cpSync(join(SAMPLES, 'sample.ts'), join(project, 'sample.ts'));
	compile('sample.ts', { lib: ['es2022'], types: [], /* as TypeScript 7 has it where nothing is said */ noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, skipLibCheck: false });
	const said = JSON.parse(execute(process.execPath, ['sample.js'], { cwd: project, env }));
	checkEqual(said, ['typed\n', ['ToolError 1', 'Timeout', 'Cancelled'], 'told', 'function', null, ['adapted\n', '42']], 'what it does');
	writeFileSync(join(project, 'wrong.ts'), "import { Sandbox } from 'vitro-sandbox';\nnew Sandbox({ polic: 'strict' });\n" +
		"new Sandbox({ policy: { limit: {} } });\nnew Sandbox({ policy: { files: { red: [] } } });\nnew Sandbox({ policy: { network: 'internet' } });\n");
	let message = '';
	try {
		execFileSync(process.execPath, [join(TYPESCRIPT, 'typescript', 'bin', 'tsc'), '--strict', '--noEmit', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2022', '--typeRoots', join(TYPESCRIPT, '@types'), '--types', 'node', 'wrong.ts'], { cwd: project, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
	} catch (error) {
		message = error.stdout;
	}
	check(message.includes("'polic' does not exist"), `a wrong option is not found: ${message}`);
	for (const line of [3, 4, 5])
		check(message.includes(`wrong.ts(${line},`), `a mistake in a policy is not found: ${message}`);
});

await main();
