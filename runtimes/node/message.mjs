// SPDX-License-Identifier: Apache-2.0
// Messages: a head in JSON, and buffers. What reading one costs is bounded by the bytes that came.

import * as nodeBuffer from 'node:buffer';
import { Buffer } from 'node:buffer';

import { Malformed, NESTING_MAX, show, viewBytes } from './plain.mjs';

export const PARTS_MAX = 10_000_000; // of a message's JSON
export const BUFFERS_MAX = 1 << 20;

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

/** CPU time, since the clock goes on while others have the CPU: of this thread, or of all where Node has no other. */
function usedMs() {
	const { user, system } = process.threadCpuUsage?.() ?? process.cpuUsage();
	return (user + system) / 1000;
}

/*
 * Sets and maps whose keys were chosen to share a hash take the square of their number. How V8 hashes numbers is no
 * secret, and of a BigInt it looks at 64 bits only, but compares all. So what filling tables takes is measured, for a
 * whole message. Between two looks at the clock are so few keys that comparing each with all of the message takes not long.
 */
class TableBudget {
	static FREE = 64; // keys of a table that are not worth a look at the clock
	static BATCH = 64;
	static STEP = 8; // keys between two looks at the CPU time, which take longer
	static STEP_MS_MAX = 20; // what a step counts for at most where other threads may have worked meanwhile
	static MS = 500;
	static MS_PER_KEY = 0.002; // ten times what it takes

	#left = TableBudget.MS;

	fill(count, add) {
		if (count <= TableBudget.FREE) {
			for (let at = 0; at < count; at++)
				add(at);
			return;
		}
		const due = count * TableBudget.MS_PER_KEY;
		const began = performance.now();
		const used = usedMs();
		let at = 0;
		let took = 0;
		// As long as it takes no more by the wall clock, it takes no more of the CPU.
		for (; at < count && took <= due + this.#left; took = performance.now() - began) {
			for (const end = Math.min(count, at + TableBudget.BATCH); at < end; at++)
				add(at);
		}
		if (at === count)
			this.#charge(Math.min(took, usedMs() - used) - due);
		else
			this.#fillRest(at, count, add);
	}

	/** It takes long, or others have the CPU. */
	#fillRest(at, count, add) {
		const most = process.threadCpuUsage === undefined ? TableBudget.STEP_MS_MAX : Infinity;
		while (at < count) {
			const first = at;
			const began = performance.now();
			const used = usedMs();
			for (const end = Math.min(count, at + TableBudget.STEP); at < end; at++)
				add(at);
			const took = Math.min(usedMs() - used, performance.now() - began, most);
			this.#charge(took - (at - first) * TableBudget.MS_PER_KEY);
		}
	}

	#charge(ms) {
		this.#left -= Math.max(0, ms);
		if (this.#left < 0)
			throw new Malformed('keys collide');
	}
}

/** A message, in pieces: the buffers themselves are not copied. */
export function pack(head, buffers = []) {
	const text = JSON.stringify(head);
	const size = Buffer.byteLength(text);
	// JSON may end in spaces: the first buffer then lies where its numbers can be used in place.
	const spaces = buffers.length ? -(8 + size + 8 * buffers.length) & 15 : 0;
	const start = Buffer.allocUnsafe(8 + size + spaces + 8 * buffers.length);
	start.writeUInt32LE(size + spaces, 0);
	start.write(text, 4, size, 'utf8');
	start.fill(' ', 4 + size, 4 + size + spaces);
	let at = start.writeUInt32LE(buffers.length, 4 + size + spaces);
	const views = buffers.map(viewBytes);
	for (const view of views)
		at = start.writeBigUInt64LE(BigInt(view.length), at);
	return [start, ...views];
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
	return bytes.toString('utf8');
}

// As JSON may spell them: any letter of a name can be escaped.
const SPECIAL_NAME = /"\$|"\\u0024|__proto__|\\u00(?:5[fF]|6[fF]|7[024])/;

export function parse(bytes, partsMax, what) {
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
export function checkShape(bytes, partsMax, depthMax = NESTING_MAX) {
	if (bytes.length < depthMax && 4 * bytes.length <= partsMax)
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
		if (depth > depthMax)
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
