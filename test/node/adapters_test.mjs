#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Adapters for agent frameworks: by themselves, and driven by the frameworks (test/node/frameworks) where tools/setup could
// fetch them. No model is asked: its answers are scripted.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { codeTool, SandboxSession } from '../../sdk/node/adapters/ai.js';
import { sandboxBackend } from '../../sdk/node/adapters/deepagents.js';
import { Shell } from '../../sdk/node/adapters/openai-agents.js';
import { Workspace } from '../../sdk/node/adapters/workspace.js';
import { ToolError, VitroError } from '../../sdk/node/index.js';
import { BINARY, ROOT, check, checkEqual, checkIn, checkThrows, eventually, main, skip, testNode as test } from '../lib/vitrotest.mjs';
import { POLICY, withSandbox } from './sandbox.mjs';

const BIN = process.env.VITRO_TEST_BIN ?? join(dirname(BINARY), 'test');
const NPM = process.env.VITRO_TEST_NPM ?? join(ROOT, 'build', 'npm');

/** A package of a framework. */
async function load(name) {
	if (!existsSync(join(NPM, 'stamp')))
		skip('build/npm has no frameworks: tools/setup test');
	if (parseInt(process.versions.node, 10) < 20)
		skip('the frameworks need Node 20');
	const { load: loadThere } = await import(pathToFileURL(join(NPM, 'load.mjs')));
	return loadThere(name);
}

/** Has an adapter do something, with a folder of the host's to work in. */
async function withAdapter(make, act, options = {}) {
	const folder = mkdtempSync(join(tmpdir(), 'vitro-test-adapter-'));
	const adapter = make({ policy: POLICY, folder, ...options });
	try {
		return await act(adapter, folder);
	} finally {
		await adapter.close();
		rmSync(folder, { recursive: true });
	}
}

const session = (options) => new SandboxSession(options);
const shell = (options) => new Shell(options);

/** The class of what a backend inherits, without the framework. */
class StandIn {
	async grep(...words) {
		return words;
	}

	async glob(_pattern, path) {
		return { files: [{ path: 'a' }], in: path };
	}
}
const backend = (options) => sandboxBackend(StandIn, options);

async function readAll(stream) {
	return Buffer.from(await new Response(stream).arrayBuffer()).toString();
}

// ---- the AI SDK --------------------------------------------------------------------------------------------------

test('ai: a session runs commands, with variables and in folders, and says how they ended', () => withAdapter(session, async (one) => {
	checkEqual(await one.run({ command: 'echo out; echo err >&2; exit 3' }), { exitCode: 3, stdout: 'out\n', stderr: 'err\n' }, 'a command');
	checkEqual(await one.run({ command: 'mkdir -p "a b" && cd "a b" && pwd' }), { exitCode: 0, stdout: '/workspace/a b\n', stderr: '' }, 'the folder');
	const env = { NAME: "x; echo '$HOME", EMPTY: '' };
	checkEqual((await one.run({ command: 'pwd; printf "%s|%s" "$NAME" "$EMPTY"', workingDirectory: 'a b', env })).stdout, `/workspace/a b\n${env.NAME}|`, 'variables');
	check((await one.run({ command: 'true', workingDirectory: 'nowhere' })).exitCode !== 0, 'a folder that is not there');
	await checkThrows(TypeError, () => one.run({ command: 'env', env: { 'A;B': 'x' } }), 'a name that is none');
	checkEqual((await one.run({ command: 'kill -9 $$' })).exitCode, 137, 'a signal');
	checkIn('/workspace', one.description, 'what a model is told');
}));

test('ai: a command that runs too long, or is aborted, ends', () => withAdapter(session, async (one) => {
	const late = await one.run({ command: 'sleep 9 & echo begun; sleep 9' });
	checkEqual([late.exitCode, late.stdout], [124, 'begun\n'], 'its end');
	checkIn('deadline', late.stderr, 'why');
	const reason = new Error('enough');
	checkEqual(await checkThrows(Error, () => one.run({ command: 'sleep 9', abortSignal: abortIn(50, reason) }), 'aborted'), reason, 'the reason');
}, { timeout: 700 }));

function abortIn(ms, reason) {
	const controller = new AbortController();
	setTimeout(() => controller.abort(reason), ms);
	return controller.signal;
}

