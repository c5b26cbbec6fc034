# SPDX-License-Identifier: Apache-2.0
"""Which folders of sys.path a cell needs for functions of this program, and where it has them."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from typing import Any, Dict, List, Tuple

from . import _codec as codec

# Of these the cell has its own: the host's are shown elsewhere.
_PRIVATE = ("/tmp", "/dev/shm", "/dev", "/proc")
_ELSEWHERE = "/run/vitro/path"
_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_RUNTIME = os.path.dirname(os.path.realpath(codec.__file__))  # in a source tree a link leads there


class Folders:
    """The folders of sys.path as they are now. It does not change: where sys.path does, another one is made."""

    __slots__ = ("_seen", "_cwd", "path", "grants")

    def __init__(self, is_own: bool) -> None:
        """is_own: the interpreter in the cell is this one."""
        self._seen = [*sys.path]
        self._cwd = None if all(os.path.isabs(str(entry)) for entry in self._seen) else _working()
        self.path: List[str] = []  # for sys.path in the cell
        self.grants: List[Any] = []  # for files.read
        leave, prefixes = _standard(is_own), _prefixes() if is_own else ()
        for entry in dict.fromkeys(os.path.abspath(entry) for entry in self._seen if isinstance(entry, str)):
            if entry not in leave and entry != "/" and os.path.exists(entry):
                self._add(entry, prefixes)
        if self.grants and _RUNTIME != _PACKAGE:
            self.grants.append(_RUNTIME)

    def is_current(self) -> bool:
        """Whether sys.path, and the working directory if that is in it, are still the same."""
        return self._seen == sys.path and (self._cwd is None or self._cwd == _working())

    def _add(self, entry: str, prefixes: Tuple[str, ...]) -> None:
        if entry in _PRIVATE:
            moved = f"{_ELSEWHERE}{entry}"
            self.path.append(moved)
            self.grants.append({"from": entry, "to": moved})
            return
        self.path.append(entry)
        if not any(entry == prefix or entry.startswith(prefix + "/") for prefix in prefixes):
            self.grants.append(entry)


def _working() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:  # it was removed
        return "/"


def _standard(is_own: bool) -> Dict[str, None]:
    """Folders that an interpreter has by itself. Another one has others in their place, and cannot use these."""
    paths = sysconfig.get_paths()
    found = [paths["stdlib"], paths["platstdlib"], os.path.join(paths["platstdlib"], "lib-dynload"),
             os.path.join(sys.base_prefix, sys.platlibdir if hasattr(sys, "platlibdir") else "lib",
                          f"python{sys.version_info[0]}{sys.version_info[1]}.zip")]
    found += [os.path.join(sys.base_prefix, "lib", f"python{sys.version_info[0]}.{sys.version_info[1]}", name)
              for name in ("", "lib-dynload")]
    found += [paths["purelib"], paths["platlib"], *getattr(site, "getsitepackages", list)()]
    if not is_own:
        found += [site.getusersitepackages()] if hasattr(site, "getusersitepackages") else []
    return dict.fromkeys(os.path.abspath(path) for path in found)


def _prefixes() -> Tuple[str, ...]:
    """What the cell has for the interpreter's sake."""
    return tuple({os.path.abspath(prefix) for prefix in (sys.prefix, sys.exec_prefix, sys.base_prefix)} - {"/"})
