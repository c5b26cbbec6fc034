# SPDX-License-Identifier: Apache-2.0
"""The short way, for a function that was called before, with nothing special about the call.

A call that comes some milliseconds after the last one finds the processor's caches cold: what it costs here is how much code
and data it touches. So what is the same each time is written once, and the rest is done with few steps.
"""

from __future__ import annotations

import os
import struct
import sys
from pickle import dumps
from types import FunctionType
from typing import Any, Callable, Dict, Optional, Tuple

from ._order import SIMPLE, Buffer, Order
from ._session import Call, Pool
from ._threads import ThreadSession
from ._wire import LENGTHS, quote, scan

_LARGE = 1 << 15  # of arguments
_SHORT = 1 << 9  # of a value: no number in it is long, and nothing is deep
_ONE_BUFFER = struct.Struct("<IQ")


class Route:
    """How a call of one function by its name goes."""

    __slots__ = ("order", "session", "_pool", "_function", "_space", "_name", "_path", "_head", "_message")

    def __init__(self, session: ThreadSession, pool: Pool, function: FunctionType, order: Order) -> None:
        self.order, self.session, self._pool = order, session, pool
        self._function, self._space, self._name = function, function.__globals__, function.__name__
        self._path = [*sys.path]
        tool = quote(order.tool).replace("%", "%%")
        self._head = f'{{"do":"call","call":%d,"pool":{pool.number},"tool":{tool},"id":"c%d"}}'.encode("ascii")
        self._message = struct.pack("<I", len(order.head)) + order.head

    def write(self, args: Tuple[Any, ...]) -> Optional[Tuple[Call, bytes]]:
        """A call, and the frame that begins it. None: it has to go the long way."""
        session, function = self.session, self._function
        if (session.lost is not None or session.pid != os.getpid() or sys.path != self._path
                or self._space.get(self._name) is not function):
            return None
        for value in args:
            if type(value) not in SIMPLE:
                return None
        data = dumps((args, {}), 5)
        if len(data) > _LARGE:
            return None
        number = next(session.numbers)
        head = self._head % (number, number)
        message = self._message
        return Call(number, self._pool), b"".join((
            LENGTHS.pack(len(head) + len(message) + 12 + len(data), len(head)), head, message,
            _ONE_BUFFER.pack(1, len(data)), data))


def find_route(session: ThreadSession, pool: Pool, function: Callable[..., Any], order: Order) -> Optional[Route]:
    """The short way for a function that has been called the long way, if there is one."""
    if type(function) is not FunctionType or not order.head or not all(map(os.path.isabs, sys.path)):
        return None
    module = sys.modules.get(order.module)
    if module is None or vars(module) is not function.__globals__ or vars(module).get(function.__name__) is not function:
        return None
    return Route(session, pool, function, order)


def read_simple(body: Buffer) -> Dict[str, Any]:
    """The head of a message that is short and plain JSON, without buffers; an empty one where it is something else."""
    size = len(body)
    if not 8 < size < _SHORT or body[-4:] != b"\0\0\0\0" or body[:4] != (size - 8).to_bytes(4, "little"):
        return {}
    try:
        text = str(body[4:-4], "utf-8")
        if "$" in text or "\\" in text:
            return {}
        head, end = scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return {}
    return head if end == len(text) and type(head) is dict else {}
