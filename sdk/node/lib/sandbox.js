// SPDX-License-Identifier: Apache-2.0
// Sandbox: calls that run sealed, each in its own single-use process. index.d.ts says what its users need to know.

import { Attendant, answering, prepareTools } from './attend.js';
import { connect, start } from './connection.js';
import { Lost, Refused, VitroError, errorOf, placeError, visible } from './errors.js';
import { checkObject, checkSandboxNames } from './options.js';
import { Orders } from './order.js';
import { Result } from './result.js';
import { Session } from './session.js';

/** What new Sandbox() takes, and a ToolHost for a sandbox of its own. */
export const SANDBOX_OPTIONS = ['policy', 'node', 'fork', 'preload', 'socket', 'readyMin', 'readyMax', 'onSupervisorLog'];
const WARNING = 4; // of syslog(3)

/** What hears the supervisor. Of a module that is not loaded ahead a program is warned, once, also where it listens to no log. */
function hearLines(preload, onSupervisorLog = () => {}) {
	const untold = new Set(preload);
	return (level, text) => {
		const name = level === WARNING ? [...untold].find((name) => text.startsWith(`'${name}' is not loaded ahead of calls: `)) : undefined;
		if (untold.delete(name))
			process.emitWarning(visible(text), 'VitroWarning');
		try {
			onSupervisorLog(level, text);
		} catch (error) { // whoever reads is in the middle of what came, for all calls
			process.emitWarning(visible(`onSupervisorLog threw: ${error?.stack ?? error}`), 'VitroWarning');
		}
	};
}

export class Sandbox {
	#orders;
	#socket;
	#onLine;
	#session = null; // a promise of one
	#isClosed = false;
	#closing = null;

	constructor(options = {}) {
		checkSandboxNames(options, SANDBOX_OPTIONS);
		if (options.onSupervisorLog !== undefined && typeof options.onSupervisorLog !== 'function')
			throw new TypeError('onSupervisorLog is a function');
		this.#orders = new Orders(options);
		this.#socket = options.socket;
		this.#onLine = hearLines(this.#orders.preload, options.onSupervisorLog);
	}

	async eval(code, options = {}) {
		return await this.#do(Sandbox.prototype.eval, options, () => this.#orders.eval(code, options));
	}

	async callModule(url, exportName, args = [], options = {}) {
		return await this.#do(Sandbox.prototype.callModule, options, () => this.#orders.callModule(url, exportName, args, options));
	}

	async run(argv, options = {}) {
		return await this.#do(Sandbox.prototype.run, options, () => this.#orders.run(argv, options));
	}

	/** Calls a tool that the server offers (vitro serve --tools). */
	async callTool(name, args = {}, options = {}) {
		return await this.#do(Sandbox.prototype.callTool, options, () => {
			this.#needServer();
			return this.#orders.callTool(name, args, options);
		});
	}

	/** The tools that the server offers, as eval() takes them. */
	async serverTools() {
		this.#needServer();
		const listed = await (await this.#use()).listTools();
		return listed.map(({ name, description = '', input_schema: inputSchema = {} }) => ({
			name, description, inputSchema, run: (args, { signal } = {}) => this.callTool(name, args, { signal }),
		}));
	}

	#needServer() {
		if (this.#socket === undefined)
			throw new Refused('only a server has tools of its own: give its socket, as in new Sandbox({ socket })');
	}

	/**
	 * What holds on this machine under the sandbox's policy, or another one; `node`, but for a server's, says whether a Node is
	 * forked for each call or started anew, and why. Throws Refused where it cannot be held.
	 */
	async capabilities(policy = undefined) {
		const session = await this.#use();
		const pool = await session.openPool(this.#orders.policyAlone(policy));
		const told = { ...pool.isolation, vitro: session.version };
		return this.#socket === undefined ? { ...told, node: await this.#orders.describeNode() } : told;
	}

	/** How many cells and calls there are now, and were so far. */
	async counts() {
		const { is, ...counts } = await (await this.#use()).count();
		return counts;
	}

	/** Ends all calls, and a supervisor of its own. The sandbox cannot be used any more. */
	async close() {
		this.#isClosed = true;
		this.#closing ??= this.#session?.then((session) => session.close(), () => {});
		await this.#closing;
	}

	// ---- within

	/** The session; a new one where there is none, or it was lost. */
	async #use() {
		for (;;) {
			if (this.#isClosed)
				throw new Refused('the sandbox is closed');
			this.#session ??= this.#connect();
			const mine = this.#session;
			let session;
			try {
				session = await mine;
			} catch (error) {
				if (this.#session === mine)
					this.#session = null;
				throw error;
			}
			if (session.lost === null)
				return session;
			if (this.#session === mine)
				this.#session = null;
			await session.close(); // its process is waited for
		}
	}

	async #connect() {
		const connection = this.#socket === undefined ? await start() : await connect(this.#socket);
		return new Session(connection, this.#onLine);
	}

	/** method: the caller's, from which on stacks are his own. */
	async #do(method, options, make) {
		let attendant, call;
		checkObject(options);
		try {
			const order = make();
			order.isWithin = answering.getStore() === true;
			prepareTools(order.tools);
			({ attendant, call } = await abortable(options.signal, this.#begin(order, options)));
		} catch (error) {
			return this.#failBefore(options, error);
		}
		const { result, cause } = await attendant.attend(call);
		if (options.result)
			return result;
		if (attendant.failure !== null)
			throw attendant.failure.error;
		if (!result.ok)
			throw placeError(errorOf(result, cause), method);
		return call.pool.spec.kind === 'command' ? result : result.value;
	}

	async #begin(order, options) {
		for (;;) {
			const session = await this.#use();
			order.checkSize(session.frameMax);
			const pool = await session.openPool(order.spec);
			if (options.signal?.aborted)
				throw new Aborted();
			const attendant = new Attendant(session, order, options);
			const call = session.begin(pool, order);
			if (call !== null)
				return { attendant, call };
		}
	}

	/** Of a call that was not begun. A wrong option is a mistake in the program, and thrown: nobody may look at a result for it. */
	#failBefore(options, error) {
		if (error.constructor === TypeError)
			throw error;
		const status = error instanceof Aborted ? 'cancelled' : error instanceof Lost ? 'lost' : 'refused';
		const message = error instanceof Aborted ? 'the call was aborted before it began' : error.message;
		const type = error instanceof Aborted ? 'Cancelled' : error.name;
		const callId = typeof options.callId === 'string' ? options.callId : '';
		const result = new Result({ callId, status, error: { type, message, traceback: null } });
		if (options.result)
			return result;
		if (error instanceof Aborted)
			throw errorOf(result, options.signal.reason);
		if (error instanceof VitroError)
			error.result ??= result;
		throw error;
	}
}

if (Symbol.asyncDispose !== undefined)
	Object.defineProperty(Sandbox.prototype, Symbol.asyncDispose, { value: Sandbox.prototype.close, writable: true, configurable: true });

class Aborted extends Error {}

/** The same promise, which is given up when the signal aborts. */
async function abortable(signal, promise) {
	if (signal === undefined)
		return promise;
	promise.catch(() => {});
	let abort;
	const aborted = new Promise((_, reject) => {
		abort = () => reject(new Aborted());
		signal.addEventListener('abort', abort, { once: true });
		if (signal.aborted)
			abort();
	});
	try {
		return await Promise.race([promise, aborted]);
	} finally {
		signal.removeEventListener('abort', abort);
	}
}
