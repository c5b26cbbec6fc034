// SPDX-License-Identifier: Apache-2.0
/// <reference types="node" />
/// <reference lib="esnext.disposable" />

/** A path of this machine that cells see: at the same place, or at another one. */
export type Grant = string | URL | { from: string | URL; to: string };

/** Milliseconds, or a text with a unit: '500ms', '30s', '2m'. */
export type Duration = number | string;
/** In the unit of its key, or a text with one: '64K', '512M', '2G'. */
export type Size = number | string;

/** What calls may use, as in a policy file (vitro-policy(5)). Relative paths start at the working directory. */
export interface PolicyObject {
	$schema?: string;
	extends?: string | URL;
	limits?: {
		wall_ms?: Duration; queue_ms?: Duration; grace_ms?: Duration; cpu_ms?: Duration | null; cpus?: number | null; memory_mb?: Size; pids?: number;
		open_files?: number; file_mb?: Size; tmp_mb?: Size; stdout_kb?: Size; stderr_kb?: Size; result_mb?: Size;
	};
	files?: { read?: Grant[]; write?: Grant[]; deny?: (string | URL)[]; protect?: string[]; sockets?: (string | URL)[]; cwd?: string | URL };
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
	/** What the code returned; undefined for a command. */
	readonly value: T;
	/** What went wrong. Where a tool failed, all of it is its own words. */
	readonly error: { type: string; message: string; traceback: string | null } | null;
	/** The exit code of its process, if it exited by itself. */
	readonly exitCode: number | null;
	/** The signal that it died of; 9 if vitro ended it. */
	readonly signal: number | null;
	/** What it printed, as text; U+FFFD stands for what is not UTF-8. */
	readonly stdout: string;
	readonly stderr: string;
	readonly stdoutBytes: Buffer;
	readonly stderrBytes: Buffer;
	/** How many bytes, or lines of logs, were dropped because of the limits. */
	readonly dropped: { stdout: number; stderr: number; logs?: number };
	/** What code wrote with `console`: `info`, `warning`, `error` and `debug`. What it writes to process.stdout is in `stdout`. */
	readonly logs: LogLine[];
	readonly usage: { wallMs: number; cpuMs: number; peakMemoryKb: number | null; processes: number | null };
	/** The isolation that was really applied: the level, and the mechanism for each property; null if no cell was used. */
	readonly isolation: Record<string, unknown> | null;
	/** The files that `collect` matched, by name. */
	readonly files: Map<string, Buffer>;
	/** null: denials were not observed. */
	readonly denials: unknown[] | null;
	/** Something in the cell did not die in time. */
	readonly unreaped: boolean;
	/** What became of protected names (`files.protect`); null if nothing. */
	readonly protected: { set_apart?: { path: string; to: string | null; error?: string }[]; replaced?: string[]; unseen?: { path: string; error: string }[]; more?: number } | null;
	/** The members of `vitro run --json`. */
	toJSON(): Record<string, unknown>;
}

/** The base class of everything that vitro throws. */
export class VitroError extends Error {
	constructor(message?: string, result?: Result | null, options?: { cause?: unknown });
	/** The call's whole result, with its output and usage; null where there was no call to have one. */
	readonly result: Result | null;
}

/**
 * The tool itself failed: the code threw, or the command exited with a code other than 0. What was thrown in the cell is
 * never thrown here as its own class, since a cell's word is only data. If the code did not catch what one of eval()'s tools threw,
 * `cause` is that very error, with its stack.
 */
export class ToolError extends VitroError {
	/** The name of what was thrown, as the cell says it. */
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
/** The supervisor itself failed. The call may or may not have run, so it is never repeated automatically. */
export class Lost extends VitroError {}
/** vitro cannot work here: this is not Linux, or its program is missing. */
export class Unsupported extends VitroError {}

/** A value that cannot be sent, since it is not plain data. The message says which part, why, and what to do. */
export class NotPlain extends TypeError {}
/** What was received is not a valid value. */
export class Malformed extends Error {}

/** A value of another language that JavaScript has no type for (docs/values.md). It can be sent back unchanged. */
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
	/** The Node in the cells; by default this program's own. */
	node?: string;
	/** false: each call gets a Node that is started from scratch, with an address space of its own, which takes longer to prepare. */
	fork?: boolean;
	/** Modules that cells have already imported: Node's by name, others by path or URL. If one cannot be imported, the process gets a warning (`VitroWarning`). */
	preload?: (string | URL)[];
	/** The path of a server's socket (vitro-serve(1)). Without it the sandbox starts a supervisor of its own. */
	socket?: string;
	/** The minimum and maximum number of cells that wait for calls, for each kind of call; 0 means 2 and 64. */
	readyMin?: number;
	readyMax?: number;
	/** Called with the supervisor's own log; levels are those of syslog(3). What it throws becomes a warning of the process. */
	onSupervisorLog?: (level: number | string, text: string) => void;
}

export interface CallOptions {
	/** Milliseconds, instead of the policy's deadline; may be shorter or longer. */
	timeout?: number;
	/** A policy instead of the sandbox's. */
	policy?: Policy;
	/** Aborting it ends the cell at once. */
	signal?: AbortSignal;
	/** Called with what is printed, as it arrives. What a callback throws ends the call, and is thrown. */
	onStdout?: (text: string) => void;
	onStderr?: (text: string) => void;
	/** Called with the same as bytes. */
	onOutput?: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
	/** Called with what is logged, which is what code writes with `console`, as it arrives. The text is unfiltered. */
	onLog?: (line: LogLine) => void;
	/** true: returns a Result however the call ended, and throws only TypeError, for a wrong option. */
	result?: boolean;
	/** An id of your choice, which the result carries. */
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
	/** Parameters are checked against this before the function runs. */
	inputSchema?: object;
	/** It runs in this program. What it throws is thrown in the code, with its message and code. */
	run: ToolFunction;
}

