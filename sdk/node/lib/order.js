// SPDX-License-Identifier: Apache-2.0
// A call before it is made: which pool it wants, and what it says.

import { Buffer } from 'node:buffer';
import { execFile } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

import { findBinary } from './binary.js';
import * as codec from './codec.mjs';
import { Refused } from './errors.js';
import { WrongValue, checkPolicyNames, kindOf } from './options.js';
import { deadline, fileMbOf, sourcesOf } from './policy.js';

const NAME_BYTES = 250; // of a tool's name and of a call's id each; the wire has room for 511 together
const ID = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;
const READY_MAX = 4096;
const HEAD_BYTES = 1 << 16;
const LISTENERS = ['onStdout', 'onStderr', 'onOutput'];
const SHARED = ['policy', 'timeout', 'signal', 'onLog', ...LISTENERS, 'result', 'callId'];

/** What is to be done, and what its caller wants to be told. Calls of pools that are the same share one. */
class Order {
	constructor(spec, tool, pieces, wallMs, options) {
		this.spec = spec;
		this.tool = tool;
		this.pieces = pieces;
		this.wallMs = wallMs;
		this.callId = options.callId ?? '';
		this.streams = LISTENERS.some((name) => options[name] !== undefined);
		this.collect = [];
		this.tools = new Map();
		this.stdinBytes = 0;
		this.isWithin = false;
	}

	checkSize(frameMax) {
		const bytes = this.pieces.reduce((total, piece) => total + piece.length, 0);
		if (bytes > frameMax - HEAD_BYTES)
			throw new Refused(`the call has ${bytes} bytes; a supervisor takes at most ${frameMax}`);
	}
}

/** Makes orders for one sandbox. */
export class Orders {
	#policy;
	#sources;
	#node;
	#forks;
	#setup;
	#ready;
	preload; // as a cell has their names

	constructor({ policy, node = process.execPath, fork = true, preload = [], readyMin = 0, readyMax = 0 }) {
		if (!Array.isArray(preload))
			throw new TypeError('preload is an array of modules');
		this.#policy = policy;
		this.#sources = sourcesOf(policy);
		this.#node = node.includes('/') ? resolve(node) : node;
		if (typeof fork !== 'boolean')
			throw new TypeError('fork is true or false');
		this.#forks = fork;
		this.preload = preload.map(nameModule);
		this.#setup = JSON.stringify({ version: 1, mode: 'message', preload: this.preload, fork: fork ? undefined : false });
		this.#ready = { readyMin: checkCount('readyMin', readyMin), readyMax: checkCount('readyMax', readyMax) };
	}

