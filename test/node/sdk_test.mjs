#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// The package with a real supervisor: commands, how calls end, what ends with what. Code in cells is eval_test.mjs.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

import * as vitro from '../../sdk/node/index.js';
import { BINARY, ROOT, check, checkEqual, checkIn, checkThrows, childrenOf, descendants, eventually, isAlive, main, test } from '../lib/vitrotest.mjs';
import { POLICY, withSandbox } from './sandbox.mjs';

test('run: a command, its words, its input and its result', () => withSandbox(async (sandbox) => {
	const result = await sandbox.run(['sh', '-c', 'cat; echo "$1" >&2', 'sh', 'a b\n*'], { stdin: 'in', callId: 'mine' });
	checkEqual([result.ok, result.status, result.stdout, result.stderr, result.exitCode, result.signal, result.callId], [true, 'ok', 'in', 'a b\n*\n', 0, null, 'mine'], 'the result');
	check(result.usage.wallMs > 0 && result.isolation.level, 'usage and isolation');
	const bytes = await sandbox.run(['cat'], { stdin: Uint8Array.of(0, 255) });
	checkEqual([...bytes.stdoutBytes, bytes.stdout], [0, 255, '\0\ufffd'], 'bytes');
	checkEqual(JSON.parse(JSON.stringify(bytes)).stdout, '\0\ufffd', 'as JSON');
	checkEqual((await sandbox.run(['echo', 'no shell: $HOME;'])).stdout, 'no shell: $HOME;\n', 'no shell reads it');
}));

test('run: one cause, one class of error, and all carry the result', () => withSandbox(async (sandbox) => {
	const error = await checkThrows(vitro.ToolError, () => sandbox.run(['sh', '-c', 'echo out; exit 3']), 'another code');
	checkEqual([error.name, error.result.exitCode, error.result.stdout, error instanceof vitro.VitroError], ['ToolError', 3, 'out\n', true], 'what it carries');
	const said = await checkThrows(vitro.ToolError, () => sandbox.run(['sh', '-c', 'echo first >&2; echo "last\\033[2J" >&2; exit 3']), 'with words of its own');
	checkEqual([said.message, said.result.error.message], ['exited with code 3: last\\u{1b}[2J', 'exited with code 3'], 'its last words');
	const late = await checkThrows(vitro.Timeout, () => sandbox.run(['sh', '-c', 'echo begun; sleep 30'], { timeout: 300 }), 'a deadline');
	checkEqual([late.result.status, late.result.stdout], ['timeout', 'begun\n'], 'what was printed before');
	checkEqual((await checkThrows(vitro.Crashed, () => sandbox.run(['sh', '-c', 'kill -SEGV $$']), 'a signal')).result.signal, 11, 'which');
	await checkThrows(vitro.ToolError, () => sandbox.run(['sh', '-c', 'exit 127']), 'not found within');
	await checkThrows(vitro.Refused, () => sandbox.run(['no-such-program-anywhere']), 'no such program');
	const refused = await checkThrows(vitro.Refused, () => sandbox.run(['true'], { policy: { limits: { wall_ms: -1 } } }), 'a wrong policy');
	checkIn('limits.wall_ms', refused.message, 'which key');
	checkEqual(refused.result.status, 'refused', 'its result');
}));

