# SPDX-License-Identifier: Apache-2.0
"""The short way, for a function that was called before, with nothing special about the call.

A call that comes some milliseconds after the last one finds the processor's caches cold, and then costs as much as the code and
the data that it touches. So here, and only here, what other modules do in many steps is done in few: what is the same each
time is written once, and one function does the rest, by names of its own. Whatever is not usual goes the long way, or is left
to it in the middle.
"""

from __future__ import annotations

import math
import os
import re
import sys
from marshal import dumps
from types import FunctionType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._codec import read_plain
from ._order import SIMPLE, Buffer, Order, Request
from ._room import Room
from ._session import FLAGS, Call, Pool, Session
from ._threads import ThreadSession
from ._wire import LENGTHS, Head, Parted, match_done, match_end, match_use, quote

LONG_WAY = object()
_LARGE = 1 << 15  # bytes of an argument: from here on it goes beside the others
_FIRST = 1 << 13  # bytes to receive at first: what is larger goes to where it stays, and is copied no more

# The end of a call that never was: reading it while the cell works warms the caches for the real one.
_SAMPLE = b'01234567{"is":"done","call":1,"status":"ok","value":19,"wall_ns":100000,"cpu_ns":100000,"processes":1,"cell":true}'
_SAMPLE_VALUE = b'\x0b\0\0\0{"value":5}\0\0\0\0'


Write = Callable[[Tuple[Any, ...]], Optional[Tuple[Call, List[Buffer]]]]


class Route(NamedTuple):
    """How a call of one function goes. hurry(args) gives the value; LONG_WAY, where nothing was begun; or a Call that is still to
    be awaited."""

    hurry: Callable[[Tuple[Any, ...]], Any]
    session: Any  # of the caller's kind
    order: Order


def find_route(session: Session, pool: Pool, function: Callable[..., Any], order: Order) -> Optional[Route]:
    """The short way for a function that has been called the long way, if there is one."""
    ref = order.usual
    if type(function) is not FunctionType or ref is None or ref.get("unwrap") or not all(map(os.path.isabs, sys.path)):
        return None
    module, name = sys.modules.get(ref.get("module", "")), function.__name__
    if module is None or ref["name"] != name or vars(module) is not function.__globals__ or vars(module).get(name) is not function:
        return None
    order.pieces = ()  # which may be large
    write = _make_write(session, pool, function, order, (ref["module"], name, ref.get("file")))
    hurry = _make_hurry(session, pool, write) if isinstance(session, ThreadSession) else _make_begin(session, write)
    return Route(hurry, session, order)


def _is_array(value: Any) -> bool:
    """Whether it is an array of numbers that is made anew there by its type, its shape and its bytes alone."""
    numpy = sys.modules.get("numpy")
    return (numpy is not None and type(value) is numpy.ndarray and value.dtype.isbuiltin == 1 and value.dtype.kind in "biufc"
            and value.nbytes > _LARGE and value.flags.c_contiguous and value.flags.writeable)


def _part(args: Tuple[Any, ...]) -> Tuple[Tuple[Any, ...], Dict[int, Any], List[Buffer]]:
    """Arguments without those that are large; what those are, by their places: the size of bytes, or an array's with its type
    and shape; and their bytes."""
    apart: Dict[int, Any] = {}
    pieces: List[Buffer] = []
    for index, value in enumerate(args):
        if type(value) is bytes:
            if len(value) > _LARGE:
                apart[index] = len(value)
                pieces.append(value)
        elif type(value) not in SIMPLE:
            apart[index] = value.nbytes, value.dtype.str, value.shape
            pieces.append(memoryview(value.reshape(-1).view("u1")))
    return tuple(None if index in apart else value for index, value in enumerate(args)), apart, pieces


# A value that is large bytes, or an array of numbers, as a cell usually writes it: up to its buffer.
_match_large = re.compile(rb'(.{4})\{"value":(?:\{"\$bytes":0\}|\{"\$ndarray":\{"dtype":"([<|](?:[iu][1248]|f[248]))","shape":'
                          rb'\[([0-9]{1,15}(?:,[0-9]{1,15}){0,7})\],"order":"C","buffer":0\}\})\} *\x01\0\0\0(.{8})',
                          re.DOTALL).match


