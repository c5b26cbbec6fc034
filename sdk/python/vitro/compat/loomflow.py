# SPDX-License-Identifier: Apache-2.0
"""Drop-in for the sandboxes of loomflow, which was jeevesagent before.

    from vitro.compat.loomflow import SubprocessSandbox

    sandbox = SubprocessSandbox(InProcessToolHost([add]), timeout_seconds=5)
    result = await sandbox.call("add", {"a": 2, "b": 3}, call_id="c1")

Each call runs in its own sealed, single-use process. What `call` gives, and what is raised, is of the framework that the
wrapped host is of. InProcessToolHost, Tool, tool, ToolDef, ToolEvent, ToolResult and ConfigError of this module are for
programs without it.

All take `policy`. Without it a call has no network, may read the folders of sys.path and the working directory, has a
private /tmp and a minimal environment. A dict says what differs from that, as {"network": "host"}; a dict that extends
another policy, a policy file and a built-in policy stand for themselves.
"""

from __future__ import annotations

import importlib
import os
import pathlib
import sys
from typing import Any, AsyncIterator, Dict, Iterable, List, Mapping, Optional, Tuple, Type, Union

from .._policy import Policy
from .._reference import NotSendable, describe
from .._result import Result
from ._host import ConfigError, InProcessToolHost, Tool, ToolDef, ToolEvent, ToolResult, tool
from ._script import CodeExecutor, ExecResult
from ._shared import DAY, cause_of, default_policy, folder_of, has_begun, lay_over, log_output, sealed, working_directory

__all__ = ["SubprocessSandbox", "OSSandbox", "CodeExecutor", "ExecResult", "InProcessToolHost", "Tool", "tool", "ToolDef",
           "ToolEvent", "ToolResult", "ConfigError"]

_FRAMEWORKS = ("loomflow", "jeevesagent")
# Errors that the cell's own runtime has for a tool that gave no value.
_NO_VALUE = ("ExitCode", "NotPlain")


class SubprocessSandbox:
    """Runs each call of an in-process host's tools in a sealed process of its own.

    inner            the host: an InProcessToolHost
    timeout_seconds  how long a call may run; waiting for a process does not count
    policy           what calls may use: see the module
    result_types     classes that values may be of, beside plain data; they are made here by their constructors
    trust_results    True: values come back as pickles, by which a tool can run code in this program
    """

    _name = "SubprocessSandbox"  # in messages

    def __init__(self, inner: Any, *, timeout_seconds: float = 30.0, policy: Policy = None,
                 result_types: Iterable[type] = (), trust_results: bool = False) -> None:
        if not timeout_seconds > 0:
            raise ValueError("timeout_seconds must be positive")
        self._results = _results_of(inner, self._name)
        self._inner, self._timeout = inner, timeout_seconds
        self._given = policy
        self._known: Tuple[Optional[str], Policy] = None, self._policy_in(None)
        self._result_types, self._trust_results = [*result_types], trust_results

    @property
    def inner(self) -> Any:
        """The host whose tools these are."""
        return self._inner

    @property
    def timeout_seconds(self) -> float:
        """How long a call may run."""
        return self._timeout

    def register(self, tool: Any) -> None:
        """Adds a tool to the host."""
        self._inner.register(tool)

    async def list_tools(self, *, query: Optional[str] = None) -> List[Any]:
        """The host's own."""
        found: List[Any] = await self._inner.list_tools(query=query)
        return found

    async def watch(self) -> AsyncIterator[Any]:
        """The host's own."""
        async for event in self._inner.watch():
            yield event

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """Calls a tool, and gives a ToolResult, whatever happens. Cancelling it ends the tool's process."""
        found = self._inner.get(tool)
        if found is None:
            return self._results.error_(call_id=call_id, message=f"unknown tool: {tool}")
        try:
            arguments, policy = dict(args), self._policy()
            result = await sealed(lambda sandbox, number: sandbox._call(
                found.fn, (), arguments, timeout=float(min(self._timeout, DAY)), policy=policy, call_id=number,
                result_types=self._result_types, trust_results=self._trust_results), call_id)
            log_output(tool, result)
            if result.ok:
                return self._results.success(call_id=call_id, output=result.value)
            said = self._explain(tool, found.fn, result)
        except Exception as error:
            said = f"the call could not be made: {type(error).__name__}: {error}"
        return self._results.error_(call_id=call_id, message=f"{self._name}: {said}")

    def _policy(self) -> Policy:
        """For a call that is made now: the working directory may have changed."""
        cwd = working_directory()
        if self._known[0] != cwd:
            self._known = cwd, self._policy_in(cwd)
        return self._known[1]

    def _policy_in(self, cwd: Optional[str]) -> Policy:
        return lay_over(self._given, default_policy(cwd))

    def _explain(self, tool: str, function: Any, result: Result) -> str:
        kind, message = cause_of(result)
        if result.status == "error" and kind not in _NO_VALUE:
            return f"tool raised {kind}: {message}"
        if result.status == "refused" and kind == NotSendable.__name__:
            whose = "its arguments are" if _is_sendable(function) else "it is"
            return f"tool {tool!r} was not called, since {whose} not picklable: {message}"
        if result.status == "lost":
            return f"the call was lost, and may have run: {message}"
        if not has_begun(result):
            return f"the call was not begun ({result.status}): {message}"
        if result.status == "timeout":
            return f"tool exceeded {self._timeout}s"
        cause = f"exited with code {result.exit_code}" if result.exit_code is not None else message
        return f"subprocess exited without producing a result: {cause}"