/** The same with `execute` instead of `run`, as other libraries name it. */
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
	/** Files to put into the cell's working directory first: contents, by relative name. */
	files?: Record<string, Bytes> | Map<string, Bytes>;
	/** Patterns such as `out/**`: files of the working directory that come back in `files` of the result, so with `result: true` only. */
	collect?: string[];
	/** What the code reads from standard input. */
	stdin?: Bytes;
	/** The name of the code in stack traces. */
	filename?: string;
}

export interface RunOptions extends CallOptions {
	stdin?: Bytes;
}

/**
 * A place where code, functions and commands run sealed, each call in its own single-use process.
 *
 * If a supervisor dies, the calls that are under way die with it: they end as `lost`, and are never repeated, since they may
 * have run. The next call starts a new supervisor.
 */
export class Sandbox {
	constructor(options?: SandboxOptions);

	/**
	 * Runs JavaScript that a model wrote, as the body of a strict async function, and returns what it returns. Values
	 * are plain data, including BigInt, Date, Map, Set, typed arrays, Buffer and undefined.
	 */
	eval<T = unknown>(code: string, options: EvalOptions & { result: true }): Promise<Result<T>>;
	eval<T = unknown>(code: string, options?: EvalOptions): Promise<T>;

	/** Calls a function that a module exports; its package is readable in the cell. */
	callModule<T = unknown>(module: string | URL, exportName: string, args: unknown[], options: CallOptions & { result: true }): Promise<Result<T>>;
	callModule<T = unknown>(module: string | URL, exportName: string, args?: unknown[], options?: CallOptions): Promise<T>;

	/** Runs a command, and returns its result. Throws ToolError if it exits with a code other than 0, unless `result` is true. */
	run(argv: (string | URL | Uint8Array)[], options?: RunOptions): Promise<Result<undefined>>;

	/**
	 * Calls a tool that the server offers (`vitro serve --tools`), and returns its value. For a command that is what it printed,
	 * parsed if it is JSON. Arguments are JSON; the server checks them, and applies the tool's own policy. Only with `socket`.
	 */
	callTool<T = unknown>(name: string, args: object, options: CallOptions & { result: true }): Promise<Result<T>>;
	callTool<T = unknown>(name: string, args?: object, options?: CallOptions): Promise<T>;

	/** The tools that the server offers, ready to be passed as `tools` to eval(): when code uses one, the server calls it. */
	serverTools(): Promise<(ToolDefinition & { name: string; description: string; inputSchema: object })[]>;

	/**
	 * What can be enforced here under the sandbox's policy, or another one. `node`, which a sandbox with `socket` leaves out, says
	 * whether Node is forked for each call or started from scratch, and why. Throws Refused if the policy cannot be enforced.
	 */
	capabilities(policy?: Policy): Promise<Record<string, unknown>>;

	/** How many cells and calls there are now, and have been so far. */
	counts(): Promise<Record<string, number>>;

	/** Ends all calls, and the sandbox's own supervisor. The sandbox cannot be used afterwards. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}

/** A schema that is wrong, or too big. */
export class SchemaError extends Error {}

/** A compiled JSON schema. */
export class Schema {
	constructor(source: object | boolean, name?: string);
	readonly source: unknown;
	/** What the schema says that is not checked. */
	readonly warnings: string[];
	/** null if the value fits; otherwise a line that says where it does not, what is wanted and what was found. */
	check(value: unknown, name?: string): string | null;
}

export interface RegisterOptions {
	name?: string;
	description?: string;
	/** A JSON schema of an object, or its text. */
	inputSchema?: object | string;
	/** For this tool's calls, instead of the tool host's. */
	policy?: Policy;
	/** Milliseconds. */
	timeout?: number;
	/** What a command reads from standard input, with {name} for arguments; without it, the arguments as JSON. */
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
	/** A sandbox to use, which stays open. Without it the tool host makes its own. */
	sandbox?: Sandbox;
	/** Milliseconds, for tools without a timeout of their own. A call can only shorten it. */
	timeout?: number;
}

/** Named tools, each call of which runs in a cell of its own. */
export class ToolHost {
	constructor(options?: ToolHostOptions);

	/**
	 * Adds a tool, or replaces the one of that name. target: a function, which is sent as source and sees nothing of this
	 * program; {module, export}; or the words of a command, in which {name} stands for an argument, {name?} for one that may be
	 * missing (its word is then left out), and {name...} for a list. No shell is involved, and no argument becomes an option.
	 */
	// eslint-disable-next-line @typescript-eslint/no-explicit-any
	register(target: ((params: any) => unknown) | { module: string | URL; export?: string } | string[], options?: RegisterOptions): Tool;

	/** Removes a tool. Calls that already run are not affected. Throws ReferenceError if there is none. */
	unregister(name: string): void;

	get(name: string): Tool | null;

	/** The tools as a model needs them. query: only those whose name or description contains every word of it. */
	listTools(query?: string): ToolListing[];

	/** Tools that are added, removed or changed from now on. */
	watch(): AsyncIterableIterator<ToolEvent> & { close(): void };

	/**
	 * Calls a tool, and returns its result, whatever happens. args: an object, or its JSON text. If no cell was used, the status
	 * is `refused`, and the error's type NoSuchTool or InvalidArguments.
	 */
	call<T = unknown>(name: string, args?: object | string, options?: { callId?: string; timeout?: number; signal?: AbortSignal }): Promise<Result<T>>;

	/** Ends all watches, and the tool host's own sandbox with its calls. */
	close(): Promise<void>;
	[Symbol.asyncDispose](): Promise<void>;
}
