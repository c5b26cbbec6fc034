// SPDX-License-Identifier: Apache-2.0
import type { WorkspaceOptions } from './workspace.js';

export type { WorkspaceOptions } from './workspace.js';

export interface BackendOptions extends WorkspaceOptions {
	/** The backend's name; a random one if nothing is said. */
	id?: string;
}

/**
 * A sandbox backend for createDeepAgent(): `sandboxBackend(BaseSandbox, { folder })`, with the class of that name of `deepagents`. Each
 * command runs in a cell of its own; the files of one folder stay from one to the next. A search of "/" is one of that folder.
 */
export function sandboxBackend<Base extends object>(BaseSandbox: abstract new () => Base, options?: BackendOptions): Base & {
	readonly id: string;
	/** Ends all that runs, and removes a temporary folder. */
	close(): Promise<void>;
};
