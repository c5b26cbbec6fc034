# SPDX-License-Identifier: Apache-2.0
"""Which folders of sys.path a cell needs for functions of this program, and where it has them."""

from __future__ import annotations

import logging
import os
import site
import sys
import sysconfig
from typing import Any, Dict, List, Set, Tuple

from . import _codec as codec
from ._resolve import ELSEWHERE

# Of these the cell has its own: the host's are shown elsewhere.
_PRIVATE = ("/tmp", "/dev/shm", "/dev", "/proc")
_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_RUNTIME = os.path.dirname(os.path.realpath(codec.__file__))  # in a source tree a link leads there
_log = logging.getLogger("vitro")
_warned: Set[str] = set()


class Folders:
    """The folders of sys.path as they are now. It does not change: where sys.path does, another one is made.

    A script in the home folder has that on sys.path, with all keys and mails in it. So the home folder, and folders around
    it, are not readable as a whole: only the modules and packages in them that this program has imported are.
    """

    __slots__ = ("_seen", "_cwd", "_wide", "_imported", "path", "grants")

    def __init__(self, is_own: bool) -> None:
        """is_own: the interpreter in the cell is this one."""
        self._seen = [*sys.path]
        self._cwd = None if all(os.path.isabs(str(entry)) for entry in self._seen) else _working()
        self.path: List[str] = []  # for sys.path in the cell
        self.grants: List[Any] = []  # for files.read
        self._wide: List[str] = []  # folders that are not readable as a whole
        self._imported = len(sys.modules)
        leave, prefixes = _standard(is_own), _prefixes() if is_own else ()
        for entry in dict.fromkeys(os.path.abspath(entry) for entry in self._seen if isinstance(entry, str)):
            if entry not in leave and entry != "/" and os.path.exists(entry):
                self._add(entry, prefixes)
        self.grants += [path for entry in self._wide for path in _imported_from(entry)]
        if self.grants and _RUNTIME != _PACKAGE:
            self.grants.append(_RUNTIME)

    def is_current(self) -> bool:
        """Whether sys.path, the working directory if that is in it, and what is imported if that matters, are still the
        same."""
        return (self._seen == sys.path and (self._cwd is None or self._cwd == _working())
                and (not self._wide or self._imported == len(sys.modules)))

    def _add(self, entry: str, prefixes: Tuple[str, ...]) -> None:
        if entry in _PRIVATE:
            moved = f"{ELSEWHERE}{entry}"
            self.path.append(moved)
            self.grants.append({"from": entry, "to": moved})
            return
        self.path.append(entry)
        if _is_wide(entry):
            self._wide.append(entry)
            _warn(entry)
        elif not any(entry == prefix or entry.startswith(prefix + "/") for prefix in prefixes):
            self.grants.append(entry)


def _homes() -> Set[str]:
    found = {os.path.expanduser("~")}
    try:
        import pwd  # which other systems have not
        found.add(pwd.getpwuid(os.getuid()).pw_dir)
    except (ImportError, KeyError):  # or nobody knows this user
        pass
    return {os.path.realpath(home) for home in found if os.path.isabs(home)}


def _is_wide(entry: str) -> bool:
    """Whether it is the home folder, or one around it."""
    real = os.path.realpath(entry)
    return real == "/" or any(home == real or home.startswith(real + "/") for home in _homes())


def _imported_from(entry: str) -> List[str]:
    """The files and packages right in a folder that modules of this program are from."""
    found: Set[str] = set()
    for name, module in [*sys.modules.items()]:
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        file = os.path.abspath(file)
        if not file.startswith(entry.rstrip("/") + "/"):
            continue
        first, _, rest = file[len(entry.rstrip("/")) + 1:].partition("/")
        if not rest:
            found.add(file)
        elif first == name.partition(".")[0]:
            found.add(os.path.join(entry, first))
    return sorted(path for path in found if os.path.exists(path) and not _is_wide(path))


def _warn(entry: str) -> None:
    if entry not in _warned:
        _warned.add(entry)
        _log.warning("%r is on sys.path, and is the home folder or one around it: functions in cells can read only those "
                     "modules and packages right in it that this program has imported. Move the script to a folder of its "
                     "own, or name what cells need in the policy's files.read", entry)


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
