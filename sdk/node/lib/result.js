// SPDX-License-Identifier: Apache-2.0
// How a call ended: one shape, the same as `vitro run --json` prints.

import { Buffer } from 'node:buffer';
import { inspect } from 'node:util';

import { visible } from './errors.js';

/** Every status, and the name of its error where none is given. */
export const STATUSES = new Map(Object.entries({
	ok: '', error: 'Error', timeout: 'Timeout', cpu_limit: 'CpuLimit', memory_limit: 'MemoryLimit', crashed: 'Crashed',
	no_result: 'NoResult', result_limit: 'ResultLimit', cancelled: 'Cancelled', refused: 'Refused', lost: 'Lost',
}));

const EMPTY = Buffer.alloc(0);

export class Result {
	constructor(fields) {
		this.callId = '';
		this.status = 'lost';
		this.value = undefined;
		this.error = null;
		this.exitCode = null;
		this.signal = null;
		this.stdoutBytes = EMPTY;
		this.stderrBytes = EMPTY;
		this.dropped = { stdout: 0, stderr: 0 };
		this.logs = [];
		this.usage = { wallMs: 0, cpuMs: 0, peakMemoryKb: null, processes: null };
		this.isolation = null;
		this.files = new Map();
		this.denials = null;
		this.unreaped = false;
		this.protected = null;
		Object.assign(this, fields);
	}

	get ok() {
		return this.status === 'ok';
	}

	/** What was printed to standard output; U+FFFD stands for what is not UTF-8. */
	get stdout() {
		return this.stdoutBytes.toString();
	}

	get stderr() {
		return this.stderrBytes.toString();
	}

	/** For console.log() and the like: what was printed is text there, as far as inspect() shows one. */
	[inspect.custom](depth, options) {
		const { callId, status, value, error, exitCode, signal, stdoutBytes, stderrBytes, ...rest } = this;
		const shown = { callId, status, value, error, exitCode, signal, stdout: this.stdout, stderr: this.stderr, ...rest };
		return depth < 0 ? '[Result]' : visible(`Result ${inspect(shown, options)}`, true);
	}

	/** The members of `vitro run --json`. The value is as it is. */
	toJSON() {
		const { wallMs, cpuMs, peakMemoryKb, processes } = this.usage;
		return {
			call_id: this.callId, ok: this.ok, status: this.status, value: this.value ?? null, error: this.error,
			exit_code: this.exitCode, signal: this.signal, stdout: this.stdout, stderr: this.stderr, dropped: this.dropped,
			logs: this.logs, usage: { wall_ms: wallMs, cpu_ms: cpuMs, peak_memory_kb: peakMemoryKb, processes },
			isolation: this.isolation, files: Object.fromEntries([...this.files].map(([name, data]) => [name, sayBytes(data)])),
			denials: this.denials, ...this.protected ? { protected: this.protected } : {}, ...this.unreaped ? { unreaped: true } : {},
		};
	}
}

/** Bytes as JSON can say them: as text, or in base64. */
function sayBytes(data) {
	const text = data.toString();
	return Buffer.from(text).equals(data) ? text : { base64: data.toString('base64') };
}
