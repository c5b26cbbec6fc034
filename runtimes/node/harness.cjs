// SPDX-License-Identifier: Apache-2.0
/*
 * What runs in an occupant: it hears one call, does it, and tells.
 *
 * What prepare() returns is called in a fresh fork of the zygote, sealed already. The first call of a forked process is slow: each page
 * that it writes to is copied by the kernel at that moment, and code is compiled when it first runs. So it does a call
 * that nobody sees before it says that it is ready, by the very code that the real one takes, unless that waits already.
 *
 * Code from a model runs in this process and can do what it likes with it, this file and the call socket included. That
 * is in order: whatever it says there, it says about its own call, and the host believes none of it.
 *
 * Given: module, require, own.
 */
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const util = require('node:util');
const vm = require('node:vm');
const crypto = require('node:crypto');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');
const { setFlagsFromString } = require('node:v8');
const complaining = own.require('complain.cjs');
const talking = own.require('talk.cjs');

const { Talk } = talking;
const TEXT_MAX = talking.LOG_MAX;
const DRAWN_UUIDS = 128, DRAWN_INTS = 1024; // that Node draws ahead at most
const STALL_MS = 25; // between looks at whether anything can still happen
const LOOKS = 2;
const CONSOLE = { log: 'info', info: 'info', warn: 'warning', error: 'error', debug: 'debug', trace: 'debug', dir: 'info' };
const NEVER = 'the code waits for something that will never happen: no timer, request or tool is left that could settle it';

// ---- the process ----------------------------------------------------------------------------------

/** What was only there to begin with is no part of what code finds. */
function tidy() {
	for (const name of ['module', 'exports', 'require', '__filename', '__dirname', ...Module.builtinModules])
		if (!['crypto', 'console', 'process'].includes(name))
			delete globalThis[name];
	process.execArgv = [];
	Object.defineProperty(process, '_eval', { value: undefined });
	process.argv = [process.execPath];
}

/**
 * Siblings are copies of one process, with all that it had drawn ahead. The seed is for this context alone: threads that
 * code starts have others by themselves.
 */
function scatter(io, hasDrawn) {
	setFlagsFromString(`--random-seed=${io.random() || 1}`);
	Math.random();
	setFlagsFromString('--random-seed=0');
	for (let i = 0; hasDrawn && i < DRAWN_UUIDS; i++)
		crypto.randomUUID();
	for (let i = 0; hasDrawn && i < DRAWN_INTS; i++)
		crypto.randomInt(2);
}

/** What is random, or a process's own, must not be the same in all siblings. */
function become(io, config) {
	scatter(io, config.preload?.length > 0);
	Object.defineProperty(process, 'pid', { value: io.pid(), configurable: true, enumerable: true });
	process.chdir('.'); // forgets what it was
	if (process.env.NODE_PATH) // which a zygote does not heed
		Module._initPaths();
	const leave = (code) => io.exit(code ?? process.exitCode ?? 0);
	process.reallyExit = leave;
}

/** What the addon has, for an occupant that is no fork: all of it waits. */
function makePlainIo(parked, fd) {
	const pause = () => {
		for (;;)
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
	};
	return {
		isAnew: true,
		park: () => fs.writeSync(fd, parked),
		exit: (code) => process.reallyExit(code),
		pause,
		wait: () => {
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
			return 1; // POLLIN: the socket waits no more, once libuv has it
		},
		send: (to, data, at) => retry(() => fs.writeSync(to, data, at, data.length - at)),
		receive: (from, data, at) => retry(() => fs.readSync(from, data, at, data.length - at)),
	};
}

function retry(act) {
	try {
		return act();
	} catch (error) {
		return error?.code === 'EAGAIN' ? -11 : error?.code === 'EOF' ? 0 : -5;
	}
}

// ---- errors ---------------------------------------------------------------------------------------

function cut(bytes, max) {
	return new util.TextDecoder().decode(bytes.subarray(0, max)).replace(/\uFFFD+$/, '');
}

/** The beginning and, since that is where it went wrong, more of the end. */
function bound(text) {
	const bytes = Buffer.from(text);
	if (bytes.length <= TEXT_MAX)
		return bytes;
	const first = TEXT_MAX >> 2, last = 3 * (TEXT_MAX >> 2) - 100;
	const between = `\n... ${bytes.length - first - last} bytes are left out ...\n`;
	return Buffer.concat([bytes.subarray(0, first), Buffer.from(between), bytes.subarray(bytes.length - last)]);
}

