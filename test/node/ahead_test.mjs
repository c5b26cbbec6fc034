#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// What modules that are loaded ahead of calls see, where calls can write: nothing that a call wrote, has, or points at. Where that cannot be
// had, in bare cells, none are loaded ahead.

import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';

import { BINARY, check, checkEqual, checkIn, descendants, main, skip, testNode } from '../lib/vitrotest.mjs';
import { POLICY, withSandbox } from './sandbox.mjs';

const WITHIN = join(dirname(BINARY), 'test', 'matrix', 'vitro-within');
const PLANTED = 'globalThis.planted = process.pid;';

/** A folder that calls can write, one for reading with a module, and a sandbox that loads it ahead. */
class Stage {
	constructor(folder, binary) {
		this.folder = folder;
		this.binary = binary;
		[this.free, this.fixed] = ['free', 'fixed'].map((name) => join(folder, name));
		for (const path of [this.free, this.fixed])
			mkdirSync(path);
		chmodSync(this.free, 0o777); // a bare cell of root's has a user of its own
		this.module = join(this.fixed, 'ahead.cjs');
		this.policy = { ...POLICY, files: { write: [this.free], read: [this.fixed] } };
	}

	write(text) {
		writeFileSync(this.module, `const fs = require('fs'), FREE = ${JSON.stringify(this.free)}; exports.pid = process.pid;\n${text}`);
	}

	async with(act, more = { preload: [this.module] }) {
		process.env.VITRO_BINARY = this.binary;
		try {
			return await withSandbox(act, { policy: this.policy, ...more });
		} finally {
			process.env.VITRO_BINARY = BINARY;
		}
	}

	/** What a call finds: what was planted ahead of it, its own number, and what the module says. */
	look(sandbox) {
		return sandbox.eval(`const planted = globalThis.planted ?? null;
return { planted, pid: process.pid, ahead: { ...(await import(${JSON.stringify(pathToFileURL(this.module).href)})).default } }`);
	}
}

/** A test in namespaces, and where there are none. */
function both(name, run) {
	for (const kind of ['cells in namespaces', 'bare cells'])
		testNode(`ahead: ${kind}: ${name}`, async () => {
			if (parseInt(process.versions.node, 10) < 20)
				skip('this Node is not forked');
			const folder = mkdtempSync(join(tmpdir(), 'vitro-test-ahead-'));
			try {
				chmodSync(folder, 0o755);
				const isBare = kind === 'bare cells', poorer = join(folder, 'vitro');
				writeFileSync(poorer, `#!/bin/sh\nexec '${WITHIN}' --deny-userns -- '${BINARY}' "$@"\n`, { mode: 0o755 });
				await run(new Stage(folder, isBare ? poorer : BINARY), isBare);
			} finally {
				rmSync(folder, { recursive: true });
			}
		});
}

function checkPlanted({ planted, pid }, what) {
	check(planted === null || planted === pid, () => `${what}: process ${planted} has run it, ahead of the call`);
}

/** Whether a module was loaded ahead of calls is as it should be. */
function checkAhead({ pid, ahead }, isBare) {
	checkEqual(ahead.pid !== pid, !isBare, 'it was loaded ahead');
}

both('a module sees what calls can write as empty, by whatever way, and so do programs that it starts; in a call it is there', async (stage, isBare) => {
	writeFileSync(join(stage.free, 'own.js'), 'exports.text = "of a call"');
	symlinkSync(stage.free, join(stage.fixed, 'link'));
	stage.write(`const look = (act) => { try { return act() } catch (error) { return error.code ?? 'failed' } };
const run = (...words) => require('child_process').execFileSync(words[0], words.slice(1), { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
exports.before = { names: look(() => fs.readdirSync(FREE)), through: look(() => fs.readdirSync(__dirname + '/link')),
	text: look(() => fs.readFileSync(FREE + '/own.js', 'utf8')), required: look(() => require(FREE + '/own.js').text),
	listed: look(() => run('/bin/ls', FREE)), read: look(() => run('/bin/cat', FREE + '/own.js')) };`);
	copyFileSync(stage.module, join(stage.fixed, 'again.cjs'));
	await stage.with(async (sandbox) => {
		const found = await stage.look(sandbox);
		checkAhead(found, isBare);
		const text = 'exports.text = "of a call"';
		const all = { names: ['own.js'], through: ['own.js'], text, required: 'of a call', listed: 'own.js\n', read: text };
		const none = { names: [], through: [], text: 'ENOENT', required: 'MODULE_NOT_FOUND', listed: '', read: 'failed' };
		checkEqual(found.ahead.before, isBare ? all : none, 'what it saw');
		stage.module = join(stage.fixed, 'again.cjs');
		checkEqual((await stage.look(sandbox)).ahead.before, all, 'in a call');
	});
});

