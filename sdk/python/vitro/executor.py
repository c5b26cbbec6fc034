# SPDX-License-Identifier: Apache-2.0
"""Executor: concurrent.futures' interface, each call in its own single-use process."""

from __future__ import annotations

import atexit
import concurrent.futures
import functools
import itertools
import os
import threading
import weakref
from collections import deque
from typing import Any, Callable, Deque, Iterable, Iterator, List, Optional, Set, Tuple, Type

from . import _check, _resolve
from ._base import Path
from ._futures import CallFuture
from ._order import OnLog, OnOutput, Options, Order
from ._policy import Policy, deadline
from ._raised import Kinds, both, kinds_of, raising, throw
from .errors import Crashed, Lost, MemoryLimit, NoResult, ToolError, VitroError
from .sandbox import Sandbox

__all__ = ["Executor"]

_PROCESS_FAILED = (_resolve.INITIALIZER_FAILED, "ExitCode")  # not what the function raised

_executors: "weakref.WeakSet[Executor]" = weakref.WeakSet()
_is_exiting = False


class Executor(concurrent.futures.Executor):
    """A concurrent.futures.Executor instead of ProcessPoolExecutor: each call has its own sealed, single-use process.

        with vitro.Executor() as executor:
            print([*executor.map(parse, texts)])

    max_workers     how many calls run at once; others wait. By default one per CPU.
    initializer, initargs
                    called before calls, as in a worker of ProcessPoolExecutor. It is called once, in the interpreter that
                    the calls' processes are forked from, so that each has what it set up (and again when that interpreter is
                    replaced). It is called in each process instead, as part of the call, if a fork would not have all of it:
                    if it raises, starts a thread, or leaves a process, an open file, a file in /tmp or another working
                    directory behind; and also if the policy lets calls write to files of this machine, which it might read.
                    What it leaves running ends with the executor. The global random generators are reseeded after it.
    mp_context, max_tasks_per_child
                    accepted so that a ProcessPoolExecutor can be replaced; a process here never has a second task

    timeout         seconds that each call may take, instead of the policy's deadline, which is 30 s by default
    result_types, trust_results
                    what may come back besides plain data: see Sandbox.call()
    error_types     classes of exceptions, besides the built-in ones, that calls may raise here. What a function raises is
                    a ToolError that is also of its own class, so `except ValueError` works. Exceptions of other classes are
                    only ToolErrors.
    on_output, on_log
                    called with what calls print and log, in the thread of the futures

    A call has its own working directory, which is removed afterwards: what it writes to a relative path is lost. Return what
    it made, or grant a folder in the policy's files.write and write there by absolute path.

    The rest is as for Sandbox. cancel() of a future ends its process even if it already runs. If a process dies, only its own
    future fails, with an error that is also a BrokenProcessPool.
    """

    @_check.telling(_check.OF_HOST)
    def __init__(self, max_workers: Optional[int] = None, mp_context: Any = None,
                 initializer: Optional[Callable[..., Any]] = None, initargs: Tuple[Any, ...] = (), *,
                 max_tasks_per_child: Optional[int] = None, timeout: Optional[float] = None, policy: Policy = None,
                 python: Optional[Path] = None, preload: Iterable[str] = (), socket: Optional[Path] = None,
                 ready_min: int = 0, ready_max: int = 0, result_types: Iterable[type] = (), trust_results: bool = False,
                 error_types: Iterable[Type[BaseException]] = (), on_output: Optional[OnOutput] = None,
                 on_log: Optional[OnLog] = None) -> None:
        _check.number("max_workers", max_workers, "max_workers must be greater than 0")
        if initializer is not None and not callable(initializer):
            raise TypeError("initializer must be a callable")
        _check.number("max_tasks_per_child", max_tasks_per_child, "max_tasks_per_child must be >= 1")
        first_args = tuple(_check.items("initargs", "arguments", initargs))
        deadline(policy, timeout)
        self._max_workers = max_workers or _count_cpus()
        self._sandbox = Sandbox(policy, python=python, preload=preload, socket=socket, ready_min=ready_min,
                                ready_max=ready_max)
        if initializer is not None:
            self._sandbox._orders.begin_with(initializer, first_args)
        self._options = Options(timeout, None, on_output, on_log, False, "")
        self._types, self._trust = _check.items("result_types", "classes", result_types), trust_results
        self._kinds = kinds_of(error_types)
        self._state = threading.Condition(threading.Lock())
        self._waiting: Deque[Tuple[_Task, Order]] = deque()
        self._begun: Set[_Task] = set()  # those that have a worker
        self._unsettled: Set[_Task] = set()  # those whose call-backs have not all run
        self._settling: List[int] = []  # threads that run call-backs
        self._is_dispatching = self._is_shut = False
        self._is_left = False  # to close itself, when all is done
        _executors.add(self)

    # -- what concurrent.futures.Executor has

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "concurrent.futures.Future[Any]":
        """Calls fn(*args, **kwargs) in its own process. Arguments are pickled at once."""
        self._check_open()
        task = _Task(self)
        try:
            order = self._sandbox._orders.call(fn, args, kwargs, self._options, self._types, self._trust)
        except Exception as error:
            task._executor.clear()
            task.set_exception(error)
            return task
        with self._state:
            self._check_open()
            self._waiting.append((task, order))
            self._unsettled.add(task)
        self._dispatch()
        return task

    def map(self, fn: Callable[..., Any], *iterables: Iterable[Any], timeout: Optional[float] = None, chunksize: int = 1,
            **more: Any) -> Iterator[Any]:
        """Like map(fn, *iterables), but concurrently. chunksize: how many calls share a process, one after the other; if one
        fails, all of them do. Leaving the iterator early ends calls that are under way."""
        _check.number("chunksize", chunksize, "chunksize must be >= 1.")
        if chunksize == 1:
            return super().map(fn, *iterables, timeout=timeout, **more)
        sizes: Deque[int] = deque()
        chunks = super().map(functools.partial(_resolve.call_each, fn), _chunks(zip(*iterables), chunksize, sizes),
                             timeout=timeout, **more)
        return _each_of(chunks, sizes)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accepts no more calls. cancel_futures: those that have not started are cancelled; the others run to their end."""
        with self._state:
            if wait and threading.get_ident() in self._settling:
                raise RuntimeError("a call-back of a future cannot wait for its executor's end: shutdown(wait=False)")
            self._is_shut = True
            dropped = [task for task, _ in self._waiting] if cancel_futures else []
        for task in dropped:
            task.cancel()
        with self._state:
            if wait:
                self._state.wait_for(lambda: not self._unsettled)
            elif self._unsettled:
                self._is_left = True
                return
        self._sandbox.close()

    # -- within

    def _check_open(self) -> None:
        if self._is_shut:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if _is_exiting:
            raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    def _dispatch(self) -> None:
        """Begins calls while there are workers. One thread does at a time: others need not wait for a supervisor's start,
        and a call that fails at once, which comes back to here, makes no deep stack."""
        with self._state:
            if self._is_dispatching:
                return  # whoever does will find it
            self._is_dispatching = True
        while True:
            with self._state:
                found = self._take()
                if found is None:
                    self._is_dispatching = False
                    return
            task, order = found
            try:
                self._sandbox._submit(self._options, lambda: order, task)
            except Exception as error:
                failure = error
                task.settle(lambda: throw(failure))
            except BaseException as error:  # as Ctrl-C in submit()
                other = error
                with self._state:
                    self._is_dispatching = False
                task.settle(lambda: throw(other))
                raise

    def _take(self) -> "Optional[Tuple[_Task, Order]]":
        """The next that is to begin. The lock is held."""
        while self._waiting and len(self._begun) < self._max_workers:
            task, order = self._waiting.popleft()
            if not task.cancelled():
                self._begun.add(task)
                task.is_begun = True
                return task, order
        return None

    def _free(self, task: "_Task") -> None:
        """A worker is free: the next call does not wait for what the call-backs of this one do."""
        with self._state:
            self._begun.discard(task)
            self._settling.append(threading.get_ident())
        self._dispatch()

    def _end(self, task: "_Task") -> None:
        with self._state:
            self._settling.remove(threading.get_ident())
            self._unsettled.discard(task)
            self._state.notify_all()
            is_last = self._is_left and not self._unsettled
        if is_last:
            self._sandbox.close()


class _Task(CallFuture):
    """The future of a call that may have to wait for a worker."""

    def __init__(self, executor: Executor) -> None:
        super().__init__()
        self._kinds = executor._kinds
        self._executor: List[Executor] = [executor]  # until it is over: then it may go
        self.is_begun = False

    def running(self) -> bool:
        """Whether the call is under way."""
        return self.is_begun and not self.done()

    def cancel(self) -> bool:
        """Ends the call, whatever it is doing. False: it was over already."""
        return bool(self._leave(super().cancel))

    def settle(self, outcome: Callable[[], Any]) -> None:
        """Gives it what the outcome is, or raises, as callers of an executor expect it."""
        settle = super().settle
        self._leave(lambda: settle(lambda: _as_expected(outcome, self._kinds)))

    def _leave(self, act: Callable[[], Any]) -> Any:
        """Does what ends it; its call-backs run meanwhile."""
        try:
            executor = self._executor.pop()  # by one thread
        except IndexError:
            return act()
        executor._free(self)
        try:
            return act()
        finally:
            executor._end(self)


def _as_expected(outcome: Callable[[], Any], kinds: Kinds) -> Any:
    try:
        return raising(outcome, kinds)
    except (Crashed, NoResult, MemoryLimit, Lost) as error:
        failure: VitroError = error
    except ToolError as error:
        if error.type not in _PROCESS_FAILED:
            raise
        failure = error
    from concurrent.futures.process import BrokenProcessPool  # multiprocessing comes with it, so not before
    raise both(failure, BrokenProcessPool) from failure.__cause__


def _chunks(rows: Iterator[Tuple[Any, ...]], size: int, sizes: Deque[int]) -> Iterator[List[Tuple[Any, ...]]]:
    while True:
        chunk = [*itertools.islice(rows, size)]
        if not chunk:
            return
        sizes.append(len(chunk))
        yield chunk


def _each_of(chunks: Iterator[Any], sizes: Deque[int]) -> Iterator[Any]:
    """The values of all chunks. A process that gave more or fewer would have others' results be taken for another's."""
    for values in chunks:
        size = sizes.popleft()
        if type(values) is not list or len(values) != size:
            raise NoResult(f"a chunk of {size} calls did not come back as {size} values")
        yield from values


def _count_cpus() -> int:
    count: Callable[[], Optional[int]] = getattr(os, "process_cpu_count", os.cpu_count)
    return count() or 1


def _finish_all() -> None:
    """At the program's end: calls are not given up because nobody waits for them."""
    global _is_exiting
    _is_exiting = True
    for executor in [*_executors]:
        executor.shutdown()


# The first finalizer of a program has all of them run at its end. What is registered behind it runs before.
weakref.finalize(_finish_all, int)
atexit.register(_finish_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_executors.clear)  # nobody does what a parent's executor has begun