class _Large:
    """A large value of a call, of which the beginning has come."""

    __slots__ = ("room", "dtype", "shape", "filled")

    def __init__(self, room: Room, dtype: bytes, shape: List[int], begun: bytes) -> None:
        self.room, self.dtype, self.shape, self.filled = room, dtype, shape, len(begun)
        room.view[:len(begun)] = begun

    def fill(self, receive: Callable[[memoryview], int]) -> bool:
        """Receives the rest. False: the other side is gone."""
        view, filled = self.room.view, self.filled
        while filled < len(view):
            count = receive(view[filled:])
            if not count:
                return False
            filled += count
        return True

    def make(self) -> Any:
        """The value, when all of it has come."""
        if not self.dtype:
            return bytes(self.room.made)  # which they are, unless they are few
        return sys.modules["numpy"].frombuffer(self.room.made, self.dtype.decode()).reshape(self.shape)


def _begin_large(came: bytes, start: int, size: int) -> Optional[_Large]:
    """The value of that size that begins there, if it is one of these. A cell wrote it: it may be anything."""
    found = _match_large(came, start)
    if found is None or "numpy" not in sys.modules and found[2]:
        return None
    at, dtype = found.end(), found[2] or b""
    length = int.from_bytes(found[4], "little")
    shape = [int(part) for part in found[3].split(b",")] if dtype else []
    if (int.from_bytes(found[1], "little") != at - start - 16 or length != size - (at - start)
            or dtype and math.prod(shape) * int(dtype[2:]) != length):
        return None
    return _Large(Room(length, not dtype), dtype, shape, came[at:])


def _make_write(session: Session, pool: Pool, function: FunctionType, order: Order,
                names: Tuple[str, str, Optional[str]]) -> Write:
    """write(args) gives a call that is under way from now on, and what is to be sent for it; None: it goes the long way."""
    space, name, path, system = function.__globals__, function.__name__, [*sys.path], sys
    tool = quote(order.tool).replace("%", "%%")
    form = f'{{"do":"call","call":%d,"pool":{pool.number},"tool":{tool},"id":"c%d"}}'.encode("ascii")
    module, _, file = names
    lock, numbers, pack = session.lock, session.numbers, LENGTHS.pack
    most = session.connection.frame_max - 2 * _LARGE

    def write(args: Tuple[Any, ...]) -> Optional[Tuple[Call, List[Buffer]]]:
        # After a fork the session is lost to the child.
        if session.lost is not None or system.path != path or space.get(name) is not function:
            return None
        large = 0
        for value in args:
            kind = type(value)
            if kind not in SIMPLE:
                if not _is_array(value) or "numpy" not in pool.known:  # the long way has it learned
                    return None
                large += value.nbytes
            elif kind is str and len(value) > _LARGE:
                return None
            elif kind is bytes and len(value) > _LARGE:
                large += len(value)
        plain, apart, pieces = (args, None, []) if not large else _part(args)
        data = dumps((module, name, file, plain, apart), 4)  # a version that every Python from 3.8 on reads
        size = len(data)
        if size > _LARGE or large > most:
            return None
        number = next(numbers)
        call, head = Call(number, pool), form % (number, number)
        said = b"".join((pack(len(head) + 8 + size + large, len(head)), head, b"\0\0\0\0", size.to_bytes(4, "little"), data))
        with lock:
            if not pool.is_open or session.lost is not None:
                return None
            pool.calls += 1
            pool.used = number
            session.calls[number] = call
        return call, [said, *pieces]

    return write


def _make_begin(session: Session, write: Write) -> Callable[[Tuple[Any, ...]], Any]:
    """For a session that an event loop reads."""

    def begin(args: Tuple[Any, ...]) -> Any:
        written = write(args)
        if written is None or not session.deliver(*written):
            return LONG_WAY
        match_done(_SAMPLE[8:])
        read_plain(_SAMPLE_VALUE)
        return written[0]

    return begin


def value_of(call: Call) -> Any:
    """The value of a call that is over, where it ended as most do; LONG_WAY: it did not."""
    body = call.body
    if call.is_ok and not isinstance(body, Parted) and len(body) == call.value_size < _FIRST:
        told = read_plain(bytes(body))
        if told is not None and "value" in told:
            return told["value"]
    return LONG_WAY


