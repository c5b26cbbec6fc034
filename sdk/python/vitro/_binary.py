# SPDX-License-Identifier: Apache-2.0
"""Which program is the supervisor: what VITRO_BINARY names, else the one that this package carries, else `vitro` on PATH."""

from __future__ import annotations

import os
import shutil
import sys

from .errors import Unsupported

CARRIED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_bin", "vitro")


def find_binary() -> str:
    """The path of the program. Raises Unsupported where there is none."""
    if sys.platform != "linux":
        raise Unsupported(f"vitro seals calls by means of the Linux kernel; this is {sys.platform}")
    given = os.environ.get("VITRO_BINARY")
    if given:
        if not os.access(given, os.X_OK):
            raise Unsupported(f"VITRO_BINARY names {given!r}, which cannot be executed")
        return os.path.abspath(given)
    if os.access(CARRIED, os.X_OK):
        return CARRIED
    found = shutil.which("vitro")
    if found is None:
        raise Unsupported(
            f"there is no program 'vitro': neither {CARRIED!r} nor on PATH; install it, or name it by VITRO_BINARY")
    return os.path.abspath(found)
