# SPDX-License-Identifier: Apache-2.0
"""A call's call-backs. Whoever waits for the call runs them."""

from __future__ import annotations

import codecs
import time
from typing import Any, Callable, Dict, Optional

from ._logs import emit, tool_level, tool_log
from ._order import Order, Request, read_request
from ._session import Call
from ._wire import Head


_GRACE = 1.0  # seconds behind the deadline: ending a cell takes its time


class Hooks:
    """What an order wants to be called back for. seconds: its deadline, where that is known."""

    __slots__ = ("order", "_seconds", "_decoders")

    def __init__(self, order: Order, seconds: Optional[float] = None) -> None:
        self.order, self._seconds = order, seconds
        self._decoders: Dict[int, Any] = {}

    def is_late(self, call: Call) -> bool:
        """Whether the call is past its deadline by this program's own clock: then nothing is called back any more. The
        clock starts when something first comes of the call, since it may have waited for a cell until then."""
        return self._seconds is not None and bool(call.heard) and time.monotonic() > call.heard + self._seconds + _GRACE

    def may_run(self, call: Call) -> bool:
        """Whether a tool that the call asked for is still to be run."""
        return call.runs_tools and not self.is_late(call)

    def output(self, head: Head, body: memoryview) -> None:
        """Text of what was printed. A character that is cut in two comes when it is complete."""
        decoder = self._decoders.get(head["stream"])
        if decoder is None:
            decoder = self._decoders[head["stream"]] = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(bytes(body))
        if text and self.order.on_output is not None:
            self.order.on_output("stdout" if head["stream"] == 1 else "stderr", text)

    def end(self) -> None:
        """What is left of a character that never was complete."""
        for stream, decoder in self._decoders.items():
            text = decoder.decode(b"", True)
            if text and self.order.on_output is not None:
                self.order.on_output("stdout" if stream == 1 else "stderr", text)

    def log(self, call: Call, head: Head, body: memoryview) -> None:
        """A line that the tool logged: for this program's log made harmless, for its call-back as it is."""
        text = str(body, "utf-8", "replace")
        emit(tool_log, tool_level(head["level"]), f"{call.call_id}: ", text)
        if self.order.on_log is not None:
            self.order.on_log(head["level"], text)

    def find_tool(self, head: Head) -> Callable[..., Any]:
        """The tool that a cell asks for. Raises NameError."""
        function = self.order.tools.get(head["tool"])
        if function is None:
            raise NameError(f"there is no tool {head['tool']!r}")
        return function

    def run_tool(self, head: Head, body: Request, finish: Callable[[Any], Any]) -> Any:
        """What the tool that a cell asks for gives. finish: waits for the returned value if it is awaitable."""
        function = self.find_tool(head)
        args, kwargs = read_request(body)
        try:
            return finish(function(*args, **kwargs))
        except Exception as error:
            self.order.raised.append(error)
            raise
