// SPDX-License-Identifier: Apache-2.0
// For the OpenAI Agents SDK (`@openai/agents`): a shell and an editor, for shellTool() and applyPatchTool(). openai-agents.d.ts says how.

import { FileError, Workspace } from './workspace.js';

/** A Shell whose commands each run in a cell of their own. */
export class Shell {
	#workspace;

	constructor(options) {
		this.#workspace = new Workspace(options);
	}

	/** Runs an action's commands one after the other; those behind one that ran too long do not run. */
	async run({ commands, timeoutMs, maxOutputLength }) {
		const output = [];
		for (const command of commands) {
			const done = await this.#workspace.run(command, timeoutMs === undefined ? {} : { timeout: timeoutMs });
			output.push({
				stdout: cut(done.stdout, maxOutputLength), stderr: cut(done.stderr, maxOutputLength),
				outcome: done.isTimeout ? { type: 'timeout' } : { type: 'exit', exitCode: done.exitCode },
			});
			if (done.isTimeout)
				break;
		}
		return maxOutputLength === undefined ? { output } : { output, maxOutputLength };
	}

	/** An Editor of the same files, for applyPatchTool(). applyDiff: the package's own. */
	editor(applyDiff) {
		if (typeof applyDiff !== 'function')
			throw new TypeError("editor() takes the function applyDiff of '@openai/agents'");
		return new Editor(this.#workspace, applyDiff);
	}

	/** Ends all that runs, and removes a temporary folder. */
	close() {
		return this.#workspace.close();
	}
}

if (Symbol.asyncDispose !== undefined)
	Object.defineProperty(Shell.prototype, Symbol.asyncDispose, { value: Shell.prototype.close, writable: true, configurable: true });

class Editor {
	#workspace;
	#applyDiff;

	constructor(workspace, applyDiff) {
		this.#workspace = workspace;
		this.#applyDiff = applyDiff;
	}

	createFile({ path, diff }) {
		return attempt(async () => {
			await this.#workspace.write(path, this.#applyDiff('', diff, 'create'));
			return `Created ${path}`;
		});
	}

	updateFile({ path, diff, moveTo }) {
		return attempt(async () => {
			const before = (await this.#workspace.read(path)).toString();
			await this.#workspace.write(moveTo ?? path, this.#applyDiff(before, diff));
			if (moveTo !== undefined && moveTo !== path)
				await this.#workspace.remove(path);
			return `Updated ${moveTo ?? path}`;
		});
	}

	deleteFile({ path }) {
		return attempt(async () => {
			await this.#workspace.remove(path);
			return `Deleted ${path}`;
		});
	}
}

/** A file that is not there, and a diff that does not fit, are the model's affair. */
async function attempt(act) {
	try {
		return { status: 'completed', output: await act() };
	} catch (error) {
		if (!(error instanceof FileError) && error.name !== 'Error')
			throw error;
		return { status: 'failed', output: error.message };
	}
}

function cut(text, most = Infinity) {
	return text.length > most ? text.slice(0, most) : text;
}
