// SPDX-License-Identifier: Apache-2.0
/*
 * The JavaScript reader of values under any bytes: it throws Malformed and nothing else, takes no more time than the bytes
 * deserve, makes no property named __proto__, and what it made can be written and read again as the same. Inputs are those
 * of values_fuzz.py.
 */

import * as codec from '../../runtimes/node/codec.mjs';
import { gist, main, require } from './drive.mjs';

const MILLISECONDS = 5000;

function messageOf(data) {
	if (!(data[0] & 1))
		return data.subarray(1);
	const parts = [];
	for (let at = 1; at <= data.length;) {
		const end = data.indexOf(0xff, at);
		parts.push(data.subarray(at, end < 0 ? data.length : end));
		at = end < 0 ? data.length + 1 : end + 1;
	}
	const text = Buffer.concat([Buffer.from('{"value":'), parts.shift() ?? Buffer.alloc(0), Buffer.from('}')]);
	const lengths = Buffer.alloc(8 + 8 * parts.length);
	lengths.writeUInt32LE(text.length, 0);
	lengths.writeUInt32LE(parts.length, 4);
	parts.forEach((part, at) => lengths.writeBigUInt64LE(BigInt(part.length), 8 + 8 * at));
	return Buffer.concat([lengths.subarray(0, 4), text, lengths.subarray(4), ...parts]);
}

function* insideOf(value) {
	if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value))
		return;
	yield value;
	const items = value instanceof Map ? [...value.keys(), ...value.values()] : value instanceof Set ? [...value] : Object.values(value);
	for (const item of items)
		yield* insideOf(item);
}

/** Null where it nests too deep to be written. */
function write(value) {
	try {
		return codec.encode(value);
	} catch (error) {
		require(error instanceof codec.NotPlain && /nests too deep/.test(error.message), error?.stack);
		return null;
	}
}

/** Compared as it is written: a size of -0 is 0. */
function checkCarried(value) {
	const written = write(value);
	if (written === null)
		return;
	const { head, attachments } = codec.unpack(Buffer.concat(codec.pack({ value: written.tree }, written.buffers)));
	const again = codec.decode(head.value, attachments);
	const twice = write(again);
	require(nameKinds(again) === nameKinds(value), 'other things come of it when it is read again:', nameKinds(value), nameKinds(again));
	require(JSON.stringify(twice.tree) === JSON.stringify(written.tree), 'it is another when it is read again:', JSON.stringify(written.tree));
	require(twice.buffers.every((buffer, at) => viewOf(buffer).equals(viewOf(written.buffers[at]))), 'a buffer is another');
}

function viewOf(buffer) {
	return Buffer.from(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

function read(message) {
	try {
		const { head, attachments } = codec.unpack(message);
		const value = codec.decode(head.value, attachments);
		codec.readFiles(head.files, attachments, ['**', 'a[!b]*?.txt']);
		return { value };
	} catch (error) {
		if (!(error instanceof codec.Malformed))
			throw error;
		return { complaint: error.message };
	}
}

/** The kinds of things in a value, without how often they are there. */
function nameKinds(value) {
	const kinds = [...insideOf(value)].map((item) => item.constructor?.name + (item.kind ?? ''));
	return [...new Set([typeof value, ArrayBuffer.isView(value) ? value.constructor.name : '', ...kinds])].sort().join();
}

/** Returns what came of it, in a few words. */
export function target(data) {
	const message = messageOf(data);
	const { user, system } = process.cpuUsage();
	const { value, complaint } = read(message);
	const used = process.cpuUsage({ user, system });
	require(used.user + used.system < 1000 * MILLISECONDS, 'slow');
	for (const object of insideOf(value))
		require(!Object.hasOwn(object, '__proto__'), '__proto__');
	checkCarried(value);
	return complaint === undefined ? nameKinds(value) : gist(complaint);
}

main(import.meta.url, target);
