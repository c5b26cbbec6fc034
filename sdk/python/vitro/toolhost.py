# SPDX-License-Identifier: Apache-2.0
"""Tool hosts: named tools, each call of which runs in a cell of its own.

    host = vitro.ToolHost(policy="strict")

    @host.register
    def add(a: int, b: int) -> int:
        '''Adds two numbers.'''
        return a + b

    host.list_tools()                       # for the model
    host.call("add", {"a": 2, "b": 3}).value
    host.call("add", '{"a": "two"}').error  # refused: add: arguments.a: want an integer, found "two"

A call never raises: what goes wrong is in its result. Its arguments are checked against the tool's schema before
a cell is used. AsyncToolHost is the same for asyncio.
"""

from __future__ import annotations

import inspect
from typing import Any, Iterable, Optional

from ._base import Path
from ._check import OF_HOST, telling
from ._outcome import command_result
from ._policy import Policy, deadline, sources_of
from ._result import Result
from .errors import Refused
from ._tools import Arguments, AsyncWatch, Tool, ToolEvent, ToolOrder, ToolSet, Watch, failed

__all__ = ["ToolHost", "AsyncToolHost", "Tool", "ToolEvent", "Watch", "AsyncWatch"]


class _Host(ToolSet):
    @telling(OF_HOST)
    def __init__(self, sandbox: Any = None, policy: Policy = None, *, timeout: Optional[float] = None,
                 python: Optional[Path] = None, preload: Iterable[str] = (), socket: Optional[Path] = None,
                 ready_min: int = 0, ready_max: int = 0) -> None:
        super().__init__()
        options = {"python": python, "preload": preload, "socket": socket, "ready_min": ready_min, "ready_max": ready_max}
        given = [name for name, value in options.items() if value is not None and value != () and value != 0]
        if sandbox is not None and given:
            raise TypeError(f"{', '.join(given)}: for a sandbox of the tool host's own, but one was given")
        deadline(policy, timeout)
        self._own = sandbox is None
        self._sandbox = self._check(sandbox, policy) if sandbox is not None else self._kind()(policy, **options)
        self._is_closed = False
        self._policy, self._timeout = policy, timeout

    @staticmethod
    def _kind() -> Any:
        """The class of its sandboxes. They start nothing before their first call."""
        raise NotImplementedError

    def _check(self, sandbox: Any, policy: Policy) -> Any:
        sources_of(policy)
        kind, call = self._kind(), getattr(sandbox, "_call", None)
        if call is None or inspect.iscoroutinefunction(call) != inspect.iscoroutinefunction(kind._call):
            raise TypeError(f"sandbox is a vitro.{kind.__name__}, not {type(sandbox).__name__} ({sandbox!r:.60})")
        return sandbox

    def _start(self, order: ToolOrder, timeout: Optional[float]) -> Any:
        """What the sandbox gives, which of an AsyncSandbox is to be awaited."""
        if self._is_closed:
            raise Refused("the tool host is closed")
        keywords = self._keywords(order, timeout)
        if order.tool.command is None:
            return self._sandbox._call(order.tool.function, (), order.arguments, convert=True, **keywords)
        return self._sandbox._run(order.argv, stdin=order.stdin, **keywords)

    @staticmethod
    def _finish(order: ToolOrder, result: Result) -> Result:
        return result if order.tool.command is None else command_result(result)

    def _leave(self) -> Any:
        """The sandbox of its own, which is to be closed, if it is there still."""
        self._end_watches()
        with self._lock:
            sandbox = self._sandbox if self._own and not self._is_closed else None
            self._is_closed = self._is_closed or self._own
        return sandbox

    def _keywords(self, order: ToolOrder, timeout: Optional[float]) -> Any:
        times = [time for time in (timeout, order.tool.timeout if order.tool.timeout is not None else self._timeout)
                 if time is not None]
        # A sandbox of its own has the tool host's policy already, and its pools are ready for it.
        policy = order.tool.policy if order.tool.policy is not None else None if self._own else self._policy
        return {"timeout": min(times) if times else None, "policy": policy, "call_id": order.call_id}


class ToolHost(_Host):
    """Named tools, and the sandbox that runs their calls.

    sandbox: a Sandbox to use, which stays open. Without it the tool host makes its own, with `policy` and the options of
    Sandbox (python=, preload=, ...), which starts with the first call and is closed by close().
    policy: for tools without a policy of their own. timeout: seconds, for tools without a timeout of their own; a call can
    only shorten it.
    """

    def call(self, name: str, args: Arguments = None, call_id: str = "", *, timeout: Optional[float] = None) -> Result:
        """Calls a tool, waits for it, and returns its result, whatever happens.

        args: by name, as a dict or as the text of a JSON object. If no cell was used, the status is `refused`, and the
        error's type NoSuchTool or InvalidArguments.
        """
        order = self._order(name, args, call_id)
        if isinstance(order, Result):
            return order
        try:
            return self._finish(order, self._start(order, timeout))
        except Exception as error:
            return failed(order.call_id, error)

    @staticmethod
    def _kind() -> Any:
        from .sandbox import Sandbox
        return Sandbox

    def watch(self) -> Watch:
        """An iterator of ToolEvents: tools that are added, removed or changed from now on. It waits for them."""
        watch: Watch = self._watch(Watch())
        return watch

    def close(self) -> None:
        """Ends all watches, and the tool host's own sandbox with its calls."""
        sandbox = self._leave()
        if sandbox is not None:
            sandbox.close()

    def __enter__(self) -> ToolHost:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncToolHost(_Host):
    """ToolHost for asyncio: calls are awaited, and cancelling one ends its cell."""

    async def call(self, name: str, args: Arguments = None, call_id: str = "", *,
                   timeout: Optional[float] = None) -> Result:
        """Calls a tool: see ToolHost.call(). Only the cancellation of the awaiting task is raised."""
        order = self._order(name, args, call_id)
        if isinstance(order, Result):
            return order
        try:
            return self._finish(order, await self._start(order, timeout))
        except Exception as error:
            return failed(order.call_id, error)

    @staticmethod
    def _kind() -> Any:
        from .aio import AsyncSandbox
        return AsyncSandbox

    def watch(self) -> AsyncWatch:
        """For `async for`: see ToolHost.watch()."""
        watch: AsyncWatch = self._watch(AsyncWatch())
        return watch

    async def close(self) -> None:
        """Ends all watches, and the tool host's own sandbox with its calls."""
        sandbox = self._leave()
        if sandbox is not None:
            await sandbox.close()

    async def __aenter__(self) -> AsyncToolHost:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
