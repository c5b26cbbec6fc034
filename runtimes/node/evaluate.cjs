// SPDX-License-Identifier: Apache-2.0
/*
 * vitro eval: code as the body of a strict async function. node -e TEXT -- CODE | -, where TEXT is this file: a cell
 * need not read it. What it returns is printed, as node -p prints it, unless it is undefined.
 */
'use strict';
(() => {
	const vm = require('node:vm');
	const util = require('node:util');
	const FILE = '<eval>';
	const AsyncFunction = (async () => {}).constructor;
	const importing = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER ?? ((name) => import(name));

	function complain(error) {
		const shown = util.inspect(error).split('\n').filter((line) => !/^\s+at .*(?:\[eval\]|node:)/.test(line)).join('\n');
		process.stderr.write(`Uncaught ${shown}\n`);
		process.exitCode = 1;
	}

	async function main() {
		const code = process.argv[1] === '-' ? require('node:fs').readFileSync(0, 'utf8') : process.argv[1];
		process.argv.splice(1, 1);
		const script = new vm.Script(`(async function () { "use strict";\n${code}\n})`,
			{ filename: FILE, lineOffset: -1, importModuleDynamically: importing });
		void new AsyncFunction(`"use strict";\n${code}`); // it is one body, and not the end of one and more behind it
		let isOver = false;
		process.once('beforeExit', () => {
			if (!isOver)
				complain(new Error('the code waits for something that will never happen'));
		});
		const value = await script.runInThisContext()();
		isOver = true;
		if (value !== undefined)
			console.log(value);
	}

	main().catch((error) => {
		complain(error);
		process.exit(1);
	});
})();
