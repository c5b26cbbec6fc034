# SPDX-License-Identifier: Apache-2.0

from dataclasses import dataclass
from typing import Any, Callable

from ..core.types import ToolDef, ToolEvent


@dataclass
class Tool:
    name: str
    description: str
    fn: Callable[..., Any]

    def to_def(self):
        return ToolDef(self.name, self.description)


def tool(fn):
    return Tool(fn.__name__, fn.__doc__ or "", fn)


class InProcessToolHost:
    def __init__(self, tools=()):
        self._tools = {}
        for one in tools:
            self.register(one)

    def register(self, item):
        item = item if isinstance(item, Tool) else tool(item)
        self._tools[item.name] = item
        return item

    def unregister(self, name):
        return self._tools.pop(name, None) is not None

    def get(self, name):
        return self._tools.get(name)

    async def list_tools(self, *, query=None):
        return [one.to_def() for one in self._tools.values() if not query or query in one.name]

    async def watch(self):
        for name in self._tools:
            yield ToolEvent("added", name)


class RemoteToolHost:
    """One whose tools are no functions of this program."""
