#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Python calls in cells beside what Python has itself: bench/python.py [--quick] [--check] [--pin CPU] [--only TEXT] [BINARY]

Each row is one thing done by vitro, in a fresh sealed interpreter each time, and by another, which is not sealed. Both are
timed in the same run, in turns and in random order, from the call to the value in the caller's hands. A ratio is
the median of those within the rounds, so that what the machine does beside them hits both. Runs with the interpreter
that it is started with, by way of a venv below build/ that has numpy and pandas (from PyPI; without them
their rows are missing, and listed), once pinned to one CPU, which --quick leaves out, and once not; --pin makes it one of these.

  spaced           calls 20 ms apart
  back to back     bursts of calls, each while the pool's parked occupants last
  sustained        one call after the other for a minute: as fast as the pool is refilled
  no occupant      a cell is there, and a call waits for the zygote, which was stopped: from when it may go on, and forks, to
                   the value. The call's way to the supervisor, some 50 µs, is not in it
  nothing ready    the pool is empty: a cell is made, the zygote forks, and the call runs
  fork             os.fork() in a plain interpreter, the call, _exit(), waitpid()
  its floor        the same way with nothing of vitro on it: two plain interpreters and a process of C that copies
                   (bench/python_floor.py); "fresh", where each turn is a fork of its own, which waits for it; "entered", where that
                   is forked when the turn comes, and enters namespaces that were made by hand. Behind a row's
                   bar are its floors, by hand and with nothing of vitro in them: they show how far off the bar is from there
  by hand          the namespaces and mounts of a cell made by a few lines of C (bench/hull.c)
