# SPDX-License-Identifier: Apache-2.0
"""The short way, for a function that was called before, with nothing special about the call.

A call that comes some milliseconds after the last one finds the processor's caches cold, and then costs as much as the code and
the data that it touches. So here, and only here, what other modules do in many steps is done in few: what is the same each
time is written once, and one function does the rest, by names of its own. Whatever is not usual goes the long way, or is left
to it in the middle.
"""

from __future__ import annotations

import os
import sys
from marshal import dumps
from types import FunctionType
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ._codec import read_plain
from ._order import SIMPLE, Order, Request
from ._session import Call, Pool
from ._threads import FLAGS, ThreadSession
from ._wire import LENGTHS, Head, match_end, match_use, quote

LONG_WAY = object()
_LARGE = 1 << 15  # bytes of arguments
_FIRST = 1 << 13  # bytes to receive at first: what is larger goes to where it stays, and is copied no more

# The end of a call that never was: reading it while the cell works warms the caches for the real one.
_SAMPLE = b'01234567{"is":"done","call":1,"status":"ok","value":19,"wall_ns":100000,"cpu_ns":100000,"processes":1,"cell":true}'
_SAMPLE_VALUE = b'\x0b\0\0\0{"value":5}\0\0\0\0'


class Route(NamedTuple):
    """How a call of one function goes: hurry(args) gives its value, or LONG_WAY, or a Call that is begun."""

    hurry: Callable[[Tuple[Any, ...]], Any]
    session: ThreadSession
    order: Order


def find_route(session: ThreadSession, pool: Pool, function: Callable[..., Any], order: Order) -> Optional[Route]:
    """The short way for a function that has been called the long way, if there is one."""
    ref = order.usual
    if type(function) is not FunctionType or ref is None or ref.get("unwrap") or not all(map(os.path.isabs, sys.path)):
        return None
    module, name = sys.modules.get(ref.get("module", "")), function.__name__
    if module is None or ref["name"] != name or vars(module) is not function.__globals__ or vars(module).get(name) is not function:
        return None
    order.pieces = ()  # which may be large
    return Route(_make(session, pool, function, order, (ref["module"], name, ref.get("file"))), session, order)


def _part(args: Tuple[Any, ...]) -> Tuple[Tuple[Any, ...], Dict[int, int]]:
    """Arguments without those that are large, and the sizes of these by their places."""
    apart = {index: len(value) for index, value in enumerate(args) if type(value) is bytes and len(value) > _LARGE}
    return tuple(None if index in apart else value for index, value in enumerate(args)), apart


def _make(session: ThreadSession, pool: Pool, function: FunctionType, order: Order,
          names: Tuple[str, str, Optional[str]]) -> Callable[[Tuple[Any, ...]], Any]:
    space, name, path, system = function.__globals__, function.__name__, [*sys.path], sys
    tool = quote(order.tool).replace("%", "%%")
    form = f'{{"do":"call","call":%d,"pool":{pool.number},"tool":{tool},"id":"c%d"}}'.encode("ascii")
    module, _, file = names
    lock, writing, numbers, pack = session.lock, session.writing, session.numbers, LENGTHS.pack
    most = session.connection.frame_max - 2 * _LARGE
    send, receive, reader, view = session.sock.send, session.sock.recv_into, session.reader, session.reader.view[:_FIRST]

    def hurry(args: Tuple[Any, ...]) -> Any:
        # After a fork the session is lost to the child.
        if session.lost is not None or system.path != path or space.get(name) is not function:
            return LONG_WAY
        large = 0
        for value in args:
            kind = type(value)
            if kind not in SIMPLE or kind is str and len(value) > _LARGE:
                return LONG_WAY
            if kind is bytes and len(value) > _LARGE:
                large += len(value)
        plain, apart = (args, None) if not large else _part(args)
        data = dumps((module, name, file, plain, apart), 4)  # a version that every Python from 3.8 on reads
        size = len(data)
        if size > _LARGE or large > most:
            return LONG_WAY
        number = next(numbers)
        call, head = Call(number, pool), form % (number, number)
        said = b"".join((pack(len(head) + 8 + size + large, len(head)), head, b"\0\0\0\0", size.to_bytes(4, "little"), data))
        with lock:
            if not pool.is_open or session.lost is not None:
                return LONG_WAY
            pool.calls += 1
            pool.used = number
            session.calls[number] = call
        count = -1
        try:
            if apart is not None:
                if not session.deliver(call, [said, *[args[index] for index in apart]]):
                    return LONG_WAY
            else:
                with writing:
                    try:
                        sent = send(said, FLAGS)
                    except OSError:  # it has no room, or is gone
                        sent = -1
                    if 0 <= sent < len(said):
                        session.send_rest([said], sent)
                if sent < 0:
                    return call if session.deliver(call, [said]) else LONG_WAY
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
                start = usual.end()
                size = count - start
                if size == int(usual[3]) and usual[1] == pack(count - 8, start - 8):
                    with lock:
                        del session.calls[number]
                        pool.calls -= 1
                        session.leader = None
                        call.is_over = call.told = True
                    if session.has_others:
                        session.leave(call)
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
