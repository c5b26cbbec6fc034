// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />
/// <reference lib="esnext.disposable" />

/** A grant of a host's path: at the same place, or at another one. */
export type Grant = string | URL | { from: string | URL; to: string };

/** Milliseconds, or a text with a unit: '500ms', '30s', '2m'. */
export type Duration = number | string;
/** In the unit of its key, or a text with one: '64K', '512M', '2G'. */
export type Size = number | string;

/** What calls may use, as in a policy file (vitro-policy(5)). Relative paths are by the working directory. */
export interface PolicyObject {
	$schema?: string;
	extends?: string | URL;
	limits?: {
		wall_ms?: Duration; queue_ms?: Duration; grace_ms?: Duration; cpu_ms?: Duration | null; cpus?: number | null; memory_mb?: Size; pids?: number;
		open_files?: number; file_mb?: Size; tmp_mb?: Size; stdout_kb?: Size; stderr_kb?: Size; result_mb?: Size;
	};
	files?: { read?: Grant[]; write?: Grant[]; deny?: (string | URL)[]; sockets?: (string | URL)[]; cwd?: string | URL };
	network?: 'none' | 'loopback' | 'host';
	env?: { pass?: string[]; set?: Record<string, string> };
	syscalls?: string;
	require?: 'strict' | 'full' | 'best-effort';
}

/** An object, the name of a built-in policy (`default`, `strict`, `compute`), or the path or URL of a policy file. */
export type Policy = PolicyObject | string | URL;

export type Bytes = string | ArrayBufferView | ArrayBuffer;

export type Status =
	| 'ok' | 'error' | 'timeout' | 'cpu_limit' | 'memory_limit' | 'crashed' | 'no_result' | 'result_limit' | 'cancelled' | 'refused'
	| 'lost';

export interface LogLine {
	level: string;
	text: string;
}

/** How a call ended, and all that is known of it. */
export class Result<T = unknown> {
	constructor(fields: Partial<Result<T>>);
	readonly callId: string;
	/** One cause, one status. */
	readonly status: Status;
	readonly ok: boolean;
	/** What the code returned; undefined of a command. */
	readonly value: T;
	/** What went wrong. Where a tool failed, all of it is its own words. */
	readonly error: { type: string; message: string; traceback: string | null } | null;
	/** Of its process, where it exited by itself. */
	readonly exitCode: number | null;
	/** That it died of; 9 where vitro ended it. */
	readonly signal: number | null;
	/** What it printed, as text; U+FFFD stands for what is not UTF-8. */
	readonly stdout: string;
	readonly stderr: string;
	readonly stdoutBytes: Buffer;
	readonly stderrBytes: Buffer;
	/** How many bytes, or lines, are not there, beyond the limits. */
	readonly dropped: { stdout: number; stderr: number; logs?: number };
	/** What code said by `console`: `info`, `warning`, `error` and `debug`. What it writes to process.stdout is in `stdout`. */
	readonly logs: LogLine[];
	readonly usage: { wallMs: number; cpuMs: number; peakMemoryKb: number | null; processes: number | null };
	/** What really held it: the level, and the mechanism per property; null where it came to no cell. */
	readonly isolation: Record<string, unknown> | null;
	/** The files that `collect` named, by their names. */
	readonly files: Map<string, Buffer>;
	/** null: denials were not observed. */
	readonly denials: unknown[] | null;
	/** Something in the cell would not die in time. */
	readonly unreaped: boolean;
	/** The members of `vitro run --json`. */
	toJSON(): Record<string, unknown>;
}

/** The base of all that vitro throws. */
export class VitroError extends Error {
	constructor(message?: string, result?: Result | null, options?: { cause?: unknown });
	/** The call's whole result, with its output and usage; null where there was no call to have one. */
	readonly result: Result | null;
}

/**
 * The tool itself failed: the code threw, the command exited with another code than 0. What was thrown in the cell is
 * never thrown here as its own class, since a cell's word is only data. Where code did not catch what a tool of eval()'s threw, `cause` is
 * that: the error itself, with its stack.
 */
export class ToolError extends VitroError {
	/** The name of what was thrown, in the cell's own words. */
	readonly type: string;
	/** The stack in the cell, as text. */
	readonly traceback: string | null;
}

/** The call ran past its deadline, or no cell was free for it in time. */
export class Timeout extends VitroError {}
/** The call used more CPU time than `limits.cpu_ms`. */
export class CpuLimit extends VitroError {}
/** The call used more memory than `limits.memory_mb`. */
export class MemoryLimit extends VitroError {}
/** The call's process died of a signal (`result.signal`), or broke its protocol. */
export class Crashed extends VitroError {}
/** The call's process ended without giving a result, as by process.exit(0). */
export class NoResult extends VitroError {}
/** The result is larger than `limits.result_mb`. */
export class ResultLimit extends VitroError {}
/** The call was ended by its AbortSignal, whose reason is `cause`, or by close(). */
export class Cancelled extends VitroError {
	readonly code: 'ABORT_ERR';
}
/** The call was not begun: its policy is not valid or cannot be enforced on this machine, or the request is wrong. */
export class Refused extends VitroError {}
/** The supervisor itself failed. The call may or may not have run, so it is never made again by itself. */
export class Lost extends VitroError {}
/** vitro cannot work here: another operating system than Linux, or its program is not there. */
export class Unsupported extends VitroError {}

