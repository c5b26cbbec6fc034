#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Tool hosts: registration, lists, watching, templates of commands, and what comes to a cell at all.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Command, CommandError } from '../../sdk/node/lib/command.js';
import { concludeCommand, lastLine, lastWords, readJson } from '../../sdk/node/lib/conclude.js';
import { SANDBOX_OPTIONS } from '../../sdk/node/lib/sandbox.js';
import { Result, SchemaError, ToolHost } from '../../sdk/node/index.js';
import { ROOT, check, checkEqual, checkIn, checkThrows, main, test } from '../lib/vitrotest.mjs';

/** A sandbox that is none, and notes what it is asked for. */
class Fake {
	calls = [];
	isClosed = false;

	async callModule(module, name, args, options) {
		this.calls.push({ module: String(module), name, args, options });
		return new Result({ callId: options.callId, status: 'ok', value: args[0] });
	}

	async run(argv, options) {
		this.calls.push({ argv, stdin: options.stdin.toString(), options });
		return new Result({ callId: options.callId, status: 'ok', exitCode: 0, stdoutBytes: Buffer.from(options.stdin) });
	}

	async close() {
		this.isClosed = true;
	}
}

const ADD = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'], additionalProperties: false };

test('commands: all cases of test/vectors/commands.json', () => {
	const groups = JSON.parse(readFileSync(join(ROOT, 'test', 'vectors', 'commands.json'), 'utf8'));
	const failed = [];
	let count = 0;
	const attempt = (act) => {
		try {
			return { argv: act() };
		} catch (error) {
			return { said: error instanceof CommandError || error.name === 'ArgumentsError' ? error.message : error.stack };
		}
	};
	for (const { description, command, schema, tests = [], error } of groups) {
		const made = attempt(() => new Command(command, { schema }));
		if (error !== undefined || made.said !== undefined) {
			count++;
			if (!made.said?.startsWith(`${error}:`))
				failed.push(`${description}: ${made.said}`);
			continue;
		}
		for (const { description: what, arguments: values, argv, where } of tests) {
			count++;
			const got = attempt(() => made.argv.argv(values));
			if (argv !== undefined ? JSON.stringify(got.argv) !== JSON.stringify(argv) : !got.said?.startsWith(`${where}:`))
				failed.push(`${description}, ${what}: ${JSON.stringify(got)}`);
		}
	}
	check(count > 100, `there are ${count} cases`);
	check(!failed.length, failed.join('\n'));
});

test('tool host: tools are registered, listed, changed and removed', async () => {
	const host = new ToolHost({ sandbox: new Fake() });
	host.register(function add({ a, b }) { return a + b; }, { description: 'Adds two numbers.', inputSchema: ADD });
	host.register(['wc', '-l', '--', '{files...}'], { name: 'count:lines', description: 'Counts lines.' });
	host.register({ module: new URL('file:///tools.mjs'), export: 'search' });
	checkEqual(host.listTools().map(({ name }) => name), ['add', 'count:lines', 'search'], 'names');
	checkEqual(host.listTools('COUNT lines'), [{ name: 'count:lines', description: 'Counts lines.', inputSchema: { type: 'object', properties: { files: { type: 'array' } }, additionalProperties: false } }], 'a query');
	checkEqual(host.listTools('adds nothing'), [], 'a query that finds nothing');
	host.listTools()[0].inputSchema.type = 'array';
	checkEqual(host.get('add').inputSchema, ADD, 'the schema is its own');
	host.unregister('add');
	checkEqual(host.get('add'), null, 'it is gone');
	checkIn("there is no tool 'serch'; did you mean 'search'?", (await checkThrows(ReferenceError, () => host.unregister('serch'), 'unknown')).message, 'a guess');
	for (const [target, options] of [['ls', {}], [5, {}], [() => 1, {}], [Math.max, {}], [function f() {}.bind(null), { name: 'f' }], [() => 1, { name: 'a b' }], [() => 1, { name: 'a', more: 1 }], [() => 1, { name: 'a', input: 'x' }]])
		await checkThrows(TypeError, () => host.register(target, options), String(target));
	checkEqual((await checkThrows(TypeError, () => host.register(() => 1), 'no name')).message, "a function without a name: give one by { name: '...' }", 'a function without a name');
	await checkThrows(SchemaError, () => host.register(() => 1, { name: 'a', inputSchema: { type: 'strin' } }), 'a wrong schema');
	await checkThrows(CommandError, () => host.register(['sh', '-c', 'echo {x}']), 'an argument in a script');
	checkEqual(host.register(() => 1, { name: 'a', inputSchema: { type: 'object', minDate: 1 } }).warnings.length, 1, 'a warning');
	await host.close();
});

