# SPDX-License-Identifier: Apache-2.0
"""A Python executor for smolagents, each step of which runs in a cell of its own.

    from vitro.adapters.smolagents import PythonExecutor

    agent = CodeAgent(tools=[...], model=model, executor=PythonExecutor(timeout=10))

Variables stay from one step to the next, as in smolagents' own executors, though no process does: what a step leaves is
made into bytes in its cell, carried here unread, and made into variables again in the next one.
"""

from __future__ import annotations

import pathlib
import pickle
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from .._policy import Policy
from .._reference import NotSendable
from .._result import Error, Result
from ..errors import NoResult, ToolError, VitroError
from ..sandbox import Sandbox

__all__ = ["CodeOutput", "PythonExecutor"]

_LAUNCH = """def launch(space):
    import pickle, sys
    order = pickle.loads(sys.stdin.buffer.read())
    module = type(sys)("_vitro_steps")
    sys.modules["_vitro_steps"] = module
    exec(compile(order["driver"], "<vitro>", "exec"), vars(module))
    return module.run(space, order)
globals().pop("launch")(globals())
"""


@dataclass
class CodeOutput:
    """What a step gave."""

    output: Any
    logs: str
    is_final_answer: bool


class StepError(ToolError):
    """The code of a step raised. Its text says at which line, and what."""

    def __str__(self) -> str:
        return VitroError.__str__(self)


class PythonExecutor:
    """A smolagents.PythonExecutor, for `executor=` of a CodeAgent.

    policy      what code may use: see Sandbox. Imports are not checked: what is installed can be imported.
    timeout     seconds for each step
    preload     modules that cells have imported already
    additional_functions
                functions of this program that code may call, as tools
    max_print_outputs_length
                characters of what a step printed that the model gets

    Tools, and final_answer, run in this program; their arguments and values are plain data (docs/values.md), and the code
    chooses the arguments. An output that is no plain data comes as its text.

    Kept between steps: what pickle can write, modules, and functions, lambdas and classes that code defines at its top level.
    These are made again from their source, so that what was changed in them, such as an attribute of a class, is not
    kept. Open files, generators, threads and files of /tmp are not kept either. The logs of a step name what is not.
    A step that raises keeps what it did until then. One that runs past a limit, or dies, changes nothing.
    """

    _kept: bytes  # what steps left
    _number: int  # of the last step
    _variables: Dict[str, bytes]  # for the next one
    _lost: List[str]  # names that were told
    state: Dict[str, Any]  # where an agent looks for what a step that failed printed

    def __init__(self, policy: Policy = None, *, timeout: float = 30, preload: Iterable[str] = (),
                 additional_functions: Optional[Mapping[str, Callable[..., Any]]] = None,
                 max_print_outputs_length: int = 50_000) -> None:
        self._policy, self._timeout, self._preload = policy, timeout, [*preload]
        self._functions = dict(additional_functions or {})
        self._max = max_print_outputs_length
        self._tools: Dict[str, Callable[..., Any]] = dict(self._functions)
        self._driver = pathlib.Path(__file__).with_name("_steps.py").read_text("utf-8")
        self._sandbox: Optional[Sandbox] = None
        self.reset()
        real = sys.modules.get("smolagents.local_python_executor")
        if real is not None:
            real.PythonExecutor.register(type(self))

    def send_tools(self, tools: Mapping[str, Callable[..., Any]]) -> None:
        """These, and the additional functions, are what code may call from now on."""
        self._tools = {**tools, **self._functions}

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """The next step has these. Raises NotSendable where one cannot be pickled."""
        for name, value in variables.items():
            try:
                self._variables[name] = pickle.dumps(value, 5)
            except Exception as error:
                raise NotSendable(f"the variable {name!r} cannot be sent to a cell: {error}") from error

    def __call__(self, code_action: str) -> CodeOutput:
        """Runs a step. Raises StepError where the code raised, and Timeout, MemoryLimit and so on."""
        self._number += 1
        if self._sandbox is None:
            self._sandbox = Sandbox(self._policy, preload=self._preload)
        order = {"driver": self._driver, "code": code_action, "state": self._kept, "variables": self._variables,
                 "tools": [*self._tools], "number": self._number, "lost": self._lost}
        result = self._sandbox.eval(_LAUNCH, stdin=pickle.dumps(order, 5), tools=self._tools, timeout=self._timeout,
                                    result=True)
        self.state["_print_outputs"] = logs = _shorten(result.stdout + result.stderr, self._max)
        told = _check(result)
        self._kept, self._variables = told["state"], {}
        if told["lost"]:
            self._lost = [*self._lost, *told["lost"]][:_LOST_MOST]
            said = _shorten(", ".join(told["lost"]), self._max)
            self.state["_print_outputs"] = logs = _shorten(f"{logs}(not kept for the next step: {said})\n", self._max)
        error = told["error"]
        if error is not None:
            result.status, result.error = "error", Error(error["type"], error["message"], error["traceback"])
            raise StepError(_shorten(f"Code execution failed at line '{error['line']}' due to: {error['type']}: "
                                     f"{error['message']}", self._max), result)
        return CodeOutput(told["output"], logs, told["final"])

    def reset(self) -> None:
        """Forgets all variables."""
        self._kept, self._number, self._variables, self._lost = b"", 0, {}, []
        self.state = {"_print_outputs": ""}

    def cleanup(self) -> None:
        """Ends the sandbox. A step after that has a new one, and the variables."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            sandbox.close()


def _check(result: Result) -> Dict[str, Any]:
    """What the cell told, of which nothing is believed but its types."""
    told = result.unwrap()
    error = told.get("error") if isinstance(told, dict) else None
    if (not isinstance(told, dict) or not isinstance(told.get("state"), bytes) or not isinstance(told.get("final"), bool)
            or not _are_texts(told.get("lost")) or error is not None and (
                not isinstance(error, dict) or not _are_texts([error.get(name) for name in _ERROR]))):
        raise NoResult("the code broke what runs it: it told nothing that can be read", result)
    return told


_ERROR = ("type", "message", "line", "traceback")
_LOST_MOST = 1000  # names that the next steps are told of


def _are_texts(words: Any) -> bool:
    return isinstance(words, list) and all(isinstance(word, str) for word in words)


def _shorten(text: str, most: int) -> str:
    """The beginning and the end, if it is too long for a model."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters are left out ...\n{text[-half:]}"
