# SPDX-License-Identifier: Apache-2.0
"""A session on an asyncio event loop: the loop tells when the socket can be read, and nothing here waits."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from typing import Any, Deque, Optional, Sequence

from ._order import Buffer
from ._session import FLAGS, PIECES_MAX, Call, Session, Waiter
from ._start import Connection
from ._wire import Broken

_TURNS = 16  # of reading, until others of the loop have theirs


class Bell:
    """Wakes the one task that waits for something."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: Optional["asyncio.Future[None]"] = None

    def ring(self, _: Any = None) -> None:
        """There is something to look at."""
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def wait(self, waiter: Waiter) -> None:
        """Waits until there is something to look at."""
        while not waiter.told:
            self._future = asyncio.get_running_loop().create_future()
            await self._future


class LoopSession(Session):
    """See the module."""

    def __init__(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(connection)
        self._unsent: Deque[memoryview] = deque()
        self.loop = loop
        for head, body in connection.frames:
            self.take(head, body)
        self.attach(loop)

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """From now on that loop reads."""
        if not self.loop.is_closed():
            self._detach()
        self.loop = loop
        loop.add_reader(self.sock, self._read)
        if self._unsent:
            loop.add_writer(self.sock, self._write)

    def _detach(self) -> None:
        self.loop.remove_reader(self.sock)
        self.loop.remove_writer(self.sock)

    def tell(self, waiter: Waiter) -> None:
        waiter.told = True
        if waiter.notify is not None:
            waiter.notify(waiter)

    def send(self, pieces: Sequence[Buffer]) -> bool:
        if self.lost is not None:
            return False
        if self._unsent:
            self._unsent.extend(memoryview(piece).cast("B") for piece in pieces)
            return True
        try:
            sent = self.sock.sendmsg(pieces[:PIECES_MAX], (), FLAGS)
        except BlockingIOError:
            sent = 0
        except OSError:
            return False
        for piece in pieces:
            size = memoryview(piece).nbytes
            if sent < size:
                self._unsent.append(memoryview(piece).cast("B")[sent:])
            sent = max(0, sent - size)
        if self._unsent:
            self.loop.add_writer(self.sock, self._write)
        return True

    def _write(self) -> None:
        try:
            while self._unsent:
                view = self._unsent.popleft()
                sent = self.sock.send(view, FLAGS) if view else 0
                if sent < len(view):
                    self._unsent.appendleft(view[sent:])
        except BlockingIOError:
            self._unsent.appendleft(view)
            return
        except OSError:
            self._unsent.clear()  # the reader finds it
        self.loop.remove_writer(self.sock)

    def poll(self, call: Call) -> None:
        """Takes what has come: a call may be over behind all that it left."""
        if not call.is_over and self.lost is None:
            self._read()

    def _read(self) -> None:
        self._receive()
        self.tell_lines()

    def _receive(self) -> None:
        try:
            for _ in range(_TURNS):
                room = self.reader.get_buffer()
                size = len(room)
                count = self.sock.recv_into(room, 0, FLAGS)
                if not count:
                    self._end("the supervisor is gone")
                    return
                for head, body in self.reader.advance(count):
                    self.take(head, body)
                if self.reader.is_broken:
                    raise Broken("it is no frame")
                if count < size:
                    return
        except BlockingIOError:
            pass
        except Broken as error:
            self._end(f"the supervisor does not keep to the wire: {error}")
        except OSError as error:
            self._end(f"the supervisor cannot be heard: {error}")

    def _end(self, why: str, status: str = "lost") -> None:
        if not self.loop.is_closed():
            self._detach()
        self.fail(why, status)
        self._unsent.clear()

    def shut(self) -> None:
        """Ends all calls. The connection is still to be closed."""
        self._end("the sandbox was closed", "cancelled")

    def drop(self) -> None:
        """Ends what nobody closed, wherever the garbage of it is collected: in the middle of one of its own steps, for
        example, so that is left to the loop, which has to forget the socket before its number is another's."""
        if self.pid != os.getpid():
            return
        if self.loop.is_closed():
            self.connection.close()
        elif self.loop.is_running():
            self.loop.call_soon_threadsafe(self._let_go)
        else:
            self._let_go()

    def _let_go(self) -> None:
        """Ends all calls, and the connection."""
        self.shut()
        self.connection.close_beside()
