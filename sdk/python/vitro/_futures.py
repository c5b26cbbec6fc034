# SPDX-License-Identifier: Apache-2.0
"""Calls as futures. One thread looks after all futures of a session, and is there only while there are some."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future, InvalidStateError
from typing import Any, Callable, Deque, Optional

from ._session import Call, Waiter
from ._threads import ThreadSession
from .errors import VitroError


class CallFuture(Future):  # type: ignore[type-arg]
    """The future of a call. cancel() ends its cell at once, also when it runs already."""

    def __init__(self, call_id: str = "") -> None:
        super().__init__()
        self.call_id = call_id
        self._stop: Optional[Callable[[], None]] = None
        self._cancelling = threading.Lock()  # taken by the first who cancels, for good

    def cancel(self) -> bool:
        """Ends the call, whatever it is doing. False: it was over already."""
        if not super().cancel():
            return False
        if self._cancelling.acquire(blocking=False):
            self.set_running_or_notify_cancel()
            if self._stop is not None:
                self._stop()
        return True

    def running(self) -> bool:
        """Whether the call is under way."""
        return not self.done()

    def settle(self, outcome: Callable[[], Any]) -> None:
        """Gives it what the outcome is, or raises; unless it was cancelled."""
        try:
            try:
                value = outcome()
            except VitroError as error:
                self.set_exception(error.with_traceback(None))  # of what is not the caller's, and leads back to here
            except BaseException as error:
                self.set_exception(error)
            else:
                self.set_result(value)
        except InvalidStateError:
            pass


class Pump(Waiter):
    """Looks after calls that no thread waits for."""

    def __init__(self, session: ThreadSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._ready: Deque[Call] = deque()
        self._steps: "dict[Call, Callable[[Call], bool]]" = {}
        self._runs = False

    def notify_of(self, call: Call) -> None:
        """Called by who reads: there is something to look at."""
        self._ready.append(call)
        self.told = True
        if self._session.leader is not self:
            with self._session.lock:
                self._session._wake(self)

    def add(self, call: Call, step: Callable[[Call], bool]) -> None:
        """step(call) takes what came for it, and tells whether it is over. What came before it was known here is taken
        at once: whoever reads has passed it by, and may wait for more for ever."""
        if call.told:
            self._take(call, step)
        elif self._keep(call, step):
            self._again(call)

    def _take(self, call: Call, step: Callable[[Call], bool]) -> None:
        """Takes what came for a call, whose step is in nobody else's hands."""
        if not step(call) and self._keep(call, step):
            self._again(call)

    def _keep(self, call: Call, step: Callable[[Call], bool]) -> bool:
        """Leaves it to the thread. Whether something has come meanwhile, which the thread may have passed by."""
        with self._lock:
            self._steps[call] = step
            if not self._runs:
                self._start(call)
        return call.told

    def _start(self, call: Call) -> None:
        """Starts the thread. The lock is held. Where there can be none, nobody looks after the call."""
        self._runs = True
        try:
            threading.Thread(target=self._run, name="vitro-futures", daemon=True).start()
        except BaseException:
            self._runs = False
            del self._steps[call]
            raise

    def _again(self, call: Call) -> None:
        while call.told:
            with self._lock:
                step = self._steps.pop(call, None)
            if step is None or step(call) or not self._keep(call, step):
                return

    def _run(self) -> None:
        while True:
            self._session.wait(self)
            self.told = False
            while self._ready:
                call = self._ready.popleft()
                with self._lock:
                    step = self._steps.pop(call, None)
                if step is not None:
                    self._take(call, step)
                del call, step  # they lead to what a future got, which is not to be held while waiting
            with self._lock:
                if not self._steps:
                    self._runs = False
                    return