test('ai: files are written, read, listed and deleted', () => withAdapter(session, async (one, folder) => {
	await one.writeTextFile({ path: 'in/a.txt', content: 'one\ntwo\nthree' });
	checkEqual(readFileSync(join(folder, 'in', 'a.txt'), 'utf8'), 'one\ntwo\nthree', 'on the host');
	checkEqual(await one.readTextFile({ path: '/workspace/in/a.txt', startLine: 2, endLine: 9 }), 'two\nthree', 'lines');
	checkEqual(await one.readTextFile({ path: 'in/a.txt', startLine: 1, endLine: 1 }), 'one\n', 'a line');
	const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
	await one.writeFile({ path: 'b', content: new Blob([bytes]).stream() });
	checkEqual(Buffer.from(await one.readBinaryFile({ path: 'b' })), Buffer.from(bytes), 'bytes');
	checkEqual((await new Response(await one.readFile({ path: 'b' })).arrayBuffer()).byteLength, 256, 'a stream');
	await one.writeBinaryFile({ path: 'b', content: new Uint8Array(1) });
	checkEqual([await one.stat({ path: 'b' }), (await one.stat({ path: 'in' })).type], [{ type: 'file', size: 1 }, 'directory'], 'stat');
	await one.run({ command: 'ln -s b link; mkfifo pipe' });
	const listed = (await one.listDirectory({ path: '.' })).sort((a, b) => a.name < b.name ? -1 : 1).map(({ name, type }) => `${name} ${type}`);
	checkEqual(listed, ['b file', 'in directory', 'link symlink', 'pipe other'], 'a folder');
	checkEqual([await one.deleteFile({ path: 'link' }), await one.deleteFile({ path: 'link' }), existsSync(join(folder, 'b'))], [true, false, true], 'deleting');
	const missing = await Promise.all(['readFile', 'readBinaryFile', 'readTextFile', 'stat', 'listDirectory'].map((name) => one[name]({ path: 'x/y' })));
	checkEqual(missing, [null, null, null, null, null], 'what is not there');
	for (const act of [() => one.writeTextFile({ path: 'in', content: '' }), () => one.deleteFile({ path: 'in' }), () => one.listDirectory({ path: 'b' }), () => one.readTextFile({ path: 'in' }), () => one.readTextFile({ path: 'pipe' })])
		check((await checkThrows(Error, act, 'another kind of file')).code !== undefined, 'a code');
}));

test("ai: a link that a command makes leads nowhere but into the cell", () => withAdapter(session, async (one, folder) => {
	const secret = mkdtempSync(join(tmpdir(), 'vitro-test-secret-'));
	try {
		writeFileSync(join(secret, 'key'), 'secret');
		await one.run({ command: `ln -s ${secret}/key stolen; ln -s ${secret} folder` });
		checkEqual(readFileSync(join(folder, 'stolen'), 'utf8'), 'secret', 'the same link on the host');
		checkEqual(await one.readTextFile({ path: 'stolen' }), null, 'what the session reads');
		await one.writeTextFile({ path: 'folder/made', content: 'x' }).catch(() => {});
		check(!existsSync(join(secret, 'made')), 'it wrote outside');
		checkEqual(await one.readTextFile({ path: join(secret, 'key') }), null, 'by its own name');
	} finally {
		rmSync(secret, { recursive: true });
	}
}));

test('ai: a process that is spawned is heard as it runs, and can be killed', () => withAdapter(session, async (one) => {
	const told = await one.spawn({ command: 'printf "a\\377b"; echo e >&2; exit 4' });
	checkEqual([Buffer.from(await new Response(told.stdout).arrayBuffer()).toString('latin1'), await readAll(told.stderr), await told.wait()], ['a\xffb', 'e\n', { exitCode: 4 }], 'bytes and the end');
	const long = await one.spawn({ command: 'echo begun; sleep 99' });
	const { value } = await long.stdout.getReader().read();
	checkEqual(Buffer.from(value).toString(), 'begun\n', 'what it says before its end');
	await long.kill();
	await long.kill();
	checkEqual(await long.wait(), { exitCode: 137 }, 'killed');
	const reason = new Error('enough');
	const aborted = await one.spawn({ command: 'sleep 99', abortSignal: abortIn(50, reason) });
	checkEqual(await checkThrows(Error, () => aborted.wait(), 'aborted'), reason, 'the reason');
	await checkThrows(Error, () => one.spawn({ command: 'cat', stdin: true }), 'an input');
}));

