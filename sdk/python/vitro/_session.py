# SPDX-License-Identifier: Apache-2.0
"""What one connection to a supervisor has under way: its pools, its calls, and what messages mean for them.

Session knows nothing of who waits for what. ThreadSession (_threads) has threads that wait, LoopSession (_loop) an
event loop. Messages are taken by one of them at a time. Whatever comes for a call is put into its `events`, and
whoever waits for it is told; call-backs never run here.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import threading
import weakref
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Set, Tuple

from ._order import Buffer, Order, PoolSpec
from ._result import STATUSES, Log
from ._start import Connection, log_line
from ._wire import Broken, Head, frame, quote, read_message, write_head
from .errors import Refused

EMPTY = memoryview(b"")
POOLS_MAX = 32  # beyond this, the one that was not used for longest is dropped
HELD_MAX = 64 << 20  # bytes of one call that nobody has taken yet
LOGS_MAX = 8 << 20  # bytes of lines that a result keeps
_LOG_COST = 256  # of what is left, beside its bytes
_TRACEBACK = "vitro.traceback"  # the level of the line that is the traceback

tool_log = logging.getLogger("vitro.tool")
_TOOL_LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}


class Waiter:
    """Something that can be waited for."""

    __slots__ = ("told", "wake", "notify")

    def __init__(self) -> None:
        self.told = False  # there is something to look at
        self.wake: Any = None  # a lock that is released then
        self.notify: Optional[Callable[[Any], None]] = None  # called then, by who reads


class Reply(Waiter):
    """The answer to something that is no call."""

    __slots__ = ("head",)

    def __init__(self, notify: Optional[Callable[[Any], None]]) -> None:
        super().__init__()
        self.notify = notify
        self.head: Optional[Head] = None


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

    __slots__ = ("number", "call_id", "pool", "streams", "listens", "events", "done", "body", "logs", "dropped_logs",
                 "traceback", "is_abandoned", "is_flooded", "_put", "_got", "_kept")

    def __init__(self, number: int, call_id: str, pool: Pool, streams: bool, listens: bool) -> None:
        self.told = False
        self.wake = self.notify = None
        self.number, self.call_id, self.pool = number, call_id, pool
        self.streams, self.listens = streams, listens  # whether output, log lines are wanted as they come
        self.events: Deque[Tuple[Head, memoryview]] = deque()
        self.done: Optional[Head] = None
        self.body = EMPTY
        self.logs: List[Log] = []
        self.dropped_logs = 0
        self.traceback: Optional[str] = None
        self.is_abandoned = False
        self.is_flooded = False  # it asked for more than anybody answers
        self._put = self._got = self._kept = 0

    def put(self, head: Head, body: memoryview) -> bool:
        """Leaves something for who waits. False: so much is there already that it is dropped."""
        if self.is_abandoned or self._put - self._got > HELD_MAX:
            return False
        self._put += len(body) + _LOG_COST
        self.events.append((head, body))
        return True

    def take(self) -> Tuple[Head, memoryview]:
        """The next thing that was left. Raises IndexError where there is none."""
        head, body = self.events.popleft()
        self._got += len(body) + _LOG_COST
        return head, body

    def add_log(self, level: str, text: str) -> None:
        if level == _TRACEBACK:
            self.traceback = text
            return
        tool_log.log(_TOOL_LEVELS.get(level.lower(), 20), "%s: %s", self.call_id, text)
        self._kept += len(text) + _LOG_COST
        if self._kept <= LOGS_MAX:
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
        self._opening: Deque[Pool] = deque()
        self._counting: Deque[Reply] = deque()
        self._numbers = itertools.count(1)
        self._farewell = ""
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
        request: Sequence[Buffer] = ()
        with self.lock:
            pool = self.pools.get(spec)
            if pool is None:
                pool = Pool(next(self._numbers), spec)
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
        self._opening.append(pool)
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
        number = next(self._numbers)
        call = Call(number, order.call_id or f"c{number}", pool, order.on_output is not None, order.on_log is not None)
        call.notify = notify
        with self.lock:
            if not pool.is_open or self.lost is not None:
                return None
            pool.calls += 1
            pool.used = number
            self.calls[number] = call
        head = (f'{{"do":"call","call":{number},"pool":{pool.number},"tool":{quote(order.tool)},'
                f'"id":{quote(call.call_id)}{order.fields}}}').encode("ascii")
        if self.send([frame(head, order.size), *order.pieces]):
            return call
        with self.lock:
            if self.calls.pop(number, None) is not None:
                pool.calls -= 1
        self.fail("the supervisor is gone")
        return None

    def cancel(self, call: Call) -> None:
        """Ends a call; one that is over stays so."""
        if call.done is None:
            self.send([frame(b'{"do":"cancel","call":%d}' % call.number)])

    def abandon(self, call: Call) -> None:
        """Ends a call that nobody waits for any more."""
        call.is_abandoned = True
        call.events.clear()
        self.cancel(call)

    def learn(self, pool: Pool, module: str) -> None:
        """The pool's zygote may import that module, which the caller's own reference names."""
        pool.known.add(module)
        if pool.is_open:
            self.send([frame(write_head({"do": "learn", "pool": pool.number, "module": module}))])

    def answer(self, number: int, ask: int, ok: bool, pieces: Sequence[Buffer]) -> None:
        """Answers what a call asked for."""
        size = sum(memoryview(piece).nbytes for piece in pieces)
        head = b'{"do":"answer","call":%d,"ask":%d,"ok":%s}' % (number, ask, b"true" if ok else b"false")
        self.send([frame(head, size), *pieces])

    def count(self, notify: Optional[Callable[[Any], None]] = None) -> Reply:
        """Asks for the counts, to be waited for."""
        reply = Reply(notify)
        with self.lock:
            self._counting.append(reply)
            reply.told = self.lost is not None
        self.send([frame(b'{"do":"count"}')])
        return reply

    # -- messages

    def take(self, data: bytes, body: memoryview) -> None:
        """Takes a message. Raises Broken where it cannot be."""
        head = read_message(data)
        kind = head["is"]
        if kind == "done":
            self._end_call(head, body)
        elif kind in ("output", "ask") or kind == "log" and "call" in head:
            self._take_of_call(kind, head, body)
        elif kind == "log":
            log_line(head, body)
        elif kind == "pool":
            self._take_pool(head, body)
        elif kind == "count" and self._counting:
            reply = self._counting.popleft()
            reply.head = head
            self.tell(reply)
        elif kind == "bye":
            self._farewell = "the server has ended; the call was not begun"

    def _take_of_call(self, kind: str, head: Head, body: memoryview) -> None:
        call = self.calls.get(head["call"])
        if call is None:
            raise Broken(f"{kind} of a call that is not under way")
        if kind == "ask":
            if not call.put(head, body):
                call.is_flooded = True  # nothing is sent from here: who reads may be writing
        elif kind == "output":
            if not (call.streams and len(body) and call.put(head, body)):
                return
        else:
            if head.get("level").__class__ is not str:
                raise Broken("a line without a level")
            call.add_log(head["level"], str(body, "utf-8", "replace"))
            if not call.listens or head["level"] == _TRACEBACK or not call.put(head, body):
                return
        self.tell(call)

    def _end_call(self, head: Head, body: memoryview) -> None:
        if head["status"] not in STATUSES:
            raise Broken(f"a result of the status {head['status']!r}")
        if head.get("value", 0) + head.get("stdout", 0) + head.get("stderr", 0) != len(body):
            raise Broken("a result of other lengths than it says")
        with self.lock:
            call = self.calls.pop(head["call"], None)
            if call is None:
                raise Broken("a result of a call that is not under way")
            call.pool.calls -= 1
        call.body = body
        call.done = head
        self.tell(call)

    def _take_pool(self, head: Head, body: memoryview) -> None:
        if not self._opening or self._opening[0].number != head["pool"]:
            raise Broken("an answer to what was not asked")
        if head["ok"]:
            try:
                isolation = json.loads(str(body, "utf-8") or "{}")
            except ValueError as error:
                raise Broken(f"a pool's isolation is no JSON: {error}") from None
        with self.lock:
            pool = self._opening.popleft()
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

    def fail(self, why: str, status: str = "lost") -> None:
        """The session is over: every call that is not is lost, or what the status says."""
        with self.lock:
            if self.lost is None:
                self.lost = self._farewell or why
            calls, self.calls = [*self.calls.values()], {}
            waiters: List[Waiter] = [*self._counting]
            for pool in self._opening:
                waiters += pool.waiters
            self._opening.clear()
            self._counting.clear()
        for call in calls:
            call.done = {"status": status, "error": self.lost}
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