	/** Whether its Node is forked for each call, as `vitro doctor` finds it. */
	async describeNode() {
		if (!this.#forks)
			return `${this.#node}, started anew for each call: fork is false`;
		const path = this.#node.includes('/') ? [dirname(this.#node), process.env.PATH].join(delimiter) : process.env.PATH;
		const asked = promisify(execFile)(findBinary(), ['doctor', '--json'], { env: { ...process.env, PATH: path } });
		// Where something that is needed is missing it says so by its exit code, too.
		const { stdout } = await asked.catch((error) => error.stdout ? error : Promise.reject(error));
		return JSON.parse(stdout).findings.find(({ name }) => name === 'Node pools').why;
	}

	eval(code, options) {
		checkOptions(options, 'tools', 'files', 'collect', 'stdin', 'filename');
		if (typeof code !== 'string')
			throw new TypeError(`code is a text, not ${kindOf(code)}`);
		const { tools, files = {}, collect = [], stdin, filename = 'eval.mjs' } = options;
		if (!Array.isArray(collect))
			throw new TypeError(`collect is an array of patterns, not ${kindOf(collect)}`);
		checkPatterns(collect);
		if (collect.length && !options.result)
			throw new TypeError('collect gives files in the result: add result: true');
		const named = nameTools(tools);
		const buffers = [];
		const placed = {};
		const fileMb = fileMbOf(isGiven(options.policy) ? options.policy : this.#policy);
		for (const [name, content] of entriesOf('files', files)) {
			const bytes = bytesOf(content, `files[${JSON.stringify(name)}]`);
			if (fileMb && bytes.length > fileMb * 2 ** 20) // a cell would die of it
				throw new Refused(`files[${JSON.stringify(name)}] has ${bytes.length} bytes, and the policy's limits.file_mb allows ${fileMb} MB`);
			placed[checkFileName(name)] = buffers.push(bytes) - 1;
		}
		const head = { op: 'eval', code, filename, tools: [...named.keys()], files: placed, collect, stdin: null, console: 'log' };
		if (stdin !== undefined)
			head.stdin = buffers.push(bytesOf(stdin, 'stdin')) - 1;
		const order = this.#order(this.#pool('node', this.#node, options), 'eval', codec.pack(head, buffers), options);
		order.collect = collect;
		order.tools = named;
		return order;
	}

	callModule(url, exportName, args, options) {
		checkOptions(options);
		if (typeof exportName !== 'string')
			throw new TypeError(`the export's name is a text, not ${typeof exportName}`);
		if (!Array.isArray(args))
			throw new TypeError('args is an array of arguments');
		const module = nameModule(url);
		const { tree, buffers } = codec.encode(args, { name: 'args', advice: codec.PLAIN_ADVICE });
		const head = { op: 'module', url: module, export: exportName, args: tree, console: 'log' };
		const pool = this.#pool('node', this.#node, options, grantsFor(module));
		return this.#order(pool, shorten(exportName), codec.pack(head, buffers), options);
	}

	run(argv, options) {
		checkOptions(options, 'stdin');
		if (!Array.isArray(argv) || !argv.length)
			throw new TypeError(`argv is an array of words, the program's first, not ${Array.isArray(argv) ? 'an empty one' : kindOf(argv)}` +
				(typeof argv === 'string' ? ": no shell reads it; ['sh', '-c', command] has one" : ''));
		const words = argv.map((word, at) => bytesOf(word instanceof URL ? fileURLToPath(word) : word, `argv[${at}]`));
		if (words.some((word) => word.includes(0)))
			throw new WrongValue(`argv[${words.findIndex((word) => word.includes(0))}] has a NUL in it`);
		const name = words[0].toString();
		const program = name.includes('/') ? resolve(name) : name;
		const stdin = options.stdin === undefined ? Buffer.alloc(0) : bytesOf(options.stdin, 'stdin');
		const pieces = [Buffer.concat(words.flatMap((word) => [word, Buffer.alloc(1)])), stdin];
		const order = this.#order(this.#pool('command', program, options), shorten(program), pieces, options);
		order.stdinBytes = stdin.length;
		return order;
	}

	/** A tool of the server's own: its policy is the server's. */
	callTool(name, args, options) {
		checkOptions(options);
		if (isGiven(options.policy))
			throw new TypeError("policy: a server's own tools have theirs");
		checkToolName(name);
		if (args === null || typeof args !== 'object' || Array.isArray(args))
			throw new TypeError(`the arguments of a tool are an object, not ${kindOf(args)}`);
		const { wallMs } = deadline('default', options.timeout);
		return this.#order({ spec: { kind: 'tool' }, wallMs }, name, [Buffer.from(JSON.stringify(args))], options);
	}

	/** A pool without cells, that only says what a policy comes to. */
	policyAlone(policy) {
		return { kind: '', program: '', sources: JSON.stringify(isGiven(policy) ? sourcesOf(policy) : this.#sources) };
	}

	#pool(kind, program, options, grants = []) {
		const isOther = isGiven(options.policy);
		const { sources, wallMs } = deadline(isOther ? options.policy : this.#policy, options.timeout);
		const all = [...isOther ? sourcesOf(options.policy) : this.#sources, ...sources];
		if (grants.length)
			all.push({ json: JSON.stringify({ files: { read: grants } }) });
		const setup = kind === 'node' ? this.#setup : undefined;
		return { spec: { kind, program, sources: JSON.stringify(all), setup, ...this.#ready }, wallMs };
	}

	#order({ spec, wallMs }, tool, pieces, options) {
		return new Order(spec, tool, pieces, wallMs, options);
	}
}

// ---- what is given -----------------------------------------------------------------------------------------------

/** Whether a policy is to hold in place of the sandbox's: null is none, and no other one. */
const isGiven = (policy) => policy !== undefined && policy !== null;

function checkOptions(options, ...more) {
	checkPolicyNames(options, [...SHARED, ...more]);
	const { callId = '', signal } = options;
	if (typeof callId !== 'string')
		throw new TypeError(`callId is a text, not ${kindOf(callId)}`);
	if (Buffer.byteLength(callId) > NAME_BYTES || !ID.test(callId))
		throw new WrongValue(`callId is a printable text of at most ${NAME_BYTES} bytes`);
	if (signal !== undefined && typeof signal?.addEventListener !== 'function')
		throw new TypeError('signal is an AbortSignal');
	for (const name of ['onLog', ...LISTENERS])
		if (options[name] !== undefined && typeof options[name] !== 'function')
			throw new TypeError(`${name} is a function`);
}

function checkToolName(name) {
	if (typeof name !== 'string' || !name || Buffer.byteLength(name) > NAME_BYTES || name.includes('\0'))
		throw new TypeError(`a tool's name is a text of 1 to ${NAME_BYTES} bytes, not ${typeof name === 'string' ? JSON.stringify(name) : kindOf(name)}`);
}

// What a schema is called elsewhere. One that is not seen would let everything pass.
const OTHER_SCHEMAS = ['input_schema', 'parameters', 'schema'];

/** Tools by their names, each {run, inputSchema}: of an object, a Map, or an array of objects with names. */
function nameTools(tools) {
	const named = new Map();
	if (Array.isArray(tools) && tools.some((tool) => typeof tool === 'function'))
		throw new TypeError('tools is an object of functions by their names, { search }, not an array of functions');
	const entries = Array.isArray(tools) ? tools.map((tool) => [tool?.name, tool]) : entriesOf('tools', tools ?? {});
	for (const [name, tool] of entries) {
		const run = typeof tool === 'function' ? tool : tool?.run ?? tool?.execute;
		checkToolName(name);
		if (typeof run !== 'function')
			throw new TypeError(`the tool ${JSON.stringify(name)} is neither a function nor an object with one as \`run\``);
		for (const other of OTHER_SCHEMAS)
			if (tool.inputSchema === undefined && tool[other] !== undefined)
				throw new TypeError(`the tool ${JSON.stringify(name)} has \`${other}\`: its schema goes by \`inputSchema\`, else nothing is checked`);
		named.set(name, { run: run.bind(tool), inputSchema: tool.inputSchema });
	}
	return named;
}

/** [name, value] of an object, or of a Map. */
function entriesOf(what, given) {
	if (given instanceof Map)
		return given;
	if (given === null || typeof given !== 'object' || Array.isArray(given))
		throw new TypeError(`${what} is an object, or a Map, by names, not ${kindOf(given)}`);
	return Object.entries(given);
}

function checkFileName(name) {
	try {
		return codec.checkFileName(name);
	} catch {
		throw new WrongValue(`files: ${JSON.stringify(name)} is not a name below the cell's working directory: a relative one, without '.' and '..'`);
	}
}

function checkPatterns(patterns) {
	try {
		new codec.FileMatcher(patterns);
	} catch (error) {
		throw new WrongValue(error.message);
	}
}

function bytesOf(content, what) {
	if (typeof content === 'string')
		return Buffer.from(content);
	if (ArrayBuffer.isView(content))
		return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
	if (content instanceof ArrayBuffer)
		return Buffer.from(content);
	throw new TypeError(`${what} is neither text nor bytes, but ${kindOf(content)}`);
}

/** A name for messages, as long as the wire takes it. */
function shorten(name) {
	return Buffer.from(name.replaceAll('\0', '')).subarray(0, NAME_BYTES).toString().replace(/\ufffd+$/, '');
}

function checkCount(name, value) {
	if (!Number.isInteger(value) || value < 0 || value > READY_MAX)
		throw new RangeError(`${name} is a number of cells, from 0 (the default) to ${READY_MAX}, not ${value}`);
	return value;
}

// ---- modules -----------------------------------------------------------------------------------------------------

/** A module as a cell can import it: the URL of a file, `node:` and a name, or the name of a package. */
function nameModule(module) {
	if (module instanceof URL)
		return module.href;
	if (typeof module !== 'string' || !module)
		throw new TypeError('a module is a URL, a path or a name');
	return /^\.{0,2}\//.test(module) ? pathToFileURL(resolve(module)).href : module;
}

/**
 * What a cell may read to import a module from a file: its package, and the node_modules around it. The home folder,
 * and folders around it, are never readable as a whole.
 */
function grantsFor(module) {
	if (!module.startsWith('file:'))
		return [];
	const file = fileURLToPath(module);
	const folders = [];
	for (let at = dirname(file); at !== dirname(at); at = dirname(at))
		folders.push(at);
	const found = folders.find((folder) => existsSync(join(folder, 'package.json'))) ?? dirname(file);
	const around = folders.map((folder) => join(folder, 'node_modules')).filter((folder) => !folder.startsWith(`${found}/`) && existsSync(folder));
	return [isWide(found) ? file : found, ...around];
}

/** Whether it is the home folder, or one around it: they hold all keys. */
export function isWide(folder) {
	const real = realpathOf(folder) ?? resolve(folder);
	return real === '/' || homes().some((home) => `${realpathOf(home)}/`.startsWith(`${real}/`));
}

function homes() {
	try {
		return [homedir(), userInfo().homedir];
	} catch { // nobody knows this user
		return [homedir()];
	}
}

function realpathOf(path) {
	try {
		return realpathSync(path);
	} catch {
		return null;
	}
}
