// SPDX-License-Identifier: Apache-2.0
/*
 * Tools that are commands: words, in which a call's arguments are put. No shell reads them, and no argument is ever
 * split.
 *
 *     {name}     the argument of that name: a string as it is, anything else as compact JSON. It must be there
 *     {name?}    the same; where it is missing or null, its word is left out, with the text around it
 *     {name...}  alone in its word: one word for each item of a list; none if it is missing
 *     {-name}    (and {-name?}, {-name...}) the same, and it may begin with '-'
 *     {{ and }}  a brace
 *
 * No argument becomes an option, whatever a model puts in it, nor the program, nor part of the script of a shell or an
 * interpreter. src/tool/command.h argues the rules; test/vectors/commands.json has the cases that all pass.
 */

import { Buffer } from 'node:buffer';

import { closest, place, show, showPlace, showText, typesOf, OBJECT } from './say.js';

const TEMPLATE_MAX = 64 << 10; // bytes of all its words, each with its NUL
const WORDS_MAX = 4096;
const WORD_MAX = 131071; // bytes of one filled in: the kernel takes no longer one
const BYTES_MAX = 1 << 20;
const INPUT_MAX = 16 << 20;
const NAME = /^(-?)([A-Za-z_][A-Za-z0-9_.-]{0,127}?)(\.\.\.|\?)?$/;
const SHELLS = new Set(['sh', 'bash', 'dash', 'ash', 'ksh', 'zsh', 'fish', 'csh', 'tcsh']);
const INTERPRETERS = /^(python|pypy|perl|ruby|node|lua|php)[0-9.]*$/;
const CODES = { python: 'c', pypy: 'c', perl: 'eE', ruby: 'e', node: 'ep', lua: 'e', php: 'r' };
const LAUNCHERS = new Set(['env', 'xargs', 'nohup', 'setsid', 'nice']);

/** A template that is wrong. The message begins with the place: "command[2]: ...". */
export class CommandError extends Error {
	get name() {
		return 'CommandError';
	}
}

/** Arguments that cannot be put in the words. The message begins with the place: "arguments.path: ...". */
export class ArgumentsError extends Error {
	get name() {
		return 'ArgumentsError';
	}
}

/** Text and names by turns: {text} or {name, mayDash, mark}. */
class Word {
	constructor(pieces) {
		this.pieces = pieces;
		this.mayDash = false;
	}

	/** All of it, if there is no argument in it; else null. */
	get text() {
		return this.pieces.some(({ name }) => name !== undefined) ? null : this.pieces[0]?.text ?? '';
	}

	get beginsWithDash() {
		return this.pieces[0]?.text?.startsWith('-') ?? false;
	}
}

/** Reads words, and knows the schema that their names must be in. */
class Reader {
	place = null;

	constructor(schema, name) {
		this.schema = schema;
		this.name = name;
	}

	fail(what) {
		return new CommandError(`${showPlace(this.name, this.place)}: ${what}`);
	}

	word(text) {
		const pieces = [];
		const parts = /((?:[^{}]|\{\{|\}\})+)|\{([^{}]*)\}|([{}])/gy;
		for (const [, plain, name, brace] of text.matchAll(parts)) {
			if (plain !== undefined)
				pieces.push({ text: plain.replaceAll('{{', '{').replaceAll('}}', '}') });
			else if (name !== undefined)
				pieces.push(this.argument(name));
			else if (brace === '}')
				throw this.fail("there is a '}' without a '{'; write '}}' for a brace");
			else
				throw this.fail("there is a '{' without a '}'; write '{{' for a brace");
		}
		return new Word(pieces);
	}

	argument(text) {
		const found = NAME.exec(text);
		if (found === null || found[2].endsWith('.'))
			throw this.fail(`there is no form '{${showText(text, 64)}}'; want {name}, {name?}, {name...} or {-name}, or {{ and }} for braces`);
		const [, dash, name, mark = ''] = found;
		this.lookUp(name);
		return { name, mayDash: dash !== '', mark };
	}

