// SPDX-License-Identifier: Apache-2.0
/*
 * The whole life of a Node zygote. The supervisor executes a Node with the addon preloaded: by the time that this
 * runs, it is in the hull, and sees no more than a cell does, and nothing that calls can write. It loads what vitro itself
 * needs from texts that the addon read; loads what the caller wants to have ahead of calls; does a call that nobody sees;
 * and then the addon forks occupants, each into a cell of its own. It never runs anything of a call. Where calls can write,
 * and that cannot be kept from it, it loads nothing of the caller's.
 *
 * A Node that cannot be forked (fork.h says why) is executed anew in each cell, by the same texts: parts is null in
 * the zygote, and in such an occupant what the zygote gave it.
 *
 * Given: addon, require, bring (which is import()), parts.
 */
'use strict';

const vm = require('node:vm');
const fs = require('node:fs');
const path = require('node:path');
const { fileURLToPath, pathToFileURL } = require('node:url');
const { setFlagsFromString } = require('node:v8');

const CALL_SOCKET = 3;
const PROBLEM_MAX = 400;
const NAME_MAX = 255; // bytes that the supervisor keeps of a module's name
const FORKABLE = 20; // the first version of which forks were found to do all that a process does

/** Vitro's own scripts, from their texts. */
class Own {
	#texts;
	#loaded = new Map();

	constructor(texts) {
		this.#texts = texts;
	}