test('errors: what a cell wrote reaches no terminal as it is', () => withSandbox(async (sandbox) => {
	const error = await checkThrows(vitro.ToolError, () => sandbox.eval("throw new Error('a\\u001b[2Jb\\u202ec\\n\\td')"), 'it throws');
	checkIn('a\\u{1b}[2Jb\\u{202e}c\n\td', error.message, 'the message');
	checkEqual(error.result.error.message, 'a\u001b[2Jb\u202ec\n\td', 'and the result as it was');
	const code = "console.log('log\\u202e'); process.stdout.write('out\\u2028'); throw Object.assign(new Error('b\\u2066'), { name: 'A\\u202e\\nat forged' })";
	const named = await checkThrows(vitro.ToolError, () => sandbox.eval(code), 'a name of its own');
	checkEqual(named.type, 'A\u202e\nat forged', 'the name as it was');
	checkEqual(named.stack.split('\n')[0], 'ToolError: A\\u202e\\nat forged: b\\u{2066}', 'the first line that is printed');
	for (const colors of [false, true])
		for (const text of [inspect(named, { colors, depth: 8 }), inspect(named.result, { colors })]) {
			checkIn('log\\u{202e}', text, 'what it logged');
			checkEqual(text.match(/[\u202e\u2028\u2066]/g), null, 'marks that steer a terminal');
			checkEqual(text.includes('\u001b['), colors, "inspect()'s own colours");
		}
}));

test('run: result: true throws nothing but TypeErrors of wrong options, which nobody may look at a result for', () => withSandbox(async (sandbox) => {
	for (const [argv, options, status] of [
		[['false'], {}, 'error'], [['sleep', '9'], { timeout: 50 }, 'timeout'], [['no-such-program-anywhere'], {}, 'refused'],
		[['a\0b'], {}, 'refused'], [['true'], { timeout: -1 }, 'refused'], [['true'], { timeout: NaN }, 'refused'],
		[['true'], { signal: AbortSignal.abort() }, 'cancelled'], [['true'], { callId: 'x'.repeat(300) }, 'refused'],
		[['echo', 'x'], { onStdout: () => { throw new Error('mine'); } }, 'ok or cancelled'],
	]) {
		const result = await sandbox.run(argv, { ...options, result: true });
		check(result instanceof vitro.Result && status.split(' or ').includes(result.status), `${JSON.stringify([argv, options])}: ${result.status} ${result.error?.message}`);
		check(result.ok || result.error.message, 'it does not say why');
	}
	for (const [argv, options] of [['ls', {}], [[], {}], [['true'], { nonsense: 1 }], [['true'], { policy: 5 }], [['true'], { timeout: 'x' }], [['true'], { callId: 5 }], [['true'], { stdin: 5 }]])
		await checkThrows(TypeError, () => sandbox.run(argv, { ...options, result: true }), JSON.stringify([argv, options]));
	await checkThrows(TypeError, () => sandbox.eval('', { collect: '*.txt', result: true }), 'a pattern alone');
	checkEqual((await sandbox.eval('', { files: { '../x': '' }, result: true })).status, 'refused', 'a name that may come from elsewhere');
	for (const [argv, options, Class] of [['ls', {}, TypeError], [['true'], { timeout: -1 }, RangeError], [['true'], { nonsense: 1 }, TypeError]])
		await checkThrows(Class, () => sandbox.run(argv, options), JSON.stringify(options));
}));

test('output comes as it is printed, whole characters, in order', () => withSandbox(async (sandbox) => {
	const heard = [];
	const result = await sandbox.run(['sh', '-c', 'printf "\\303"; sleep 0.1; printf "\\251"; echo two >&2; sleep 0.1; printf "\\377"'],
		{ onStdout: (text) => heard.push(['out', text]), onStderr: (text) => heard.push(['err', text]) });
	checkEqual(heard, [['out', 'é'], ['err', 'two\n'], ['out', '\ufffd']], 'what was heard');
	checkEqual(result.stdout, 'é\ufffd', 'and what was kept');
	let lines = 0;
	const many = await sandbox.run(['seq', '300000'], { onStdout: (text) => { lines += text.split('\n').length - 1; } });
	checkEqual([lines, many.dropped.stdout > 0], [300000, true], 'more than is kept');
}));

test('what a call-back throws ends the call, and is thrown', () => withSandbox(async (sandbox) => {
	const began = performance.now();
	const error = await checkThrows(RangeError, () => sandbox.run(['sh', '-c', 'echo x; sleep 30'], { onStdout: () => { throw new RangeError('mine'); } }), 'its own error');
	checkEqual(error.message, 'mine', 'which');
	check(performance.now() - began < 10_000, 'it waited for the command');
}));

