# SPDX-License-Identifier: Apache-2.0
"""Tools by their names: what each is said to be, and what arguments it takes; who is told of changes. What both
tool hosts stand on; it calls nothing."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import json
import re
import threading
import uuid
import weakref
from typing import Any, AsyncIterator, Callable, Deque, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, TypeVar, Union, overload

from . import _check, _say
from ._command import ArgumentsError, Command
from ._describe import describe_tool
from ._message import PARTS_MAX, read_json
from ._policy import Policy, deadline, sources_of
from ._result import Error, Result
from ._schema import Schema
from .errors import Refused

NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}\Z")
DESCRIPTION_MOST = 64 << 10  # bytes, like the next two
SCHEMA_MOST = 256 << 10
ARGUMENTS_MOST = 4 << 20  # of arguments that are JSON text
TOOLS_MOST = 4096
ID_BYTES = 250  # of a call, as for a sandbox
EVENTS_MOST = 65536  # that wait for a watcher who does not come for them: older ones are dropped

Arguments = Union[None, str, bytes, Mapping[str, Any]]
Target = TypeVar("Target", bound=Union[Callable[..., Any], Sequence[str]])


class ToolEvent(NamedTuple):
    """A change: `kind` is "added", "removed" or "changed"; `tool` is the tool as it is now, or was."""

    kind: str
    name: str
    tool: Tool


@dataclasses.dataclass(frozen=True)
class Tool:
    """A tool of a tool host. Exactly one of `function` and `command` is set."""

    name: str
    description: str
    input_schema: Dict[str, Any]
    function: Optional[Callable[..., Any]] = None
    command: Optional[Command] = None
    policy: Any = None
    timeout: Optional[float] = None
    checker: Schema = dataclasses.field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    @property
    def definition(self) -> Dict[str, Any]:
        """What a model is told: name, description and input_schema."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    @property
    def warnings(self) -> List[str]:
        """What the schema says that is not checked."""
        return self.checker.warnings


class ToolOrder(NamedTuple):
    """A call that may be made: arguments that fit, for one tool."""

    tool: Tool
    call_id: str
    arguments: Dict[str, Any]
    argv: Sequence[str] = ()
    stdin: bytes = b""


# ---- making tools --------------------------------------------------------------------------------


def _schema_source(schema: Any) -> Any:
    """A schema as plain JSON, which nobody else can change."""
    if hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    if not isinstance(schema, (dict, str)):
        raise TypeError(f"schema: want a dict, or JSON text of an object, found a {type(schema).__name__}")
    text = schema if isinstance(schema, str) else json.dumps(schema, allow_nan=False)
    if len(text.encode()) > SCHEMA_MOST:
        raise ValueError(f"schema: it is longer than {SCHEMA_MOST >> 10} KB")
    source = json.loads(text)
    if not isinstance(source, dict):
        raise TypeError("schema: want an object")
    return source


def _schema_of_words(words: Sequence[str]) -> Dict[str, Any]:
    """What the words of a command tell of its arguments."""
    properties: Dict[str, Any] = {}
    required: List[str] = []
    for word in words:
        for name, mark in re.findall(r"\{-?([A-Za-z_][\w.-]*?)(\.\.\.|\?)?\}", word.replace("{{", "").replace("}}", "}")):
            properties.setdefault(name, {"type": "array"} if mark == "..." else {})
            if not mark and name not in required:
                required.append(name)
    schema: Dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def make_tool(target: Any, name: Optional[str], description: Optional[str], schema: Any, policy: Any,
              timeout: Optional[float], input: Optional[str]) -> Tool:  # noqa: A002
    """A tool from a function or the words of a command. Raises TypeError and ValueError."""
    deadline(policy, timeout)
    sources_of(policy)
    if description is not None:
        _check.text("description", description)
    source = None if schema is None else _schema_source(schema)
    is_command = isinstance(target, (list, tuple))
    if is_command:
        name = name if name is not None else (str(target[0]).rpartition("/")[2] if target else "")
        words = [*target, input or ""]
        source = source if source is not None else _schema_of_words([w for w in words if isinstance(w, str)])
    elif isinstance(target, (str, bytes)):
        raise TypeError("want a function, or a command as a list of words: no shell would read a text")
    elif input is not None:
        raise TypeError("input: only a command reads one")
    elif source is None:
        name, description, source = describe_tool(target, name, description)
        source = _schema_source(source)
    else:
        name, description = _named(target, name, description)
    if not isinstance(name, str) or not NAME.match(name):
        raise ValueError(f"name: want letters, digits and \"_-.:/\", at most 128, found {_say.show(name)}")
    description = description or ""
    if len(description.encode("utf-8", "replace")) > DESCRIPTION_MOST:
        raise ValueError(f"{name}: the description is longer than {DESCRIPTION_MOST >> 10} KB")
    checker = Schema(source, "schema")
    command = Command(target, source, input=input) if is_command else None
    return Tool(name, description, source, None if is_command else target, command, policy, timeout, checker)


