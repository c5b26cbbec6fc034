// SPDX-License-Identifier: Apache-2.0
/*
 * The wire between a client and its supervisor (docs/wire.md): frames, heads, messages. No input or output is done
 * here.
 */

import { Buffer } from 'node:buffer';

export const FRAME_MAX = 2 ** 30;
const HEAD_MAX = 1 << 16;
const MEMBERS_MAX = 24;
const LARGE = 1 << 16; // bodies from here on are gathered in memory of their own
const BIG = (1n << 63n) - 1n;
const EMPTY = Buffer.alloc(0);

/** The other side does not keep to the wire, or is gone. */
export class Broken extends Error {}

/** A number that is no integer of 64 bits, as it was written. */
export class WireNumber {
	constructor(text) {
		this.text = text;
	}
}

// ---- frames ------------------------------------------------------------------------------------------------------

/** A frame up to its body, which has that many bytes. head: an object of members; those that are undefined are left out. */
export function startFrame(head, bodyBytes = 0) {
	let members = '';
	for (const name of Object.keys(head)) {
		const value = head[name];
		if (value !== undefined)
			members += `${members && ','}"${name}":${typeof value === 'bigint' ? value : JSON.stringify(value)}`;
	}
	const text = `{${members}}`;
	const size = Buffer.byteLength(text);
	const start = Buffer.allocUnsafe(8 + size);
	start.writeUInt32LE(size + bodyBytes, 0);
	start.writeUInt32LE(size, 4);
	start.write(text, 8, size, 'utf8');
	return start;
}

/** Takes a stream apart into frames. */
export class FrameReader {
	#rest = EMPTY; // of a frame whose body is small, or whose lengths are not all there
	#head = EMPTY;
	#body = null; // a large one that is not complete
	#filled = 0;

	/** Whether there is nothing of a frame that is not complete. */
	get isBetween() {
		return this.#body === null && this.#rest.length === 0;
	}