def _make_hurry(session: ThreadSession, pool: Pool, write: Write) -> Callable[[Tuple[Any, ...]], Any]:
    """For a session whose callers are threads."""
    lock, writing, pack = session.lock, session.writing, LENGTHS.pack
    send, receive, reader, view = session.sock.send, session.sock.recv_into, session.reader, session.reader.view[:_FIRST]

    def hurry(args: Tuple[Any, ...]) -> Any:
        written = write(args)
        if written is None:
            return LONG_WAY
        call, pieces = written
        number, said = call.number, pieces[0]
        count = -1
        try:
            if len(pieces) > 1:
                if not session.deliver(call, pieces):
                    return LONG_WAY
            else:
                with writing:
                    try:
                        sent = send(said, FLAGS)
                    except OSError:  # it has no room, or is gone
                        sent = -1
                    if 0 <= sent < len(said):
                        session.send_rest(pieces, sent)
                if sent < 0:
                    return call if session.deliver(call, pieces) else LONG_WAY
                if call.is_stopped:  # by another thread, whose word may have been sent before the call
                    session.cancel(call)
            with lock:
                if session.leader is not None or call.told or not reader.is_between:
                    return call
                session.leader = call
            match_end(_SAMPLE)
            read_plain(_SAMPLE_VALUE)
            count = receive(view)
            came = bytes(view[:count])
            usual = match_end(came)
            if usual is not None and int(usual[2]) == number:
                start, size = usual.end(), int(usual[3])
                is_whole, value_to_come = size == count - start, None
                # Less may have come than the value; or more, the next frame, which the reader takes apart.
                if size > count - start and usual[1] == pack(start - 8 + size, start - 8):
                    value_to_come = _begin_large(came, start, size)
                if value_to_come is not None and not value_to_come.fill(receive):
                    session.fail("the supervisor is gone")
                    session.leave(call)
                    return call
                if value_to_come is not None or is_whole and usual[1] == pack(count - 8, start - 8):
                    with lock:
                        del session.calls[number]
                        pool.calls -= 1
                        session.leader = None
                        call.is_over = call.told = True
                    if session.has_others:
                        session.leave(call)
                    if value_to_come is not None:
                        return value_to_come.make()
                    body = came[start:]
                    told = read_plain(body)
                    if told is not None and "value" in told:
                        return told["value"]
                    call.end(came[8:start], None, body, size)
                    return call
            session.take_in(count)
            session.leave(call)
            return call
        except OSError as error:
            session.fail(f"the supervisor cannot be heard: {error}")
            session.leave(call)
            return call
        except BaseException:
            if count >= 0 and not call.is_over:
                session.fail("the program was interrupted while it read")
            session.leave(call)
            session.abandon(call)
            raise

    return hurry


def answer_in_turn(session: ThreadSession, call: Call, answer: Callable[[Head, Request], None]) -> None:
    """Reads for a call that asks for tools, as long as it asks for one after the other, and nothing else comes. What does is left
    to session.wait(). answer: runs a tool, and sends what it gave."""
    lock, receive, reader, view = session.lock, session.sock.recv_into, session.reader, session.reader.view
    pack = LENGTHS.pack
    while True:
        with lock:
            if session.leader is not None or call.told or session.lines or session.lost is not None or not reader.is_between:
                return
            session.leader = call
        count = -1
        try:
            count = receive(view)
            came = bytes(view[:count])
            usual = match_use(came)
            told = None
            if usual is not None and int(usual[2]) == call.number:
                start = usual.end()
                if usual[1] == pack(count - 8, start - 8):
                    told = read_plain(came[start:])
            if told is None:
                session.take_in(count)
        except OSError as error:
            session.fail(f"the supervisor cannot be heard: {error}")
            told = None
        except BaseException:
            if count >= 0:
                session.fail("the program was interrupted while it read")
            session.leave(call)
            raise
        if told is None or usual is None:
            session.leave(call)
            return
        with lock:
            session.leader = None
        if session.has_others:
            session.leave(call)
        call.asked += 1
        answer({"is": "ask", "ask": int(usual[3]), "tool": usual[4].decode("ascii")}, told)
