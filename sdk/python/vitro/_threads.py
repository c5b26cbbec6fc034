# SPDX-License-Identifier: Apache-2.0
"""A session whose callers are threads.

The first thread that waits leads: it reads the socket itself, for all, so that a call of a single thread costs no
hand-over. The others follow: each sleeps until it is told, or until the one that led has what it waited for, and
leaves; then one of them leads.
"""

from __future__ import annotations

import socket
import threading
from typing import Dict, List, Optional, Sequence

from ._order import Buffer
from ._session import Call, Session, Waiter
from ._start import Connection, wait_writable
from ._wire import LENGTHS, SHORT, Broken, match_end

_FLAGS = getattr(socket, "MSG_DONTWAIT", 0) | getattr(socket, "MSG_NOSIGNAL", 0)
_PIECES = 512  # IOV_MAX is 1024


class ThreadSession(Session):
    """See the module."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._writing = threading.Lock()
        self._leader: Optional[Waiter] = None
        self._followers: Dict[Waiter, None] = {}  # in their order
        self._is_closing = False
        self._take_frames(connection.frames)

    # -- waiting

    def tell(self, waiter: Waiter) -> None:
        waiter.told = True
        if waiter.notify is not None:
            waiter.notify(waiter)
        elif waiter is not self._leader:
            with self.lock:
                self._wake(waiter)

    def _wake(self, waiter: Waiter) -> None:
        self._followers.pop(waiter, None)
        if waiter.wake is not None:
            waiter.wake.release()
            waiter.wake = None

    def wait(self, waiter: Waiter) -> None:
        """Waits until there is something to look at, and reads for all if nobody else does."""
        while not waiter.told:
            with self.lock:
                if waiter.told:
                    return
                if self._leader is None:
                    self._leader, wake = waiter, None
                else:
                    waiter.wake = wake = threading.Lock()
                    wake.acquire()
                    self._followers[waiter] = None
            try:
                if wake is None:
                    self._read_until(waiter)
                else:
                    wake.acquire()
            finally:
                self._leave(waiter)

    def exchange(self, call: Call, said: bytes) -> bool:
        """Begins a call by a short frame, and waits for it: add(), send() and wait() in as few steps as can be where nobody
        else is in the way, and what comes next is its end. False: it was not begun."""
        with self.lock:
            if not call.pool.is_open or self.lost is not None:
                return False
            call.pool.calls += 1
            call.pool.used = call.number
            self.calls[call.number] = call
        with self._writing:
            try:
                sent = self.sock.send(said, _FLAGS)
            except BlockingIOError:
                sent = 0
            except OSError:
                sent = -1
            if 0 <= sent < len(said):
                self._send_rest([said], sent)
        if sent < 0:
            self.take_back(call)
            return False
        with self.lock:
            leads = self._leader is None and not call.told and self.reader.is_between
            if leads:
                self._leader = call
        if leads:
            try:
                self._read_end(call)
            finally:
                self._leave(call)
        if not call.told:
            self.wait(call)
        return True

    def _read_end(self, call: Call) -> None:
        """Receives once, what is most likely the call's end."""
        view = self.reader.get_buffer()
        try:
            count = self.sock.recv_into(view)
        except OSError as error:
            self.fail(f"the supervisor cannot be heard: {error}")
            return
        if count < SHORT:
            came = bytes(view[:count])
            usual = match_end(came)
            if usual is not None and int(usual[2]) == call.number:
                start, size = usual.end(), int(usual[3])
                if count == start + size and usual[1] == LENGTHS.pack(count - 8, start - 8):
                    with self.lock:
                        del self.calls[call.number]
                        call.pool.calls -= 1
                    call.end(came[8:start], None, came[start:], size)
                    call.told = True
                    return
        self._advance(count)

    def _leave(self, waiter: Waiter) -> None:
        """Somebody stops waiting, for whatever reason: somebody has to read on."""
        with self.lock:
            if self._leader is waiter:
                self._leader = None
                if self._is_closing:
                    self.sock.close()
            waiter.wake = None
            self._followers.pop(waiter, None)
            if self._leader is None and self._followers:
                self._wake(next(iter(self._followers)))

    def _read_until(self, waiter: Waiter) -> None:
        reader, receive = self.reader, self.sock.recv_into
        while not waiter.told:
            if self.lost is not None:
                self.fail(self.lost)
                waiter.told = True
                return
            try:
                count = receive(reader.get_buffer())
            except OSError as error:
                self.fail(f"the supervisor cannot be heard: {error}")
                continue
            self._advance(count)

    def _advance(self, count: int) -> None:
        """Takes what came. An exception of a signal's handler that strikes here ends the session, since
        nobody knows how far it was."""
        if not count:
            self.fail("the supervisor is gone")
            return
        try:
            for head, body in self.reader.advance(count):
                self.take(head, body)
            if self.reader.is_broken:
                raise Broken("it is no frame")
        except Broken as error:
            self.fail(f"the supervisor does not keep to the wire: {error}")
            self._shut()
        except BaseException:
            self.fail("the program was interrupted while it read")
            self._shut()
            raise

    def _take_frames(self, frames: "List[tuple[bytes, memoryview]]") -> None:
        for head, body in frames:
            self.take(head, body)

    # -- writing

    def send(self, pieces: Sequence[Buffer]) -> bool:
        total = 0
        for piece in pieces:
            total += memoryview(piece).nbytes
        with self._writing:
            if self.lost is not None:
                return False
            try:
                sent = self.sock.sendmsg(pieces[:_PIECES], (), _FLAGS)
            except BlockingIOError:
                sent = 0
            except OSError:
                return False
            if sent < total:
                self._send_rest(pieces, sent)
        return True

    def _send_rest(self, pieces: Sequence[Buffer], sent: int) -> None:
        """Sends what did not fit. The other side may wait until it is read from, so that is done meanwhile."""
        waiter = Waiter()
        try:
            for piece in pieces:
                view = memoryview(piece).cast("B")
                if sent >= len(view):
                    sent -= len(view)
                    continue
                view, sent = view[sent:], 0
                while view and self.lost is None:
                    try:
                        view = view[self.sock.send(view, _FLAGS):]
                    except BlockingIOError:
                        self._read_while_full(waiter)
        except OSError:
            pass  # the reader finds it
        except BaseException:
            self.fail("the program was interrupted while it wrote")
            self._shut()
            raise

    def _read_while_full(self, waiter: Waiter) -> None:
        with self.lock:
            leads = self._leader is None
            if leads:
                self._leader = waiter
        try:
            if wait_writable(self.sock, leads):
                self._advance(self.sock.recv_into(self.reader.get_buffer()))
        finally:
            if leads:
                self._leave(waiter)

    # -- the end

    def _shut(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is not connected any more

    def close(self) -> None:
        """Ends all calls, and a supervisor of its own."""
        with self.lock:
            if self.lost is None:
                self.lost = "the sandbox was closed"
        self.fail(self.lost, "cancelled")
        self._shut()  # wakes who reads
        with self.lock:
            if self._leader is None:
                self.sock.close()
            else:
                self._is_closing = True
        if self.connection.process:
            self.connection.process.reap()
