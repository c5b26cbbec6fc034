// SPDX-License-Identifier: Apache-2.0
// For the AI SDK (`ai` 5 and later): a tool that runs code, and a sandbox session for other tools. ai.d.ts says how.

import { inspect, isDeepStrictEqual } from 'node:util';

import { ToolError } from '../lib/errors.js';
import { checkNames } from '../lib/options.js';
import { Sandbox } from '../lib/sandbox.js';
import { Schema } from '../lib/schema.js';
import { Workspace, anyOf, unlessMissing } from './workspace.js';

const QUEUE_MAX = 16 << 20; // bytes of a process's output that nobody reads
const INPUT = { type: 'object', properties: { code: { type: 'string', description: "The body of an async function in JavaScript; what it returns is the tool's output." } }, required: ['code'], additionalProperties: false };

/** A tool whose input is {code}, and whose output is what the code printed and returned, as text. */
export function codeTool(options = {}) {
	checkNames(options, ['sandbox', 'tools', 'timeout', 'policy', 'files', 'onLog', 'description']);
	const { sandbox = new Sandbox(), tools, description, ...call } = options;
	return {
		description: description ?? describe(tools),
		inputSchema: standardSchema(INPUT),
		async execute({ code }, { abortSignal } = {}) {
			return tellCode(await sandbox.eval(code, { ...call, tools, signal: abortSignal, result: true }));
		},
	};
}

function describe(tools) {
	const entries = Array.isArray(tools) ? tools.map((tool) => [tool.name, tool]) : tools instanceof Map ? [...tools] : Object.entries(tools ?? {});
	const lines = entries.map(([name, tool]) => `- await tools[${JSON.stringify(name)}](params)${tool.description ? `: ${tool.description}` : ''}` +
		(tool.inputSchema ? ` params: ${JSON.stringify(tool.inputSchema)}` : ''));
	const what = 'Runs JavaScript in a sealed process of its own, as the body of an async function, and gives what it logs and returns. ' +
		'Modules of Node are had by await import(). Nothing is kept from one call to the next.';
	return lines.length ? `${what} The code may call:\n${lines.join('\n')}` : what;
}

/** What a model is told of code that it wrote. Throws where that failed. */
function tellCode(result) {
	const text = [...result.logs.map((line) => `${line.text}\n`), result.stdout, result.stderr].join('');
	if (result.ok)
		return result.value === undefined ? text : text + show(result.value);
	throw new ToolError(text + (result.error.traceback ?? `${result.error.type}: ${result.error.message}`), result);
}

/** JSON, unless that would be another value. */
function show(value) {
	try {
		const text = JSON.stringify(value);
		if (text !== undefined && isDeepStrictEqual(JSON.parse(text), value))
			return text;
	} catch {} // cycles, BigInts
	return inspect(value, { depth: 8 });
}

/** https://standardschema.dev, which frameworks take in place of their own. */
function standardSchema(source) {
	const schema = new Schema(source);
	return {
		'~standard': {
			version: 1,
			vendor: 'vitro',
			validate(value) {
				const wrong = schema.check(value, 'input');
				return wrong === null ? { value } : { issues: [{ message: wrong }] };
			},
			jsonSchema: { input: () => source, output: () => source },
		},
	};
}

/** An Experimental_SandboxSession: commands and files of one folder, each command in a cell of its own. */
export class SandboxSession {
	#workspace;

	constructor(options) {
		this.#workspace = new Workspace(options);
		this.description = `Commands run by a shell of Linux in ${this.#workspace.at}, each in a sealed process of its own: files there stay, ` +
			'and everything else, background processes included, is gone when a command ends. There is no network unless the policy grants one.';
	}

	async run({ command, workingDirectory, env, abortSignal }) {
		const { exitCode, stdout, stderr } = await this.#workspace.run(command, { cwd: workingDirectory, env, signal: abortSignal });
		return { exitCode, stdout, stderr };
	}

