// SPDX-License-Identifier: Apache-2.0
/*
 * One call while it runs: its call-backs, the tools that it asks for, and what becomes of it. A cell can ask as fast as
 * it writes, so all of it has bounds.
 */

import { AsyncLocalStorage } from 'node:async_hooks';
import { Buffer } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';

import * as codec from './codec.mjs';
import { concludeCommand, readJson } from './conclude.js';
import { Schema } from './schema.js';

const ASKS_MAX = 10_000; // uses of tools that one call waits for
const HELD_MAX = 64 << 20; // bytes of their arguments
const TYPE_MAX = 200; // of an error's name
const MESSAGE_MAX = 8192; // and of its text
const CODE_MAX = 200;
const SHORT_MS = 100; // a timeout below it may have been meant as seconds
const RAISED_MAX = 8; // errors of its tools that a call keeps

/** True while a tool that a cell asked for runs: calls that it makes are made on behalf of another. */
export const answering = new AsyncLocalStorage();

const schemas = new WeakMap();

function schemaOf(source) {
	if (!schemas.has(source))
		schemas.set(source, new Schema(source, 'schema'));
	return schemas.get(source);
}

/** Compiles the schemas of tools before the call is made. Throws SchemaError. */
export function prepareTools(tools) {
	for (const [name, { inputSchema }] of tools) {
		if (inputSchema === undefined || inputSchema === null)
			continue;
		if (typeof inputSchema !== 'object')
			throw new TypeError(`the inputSchema of ${JSON.stringify(name)} is not an object`);
		schemaOf(inputSchema);
	}
}

export class Attendant {
	failure = null; // {error}: what a call-back threw
	#session;
	#order;
	#options;
	#decoders = new Map();
	#asked = 0;
	#held = 0;
	#isFlooded = false;
	#raised = []; // by tools, the last few
	#over = new AbortController();

	constructor(session, order, options) {
		this.#session = session;
		this.#order = order;
		this.#options = options;
		order.onOutput = (call, stream, bytes) => this.#tellOutput(call, stream, bytes);
		order.onLog = (call, level, text) => this.#try(call, () => options.onLog?.({ level, text }));
		order.onAsk = (call, ask, tool, body) => this.#hear(call, ask, tool, body);
	}

	/** What the call's end came to: {result, cause}. */
	async attend(call) {
		const { signal } = this.#options;
		const abort = () => this.#session.cancel(call);
		signal?.addEventListener('abort', abort, { once: true });
		if (signal?.aborted)
			abort();
		const { message, body } = await call.ended;
		signal?.removeEventListener('abort', abort);
		this.#over.abort();
		for (const [stream, decoder] of this.#decoders)
			this.#tellText(call, stream, decoder.end());
		const result = this.#conclude(call, message, body);
		if (this.failure !== null && result.status === 'cancelled')
			result.error = { ...result.error, message: `a call-back failed: ${this.failure.error?.message ?? this.failure.error}` };
		const isAborted = result.status === 'cancelled' && signal?.aborted;
		return { result, cause: isAborted ? signal.reason : this.#findRaised(result) };
	}

	/** Which of its tools' errors the call ended of. A cell's word is only compared: the most that it has of a lie is another one of them. */
	#findRaised({ status, error }) {
		return status === 'error' ? this.#raised.findLast((raised) => {
			const { type, message } = describeFailure(raised);
			const rest = error.message.startsWith(message) ? error.message.slice(message.length) : null;
			return error.type === type && /^(?:$| \(|; )/.test(rest); // behind it are its code and the cell's advice
		}) : undefined;
	}

