// SPDX-License-Identifier: Apache-2.0
/*
 * How values are checked by a compiled schema: the walk, its bounds, and the rules of each keyword. A schema is a graph
 * of nodes; a node is a list of rules; a rule is a keyword with what it was given. schema.js compiles them.
 */

import { Script, createContext } from 'node:vm';

import { ARRAY, INTEGER, NUMBER, OBJECT, STRING, closest, listed, place, show, showAll, showPlace, showText, showTypes, typesOf } from './say.js';

const NESTING_MAX = 200; // of schemas applied in one another, in a check
const STEPS_MAX = 1_000_000; // of one check
const PATTERN_LENGTH_MAX = 4096;
const PATTERN_MS = 200; // that matching one text may take
const STEPS_PER_MS = 500; // of matching: so all texts of a check have two seconds together
const SIMPLE_LENGTH_MAX = 4096; // of a text that takes no clock: some 20 ms at the worst
const STEP_CHARACTERS = 16; // of a text, passed over in one step
const COUNTED_CHARACTERS = 256; // that are counted in one
const COUNTED_NAMES = 2;

/** A value does not fit; the text is not made while alternatives are tried. */
export class Invalid extends Error {}

/** The steps are used up. */
export class TooMuchWork extends Error {}

export class Node {
	rules = [];
	walked = 0; // while cycles are looked for: 1 within, 2 done

	constructor(source, isNever = false) {
		this.source = source;
		this.isNever = isNever;
	}
}

export const ALWAYS = new Node(null);
export const NEVER = new Node(null, true);

// ---- regular expressions -----------------------------------------------------------------------------------------

const APART = /\\[pPu]\{[^}]*\}|\\[^1-9k]|\[(?:\\.|[^\]\\])*\]/gsu; // characters and classes of them: no mark in them counts
const room = { pattern: null, text: '' };
const search = new Script('pattern.test(text)');
let context; // for all: one takes a millisecond to make