def _named(target: Any, name: Optional[str], description: Optional[str]) -> Any:
    """Where the schema is given, a function is described as far as it can be."""
    try:
        return describe_tool(target, name, description)[:2]
    except TypeError:
        if not callable(target):
            raise
        return name or getattr(target, "__name__", None), description or getattr(target, "__doc__", None)


# ---- watching ------------------------------------------------------------------------------------


class Watch(Iterator[ToolEvent]):
    """Changes of a tool host's tools, from when it was made; the next one is waited for. close(), or the tool
    host's close(), ends it."""

    def __init__(self) -> None:
        self._events: Deque[ToolEvent] = collections.deque(maxlen=EVENTS_MOST)
        self._changed = threading.Condition()
        self._closed = False

    def put(self, event: ToolEvent) -> None:
        with self._changed:
            self._events.append(event)
            self._changed.notify()

    def get(self, timeout: Optional[float] = None) -> Optional[ToolEvent]:
        """The next change; None if there is none within `timeout` seconds, or it is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._events or self._closed, timeout)
            return self._events.popleft() if self._events else None

    def __next__(self) -> ToolEvent:
        event = self.get()
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncWatch(AsyncIterator[ToolEvent]):
    """The same for `async for`. Changes may be made by any thread."""

    def __init__(self) -> None:
        self._events: Deque[ToolEvent] = collections.deque(maxlen=EVENTS_MOST)
        self._lock = threading.Lock()
        self._waiting: List[Any] = []  # (loop, future)
        self._closed = False

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            try:
                loop.call_soon_threadsafe(lambda future=future: future.done() or future.set_result(None))
            except RuntimeError:  # that loop is closed, and nobody waits in it
                pass

    def put(self, event: ToolEvent) -> None:
        with self._lock:
            self._events.append(event)
            self._wake()

    async def __anext__(self) -> ToolEvent:
        while True:
            with self._lock:
                if self._events:
                    return self._events.popleft()
                if self._closed:
                    raise StopAsyncIteration
                loop = asyncio.get_running_loop()
                future = loop.create_future()
                self._waiting.append((loop, future))
            await future

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._wake()

    async def aclose(self) -> None:
        self.close()


# ---- the set -------------------------------------------------------------------------------------


class ToolSet:
    """Named tools. Any thread may use them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tools: Dict[str, Tool] = {}
        self._watches: weakref.WeakSet[Any] = weakref.WeakSet()

    @overload
    def register(self, target: Target, *, name: Optional[str] = None, description: Optional[str] = None,
                 schema: Any = None, policy: Policy = None, timeout: Optional[float] = None,
                 input: Optional[str] = None) -> Target: ...  # noqa: A002

    @overload
    def register(self, target: None = None, *, name: Optional[str] = None, description: Optional[str] = None,
                 schema: Any = None, policy: Policy = None, timeout: Optional[float] = None,
                 input: Optional[str] = None) -> Callable[[Target], Target]: ...  # noqa: A002

    def register(self, target: Any = None, *, name: Optional[str] = None, description: Optional[str] = None,
                 schema: Any = None, policy: Policy = None, timeout: Optional[float] = None,
                 input: Optional[str] = None) -> Any:  # noqa: A002
        """Adds a tool, or replaces the one of that name. Returns the target, so it also works as a decorator:

            @host.register
            def add(a: int, b: int) -> int: ...

            @host.register(name="math:add", timeout=5)
            def add(a: int, b: int) -> int: ...

            host.register(["wc", "-l", "--", "{files...}"], name="count_lines")

        target: a function, or the words of a command, in which {name} stands for an argument, {name?} for one that may be
        missing (its word is then left out), and {name...} for a list. No shell is involved, and no argument becomes an option.
        name, description, schema (a JSON schema of an object): by default from the function's name, docstring and type
        hints. policy, timeout: for this tool's calls, instead of the tool host's.
        input: what a command reads from standard input, with {name} for arguments; without it, the arguments as JSON.

        Arguments of calls are JSON, and are checked. In the cell they are converted to what the annotations say: dataclasses,
        pydantic models, enums, dates, paths, tuples and the like. Raises TypeError or ValueError.
        Calls that already run are not affected.
        """
        if target is None:
            return lambda function: self.register(function, name=name, description=description, schema=schema,
                                                  policy=policy, timeout=timeout, input=input)
        self._add(make_tool(target, name, description, schema, policy, timeout, input))
        return target

    def _add(self, tool: Tool) -> None:
        with self._lock:
            before = self._tools.get(tool.name)
            if before is None and len(self._tools) >= TOOLS_MOST:
                raise ValueError(f"there are {TOOLS_MOST} tools already")
            self._tools[tool.name] = tool
            if before is None or before.definition != tool.definition:
                self._tell("added" if before is None else "changed", tool)

    def unregister(self, name: str) -> None:
        """Removes a tool. Calls that already run are not affected. Raises KeyError if there is none."""
        with self._lock:
            if name not in self._tools:
                raise KeyError(self._unknown(name))
            self._tell("removed", self._tools.pop(name))

    def get(self, name: str) -> Optional[Tool]:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def list_tools(self, query: Optional[str] = None) -> List[Dict[str, Any]]:
        """The tools as a model needs them, sorted by name: name, description, input_schema. query: only those whose name or
        description contains every word of it."""
        words = _check.text("query", query or "").casefold().split()
        with self._lock:
            tools = [self._tools[name] for name in sorted(self._tools)]
        return [json.loads(json.dumps(tool.definition)) for tool in tools
                if all(word in f"{tool.name}\n{tool.description}".casefold() for word in words)]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __len__(self) -> int:
        return len(self._tools)

    def _tell(self, kind: str, tool: Tool) -> None:
        for watch in list(self._watches):
            watch.put(ToolEvent(kind, tool.name, tool))

    def _watch(self, watch: Any) -> Any:
        with self._lock:
            self._watches.add(watch)
        return watch

    def _end_watches(self) -> None:
        with self._lock:
            for watch in list(self._watches):
                watch.close()

    def _unknown(self, name: Any) -> str:
        near = _say.closest(name, list(self._tools)) if isinstance(name, str) else None
        shown = _say.show_text(name, 128) if isinstance(name, str) else _say.show(name)
        return f"there is no tool '{shown}'" + ("" if near is None else f"; did you mean '{near}'?")

    # ---- calls

    def _order(self, name: Any, args: Arguments, call_id: Any) -> Union[ToolOrder, Result]:
        """What a call comes to before a cell is used: an order, or a result that says `refused`."""
        if not isinstance(call_id, str) or len(call_id.encode("utf-8", "replace")) > ID_BYTES or not (call_id or " ").isprintable():
            return _refused(new_call_id(), "InvalidRequest", f"call_id: want at most {ID_BYTES} bytes without control characters")
        call_id = call_id or new_call_id()
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            return _refused(call_id, "NoSuchTool", self._unknown(name))
        try:
            return _checked(tool, call_id, args)
        except ArgumentsError as error:
            return _refused(call_id, "InvalidArguments", f"{tool.name}: {error}")