test('ai: output that nobody reads has a bound', () => withAdapter(session, async (one) => {
	const flood = await one.spawn({ command: 'cat /dev/zero' });
	checkIn('waiting to be read', (await checkThrows(Error, () => flood.wait(), 'its end')).message, 'why');
}));

test('ai: a tool runs code, and gives what it says and returns', () => withSandbox(async (sandbox) => {
	const tools = { 'people:born': { description: 'The year.', inputSchema: { type: 'object', required: ['name'] }, run: ({ name }) => ({ ada: 1815 })[name] } };
	const one = codeTool({ sandbox, tools });
	checkIn('await tools["people:born"](params): The year. params: {"type":"object","required":["name"]}', one.description, 'what a model is told');
	checkEqual(await one.execute({ code: "console.log('so'); process.stdout.write('it '); return { year: await people.born({ name: 'ada' }) };" }), 'so\nit {"year":1815}', 'text');
	checkEqual(await one.execute({ code: 'return new Map([[1, 2n]])' }), 'Map(1) { 1 => 2n }', 'a value that JSON cannot say');
	checkEqual(await one.execute({ code: 'console.log(1)' }), '1\n', 'no value');
	const error = await checkThrows(ToolError, () => one.execute({ code: "console.log('first');\nnull.x" }), 'a failure');
	checkIn('first\neval.mjs:2:6\nnull.x\n     ^\n\nTypeError', error.message, 'what a model is told of it');
	await checkThrows(VitroError, () => one.execute({ code: 'for (;;);' }, { abortSignal: AbortSignal.timeout(50) }), 'aborted');
}));

function scripted({ MockLanguageModelV4 }, ...turns) {
	const tokens = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
	return new MockLanguageModelV4({
		doGenerate: turns.map((turn) => ({
			content: [typeof turn === 'string' ? { type: 'text', text: turn } : { type: 'tool-call', toolCallId: 'c1', toolName: turn.tool, input: JSON.stringify(turn.input) }],
			finishReason: { unified: typeof turn === 'string' ? 'stop' : 'tool-calls', raw: undefined }, usage: tokens, warnings: [],
		})),
	});
}

test('ai: generateText() of the AI SDK has a model run code', () => withSandbox(async (sandbox) => {
	const { generateText, stepCountIs } = await load('ai');
	const testing = await load('ai/test');
	const asked = [];
	const run = codeTool({ sandbox, tools: { look: ({ at }) => asked.push(at) && at * 2 } });
	const model = scripted(testing, { tool: 'run', input: { code: 'return await look({ at: 21 })' } }, { tool: 'run', input: { code: 'throw new RangeError("far")' } }, { tool: 'run', input: { cod: 1 } }, 'done');
	const { text, steps } = await generateText({ model, tools: { run }, prompt: 'go', stopWhen: stepCountIs(5) });
	checkEqual([text, asked, steps[0].toolResults[0].output], ['done', [21], '42'], 'the first call');
	checkEqual(model.doGenerateCalls[0].tools[0].inputSchema.required, ['code'], 'the schema that the model has');
	const told = model.doGenerateCalls.map(({ prompt }) => JSON.stringify(prompt.at(-1)));
	checkIn('42', told[1], 'what the model reads');
	checkIn('RangeError: far', told[2], 'what it reads of a failure');
	checkIn("did you mean 'code'?", told[3], 'what it reads of wrong input');
}));

test('ai: generateText() gives the session to tools', () => withAdapter(session, async (one) => {
	const { generateText, stepCountIs, tool, jsonSchema } = await load('ai');
	const bash = tool({
		inputSchema: jsonSchema({ type: 'object', properties: { command: { type: 'string' } } }),
		execute: async ({ command }, { experimental_sandbox: sandbox, abortSignal }) => (await sandbox.run({ command, abortSignal })).stdout,
	});
	await one.writeTextFile({ path: 'n', content: '41' });
	const model = scripted(await load('ai/test'), { tool: 'bash', input: { command: 'echo $(($(cat n) + 1)) | tee m' } }, 'done');
	const { steps } = await generateText({ model, tools: { bash }, prompt: 'go', stopWhen: stepCountIs(3), experimental_sandbox: one });
	checkEqual([steps[0].toolResults[0].output, await one.readTextFile({ path: 'm' })], ['42\n', '42\n'], 'what it did');
}));

