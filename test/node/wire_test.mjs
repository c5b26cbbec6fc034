#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The package's side of docs/wire.md: the vectors, and what a supervisor must not be able to do to it.

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { readJson } from '../../sdk/node/lib/conclude.js';
import { Session } from '../../sdk/node/lib/session.js';
import { Broken, FrameReader, WireNumber, readHead, startFrame } from '../../sdk/node/lib/wire.js';
import { ROOT, check, checkEqual, main, test } from '../lib/vitrotest.mjs';

const VECTORS = JSON.parse(readFileSync(join(ROOT, 'test', 'wire', 'vectors.json'), 'utf8'));

/** Bytes as the file writes them. */
function dataOf(what) {
	if (typeof what === 'string')
		return Buffer.from(what);
	if (Array.isArray(what))
		return Buffer.concat(what.map(dataOf));
	return what.hex !== undefined ? Buffer.from(what.hex, 'hex') : Buffer.concat(Array(what.times).fill(dataOf(what.repeat)));
}

function streamOf(says) {
	return Buffer.concat(says.map(({ head, body = '', bytes }) => {
		if (head === undefined)
			return dataOf(bytes);
		const lengths = Buffer.alloc(8);
		lengths.writeUInt32LE(dataOf(head).length + dataOf(body).length, 0);
		lengths.writeUInt32LE(dataOf(head).length, 4);
		return Buffer.concat([lengths, dataOf(head), dataOf(body)]);
	}));
}

/** The frames of what comes in pieces of so many bytes, and how it ends. */
function framesOf(data, step) {
	const reader = new FrameReader();
	const frames = [];
	try {
		for (let at = 0; at < data.length; at += step)
			for (const frame of reader.push(data.subarray(at, at + step)))
				frames.push(frame);
	} catch (error) {
		check(error instanceof Broken, error.stack);
		return { frames, then: 'refused' };
	}
	return { frames, then: reader.isBetween ? 'end' : 'more' };
}

test('vectors: frames, however they are cut', () => {
	for (const vector of VECTORS.frames) {
		const data = dataOf(vector.bytes);
		for (const step of [1 << 20, 4096, ...data.length < 1 << 17 ? [7] : []]) {
			const { frames, then } = framesOf(data, step);
			checkEqual(frames.map(({ head, body }) => [head.length, body.length]), vector.frames, vector.name);
			checkEqual(then, vector.then, vector.name);
		}
	}
	check(VECTORS.frames.length > 20, 'few vectors were seen');
});

test('frames of all sizes come as they were sent, however they are cut', () => {
	const bodies = [0, 1, 100, 65527, 65536, 65537, 131065, 200_000, 3 << 20, 5].map((size) => randomBytes(size));
	const data = Buffer.concat(bodies.flatMap((body) => [startFrame({}, body.length), body]));
	for (const step of [1 << 22, 131072, 70_001, 1000]) {
		const { frames, then } = framesOf(data, step);
		check(then === 'end' && frames.length === bodies.length && frames.every(({ body }, index) => body.equals(bodies[index])), `in steps of ${step}`);
	}
});

function describe(value) {
	if (value === null)
		return ['null', ''];
	if (value instanceof WireNumber)
		return ['number', value.text];
	return [{ boolean: 'flag', number: 'integer', bigint: 'integer', string: 'text' }[typeof value], String(value)];
}

test('vectors: heads, read and written', () => {
	for (const { name, text, members } of VECTORS.heads) {
		let got;
		try {
			got = [...readHead(dataOf(text))].map(([key, value]) => [key, ...describe(value)]);
		} catch (error) {
			check(error instanceof Broken, error.stack);
		}
		checkEqual(got, members?.map(([key, kind, value]) => [key, kind, dataOf(value).toString()]), name);
	}
	const make = { text: String, integer: (text) => Number.isSafeInteger(Number(text)) ? Number(text) : BigInt(text), flag: (text) => text === 'true', null: () => null };
	for (const { name, members } of VECTORS.written) {
		const wanted = members.map(([key, kind, value]) => [key, make[kind](value)]);
		checkEqual([...readHead(startFrame(Object.fromEntries(wanted)).subarray(8))], wanted, name);
	}
	check(VECTORS.heads.length > 60, 'few vectors were seen');
});

/** A connection that says what it is told to. */
class Told {
	version = '0';
	frameMax = 1 << 30;

	attach(take, end) {
		this.take = take;
		this.end = end;
	}

	send() {
		return true;
	}

	hold() {}

	async close() {}

	say(data) {
		const reader = new FrameReader();
		try {
			for (const { head, body } of reader.push(data))
				this.take(head, body);
		} catch (error) {
			check(error instanceof Broken, error.stack);
		}
		this.end('the supervisor is gone');
	}
}

/** A value of a pool that is not JavaScript's: JSON, or there is none. */
function conclude(result, bytes) {
	if (!result.ok)
		return;
	try {
		result.value = readJson(bytes);
	} catch {
		result.status = 'no_result';
		result.error = { type: 'NoResult', message: '', traceback: null };
	}
}

function isLike(want, got) {
	if (want === null || typeof want !== 'object' || Array.isArray(want))
		return JSON.stringify(want) === JSON.stringify(got);
	return got !== null && typeof got === 'object' && Object.entries(want).every(([name, value]) => name in got && isLike(value, got[name]));
}

test('vectors: messages of a supervisor, and what becomes of the call', async () => {
	for (const { name, says, result: wanted, output = [] } of VECTORS.messages) {
		const connection = new Told();
		const session = new Session(connection);
		const heard = [];
		const pool = { number: 1, isOpen: true, calls: 0, isolation: { level: 'full' } };
		const call = session.begin(pool, {
			tool: 'tool', callId: 'c1', pieces: [], streams: true, onOutput: (_, stream, bytes) => heard.push([Number(stream), bytes.toString('hex')]),
		});
		checkEqual(call.number, 1, "the call's number");
		connection.say(streamOf(says));
		const { message, body } = await call.ended;
		const result = call.buildResult(message, body);
		conclude(result, body.subarray(0, Number(message.value ?? 0)));
		check(isLike(wanted, JSON.parse(JSON.stringify(result))), () => `${name}: ${JSON.stringify(result)}`);
		checkEqual(heard, output.map(([stream, data]) => [stream, dataOf(data).toString('hex')]), name);
	}
	check(VECTORS.messages.length > 60, 'few vectors were seen');
});

await main();
