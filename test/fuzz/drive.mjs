// SPDX-License-Identifier: Apache-2.0
/*
 * What runs a target in JavaScript: replayed as a test by test/node/fuzz_test.mjs, or started as libFuzzer would be: `node TARGET
 * -max_total_time=SECONDS -dict=FILE OUT FOLDER`. What did something new is kept in OUT. Whether it did is told by what the target
 * returns, such as the words of a complaint: there is no look at what code was run.
 */

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const LENGTH_MAX = 4096;
const REPORT_MS = 10_000;

/** Whatever the input, this holds. */
export function require(condition, ...what) {
	if (!condition)
		throw new Error(what.map(String).join(' ').slice(0, 1000));
}

/** What a complaint is about, without what is shown in it. */
export function gist(complaint) {
	return complaint.replace(/".*|[{\[].*/s, '').replace(/[^a-zA-Z ]/g, '').replace(/token . /, 'token ').slice(0, 60);
}

/** Fuzzes, where the target is what was started. */
export function main(url, target) {
	if (process.argv[1] !== fileURLToPath(url))
		return;
	const words = process.argv.slice(2);
	const options = Object.fromEntries(words.filter((word) => word.startsWith('-')).map((word) => word.slice(1).split('=')));
	process.exitCode = fuzz(words.filter((word) => !word.startsWith('-')), options, target);
}

function readFolder(folder) {
	const names = readdirSync(folder).filter((name) => !name.startsWith('.')).sort();
	return names.map((name) => ({ name, data: readFileSync(join(folder, name)) }));
}

/** targets: a Map of folders and what each is for. Returns the status to end with. */
export function replay(targets) {
	const inputs = [...targets].flatMap(([folder, target]) => readFolder(folder).map((input) => ({ ...input, target })));
	let failed = inputs.length < targets.size; // it would pass with nothing run
	console.log(`1..${inputs.length}`);
	for (const [at, { name, data, target }] of inputs.entries()) {
		try {
			target(data);
			console.log(`ok ${at + 1} - ${name}`);
		} catch (error) {
			console.log(String(error?.stack ?? error).replace(/^/gm, '# '));
			console.log(`not ok ${at + 1} - ${name}`);
			failed = true;
		}
	}
	return Number(failed);
}

// ---- fuzzing -----------------------------------------------------------------------------------------------------

const below = (bound) => Math.floor(Math.random() * bound);
const pick = (items) => items[below(items.length)];

/** The texts of a dictionary, as libFuzzer writes them. */
function readDictionary(path) {
	const lines = path ? readFileSync(path, 'utf8').split('\n') : [];
	return lines.filter((line) => line.startsWith('"')).map((line) => Buffer.from(
		line.slice(1, -1).replace(/\\x([0-9a-f]{2})|\\(.)/g, (_, hex, char) => hex ? String.fromCharCode(parseInt(hex, 16)) : char), 'latin1'));
}

function splice(data, at, count, piece) {
	return Buffer.concat([data.subarray(0, at), piece, data.subarray(at + count)]);
}

const mutators = [
	(data) => splice(data, below(data.length), 1, Buffer.of(below(256))),
	(data) => splice(data, below(data.length), 1 + below(4), Buffer.alloc(0)),
	(data) => splice(data, below(data.length), below(data.length), Buffer.alloc(0)),
	(data, { dictionary }) => dictionary.length ? splice(data, below(data.length + 1), pick([0, 0, 1, 4]), pick(dictionary)) : data,
	(data) => splice(data, below(data.length + 1), 0, Buffer.from(pick(['[', ']', '{', '}', ',', '"', '\\', ':', '0', '-', 'e', '$', '1e999', '\0', ' ']))),
	(data) => { // a number by another
		const numbers = [...data.toString('latin1').matchAll(/-?[0-9]+/g)];
		const number = numbers.length ? pick(numbers) : null;
		const other = pick(['0', '-1', '1', '2', '255', '9007199254740993', '18446744073709551616', '1.5', '-0', '1e5']);
		return number ? splice(data, number.index, number[0].length, Buffer.from(other)) : data;
	},
	(data, { corpus }) => { // a piece of another input
		const other = pick(corpus);
		const from = below(other.length);
		return splice(data, below(data.length + 1), below(8), other.subarray(from, from + 1 + below(64)));
	},
	(data) => { // a piece of itself again
		const from = below(data.length);
		return splice(data, below(data.length + 1), 0, data.subarray(from, from + 1 + below(32)));
	},
	(data) => Buffer.concat([data, Buffer.from(data.subarray(below(data.length)))]),
	(data) => { // a length
		const changed = Buffer.from(data);
		if (changed.length > 8)
			changed.writeUInt32LE(pick([0, 1, 2, 8, changed.length, changed.length - 9, 0x7fffffff, 0xffffffff]), below(changed.length - 4));
		return changed;
	},
];

function mutate(data, sources) {
	let changed = data;
	for (let count = 1 + below(5); count > 0; count--)
		changed = pick(mutators)(changed.length ? changed : Buffer.of(1), sources).subarray(0, LENGTH_MAX);
	return changed;
}

function fuzz([out, ...folders], { max_total_time: seconds, dict }, target) {
	const sources = { corpus: [out, ...folders].flatMap(readFolder).map(({ data }) => data), dictionary: readDictionary(dict) };
	const seen = new Set(sources.corpus.map((data) => target(data)));
	const began = Date.now();
	let reported = began;
	let runs = sources.corpus.length;
	for (; Date.now() - began < 1000 * seconds; runs++) {
		const data = mutate(pick(sources.corpus), sources);
		const name = () => createHash('sha1').update(data).digest('hex');
		let found;
		try {
			found = target(data);
		} catch (error) {
			writeFileSync(`crash-${name()}`, data);
			console.log(`${error?.stack ?? error}\nTest unit written to ./crash-${name()}\nDone ${runs} runs`);
			return 77;
		}
		if (!seen.has(found)) {
			seen.add(found);
			sources.corpus.push(data);
			writeFileSync(join(out, name()), data);
		}
		if (Date.now() - reported > REPORT_MS) {
			reported = Date.now();
			console.log(`#${runs} features: ${seen.size} corp: ${sources.corpus.length}`);
		}
	}
	console.log(`Done ${runs} runs, features: ${seen.size}`);
	return 0;
}
