# SPDX-License-Identifier: Apache-2.0
"""Uses of tools that cells ask for. A cell can ask as fast as it writes, so all of it has bounds."""

from __future__ import annotations

import json
import threading
from collections import deque
from typing import Callable, Deque, List, Optional, Tuple

from ._order import Buffer, write_failure
from ._session import Call
from ._wire import Head

TOOLS_AT_ONCE = 8  # threads that run tools of one call


def tell_failure(error: BaseException) -> List[Buffer]:
    """What a tool raised, for the cell, also where it does not say what it is."""
    try:
        return write_failure(error)
    except Exception:
        return [json.dumps({"type": type(error).__name__[:200], "message": "(no message)"}).encode("ascii")]


def take_raised(raised: Deque[Exception], head: Head) -> Optional[Exception]:
    """Which of these, that tools of a call raised, the call ended of; they are let go. A cell's word is only compared: the most
    that it has of a lie is another one of them."""
    kind, text = head.get("error_type"), head.get("error", "")
    found = None
    while raised and found is None and head["status"] == "error":
        error = raised.pop()
        told = json.loads(bytes(tell_failure(error)[0]))
        name, said = told["type"], told["message"]
        for its_kind, words in ((name, said), (name, repr(said)), ("ToolError", f"{name}: {said}" if said else name)):
            if kind == its_kind and (text == words or text.startswith(f"{words}; ")):  # behind which is the cell's advice
                found = error
    raised.clear()
    return found


class Workers:
    """Threads that run the tools of one call. Each call has its own, so that a call whose tools are slow, or wait for
    calls of their own, holds up no other. They are there only while there is something to do."""

    def __init__(self, call: Call, serve: Callable[[Head, memoryview], None]) -> None:
        """serve: runs a tool, and raises nothing."""
        self._call, self._serve = call, serve
        self._lock = threading.Lock()
        self._waiting: Deque[Tuple[Head, memoryview]] = deque()
        self._threads = 0

    def add(self, head: Head, body: memoryview) -> None:
        """Has it answered, when its turn comes."""
        with self._lock:
            self._waiting.append((head, body))
            if self._threads >= TOOLS_AT_ONCE:
                return
            self._threads += 1
        try:
            threading.Thread(target=self._work, daemon=True, name="vitro-tool").start()
        except RuntimeError:  # there are too many of this user's
            with self._lock:
                self._threads -= 1
                if not self._threads:
                    raise

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                head, body = self._waiting.popleft()
                self._call.settled += 1
            self._serve(head, body)
