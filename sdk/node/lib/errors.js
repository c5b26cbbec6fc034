// SPDX-License-Identifier: Apache-2.0
// What calls throw. One status of a result, one class; all are VitroErrors, and carry the whole result.

import { lastLine } from './conclude.js';
import { showText } from './say.js';

const UNSEEN = /[\p{Zl}\p{Zp}]|(?![\n\t])\p{C}/gu;
const UNINSPECTED = /[\p{Zl}\p{Zp}]|(?!\p{Cc})\p{C}/gu;
const TYPE_MAX = 200; // characters of a name that is shown

/**
 * What cannot be printed is escaped, but for line ends and tabs: a cell may have chosen the text, and terminals obey it. Of what
 * inspect() has said, which escapes control characters, those that are there are its own colours, and stay.
 */
export function visible(text, isInspected = false) {
	return String(text).replace(isInspected ? UNINSPECTED : UNSEEN, (char) => `\\u{${char.codePointAt(0).toString(16)}}`);
}

/** The base of all that vitro throws. `result` is the call's whole Result; null where there was no call to have one. */
export class VitroError extends Error {
	constructor(message = '', result = null, options = undefined) {
		super(visible(message), options);
		this.result = result;
		Object.defineProperty(this, 'name', { value: new.target.name, configurable: true, writable: true });
	}
}

/**
 * The tool itself failed: the code threw, the command exited with another code than 0. What was thrown in the cell is
 * never thrown here as its own class, since a cell's word is only data: `type` is its name. Where code did not catch what a tool of
 * eval()'s threw, `cause` is that.
 */
export class ToolError extends VitroError {
	get type() {
		return this.result?.error?.type ?? 'Error';
	}

	get traceback() {
		return this.result?.error?.traceback ?? null;
	}
}

/** The call ran past its deadline, or no cell was free for it in time. */
export class Timeout extends VitroError {}

/** The call used more CPU time than `limits.cpu_ms`. */
export class CpuLimit extends VitroError {}

/** The call used more memory than `limits.memory_mb`. */
export class MemoryLimit extends VitroError {}

/** The call's process died of a signal (`result.signal`), or broke its protocol. */
export class Crashed extends VitroError {}

/** The call's process ended without giving a result, as by process.exit(0). */
export class NoResult extends VitroError {}

/** The result is larger than `limits.result_mb`. */
export class ResultLimit extends VitroError {}

/** The call was ended by its AbortSignal, whose reason is `cause`, or by close(). */
export class Cancelled extends VitroError {
	get code() {
		return 'ABORT_ERR';
	}
}

/** The call was not begun: its policy is not valid or cannot be enforced on this machine, or the request is wrong. */
export class Refused extends VitroError {}

/**
 * The supervisor itself failed. The call may or may not have run, so it is never made again by itself. The next call
 * of the same sandbox starts a new supervisor.
 */
export class Lost extends VitroError {}

/** vitro cannot work here: another operating system than Linux, or its program is not there. */
export class Unsupported extends VitroError {}

const BY_STATUS = new Map(Object.entries({
	error: ToolError, timeout: Timeout, cpu_limit: CpuLimit, memory_limit: MemoryLimit, crashed: Crashed,
	no_result: NoResult, result_limit: ResultLimit, cancelled: Cancelled, refused: Refused, lost: Lost,
}));

/** The error for a result that is not ok. */
export function errorOf(result, cause = undefined) {
	const Class = BY_STATUS.get(result.status);
	const message = result.error?.message ?? result.status;
	// What a program that exited by itself said last; code that threw has its own words.
	const said = Class === ToolError && result.exitCode && !result.error?.traceback ? lastLine(result.stderrBytes) : '';
	const text = said && !message.includes(said) ? `${message}: ${said}` : message;
	return new Class(text, result, cause === undefined ? undefined : { cause });
}

/**
 * The same error, whose stack begins where the package was called by `method`, and not with lines of the package; and what the code
 * threw in its cell is in it. It is only put together when it is read: then Node still knows the line to show of an error that
 * nobody catches. Where a promise was not awaited there is no such line.
 */
export function placeError(error, method) {
	const place = {};
	Error.captureStackTrace(place, method);
	const at = String(place.stack).indexOf('\n    at ');
	if (at < 0)
		return error;
	Error.captureStackTrace(error, method);
	if (error instanceof ToolError && error.traceback !== null)
		defineStack(error, place.stack.slice(at));
	return error;
}

function defineStack(error, frames) {
	const keep = (value) => Object.defineProperty(error, 'stack', { value, writable: true, configurable: true, enumerable: false });
	const get = () => {
		const { name, type, message, traceback } = error;
		const lines = visible(traceback).trimEnd().split('\n').map((line) => line && `    ${line}`);
		return `${name}: ${showText(type, TYPE_MAX)}${message && `: ${message}`}${frames}\n  in the cell:\n${lines.join('\n')}`;
	};
	Object.defineProperty(error, 'stack', { get, set: keep, configurable: true, enumerable: false });
}
