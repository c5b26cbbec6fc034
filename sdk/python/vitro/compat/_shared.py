# SPDX-License-Identifier: Apache-2.0
"""What the drop-ins have in common: the sandboxes of this process, and what calls may use by default.

Programs make a sandbox of a framework for each agent, or for each call. Here all of them use one supervisor, which has a
pool for each policy, and forgets those that are not used.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
import threading
import uuid
import weakref
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .._logs import emit, tool_log, visible, visible_lines
from .._paths import _PRIVATE, _is_wide, _working
from .._policy import Policy, absolute_path
from .._result import Result
from ..aio import AsyncSandbox
from ..sandbox import Sandbox

DAY = 86400.0  # seconds: no deadline is later
_ID_BYTES = 250
_KEYS = {"memory_limit": "limits.memory_mb", "cpu_limit": "limits.cpu_ms", "result_limit": "limits.result_mb"}

_lock = threading.Lock()
_sandbox: Optional[Sandbox] = None
_of_loops: List[Tuple["weakref.ref[asyncio.AbstractEventLoop]", AsyncSandbox]] = []


def shared_sandbox() -> Sandbox:
    """The one for threads."""
    global _sandbox
    with _lock:
        if _sandbox is None:
            _sandbox = Sandbox()
        return _sandbox


def shared_async_sandbox() -> AsyncSandbox:
    """The one for the event loop that runs: its own, or one that was that of a loop which is over."""
    loop = asyncio.get_running_loop()
    with _lock:
        free = None
        for number, (owner, sandbox) in enumerate(_of_loops):
            known = owner()
            if known is loop:
                return sandbox
            if known is None or known.is_closed():
                free = number
        if free is None:
            _of_loops.append((weakref.ref(loop), AsyncSandbox()))
            return _of_loops[-1][1]
        _of_loops[free] = weakref.ref(loop), _of_loops[free][1]
        return _of_loops[free][1]


async def sealed(make: Callable[[Any, str], Any], call_id: str = "") -> Result:
    """What becomes of a call. make(sandbox, id) makes it, of either kind of sandbox: on the event loop that runs, or, in a
    program of trio's, in a thread that waits for it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return await _in_thread(make)
    made: Result = await make(shared_async_sandbox(), id_for(call_id))
    return made


async def _in_thread(make: Callable[[Any, str], Any]) -> Result:
    trio = sys.modules.get("trio")
    if trio is None:
        raise RuntimeError("neither an event loop of asyncio nor one of trio runs here")
    sandbox, call_id, over = shared_sandbox(), uuid.uuid4().hex, threading.Event()

    def work() -> Any:
        try:
            return make(sandbox, call_id)
        finally:
            over.set()

    def stop() -> None:  # the call may be yet to begin
        while not sandbox.cancel(call_id) and not over.wait(0.01):
            pass

    try:
        made: Result = await trio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))
    except trio.Cancelled:
        threading.Thread(target=stop, name="vitro cancels", daemon=True).start()
        raise
    return made


def _renew_lock() -> None:
    # Another thread of the parent's may have had it.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


# ---- policies -----------------------------------------------------------------------------------------------------


def lay_over(policy: Policy, default: Dict[str, Any]) -> Policy:
    """A policy that is a dict says what differs from the default: lists are added to its lists, all else takes its
    place. One that extends another, a file, and a built-in policy's name stand for themselves."""
    if policy is None:
        return default
    if not isinstance(policy, Mapping) or "extends" in policy:
        return policy
    return _merge(default, policy)


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> Dict[str, Any]:
    made = dict(under)
    for key, value in over.items():
        known = made.get(key)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            made[key] = _merge(known, value)
        elif isinstance(known, list) and isinstance(value, (list, tuple, set, frozenset)):
            made[key] = [*known, *value]
        else:
            made[key] = value
    return made


def default_policy(cwd: Optional[str], *, network: bool = False) -> Dict[str, Any]:
    """No network, unless that is asked for; that folder, where calls start, for reading. What a sandbox adds by itself are
    the folders of sys.path for reading, a private /tmp and a minimal environment."""
    policy: Dict[str, Any] = {"network": "host" if network else "none"}
    if cwd is not None:
        policy["files"] = {"read": [cwd], "cwd": cwd}
    return policy


def working_directory() -> Optional[str]:
    """This program's, if calls may have it."""
    cwd = _working()
    return cwd if _may_have(cwd) else None


@functools.lru_cache(maxsize=64)
def _may_have(cwd: str) -> bool:
    """Not the home folder, nor one around it: they hold all keys. Nor /tmp, of which a cell has its own."""
    if cwd in _PRIVATE:
        return False
    if _is_wide(cwd):
        logging.getLogger("vitro").warning(
            "the working directory %r is the home folder or one around it: tools in cells do not get it. Start in a folder "
            "of the project's own, or name what they need in files.read of the policy", cwd)
        return False
    return True


def folder_of(path: Any) -> str:
    """A folder that somebody named, whatever it is: as an absolute path."""
    return str(absolute_path(os.fspath(path)))


# ---- calls --------------------------------------------------------------------------------------------------------


def id_for(call_id: str) -> str:
    """The caller's id, if it can be one of a call's; else none, and one is made."""
    is_fit = isinstance(call_id, str) and call_id.isprintable() and len(call_id.encode("utf-8", "replace")) <= _ID_BYTES
    return call_id if is_fit else ""


def log_output(name: str, result: Result) -> None:
    """What a tool printed is nobody's output: it is logged, for who wants to see it."""
    if tool_log.isEnabledFor(logging.DEBUG):
        for stream, text in (("stdout", result.stdout), ("stderr", result.stderr)):
            if text:
                emit(tool_log, logging.DEBUG, f"{name}: {stream}: ", text)


def cause_of(result: Result) -> Tuple[str, str]:
    """The type and the text of what went wrong, which names the policy's key where that is a limit."""
    if result.error is None:
        return "Error", ""
    key = _KEYS.get(result.status)
    said = visible_lines(result.error.message)
    return visible(result.error.type), said if key is None or key in said else f"{said}; the policy's key is {key}"


def has_begun(result: Result) -> bool:
    """Whether a call came to a cell."""
    return result.isolation is not None
