# SPDX-License-Identifier: Apache-2.0
"""How a call ended: one shape, the same as `vitro run --json` prints."""

from __future__ import annotations

import base64
import datetime
import json
import math
from dataclasses import dataclass, field, fields
from typing import Any, Callable, Dict, List, NamedTuple, Optional

# Every status, and the name of its error where none is given.
STATUSES = {"ok": "", "error": "Error", "timeout": "Timeout", "cpu_limit": "CpuLimit", "memory_limit": "MemoryLimit",
            "crashed": "Crashed", "no_result": "NoResult", "result_limit": "ResultLimit", "cancelled": "Cancelled",
            "refused": "Refused", "lost": "Lost"}

_INT_BITS = 14_000  # fewer than 4300 digits
_LAST_WORDS = 2000  # bytes of a command's standard error that its error has as a tool
_LAST_LINE = 300  # characters that its exception has
_SHOWN = 1000  # bytes of each output that repr() shows


class Error(NamedTuple):
    """What went wrong. Where a tool failed, all of it is its own words."""

    type: str
    message: str
    traceback: Optional[str] = None


class Log(NamedTuple):
    """A line that a tool logged."""

    level: str
    text: str


@dataclass(frozen=True)
class Shown:
    """What code came to, where that is no plain data, as a notebook shows it: `str()` of it is the text. Only eval() gives one.

    type  of the value, as "module:Class"
    text  what repr() made of the value in the cell, 32,768 characters at the most
    """

    type: str
    text: str

    def __str__(self) -> str:
        return self.text


class Usage(NamedTuple):
    """What a call took. peak_memory_kb and processes are None where they are not known."""

    wall_ms: float = 0.0
    cpu_ms: float = 0.0
    peak_memory_kb: Optional[int] = None
    processes: Optional[int] = None


@dataclass(repr=False)
class Result:
    """How a call ended, and all that is known of it.

    call_id      the call's id
    status       "ok", "error", "timeout", "cpu_limit", "memory_limit", "crashed", "no_result", "result_limit",
                 "cancelled", "refused" or "lost": one cause, one status
    value        what the function returned or the code came to; None for a command; a Shown if the code's value is not plain data
    error        an Error with type, message and traceback; None if ok
    exit_code    of its process, if it exited by itself
    signal       the one that it died of; 9 if vitro ended it
    stdout_bytes, stderr_bytes
                 what it printed; `stdout` and `stderr` are the same as text
    dropped      how many bytes of each were dropped, because of `limits.stdout_kb` and `limits.stderr_kb`
    logs         lines that the tool logged, each a Log with level and text
    usage        a Usage: wall_ms, cpu_ms, peak_memory_kb, processes
    isolation    what was really applied: the level, and the mechanism for each property; None if no cell was used
    files        the files that `collect` matched, by name
    denials      None: denials were not observed
    unreaped     something in the cell did not die in time
    protected    what became of protected names (`files.protect`): {"set_apart": [{"path", "to"}], "replaced": [path],
                 "unseen": [{"path", "error"}]}; None if nothing
    """

    call_id: str
    status: str
    value: Any = None
    error: Optional[Error] = None
    exit_code: Optional[int] = None
    signal: Optional[int] = None
    stdout_bytes: bytes = b""
    stderr_bytes: bytes = b""
    dropped: Dict[str, int] = field(default_factory=lambda: {"stdout": 0, "stderr": 0})
    logs: List[Log] = field(default_factory=list)
    usage: Usage = Usage()
    isolation: Optional[Dict[str, Any]] = None
    files: Dict[str, bytes] = field(default_factory=dict)
    denials: Optional[List[Any]] = None
    unreaped: bool = False
    protected: Optional[Dict[str, Any]] = None

    @property
    def ok(self) -> bool:
        """Whether the call did what it should."""
        return self.status == "ok"

    @property
    def stdout(self) -> str:
        """What was printed to standard output; U+FFFD stands for what is not UTF-8."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """The same of standard error."""
        return self.stderr_bytes.decode("utf-8", "replace")

    def __repr__(self) -> str:
        shown = (f"{one.name}={_show(getattr(self, one.name), repr)}" for one in fields(self) if not one.name.endswith("_bytes"))
        printed = (f"{name}={_show_bounded(data)}" for name, data in (("stdout", self.stdout_bytes), ("stderr", self.stderr_bytes)))
        return f"Result({', '.join([*shown, *printed])})"

    def unwrap(self) -> Any:
        """The value, or the exception that the call without `result=True` would have raised."""
        if self.status != "ok":
            from .errors import error_of
            raise error_of(self)
        return self.value

    def to_dict(self) -> Dict[str, Any]:
        """The result as plain dicts and lists, with the members of `vitro run --json`. The value is as it is."""
        shape: Dict[str, Any] = {
            "call_id": self.call_id, "ok": self.ok, "status": self.status, "value": self.value,
            "error": self.error._asdict() if self.error else None, "exit_code": self.exit_code, "signal": self.signal,
            "stdout": self.stdout, "stderr": self.stderr, "dropped": dict(self.dropped),
            "logs": [log._asdict() for log in self.logs], "usage": self.usage._asdict(),
            "isolation": self.isolation, "files": dict(self.files), "denials": self.denials}
        if self.protected is not None:
            shape["protected"] = self.protected
        if self.unreaped:
            shape["unreaped"] = True
        return shape

    def to_json(self) -> str:
        """The result as one line of JSON. Of the value, and of files, what JSON cannot say is written as
        near to it as can be: tuples and sets as lists, times in ISO form, bytes as text or in base64, integers of more
        than 4300 digits, which Python itself does not write, as text in hexadecimal."""
        return json.dumps(_plain(self.to_dict()), allow_nan=False)


def _plain(value: Any) -> Any:
    """The same as JSON can say it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value if value.bit_length() <= _INT_BITS else hex(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key if isinstance(key, str) else _show(key, str): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(part) for part in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        try:
            return str(value, "utf-8")
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return _show(value, str)


def _show(value: Any, show: Callable[[Any], str]) -> str:
    """A value as text. It may be a cell's, which must not be able to make a line of somebody's log fail."""
    try:
        return show(value)
    except Exception as error:  # an integer of too many digits; nested too deep
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def _show_bounded(data: bytes) -> str:
    text = repr(data[:_SHOWN].decode("utf-8", "replace"))
    return text if len(data) <= _SHOWN else f"{text}... ({len(data)} bytes)"


def last_words(data: bytes) -> str:
    """The end of standard error, from the beginning of a line."""
    data = data.rstrip(b" \t\r\n\0")
    if len(data) > _LAST_WORDS:
        data = data[-_LAST_WORDS:]
        data = data[data.find(b"\n") + 1:]
    return data.replace(b"\0", b" ").decode("utf-8", "replace")


def last_line(data: bytes) -> str:
    """The last line of that."""
    return last_words(data).rpartition("\n")[2][:_LAST_LINE]