	/** The frames that are complete with what came, each {head, body}. Throws Broken behind the last of them. */
	*push(chunk) {
		let data = chunk;
		if (this.#body !== null) {
			const taken = chunk.copy(this.#body, this.#filled);
			this.#filled += taken;
			if (this.#filled < this.#body.length)
				return;
			const body = this.#body;
			this.#body = null;
			data = chunk.subarray(taken);
			yield { head: this.#head, body };
		}
		if (this.#rest.length)
			data = Buffer.concat([this.#rest, data]);
		let at = 0;
		while (data.length - at >= 8) {
			const length = data.readUInt32LE(at);
			const headLength = data.readUInt32LE(at + 4);
			if (headLength > length || headLength > HEAD_MAX || length > FRAME_MAX)
				throw new Broken('it is no frame');
			const middle = at + 8 + headLength;
			const end = at + 8 + length;
			if (end > data.length) {
				if (length - headLength > LARGE && middle <= data.length) {
					this.#begin(data.subarray(at + 8, middle), data.subarray(middle), length - headLength);
					at = data.length;
				}
				break;
			}
			this.#rest = EMPTY;
			yield { head: data.subarray(at + 8, middle), body: data.subarray(middle, end) };
			at = end;
		}
		this.#rest = at === data.length ? EMPTY : data.subarray(at);
	}

	/** The kernel gives memory as bytes come, not when they are promised. */
	#begin(head, body, length) {
		this.#head = head;
		this.#body = Buffer.allocUnsafeSlow(length);
		this.#filled = body.copy(this.#body);
	}
}

// ---- heads -------------------------------------------------------------------------------------------------------

const SPACE = '[ \\t\\r\\n]*';
const TEXT = '"(?:[^"\\\\\\u0000-\\u001f]|\\\\(?:["\\\\/bfnrt]|u[0-9a-fA-F]{4}))*"';
const NUMBER = '-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?(?:[eE][+-]?[0-9]+)?';
const MEMBER = new RegExp(`${SPACE}(${TEXT})${SPACE}:${SPACE}(?:(${TEXT})|(${NUMBER})|(true|false|null))${SPACE}([,}])`, 'y');
const OPEN = new RegExp(`^${SPACE}\\{`);
const OPEN_AND_SHUT = new RegExp(`^${SPACE}\\{${SPACE}\\}${SPACE}$`);
const REST = new RegExp(`${SPACE}$`, 'y');
const NO_TEXT = /\0|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/;
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The members of a head, as a Map. Throws Broken where it is none. */
export function readHead(bytes) {
	let text;
	try {
		text = decoder.decode(bytes);
	} catch {
		throw new Broken('a head is not UTF-8');
	}
	const members = new Map();
	if (OPEN_AND_SHUT.test(text))
		return members;
	const open = OPEN.exec(text);
	if (open === null)
		throw new Broken('a head is no object');
	MEMBER.lastIndex = open[0].length;
	for (let mark = ','; mark === ',';) {
		const match = MEMBER.exec(text);
		if (match === null)
			throw new Broken('a head is no flat JSON');
		const name = readText(match[1]);
		if (members.has(name) || members.size === MEMBERS_MAX)
			throw new Broken('a name twice in a head, or too many');
		members.set(name, readValue(match));
		mark = match[5];
	}
	REST.lastIndex = MEMBER.lastIndex;
	if (!REST.test(text))
		throw new Broken('something is behind a head');
	return members;
}

function readText(quoted) {
	if (!quoted.includes('\\'))
		return quoted.slice(1, -1);
	const text = JSON.parse(quoted);
	if (NO_TEXT.test(text))
		throw new Broken('what is no text in a head');
	return text;
}

const WORDS = { true: true, false: false, null: null };

function readValue([, , text, number, word]) {
	if (text !== undefined)
		return readText(text);
	if (number === undefined)
		return WORDS[word];
	const value = Number(number);
	if (Number.isSafeInteger(value) && !/[.eE]/.test(number))
		return value + 0; // -0 is 0
	if (/[.eE]/.test(number) || number.length > 20)
		return new WireNumber(number);
	const big = BigInt(number);
	return big >= -BIG - 1n && big <= BIG ? big : new WireNumber(number);
}

// ---- messages ----------------------------------------------------------------------------------------------------

const COUNT = [0, BIG];
// What a message of the supervisor may have: a flag, a text, or the bounds of an integer.
const FIELDS = new Map(Object.entries({
	is: 'string', call: COUNT, status: 'string', value: COUNT, stdout: COUNT, stderr: COUNT, dropped_stdout: COUNT,
	dropped_stderr: COUNT, exit_code: [-1, 255], signal: [0, 127], wall_ns: COUNT, cpu_ns: COUNT, peak_kb: [-1, BIG],
	processes: [-1, BIG], cell: 'boolean', unreaped: 'boolean', protected: 'string', error_type: 'string', error: 'string', stream: [1, 2],
	ask: COUNT, tool: 'string', pool: COUNT, ok: 'boolean', num: [1, 4095], version: COUNT, vitro: 'string', ready: COUNT,
	refilling: COUNT, live: COUNT, waiting: COUNT, calls: COUNT, cells_made: COUNT, cold_calls: COUNT,
}));
const NEEDED = new Map(Object.entries({
	hello: ['version', 'vitro'], pool: ['pool', 'ok'], output: ['call', 'stream'], ask: ['call', 'ask', 'tool'],
	done: ['call', 'status'],
}));

/** A message of the supervisor, without what is null, as an object. One whose `is` is not known is only looked at for its fields. */
export function readMessage(bytes) {
	const message = Object.create(null);
	for (const [name, value] of readHead(bytes)) {
		const kind = FIELDS.get(name);
		if (value === null)
			continue;
		if (kind !== undefined && !fits(kind, value))
			throw new Broken(`${name} is ${typeof value === 'object' ? value.text : JSON.stringify(String(value))}`);
		message[name] = value;
	}
	if (message.protected !== undefined)
		message.protected = readObject('protected', message.protected);
	if (message.is === undefined)
		throw new Broken('a message without its kind');
	for (const name of NEEDED.get(message.is) ?? [])
		if (message[name] === undefined)
			throw new Broken(`the message ${message.is} without its ${name}`);
	return message;
}

/** A member that is JSON in a text. */
function readObject(name, text) {
	let told = null;

	try {
		told = JSON.parse(text);
	} catch {
		// told below
	}
	if (typeof told !== 'object' || told === null || Array.isArray(told))
		throw new Broken(`${name} is no JSON object`);
	return told;
}

function fits(kind, value) {
	if (typeof kind === 'string')
		return typeof value === kind;
	return (typeof value === 'number' || typeof value === 'bigint') && value >= kind[0] && value <= kind[1];
}
