#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A tool call through each drop-in, beside a re-creation of the sandbox that it replaces: bench/compat.py [--quick] [--check]
[BINARY]

The re-creations (test/python/recreations) do what the frameworks' sandboxes do and nothing more: a framework itself also has
its own imports in each of their processes, which vitro has once. Both are timed in the same run, in turns and in random order,
calls 20 ms apart, from the call to the value in the caller's hands.
"""

import argparse
import asyncio
import functools
import json
import os
import pathlib
import platform
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TESTS = ROOT / "test" / "python"
sys.path[:0] = [str(HERE), str(TESTS), str(TESTS / "standins"), str(ROOT / "sdk" / "python")]

from python import at, in_turns, short, timed  # noqa: E402

# How many times faster a call must be.
BARS = {"loomflow": 50, "calute": 20}
MODULE = "def add(a, b):\n    return a + b\n"


def compare(rounds, *calls):
    """The times of each."""
    blocks = in_turns(rounds, 0.02, *[functools.partial(timed, call) for call in calls])
    return [[time for block in of_one for time in block] for of_one in blocks]


class Table:
    """Rows of what was measured."""

    def __init__(self):
        self.bad, self.bars = [], []
        print(f"{'':22} {'':>12} {'min':>9} {'p50':>9} {'p99':>9}  times faster by p50 (bar)")

    def add(self, name, ours, theirs):
        ratio, bar = at(theirs, 0.5) / at(ours, 0.5), BARS[name]
        verdict = "held" if ratio >= bar else "MISSED"
        for who, times, says in (("vitro", ours, f"  {ratio:.0f} ({bar}: {verdict})"), ("re-creation", theirs, "")):
            cells = " ".join(f"{short(at(times, share)):>9}" for share in (0, 0.5, 0.99))
            print(f"{'vitro.compat.' + name if says else '':22} {who:>12} {cells}{says}", flush=True)
        self.bars.append({"name": f"vitro.compat.{name}, times faster", "value": ratio, "limit": bar, "at_least": True,
                          "held": ratio >= bar})
        if ratio < bar:
            self.bad.append(name)


def measure_loomflow(table, add, rounds):
    from loomflow.tools.registry import InProcessToolHost
    from recreations import spawned
    from vitro.compat.loomflow import SubprocessSandbox

    loop = asyncio.new_event_loop()
    host = InProcessToolHost([add])

    def calling(sandbox):
        def call():
            result = loop.run_until_complete(sandbox.call("add", {"a": 2, "b": 3}))
            assert result.output == 5, result
        return call

    ours, theirs = calling(SubprocessSandbox(host)), calling(spawned.SubprocessSandbox(host))
    for _ in range(20):
        ours()
    table.add("loomflow", *compare(rounds, ours, theirs))
    loop.close()


def measure_calute(table, add, rounds):
    from recreations import piped
    from vitro.compat.calute import SubprocessSandboxBackend

    config = types.SimpleNamespace(sandbox_timeout=30.0, sandbox_memory_limit_mb=512, sandbox_network_access=False,
                                   working_directory=None)

    def calling(backend):
        def call():
            assert backend.execute("add", add, {"a": 2, "b": 3}) == 5
        return call

    ours, theirs = calling(SubprocessSandboxBackend(config)), calling(piped.SubprocessSandboxBackend(config))
    for _ in range(20):
        ours()
    table.add("calute", *compare(rounds, ours, theirs))
    # The control: what is so fast is sealed.
    assert SubprocessSandboxBackend(config).execute("getpid", os.getpid, {}) == 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is not held")
    parser.add_argument("--json", type=pathlib.Path, help="write the figures to this file")
    parser.add_argument("binary", nargs="?", default=str(ROOT / "build" / "vitro"))
    options = parser.parse_args()
    os.environ["VITRO_BINARY"] = os.path.abspath(options.binary)
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as place:
        pathlib.Path(place, "vitro_bench_tools.py").write_text(MODULE)
        os.chmod(place, 0o755)
        sys.path.insert(0, place)
        os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:5])  # for the processes of the re-creations
        from vitro_bench_tools import add
        print(f"\nPython {platform.python_version()}, Linux {platform.release()}, {len(os.sched_getaffinity(0))} CPUs, not pinned, "
              f"load {os.getloadavg()[0]:.1f}")
        table = Table()
        rounds = 6 if options.quick else 100
        measure_loomflow(table, add, rounds)
        measure_calute(table, add, rounds)
    if options.json:
        options.json.write_text(json.dumps({"bars": table.bars, "facts": []}))
    sys.exit(1 if table.bad and options.check else 0)


if __name__ == "__main__":  # the re-creation's processes import this file, too
    main()
