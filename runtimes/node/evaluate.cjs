// SPDX-License-Identifier: Apache-2.0
/*
 * vitro eval: code as the body of a strict async function. node -e TEXT -- CODE | -, where TEXT is complain.cjs, whose
 * exports `module` then has, and this file: a cell need not read them. What the code returns is printed, as node -p prints
 * it, unless it is undefined. Apart from that it finds what code finds in calls of the package.
 */
(() => {
	'use strict';
	const vm = require('node:vm');
	const { builtinModules } = require('node:module');
	const { compile, show } = module.exports;
	const read = require;
	const FILE = '<eval>';
	const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((name) => import(name));

	function complain(error, code) {
		process.stderr.write(`Uncaught ${show(error, code, FILE).replace(/^Thrown: /, '')}`);
		process.exitCode = 1;
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
		process.argv.splice(1, 1);
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
	}

	const code = process.argv[1] === '-' ? read('node:fs').readFileSync(0, 'utf8') : process.argv[1];
	main(code).catch((error) => {
		complain(error, code);
		process.exit(1);
	});
})();
