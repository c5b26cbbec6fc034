// SPDX-License-Identifier: Apache-2.0
// Values as trees for messages.

import { Buffer } from 'node:buffer';
import { types } from 'node:util';

import { NESTING_MAX, NotPlain, RESULT_ADVICE, TYPED_ARRAYS, setOwn, show } from './plain.mjs';
import { Foreign } from './foreign.mjs';

/**
 * A value as a tree for pack(), and its buffers: appended to `buffers` where that is given. The tree shares what needs
 * no change with the value. layers: how many lists and objects will be around the tree. Throws NotPlain.
 */
export function encode(value, { buffers = [], name = 'result', advice = RESULT_ADVICE, layers = 1 } = {}) {
	try {
		return { tree: new Encoder(buffers).walk(value, layers), buffers };
	} catch (error) {
		throw error instanceof NotPlain ? error.complete(name, advice, value) : error;
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
			throw new NotPlain(`nests more than ${NESTING_MAX} deep`, true);
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
		throw new NotPlain(`is ${nameKind(value)}`);
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
			throw error instanceof NotPlain ? error.within(describe(), item) : error;
		}
	}

	walkView(value) {
		if (Buffer.isBuffer(value) && isExactly(value, 'Buffer'))
			return { $bytes: this.attach(value) };
		const name = types.isTypedArray(value) ? value[Symbol.toStringTag] : 'DataView';
		if (!Object.hasOwn(TYPED_ARRAYS, name) || !isExactly(value, name))
			throw new NotPlain(`is ${nameKind(value)}`);
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

/** What it is, in a sentence. A class may have any name: none is read aloud for its article. */
function nameKind(value) {
	if (types.isProxy(value))
		return 'a Proxy';
	const name = Object.getPrototypeOf(value)?.constructor?.name;
	return typeof name === 'string' && name ? `an instance of ${name.slice(0, 60)}` : 'an object of no class';
}
