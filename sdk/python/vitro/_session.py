# SPDX-License-Identifier: Apache-2.0
"""What one connection to a supervisor has under way: its pools, its calls, and what messages mean for them.

Session knows nothing of who waits for what. ThreadSession (_threads) has threads that wait, LoopSession (_loop) an
event loop. Messages are taken by one of them at a time. Whatever comes for a call is put into its `events`, and
whoever waits for it is told; call-backs never run here.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import threading
import time
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Set, Tuple, Union

from ._logs import tool_level, tool_log
from ._order import SERVER_TOOL, Buffer, Order, PoolSpec
from ._result import STATUSES, Log
from ._start import Connection, log_line
from ._wire import Body, Broken, Head, Parted, frame, match_done, quote, read_message, write_head
from .errors import Refused

EMPTY = memoryview(b"")
FLAGS = getattr(socket, "MSG_DONTWAIT", 0) | getattr(socket, "MSG_NOSIGNAL", 0)  # of who must not wait, and hears by reading who is gone
PIECES_MAX = 512  # that are sent at once; IOV_MAX is 1024
POOLS_MAX = 32  # beyond this, the one that was not used for longest is dropped
HELD_MAX = 64 << 20  # bytes of one call that nobody has taken yet
ASKS_MAX = 10000  # uses of tools that one call waits for
LINES_MAX = 10000  # of the supervisor's own that nobody has logged yet
_JOINED_MAX = 1 << 20  # bytes of output that are told at once
LOGS_MAX = 8 << 20  # bytes of lines that a result keeps
_LOG_COST = 256  # of what is left, beside its bytes
_TRACEBACK = "vitro.traceback"  # the level of the line that is the traceback


class Waiter:
    """Something that can be waited for."""

    told = False  # there is something to look at
    wake: Any = None  # a lock that is released then
    notify: Optional[Callable[[Any], None]] = None  # called then, by who reads


class Reply(Waiter):
    """The answer to something that is no call."""

    def __init__(self, notify: Optional[Callable[[Any], None]]) -> None:
        self.notify = notify
        self.head: Optional[Head] = None
        self.listed: List[Dict[str, Any]] = []  # of a server's tools


class Pool:
    """A place for calls of one program under one policy."""

    __slots__ = ("number", "spec", "answered", "isolation", "error", "waiters", "calls", "used", "is_open", "known")

    def __init__(self, number: int, spec: PoolSpec) -> None:
        self.number, self.spec = number, spec
        self.answered = False
        self.isolation: Optional[Dict[str, Any]] = None
        self.error: Optional[str] = None  # why there is none
        self.waiters: List[Reply] = []
        self.calls = self.used = 0
        self.is_open = True
        self.known: Set[str] = set()  # modules that its zygote was told to learn


class Call(Waiter):
    """A call that is under way."""

    # Of most calls these stay as they are.
    streams = listens = False  # the latter: output, log lines are wanted as they come
    is_over = is_abandoned = False
    is_flooded = False  # it asked for more than anybody answers
    is_stopped = False  # it is being cancelled
    asked = settled = 0  # uses of tools, and those of them that have had their turn
    heard = 0.0  # when something first came of it: a cell has had it since before then
    body: Union[Buffer, Parted] = EMPTY
    value_size = 0
    logs: Sequence[Log] = ()
    dropped_logs = _put = _got = _kept = 0
    traceback: Optional[str] = None
    events: Union[Tuple[()], Deque[Tuple[Head, memoryview]]] = ()
    _data = b""
    _head: Optional[Head] = None

    def __init__(self, number: int, pool: Pool, call_id: str = "") -> None:
        self.number, self.pool, self._call_id = number, pool, call_id

    @property
    def call_id(self) -> str:
        """The caller's choice, or one that was made for it."""
        return self._call_id or f"c{self.number}"

    @property
    def is_ok(self) -> bool:
        """Whether it went well, of a call that is over."""
        return self._head is None or self._head["status"] == "ok"

    @property
    def head(self) -> Head:
        """How it ended, of a call that is over."""
        if self._head is None:
            self._head = read_message(self._data)
        return self._head

    def end(self, data: bytes, head: Optional[Head], body: Union[Buffer, Parted], value_size: int) -> None:
        """It is over: with this head, or one that is still to be read from this data."""
        self._data, self._head, self.body, self.value_size = data, head, body, value_size
        self.is_over = True

    def put(self, head: Head, body: memoryview) -> bool:
        """Leaves something for who waits. False: so much is there already that it is dropped."""
        if self.is_abandoned or self._put - self._got > HELD_MAX:
            return False
        if not self.heard:
            self.heard = time.monotonic()
        self._put += len(body) + _LOG_COST
        if not isinstance(self.events, deque):
            self.events = deque()
        self.events.append((head, body))
        return True

    def take(self) -> Optional[Tuple[Head, memoryview]]:
        """The next thing that was left, where there is one. Output that was left piece by piece is one piece."""
        events = self.events
        if not isinstance(events, deque) or not events:
            return None
        head, body = events.popleft()
        self._got += len(body) + _LOG_COST
        if head["is"] != "output":
            return head, body
        pieces, size = [body], len(body)
        while events and size < _JOINED_MAX and events[0][0]["is"] == "output" and events[0][0]["stream"] == head["stream"]:
            piece = events.popleft()[1]
            self._got += len(piece) + _LOG_COST
            pieces.append(piece)
            size += len(piece)
        return head, memoryview(b"".join(pieces)) if len(pieces) > 1 else body

    @property
    def runs_tools(self) -> bool:
        """Whether what it asks for is done: not any more when it is over, or about to be."""
        return not (self.is_over or self.is_stopped or self.is_abandoned or self.is_flooded)

    def add_log(self, level: str, text: str) -> None:
        """A line that the tool logged."""
        if level == _TRACEBACK:
            self.traceback = text
            return
        self._kept += len(text) + _LOG_COST
        if self._kept <= LOGS_MAX:
            if not isinstance(self.logs, list):
                self.logs = []
            self.logs.append(Log(level, text))
        else:
            self.dropped_logs += 1


