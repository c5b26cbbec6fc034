# SPDX-License-Identifier: Apache-2.0
"""Sandbox: calls that run sealed, each in its own single-use process."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from types import FunctionType
from typing import Any, Callable, Coroutine, Dict, Iterable, Literal, Mapping, Optional, Sequence, Tuple, TypeVar, overload

from . import _start
from ._asks import Workers, tell_failure
from ._base import Base, Path, is_alone
from ._check import OF_CALL, OF_SANDBOX, telling, warn_of_own
from ._futures import CallFuture, Pump
from ._hooks import Hooks
from ._logs import warn_of_links
from ._order import SIMPLE, Content, OnLog, OnOutput, Options, Order, PoolSpec, Request, Tools, Word, answering, write_answer
from ._outcome import NOT_BEGUN, begin_learning, conclude, not_begun, refused
from ._policy import Policy
from ._quick import LONG_WAY, answer_in_turn
from ._raised import throw
from ._result import Result
from ._served import ServerTool, need_server, read_tools
from ._session import Call, Pool
from ._threads import ThreadSession
from ._wire import Head
from .errors import Lost, Refused

__all__ = ["Sandbox"]

Value = TypeVar("Value")


class Sandbox(Base):
    """A place where functions, code and commands run sealed, each call in its own single-use process.

        with vitro.Sandbox() as sandbox:
            sandbox.eval("1 + 1")
            sandbox.call(math.factorial, 20)
            sandbox.run(["ls", "/"]).stdout

    policy      what calls may use (vitro-policy(5)): a dict, the path of a policy file, or the name of a built-in policy
                ("default", "strict", "compute"). Without it: the system's runtime paths for reading, a private /tmp, no
                network, 512 MB, 30 s. Relative paths in a dict start at the working directory.
    python      the interpreter in the cells; by default this program's own. Its venv or prefix is readable.
    preload     modules that cells have already imported. Modules of functions that are called are learned automatically.
    socket      the path of a server's socket (vitro-serve(1)). Without it the sandbox starts its own supervisor when it is
                first used, and ends it when it is closed.
    ready_min, ready_max
                the minimum and maximum number of cells that wait for calls, for each kind of call; 0 means 2 and 64

    Many threads may use it at once. After a fork the child gets its own supervisor. If a supervisor dies, the calls that
    are under way die with it: they end as `lost`, and are never repeated, since they may have run. The next call starts a
    new supervisor.

    call(), eval() and run() share these arguments:

    timeout     seconds, instead of the policy's deadline; may be shorter or longer
    policy      a policy instead of the sandbox's
    on_output   called as on_output("stdout" or "stderr", text) with what is printed, as it arrives
    on_log      called as on_log(level, text) with what is logged, as it arrives; the text is unfiltered
    result      True: return a Result however the call ended, and raise only TypeError, for a wrong argument
    call_id     an id of your choice, which cancel() takes and results carry

    Callbacks run in the thread that waits. What they raise ends the call, and is raised. No callback starts more than a
    second after the call's deadline, if that is known without reading a policy file.
    """

    _session: Optional[ThreadSession]

    @telling(OF_SANDBOX)
    def __init__(self, policy: Policy = None, *, python: Optional[Path] = None, preload: Iterable[str] = (),
                 socket: Optional[Path] = None, ready_min: int = 0, ready_max: int = 0) -> None:
        super().__init__(policy, python=python, preload=preload, socket=socket, ready_min=ready_min, ready_max=ready_max)
        self._lock, self._pid = threading.Lock(), os.getpid()
        self._session = None
        self._pump: Optional[Pump] = None
        self._finalizer: Optional["weakref.finalize[Any, Any]"] = None

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- calls

    @overload
    def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None, policy: Policy = None,
             on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: Literal[True],
             call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False, **kwargs: Any) -> Result: ...

    @overload
    def call(self, func: Callable[..., Coroutine[Any, Any, Value]], /, *args: Any, timeout: Optional[float] = None,
             policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
             result: Literal[False] = False, call_id: str = "", result_types: Iterable[type] = (),
             trust_results: bool = False, **kwargs: Any) -> Value: ...

    @overload
    def call(self, func: Callable[..., Value], /, *args: Any, timeout: Optional[float] = None, policy: Policy = None,
             on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: Literal[False] = False,
             call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False, **kwargs: Any) -> Value: ...

    @overload
    def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None,
             policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
             result: bool, call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False,
             **kwargs: Any) -> Any: ...

    def call(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None, policy: Policy = None,
             on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: bool = False,
             call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False, **kwargs: Any) -> Any:
        """Calls a function of this program in a cell, and returns what it returns.

        The function is sent by name, so the cell imports its module: the folders of sys.path are readable there. In the home
        folder and its parents, only modules that this program has imported are readable. A coroutine function is awaited in
        the cell. Arguments are pickled. The value comes back as plain data (None, bool, int, float, str, bytes, list, tuple,
        set, dict, date, time, Decimal, UUID, complex, and numpy arrays if this program has imported numpy), never as a pickle.

        result_types    classes whose instances the value may contain: dataclasses, pydantic models, enums and named tuples.
                        They are built here from their fields, with whatever values the cell gave.
        trust_results   True: the value comes back as a pickle. The cell can then run any code in this program, which undoes
                        the sandbox. Only for functions that you would also run without a sandbox.

        If the function has a keyword argument with the name of one of these, set it with functools.partial().

        Raises ToolError if the function raised, and Timeout, MemoryLimit, Crashed and so on (vitro.errors).
        """
        is_plain = not kwargs and is_alone(timeout, policy, on_output, on_log, result, call_id, result_types, trust_results)
        if is_plain and type(func) is FunctionType:
            route = self._routes.get(func)
            if route is not None:
                value = route.hurry(args)
                if value.__class__ is Call:
                    self._finish(route.session, value, Hooks(route.order))
                    return conclude(route.order, value)
                if value is not LONG_WAY:
                    return value
        if not is_plain:
            warn_of_own(func, {"timeout": timeout, "policy": policy, "on_output": on_output, "on_log": on_log, "result": result,
                               "call_id": call_id, "result_types": result_types, "trust_results": trust_results})
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return self._do(options, lambda: self._orders.call(func, args, kwargs, options, result_types, trust_results),
                        func if is_plain else None)

    @overload
    def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
             collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
             policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
             result: Literal[True], call_id: str = "", result_types: Iterable[type] = (),
             trust_results: bool = False) -> Result: ...

    @overload
    def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
             collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
             policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
             result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
             trust_results: bool = False) -> Any: ...

    @telling(OF_CALL)
    def eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
             collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
             policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
             result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
             trust_results: bool = False) -> Any:
        """Runs Python code that a model wrote in a cell, and returns the value of its last expression. If that is not plain
        data, a plot for example, it is a Shown, which has its text.

        `await` works at the top level. The code sees none of this program's folders, unless the policy grants them.

        tools       functions of this program that the code may call by these names, or as tools["any name"]. They run
                    here, in the thread that waits; arguments and values are plain data; what they raise is raised in
                    the code. The code chooses the arguments: check them. No tool is started for a call that is over. A
                    call that waits for more than 10,000 uses of tools at once is cancelled.
        files       files to put into the cell's working directory first: contents, by relative name
        collect     patterns such as "out/**": files of the working directory that come back in `files` of the result, so
                    with result=True only
        stdin       what the code reads from standard input

        The rest is as for call().
        """
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return self._do(options, lambda: self._orders.eval(code, tools, files, collect, stdin, options, result_types,
                                                           trust_results))

    @telling(OF_CALL)
    def run(self, argv: Sequence[Word], *, stdin: Optional[Content] = None, timeout: Optional[float] = None,
            policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
            result: bool = False, call_id: str = "") -> Result:
        """Runs a command in a cell, and returns its Result, with `stdout`, `stderr` and `exit_code`.

        Raises ToolError if it exits with a code other than 0, unless `result` is True.
        """
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        made: Result = self._do(options, lambda: self._orders.run(argv, stdin, options))
        return made

    @overload
    def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None,
                  on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: Literal[True],
                  call_id: str = "") -> Result: ...

    @overload
    def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None,
                  on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: bool = False,
                  call_id: str = "") -> Any: ...

    @telling(OF_CALL)
    def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None,
                  on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: bool = False,
                  call_id: str = "") -> Any:
        """Calls a tool that the server offers (vitro serve --tools), and returns its value. For a command that is what it
        printed, parsed if it is JSON. Arguments are JSON; the server checks them, and applies the tool's own policy. Only with
        `socket`. `timeout` can only shorten the tool's deadline; the rest is as for call()."""
        options = Options(timeout, None, on_output, on_log, result, call_id)
        return self._do(options, lambda: self._order_tool(name, arguments, options))

    # -- futures

    def submit(self, func: Callable[..., Any], /, *args: Any, timeout: Optional[float] = None, policy: Policy = None,
               on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None, result: bool = False,
               call_id: str = "", result_types: Iterable[type] = (), trust_results: bool = False, **kwargs: Any) -> "Future[Any]":
        """call(), with the same arguments, as a concurrent.futures.Future, whose cancel() ends the cell at once."""
        warn_of_own(func, {"timeout": timeout, "policy": policy, "on_output": on_output, "on_log": on_log, "result": result,
                           "call_id": call_id, "result_types": result_types, "trust_results": trust_results})
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return self._submit(options, lambda: self._orders.call(func, args, kwargs, options, result_types, trust_results))

    @telling(OF_CALL)
    def submit_eval(self, code: str, *, tools: Optional[Tools] = None, files: Optional[Mapping[str, Content]] = None,
                    collect: Iterable[str] = (), stdin: Optional[Content] = None, timeout: Optional[float] = None,
                    policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                    result: bool = False, call_id: str = "", result_types: Iterable[type] = (),
                    trust_results: bool = False) -> "Future[Any]":
        """eval() as a future. Tools run in threads, up to 8 per call. One that raises something other than an Exception, such
        as SystemExit, ends the call, and the future raises it."""
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return self._submit(options, lambda: self._orders.eval(code, tools, files, collect, stdin, options, result_types,
                                                               trust_results))

    @telling(OF_CALL)
    def submit_run(self, argv: Sequence[Word], *, stdin: Optional[Content] = None, timeout: Optional[float] = None,
                   policy: Policy = None, on_output: Optional[OnOutput] = None, on_log: Optional[OnLog] = None,
                   result: bool = False, call_id: str = "") -> "Future[Result]":
        """run() as a future."""
        options = Options(timeout, policy, on_output, on_log, result, call_id)
        return self._submit(options, lambda: self._orders.run(argv, stdin, options))

    # -- what is under way

    def capabilities(self, policy: Policy = None) -> Dict[str, Any]:
        """What can be enforced here under the sandbox's policy, or another one: `level` ("strict", "full" or "partial"), the
        mechanism for each property, and `vitro`, the supervisor's version. Raises Refused if the policy cannot be enforced."""
        session = self._use()
        pool = self._open(session, self._orders.policy_alone(policy), "")
        return {**(pool.isolation or {}), "vitro": session.connection.version}

    def counts(self) -> Dict[str, int]:
        """How many cells are `ready` and `refilling`, how many calls are `live` and `waiting`, and how many `calls`,
        `cells_made` and `cold_calls` there have been."""
        session = self._use()
        reply = session.count()
        session.wait(reply)
        if reply.head is None:
            raise Lost(session.lost or "the supervisor is gone")
        return {name: value for name, value in reply.head.items() if name != "is"}

    def server_tools(self) -> Dict[str, ServerTool]:
        """The tools that the server offers, by name, ready to be passed as `tools` to eval(): when code uses one, the server
        calls it."""
        need_server(self._socket)
        session = self._use()
        reply = session.list_tools()
        session.wait(reply)
        return read_tools(reply, session.lost, self.call_tool)

    def close(self) -> None:
        """Ends all calls, and the sandbox's own supervisor. The sandbox cannot be used afterwards."""
        self._is_closed = True
        if self._finalizer is not None and self._pid == os.getpid():
            self._finalizer()

    # -- for tool hosts and drop-ins, whose tools' arguments may have any names

    def _call(self, func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], *,
              timeout: Optional[float] = None, policy: Policy = None, call_id: str = "",
              result_types: Iterable[type] = (), trust_results: bool = False, convert: bool = False) -> Result:
        """call() with result=True. convert: the arguments are as JSON has them, and become what the function's hints say."""
        options = Options(timeout, policy, None, None, True, call_id)
        made: Result = self._do(options, lambda: self._orders.call(func, args, kwargs, options, result_types,
                                                                   trust_results, convert))
        return made

    def _run(self, argv: Sequence[Word], *, stdin: Optional[Content] = None, timeout: Optional[float] = None,
             policy: Policy = None, call_id: str = "") -> Result:
        """run() with result=True."""
        return self.run(argv, stdin=stdin, timeout=timeout, policy=policy, result=True, call_id=call_id)

    # -- within

    def _use(self) -> ThreadSession:
        """The session; a new one where there is none, or it was lost, or this is another process."""
        session = self._session
        if session is not None and session.lost is None and session.pid == os.getpid():
            return session
        if self._pid != os.getpid():
            self._lock, self._pid, self._session = threading.Lock(), os.getpid(), None
        with self._lock:
            if self._is_closed:
                raise Refused("the sandbox is closed")
            if self._session is None or self._session.lost is not None:
                if self._finalizer is not None and self._session is not None:
                    self._finalizer()
                connection = _start.start() if self._socket is None else _start.connect(self._socket)
                self._session = session = ThreadSession(connection)
                self._pump = Pump(session)
                self._finalizer = weakref.finalize(self, session.close)
                if self._is_closed:  # meanwhile, by close(), which may not have seen it
                    self._finalizer()
                    raise Refused("the sandbox is closed")
            return self._session

    def _open(self, session: ThreadSession, spec: PoolSpec, call_id: str) -> Pool:
        pool, reply = session.open_pool(spec)
        if reply is not None:
            session.wait(reply)
            if not pool.answered:
                raise Lost(session.lost or "the supervisor is gone")
            warn_of_links(pool.isolation)
        if pool.error is not None:
            raise refused(call_id, pool.error)
        return pool

    def _begin(self, order: Order, future: Optional[CallFuture] = None) -> Tuple[ThreadSession, Call]:
        while True:
            session = self._use()
            order.check_size(session.connection.frame_max)
            pool = self._open(session, order.spec, order.call_id)
            notify = None if future is None or self._pump is None else self._pump.notify_of
            call = session.begin(pool, order, notify)
            if call is not None:
                return session, call

    def _finish(self, session: ThreadSession, call: Call, hooks: Hooks) -> None:
        """Waits for the end of a call that has begun."""
        try:
            self._attend(session, call, hooks)
        except BaseException:
            session.abandon(call)
            raise

    def _do(self, options: Options, make: Callable[[], Order], func: Optional[Callable[..., Any]] = None) -> Any:
        try:
            order = make()
            session, call = self._begin(order)
        except NOT_BEGUN as error:
            if not options.result:
                raise
            return not_begun(options.call_id, error)
        self._finish(session, call, self._hooks(order, options))
        begin_learning(session, order, call)
        if func is not None:
            self._remember(session, call, func, order)
        return conclude(order, call)

    def _attend(self, session: ThreadSession, call: Call, hooks: Hooks) -> None:
        """Waits for the call's end, and meanwhile does what it wants done."""
        session.wait(call)
        if call.is_over and not call.events:
            return

        def ask(head: Head, body: Request) -> None:
            call.settled += 1
            self._serve(session, call, hooks, head, body)

        while not self._look(session, call, hooks, ask, True):
            if call.asked:
                answer_in_turn(session, call, ask)
            session.wait(call)
        if not hooks.is_late(call):
            hooks.end()

    def _look(self, session: ThreadSession, call: Call, hooks: Hooks, ask: Callable[[Head, memoryview], None],
              is_news: bool = False) -> bool:
        """Does what a call has left to be done. Whether it is over. is_news: the first of it has come just now."""
        call.told = False
        is_over = call.is_over
        while call.events:
            if not is_news:
                session.poll(call)
            is_news = False
            if call.is_flooded and not call.is_stopped:
                session.cancel(call)
            taken = call.take()
            if taken is None:
                break
            head, body = taken
            if head["is"] == "ask":
                ask(head, body)
            elif hooks.is_late(call):
                continue
            elif head["is"] == "output":
                hooks.output(head, body)
            else:
                hooks.log(call, head, body)
        if call.is_flooded and not call.is_stopped:
            session.cancel(call)
        return is_over

    def _serve(self, session: ThreadSession, call: Call, hooks: Hooks, head: Head, body: Request) -> None:
        """Answers what a call asks for, if there still is somebody to hear it."""
        if not hooks.may_run(call):
            if not call.is_stopped:
                session.cancel(call)
            return
        token = answering.set(True)
        try:
            value = hooks.run_tool(head, body, finish_awaitable)
            ok, pieces = True, write_answer(head["tool"], value, session.connection.frame_max)
        except Exception as error:
            ok, pieces = False, tell_failure(error)
        finally:
            answering.reset(token)
        session.answer(call.number, head["ask"], ok, pieces)

    def _submit(self, options: Options, make: Callable[[], Order], future: Optional[CallFuture] = None) -> "Future[Any]":
        """Begins a call. future: one that others have already, who may cancel it meanwhile."""
        future = CallFuture(options.call_id) if future is None else future
        try:
            order = make()
            session, call = self._begin(order, future)
        except NOT_BEGUN as error:
            failure = error
            future.settle(lambda: not_begun(options.call_id, failure) if options.result else throw(failure))
            return future
        future.call_id = call.call_id
        future._stop = lambda: session.abandon(call)
        if future.cancelled():
            session.abandon(call)
        hooks = self._hooks(order, options)

        def serve(head: Head, body: memoryview) -> None:
            try:
                session.poll(call)
                self._serve(session, call, hooks, head, body)
            except BaseException as error:  # in a thread where nobody would hear of it
                failure = error
                future.settle(lambda: throw(failure))  # first: with the answer the code may come to its end
                session.answer(call.number, head["ask"], False, tell_failure(error))
                session.abandon(call)

        workers = Workers(call, serve)

        def step(call: Call) -> bool:
            return self._step(session, call, hooks, workers, future)

        assert self._pump is not None
        try:
            self._pump.add(call, step)
        except BaseException:
            session.abandon(call)
            raise
        return future

    def _step(self, session: ThreadSession, call: Call, hooks: Hooks, workers: Workers, future: CallFuture) -> bool:
        """In the thread of the futures: takes what came for a call. Whether it is over."""
        try:
            is_over = self._look(session, call, hooks, workers.add)
            if is_over:
                if not hooks.is_late(call):
                    hooks.end()
                begin_learning(session, hooks.order, call)
                future.settle(lambda: conclude(hooks.order, call))
        except BaseException as error:
            failure = error
            session.abandon(call)
            future.settle(lambda: throw(failure))
            return True
        return is_over


def finish_awaitable(value: Any) -> Any:
    """What a tool gives that returned this. Where the caller is in a loop of its own, as in a notebook, which stands still
    meanwhile, an async tool has another, in a thread."""
    if type(value) in SIMPLE or not inspect.isawaitable(value):
        return value
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(value))
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(contextvars.copy_context().run, asyncio.run, _awaited(value)).result()


async def _awaited(value: Any) -> Any:
    return await value
