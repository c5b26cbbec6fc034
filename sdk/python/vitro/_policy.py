# SPDX-License-Identifier: Apache-2.0
"""A policy as it is given in Python, as the sources that the wire takes; and what a deadline makes of it."""

from __future__ import annotations

import json
import math
import os
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

Policy = Union[None, str, "os.PathLike[str]", Mapping[str, Any]]
Source = Dict[str, str]

BUILT_IN = ("default", "strict", "compute")
_WALL_MS = 30000  # the default's
_FILE_MB = 64
_WALL_MAX_MS = 86400000


def sources_of(policy: Policy) -> List[Source]:
    """The sources of a policy: a dict as in a policy file, the name of a built-in one, or a file's path."""
    if policy is None:
        return []
    if isinstance(policy, Mapping):
        return [{"json": json.dumps(_absolute(policy), default=_speak)}]
    if isinstance(policy, (str, os.PathLike)):
        name = os.fspath(policy)
        return [{"load": name if isinstance(policy, str) and name in BUILT_IN else os.path.abspath(name)}]
    raise TypeError(f"policy is a dict, the name of a built-in policy or a path, not {type(policy).__name__}")


def _speak(value: Any) -> Any:
    """What JSON has no word for, in a policy."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset, tuple)):
        return [*value]
    raise TypeError(f"a policy cannot have a {type(value).__name__} in it")


def absolute_path(path: Any) -> Any:
    """A path by the working directory, as a flag's is. What is no path stays, to be refused by name."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        return path
    text = os.fspath(path)
    if isinstance(text, str) and text.split("/")[0] == "~":
        return text  # which is refused, with a word about it
    # After a link ".." leads elsewhere than it seems to.
    return os.path.realpath(text) if ".." in text.split("/") else os.path.abspath(text)


def _absolute(policy: Mapping[str, Any]) -> Dict[str, Any]:
    made = dict(policy)
    extends = made.get("extends")
    if isinstance(extends, (str, os.PathLike)) and extends not in BUILT_IN:
        made["extends"] = absolute_path(extends)
    files = made.get("files")
    if isinstance(files, Mapping):
        made["files"] = files = dict(files)
        for key in ("read", "write", "deny", "sockets"):
            if isinstance(files.get(key), (list, tuple, set, frozenset)):
                files[key] = [{**grant, "from": absolute_path(grant.get("from"))} if isinstance(grant, Mapping)
                              else absolute_path(grant) for grant in files[key]]
        if "cwd" in files:
            files["cwd"] = absolute_path(files["cwd"])
    return made


def wall_ms_of(policy: Policy) -> Optional[int]:
    """The deadline that a policy sets, where that can be told without reading files."""
    return _limit_of(policy, "wall_ms", _WALL_MS)


def file_mb_of(policy: Policy) -> Optional[int]:
    """How large a file may be, where that can be told in the same way."""
    return _limit_of(policy, "file_mb", _FILE_MB)


def _limit_of(policy: Policy, key: str, usual: int) -> Optional[int]:
    """usual: what the built-in policies have."""
    if policy is None or isinstance(policy, str) and policy in BUILT_IN:
        return usual
    if not isinstance(policy, Mapping) or policy.get("extends", "default") not in BUILT_IN:
        return None
    limits = policy.get("limits", {})
    found = limits.get(key, usual) if isinstance(limits, Mapping) else None
    return found if isinstance(found, int) else None


def seconds_of(policy: Policy, timeout: Optional[float]) -> Optional[float]:
    """How long a call may take in its cell, where that is known."""
    if timeout is not None:
        return float(timeout)
    wall = wall_ms_of(policy)
    return None if wall is None else wall / 1000


def deadline(policy: Policy, timeout: Optional[float]) -> Tuple[List[Source], int]:
    """What a timeout in seconds adds to the sources of a policy, and the call's own wall_ms.

    A call can shorten the policy's deadline, and only a policy can make it longer. Longer ones come in steps, so that
    calls with many different timeouts share a few pools.
    """
    if timeout is None:
        return [], 0
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout is a number of seconds, not {timeout!r}")
    if not 0 < timeout * 1000 <= _WALL_MAX_MS:
        raise ValueError(f"timeout must be positive, and a day at the most, not {timeout!r}")
    wall = max(1, math.ceil(timeout * 1000))
    known = wall_ms_of(policy)
    if known is not None and wall <= known:
        return [], wall
    step = _WALL_MS
    while step < wall:
        step *= 2
    return [{"key": "limits.wall_ms", "value": f"{min(step, _WALL_MAX_MS)}ms"}], wall
