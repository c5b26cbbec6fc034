// SPDX-License-Identifier: Apache-2.0
import type { Policy, Sandbox } from '../index.js';

export interface WorkspaceOptions {
	/** A folder to work in, which commands may write to, and which is there afterwards; not one with this package's program in it. Without it: a temporary one, until close(). */
	folder?: string | URL;
	/** Where commands find it; /workspace if nothing is said. */
	at?: string;
	/** What commands may use apart from that. */
	policy?: Policy;
	/** A sandbox to use, which stays open; without it there is one for this alone. */
	sandbox?: Sandbox;
	/** Milliseconds for each command; those of the policy if nothing is said. */
	timeout?: number;
	/** What reads commands; bash, or sh where that is not there. */
	shell?: string;
}
