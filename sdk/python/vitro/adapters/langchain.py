# SPDX-License-Identifier: Apache-2.0
"""Tools for LangChain whose calls run in cells.

    from vitro.adapters.langchain import code_tool, tool

    @tool(timeout=5)
    def word_count(text: str) -> int:
        "Counts the words of a text."
        return len(text.split())

    model.bind_tools([word_count, code_tool()])

They are langchain_core's own StructuredTools, so that schemas, call-backs and ToolMessages are its affair. What goes wrong in a
call is a ToolException, which they give to the model as text (handle_tool_error), unless told otherwise.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from typing import Any, Callable, Dict, Optional

from .._isolated import isolated
from .._logs import visible
from .._policy import Policy
from .._result import Result, _show
from ..errors import ToolError, VitroError
from ..sandbox import Sandbox

__all__ = ["code_tool", "tool"]

_OWN = ("name", "description", "args_schema", "return_direct", "infer_schema", "response_format", "parse_docstring",
        "handle_tool_error", "handle_validation_error", "tags", "metadata")


def tool(function: Optional[Callable[..., Any]] = None, **options: Any) -> Any:
    """A StructuredTool of a function, sync or async, whose calls run in cells. With or without parentheses.

    Its options are those of @vitro.isolated (timeout, memory, policy, result_types, ...), and of
    StructuredTool.from_function (name, description, args_schema, return_direct, handle_tool_error, ...).
    """
    if function is None:
        return lambda function: tool(function, **options)
    own = {name: options.pop(name) for name in _OWN if name in options}
    sealed = isolated(**options)(function)
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def work(*args: Any, **kwargs: Any) -> Any:
            try:
                return await sealed(*args, **kwargs)
            except VitroError as error:
                raise _tool_exception(error) from error
        return _make(None, work, own)

    @functools.wraps(function)
    def work_now(*args: Any, **kwargs: Any) -> Any:
        try:
            return sealed(*args, **kwargs)
        except VitroError as error:
            raise _tool_exception(error) from error
    return _make(work_now, None, own)


def code_tool(sandbox: Optional[Sandbox] = None, *, policy: Policy = None, timeout: Optional[float] = None,
              tools: Optional[Dict[str, Callable[..., Any]]] = None, name: str = "python", description: str = "",
              **own: Any) -> Any:
    """A StructuredTool that runs Python code which a model wrote, each time in a cell of its own, and gives what it printed and its
    value.

    sandbox     one of yours, which you close; without it the tool has its own, under `policy`, until the program's end
    tools       functions of this program that the code may call: see Sandbox.eval()
    """
    given = Sandbox(policy) if sandbox is None else sandbox

    def python(code: str) -> str:
        try:
            return _tell(given.eval(code, timeout=timeout, tools=tools, result=True))
        except VitroError as error:
            raise _tool_exception(error) from error

    what = description or ("Runs Python code in a sealed process of its own, and gives what it prints and the value of its last "
                           "expression. Nothing is kept from one call to the next.")
    return _make(python, None, {**own, "name": name, "description": what})


def _framework() -> Any:
    try:
        return importlib.import_module("langchain_core.tools")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "langchain_core":  # it is there, and lacks something itself
            raise
        raise ModuleNotFoundError("vitro.adapters.langchain needs langchain-core: pip install langchain-core", name=error.name) from error


def _make(function: Any, coroutine: Any, own: Dict[str, Any]) -> Any:
    return _framework().StructuredTool.from_function(func=function, coroutine=coroutine, **{"handle_tool_error": True, **own})


def _tool_exception(error: VitroError) -> Exception:
    kind = visible(error.type) if isinstance(error, ToolError) else type(error).__name__
    made: Exception = _framework().ToolException(f"{kind}: {VitroError.__str__(error)}")
    return made


def _tell(result: Result) -> str:
    """What a model is told of code that it wrote."""
    text = result.stdout + result.stderr
    if not result.ok:
        assert result.error is not None
        raise _framework().ToolException(text + (result.error.traceback or f"{result.error.type}: {result.error.message}"))
    return text if result.value is None else text + _show(result.value, repr)