	/** Whether a call can have such an argument at all. */
	lookUp(name) {
		if (typesOf(this.schema) !== OBJECT || this.schema.additionalProperties !== false)
			return;
		const properties = this.schema.properties ?? {};
		if (Object.hasOwn(properties, name) || Object.keys(this.schema.patternProperties ?? {}).length)
			return;
		const near = closest(name, Object.keys(properties));
		throw this.fail(`the schema has no argument '${showText(name, 64)}'${near === null ? '' : `; did you mean '${showText(near, 64)}'?`}`);
	}
}

/** The rules about words that arguments are in. */
class Compiler extends Reader {
	words = [];
	#isCovered = false; // the word before is '--'
	#hasOption = false; // a word before began with '-'
	#hasShell = false; // a word before is the name of one
	#codes = ''; // of an interpreter before: last letters of options before code
	#launches = false; // what comes next that is no option is a program to run

	add(source) {
		this.place = place(null, this.words.length);
		const word = this.word(source);
		const { text } = word;
		if (text === null)
			this.#check(word);
		else if (!text && !this.words.length)
			throw this.fail('the program has no name');
		else
			this.#read(text);
		word.mayDash = word.beginsWithDash || this.#isCovered;
		this.#hasOption ||= word.beginsWithDash && !this.#isCovered;
		this.words.push(word);
	}

