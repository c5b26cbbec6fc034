#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Schemas of tools' inputs: the cases that all implementations pass, messages, and what is made to take for ever.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Schema, SchemaError } from '../../sdk/node/lib/schema.js';
import { ROOT, check, checkEqual, checkIn, checkThrows, main, test } from '../lib/vitrotest.mjs';

const TOO_MUCH = 'arguments: too much work to check; make it simpler or smaller';

function wrong(schema) {
	try {
		new Schema(schema);
	} catch (error) {
		return error instanceof SchemaError ? error.message : error.stack;
	}
	return 'it is accepted';
}

function* failures(group) {
	const { description, schema: source, error, warns = [], tests = [] } = group;
	if (error !== undefined) {
		const said = wrong(source);
		if (!said.startsWith(`${error}:`))
			yield `${description}: ${said}`;
		return;
	}
	const schema = new Schema(source);
	if (schema.warnings.length !== warns.length || !warns.every((key) => schema.warnings.join(' ').includes(`'${key}'`)))
		yield `${description}: warns ${schema.warnings}`;
	for (const { description: what, data, valid, where } of tests) {
		const said = schema.check(data, 'value');
		if ((said === null) !== valid || where !== undefined && !said.startsWith(`${where}:`))
			yield `${description}, ${what}: ${said}`;
	}
}

test('all cases of test/vectors/schema.json but those whose integers JSON.parse() rounds', () => {
	const groups = JSON.parse(readFileSync(join(ROOT, 'test', 'vectors', 'schema.json'), 'utf8'));
	const mine = groups.filter(({ needs }) => needs !== 'int64');
	const failed = mine.flatMap((group) => [...failures(group)]);
	check(mine.length > 250, `there are ${mine.length} groups`);
	check(!failed.length, failed.join('\n'));
});

test('integers of any size, as BigInts, are exact', () => {
	const big = 9007199254740993n;
	checkEqual(new Schema({ maximum: 9007199254740992 }).check(big), 'arguments: want a number of at most 9007199254740992, found 9007199254740993', 'maximum');
	checkEqual(new Schema({ multipleOf: 3, type: 'integer' }).check(big), null, 'multipleOf');
	checkEqual(new Schema({ uniqueItems: true }).check([big, big - 1n]), null, 'they differ');
	checkEqual(new Schema({ uniqueItems: true }).check([5n, 5]), 'arguments: want items that differ, found [0] and [1] equal', 'they do not');
	checkEqual(new Schema({ const: 5 }).check(5n), null, 'const');
});

test("messages are the C library's", () => {
	const schema = new Schema({ type: 'object', properties: { files: { type: 'array', items: {
		properties: {
			name: { type: 'string', minLength: 2, pattern: '^[a-z]+$' }, mode: { enum: ['read', 'write', 'append'] }, size: { minimum: 0.5 },
			to: { anyOf: [{ type: 'string' }, { type: 'integer' }, { const: null }] }, tags: { uniqueItems: true, maxItems: 2 },
			kind: { const: 'x' }, not: { not: { const: 1 } }, never: false, step: { multipleOf: 0.1 },
		},
		additionalProperties: false, required: ['name'],
	} } } });
	for (const [item, want] of [
		[{ name: 5 }, '.name: want a string, found 5'], [{ name: {} }, '.name: want a string, found an empty object'],
		[{ name: 'a' }, '.name: want at least 2 characters, found 1'],
		[{ name: 'a\nb' }, ".name: want text that matches '^[a-z]+$', found \"a\\nb\""], [{}, ': "name" is missing'],
		[{ nam: 'ab' }, ".nam: there is no such property; did you mean 'name'?"],
		[{ name: 'ab', 'quite else': 1 }, '["quite else"]: there is no such property'],
		[{ name: 'ab', mode: 'wirte' }, '.mode: want "read", "write" or "append", found "wirte"; did you mean "write"?'],
		[{ name: 'ab', size: 0.1 }, '.size: want a number of at least 0.5, found 0.1'],
		[{ name: 'ab', to: 1.5 }, '.to: want a string, an integer or null, found 1.5'],
		[{ name: 'ab', tags: [1, 1] }, '.tags: want items that differ, found [0] and [1] equal'],
		[{ name: 'ab', kind: 'y' }, '.kind: want "x", found "y"'], [{ name: 'ab', not: 1 }, ".not: found 1, which the schema's 'not' excludes"],
		[{ name: 'ab', never: 1 }, '.never: want nothing here, found 1'], [{ name: 'ab', step: 0.25 }, '.step: want a number that is a multiple of 0.1, found 0.25'],
	])
		checkEqual(schema.check({ files: [item] }), `arguments.files[0]${want}`, JSON.stringify(item));
	checkEqual(schema.check({ files: [{ name: 'ab', step: 0.3 }] }), null, 'what fits');
});

test('names of prototypes are names like others', () => {
	const schema = new Schema(JSON.parse('{"type": "object", "properties": {"__proto__": {"type": "string"}, "a": {}}, "required": ["toString"], "additionalProperties": false}'));
	checkEqual(schema.check({}), 'arguments: "toString" is missing', 'an inherited method is no member');
	checkEqual(schema.check(JSON.parse('{"toString": 1}')), 'arguments.toString: there is no such property', 'it is not declared');
	checkEqual(new Schema(JSON.parse('{"properties": {"__proto__": {"type": "string"}}}')).check(JSON.parse('{"__proto__": 1}')), 'arguments.__proto__: want a string, found 1', '__proto__');
	checkEqual(new Schema({ type: 'object' }).check(new Map()), 'arguments: want an object, found a JavaScript object of type Map', 'a Map');
});

