// SPDX-License-Identifier: Apache-2.0
import type { EvalOptions, Sandbox } from '../index.js';
import type { WorkspaceOptions } from './workspace.js';

export type { WorkspaceOptions } from './workspace.js';

export interface CodeToolOptions extends Pick<EvalOptions, 'tools' | 'timeout' | 'policy' | 'files' | 'onLog'> {
	/** A sandbox to use; without it the tool has one of its own, until the program's end. */
	sandbox?: Sandbox;
	/** What the model is told of the tool; else that, with the names, descriptions and schemas of `tools`. */
	description?: string;
}

/** A schema by https://standardschema.dev. */
export interface StandardSchema<Input> {
	readonly '~standard': {
		readonly version: 1;
		readonly vendor: string;
		readonly types?: { readonly input: Input; readonly output: Input };
		readonly validate: (value: unknown) => { readonly value: Input; readonly issues?: undefined } | { readonly issues: readonly { readonly message: string }[] };
		readonly jsonSchema: {
			readonly input: (options: { readonly target: string }) => Record<string, unknown>;
			readonly output: (options: { readonly target: string }) => Record<string, unknown>;
		};
	};
}

export interface CodeTool {
	description: string;
	inputSchema: StandardSchema<{ code: string }>;
	execute(input: { code: string }, options?: { abortSignal?: AbortSignal }): Promise<string>;
}

/**
 * A tool for generateText(), streamText() and agents of the AI SDK: `tools: { run: codeTool({ tools }) }`. Its input is the body of an
 * async function in JavaScript, its output is what that logged, printed and returned, as text. Where it fails it throws, and the SDK
 * tells the model why.
 */
export function codeTool(options?: CodeToolOptions): CodeTool;

interface PathOptions {
	path: string;
	abortSignal?: AbortSignal;
}

interface ProcessOptions {
	command: string;
	workingDirectory?: string;
	env?: Record<string, string>;
	abortSignal?: AbortSignal;
}

export interface SandboxProcess {
	readonly pid?: number;
	readonly stdout: ReadableStream<Uint8Array>;
	readonly stderr: ReadableStream<Uint8Array>;
	wait(): Promise<{ exitCode: number }>;
	kill(): Promise<void>;
}

/**
 * An Experimental_SandboxSession of the AI SDK: `generateText({ experimental_sandbox: session, … })`. Each command runs in a cell of
 * its own; the files of one folder stay from one to the next. A process that is spawned has no stdin, lives as long as its timeout lets
 * it, and takes all that it started with it.
 */
export class SandboxSession {
	constructor(options?: WorkspaceOptions);
	readonly description: string;
	run(options: ProcessOptions): Promise<{ exitCode: number; stdout: string; stderr: string }>;
	spawn(options: ProcessOptions & { stdin: true }): Promise<never>;
	spawn(options: ProcessOptions & { stdin?: boolean }): Promise<SandboxProcess>;
	readFile(options: PathOptions): Promise<ReadableStream<Uint8Array> | null>;
	readBinaryFile(options: PathOptions): Promise<Uint8Array | null>;
	readTextFile(options: PathOptions & { encoding?: string; startLine?: number; endLine?: number }): Promise<string | null>;
	writeFile(options: PathOptions & { content: ReadableStream<Uint8Array> }): Promise<void>;
	writeBinaryFile(options: PathOptions & { content: Uint8Array }): Promise<void>;
	writeTextFile(options: PathOptions & { content: string; encoding?: string }): Promise<void>;
	stat(options: PathOptions): Promise<{ type: 'file' | 'directory' | 'other'; size: number } | null>;
	listDirectory(options: PathOptions): Promise<{ name: string; type: 'file' | 'directory' | 'symlink' | 'other' }[] | null>;
	deleteFile(options: PathOptions): Promise<boolean>;
	/** Ends all that runs, and removes a temporary folder. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}
