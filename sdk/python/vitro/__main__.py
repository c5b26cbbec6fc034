# SPDX-License-Identifier: Apache-2.0
"""The command, by way of the package: `vitro run -- true`, or `python3 -m vitro run -- true`."""

from __future__ import annotations

import os
import sys

from ._binary import find_binary
from .errors import Unsupported


def main() -> None:
    """Becomes the program that the package carries."""
    try:
        program = find_binary()
    except Unsupported as error:
        print(f"vitro: {error}", file=sys.stderr)
        sys.exit(125)
    if os.path.realpath(program) == os.path.realpath(sys.argv[0]):
        print("vitro: this package carries no program, and 'vitro' on PATH is this one; name another by VITRO_BINARY", file=sys.stderr)
        sys.exit(125)
    os.execv(program, ["vitro", *sys.argv[1:]])


if __name__ == "__main__":
    main()
