// SPDX-License-Identifier: Apache-2.0
/*
 * JSON schemas of tools' inputs: compiled once, then every call's arguments are checked against them, before a host's
 * function runs or a cell is used.
 *
 * What is understood is draft 2020-12 as tools use it, the same as in the C library, whose cases
 * (test/vectors/schema.json) this passes. References are local ("#/$defs/x"); nothing is ever fetched. A keyword that is
 * not understood is accepted with a warning; one that is understood and wrong is an error. Schemas and values may both
 * be hostile: sizes, depths and the work of one check are bounded. A check that meets a bound fails.
 */

import { ANY, ARRAY, BOOLEAN, INTEGER, NULL, NUMBER, OBJECT, OTHER, STRING, closest, place, show, showPlace, showText, typesOf } from './say.js';
import * as rules from './schema-rules.js';

const { ALWAYS, Checking, Invalid, NEVER, Node, Pattern, TooMuchWork, bound, counted } = rules;

const NODES_MAX = 10_000; // schemas in a schema
const VALUES_MAX = 100_000; // JSON values in it, annotations included
const DEPTH_MAX = 128; // of a schema as JSON
const WARNINGS_MAX = 32;

const TYPES = new Map(Object.entries({ string: STRING, integer: INTEGER, number: NUMBER, boolean: BOOLEAN, array: ARRAY, object: OBJECT, null: NULL }));
const NOTES = new Set(['$schema', '$id', '$comment', 'title', 'description', 'default', 'examples', 'deprecated', 'readOnly',
	'writeOnly', 'format', 'contentMediaType', 'contentEncoding']);

/** A schema that is wrong, or too big. The message begins with the place. */
export class SchemaError extends Error {
	get name() {
		return 'SchemaError';
	}
}

class Compiling {
	warned = new Map();
	#root;
	#name;
	#nodes = new Map();
	#references = []; // {target, text, at}

	constructor(root, name) {
		this.#root = root;
		this.#name = name;
	}

	fail(at, what) {
		return new SchemaError(`${showPlace(this.#name, at)}: ${what}`);
	}

	wrong(at, value, want) {
		return this.fail(at, `want ${want}, found ${show(value)}`);
	}