"""

import argparse
import asyncio
import json
import os
import pathlib
import platform
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor

from python_floor import Floor

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGES = ("numpy", "pandas")
MODULE = '''
def add(a, b):
    return a + b

def size(data):
    return len(data)

def produce(size):
    return bytes(size)

def cost():
    import resource
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_minflt, used.ru_utime + used.ru_stime

'''
NUMPY = '''
import numpy

def produce_array(size):
    return numpy.ones(size, "u1")
'''
PANDAS = '''
import pandas

def total(a, b):
    return int(pandas.Series([a, b]).sum())
'''
ECHO = '''
import os
while True:
    data = os.read(0, 64)
    if not data:
        break
    os.write(1, data)
'''
# Loads what a zygote has loaded, and is told by a byte what to do. Tells how long that took, or how often it was done.
FORKER = '''
import asyncio, json, logging, os, pickle, subprocess, sys, time
from vitro_bench_module import add, cost

def fork(do=lambda: add(2, 3)):
    theirs, ours = os.pipe()
    pid = os.fork()
    if not pid:
        os.write(ours, b"%.9f" % do())
        os._exit(0)
    value = os.read(theirs, 64)
    os.waitpid(pid, 0)
    os.close(theirs)
    os.close(ours)
    return float(value)

hand = subprocess.Popen([sys.argv[1], sys.argv[2]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

def by_hand(order):
    os.write(hand.stdin.fileno(), order)
    if os.read(hand.stdout.fileno(), 1) != order:
        sys.exit("no cell could be made by hand")

by_hand(b"m")
by_hand(b"e")
while True:
    order = os.read(0, 1)
    if not order:
        break
    begun = time.perf_counter()
    if order == b"w":
        count = 0
        while time.perf_counter() - begun < float(sys.argv[3]):
            by_hand(b"m")
            fork()
            by_hand(b"e")
            count += 1
        os.write(1, b"%d\\n" % count)
        continue
    if order in b"ps":
        os.write(1, b"%.9f\\n" % fork(lambda: cost()[order == b"s"]))
        continue
    if order == b"c":
        by_hand(b"m")
    assert fork() == 5
    took = time.perf_counter() - begun
    if order == b"c":
        by_hand(b"e")
    os.write(1, b"%.9f\\n" % took)
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
# What vitro's time may be of the other's at the most; where the name is of a rate, at the least.
BARS = {"add(2, 3), spaced": 1.0, "add(2, 3), back to back": 1.0, "a cold python3 -c, spaced": 1 / 30,
        "a cold import pandas, spaced": 1 / 100, "no occupant / fork": 1.5, "nothing ready / fork, by hand": 1.5,
        "a call-back": 4.0}
DATA_BAR = 0.3
RATE_BAR = 0.6
PARKED_KB = 2048
BURST, READY = 20, 24


def timed(function, *args):
    begun = time.perf_counter()
    function(*args)
    return time.perf_counter() - begun


def in_turns(rounds, pause, *contestants, burst=1, prepare=lambda: None):
    """The times of each, round by round, taken in random order in each. A contestant tells how long it took."""
    times = [[] for _ in contestants]
    for _ in range(rounds):
        for at in random.sample(range(len(contestants)), len(contestants)):
            prepare()
            block = []
            for _ in range(burst):
                time.sleep(pause)
                block.append(contestants[at]())
            times[at].append(block)
    return times


def at(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]


def ratio_of(ours, theirs):
    return statistics.median(at(mine, 0.5) / at(its, 0.5) for mine, its in zip(ours, theirs))


def short(seconds):
    return f"{seconds * 1e6:.0f} µs" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


class Table:
    """Rows of what was measured, and the bars that are not held."""

    def __init__(self, options):
        self.bad, self.only, self.bars, self.facts = [], options.only, [], []
        print(f"{'':32} {'':>9} {'min':>9} {'p50':>9} {'p99':>9}  ratio (bar)")

    def wants(self, name):
        return self.only in name

    def judge(self, name, value, bar, holds, floors=(), at_least=False):
        if not holds:
            self.bad.append(name)
        floors = {f"floor{kind}": ratio for kind, ratio in dict(floors).items()}
        self.bars.append({"name": name, "value": value, "limit": bar, "at_least": at_least, "held": holds, "floors": floors})
        says = [f"{bar:.3f}: {'held' if holds else 'MISSED'}", *(f"{floor} {ratio:.3f}" for floor, ratio in floors.items())]
        return f"{value:.3f} ({'; '.join(says)})"

    def print_row(self, name, who, blocks, says=""):
        times = [one for block in blocks for one in block]
        cells = " ".join(f"{short(at(times, share)):>9}" for share in (0, 0.5, 0.99))
        print(f"{name:32} {who:>9} {cells}  {says}".rstrip(), flush=True)

    def add(self, name, ours, theirs, other, bar=None, floors=()):
        """floors: the blocks of each kind of floor, by its name."""
        ratio, bar = ratio_of(ours, theirs), bar or BARS[name]
        ratios = {kind: ratio_of(blocks, theirs) for kind, blocks in dict(floors).items()}
        self.print_row(name, "vitro", ours, self.judge(name, ratio, bar, ratio <= bar, ratios))
        self.print_row("", other, theirs)
        for kind, blocks in dict(floors).items():
            self.print_row(f"  its floor{kind}", "", blocks)

    def write(self, path, pinning):
        """Adds it to what is in the file."""
        told = json.loads(path.read_text()) if path.exists() else {"bars": [], "facts": []}
        told["bars"] += [{**bar, "name": f"{bar['name']}, {pinning}"} for bar in self.bars]
        told["facts"] += [f"{fact} ({pinning})" for fact in self.facts]
        path.write_text(json.dumps(told, indent=1))

    def add_fact(self, name, fact):
        self.facts.append(f"{name}: {fact}")
        print(f"{name:32} {fact}", flush=True)


# ---- what is beside vitro ------------------------------------------------------------------------


class Forker:
    """A plain interpreter that forks, and has cells made by hand."""

    def __init__(self, options, seconds=0.0):
        hand = pathlib.Path(options.binary).parent / "bench" / "vitro-bench-hand"
        self.process = subprocess.Popen([sys.executable, "-c", FORKER, str(hand), options.binary, str(seconds)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def order(self, what):
        self.process.stdin.write(what)

    def hear(self):
        return float(self.process.stdout.readline())

    def do(self, what):
        self.order(what)
        return self.hear()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def run_cold(code):
    subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)


# ---- processes of a sandbox ----------------------------------------------------------------------


def read_proc(pid, name):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def tree_of(pid):
    """All processes below a process, and itself."""
    parents = {}
    for one in filter(str.isdigit, os.listdir("/proc")):
        stat = read_proc(one, "stat").rpartition(")")[2].split()
        if stat:
            parents.setdefault(int(stat[1]), []).append(int(one))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


def supervisor_of(sandbox):
    return sandbox._session.connection.process.pid


def zygotes(sandbox):
    """Processes of the runtime that are in no cell."""
    return [pid for pid in tree_of(supervisor_of(sandbox)) if "zygote.py" in read_proc(pid, "cmdline")
            and not is_in_cell(pid)]


def is_in_cell(pid):
    """Whether a process is in two pid namespaces more than this one: a hull's, and its own cell's."""
    depths = [len(read_proc(one, "status").partition("NSpid:")[2].partition("\n")[0].split()) for one in (pid, "self")]
    return depths[0] == depths[1] + 2


def parked(sandbox):
    """PSS of the parked occupants, in KB."""
    found = []
    for pid in tree_of(supervisor_of(sandbox)):
        if is_in_cell(pid) and "zygote.py" in read_proc(pid, "cmdline"):
            text = read_proc(pid, "smaps_rollup")
            if "Pss:" in text:
                found.append(int(text.split("Pss:")[1].split()[0]))
    return found


def cpu_of(sandbox):
    """Seconds of all processes of a sandbox's, as far as they are there, or were waited for by one that is."""
    ticks = 0
    for pid in tree_of(supervisor_of(sandbox)):
        fields = read_proc(pid, "stat").rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def settle(sandbox, ready, seconds=60.0):
    """Waits until so many cells are ready."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        counts = sandbox.counts()
        if counts["ready"] >= ready and not counts["refilling"]:
            return
        time.sleep(0.01)


# ---- the measurements ----------------------------------------------------------------------------


class Bench:
    def __init__(self, options, vitro, module):
        self.options, self.vitro, self.module = options, vitro, module
        self.table = Table(options)
        self.rounds, self.rest = (8, 0.1) if options.quick else (300, 0.5)
        self.alone = options.pin is None
        self.missing = []

    def measure_add(self, sandbox, pool):
        add = self.module.add

        def ours():
            begun = time.perf_counter()
            sandbox.call(add, 2, 3)
            return time.perf_counter() - begun

        def theirs():
            begun = time.perf_counter()
            pool.submit(add, 2, 3).result()
            return time.perf_counter() - begun

        def rest():
            settle(sandbox, READY)
            time.sleep(0.1)

        floor = Floor(self.options.binary, "add", READY)
        bare = lambda: timed(floor.turn)
        mine, its, least = in_turns(self.rounds, 0.02, ours, theirs, bare)
        self.table.add("add(2, 3), spaced", mine, its, "executor", floors={" fresh": least})
        cpu, calls = cpu_of(sandbox), sandbox.counts()["calls"]
        mine, its, least = in_turns(max(3, self.rounds // 12), 0, ours, theirs, bare, burst=BURST, prepare=rest)
        self.table.add("add(2, 3), back to back", mine, its, "executor", floors={" fresh": least})
        time.sleep(0.5)
        counts, memory = sandbox.counts(), parked(sandbox)
        if memory:
            self.table.add_fact("  the pool of add(2, 3)", f"{len(memory)} occupants parked, {sum(memory) / 1024:.0f} MB PSS in all; "
                                f"{(cpu_of(sandbox) - cpu) / (counts['calls'] - calls) * 1e3:.1f} ms CPU a call, refill included")
        mine, its, least = in_turns(min(10, self.rounds // 2), 0.02, ours, lambda: timed(run_cold, "print(2 + 3)"), bare)
        self.table.add("a cold python3 -c, spaced", mine, its, "python3", floors={" fresh": least})
        floor.close()
        # The control: what is so fast is sealed.
        assert sandbox.eval("import os\n(os.getpid(), os.path.exists('/home'), len(os.listdir('/proc/self/fd')))") == (2, False, 5)

    def measure_pandas(self):
        if "pandas" in self.missing:
            return
        from vitro_bench_pandas import total
        with self.vitro.Sandbox(preload=["pandas"]) as sandbox:
            for _ in range(3 if self.options.quick else 5):
                assert sandbox.call(total, 2, 3) == 5
                time.sleep(self.rest)
            settle(sandbox, 2)
            floor = Floor(self.options.binary, "total", 2)
            floor.turn()
            mine, its, least = in_turns(
                2 if self.options.quick else 10, 0.1, lambda: timed(sandbox.call, total, 2, 3),
                lambda: timed(run_cold, "import pandas\nprint(pandas.Series([2, 3]).sum())"), lambda: timed(floor.turn))
            self.table.add("a cold import pandas, spaced", mine, its, "python3", floors={" fresh": least})
            floor.close()

    def measure_data(self, sandbox, pool):
        module = self.module
        kinds = [("bytes", module.produce, lambda data: data)]
        if "numpy" not in self.missing:
            import numpy
            from vitro_bench_numpy import produce_array
            kinds.append(("array", produce_array, lambda data: numpy.frombuffer(data, "u1").copy()))
        for megabytes, count in ((1, self.rounds // 3), *(() if self.options.quick else ((100, 10),))):
            for kind, produce, make in kinds:
                data = make(os.urandom(1 << 20) * megabytes)
                for name, function, value in ((f"{megabytes} MB {kind}, to", module.size, data),
                                              (f"{megabytes} MB {kind}, from", produce, len(data))):
                    if not self.table.wants(name):
                        continue
                    for _ in range(1 if megabytes > 1 else 3):
                        sandbox.call(function, value)
                        pool.submit(function, value).result()
                    time.sleep(self.rest)  # it learns numpy
                    settle(sandbox, READY)
                    turn = "take" if function is module.size else "give" if kind == "bytes" else "give_array"
                    floor, fresh = (Floor(self.options.binary, turn, forks) for forks in (0, 1))
                    for one in (floor, fresh):
                        one.turn(value)
                    ours, theirs, bare, born = in_turns(
                        count, 0.02, lambda: timed(sandbox.call, function, value),
                        lambda: timed(lambda: pool.submit(function, value).result()), lambda: timed(floor.turn, value),
                        lambda: timed(fresh.turn, value))
                    floor.close()
                    fresh.close()
                    self.table.add(name, ours, theirs, "executor", DATA_BAR, {"": bare, " fresh": born})

    def measure_callbacks(self, sandbox):
        ours, theirs = [], []
        floors = {kind: Floor(self.options.binary, name, relayed=relayed) for kind, name, relayed in (
            (", bytes", "raw", True), (", json", "with_json", True), (", json with nobody between", "with_json", False))}
        bare = {kind: [] for kind in floors}
        with subprocess.Popen([sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              bufsize=0) as echo:
            to, back = echo.stdin.fileno(), echo.stdout.fileno()

            def turn():
                os.write(to, b"x")
                os.read(back, 64)

            count = max(100, self.rounds)
            for _ in range(5 if self.options.quick else 10):
                ours.append(sandbox.eval(CALLBACKS.replace("N", str(count)), tools={"tool": lambda x: x}))
                theirs.append([timed(turn) for _ in range(count)])
                for kind, floor in floors.items():
                    bare[kind].append([timed(floor.turn) for _ in range(count)])
        for floor in floors.values():
            floor.close()
        self.table.add("a call-back", ours, theirs, "pipe", floors=bare)

    def measure_cold(self):
        """Of a pool with one occupant at the most."""
        add, forker = self.module.add, Forker(self.options)
        try:
            with self.vitro.Sandbox(ready_min=1, ready_max=1) as sandbox:
                for _ in range(5):
                    sandbox.call(add, 2, 3)
                    settle(sandbox, 1)
                self.measure_empty(sandbox, forker)
                self.measure_unoccupied(sandbox, forker)
        finally:
            forker.close()

    def measure_empty(self, sandbox, forker):
        add = self.module.add

        def ours():
            while True:
                settle(sandbox, 1)
                time.sleep(0.02)
                before = sandbox.counts()["cold_calls"]
                sandbox.call(add, 2, 3)
                took = timed(sandbox.call, add, 2, 3)
                if sandbox.counts()["cold_calls"] == before + 1:  # the second found none
                    return took

        floor = Floor(self.options.binary, "make")

        def bare():
            took = timed(floor.turn)
            floor.end_cell()
            return took

        mine, its, least = in_turns(max(5, self.rounds // 5), 0.02, ours, lambda: forker.do(b"c"), bare)
        self.table.add("nothing ready / fork, by hand", mine, its, "fork", floors={" entered": least})
        floor.close()

    def measure_unoccupied(self, sandbox, forker):
        add, costs = self.module.add, []

        def ours(function=add, *args):
            settle(sandbox, 1)
            (zygote,) = zygotes(sandbox)
            ended = []

            def call():
                costs.append(sandbox.call(function, *args))
                ended.append(time.perf_counter())

            waiting = threading.Thread(target=call)
            os.kill(zygote, signal.SIGSTOP)
            try:
                sandbox.call(function, *args)
                waiting.start()
                time.sleep(0.05)  # a cell is made meanwhile, and waits for its occupant
                begun = time.perf_counter()
            finally:
                os.kill(zygote, signal.SIGCONT)
            waiting.join()
            return ended[0] - begun

        floor = Floor(self.options.binary, "enter")
        mine, its, least = in_turns(max(5, self.rounds // 5), 0.02, lambda: ours(add, 2, 3), lambda: forker.do(b"f"),
                                    lambda: timed(floor.turn))
        self.table.add("no occupant / fork", mine, its, "fork", floors={" entered": least})
        floor.close()
        for _ in range(3):
            sandbox.call(self.module.cost)
        costs.clear()
        for _ in range(5):
            ours(self.module.cost)
        faults, seconds = min(costs)
        bare = min((forker.do(b"p"), forker.do(b"s")) for _ in range(5))
        self.table.add_fact("  the process of a call", f"an occupant takes {faults} page faults and {short(seconds)} of CPU from its fork to its "
                            f"function, sealing included; a bare fork {bare[0]:.0f} and {short(bare[1])}")

    def measure_throughput(self):
        """Fresh calls on all CPUs, and forks with cells by hand, in turns."""
        seconds, add, cpus = 1.0, self.module.add, len(os.sched_getaffinity(0))
        forkers = [Forker(self.options, seconds) for _ in range(cpus)]
        ratios, rates = [], [[], []]
        with self.vitro.Sandbox(ready_max=2 * cpus) as sandbox:
            for _ in range(20):
                sandbox.call(add, 2, 3)

            def work(seconds):
                counts, end = [0] * 2 * cpus, time.monotonic() + seconds

                def call(index):
                    while time.monotonic() < end:
                        sandbox.call(add, 2, 3)
                        counts[index] += 1

                threads = [threading.Thread(target=call, args=(index,)) for index in range(len(counts))]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                return sum(counts) / seconds

            for _ in range(1 if self.options.quick else 10):
                for forker in forkers:
                    forker.order(b"w")
                theirs = sum(forker.hear() for forker in forkers) / seconds
                work(seconds / 2)  # what is ready would be counted, and made while nobody counts
                ours = work(seconds)
                settle(sandbox, 2)
                ratios.append(ours / theirs)
                rates[0].append(ours)
                rates[1].append(theirs)
        for forker in forkers:
            forker.close()
        ratio, name = statistics.median(ratios), "throughput"
        says = self.table.judge(name, ratio, RATE_BAR, ratio >= RATE_BAR, at_least=True)
        self.table.add_fact(name, f"{cpus} CPUs: {statistics.median(rates[0]):.0f} calls/s; fork, and a cell by hand: "
                            f"{statistics.median(rates[1]):.0f}/s  {says}")

    def measure_sustained(self):
        add, seconds = self.module.add, 1.0 if self.options.quick else 60.0
        with self.vitro.Sandbox() as sandbox:
            for _ in range(30):
                sandbox.call(add, 2, 3)
            before, times, end = sandbox.counts(), [timed(sandbox.call, add, 2, 3)], time.monotonic() + seconds
            cpu = cpu_of(sandbox)
            while time.monotonic() < end:
                times.append(timed(sandbox.call, add, 2, 3))
            counts = sandbox.counts()
            cold = (counts["cold_calls"] - before["cold_calls"]) / len(times)
            self.table.add_fact("sustained", f"{len(times) / seconds:.0f} calls/s for {seconds:.0f} s: p50 {short(at(times, 0.5))}, "
                                f"p99 {short(at(times, 0.99))}, {cold:.0%} found no cell ready, "
                                f"{(cpu_of(sandbox) - cpu) / len(times) * 1e3:.1f} ms CPU a call")

    def measure_parked(self):
        for name, begin in (("100 parked, for call()", lambda sandbox: sandbox.call(self.module.add, 2, 3)),
                            ("100 parked, for eval()", lambda sandbox: sandbox.eval("1 + 1"))):
            with self.vitro.Sandbox(ready_min=100, ready_max=100) as sandbox:
                begin(sandbox)
                time.sleep(0.5)  # it learns the function's module
                settle(sandbox, 100)
                memory = parked(sandbox)
                middle = at(memory, 0.5)
                says = self.table.judge(name, middle / 1024, PARKED_KB / 1024, middle <= PARKED_KB)
                self.table.add_fact(name, f"PSS p50 {middle} KB, all {len(memory)} of them {sum(memory) / 1024:.0f} MB; MB: {says}")

    def measure_asyncio(self):
        add, loop = self.module.add, asyncio.new_event_loop()
        awaited = self.vitro.AsyncSandbox(ready_min=READY)

        async def await_call():
            begun = time.perf_counter()
            await awaited.call(add, 2, 3)
            return time.perf_counter() - begun

        with self.vitro.Sandbox(ready_min=READY) as sandbox:
            contestants = lambda: loop.run_until_complete(await_call()), lambda: timed(sandbox.call, add, 2, 3)
            in_turns(20, 0, *contestants)
            settle(sandbox, READY)
            mine, its = in_turns(self.rounds, 0.02, *contestants)
            loop.run_until_complete(awaited.close())
        loop.close()
        times = [one for block in mine for one in block]
        self.table.add_fact("AsyncSandbox, spaced", " ".join(f"{name} {short(at(times, share))}" for name, share in
                                                             (("min", 0), ("p50", 0.5), ("p99", 0.99)))
                            + f", {ratio_of(mine, its):.2f} of Sandbox")

    def run(self):
        policy = {"limits": {"result_mb": 128, "memory_mb": 1024}}
        wants = self.table.wants
        with self.vitro.Sandbox(policy, ready_min=READY) as sandbox, ProcessPoolExecutor(1) as pool:
            for _ in range(30):
                sandbox.call(self.module.add, 2, 3)
                pool.submit(self.module.add, 2, 3).result()
            time.sleep(3 * self.rest)
            if wants("add"):
                self.measure_add(sandbox, pool)
            self.measure_data(sandbox, pool)
            if wants("call-back"):
                self.measure_callbacks(sandbox)
        for name, measure in (("pandas", self.measure_pandas), ("cold", self.measure_cold), ("asyncio", self.measure_asyncio)):
            if wants(name):
                measure()
        for name, measure in (("throughput", self.measure_throughput), ("sustained", self.measure_sustained),
                              ("parked", self.measure_parked)):
            if self.alone and wants(name):
                measure()


def measure(options):
    import vitro
    import vitro_bench_module
    if options.pin is not None:
        os.sched_setaffinity(0, {options.pin})
    pinned = f"{len(os.sched_getaffinity(0))} CPUs, not pinned" if options.pin is None else f"all pinned to CPU {options.pin}"
    print(f"\nPython {platform.python_version()}, Linux {platform.release()}, {pinned}, load {os.getloadavg()[0]:.1f}, "
          f"THP {pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled').read_text().split('[')[1].split(']')[0]}")
    bench = Bench(options, vitro, vitro_bench_module)
    for package in PACKAGES:
        try:
            __import__(package)
        except ImportError:
            bench.missing.append(package)
    bench.run()
    print(f"load at the end {os.getloadavg()[0]:.1f}; "
          + (f"NOT measured, as they cannot be had: {', '.join(bench.missing)}; " if bench.missing else "")
          + (f"MISSED: {'; '.join(bench.table.bad)}" if bench.table.bad else "all bars held"))
    if options.json:
        bench.table.write(options.json, "all CPUs" if options.pin is None else "one CPU")
    return bench.table.bad


def find_python():
    """An interpreter with numpy and pandas, or this one."""
    folder = ROOT / "build" / f"bench-venv-{platform.python_version()}"
    python = str(folder / "bin" / "python")
    if not (folder / "complete").exists():
        try:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=120)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=True,
                           capture_output=True, timeout=300)
            (folder / "complete").touch()
        except (OSError, subprocess.SubprocessError) as error:
            said = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").strip().splitlines()
            print(f"there is no venv with {' and '.join(PACKAGES)}: {said[-1] if said else error}", file=sys.stderr)
            return sys.executable
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit with 1 where a bar is not held")
    parser.add_argument("--pin", type=int)
    parser.add_argument("--json", type=pathlib.Path, help="add the figures to this file")
    parser.add_argument("--only", default="", help="rows with this text in their name")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("binary", nargs="?", default=str(ROOT / "build" / "vitro"))
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    if options.one:
        bad = measure(options)
        sys.exit(1 if bad and options.check else 0)
    with tempfile.TemporaryDirectory(prefix="bench-", dir="/var/tmp") as place:
        pathlib.Path(place, "vitro_bench_module.py").write_text(MODULE)
        pathlib.Path(place, "vitro_bench_numpy.py").write_text(NUMPY)
        pathlib.Path(place, "vitro_bench_pandas.py").write_text(PANDAS)
        os.chmod(place, 0o755)
        env = {**os.environ, "VITRO_BINARY": options.binary,
               "PYTHONPATH": os.pathsep.join([place, str(ROOT / "sdk" / "python")])}
        words = [find_python(), __file__, "--one", *sys.argv[1:]]
        pins = [[]] if options.quick or options.pin is not None else [["--pin", "0"], []]
        codes = [subprocess.run([*words, *pin], env=env, check=False).returncode for pin in pins]
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
