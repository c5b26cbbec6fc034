# SPDX-License-Identifier: Apache-2.0
"""What an exception looks like to the caller: a type, a sentence, a traceback of the tool's own frames."""

from __future__ import annotations

import asyncio
import errno
import os
import traceback

from . import talk

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Iterator, Optional, Tuple

TEXT_MAX = talk.LOG_MAX
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep
_ASYNCIO = os.path.dirname(os.path.abspath(asyncio.__file__)) + os.sep


def name_error(error: BaseException) -> bytes:
    """The name of its class, which the tool may have made: UTF-8 in any case, without the NUL that ends a name."""
    try:
        text = type(error).__name__.replace("\0", "")
        data = text.encode("utf-8", "backslashreplace")[:talk.NAME_MAX]
    except BaseException:  # of a metaclass
        return b"Exception"
    return data.decode("utf-8", "ignore").encode()


def say(error: BaseException) -> bytes:
    """What the exception says, and, if it looks like a denial, the policy's key that would allow it."""
    try:
        text = str(error)
    except BaseException:  # of the tool's own class
        text = "(an exception that cannot be shown)"
    try:
        advice = _advise(error)
    except BaseException:
        advice = None
    if advice:
        text = f"{text}; {advice}" if text else advice
    return _bound(text)


def show(error: BaseException) -> bytes:
    """The traceback as Python prints it, without the frames of what runs the call; chained exceptions too."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        _drop_frames(shown, 0)
        return _bound("".join(shown.format()))
    except BaseException as other:  # MemoryError; a __str__ that raises
        return _bound(f"(the traceback of a {name_error(error).decode()} cannot be shown: {name_error(other).decode()})\n")


def _bound(text: str) -> bytes:
    """The beginning and, since that is where it went wrong, more of the end."""
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= TEXT_MAX:
        return data
    first, last = TEXT_MAX // 4, TEXT_MAX * 3 // 4 - 100
    between = f"\n... {len(data) - first - last} bytes are left out ...\n".encode()
    return (data[:first].decode("utf-8", "ignore").encode() + between
            + data[-last:].decode("utf-8", "ignore").encode())


def _drop_frames(shown: Any, depth: int) -> None:
    """Drops vitro's own frames, those that import a module, and those of the event loop below the tool's first."""
    kept = [frame for frame in shown.stack
            if not frame.filename.startswith((_OWN, "<frozen importlib"))]
    while kept and kept[0].filename.startswith(_ASYNCIO):
        del kept[0]
    shown.stack[:] = kept
    if depth < 100:
        for other in (shown.__cause__, shown.__context__, *(getattr(shown, "exceptions", None) or ())):
            if other is not None:
                _drop_frames(other, depth + 1)


# ---- denials -------------------------------------------------------------------------------------

# errno → the key that bounds it. What is not here needs a look at the exception.
_LIMITS = {
    errno.EMFILE: "limits.open_files",
    errno.EFBIG: "limits.file_mb",
    errno.ENOSPC: "limits.tmp_mb",
    errno.EDQUOT: "limits.tmp_mb",
}
_NETWORK = {errno.EAFNOSUPPORT, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTUNREACH, errno.EADDRNOTAVAIL}
_DENIED = {errno.EACCES, errno.EPERM}
_GET_VARIABLE = getattr(type(os.environ).__getitem__, "__code__", None)


def _advise(error: BaseException) -> Optional[str]:
    for cause, is_reason in _chain(error):
        if isinstance(cause, KeyError) and _last_code(cause) is _GET_VARIABLE:
            return f"the cell has no variable {cause.args[0]}: it was not set when the sandbox started, or is not in env.pass"
        if isinstance(cause, FileNotFoundError):
            advice = _advise_missing(cause) if is_reason else None
            if advice:
                return advice
        elif isinstance(cause, OSError):
            key = _find_key(cause)
            if key:
                return f"if the cell was denied it, the policy's {'keys are' if ' and ' in key else 'key is'} {key}"
    if isinstance(error, MemoryError):
        return "the policy's key is limits.memory_mb"
    if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
        return "the policy's key is limits.pids"
    return None


def _chain(error: Optional[BaseException]) -> Iterator[Tuple[BaseException, bool]]:
    """An exception and what it came from: libraries wrap a denial in exceptions of their own. Whether each is said to be the
    reason, and not only what was handled when the next one was raised."""
    is_reason = True
    for _ in range(8):
        if error is None:
            return
        yield error, is_reason
        inner = getattr(error, "reason", None)  # urllib's
        inner = inner if isinstance(inner, OSError) else error.__cause__
        is_reason = is_reason and inner is not None
        error = inner or error.__context__


def _last_code(error: BaseException) -> Any:
    """The code that raised it, or called what did in C."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame.tb_frame.f_code if frame is not None else None


def _is_there(path: str) -> bool:
    """Whether there may be something, as far as the folders on the way can be looked into."""
    try:
        os.lstat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def _is_kept(path: str) -> bool:
    """Whether it lies in a folder of its own file system that can be written to: in a grant, where only what is protected, or granted
    for reading, is not."""
    if not path:
        return False
    folder = os.path.abspath(path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    device = os.lstat(folder).st_dev
    while folder != "/" and not os.access(folder, os.W_OK):
        folder = os.path.dirname(folder)
    return folder != "/" and os.stat(folder).st_dev == device


def _find_key(error: OSError) -> Optional[str]:
    number = error.errno
    if type(error).__name__ in ("gaierror", "herror"):
        return "network"
    if number in _LIMITS:
        return _LIMITS[number]
    if error.filename is None:
        if number == errno.EAGAIN and isinstance(error, BlockingIOError):
            return "limits.pids"  # of fork()
        is_denied = number in _DENIED and _is_of_socket(error)
        return "network" if is_denied or number in _NETWORK else None
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    if number == errno.EROFS:
        return "files.write and files.protect" if _is_kept(path) else "files.write"
    if number == errno.EBUSY and _is_kept(path):
        return "files.protect"
    if number in _DENIED:
        is_to_write = os.access(path, os.R_OK) or not _is_there(path)
        return "files.write" if is_to_write else "files.read and files.deny"  # what is denied is there, and closed
    return None


def _advise_missing(error: OSError) -> Optional[str]:
    """What a cell lacks looks the same whether the host has it or not. Only a folder that was granted shows all that is in it."""
    path = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else ""
    code = _last_code(error)
    if not path or "/" not in path and code is not None and code.co_name == "_execute_child":  # a program's name
        return None
    folder = parent = os.path.dirname(os.path.abspath(path))
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    if os.stat(folder).st_dev not in {os.stat(own).st_dev for own in ("/", "/tmp")}:  # file systems of the cell's own
        return None
    key = "files.read" if folder == parent else "files.read (files.write to write there)"
    if os.path.isabs(path) or os.getcwd() != "/tmp":
        return f"if the cell was denied it, the policy's key is {key}"
    return f"the call began in a /tmp of its own: the policy's keys are {key} and files.cwd, or eval() takes it by files"


def _is_of_socket(error: BaseException) -> bool:
    """socket() and connect() name no file; who calls them is Python's own module, or names them."""
    code = _last_code(error)
    return code is not None and ("socket" in os.path.basename(code.co_filename)
                                 or not {"connect", "connect_ex", "socket", "bind", "sendto"}.isdisjoint(code.co_names))
