#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python calls in cells beside what Python has itself: bench/python.py [--quick] [--check] [--pin CPU] [BINARY]

Each row is one thing done by vitro, by a fresh sealed interpreter each time, and by another, which is not sealed. Both are
timed in the same run, in turns and in random order, from the call to the value in the caller's hands. Runs with
the interpreter that it is started with, as often as there are pinnings; --pin makes it one.

  spaced        calls 20 ms apart
  back to back  bursts of calls, each while the pool's parked occupants last
"""

import argparse
import asyncio
import os
import pathlib
import platform
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODULE = '''
def add(a, b):
    return a + b

def size(data):
    return len(data)

def produce(size):
    return bytes(size)
'''
ECHO = '''
import os
while True:
    data = os.read(0, 64)
    if not data:
        break
    os.write(1, data)
'''
CALLBACKS = '''
import time
times = []
for _ in range(N):
    begun = time.perf_counter()
    tool(1)
    times.append(time.perf_counter() - begun)
times
'''
# What vitro's p50 may be of the other's at the most.
BARS = {"add(2, 3), spaced": 1.0, "add(2, 3), back to back": 1.0, "a cold python3 -c, spaced": 1 / 30,
        "1 MB to the function": 0.3, "1 MB from the function": 0.3, "100 MB to the function": 0.3,
        "100 MB from the function": 0.3, "a call-back": 4.0}


def timed(function, *args):
    begun = time.perf_counter()
    function(*args)
    return time.perf_counter() - begun


def in_turns(rounds, pause, *contestants, burst=1, rest=0.0):
    """The times of each, taken in random order in each round."""
    times = [[] for _ in contestants]
    for _ in range(rounds):
        for at in random.sample(range(len(contestants)), len(contestants)):
            time.sleep(rest)
            for _ in range(burst):
                time.sleep(pause)
                times[at].append(timed(contestants[at]))
    return times


def at(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def short(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


class Table:
    """Rows of what was measured."""

    def __init__(self):
        self.bad = []
        print(f"{'':28} {'':>9} {'min':>9} {'p50':>9} {'p99':>9}  ratio of p50s (bar)")

    def add(self, name, ours, theirs, other):
        ratio = at(ours, 0.5) / at(theirs, 0.5)
        bar = BARS[name]
        for who, times in (("vitro", ours), (other, theirs)):
            cells = " ".join(f"{short(at(times, share)):>9}" for share in (0, 0.5, 0.99))
            says = f"  {ratio:.3f} ({bar:.3f}{'' if ratio <= bar else ': not held'})" if who == "vitro" else ""
            print(f"{name if who == 'vitro' else '':28} {who:>9} {cells}{says}", flush=True)
        if ratio > bar:
            self.bad.append(name)


def measure_add(table, sandbox, pool, add, rounds):
    def ours():
        sandbox.call(add, 2, 3)

    def theirs():
        pool.submit(add, 2, 3).result()

    table.add("add(2, 3), spaced", *in_turns(rounds, 0.02, ours, theirs), "executor")
    # The control: what is so fast is sealed.
    assert sandbox.eval("import os\n(os.getpid(), os.path.exists('/home'), len(os.listdir('/proc/self/fd')))") == (2, False, 5)
    table.add("add(2, 3), back to back", *in_turns(max(3, rounds // 20), 0, ours, theirs, burst=20, rest=0.5), "executor")
    cold = in_turns(10, 0.02, ours, lambda: subprocess.run([sys.executable, "-c", "print(2 + 3)"], stdout=subprocess.PIPE,
                                                          check=True))
    table.add("a cold python3 -c, spaced", *cold, "python3")


def measure_data(table, sandbox, pool, size, produce, rounds):
    for megabytes, count in ((1, rounds), (100, max(3, rounds // 20))):
        data = os.urandom(1 << 20) * megabytes
        table.add(f"{megabytes} MB to the function", *in_turns(
            count, 0.02, lambda: sandbox.call(size, data), lambda: pool.submit(size, data).result()), "executor")
        table.add(f"{megabytes} MB from the function", *in_turns(
            count, 0.02, lambda: sandbox.call(produce, len(data)), lambda: pool.submit(produce, len(data)).result()),
            "executor")


def measure_callbacks(table, sandbox, rounds):
    ours, theirs = [], []
    with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as echo:
        to, back = echo.stdin.fileno(), echo.stdout.fileno()

        def turn():
            os.write(to, b"x")
            os.read(back, 64)

        for _ in range(10):
            ours += sandbox.eval(CALLBACKS.replace("N", str(rounds)), tools={"tool": lambda x: x})
            theirs += [timed(turn) for _ in range(rounds)]
    table.add("a call-back", ours, theirs, "pipe")


def measure_asyncio(vitro, add, rounds):
    async def story():
        async with vitro.AsyncSandbox() as sandbox:
            for _ in range(20):
                await sandbox.call(add, 2, 3)
            times = []
            for _ in range(rounds):
                await asyncio.sleep(0.02)
                begun = time.perf_counter()
                await sandbox.call(add, 2, 3)
                times.append(time.perf_counter() - begun)
            return times

    times = asyncio.run(story())
    print(f"AsyncSandbox, spaced: min {short(at(times, 0))}, p50 {short(at(times, 0.5))}, p99 {short(at(times, 0.99))}")


def parked_memory(sandbox):
    """PSS of the parked occupants, each."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            if f"NSpid:\t{pid}" in status and status.split("NSpid:")[1].splitlines()[0].split()[-1] == "2":
                text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
                if "python" in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                    found.append(int(text.split("Pss:")[1].split()[0]))
        except OSError:
            pass
    return found


