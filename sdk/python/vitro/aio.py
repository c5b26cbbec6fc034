# SPDX-License-Identifier: Apache-2.0
"""AsyncSandbox: Sandbox for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import os
import weakref
from types import FunctionType
from typing import Any, Callable, Coroutine, Dict, Iterable, List, Literal, Mapping, Optional, Sequence, Set, Tuple, TypeVar, overload

from . import _start
from ._asks import TOOLS_AT_ONCE, tell_failure
from ._base import Base, Path, is_alone
from ._check import OF_CALL, OF_SANDBOX, telling, warn_of_own
from ._hooks import Hooks
from ._logs import warn_of_links
from ._loop import Bell, LoopSession
from ._order import (Content, OnLog, OnOutput, Options, Order, PoolSpec, Tools, Word, answering, read_request,
                     write_answer)
from ._outcome import NOT_BEGUN, begin_learning, conclude, not_begun, refused
from ._policy import Policy
from ._quick import LONG_WAY, value_of
from ._result import Result
from ._served import ServerTool, need_server, read_tools
from ._session import Call, Pool
from ._start import Connection
from ._wire import Head
from .errors import Cancelled, Lost, Refused

__all__ = ["AsyncSandbox"]

Value = TypeVar("Value")


class AsyncSandbox(Base):
    """Sandbox for asyncio: the same arguments, and calls that are awaited.

        async with vitro.AsyncSandbox() as sandbox:
            await sandbox.eval("1 + 1")
            await asyncio.gather(*(sandbox.call(slow, n) for n in range(100)))

    Cancelling the task that awaits a call ends its cell at once. Tools that are coroutine functions run on the loop, as
    many at once as the code asks for; others run in the loop's threads, up to 8 per call.
    on_output and on_log are plain functions, and run on the loop.

    It belongs to the loop in which it is used, and cannot be shared between threads.
    """

    _session: Optional[LoopSession]

    @telling(OF_SANDBOX)
    def __init__(self, policy: Policy = None, *, python: Optional[Path] = None, preload: Iterable[str] = (),
                 socket: Optional[Path] = None, ready_min: int = 0, ready_max: int = 0) -> None:
        super().__init__(policy, python=python, preload=preload, socket=socket, ready_min=ready_min, ready_max=ready_max)
        self._session = None
        self._starting: Optional["asyncio.Task[LoopSession]"] = None
        self._finalizer: Optional["weakref.finalize[Any, Any]"] = None

    async def __aenter__(self) -> "AsyncSandbox":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # -- calls

    @overload
    async def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: Literal[True], call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False, **kwargs: Any) -> Result: ...

    @overload
    async def call(self, func: Callable[..., Coroutine[Any, Any, Value]], /, *args: Any, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: Literal[False] = False, call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False, **kwargs: Any) -> Value: ...

    @overload
    async def call(self, func: Callable[..., Value], /, *args: Any, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: Literal[False] = False, call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False, **kwargs: Any) -> Value: ...

    @overload
    async def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: bool, call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False,
                   **kwargs: Any) -> Any: ...

    async def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False, **kwargs: Any) -> Any:
        """Calls a function of this program in a cell, and returns what it returns: see Sandbox.call()."""
        is_plain = not kwargs and is_alone(timeout, policy, on_output, on_log, result, call_id, result_types, trust_results)
        if is_plain and type(func) is FunctionType:
            route = self._routes.get(func)
            if route is not None and route.session.loop is asyncio.get_running_loop():
                begun = route.hurry(args)
                if begun is not LONG_WAY:
                    await self._finish(route.session, begun, Hooks(route.order))
                    value = value_of(begun)
                    return conclude(route.order, begun) if value is LONG_WAY else value
        if not is_plain:
            warn_of_own(func, {"timeout": timeout, "policy": policy, "on_output": on_output, "on_log": on_log, "result": result,
                               "call_id": call_id, "result_types": result_types, "trust_results": trust_results})
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return await self._do(options, lambda: self._orders.call(func, args, kwargs, options, result_types,
                                                                 trust_results), func if is_plain else None)

    @overload
    async def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
                   collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: Literal[True], call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False) -> Result: ...

    @overload
    async def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
                   collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False) -> Any: ...

    @telling(OF_CALL)
    async def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
                   collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
                   trust_results: bool = False) -> Any:
        """Runs Python code in a cell, and returns its value: see Sandbox.eval()."""
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return await self._do(options, lambda: self._orders.eval(code, tools, files, collect, stdin, options,
                                                                 result_types, trust_results))

    @telling(OF_CALL)
    async def run(self, argv: Sequence[Word], *, stdin: Optional[Content] = None, timeout: Optional[float] = None,
                  policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                  result: bool = False, call_id: str = "") -> Result:
        """Runs a command in a cell, and returns its Result: see Sandbox.run()."""
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        made: Result = await self._do(options, lambda: self._orders.run(argv, stdin, options))
        return made

    @overload
    async def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *,
                        timeout: Optional[float] = None, on_output: Optional[OnOutput] = None,
                        on_log: Optional[OnLog] = None, result: Literal[True], call_id: str = "") -> Result: ...

    @overload
    async def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *,
                        timeout: Optional[float] = None, on_output: Optional[OnOutput] = None,
                        on_log: Optional[OnLog] = None, result: bool = False, call_id: str = "") -> Any: ...

    @telling(OF_CALL)
    async def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *,
                        timeout: Optional[float] = None, on_output: Optional[OnOutput] = None,
                        on_log: Optional[OnLog] = None, result: bool = False, call_id: str = "") -> Any:
        """Calls a tool that the server offers, and returns its value: see Sandbox.call_tool()."""
        options = Options(timeout, None, on_output, on_log, result, call_id)
        return await self._do(options, lambda: self._order_tool(name, arguments, options))

    # -- what is under way

    async def capabilities(self, policy: Policy = None) -> Dict[str, Any]:
        """What can be enforced here: see Sandbox.capabilities()."""
        session = await self._use()
        pool = await self._open(session, self._orders.policy_alone(policy), "")
        return {**(pool.isolation or {}), "vitro": session.connection.version}

    async def counts(self) -> Dict[str, int]:
        """How many cells and calls there are, and have been: see Sandbox.counts()."""
        session, bell = await self._use(), Bell()
        reply = session.count(bell.ring)
        await bell.wait(reply)
        if reply.head is None:
            raise Lost(session.lost or "the supervisor is gone")
        return {name: value for name, value in reply.head.items() if name != "is"}

    async def server_tools(self) -> Dict[str, ServerTool]:
        """The tools that the server offers: see Sandbox.server_tools()."""
        need_server(self._socket)
        session, bell = await self._use(), Bell()
        reply = session.list_tools(bell.ring)
        await bell.wait(reply)
        return read_tools(reply, session.lost, self.call_tool)

    async def close(self) -> None:
        """Ends all calls, and the sandbox's own supervisor. The sandbox cannot be used afterwards."""
        self._is_closed = True
        if self._session is not None and self._session.pid == os.getpid() and self._session.lost is None:
            self._session.shut()
        starting = self._starting
        if starting is not None and not starting.done() and starting.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([starting])  # which ends what it started
        await self._end()

    # -- for tool hosts and drop-ins, whose tools' arguments may have any names

    async def _call(self, func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], *,
                    timeout: Optional[float] = None, policy: Policy = None, call_id: str = "",
                    result_types: Iterable[type] = (), trust_results: bool = False, convert: bool = False) -> Result:
        """call() with result=True. convert: the arguments are as JSON has them, and become what the function's hints say."""
        options = Options(timeout, policy, None, None, True, call_id)
        made: Result = await self._do(options, lambda: self._orders.call(func, args, kwargs, options, result_types,
                                                                         trust_results, convert))
        return made

    async def _run(self, argv: Sequence[Word], *, stdin: Optional[Content] = None, timeout: Optional[float] = None,
                   policy: Policy = None, call_id: str = "") -> Result:
        """run() with result=True."""
        return await self.run(argv, stdin=stdin, timeout=timeout, policy=policy, result=True, call_id=call_id)

    # -- within

    async def _use(self) -> LoopSession:
        """The session; a new one where there is none, or it was lost, or this is another process."""
        session, loop = self._session, asyncio.get_running_loop()
        if session is not None and session.lost is None and session.pid == os.getpid():
            if session.loop is not loop:
                if session.calls and not session.loop.is_closed():
                    raise RuntimeError("the sandbox has calls under way in another event loop")
                session.attach(loop)
            return session
        if self._is_closed:
            raise Refused("the sandbox is closed")
        if self._starting is None or self._starting.done() or self._starting.get_loop() is not loop:
            self._starting = loop.create_task(self._start(loop))
            self._starting.add_done_callback(lambda task: task.cancelled() or task.exception())  # who asked may not wait any more
        return await asyncio.shield(self._starting)

    async def _start(self, loop: asyncio.AbstractEventLoop) -> LoopSession:
        await self._end()
        connection = await self._connect(loop)
        self._session = session = LoopSession(connection, loop)
        self._finalizer = weakref.finalize(self, session.drop)
        if self._is_closed:  # meanwhile
            session.shut()
            await self._end()
            raise Refused("the sandbox is closed")
        return session

    async def _connect(self, loop: asyncio.AbstractEventLoop) -> Connection:
        """By a thread. One that nobody waits for any more, as where the loop ends, is closed."""
        path, is_given_up = self._socket, False
        made: List[Connection] = []  # taken out by one thread

        def close() -> None:
            with contextlib.suppress(IndexError):
                made.pop().close_beside()

        def connect() -> None:
            made.append(_start.start() if path is None else _start.connect(path))
            if is_given_up:
                close()

        try:
            await loop.run_in_executor(None, connect)
        except asyncio.CancelledError:
            is_given_up = True
            close()
            raise
        return made.pop()

    async def _end(self) -> None:
        """Closes the last connection, if there was one and it is not closed yet."""
        if self._finalizer is not None and self._finalizer.detach() and self._session is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._session.connection.close)

    def _let_go(self) -> None:
        """Ends what nobody closed; where no event loop runs, also waits for the supervisor's end."""
        if self._finalizer is not None:
            self._finalizer()
        if self._session is not None and not self._session.loop.is_running():
            self._session.connection.close()

    async def _open(self, session: LoopSession, spec: PoolSpec, call_id: str) -> Pool:
        bell = Bell()
        pool, reply = session.open_pool(spec, bell.ring)
        if reply is not None:
            await bell.wait(reply)
            if not pool.answered:
                raise Lost(session.lost or "the supervisor is gone")
            warn_of_links(pool.isolation)
        if pool.error is not None:
            raise refused(call_id, pool.error)
        return pool

    async def _do(self, options: Options, make: Callable[[], Order], func: Optional[Callable[..., Any]] = None) -> Any:
        try:
            order = make()
            hooks = self._hooks(order, options)
            while True:
                session = await self._use()
                order.check_size(session.connection.frame_max)
                pool = await self._open(session, order.spec, order.call_id)
                call = session.begin(pool, order)
                if call is not None:
                    break
        except NOT_BEGUN as error:
            if not options.result:
                raise
            return not_begun(options.call_id, error)
        await self._finish(session, call, hooks)
        begin_learning(session, order, call)
        if func is not None:
            self._remember(session, call, func, order)
        return conclude(order, call)

    async def _finish(self, session: LoopSession, call: Call, hooks: Hooks) -> None:
        """Waits for the end of a call that has begun."""
        bell = Bell()
        call.notify = bell.ring
        try:
            await bell.wait(call)
            if call.events or not call.is_over:
                await self._attend(session, call, hooks, bell)
        except BaseException:
            session.abandon(call)
            raise

    async def _attend(self, session: LoopSession, call: Call, hooks: Hooks, bell: Bell) -> None:
        """Does what a call wants done until it is over."""
        asks = _Asks()
        try:
            while True:
                call.told = False
                is_over = call.is_over
                self._look(session, call, hooks, bell, asks)
                if asks.failure is not None:
                    raise asks.failure
                if is_over:
                    break
                if call.is_flooded and not call.is_stopped:
                    session.cancel(call)
                await bell.wait(call)
        finally:
            for task in asks.tasks:
                task.cancel()
        if not hooks.is_late(call):
            hooks.end()

    def _look(self, session: LoopSession, call: Call, hooks: Hooks, bell: Bell, asks: "_Asks") -> None:
        """Does, or begins to do, what a call has left to be done."""
        while call.events:
            taken = call.take()
            if taken is None:
                break
            head, body = taken
            if head["is"] == "ask":
                if call.runs_tools:
                    task = asyncio.get_running_loop().create_task(self._answer(session, call, hooks, bell, asks, head, body))
                    asks.tasks.add(task)
                    task.add_done_callback(asks.tasks.discard)
            elif hooks.is_late(call):
                continue
            elif head["is"] == "output":
                hooks.output(head, body)
                session.poll(call)  # it may have taken its time
            else:
                hooks.log(call, head, body)
                session.poll(call)

    async def _answer(self, session: LoopSession, call: Call, hooks: Hooks, bell: Bell, asks: "_Asks", head: Head,
                      body: memoryview) -> None:
        session.poll(call)
        if not hooks.may_run(call):
            if not call.is_stopped:
                session.cancel(call)
            return
        answering.set(True)  # in this task's own context
        try:
            value = await _run_tool(call, hooks, asks, head, body)
            ok, pieces = True, write_answer(head["tool"], value, session.connection.frame_max)
        except Exception as error:
            ok, pieces = False, tell_failure(error)
        except BaseException as error:
            if call.is_over or call.is_abandoned:
                raise
            ok, pieces = False, tell_failure(error)
            if not isinstance(error, asyncio.CancelledError):  # that one is the tool's own affair
                asks.failure, call.told = error, True
                bell.ring()
        finally:
            call.settled += 1
        if not call.is_over:
            session.answer(call.number, head["ask"], ok, pieces)


