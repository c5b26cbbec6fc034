# SPDX-License-Identifier: Apache-2.0
"""What calls raise. One status of a result, one class; all are VitroErrors, and carry the whole result."""

from __future__ import annotations

from typing import Dict, Optional, Type

from ._logs import visible, visible_lines
from ._result import Result, last_line

__all__ = ["VitroError", "ToolError", "Timeout", "CpuLimit", "MemoryLimit", "Crashed", "NoResult", "ResultLimit",
           "Cancelled", "Refused", "Lost", "Unsupported"]


class VitroError(Exception):
    """The base class of everything that vitro raises.

    `result` is the call's whole Result, with its output and usage; None if there was no call. In the text, whatever could
    control a terminal is escaped, since it may come from a cell.
    """

    result: Optional[Result]

    def __init__(self, message: str = "", result: Optional[Result] = None) -> None:
        super().__init__(message)
        self.result = result

    def __str__(self) -> str:
        return visible_lines(str(self.args[0])) if self.args else ""

    def __reduce__(self) -> "tuple[object, ...]":
        return type(self), (str(self.args[0]) if self.args else "", self.result)


class ToolError(VitroError):
    """The tool itself failed: the function raised, or the command exited with a code other than 0.

    What was raised in the cell is never raised here as its own class, since a cell's word is only data: a ValueError
    there is a ToolError here whose `type` is "ValueError", and `str()` of it is "ValueError: " and the message. Its
    cause (`__cause__`) shows the traceback in the cell, wherever this one is printed. If the code did not catch what one of
    eval()'s tools raised, the cause of that one is the tool's own exception, with its frames.
    """

    def __str__(self) -> str:
        result = self.result
        if self.traceback is not None:
            return f"{visible(self.type)}: {super().__str__()}" if self.message else visible(self.type)
        said = last_line(result.stderr_bytes) if result is not None and result.exit_code else ""
        is_new = said and said not in self.message
        return f"{super().__str__()}: {visible(said)}" if is_new else super().__str__()

    @property
    def type(self) -> str:
        """The name of what was raised, in the cell's own words."""
        return self.result.error.type if self.result and self.result.error else "Error"

    @property
    def message(self) -> str:
        """The text of what was raised."""
        return str(self.args[0]) if self.args else ""

    @property
    def traceback(self) -> Optional[str]:
        """The traceback in the cell, as text; None where there is none."""
        return self.result.error.traceback if self.result and self.result.error else None


class Timeout(VitroError, TimeoutError):
    """The call ran past its deadline, or no cell was free for it in time. Also a TimeoutError."""


class CpuLimit(VitroError):
    """The call used more CPU time than `limits.cpu_ms`."""


class MemoryLimit(VitroError):
    """The call used more memory than `limits.memory_mb`.

    Not a MemoryError: this program has not run out of anything.
    """


class Crashed(VitroError):
    """The call's process died of a signal (`result.signal`), or broke its protocol."""


class NoResult(VitroError):
    """The call's process ended without giving a result, as by os._exit(0)."""


class ResultLimit(VitroError):
    """The result is larger than `limits.result_mb`."""


class Cancelled(VitroError):
    """The call was ended by cancel(), terminate() or close()."""


class Refused(VitroError):
    """The call was not begun: its policy is not valid or cannot be enforced on this machine, or the request is wrong."""


class Lost(VitroError):
    """The supervisor itself failed. The call may or may not have run, so it is never repeated automatically.

    The next call of the same sandbox starts a new supervisor.
    """


class Unsupported(VitroError):
    """vitro cannot work here: this is not Linux, or its program is missing."""


_BY_STATUS: Dict[str, Type[VitroError]] = {
    "error": ToolError, "timeout": Timeout, "cpu_limit": CpuLimit, "memory_limit": MemoryLimit, "crashed": Crashed,
    "no_result": NoResult, "result_limit": ResultLimit, "cancelled": Cancelled, "refused": Refused, "lost": Lost,
}


class _InTheCell(Exception):
    """The cause of a ToolError, as tracebacks show it: the one in the cell."""

    def __init__(self, traceback: str) -> None:
        lines = traceback.rstrip("\n").split("\n")
        super().__init__("\n" + "\n".join(map(visible, lines)))


_InTheCell.__module__, _InTheCell.__qualname__ = "vitro", "InTheCell"


def error_of(result: Result, raised: Optional[Exception] = None) -> VitroError:
    """The exception for a result that is not ok. raised: what a tool of this program's did, of which it came."""
    made = _BY_STATUS[result.status](result.error.message if result.error else result.status, result)
    if isinstance(made, ToolError) and made.traceback:
        made.__cause__ = _InTheCell(made.traceback)
        made.__cause__.__cause__ = raised
    return made
