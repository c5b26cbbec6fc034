// SPDX-License-Identifier: Apache-2.0
// Results of tools that are commands, and of tools whose values are JSON.

const LAST_WORDS = 2000; // bytes of a command's standard error that its error has

/** A value in JSON, from a cell: no object in it has a property of its own named __proto__. Throws where it is none. */
export function readJson(bytes) {
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

/** The end of standard error, from the beginning of a line. */
function lastWords(data) {
	const text = data.toString().replace(/[\s\0]+$/, '');
	const end = text.slice(-LAST_WORDS);
	return (end.length < text.length ? end.slice(end.indexOf('\n') + 1) : end).replaceAll('\0', ' ');
}
