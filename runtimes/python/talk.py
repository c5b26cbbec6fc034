# SPDX-License-Identifier: Apache-2.0
"""The call socket: how an occupant hears its call, asks for tools, and tells its result.

src/launch/talk.h has the messages: a head of fixed size, a name, a body. Any thread may send; one reads at a time.
A read that an exception interrupts (a signal's handler may raise one) goes on where it stopped.
"""

from __future__ import annotations

import _socket
import marshal
import struct
from _thread import allocate_lock, get_ident

from . import codec

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Deque, List, NamedTuple, Optional, Sequence

    class Message(NamedTuple):
        """What was heard. The body is a view of memory of its own, or what hear_call() says."""

        kind: int
        flags: int
        id: int
        name: bytes
        body: Any
else:
    from collections import namedtuple

    Message = namedtuple("Message", "kind flags id name body")
from collections import deque

EXECUTE, ANSWER, ASK, LOG, RESULT, ERROR = range(1, 7)
FAILED = 1  # flag of an answer
# A call without JSON, of a function with plain arguments: u32 n, and n bytes of marshal, which has the module, the function's
# name, its file, the arguments, and what those are that follow it, by their places; or None. These are large: bytes, of which it
# is the size, or arrays of numpy's, of which it is the size, the type and the shape.
USUAL = b"\0\0\0\0"
NAME_MAX = 512
LOG_MAX = 64 << 10
_JOIN_MAX = 64 << 10  # up to here one copy is cheaper than a list of pieces
_PIECES_MAX = 512  # the kernel takes 1024
_HEAD = struct.Struct("=IIIIQQ")
_HEAD_SIZE = _HEAD.size
_AHEAD = 8192  # small messages are read in one go
_APART_MAX = 64  # buffers that are worth a look each


class Gone(EOFError):
    """The supervisor is no more."""