/** A value that cannot be sent: it is no plain data. The message says where in it, what, and what to do. */
export class NotPlain extends TypeError {}
/** What came is no value. */
export class Malformed extends Error {}

/** A value of another language that JavaScript has no type for (docs/values.md); it is sent again as what it was. */
export class Foreign {
	constructor(type: string, value: unknown);
	readonly type: 'decimal' | 'uuid' | 'complex' | 'date' | 'time' | 'datetime' | 'timedelta' | 'ndarray' | 'npscalar';
	readonly value: unknown;
	toString(): string;
	toJSON(): unknown;
}

export interface SandboxOptions {
	/** What calls may use. Without it: the system's runtime paths for reading, a private /tmp, no network, 512 MB, 30 s. */
	policy?: Policy;
	/** The Node in the cells; this program's own if none is given. */
	node?: string;
	/** false: each call has a Node that is started anew, with an address space of its own making, though it takes longer to make ready. */
	fork?: boolean;
	/** Modules that cells have imported already: of Node by name, others by path or URL. One that cannot be imported is a warning of the process (`VitroWarning`). */
	preload?: (string | URL)[];
	/** The path of a server's socket (vitro-serve(1)). Without it the sandbox starts a supervisor of its own. */
	socket?: string;
	/** How many cells wait for calls, at the least and at the most, for each kind of call; 0: 2 and 64. */
	readyMin?: number;
	readyMax?: number;
	/** Hears what the supervisor says of itself; levels are those of syslog(3). */
	onSupervisorLog?: (level: number | string, text: string) => void;
}

export interface CallOptions {
	/** Milliseconds, in place of the policy's deadline, be it shorter or longer. */
	timeout?: number;
	/** A policy in place of the sandbox's. */
	policy?: Policy;
	/** Ends the cell at once when it aborts. */
	signal?: AbortSignal;
	/** Hears what is printed, as it comes. What a call-back throws ends the call, and is thrown. */
	onStdout?: (text: string) => void;
	onStderr?: (text: string) => void;
	/** Hears the same as bytes. */
	onOutput?: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
	/** Hears what is logged, which is what code says by `console`, as it comes; the text is raw, whatever is in it. */
	onLog?: (line: LogLine) => void;
	/** true: gives a Result, however the call ended, and throws nothing but TypeError, of a wrong option. */
	result?: boolean;
	/** A text of one's own that the result carries. */
	callId?: string;
}

export interface ToolContext {
	/** Aborts when the call that asked is over. */
	signal: AbortSignal;
	callId: string;
}

// The code in a cell chooses the parameters, whatever a tool's own types say: give an inputSchema, or check them.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type ToolFunction = (params: any, context: ToolContext) => unknown;

export interface ToolDefinition {
	description?: string;
	/** Parameters are checked against it before the function runs. */
	inputSchema?: object;
	/** It runs in this program. What it throws is thrown in the code, with its message and code. */
	run: ToolFunction;
}

/** The same, with `run` by the name that it has in other libraries. */
export interface ExecutableTool extends Omit<ToolDefinition, 'run'> {
	execute: ToolFunction;
}

export type Tools =
	| Record<string, ToolFunction | ToolDefinition | ExecutableTool>
	| Map<string, ToolFunction | ToolDefinition | ExecutableTool>
	| ((ToolDefinition | ExecutableTool) & { name: string })[];

export interface EvalOptions extends CallOptions {
	/** Functions of this program that the code may call: `ns:method` as `ns.method(params)`, any as `tools["exact name"](params)`. */
	tools?: Tools;
	/** Contents, by relative names, to be put into the cell's working directory before. */
	files?: Record<string, Bytes> | Map<string, Bytes>;
	/** Patterns such as `out/**`: files of the working directory that come back in `files` of the result. */
	collect?: string[];
	/** What the code reads from standard input. */
	stdin?: Bytes;
	/** What stacks call the code. */
	filename?: string;
}

export interface RunOptions extends CallOptions {
	stdin?: Bytes;
}

/**
 * A place where code, functions and commands run sealed, each call in its own single-use process.
 *
 * A supervisor that dies takes the calls that are under way with it: they end as `lost`, and are never made again, since
 * they may have run. The next call starts a new one.
 */
export class Sandbox {
	constructor(options?: SandboxOptions);