def measure(options):
    import vitro
    from vitro_bench_module import add, produce, size
    if options.pin is not None:
        os.sched_setaffinity(0, {options.pin})
    cpus = len(os.sched_getaffinity(0))
    pinned = f"{cpus} CPUs, not pinned" if options.pin is None else f"all pinned to CPU {options.pin}"
    load = os.getloadavg()[0]
    print(f"\nPython {platform.python_version()}, Linux {platform.release()}, {pinned}, load {load:.1f}, "
          f"THP {pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled').read_text().split('[')[1].split(']')[0]}")
    policy = {"limits": {"result_mb": 128, "memory_mb": 1024}}
    rounds = 60 if options.quick else 300
    table = Table()
    with vitro.Sandbox(policy) as sandbox, ProcessPoolExecutor(1) as pool:
        for _ in range(30):
            sandbox.call(add, 2, 3)
            pool.submit(add, 2, 3).result()
        time.sleep(1.5)
        measure_add(table, sandbox, pool, add, rounds)
        measure_data(table, sandbox, pool, size, produce, rounds // 3)
        measure_callbacks(table, sandbox, rounds)
        counts, memory = sandbox.counts(), parked_memory(sandbox)
        print(f"the pools: {counts['ready']} cells ready, {counts['calls']} calls, {counts['cold_calls']} of them cold"
              + (f"; {len(memory)} parked occupants seen, PSS p50 {at(memory, 0.5)} KB" if memory else ""))
    measure_asyncio(vitro, add, rounds)
    return table.bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is not held")
    parser.add_argument("--pin", type=int)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("binary", nargs="?", default=str(ROOT / "build" / "vitro"))
    options = parser.parse_args()
    if options.one:
        bad = measure(options)
        sys.exit(1 if bad and options.check else 0)
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as place:
        pathlib.Path(place, "vitro_bench_module.py").write_text(MODULE)
        os.chmod(place, 0o755)
        env = {**os.environ, "VITRO_BINARY": os.path.abspath(options.binary),
               "PYTHONPATH": os.pathsep.join([place, str(ROOT / "sdk" / "python")])}
        words = [sys.executable, __file__, "--one", *sys.argv[1:]]
        pins = [[]] if options.pin is not None else [["--pin", "0"], []]
        codes = [subprocess.run([*words, *pin], env=env, check=False).returncode for pin in pins]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
