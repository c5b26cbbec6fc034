// SPDX-License-Identifier: Apache-2.0
// Tool hosts: named tools, each call of which runs in a cell of its own. index.d.ts says what its users need to know.

import { Buffer } from 'node:buffer';
import { randomUUID } from 'node:crypto';
import { Script } from 'node:vm';

import { concludeCommand, readJson } from './conclude.js';
import { ArgumentsError, Command, schemaOfWords } from './command.js';
import { Refused } from './errors.js';
import { checkNames, checkSandboxNames } from './options.js';
import { Result } from './result.js';
import { SANDBOX_OPTIONS, Sandbox } from './sandbox.js';
import { closest, show, showText, typesOf, OBJECT } from './say.js';
import { Schema } from './schema.js';

const NAME = /^[A-Za-z0-9_.:/-]{1,128}$/;
const DESCRIPTION_MAX = 64 << 10; // bytes, like the next two
const SCHEMA_MAX = 256 << 10;
const ARGUMENTS_MAX = 4 << 20; // of arguments that are JSON text
const TOOLS_MAX = 4096;
const EVENTS_MAX = 65536; // that wait for a watcher who does not come for them: older ones are dropped
const ID_BYTES = 250; // as for a sandbox
const KEYS = ['name', 'description', 'inputSchema', 'policy', 'timeout', 'input'];
const OPTIONS = ['sandbox', 'timeout', ...SANDBOX_OPTIONS];

/** A tool of a tool host: of a command, or of a function in a module. */
class Tool {
	#checker;

	constructor(target, options) {
		const { name, description = '', inputSchema, policy, timeout, input } = describe(target, options);
		if (name === '' && typeof target === 'function')
			throw new TypeError("a function without a name: give one by { name: '...' }");
		if (typeof name !== 'string' || !NAME.test(name))
			throw new TypeError(`name: want letters, digits and "_-.:/", at most 128, found ${show(name)}`);
		if (typeof description !== 'string' || Buffer.byteLength(description) > DESCRIPTION_MAX)
			throw new TypeError(`${name}: the description is a text of at most ${DESCRIPTION_MAX >> 10} KB`);
		if (timeout !== undefined && !(timeout > 0))
			throw new RangeError(`${name}: timeout is a number of milliseconds above 0`);
		this.name = name;
		this.description = description;
		this.inputSchema = copySchema(name, inputSchema);
		this.policy = policy;
		this.timeout = timeout;
		this.#checker = new Schema(this.inputSchema, 'schema');
		this.command = Array.isArray(target) ? new Command(target, { schema: this.inputSchema, input }) : null;
		this.reference = this.command === null ? referTo(target, name) : null;
		Object.freeze(this);
	}

	/** What a model is told. */
	get definition() {
		const { name, description, inputSchema } = this;
		return { name, description, inputSchema };
	}

	/** What the schema says that is not checked. */
	get warnings() {
		return this.#checker.warnings;
	}

	check(values) {
		return this.#checker.check(values, 'arguments');
	}
}

function describe(target, options) {
	checkNames(options, KEYS);
	if (Array.isArray(target)) {
		const words = [...target, options.input ?? ''].filter((word) => typeof word === 'string');
		return { name: String(target[0] ?? '').split('/').at(-1), inputSchema: schemaOfWords(words), ...options };
	}
	if (options.input !== undefined)
		throw new TypeError('input: only a command reads one');
	const name = typeof target === 'function' ? target.name : target?.export;
	return { name, inputSchema: { type: 'object' }, ...options };
}

/** A schema as plain JSON, which nobody else can change. */
function copySchema(name, schema) {
	const text = typeof schema === 'string' ? schema : JSON.stringify(schema);
	if (text === undefined || Buffer.byteLength(text) > SCHEMA_MAX)
		throw new TypeError(`${name}: the schema is an object of at most ${SCHEMA_MAX >> 10} KB`);
	const source = JSON.parse(text);
	if (typesOf(source) !== OBJECT)
		throw new TypeError(`${name}: want an object for a schema, found ${show(source)}`);
	return source;
}