// ---- Deep Agents -------------------------------------------------------------------------------------------------

test('deepagents: commands, uploads and downloads, and searches of everything', () => withAdapter(backend, async (one) => {
	checkEqual(await one.execute('echo a; echo b >&2; echo c; exit 2'), { output: 'a\nb\nc\n', exitCode: 2, truncated: false }, 'a command, in its order');
	const late = await one.execute('echo begun; sleep 9');
	checkEqual([late.exitCode, late.output.startsWith('begun\nvitro: ')], [124, true], 'one that takes too long');
	const bytes = new Uint8Array([0, 255]);
	checkEqual(await one.uploadFiles([['/workspace/d/x', bytes], ['/usr/x', bytes], ['/workspace/d', bytes]]), [
		{ path: '/workspace/d/x', error: null }, { path: '/usr/x', error: 'permission_denied' }, { path: '/workspace/d', error: 'is_directory' },
	], 'uploads');
	const got = await one.downloadFiles(['/workspace/d/x', '/workspace/none', '/workspace/d']);
	checkEqual(got.map(({ content, error }) => [content && [...content], error]), [[[0, 255], null], [null, 'file_not_found'], [null, 'is_directory']], 'downloads');
	checkEqual([await one.grep('x', '/'), await one.grep('x', '/usr', '*.c')], [['x', '/workspace'], ['x', '/usr', '*.c']], 'where is searched');
	checkEqual([(await one.glob('*')).files, await one.glob('*', '/usr')], [[{ path: '/workspace/a' }], { files: [{ path: 'a' }], in: '/usr' }], 'what is found');
	check((await one.execute('yes | head -c 9000000')).truncated, 'output beyond the limit');
	check(typeof one.id === 'string' && one.id !== '', 'an id');
}, { timeout: 2000 }));

test('deepagents: the backend is one of the framework, with all that it has', async () => {
	const { BaseSandbox, isSandboxBackend } = await load('deepagents');
	await withAdapter((options) => sandboxBackend(BaseSandbox, options), async (one) => {
		check(isSandboxBackend(one), 'it is none');
		checkEqual((await one.write('/workspace/src/a.js', "const one = 'x';\nconst two = 'x';\n")).error, undefined, 'write');
		checkIn("const one = 'x';", (await one.read('/workspace/src/a.js', 0, 10)).content, 'read');
		checkEqual((await one.edit('/workspace/src/a.js', "'x'", "'y'", true)).occurrences, 2, 'edit');
		checkEqual((await one.ls('/workspace')).files.map(({ path }) => path), ['/workspace/src/'], 'ls');
		checkEqual((await one.grep("'y'")).matches.map(({ path, line }) => [path, line]), [['/workspace/src/a.js', 1], ['/workspace/src/a.js', 2]], 'grep');
		checkEqual((await one.glob('**/*.js')).files.map(({ path }) => path), ['/workspace/src/a.js'], 'glob');
		checkEqual((await one.readRaw('/workspace/src/a.js')).data.mimeType, 'application/javascript', 'readRaw');
		await one.delete('/workspace/src');
		checkEqual((await one.ls('/workspace')).files, [], 'delete');
		checkIn('not found', (await one.read('/workspace/src/a.js')).error, 'a file that is gone');
	});
});

test('deepagents: an agent works in it', async () => {
	const { BaseSandbox, createDeepAgent } = await load('deepagents');
	const { fakeModel } = await load('@langchain/core/testing');
	const { AIMessage } = await load('@langchain/core/messages');
	await withAdapter((options) => sandboxBackend(BaseSandbox, options), async (one, folder) => {
		const model = fakeModel()
			.respondWithTools([{ name: 'write_file', args: { file_path: '/workspace/n.txt', content: '40\n' } }])
			.respondWithTools([{ name: 'edit_file', args: { file_path: '/workspace/n.txt', old_string: '40', new_string: '41' } }])
			.respondWithTools([{ name: 'execute', args: { command: 'expr $(cat n.txt) + 1; id -un; ls /home' } }])
			.respond(new AIMessage('done'));
		const { messages } = await createDeepAgent({ model, backend: one }).invoke({ messages: [{ role: 'user', content: 'go' }] });
		checkEqual([messages.at(-1).content, readFileSync(join(folder, 'n.txt'), 'utf8')], ['done', '41\n'], 'what it came to');
		const told = messages.filter((message) => message.getType() === 'tool').map(({ content }) => content);
		checkIn('42\n', told[2], 'what the command said');
		checkIn('/home', told[2], 'what it was denied');
	});
});