/** Whether there are no more ways to try a text than places in it, times its length. */
function isSimple(text) {
	const marks = text.replace(APART, 'x').replaceAll('(?:', '(');
	const groups = marks.match(/\(/g)?.length ?? 0;
	if (/\\[1-9k]/.test(marks) || groups > 1)
		return false;
	return groups === 1 ? !/[*+?{]/.test(marks) : (marks.match(/[*+?]|\{[0-9]+,/g)?.length ?? 0) <= 1;
}

/**
 * A regular expression of a schema. One that can try a text in more ways than there are places in it, such as (a+)+$ or
 * (a|a){30}b, takes time without bound for a text that was written for it: it is run under a clock. What a text takes is
 * spent, or many of them would take as much each.
 */
export class Pattern {
	#isSimple;

	constructor(text) {
		if (text.length > PATTERN_LENGTH_MAX)
			throw new SyntaxError('it is too long');
		this.text = text;
		this.regexp = new RegExp(text, 'u');
		this.#isSimple = isSimple(text);
	}

	isFoundIn(text, checking) {
		checking.spend(1 + Math.floor(text.length / STEP_CHARACTERS));
		const began = performance.now();
		const isFound = this.#isSimple && text.length <= SIMPLE_LENGTH_MAX ? this.regexp.test(text) : this.#findInTime(text);
		checking.spend(Math.floor((performance.now() - began) * STEPS_PER_MS));
		return isFound;
	}

	#findInTime(text) {
		context ??= createContext(room);
		Object.assign(room, { pattern: this.regexp, text });
		try {
			return search.runInContext(context, { timeout: PATTERN_MS });
		} catch (error) {
			throw error?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? new TooMuchWork() : error;
		} finally {
			Object.assign(room, { pattern: null, text: '' });
		}
	}
}

// ---- values ------------------------------------------------------------------------------------------------------

/** As JSON has it. */
function isEqual(left, right, checking, depth = 0) {
	checking.spend(1);
	if (depth > NESTING_MAX)
		throw new TooMuchWork();
	const types = typesOf(left);
	const others = typesOf(right);
	if (types & others & NUMBER)
		return left == right; // a BigInt is equal to a number, too
	if (types !== others)
		return false;
	if (types === ARRAY)
		return left.length === right.length && left.every((item, index) => isEqual(item, right[index], checking, depth + 1));
	if (types === OBJECT) {
		const names = namesOf(left, checking);
		return names.length === namesOf(right, checking).length
			&& names.every((name) => Object.hasOwn(right, name) && isEqual(left[name], right[name], checking, depth + 1));
	}
	if (types === STRING)
		checking.spend(Math.floor(left.length / STEP_CHARACTERS));
	return left === right;
}

/** An object is gone through for them: whoever asks again pays again. */
function namesOf(value, checking) {
	const names = Object.keys(value);
	checking.spend(Math.floor(names.length / COUNTED_NAMES));
	return names;
}

/** Text that is the same for equal values. */
function canonical(value, checking, depth = 0) {
	checking.spend(1);
	if (depth > NESTING_MAX)
		throw new TooMuchWork();
	const types = typesOf(value);
	if (types & ARRAY)
		return `[${value.map((item) => canonical(item, checking, depth + 1)).join(',')}]`;
	if (types & OBJECT)
		return `{${namesOf(value, checking).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name], checking, depth + 1)}`).join(',')}}`;
	if (types & INTEGER)
		return BigInt(value).toString(16); // decimal digits of a long one take much longer than it took to come
	if (types & NUMBER)
		return String(value);
	if (types & STRING)
		checking.spend(Math.floor(value.length / STEP_CHARACTERS));
	return JSON.stringify(value) ?? String(value);
}

/** The number that is meant by how it is written, as {digits, power}: 0.1 is 1 and -1. */
export function decimalOf(number) {
	if (typeof number === 'bigint')
		return { digits: number, power: 0 };
	const [mantissa, exponent = '0'] = String(number).split('e');
	const [whole, fraction = ''] = mantissa.split('.');
	return { digits: BigInt(whole + fraction), power: Number(exponent) - fraction.length };
}

export function isMultiple(value, unit) {
	const { digits, power } = decimalOf(value);
	const low = Math.min(power, unit.power);
	return digits * 10n ** BigInt(power - low) % (unit.digits * 10n ** BigInt(unit.power - low)) === 0n;
}

/** Characters of a text: those beyond the first plane are one each. */
function countCharacters(text) {
	let count = text.length;
	for (let at = 0; at < text.length - 1; at++)
		if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
			count--;
			at++;
		}
	return count;
}

// ---- checking ----------------------------------------------------------------------------------------------------

/** One check: what is left to spend, and how loud it is. */
export class Checking {
	quiet = 0;
	#name;
	#left = STEPS_MAX;
	#depth = 0;

	constructor(name) {
		this.#name = name;
	}

	spend(count) {
		this.#left -= count;
		if (this.#left < 0)
			throw new TooMuchWork();
	}

	fail(at, what) {
		return new Invalid(this.quiet ? '' : `${showPlace(this.#name, at)}: ${what}`);
	}

	wrong(at, value, want) {
		return new Invalid(this.quiet ? '' : `${showPlace(this.#name, at)}: want ${want}, found ${show(value)}`);
	}

	/** Applies a schema: returns if it fits, else throws. */
	node(node, value, at) {
		this.spend(1);
		if (this.#depth === NESTING_MAX)
			throw new TooMuchWork();
		if (node.isNever)
			throw this.wrong(at, value, 'nothing here');
		this.#depth++;
		const types = typesOf(value);
		for (const rule of node.rules)
			if (types & rule.types)
				rule.check(this, rule.given, value, at);
		this.#depth--;
	}

	/** The same, where a failure is an answer. */
	fits(node, value, at) {
		const depth = this.#depth;
		this.quiet++;
		try {
			this.node(node, value, at);
			return true;
		} catch (error) {
			if (!(error instanceof Invalid))
				throw error;
			this.#depth = depth;
			return false;
		} finally {
			this.quiet--;
		}
	}
}

export function checkConst(c, [wanted], value, at) {
	if (isEqual(wanted, value, c))
		return;
	throw wanted !== null && typeof wanted === 'object' ? c.fail(at, "want the one value that the schema's 'const' names")
		: c.wrong(at, value, show(wanted));
}

export function checkEnum(c, values, value, at) {
	if (values.some((wanted) => isEqual(wanted, value, c)))
		return;
	const near = !c.quiet && typeof value === 'string' ? closest(value, values) : null;
	const guess = near === null ? '' : `; did you mean "${showText(near, 64)}"?`;
	throw c.fail(at, c.quiet ? '' : `want ${showAll(values)}, found ${show(value)}${guess}`);
}

export function checkType(c, types, value, at) {
	if (!(typesOf(value) & types))
		throw c.wrong(at, value, showTypes(types));
}

export function checkRef(c, target, value, at) {
	c.node(target[0], value, at);
}

export function bound(words, holds) {
	return (c, limit, value, at) => {
		if (!holds(value, limit))
			throw c.wrong(at, value, `a number ${words} ${show(limit)}`);
	};
}

export function checkMultiple(c, { number, decimal }, value, at) {
	c.spend(5);
	if (typeof value === 'number' && !Number.isFinite(value) || !isMultiple(value, decimal))
		throw c.wrong(at, value, `a number that is a multiple of ${show(number)}`);
}

/** A text and an object are gone through for that. */
function sizeOf(c, value) {
	if (Array.isArray(value))
		return value.length;
	if (typeof value !== 'string')
		return namesOf(value, c).length;
	const found = countCharacters(value);
	c.spend(Math.floor(value.length / COUNTED_CHARACTERS));
	return found;
}

export function counted(words, noun, sign) {
	return (c, count, value, at) => {
		const found = sizeOf(c, value);
		if ((found - count) * sign < 0)
			throw c.fail(at, `want ${words} ${count} ${noun}${count === 1 ? '' : 's'}, found ${found}`);
	};
}

export function checkPattern(c, pattern, value, at) {
	if (!pattern.isFoundIn(value, c))
		throw c.wrong(at, value, `text that matches '${showText(pattern.text, 150)}'`);
}

export function checkPrefix(c, nodes, value, at) {
	for (const [index, node] of nodes.entries())
		if (index < value.length)
			c.node(node, value[index], place(at, index));
}

export function checkItems(c, { node, first }, value, at) {
	if (node.isNever && value.length > first)
		throw c.fail(place(at, first), `want no more than ${first} items, found ${value.length}`);
	for (let index = first; index < value.length; index++)
		c.node(node, value[index], place(at, index));
}

export function checkUnique(c, _, value, at) {
	const seen = new Map();
	for (const [index, item] of value.entries()) {
		const text = canonical(item, c);
		if (seen.has(text))
			throw c.fail(at, `want items that differ, found [${seen.get(text)}] and [${index}] equal`);
		seen.set(text, index);
	}
}

export function checkContains(c, { node, least, most }, value, at) {
	const count = value.filter((item, index) => c.fits(node, item, place(at, index))).length;
	if (count < least || count > most)
		throw c.fail(at, `want ${count < least ? `at least ${least}` : `at most ${most}`} items that fit the schema's 'contains', found ${count}`);
}

export function checkPatterns(c, patterns, value, at) {
	for (const name of namesOf(value, c))
		for (const { pattern, node } of patterns)
			if (pattern.isFoundIn(name, c))
				c.node(node, value[name], place(at, name));
}

export function checkAdditional(c, { node, names, patterns }, value, at) {
	for (const name of namesOf(value, c)) {
		c.spend(1);
		if (names.has(name) || patterns.some(({ pattern }) => pattern.isFoundIn(name, c)))
			continue;
		if (!node.isNever) {
			c.node(node, value[name], place(at, name));
			continue;
		}
		const near = c.quiet ? null : closest(name, [...names].filter((known) => !Object.hasOwn(value, known)));
		throw c.fail(place(at, name), `there is no such property${near === null ? '' : `; did you mean '${showText(near, 64)}'?`}`);
	}
}

export function checkRequired(c, names, value, at) {
	c.spend(names.length);
	const missing = names.find((name) => !Object.hasOwn(value, name));
	if (missing !== undefined)
		throw c.fail(at, `${show(missing)} is missing`);
}

export function checkProperties(c, members, value, at) {
	c.spend(members.size);
	for (const [name, node] of members)
		if (Object.hasOwn(value, name))
			c.node(node, value[name], place(at, name));
}

export function checkNames(c, node, value, at) {
	for (const name of namesOf(value, c))
		c.node(node, name, place(at, name, true));
}

export function checkDependent(c, members, value, at) {
	for (const [name, needed] of members) {
		c.spend(1 + needed.length);
		const missing = Object.hasOwn(value, name) ? needed.find((one) => !Object.hasOwn(value, one)) : undefined;
		if (missing !== undefined)
			throw c.fail(at, `${show(missing)} is missing, which '${showText(name, 68)}' needs`);
	}
}

export function checkDependentSchemas(c, members, value, at) {
	c.spend(members.size);
	for (const [name, node] of members)
		if (Object.hasOwn(value, name))
			c.node(node, value, at);
}

export function checkAll(c, nodes, value, at) {
	for (const node of nodes)
		c.node(node, value, at);
}

export function checkAny(c, nodes, value, at) {
	if (!nodes.some((node) => c.fits(node, value, at)))
		throw noneFits(c, nodes, value, at, 'anyOf');
}

export function checkOne(c, nodes, value, at) {
	const fitting = [];
	for (const [index, node] of nodes.entries())
		if (c.fits(node, value, at) && fitting.push(index) === 2)
			throw c.fail(at, `want just one of the alternatives of 'oneOf', but [${fitting[0]}] and [${index}] both fit`);
	if (!fitting.length)
		throw noneFits(c, nodes, value, at, 'oneOf');
}

export function checkNot(c, node, value, at) {
	if (c.fits(node, value, at))
		throw c.fail(at, `found ${show(value)}, which the schema's 'not' excludes`);
}

export function checkIf(c, [condition, then, otherwise], value, at) {
	c.node(c.fits(condition, value, at) ? then : otherwise, value, at);
}

/** Whether a value is of the kind that a schema is about, as far as it says by a type or a fixed value. */
function isMeant(c, node, value, isMember = false) {
	for (const { name, given, check } of node.rules) {
		const isFixed = name === 'const' || name === 'enum' && given.length === 1;
		if (name === '$ref' && !isMeant(c, given[0], value, isMember))
			return false;
		if ((isFixed || !isMember && (name === 'type' || name === 'enum')) && !passes(() => check(c, given, value, null)))
			return false;
		// {"kind": "circle", ...} is meant for the alternative that wants this kind.
		if (name === 'properties' && !isMember && typesOf(value) === OBJECT
			&& ![...given].every(([key, part]) => !Object.hasOwn(value, key) || isMeant(c, part, value[key], true)))
			return false;
	}
	return !node.isNever;
}

function passes(check) {
	try {
		check();
		return true;
	} catch (error) {
		if (error instanceof Invalid)
			return false;
		throw error;
	}
}

/** Where only one alternative is about such values, what is wrong by that one is what helps. */
function noneFits(c, nodes, value, at, name) {
	if (c.quiet)
		return new Invalid();
	c.quiet++;
	const meant = nodes.filter((node) => isMeant(c, node, value));
	c.quiet--;
	if (meant.length === 1) {
		try {
			c.node(meant[0], value, at);
		} catch (error) {
			return error;
		}
	}
	const words = nodes.map(wanted);
	return c.wrong(at, value, words.includes(null) ? `one of the ${nodes.length} alternatives of '${name}'` : listed(words));
}

/** What a schema wants, in a few words, if there are some for it; else null. */
function wanted(node) {
	for (const { name, given } of node.rules)
		switch (name) {
		case 'const': return show(given[0]);
		case 'enum': return showAll(given);
		case 'type': return showTypes(given);
		case '$ref': return wanted(given[0]);
		}
	return null;
}
