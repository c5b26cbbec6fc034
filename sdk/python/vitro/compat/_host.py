# SPDX-License-Identifier: Apache-2.0
"""A tool host as loomflow and jeevesagent have it, for programs without these: tools that run in this very process, until a
sandbox wraps the host."""

from __future__ import annotations

import asyncio
import datetime
import inspect
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Callable, Dict, Iterable, List, Mapping, Optional, Union

from .._describe import describe_tool


class ConfigError(Exception):
    """A sandbox was made of what it cannot be made of."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


@dataclass(frozen=True)
class ToolDef:
    """What a model is told of a tool."""

    name: str
    description: str
    input_schema: Dict[str, Any] = field(default_factory=dict)
    server: Optional[str] = None
    destructive: bool = False


@dataclass
class ToolEvent:
    """A change of a host's tools: `kind` is "added", "removed" or "updated", `tool` a name."""

    kind: str
    tool: str
    server: Optional[str] = None
    at: datetime.datetime = field(default_factory=_now)


@dataclass
class ToolResult:
    """How a call of a tool ended."""

    call_id: str
    ok: bool
    output: Any = None
    error: Optional[str] = None
    denied: bool = False
    reason: Optional[str] = None
    duration_ms: Optional[float] = None
    started_at: datetime.datetime = field(default_factory=_now)

    @classmethod
    def success(cls, call_id: str, output: Any, **others: Any) -> ToolResult:
        """Of a call that went well."""
        return cls(call_id=call_id, ok=True, output=output, **others)

    @classmethod
    def error_(cls, call_id: str, message: str, **others: Any) -> ToolResult:
        """Of one that did not."""
        return cls(call_id=call_id, ok=False, error=message, **others)

    @classmethod
    def denied_(cls, call_id: str, reason: str, **others: Any) -> ToolResult:
        """Of one that was not allowed."""
        return cls(call_id=call_id, ok=False, denied=True, reason=reason, **others)


@dataclass
class Tool:
    """A function, and what a model is told of it."""

    name: str
    description: str
    fn: Callable[..., Any]
    input_schema: Dict[str, Any] = field(default_factory=dict)
    destructive: bool = False

    def to_def(self) -> ToolDef:
        """What a model is told."""
        return ToolDef(self.name, self.description, self.input_schema, None, self.destructive)

    async def execute(self, args: Mapping[str, Any]) -> Any:
        """Calls the function in this process: a coroutine function on the loop, others in one of its threads."""
        if inspect.iscoroutinefunction(self.fn):
            return await self.fn(**args)
        value = await asyncio.get_running_loop().run_in_executor(None, lambda: self.fn(**args))
        return await value if inspect.isawaitable(value) else value


def tool(fn: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, description: Optional[str] = None,
         destructive: bool = False) -> Any:
    """Makes a Tool of a function, as @tool or @tool(name=...). Its schema is from the type hints and the docstring."""
    if fn is None:
        return lambda function: tool(function, name=name, description=description, destructive=destructive)
    found, text, schema = describe_tool(fn, name, description)
    return Tool(found, text, fn, schema, destructive)


class InProcessToolHost:
    """Tools by their names."""

    def __init__(self, tools: Optional[Iterable[Union[Tool, Callable[..., Any]]]] = None) -> None:
        self._tools: Dict[str, Tool] = {}
        for one in tools or ():
            self.register(one)

    def register(self, item: Union[Tool, Callable[..., Any]]) -> Tool:
        """Adds a tool, or a function as one; one of the same name is replaced."""
        if not isinstance(item, Tool) and not callable(item):
            raise TypeError(f"a tool is a Tool or a function, not {item!r}")
        made: Tool = item if isinstance(item, Tool) else tool(item)
        self._tools[made.name] = made
        return made

    def unregister(self, name: str) -> bool:
        """Removes a tool. Whether it was there."""
        return self._tools.pop(name, None) is not None

    def get(self, name: str) -> Optional[Tool]:
        """The tool of that name, or None."""
        return self._tools.get(name)

    async def list_tools(self, *, query: Optional[str] = None) -> List[ToolDef]:
        """What a model is told of the tools. query: of those whose name or description has that text."""
        wanted = (query or "").casefold()
        return [one.to_def() for one in self._tools.values() if wanted in f"{one.name}\n{one.description}".casefold()]

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        """Calls a tool in this process, without a sandbox."""
        found = self._tools.get(tool)
        if found is None:
            return ToolResult.error_(call_id, f"unknown tool: {tool}")
        try:
            return ToolResult.success(call_id, await found.execute(args))
        except Exception as error:
            return ToolResult.error_(call_id, str(error))

    async def watch(self) -> AsyncIterator[ToolEvent]:
        """Nothing: who registers tools here knows of them."""
        events: List[ToolEvent] = []
        for event in events:
            yield event