// ---- tools ----------------------------------------------------------------------------------------

/** A tool failed with an error that this process has no class for. */
class ToolError extends Error {
	constructor(name, message, code) {
		super(message);
		Object.defineProperty(this, 'name', { value: name, configurable: true, writable: true });
		if (code !== undefined)
			this.code = code;
	}
}

/** Asks, and sorts what is answered: many questions may be open at once. */
class Desk {
	#codec;
	#talk;
	#bodyMax;
	#open = new Map();
	#number = 0;

	constructor(codec, talk, bodyMax) {
		this.#codec = codec;
		this.#talk = talk;
		this.#bodyMax = bodyMax;
	}

	make(name) {
		const tool = { [name]: (...args) => this.ask(name, args) }[name];
		return tool;
	}

	async ask(name, args) {
		if (args.length > 1)
			throw new TypeError(`${name} takes one object: ${name}({ ... })`);
		const { tree, buffers } = this.#codec.encode(args, { name: `${name}() arguments`, advice: this.#codec.PLAIN_ADVICE });
		const pieces = this.#codec.pack({ args: tree, kwargs: {} }, buffers);
		const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
		if (this.#bodyMax && size > this.#bodyMax)
			throw new RangeError(`${name}() arguments take ${size} bytes, and ${this.#bodyMax} are allowed: limits.result_mb`);
		const number = ++this.#number;
		const answer = await new Promise((settle) => {
			this.#open.set(number, settle);
			this.#talk.send(talking.ASK, name, pieces, number);
			this.#talk.listen((message) => this.#deliver(message));
			this.#talk.hold(true);
		});
		return this.#read(answer);
	}

	#deliver(message) {
		const settle = this.#open.get(message.id);
		if (message.kind !== talking.ANSWER || !settle)
			return;
		this.#open.delete(message.id);
		this.#talk.hold(this.#open.size > 0);
		settle(message);
	}

	#read({ flags, body }) {
		if (!(flags & talking.FAILED)) {
			const { head, attachments } = this.#codec.unpack(body);
			return this.#codec.decode(head.value, attachments);
		}
		let told = { type: 'ToolError', message: body.toString() };
		try {
			told = JSON.parse(body.toString());
		} catch {} // a host of another kind: a plain sentence
		const Known = Object.hasOwn(globalThis, told?.type) ? globalThis[told.type] : undefined;
		if (typeof Known === 'function' && Known.prototype instanceof Error && Known !== AggregateError) {
			const error = new Known(String(told.message));
			return Promise.reject(told.code === undefined ? error : Object.assign(error, { code: told.code }));
		}
		return Promise.reject(new ToolError(String(told?.type ?? 'ToolError'), String(told?.message ?? told), told?.code));
	}
}

function makeSpace(spaces, name) {
	spaces.set(name, Object.create(null));
	return spaces.get(name);
}

/**
 * tools["exact name"], whatever it is; name(), where code can write that; and space.name() for "space:name" and
 * "space.name". Where a space's name is that of something else, that stays, and gets what it has not got.
 */
function offer(desk, names) {
	const box = Object.create(null);
	const spaces = new Map();
	for (const name of names) {
		box[name] = desk.make(name);
		const at = name.search(/[.:]/);
		const space = (at < 0 ? name : name.slice(0, at)).replace(/[^\p{ID_Continue}$]/gu, '_');
		if (at < 0 && space === name)
			spaces.set(name, Object.defineProperties(desk.make(name), Object.getOwnPropertyDescriptors(spaces.get(name) ?? {})));
		else if (at > 0)
			Object.defineProperty(spaces.get(space) ?? makeSpace(spaces, space), name.slice(at + 1), { value: box[name], enumerable: true, configurable: true, writable: true });
	}
	for (const [space, value] of spaces) {
		const there = globalThis[space];
		if (there === undefined)
			Object.defineProperty(globalThis, space, { value, configurable: true, writable: true, enumerable: false });
		else if (typeof value === 'object' && typeof there === 'object')
			for (const [method, tool] of Object.entries(value))
				if (!(method in there))
					there[method] = tool;
	}
	Object.defineProperty(globalThis, 'tools', { value: box, configurable: true, writable: true, enumerable: false });
}

