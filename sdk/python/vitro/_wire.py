# SPDX-License-Identifier: Apache-2.0
"""The wire between a client and its supervisor (docs/wire.md): frames, heads, messages. No input or output is done here.

A Reader takes the stream apart: receive into get_buffer(), then advance() by what came gives the frames that are
complete. A body that is large is received straight into its own memory, and where it is a call's value with
buffers, each of those into an object of its own, so that nothing is copied again.
"""

from __future__ import annotations

import json
import re
import struct
from json.encoder import encode_basestring_ascii
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _codec as codec
from ._room import Room

FRAME_MAX, HEAD_MAX, MEMBERS_MAX = 1 << 30, 1 << 16, 24
BIG = (1 << 63) - 1
Head = Dict[str, Any]
Body = Union[memoryview, "Parted"]  # the latter only of a `done` that match_done() matches
Frame = Tuple[bytes, Body]

LENGTHS = struct.Struct("<II")
_BUFFER = 1 << 17
_APART_MAX = 64  # buffers of a value that are worth a look each


class Broken(Exception):
    """The other side does not keep to the wire, or is gone."""


# ---- frames -------------------------------------------------------------------------------------------------------


def frame(head: bytes, body: int = 0) -> bytes:
    """A frame up to its body, which has that many bytes."""
    return LENGTHS.pack(len(head) + body, len(head)) + head


class Parted:
    """The body of a `done`, whose value is taken apart already: its head, as codec.unpack_head() has it, and its buffers. What
    was printed is behind them, in `tail`."""

    __slots__ = ("head", "is_plain", "rooms", "tail", "_size")

    def __init__(self, head: Head, is_plain: bool, rooms: List[Room], tail: Room, size: int) -> None:
        self.head, self.is_plain, self.rooms, self.tail, self._size = head, is_plain, rooms, tail, size

    def __len__(self) -> int:
        return self._size

    def unpack(self) -> "Tuple[Head, codec.Attachments]":
        """The value, as codec.unpack() gives it."""
        return self.head, codec.Attachments.of([room.made for room in self.rooms], self.is_plain)


def _part(head: bytes, came: memoryview, size: int) -> "Optional[Tuple[Parted, int]]":
    """Room for a body of that size, which begins with what came, and how much of that is no buffer; None: it is
    to be received as a whole."""
    usual = match_done(head)
    value = int(usual[2]) if usual is not None else 0
    if not _BUFFER // 2 < value <= size:
        return None
    try:
        told, is_plain, lengths, at = codec.unpack_head(came[:value], value)
    except codec.Malformed:  # or not all of it is there
        return None
    if len(lengths) > _APART_MAX:
        return None
    fixed = {int(number) for number in _BYTES.findall(bytes(came[:at]))}
    rooms = [Room(length, index in fixed) for index, length in enumerate(lengths)]
    return Parted(told, is_plain, rooms, Room(size - value, False), size), at


class Reader:
    """Takes a stream apart into frames, each a head and a body."""

    __slots__ = ("view", "_start", "_end", "_head", "_body", "_views", "_filled", "is_broken")

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_BUFFER))
        self._start = self._end = 0  # of what came and is not taken
        self._head = b""
        self._body: Optional[Body] = None  # a large one that is not complete
        self._views: List[memoryview] = []  # of its memory, the last first, none empty
        self._filled = 0  # of the first of them
        self.is_broken = False  # there is no frame to be found any more

    def get_buffer(self) -> memoryview:
        """Where the next bytes are to be received; never empty."""
        if self._body is not None:
            return self._views[-1][self._filled:]
        return self.view[self._end:] if self._end else self.view

    @property
    def is_between(self) -> bool:
        """Whether there is nothing of a frame that is not complete."""
        return self._body is None and self._start == self._end

    def advance(self, count: int) -> List[Frame]:
        """The frames that are complete with the `count` bytes that came. Where what follows them is no frame, `is_broken`."""
        frames: List[Frame] = []
        if self._body is not None:
            self._fill(count)
            if not self._views:
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
        self._head, came = bytes(self.view[start:start + head]), self.view[start + head:end]
        parted = _part(self._head, came, body)
        if parted is None:
            self._body = memoryview(codec.room(body))
            self._views = [self._body]
        else:
            self._body = parted[0]
            self._views = [room.view for room in [parted[0].tail, *reversed(parted[0].rooms)] if room.view]
            came = came[parted[1]:]
        while came:
            count = min(len(came), len(self._views[-1]))
            self._views[-1][:count] = came[:count]
            self._fill(count)
            came = came[count:]

    def _fill(self, count: int) -> None:
        self._filled += count
        if self._filled == len(self._views[-1]):
            self._views.pop()
            self._filled = 0


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
_SPACED = re.compile('"[ \t\r\n]+:')


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
    if _SPACED.search(text):  # such a name was not counted, and may be there twice
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
    "processes": (-1, BIG), "cell": bool, "unreaped": bool, "protected": str, "error_type": str, "error": str, "stream": (1, 2),
    "ask": _N, "tool": str, "pool": _N, "ok": bool, "num": (1, 4095), "version": _N, "vitro": str, "ready": _N,
    "refilling": _N, "live": _N, "waiting": _N, "calls": _N, "cells_made": _N, "cold_calls": _N}
_MUST: Dict[str, Tuple[str, ...]] = {
    "hello": ("version", "vitro"), "pool": ("pool", "ok"), "output": ("call", "stream"), "log": (),
    "ask": ("call", "ask", "tool"), "done": ("call", "status"), "count": (), "tools": ("ok",), "bye": (), "refused": ()}


def _read_object(name: str, text: str) -> Dict[str, Any]:
    """A member that is JSON in a text."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise Broken(f"{name} is no JSON object")
    return told


def read_message(data: bytes) -> Head:
    """A message of the supervisor, without what is null. One whose `is` is not known is only looked at for its fields."""
    usual = match_ask(data)
    if usual is not None:
        call, ask, tool = usual.groups()
        return {"is": "ask", "call": int(call), "ask": int(ask), "tool": tool.decode("ascii")}
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
    if "protected" in head:
        head["protected"] = _read_object("protected", head["protected"])
    if "is" not in head:
        raise Broken("a message without its kind")
    for name in _MUST.get(head["is"], ()):
        if name not in head:
            raise Broken(f"the message {head['is']} without its {name}")
    return head


# A use of a tool, and the end of a call that went well and printed nothing, as a supervisor usually writes them; both
# with their lengths before them, too.
_number = "(0|[1-9][0-9]{0,17})"  # JSON has no zeros before others
_optional = "".join(rf'(?:,"{name}":{_number.replace("(", "(?:")})?' for name in ("dropped_stdout", "dropped_stderr", "wall_ns", "cpu_ns",
                                                             "peak_kb", "processes"))
_BYTES = re.compile(rb'"\$bytes":([0-9]{1,4})[,}]')  # buffers of a value that are to be bytes; where one is not, it is copied
_done = rf'\{{"is":"done","call":{_number},"status":"ok","value":{_number}%s' + _optional + r',"cell":true\}'
_ask = rf'\{{"is":"ask","call":{_number},"ask":{_number},"tool":"([ !#-\[\]-~]*)"\}}'.encode()
match_ask = re.compile(_ask).fullmatch
match_use = re.compile(b"(.{8})" + _ask, re.DOTALL).match
match_done = re.compile((_done % rf'(?:,"stdout":{_number})?(?:,"stderr":{_number})?').encode()).fullmatch
match_end = re.compile(b"(.{8})" + (_done % "").encode(), re.DOTALL).match
