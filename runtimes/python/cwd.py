# SPDX-License-Identifier: Apache-2.0
"""Files that come with a call, and those that go back with its value: below the working directory."""

from __future__ import annotations

import os
import re
import stat

from . import codec

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Dict, Iterator, Optional, Sequence

FILES_MAX = 10_000
DEPTH_MAX = 64


class TooLarge(Exception):
    """What is to be collected is more than a result may be."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def place(files: Dict[str, int], buffers: codec.Attachments) -> None:
    """Writes files: name → buffer."""
    for name, index in files.items():
        folder = os.path.dirname(codec.check_file_name(name))
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as file:
            file.write(buffers.take(index))


def collect(patterns: Sequence[str], size_max: Optional[int]) -> Dict[str, bytes]:
    """The regular files that match one of the patterns. No link is followed. In a pattern `**` is any number of
    folders, at its end also all files in them; `*`, `?` and `[]` match within a name."""
    matches = [re.compile(_translate(pattern)).match for pattern in patterns]
    found: Dict[str, bytes] = {}
    total = 0
    for name in sorted(_walk(".", "", 0)) if matches else ():
        if not any(match(name) for match in matches):
            continue
        if len(found) >= FILES_MAX:
            raise ValueError(f"collect matches more than {FILES_MAX} files")
        data = _read(name, None if size_max is None else size_max - total)
        if data is not None:
            found[name] = data
            total += len(data)
    return found


def _translate(pattern: str) -> str:
    parts = pattern.split("/")
    if parts and parts[0] == ".":
        del parts[0]
    if not parts or not {"", "..", "."}.isdisjoint(parts):
        raise ValueError(f"collect: {pattern!r} is not a relative pattern")
    text = ""
    for part in parts[:-1]:
        text += "(?:[^/]+/)*" if part == "**" else _translate_part(part) + "/"
    return text + (".+" if parts[-1] == "**" else _translate_part(parts[-1])) + r"\Z"


_TOKEN = re.compile(r"\*+|\?|\[!?\]?[^\]]*\]|.", re.DOTALL)


def _translate_part(part: str) -> str:
    text = ""
    for token in _TOKEN.findall(part):
        if token[0] == "*":
            text += "[^/]*"
        elif token == "?":
            text += "[^/]"
        elif token[0] == "[" and len(token) > 1:
            inner = token[1:-1].replace("\\", r"\\").replace("[", r"\[")
            text += f"(?!/)[{'^' + inner[1:] if inner[0] == '!' else inner}]" if inner else re.escape(token)
        else:
            text += re.escape(token)
    return text


def _walk(folder: str, prefix: str, depth: int) -> Iterator[str]:
    if depth > DEPTH_MAX:
        return
    try:
        entries = list(os.scandir(folder))
    except OSError:  # gone meanwhile, or not ours to read
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(entry.path, f"{prefix}{entry.name}/", depth + 1)
        elif entry.is_file(follow_symlinks=False):
            yield prefix + entry.name


def _read(name: str, size_max: Optional[int]) -> Optional[bytes]:
    try:
        # It may be another file by now: no link, and no pipe that would be waited for.
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            return None
        if size_max is not None and status.st_size > size_max:
            raise TooLarge(status.st_size)
        return file.read(-1 if size_max is None else size_max)