class Session:
    """A connection, with its pools and calls."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.sock, self.reader = connection.sock, connection.reader
        self.pid = os.getpid()
        self.lock = threading.Lock()  # of all that follows
        self.calls: Dict[int, Call] = {}
        self.pools: Dict[PoolSpec, Pool] = {}
        self.lost: Optional[str] = None  # why it is over
        self._opening: Dict[int, Pool] = {}  # by their numbers: threads may send their requests in another order than they are here
        self._counting: Deque[Reply] = deque()
        self._listing: Deque[Reply] = deque()
        self._server = Pool(0, SERVER_TOOL)  # of the server's own tools
        self.numbers = itertools.count(1)
        self._farewell = ""
        self.lines: Deque[Tuple[Head, memoryview]] = deque(maxlen=LINES_MAX)  # of the supervisor's own log
        _sessions.add(self)

    # -- what who waits has to give

    def tell(self, waiter: Waiter) -> None:
        """Tells who waits that there is something to look at."""
        raise NotImplementedError

    def send(self, pieces: Sequence[Buffer]) -> bool:
        """Sends all of it, in one piece. False: the other side is gone, and has not got the first byte of it. Where it
        goes later, that is found by reading."""
        raise NotImplementedError

    # -- requests

    def open_pool(self, spec: PoolSpec, notify: Optional[Callable[[Any], None]] = None) -> Tuple[Pool, Optional[Reply]]:
        """A pool, and what to wait for until it is there, if it is not yet."""
        if spec is SERVER_TOOL:
            return self._server, None
        request: Sequence[Buffer] = ()
        with self.lock:
            pool = self.pools.get(spec)
            if pool is None:
                pool = Pool(next(self.numbers), spec)
                request = self._ask_for(pool)
            elif pool.answered:
                return pool, None
            reply = Reply(notify)
            if self.lost is not None:
                reply.told = True
            pool.waiters.append(reply)
        if request:
            self.send(request)
        return pool, reply

    def _ask_for(self, pool: Pool) -> Sequence[Buffer]:
        spec = pool.spec
        head = write_head({"do": "pool", "pool": pool.number, spec.kind: spec.program, "setup": spec.setup,
                           "ready_min": spec.ready_min or None, "ready_max": spec.ready_max or None})
        if len(head) > 1 << 16:
            raise Refused("preload, sys.path and the like are too long together")
        request = [*self._drop_oldest()]
        self.pools[spec] = pool
        self._opening[pool.number] = pool
        body = spec.sources.encode()
        return [*request, frame(head, len(body)), body]

    def _drop_oldest(self) -> List[bytes]:
        """Requests to drop the pool that was not used for longest, where there are too many."""
        idle = [pool for pool in self.pools.values() if pool.answered and not pool.calls]
        if len(self.pools) < POOLS_MAX or not idle:
            return []
        oldest = min(idle, key=lambda pool: pool.used)
        oldest.is_open = False
        del self.pools[oldest.spec]
        return [frame(write_head({"do": "drop", "pool": oldest.number}))]

    def begin(self, pool: Pool, order: Order, notify: Optional[Callable[[Any], None]] = None) -> Optional[Call]:
        """Begins a call. None: it was not begun, since the pool or the supervisor is not there any more."""
        number = next(self.numbers)
        call = Call(number, pool, order.call_id)
        call.streams, call.listens = order.on_output is not None, order.on_log is not None
        call.notify = notify
        what = '"do":"tool"' if pool is self._server else f'"do":"call","pool":{pool.number}'
        head = (f'{{{what},"call":{number},"tool":{quote(order.tool)},'
                f'"id":{quote(call.call_id)}{order.fields}}}').encode("ascii")
        return call if self.add(call) and self.deliver(call, [frame(head, order.size), *order.pieces]) else None

    def add(self, call: Call) -> bool:
        """From now on the call is under way. False: its pool, or the supervisor, is not there any more."""
        pool = call.pool
        with self.lock:
            if not pool.is_open or self.lost is not None:
                return False
            pool.calls += 1
            pool.used = call.number
            self.calls[call.number] = call
        return True

    def deliver(self, call: Call, pieces: Sequence[Buffer]) -> bool:
        """Sends the call. False: the supervisor is gone, and never heard of it."""
        if self.send(pieces):
            if call.is_stopped:  # by another thread, whose word may have been sent before the call
                self.cancel(call)
            return True
        self.take_back(call)
        return False

    def take_back(self, call: Call) -> None:
        """The call was not begun, since the supervisor is gone."""
        with self.lock:
            if self.calls.pop(call.number, None) is not None:
                call.pool.calls -= 1
        self.fail("the supervisor is gone")

    def cancel(self, call: Call) -> None:
        """Ends a call; one that is over stays so."""
        if not call.is_over:
            call.is_stopped = True
            self.send([frame(b'{"do":"cancel","call":%d}' % call.number)])

    def abandon(self, call: Call) -> None:
        """Ends a call that nobody waits for any more."""
        call.is_abandoned = True
        call.events = ()
        self.cancel(call)

    def learn(self, pool: Pool, module: str) -> None:
        """The pool's zygote may import that module, which the caller's own reference names."""
        pool.known.add(module)
        with self.lock:
            if not pool.is_open:
                return
            pool.calls += 1  # nobody drops it before this is sent
        try:
            self.send([frame(write_head({"do": "learn", "pool": pool.number, "module": module}))])
        finally:
            with self.lock:
                pool.calls -= 1

    def answer(self, number: int, ask: int, ok: bool, pieces: Sequence[Buffer]) -> None:
        """Answers what a call asked for."""
        head = b'{"do":"answer","call":%d,"ask":%d,"ok":%s}' % (number, ask, b"true" if ok else b"false")
        if len(pieces) == 1:
            self.send([b"".join((frame(head, len(pieces[0])), pieces[0]))])
        else:
            self.send([frame(head, sum(memoryview(piece).nbytes for piece in pieces)), *pieces])

    def count(self, notify: Optional[Callable[[Any], None]] = None) -> Reply:
        """Asks for the counts, to be waited for."""
        return self._inquire(b'{"do":"count"}', self._counting, notify)

    def list_tools(self, notify: Optional[Callable[[Any], None]] = None) -> Reply:
        """Asks for the server's own tools, to be waited for."""
        return self._inquire(b'{"do":"tools"}', self._listing, notify)

    def _inquire(self, head: bytes, waiting: Deque[Reply], notify: Optional[Callable[[Any], None]]) -> Reply:
        reply = Reply(notify)
        with self.lock:
            waiting.append(reply)
            reply.told = self.lost is not None
        self.send([frame(head)])
        return reply

    # -- messages

    def tell_lines(self) -> None:
        """Logs what the supervisor said of itself. By nobody who reads for others, or writes."""
        while self.lines:
            try:
                head, body = self.lines.popleft()
            except IndexError:  # another thread was faster
                return
            log_line(head, body)

    def take(self, data: bytes, body: Body) -> None:
        """Takes a message. Raises Broken where it cannot be."""
        usual = match_done(data)
        if usual is not None:
            number, value, stdout, stderr = usual.groups(0)
            size = int(value)
            self._end_call(int(number), data, None, body, size, size + int(stdout) + int(stderr))
            return
        assert not isinstance(body, Parted)
        head = read_message(data)
        kind = head["is"]
        if kind == "done":
            if head["status"] not in STATUSES:
                raise Broken(f"a result of the status {head['status']!r}")
            value = head.get("value", 0)
            self._end_call(head["call"], data, head, body, value, value + head.get("stdout", 0) + head.get("stderr", 0))
        elif kind in ("output", "ask") or kind == "log" and "call" in head:
            self._take_of_call(kind, head, body)
        elif kind == "log":
            self.lines.append((head, body))
        elif kind == "pool":
            self._take_pool(head, body)
        elif kind == "count" and self._counting:
            reply = self._counting.popleft()
            reply.head = head
            self.tell(reply)
        elif kind == "tools" and self._listing:  # it comes unasked, too, when they change
            self._take_tools(head, body)
        elif kind == "bye":
            self._farewell = "the server has ended; the call was not begun"

    def _take_of_call(self, kind: str, head: Head, body: memoryview) -> None:
        call = self.calls.get(head["call"])
        if call is None:
            raise Broken(f"{kind} of a call that is not under way")
        if kind == "ask":
            call.asked += 1
            if call.asked - call.settled > ASKS_MAX or not call.put(head, body):
                call.is_flooded = True  # nothing is sent from here: who reads may be writing
        elif kind == "output":
            if not (call.streams and len(body) and call.put(head, body)):
                return
        else:
            if head.get("level").__class__ is not str:
                raise Broken("a line without a level")
            call.add_log(head["level"], str(body, "utf-8", "replace"))
            if head["level"] == _TRACEBACK:
                return
            is_wanted = call.listens or tool_log.isEnabledFor(tool_level(head["level"]))
            if not is_wanted or not call.put(head, body):
                return
        self.tell(call)

    def _end_call(self, number: int, data: bytes, head: Optional[Head], body: Body, value: int, size: int) -> None:
        if size != len(body):
            raise Broken("a result of other lengths than it says")
        with self.lock:
            call = self.calls.pop(number, None)
            if call is None:
                raise Broken("a result of a call that is not under way")
            call.pool.calls -= 1
        if call.is_flooded and head is not None and head["status"] == "cancelled":
            head["error"] = (f"it asked for more at once than is answered: {ASKS_MAX} uses of tools, or {HELD_MAX >> 20} MB "
                             "of their arguments")
        call.end(data, head, body, value)
        self.tell(call)

    def _take_pool(self, head: Head, body: memoryview) -> None:
        if head["pool"] not in self._opening:
            raise Broken("an answer to what was not asked")
        if head["ok"]:
            try:
                isolation = json.loads(str(body, "utf-8") or "{}")
            except ValueError as error:
                raise Broken(f"a pool's isolation is no JSON: {error}") from None
        with self.lock:
            pool = self._opening.pop(head["pool"])
            if head["ok"]:
                pool.isolation = isolation
            else:
                pool.error = head.get("error", "no reason was given")
                pool.is_open = False
                del self.pools[pool.spec]
            pool.answered = True
            waiters, pool.waiters = pool.waiters, []
        for reply in waiters:
            reply.head = head
            self.tell(reply)

    def _take_tools(self, head: Head, body: memoryview) -> None:
        try:
            listed = json.loads(str(body, "utf-8")) if head["ok"] else []
        except ValueError as error:
            raise Broken(f"a list of tools is no JSON: {error}") from None
        reply = self._listing.popleft()
        reply.head, reply.listed = head, listed
        self.tell(reply)

    def fail(self, why: str, status: str = "lost") -> None:
        """The session is over: every call that is not is lost, or what the status says."""
        with self.lock:
            if self.lost is None:
                self.lost = self._farewell or why
            calls, self.calls = [*self.calls.values()], {}
            waiters: List[Waiter] = [*self._counting, *self._listing]
            for pool in self._opening.values():
                waiters += pool.waiters
            self._opening.clear()
            self._counting.clear()
            self._listing.clear()
        for call in calls:
            call.end(b"", {"status": status, "error": self.lost}, EMPTY, 0)
            self.tell(call)
        for waiter in waiters:
            self.tell(waiter)

    def forget(self) -> None:
        """In a child of a fork: lets go of what is the parent's."""
        self.lost = "the process was forked"
        self.sock.close()


_sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


def _forget_all() -> None:
    # The parent's supervisor is to end with the parent, also while children of it live on.
    for session in [*_sessions]:
        session.forget()
    _sessions.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