test('an AbortSignal ends the cell at once', () => withSandbox(async (sandbox) => {
	const controller = new AbortController();
	const call = sandbox.run(['sh', '-c', 'echo begun; sleep 47'], { signal: controller.signal, onStdout: () => controller.abort(new Error('enough')) });
	const error = await checkThrows(vitro.Cancelled, () => call, 'aborted');
	checkEqual([error.code, error.cause.message, error.result.status, error.result.stdout], ['ABORT_ERR', 'enough', 'cancelled', 'begun\n'], 'what it carries');
	await eventually(async () => (await sandbox.counts()).live === 0, 'no cell is left');
	const before = await checkThrows(vitro.Cancelled, () => sandbox.run(['true'], { signal: AbortSignal.abort('no') }), 'before it began');
	checkEqual(before.cause, 'no', 'its reason');
	const listeners = new AbortController();
	await sandbox.run(['true'], { signal: listeners.signal });
	listeners.abort(); // of a call that is over: nothing happens
	checkEqual((await sandbox.run(['echo', 'on'])).stdout, 'on\n', 'the sandbox goes on');
}));

test('many calls at once, each with its own result', () => withSandbox(async (sandbox) => {
	const results = await Promise.all(Array.from({ length: 40 }, (_, index) => sandbox.run(['echo', String(index)])));
	checkEqual(results.map(({ stdout }) => stdout), Array.from({ length: 40 }, (_, index) => `${index}\n`), 'what they printed');
}));

test('large input and output', () => withSandbox(async (sandbox) => {
	const data = Buffer.alloc(20 << 20, 'vitro\n');
	const { stdoutBytes } = await sandbox.run(['cat'], { stdin: data, policy: { ...POLICY, limits: { stdout_kb: 30 << 10 } } });
	check(stdoutBytes.equals(data), `${stdoutBytes.length} bytes came back`);
}));

test('a timeout can be longer than the default', () => withSandbox(async (sandbox) => {
	checkEqual((await sandbox.run(['echo', 'x'], { timeout: 100_000 })).stdout, 'x\n', 'it runs');
	await checkThrows(RangeError, () => sandbox.run(['true'], { timeout: 86_400_001 }), 'more than a day');
}));

test('a policy: a name, an object, a file, paths by the working directory', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-policy-'));
	chmodSync(folder, 0o755);
	try {
		writeFileSync(join(folder, 'hello.txt'), 'hello', { mode: 0o644 });
		writeFileSync(join(folder, 'policy.json'), JSON.stringify({ require: 'best-effort', files: { read: ['.'] } }), { mode: 0o644 });
		const file = join(folder, 'hello.txt');
		await withSandbox(async (sandbox) => {
			await checkThrows(vitro.ToolError, () => sandbox.run(['cat', file]), 'not granted');
			checkEqual((await sandbox.run(['cat', file], { policy: { ...POLICY, files: { read: [folder] } } })).stdout, 'hello', 'an object');
			checkEqual((await sandbox.run(['cat', file], { policy: join(folder, 'policy.json') })).stdout, 'hello', 'a file');
			checkEqual((await sandbox.run(['cat', '/else/hello.txt'], { policy: { ...POLICY, files: { read: [{ from: new URL(`file://${folder}`), to: '/else' }] } } })).stdout, 'hello', 'moved');
			const { vitro: version, node } = await sandbox.capabilities();
			check(version && /^\/.*node, (forked|started anew) for each call/.test(node), `capabilities: ${node}`);
		});
	} finally {
		rmSync(folder, { recursive: true });
	}
});

