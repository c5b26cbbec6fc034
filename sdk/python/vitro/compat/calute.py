# SPDX-License-Identifier: Apache-2.0
"""Drop-in for the subprocess sandbox of calute, which is now xerxes.

    from vitro.compat.calute import SubprocessSandboxBackend

    backend = SubprocessSandboxBackend(sandbox_config)
    backend.execute("add", add, {"a": 2, "b": 3})

Each call runs in its own sealed, single-use process. VitroSandboxBackend is the same under its own name: where one of the
frameworks is installed, importing this module registers it there as "vitro". get_backend() and the like of this module are
for programs without them.

Both take `policy`. Without it a call has no network unless `sandbox_network_access` says so, may read the folders of
sys.path and its working directory, has a private /tmp and a minimal environment. A dict says what differs from that, as
{"files": {"write": ["/srv/work"]}}; a dict that extends another policy, a policy file and a built-in policy stand for
themselves.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional

from .._policy import Policy
from .._result import Result, last_words
from ..errors import VitroError, error_of
from ._shared import (DAY, cause_of, default_policy, folder_of, has_begun, lay_over, log_output, shared_sandbox,
                      working_directory)

__all__ = ["SubprocessSandboxBackend", "VitroSandboxBackend", "register_backend", "get_backend", "list_backends"]

_FRAMEWORKS = ("calute", "xerxes")
_REGISTRY = "security.sandbox_backends"  # a module of both


class SubprocessSandboxBackend:
    """Runs each call of a tool in a sealed process of its own.

    sandbox_config  anything with the attributes sandbox_timeout (30.0, in seconds; None: a day, the longest that there
                    is), sandbox_memory_limit_mb (512, of the whole call), sandbox_network_access (False) and
                    working_directory (None: this program's); those that are missing are as said here. They are looked
                    at for each call
    policy          what calls may use beside that: see the module
    result_types    classes that values may be of, beside plain data; they are made here by their constructors
    trust_results   True: values come back as pickles, by which a tool can run code in this program
    """

    def __init__(self, sandbox_config: Any, *, policy: Policy = None, result_types: Iterable[type] = (),
                 trust_results: bool = False) -> None:
        self._config, self._given = sandbox_config, policy
        self._result_types, self._trust_results = [*result_types], trust_results

    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """Calls a function with these arguments, and gives what it returns; a coroutine function is awaited there.

        Raises RuntimeError, whose __cause__ is a VitroError with the whole result.
        """
        timeout = self._timeout
        try:
            result = shared_sandbox()._call(func, (), dict(arguments), timeout=float(min(DAY if timeout is None else timeout, DAY)),
                                            policy=self._policy(), result_types=self._result_types,
                                            trust_results=self._trust_results)
        except (VitroError, TypeError, ValueError) as error:
            raise RuntimeError(f"{_execution_of(tool_name)} could not be begun: {error}") from error
        log_output(tool_name, result)
        if result.ok:
            return result.value
        raise RuntimeError(_explain(tool_name, timeout, result)) from error_of(result)

    def is_available(self) -> bool:
        """Whether calls can be held here to what they are allowed. Where not, they are refused, never made without."""
        return bool(self._truth()["available"])

    def get_capabilities(self) -> Dict[str, Any]:
        """What the framework knows of its own backend, as it has always been; `vitro` says what is true of this one."""
        truth = self._truth()
        return {"backend": "subprocess", "available": truth["available"], "isolation_level": "process",
                "filesystem_isolation": False, "network_isolation": False, "memory_limit_mb": self._memory_mb,
                "timeout": self._timeout, "vitro": truth}

    @property
    def _timeout(self) -> Optional[float]:
        timeout: Optional[float] = getattr(self._config, "sandbox_timeout", 30.0)
        return timeout

    @property
    def _memory_mb(self) -> int:
        memory: int = getattr(self._config, "sandbox_memory_limit_mb", 512)
        return memory

    def _policy(self) -> Policy:
        named = getattr(self._config, "working_directory", None)
        default = default_policy(working_directory() if named is None else folder_of(named),
                                 network=bool(getattr(self._config, "sandbox_network_access", False)))
        default["limits"] = {"memory_mb": self._memory_mb}
        return lay_over(self._given, default)

    def _truth(self) -> Dict[str, Any]:
        """What holds calls here, by property; or why none can be made, of which making one is the proof."""
        try:
            sandbox, policy = shared_sandbox(), self._policy()
            sandbox._call(os.getpid, (), {}, policy=policy).unwrap()
            return {"available": True, **sandbox.capabilities(policy)}
        except (VitroError, TypeError, ValueError) as error:
            return {"available": False, "level": "none", "error": str(error)}


class VitroSandboxBackend(SubprocessSandboxBackend):
    """The same, and what get_capabilities() says is true throughout."""

    def get_capabilities(self) -> Dict[str, Any]:
        """`isolation_level` is "strict", "full" or "partial", as `require` in a policy grades it, or "none" where calls are
        refused; `vitro` has the mechanism per property."""
        truth = self._truth()
        return {"backend": "vitro", "available": truth["available"], "isolation_level": truth["level"],
                "filesystem_isolation": truth.get("files", "none") != "none",
                "network_isolation": truth.get("network", "none") not in ("none", "host"),
                "memory_limit_mb": self._memory_mb, "timeout": self._timeout, "vitro": truth}


# ---- words --------------------------------------------------------------------------------------------------------


def _execution_of(tool_name: str) -> str:
    return f"Subprocess sandbox execution of tool {tool_name!r}"


def _explain(tool_name: str, timeout: Optional[float], result: Result) -> str:
    kind, message = cause_of(result)
    if result.status == "lost":
        return f"{_execution_of(tool_name)} was lost, and may have run: {message}"
    if not has_begun(result):
        return f"{_execution_of(tool_name)} was not begun ({result.status}): {message}"
    if result.status == "timeout":
        return f"{_execution_of(tool_name)} timed out after {DAY if timeout is None else timeout}s"
    if kind == "NotPlain" or result.status == "result_limit" or result.status == "no_result" and result.exit_code is None:
        return f"Failed to deserialise subprocess sandbox result for tool {tool_name!r}: {message}"
    if result.status == "error" and kind == "SystemExit":
        code, said = _read_exit(message)
        return f"{_execution_of(tool_name)} failed (exit {code}): {_join(said, result)}"
    if result.status == "error" and kind != "ExitCode":
        return f"Tool {tool_name!r} raised {kind} inside subprocess sandbox: {message}"
    code = result.exit_code if result.exit_code is not None else -(result.signal or 1)
    return f"{_execution_of(tool_name)} failed (exit {code}): {_join('' if kind == 'ExitCode' else message, result)}"


def _read_exit(text: str) -> Any:
    """The code that a process with that SystemExit would have had, and what there is to say of it."""
    if text in ("", "None", "0"):
        return 0, "it called sys.exit(), so that there is no result"
    try:
        return int(text), ""
    except ValueError:  # Python prints it, and exits with 1
        return 1, text


def _join(said: str, result: Result) -> str:
    return ": ".join(filter(None, (said, last_words(result.stderr_bytes))))


# ---- the registry -------------------------------------------------------------------------------------------------

_backends: Dict[str, Any] = {}


def register_backend(name: str, cls: Any) -> None:
    """Lets get_backend() make that class by a name."""
    _backends[name] = cls


def get_backend(name: str, sandbox_config: Any) -> Any:
    """A backend by its name."""
    if name not in _backends:
        raise ValueError(f"there is no sandbox backend {name!r}, only {', '.join(list_backends())}")
    return _backends[name](sandbox_config=sandbox_config)


def list_backends() -> List[str]:
    """The names."""
    return sorted(_backends)


def _has_registry(package: str) -> bool:
    """Whether an installed framework has one; another project of the same name is not imported for it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return False
    places = (spec.submodule_search_locations or ()) if spec is not None else ()
    parts = _REGISTRY.split(".")
    return any(os.path.exists(os.path.join(place, *parts, "__init__.py")) for place in places)


def _register() -> None:
    register_backend("subprocess", SubprocessSandboxBackend)
    register_backend("vitro", VitroSandboxBackend)
    for package in _FRAMEWORKS:
        if _has_registry(package):
            try:
                importlib.import_module(f"{package}.{_REGISTRY}").register_backend("vitro", VitroSandboxBackend)
            except Exception as error:
                logging.getLogger("vitro").warning("the backend vitro could not be registered with %s: %s: %s", package,
                                                   type(error).__name__, error)


_register()