// ---- OpenAI Agents -----------------------------------------------------------------------------------------------

test('openai-agents: a shell runs the commands of an action', () => withAdapter(shell, async (one) => {
	const done = await one.run({ commands: ['echo one > f; echo err >&2', 'cat f; exit 5', 'printf %9s x'], maxOutputLength: 6 });
	checkEqual(done, {
		output: [
			{ stdout: '', stderr: 'err\n', outcome: { type: 'exit', exitCode: 0 } }, { stdout: 'one\n', stderr: '', outcome: { type: 'exit', exitCode: 5 } },
			{ stdout: '      ', stderr: '', outcome: { type: 'exit', exitCode: 0 } },
		], maxOutputLength: 6,
	}, 'their output');
	const late = await one.run({ commands: ['sleep 9', 'echo never'], timeoutMs: 200 });
	checkEqual(late.output.map(({ outcome }) => outcome), [{ type: 'timeout' }], 'a timeout');
}));

test('openai-agents: shellTool() and applyPatchTool() run them for an agent', async () => {
	const { Agent, Runner, applyDiff, applyPatchTool, shellTool } = await load('@openai/agents');
	const { ScriptedModel } = await load('@openai/agents-core/testing');
	await withAdapter(shell, async (one, folder) => {
		const patch = (callId, operation) => [{ type: 'apply_patch_call', callId, status: 'completed', operation }];
		const model = new ScriptedModel([
			patch('p1', { type: 'create_file', path: 'a.txt', diff: '+one\n+two' }),
			patch('p2', { type: 'update_file', path: 'a.txt', diff: '@@\n one\n-two\n+three' }),
			patch('p3', { type: 'update_file', path: 'none.txt', diff: '@@\n-x\n+y' }),
			[{ type: 'shell_call', callId: 's1', status: 'completed', action: { commands: ['cat a.txt; whoami'] } }],
			patch('p4', { type: 'delete_file', path: 'a.txt' }),
			[{ type: 'message', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'done' }] }],
		]);
		const agent = new Agent({ name: 'worker', model, tools: [shellTool({ shell: one }), applyPatchTool({ editor: one.editor(applyDiff) })] });
		const result = await new Runner({ tracingDisabled: true }).run(agent, 'go');
		checkEqual([result.finalOutput, existsSync(join(folder, 'a.txt'))], ['done', false], 'what it came to');
		const told = result.newItems.map(({ rawItem }) => rawItem).filter(({ type }) => type.endsWith('_output'));
		checkEqual(told.map(({ status }) => status), ['completed', 'completed', 'failed', undefined, 'completed'], 'how its calls ended');
		checkEqual(told[3].output[0].stdout, 'one\nthreeuser\n', 'what the shell said');
	});
});

// ---- all of them -------------------------------------------------------------------------------------------------

test('a temporary folder is gone at the end, and a sandbox that was given is not', () => withSandbox(async (sandbox) => {
	const one = new Shell({ sandbox, policy: POLICY });
	const [{ stdout }] = (await one.run({ commands: ['echo kept > f; stat -c %i .'] })).output;
	const folder = Number(stdout);
	checkEqual((await one.run({ commands: ['cat f'] })).output[0].stdout, 'kept\n', 'it stays between commands');
	await one.close();
	checkIn('closed', (await checkThrows(VitroError, () => one.run({ commands: ['true'] }), 'closed')).message, 'the message');
	checkEqual(readdirSync(tmpdir()).filter((name) => name.startsWith('vitro-workspace-') && statSync(join(tmpdir(), name), { throwIfNoEntry: false })?.ino === folder), [], 'its folder');
	checkEqual((await sandbox.run(['echo', 'x'])).stdout, 'x\n', 'the sandbox');
}));