test("a policy that is null or undefined is the sandbox's own", () => withSandbox(async (sandbox) => {
	for (const policy of [undefined, null]) {
		checkEqual((await sandbox.run(['sh', '-c', 'echo $MARK'], { policy })).stdout, 'set\n', `a call: ${policy}`);
		checkEqual((await sandbox.run(['sh', '-c', 'echo $MARK'], { policy, timeout: 60_000 })).stdout, 'set\n', `with a longer deadline: ${policy}`);
		checkEqual((await sandbox.capabilities(policy)).network, 'host', `capabilities: ${policy}`);
	}
	checkEqual((await sandbox.run(['sh', '-c', 'echo $MARK'], { policy: POLICY })).stdout, '\n', 'the control: another one');
}, { policy: { ...POLICY, network: 'host', env: { set: { MARK: 'set' } } } }));

test('an onSupervisorLog that throws is a warning, and calls go on', async () => {
	const warnings = [];
	const hear = (warning) => warnings.push(warning);
	process.on('warning', hear);
	let lines = 0;
	const onSupervisorLog = () => {
		lines++;
		throw new Error('mine');
	};
	try {
		await withSandbox(async (sandbox) => {
			const [first, second] = await Promise.all([1, 2].map((n) => sandbox.run(['echo', String(n)])));
			checkEqual([first.stdout, second.stdout], ['1\n', '2\n'], 'calls');
			await sandbox.eval('return 1'); // whose pool cannot load that ahead
		}, { onSupervisorLog, preload: ['no-such-module-anywhere'] });
		await sleep(0);
	} finally {
		process.off('warning', hear);
	}
	check(lines, 'nothing was logged');
	checkEqual(warnings.filter(({ name, message }) => name === 'VitroWarning' && message.includes('onSupervisorLog threw: Error: mine')).length, lines, 'warnings');
	await checkThrows(TypeError, () => new vitro.Sandbox({ onSupervisorLog: 5 }), 'what is no function');
});

test('close() ends calls, and the supervisor', async () => {
	const sandbox = new vitro.Sandbox({ policy: POLICY });
	await sandbox.run(['true']);
	const [supervisor] = childrenOf(process.pid);
	const call = checkThrows(vitro.Cancelled, () => sandbox.run(['sleep', '48']), 'it was under way');
	await eventually(async () => (await sandbox.counts()).live === 1, 'it runs');
	await sandbox.close();
	await call;
	check(!isAlive(supervisor), 'the supervisor is alive');
	await checkThrows(vitro.Refused, () => sandbox.run(['true']), 'after close()');
	await sandbox.close();
	if (Symbol.asyncDispose !== undefined)
		checkEqual(typeof sandbox[Symbol.asyncDispose], 'function', 'for `await using`');
});

test('a supervisor that dies takes its calls with it; the next call has another', () => withSandbox(async (sandbox) => {
	await sandbox.run(['true']);
	const [supervisor] = childrenOf(process.pid);
	const call = checkThrows(vitro.Lost, () => sandbox.run(['sleep', '49']), 'it was under way');
	await eventually(async () => (await sandbox.counts()).live === 1, 'it runs');
	process.kill(supervisor, 'SIGKILL');
	await call;
	checkEqual((await sandbox.run(['echo', 'again'])).stdout, 'again\n', 'another one');
	check(childrenOf(process.pid)[0] !== supervisor, 'it is the same');
}));

/** A program that uses the package; what it prints first tells that it got there. */
/** before: what a shell does first. */
function startProgram(text, before = '') {
	const code = `import { Sandbox } from ${JSON.stringify(join(ROOT, 'sdk', 'node', 'index.js'))};\nconst sandbox = new Sandbox({ policy: ${JSON.stringify(POLICY)} });\n${text}`;
	return spawn('sh', ['-c', `${before}exec "$0" --input-type=module -e "$1"`, process.execPath, code], { stdio: ['ignore', 'pipe', 'inherit'] });
}

