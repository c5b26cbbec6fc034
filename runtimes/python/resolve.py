# SPDX-License-Identifier: Apache-2.0
"""A reference to a function becomes the function, in the cell. A stand-in: module and name only."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Dict, Sequence


def resolve(ref: Dict[str, Any], buffers: Sequence[Any]) -> Callable[..., Any]:
    """The function that `ref` means; `buffers` are those of the message that it came in."""
    found: Any = importlib.import_module(ref["module"])
    for word in ref["name"].split("."):
        found = getattr(found, word)
    return found  # type: ignore[no-any-return]