	whole() {
		this.#measure();
		const root = this.node(this.#root, null);
		for (const reference of this.#references) // which grow by what they lead to
			reference.target.push(this.node(this.#follow(reference), place(null, reference.text)));
		for (const node of this.#nodes.values())
			this.#findCycle(node, null, 0);
		return root;
	}

	/** Bounds what compiling will take. A value that contains itself ends here too. */
	#measure() {
		let level = [this.#root];
		let count = 0;
		for (let depth = 0; level.length; depth++) {
			count += level.length;
			if (count > VALUES_MAX)
				throw this.fail(null, `the schema is too big: more than ${VALUES_MAX} values`);
			if (depth > DEPTH_MAX)
				throw this.fail(null, 'the schema is nested too deeply');
			const below = [];
			for (const value of level) {
				const types = typesOf(value);
				if (types === OTHER || typeof value === 'bigint')
					throw this.fail(null, `want JSON, found ${show(value)}`);
				for (const part of types & (ARRAY | OBJECT) ? Object.values(value) : [])
					below.push(part);
				if (count + below.length > VALUES_MAX)
					break;
			}
			level = below;
		}
	}

	node(source, at) {
		if (typeof source === 'boolean')
			return source ? ALWAYS : NEVER;
		if (typesOf(source) !== OBJECT)
			throw this.wrong(at, source, 'a schema: an object, true or false');
		const known = this.#nodes.get(source);
		if (known !== undefined)
			return known;
		if (this.#nodes.size === NODES_MAX)
			throw this.fail(at, `the schema is too big: more than ${NODES_MAX} parts`);
		const node = new Node(source);
		this.#nodes.set(source, node);
		for (const [name, { types, read, check }] of KEYWORDS) {
			if (!Object.hasOwn(source, name))
				continue;
			const given = read(this, source, source[name], place(at, name));
			if (check !== undefined && given !== undefined)
				node.rules.push({ name, types, check, given });
		}
		this.#warn(source, at);
		return node;
	}

	#warn(source, at) {
		for (const key of Object.keys(source)) {
			if (KEYWORDS.has(key) || NOTES.has(key) || this.warned.has(key) || this.warned.size === WARNINGS_MAX)
				continue;
			this.warned.set(key, this.warned.size + 1 === WARNINGS_MAX ? `${showPlace(this.#name, null)}: more keywords are not checked`
				: `${showPlace(this.#name, at)}: the keyword '${showText(key, 68)}' is not known and not checked`);
		}
	}

	refer(text, at) {
		const target = [];
		this.#references.push({ target, text, at });
		return target;
	}

	pattern(text, at) {
		try {
			return new Pattern(text);
		} catch (error) {
			throw this.fail(at, `'${showText(text, 68)}' is not a regular expression: ${showText(error.message, 150)}`);
		}
	}

	/** What a reference names: a JSON pointer in a fragment. */
	#follow({ text, at }) {
		const shown = `"${showText(text, 68)}"`;
		if (!text.startsWith('#'))
			throw this.fail(at, `${shown} is not in this schema; want one that begins with '#'`);
		const nothing = this.fail(at, `${shown} names nothing in this schema`);
		let pointer;
		try {
			pointer = decodeURIComponent(text.slice(1));
		} catch {
			throw nothing;
		}
		if (pointer && !pointer.startsWith('/'))
			throw nothing;
		let found = this.#root;
		for (const part of pointer.split('/').slice(1)) {
			const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
			const isThere = found !== null && typeof found === 'object' && Object.hasOwn(found, key)
				&& (!Array.isArray(found) || /^(?:0|[1-9][0-9]*)$/.test(key));
			if (/~(?![01])/.test(part) || !isThere)
				throw nothing;
			found = found[key];
		}
		return found;
	}

	/** A check would walk without end where a schema leads to itself for the same value. */
	#findCycle(node, via, depth) {
		if (node.source === null || node.walked === 2)
			return;
		if (node.walked === 1) {
			const reference = this.#references.find(({ target }) => target === via);
			throw this.fail(reference?.at ?? null, `"${showText(reference?.text ?? '', 68)}" leads back to itself for the same value`);
		}
		if (depth > DEPTH_MAX)
			throw this.fail(null, 'references are nested too deeply');
		node.walked = 1;
		for (const rule of node.rules)
			for (const part of partsInPlace(rule))
				this.#findCycle(part, rule.name === '$ref' ? rule.given : via, depth + 1);
		node.walked = 2;
	}
}

/** The schemas that a rule applies to the same value, not to a part of it. */
function partsInPlace({ name, given }) {
	switch (name) {
	case 'allOf': case 'anyOf': case 'oneOf': case '$ref': case 'if': return given;
	case 'dependentSchemas': return [...given.values()];
	case 'not': return [given];
	default: return [];
	}
}

// ---- keywords ----------------------------------------------------------------------------------------------------

function readEnum(c, _, value, at) {
	if (!Array.isArray(value))
		throw c.wrong(at, value, 'an array of values');
	return value;
}

function readOneType(c, value, at) {
	const found = TYPES.get(value);
	if (found !== undefined)
		return found;
	const near = typeof value === 'string' ? closest(value, [...TYPES.keys()]) : null;
	throw near !== null ? c.fail(at, `there is no type ${show(value)}; did you mean "${near}"?`)
		: c.wrong(at, value, 'one of "string", "integer", "number", "boolean", "array", "object" or "null"');
}

function readType(c, _, value, at) {
	if (!Array.isArray(value))
		return readOneType(c, value, at);
	if (!value.length)
		throw c.wrong(at, value, 'a type, or some in an array');
	return value.reduce((types, item, index) => types | readOneType(c, item, place(at, index)), 0);
}

function readRef(c, _, value, at) {
	if (typeof value !== 'string')
		throw c.wrong(at, value, 'a string such as "#/$defs/name"');
	return c.refer(value, at);
}

function readNumber(c, _, value, at) {
	if (typeof value !== 'number')
		throw c.wrong(at, value, 'a number');
	return value;
}

function readMultiple(c, _, value, at) {
	if (typeof value !== 'number' || !(value > 0 && value < Infinity))
		throw c.wrong(at, value, 'a number above 0');
	return { number: value, decimal: rules.decimalOf(value) };
}

function readCount(c, _, value, at) {
	if (!Number.isInteger(value) || value < 0)
		throw c.wrong(at, value, 'a whole number, 0 or more');
	return value;
}

function readPattern(c, _, value, at) {
	if (typeof value !== 'string')
		throw c.wrong(at, value, 'a regular expression in a string');
	return c.pattern(value, at);
}

function readUnique(c, _, value, at) {
	if (typeof value !== 'boolean')
		throw c.wrong(at, value, 'true or false');
	return value || undefined;
}

const readNode = (c, _, value, at) => c.node(value, at);

function readNodes(c, _, value, at) {
	if (!Array.isArray(value) || !value.length)
		throw c.wrong(at, value, 'an array of schemas, one at least');
	return value.map((item, index) => c.node(item, place(at, index)));
}

function readItems(c, source, value, at) {
	if (Array.isArray(value))
		throw c.wrong(at, value, "one schema for all items (a list of them is 'prefixItems')");
	return { node: c.node(value, at), first: Array.isArray(source.prefixItems) ? source.prefixItems.length : 0 };
}

function readContains(c, source, value, at) {
	const count = (name, otherwise) => Object.hasOwn(source, name) ? readCount(c, source, source[name], place(at.up, name)) : otherwise;
	return { node: c.node(value, at), least: count('minContains', 1), most: count('maxContains', Infinity) };
}

function readIf(c, source, value, at) {
	const branch = (name) => Object.hasOwn(source, name) ? c.node(source[name], place(at.up, name)) : ALWAYS;
	return [c.node(value, at), branch('then'), branch('else')];
}

function entriesOf(c, value, at) {
	if (typesOf(value) !== OBJECT)
		throw c.wrong(at, value, 'an object');
	return Object.entries(value);
}

const readMembers = (c, _, value, at) => new Map(entriesOf(c, value, at).map(([name, part]) => [name, c.node(part, place(at, name))]));

const readPatterns = (c, _, value, at) => entriesOf(c, value, at).map(([name, part]) => (
	{ pattern: c.pattern(name, place(at, name)), node: c.node(part, place(at, name)) }));

function readAdditional(c, source, value, at) {
	const { properties, patternProperties } = source;
	return {
		node: c.node(value, at), names: new Set(typesOf(properties) === OBJECT ? Object.keys(properties) : []),
		patterns: patternProperties === undefined ? [] : readPatterns(c, source, patternProperties, place(at.up, 'patternProperties')),
	};
}

function readNames(c, _, value, at) {
	if (!Array.isArray(value))
		throw c.wrong(at, value, 'an array of names');
	for (const [index, item] of value.entries())
		if (typeof item !== 'string')
			throw c.wrong(place(at, index), item, "a property's name");
	return value;
}

const readDependent = (c, source, value, at) => new Map(
	entriesOf(c, value, at).map(([name, part]) => [name, readNames(c, source, part, place(at, name))]));

// In the order of checking: types of values that it says something about, how it is read, how it is checked.
const KEYWORDS = new Map([
	// What says most about a wrong value comes first.
	['const', ANY, (_, __, value) => [value], rules.checkConst],
	['enum', ANY, readEnum, rules.checkEnum],
	['type', ANY, readType, rules.checkType],
	['$ref', ANY, readRef, rules.checkRef],
	['minimum', NUMBER, readNumber, bound('of at least', (value, limit) => value >= limit)],
	['maximum', NUMBER, readNumber, bound('of at most', (value, limit) => value <= limit)],
	['exclusiveMinimum', NUMBER, readNumber, bound('above', (value, limit) => value > limit)],
	['exclusiveMaximum', NUMBER, readNumber, bound('below', (value, limit) => value < limit)],
	['multipleOf', NUMBER, readMultiple, rules.checkMultiple],
	['minLength', STRING, readCount, counted('at least', 'character', 1)],
	['maxLength', STRING, readCount, counted('at most', 'character', -1)],
	['pattern', STRING, readPattern, rules.checkPattern],
	['minItems', ARRAY, readCount, counted('at least', 'item', 1)],
	['maxItems', ARRAY, readCount, counted('at most', 'item', -1)],
	['prefixItems', ARRAY, readNodes, rules.checkPrefix],
	['items', ARRAY, readItems, rules.checkItems],
	['uniqueItems', ARRAY, readUnique, rules.checkUnique],
	['contains', ARRAY, readContains, rules.checkContains],
	['minContains', ARRAY, readCount],
	['maxContains', ARRAY, readCount],
	// A name that is not known explains one that is missing.
	['patternProperties', OBJECT, readPatterns, rules.checkPatterns],
	['additionalProperties', OBJECT, readAdditional, rules.checkAdditional],
	['required', OBJECT, readNames, rules.checkRequired],
	['properties', OBJECT, readMembers, rules.checkProperties],
	['propertyNames', OBJECT, readNode, rules.checkNames],
	['minProperties', OBJECT, readCount, counted('at least', 'member', 1)],
	['maxProperties', OBJECT, readCount, counted('at most', 'member', -1)],
	['dependentRequired', OBJECT, readDependent, rules.checkDependent],
	['dependentSchemas', OBJECT, readMembers, rules.checkDependentSchemas],
	['allOf', ANY, readNodes, rules.checkAll],
	['anyOf', ANY, readNodes, rules.checkAny],
	['oneOf', ANY, readNodes, rules.checkOne],
	['not', ANY, readNode, rules.checkNot],
	['if', ANY, readIf, rules.checkIf],
	['then', ANY, readNode],
	['else', ANY, readNode],
	['$defs', ANY, readMembers],
	['definitions', ANY, readMembers],
].map(([name, types, read, check]) => [name, { types, read, check }]));

/** A compiled schema. Throws SchemaError. source: do not change it afterwards. warnings: what it says that is not checked. */
export class Schema {
	#root;

	constructor(source, name = 'schema') {
		const compiling = new Compiling(source, name);
		this.#root = compiling.whole();
		this.source = source;
		this.warnings = [...compiling.warned.values()];
	}

	/**
	 * null if a value fits; else where, what is wanted and what was found, in a line that is safe to print:
	 * "arguments.files[2].name: want a string, found 5".
	 */
	check(value, name = 'arguments') {
		try {
			new Checking(name).node(this.#root, value, null);
		} catch (error) {
			if (error instanceof Invalid)
				return error.message;
			if (error instanceof TooMuchWork || error instanceof RangeError)
				return `${showPlace(name, null)}: too much work to check; make it simpler or smaller`;
			throw error;
		}
		return null;
	}
}
