// SPDX-License-Identifier: Apache-2.0
/*
 * Values and messages: what a cell and its host say to each other, as bytes. The format is that of
 * runtimes/python/codec.py; docs/values.md has the table of what becomes what.
 *
 *     u32 n, n bytes of JSON, u32 count, count × u64 lengths, the buffers        (least significant byte first)
 *
 * The host reads what a cell wrote, and a cell may be anybody's. Reading builds plain data and nothing else, what it
 * costs is bounded by the bytes that came, and it throws Malformed and nothing else. No object that was read has a
 * property of its own named __proto__: what copies objects would follow it.
 *
 * The same file is part of the runtime in a cell and of the package on the host.
 */

import * as nodeBuffer from 'node:buffer';
import { types } from 'node:util';

const { Buffer } = nodeBuffer;

export const PARTS_MAX = 10_000_000; // of a message's JSON
export const BUFFERS_MAX = 1 << 20;
export const NESTING_MAX = 200; // lists and objects of JSON, as every reader has it
export const FILES_MAX = 10_000; // that come with a result
const FOLDERS_MAX = 64; // around such a file
const NDIM_MAX = 32;
const NAME_MAX = 4096;

export const RESULT_ADVICE = 'return plain data';
export const PLAIN_ADVICE = 'only plain data can be sent';

/** The bytes are not a message, or a value in it is none. */
export class Malformed extends Error {
	get name() {
		return 'Malformed';
	}
}

/** A value that cannot be written. The message says where in the value it is, what it is, what to do. */
export class NotPlain extends TypeError {
	#what;
	#path = []; // from the inside out

	constructor(what) {
		super(what);
		this.#what = what;
	}

	get name() {
		return 'NotPlain';
	}

	within(step) {
		this.#path.push(step);
		return this;
	}

	complete(name, advice) {
		this.message = `${name}${this.#path.reverse().join('')} ${this.#what}: ${advice}`;
		return this;
	}
}

/**
 * A value of another language that has no counterpart here: it is written again as what it was. `type` is its name
 * without the $: 'decimal', 'uuid', 'complex', 'date', 'time', 'datetime' (one without an offset), 'timedelta',
 * 'ndarray', 'npscalar'. `value` is what docs/values.md has for it; of the last two it has `data` in place of `buffer`.
 */
export class Foreign {
	constructor(type, value) {
		if (!foreignCheckers.has(type))
			throw new Malformed(`${show(type)} is not the name of a foreign type`);
		this.type = type;
		this.value = foreignCheckers.get(type)(value);
		Object.freeze(this);
	}

	toString() {
		return typeof this.value === 'string' ? this.value : `${this.type} ${JSON.stringify(this.value)}`;
	}

	toJSON() {
		return this.value;
	}
}

/**
 * The buffers of a message. Each can be taken once: else a few bytes that name the same buffer again and again would
 * fill the reader's memory.
 */
export class Attachments {
	#views;
	#taken = null;

	/** isPlain: the JSON has no name that begins with "$" or is __proto__, so its values are as they stand. */
	constructor(views = [], isPlain = false) {
		this.#views = views;
		this.isPlain = isPlain;
		this.tables = new TableBudget();
	}

	get length() {
		return this.#views.length;
	}

