// SPDX-License-Identifier: Apache-2.0
/*
 * Code as the body of a strict async function, and what is told of what it throws: in its own words, with its own lines,
 * and without the frames of what runs it. vitro eval has the same text, in front of evaluate.cjs.
 *
 * Given: module, require.
 */
'use strict';

const disk = require('node:fs');
const paths = require('node:path');
const util = require('node:util');
const vm = require('node:vm');

const AsyncFunction = (async () => {}).constructor;
const BEGIN = '(async function () { "use strict";\n';
const STRICT = '"use strict";';
const INCOMPLETE = 'the code ends before it is complete: a bracket, a brace or a quote is not closed';
const LINE_MAX = 200;

/** What a model is told beside what V8 says. */
const HINTS = [
	[/^require is not defined/, "modules come by import: const fs = await import('node:fs')"],
	[/^Cannot use import statement outside a module/, "code is the body of an async function: const fs = await import('node:fs')"],
	[/^Unexpected token 'export'/, 'code is the body of an async function: return the value'],
	[/^Cannot use 'import\.meta' outside a module/, 'code is the body of an async function, and no module'],
];

const shown = new WeakMap(); // of SyntaxErrors that have their place

// ---- code -----------------------------------------------------------------------------------------

/** The function whose body the code is; importing is for import() in it. Throws SyntaxErrors with the code's own lines. */
function compile(code, filename, importing) {
	try {
		const script = new vm.Script(`${BEGIN}${code}\n})`, { filename, lineOffset: -1, importModuleDynamically: importing });
		void new AsyncFunction(`${STRICT}\n${code}`); // it is one body, and not the end of one and more behind it
		return script.runInThisContext();
	} catch (error) {
		throw util.types.isNativeError(error) && error.name === 'SyntaxError' ? locate(error, code, filename) : error;
	}
}

/** The same error, at the line and column of the code where it is. */
function locate(error, code, filename) {
	const lines = code.trimEnd().split('\n');
	const found = [() => error, () => parseAlone(code, filename)].map((get) => get()).map((one) => readPlace(one, filename, lines.length)).find(Boolean);
	const { message, line, column } = found ?? { message: INCOMPLETE, line: lines.length, column: lines.at(-1).length + 1 };
	const placed = new SyntaxError(`${message} (${filename}:${line}:${column})`);
	shown.set(placed, `${showLine(filename, lines[line - 1], line, column)}SyntaxError: ${message}`);
	return placed;
}

/** What V8 says of the body by itself, which ends where the code does. It is parsed as that of no async function, so that none awaits. */
function parseAlone(code, filename) {
	const waitless = code.replace(/\bfor\s+await\b/g, (words) => 'for'.padEnd(words.length)).replace(/\bawait\b/g, 'void ');
	try {
		vm.compileFunction(`${STRICT}\n${waitless}`, [], { filename, lineOffset: -1 });
		return null;
	} catch (error) {
		return error;
	}
}

/** Where V8 saw it: {message, line, column}, if that is in the code. The stack begins with the place, the line and a mark below it. */
function readPlace(error, filename, count) {
	const [place = '', , mark = ''] = tryText(() => error.stack, '').split('\n');
	const line = place.startsWith(`${filename}:`) ? Number(place.slice(filename.length + 1)) : 0;
	return line >= 1 && line <= count && mark.includes('^') ? { message: error.message, line, column: mark.indexOf('^') + 1 } : null;
}

/** A line of code, and a mark below it. */
function showLine(filename, text, line, column) {
	const begin = text.slice(0, LINE_MAX);
	const mark = column <= LINE_MAX ? `${begin.slice(0, column - 1).replace(/[^\t]/g, ' ')}^\n` : '';
	return `${filename}:${line}:${column}\n${begin}\n${mark}\n`;
}

// ---- errors ---------------------------------------------------------------------------------------

function tryText(get, otherwise) {
	try {
		const text = get();
		return typeof text === 'string' ? text : otherwise;
	} catch {
		return otherwise;
	}
}

function isError(error) {
	return util.types.isNativeError(error) || error instanceof Error;
}

function nameError(error) {
	return isError(error) ? tryText(() => error.name || error.constructor.name, 'Error').replaceAll('\0', '') || 'Error' : 'Thrown';
}

function hintAt(text) {
	return HINTS.find(([pattern]) => pattern.test(text))?.[1] ?? '';
}

/** What was thrown, which may be anything. */
function say(error) {
	if (!isError(error))
		return typeof error === 'string' ? error : tryText(() => util.inspect(error), '(a value that cannot be shown)');
	const text = tryText(() => error.message, '(an error that cannot be shown)');
	const code = tryText(() => error.code, '');
	const hint = hintAt(text) || tryText(() => advise(error), '');
	return `${text}${code && !text.includes(code) ? ` (${code})` : ''}${hint && `; ${hint}`}`;
}