	/**
	 * Runs JavaScript, as a model wrote it, and gives what it returns: it is the body of a strict async function. Values
	 * are plain data, with BigInt, Date, Map, Set, typed arrays, Buffer and undefined.
	 */
	eval<T = unknown>(code: string, options: EvalOptions & { result: true }): Promise<Result<T>>;
	eval<T = unknown>(code: string, options?: EvalOptions): Promise<T>;

	/** Calls a function that a module exports; its package is readable in the cell. */
	callModule<T = unknown>(module: string | URL, exportName: string, args: unknown[], options: CallOptions & { result: true }): Promise<Result<T>>;
	callModule<T = unknown>(module: string | URL, exportName: string, args?: unknown[], options?: CallOptions): Promise<T>;

	/** Runs a command, and gives its result. Throws ToolError where it exits with another code than 0, unless `result` is true. */
	run(argv: (string | URL | Uint8Array)[], options?: RunOptions): Promise<Result<undefined>>;

	/**
	 * Calls a tool that the server offers (`vitro serve --tools`), and gives its value: of a command what it printed, as JSON if it is
	 * that. Arguments are JSON; the server checks them, and has the tool's policy. For a sandbox with `socket`.
	 */
	callTool<T = unknown>(name: string, args: object, options: CallOptions & { result: true }): Promise<Result<T>>;
	callTool<T = unknown>(name: string, args?: object, options?: CallOptions): Promise<T>;

	/** The tools that the server offers, as `tools` of eval() takes them: code that uses one has the server call it. */
	serverTools(): Promise<(ToolDefinition & { name: string; description: string; inputSchema: object })[]>;

	/**
	 * What holds on this machine under the sandbox's policy, or another one; `node` says whether a Node is forked for each call or
	 * started anew, and why. Throws Refused where it cannot be held.
	 */
	capabilities(policy?: Policy): Promise<Record<string, unknown>>;

	/** How many cells and calls there are now, and were so far. */
	counts(): Promise<Record<string, number>>;

	/** Ends all calls, and a supervisor of its own. The sandbox cannot be used any more. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}

/** A schema that is wrong, or too big. */
export class SchemaError extends Error {}

/** A compiled JSON schema. */
export class Schema {
	constructor(source: object | boolean, name?: string);
	readonly source: unknown;
	/** What it says that is not checked. */
	readonly warnings: string[];
	/** null if a value fits; else a line that says where, what is wanted and what was found. */
	check(value: unknown, name?: string): string | null;
}

export interface RegisterOptions {
	name?: string;
	description?: string;
	/** A JSON schema of an object, or its text. */
	inputSchema?: object | string;
	/** Of this tool's calls, in place of the tool host's. */
	policy?: Policy;
	/** Milliseconds. */
	timeout?: number;
	/** What a command reads, with {name} in it; the arguments as JSON where it is not given. */
	input?: string;
}

export interface ToolListing {
	name: string;
	description: string;
	inputSchema: Record<string, unknown>;
}

export interface Tool extends ToolListing {
	readonly policy?: Policy;
	readonly timeout?: number;
	readonly definition: ToolListing;
	/** What the schema says that is not checked. */
	readonly warnings: string[];
}

export interface ToolEvent {
	kind: 'added' | 'changed' | 'removed';
	name: string;
	tool: Tool;
}

export interface ToolHostOptions extends SandboxOptions {
	/** A sandbox to use, which stays open; without it the tool host has one of its own. */
	sandbox?: Sandbox;
	/** Milliseconds, of calls of tools without their own; a shorter one of a call counts. */
	timeout?: number;
}

/** Named tools, each call of which runs in a cell of its own. */
export class ToolHost {
	constructor(options?: ToolHostOptions);

	/**
	 * Adds a tool, or changes the one of that name. target: a function, which is sent by its source and sees nothing
	 * of this program; {module, export}; or the words of a command, in which {name} stands for an argument, {name?} may be
	 * missing, with its word, and {name...} is a list. No shell reads them, and no argument becomes an option.
	 */
	// eslint-disable-next-line @typescript-eslint/no-explicit-any
	register(target: ((params: any) => unknown) | { module: string | URL; export?: string } | string[], options?: RegisterOptions): Tool;

	/** Removes a tool. Calls that run already are not affected. Throws ReferenceError. */
	unregister(name: string): void;

	get(name: string): Tool | null;

	/** What a model is told of the tools. query: only those whose name or description has every word of it. */
	listTools(query?: string): ToolListing[];

	/** Tools that are added, removed or changed from now on. */
	watch(): AsyncIterableIterator<ToolEvent> & { close(): void };

	/**
	 * Calls a tool, and gives its result, whatever happens. args: an object, or the text of one in JSON. The status is
	 * `refused`, and the error's type NoSuchTool or InvalidArguments, where no cell was used.
	 */
	call<T = unknown>(name: string, args?: object | string, options?: { callId?: string; timeout?: number; signal?: AbortSignal }): Promise<Result<T>>;

	/** Ends all watches, and a sandbox of its own, with its calls. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}
