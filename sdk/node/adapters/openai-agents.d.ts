// SPDX-License-Identifier: Apache-2.0
import type { WorkspaceOptions } from './workspace.js';

export type { WorkspaceOptions } from './workspace.js';

export interface ShellAction {
	commands: string[];
	timeoutMs?: number | undefined;
	maxOutputLength?: number | undefined;
}

export interface ShellResult {
	output: { stdout: string; stderr: string; outcome: { type: 'timeout' } | { type: 'exit'; exitCode: number | null } }[];
	maxOutputLength?: number;
}

interface EditResult {
	status: 'completed' | 'failed';
	output: string;
}

export interface Editor {
	createFile(operation: { type: 'create_file'; path: string; diff: string }): Promise<EditResult>;
	updateFile(operation: { type: 'update_file'; path: string; diff: string; moveTo?: string | undefined }): Promise<EditResult>;
	deleteFile(operation: { type: 'delete_file'; path: string }): Promise<EditResult>;
}

/**
 * A Shell of the OpenAI Agents SDK: `shellTool({ shell: new Shell({ folder }) })`. Each command runs in a cell of its own; the files of
 * one folder stay from one to the next.
 */
export class Shell {
	constructor(options?: WorkspaceOptions);
	run(action: ShellAction): Promise<ShellResult>;
	/** An Editor of the same files: `applyPatchTool({ editor: shell.editor(applyDiff) })`, with the function of `@openai/agents`. */
	editor(applyDiff: (input: string, diff: string, mode?: 'default' | 'create') => string): Editor;
	/** Ends all that runs, and removes a temporary folder. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}
