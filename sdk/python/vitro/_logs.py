# SPDX-License-Identifier: Apache-2.0
"""Lines for this program's log, of texts that a cell chose."""

from __future__ import annotations

import logging
import re
import sys
import traceback
import warnings
from typing import Any, Mapping, Optional, Set

log = logging.getLogger("vitro")
tool_log = logging.getLogger("vitro.tool")
_told_links: Set[str] = set()
_told_modules: Set[str] = set()
_TOLD_MAX = 1024
_NOT_AHEAD = re.compile(r"'([^']{1,255})' is not imported ahead of calls: ")  # the supervisor warns so of preload= alone
_TOOL_LEVELS = {"debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50}


def visible(text: str) -> str:
    """The text on one line: what cannot be printed is escaped as in a literal, so that no line of a log is forged and
    no terminal is led astray."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def visible_lines(text: str) -> str:
    """The same of a text that may have lines."""
    return text if text.isprintable() else "\n".join("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))


def tool_level(level: str) -> int:
    """The level for logging of one that a tool named."""
    return _TOOL_LEVELS.get(level.lower(), 20)


def warn_of_links(isolation: Optional[Mapping[str, Any]]) -> None:
    """A grant that leads through a link which an earlier call may have made, where the caller may think of another folder. Once."""
    text = (isolation or {}).get("notes", {}).get("links")
    if isinstance(text, str) and text not in _told_links:
        _told_links.add(text)
        emit(log, logging.WARNING, "", text)


def warn_of_module(text: str) -> None:
    """Warns of a module of preload= that is not imported ahead, once, also where the program shows no log."""
    found = _NOT_AHEAD.match(text)
    if found is None or found[1] in _told_modules or len(_told_modules) >= _TOLD_MAX:
        return
    _told_modules.add(found[1])
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        level, frame = level + 1, frame.f_back
    try:
        warnings.warn(f"preload: {visible(text)}", RuntimeWarning, stacklevel=level)
    except RuntimeWarning:  # of a program whose warnings are errors; whoever waits here may wait for a call that is well
        if sys.stderr is not None:
            traceback.print_exc()


def emit(logger: logging.Logger, level: int, source: str, text: str) -> None:
    """Logs it. Handlers and filters are the program's own, and may do anything, also use the sandbox: never call this
    while reading for others. What they raise is printed, as logging does, and ends nothing."""
    try:
        if logger.isEnabledFor(level):
            logger.log(level, "%s%s", source, visible(text))
    except Exception:
        if logging.raiseExceptions and sys.stderr is not None:
            traceback.print_exc()