class _Asks:
    """What is being answered of one call."""

    def __init__(self) -> None:
        self.tasks: Set["asyncio.Task[None]"] = set()
        self.gate = asyncio.Semaphore(TOOLS_AT_ONCE)  # of the loop's threads, which are others' as well
        self.failure: Optional[BaseException] = None  # of a tool, that is to end more than the tool


async def _run_tool(call: Call, hooks: Hooks, asks: _Asks, head: Head, body: memoryview) -> Any:
    function = hooks.find_tool(head)
    args, kwargs = read_request(body)
    try:
        return await _await_tool(call, hooks, asks, function, args, kwargs)
    except Exception as error:
        hooks.order.raised.append(error)
        raise


async def _await_tool(call: Call, hooks: Hooks, asks: _Asks, function: Callable[..., Any], args: Sequence[Any],
                      kwargs: Dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    context = contextvars.copy_context()

    def work() -> Tuple[Any, Optional[BaseException]]:
        if not hooks.may_run(call):
            return None, Cancelled("the call is over")
        try:
            return context.run(lambda: function(*args, **kwargs)), None
        except BaseException as error:  # not all can be an exception of a future
            return None, error

    async with asks.gate:
        value, error = await asyncio.get_running_loop().run_in_executor(None, work)
    if error is not None:
        raise error
    return await value if inspect.isawaitable(value) else value
