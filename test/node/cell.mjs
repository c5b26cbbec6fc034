// SPDX-License-Identifier: Apache-2.0
/* A client of pools of Node, as small as it can be: docs/wire.md, and the values of codec.mjs. */
import { spawn } from 'node:child_process';
import * as codec from '../../runtimes/node/codec.mjs';
import { BINARY } from '../lib/vitrotest.mjs';

export class Cells {
	#child;
	#socket;
	#got = Buffer.alloc(0);
	#waiting = new Map();
	#pools = new Map();
	#number = 0;
	logs = [];

	constructor() {
		this.#child = spawn(BINARY, ['supervise'], { stdio: ['ignore', 'ignore', 'inherit', 'pipe'] });
		this.#socket = this.#child.stdio[3];
		this.#socket.on('data', (chunk) => this.#take(chunk));
		this.#say({ do: 'hello', version: 1 });
	}

	/** A pool of a Node: its number. */
	async pool({ node = process.execPath, setup = {}, policy = {}, ready = 2 } = {}) {
		const pool = ++this.#number;
		const told = new Promise((settle) => this.#pools.set(pool, settle));
		this.#say({ do: 'pool', pool, node, setup: JSON.stringify({ version: 1, mode: 'message', ...setup }), ready_min: ready, ready_max: ready },
			[Buffer.from(JSON.stringify([{ json: JSON.stringify(policy) }]))]);
		const { head, body } = await told;
		if (!head.ok)
			throw Object.assign(new Error(head.error), { num: head.num });
		return { pool, isolation: JSON.parse(body) };
	}

	/** A call by a head as the harness has it: {status, value, error, type, stdout, stderr, logs, traceback, head}. */
	async call({ pool }, head, { tools = {}, buffers = [], wall_ms } = {}) {
		return await this.raw({ pool }, '', codec.pack({ tools: Object.keys(tools), ...head }, buffers), { tools, wall_ms });
	}

	async eval(pool, code, options) {
		return await this.call(pool, { op: 'eval', code }, options);
	}

	async raw({ pool }, tool, pieces, { tools = {}, wall_ms } = {}) {
		const call = ++this.#number;
		return await new Promise((settle) => {
			this.#waiting.set(call, { settle, tools, logs: [] });
			this.#say({ do: 'call', call, pool, tool, id: `c${call}`, wall_ms }, pieces);
		});
	}

	cancel(call) {
		this.#say({ do: 'cancel', call });
	}

	get pid() {
		return this.#child.pid;
	}

	get last() {
		return this.#number;
	}

	async end() {
		const gone = new Promise((settle) => this.#child.once('exit', settle));
		this.#socket.end();
		return await gone;
	}

	#say(head, pieces = []) {
		const text = Buffer.from(JSON.stringify(head));
		const start = Buffer.alloc(8);
		start.writeUInt32LE(text.length + pieces.reduce((sum, piece) => sum + piece.length, 0), 0);
		start.writeUInt32LE(text.length, 4);
		for (const part of [start, text, ...pieces])
			this.#socket.write(part);
	}

	#chunks = [];
	#size = 0;

	#take(chunk) {
		this.#chunks.push(chunk);
		this.#size += chunk.length;
		for (;;) {
			if (this.#size < 8)
				return;
			if (this.#chunks[0].length < 8)
				this.#chunks = [Buffer.concat(this.#chunks)];
			const length = 8 + this.#chunks[0].readUInt32LE(0);
			if (this.#size < length)
				return;
			const all = this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : this.#chunks[0];
			this.#chunks = [all.subarray(length)];
			this.#size -= length;
			const end = 8 + all.readUInt32LE(4);
			this.#hear(JSON.parse(all.subarray(8, end)), all.subarray(end, length));
		}
	}

	#hear(head, body) {
		const waiting = this.#waiting.get(head.call);
		if (head.is === 'pool')
			this.#pools.get(head.pool)({ head, body });
		else if (head.is === 'log' && !waiting)
			this.logs.push(body.toString());
		else if (head.is === 'log')
			waiting.logs.push({ level: head.level, text: body.toString() });
		else if (head.is === 'ask')
			this.#answer(head, body, waiting.tools);
		else if (head.is === 'done')
			this.#finish(head, body, waiting);
	}

	async #answer({ call, ask, tool }, body, tools) {
		try {
			const { head, attachments } = codec.unpack(body);
			const value = await tools[tool](...codec.decode(head.args, attachments));
			const { tree, buffers } = codec.encode(value);
			this.#say({ do: 'answer', call, ask, ok: true }, codec.pack({ value: tree }, buffers));
		} catch (error) {
			this.#say({ do: 'answer', call, ask, ok: false },
				[Buffer.from(JSON.stringify({ type: error.name, message: error.message, code: error.code }))]);
		}
	}

	#finish(head, body, { settle, logs }) {
		this.#waiting.delete(head.call);
		const at = head.value ?? 0, middle = at + (head.stdout ?? 0);
		const told = { status: head.status, type: head.error_type, error: head.error, head, bytes: body.subarray(0, at),
			stdout: body.subarray(at, middle).toString(), stderr: body.subarray(middle).toString(),
			logs: logs.filter((line) => line.level !== 'vitro.traceback'),
			traceback: logs.find((line) => line.level === 'vitro.traceback')?.text };
		if (head.status === 'ok' && at)
			try {
				const { head: value, attachments } = codec.unpack(told.bytes);
				told.value = codec.decode(value.value, attachments);
				told.files = value.files && Object.fromEntries(Object.entries(value.files).map(([name, index]) => [name, attachments.take(index)]));
			} catch (error) {
				told.value = error; // JSON of a manifest's tool
			}
		settle(told);
	}
}
