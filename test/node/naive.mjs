// SPDX-License-Identifier: Apache-2.0
/*
 * A sandbox for JavaScript as it is often made: a Node with an IPC channel, in which code is a function, and names are
 * hidden. It is the control of the tests of the drop-in: each bug that they are named after shows here.
 */

import { spawn } from 'node:child_process';

const WORKER = `
const Body = (async () => {}).constructor;
const waiting = new Map();
let calls = 0;
const ask = (name) => (params) => new Promise((resolve, reject) => {
	waiting.set(String(++calls), { resolve, reject });
	process.send({ type: 'tool_call', id: String(calls), toolName: name, params });
});
const logger = Object.fromEntries(['log', 'warn', 'error', 'debug'].map((level) => [level,
	(...words) => process.send({ type: 'log', level, data: words.length === 1 ? words[0] : words })]));
process.on('message', async (message) => {
	if (message.type === 'tool_result') {
		const { resolve, reject } = waiting.get(message.id);
		return message.error ? reject(new Error(message.error)) : resolve(message.result);
	}
	const spaces = {};
	for (const { name } of message.tools) {
		const [space, method] = name.split(':');
		(spaces[space] ??= {})[method] = ask(name);
	}
	[Object, Array, Error].forEach((one) => Object.freeze(one.prototype));
	try {
		const run = new Body('console', 'require', ...Object.keys(spaces), '"use strict";' + message.code);
		process.send({ type: 'result', data: await run(logger, undefined, ...Object.values(spaces)) });
	} catch (error) {
		process.send({ type: 'error', error: error.message });
	}
	process.exit(0);
});
process.send({ type: 'ready' });
`;

export class NaiveSandbox {
	constructor({ timeout = 30_000, memoryLimit = 128 } = {}) {
		this.timeout = timeout;
		this.memoryLimit = memoryLimit;
		this.process = null;
	}

	execute(code, tools, toolExecutor) {
		const told = { result: null, logs: [] };
		const worker = spawn(process.execPath, [`--max-old-space-size=${this.memoryLimit}`, '--input-type=commonjs', '-e', WORKER], {
			stdio: ['ignore', 'pipe', 'pipe', 'ipc'], env: { PATH: process.env.PATH },
		});
		this.process = worker;
		worker.stdout.on('data', (data) => told.logs.push(`[stdout] ${data.toString().trim()}`));
		worker.stderr.on('data', (data) => told.logs.push(`[stderr] ${data.toString().trim()}`));
		worker.on('message', async (message) => {
			switch (message.type) {
			case 'ready': return worker.send({ type: 'execute', code, tools });
			case 'log': return told.logs.push(`[${message.level}] ${JSON.stringify(message.data)}`);
			case 'result': told.result = message.data; return;
			case 'error': told.error = message.error; return;
			case 'tool_call': {
				const answer = await toolExecutor(message.toolName, message.params).then((result) => ({ result }), (error) => ({ error: error.message }));
				return worker.connected && worker.send({ type: 'tool_result', id: message.id, ...answer }, () => {});
			}
			}
		});
		const timer = setTimeout(() => worker.kill('SIGKILL'), this.timeout);
		return new Promise((resolve) => worker.on('exit', (status, signal) => {
			clearTimeout(timer);
			if (signal === 'SIGKILL')
				told.error ??= 'killed';
			else if (status !== 0)
				told.error ??= `exited with ${status}`;
			resolve(told);
		}));
	}

	terminate() {
		this.process?.kill('SIGKILL');
		this.process = null;
	}
}
