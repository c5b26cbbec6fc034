# SPDX-License-Identifier: Apache-2.0
"""A command by sandlock's package for Python: sandlocked.py WORDS... for each line; or once, and what it printed: --once WORDS..."""

import sys

import mate
import sandlock
from peers import SYSTEM


def sandbox(words):
    return sandlock.Sandbox(fs_readable=[*SYSTEM, "/proc", "/dev", words[0]], fs_writable=["/tmp"], max_memory="512M",
                            max_processes=64, clean_env=True)


def run(words):
    result = sandbox(words).run(words, timeout=30)
    if not result.success:
        sys.exit(f"sandlock: {words[0]} failed: {result}")
    return result


if sys.argv[1] == "--once":
    sys.stdout.write(run(sys.argv[2:]).stdout.decode())
else:
    mate.serve(lambda: run(sys.argv[1:]))
