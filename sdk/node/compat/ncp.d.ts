// SPDX-License-Identifier: Apache-2.0

import type { Policy } from '../index.js';

export interface SandboxTool {
	name: string;
	description: string;
	inputSchema?: Record<string, unknown>;
}

export interface SandboxMessage {
	type: 'execute' | 'tool_call' | 'tool_result' | 'log' | 'result' | 'error' | 'ready';
	id?: string;
	toolName?: string;
	params?: unknown;
	result?: unknown;
	error?: string;
	data?: unknown;
	code?: string;
	tools?: SandboxTool[];
	level?: 'log' | 'warn' | 'error' | 'debug';
}

export interface SandboxExecutionResult {
	result: unknown;
	logs: string[];
	error?: string;
	/** Milliseconds. */
	duration: number;
}

export interface SubprocessSandboxConfig {
	/** Milliseconds; 30000. */
	timeout: number;
	/** MB that a call may use beyond what an idle Node takes; 128. */
	memoryLimit: number;
	/** true: PATH and NODE_ENV=sandbox; false: the whole environment. */
	minimalEnv: boolean;
	/** Instead of the default: no network, a private /tmp, and the working directory for reading, unless that is the home folder or one around it. */
	policy?: Policy;
}

export class SubprocessSandbox {
	constructor(config?: Partial<SubprocessSandboxConfig>);
	/** Failures of the code resolve with `error`; only a sandbox that cannot start rejects. */
	execute(
		code: string, tools: SandboxTool[], toolExecutor: (toolName: string, params: unknown) => Promise<unknown>,
	): Promise<SandboxExecutionResult>;
	/** Ends all that runs. */
	terminate(): void;
	isRunning(): boolean;
}

export function createSubprocessSandbox(config?: Partial<SubprocessSandboxConfig>): SubprocessSandbox;
