// SPDX-License-Identifier: Apache-2.0
// What both writing and reading values have: the errors, and how they show what is wrong.

import { Buffer } from 'node:buffer';

export const NESTING_MAX = 200; // lists and objects of JSON, as every reader has it
const STEPS_MAX = 16; // that a message names of where something is
export const NAME_MAX = 4096;
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
	#isTooDeep;
	#path = []; // {step, item} from the inside out

	constructor(what, isTooDeep = false) {
		super(what);
		this.#what = what;
		this.#isTooDeep = isTooDeep;
	}

	get name() {
		return 'NotPlain';
	}

	within(step, item) {
		this.#path.push({ step, item });
		return this;
	}

	/** root: the whole value, which has that name. */
	complete(name, advice, root) {
		const path = [{ step: name, item: root }, ...this.#path.reverse()];
		const seen = new Map();
		for (const [at, { item }] of path.entries()) {
			if (this.#isTooDeep && seen.has(item)) {
				this.message = `${sayPath(path.slice(0, at + 1))} is ${sayPath(path.slice(0, seen.get(item) + 1))} itself, and what holds itself cannot be sent: ${advice}`;
				return this;
			}
			seen.set(item, at);
		}
		this.message = `${sayPath(path)} ${this.#what}: ${advice}`;
		return this;
	}
}

function sayPath(path) {
	const steps = path.map(({ step }) => step);
	return (steps.length > STEPS_MAX ? [...steps.slice(0, STEPS_MAX / 2), '...', ...steps.slice(-STEPS_MAX / 2)] : steps).join('');
}

export function show(value) {
	let text;
	try {
		text = typeof value === 'bigint' ? `${value}n` : JSON.stringify(value) ?? String(value);
	} catch {
		text = typeof value;
	}
	return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

export function viewBytes(data) {
	if (Buffer.isBuffer(data))
		return data;
	return ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
}

export const TYPED_ARRAYS = {
	Int8Array: '|i1', Uint8Array: '|u1', Uint8ClampedArray: '|u1', Int16Array: '<i2', Uint16Array: '<u2',
	Int32Array: '<i4', Uint32Array: '<u4', BigInt64Array: '<i8', BigUint64Array: '<u8', Float16Array: '<f2',
	Float32Array: '<f4', Float64Array: '<f8',
};

export function setOwn(object, name, value) {
	if (name === '__proto__')
		Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
	else
		object[name] = value;
}