	take(index) {
		if (typeof index !== 'number' || !(index in this.#views))
			throw new Malformed(`there is no buffer ${show(index)}`);
		this.#taken ??= new Uint8Array(this.#views.length);
		if (this.#taken[index])
			throw new Malformed(`buffer ${index} is used twice`);
		this.#taken[index] = 1;
		return this.#views[index];
	}
}

/*
 * Sets and maps whose keys were chosen to share a hash take the square of their number. How V8 hashes numbers is no
 * secret, and of a BigInt it looks at 64 bits only. So what filling tables takes is measured, for a whole message.
 */
class TableBudget {
	static FREE = 64; // keys of a table that are not worth a look at the clock
	static BATCH = 1024;
	static BATCH_MS_MAX = 100; // what one batch counts for at most: the process may have stood still
	static MS = 500;
	static MS_PER_KEY = 0.002; // ten times what it takes

	#left = TableBudget.MS;

	fill(count, add) {
		if (count <= TableBudget.FREE) {
			for (let at = 0; at < count; at++)
				add(at);
			return;
		}
		for (let at = 0; at < count;) {
			const end = Math.min(count, at + TableBudget.BATCH);
			const keys = end - at;
			const began = performance.now();
			for (; at < end; at++)
				add(at);
			const took = Math.min(performance.now() - began, TableBudget.BATCH_MS_MAX);
			this.#left -= took - keys * TableBudget.MS_PER_KEY;
			if (this.#left < 0)
				throw new Malformed('keys collide');
		}
	}
}

function show(value) {
	let text;
	try {
		text = typeof value === 'bigint' ? `${value}n` : JSON.stringify(value) ?? String(value);
	} catch {
		text = typeof value;
	}
	return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

// ---- messages ----------------------------------------------------------------------------------------------------

/** A message, in pieces: the buffers themselves are not copied. */
export function pack(head, buffers = []) {
	const text = JSON.stringify(head);
	const size = Buffer.byteLength(text);
	// JSON may end in spaces: the first buffer then lies where its numbers can be used in place.
	const spaces = buffers.length ? -(8 + size + 8 * buffers.length) & 15 : 0;
	const start = Buffer.allocUnsafe(8 + size + spaces + 8 * buffers.length);
	start.writeUInt32LE(size + spaces, 0);
	start.utf8Write(text, 4, size);
	start.fill(' ', 4 + size, 4 + size + spaces);
	let at = start.writeUInt32LE(buffers.length, 4 + size + spaces);
	const views = buffers.map(viewBytes);
	for (const view of views)
		at = start.writeBigUInt64LE(BigInt(view.length), at);
	return [start, ...views];
}

function viewBytes(data) {
	if (Buffer.isBuffer(data))
		return data;
	return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}

/** A message's head, and its buffers, which are views of `data`. Throws Malformed. */
export function unpack(data, partsMax = PARTS_MAX) {
	const view = viewBytes(data);
	const { head, isPlain, lengths, at: start } = unpackHead(view, view.length, partsMax);
	let at = start;
	const views = lengths.map((length) => view.subarray(at, at += length));
	return { head, attachments: new Attachments(views, isPlain) };
}

/**
 * Of a message of `size` bytes, whose beginning is in `view`: the head, whether it is plain, the lengths of the
 * buffers and where they begin. Throws Malformed, also if too little of it is there.
 */
export function unpackHead(view, size, partsMax = PARTS_MAX) {
	if (view.length < 8)
		throw new Malformed('the message is cut short');
	const textEnd = 4 + view.readUInt32LE(0);
	if (textEnd + 4 > view.length)
		throw new Malformed("the message's head is longer than the message");
	const count = view.readUInt32LE(textEnd);
	const at = textEnd + 4 + 8 * count;
	if (at > view.length || count > BUFFERS_MAX)
		throw new Malformed('the message has too many buffers');
	const lengths = new Array(count);
	let total = 0;
	for (let index = 0; index < count; index++) {
		lengths[index] = Number(view.readBigUInt64LE(textEnd + 4 + 8 * index));
		total += lengths[index]; // inexact from 2^53 on, and then far from any size
	}
	if (total !== size - at)
		throw new Malformed("the sizes of the message's buffers do not add up");
	const { tree: head, isPlain } = parse(view.subarray(4, textEnd), partsMax, "the message's head");
	if (head === null || typeof head !== 'object' || Array.isArray(head))
		throw new Malformed("the message's head is not an object");
	return { head, isPlain, lengths, at };
}

const fatalDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Text of bytes, which are UTF-8 or it throws. */
function decodeUtf8(bytes) {
	if (nodeBuffer.isUtf8 === undefined) // before Node 18.14
		return fatalDecoder.decode(bytes);
	if (!nodeBuffer.isUtf8(bytes))
		throw new Malformed('it is not UTF-8');
	return bytes.utf8Slice(0, bytes.length);
}

const SPECIAL_NAME = /"\$|"\\u0024|__proto__|\\u005[fF]/;

function parse(bytes, partsMax, what) {
	try {
		checkShape(bytes, partsMax);
		const text = decodeUtf8(bytes);
		return { tree: JSON.parse(text), isPlain: !SPECIAL_NAME.test(text) };
	} catch (error) {
		if (error instanceof Malformed && !error.message.startsWith('it '))
			throw error;
		throw new Malformed(`${what} is not JSON: ${String(error?.message).slice(0, 200)}`);
	}
}

const [COMMA, QUOTE, BACKSLASH] = [0x2c, 0x22, 0x5c];
const WEIGHT = new Uint8Array(256); // an object takes as much memory as four numbers
WEIGHT[COMMA] = WEIGHT[0x5b] = 1;
WEIGHT[0x7b] = 4;
const STEP = new Int8Array(256);
STEP[0x5b] = STEP[0x7b] = 1;
STEP[0x5d] = STEP[0x7d] = -1;

/** Throws where JSON has too many parts or nests too deep, before anything is made of it. */
function checkShape(bytes, partsMax) {
	if (bytes.length < NESTING_MAX && 4 * bytes.length <= partsMax)
		return;
	let depth = 0;
	let parts = 0;
	for (let at = 0; at < bytes.length; at++) {
		const byte = bytes[at];
		if (byte === QUOTE) {
			at = findTextEnd(bytes, at + 1);
			continue;
		}
		parts += WEIGHT[byte];
		depth += STEP[byte];
		if (depth > NESTING_MAX)
			throw new Malformed('the message nests too deep');
	}
	if (parts > partsMax)
		throw new Malformed('the message has too many parts');
}

const BY_HAND = 64; // bytes of a text that are looked at here; what is longer is searched, at the speed of memchr()

/** Where the quote is that ends a text which begins at `at`. */
function findTextEnd(bytes, at) {
	for (;;) {
		for (const stop = Math.min(at + BY_HAND, bytes.length); at < stop; at++) {
			if (bytes[at] === QUOTE)
				return at;
			if (bytes[at] === BACKSLASH)
				at++;
		}
		const quote = bytes.indexOf(QUOTE, at);
		if (quote < 0)
			return bytes.length;
		let slashes = 0;
		while (quote - slashes > at && bytes[quote - slashes - 1] === BACKSLASH)
			slashes++;
		if (slashes % 2 === 0)
			return quote;
		at = quote + 1;
	}
}

// ---- writing values ----------------------------------------------------------------------------------------------

const TYPED_ARRAYS = {
	Int8Array: '|i1', Uint8Array: '|u1', Uint8ClampedArray: '|u1', Int16Array: '<i2', Uint16Array: '<u2',
	Int32Array: '<i4', Uint32Array: '<u4', BigInt64Array: '<i8', BigUint64Array: '<u8', Float16Array: '<f2',
	Float32Array: '<f4', Float64Array: '<f8',
};

/**
 * A value as a tree for pack(), and its buffers: appended to `buffers` where that is given. The tree shares what needs
 * no change with the value. layers: how many lists and objects will be around the tree. Throws NotPlain.
 */
export function encode(value, { buffers = [], name = 'result', advice = RESULT_ADVICE, layers = 1 } = {}) {
	try {
		return { tree: new Encoder(buffers).walk(value, layers), buffers };
	} catch (error) {
		throw error instanceof NotPlain ? error.complete(name, advice) : error;
	}
}

class Encoder {
	constructor(buffers) {
		this.buffers = buffers;
	}

	attach(buffer) {
		return this.buffers.push(buffer) - 1;
	}

	/** depth: the lists and objects of JSON around it. What needs no change is returned as the very same. */
	walk(value, depth) {
		switch (typeof value) {
		case 'string':
		case 'boolean':
			return value;
		case 'number':
			return isWrittenExactly(value) ? value : { $float: nameFloat(value) };
		case 'bigint':
			return { $int: value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}` };
		case 'undefined':
			return { $undefined: true };
		case 'object':
			return value === null ? null : this.walkObject(value, depth);
		default:
			throw new NotPlain(`is a ${typeof value}`);
		}
	}

	walkObject(value, depth) {
		if (depth >= NESTING_MAX)
			throw new NotPlain(`nests more than ${NESTING_MAX} deep, or holds itself`);
		if (Array.isArray(value) && isExactly(value, 'Array'))
			return this.walkArray(value, depth + 1);
		const prototype = Object.getPrototypeOf(value);
		if ((prototype === null || Object.getPrototypeOf(prototype) === null) && !isExotic(value))
			return this.walkPlain(value, depth + 1);
		if (ArrayBuffer.isView(value))
			return this.walkView(value);
		if (types.isDate(value) && isExactly(value, 'Date'))
			return writeDate(value);
		if (types.isMap(value) && isExactly(value, 'Map'))
			return { $dict: this.walkPairs(Map.prototype.entries.call(value), depth + 2) };
		if (types.isSet(value) && isExactly(value, 'Set'))
			return { $set: this.walkArray([...Set.prototype.values.call(value)], depth + 2) };
		if (types.isArrayBuffer(value))
			return { $bytes: this.attach(new Uint8Array(value)) };
		if (value instanceof Foreign)
			return this.walkForeign(value);
		throw new NotPlain(`is a ${nameClass(value)}`);
	}

	walkArray(value, depth) {
		let changed = value;
		for (let at = 0; at < value.length; at++) {
			const item = value[at];
			const written = this.step(item, depth, () => `[${at}]`);
			if (written === item)
				continue;
			if (changed === value)
				changed = Array.from(value);
			changed[at] = written;
		}
		return changed;
	}

	walkPlain(value, depth) {
		const names = Object.keys(value);
		if (Object.getOwnPropertySymbols(value).length)
			throw new NotPlain('has a symbol for a name');
		if (names.length === 1 && names[0][0] === '$')
			return { $dict: this.walkPairs([[names[0], value[names[0]]]], depth + 1) };
		let changed = value;
		for (const name of names) {
			const item = value[name];
			const written = this.step(item, depth, () => `[${show(name)}]`);
			if (written === item)
				continue;
			if (changed === value)
				changed = { ...value };
			setOwn(changed, name, written);
		}
		return changed;
	}

	walkPairs(entries, depth) {
		const pairs = [];
		for (const [key, item] of entries) {
			const at = pairs.length;
			pairs.push([this.step(key, depth + 1, () => `.keys()[${at}]`), this.step(item, depth + 1, () => `[${show(key)}]`)]);
		}
		return pairs;
	}

	step(item, depth, describe) {
		try {
			return this.walk(item, depth);
		} catch (error) {
			throw error instanceof NotPlain ? error.within(describe()) : error;
		}
	}

	walkView(value) {
		if (Buffer.isBuffer(value) && isExactly(value, 'Buffer'))
			return { $bytes: this.attach(value) };
		const name = types.isTypedArray(value) ? value[Symbol.toStringTag] : 'DataView';
		if (!Object.hasOwn(TYPED_ARRAYS, name) || !isExactly(value, name))
			throw new NotPlain(`is a ${nameClass(value)}`);
		return { $ndarray: { dtype: TYPED_ARRAYS[name], shape: [value.length], order: 'C', buffer: this.attach(value) } };
	}

	walkForeign({ type, value }) {
		if (type === 'complex')
			return { $complex: value.map((part) => this.walk(part, 0)) };
		if (type !== 'ndarray' && type !== 'npscalar')
			return { [`$${type}`]: value };
		const { data, ...rest } = value;
		return { [`$${type}`]: { ...rest, buffer: this.attach(data) } };
	}
}

/** Whether JSON says it, to those too for whom integers are not floats: 2 ** 60 would be 1152921504606847000. */
function isWrittenExactly(value) {
	return Number.isSafeInteger(value) ? !Object.is(value, -0) : Number.isFinite(value) && (value % 1 !== 0 || Math.abs(value) >= 1e21);
}

function nameFloat(value) {
	if (Number.isFinite(value))
		return Object.is(value, -0) ? '-0.0' : `${BigInt(value)}.0`;
	return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

function writeDate(value) {
	const time = Date.prototype.getTime.call(value);
	if (Number.isNaN(time))
		throw new NotPlain('is a Date that is none');
	return { $datetime: Date.prototype.toISOString.call(value) };
}

/** Whether a value is of that class itself, of this realm or another, not of one derived from it. */
function isExactly(value, name) {
	const prototype = Object.getPrototypeOf(value);
	if (prototype === globalThis[name]?.prototype)
		return true;
	return prototype !== null && Object.hasOwn(prototype, 'constructor') && prototype.constructor?.name === name;
}

/** An object with inner slots whose prototype was taken away. */
function isExotic(value) {
	return ArrayBuffer.isView(value) || types.isProxy(value) || types.isDate(value) || types.isMap(value)
		|| types.isSet(value) || types.isAnyArrayBuffer(value) || types.isNativeError(value) || types.isRegExp(value)
		|| types.isPromise(value) || types.isBoxedPrimitive(value) || Array.isArray(value);
}

function nameClass(value) {
	if (types.isProxy(value))
		return 'Proxy';
	const name = Object.getPrototypeOf(value)?.constructor?.name;
	return typeof name === 'string' && name ? name.slice(0, 60) : 'object of no class';
}

function setOwn(object, name, value) {
	if (name === '__proto__')
		Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
	else
		object[name] = value;
}

// ---- reading values ----------------------------------------------------------------------------------------------

const DTYPE = /^[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|([SU])[1-9][0-9]{0,8}|[Mm]8(?:\[[0-9]{0,6}(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)$/;
const HEX = /^-?0x[0-9a-f]+$/;
const DECIMAL = /^-?(?:[0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]{1,20})?|Infinity|s?NaN[0-9]*)$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const DAY = '([+-]?[0-9]{4,6})-([0-9]{2})-([0-9]{2})';
const CLOCK = '([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\\.([0-9]{1,6}))?(Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]{6})?)?)?';
const DATE = new RegExp(`^${DAY}$`);
const TIME = new RegExp(`^${CLOCK}$`);
const MOMENT = new RegExp(`^${DAY}T${CLOCK}$`);
const FLOATS = new Map([['nan', NaN], ['inf', Infinity], ['-inf', -Infinity]]);
const WHOLE_FLOAT = /^-?[0-9]{1,21}\.0$/;
const TEXT_MAX = 64; // of dates and times
const INT_DIGITS_MAX = 1 << 28; // V8's own bound on a BigInt is 2^30 bits

/** The value that a tree says, which is used up. attachments: one for all that is read from a message. Throws Malformed. */
export function decode(tree, attachments = new Attachments()) {
	if (attachments.isPlain || tree === null || typeof tree !== 'object')
		return tree;
	try {
		return new Decoder(attachments).walk(tree);
	} catch (error) {
		if (error instanceof Malformed)
			throw error;
		const why = error instanceof RangeError && /call stack/.test(error.message) ? 'it nests too deep' : error?.message;
		throw new Malformed(`the value cannot be made: ${String(why).slice(0, 200)}`);
	}
}

/** The same for a value whose bytes are JSON alone. */
export function decodeText(bytes, partsMax = PARTS_MAX) {
	const { tree, isPlain } = parse(viewBytes(bytes), partsMax, 'the value');
	return decode(tree, new Attachments([], isPlain));
}

class Decoder {
	constructor(attachments) {
		this.attachments = attachments;
	}

	/** In place: arrays and objects of JSON become those of the value. */
	walk(tree) {
		if (Array.isArray(tree)) {
			for (let at = 0; at < tree.length; at++) {
				const item = tree[at];
				if (item !== null && typeof item === 'object')
					tree[at] = this.walk(item);
			}
			return tree;
		}
		if (tree === null || typeof tree !== 'object')
			return tree;
		const names = Object.keys(tree);
		if (names.length === 1 && names[0][0] === '$') {
			const read = readers.get(names[0]);
			if (read === undefined)
				throw new Malformed(`${show(names[0])} is not the name of a type`);
			return read(this, tree[names[0]]);
		}
		for (const name of names) {
			const item = tree[name];
			if (item !== null && typeof item === 'object')
				setOwn(tree, name, this.walk(item));
		}
		return Object.hasOwn(tree, '__proto__') ? new Map(Object.entries(tree)) : tree;
	}

	items(body) {
		if (!Array.isArray(body))
			throw new Malformed('a list is wanted');
		return this.walk(body);
	}

	readDict(body) {
		const pairs = this.items(body);
		const map = new Map();
		this.attachments.tables.fill(pairs.length, (at) => {
			const pair = pairs[at];
			if (!Array.isArray(pair) || pair.length !== 2)
				throw new Malformed('a list of pairs is wanted');
			map.set(pair[0], pair[1]);
		});
		if (map.size === 1) {
			const [[key, value]] = map;
			if (typeof key === 'string' && key[0] === '$')
				return { [key]: value };
		}
		return map;
	}

	readSet(body) {
		const items = this.items(body);
		const set = new Set();
		this.attachments.tables.fill(items.length, (at) => set.add(items[at]));
		return set;
	}

	readBytes(index) {
		return ownBuffer(this.attachments.take(index));
	}

	takeArray(body, names) {
		if (body === null || typeof body !== 'object' || Array.isArray(body)
			|| Object.keys(body).length !== names.length || !names.every((name) => Object.hasOwn(body, name)))
			throw new Malformed('an array is wanted');
		const { buffer, ...rest } = body;
		return { ...rest, data: ownBuffer(this.attachments.take(buffer)) };
	}

	readArray(body) {
		const array = checkArray(this.takeArray(body, ['dtype', 'shape', 'order', 'buffer']));
		const view = array.shape.length === 1 ? viewTyped(array.dtype, array.data) : null;
		return view ?? new Foreign('ndarray', array);
	}

	readScalar(body) {
		const scalar = checkScalar(this.takeArray(body, ['dtype', 'buffer']));
		if (scalar.dtype === '|b1')
			return scalar.data[0] === 1;
		return viewTyped(scalar.dtype, scalar.data)?.[0] ?? new Foreign('npscalar', scalar);
	}
}

const readers = new Map([
	['$int', (_, body) => readInt(body)],
	['$float', (_, body) => readFloat(body)],
	['$undefined', (_, body) => readUndefined(body)],
	['$bytes', (decoder, body) => decoder.readBytes(body)],
	['$bytearray', (decoder, body) => decoder.readBytes(body)],
	['$tuple', (decoder, body) => decoder.items(body)],
	['$set', (decoder, body) => decoder.readSet(body)],
	['$frozenset', (decoder, body) => decoder.readSet(body)],
	['$dict', (decoder, body) => decoder.readDict(body)],
	['$datetime', (_, body) => readMoment(body)],
	['$complex', (decoder, body) => new Foreign('complex', decoder.items(body))],
	['$date', (_, body) => new Foreign('date', body)],
	['$time', (_, body) => new Foreign('time', body)],
	['$timedelta', (_, body) => new Foreign('timedelta', body)],
	['$decimal', (_, body) => new Foreign('decimal', body)],
	['$uuid', (_, body) => new Foreign('uuid', body)],
	['$ndarray', (decoder, body) => decoder.readArray(body)],
	['$npscalar', (decoder, body) => decoder.readScalar(body)],
]);

const foreignCheckers = new Map([
	['complex', checkComplex],
	['date', (text) => (checkDay(matchText(DATE, text, TEXT_MAX)), text)],
	['time', (text) => (checkClock(matchText(TIME, text, TEXT_MAX), 1), text)],
	['datetime', checkMoment],
	['timedelta', checkSpan],
	['decimal', (text) => (matchText(DECIMAL, text), text)],
	['uuid', (text) => (matchText(UUID, text), text)],
	['ndarray', checkArray],
	['npscalar', checkScalar],
]);

function matchText(pattern, body, max = Infinity) {
	const match = typeof body === 'string' && body.length <= max ? pattern.exec(body) : null;
	if (match === null)
		throw new Malformed(`${show(body)} is not written as it should be`);
	return match;
}

function readInt(body) {
	matchText(HEX, body, INT_DIGITS_MAX);
	return body[0] === '-' ? -BigInt(body.slice(1)) : BigInt(body);
}

function readFloat(body) {
	return FLOATS.get(body) ?? Number(matchText(WHOLE_FLOAT, body)[0]);
}

function readUndefined(body) {
	if (body !== true)
		throw new Malformed('undefined is wanted');
	return undefined;
}

/** A moment with an offset is an instant, and a Date; without one nobody knows which. */
function readMoment(body) {
	const match = matchText(MOMENT, body, TEXT_MAX);
	const day = checkDay(match);
	const clock = checkClock(match, 4);
	if (match[8] === undefined)
		return new Foreign('datetime', body);
	const date = new Date(day + clock);
	if (Number.isNaN(date.getTime()))
		throw new Malformed(`${show(body)} is beyond what a Date can be`);
	return date;
}

/** Milliseconds of a day that there is. */
function checkDay([text, year, month, day]) {
	const date = new Date(0);
	date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
	if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day) || year === '0000')
		throw new Malformed(`${show(text)} is not written as it should be`);
	return date.getTime();
}

/** Milliseconds of a time that there is, in UTC where it has an offset; what is below a millisecond is dropped. */
function checkClock(match, from) {
	const [hour, minute, second] = match.slice(from, from + 3).map(Number);
	const [, sign, hours, minutes, seconds] = /^([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?/.exec(match[from + 4] ?? '') ?? [];
	if (hour > 23 || minute > 59 || second > 59 || hours > 23 || minutes > 59 || seconds > 59)
		throw new Malformed(`${show(match[0])} is not written as it should be`);
	const offset = sign ? (sign === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + Number(seconds ?? 0)) : 0;
	const fraction = Number((match[from + 3] ?? '').padEnd(3, '0').slice(0, 3));
	return (hour * 3600 + minute * 60 + second - offset) * 1000 + fraction;
}

function checkMoment(text) {
	const match = matchText(MOMENT, text, TEXT_MAX);
	checkDay(match);
	checkClock(match, 4);
	return text;
}

function checkComplex(parts) {
	if (!Array.isArray(parts) || parts.length !== 2 || !parts.every((part) => typeof part === 'number'))
		throw new Malformed('two numbers are wanted');
	return Object.freeze([...parts]);
}

function checkSpan(parts) {
	if (!Array.isArray(parts) || parts.length !== 3 || !parts.every(Number.isSafeInteger))
		throw new Malformed('three integers are wanted');
	return Object.freeze([...parts]);
}

function sizeItem(dtype) {
	const match = matchText(DTYPE, dtype);
	return Number(/[0-9]+/.exec(dtype)[0]) * (match[1] === 'U' ? 4 : 1);
}

function checkArray({ dtype, shape, order, data }) {
	const size = sizeItem(dtype);
	if (!Array.isArray(shape) || shape.length > NDIM_MAX || (order !== 'C' && order !== 'F')
		|| !shape.every((length) => Number.isSafeInteger(length) && length >= 0))
		throw new Malformed("an array's shape is a list of sizes");
	const bytes = checkData(dtype, data);
	if (shape.reduce((count, length) => count * length, size) !== bytes.byteLength)
		throw new Malformed("an array's shape and its buffer do not agree");
	return Object.freeze({ dtype, shape: Object.freeze([...shape]), order, data: bytes });
}

function checkScalar({ dtype, data }) {
	if (sizeItem(dtype) !== checkData(dtype, data).byteLength)
		throw new Malformed("a scalar's type and its buffer do not agree");
	return Object.freeze({ dtype, data });
}

function checkData(dtype, data) {
	if (!ArrayBuffer.isView(data))
		throw new Malformed("an array's data are bytes");
	if (dtype === '|b1' && viewBytes(data).some((byte) => byte > 1))
		throw new Malformed('a bool is neither true nor false');
	return data;
}

const ARRAY_CLASSES = new Map(Object.entries(TYPED_ARRAYS)
	.filter(([name]) => name !== 'Uint8ClampedArray' && globalThis[name] !== undefined)
	.map(([name, dtype]) => [dtype, globalThis[name]]));

/** A typed array over the bytes, in place where they lie right; null where there is no class for the type. */
function viewTyped(dtype, data) {
	const Class = ARRAY_CLASSES.get(dtype);
	if (Class === undefined)
		return null;
	const count = data.length / Class.BYTES_PER_ELEMENT;
	if (data.byteOffset % Class.BYTES_PER_ELEMENT === 0)
		return new Class(data.buffer, data.byteOffset, count);
	return new Class(Uint8Array.prototype.slice.call(data).buffer, 0, count);
}

/** A buffer that does not keep much more than itself in memory. */
function ownBuffer(view) {
	const data = viewBytes(view);
	return data.length * 2 < data.buffer.byteLength ? Buffer.from(Uint8Array.prototype.slice.call(data).buffer) : data;
}

// ---- files -------------------------------------------------------------------------------------------------------

/**
 * The files that came with a result: {"name": buffer}, as a Map of Buffers. Names are relative, lead nowhere else,
 * and match one of the patterns that were collected.
 */
export function readFiles(tree, attachments, patterns = []) {
	const files = new Map();
	if (tree === null || tree === undefined)
		return files;
	if (typeof tree !== 'object' || Array.isArray(tree))
		throw new Malformed('files are not an object');
	const entries = Object.entries(tree);
	if (entries.length > FILES_MAX)
		throw new Malformed(`there are more than ${FILES_MAX} files`);
	const matcher = new FileMatcher(patterns);
	for (const [name, index] of entries) {
		if (checkFileName(name).split('/').length > FOLDERS_MAX + 1 || !matcher.matches(name))
			throw new Malformed(`${show(name)} is not a file to be collected`);
		files.set(name, ownBuffer(attachments.take(index)));
	}
	return files;
}

/** The name, if it is that of a file below a folder: relative, without "..", "." or empty parts. */
export function checkFileName(name) {
	if (typeof name !== 'string' || name.length > NAME_MAX || name.includes('\0')
		|| name.split('/').some((part) => part === '' || part === '.' || part === '..'))
		throw new Malformed(`${show(name)} is not a relative name of a file`);
	return name;
}

/**
 * Patterns of files. `**` is any number of folders, at its end also all files in them; `*`, `?` and `[]` match within
 * a name. The names may be anybody's: what matching takes is in proportion to a name times a pattern, for which
 * nothing is tried again but from the last star on.
 */
export class FileMatcher {
	#patterns;

	constructor(patterns) {
		this.#patterns = patterns.map(splitPattern);
	}

	matches(name) {
		const parts = name.split('/');
		return this.#patterns.some((pattern) => matchParts(pattern, parts));
	}
}

/** An expression for each part; null for `**`. */
function splitPattern(pattern) {
	const parts = typeof pattern === 'string' ? pattern.split('/') : [''];
	if (parts[0] === '.')
		parts.shift();
	if (!parts.length || parts.some((part) => part === '' || part === '.' || part === '..'))
		throw new Malformed(`collect: ${show(pattern)} is not a relative pattern`);
	if (parts.at(-1) === '**')
		parts.push('*');
	try {
		return parts.map((part) => part === '**' ? null : new RegExp(translatePart(part), 'su'));
	} catch {
		throw new Malformed(`collect: ${show(pattern)} is not a pattern`);
	}
}

function matchParts(pattern, parts) {
	let at = 0;
	let step = 0;
	let again = -1; // behind the pattern's last `**`
	let nextAt = 0;
	while (at < parts.length) {
		if (step < pattern.length && pattern[step] === null) {
			again = ++step;
			nextAt = at + 1;
		} else if (step < pattern.length && pattern[step].test(parts[at])) {
			step++;
			at++;
		} else if (again < 0) {
			return false;
		} else {
			step = again;
			at = nextAt++;
		}
	}
	return step === pattern.length;
}

function translatePart(part) {
	const pieces = ['']; // what is between stars
	for (const [token] of part.matchAll(/\*+|\?|\[!?\]?[^\]]*\]|./gsu)) {
		const inner = token.slice(1, -1).replace(/[\\[\]]/g, '\\$&');
		if (token[0] === '*')
			pieces.push('');
		else if (token === '?')
			pieces[pieces.length - 1] += '.';
		else if (token[0] === '[' && inner)
			pieces[pieces.length - 1] += inner[0] === '!' ? `[^${inner.slice(1)}]` : `[${inner[0] === '^' ? '\\' : ''}${inner}]`;
		else
			pieces[pieces.length - 1] += token.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
	}
	const [first, ...rest] = pieces;
	const last = rest.pop();
	// The first place where a piece is will do.
	const middle = rest.map((piece, number) => `(?=(?<p${number}>.*?${piece}))\\k<p${number}>`).join('');
	return `^${first}${middle}${last === undefined ? '' : `.*${last}`}$`;
}