/** Where a cell finds the function: {module, name}; isSource: it is all of the module. */
function referTo(target, name) {
	if (typeof target === 'function') {
		// Frames name it by that, and not by a URL with all of it in it. A blank in it would undo it.
		const text = `export default ${sourceOf(target, name)};\n//# sourceURL=<tool:${name}>`;
		return { module: `data:text/javascript,${encodeURIComponent(text)}`, name: 'default', isSource: true };
	}
	const module = target?.module;
	if (!(module instanceof URL) && typeof module !== 'string')
		throw new TypeError(`${name}: want a function, {module, export}, or a command as an array of words: no shell would read a text`);
	return { module, name: target.export ?? 'default' };
}

/** A function as an expression. What it uses must be in it: a cell has nothing else of this program. */
function sourceOf(target, name) {
	const source = Function.prototype.toString.call(target);
	if (/\{\s*\[native code\]\s*\}\s*$/.test(source))
		throw new TypeError(`${name}: the function has no source to be sent (it is bound, or built in): name it as {module, export}`);
	for (const text of [`(${source})`, `Object.values({${source}})[0]`]) {
		try {
			new Script(text); // is only read, never run
			return text;
		} catch {
			continue;
		}
	}
	throw new TypeError(`${name}: the function's source cannot be sent: name it as {module, export}`);
}

/** Changes, for `for await`. */
class Watch {
	#events = [];
	#waiting = [];
	#isClosed = false;
	#forget;

	constructor(forget) {
		this.#forget = forget;
	}