test('a program that is killed takes its supervisor and its cells with it', async () => {
	const program = startProgram("sandbox.run(['sh', '-c', 'echo x; exec sleep 50'], { onStdout: () => console.log('begun') }).catch(() => {});");
	await once(program.stdout, 'data');
	const below = descendants(program.pid);
	check(below.length > 1, 'nothing runs');
	const ended = once(program, 'exit');
	program.kill('SIGKILL');
	await ended;
	await eventually(() => !below.some(isAlive), 'all of it is gone');
});

test('a sandbox that nobody waits for does not keep its program alive', async () => {
	const began = performance.now();
	const program = startProgram("console.log((await sandbox.run(['echo', 'x'])).stdout);");
	const [code] = await once(program, 'exit');
	checkEqual(code, 0, 'it ended by itself');
	check(performance.now() - began < 20_000, 'it hung');
});

test('a program that waits is kept alive by its call', async () => {
	const program = startProgram("await sandbox.run(['sleep', '1']); console.log('waited');");
	const heard = once(program.stdout, 'data');
	const [code] = await once(program, 'exit');
	checkEqual([code, String((await heard)[0])], [0, 'waited\n'], 'what it did');
});

test('what is wrong with the program is said: VITRO_BINARY, one that is no supervisor, one that dies', async () => {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-binary-'));
	const keep = process.env.VITRO_BINARY;
	try {
		for (const [binary, Class, says] of [[join(folder, 'none'), vitro.Unsupported, 'cannot be executed'], ['/bin/false', vitro.Lost, 'does not work as a supervisor'], [join(folder, 'says'), vitro.Lost, 'no room']]) {
			writeFileSync(join(folder, 'says'), '#!/bin/sh\necho "no room" >&2\nexit 125\n', { mode: 0o755 });
			process.env.VITRO_BINARY = binary;
			const sandbox = new vitro.Sandbox();
			checkIn(says, (await checkThrows(Class, () => sandbox.run(['true']), binary)).message, binary);
			checkEqual((await sandbox.run(['true'], { result: true })).ok, false, 'as a result');
			await sandbox.close();
		}
	} finally {
		process.env.VITRO_BINARY = keep;
		rmSync(folder, { recursive: true });
	}
});

test('a program that has no descriptors left, or too large an environment, is told so and goes on', async () => {
	const program = startProgram(`
		import { closeSync, openSync } from 'node:fs';
		const told = [];
		for (const free of [0, 1, 2, 3]) {
			const files = [];
			try {
				for (;;)
					files.push(openSync('/dev/null'));
			} catch {}
			files.splice(0, free).forEach((fd) => closeSync(fd));
			const { status, error } = await sandbox.run(['true'], { result: true });
			told.push([status, /EMFILE/.test(error.message)]);
			files.forEach((fd) => closeSync(fd));
		}
		console.log(JSON.stringify([told, (await sandbox.run(['echo', 'later'])).stdout]));`, 'ulimit -n 1100; ');
	const [[said], [code]] = await Promise.all([once(program.stdout, 'data'), once(program, 'exit')]);
	checkEqual([code, JSON.parse(said)], [0, [Array(4).fill(['lost', true]), 'later\n']], 'without descriptors, and then with some');
	const long = startProgram(`
		process.env.LONG = 'x'.repeat(200_000); // longer than the kernel takes it
		console.log(JSON.stringify(await sandbox.run(['true']).catch((error) => [error.name, error.message.includes('E2BIG')])));`);
	checkEqual(JSON.parse((await once(long.stdout, 'data'))[0]), ['Lost', true], 'what is not executed');
});