	#read(text) {
		const program = text.slice(text.lastIndexOf('/') + 1);
		const interpreter = INTERPRETERS.exec(program);
		this.#isCovered = text === '--';
		this.#hasShell ||= SHELLS.has(program);
		this.#codes = interpreter === null ? this.#codes : CODES[interpreter[1]];
		this.#launches = !this.words.length && LAUNCHERS.has(program) || this.#launches && (text.startsWith('-') || text.includes('='));
	}

	/** Whether the word is one that an interpreter before it takes for code: after -c, -ec, ... */
	#isScript() {
		const before = this.words.at(-1)?.text;
		if (!before || !/^-[^-]/.test(before))
			return false;
		return this.#hasShell && before.endsWith('c') || this.#codes.includes(before.at(-1));
	}

	#check(word) {
		const [first] = word.pieces;
		if (!this.words.length)
			throw this.fail('the program must not depend on an argument');
		const list = word.pieces.find(({ mark }) => mark === '...');
		if (list !== undefined && word.pieces.length > 1)
			throw this.fail(`{${list.name}...} must be a word by itself`);
		if (word.pieces.length > 1 && this.#isScript())
			throw this.fail(`an argument inside a script would be code; ${this.#hasShell ? "write \"$1\" for it there, and add the words 'sh' and the argument"
				: 'make it a word of its own, after the script, which takes it from there'}`);
		if (this.#launches && !word.beginsWithDash && (first.name !== undefined || !first.text.includes('=')))
			throw this.fail('the argument would be the program to run; write a program out before it');
		if (this.#isCovered)
			return;
		if (word.beginsWithDash && /^-+$/.test(first.text))
			throw this.fail("the argument could be any option; write the option out, or put '--' right before this word");
		if (word.pieces.some(({ mark }) => mark) && !word.beginsWithDash && this.#hasOption)
			throw this.fail("this word can be left out, and an option before it would then take the next one; put '--' right before it, or make it one word with its option");
	}
}

// ---- filling in --------------------------------------------------------------------------------------------------

function fail(at, what) {
	return new ArgumentsError(`${showPlace('arguments', at)}: ${what}`);
}

/** A string as it is, anything else as JSON. */
function textOf(value, at) {
	if (typeof value === 'string') {
		if (value.includes('\0'))
			throw fail(at, 'there is a NUL in the text');
		return value;
	}
	try {
		return JSON.stringify(value, (_, part) => {
			if (typeof part === 'number' && !Number.isFinite(part))
				throw new RangeError(`${part} is no JSON`);
			return part;
		});
	} catch (error) {
		throw fail(at, `this cannot be written as JSON: ${showText(error.message, 150)}`);
	}
}

function valueOf(values, name) {
	return Object.hasOwn(values, name) ? values[name] : undefined;
}

function missing({ name }, values) {
	return Object.hasOwn(values, name) ? fail(place(null, name), 'want a value, found null') : fail(null, `"${name}" is missing`);
}

function checkDash(text, may, at) {
	if (text.startsWith('-') && !may)
		throw fail(at, `this gives a word that begins with '-', "${showText(text, 68)}", which could be taken for an option`);
}

/** A compiled template. schema: of the arguments; names that it has no room for are an error. input: a text for standard
 * input, with {name} and {name?} in it; without it, the arguments as JSON. Throws CommandError. */
export class Command {
	#words;
	#input;

	constructor(words, { schema = undefined, name = 'command', input = undefined } = {}) {
		const compiler = new Compiler(schema, name);
		compiler.place = place(null, 0);
		if (!Array.isArray(words) || !words.every((word) => typeof word === 'string'))
			throw compiler.fail('want a list of words');
		if (!words.length)
			throw compiler.fail('there must be a program');
		if (words.length > WORDS_MAX || words.reduce((total, word) => total + Buffer.byteLength(word) + 1, 0) > TEMPLATE_MAX)
			throw compiler.fail('the command is too long');
		for (const word of words)
			compiler.add(word);
		this.#words = compiler.words;
		this.#input = input === undefined ? null : readInput(input, schema);
	}

	/** The words with the arguments, an object, filled in. Throws ArgumentsError. */
	argv(values) {
		const argv = [];
		let bytes = 0;
		for (const word of this.#words)
			for (const { text, at } of this.#fill(word, values)) {
				const length = Buffer.byteLength(text);
				bytes += length + 1;
				if (length > WORD_MAX || bytes > BYTES_MAX || argv.length === WORDS_MAX)
					throw fail(at, 'this is too long for a command line');
				argv.push(text);
			}
		return argv;
	}

	*#fill(word, values) {
		const absent = word.pieces.filter(({ name }) => name !== undefined && (valueOf(values, name) ?? null) === null);
		if (absent.some(({ mark }) => mark))
			return;
		if (absent.length)
			throw missing(absent[0], values);
		if (word.pieces[0]?.mark === '...') {
			yield* this.#items(word, values);
			return;
		}
		let text = '';
		let at = null;
		for (const piece of word.pieces) {
			const isFirst = !text;
			if (piece.name !== undefined)
				at = place(null, piece.name);
			text += piece.name === undefined ? piece.text : textOf(values[piece.name], at);
			// An empty argument can uncover a '-' of the text, and what comes after it.
			if (isFirst)
				checkDash(text, word.mayDash || piece.mayDash, at);
		}
		yield { text, at };
	}

	*#items(word, values) {
		const [{ name, mayDash }] = word.pieces;
		const up = place(null, name);
		if (!Array.isArray(values[name]))
			throw fail(up, `want an array, found ${show(values[name])}`);
		for (const [index, item] of values[name].entries()) {
			const at = place(up, index);
			const text = textOf(item, at);
			checkDash(text, word.mayDash || mayDash, at);
			yield { text, at };
		}
	}

	/** What the command reads. Throws ArgumentsError. */
	input(values) {
		const text = this.#input === null ? textOf(values, place(null, 'input')) : this.#input.map((piece) => {
			if (piece.name === undefined)
				return piece.text;
			const value = valueOf(values, piece.name) ?? null;
			if (value === null && !piece.mark)
				throw missing(piece, values);
			return value === null ? '' : textOf(value, place(null, piece.name));
		}).join('');
		const data = Buffer.from(text);
		if (data.length > INPUT_MAX)
			throw fail(null, 'this is too long for a command to read');
		return data;
	}
}

function readInput(text, schema) {
	const reader = new Reader(schema, 'input');
	const { pieces } = reader.word(text);
	const list = pieces.find(({ mark }) => mark === '...');
	if (list !== undefined)
		throw reader.fail(`{${list.name}...} is for words; {${list.name}} gives the list as JSON`);
	return pieces;
}

/** What the words of a command tell of its arguments, as a schema. */
export function schemaOfWords(words) {
	const properties = {};
	const required = new Set();
	for (const word of words)
		for (const [, name, mark] of word.replaceAll('{{', '').replaceAll('}}', '}').matchAll(/\{-?([A-Za-z_][\w.-]*?)(\.\.\.|\?)?\}/g)) {
			properties[name] ??= mark === '...' ? { type: 'array' } : {};
			if (mark === undefined)
				required.add(name);
		}
	return { type: 'object', properties, additionalProperties: false, ...required.size ? { required: [...required] } : {} };
}