	put(event) {
		const waiting = this.#waiting.shift();
		if (waiting !== undefined)
			waiting({ value: event, done: false });
		else if (this.#events.push(event) > EVENTS_MAX)
			this.#events.shift();
	}

	next() {
		if (this.#events.length)
			return Promise.resolve({ value: this.#events.shift(), done: false });
		if (this.#isClosed)
			return Promise.resolve({ value: undefined, done: true });
		return new Promise((resolve) => this.#waiting.push(resolve));
	}

	close() {
		this.#isClosed = true;
		this.#forget(this);
		for (const waiting of this.#waiting.splice(0))
			waiting({ value: undefined, done: true });
	}

	async return() {
		this.close();
		return { value: undefined, done: true };
	}

	[Symbol.asyncIterator]() {
		return this;
	}
}

export class ToolHost {
	#tools = new Map();
	#watches = new Set();
	#sandbox;
	#isClosed = false;
	#isOwn;
	#options;
	#policy;
	#timeout;

	constructor(given = {}) {
		checkSandboxNames(given, OPTIONS);
		const { sandbox, policy, timeout, ...options } = given;
		if (sandbox !== undefined && Object.keys(options).length)
			throw new TypeError(`${Object.keys(options).join(', ')}: for a sandbox of the tool host's own, but one was given`);
		this.#sandbox = sandbox;
		this.#isOwn = sandbox === undefined;
		this.#policy = policy;
		this.#timeout = timeout;
		this.#options = options;
	}

	/** Adds a tool, or changes the one of that name; gives the tool. */
	register(target, options = {}) {
		const tool = new Tool(target, options);
		const before = this.#tools.get(tool.name);
		if (before === undefined && this.#tools.size >= TOOLS_MAX)
			throw new RangeError(`there are ${TOOLS_MAX} tools already`);
		this.#tools.set(tool.name, tool);
		if (before === undefined || JSON.stringify(before.definition) !== JSON.stringify(tool.definition))
			this.#tell(before === undefined ? 'added' : 'changed', tool);
		return tool;
	}

	/** Removes a tool. Calls that run already are not affected. */
	unregister(name) {
		const tool = this.#tools.get(name);
		if (tool === undefined)
			throw new ReferenceError(this.#unknown(name));
		this.#tools.delete(name);
		this.#tell('removed', tool);
	}

	get(name) {
		return this.#tools.get(name) ?? null;
	}

	/** What a model is told of the tools, in the order of their names. query: only those whose name or description has every word of it. */
	listTools(query = '') {
		const words = query.toLowerCase().split(/\s+/).filter(Boolean);
		return [...this.#tools.values()].sort((left, right) => left.name < right.name ? -1 : 1)
			.filter(({ name, description }) => words.every((word) => `${name}\n${description}`.toLowerCase().includes(word)))
			.map(({ definition }) => JSON.parse(JSON.stringify(definition)));
	}

	/** An async iterator of {kind, name, tool}: tools that are added, removed or changed from now on. */
	watch() {
		const watch = new Watch((one) => this.#watches.delete(one));
		this.#watches.add(watch);
		return watch;
	}

	/** Calls a tool, and gives its result, whatever happens. */
	async call(name, args = {}, options = {}) {
		const { callId = '', timeout, signal } = options ?? {};
		if (typeof callId !== 'string' || Buffer.byteLength(callId) > ID_BYTES || /\p{C}/u.test(callId))
			return refuse(randomUUID(), 'InvalidRequest', `callId: want at most ${ID_BYTES} bytes without control characters`);
		const id = callId || randomUUID();
		const tool = typeof name === 'string' ? this.#tools.get(name) : undefined;
		if (tool === undefined)
			return refuse(id, 'NoSuchTool', this.#unknown(name));
		try {
			return await this.#run(tool, readArguments(tool, args), { ...this.#limits(tool, timeout), signal, callId: id, result: true });
		} catch (error) {
			if (error instanceof ArgumentsError)
				return refuse(id, 'InvalidArguments', `${tool.name}: ${error.message}`);
			const status = error instanceof Refused ? 'refused' : 'lost';
			return new Result({ callId: id, status, error: { type: error.name, message: error.message, traceback: null } });
		}
	}

	/** Ends all watches, and a sandbox of its own, with its calls. */
	async close() {
		for (const watch of [...this.#watches])
			watch.close();
		this.#isClosed = this.#isOwn; // then no call makes another sandbox
		if (this.#isOwn)
			await this.#sandbox?.close();
	}

	#use() {
		if (this.#isClosed)
			throw new Refused('the tool host is closed');
		return this.#sandbox ??= new Sandbox({ policy: this.#policy, ...this.#options });
	}

	#limits(tool, timeout) {
		const times = [timeout, tool.timeout ?? this.#timeout].filter((time) => time !== undefined);
		// A sandbox of its own has the tool host's policy already, and its pools are ready for it.
		const policy = tool.policy ?? (this.#isOwn ? undefined : this.#policy);
		return { timeout: times.length ? Math.min(...times) : undefined, policy };
	}

	async #run(tool, values, options) {
		const sandbox = this.#use();
		if (tool.command === null)
			return adviseSource(tool, await sandbox.callModule(tool.reference.module, tool.reference.name, [values], options));
		const stdin = tool.command.input(values);
		return concludeCommand(await sandbox.run(tool.command.argv(values), { ...options, stdin }));
	}

	#tell(kind, tool) {
		for (const watch of this.#watches)
			watch.put({ kind, name: tool.name, tool });
	}

	#unknown(name) {
		const near = typeof name === 'string' ? closest(name, [...this.#tools.keys()]) : null;
		const shown = typeof name === 'string' ? showText(name, 128) : show(name);
		return `there is no tool '${shown}'${near === null ? '' : `; did you mean '${near}'?`}`;
	}
}

if (Symbol.asyncDispose !== undefined)
	Object.defineProperty(ToolHost.prototype, Symbol.asyncDispose, { value: ToolHost.prototype.close, writable: true, configurable: true });

function refuse(callId, type, message) {
	return new Result({ callId, status: 'refused', error: { type, message, traceback: null } });
}

/** A function that names something of the program around it finds nothing of that name in a cell. */
function adviseSource({ reference }, result) {
	const { error } = result;
	if (reference.isSource && error?.type === 'ReferenceError' && /^\S+ is not defined$/.test(error.message))
		result.error = { ...error, message: `${error.message}; the function is sent as source, and sees nothing of your program` };
	return result;
}

/** Arguments that fit: an object, or the text of one in JSON. */
function readArguments(tool, args) {
	const values = typeof args === 'string' ? parseArguments(args) : args ?? {};
	if (typesOf(values) !== OBJECT)
		throw new ArgumentsError(`arguments: want an object, found ${show(values)}`);
	const wrong = tool.check(values);
	if (wrong !== null)
		throw new ArgumentsError(wrong);
	return values;
}

function parseArguments(text) {
	if (text.length > ARGUMENTS_MAX)
		throw new ArgumentsError(`arguments: too big: more than ${ARGUMENTS_MAX >> 20} MB of JSON`);
	try {
		return readJson(Buffer.from(text));
	} catch (error) {
		throw new ArgumentsError(`arguments: this is not JSON: ${showText(error.message, 150)}`);
	}
}