class Talk:
    """One end of a call socket. Owns the descriptor."""

    def __init__(self, fd: int) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)  # which the kernel need not be asked for
        if self._socket.gettimeout() is not None:  # a module has set one for all sockets to come
            self._socket.settimeout(None)
        self._sending = allocate_lock()
        self._sender: Optional[int] = None
        self._postponed: Deque[List[Any]] = deque()
        self._ahead = b""  # read, but not looked at
        # Of a message that is larger than that:
        self._head = b""
        self._rest: Optional[memoryview] = None  # room for its name and its body
        self._space = self._got = 0

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    # ---- sending

    def send(self, kind: int, name: bytes = b"", body: Sequence[Any] = (), id: int = 0, flags: int = 0) -> None:
        """Sends a message whose body is the pieces, one after the other; returns when the socket has all of it."""
        pieces: List[Any] = [piece if type(piece) is bytes else memoryview(piece).cast("B") for piece in body]
        size = sum(map(len, pieces))
        head = _HEAD.pack(kind, flags, len(name), 0, id, size)
        if size <= _JOIN_MAX:
            pieces = [b"".join((head, name, *pieces))]
        else:
            pieces.insert(0, head + name)
        thread = get_ident()
        if self._sender == thread:
            # A finalizer, or a signal's handler, that logs in the middle of a message of this very thread.
            self._postponed.append(pieces)
            return
        with self._sending:
            self._sender = thread
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
                pieces[at] = memoryview(pieces[at])[sent:]

    # ---- hearing

    def hear_call(self, receive: Any = None) -> Message:
        """The message that is a call, before any other code can interrupt. Its body is a list, where it is of the usual kind
        (USUAL): the module, the name, the file, the arguments, and the types and shapes of those that are to be arrays. Where it
        has large buffers behind JSON (codec), it is what codec.unpack() makes of it. Either way each is an object of its own, so
        that none is copied again.
        receive(fd, size, begun, writable): makes one, of which the beginning has come."""
        data = b""
        while len(data) < _HEAD_SIZE:
            data += _some(self._socket.recv(_AHEAD))
        self._ahead = data
        kind, flags, name_len, _, id, body_len = _HEAD.unpack_from(data)
        body_at = _HEAD_SIZE + name_len
        if data[body_at:body_at + 4] == USUAL:
            self._ahead = b""
            return Message(kind, flags, id, b"", self._hear_usual(data, body_at + 4, receive or self._receive))
        if body_at + body_len == len(data):
            self._ahead = b""
            return Message(kind, flags, id, data[_HEAD_SIZE:body_at], memoryview(bytearray(data[body_at:])))
        if body_len <= _JOIN_MAX:
            return self.hear()  # type: ignore[return-value]
        try:
            head, is_plain, lengths, at = codec.unpack_head(memoryview(data)[body_at:], body_len)
        except codec.Malformed:  # or not all of the head is there: then it is large itself
            return self.hear()  # type: ignore[return-value]
        if len(lengths) > _APART_MAX:
            return self.hear()  # type: ignore[return-value]
        self._ahead = b""
        buffers = self._receive_apart(lengths, head.get("bytes") or (), data[body_at + at:], receive or self._receive)
        return Message(kind, flags, id, data[_HEAD_SIZE:body_at], (head, codec.Attachments.of(buffers, is_plain)))

    def _hear_usual(self, data: bytes, at: int, receive: Any) -> List[Any]:
        """The rest of a call of the usual kind, of which so much has come."""
        end = at + 4
        while len(data) < end or len(data) < end + int.from_bytes(data[at:end], "little"):
            data += _some(self._socket.recv(_AHEAD))
        size = int.from_bytes(data[at:end], "little")
        *names, args, apart = marshal.loads(data[end:end + size])
        arrays = {}
        if apart:
            args, data = [*args], data[end + size:]
            for index, about in apart.items():
                is_array = type(about) is tuple
                length = about[0] if is_array else about
                begun, data = data[:length], data[length:]
                args[index] = _some(receive(self.fileno(), length, begun, is_array))
                if is_array:
                    arrays[index] = about[1:]
        return [*names, args, arrays]

    def _receive_apart(self, lengths: Sequence[int], fixed: Sequence[int], data: bytes, receive: Any) -> List[Any]:
        buffers = []
        for index, length in enumerate(lengths):
            begun, data = data[:length], data[length:]
            buffers.append(_some(receive(self.fileno(), length, begun, index not in fixed)) if length else b"")
        return buffers

    def _receive(self, fd: int, size: int, begun: bytes, writable: bool) -> Any:
        while len(begun) < size:
            begun += _some(self._socket.recv(size - len(begun), _socket.MSG_WAITALL))
        return bytearray(begun) if writable else begun

    @property
    def has_ahead(self) -> bool:
        """Whether more has been read than was heard: then the socket need not be readable for it."""
        return bool(self._ahead)

    def hear_answer(self, id: int) -> Optional[bytes]:
        """Waits. The body of a good answer to that question, if it is small, and all that came; None: hear() has what came."""
        if self._ahead or self._rest is not None:
            return None
        data: bytes = _some(self._socket.recv(_AHEAD))
        self._ahead = data
        if data[:_HEAD_SIZE] != _HEAD.pack(ANSWER, 0, 0, 0, id, len(data) - _HEAD_SIZE):
            return None
        self._ahead = b""
        return data[_HEAD_SIZE:]

    def hear(self, wait: bool = True) -> Optional[Message]:
        """The next message. Without wait: None if nothing has come; what has begun to come is waited for. Raises Gone."""
        if self._rest is None:
            data = self._ahead
            while len(data) < _HEAD_SIZE:
                try:
                    more = self._socket.recv(_AHEAD, 0 if wait or data else _socket.MSG_DONTWAIT)
                except BlockingIOError:
                    return None
                self._ahead = data = data + _some(more)
            kind, flags, name_len, _, id, body_len = _HEAD.unpack_from(data)
            body_at = _HEAD_SIZE + name_len
            end = body_at + body_len
            if len(data) >= end:
                self._ahead = data[end:]
                return Message(kind, flags, id, data[_HEAD_SIZE:body_at], memoryview(bytearray(data[body_at:end])))
            self._begin_large(data, name_len, body_len)
        return self._hear_large()

    def _begin_large(self, data: bytes, name_len: int, body_len: int) -> None:
        self._space = -name_len % 16  # so that the body lies where numbers in it can be used in place
        rest = memoryview(codec.room(self._space + name_len + body_len))
        self._got = self._space + len(data) - _HEAD_SIZE
        rest[self._space:self._got] = data[_HEAD_SIZE:]
        self._head, self._ahead, self._rest = data[:_HEAD_SIZE], b"", rest

    def _hear_large(self) -> Message:
        rest = self._rest
        assert rest is not None
        while self._got < len(rest):
            self._got += _some(self._socket.recv_into(rest[self._got:]))
        kind, flags, name_len, _, id, _ = _HEAD.unpack(self._head)
        self._rest = None
        body_at = self._space + name_len
        return Message(kind, flags, id, bytes(rest[self._space:body_at]), rest[body_at:])


def _some(got: Any) -> Any:
    if not got:
        raise Gone("the supervisor is gone")
    return got