test('options are looked at', async () => {
	for (const make of [session, shell, backend])
		checkIn("'foldr'", (await checkThrows(TypeError, () => make({ foldr: '.' }), 'a wrong name')).message, 'the message');
	checkIn("'timeout'", (await checkThrows(TypeError, () => codeTool({ timeot: 5 }), 'a wrong name')).message, 'the message');
	checkIn('runs outside of cells', (await checkThrows(VitroError, () => new Shell({ folder: dirname(BINARY) }), 'a folder with the program')).message, 'why');
	await checkThrows(TypeError, () => sandboxBackend({}), 'no class');
	await checkThrows(TypeError, () => new Shell({ at: 'here' }), 'a relative place');
	const one = new SandboxSession({ folder: '/nowhere/at/all', policy: POLICY });
	checkIn('/nowhere/at/all', (await checkThrows(VitroError, () => one.run({ command: 'true' }), 'a folder that is not there')).message, 'the message');
	await one.close();
});

/** Has something done with TMPDIR in a folder of its own, where it leaves nothing. */
async function withTemporary(act) {
	const place = mkdtempSync(join(tmpdir(), 'vitro-test-workspaces-'));
	const { TMPDIR } = process.env;
	process.env.TMPDIR = place;
	try {
		return await act(place);
	} finally {
		if (TMPDIR === undefined)
			delete process.env.TMPDIR;
		else
			process.env.TMPDIR = TMPDIR;
		execFileSync('chmod', ['-R', 'u+rwx', place]);
		rmSync(place, { recursive: true });
	}
}

test('workspaces: many have one listener for their end, and closed folders go, too', () => withTemporary(async (place) => {
	const before = process.listenerCount('exit');
	const all = Array.from({ length: 12 }, () => new Workspace({ policy: POLICY }));
	checkEqual(process.listenerCount('exit'), before + 1, 'listeners');
	checkEqual((await all[0].run('mkdir shut && touch shut/file && chmod 0 shut')).exitCode, 0, 'a folder that is shut');
	const deep = 'for i in $(seq 300); do mkdir aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa && cd -P aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa || exit; done';
	checkEqual((await all[1].run(deep)).exitCode, 0, 'folders too deep for a path');
	await Promise.all(all.map((one) => one.close()));
	checkEqual([process.listenerCount('exit'), readdirSync(place)], [before, []], 'when they are closed');
}));

test('workspaces: a folder that cannot be removed is a warning', () => withTemporary(async (place) => {
	const warnings = [];
	const hear = (warning) => warnings.push(`${warning.name}: ${warning.message}`);
	const one = new Workspace({ policy: POLICY });
	await one.write('file', 'x');
	const heard = process.rawListeners('warning'); // what Node prints is of no use here
	process.removeAllListeners('warning');
	process.on('warning', hear);
	process.env.VITRO_BINARY = '/bin/false';
	try {
		await one.close();
		await new Promise((resolve) => setImmediate(resolve));
		checkEqual([warnings.length, readdirSync(place).length], [1, 1], 'what is told, and stays');
		checkIn("VitroWarning: a workspace's folder stays: ", warnings[0], 'the warning');
	} finally {
		process.off('warning', hear);
		heard.forEach((listener) => process.on('warning', listener));
		process.env.VITRO_BINARY = BINARY;
	}
}));

const ROUNDS = Number(process.env.VITRO_TEST_ROUNDS ?? 4);
const CONTROL_MS = 30_000;
const FILES = Array.from({ length: 100 }, (_, index) => `${index}`);
const SWAP = `mkdir d && cd d && touch ${FILES.join(' ')} && cd .. && ln -s "$VICTIM" l && exec ${BIN}/vitro-actor swap d l 1000`;
const SWAP_POLICY = { ...POLICY, files: { read: [BIN] } };

/** A folder outside of every grant, and whether a file of it is gone, which is then made anew. */
function makeVictim(place) {
	const path = join(place, 'victim');
	const fill = () => FILES.forEach((name) => writeFileSync(join(path, name), ''));
	mkdirSync(path);
	fill();
	return { path, wasReached: () => readdirSync(path).length < FILES.length && (fill(), true) };
}

/** Has a command swap a folder and a link to the victim as fast as it can. */
async function beginSwapping(one, victim) {
	let ended;
	await new Promise((resolve, reject) => {
		ended = one.run(SWAP, { env: { VICTIM: victim.path }, onOutput: resolve });
		ended.then((result) => reject(new Error(`it ended: ${JSON.stringify(result)}`)), reject);
	});
	return { ended: ended.then((result) => result.exitCode, (error) => error.name) };
}

