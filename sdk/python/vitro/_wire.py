# SPDX-License-Identifier: Apache-2.0
"""The wire between a client and its supervisor (docs/wire.md): frames, heads, messages. No input or output is done here.

A Reader takes the stream apart: receive into get_buffer(), then advance() by what came gives the frames that are
complete. A body that is large is received straight into its own memory.
"""

from __future__ import annotations

import json
import re
import struct
from json.encoder import encode_basestring_ascii
from typing import Any, Dict, List, Optional, Tuple, Union

from ._codec import room

FRAME_MAX, HEAD_MAX, MEMBERS_MAX = 1 << 30, 1 << 16, 24
BIG = (1 << 63) - 1
Head = Dict[str, Any]
Frame = Tuple[bytes, memoryview]

LENGTHS = struct.Struct("<II")
_BUFFER = 1 << 17


class Broken(Exception):
    """The other side does not keep to the wire, or is gone."""


# ---- frames -------------------------------------------------------------------------------------------------------


def frame(head: bytes, body: int = 0) -> bytes:
    """A frame up to its body, which has that many bytes."""
    return LENGTHS.pack(len(head) + body, len(head)) + head


class Reader:
    """Takes a stream apart into frames, each a head and a body."""

    __slots__ = ("view", "_start", "_end", "_head", "_body", "_filled", "is_broken")

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0  # of what came and is not taken
        self._head = b""
        self._body: Optional[memoryview] = None  # a large one that is not complete
        self._filled = 0
        self.is_broken = False  # there is no frame to be found any more

    def get_buffer(self) -> memoryview:
        """Where the next bytes are to be received; never empty."""
        if self._body is not None:
            return self._body[self._filled:]
        return self.view[self._end:] if self._end else self.view

    @property
    def is_between(self) -> bool:
        """Whether there is nothing of a frame that is not complete."""
        return self._body is None and self._start == self._end

    def advance(self, count: int) -> List[Frame]:
        """The frames that are complete with the `count` bytes that came. Where what follows them is no frame, `is_broken`."""
        frames: List[Frame] = []
        if self._body is not None:
            self._filled += count
            if self._filled == len(self._body):
                frames.append((self._head, self._body))
                self._body = None
            return frames
        start, end, view = self._start, self._end + count, self.view
        while end - start >= 8:
            length, head = LENGTHS.unpack_from(view, start)
            if head > length or head > HEAD_MAX or length > FRAME_MAX:
                self.is_broken = True
                break
            if end - start < 8 + length:
                if 8 + length > _BUFFER and end - start >= 8 + head:
                    self._begin(start + 8, end, head, length - head)
                    start = end
                break
            middle = start + 8 + head
            data = bytes(view[start + 8:middle])
            start += 8 + length
            frames.append((data, memoryview(bytes(view[middle:start]))))
        if start == end:
            start = end = 0
        elif end == _BUFFER or start > _BUFFER // 2:
            rest = bytes(view[start:end])
            view[:len(rest)] = rest
            start, end = 0, len(rest)
        self._start, self._end = start, end
        return frames

    def _begin(self, start: int, end: int, head: int, body: int) -> None:
        """A body that is larger than the buffer gets its own memory."""
        self._head = bytes(self.view[start:start + head])
        self._body = memoryview(room(body))
        self._filled = end - start - head
        self._body[:self._filled] = self.view[start + head:end]


# ---- heads --------------------------------------------------------------------------------------------------------


class Number(str):
    """A number that is no integer of 64 bits, as it was written."""


def _whole(text: str) -> Union[int, Number]:
    return int(text) if len(text) < 21 and -BIG - 1 <= int(text) <= BIG else Number(text)


def _refuse(text: str) -> Any:
    raise Broken(f"{text} in a head")


def _flat(pairs: List[Tuple[str, Any]]) -> Head:
    head = dict(pairs)
    if len(head) != len(pairs) or len(head) > MEMBERS_MAX:
        raise Broken("a name twice in a head, or too many")
    for text in [*head, *head.values()]:
        if isinstance(text, (list, dict)):
            raise Broken("something nested in a head")
        if isinstance(text, str) and re.search("[\0\ud800-\udfff]", text):
            raise Broken("what is no text in a head")
    return head