// ---- files ----------------------------------------------------------------------------------------

class TooLarge extends Error {
	constructor(size) {
		super('too large');
		this.size = size;
	}
}

function canWrite(folder) {
	try {
		fs.accessSync(folder, fs.constants.W_OK);
		return true;
	} catch {
		return false;
	}
}

function place(codec, files, attachments) {
	for (const [name, index] of Object.entries(files)) {
		const folder = path.dirname(codec.checkFileName(name));
		try {
			if (folder !== '.')
				fs.mkdirSync(folder, { recursive: true });
			fs.writeFileSync(name, attachments.take(index));
		} catch (error) {
			if (!['EROFS', 'EACCES', 'EPERM'].includes(error?.code) && canWrite('.')) // mkdirSync() says ENOENT of a denial
				throw error;
			throw new Error(`files ${JSON.stringify(name)} needs a working directory that can be written to, and '${process.cwd()}' cannot: ` +
				'grant it by files.write, or leave out files.cwd');
		}
	}
}

function* walk(folder, prefix, depth) {
	let entries = [];
	try {
		entries = depth > 64 ? [] : fs.readdirSync(folder, { withFileTypes: true });
	} catch {} // gone meanwhile, or not ours to read
	for (const entry of entries) {
		if (entry.isDirectory())
			yield* walk(path.join(folder, entry.name), `${prefix}${entry.name}/`, depth + 1);
		else if (entry.isFile())
			yield prefix + entry.name;
	}
}

/** The regular files that match one of the patterns. No link is followed. */
function collect(codec, patterns, sizeMax) {
	const matcher = new codec.FileMatcher(patterns);
	const found = Object.create(null); // a file may be called __proto__
	let total = 0, count = 0;
	for (const name of patterns.length ? [...walk('.', '', 0)].sort() : []) {
		if (!matcher.matches(name))
			continue;
		if (++count > codec.FILES_MAX)
			throw new RangeError(`collect matches more than ${codec.FILES_MAX} files`);
		const data = readRegular(name, sizeMax ? sizeMax - total : Infinity);
		if (data) {
			found[name] = data;
			total += data.length;
		}
	}
	return found;
}

/* It may be another file by now: no link, and no pipe that would be waited for. */
function readRegular(name, sizeMax) {
	let fd;
	try {
		fd = fs.openSync(name, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK);
	} catch {
		return null;
	}
	try {
		const status = fs.fstatSync(fd);
		if (!status.isFile())
			return null;
		if (status.size > sizeMax)
			throw new TooLarge(status.size);
		return fs.readFileSync(fd);
	} finally {
		fs.closeSync(fd);
	}
}

// ---- a call ---------------------------------------------------------------------------------------

