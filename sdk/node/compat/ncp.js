// SPDX-License-Identifier: Apache-2.0
/*
 * A drop-in for ncp's SubprocessSandbox: the same calls, texts and logs, in cells. What the code may do is the policy's
 * to say, not which names it sees; by default it has no network, the working directory for reading, unless that is the home folder
 * or one around it, and a private /tmp.
 */

import { readJson } from '../lib/conclude.js';
import { isWide } from '../lib/order.js';
import { Sandbox } from '../lib/sandbox.js';

const DEFAULTS = { timeout: 30_000, memoryLimit: 128, minimalEnv: true };
const NODE_MB = 96; // what a Node that does nothing may take of the cell's memory
const RESULT_MB = 512;
const TERMINATED = 'Execution terminated (timeout or resource limit)';
const LOGS_MAX = 64 << 20; // characters that are kept: a cell can print as long as it runs
const LINE_COST = 64; // of each line, beside its characters
const PIECE = 15_000; // characters of a line that are sent at once: the wire has room for 64 KiB
const LEVELS = { info: 'log', warning: 'warn', error: 'error', debug: 'debug' };
const HINTS = [
	[/\b(?:ENOENT|EACCES|EPERM|EROFS)\b/, 'files.read or files.write'],
	[/\b(?:ENETUNREACH|EAI_AGAIN|ENOTFOUND|EAFNOSUPPORT)\b|^fetch failed/, 'network'],
];

const PRIVATE = ['/tmp', '/dev/shm', '/dev', '/proc'];
const warned = new Set(); // folders

// One supervisor serves all: programs make a sandbox for each request, and never close one.
let shared = null;

export class SubprocessSandbox {
	#config;
	#running = new Set();

	constructor(config = {}) {
		this.#config = { ...DEFAULTS, ...config };
	}

	async execute(code, tools, toolExecutor) {
		const began = Date.now();
		const controller = new AbortController();
		this.#running.add(controller);
		const logs = new LogBook();
		try {
			const result = await this.#call(code, tools ?? [], toolExecutor, controller.signal, logs);
			logs.end();
			if (result.isolation === null && (result.status === 'refused' || result.status === 'lost'))
				throw new Error(result.error.message);
			return { ...conclude(result), logs: logs.lines, duration: Date.now() - began };
		} finally {
			this.#running.delete(controller);
		}
	}

	terminate() {
		for (const controller of this.#running)
			controller.abort();
		this.#running.clear();
	}

	isRunning() {
		return this.#running.size > 0;
	}

	#call(code, tools, toolExecutor, signal, logs) {
		shared ??= new Sandbox();
		const names = tools.map(({ name }) => name);
		const run = (name) => async (params) => byJson(await toolExecutor(name, params));
		return shared.eval(wrap(String(code), names, this.#config.minimalEnv), {
			tools: new Map(names.map((name) => [name, run(name)])), policy: this.#policy(), timeout: this.#config.timeout, signal, result: true,
			onLog: ({ level, text }) => logs.addLog(level, text), onStdout: (text) => logs.addOutput('stdout', text),
			onStderr: (text) => logs.addOutput('stderr', text),
		});
	}

	#policy() {
		const { policy, memoryLimit, minimalEnv } = this.#config;
		const limits = { memory_mb: memoryLimit + NODE_MB, result_mb: RESULT_MB };
		if (typeof policy === 'string' || policy instanceof URL)
			return policy;
		if (policy !== undefined)
			return { ...policy, limits: { ...limits, ...policy.limits } };
		const env = { pass: [], set: minimalEnv ? { NODE_ENV: 'sandbox' } : { ...process.env } };
		return { limits, env, files: { read: mayHave(process.cwd()) ? [process.cwd()] : [] } };
	}
}

/** Whether code gets that folder: not the home folder, nor one around it; nor one that a cell has its own of. */
function mayHave(cwd) {
	if (PRIVATE.includes(cwd))
		return false;
	if (!isWide(cwd))
		return true;
	if (!warned.has(cwd))
		process.emitWarning(`the working directory '${cwd}' is the home folder or one around it: code in cells does not get it. ` +
			"Start in a folder of the project's own, or name what it needs in files.read of the policy", 'VitroWarning');
	warned.add(cwd);
	return false;
}

