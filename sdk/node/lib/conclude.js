// SPDX-License-Identifier: Apache-2.0
// Results of tools that are commands, and of tools whose values are JSON.

const DEPTH_MAX = 512; // of JSON from a cell, as the library has it
const [QUOTE, BACKSLASH, LIST, LIST_END, OBJECT, OBJECT_END, SPACE] = Buffer.from('"\\[]{} ');
const LAST_WORDS = 2000; // bytes of a command's standard error that its error has

/** What V8 reads without a word may be nested deeper than anything that goes through it can stand. */
function checkDepth(bytes) {
	let depth = 0, isText = false;
	for (let at = 0; at < bytes.length; at++) {
		const byte = bytes[at];
		if (isText && byte === BACKSLASH)
			at++;
		else if (byte === QUOTE)
			isText = !isText;
		else if (!isText && (byte === LIST || byte === OBJECT) && ++depth > DEPTH_MAX)
			throw new RangeError(`it is nested deeper than ${DEPTH_MAX}`);
		else if (!isText && (byte === LIST_END || byte === OBJECT_END))
			depth--;
	}
}

/**
 * A value in JSON, from a cell: no object in it has a property of its own named __proto__, and its depth is bounded. Throws where it
 * is none.
 */
export function readJson(bytes) {
	checkDepth(bytes);
	const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	return /__proto__|\\u/.test(text) ? JSON.parse(text, (name, value) => name === '__proto__' ? undefined : value) : JSON.parse(text);
}

/** The result of a command as that of a tool: its value is what it printed, as JSON if it is that. */
export function concludeCommand(result) {
	if (result.ok && result.dropped.stdout) {
		result.status = 'result_limit';
		result.error = { type: 'ResultLimit', message: 'the command printed more than limits.stdout_kb, so its value is cut', traceback: null };
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
function lastWords(data) {
	let end = data.length;
	while (end > 0 && data[end - 1] <= SPACE)
		end--;
	const begin = Math.max(0, end - LAST_WORDS);
	const words = data.subarray(begin, end).toString();
	return (begin > 0 ? words.slice(words.indexOf('\n') + 1) : words).replaceAll('\0', ' ');
}
