// SPDX-License-Identifier: Apache-2.0
/*
 * The Node client's reader of frames, heads and messages under any stream, in any pieces: frames are those of a plain walk
 * over the bytes, heads are what JSON.parse() makes of them, and only Broken is thrown. Inputs are those of wire_fuzz.py.
 */

import * as wire from '../../sdk/node/lib/wire.js';
import { gist, main, require } from './drive.mjs';

const HEAD_MAX = 1 << 16;
const LINES = 1;

function streamOf(data) {
	if (!(data[0] & LINES))
		return data.subarray(1);
	const frames = [];
	for (let at = 1; at <= data.length;) {
		const newline = data.indexOf(10, at);
		const end = newline < 0 ? data.length : newline;
		const line = data.subarray(at, end);
		const tab = line.indexOf(9);
		const head = tab < 0 ? line : line.subarray(0, tab);
		const body = tab < 0 ? Buffer.alloc(0) : line.subarray(tab + 1);
		const lengths = Buffer.alloc(8);
		lengths.writeUInt32LE(head.length + body.length, 0);
		lengths.writeUInt32LE(head.length, 4);
		frames.push(lengths, head, body);
		at = end + 1;
	}
	return Buffer.concat(frames);
}

/** Frames, and the rest, which is null where it is broken. */
function walk(stream) {
	const frames = [];
	let at = 0;
	while (stream.length - at >= 8) {
		const length = stream.readUInt32LE(at);
		const head = stream.readUInt32LE(at + 4);
		if (head > length || head > HEAD_MAX || length > wire.FRAME_MAX)
			return { frames, rest: null };
		if (stream.length - at < 8 + length)
			break;
		frames.push({ head: stream.subarray(at + 8, at + 8 + head), body: stream.subarray(at + 8 + head, at + 8 + length) });
		at += 8 + length;
	}
	return { frames, rest: stream.subarray(at) };
}

/** What it returns, or undefined where it throws Broken. */
function attempt(act, complaints = []) {
	try {
		return act();
	} catch (error) {
		if (!(error instanceof wire.Broken))
			throw error;
		complaints.push(gist(error.message));
		return undefined;
	}
}

function checkStream(stream, piece) {
	const wanted = walk(stream);
	const reader = new wire.FrameReader();
	const got = [];
	let isBroken = false;
	for (let at = 0; at < stream.length && !isBroken; at += piece) {
		// Its own memory, as what a socket gives is.
		const chunk = Buffer.from(stream.subarray(at, at + piece));
		isBroken = attempt(() => {
			for (const frame of reader.push(chunk))
				got.push(frame);
			return true;
		}) === undefined;
	}
	require(got.length === wanted.frames.length, 'frames', got.length, wanted.frames.length);
	got.forEach(({ head, body }, at) => {
		require(head.equals(wanted.frames[at].head), 'a head');
		require(body.equals(wanted.frames[at].body), 'a body');
	});
	require(isBroken === (wanted.rest === null), 'broken');
	require(isBroken || reader.isBetween === (wanted.rest.length === 0), 'between');
	return wanted.frames.map(({ head }) => head);
}

function plain(value) {
	return value instanceof wire.WireNumber ? Number(value.text) : typeof value === 'bigint' ? Number(value) : value;
}

function checkHead(head) {
	const members = attempt(() => wire.readHead(head));
	const complaints = [];
	const message = attempt(() => wire.readMessage(head), complaints);
	if (members !== undefined) {
		const parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(head));
		require(Object.keys(parsed).length === members.size, 'members');
		for (const [name, value] of members)
			require(Object.hasOwn(parsed, name) && (plain(value) === parsed[name]), 'a member', name, String(value));
	}
	if (message !== undefined) {
		require(members !== undefined && typeof message.is === 'string', 'a message');
		require(Object.keys(message).every((name) => Object.is(message[name], members.get(name)) || typeof message[name] === 'object'),
			'a message of other members');
	}
	return complaints[0] ?? `${Object.keys(message).length} members`;
}

/** Returns what came of it, in a few words. */
export function target(data) {
	if (!data.length)
		return '';
	const alone = checkHead(data.subarray(1));
	const framed = checkStream(streamOf(data), 1 + (data[0] >> 4) * 37).map(checkHead);
	return framed.at(-1) ?? `alone: ${alone}`;
}

main(import.meta.url, target);
