# SPDX-License-Identifier: Apache-2.0
"""Tools as applications of loomflow have them."""

from loomflow.tools.registry import tool


@tool
def double(x: int) -> int:
    """Twice as much."""
    return x * 2


@tool
async def double_later(x: int) -> int:
    """The same, awaited."""
    return x * 2
