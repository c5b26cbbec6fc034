# SPDX-License-Identifier: Apache-2.0
"""Files that come with a call, and those that go back with its value: below the working directory."""

from __future__ import annotations

import errno
import os
import stat

from . import codec

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Dict, Iterator, Optional, Sequence


class TooLarge(Exception):
    """What is to be collected is more than a result may be."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.size = size


def place(files: Dict[str, int], buffers: codec.Attachments) -> None:
    """Writes files: name → buffer."""
    for name, index in files.items():
        fd = _create(codec.check_file_name(name))
        if fd is None:  # raised here, where nothing else is: what a denial is the context of has another advice
            raise PermissionError(f"files={{{name!r}: ...}} needs a working directory that can be written to, and "
                                  f"{os.getcwd()!r} cannot: grant it by files.write, or leave out files.cwd")
        with open(fd, "wb") as file:
            file.write(buffers.take(index))


def _create(name: str) -> Optional[int]:
    """Opens the file, made or emptied; None where that is denied."""
    folder = os.path.dirname(name)
    try:
        if folder:
            os.makedirs(folder, exist_ok=True)
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    except OSError as error:
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            raise
        return None


def collect(patterns: Sequence[str], size_max: Optional[int]) -> Dict[str, bytes]:
    """The regular files that match one of the patterns. No link is followed."""
    matches = codec.FileMatcher(patterns).matches
    found: Dict[str, bytes] = {}
    total = 0
    for name in sorted(_walk(".", "", 0)) if patterns else ():
        if not matches(name):
            continue
        if len(found) >= codec.FILES_MAX:
            raise ValueError(f"collect matches more than {codec.FILES_MAX} files")
        data = _read(name, None if size_max is None else size_max - total)
        if data is not None:
            found[name] = data
            total += len(data)
    return found


def _walk(folder: str, prefix: str, depth: int) -> Iterator[str]:
    if depth > codec.DEPTH_MAX:
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