	require(name) {
		if (!this.#loaded.has(name)) {
			const module = { exports: {} };
			setFlagsFromString('--no-lazy'); // whatever first runs in a fork is compiled by then
			const made = vm.compileFunction(this.#texts[name], ['module', 'require', 'own'], { filename: `vitro:${name}` });
			setFlagsFromString('--lazy');
			made(module, require, this);
			this.#loaded.set(name, module.exports);
		}
		return this.#loaded.get(name);
	}

	/** import(), which vitro's own scripts have not got: they are in no file. */
	bring(name) {
		return bring(name);
	}

	/** A module with those of vitro's that it imports before it: a data: URL finds nothing beside it. No two of them have a name in common. */
	#join(name, seen) {
		const before = [];
		const own = this.#texts[name].replace(/^(?:import|export) .* from '(.*)';$/gm, (line, other) => {
			const isKnown = seen.has(line) || seen.has(other);
			seen.add(other.startsWith('./') ? other : line);
			if (other.startsWith('./') && !isKnown)
				before.push(this.#join(other.slice(2), seen));
			return other.startsWith('./') || isKnown ? '' : line;
		});
		return [...before, own].join('\n');
	}

	async import(name) {
		return await bring(`data:text/javascript,${encodeURIComponent(`${this.#join(name, new Set())}\n//# sourceURL=vitro:${name}`)}`);
	}
}

/** Loads a module of the caller's. */
async function load(name, folder) {
	const find = require('node:module').createRequire(path.join(folder ?? '/', 'x.cjs'));
	const file = find.resolve(name.startsWith('file:') ? fileURLToPath(name) : name);
	await bring(path.isAbsolute(file) ? pathToFileURL(file).href : file);
}

function describe(error) {
	const [text] = `${error?.message ?? error}`.split('\nRequire stack:'); // of which it has one of our own making
	return `${error?.name ?? 'Error'}: ${text}`.slice(0, PROBLEM_MAX);
}

function readSetup(text) {
	const areTexts = (list) => Array.isArray(list) && list.every((word) => typeof word === 'string');
	try {
		const setup = JSON.parse(text);
		if (setup?.version === 1 && areTexts(setup.path ?? []) && areTexts(setup.preload ?? []))
			return setup;
	} catch {}
	return addon.fail('the setup of a pool of node is no JSON object of version 1 with lists of texts as path and preload');
}

/**
 * V8 seeds Math.random when it is first called, for good, and all forks would go on from there. So what runs before them
 * has another. Returns what puts V8's back.
 */
function replaceRandom() {
	const { randomBytes } = require('node:crypto');
	const { random } = Math;
	Math.random = () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48;
	return () => {
		Math.random = random;
	};
}

function objectToThreads(threads) {
	return addon.threads() > threads ? 'it starts threads, which calls would lack' : '';
}

/** What forks would lack, or share: a thread's event loop, too, has memory of libuv's that is shared. */
function objectTo(threads, shared) {
	return objectToThreads(threads) || (addon.shared() > shared ? 'it makes memory that all calls would share' : '');
}

/** The next zygote is without it. */
function leaveOut(name, objection) {
	addon.loads(name);
	addon.tell(`'${name}' is not loaded ahead of calls: ${objection}`);
	addon.exit(1);
}

/** Why a module is not even tried; '': it is. */
function findReason(name, config) {
	if (!config.loadsAhead)
		return 'calls may write here, and this cannot be kept from what is loaded ahead of them';
	return Buffer.byteLength(name) > NAME_MAX ? `its name has more than ${NAME_MAX} bytes` : '';
}

/** Returns what looks once more, when all is done. */
async function preload(config) {
	const leftOut = process.argv.slice(3); // each "-module": it ended a zygote before this one
	const names = [];
	for (const name of (config.preload ?? []).filter((name) => !leftOut.includes(`-${name}`))) {
		const reason = findReason(name, config);
		if (reason)
			addon.warn(`'${name}' is not loaded ahead of calls: ${reason}`);
		else
			names.push(name);
	}
	if (names.length)
		await fs.promises.stat('/'); // libuv's threads are there, and counted
	const threads = addon.threads(), shared = addon.shared(); // libuv's own: no fork has it
	for (const name of names) {
		addon.loads(name);
		try {
			await load(name, config.path?.[0]);
		} catch (error) {
			addon.warn(`'${name}' is not loaded ahead of calls: ${describe(error)}`);
		}
		const objection = objectTo(threads, shared);
		if (objection)
			leaveOut(name, objection);
	}
	addon.loads('');
	return () => {
		const objection = names.length && objectToThreads(threads); // what is shared by now, no fork has
		if (objection)
			leaveOut(names.at(-1), objection); // whichever it was: in the end it is left out
	};
}

/** What is there by now stays: a collection in a fork is to touch, and so copy, little of it. */
function settle() {
	setFlagsFromString('--expose-gc');
	setFlagsFromString('--no-flush-bytecode'); // nor is it to drop what was compiled
	const collect = vm.runInNewContext('gc');
	collect();
	collect();
	setFlagsFromString('--flush-bytecode');
	setFlagsFromString('--no-expose-gc');
	addon.enlarge();
}

/** The words that an occupant executes where it is no fork. */
function list(texts, config) {
	const kept = { texts, config, parked: addon.parked().toString('base64') };
	const begin = "(w=>require('vm').compileFunction(w.texts['zygote.cjs']," +
		"['addon','require','bring','parts'])(null,require,s=>import(s),w))(JSON.parse(process.argv[1]))"; // leaves no name behind
	const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ? [] : ['--experimental-vm-modules']; // for import() in code
	return [process.execPath, ...importing, '-e', begin, JSON.stringify(kept)];
}

/** Why each call has a Node that is started anew; '': it is forked. */
function findObstacle(config) {
	if (parseInt(process.versions.node, 10) < FORKABLE)
		return `a fork of ${process.version} cannot do all that a process does: that takes ${FORKABLE} or newer`;
	if (!addon.knowsHandlers())
		return 'what it does at a fork cannot be seen';
	return config?.fork === false ? 'its caller wants that' : '';
}

async function main() {
	if (process.argv[2] === '?') // vitro doctor's question
		return process.stdout.write(findObstacle() ? `anew: ${findObstacle()}` : 'forked');
	addon.loads(''); // it runs; what takes long from here on is the caller's
	const texts = addon.sources();
	const own = new Own(texts);
	const config = { ...readSetup(process.argv[2]), ...addon.about() };
	const obstacle = findObstacle(config);
	if (obstacle) {
		addon.tell(`${process.execPath} is started anew for each call, and not forked: ${obstacle}`);
		addon.ready();
		addon.serve(list(texts, config));
	}
	const codec = await own.import('codec.mjs');
	const harness = own.require('harness.cjs');
	const restoreRandom = replaceRandom();
	const complain = (error) => addon.tell(`a module that was loaded ahead of calls fails: ${describe(error)}`);
	process.on('uncaughtException', complain); // later than it was loaded
	const lookAgain = await preload(config);
	harness.tidy();
	settle(); // before that: it would drop what V8 compiled
	harness.become(addon, config); // each fork does so for itself; by then V8 has compiled what it takes
	await harness.rehearse(codec, addon, config, harness.MANY);
	setImmediate(() => {
		lookAgain();
		restoreRandom();
		process.off('uncaughtException', complain);
		const begin = harness.prepare(codec, addon, config, CALL_SOCKET);
		addon.ready();
		addon.serve(null);
		begin();
	});
}

async function mainAnew() {
	const own = new Own(parts.texts);
	const harness = own.require('harness.cjs');
	const codec = await own.import('codec.mjs');
	harness.tidy();
	harness.prepare(codec, harness.makePlainIo(Buffer.from(parts.parked, 'base64'), CALL_SOCKET), parts.config, CALL_SOCKET)();
}

if (parts)
	mainAnew();
else
	main().catch((error) => addon.fail(describe(error)));
