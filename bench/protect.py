#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What protected names cost a call: bench/protect.py [--quick] [--check] [BINARY]

Each row is one granted folder, with protection and with `--protect none`; both are timed in turns, in random order. Shown are
the least, the tenth percentile and the median of the time that passed; the difference is that of the tenth percentiles, to
which other load of the machine adds least, and that of the CPU time of the whole call, to which it adds less. (That of a pool's
calls is its supervisor's, and not seen.)

  nothing there    an empty folder: its root is looked at, for names that are missing
  20 names         20 files that are protected are bound
  N folders        a tree in which names are looked for, with ten files in each folder
  a pool           calls of one pool, which has looked before, and looks whether anything is another by now
"""

import argparse
import contextlib
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAMES = [f"name{number}" for number in range(20)]
MOST_MS = 0.3  # for 20 names, beside an empty folder's


def make_tree(path, folders):
    """So many folders, ten in each."""
    waiting = [path]
    while folders:
        parent = waiting.pop(0)
        for number in range(min(10, folders)):
            waiting.append(f"{parent}/d{number}")
            os.mkdir(waiting[-1])
            for file in range(10):
                open(f"{waiting[-1]}/f{file}", "w").close()
            folders -= 1


def run_one(binary, path, flags):
    command = [binary, "run", "--write", path, *flags, "--", "/bin/true"]
    return lambda: subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def cpu():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(name, rounds, protected, bare):
    """Times both, prints the row, and returns the difference in ms of CPU time."""
    times = {protected: [], bare: []}
    for number in range(rounds + 2):
        for each in random.sample([protected, bare], 2):
            start, used = time.perf_counter(), cpu()
            each()
            if number > 1:
                times[each].append(((time.perf_counter() - start) * 1e3, (cpu() - used) * 1e3))
    walls, cpus = ([[pair[part] for pair in each] for each in times.values()] for part in (0, 1))
    tenth = [statistics.quantiles(each, n=10)[0] for each in (*walls, *cpus)]
    print(f"{name:24}" + "".join(f"{min(wall):8.2f} {least:8.2f} {statistics.median(wall):8.2f}  " for wall, least in zip(walls, tenth))
          + f"{tenth[0] - tenth[1]:+9.3f} {tenth[2] - tenth[3]:+9.3f}", flush=True)
    return tenth[2] - tenth[3]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    parser.add_argument("--check", action="store_true", help="exit with 1 if 20 names take too long")
    parser.add_argument("binary", nargs="?", default=str(ROOT / "build" / "vitro"))
    options = parser.parse_args()
    binary, rounds = os.path.abspath(options.binary), 30 if options.quick else 300
    os.environ["VITRO_BINARY"] = binary
    sys.path.insert(0, str(ROOT / "sdk" / "python"))
    import vitro

    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as place, contextlib.ExitStack() as stack:
        empty, named = place + "/empty", place + "/named"
        os.mkdir(empty), os.mkdir(named)
        for name in NAMES:
            open(f"{named}/{name}", "w").close()
        flags = [word for name in NAMES for word in ("--protect", name)]
        print(f"{'ms':24}{'protected':>26}  {'none':>26}  {'more':>9} {'of CPU':>9}")
        print(f"{'':24}" + 2 * f"{'min':>8} {'p10':>8} {'p50':>8}  ")
        base = compare("nothing there", rounds, run_one(binary, empty, []), run_one(binary, empty, ["--protect", "none"]))
        names = compare("20 names", rounds, run_one(binary, named, flags), run_one(binary, named, ["--protect", "none"])) - base
        for folders in (100, 1000, 5000):
            tree = f"{place}/{folders}"
            os.mkdir(tree)
            make_tree(tree, folders)
            more = compare(f"{folders} folders", rounds // 2, run_one(binary, tree, []), run_one(binary, tree, ["--protect", "none"])) - base
            print(f"{'':24}{more * 1000 / folders:.3f} ms per 1,000 folders")
        for row, path, protect in (("a pool, nothing there", empty, None), ("a pool, 20 names", named, NAMES)):
            boxes = [stack.enter_context(vitro.Sandbox({"files": {"write": [path], **more}}))
                     for more in ({} if protect is None else {"protect": protect}, {"protect": []})]
            compare(row, rounds, *((lambda box=box: box.run(["/bin/true"])) for box in boxes))
        print(f"20 names: {names:.3f} ms more than none (at most {MOST_MS})")
    sys.exit(1 if options.check and names > MOST_MS else 0)


if __name__ == "__main__":
    main()
