// SPDX-License-Identifier: Apache-2.0
/*
 * A folder in which an agent works by commands, each in a cell of its own. The folder is all that stays from one to the
 * next. Its files are read and written in cells as well.
 */

import { execFile, execFileSync } from 'node:child_process';
import { accessSync, constants, mkdtempSync, readFileSync, realpathSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { findBinary } from '../lib/binary.js';
import { endAll } from '../lib/connection.js';
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

const REMOVAL_MS = 60_000;

const temporary = new Map(); // folders that are removed at the program's end, if not before, with the runs under way in each

/*
 * Commands may have left links and names without end in a folder, and may change it while it is removed. So vitro's own program
 * removes it, by descriptors, through no link, and nothing outside of it: Node has only paths for that.
 */
const removal = (folder) => [findBinary(), ['discard', folder], { timeout: REMOVAL_MS, killSignal: 'SIGKILL', stdio: ['ignore', 'ignore', 'pipe'] }];
const whyNot = (error) => String(error.stderr ?? '').trim().replace(/^vitro: /, '') || error.message;

function isRemovedAsEmpty(folder) {
	try {
		rmdirSync(folder);
		return true;
	} catch {
		return false;
	}
}

async function removeFolder(folder) {
	try {
		if (!isRemovedAsEmpty(folder))
			await promisify(execFile)(...removal(folder));
	} catch (error) {
		process.emitWarning(`a workspace's folder stays: ${whyNot(error)}`, 'VitroWarning');
	}
}

/** At the program's end. Where something may still run in a folder, that stays. */
function removeAll() {
	const areEnded = endAll();
	for (const [folder, runs] of temporary) {
		try {
			if (runs.size && !areEnded)
				throw new Error(`what runs in '${folder}' has not ended`);
			if (!isRemovedAsEmpty(folder))
				execFileSync(...removal(folder));
		} catch (error) {
			// What emitWarning() says is said later, and there is no later.
			process.emit('warning', Object.assign(new Error(`a workspace's folder stays: ${whyNot(error)}`), { name: 'VitroWarning' }));
		}
	}
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
	#runs = new Map(); // those under way, with what ends them
	#closing = null;

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
		temporary.set(this.#temporary, this.#runs);
		return this.#temporary;
	}

	/**
	 * Runs a command of the shell: {exitCode, stdout, stderr, isTimeout, isTruncated}. Throws where it could not be begun, and
	 * the signal's reason where that ended it. isMerged: what goes to standard error is in stdout, in its order.
	 */
	async run(command, { cwd = '.', env = {}, signal, timeout = this.#timeout, isMerged = false, onOutput } = {}) {
		if (typeof command !== 'string')
			throw new TypeError(`a command is a text, not ${typeof command}`);
		const words = [this.#shell, '-c', `${isMerged ? 'exec 2>&1; ' : ''}${BEGIN}exec "$0" -c "$1"`, this.#shell, cwd, ...Object.entries(env).map(sayVariable), command];
		const result = await this.#within(signal, (ended) => this.#sandbox.run(words, { policy: this.#policy, signal: ended, timeout, onOutput, result: true }));
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

	/** Ends all that runs, waits for its end, and removes a temporary folder. A sandbox that was given stays open. */
	async close() {
		await (this.#closing ??= this.#end());
	}

	async #end() {
		for (const controller of this.#isOwn ? [] : this.#runs.values())
			controller.abort(new Refused('the workspace is closed'));
		if (this.#isOwn)
			await this.#sandbox.close();
		await Promise.allSettled(this.#runs.keys());
		if (this.#temporary === null)
			return;
		await removeFolder(this.#temporary);
		temporary.delete(this.#temporary);
		if (!temporary.size)
			process.removeListener('exit', removeAll);
	}

	/** Does something in a cell, which the signal ends, or close(). */
	async #within(signal, act) {
		if (this.#closing !== null)
			throw new Refused('the workspace is closed');
		const controller = new AbortController();
		const run = act(signal === undefined ? controller.signal : anyOf(signal, controller));
		this.#runs.set(run, controller);
		try {
			return await run;
		} finally {
			this.#runs.delete(run);
			controller.abort(); // of no use any more: the caller's signal may live on
		}
	}

	async #act(act, file, signal, content = '') {
		if (typeof file !== 'string' || !file || file.includes('\0'))
			throw new FileError(`a path is a text, not ${JSON.stringify(file)}`, 'EINVAL');
		const code = `${INSIDE}\nreturn attempt(${JSON.stringify(act)}, ${JSON.stringify(file)});`;
		const told = await this.#within(signal, (ended) =>
			this.#sandbox.eval(code, { policy: this.#policy, signal: ended, timeout: this.#timeout, stdin: content, filename: 'workspace' }));
		if (typeof told?.code === 'string')
			throw new FileError(String(told.message), told.code);
		return told.value;
	}
}

/** A signal of either; AbortSignal.any() is not in Node 18. */
export function anyOf(signal, controller) {
	signal.addEventListener('abort', () => controller.abort(signal.reason), { once: true, signal: controller.signal });
	if (signal.aborted)
		controller.abort(signal.reason);
	return controller.signal;
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