export function createSubprocessSandbox(config = {}) {
	return new SubprocessSandbox(config);
}

/** A value by JSON's rules; undefined stays. */
function byJson(value) {
	const text = JSON.stringify(value);
	return text === undefined ? undefined : JSON.parse(text);
}

function conclude(result) {
	if (result.ok) {
		const { json, error } = result.value ?? {};
		if (typeof error === 'string')
			return { result: null, error: explain(error) };
		return readResult(json);
	}
	if (result.status === 'error' && result.exitCode === null)
		return { result: null, error: explain(result.error.message || result.error.type) };
	if (result.exitCode !== null)
		return { result: null, error: `Process exited with code ${result.exitCode}` };
	if (result.status === 'crashed' && result.signal !== null)
		return { result: null, error: `Process exited with code ${128 + result.signal}` };
	const isEnded = ['timeout', 'cpu_limit', 'memory_limit', 'cancelled'].includes(result.status);
	return { result: null, error: isEnded ? TERMINATED : result.error.message };
}

/** The result as the cell says it, which may be anything. */
function readResult(json) {
	try {
		return { result: typeof json === 'string' ? readJson(Buffer.from(json)) : undefined };
	} catch (error) {
		return { result: null, error: error.message };
	}
}

/** What looks like a denial names the key that would open it. */
function explain(message) {
	const hint = message.includes("the policy's key") ? undefined : HINTS.find(([pattern]) => pattern.test(message)); // the runtime's own
	return hint === undefined ? message : `${message} (the sandbox's policy allows this by ${hint[1]})`;
}

/** Lines in the order in which they came: `[level] JSON`, `[stdout] …`, `[stderr] …`. */
class LogBook {
	lines = [];
	#room = LOGS_MAX;
	#dropped = 0;
	#piece = '';
	#rest = { stdout: '', stderr: '' };

