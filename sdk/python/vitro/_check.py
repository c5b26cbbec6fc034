# SPDX-License-Identifier: Apache-2.0
"""Arguments of the wrong type, told by their names before anything is made of them."""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from typing import Any, Callable, Iterable, List, Mapping, Optional, TypeVar, cast

from ._say import closest

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])

# What is tried first, and where it goes.
OF_CALL = {"memory": "the policy: limits.memory_mb", "network": "the policy: network", "read": "the policy: files.read",
           "write": "the policy: files.write", "cwd": "the policy: files.cwd", "env": "the policy: env.set and env.pass"}
OF_HOST = {**OF_CALL, "files": "the policy: files.read and files.write"}
OF_SANDBOX = {**OF_HOST, "timeout": "each call, or to the policy: limits.wall_ms"}


def _show(value: Any) -> str:
    try:
        return f"{type(value).__name__} ({value!r:.60})"
    except Exception:  # of its own __repr__
        return type(value).__name__


def elsewhere(function: Callable[..., Any], given: Iterable[str], known: Iterable[str], places: Mapping[str, str]) -> None:
    """Raises TypeError for a name that is not known: where it goes, or which one is near."""
    for name in given:
        if name in places:
            raise TypeError(f"{name} goes to {places[name]}")
        near = None if name in known else closest(name, [*known, *places])
        if near is not None:
            raise TypeError(f"{function.__qualname__}() got an unexpected keyword argument {name!r}; did you mean {near!r}?")


def telling(places: Mapping[str, str]) -> Callable[[Function], Function]:
    """For a function, whose signature stays as it is: keyword arguments that go elsewhere are told where, and misspelt ones
    what they may be."""
    def wrap(function: Function) -> Function:
        known = inspect.signature(function).parameters.keys()

        @functools.wraps(function)
        def told(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.keys() <= known:
                elsewhere(function, kwargs, known, places)
            return function(*args, **kwargs)

        @functools.wraps(function)
        async def told_awaited(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.keys() <= known:
                elsewhere(function, kwargs, known, places)
            return await function(*args, **kwargs)

        return cast(Function, told_awaited if inspect.iscoroutinefunction(function) else told)
    return wrap


def warn_of_own(func: Callable[..., Any], given: Mapping[str, Any]) -> None:
    """Warns where what is given to a sandbox is also the name of an argument of the function: which of them was meant?"""
    names = [name for name, value in given.items() if value is not None and value is not False and value not in ("", ())]
    code = getattr(inspect.unwrap(func), "__code__", None) if names else None
    if code is None:
        return
    for name in names:
        if name in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
            warnings.warn(f"{name} is taken by the sandbox; {func.__qualname__}() has an argument of that name, which "
                          f"functools.partial(..., {name}=...) sets", RuntimeWarning, stacklevel=3)


def items(name: str, of: str, given: Iterable[Item]) -> List[Item]:
    """The items of what is to be a list; a text is one of letters, which nobody means."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f"{name} is a list of {of}, not a text")
    try:
        return [*given]
    except TypeError:
        raise TypeError(f"{name} is a list of {of}, not {_show(given)}") from None


def texts(name: str, of: str, given: Iterable[str]) -> List[str]:
    found = items(name, of, given)
    for at, one in enumerate(found):
        if not isinstance(one, str):
            raise TypeError(f"{name}[{at}] is a text, not {_show(one)}")
    return found


def text(name: str, given: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{name} is a text, not {_show(given)}")
    return given


def flag(name: str, given: bool) -> None:
    """What opens something up is not opened by a text such as "no"."""
    if given is not False and given is not True:
        raise TypeError(f"{name} is True or False, not {_show(given)}")


def path(name: str, given: Any) -> str:
    found = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(found, str):
        raise TypeError(f"{name} is a path, not {_show(given)}")
    return found


def number(name: str, given: Optional[int], words: str) -> Optional[int]:
    """A whole number above 0, or None. words: what Python's own executors say of others."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise TypeError(f"{name} is a whole number, not {_show(given)}")
    if given is not None and given <= 0:
        raise ValueError(words)
    return given
