// SPDX-License-Identifier: Apache-2.0
// The adapters as the frameworks' own types have them; test/node/package_test.mjs compiles it under --strict.

import { generateText, type Experimental_SandboxSession, type LanguageModel } from 'ai';
import { BaseSandbox, createDeepAgent, type SandboxBackendProtocolV2 } from 'deepagents';
import { applyDiff, applyPatchTool, shellTool, type Editor as AgentsEditor, type Shell as AgentsShell } from '@openai/agents';
import { codeTool, SandboxSession } from 'vitro-sandbox/adapters/ai';
import { sandboxBackend } from 'vitro-sandbox/adapters/deepagents';
import { Shell } from 'vitro-sandbox/adapters/openai-agents';

export function useAi(model: LanguageModel) {
	const session: Experimental_SandboxSession = new SandboxSession();
	return generateText({ model, prompt: 'go', tools: { run: codeTool() }, experimental_sandbox: session });
}

export function useDeepAgents() {
	const backend: SandboxBackendProtocolV2 = sandboxBackend(BaseSandbox, { folder: '.' });
	return createDeepAgent({ backend });
}

export function useOpenaiAgents() {
	const shell: AgentsShell & Shell = new Shell();
	const editor: AgentsEditor = shell.editor(applyDiff);
	return [shellTool({ shell }), applyPatchTool({ editor })];
}