_careful = json.JSONDecoder(object_pairs_hook=_flat, parse_int=_whole, parse_float=Number, parse_constant=_refuse)
# (text, start) -> (value, end); raises StopIteration where there is none.
scan: Any = json.JSONDecoder().scan_once  # type: ignore[attr-defined]
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def read_head(data: bytes) -> Head:
    """The members of a head. Raises Broken where it is none."""
    try:
        text = str(data, "utf-8")
        # Without these marks nothing is nested or escaped, and names can be counted.
        if "\\" not in text and "[" not in text and text.count("{") == 1:
            head = _read_quickly(text)
            if head is not None:
                return head
        if "[" in _STRING.sub("", text):  # so that nothing deep is read
            raise Broken("something nested in a head")
        head = _careful.decode(text)
    except (ValueError, RecursionError) as error:
        raise Broken(f"a head is no JSON: {error}") from None
    if not isinstance(head, dict):
        raise Broken("a head is no object")
    return head


def _read_quickly(text: str) -> Optional[Head]:
    """The same of a usual head; None: it is not one."""
    try:
        head, end = scan(text, 0)
    except (ValueError, StopIteration):
        return None
    if end != len(text) or type(head) is not dict or not len(head) == text.count('":') <= MEMBERS_MAX:
        return None
    for value in head.values():
        if value.__class__ is int:
            if not -BIG <= value <= BIG:
                return None
        elif value.__class__ is float:
            return None
    return head


def write_head(members: Head) -> bytes:
    """A head of members that are not None."""
    return json.dumps({name: value for name, value in members.items() if value is not None},
                      separators=(",", ":")).encode("ascii")


quote = encode_basestring_ascii  # a text as JSON


# ---- messages -----------------------------------------------------------------------------------------------------

_N = (0, BIG)
# What a message of the supervisor may have: bool, str, or the bounds of an integer.
_FIELDS: Dict[str, Any] = {
    "is": str, "call": _N, "status": str, "value": _N, "stdout": _N, "stderr": _N, "dropped_stdout": _N,
    "dropped_stderr": _N, "exit_code": (-1, 255), "signal": (0, 127), "wall_ns": _N, "cpu_ns": _N, "peak_kb": (-1, BIG),
    "processes": (-1, BIG), "cell": bool, "unreaped": bool, "error_type": str, "error": str, "stream": (1, 2),
    "ask": _N, "tool": str, "pool": _N, "ok": bool, "num": (1, 4095), "version": _N, "vitro": str, "ready": _N,
    "refilling": _N, "live": _N, "waiting": _N, "calls": _N, "cells_made": _N, "cold_calls": _N}
_MUST: Dict[str, Tuple[str, ...]] = {
    "hello": ("version", "vitro"), "pool": ("pool", "ok"), "output": ("call", "stream"), "log": (),
    "ask": ("call", "ask", "tool"), "done": ("call", "status"), "count": (), "bye": (), "refused": ()}


def read_message(data: bytes) -> Head:
    """A message of the supervisor, without what is null. One whose `is` is not known is only looked at for its fields."""
    head = read_head(data)
    nulls = False
    for name, value in head.items():
        kind = _FIELDS.get(name)
        if value is None:
            nulls = True
        elif kind is None:
            continue
        elif kind.__class__ is tuple:
            if value.__class__ is not int or not kind[0] <= value <= kind[1]:
                raise Broken(f"{name} is {value!r}")
        elif value.__class__ is not kind:
            raise Broken(f"{name} is {value!r}")
    if nulls:
        head = {name: value for name, value in head.items() if value is not None}
    if "is" not in head:
        raise Broken("a message without its kind")
    for name in _MUST.get(head["is"], ()):
        if name not in head:
            raise Broken(f"the message {head['is']} without its {name}")
    return head


# The end of a call that went well and printed nothing, as a supervisor usually writes it; with its lengths before it.
_optional = "".join(rf'(?:,"{name}":\d{{1,18}})?' for name in ("dropped_stdout", "dropped_stderr", "wall_ns", "cpu_ns",
                                                             "peak_kb", "processes"))
_done = (r'\{"is":"done","call":(\d{1,18}),"status":"ok","value":(\d{1,18})%s' + _optional + r',"cell":true\}')
match_done = re.compile((_done % r'(?:,"stdout":(\d{1,18}))?(?:,"stderr":(\d{1,18}))?').encode()).fullmatch
match_end = re.compile(b"(.{8})" + (_done % "").encode(), re.DOTALL).match
