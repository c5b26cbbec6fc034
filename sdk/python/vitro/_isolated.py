# SPDX-License-Identifier: Apache-2.0
"""@isolated: a function whose calls run in cells."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
import os
import sys
import weakref
from concurrent.futures import Future
from typing import Any, Callable, Dict, Iterable, NamedTuple, Optional, Tuple, Type, TypeVar, Union, overload

from . import _check
from ._order import Options
from ._policy import Policy, deadline, sources_of
from ._raised import kinds_of, raising, throw
from .errors import VitroError
from .sandbox import Sandbox

Function = TypeVar("Function", bound=Callable[..., Any])

# One for each policy, made when it is first used, and closed at the program's end.
_sandboxes: Dict[str, Sandbox] = {}
# Functions that were called before: what their calls need has been started.
_warm: "weakref.WeakSet[Callable[..., Any]]" = weakref.WeakSet()
_kinds = functools.lru_cache(maxsize=256)(kinds_of)


class _Terms(NamedTuple):
    """What a decorated function's calls are subject to. It is sent to cells with functions of a script, so it is plain."""

    timeout: Optional[float]
    policy: Policy
    key: str  # of the policy
    result_types: Tuple[type, ...]
    trust_results: bool
    error_types: Tuple[Type[BaseException], ...]


@overload
def isolated(function: Function) -> Function: ...


@overload
def isolated(*, timeout: Optional[float] = None, memory: Optional[int] = None, policy: Policy = None,
             result_types: Iterable[type] = (), trust_results: bool = False,
             error_types: Iterable[Type[BaseException]] = ()) -> Callable[[Function], Function]: ...


def isolated(function: Optional[Function] = None, *, timeout: Optional[float] = None, memory: Optional[int] = None,
             policy: Policy = None, result_types: Iterable[type] = (), trust_results: bool = False,
             error_types: Iterable[Type[BaseException]] = ()) -> Union[Function, Callable[[Function], Function]]:
    """Decorator: each call of the function runs in its own cell.

        @vitro.isolated(timeout=2, memory=256)
        def parse(document):
            ...

        parse(text)  # as before, sealed

    timeout     seconds that a call may take; 30 by default
    memory      megabytes that it may use; 512 by default
    policy      what else it may use: as for Sandbox
    error_types classes of exceptions, besides the built-in ones, that calls may raise. What the function raises is a
                ToolError that is also of its own class.
    result_types, trust_results
                what may come back besides plain data: see Sandbox.call()

    A coroutine function is awaited as before; cancelling it ends the cell. For a method, the object is sent as an argument,
    and what a call changes in it is not seen here. Inside a cell a decorated function is called directly, so recursion, and
    a decorated function that calls another, cost nothing; the limits are those of the call that the program made. The
    undecorated function is `__wrapped__`.

    Functions with the same policy share a sandbox, which is made at the first call and ends with the program.
    """
    policy = _within(policy, memory)
    deadline(policy, timeout)
    error_types = tuple(_check.items("error_types", "classes", error_types))
    kinds_of(error_types)  # these raise what is wrong with them now, and not at some call
    terms = _Terms(timeout, policy, json.dumps(sources_of(policy), sort_keys=True), tuple(_check.items("result_types", "classes", result_types)), trust_results,
                   error_types)
    if function is not None:
        return _decorate(function, terms)
    return lambda function: _decorate(function, terms)


def _decorate(function: Function, terms: _Terms) -> Function:
    if isinstance(function, (staticmethod, classmethod)):
        raise TypeError(f"write @{type(function).__name__} above @isolated")
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"@isolated is for functions, not for {function!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function.__qualname__} is a generator, whose values cannot leave a cell one by one: return a list")
    # Both refer to nothing but what a cell can have, too.
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_in_cell():
                return await function(*args, **kwargs)
            return await _call_later(function, terms, args, kwargs)
    else:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            if is_in_cell():
                return function(*args, **kwargs)
            return _call(function, terms, args, kwargs)
    return wrapper  # type: ignore[return-value]


def is_in_cell() -> bool:
    """Whether this very process does a call of a Python function or of code."""
    return "_vitro_runtime" in sys.modules


def _within(policy: Policy, memory: Optional[int]) -> Policy:
    """The policy with that limit."""
    if memory is None:
        return policy
    if isinstance(memory, bool) or not isinstance(memory, int) or memory < 1:
        raise ValueError(f"memory is a number of megabytes, not {memory!r}")
    limits = {"memory_mb": memory}
    if policy is None:
        return {"limits": limits}
    if isinstance(policy, (str, os.PathLike)):
        return {"extends": policy, "limits": limits}
    return {**policy, "limits": {**policy.get("limits", {}), **limits}}


def _find_sandbox(terms: _Terms) -> Sandbox:
    found = _sandboxes.get(terms.key)
    return _sandboxes.setdefault(terms.key, Sandbox(terms.policy)) if found is None else found


def _options(terms: _Terms) -> Options:
    return Options(terms.timeout, None, None, None, False, "")


def _call(function: Callable[..., Any], terms: _Terms, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    sandbox, kinds = _find_sandbox(terms), _kinds(terms.error_types)
    if not (kwargs or terms.timeout or terms.result_types or terms.trust_results):
        return raising(lambda: sandbox.call(function, *args), kinds)  # which has a shorter way
    options = _options(terms)
    return raising(lambda: sandbox._do(options, lambda: sandbox._orders.call(
        function, args, kwargs, options, terms.result_types, terms.trust_results)), kinds)


async def _call_later(function: Callable[..., Any], terms: _Terms, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
    """The same by a future: one sandbox is for the loops of all threads."""
    sandbox, options = _find_sandbox(terms), _options(terms)

    def begin() -> "Future[Any]":
        return sandbox._submit(options, lambda: sandbox._orders.call(
            function, args, kwargs, options, terms.result_types, terms.trust_results))

    # Where a supervisor or an interpreter may have to start first, no loop should wait for it.
    future = begin() if function in _warm else await _in_thread(begin)
    _warm.add(function)
    try:
        return await asyncio.wrap_future(future)
    except VitroError as error:
        failure = error
    return raising(lambda: throw(failure), _kinds(terms.error_types))


async def _in_thread(begin: "Callable[[], Future[Any]]") -> "Future[Any]":
    """What it gives, from a thread. Whoever stops waiting for that ends the call."""
    context = contextvars.copy_context()
    beginning = asyncio.get_running_loop().run_in_executor(None, lambda: context.run(begin))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        beginning.add_done_callback(lambda done: done.cancelled() or done.exception() or done.result().cancel())
        raise
