// SPDX-License-Identifier: Apache-2.0
/*
 * vitro eval: code as the body of a strict async function. node -e TEXT -- CODE | - [FD], where TEXT is complain.cjs, whose
 * exports `module` then has, and this file: a cell need not read them. What the code returns is printed, as node -p prints
 * it, unless it is undefined. FD is a pipe on which it tells that value, or what was thrown, as JSON. Apart from that it finds what
 * code finds in calls of the package.
 */
(() => {
	'use strict';
	const fs = require('node:fs');
	const util = require('node:util');
	const vm = require('node:vm');
	const { builtinModules } = require('node:module');
	const { compile, show } = module.exports;
	const FILE = '<eval>';
	const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((name) => import(name));

	const DEPTH_MAX = 200;
	const TEXT_MAX = 32 << 10;
	const [given, fd] = process.argv.splice(1, 2);
	const look = () => {
		const { dev, ino } = fs.fstatSync(Number(fd));
		return `${dev}:${ino}`;
	};
	const pipe = fd && look();

	function tell(what) {
		if (!fd)
			return;
		let bytes = Buffer.from(JSON.stringify(what));
		try {
			if (look() !== pipe)
				return; // the code closed it, and opened something of its own
			while (bytes.length)
				bytes = bytes.subarray(fs.writeSync(Number(fd), bytes));
		} catch {} // closed
	}

	const isText = (value) => typeof value === 'string' && !/\p{Surrogate}/u.test(value); // none that is half a pair
	const cut = (text) => {
		const whole = text.replace(/\p{Surrogate}/gu, '\uFFFD');
		return whole.length > TEXT_MAX ? whole.slice(0, TEXT_MAX).replace(/\p{Surrogate}$/u, '') + '...' : whole;
	};

	/** The value as JSON has it, a Date as its text; of parts that it has no word for, {"$repr": their text}. */
	function toJson(value, depth = 0) {
		const part = typeof value?.toJSON === 'function' ? value.toJSON() : value;
		if (part === null || part === undefined)
			return null;
		if (typeof part === 'boolean' || Number.isFinite(part) || isText(part))
			return part;
		if (depth < DEPTH_MAX && Array.isArray(part))
			return Array.from(part, (item) => toJson(item, depth + 1));
		const isPlain = typeof part === 'object' && [null, Object.prototype].includes(Object.getPrototypeOf(part));
		const members = isPlain ? Object.entries(part).filter(([, item]) => item !== undefined) : [];
		if (depth < DEPTH_MAX && isPlain && members.every(([name]) => isText(name)))
			return Object.fromEntries(members.map(([name, item]) => [name, toJson(item, depth + 1)]));
		return { $repr: cut(util.inspect(part)) };
	}

	function tellValue(value) {
		let told;
		try {
			told = toJson(value);
		} catch { // of the code's own toJSON()
			told = { $repr: cut(util.inspect(value)) };
		}
		tell({ value: told });
	}

	function complain(error, code) {
		const shown = `Uncaught ${show(error, code, FILE).replace(/^Thrown: /, '')}`;
		process.stderr.write(shown);
		process.exitCode = 1;
		const isError = error instanceof Error;
		const type = isError ? cut(String(error.name)) : 'Thrown';
		const message = isError ? String(error.message) : typeof error === 'string' ? error : util.inspect(error);
		tell({ error: { type, message: cut(message), traceback: cut(shown) } });
	}

	/** What node -e alone has. */
	function tidy() {
		for (const name of ['module', 'exports', 'require', '__filename', '__dirname', ...builtinModules])
			if (!['crypto', 'console', 'process'].includes(name))
				delete globalThis[name];
	}

	/** Node warns of the loader that import() goes by when it is first used. */
	async function hush() {
		const { emitWarning } = process;
		process.emitWarning = () => {};
		try {
			await new vm.Script("import('node:path')", { importModuleDynamically: importing }).runInThisContext();
		} catch { // then it fails in the code, too, and says why
		} finally {
			process.emitWarning = emitWarning;
		}
	}

	async function main(code) {
		const body = compile(code, FILE, importing);
		await hush();
		tidy();
		let isOver = false;
		process.once('beforeExit', () => {
			if (!isOver)
				complain(new Error('the code waits for something that will never happen'), code);
		});
		const value = await body();
		isOver = true;
		if (value !== undefined)
			console.log(value);
		tellValue(value);
	}

	const code = given === '-' ? fs.readFileSync(0, 'utf8') : given;
	main(code).catch((error) => {
		complain(error, code);
		process.exit(1);
	});
})();