both('links lead to nothing that a running call has: its words, what is in its root, its private folder, its pipes', async (stage, isBare) => {
	stage.write(`for (const name of fs.readdirSync(FREE)) try { eval(fs.readFileSync(FREE + '/' + name, 'utf8')) } catch {}`);
	const words = `${PLANTED}//`;
	await stage.with(async (sandbox) => {
		const first = await stage.look(sandbox), zygote = first.ahead.pid;
		checkAhead(first, isBare);
		if (isBare)
			return;
		const end = new AbortController();
		let tell;
		const told = new Promise((settle) => { tell = settle; });
		const running = sandbox.eval(`const fs = await import('node:fs'), { spawn } = await import('node:child_process'), { tmpdir } = await import('node:os');
			const link = (to, name) => fs.symlinkSync(to, ${JSON.stringify(`${stage.free}/`)} + name + '.js');
			fs.writeFileSync(tmpdir() + '/own.js', ${JSON.stringify(PLANTED)});
			link(tmpdir() + '/own.js', 'private');
			for (let count = 0; count < 20; count++) {
				const { pid } = spawn('/bin/sleep', ['50'], { argv0: ${JSON.stringify(words)}, stdio: 'ignore' });
				spawn('/bin/sh', ['-c', 'echo ' + ${JSON.stringify(`'${PLANTED}'`)} + ' | sleep 50'], { stdio: 'ignore' });
				for (const number of pid > 1000 ? [pid] : [pid, pid + 20, pid + 40]) { // others in the zygote's proc, and near
					fs.rmSync(${JSON.stringify(`${stage.free}/`)} + 'words-' + number + '.js', { force: true });
					fs.rmSync(${JSON.stringify(`${stage.free}/`)} + 'root-' + number + '.js', { force: true });
					fs.rmSync(${JSON.stringify(`${stage.free}/`)} + 'pipe-' + number + '.js', { force: true });
					link('/proc/' + number + '/cmdline', 'words-' + number);
					link('/proc/' + number + '/fd/0', 'pipe-' + number);
					link('/proc/' + number + '/root' + tmpdir() + '/own.js', 'root-' + number);
				}
			}
			await tools.tell({});
			await new Promise((settle) => setTimeout(settle, 50_000))`, { tools: { tell }, signal: end.signal }).catch((error) => tell(error));
		checkEqual(await told, {}, 'what a call says');
		check(descendants().some((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(words)), 'nobody has the words');
		process.kill(zygote, 'SIGKILL'); // the next one is started while the call runs
		for (let ahead = { pid: zygote }; ahead.pid === zygote;) { // cells that it made are used first
			const found = await stage.look(sandbox);
			checkPlanted(found, 'what a link leads to');
			ahead = found.ahead;
		}
		end.abort();
		await running;
	});
});

both('a link leads to nothing that calls cannot read', async (stage, isBare) => {
	const secret = join(stage.folder, 'secret');
	mkdirSync(secret);
	writeFileSync(join(secret, 'key'), 'hunter2');
	stage.write(`const look = (act) => { try { return act() } catch (error) { return error.code } };
exports.text = look(() => fs.readFileSync(FREE + '/settings/key', 'utf8'));
exports.names = look(() => fs.readdirSync(FREE + '/settings'));
exports.own = look(() => fs.readFileSync(__filename, 'utf8').length > 0);`);
	await stage.with((sandbox) => sandbox.eval(`(await import('node:fs')).symlinkSync(${JSON.stringify(secret)}, ${JSON.stringify(join(stage.free, 'settings'))})`), {});
	checkEqual(readFileSync(join(stage.free, 'settings', 'key'), 'utf8'), 'hunter2', 'what the caller reads by the link');
	await stage.with(async (sandbox) => {
		const found = await stage.look(sandbox), { ahead } = found;
		checkAhead(found, isBare);
		check(['ENOENT', 'EACCES'].includes(ahead.text), () => `a call has ${ahead.text}`);
		check(['ENOENT', 'EACCES'].includes(ahead.names), () => `a call has the names ${ahead.names}`);
		checkEqual(ahead.own, true, 'what it may read');
	});
});

both('a thread that a module starts later runs nothing that a call wrote', async (stage) => {
	// harness.tidy() leaves no words behind: all modules have been looked at by then.
	stage.write(`const { Worker } = require('worker_threads'), words = process.execArgv;
const code = \`const own = \${JSON.stringify(FREE + '/own.js')};
setInterval(() => { try { eval(require('fs').existsSync(own) ? require('fs').readFileSync(own, 'utf8') : '') } catch {} }, 20)\`;
const timer = setInterval(() => {
	if (process.execArgv === words)
		return;
	clearInterval(timer);
	new Worker(code, { eval: true }).unref();
}, 1);`);
	await stage.with(async (sandbox) => {
		await sandbox.eval('return 1'); // it is ready, and opens nothing any more
		writeFileSync(join(stage.free, 'own.js'), `require('fs').mkdirSync(${JSON.stringify(`${stage.free}/ran-`)} + process.pid);`);
		for (let count = 0; count < 3; count++, await sleep(300))
			await sandbox.eval('return 1');
		checkEqual(readdirSync(stage.free), ['own.js'], 'what ran');
	});
});

both('a named pipe in the place of a module is not waited for', async (stage) => {
	stage.write("try { require(FREE + '/pipe.js') } catch {}");
	await stage.with((sandbox) => sandbox.eval(`(await import('node:child_process')).execFileSync('mkfifo', [${JSON.stringify(join(stage.free, 'pipe.js'))}])`), {});
	await stage.with(async (sandbox) => checkEqual(await sandbox.eval('return 5'), 5, 'a call'));
});

both('a program in the place of the zygote', async (stage) => {
	if (!process.execve)
		skip('this Node has no process.execve()');
	stage.write(`try { process.execve('/bin/sh', ['sh', '-c', 'mkdir ' + FREE + '/ran-$$'], {}) } catch {}`);
	await stage.with(async (sandbox) => {
		await sandbox.eval('return 1');
		checkEqual(readdirSync(stage.free), [], 'what ran');
	});
});

both('what a module says is written out in the log', async (stage, isBare) => {
	stage.write("throw new Error('x\\x1b[2J\\nall is well\\u202e')");
	const lines = [];
	await stage.with((sandbox) => sandbox.eval('return 1'), { preload: [stage.module, 'x'.repeat(300)], onSupervisorLog: (_, text) => lines.push(text) });
	const all = lines.filter((text) => text.includes('is not loaded ahead of calls'));
	checkEqual(all.length, 2, 'how many are told of');
	checkIn(isBare ? 'calls may write here' : 'Error: x\\u001b[2J\\nall is well\\u202e', all.join(' '), 'what it says');
	checkIn(isBare ? 'calls may write here' : 'its name has more than 255 bytes', all.join(' '), 'what it says');
});

both('what a module takes from there to elsewhere', async (stage) => {
	for (const name of ['moved', 'linked'])
		writeFileSync(join(stage.free, `${name}.js`), PLANTED, { mode: 0o666 });
	const there = JSON.stringify(stage.folder);
	stage.write(`try { fs.renameSync(FREE + '/moved.js', ${there} + '/moved.js'); require(${there} + '/moved.js') } catch {}
try { fs.linkSync(FREE + '/linked.js', ${there} + '/linked.js'); require(${there} + '/linked.js') } catch {}`);
	await stage.with(async (sandbox) => checkPlanted(await stage.look(sandbox), 'what was moved'));
	checkIn('moved.js', readdirSync(stage.free), 'what was not moved');
	renameSync(join(stage.free, 'moved.js'), join(stage.folder, 'moved.js')); // as it could have been
});

await main();