const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER
	?? ((name) => own.bring(/^\.{0,2}\//.test(name) ? new URL(name, pathToFileURL(`${process.cwd()}/`)).href : name));

/** Does one call. */
class Occupant {
	#codec;
	#talk;
	#io;
	#config;
	#isOver = false;
	#code = '';
	#filename = '';

	constructor(codec, talk, io, config) {
		this.#codec = codec;
		this.#talk = talk;
		this.#io = io;
		this.#config = config;
	}

	/** Does what the message says, and tells its value or its error. */
	async serve(message) {
		let pieces;
		try {
			pieces = await this.#do(message);
		} catch (error) {
			return await this.fail(error);
		}
		await this.#end(() => this.#talk.send(talking.RESULT, '', pieces));
	}

	async fail(error) {
		if (error instanceof TooLarge)
			return await this.#end(() => this.#talk.claim(talking.RESULT, Math.max(error.size, (this.#config.result_bytes ?? 0) + 1)));
		await this.#end(() => {
			this.#talk.send(talking.LOG, 'vitro.traceback', [bound(complaining.show(error, this.#code, this.#filename))]);
			this.#talk.send(talking.ERROR, cut(Buffer.from(complaining.nameError(error)), talking.NAME_MAX), [bound(complaining.say(error))]);
		});
	}

	/** What was printed goes first: the call is over for the supervisor when it has the result. */
	async #end(tell) {
		if (this.#isOver)
			return;
		this.#isOver = true;
		await flush();
		tell();
	}

	async #do(message) {
		if (this.#config.mode === 'json')
			return await this.#doJson(message);
		const { head, attachments } = this.#codec.unpack(message.body);
		if (head.console === 'log')
			forwardConsole(this.#talk);
		if (head.files)
			place(this.#codec, head.files, attachments);
		if (head.stdin !== undefined && head.stdin !== null)
			setInput(attachments.take(head.stdin));
		const value = await this.#run(head, attachments);
		const files = head.collect ? collect(this.#codec, head.collect, this.#config.result_bytes) : null;
		return this.#pack(value, files);
	}

	#run(head, attachments) {
		const filename = head.filename || '<eval>';
		offer(new Desk(this.#codec, this.#talk, this.#config.result_bytes), head.tools ?? []);
		process.argv = [process.execPath, filename];
		if (head.op === 'eval') {
			[this.#code, this.#filename] = [head.code, filename];
			return complaining.compile(head.code, filename, importing)();
		}
		if (head.op === 'module')
			return callExport(head.url, head.export ?? 'default', this.#codec.decode(head.args ?? [], attachments));
		throw new TypeError(`there is no op ${JSON.stringify(head.op)}`);
	}

	/** A tool of a manifest: "file#export", an object of arguments, a value in JSON. */
	async #doJson(message) {
		const [tool] = message.name.toString().split('\0');
		const at = tool.lastIndexOf('#');
		const file = path.resolve(this.#config.path?.[0] ?? '/', tool.slice(0, at));
		const value = await callExport(pathToFileURL(file).href, tool.slice(at + 1), [JSON.parse(message.body.toString() || '{}')]);
		return [Buffer.from(toJson(value))];
	}

	#pack(value, files) {
		const { tree, buffers } = this.#codec.encode(value);
		const told = { value: tree };
		if (files) {
			told.files = Object.create(null);
			for (const [name, data] of Object.entries(files))
				told.files[name] = buffers.push(data) - 1;
		}
		return this.#codec.pack(told, buffers);
	}
}

async function callExport(url, name, args) {
	const space = await importModule(url);
	const found = Object.hasOwn(space, name) ? space[name] : Object.hasOwn(space.default ?? {}, name) ? space.default[name] : undefined;
	if (typeof found !== 'function')
		throw new TypeError(`${url} has no function '${name}'`);
	return await found(...args);
}

/** import(), of a script that is in no folder. */
const importModule = new vm.Script('(name) => import(name)', { filename: '<module>', importModuleDynamically: importing }).runInThisContext();

/** Node warns of the loader that import() goes by when it is first used: here, where nobody hears it, not in a call. */
async function hush() {
	const { emitWarning } = process;
	process.emitWarning = () => {};
	try {
		await importModule('node:path');
	} catch { // then it fails in a call, too, and says why
	} finally {
		process.emitWarning = emitWarning;
	}
}

/** As JSON has it, a Date as its text; throws where that would be another value. */
function toJson(value) {
	const text = JSON.stringify(value, (key, part) => {
		const isData = part === null || ['undefined', 'string', 'boolean'].includes(typeof part) || Number.isFinite(part) ||
			Array.isArray(part) || (typeof part === 'object' && [null, Object.prototype].includes(Object.getPrototypeOf(part)));
		if (!isData)
			throw new TypeError(`result${key && `.${key}`} is ${util.inspect(part, { depth: 0 }).slice(0, 60)}, which JSON cannot say`);
		return part;
	});
	return text ?? 'null';
}

async function flush() {
	for (const stream of [process.stdout, process.stderr])
		try {
			if (stream.writableLength)
				await new Promise((settle) => stream.write('', settle));
		} catch {} // closed; the code's own
}

function setInput(data) {
	const name = path.join(require('node:os').tmpdir(), `.stdin-${process.pid}`);
	fs.writeFileSync(name, data);
	fs.closeSync(0);
	const fd = fs.openSync(name, 'r'); // the lowest that is free
	fs.unlinkSync(name);
	if (fd !== 0)
		throw new Error('standard input cannot be placed');
}

function forwardConsole(talk) {
	for (const [method, level] of Object.entries(CONSOLE))
		console[method] = (...words) => talk.send(talking.LOG, level, [bound(util.format(...words))]);
}

// ---- the life of an occupant ----------------------------------------------------------------------

/**
 * Errors that nobody caught, and a loop in which nothing can happen, end the call: not the process, in which Node would wait for
 * threads. The first are seen from now on; returns what looks after the second.
 */
function watch(occupant, io, end) {
	const decide = process._fatalException;
	process._fatalException = (error, fromPromise) => {
		const isHandled = process.listenerCount('uncaughtException') || process.hasUncaughtExceptionCaptureCallback();
		const tell = () => end(occupant.fail(error));
		if (!isHandled)
			process.on('uncaughtException', tell); // for as long as Node looks for one
		const isDone = Reflect.apply(decide, process, [error, fromPromise]);
		process.off('uncaughtException', tell);
		if (!isDone)
			tell();
		return true;
	};
	const stall = () => end(occupant.fail(new Error(NEVER)));
	if (io.isAnew)
		return () => process.once('beforeExit', stall);
	let looks = 0;
	const { getActiveResourcesInfo } = process;
	const look = () => {
		keep.unref();
		const isIdle = !io.isAlive() && !getActiveResourcesInfo().some((name) => name === 'Timeout' || name === 'Immediate');
		keep.ref();
		looks = isIdle ? looks + 1 : 0;
		if (looks >= LOOKS)
			stall();
	};
	let keep;
	const begin = () => {
		keep = setInterval(look, STALL_MS);
	};
	return () => setImmediate(begin); // most calls are over by then, and need no timer, whose first costs a fork much
}

/** All that can be made before there is a process for the call. Returns what is to run in it. */
function prepare(codec, io, config, fd) {
	const talk = new Talk(io, fd);
	const occupant = new Occupant(codec, talk, io, config);
	const end = (told) => told.then(io.pause, () => io.exit(1));
	const lookAfter = watch(occupant, io, end);
	return async () => {
		if (io.isAnew) {
			await hush();
		} else {
			become(io, config);
			if (!io.isAwaited())
				await rehearse(codec, io, config);
		}
		lookAfter();
		io.park();
		end(occupant.serve(talk.hear()));
	};
}

// ---- rehearsal ------------------------------------------------------------------------------------

const REHEARSAL = `const list = [1, 2, 3].map((x) => x * 2);
const text = \`\${list.join()} \${JSON.stringify({ a: list, b: new Map([[1, 2]]) })}\`;
for (let i = 0; i < ASKS; i++)
	await tools.rehearse([i, text, { text, list, i }, new Date(i)][i % 4]);
return { text, list, when: new Date(0) };`;
const MANY = 1500; // after which V8 has compiled what asks and answers

/** Does a call by way of a socket of its own, with so many questions, and leaves everything as it was. */
async function rehearse(codec, io, config, asks = 2) {
	await hush();
	const pair = io.pair();
	if (!pair) // a policy without sockets: then the first call is slower
		return;
	const [mine, theirs] = pair.map((fd) => new Talk(io, fd));
	const plain = { ...config, mode: 'message' };
	const code = REHEARSAL.replace('ASKS', String(asks));
	mine.send(talking.EXECUTE, '', codec.pack({ op: 'eval', code, filename: '<rehearsal>', tools: ['rehearse'], files: {}, collect: [] }), 1);
	const served = new Occupant(codec, theirs, io, plain).serve(theirs.hear());
	for (;;) {
		await new Promise((settle) => setImmediate(settle)); // what was heard has been acted on by then
		const told = mine.hear();
		if (told.kind === talking.ERROR || told.kind === talking.LOG)
			throw new Error(`a rehearsal failed: ${told.body.toString()}`);
		codec.unpack(told.body);
		if (told.kind === talking.RESULT)
			break;
		mine.send(talking.ANSWER, '', codec.pack({ value: [told.id, "a", { a: told.id }, [true]][told.id % 4] }), told.id);
	}
	await served;
	await Promise.all([mine.close(), theirs.close()]);
	delete globalThis.tools;
	delete globalThis.rehearse;
}

module.exports = { MANY, become, prepare, rehearse, tidy, makePlainIo };
