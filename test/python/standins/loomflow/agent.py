# SPDX-License-Identifier: Apache-2.0

from .core.types import ToolResult


class ScriptedModel:
    """Answers by its script: (tool, arguments), or a text at the end."""

    def __init__(self, script):
        self.script, self.heard = [*script], []

    async def complete(self, messages, tools):
        self.heard.append((messages[-1], [one.name for one in tools]))
        return self.script.pop(0)


class Agent:
    """Asks the model what to do, and does it, until the answer is a text."""

    def __init__(self, model, host):
        self.model, self.host = model, host

    async def run(self, prompt):
        messages = [prompt]
        for turn in range(100):
            answer = await self.model.complete(messages, await self.host.list_tools())
            if isinstance(answer, str):
                return answer, messages
            result = await self.host.call(*answer, call_id=f"turn{turn}")
            assert type(result) is ToolResult and result.call_id == f"turn{turn}"
            messages.append(result.output if result.ok else f"error: {result.error}")
        raise RuntimeError("the model does not come to an end")