for (const [whose, isGiven] of [['its own', false], ['a given', true]])
	test(`workspaces: with ${whose} sandbox, close() ends commands that swap a folder for a link, and nothing outside goes`, () => withTemporary((place) => withSandbox(async (sandbox) => {
		const victim = makeVictim(place);
		let reached = 0;
		for (let round = 0; round < ROUNDS; round++) {
			const one = new Workspace({ policy: SWAP_POLICY, ...isGiven ? { sandbox } : {} });
			const { ended } = await beginSwapping(one, victim);
			await one.close();
			reached += victim.wasReached();
			checkEqual([await ended, readdirSync(place)], ['Cancelled', ['victim']], 'what is left');
		}
		if (process.env.VITRO_TEST_ROUNDS !== undefined)
			console.log(`# ${whose} sandbox: ${reached} of ${ROUNDS} reached what a link leads to`);
		checkEqual(reached, 0, 'how often what a link leads to was reached');
	})));

test('workspaces: the control: what removes by paths reaches it', () => withTemporary(async (place) => {
	const victim = makeVictim(place);
	let reached = 0;
	let round = 0;
	for (const end = Date.now() + CONTROL_MS; round < ROUNDS || !reached && Date.now() < end; round++) {
		const folder = mkdtempSync(join(place, 'folder-'));
		const one = new Workspace({ policy: SWAP_POLICY, folder });
		const { ended } = await beginSwapping(one, victim);
		try {
			rmSync(folder, { recursive: true, force: true });
		} catch {} // it changes meanwhile
		reached += victim.wasReached();
		await one.close();
		await ended;
		rmSync(folder, { recursive: true, force: true });
	}
	if (process.env.VITRO_TEST_ROUNDS !== undefined)
		console.log(`# the control: ${reached} of ${round} reached what a link leads to`);
	if (!reached)
		skip('no removal met a swap');
}));

test("workspaces: at the program's end supervisors are ended first, and nothing outside goes", () => withTemporary((place) => {
	const victim = makeVictim(place);
	const program = `
		import { Workspace } from ${JSON.stringify(join(ROOT, 'sdk/node/adapters/workspace.js'))};
		import { Sandbox } from ${JSON.stringify(join(ROOT, 'sdk/node/index.js'))};
		const [swap, path, policy, isGiven] = JSON.parse(process.argv[1]);
		const one = new Workspace({ policy, ...isGiven ? { sandbox: new Sandbox() } : {} });
		one.run(swap, { env: { VICTIM: path }, onOutput: () => process.exit(7) });`;
	for (let round = 0; round < 2 * ROUNDS; round++) {
		const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program, JSON.stringify([SWAP, victim.path, SWAP_POLICY, round % 2])]);
		checkEqual([status, stderr.toString(), victim.wasReached(), readdirSync(place)], [7, '', false, ['victim']], `round ${round}`);
	}
}));

test('workspaces: the end of a program is told of a folder in which a server may still run something', () => withTemporary(async (place) => {
	const program = `
		import { Workspace } from ${JSON.stringify(join(ROOT, 'sdk/node/adapters/workspace.js'))};
		import { Sandbox } from ${JSON.stringify(join(ROOT, 'sdk/node/index.js'))};
		const one = new Workspace({ policy: { require: 'best-effort' }, sandbox: new Sandbox({ socket: process.argv[1] }) });
		await one.write('file', 'x');
		if (process.argv[2] === 'run')
			await new Promise((resolve) => one.run('echo begun; sleep 9', { onOutput: resolve }));
		process.exit(7);`;
	const server = spawn(BINARY, ['serve', '--socket', join(place, 'socket')], { stdio: 'ignore' });
	try {
		await eventually(() => existsSync(join(place, 'socket')), 'the server listens');
		for (const [what, says, left] of [['rest', '', 0], ['run', "VitroWarning: a workspace's folder stays: what runs in", 1]]) {
			const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program, join(place, 'socket'), what]);
			checkEqual([status, readdirSync(place).filter((name) => name.startsWith('vitro-workspace-')).length], [7, left], what);
			checkIn(says, stderr.toString(), what);
		}
	} finally {
		server.kill();
		await once(server, 'exit');
	}
}));

await main();
