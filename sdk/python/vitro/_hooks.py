# SPDX-License-Identifier: Apache-2.0
"""A call's call-backs. Whoever waits for the call runs them."""

from __future__ import annotations

import codecs
from typing import Any, Callable, Dict

from ._order import Order, read_request
from ._wire import Head


class Hooks:
    """What an order wants to be called back for."""

    __slots__ = ("order", "_decoders")

    def __init__(self, order: Order) -> None:
        self.order = order
        self._decoders: Dict[int, Any] = {}

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

    def log(self, head: Head, body: memoryview) -> None:
        """A line that the tool logged."""
        if self.order.on_log is not None:
            self.order.on_log(head["level"], str(body, "utf-8", "replace"))

    def find_tool(self, head: Head) -> Callable[..., Any]:
        """The tool that a cell asks for. Raises NameError."""
        function = self.order.tools.get(head["tool"])
        if function is None:
            raise NameError(f"there is no tool {head['tool']!r}")
        return function

    def run_tool(self, head: Head, body: memoryview) -> Any:
        """What the tool that a cell asks for gives, which may be to be awaited."""
        function = self.find_tool(head)
        args, kwargs = read_request(body)
        return function(*args, **kwargs)
