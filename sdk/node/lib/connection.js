// SPDX-License-Identifier: Apache-2.0
/*
 * A connection to a supervisor: to one of its own, started for it, or to a server's socket.
 *
 * A supervisor of its own is a child of this program, in a session of its own. It has one end of a socket pair and
 * ends when the other end is closed: with this program, however that ends.
 */

import { Buffer } from 'node:buffer';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { getSystemErrorMap } from 'node:util';

import { findBinary } from './binary.js';
import { Lost, Refused } from './errors.js';
import { Broken, FrameReader, readMessage, startFrame } from './wire.js';

const HELLO_MS = 30_000;
const END_MS = 10_000;
const SAID_MAX = 4096;
const SERVER_FRAME_MAX = 64 << 20;
const OWN_FRAME_MAX = 2 ** 30;
const CLIENT_FD = 3;
const PAUSE_MS = 2;

const connections = new Set(); // those that are open, and those whose supervisor has not ended

/**
 * For the program's end, when no event is heard any more: closes all connections, and waits for the supervisors' ends. Whether
 * all that ran has ended by then: it cannot be told of a server's, and one that does not end in time is killed.
 */
export function endAll() {
	for (const { socket } of connections)
		socket.destroy();
	const pause = new Int32Array(new SharedArrayBuffer(4));
	const end = Date.now() + END_MS;
	let areEnded = true;
	for (const { child } of connections) {
		while (child !== null && !isOver(child) && Date.now() < end)
			Atomics.wait(pause, 0, 0, PAUSE_MS);
		if (child !== null && isOver(child))
			continue;
		areEnded = false;
		child?.kill('SIGKILL');
	}
	connections.clear();
	return areEnded;
}

/** Also where that was not heard: its number is its own until then. */
function isOver(child) {
	if (hasEnded(child))
		return true;
	try {
		const stat = readFileSync(`/proc/${child.pid}/stat`, 'latin1');
		return 'ZX'.includes(stat[stat.lastIndexOf(')') + 2]);
	} catch {
		return false;
	}
}

/** A socket on which both sides have said hello. Frames go to `take(head, body)`; its end to `end(why)`, once. */
export class Connection {
	version = '';
	take = null;
	end = null;
	#reader = new FrameReader();
	#early = []; // frames that came before somebody takes them
	#why = null;
	#resolveHello;
	#rejectHello;