/** Has a server do something, and ends it; with the tools of a manifest, where there is one. */
async function withServer(manifest, act) {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-serve-'));
	const path = join(folder, 's');
	if (manifest !== null)
		writeFileSync(join(folder, 'tools.json'), JSON.stringify(manifest));
	writeFileSync(join(folder, 'own.mjs'), 'export function weigh({ items }) { return { total: items.reduce((a, b) => a + b, 0), list: items }; }');
	const server = spawn(BINARY, ['serve', '--socket', path, ...manifest === null ? [] : ['--tools', join(folder, 'tools.json')]], { stdio: 'ignore' });
	try {
		await eventually(() => statSync(path, { throwIfNoEntry: false })?.isSocket(), 'the server listens');
		await withSandbox((sandbox) => act(sandbox, server), { socket: path });
	} finally {
		server.kill('SIGKILL');
		rmSync(folder, { recursive: true });
		await sleep(0);
	}
}

test('a server in place of a supervisor of its own', () => withServer(null, async (sandbox, server) => {
	checkEqual((await sandbox.run(['echo', 'served'])).stdout, 'served\n', 'a call');
	checkIn('tools', (await checkThrows(vitro.Refused, () => sandbox.serverTools(), 'no tools')).message, 'why');
	const { vitro: version, node } = await sandbox.capabilities();
	check(version && node === undefined, `what this machine has says nothing of the server's: ${node}`);
	const ended = once(server, 'exit');
	server.kill('SIGTERM');
	await ended;
	const gone = await checkThrows(vitro.Refused, () => sandbox.run(['true']), 'when it is gone');
	checkIn('; start one: vitro serve --socket PATH', gone.message, 'what to do');
	await withSandbox(async (none) => {
		const { message, result } = await checkThrows(vitro.Refused, () => none.run(['true']), 'where there never was one');
		checkEqual([message, result.status], ["no server can be reached at '/nowhere/socket': no such file or directory; start one: vitro serve --socket PATH", 'refused'], 'nothing was begun');
	}, { socket: '/nowhere/socket' });
	for (const [socket, why] of [['/usr', 'it is a folder; name the socket in it'], ['/etc/passwd', 'it is no socket']])
		await withSandbox(async (none) => {
			checkEqual((await checkThrows(vitro.Refused, () => none.run(['true']), socket)).message, `no server can be reached at '${socket}': ${why}`, 'what is there');
		}, { socket });
}));

const HAS_NODE = existsSync(join(dirname(BINARY), 'node', 'harness.cjs'));
const SERVED = {
	policy: { require: 'best-effort' },
	tools: [
		{ name: 'say', description: 'Says it.', input_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }, command: ['echo', '-n', '--', '{text}'] },
		{ name: 'fail', command: ['sh', '-c', 'echo why >&2; exit 3'] },
		{ name: 'nap', command: ['sleep', '30'] },
		...HAS_NODE ? [{ name: 'shop:weigh', node: 'own.mjs#weigh' }] : [],
	],
};

test("a server's own tools are listed and called, also by code in a cell", () => withServer(SERVED, async (sandbox) => {
	const tools = await sandbox.serverTools();
	checkEqual(tools.map(({ name }) => name).sort(), SERVED.tools.map(({ name }) => name).sort(), 'their names');
	checkEqual(tools.find(({ name }) => name === 'say').inputSchema.required, ['text'], 'a schema');
	checkEqual(await sandbox.callTool('say', { text: '{"a": [1]}' }).then((value) => JSON.stringify(value)), JSON.stringify('-- {"a": [1]}'), 'what a command prints');
	const heard = [];
	const whole = await sandbox.callTool('say', { text: 'x' }, { result: true, onStdout: (text) => heard.push(text), callId: 'mine' });
	checkEqual([whole.status, whole.callId, heard.join('')], ['ok', 'mine', '-- x'], 'a whole result');
	checkIn('why', (await checkThrows(vitro.ToolError, () => sandbox.callTool('fail'), 'a failure')).message, 'its last words');
	await checkThrows(vitro.Timeout, () => sandbox.callTool('nap', {}, { timeout: 200 }), 'a timeout');
	await checkThrows(vitro.Cancelled, () => sandbox.callTool('nap', {}, { signal: AbortSignal.timeout(100) }), 'aborted');
	for (const [name, args] of [['none', {}], ['say', {}], ['say', { text: 5 }]])
		await checkThrows(vitro.Refused, () => sandbox.callTool(name, args), `${name} ${JSON.stringify(args)}`);
	for (const act of [() => sandbox.callTool('say', 'x'), () => sandbox.callTool('', {}), () => sandbox.callTool('say', { text: 'x' }, { policy: 'strict' })])
		await checkThrows(TypeError, act, 'a wrong call');
	if (!HAS_NODE)
		return;
	checkEqual(await sandbox.callTool('shop:weigh', { items: [1, 2] }), { total: 3, list: [1, 2] }, 'a function of Node');
	checkEqual(await sandbox.eval("return [await say({ text: 'a' }), await tools['say']({ text: 'b' }).catch((error) => error.name)]", { tools }), ['-- a', '-- b'], 'from a cell');
	checkIn('text', await sandbox.eval("return say({}).catch((error) => error.message)", { tools }), 'wrong arguments from a cell');
}));