test('last words: all cases of test/vectors/words.json', () => {
	const cases = JSON.parse(readFileSync(join(ROOT, 'test', 'vectors', 'words.json'), 'utf8'));
	const spell = (pieces) => pieces.map(([text, times]) => text.repeat(times)).join('');
	for (const { description, stderr, words, line } of cases) {
		const data = Buffer.from(spell(stderr), 'hex');
		checkEqual([lastWords(data), lastLine(data)], [spell(words), spell(line)], description);
	}
	check(cases.length >= 15, 'the file lost its cases');
});

test("tool host: a command's last words are found soon, whatever they are", () => {
	const say = (text) => concludeCommand({ ok: false, status: 'error', exitCode: 1, error: { message: 'exited with code 1' }, stderrBytes: Buffer.from(text) }).error.message;
	checkEqual(say('first\n\u00e9nd \n\0 \n'), 'exited with code 1: first\n\u00e9nd', 'blanks at the end');
	checkEqual(say(' \n\0'), 'exited with code 1', 'nothing but blanks');
	checkEqual(say(`${'x'.repeat(3000)}\nlast`), 'exited with code 1: last', 'from the beginning of a line');
	const begin = performance.now();
	checkEqual(say(`${' '.repeat(1 << 20)}b\n`).length, 'exited with code 1: '.length + 2000, 'a long line of blanks');
	check(performance.now() - begin < 5000, 'that does not take as long as the square of it');
});

test('a value in JSON is bounded before anything is made of it', async () => {
	const nest = (depth) => Buffer.from('['.repeat(depth) + ']'.repeat(depth));
	const objects = (count) => Buffer.from(`[${'{},'.repeat(count - 1)}{}]`);
	checkEqual([readJson(nest(512)).length, readJson(objects(1000)).length, readJson(Buffer.from('"[[{{"'))], [1, 1000, '[[{{'], 'what is read');
	for (const [what, data] of [['too deep', nest(513)], ['too many parts', objects(2_100_000)], ['a byte order mark', Buffer.from('\ufeff1')]])
		await checkThrows(Error, () => readJson(data), what);
	const printed = { ok: true, status: 'ok', dropped: {}, stdoutBytes: objects(2_100_000), get stdout() { return 'text'; } };
	checkEqual(concludeCommand(printed).value, 'text', 'what a command printed');
});

test('tool host: watchers hear of changes, in their order', async () => {
	const host = new ToolHost({ sandbox: new Fake() });
	const watch = host.watch();
	const first = watch.next();
	host.register(() => 1, { name: 'a' });
	host.register(() => 2, { name: 'a' });
	host.register(() => 2, { name: 'a', description: 'Another.' });
	host.unregister('a');
	checkEqual((await first).value.kind, 'added', 'it waited');
	const rest = host.close().then(() => 'closed');
	const kinds = [];
	for await (const { kind, name, tool } of watch) {
		checkEqual([name, tool.name], ['a', 'a'], 'whose');
		kinds.push(kind);
	}
	checkEqual([kinds, await rest], [['changed', 'removed'], 'closed'], 'the others');
});