	constructor(socket, child, frameMax) {
		this.socket = socket;
		this.child = child;
		this.frameMax = frameMax;
		connections.add(this);
		(child ?? socket).once(child === null ? 'close' : 'exit', () => connections.delete(this));
		socket.on('data', (chunk) => this.#read(chunk));
		socket.on('error', (error) => this.#finish(`the supervisor cannot be heard: ${error.message}`));
		socket.on('close', () => this.#finish('the supervisor is gone'));
		socket.on('end', () => this.#finish('the supervisor is gone'));
	}

	/** Says hello, and hears it. */
	async greet(head, body) {
		const timer = setTimeout(() => this.#finish(`it said nothing within ${HELLO_MS / 1000} s`), HELLO_MS);
		try {
			await new Promise((resolve, reject) => {
				this.#resolveHello = resolve;
				this.#rejectHello = reject;
				this.send([startFrame(head, body.length), body]);
				if (this.#why !== null)
					reject(new Broken(this.#why));
			});
		} finally {
			clearTimeout(timer);
		}
	}

	/** From now on frames are taken by somebody. */
	attach(take, end) {
		this.take = take;
		this.end = end;
		for (const { head, body } of this.#early.splice(0))
			this.#give(head, body);
		if (this.#why !== null)
			end(this.#why);
	}

	send(pieces) {
		if (this.#why !== null)
			return false;
		this.socket.cork();
		for (const piece of pieces)
			this.socket.write(piece);
		this.socket.uncork();
		return true;
	}

	/** Whether this program is to wait for what comes. */
	hold(isHeld) {
		if (isHeld)
			this.socket.ref();
		else
			this.socket.unref();
	}

	/** Ends it, and a supervisor of its own with it: it ends when the socket does; one that does not is killed. */
	async close() {
		this.#finish('the sandbox was closed');
		this.socket.destroy();
		if (this.child === null || hasEnded(this.child))
			return;
		const child = this.child;
		child.ref();
		const timer = setTimeout(() => child.kill('SIGKILL'), END_MS);
		if (!hasEnded(child))
			await once(child, 'exit').catch(() => {});
		clearTimeout(timer);
	}

	#read(chunk) {
		if (this.#why !== null)
			return;
		try {
			for (const { head, body } of this.#reader.push(chunk)) {
				this.#give(head, body);
				if (this.#why !== null)
					return;
			}
		} catch (error) {
			if (!(error instanceof Broken))
				throw error;
			this.#finish(`the supervisor does not keep to the wire: ${error.message}`);
			this.socket.destroy();
		}
	}

	#give(head, body) {
		if (this.version === '')
			this.#hear(readMessage(head), body);
		else if (this.take === null)
			this.#early.push({ head, body });
		else
			this.take(head, body);
	}

	#hear(message, body) {
		if (message.is === 'refused')
			throw new Broken(`it refuses: ${message.error ?? 'no reason was given'}`);
		if (message.is === 'log')
			this.said = body.toString();
		if (message.is !== 'hello')
			return;
		if (message.version !== 1)
			throw new Broken(`it speaks version ${message.version} of the wire, and this package version 1`);
		this.version = message.vitro;
		this.#resolveHello();
	}

	#finish(why) {
		if (this.#why !== null)
			return;
		this.#why = why;
		this.#rejectHello?.(new Broken(why));
		this.end?.(why);
	}
}

function hasEnded(child) {
	return child.exitCode !== null || child.signalCode !== null || child.pid === undefined;
}

/** A supervisor of this program's own. Throws Lost where it cannot be started, with what it said. */
export async function start() {
	const binary = findBinary();
	let child;
	const failed = new Promise((_, reject) => {
		child = spawn(binary, ['supervise'], { stdio: ['ignore', 'ignore', 'pipe', 'pipe'], detached: true });
		child.on('error', reject);
	});
	failed.catch(() => {});
	if (child?.stdio === undefined) // it threw, or there were no descriptors for streams, which it says later
		await failed.catch((error) => {
			throw new Lost(`cannot start '${binary}': ${error.message}`, null, { cause: error });
		});
	let said = '';
	child.stderr.on('data', (chunk) => {
		said = (said + chunk.toString()).slice(0, SAID_MAX);
	});
	child.stderr.on('error', () => {});
	child.stderr.unref();
	const connection = new Connection(child.stdio[CLIENT_FD], child, OWN_FRAME_MAX);
	try {
		await Promise.race([connection.greet({ do: 'hello', version: 1 }, Buffer.alloc(0)), failed]);
	} catch (error) {
		await connection.close();
		throw new Lost(`'${binary}' does not work as a supervisor: ${said.trim() || error.message}`, null, { cause: error });
	}
	child.unref();
	return connection;
}

/** A server (`vitro serve`) by the path of its socket. It gets this program's environment and working directory. Throws Refused
 * where there is none to be reached, so that nothing has begun. */
export async function connect(path) {
	const connection = new Connection(await reach(path), null, SERVER_FRAME_MAX);
	const environment = Object.entries(process.env).map(([name, value]) => `${name}=${value}\0`).join('');
	try {
		await connection.greet({ do: 'hello', version: 1, cwd: process.cwd() }, Buffer.from(environment));
	} catch (error) {
		await connection.close();
		throw new Lost(`no server answers at '${path}': ${error.message}`, null, { cause: error });
	}
	return connection;
}

async function reach(path) {
	const socket = connectSocket(path);
	try {
		await once(socket, 'connect');
		return socket;
	} catch (error) {
		socket.destroy();
		throw new Refused(`no server can be reached at '${path}': ${whyNot(path, error)}`, null, { cause: error });
	}
}

/** Why there is nobody, by what is there: in the words of the command. */
function whyNot(path, error) {
	const there = tryStat(path);
	if (there?.isDirectory())
		return 'it is a folder; name the socket in it';
	if (there && !there.isSocket())
		return 'it is no socket';
	const me = process.geteuid();
	if (error.code === 'EACCES') {
		const whose = there ? `it is for the user ${there.uid}, and you are ${me}; connect as that user`
			: `it lies in a folder that is not for the user ${me}, whom you are; connect as its owner`;
		return `${whose}, or start a server of your own: vitro serve --socket PATH`;
	}
	const text = getSystemErrorMap().get(error.errno)?.[1] ?? error.message;
	return ['ENOENT', 'ECONNREFUSED'].includes(error.code) ? `${text}; start one: vitro serve --socket PATH` : text;
}

function tryStat(path) {
	try {
		return statSync(path);
	} catch {
		return null;
	}
}
