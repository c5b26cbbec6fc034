# SPDX-License-Identifier: Apache-2.0
"""What a docstring says of a function and of its parameters, in the styles of Google, NumPy and reST."""

from __future__ import annotations

import inspect
import re
from typing import Dict, List, Optional, Tuple

_PARAMETERS = {"args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters"}
_OTHERS = {"returns", "return", "yields", "yield", "raises", "raise", "except", "exceptions", "examples", "example",
           "note", "notes", "warning", "warnings", "warns", "attributes", "see also", "references", "todo", "methods"}
_HEADING = re.compile(r"([A-Za-z][A-Za-z ]*):\s*$")
_GOOGLE = re.compile(r"\*{0,2}([A-Za-z_]\w*)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(.*)|\s*)$")
_NUMPY = re.compile(r"\*{0,2}([A-Za-z_]\w*(?:\s*,\s*\*{0,2}[A-Za-z_]\w*)*)\s*(?::.*)?$")
_REST = re.compile(r"[:@](param|parameter|arg|argument|key|keyword)\s+([^:]*?)\*{0,2}([A-Za-z_]\w*)\s*:\s*(.*)$")
_REST_OTHER = re.compile(r"[:@](type|rtype|return|returns|raise|raises|except|exception|yield|yields|var|ivar|cvar|meta|"
                         r"param|parameter|arg|argument|key|keyword)\b[^:]*:")


def parse(text: Optional[str]) -> Tuple[str, Dict[str, str]]:
    """The text before all sections, and what is said of each parameter."""
    lines = inspect.cleandoc(text or "").splitlines()
    said: Dict[str, List[str]] = {}
    description: List[str] = []
    at = 0
    in_head = True
    while at < len(lines):
        kind, body = _section(lines, at)
        if kind is None:
            if _REST_OTHER.match(lines[at]):
                in_head = False
                at = _rest(lines, at, said)
                continue
            if in_head:
                description.append(lines[at])
            at += 1
            continue
        in_head = False
        end = _end(lines, body, kind)
        if kind == "google":
            _google(lines[body:end], said)
        elif kind == "numpy":
            _numpy(lines[body:end], said)
        at = end
    return ("\n".join(description).strip(),
            {name: " ".join(" ".join(words).split()) for name, words in said.items() if any(words)})


def _section(lines: List[str], at: int) -> Tuple[Optional[str], int]:
    """The kind of section that begins in a line, and where its body does."""
    line = lines[at].strip()
    if at + 1 < len(lines) and line and re.match(r"\s*(-{3,}|={3,})\s*$", lines[at + 1]):
        if line.lower() in _PARAMETERS:
            return "numpy", at + 2
        if line.lower() in _OTHERS:
            return "other numpy", at + 2
    heading = _HEADING.match(lines[at])
    word = heading[1].strip().lower() if heading else ""
    indented = at + 1 < len(lines) and (lines[at + 1][:1].isspace() or not lines[at + 1])
    if word in _PARAMETERS and indented:
        return "google", at + 1
    return ("other google", at + 1) if word in _OTHERS and indented else (None, at)


def _end(lines: List[str], at: int, kind: str) -> int:
    """Where a section ends: with the next one, or, in Google's style, with its indentation."""
    while at < len(lines):
        line = lines[at]
        if line.strip() and (_section(lines, at)[0] or _REST_OTHER.match(line)):
            break
        if kind.endswith("google") and line.strip() and not line[:1].isspace():
            break
        at += 1
    return at


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: List[str], said: Dict[str, List[str]]) -> None:
    first = next((_indent(line) for line in lines if line.strip()), 0)
    words: List[str] = []
    for line in lines:
        found = _GOOGLE.match(line.strip()) if _indent(line) == first else None
        if found:
            words = said.setdefault(found[1], [])
            words.append(found[2] or "")
        else:
            words.append(line)


def _numpy(lines: List[str], said: Dict[str, List[str]]) -> None:
    lists: List[List[str]] = []
    for line in lines:
        found = _NUMPY.match(line.strip()) if line.strip() and _indent(line) == 0 else None
        if found:
            lists = [said.setdefault(name.strip(" *"), []) for name in found[1].split(",")]
            continue
        for words in lists:
            words.append(line)


def _rest(lines: List[str], at: int, said: Dict[str, List[str]]) -> int:
    found = _REST.match(lines[at])
    words = said.setdefault(found[3], []) if found else []
    words.append(found[4] if found else "")
    at += 1
    while at < len(lines) and lines[at][:1].isspace():
        words.append(lines[at])
        at += 1
    return at