test('tool host: arguments are checked before a cell is used', async () => {
	const sandbox = new Fake();
	const host = new ToolHost({ sandbox, timeout: 5000, policy: 'strict' });
	host.register(({ a, b }) => a + b, { name: 'add', inputSchema: ADD, timeout: 1000 });
	for (const [name, args, type, says] of [
		['ad', {}, 'NoSuchTool', "there is no tool 'ad'; did you mean 'add'?"], [5, {}, 'NoSuchTool', "there is no tool '5'"],
		['add', { a: 'two', b: 1 }, 'InvalidArguments', 'add: arguments.a: want an integer, found "two"'],
		['add', '{"a": 1}', 'InvalidArguments', 'add: arguments: "b" is missing'], ['add', '{', 'InvalidArguments', 'add: arguments: this is not JSON'],
		['add', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'InvalidArguments', 'this is not JSON: the message nests too deep'],
		['add', '{"__proto__": {"a": 1, "b": 2}}', 'InvalidArguments', '"a" is missing'],
		['add', [1], 'InvalidArguments', 'add: arguments: want an object, found an array'],
	]) {
		const result = await host.call(name, args);
		checkEqual([result.ok, result.status, result.error.type], [false, 'refused', type], says);
		checkIn(says, result.error.message, 'why');
	}
	host.register(() => 1, { name: 'b' });
	checkEqual((await host.call('a', {})).error.message, "there is no tool 'a'", 'of one letter nothing is guessed');
	host.unregister('b');
	checkEqual((await host.call('add', {}, { callId: 'a\nb' })).error.type, 'InvalidRequest', "a call's id");
	checkEqual(sandbox.calls.length, 0, 'calls that were made');
	const result = await host.call('add', { a: 1, b: 2 }, { callId: 'mine', timeout: 3000 });
	checkEqual([result.ok, result.callId, result.value], [true, 'mine', { a: 1, b: 2 }], 'one that fits');
	const [{ module, name, args, options }] = sandbox.calls;
	checkEqual((await host.call('add', { a: 1, b: 2 }, { callId: 'x'.repeat(250) })).callId.length, 250, 'one as long as a sandbox takes it');
	checkEqual([name, args, options.timeout, options.policy, options.result], ['default', [{ a: 1, b: 2 }], 1000, 'strict', true], 'what the sandbox is asked for');
	checkEqual((await import(module)).default({ a: 1, b: 2 }), 3, 'the function, from its source');
	await host.close();
	check(!sandbox.isClosed, 'a sandbox that was given was closed');
	const own = new ToolHost();
	own.register((values) => values, { name: 'same' });
	await own.close();
	const late = await own.call('same', {});
	checkEqual([late.status, late.error.message], ['refused', 'the tool host is closed'], 'a sandbox of its own is not made again');
});

test('tool host: functions are sent however they are written', async () => {
	const sandbox = new Fake();
	const host = new ToolHost({ sandbox });
	const shorthand = { async twice({ n }) { return 2 * n; } };
	host.register(shorthand.twice);
	host.register(async ({ n }) => 3 * n, { name: 'thrice' });
	host.register(function* four() { yield 4; });
	for (const name of ['twice', 'thrice', 'four'])
		await host.call(name, { n: 7 });
	const [twice, thrice, four] = await Promise.all(sandbox.calls.map(async ({ module }) => (await import(module)).default));
	checkEqual([await twice({ n: 7 }), await thrice({ n: 7 }), [...four()]], [14, 21, [4]], 'what they are in a cell');
	await host.close();
});

test('tool host: a command has its arguments as words and as JSON, and its value from what it prints', async () => {
	const sandbox = new Fake();
	const host = new ToolHost({ sandbox });
	host.register(['tool', '--', '{x}', '{rest...}'], { name: 'tool' });
	const result = await host.call('tool', { x: '$HOME', rest: ['a b', 1] });
	checkEqual(sandbox.calls[0].argv, ['tool', '--', '$HOME', 'a b', '1'], 'its words');
	checkEqual(result.value, { x: '$HOME', rest: ['a b', 1] }, 'its value, which is JSON');
	host.register(['tool', '{x}'], { name: 'say', input: 'Dear {x}' });
	checkEqual((await host.call('say', { x: 'you' })).value, 'Dear you', 'its value, which is text');
	host.register(['tool', '{x}'], { name: 'deep', input: '{x}' });
	for (const [depth, is] of [[512, 'object'], [513, 'string']])
		checkEqual(typeof (await host.call('deep', { x: '['.repeat(depth) + ']'.repeat(depth) })).value, is, `a value of ${depth} levels`);
	checkIn('could be taken for an option', (await host.call('say', { x: '-rf' })).error.message, 'an option');
	await host.close();
});

test('tool host: a sandbox that fails is a result', async () => {
	const host = new ToolHost({ sandbox: { callModule() { throw new Error('it is gone'); } } });
	host.register(() => 1, { name: 'a' });
	const result = await host.call('a');
	checkEqual([result.status, result.error.message], ['lost', 'it is gone'], 'what came of it');
	await host.close();
});

test('its own sandbox takes what a sandbox does', async () => {
	for (const name of SANDBOX_OPTIONS.filter((name) => name !== 'policy'))
		await checkThrows(TypeError, () => new ToolHost({ sandbox: {}, [name]: undefined }), name).then(({ message }) => checkIn('one was given', message, name));
	new ToolHost({ fork: false });
});

await main();
