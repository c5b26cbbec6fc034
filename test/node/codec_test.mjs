#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Values and messages in JavaScript: what round trips, also through Python, what is refused, and what a hostile cell
// can make its host pay.

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runInNewContext } from 'node:vm';

import * as codec from '../../runtimes/node/codec.mjs';
import { ROOT, check, checkEqual, checkIn, checkThrows, main, skip, test } from '../lib/vitrotest.mjs';

const VECTORS = JSON.parse(readFileSync(join(ROOT, 'test', 'vectors', 'values.json'), 'utf8'));
const { Attachments, Foreign, Malformed, NotPlain } = codec;

function message(head, buffers = []) {
	return Buffer.concat(codec.pack(head, buffers));
}

/** A value's way through bytes. */
function carry(value) {
	const { tree, buffers } = codec.encode(value);
	const { head, attachments } = codec.unpack(message({ value: tree }, buffers));
	return codec.decode(head.value, attachments);
}

/** A letter as JSON may spell it as well. */
function escape(letter) {
	return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function hexFloat(value) {
	const bytes = Buffer.alloc(8);
	bytes.writeDoubleBE(value);
	return Number.isNaN(value) ? 'nan' : bytes.toString('hex');
}

/** A value as the vectors say it. */
function describe(value) {
	if (value === null)
		return { null: null };
	if (value instanceof Foreign)
		return describeForeign(value);
	switch (typeof value) {
	case 'undefined': return { undefined: null };
	case 'boolean': return { bool: value };
	case 'number': return { float: hexFloat(value) };
	case 'bigint': return { int: String(value) };
	case 'string': return { text: value };
	}
	if (Array.isArray(value))
		return { list: value.map(describe) };
	if (Buffer.isBuffer(value))
		return { bytes: value.toString('hex') };
	if (value instanceof Set)
		return { set: [...value].map(describe) };
	if (value instanceof Date)
		return { datetime: value.toISOString() };
	if (ArrayBuffer.isView(value)) {
		const dtype = codec.encode(value).tree.$ndarray.dtype;
		return { ndarray: { dtype, shape: [value.length], data: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('hex') } };
	}
	return { dict: (value instanceof Map ? [...value] : Object.entries(value)).map((pair) => pair.map(describe)) };
}

function describeForeign({ type, value }) {
	if (type === 'complex')
		return { complex: value.map(describe) };
	if (type === 'ndarray')
		return { ndarray: { dtype: value.dtype, shape: [...value.shape], data: orderRows(value).toString('hex') } };
	return { [type]: Array.isArray(value) ? [...value] : value };
}

/** The elements of an array with the last index fastest. */
function orderRows({ shape, order, data }) {
	if (order === 'C' || shape.length < 2)
		return data;
	const [rows, columns] = shape;
	const size = data.length / (rows * columns);
	const cells = [];
	for (let row = 0; row < rows; row++)
		for (let column = 0; column < columns; column++)
			cells.push(data.subarray((column * rows + row) * size, (column * rows + row + 1) * size));
	return Buffer.concat(cells);
}

/** What a vector says, as it is in a language whose numbers are all floats. */
function translate(value) {
	const [[kind, body]] = Object.entries(value);
	if (kind === 'int')
		return Number.isSafeInteger(Number(body)) ? { float: hexFloat(Number(body)) } : value;
	if (['list', 'tuple', 'set', 'frozenset', 'complex'].includes(kind))
		return { [kind]: body.map(translate) };
	return kind === 'dict' ? { dict: body.map((pair) => pair.map(translate)) } : value;
}

function* cases(name) {
	for (const group of VECTORS)
		for (const one of group[name] ?? [])
			yield [`${group.description}: ${one.description}`, one];
}

const parseHex = (digits) => Buffer.from(digits, 'hex');
const copy = (tree) => JSON.parse(JSON.stringify(tree));

test('codec: every vector is read, and written, as it says', async () => {
	let seen = 0;
	for (const [what, { tree, buffers = [], malformed, value, js, only }] of cases('tests')) {
		seen++;
		const data = buffers.map(parseHex);
		if (malformed) {
			await checkThrows(Malformed, () => codec.decode(copy(tree), new Attachments(data)), what);
			const { head, attachments } = codec.unpack(message({ value: tree }, data));
			await checkThrows(Malformed, () => codec.decode(head.value, attachments), `${what} (in a message)`);
			continue;
		}
		const got = codec.decode(copy(tree), new Attachments(data));
		checkEqual(describe(got), js ?? translate(value), what);
		if (js === undefined && only !== 'read') {
			const written = codec.encode(got);
			checkEqual(written.tree, tree, `${what}, written`);
			checkEqual(written.buffers.map((one) => Buffer.from(one.buffer, one.byteOffset, one.byteLength).toString('hex')), buffers, `${what}, its buffers`);
		}
	}
	check(seen > 80, 'few vectors were seen');
});

test('codec: every message of the vectors is read or refused as it says', async () => {
	for (const [what, { message, head, buffers, malformed, nested }] of cases('messages')) {
		const text = nested ? Buffer.from(`{"a":${'['.repeat(nested)}${']'.repeat(nested)}}`) : null;
		const data = text ? Buffer.concat([Uint8Array.of(...[0, 8, 16, 24].map((bits) => text.length >> bits & 255)), text, Buffer.alloc(4)]) : parseHex(message);
		if (malformed) {
			await checkThrows(Malformed, () => codec.unpack(data), what);
		} else {
			const got = codec.unpack(data);
			checkEqual(got.head, head, what);
			checkEqual(buffers.map((_, index) => got.attachments.take(index).toString('hex')), buffers, `${what}, its buffers`);
		}
	}
});

const VALUES = [
	null, true, 0, -0, 1.5, NaN, Infinity, -Infinity, 5e-324, 1e300, 2 ** 60, 'é€😀\0"\\\n', '\ud800', '', undefined, 0n, -1n, 1n << 200n,
	new Date(0), new Date(-1), new Date('2024-02-29T12:00:00.123Z'), new Date(8.64e15), new Date('0099-01-01T00:00:00Z'),
	new Map([[1, 'a'], ['b', null], [null, new Map()], [NaN, 1n], [undefined, undefined]]), new Set([1, 'a', undefined, NaN, 5n]),
	Buffer.from([0, 255]), Buffer.alloc(0), new Int8Array([-1]), new Uint8Array([255]), new Int16Array([-2, 3]), new Uint16Array(3),
	new Int32Array([1 << 31]), new Uint32Array([2 ** 32 - 1]), new BigInt64Array([-(1n << 63n)]), new BigUint64Array([(1n << 64n) - 1n]),
	new Float32Array([0.5, NaN]), new Float64Array([-0, 1e308]), new Float64Array(0),
	[], {}, [[], {}], { a: undefined, b: [1n, { c: new Set() }] }, { $int: 1 }, { $int: 1, b: 2 }, { '': 0 }, { $: { $: {} } },
	{ constructor: 1, toString: 'x', hasOwnProperty: null }, new Foreign('decimal', '1.50'), new Foreign('complex', [1, NaN]),
	new Foreign('npscalar', { dtype: '<f16', data: Buffer.alloc(16) }), new Foreign('datetime', '2024-02-29T23:59:58'),
];

test('codec: values come back as they were, with their types, and are not changed', () => {
	for (const value of [...VALUES, VALUES, { all: VALUES }]) {
		const before = JSON.stringify(describe(value));
		checkEqual(carry(value), value, before.slice(0, 200));
		checkEqual(JSON.stringify(describe(value)), before, 'the value afterwards');
	}
	check(Object.is(carry([-0])[0], -0), 'the sign of zero');
	checkEqual(carry(new ArrayBuffer(2)), Buffer.alloc(2), 'an ArrayBuffer');
	checkEqual(carry(new Uint8ClampedArray(2)), new Uint8Array(2), 'clamped bytes');
	checkEqual(carry([, 1]), [undefined, 1], 'a hole');
	checkEqual(carry(Object.assign(Object.create(null), { a: 1 })), { a: 1 }, 'an object without a prototype');
	checkEqual(carry('aXb'.match(/X/)), ['X'], 'what match() gives');
	checkEqual(carry(runInNewContext('({a: [new Date(5), new Map([[1, new Set([2])]]), new Float32Array(2)]})')),
		{ a: [new Date(5), new Map([[1, new Set([2])]]), new Float32Array(2)] }, 'values of another realm');
});

test('codec: plain data is not copied when it is written, large buffers neither', () => {
	const value = { a: [1, 'b', { c: null }], d: 0.5 };
	check(codec.encode(value).tree === value, 'plain data was copied');
	const inner = [1, 2];
	check(codec.encode([inner, 1n]).tree[0] === inner, 'what needed no change was copied');
	const data = Buffer.alloc(10 << 20);
	const { tree, buffers } = codec.encode([data]);
	const pieces = codec.pack({ value: tree }, buffers);
	check(pieces[1].buffer === data.buffer, 'bytes were copied');
	checkEqual(pieces[0].length % 16, 0, 'where the first buffer begins, from a multiple of 16');
});

test('codec: large arrays are used where they were received, small ones keep nothing else in memory', () => {
	const whole = message({ value: codec.encode(new Float64Array(100_000)).tree }, [new Float64Array(100_000)]);
	const { head, attachments } = codec.unpack(whole);
	check(codec.decode(head.value, attachments).buffer === whole.buffer, 'it was copied');
	const small = carry([Buffer.alloc(3), Buffer.alloc(100_000)]);
	check(small[0].buffer.byteLength < 1000, 'three bytes keep a message in memory');
	const odd = message({ value: { $ndarray: { dtype: '<f8', shape: [1], order: 'C', buffer: 1 } } }, [Buffer.alloc(3), new Float64Array([1.5])]);
	const got = codec.unpack(odd);
	checkEqual(codec.decode(got.head.value, got.attachments), new Float64Array([1.5]), 'what does not lie right');
});

test('codec: what is not plain is an error that says where it is, and what to do', async () => {
	class Point {}
	class MyMap extends Map {}
	const loop = [];
	loop.push({ loop });
	for (const [value, says] of [
		[[0, [1, new Point()]], 'result[1][1] is an instance of Point'], [{ a: { b: () => 1 } }, 'result["a"]["b"] is a function'],
		[new Map([[Symbol('x'), 1]]), 'result.keys()[0] is a symbol'], [new Map([['k', /x/]]), 'result["k"] is an instance of RegExp'],
		[new Set([new MyMap()]), 'result[0] is an instance of MyMap'], [new Error('x'), 'result is an instance of Error'], [new Date(NaN), 'result is a Date that is none'],
		[Promise.resolve(1), 'result is an instance of Promise'], [new WeakMap(), 'result is an instance of WeakMap'], [new DataView(new ArrayBuffer(1)), 'result is an instance of DataView'],
		[new SharedArrayBuffer(1), 'result is an instance of SharedArrayBuffer'], [Object(1), 'result is an instance of Number'], [new Proxy({}, {}), 'result is a Proxy'],
		[{ [Symbol('x')]: 1 }, 'result has a symbol for a name'], [Object.create({ a: 1 }), 'result is an instance of Object'],
		[Object.setPrototypeOf(new Map(), null), 'result is an object of no class'],
		[loop, 'holds itself'],
	]) {
		const error = await checkThrows(NotPlain, () => codec.encode(value), says);
		checkIn(says, error.message, 'where and what');
		checkIn('return plain data', error.message, 'what to do');
	}
});

test('codec: nesting is bounded, and the bound is the same on both sides', async () => {
	const nest = (depth) => Array.from({ length: depth }).reduce((inner) => [inner], 0);
	checkEqual(carry(nest(199)), nest(199), 'as deep as it may be');
	await checkThrows(NotPlain, () => codec.encode(nest(200)), 'deeper');
	await checkThrows(Malformed, () => codec.unpack(message({ value: nest(200) })), 'deeper, read');
	await checkThrows(Malformed, () => codec.unpack(message({ text: '"\\"['.repeat(300), value: nest(200) })), 'with texts around it');
	checkEqual(carry({ text: '\\"[{'.repeat(5000) }), { text: '\\"[{'.repeat(5000) }, 'brackets within texts');
	let sets = 0;
	for (let depth = 0; depth < 99; depth++)
		sets = new Set([sets]);
	carry(sets);
	await checkThrows(NotPlain, () => codec.encode(new Set([new Set([sets])])), 'a set is an object and a list');
});

test('codec: no name leads to a prototype', () => {
	const { head, attachments } = codec.unpack(message(JSON.parse('{"value": {"a": {"__proto__": {"admin": true}, "b": 1}, "c": [{"__proto__": null}]}}')));
	const value = codec.decode(head.value, attachments);
	check(value.a instanceof Map && value.c[0] instanceof Map, 'an object has __proto__ for a name');
	checkEqual([...value.a], [['__proto__', { admin: true }], ['b', 1]], 'its names');
	check({}.admin === undefined && Object.assign({}, value.a).admin === undefined, 'a prototype was changed');
	const written = codec.unpack(Buffer.concat(codec.pack(JSON.parse('{"value": {"\\u005f_proto__": {"x": 1}}}'))));
	check(codec.decode(written.head.value, written.attachments) instanceof Map, 'one value of that name');
	for (let at = 0; at < '__proto__'.length; at++)
		for (const letter of [escape('__proto__'[at]), escape('__proto__'[at]).toUpperCase().replace('U', 'u')]) {
			const raw = Buffer.from(`{"value":{"${'__proto__'.slice(0, at)}${letter}${'__proto__'.slice(at + 1)}":{"x":1}}}`);
			const escaped = codec.unpack(Buffer.concat([Uint8Array.of(raw.length, 0, 0, 0), raw, Buffer.alloc(4)]));
			check(codec.decode(escaped.head.value, escaped.attachments) instanceof Map, `${raw} is read as an object`);
		}
	const own = JSON.parse('{"__proto__": 1, "big": 5}');
	own.big = 5n;
	checkEqual(carry(own), new Map([['__proto__', 1], ['big', 5n]]), 'such an object, written');
	checkEqual(carry({ $dict: [['__proto__', 1]] }), { $dict: [['__proto__', 1]] }, 'a name as data');
});

test('codec: reading is bounded: parts, buffers, lengths, and keys that share a hash', async () => {
	await checkThrows(Malformed, () => codec.unpack(message({ a: Array(1000).fill(0) }), 100), 'parts');
	await checkThrows(Malformed, () => codec.unpack(message({ a: Array(30).fill({}) }), 100), 'objects, which count for four');
	codec.unpack(message({ a: ','.repeat(1000) }), 100);
	await checkThrows(Malformed, () => codec.unpack(message({ value: 1 }, Array(1 << 20).fill(Buffer.alloc(0)).concat(Buffer.alloc(0)))), 'a million buffers and one');
	const count = 200_000;
	const began = performance.now();
	const colliding = { $set: Array.from({ length: count }, (_, index) => ({ $int: `0x${(index + 1).toString(16)}0000000000000001` })) };
	await checkThrows(Malformed, () => codec.decode(colliding), 'BigInts that share their low 64 bits');
	const took = performance.now() - began;
	check(took < 10_000, `it took ${took} ms`);
	const honest = new Map(Array.from({ length: count }, (_, index) => [index * 1.5, BigInt(index)]));
	checkEqual(carry(honest).size, count, 'an honest map');
});

test('codec: what comparing long BigInts takes is charged, whatever share of them is compared at once', () => {
	// All of one length and with the same low bits: V8 takes them for one another until it has compared all of both.
	const make = (n, digits, isCrafted) => ({ $set: Array.from({ length: n }, (_, index) => ({
		$int: `0x${(isCrafted ? 0x100000 + index : 0x100000).toString(16)}${'0'.repeat(digits)}${(isCrafted ? 0 : index + 1).toString(16).padStart(16, '0')}` })) });
	const read = (...trees) => {
		const used = process.cpuUsage();
		let said = 'read';
		try {
			codec.decode(trees, new Attachments());
		} catch (error) {
			check(error instanceof Malformed, `it is ${error}`);
			said = error.message;
		}
		const { user, system } = process.cpuUsage(used);
		return { said, ms: (user + system) / 1000 };
	};
	checkEqual(read(make(4096, 14000, false)).said, 'read', 'a control of the same size');
	const { said, ms } = read(make(4096, 14000, true));
	checkEqual(said, 'keys collide', 'crafted ones');
	check(ms < 4000, `it took ${ms} ms of CPU`);
	const small = make(600, 14000, true);
	const many = read(...Array.from({ length: 40 }, () => structuredClone(small)));
	check(many.ms < 4000, `many small sets took ${many.ms} ms of CPU: ${many.said}`);
});

test('codec: a large set that is honest is read, also where others have the CPU', () => {
	const set = new Set(Array.from({ length: 20000 }, (_, n) => `key ${n}`));
	const now = performance.now;
	let waited = 0;
	performance.now = () => now.call(performance) + (waited += 200); // at each look others had it
	try {
		checkEqual(carry(set).size, set.size, 'its size');
	} finally {
		performance.now = now;
	}
});

test('codec: files are those that were collected, and lie where they say', async () => {
	const read = (tree, patterns) => codec.readFiles(tree, new Attachments([Buffer.from('a'), Buffer.from('b')]), patterns);
	checkEqual([...read({ 'out/a.txt': 1, 'out/d/b': 0 }, ['out/**'])], [['out/a.txt', Buffer.from('b')], ['out/d/b', Buffer.from('a')]], 'two files');
	checkEqual(read(null).size, 0, 'none');
	for (const name of ['../a', '/a', 'a/../b', 'a//b', '.', '', 'a\0', 'other', `${'d/'.repeat(65)}a`])
		await checkThrows(Malformed, () => read({ [name]: 0 }, ['**/a', 'a*', 'out/**']), JSON.stringify(name));
	await checkThrows(Malformed, () => read([0], ['*']), 'a list');
	for (const [pattern, name, fits] of [
		['*.txt', 'a.txt', true], ['*.txt', 'd/a.txt', false], ['**/*.txt', 'a.txt', true], ['**/*.txt', 'd/e/a.txt', true], ['a?c', 'abc', true],
		['[!a]b', 'ab', false], ['[!a]b', 'cb', true], ['[a-c]x', 'bx', true], ['./a', 'a', true], ['a*b*c', 'aXbYc', true], ['a*b*c', 'aXc', false],
		['a.b', 'axb', false], ['(', '(', true], ['**', 'a/b/c', true], ['a/**', 'a', false], ['[^a]', '^', true], ['é?', 'é😀', true], ['[', '[', true],
	])
		checkEqual(new codec.FileMatcher([pattern]).matches(name), fits, `${pattern} on ${name}`);
	const slow = performance.now();
	check(!new codec.FileMatcher(['*a*a*a*a*a*a*a*a*b']).matches('a'.repeat(4000)), 'it matches');
	check(performance.now() - slow < 2000, 'it took too long');
});

// What Python makes of a value and sends back; what it is there, as its repr().
const IN_PYTHON = `
import sys, struct, datetime, decimal, types, uuid
sys.modules["runtime"] = types.ModuleType("runtime")
sys.modules["runtime"].__path__ = [sys.argv[1]]
try:
    import numpy
except ImportError:
    numpy = None
from runtime import codec
def read(size):
    data = sys.stdin.buffer.read(size)
    return data
made = {"tuple": lambda: (1, (2,)), "set": lambda: {1}, "frozenset": lambda: frozenset(["a"]), "keys": lambda: {(1, 2): frozenset([3]), None: 4},
        "moment": lambda: datetime.datetime(2024, 2, 29, 12, 0, 0, 123456, datetime.timezone(datetime.timedelta(hours=1))),
        "naive": lambda: datetime.datetime(2024, 2, 29, 12), "decimal": lambda: decimal.Decimal("1.50"), "complex": lambda: complex(1, 2),
        "uuid": lambda: uuid.UUID(int=5), "bytearray": lambda: bytearray(b"x"), "big": lambda: 1 << 70, "float": lambda: 1.0, "names": lambda: {"__proto__": 1, "a": 2},
        "zero": lambda: -0.0, "text": lambda: "\\ud800"}
while True:
    size = read(4)
    if not size:
        break
    head, buffers = codec.unpack(bytearray(read(struct.unpack("<I", size)[0])))
    try:
        value = made[head["make"]]() if "make" in head else codec.decode(head["value"], buffers, load=__import__)
        tree, out = codec.encode(value)
        reply = {"value": tree, "repr": repr(value)}
    except codec.Malformed as error:
        reply, out = {"malformed": str(error)}, []
    data = b"".join(codec.pack(reply, out))
    sys.stdout.buffer.write(struct.pack("<I", len(data)) + data)
`;

/** Sends each head through a Python process; its answers. */
function throughPython(requests) {
	const frame = (data) => Buffer.concat([Uint8Array.of(...[0, 8, 16, 24].map((bits) => data.length >> bits & 255)), data]);
	const input = Buffer.concat(requests.map(({ head, buffers = [] }) => frame(message(head, buffers))));
	const output = execFileSync('python3', ['-c', IN_PYTHON, join(ROOT, 'runtimes', 'python')],
		{ input, maxBuffer: 1 << 28, env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1' } });
	const answers = [];
	for (let at = 0; at < output.length;) {
		const size = output.readUInt32LE(at);
		const { head, attachments } = codec.unpack(output.subarray(at + 4, at + 4 + size));
		answers.push({ ...head, value: 'malformed' in head ? undefined : codec.decode(head.value, attachments) });
		at += 4 + size;
	}
	return answers;
}

function hasNumpy() {
	try {
		execFileSync('python3', ['-c', 'import numpy'], { stdio: 'ignore' });
		return true;
	} catch {
		return false;
	}
}

const isArray = (value) => ArrayBuffer.isView(value) && !Buffer.isBuffer(value) || value instanceof Foreign && value.type === 'npscalar';

function checkThroughPython(values) {
	const answers = throughPython(values.map((value) => {
		const { tree, buffers } = codec.encode(value);
		return { head: { value: tree }, buffers };
	}));
	for (const [index, value] of values.entries()) {
		const { value: got, malformed, repr } = answers[index];
		check(malformed === undefined, `${JSON.stringify(describe(value))}: ${malformed}`);
		checkEqual(nearest(got), nearest(value), `${JSON.stringify(describe(value))}, in Python ${repr}`);
	}
}

test('codec: values of JavaScript through Python and back are the same', () => {
	checkThroughPython(VALUES.filter((value) => !isArray(value) && !(value instanceof Date && value.getUTCFullYear() > 9999)));
});

test('codec: typed arrays through numpy and back are the same', () => {
	if (!hasNumpy())
		skip('numpy is not installed');
	checkThroughPython(VALUES.filter(isArray));
});

/** What Python does not keep: undefined is None, small BigInts are numbers, one dict is as good as another. */
function nearest(value) {
	if (value === undefined)
		return null;
	if (typeof value === 'bigint' && Number.isSafeInteger(Number(value)))
		return Number(value);
	if (Array.isArray(value))
		return value.map(nearest);
	if (value instanceof Set)
		return new Set([...value].map(nearest).sort((left, right) => String(left) < String(right) ? -1 : 1));
	if (value instanceof Map || value !== null && typeof value === 'object' && Object.getPrototypeOf(value) === Object.prototype)
		return new Map((value instanceof Map ? [...value] : Object.entries(value)).map((pair) => pair.map(nearest)));
	return value;
}

test('codec: what values of Python are in JavaScript, and what they are when they come back', () => {
	const wanted = {
		tuple: [[1, [2]], '[1, [2]]'], set: [new Set([1]), '{1}'], frozenset: [new Set(['a']), "{'a'}"],
		moment: [new Date('2024-02-29T11:00:00.123Z'), 'datetime.datetime(2024, 2, 29, 11, 0, 0, 123000, tzinfo=datetime.timezone.utc)'],
		naive: [new Foreign('datetime', '2024-02-29T12:00:00'), 'datetime.datetime(2024, 2, 29, 12, 0)'],
		decimal: [new Foreign('decimal', '1.50'), "Decimal('1.50')"], complex: [new Foreign('complex', [1, 2]), '(1+2j)'],
		uuid: [new Foreign('uuid', '00000000-0000-0000-0000-000000000005'), "UUID('00000000-0000-0000-0000-000000000005')"],
		bytearray: [Buffer.from('x'), "b'x'"], big: [1n << 70n, '1180591620717411303424'], float: [1, '1'], zero: [-0, '-0.0'],
		names: [new Map([['__proto__', 1], ['a', 2]]), "{'__proto__': 1, 'a': 2}"], text: ['\ud800', "'\\ud800'"],
	};
	const names = Object.keys(wanted);
	const first = throughPython(names.map((make) => ({ head: { make } })));
	for (const [index, name] of names.entries())
		checkEqual(first[index].value, wanted[name][0], `${name}, read`);
	const back = throughPython(first.map(({ value }) => {
		const { tree, buffers } = codec.encode(value);
		return { head: { value: tree }, buffers };
	}));
	for (const [index, name] of names.entries())
		checkEqual(back[index].repr, wanted[name][1], `${name}, back in Python`);
	const [keys] = throughPython([{ head: { make: 'keys' } }]);
	checkEqual([...keys.value], [[[1, 2], new Set([3])], [null, 4]], 'keys that are tuples');
	const { tree } = codec.encode(keys.value);
	checkIn('unhashable', throughPython([{ head: { value: tree } }])[0].malformed, 'arrays for keys are no keys in Python');
});

await main();
