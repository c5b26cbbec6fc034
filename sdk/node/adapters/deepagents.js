// SPDX-License-Identifier: Apache-2.0
// For Deep Agents (`deepagents`): a sandbox backend whose commands each run in a cell of their own. deepagents.d.ts says how.

import { randomUUID } from 'node:crypto';

import { FileError, Workspace } from './workspace.js';

const ERRORS = new Map(Object.entries({
	ENOENT: 'file_not_found', ENOTDIR: 'file_not_found', EISDIR: 'is_directory', EACCES: 'permission_denied', EPERM: 'permission_denied', EROFS: 'permission_denied',
}));

/** A backend on top of the package's own BaseSandbox, which lists, reads, edits and searches by what is here. */
export function sandboxBackend(BaseSandbox, options = {}) {
	if (typeof BaseSandbox !== 'function')
		throw new TypeError("sandboxBackend() takes the class BaseSandbox of 'deepagents' first");
	return new (extend(BaseSandbox))(options);
}

const extend = (BaseSandbox) => class VitroSandbox extends BaseSandbox {
	#workspace;

	constructor({ id = `vitro-${randomUUID()}`, ...options } = {}) {
		super();
		this.id = id;
		this.#workspace = new Workspace(options);
	}

	async execute(command) {
		const { exitCode, stdout, isTruncated } = await this.#workspace.run(command, { isMerged: true });
		return { output: stdout, exitCode, truncated: isTruncated };
	}

	async uploadFiles(files) {
		const told = [];
		for (const [path, content] of files)
			told.push({ path, error: (await attempt(this.#workspace.write(path, content))).error });
		return told;
	}

	async downloadFiles(paths) {
		const told = [];
		for (const path of paths) {
			const { value = null, error } = await attempt(this.#workspace.read(path));
			told.push({ path, content: value, error });
		}
		return told;
	}

	// What searches everything searches the workspace: the rest is the system's.

	async grep(pattern, path = null, ...rest) {
		return super.grep(pattern, this.#place(path), ...rest);
	}

	async glob(pattern, path = '/') {
		const found = await super.glob(pattern, this.#place(path));
		if (this.#place(path) === path || found.files === undefined)
			return found;
		return { ...found, files: found.files.map((file) => ({ ...file, path: `${this.#workspace.at}/${file.path}` })) };
	}

	/** Ends all that runs, and removes a temporary folder. */
	close() {
		return this.#workspace.close();
	}

	#place(path) {
		return path === null || path === undefined || path === '/' ? this.#workspace.at : path;
	}
};

async function attempt(promise) {
	try {
		return { value: await promise, error: null };
	} catch (error) {
		if (!(error instanceof FileError))
			throw error;
		return { error: ERRORS.get(error.code) ?? 'invalid_path' };
	}
}
