// SPDX-License-Identifier: Apache-2.0
/*
 * What one connection to a supervisor has under way: its pools, its calls, and what messages mean for them. All that
 * comes of a call goes to its listener, in its order: onOutput(stream, bytes), onLog(level, text), onAsk(ask, tool,
 * body); and then, once, its end.
 */

import { Buffer } from 'node:buffer';

import { readJson } from './conclude.js';
import { Lost, Refused } from './errors.js';
import { Result, STATUSES } from './result.js';
import { Broken, readMessage, startFrame } from './wire.js';

const POOLS_MAX = 32; // beyond this, the one that was not used for longest is dropped
const HEAD_MAX = 1 << 16;
const LOGS_BYTES_MAX = 8 << 20; // of lines that a result keeps
const LOG_COST = 256; // of each line, beside its bytes
const TRACEBACK = 'vitro.traceback'; // the level of the line that is the traceback

/** A place for calls of one program under one policy. */
class Pool {
	isolation = null;
	calls = 0;
	used = 0;
	isOpen = true;

	constructor(number, spec) {
		this.number = number;
		this.spec = spec;
		this.answered = new Promise((resolve, reject) => {
			this.resolve = resolve;
			this.reject = reject;
		});
		this.answered.catch(() => {});
	}
}

/** A call that is under way. */
export class Call {
	isOver = false;
	logs = [];
	droppedLogs = 0;
	traceback = null;
	#kept = 0;

	constructor(number, pool, order) {
		this.number = number;
		this.pool = pool;
		this.order = order;
		this.callId = order.callId || `c${number}`;
		this.ended = new Promise((resolve) => {
			this.end = (message, body) => {
				this.isOver = true;
				resolve({ message, body });
			};
		});
	}

	addLog(level, text) {
		if (level === TRACEBACK) {
			this.traceback = text;
			return false;
		}
		this.#kept += text.length + LOG_COST;
		if (this.#kept <= LOGS_BYTES_MAX)
			this.logs.push({ level, text });
		else
			this.droppedLogs++;
		return true;
	}

	/** The result of a call that is over, but for its value. */
	buildResult(message, body) {
		const { status } = message;
		const valueEnd = size(message.value);
		const stdoutEnd = valueEnd + size(message.stdout);
		const error = status === 'ok' ? null : {
			type: message.error_type ?? STATUSES.get(status), message: message.error ?? 'no reason was given', traceback: this.traceback,
		};
		const dropped = { stdout: size(message.dropped_stdout), stderr: size(message.dropped_stderr) };
		if (this.droppedLogs)
			dropped.logs = this.droppedLogs;
		return new Result({
			callId: this.callId, status, error, dropped, logs: this.logs, exitCode: known(message.exit_code), signal: message.signal || null,
			stdoutBytes: body.subarray(valueEnd, stdoutEnd), stderrBytes: body.subarray(stdoutEnd),
			usage: {
				wallMs: milliseconds(message.wall_ns), cpuMs: milliseconds(message.cpu_ns), peakMemoryKb: known(message.peak_kb),
				processes: known(message.processes),
			},
			isolation: message.cell ? this.pool.isolation : null, unreaped: message.unreaped ?? false,
			protected: message.protected ?? null,
		});
	}
}

const size = (count) => Number(count ?? 0);
const known = (count) => count === undefined || count < 0 ? null : Number(count);
const milliseconds = (nanoseconds) => Math.round(size(nanoseconds) / 1e5) / 10;

export class Session {
	lost = null; // why it is over
	calls = new Map();
	#connection;
	#pools = new Map(); // by their specs
	#opening = [];
	#counting = [];
	#listing = [];
	#server = new Pool(0, { kind: 'tool' }); // of the server's own tools
	#number = 0;
	#farewell = '';
	#onLine;

