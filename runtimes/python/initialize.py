# SPDX-License-Identifier: Apache-2.0
"""A function of the host's that is called before calls.

Best once, in the zygote: a fork has all of what it did. That is so only where it did nothing that a fork has not, and
where it cannot have read what a call wrote. Otherwise each occupant calls it, as part of its call.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys

from . import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Mapping, Optional, Set, Tuple

NAME = "the initializer"  # as the supervisor knows it among modules
_DESCRIPTORS = 1024  # that are looked at
_WRITTEN = ("/tmp", "/var/tmp", "/dev/shm")  # a cell has its own


class InitializerFailed(Exception):
    """The initializer raised, so there can be no call."""


InitializerFailed.__name__ = resolve.INITIALIZER_FAILED


def call(initializer: Mapping[str, Any]) -> None:
    """Calls it. Raises InitializerFailed."""
    try:
        buffers = [base64.b64decode(text) for text in initializer["buffers"]]
        function = resolve.resolve(initializer["function"], buffers)
        args, kwargs = pickle.loads(buffers[-1])
        function(*args, **kwargs)
    except BaseException as error:
        raise InitializerFailed(f"the initializer failed: {type(error).__name__}: {error}") from error
    resolve.keep()


def try_once(initializer: Mapping[str, Any], find_hindrance: Callable[[], Optional[str]]) -> Optional[str]:
    """Calls it in the zygote. What is in the way of leaving it at that; None: nothing."""
    before = _traces()
    try:
        call(initializer)
    except InitializerFailed as error:
        return f"{error}: it is called in each cell"
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # else each fork does
    hindrance = find_hindrance() or ("leaves a process behind, which calls would not have" if _has_child() else None)
    if hindrance:
        return f"the initializer {hindrance}: it is called in each cell"
    for what, old, new in zip(("an open file", "a file", "another working directory"), before, _traces()):
        if old != new:
            return f"the initializer leaves {what} behind: it is called in each cell"
    return None


def _traces() -> Tuple[Set[int], Set[str], str]:
    """What an occupant does not have of the zygote's."""
    return {fd for fd in range(_DESCRIPTORS) if _is_open(fd)}, {name for folder in _WRITTEN for name in _list(folder)}, os.getcwd()


def _has_child() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] == 0
    except ChildProcessError:
        return False


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _list(folder: str) -> Set[str]:
    try:
        return {f"{folder}/{name}" for name in os.listdir(folder)}
    except OSError:
        return set()
