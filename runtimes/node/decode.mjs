// SPDX-License-Identifier: Apache-2.0
// Values of trees. It builds plain data, and nothing else.

import { Buffer } from 'node:buffer';

import { Malformed, TYPED_ARRAYS, setOwn, show, viewBytes } from './plain.mjs';
import { Attachments } from './message.mjs';
import { Foreign, MOMENT, TEXT_MAX, checkArray, checkClock, checkDay, checkScalar, matchText } from './foreign.mjs';

const HEX = /^-?0x[0-9a-f]+$/;
const FLOATS = new Map([['nan', NaN], ['inf', Infinity], ['-inf', -Infinity]]);
const WHOLE_FLOAT = /^-?[0-9]{1,21}\.0$/;
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
export function ownBuffer(view) {
	const data = viewBytes(view);
	return data.length * 2 < data.buffer.byteLength ? Buffer.from(Uint8Array.prototype.slice.call(data).buffer) : data;
}