	#conclude(call, message, body) {
		const result = call.buildResult(message, body);
		if (result.status === 'cancelled' && this.#isFlooded)
			result.error.message = `it asked for more at once than is answered: ${ASKS_MAX} uses of tools, or ${HELD_MAX >> 20} MB of their arguments`;
		if (result.status === 'timeout' && this.#options.timeout < SHORT_MS)
			result.error.message += ' (timeout is in milliseconds)';
		const { kind } = this.#order.spec;
		const value = body.subarray(0, Number(message.value ?? 0));
		if (kind === 'tool' && !value.length)
			return concludeCommand(result);
		if (!result.ok || kind === 'command')
			return result;
		try {
			Object.assign(result, kind === 'tool' ? { value: readJson(value) } : this.#readValue(value));
		} catch (error) {
			if (!(error instanceof codec.Malformed) && kind !== 'tool')
				throw error;
			result.status = 'no_result';
			result.error = { type: 'NoResult', message: `its value is malformed: ${error.message}`, traceback: null };
		}
		return result;
	}

	#readValue(body) {
		const { head, attachments } = codec.unpack(body);
		const files = codec.readFiles(head.files, attachments, this.#order.collect);
		return { value: codec.decode(head.value, attachments), files };
	}

	// ---- call-backs

	/** What a call-back throws ends the call, and is what the caller gets. */
	#try(call, act) {
		if (this.failure !== null)
			return;
		try {
			act();
		} catch (error) {
			this.failure = { error };
			this.#session.cancel(call);
		}
	}

	#tellOutput(call, stream, bytes) {
		const { onOutput } = this.#options;
		if (onOutput !== undefined)
			this.#try(call, () => onOutput(stream === 1 ? 'stdout' : 'stderr', bytes));
		if (!this.#decoders.has(stream))
			this.#decoders.set(stream, new StringDecoder('utf8'));
		this.#tellText(call, stream, this.#decoders.get(stream).write(bytes));
	}

	#tellText(call, stream, text) {
		const tell = stream === 1 ? this.#options.onStdout : this.#options.onStderr;
		if (text && tell !== undefined)
			this.#try(call, () => tell(text));
	}

	// ---- tools

	#hear(call, ask, name, heard) {
		if (this.#isFlooded || this.failure !== null || this.#options.signal?.aborted)
			return;
		const body = codec.ownBuffer(heard); // all that came with it would be kept for as long as the tool runs
		this.#asked++;
		this.#held += body.length;
		if (this.#asked > ASKS_MAX || this.#held > HELD_MAX) {
			this.#isFlooded = true;
			this.#session.cancel(call);
			return;
		}
		this.#serve(call, name, body).then((pieces) => [true, pieces], (error) => [false, [writeFailure(error)]]).then(([ok, pieces]) => {
			this.#asked--;
			this.#held -= body.length;
			this.#session.answer(call, ask, ok, pieces);
		});
	}

	async #serve(call, name, body) {
		const tool = this.#order.tools.get(name);
		if (tool === undefined)
			throw new ReferenceError(`there is no tool ${JSON.stringify(name)}`);
		const params = readRequest(body);
		if (tool.inputSchema)
			checkParams(name, tool.inputSchema, params);
		const context = { signal: this.#over.signal, callId: call.callId };
		const value = await this.#run(() => tool.run(params[0], context));
		const { tree, buffers } = codec.encode(value, { name: `what ${name} gave`, advice: codec.PLAIN_ADVICE });
		const pieces = codec.pack({ value: tree }, buffers);
		const bytes = pieces.reduce((total, piece) => total + piece.length, 0);
		if (bytes > this.#session.frameMax - (1 << 16))
			throw new RangeError(`what ${name} returned has ${bytes} bytes; a supervisor takes at most ${this.#session.frameMax}`);
		return pieces;
	}

	async #run(act) {
		try {
			return await answering.run(true, act);
		} catch (error) {
			this.#raised = [...this.#raised, error].slice(-RAISED_MAX);
			throw error;
		}
	}
}

/** The arguments of a tool, from a cell. */
function readRequest(body) {
	const { head, attachments } = codec.unpack(body);
	const args = codec.decode(head.args ?? [], attachments);
	if (!Array.isArray(args))
		throw new codec.Malformed('these are no arguments');
	return args;
}

function checkParams(name, source, params) {
	if (params.length > 1)
		throw new TypeError(`${name}: want one object of parameters, found ${params.length} arguments`);
	const wrong = schemaOf(source).check(params[0] ?? {}, 'params');
	if (wrong !== null)
		throw Object.assign(new TypeError(`${name}: ${wrong}`), { code: 'INVALID_PARAMS' });
}

/** What a tool threw, for the cell: its name, text and code. Whatever it is, it is an error there. */
function writeFailure(error) {
	return Buffer.from(JSON.stringify(describeFailure(error)));
}

function describeFailure(error) {
	const told = { type: 'Error', message: '' };
	try {
		const isError = error instanceof Error;
		told.type = String(isError ? error.name : 'Error').slice(0, TYPE_MAX);
		told.message = String(isError ? error.message : error).slice(0, MESSAGE_MAX);
		const code = error?.code;
		if (typeof code === 'string' || Number.isSafeInteger(code))
			told.code = typeof code === 'string' ? code.slice(0, CODE_MAX) : code;
	} catch {
		told.message ||= '(no message)';
	}
	return told;
}
