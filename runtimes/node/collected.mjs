// SPDX-License-Identifier: Apache-2.0
// Files that come with a result: their names, and patterns of them.

import { Malformed, NAME_MAX, show } from './plain.mjs';
import { ownBuffer } from './decode.mjs';

export const FILES_MAX = 10_000; // that come with a result
const FOLDERS_MAX = 64; // around such a file

/**
 * The files that came with a result: {"name": buffer}, as a Map of Buffers. Names are relative, lead nowhere else,
 * and match one of the patterns that were collected.
 */
export function readFiles(tree, attachments, patterns = []) {
	const files = new Map();
	if (tree === null || tree === undefined)
		return files;
	if (typeof tree !== 'object' || Array.isArray(tree))
		throw new Malformed('files are not an object');
	const entries = Object.entries(tree);
	if (entries.length > FILES_MAX)
		throw new Malformed(`there are more than ${FILES_MAX} files`);
	const matcher = new FileMatcher(patterns);
	for (const [name, index] of entries) {
		if (checkFileName(name).split('/').length > FOLDERS_MAX + 1 || !matcher.matches(name))
			throw new Malformed(`${show(name)} is not a file to be collected`);
		files.set(name, ownBuffer(attachments.take(index)));
	}
	return files;
}

/** The name, if it is that of a file below a folder: relative, without "..", "." or empty parts. */
export function checkFileName(name) {
	if (typeof name !== 'string' || name.length > NAME_MAX || name.includes('\0')
		|| name.split('/').some((part) => part === '' || part === '.' || part === '..'))
		throw new Malformed(`${show(name)} is not a relative name of a file`);
	return name;
}

/**
 * Patterns of files. `**` is any number of folders, at its end also all files in them; `*`, `?` and `[]` match within
 * a name. The names may be anybody's: what matching takes is in proportion to a name times a pattern, for which
 * nothing is tried again but from the last star on.
 */
export class FileMatcher {
	#patterns;

	constructor(patterns) {
		this.#patterns = patterns.map(splitPattern);
	}

	matches(name) {
		const parts = name.split('/');
		return this.#patterns.some((pattern) => matchParts(pattern, parts));
	}
}

/** An expression for each part; null for `**`. */
function splitPattern(pattern) {
	const parts = typeof pattern === 'string' ? pattern.split('/') : [''];
	if (parts[0] === '.')
		parts.shift();
	if (!parts.length || parts.some((part) => part === '' || part === '.' || part === '..'))
		throw new Malformed(`collect: ${show(pattern)} is not a relative pattern`);
	if (parts.at(-1) === '**')
		parts.push('*');
	try {
		return parts.map((part) => part === '**' ? null : new RegExp(translatePart(part), 'su'));
	} catch {
		throw new Malformed(`collect: ${show(pattern)} is not a pattern`);
	}
}

function matchParts(pattern, parts) {
	let at = 0;
	let step = 0;
	let again = -1; // behind the pattern's last `**`
	let nextAt = 0;
	while (at < parts.length) {
		if (step < pattern.length && pattern[step] === null) {
			again = ++step;
			nextAt = at + 1;
		} else if (step < pattern.length && pattern[step].test(parts[at])) {
			step++;
			at++;
		} else if (again < 0) {
			return false;
		} else {
			step = again;
			at = nextAt++;
		}
	}
	return step === pattern.length;
}

function translatePart(part) {
	const pieces = ['']; // what is between stars
	for (const [token] of part.matchAll(/\*+|\?|\[!?\]?[^\]]*\]|./gsu)) {
		const inner = token.slice(1, -1).replace(/[\\[\]]/g, '\\$&');
		if (token[0] === '*')
			pieces.push('');
		else if (token === '?')
			pieces[pieces.length - 1] += '.';
		else if (token[0] === '[' && inner)
			pieces[pieces.length - 1] += inner[0] === '!' ? `[^${inner.slice(1)}]` : `[${inner[0] === '^' ? '\\' : ''}${inner}]`;
		else
			pieces[pieces.length - 1] += token.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
	}
	const [first, ...rest] = pieces;
	const last = rest.pop();
	// The first place where a piece is will do.
	const middle = rest.map((piece, number) => `(?=(?<p${number}>.*?${piece}))\\k<p${number}>`).join('');
	return `^${first}${middle}${last === undefined ? '' : `.*${last}`}$`;
}
