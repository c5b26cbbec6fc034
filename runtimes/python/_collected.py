# SPDX-License-Identifier: Apache-2.0
"""Files that come with a result: their names, and the patterns that choose them.

The same file is part of the runtime in a cell and of the package on the host, by this name.
"""

from __future__ import annotations

import re

from ._message import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Dict, List, Optional, Sequence

    from ._message import Attachments

FILES_MAX = 10_000  # that come with a result
DEPTH_MAX = 64  # folders around such a file


def read_files(tree: Any, buffers: Attachments, patterns: Sequence[str] = ()) -> Dict[str, bytes]:
    """The files that came with a result: {"name": buffer}. Names are relative, lead nowhere else, and match one of the
    patterns that were collected."""
    if tree is None:
        return {}
    if type(tree) is not dict:
        raise Malformed("files are not an object")
    if len(tree) > FILES_MAX:
        raise Malformed(f"there are more than {FILES_MAX} files")
    matches = FileMatcher(patterns).matches if tree else None
    files = {}
    for name, index in tree.items():
        if check_file_name(name).count("/") > DEPTH_MAX or not matches or not matches(name):
            raise Malformed(f"{name!r:.100} is not a file to be collected")
        files[name] = bytes(buffers.take(index))
    return files


class FileMatcher:
    """Patterns of files. `**` is any number of folders, at its end also all files in them; `*`, `?` and `[]` match within
    a name. The names may be anybody's: what matching takes is in proportion to a name times a pattern, for which
    nothing is tried again but from the last star on."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.patterns = [self.split(pattern) for pattern in patterns]

    @staticmethod
    def split(pattern: str) -> List[Optional[Callable[[str], Any]]]:
        """A function for each part; None for `**`."""
        parts = pattern.split("/")
        if parts and parts[0] == ".":
            del parts[0]
        if not parts or not {"", "..", "."}.isdisjoint(parts):
            raise Malformed(f"collect: {pattern!r} is not a relative pattern")
        if parts[-1] == "**":
            parts.append("*")
        return [None if part == "**" else re.compile(_translate(part), re.DOTALL).match for part in parts]

    def matches(self, name: str) -> bool:
        parts = name.split("/")
        return any(self.match(pattern, parts) for pattern in self.patterns)

    @staticmethod
    def match(pattern: List[Optional[Callable[[str], Any]]], parts: List[str]) -> bool:
        at = next_at = 0
        step, again = 0, -1  # where in the pattern; behind its last `**`
        while at < len(parts):
            if step < len(pattern):
                match = pattern[step]
                if match is None:
                    step += 1
                    again, next_at = step, at + 1
                    continue
                if match(parts[at]):
                    step, at = step + 1, at + 1
                    continue
            if again < 0:
                return False
            step, at = again, next_at
            next_at += 1
        return step == len(pattern)


_TOKEN = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def _translate(part: str) -> str:
    pieces = [""]  # what is between stars
    for token in _TOKEN.findall(part):
        if token[0] == "*":
            pieces.append("")
        elif token == "?":
            pieces[-1] += "."
        elif token[0] == "[" and len(token) > 1:
            inner = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
            pieces[-1] += f"[{'^' + inner[1:] if inner[0] == '!' else inner}]" if inner else re.escape(token)
        else:
            pieces[-1] += re.escape(token)
    text = pieces[0]
    for number, piece in enumerate(pieces[1:-1]):  # the first place where it is will do
        text += f"(?=(?P<p{number}>.*?{piece}))(?P=p{number})"
    return text + (".*" + pieces[-1] if len(pieces) > 1 else "") + r"\Z"


def check_file_name(name: Any) -> str:
    """The name, if it is that of a file below a folder: relative, without "..", "." or empty parts."""
    if type(name) is not str or len(name) > 4096 or "\0" in name or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise Malformed(f"{name!r:.100} is not a relative name of a file")
    return name
