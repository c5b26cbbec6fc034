// SPDX-License-Identifier: Apache-2.0
// What a user's program in TypeScript says to the package; test/node/package_test.mjs compiles it under --strict and runs it.

import { Cancelled, Result, Sandbox, Schema, Timeout, ToolError, ToolHost, VitroError, type PolicyObject, type ToolContext, type Tools } from 'vitro-sandbox';
import { codeTool, SandboxSession, type WorkspaceOptions } from 'vitro-sandbox/adapters/ai';
import { sandboxBackend } from 'vitro-sandbox/adapters/deepagents';
import { Shell } from 'vitro-sandbox/adapters/openai-agents';
import { createSubprocessSandbox, type SandboxExecutionResult, type SandboxTool } from 'vitro-sandbox/compat/ncp';

const policy: PolicyObject = { limits: { memory_mb: 256 }, require: 'best-effort' };
const tools: Tools = {
	'math:add': { inputSchema: { type: 'object' }, run: ({ a, b }: { a: number; b: number }) => a + b },
	'math:negate': { execute: ({ a }: { a: number }) => -a },
	plain: async (params: unknown, { signal, callId }: ToolContext) => [params, signal.aborted, callId],
};

async function useSandbox(): Promise<string> {
	const sandbox = new Sandbox({ policy, preload: ['node:path'] });
	try {
		const result: Result<undefined> = await sandbox.run(['echo', 'typed'], { timeout: 5000, onStdout: (text: string) => void text });
		const value: number | undefined = false ? await sandbox.eval<number>('return 1', { tools }) : undefined;
		const whole: Result<number> | undefined = false ? await sandbox.eval<number>('return 1', { result: true }) : undefined;
		void [value, whole?.value.toFixed(), await sandbox.counts()];
		return result.stdout;
	} finally {
		await sandbox.close();
	}
}

async function useErrors(): Promise<string[]> {
	await using sandbox = new Sandbox({ policy });
	const names: string[] = [];
	for (const act of [
		() => sandbox.run(['false']), () => sandbox.run(['sleep', '9'], { timeout: 50 }), () => sandbox.run(['sleep', '9'], { signal: AbortSignal.timeout(50) }),
	])
		try {
			await act();
		} catch (error) {
			if (error instanceof ToolError)
				names.push(`${error.name} ${error.result?.exitCode}`);
			else if (error instanceof Timeout || error instanceof Cancelled)
				names.push(error.name);
			else if (error instanceof VitroError)
				throw error;
		}
	return names;
}

async function useHost(): Promise<unknown> {
	const host = new ToolHost({ policy, timeout: 5000 });
	host.register(['cat'], { name: 'say', description: 'Says it.', input: '{text}' });
	const listed: string[] = host.listTools('says').map(({ name }) => name);
	const { value } = await host.call<string>(listed[0] ?? '', { text: 'told' });
	await host.close();
	return value;
}

function useCompat(): (code: string) => Promise<SandboxExecutionResult> {
	const sandbox = createSubprocessSandbox({ timeout: 1000 });
	const listed: SandboxTool[] = [{ name: 'ns:method', description: 'A tool.' }];
	return (code) => sandbox.execute(code, listed, async (name: string, params: unknown) => [name, params]);
}

async function useAdapters(): Promise<string[]> {
	const options: WorkspaceOptions = { policy, timeout: 5000 };
	await using session = new SandboxSession(options);
	await using shell = new Shell(options);
	const backend = sandboxBackend(class { readonly kind = 'base'; }, { ...options, id: 'mine' });
	void [backend.kind, backend.id.length, shell.editor((input, diff) => input + diff)];
	await backend.close();
	const { stdout } = await session.run({ command: 'echo adapted' });
	await using sandbox = new Sandbox({ policy });
	return [stdout, await codeTool({ sandbox, tools }).execute({ code: 'return tools["math:add"]({ a: 40, b: 2 })' })];
}

console.log(JSON.stringify([await useSandbox(), await useErrors(), await useHost(), typeof useCompat(), new Schema({ type: 'string' }).check('x'), await useAdapters()]));
