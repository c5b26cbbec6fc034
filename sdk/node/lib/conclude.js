// SPDX-License-Identifier: Apache-2.0
// Results of tools that are commands, and of tools whose values are JSON.

import { PARTS_MAX, checkShape } from './message.mjs';

const DEPTH_MAX = 512; // of JSON from a cell, as the library has it; V8 reads what nests deeper than anything else can stand
const LAST_WORDS = 2000; // bytes of a command's standard error that its error has as a tool
const LAST_LINE = 300; // characters that what is thrown has
const BLANKS = new Set(Buffer.from(' \t\r\n\0'));

/**
 * A value in JSON, from a cell: no object in it has a property of its own named __proto__, and its depth and its parts are
 * bounded. Throws where it is none.
 */
export function readJson(bytes) {
	checkShape(bytes, PARTS_MAX, DEPTH_MAX);
	const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
	return /__proto__|\\u/.test(text) ? JSON.parse(text, (name, value) => name === '__proto__' ? undefined : value) : JSON.parse(text);
}

/** The result of a command as that of a tool: its value is what it printed, as JSON if it is that. */
export function concludeCommand(result) {
	if (result.ok && result.dropped.stdout) {
		result.status = 'result_limit';
		result.error = { type: 'ResultLimit', message: 'the command printed more than limits.stdout_kb, so its value is cut: raise that in the tool\'s policy', traceback: null };
	} else if (result.ok) {
		result.value = readOutput(result);
	} else if (result.status === 'error' && result.exitCode) {
		const words = lastWords(result.stderrBytes);
		if (words)
			result.error = { ...result.error, message: `${result.error.message}: ${words}` };
	}
	return result;
}

function readOutput(result) {
	try {
		return readJson(result.stdoutBytes);
	} catch {
		return result.stdout;
	}
}

/** The end of standard error, from the beginning of a line. By bytes from the end: an expression would look at each blank anew. */
export function lastWords(data) {
	let end = data.length;
	while (end > 0 && BLANKS.has(data[end - 1]))
		end--;
	const tail = data.subarray(Math.max(0, end - LAST_WORDS), end);
	const words = end > LAST_WORDS ? tail.subarray(tail.indexOf('\n') + 1) : tail;
	return words.toString().replaceAll('\0', ' ');
}

/** The last line of that. */
export function lastLine(data) {
	return [...lastWords(data).split('\n').at(-1)].slice(0, LAST_LINE).join('');
}
