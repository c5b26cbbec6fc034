# SPDX-License-Identifier: Apache-2.0
"""A result as e2b_code_interpreter shows it: what reads an Execution of E2B's reads one of these.

    from vitro.adapters.e2b import execution

    run = execution(sandbox.eval(code, result=True))
    run.text, run.logs.stdout, run.error

Whatever kept a call from its value is an `error`, also a deadline or a limit, for which E2B raises.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

from .. import _result

__all__ = ["Execution", "ExecutionError", "Logs", "Result", "execution"]


@dataclass
class Result:
    """A value of code. There is `text`, as a prompt would print it; code in a cell displays nothing else."""

    text: Optional[str] = None
    is_main_result: bool = True
    value: Any = None  # vitro's own: as it came

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def __getattr__(self, name: str) -> Any:
        if name in _FORMATS:
            return None
        raise AttributeError(name)

    def formats(self) -> List[str]:
        """The names of those that are there."""
        return ["text"] if self.text else []

    def __str__(self) -> str:
        return f"Result({self.text})"


_FORMATS = frozenset(("html", "markdown", "svg", "png", "jpeg", "pdf", "latex", "json", "javascript", "data", "chart", "extra"))


@dataclass
class Logs:
    """What was printed."""

    stdout: List[str] = field(default_factory=list)
    stderr: List[str] = field(default_factory=list)

    def to_json(self) -> str:
        """Both, in JSON."""
        return json.dumps({"stdout": self.stdout, "stderr": self.stderr})


@dataclass
class ExecutionError:
    """What went wrong: the exception's name, its text, and its traceback."""

    name: str
    value: str
    traceback: str

    def to_json(self) -> str:
        """All three, in JSON."""
        return json.dumps({"name": self.name, "value": self.value, "traceback": self.traceback})


@dataclass
class Execution:
    """How code ended."""

    results: List[Result] = field(default_factory=list)
    logs: Logs = field(default_factory=Logs)
    error: Optional[ExecutionError] = None
    execution_count: Optional[int] = None

    @property
    def text(self) -> Optional[str]:
        """The text of the code's value; None where it has none."""
        return next((result.text for result in self.results if result.is_main_result), None)

    def to_json(self) -> str:
        """All of it, in JSON."""
        results: List[Dict[str, Any]] = [{"text": result.text} for result in self.results]
        return json.dumps({"results": results, "logs": self.logs.to_json(),
                           "error": self.error.to_json() if self.error else None})


def execution(result: _result.Result) -> Execution:
    """The view of a result of eval(), call() or run()."""
    results = [] if result.value is None else [Result(_result._show(result.value, repr), True, result.value)]
    error = None
    if result.error is not None:
        kind, message, traceback = result.error
        error = ExecutionError(kind, message, traceback or f"{kind}: {message}")
    return Execution(results, Logs([result.stdout] if result.stdout else [], [result.stderr] if result.stderr else []), error)