	/** onLine(level, text): the supervisor's own log. */
	constructor(connection, onLine = () => {}) {
		this.#connection = connection;
		this.#onLine = onLine;
		connection.attach((head, body) => this.#take(head, body), (why) => this.#fail(why, 'lost'));
		this.#hold();
	}

	get version() {
		return this.#connection.version;
	}

	get frameMax() {
		return this.#connection.frameMax;
	}

	// ---- requests

	/** The pool for a spec: {kind, program, sources, setup, readyMin, readyMax}, when it is there. Throws Refused. */
	async openPool(spec) {
		if (spec.kind === 'tool')
			return this.#server;
		const key = JSON.stringify(spec);
		let pool = this.#pools.get(key);
		if (pool === undefined) {
			pool = new Pool(++this.#number, spec);
			this.#askFor(pool, key);
		}
		await pool.answered;
		return pool;
	}

	#askFor(pool, key) {
		if (this.lost !== null)
			throw new Lost(this.lost);
		const { kind, program, sources, setup, readyMin, readyMax } = pool.spec;
		const body = Buffer.from(sources);
		const head = {
			do: 'pool', pool: pool.number, ...kind ? { [kind]: program } : {}, setup, ready_min: readyMin || undefined,
			ready_max: readyMax || undefined,
		};
		const start = startFrame(head, body.length);
		if (start.length > HEAD_MAX)
			throw new Refused('preload and the like are too long together');
		this.#dropOldest();
		pool.key = key;
		this.#pools.set(key, pool);
		this.#opening.push(pool);
		this.#connection.send([start, body]);
		this.#hold();
	}

	#dropOldest() {
		if (this.#pools.size < POOLS_MAX)
			return;
		const idle = [...this.#pools.values()].filter((pool) => pool.calls === 0 && !this.#opening.includes(pool));
		const oldest = idle.sort((left, right) => left.used - right.used)[0];
		if (oldest === undefined)
			return;
		oldest.isOpen = false;
		this.#pools.delete(oldest.key);
		this.#connection.send([startFrame({ do: 'drop', pool: oldest.number })]);
	}

	/** Begins a call. null: it was not begun, since the pool or the supervisor is not there any more. */
	begin(pool, order) {
		if (!pool.isOpen || this.lost !== null)
			return null;
		const number = ++this.#number;
		const call = new Call(number, pool, order);
		const bytes = order.pieces.reduce((total, piece) => total + piece.length, 0);
		const shared = { call: number, tool: order.tool, id: call.callId, wall_ms: order.wallMs || undefined, stream: order.streams || undefined };
		const head = pool === this.#server ? { do: 'tool', ...shared }
			: { do: 'call', pool: pool.number, ...shared, stdin: order.stdinBytes || undefined, within: order.isWithin || undefined };
		if (!this.#connection.send([startFrame(head, bytes), ...order.pieces]))
			return null;
		pool.calls++;
		pool.used = number;
		this.calls.set(number, call);
		this.#hold();
		return call;
	}

	/** Ends a call; one that is over stays so. */
	cancel(call) {
		if (!call.isOver)
			this.#connection.send([startFrame({ do: 'cancel', call: call.number })]);
	}

	/** Answers what a call asked for. */
	answer(call, ask, ok, pieces) {
		if (call.isOver)
			return;
		const bytes = pieces.reduce((total, piece) => total + piece.length, 0);
		this.#connection.send([startFrame({ do: 'answer', call: call.number, ask, ok }, bytes), ...pieces]);
	}

	count() {
		return this.#inquire('count', this.#counting);
	}

	/** What the server's own tools are. Throws Refused where it has none. */
	listTools() {
		return this.#inquire('tools', this.#listing);
	}

	#inquire(what, waiting) {
		if (this.lost !== null)
			throw new Lost(this.lost);
		return new Promise((resolve, reject) => {
			waiting.push({ resolve, reject });
			this.#connection.send([startFrame({ do: what })]);
			this.#hold();
		});
	}

	/** Ends all calls, and the connection. */
	async close() {
		this.#fail('the sandbox was closed', 'cancelled');
		await this.#connection.close();
	}

	#hold() {
		this.#connection.hold(this.calls.size + this.#opening.length + this.#counting.length + this.#listing.length > 0);
	}

	// ---- messages

	#take(head, body) {
		const message = readMessage(head);
		switch (message.is) {
		case 'done':
			this.#endCall(message, body);
			break;
		case 'output':
		case 'ask':
			this.#takeOfCall(message, body);
			break;
		case 'log':
			if (message.call !== undefined)
				this.#takeOfCall(message, body);
			else
				this.#onLine(message.level, body.toString());
			break;
		case 'pool':
			this.#takePool(message, body);
			break;
		case 'count':
			this.#counting.shift()?.resolve(message);
			this.#hold();
			break;
		case 'tools':
			this.#takeTools(message, body);
			break;
		case 'bye':
			this.#farewell = 'the server has ended; the call was not begun';
			break;
		}
	}

	#takeOfCall(message, body) {
		const call = this.calls.get(message.call);
		if (call === undefined)
			throw new Broken(`${message.is} of a call that is not under way`);
		const { order } = call;
		if (message.is === 'ask') {
			order.onAsk?.(call, message.ask, message.tool, body);
		} else if (message.is === 'output') {
			if (body.length && order.streams)
				order.onOutput?.(call, message.stream, body);
		} else {
			if (typeof message.level !== 'string')
				throw new Broken('a line without a level');
			const text = body.toString();
			if (call.addLog(message.level, text))
				order.onLog?.(call, message.level, text);
		}
	}

	#endCall(message, body) {
		if (!STATUSES.has(message.status))
			throw new Broken(`a result of the status ${JSON.stringify(message.status)}`);
		if (size(message.value) + size(message.stdout) + size(message.stderr) !== body.length)
			throw new Broken('a result of other lengths than it says');
		const call = this.calls.get(message.call);
		if (call === undefined)
			throw new Broken('a result of a call that is not under way');
		this.calls.delete(message.call);
		call.pool.calls--;
		call.end(message, body);
		this.#hold();
	}

	/** Comes unasked, too, when they change. */
	#takeTools(message, body) {
		const waiting = this.#listing.shift();
		if (message.ok === false)
			waiting?.reject(new Refused(message.error ?? 'no reason was given'));
		else
			try {
				waiting?.resolve(readJson(body));
			} catch (error) {
				throw new Broken(`a list of tools is no JSON: ${error.message}`);
			}
		this.#hold();
	}

	#takePool(message, body) {
		const pool = this.#opening[0];
		if (pool?.number !== message.pool)
			throw new Broken('an answer to what was not asked');
		if (message.ok) {
			try {
				pool.isolation = JSON.parse(body.toString() || '{}');
			} catch (error) {
				throw new Broken(`a pool's isolation is no JSON: ${error.message}`);
			}
			pool.resolve();
		} else {
			pool.isOpen = false;
			this.#pools.delete(pool.key);
			pool.reject(new Refused((message.error ?? 'no reason was given').replace(/^(?:--policy: |(?=there is no file '))/, 'policy: ')));
		}
		this.#opening.shift();
		this.#hold();
	}

	/** The session is over: every call that is not is lost, or what the status says. */
	#fail(why, status) {
		this.lost ??= this.#farewell || why;
		for (const call of this.calls.values())
			call.end({ status, error: this.lost }, Buffer.alloc(0));
		for (const waiting of [...this.#opening, ...this.#counting, ...this.#listing])
			waiting.reject(new Lost(this.lost));
		this.calls.clear();
		this.#opening = [];
		this.#counting = [];
		this.#listing = [];
	}
}