test('expressions that tools have do for many texts', () => {
	for (const [pattern, text, count] of [
		['^[0-9]{4}-[0-9]{2}-[0-9]{2}$', '2024-01-31', 100_000], ['^(red|green|blue)$', 'blue', 100_000], ['^[a-z][a-z0-9_]*$', 'name_1', 100_000],
		['^\\p{Lu}\\p{L}*$', 'Name', 100_000], ['^[a-z]+(-[a-z]+)*$', 'some-words-in-a-row', 2000],
	]) {
		const schema = new Schema({ items: { pattern } });
		checkEqual(schema.check(Array(count).fill(text)), null, pattern);
		checkIn('arguments[1]: want text that matches', schema.check([text, '!']), pattern);
	}
});

test('what is made to take for ever is refused in time', async () => {
	const began = performance.now();
	checkEqual(new Schema({ pattern: '^(a+)+$' }).check(`${'a'.repeat(40)}b`), TOO_MUCH, 'a text for an expression');
	checkEqual(new Schema({ pattern: '^(a|a)*$' }).check(`${'a'.repeat(40)}b`), TOO_MUCH, 'one count, two ways');
	for (const [pattern, text] of [
		['^(a|a){40}b', 'a'.repeat(60)], ['^(a?){60}b', 'a'.repeat(30)], ['(a?){900}b', 'aaaaaa'], [`^${'(a|a)'.repeat(40)}b`, 'a'.repeat(60)],
		[`^${'a?'.repeat(60)}b`, 'a'.repeat(30)], ['^(?:a|a){40}b', 'a'.repeat(60)],
	])
		checkEqual(new Schema({ pattern }).check(text), TOO_MUCH, pattern);
	for (const [pattern, text] of [['^(a|a){17}b', 'a'.repeat(17)], ['a*b', 'a'.repeat(4096)]]) {
		checkEqual(new Schema({ items: { not: { pattern } } }).check([text]), null, `the control: ${pattern}, once`);
		checkEqual(new Schema({ items: { not: { pattern } } }).check(Array(100_000).fill(text)), TOO_MUCH, `${pattern}, often`);
	}
	const deep = {};
	for (let at = deep, depth = 0; depth < 5000; depth++)
		at = at.a = {};
	checkEqual(new Schema({ $ref: '#/$defs/x', $defs: { x: { properties: { a: { $ref: '#/$defs/x' } } } } }).check(deep), TOO_MUCH, 'nested');
	checkEqual(new Schema({ uniqueItems: true }).check(Array.from({ length: 2e6 }, (_, index) => index)), TOO_MUCH, 'many items');
	const wide = { anyOf: Array.from({ length: 1000 }, () => ({ items: { const: 'x' } })) };
	checkEqual(new Schema(wide).check(Array(3000).fill('x').concat('y')), TOO_MUCH, 'many alternatives');
	const loop = {};
	loop.not = loop;
	await checkThrows(SchemaError, () => new Schema(loop), 'a schema that contains itself');
	await checkThrows(SchemaError, () => new Schema({ $ref: '#' }), 'a reference to itself');
	await checkThrows(SchemaError, () => new Schema({ enum: Array(200_000).fill(0) }), 'a large one');
	check(performance.now() - began < 15_000, `it took ${performance.now() - began} ms`);
});

test('what is counted by going through it is charged', () => {
	const long = 'a'.repeat(4 << 20);
	checkEqual(new Schema({ minLength: 1, maxLength: long.length }).check(long), null, 'the control: a long text, counted twice');
	checkEqual(new Schema({ allOf: Array.from({ length: 500 }, () => ({ minLength: 1 })) }).check(long), TOO_MUCH, 'a long text, counted often');
	const members = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, 1]));
	checkEqual(new Schema({ minProperties: 1, maxProperties: 50_000 }).check(members), null, 'the control: many members');
	checkEqual(new Schema({ allOf: Array.from({ length: 500 }, () => ({ minProperties: 1 })) }).check(members), TOO_MUCH, 'many members, counted often');
	const closed = { type: 'object', properties: { a: {} }, additionalProperties: false };
	check(new Schema({ anyOf: [closed, closed] }).check(members) !== TOO_MUCH, 'the control: names that are not known, twice');
	for (const one of [closed, { propertyNames: { maxLength: 1 } }, { patternProperties: { '^z': false } }, { const: { a: 1 } }])
		checkEqual(new Schema({ anyOf: [...Array.from({ length: 500 }, () => ({ allOf: [one, false] })), false] }).check({ ...members }), TOO_MUCH, 'many names, asked for often');
});

test('an integer of any length is checked in little time', () => {
	const long = (1n << (1n << 24n)) - 1n; // 2 MB, of which the decimal digits take seconds
	const began = performance.now();
	checkEqual(new Schema({ type: 'string' }).check(long), 'arguments: want a string, found a very large integer', 'what is said of it');
	checkEqual(new Schema({ uniqueItems: true }).check([long, -long, long - 1n]), null, 'items that differ');
	checkEqual(new Schema({ uniqueItems: true }).check([long, 1, long]), 'arguments: want items that differ, found [0] and [2] equal', 'items that do not');
	check(performance.now() - began < 1000, `it took ${performance.now() - began} ms`);
	for (const [value, said] of [[10n ** 60n - 1n, String(10n ** 60n - 1n)], [10n ** 60n, 'a very large integer'], [-(10n ** 60n), 'a very large integer']])
		checkEqual(new Schema({ type: 'string' }).check(value), `arguments: want a string, found ${said}`, 'where it begins');
	for (const [left, right, isSame] of [[5, 5n, true], [5, 5.5, false], [10, 16n, false], [-0, 0, true], [1e21, 10n ** 21n, true]])
		checkEqual(new Schema({ uniqueItems: true }).check([left, right]) !== null, isSame, `${left} and ${right}`);
});

await main();