class OSSandbox(SubprocessSandbox):
    """The same, for tools that may write: below `roots`, of which the first is where calls start, and nowhere else.

    roots          folders, at least one
    allow_network  True: calls have the host's network
    path_args      is accepted: what it named arguments for holds for all paths
    env            variables for calls, beside the minimal environment
    """

    _name = "OSSandbox"

    def __init__(self, inner: Any, *, roots: Iterable[Union[str, "os.PathLike[str]"]], allow_network: bool = False,
                 timeout_seconds: float = 30.0, path_args: Optional[Iterable[str]] = None,
                 env: Optional[Mapping[str, str]] = None, policy: Policy = None, result_types: Iterable[type] = (),
                 trust_results: bool = False) -> None:
        if isinstance(roots, (str, os.PathLike)):
            raise TypeError("roots is a list of folders, not one")
        self._roots = tuple(pathlib.Path(folder_of(root)).resolve() for root in roots)
        if not self._roots:
            raise ValueError("OSSandbox needs at least one writable root in roots")
        self._network, self._env = allow_network, dict(env or {})
        super().__init__(inner, timeout_seconds=timeout_seconds, policy=policy, result_types=result_types,
                         trust_results=trust_results)

    @property
    def mode(self) -> str:
        """What holds calls: always "vitro". Where that cannot hold them, they are not made."""
        return "vitro"

    @property
    def roots(self) -> Tuple[pathlib.Path, ...]:
        """The folders that calls may write to."""
        return self._roots

    def _policy_in(self, cwd: Optional[str]) -> Policy:
        roots = [str(root) for root in self._roots]
        default = default_policy(cwd, network=self._network)
        default["files"] = {**default.get("files", {}), "write": roots, "cwd": roots[0]}
        if self._env:
            default["env"] = {"set": self._env}
        return lay_over(self._given, default)


def _is_sendable(function: Any) -> bool:
    try:
        describe(function)
    except NotSendable:
        return False
    return True


# ---- whose classes are used ---------------------------------------------------------------------------------------


def _results_of(inner: Any, name: str) -> Any:
    """The class of results that goes with a host. Raises ConfigError where it is no in-process host."""
    for kind in type(inner).__mro__:
        if kind.__name__ == InProcessToolHost.__name__ and callable(getattr(inner, "get", None)):
            return _find("ToolResult", "core.types", kind) or ToolResult
    raise _config_error_for(inner)(
        f"{name} wraps InProcessToolHost only, whose tools are functions of this program that a process can be given. "
        f"This is a {type(inner).__name__}.")


def _config_error_for(inner: Any) -> Type[Exception]:
    """One that is caught by this module's name, and by that of each framework that is in use."""
    kinds: Dict[Any, None] = {ConfigError: None}
    for kind in type(inner).__mro__:
        found = _find("ConfigError", "core.errors", kind)
        if found is not None and issubclass(found, Exception):
            kinds[found] = None
    for package in _FRAMEWORKS:
        errors = sys.modules.get(f"{package}.core.errors")
        if errors is not None:
            kinds[errors.ConfigError] = None
    if len(kinds) == 1:
        return ConfigError
    return type("ConfigError", tuple(kinds), {"__module__": __name__})


def _find(name: str, place: str, kind: type) -> Any:
    """A class of the framework that another one is of; None: it is of none."""
    package = kind.__module__.partition(".")[0]
    if package in _FRAMEWORKS:
        return getattr(importlib.import_module(f"{package}.{place}"), name)
    found = getattr(sys.modules.get(kind.__module__), name, None)
    return found if isinstance(found, type) else None
