// SPDX-License-Identifier: Apache-2.0
// Places and values in messages about schemas, as the C library words them; safe to print.

export const [NULL, BOOLEAN, INTEGER, NUMBER, STRING, ARRAY, OBJECT, OTHER] = Array.from({ length: 8 }, (_, index) => 1 << index);
export const ANY = (1 << 8) - 1;

const WORDS = [[OBJECT, 'an object'], [ARRAY, 'an array'], [STRING, 'a string'], [NUMBER, 'a number'],
	[INTEGER, 'an integer'], [BOOLEAN, 'true or false'], [NULL, 'null']];
const PLAIN = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
const ESCAPES = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f' };
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]|(?! )\p{Zs}/u;
const PLACE_MAX = 160;
const LISTED_MAX = 8;
const GUESS_LONGEST = 64;
const GUESSES_MAX = 1000;
const LARGE = 10n ** 60n; // from here on an integer's digits say nothing, and finding them takes long

/** Where a value is: a member of an object, or an element of an array, of `up`. The root is null. */
export function place(up, key, isName = false) {
	return { up, key, isName };
}

function showStep({ key, isName }) {
	if (typeof key === 'number')
		return `[${key}]`;
	const shown = showText(key, 48);
	return (PLAIN.test(key) ? `.${shown}` : `["${shown}"]`) + (isName ? ' (its name)' : '');
}

/** name.files[2]["a b"]; one that is too long loses its middle. */
export function showPlace(name, at) {
	const parts = [];
	let room = PLACE_MAX - 48;
	for (let step = at; step !== null; step = step.up) {
		const part = showStep(step);
		room -= part.length;
		parts.push(room < 0 ? '...' : part);
		if (room < 0)
			break;
	}
	return showText(name, 48) + parts.reverse().join('');
}

/** Text with what would steer a terminal escaped, cut to `most` characters. */
export function showText(text, most) {
	let shown = '';
	for (const character of text.slice(0, 2 * most + 2)) {
		const code = character.codePointAt(0);
		const said = ESCAPES[character] ?? (!UNSEEN.test(character) ? character
			: code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\u{${code.toString(16)}}`);
		if (shown.length + said.length > most)
			return `${shown.slice(0, most - 3)}...`;
		shown += said;
	}
	return shown;
}

/** The JSON types of a value; a whole number has two. */
export function typesOf(value) {
	switch (typeof value) {
	case 'boolean': return BOOLEAN;
	case 'bigint': return INTEGER | NUMBER;
	case 'number': return NUMBER | (Number.isInteger(value) ? INTEGER : 0);
	case 'string': return STRING;
	case 'object': return value === null ? NULL : Array.isArray(value) ? ARRAY : isPlain(value) ? OBJECT : OTHER;
	default: return OTHER;
	}
}

function isPlain(value) {
	const prototype = Object.getPrototypeOf(value);
	return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** A value in a few words. */
export function show(value) {
	const types = typesOf(value);
	if (types & (NULL | BOOLEAN))
		return String(value);
	if (types & NUMBER)
		return typeof value === 'bigint' && (value >= LARGE || value <= -LARGE) ? 'a very large integer' : String(value);
	if (types & STRING)
		return `"${showText(value, 68)}"`;
	if (types & (ARRAY | OBJECT))
		return `${(types & ARRAY ? value.length : Object.keys(value).length) ? 'an ' : 'an empty '}${types & ARRAY ? 'array' : 'object'}`;
	return value === undefined ? 'undefined' : `a JavaScript object of type ${showText(value?.constructor?.name ?? typeof value, 40)}`;
}

/** a, b or c */
export function listed(words) {
	return words.length === 1 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;
}

export function showTypes(types) {
	const meant = types & NUMBER ? types & ~INTEGER : types;
	return listed(WORDS.filter(([kind]) => meant & kind).map(([, word]) => word));
}

export function showAll(values) {
	if (!values.length)
		return 'nothing at all';
	const words = values.slice(0, LISTED_MAX).map(show);
	return values.length > LISTED_MAX ? `${words.join(', ')} or ${values.length - LISTED_MAX} more` : listed(words);
}

function distance(one, other) {
	const row = Array.from({ length: other.length + 1 }, (_, index) => index);
	for (let i = 1; i <= one.length; i++) {
		let diagonal = row[0];
		row[0] = i;
		for (let j = 1; j <= other.length; j++) {
			const least = Math.min(diagonal + (one[i - 1] === other[j - 1] ? 0 : 1), row[j] + 1, row[j - 1] + 1);
			diagonal = row[j];
			row[j] = least;
		}
	}
	return row[other.length];
}

/** Which of some words was meant, if one is near; else null. */
export function closest(typed, known) {
	let best = null;
	let steps = Math.floor(typed.length / 3) + 2;
	if (typed.length < 2 || typed.length > GUESS_LONGEST)
		return null;
	for (const word of known.slice(0, GUESSES_MAX)) {
		if (typeof word !== 'string' || word.length > GUESS_LONGEST || Math.abs(word.length - typed.length) >= steps)
			continue;
		const found = distance(typed, word);
		if (found < steps)
			[best, steps] = [word, found];
	}
	return best;
}
