# SPDX-License-Identifier: Apache-2.0
"""The call socket: how an occupant hears its call, asks for tools, and tells its result.

src/launch/talk.h has the messages: a head of fixed size, a name, a body. Any thread may send; one reads at a time.
A read that an exception interrupts (a signal's handler may raise one) goes on where it stopped.
"""

from __future__ import annotations

import _socket
import struct
from _thread import allocate_lock, get_ident

from . import codec

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Deque, List, NamedTuple, Optional, Sequence

    class Message(NamedTuple):
        """What was heard. The body is a view of memory of its own."""

        kind: int
        flags: int
        id: int
        name: bytes
        body: memoryview
else:
    from collections import namedtuple

    Message = namedtuple("Message", "kind flags id name body")
from collections import deque

EXECUTE, ANSWER, ASK, LOG, RESULT, ERROR = range(1, 7)
FAILED = 1  # flag of an answer
NAME_MAX = 512
LOG_MAX = 64 << 10
_JOIN_MAX = 64 << 10  # up to here one copy is cheaper than a list of pieces
_PIECES_MAX = 512  # the kernel takes 1024
_HEAD = struct.Struct("=IIIIQQ")


class Gone(EOFError):
    """The supervisor is no more."""


class Talk:
    """One end of a call socket. Owns the descriptor."""

    def __init__(self, fd: int) -> None:
        self._socket = _socket.socket(fileno=fd)
        self._sending = allocate_lock()
        self._sender: Optional[int] = None
        self._postponed: Deque[List[Any]] = deque()
        self._head = memoryview(bytearray(_HEAD.size))
        self._rest: Optional[memoryview] = None  # name and body, once the head is there
        self._space = self._got = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    # ---- sending

    def send(self, kind: int, name: bytes = b"", body: Sequence[Any] = (), id: int = 0, flags: int = 0) -> None:
        """Sends a message whose body is the pieces, one after the other; returns when the socket has all of it."""
        pieces: List[Any] = [memoryview(piece).cast("B") for piece in body]
        size = sum(map(len, pieces))
        head = _HEAD.pack(kind, flags, len(name), 0, id, size)
        if size <= _JOIN_MAX:
            pieces = [b"".join([head, name, *pieces])]
        else:
            pieces.insert(0, head + name)
        if self._sender == get_ident():
            # A finalizer, or a signal's handler, that logs in the middle of a message of this very thread.
            self._postponed.append(pieces)
            return
        with self._sending:
            self._sender = get_ident()
            try:
                self._send_pieces(pieces)
                while self._postponed:
                    self._send_pieces(self._postponed.popleft())
            finally:
                self._sender = None

    def claim(self, kind: int, size: int) -> None:
        """Sends the head of a message that is too large, and no body: the supervisor ends the call for it."""
        with self._sending:
            self._socket.sendall(_HEAD.pack(kind, 0, 0, 0, 0, size))

    def _send_pieces(self, pieces: List[Any]) -> None:
        if len(pieces) == 1:
            self._socket.sendall(pieces[0])
            return
        at = 0
        while at < len(pieces):
            sent = self._socket.sendmsg(pieces[at:at + _PIECES_MAX])
            while at < len(pieces) and sent >= len(pieces[at]):
                sent -= len(pieces[at])
                at += 1
            if sent:
                pieces[at] = pieces[at][sent:]

    # ---- hearing

    def hear(self, wait: bool = True) -> Optional[Message]:
        """The next message. Without wait: None if nothing has come; what has begun to come is waited for. Raises Gone."""
        if self._rest is None:
            if not self._fill(self._head, wait):
                return None
            _, _, name_len, _, _, body_len = _HEAD.unpack(self._head)
            self._space = -name_len % 16  # so that the body lies where numbers in it can be used in place
            self._rest = memoryview(codec.room(self._space + name_len + body_len))
            self._got = self._space
        self._fill(self._rest, True)
        rest, self._rest, self._got = self._rest, None, 0
        kind, flags, name_len, _, id, _ = _HEAD.unpack(self._head)
        body_at = self._space + name_len
        return Message(kind, flags, id, bytes(rest[self._space:body_at]), rest[body_at:])

    def _fill(self, room: memoryview, wait: bool) -> bool:
        """Reads until `room` is full. False: nothing has come."""
        size = len(room)
        while self._got < size:
            try:
                got = self._socket.recv_into(room[self._got:], 0, 0 if wait or self._got else _socket.MSG_DONTWAIT)
            except BlockingIOError:
                return False
            if not got:
                raise Gone("the supervisor is gone")
            self._got += got
        return True
