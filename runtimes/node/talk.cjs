// SPDX-License-Identifier: Apache-2.0
/*
 * The call socket: how an occupant hears its call, asks for tools, and tells its result. src/launch/talk.h has the
 * messages: a head of fixed size, a name, a body.
 *
 * The call itself is waited for without an event loop, and so is room in the socket. While that is full, what comes is
 * read, since the supervisor does not listen to who does not read. Answers come by way of the event loop.
 */
'use strict';

const { closeSync } = require('node:fs');
const { Socket } = require('node:net');

const EXECUTE = 1, ANSWER = 2, ASK = 3, LOG = 4, RESULT = 5, ERROR = 6;
const FAILED = 1; // flag of an answer
const HEAD_SIZE = 32;
const NAME_MAX = 512;
const LOG_MAX = 64 << 10;
const AHEAD = 16 << 10; // small messages are read in one go
const CHUNK = 64 << 10;
const EAGAIN = -11;
const POLLIN = 1;

/** Of eight bytes; inexact from 2^53 on, which no size and no number of a question is. */
function readSize(bytes, at) {
	return bytes.readUInt32LE(at) + bytes.readUInt32LE(at + 4) * 2 ** 32;
}

/** One end of a call socket. io: send, receive and wait, as the addon has them. */
class Talk {
	#io;
	#fd;
	#ahead = Buffer.allocUnsafeSlow(AHEAD);
	#head = Buffer.allocUnsafeSlow(HEAD_SIZE);
	#headGot = 0;
	#rest = null; // of a message whose head is there: room for its name and its body
	#restGot = 0;
	#heard = [];
	#socket = null;
	#onHeard = null;

	constructor(io, fd) {
		this.#io = io;
		this.#fd = fd;
	}

	// ---- sending

	/** Sends a message whose body is the pieces, one after the other; returns when the socket has all of it. */
	send(kind, name = '', pieces = [], id = 0, flags = 0) {
		const size = pieces.reduce((sum, piece) => sum + piece.length, 0);
		const bytes = Buffer.from(name);
		const start = this.#writeHead(kind, flags, bytes.length, id, size);
		if (size <= AHEAD)
			return this.#sendAll(Buffer.concat([start, bytes, ...pieces]));
		this.#sendAll(Buffer.concat([start, bytes]));
		for (const piece of pieces)
			this.#sendAll(piece);
	}

	/** Sends the head of a message that is too large, and no body: the supervisor ends the call for it. */
	claim(kind, size) {
		this.#sendAll(this.#writeHead(kind, 0, 0, 0, size));
	}

	#writeHead(kind, flags, nameLength, id, size) {
		const words = new Uint32Array(HEAD_SIZE / 4);
		words[0] = kind;
		words[1] = flags;
		words[2] = nameLength;
		words[4] = id % 2 ** 32;
		words[5] = Math.floor(id / 2 ** 32);
		words[6] = size % 2 ** 32;
		words[7] = Math.floor(size / 2 ** 32);
		return new Uint8Array(words.buffer);
	}

	#sendAll(bytes) {
		const data = Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
		for (let at = 0; at < data.length;) {
			const sent = this.#io.send(this.#fd, data, at);
			if (sent > 0)
				at += sent;
			else if (sent !== EAGAIN)
				this.#io.exit(0); // nobody is there for whom to go on
			else if (this.#io.wait(this.#fd) & POLLIN)
				this.#receive(false);
		}
	}

	// ---- hearing

	/** The next message, which is waited for. */
	hear() {
		while (!this.#heard.length)
			this.#receive(true);
		return this.#heard.shift();
	}

	/** From now on what comes is given to it; hold() says whether it keeps the event loop alive. */
	listen(onHeard) {
		this.#onHeard = onHeard;
		if (!this.#socket) {
			const buffer = Buffer.allocUnsafeSlow(CHUNK); // in place of a new one for each that comes
			const callback = (size) => {
				this.#take(buffer.subarray(0, size));
				return true;
			};
			this.#socket = new Socket({ fd: this.#fd, readable: true, writable: false, onread: { buffer, callback } });
			this.#socket.on('end', () => this.#io.exit(0));
			this.#socket.on('error', () => this.#io.exit(0));
		}
		this.#deliver();
	}

	hold(isWaiting) {
		if (isWaiting)
			this.#socket?.ref();
		else
			this.#socket?.unref();
	}

	/** When it resolves, the descriptor is closed. */
	async close() {
		if (!this.#socket)
			return closeSync(this.#fd);
		await new Promise((settle) => this.#socket.on('close', settle).destroy());
	}

	#receive(wait) {
		const large = this.#rest && this.#rest.length - this.#restGot > AHEAD;
		const got = large ? this.#io.receive(this.#fd, this.#rest, this.#restGot, wait ? 1 : 0)
			: this.#io.receive(this.#fd, this.#ahead, 0, wait ? 1 : 0);
		if (got === EAGAIN)
			return;
		if (got <= 0)
			this.#io.exit(0);
		if (large) {
			this.#restGot += got;
			this.#finish();
		} else {
			this.#take(this.#ahead.subarray(0, got));
		}
	}

	#take(chunk) {
		for (let at = 0; at < chunk.length;) {
			if (!this.#rest) {
				const copied = chunk.copy(this.#head, this.#headGot, at);
				at += copied;
				this.#headGot += copied;
				if (this.#headGot < HEAD_SIZE)
					break;
				this.#begin();
			} else {
				const copied = chunk.copy(this.#rest, this.#restGot, at);
				at += copied;
				this.#restGot += copied;
			}
			this.#finish();
		}
		this.#deliver();
	}

	/* The body begins where numbers of any size may lie. */
	#begin() {
		const nameLength = this.#head.readUInt32LE(8);
		const space = -nameLength & 15;
		this.#rest = Buffer.allocUnsafeSlow(space + nameLength + readSize(this.#head, 24));
		this.#restGot = space;
	}

	#finish() {
		if (!this.#rest || this.#restGot < this.#rest.length)
			return;
		const nameLength = this.#head.readUInt32LE(8);
		const space = -nameLength & 15;
		this.#heard.push({
			kind: this.#head.readUInt32LE(0),
			flags: this.#head.readUInt32LE(4),
			id: readSize(this.#head, 16),
			name: this.#rest.subarray(space, space + nameLength),
			body: this.#rest.subarray(space + nameLength),
		});
		this.#rest = null;
		this.#headGot = 0;
	}

	#deliver() {
		while (this.#onHeard && this.#heard.length)
			this.#onHeard(this.#heard.shift());
	}
}

module.exports = { Talk, EXECUTE, ANSWER, ASK, LOG, RESULT, ERROR, FAILED, NAME_MAX, LOG_MAX };