def new_call_id() -> str:
    return uuid.uuid4().hex


def _refused(call_id: str, kind: str, message: str) -> Result:
    return Result(call_id=call_id, status="refused", error=Error(kind, message))


def failed(call_id: str, error: BaseException) -> Result:
    """The result of a call whose sandbox broke its word not to raise."""
    status = "refused" if isinstance(error, Refused) else "lost"
    return Result(call_id=call_id, status=status, error=Error(type(error).__name__, str(error)))


def _checked(tool: Tool, call_id: str, args: Arguments) -> ToolOrder:
    if isinstance(args, (str, bytes, bytearray)):
        args = _parsed(args)
    if args is None:
        args = {}
    if not isinstance(args, Mapping):
        raise ArgumentsError(f"arguments: want an object, found {_say.show(args)}")
    arguments = dict(args)
    for key in arguments:
        if not isinstance(key, str):
            raise ArgumentsError(f"arguments: want names that are text, found {_say.show(key)}")
    wrong = tool.checker.check(arguments, "arguments")
    if wrong is not None:
        raise ArgumentsError(wrong)
    if tool.command is None:
        return ToolOrder(tool, call_id, arguments)
    return ToolOrder(tool, call_id, arguments, tool.command.argv(arguments), tool.command.input(arguments))


def _parsed(text: Union[str, bytes, bytearray]) -> Any:
    if len(text) > ARGUMENTS_MOST:
        raise ArgumentsError(f"arguments: too big: more than {ARGUMENTS_MOST >> 20} MB of JSON")
    try:
        return read_json(text.encode() if isinstance(text, str) else bytes(text), PARTS_MAX)[0]
    except RecursionError:
        raise ArgumentsError("arguments: nested too deeply") from None
    except ValueError as error:
        raise ArgumentsError(f"arguments: this is not JSON: {error}") from None