	async spawn({ command, workingDirectory, env, abortSignal, stdin = false }) {
		if (stdin)
			throw new Error('a process here has no standard input that can be written to');
		abortSignal?.throwIfAborted();
		const killer = new AbortController();
		const flood = () => killer.abort(new Error(`more than ${QUEUE_MAX >> 20} MB of output were waiting to be read`));
		const streams = { stdout: new Output(flood), stderr: new Output(flood) };
		const isKilled = () => killer.signal.reason === Output;
		const signal = abortSignal === undefined ? killer.signal : anyOf(abortSignal, killer);
		const ended = this.#workspace.run(command, { cwd: workingDirectory, env, signal, onOutput: (stream, bytes) => streams[stream].put(bytes) })
			.then(({ exitCode }) => ({ exitCode }), (error) => {
				if (!isKilled())
					throw error;
				return { exitCode: 137 };
			});
		ended.then(() => Object.values(streams).forEach((output) => output.end()), (error) => Object.values(streams).forEach((output) => output.fail(error)));
		return {
			stdout: streams.stdout.readable,
			stderr: streams.stderr.readable,
			wait: () => ended,
			kill: async () => {
				killer.abort(Output);
				await ended.catch(() => {});
			},
		};
	}

	async readFile({ path, abortSignal }) {
		const bytes = await this.readBinaryFile({ path, abortSignal });
		return bytes === null ? null : new Blob([bytes]).stream();
	}

	async readBinaryFile({ path, abortSignal }) {
		return await unlessMissing(this.#workspace.read(path, abortSignal), null);
	}

	async readTextFile({ path, encoding = 'utf-8', startLine = 1, endLine = Infinity, abortSignal }) {
		const bytes = await this.readBinaryFile({ path, abortSignal });
		if (bytes === null)
			return null;
		const text = new TextDecoder(encoding).decode(bytes);
		return startLine === 1 && endLine === Infinity ? text : (text.match(/[^\n]*\n|[^\n]+$/g) ?? []).slice(startLine - 1, endLine).join('');
	}

	async writeFile({ path, content, abortSignal }) {
		await this.#workspace.write(path, await new Response(content).arrayBuffer(), abortSignal);
	}

	async writeBinaryFile({ path, content, abortSignal }) {
		await this.#workspace.write(path, content, abortSignal);
	}

	async writeTextFile({ path, content, encoding = 'utf-8', abortSignal }) {
		await this.#workspace.write(path, Buffer.from(content, encoding), abortSignal);
	}

	async stat({ path, abortSignal }) {
		return await unlessMissing(this.#workspace.stat(path, abortSignal), null);
	}

	async listDirectory({ path, abortSignal }) {
		if (await this.stat({ path, abortSignal }) === null)
			return null;
		return await this.#workspace.list(path, abortSignal);
	}

	async deleteFile({ path, abortSignal }) {
		return await unlessMissing(this.#workspace.remove(path, abortSignal).then(() => true), false);
	}

	/** Ends all that runs, and removes a temporary folder. */
	close() {
		return this.#workspace.close();
	}
}

if (Symbol.asyncDispose !== undefined)
	Object.defineProperty(SandboxSession.prototype, Symbol.asyncDispose, { value: SandboxSession.prototype.close, writable: true, configurable: true });

/** One stream of a process. What is not read waits, up to a bound: a cell writes as fast as it can. */
class Output {
	#controller;
	#isOver = false;
	#flood;

	constructor(flood) {
		this.#flood = flood;
		const size = (bytes) => bytes.length;
		this.readable = new ReadableStream({ start: (controller) => { this.#controller = controller; }, cancel: () => { this.#isOver = true; } }, { highWaterMark: 0, size });
	}

	put(bytes) {
		if (this.#isOver)
			return;
		this.#controller.enqueue(new Uint8Array(bytes));
		if (this.#controller.desiredSize < -QUEUE_MAX)
			this.#flood();
	}

	end() {
		if (!this.#isOver)
			this.#controller.close();
		this.#isOver = true;
	}

	fail(error) {
		if (!this.#isOver)
			this.#controller.error(error);
		this.#isOver = true;
	}
}
