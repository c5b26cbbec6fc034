# SPDX-License-Identifier: Apache-2.0
"""Memory that is filled from a socket, and then is an object."""

from __future__ import annotations

import functools
from typing import Any, Tuple, Union

from ._codec import HUGE, room

_OWN = 1 << 16  # bytes from which on a copy is worth avoiding
_WRITE = 0x200  # PyBUF_WRITE
_HUGEPAGE = 14  # MADV_HUGEPAGE
_PAGE = 4096


class Room:
    """Receive all of it into `view`; then `made` is what came: bytes where they were asked for and are large, else what can be
    written to."""

    __slots__ = ("made", "view")

    def __init__(self, size: int, fixed: bool) -> None:
        self.made: Union[bytes, memoryview]
        c = _find_c() if size >= _OWN and (fixed or size < HUGE) else None
        if c is None:
            self.made = self.view = memoryview(room(size))
        elif fixed:
            self.made, self.view = _make_bytes(c, size)
        else:
            self.made = self.view = memoryview(c[4](None, size))  # which Python's own would fill with zeros first


@functools.lru_cache(None)
def _find_c() -> Any:
    """What Python's own C interface has for this. None: it is another Python, or has no ctypes."""
    try:
        import ctypes
        api = ctypes.pythonapi
        make, find, see = api.PyBytes_FromStringAndSize, api.PyBytes_AsString, api.PyMemoryView_FromMemory
        advise, make_array = ctypes.CDLL(None).madvise, api.PyByteArray_FromStringAndSize
    except (ImportError, AttributeError, OSError):
        return None
    make.argtypes, make.restype = (ctypes.c_void_p, ctypes.c_ssize_t), ctypes.py_object
    find.argtypes, find.restype = (ctypes.py_object,), ctypes.c_void_p
    see.argtypes, see.restype = (ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int), ctypes.py_object
    advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    make_array.argtypes, make_array.restype = (ctypes.c_void_p, ctypes.c_ssize_t), ctypes.py_object
    return make, find, see, advise, make_array


def _make_bytes(c: Any, size: int) -> Tuple[bytes, memoryview]:
    """Bytes that are still to be filled, and where: as C modules make theirs. Nobody else has them before they are complete.
    A copy at the end would take longer than to receive them, since it touches so many new pages."""
    make, find, see, advise, _ = c
    made: bytes = make(None, size)
    start: int = find(made)
    if size >= HUGE:
        first = -(-start // _PAGE) * _PAGE
        advise(first, (start + size - first) // _PAGE * _PAGE, _HUGEPAGE)  # without them it takes longer
    view: memoryview = see(start, size, _WRITE)
    return made, view