/** The stack with the line of the code that it came from, and causes; without the frames of what runs the code. */
function show(error, code = '', filename = '') {
	if (!isError(error))
		return `Thrown: ${say(error)}\n`;
	const text = shown.get(error) ?? dropFrames(tryText(() => util.inspect(error), tryText(() => error.stack, 'Error')));
	const hint = hintAt(tryText(() => error.message, ''));
	return `${showFirst(text, code, filename)}${text}\n${hint && `${hint}\n`}`;
}

/** The line of the code in the first frame that is one of its own. */
function showFirst(text, code, filename) {
	const frame = text.split('\n').find((line) => /^ {4}at /.test(line) && line.includes(`${filename}:`));
	const place = filename && frame && /:(\d+):(\d+)\)?(?: \{)?$/.exec(frame);
	const [line, column] = place ? [Number(place[1]), Number(place[2])] : [0, 0];
	const source = code.split('\n')[line - 1];
	return source === undefined || text.startsWith(`${filename}:`) ? '' : showLine(filename, source, line, column);
}

/** A brace at the end of a frame opens what follows the frames. */
function dropFrames(text) {
	const kept = [];
	for (const line of text.split('\n')) {
		if (!/^\s+at .*(?:vitro:|node:|\[eval\])/.test(line))
			kept.push(line);
		else if (line.endsWith(' {') && !kept.at(-1).endsWith(' {'))
			kept.push(`${kept.pop()} {`);
	}
	return kept.join('\n');
}

// ---- denials: in the words of runtimes/python/complain.py, which test/vectors/denials.json holds together ---

const LIMITS = { EMFILE: 'limits.open_files', EFBIG: 'limits.file_mb', ENOSPC: 'limits.tmp_mb', EDQUOT: 'limits.tmp_mb' };
const NO_NETWORK = ['EAI_AGAIN', 'ENOTFOUND', 'EAFNOSUPPORT', 'ENETUNREACH', 'ENETDOWN', 'EHOSTUNREACH', 'EADDRNOTAVAIL'];

/** What looks like a denial has the policy's key that would allow it; libraries wrap one in errors of their own. */
function advise(error) {
	for (let cause = error, depth = 0; isError(cause) && depth < 8; cause = cause.cause ?? cause.errors?.[0], depth++) {
		const missing = cause.code === 'ENOENT' && typeof cause.syscall === 'string' ? adviseMissing(cause) : '';
		const key = missing ? '' : findKey(cause);
		if (missing || key)
			return missing || `if the cell was denied it, the policy's ${key.includes(' and ') ? 'keys are' : 'key is'} ${key}`;
	}
	return '';
}

function findKey({ code, syscall, path }) {
	if (typeof syscall !== 'string') // it is no error of the system
		return '';
	if (Object.hasOwn(LIMITS, code))
		return LIMITS[code];
	if (NO_NETWORK.includes(code))
		return 'network';
	if (code === 'EAGAIN' && syscall.startsWith('spawn'))
		return 'limits.pids';
	if (code === 'EROFS')
		return isKept(path) ? 'files.write and files.protect' : 'files.write';
	if (code === 'EBUSY' && isKept(path))
		return 'files.protect';
	if (code !== 'EACCES' && code !== 'EPERM')
		return '';
	if (typeof path !== 'string')
		return ['connect', 'bind', 'listen', 'send', 'socket'].includes(syscall) ? 'network' : '';
	// What is denied is there, and closed.
	return can(path, disk.constants.R_OK) || !disk.existsSync(path) ? 'files.write' : 'files.read and files.deny';
}

/**
 * Whether it lies in a folder of its own file system that can be written to: in a grant, where only what is protected, or granted
 * for reading, is not.
 */
function isKept(path) {
	if (typeof path !== 'string' || !path)
		return false;
	const look = (place) => disk.lstatSync(place, { throwIfNoEntry: false });
	let folder = paths.resolve(path);
	while (!look(folder))
		folder = paths.dirname(folder);
	const device = look(folder).dev;
	while (folder !== '/' && !can(folder, disk.constants.W_OK))
		folder = paths.dirname(folder);
	return folder !== '/' && disk.statSync(folder).dev === device;
}

function can(path, what) {
	try {
		disk.accessSync(path, what);
		return true;
	} catch {
		return false;
	}
}

/** What a cell lacks looks the same whether the host has it or not. Only a folder that was granted shows all that is in it. */
function adviseMissing({ path, syscall }) {
	if (typeof path !== 'string' || !path || syscall.startsWith('spawn') && !path.includes('/')) // a program's name
		return '';
	const parent = paths.dirname(paths.resolve(path));
	let folder = parent;
	while (!disk.existsSync(folder))
		folder = paths.dirname(folder);
	if (!['/', '/tmp'].some((own) => disk.statSync(own).dev === disk.statSync(folder).dev)) // file systems of the cell's own
		return '';
	const key = folder === parent ? 'files.read' : 'files.read (files.write to write there)';
	if (paths.isAbsolute(path) || process.cwd() !== '/tmp')
		return `if the cell was denied it, the policy's key is ${key}`;
	return `the call began in a /tmp of its own: the policy's keys are ${key} and files.cwd, or eval() takes it by files`;
}

module.exports = { compile, nameError, say, show, tryText };
