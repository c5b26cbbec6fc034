# SPDX-License-Identifier: Apache-2.0
"""Which files the dynamic loader opens for a library: those that it needs, and what these need.

No event of Python's tells of them. They are looked for as the loader does (ld.so(8)): by the paths that a library has for
what it needs, and those that come down from who needs it. What is not found there is a matter of the system's own folders.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Iterator, List, Sequence, Set, Tuple

_LOAD, _DYNAMIC = 1, 2  # of program headers
_STRTAB, _STRSZ, _RPATH, _RUNPATH = 5, 10, 15, 29
_NEEDED = (1, 0x7ffffffd, 0x7fffffff)  # DT_AUXILIARY and DT_FILTER are the others


def find_all(path: str) -> Iterator[str]:
    """Each, before it is opened here, and the library itself first; one that is not there, too, as somebody could put it there."""
    return _find(path, (), set())


def _find(path: str, above: Sequence[str], seen: Set[str]) -> Iterator[str]:
    yield path
    if path in seen or not os.path.exists(path):
        return
    seen.add(path)
    needed, rpath, runpath = _read(path)
    above = [*_folders(rpath, path), *above] if not runpath else above
    for name in needed:
        if "/" in name:
            yield from _find(_expand(name, path), above, seen)
            continue
        for folder in _folders(runpath, path) if runpath else above:
            file = os.path.join(folder, name)
            yield from _find(file, above, seen)
            if os.path.exists(file):
                break


def _folders(paths: List[str], library: str) -> List[str]:
    return [_expand(folder, library) for text in paths for folder in text.split(":")]


def _expand(path: str, library: str) -> str:
    folder = os.path.dirname(os.path.join(os.getcwd(), library))  # as it stands: behind a link, ".." is elsewhere
    path = path.replace("${ORIGIN}", folder).replace("$ORIGIN", folder)
    if "$" in path:
        raise ValueError(f"'{library}' needs '{path}', which only the loader understands")
    return path


def _read(path: str) -> Tuple[List[str], List[str], List[str]]:
    """What a library needs, its DT_RPATH and its DT_RUNPATH."""
    with open(path, "rb") as file:
        def get(offset: int, size: int) -> bytes:
            file.seek(offset)
            return file.read(size)

        if get(0, 6) != b"\x7fELF\2\1":
            return [], [], []  # of 64 bits and little-endian, or none that the loader takes
        (start,), (size, count) = struct.unpack("<Q", get(32, 8)), struct.unpack("<HH", get(54, 4))
        heads = [struct.unpack("<IIQQQQ", get(start + size * at, 40)) for at in range(count)]
        dynamic = b"".join(get(offset, length) for kind, _, offset, _, _, length in heads if kind == _DYNAMIC)
        entries = [*struct.iter_unpack("<qQ", dynamic[:len(dynamic) // 16 * 16])]
        end = next((at for at, (tag, _) in enumerate(entries) if tag == 0), len(entries))
        table = dict(reversed(entries[:end]))
        texts = b"".join(get(offset + table[_STRTAB] - address, table[_STRSZ]) for kind, _, offset, address, _, length in heads
                         if kind == _LOAD and address <= table.get(_STRTAB, -1) < address + length)

    def words(*tags: int) -> List[str]:
        return [os.fsdecode(texts[at:texts.index(b"\0", at)]) for tag, at in entries[:end] if tag in tags]

    return words(*_NEEDED), words(_RPATH), words(_RUNPATH)