test("a supervisor of one's own has no tools", () => withSandbox(async (sandbox) => {
	checkIn('socket', (await checkThrows(vitro.Refused, () => sandbox.callTool('say', {}), 'a call')).message, 'what to do');
	const result = await sandbox.callTool('say', {}, { result: true, callId: 'mine' });
	checkEqual([result.status, result.error.type, result.callId], ['refused', 'Refused', 'mine'], 'a call whose result is asked for');
	checkIn('socket', result.error.message, 'what to do');
	await checkThrows(vitro.Refused, () => sandbox.serverTools(), 'a list');
}));

test('tool host: commands in cells', async () => {
	const host = new vitro.ToolHost({ policy: POLICY });
	host.register(['sh', '-c', 'cat; if test "$1" = fail; then echo why >&2; exit 4; fi', 'sh', '{mode}'], { name: 'act', input: '{{"n": {n}}}' });
	checkEqual((await host.call('act', { mode: 'go', n: 5 })).value, { n: 5 }, 'its value');
	const failed = await host.call('act', { mode: 'fail', n: 5 });
	checkEqual([failed.status, failed.exitCode, failed.error.message], ['error', 4, 'exited with code 4: why'], 'its failure');
	checkEqual((await host.call('act', { mode: 'go', n: 1 }, { signal: AbortSignal.abort() })).status, 'cancelled', 'aborted');
	await host.close();
});

test('tool host: a function that uses what is around it is told that a cell has none of it', async () => {
	const host = new vitro.ToolHost({ policy: POLICY });
	const outer = 5;
	host.register(() => outer, { name: 'closure' });
	host.register(() => { throw new ReferenceError('it is not defined by us'); }, { name: 'own' });
	checkEqual((await host.call('closure')).error.message, 'outer is not defined; the function is sent as source, and sees nothing of your program', 'a closure');
	checkEqual((await host.call('own')).error.message, 'it is not defined by us', 'its own words');
	await host.close();
});

test('tool host: what a function throws has its own lines, and no URL with all of its source', async () => {
	const host = new vitro.ToolHost({ policy: POLICY });
	host.register(async ({ n }) => {
		const inner = () => {
			throw new RangeError(`no ${n}`);
		};
		return inner();
	}, { name: 'shop:fail/now' });
	const { status, error } = await host.call('shop:fail/now', { n: 5 });
	checkEqual([status, error.type, error.message], ['error', 'RangeError', 'no 5'], 'its failure');
	const frames = error.traceback.split('\n').filter((line) => line.startsWith('    at '));
	checkEqual(frames.map((line) => /<tool:shop:fail\/now>:(\d+):\d+\)?$/.exec(line)?.[1]), ['3', '5'], `frames of ${error.traceback}`);
	check(!error.traceback.includes('data:'), error.traceback);
	await host.close();
});

await main();