	/** A long line comes in pieces: those before the last begin with '+'. */
	addLog(level, text) {
		this.#piece += text.slice(1);
		if (text[0] === '+' && this.#piece.length < this.#room)
			return;
		this.#push(`[${LEVELS[level] ?? level}] ${this.#piece}`);
		this.#piece = '';
	}

	addOutput(stream, text) {
		const [first, ...lines] = text.split('\n');
		this.#rest[stream] += first;
		for (const line of lines) {
			this.#addRest(stream);
			this.#rest[stream] = line;
		}
		if (this.#rest[stream].length > this.#room)
			this.#addRest(stream);
	}

	end() {
		for (const stream of ['stdout', 'stderr'])
			this.#addRest(stream);
		if (this.#dropped)
			this.lines.push(`[warn] "${this.#dropped} lines were dropped"`);
	}

	#addRest(stream) {
		const line = this.#rest[stream].trimEnd();
		this.#rest[stream] = '';
		if (line)
			this.#push(`[${stream}] ${line}`);
	}

	#push(line) {
		this.#room -= line.length + LINE_COST;
		if (this.#room > 0)
			this.lines.push(line);
		else
			this.#dropped++;
	}
}

// ---- in the cell -------------------------------------------------------------------------------------------------

function wrap(code, names, isMinimal) {
	const given = JSON.stringify({ code, names, isMinimal, piece: PIECE });
	return `const body = async function () { "use strict";\n${code}\n};\n`
		+ `return await (${runInCell})(body, ${given}, ${guardPrototypes}, ${offerTools}, ${makeConsole});`;
}

/* These are sent by their source, and use nothing that is not in them. */

async function runInCell(body, given, guard, offer, make) {
	const say = (error) => {
		try {
			return (error instanceof Error ? error.message || error.name : String(error)) || 'Error';
		} catch {
			return 'an error that cannot be shown';
		}
	};
	try {
		new (async () => {}).constructor(`"use strict";\n${given.code}\n`); // it is one body, and not the end of one and more behind it
		if (given.isMinimal)
			delete process.env.HOME;
		offer(given.names);
		globalThis.console = make(globalThis.console, given.piece);
		guard();
		const { stringify } = JSON;
		const failed = new Promise((_, reject) => {
			process.on('uncaughtException', (error) => reject(new Error(`Uncaught exception: ${say(error)}`)));
			process.on('unhandledRejection', (reason) => reject(new Error(`Unhandled rejection: ${say(reason)}`)));
		});
		const turn = () => new Promise((resolve) => setImmediate(resolve)); // a rejection that nobody handles shows after it
		const value = await Promise.race([body().then(async (returned) => (await turn(), [returned])), failed]);
		return { json: stringify(value[0]) };
	} catch (error) {
		return { error: say(error) };
	}
}

/** Nobody changes the prototypes of all objects and arrays; an object's own property of such a name can be set. */
function guardPrototypes() {
	for (const prototype of [Object.prototype, Array.prototype]) {
		for (const key of Reflect.ownKeys(prototype)) {
			const { value, get, configurable, enumerable } = Object.getOwnPropertyDescriptor(prototype, key);
			if (get !== undefined || !configurable)
				continue;
			Object.defineProperty(prototype, key, {
				enumerable, configurable: false, get: () => value,
				set(changed) {
					if (this === prototype)
						throw new TypeError(`Cannot assign to ${String(key)} of a prototype that all share`);
					Object.defineProperty(this, key, { value: changed, writable: true, enumerable: true, configurable: true });
				},
			});
		}
		Object.freeze(prototype);
	}
}

/**
 * ns.method(params) for a tool named ns:method; where ns is a name that is there already, what it had stays. ns:method:more is
 * ns.method, too, unless a tool has that name.
 */
function offerTools(names) {
	const tools = Object.create(null);
	const spaces = new Map();
	const asks = new Set(Object.values(globalThis.tools)); // which do not go by JSON's rules
	for (const name of names) {
		const ask = globalThis.tools[name];
		tools[name] = async (params) => ask(params === undefined ? undefined : JSON.parse(JSON.stringify(params) ?? 'null'));
		const [first, method, ...more] = name.split(':');
		if (method === undefined)
			continue;
		const space = first.replace(/[^A-Za-z0-9_$]/g, '_');
		if (!spaces.has(space))
			spaces.set(space, Object.create(null));
		const methods = spaces.get(space);
		methods[[method, ...more].join(':')] = tools[name];
		if (more.length)
			methods[method] ??= tools[name];
	}
	globalThis.tools = tools;
	for (const [space, methods] of spaces) {
		const there = globalThis[space];
		if (there === undefined)
			globalThis[space] = methods;
		else if (typeof there === 'function' || typeof there === 'object' && there !== null)
			for (const [method, tool] of Object.entries(methods))
				if (!(method in there) || asks.has(there[method]))
					there[method] = tool;
	}
}

/** console, whose words are sent as JSON. */
function makeConsole(native, piece) {
	const { stringify } = JSON;
	const spell = (value) => {
		try {
			return String(stringify(value));
		} catch {} // it holds itself, or a BigInt
		const above = [];
		try {
			return typeof value === 'bigint' ? String(value) : String(stringify(value, function (_, part) {
				if (typeof part === 'bigint')
					return String(part);
				while (above.length && above[above.length - 1] !== this)
					above.pop();
				if (above.includes(part))
					return '[Circular]';
				if (typeof part === 'object' && part !== null)
					above.push(part);
				return part;
			}));
		} catch {
			return '"what cannot be said in JSON"';
		}
	};
	const write = (level, words) => {
		let text = spell(words.length === 1 ? words[0] : words);
		while (text.length > piece) {
			const size = piece - /[\ud800-\udbff]/.test(text[piece - 1]); // no character is cut in two
			native[level]('%s', `+${text.slice(0, size)}`);
			text = text.slice(size);
		}
		native[level]('%s', `.${text}`);
	};
	const made = Object.create(native);
	for (const [name, level] of [['log', 'log'], ['info', 'log'], ['warn', 'warn'], ['error', 'error'], ['debug', 'debug']])
		made[name] = (...words) => write(level, words);
	return made;
}
