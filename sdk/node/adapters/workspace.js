// SPDX-License-Identifier: Apache-2.0
/*
 * A folder in which an agent works by commands, each in a cell of its own. The folder is all that stays from one to the
 * next. Its files are read and written in cells as well.
 */

import { accessSync, constants, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { findBinary } from '../lib/binary.js';
import { Refused, errorOf } from '../lib/errors.js';
import { checkNames } from '../lib/options.js';
import { Sandbox } from '../lib/sandbox.js';

const INSIDE = readFileSync(new URL('inside.js', import.meta.url), 'utf8');
const OPTIONS = ['folder', 'at', 'policy', 'sandbox', 'timeout', 'shell'];
const SHELLS = ['/bin/bash', '/bin/sh'];
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
const TIMEOUT = 124; // exit codes as `vitro run` has them
const KILLED = 137;

// Its words: the folder to work in, the variables, and the command.
const BEGIN = 'cd -- "$1" || exit; shift; while [ $# -gt 1 ]; do export "$1"; shift; done; ';

const temporary = new Set(); // folders that are removed at the program's end, if not before

/** null, or why it could not be: a command may have left a folder that its owner must not look into. */
function tryRemove(folder) {
	temporary.delete(folder);
	if (!temporary.size)
		process.removeListener('exit', removeAll);
	try {
		rmSync(folder, { recursive: true, force: true });
		return null;
	} catch (error) {
		return error;
	}
}

function removeAll() {
	for (const folder of [...temporary])
		tryRemove(folder);
}

/** A file cannot be read or written; `code` is as in errors of node:fs. */
export class FileError extends Error {
	constructor(message, code) {
		super(message);
		this.name = 'FileError';
		this.code = code;
	}
}

export class Workspace {
	#sandbox;
	#isOwn;
	#policy;
	#timeout;
	#shell;
	#temporary = null;
	#isClosed = false;

	/** workspace.d.ts: WorkspaceOptions. */
	constructor(options = {}) {
		checkNames(options, OPTIONS);
		const { folder, at = '/workspace', policy, sandbox, timeout, shell = SHELLS.find(canExecute) ?? 'sh' } = options;
		if (typeof at !== 'string' || !at.startsWith('/'))
			throw new TypeError('at is an absolute path');
		this.at = at;
		this.#timeout = timeout;
		this.#shell = shell;
		this.#isOwn = sandbox === undefined;
		this.#sandbox = sandbox ?? new Sandbox();
		this.#policy = withFolder(policy, folder === undefined ? this.#makeFolder() : checkFolder(pathOf(folder)), at);
	}

	#makeFolder() {
		if (!temporary.size)
			process.once('exit', removeAll);
		this.#temporary = mkdtempSync(join(tmpdir(), 'vitro-workspace-'));
		temporary.add(this.#temporary);
		return this.#temporary;
	}

	#removeFolder() {
		const error = this.#temporary === null ? null : tryRemove(this.#temporary);
		if (error !== null)
			process.emitWarning(`a workspace's folder stays: ${error.message}`, 'VitroWarning');
		this.#temporary = null;
	}

	/**
	 * Runs a command of the shell: {exitCode, stdout, stderr, isTimeout, isTruncated}. Throws where it could not be begun, and
	 * the signal's reason where that ended it. isMerged: what goes to standard error is in stdout, in its order.
	 */
	async run(command, { cwd = '.', env = {}, signal, timeout = this.#timeout, isMerged = false, onOutput } = {}) {
		this.#checkOpen();
		if (typeof command !== 'string')
			throw new TypeError(`a command is a text, not ${typeof command}`);
		const words = [this.#shell, '-c', `${isMerged ? 'exec 2>&1; ' : ''}${BEGIN}exec "$0" -c "$1"`, this.#shell, cwd, ...Object.entries(env).map(sayVariable), command];
		const result = await this.#sandbox.run(words, { policy: this.#policy, signal, timeout, onOutput, result: true });
		if (signal?.aborted && result.status === 'cancelled')
			throw signal.reason;
		if (['refused', 'lost', 'cancelled'].includes(result.status))
			throw errorOf(result);
		return readResult(result, isMerged);
	}

	/** The bytes of a file. Throws FileError. */
	read(file, signal = undefined) {
		return this.#act('read', file, signal);
	}

	/** Makes a file, and the folders around it. */
	async write(file, content, signal = undefined) {
		await this.#act('write', file, signal, content);
	}

	/** {type, size}; links are followed. */
	stat(file, signal = undefined) {
		return this.#act('stat', file, signal);
	}

	/** [{name, type}] of a folder. */
	list(folder, signal = undefined) {
		return this.#act('list', folder, signal);
	}

	/** Removes a file, or a link. */
	async remove(file, signal = undefined) {
		await this.#act('remove', file, signal);
	}

	/** Ends all that runs, and removes a temporary folder. A sandbox that was given stays open. */
	async close() {
		this.#isClosed = true;
		if (this.#isOwn)
			await this.#sandbox.close();
		this.#removeFolder();
	}

	#checkOpen() {
		if (this.#isClosed)
			throw new Refused('the workspace is closed');
	}

	async #act(act, file, signal, content = '') {
		this.#checkOpen();
		if (typeof file !== 'string' || !file || file.includes('\0'))
			throw new FileError(`a path is a text, not ${JSON.stringify(file)}`, 'EINVAL');
		const code = `${INSIDE}\nreturn attempt(${JSON.stringify(act)}, ${JSON.stringify(file)});`;
		const told = await this.#sandbox.eval(code, { policy: this.#policy, signal, timeout: this.#timeout, stdin: content, filename: 'workspace' });
		if (typeof told?.code === 'string')
			throw new FileError(String(told.message), told.code);
		return told.value;
	}
}

/** What a method of an adapter gives where a file is not there. */
export async function unlessMissing(promise, otherwise) {
	try {
		return await promise;
	} catch (error) {
		if (error instanceof FileError && ['ENOENT', 'ENOTDIR'].includes(error.code))
			return otherwise;
		throw error;
	}
}

function readResult(result, isMerged) {
	const told = { exitCode: result.exitCode, stdout: result.stdout, stderr: result.stderr, isTimeout: result.status === 'timeout', isTruncated: result.dropped.stdout + result.dropped.stderr > 0 };
	if (result.ok || result.status === 'error' && result.exitCode)
		return { ...told, exitCode: result.exitCode ?? 0 };
	const why = `vitro: ${result.error.message}\n`;
	const exitCode = ['timeout', 'cpu_limit'].includes(result.status) ? TIMEOUT : result.status === 'crashed' && result.signal ? 128 + result.signal : KILLED;
	return { ...told, exitCode, ...isMerged ? { stdout: told.stdout + why } : { stderr: told.stderr + why } };
}

function sayVariable([name, value]) {
	if (!VARIABLE.test(name) || typeof value !== 'string')
		throw new TypeError(`env has texts by the names of variables, not ${JSON.stringify(name)}: ${typeof value}`);
	return `${name}=${value}`;
}

function pathOf(folder) {
	return folder instanceof URL ? fileURLToPath(folder) : resolve(folder);
}

/** What runs outside of cells must not be for a command to change. */
function checkFolder(folder) {
	const real = tryRealpath(folder);
	for (const program of [findBinary(), process.execPath].map(tryRealpath))
		if (`${program}/`.startsWith(`${real}/`))
			throw new Refused(`a command could change '${program}', which is in '${folder}' and runs outside of cells: give a folder beside it`);
	return folder;
}

function tryRealpath(path) {
	try {
		return realpathSync(path);
	} catch {
		return path;
	}
}

/** The policy, with that folder to work in. */
function withFolder(policy, folder, at) {
	const made = typeof policy === 'string' || policy instanceof URL ? { extends: policy } : { ...policy };
	return { ...made, files: { ...made.files, write: [...made.files?.write ?? [], { from: folder, to: at }], cwd: at } };
}

function canExecute(file) {
	try {
		accessSync(file, constants.X_OK);
		return true;
	} catch {
		return false;
	}
}
