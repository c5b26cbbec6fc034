# SPDX-License-Identifier: Apache-2.0
"""A session whose callers are threads.

The first thread that waits leads: it reads the socket itself, for all, so that a call of a single thread costs no
hand-over. The others follow: each sleeps until it is told, or until the one that led has what it waited for, and
leaves; then one of them leads.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import Dict, List, Optional, Sequence

from ._order import Buffer
from ._session import FLAGS, PIECES_MAX, Call, Session, Waiter
from ._start import Connection, wait_writable
from ._wire import Broken, Frame

_TURNS = 64  # of reading without waiting


class ThreadSession(Session):
    """See the module."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.writing = threading.Lock()
        self.leader: Optional[Waiter] = None
        self._followers: Dict[Waiter, None] = {}  # in their order
        self._is_closing = False
        self._take_frames(connection.frames)

    # -- waiting

    def tell(self, waiter: Waiter) -> None:
        waiter.told = True
        if waiter.notify is not None:
            waiter.notify(waiter)
        elif waiter is not self.leader:
            with self.lock:
                self._wake(waiter)

    def _wake(self, waiter: Waiter) -> None:
        self._followers.pop(waiter, None)
        if waiter.wake is not None:
            waiter.wake.release()
            waiter.wake = None

    def wait(self, waiter: Waiter) -> None:
        """Waits until there is something to look at, and reads for all if nobody else does."""
        while not waiter.told or self.lines:
            if self.lines:
                self.tell_lines()
                continue
            with self.lock:
                if waiter.told:
                    return
                if self.leader is None:
                    self.leader, wake = waiter, None
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
                self.leave(waiter)

    @property
    def has_others(self) -> bool:
        """Whether leaving is more than not to lead any more."""
        return bool(self._followers) or self._is_closing

    def leave(self, waiter: Waiter) -> None:
        """Somebody stops waiting, for whatever reason: somebody has to read on."""
        with self.lock:
            if self.leader is waiter:
                self.leader = None
                if self._is_closing:
                    self.sock.close()
            waiter.wake = None
            self._followers.pop(waiter, None)
            if self.leader is None and self._followers:
                self._wake(next(iter(self._followers)))

    def _read_until(self, waiter: Waiter) -> None:
        reader, receive = self.reader, self.sock.recv_into
        while not waiter.told and not self.lines:  # lines are told by who does not lead
            if self.lost is not None:
                self.fail(self.lost)
                waiter.told = True
                return
            try:
                count = receive(reader.get_buffer())
            except OSError as error:
                self.fail(f"the supervisor cannot be heard: {error}")
                continue
            self.take_in(count)

    def poll(self, call: Call) -> None:
        """Takes what has come, without waiting, unless another thread reads: a call may be over behind all that it left."""
        if call.is_over:
            return
        waiter = Waiter()
        with self.lock:
            if self.leader is not None or self.lost is not None:
                return
            self.leader = waiter
        try:
            for _ in range(_TURNS):
                self.take_in(self.sock.recv_into(self.reader.get_buffer(), 0, FLAGS))
                if call.is_over or self.lost is not None:
                    return
        except BlockingIOError:
            pass
        except OSError as error:
            self.fail(f"the supervisor cannot be heard: {error}")
        finally:
            self.leave(waiter)

    def take_in(self, count: int) -> None:
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

    def _take_frames(self, frames: List[Frame]) -> None:
        for head, body in frames:
            self.take(head, body)

    # -- writing

    def send(self, pieces: Sequence[Buffer]) -> bool:
        total = 0
        for piece in pieces:
            total += memoryview(piece).nbytes
        with self.writing:
            if self.lost is not None:
                return False
            try:
                sent = (self.sock.send(pieces[0], FLAGS) if len(pieces) == 1
                        else self.sock.sendmsg(pieces[:PIECES_MAX], (), FLAGS))
            except BlockingIOError:
                sent = 0
            except OSError:
                return False
            if sent < total:
                self.send_rest(pieces, sent)
        return True

    def send_rest(self, pieces: Sequence[Buffer], sent: int) -> None:
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
                        view = view[self.sock.send(view, FLAGS):]
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
            leads = self.leader is None
            if leads:
                self.leader = waiter
        try:
            if wait_writable(self.sock, leads):
                self.take_in(self.sock.recv_into(self.reader.get_buffer()))
        finally:
            if leads:
                self.leave(waiter)

    # -- the end

    def _shut(self) -> None:
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it is not connected any more

    def close(self) -> None:
        """Ends all calls, and a supervisor of its own."""
        if self.pid != os.getpid():
            return  # it is the parent's, who goes on
        with self.lock:
            if self.lost is None:
                self.lost = "the sandbox was closed"
        self.fail(self.lost, "cancelled")
        self._shut()  # wakes who reads
        with self.lock:
            if self.leader is None:
                self.sock.close()
            else:
                self._is_closing = True
        if self.connection.process:
            self.connection.process.reap()
