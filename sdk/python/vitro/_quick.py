# SPDX-License-Identifier: Apache-2.0
"""The short way, for a function that was called before, with nothing special about the call.

A call that comes some milliseconds after the last one finds the processor's caches cold, and then costs as much as the code and
the data that it touches. So here, and only here, what other modules do in many steps is done in few: what is the same each
time is written once, and one function does the rest, by names of its own. Whatever is not usual goes the long way, or is left
to it in the middle.
"""

from __future__ import annotations

import os
import struct
import sys
from pickle import dumps
from types import FunctionType
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from ._order import SIMPLE, Order
from ._session import Call, Pool
from ._threads import FLAGS, ThreadSession
from ._wire import LENGTHS, match_end, quote, scan

LONG_WAY = object()
_LARGE = 1 << 15  # bytes of arguments
_SHORT = 1 << 9  # bytes of a value: no number in it is long, and nothing is deep

# The end of a call that never was: reading it while the cell works warms the caches for the real one.
_SAMPLE = b'01234567{"is":"done","call":1,"status":"ok","value":19,"wall_ns":100000,"cpu_ns":100000,"processes":1,"cell":true}'
_SAMPLE_VALUE = b'{"value":5}'


class Route(NamedTuple):
    """How a call of one function goes: hurry(args) gives its value, or LONG_WAY, or a Call that is begun."""

    hurry: Callable[[Tuple[Any, ...]], Any]
    session: ThreadSession
    order: Order


def find_route(session: ThreadSession, pool: Pool, function: Callable[..., Any], order: Order) -> Optional[Route]:
    """The short way for a function that has been called the long way, if there is one."""
    if type(function) is not FunctionType or not order.head or not all(map(os.path.isabs, sys.path)):
        return None
    module = sys.modules.get(order.module)
    if module is None or vars(module) is not function.__globals__ or vars(module).get(function.__name__) is not function:
        return None
    return Route(_make(session, pool, function, order), session, order)


def _read(data: bytes) -> Optional[Dict[str, Any]]:
    """A message's head with a value that is plain JSON; None: it is something else."""
    try:
        text = data.decode()
        told, end = scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    if "$" in text or "\\" in text or end != len(text) or type(told) is not dict or "value" not in told:
        return None
    return told


def _make(session: ThreadSession, pool: Pool, function: FunctionType, order: Order) -> Callable[[Tuple[Any, ...]], Any]:
    space, name, path, system = function.__globals__, function.__name__, [*sys.path], sys
    tool = quote(order.tool).replace("%", "%%")
    form = f'{{"do":"call","call":%d,"pool":{pool.number},"tool":{tool},"id":"c%d"}}'.encode("ascii")
    message = struct.pack("<I", len(order.head)) + order.head + struct.pack("<I", 1)  # one buffer: the arguments
    lock, writing, numbers, pack = session.lock, session.writing, session.numbers, LENGTHS.pack
    send, receive, reader, view = session.sock.send, session.sock.recv_into, session.reader, session.reader.view

    def hurry(args: Tuple[Any, ...]) -> Any:
        # After a fork the session is lost to the child.
        if session.lost is not None or system.path != path or space.get(name) is not function:
            return LONG_WAY
        for value in args:
            kind = type(value)
            if kind not in SIMPLE or (kind is bytes or kind is str) and len(value) > _LARGE:
                return LONG_WAY
        data = dumps((args, {}), 5)
        size = len(data)
        if size > _LARGE:
            return LONG_WAY
        number = next(numbers)
        call, head = Call(number, pool), form % (number, number)
        said = b"".join((pack(len(head) + len(message) + 8 + size, len(head)), head, message, size.to_bytes(8, "little"), data))
        with lock:
            if not pool.is_open or session.lost is not None:
                return LONG_WAY
            pool.calls += 1
            pool.used = number
            session.calls[number] = call
        count = -1
        try:
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
            _read(_SAMPLE_VALUE)
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
                    is_short = 8 < size < _SHORT and came[-4:] == b"\0\0\0\0"  # and no buffers
                    if is_short and came[start:start + 4] == (size - 8).to_bytes(4, "little"):
                        told = _read(came[start + 4:-4])
                        if told is not None:
                            return told["value"]
                    call.end(came[8:start], None, came[start:], size)
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
