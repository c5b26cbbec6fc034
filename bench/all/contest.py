# SPDX-License-Identifier: Apache-2.0
"""Contestants that do the same thing in different ways, in turns.

A contestant is a process that does its thing once for each line that it reads, and answers with how long that took, in ns:
so none of them is timed through the interpreter that asks. They run in a random order per round, so that whatever else
the machine does meets all of them."""

import dataclasses
import random
import subprocess
import sys
import time

SPACING = 0.02
SETTLED, SETTLING = 0.2, 0.5  # a share of all CPUs that may be in use, and how many s that is waited for at the most
WARM_UPS, SLOW = 3, 0.1  # who takes so many s is warm after one
MAX_BLOCK = 10


@dataclasses.dataclass
class Contestant:
    """One way to do it. `holes` is what its isolation check found open; None: it has none to show."""

    name: str
    argv: list
    holes: list = None
    note: str = ""


@dataclasses.dataclass
class Row:
    name: str
    argv: list
    times: list  # ns, sorted
    holes: list = None
    note: str = ""

    def at(self, share):
        return self.times[min(len(self.times) - 1, int(len(self.times) * share))]

    @property
    def p50(self):
        return self.at(0.5)

    @property
    def p99(self):
        return self.at(0.99)


@dataclasses.dataclass
class Table:
    """What a contest measured."""

    rows: list
    missing: list  # (name, why)
    rounds: int = 0


class Mate:
    """A contestant's process."""

    def __init__(self, contestant):
        self.contestant = contestant
        self.times = []
        self.process = subprocess.Popen(contestant.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        bufsize=0)

    def go(self):
        try:
            self.process.stdin.write(b"go\n")
            answer = self.process.stdout.readline()
            return int(answer)
        except (OSError, ValueError):
            self.process.kill()
            said = self.process.stderr.read().decode("utf-8", "replace").strip().splitlines()
            raise RuntimeError(said[-1] if said else "it ended without a word") from None

    def close(self):
        try:
            self.process.stdin.close()
            self.process.wait(30)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def progress(text, is_passing=False):
    """Says what goes on; what is passing is not kept in a log."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
    elif text and not is_passing:
        print(text, file=sys.stderr)
    sys.stderr.flush()


def warm_up(mate, turn):
    """It has done its thing before, and knows how often that makes a turn."""
    for _ in range(WARM_UPS):
        took = mate.go() / 1e9
        if took > SLOW:
            break
    mate.block = max(1, min(MAX_BLOCK, int(turn / (took + SPACING))))


def busy():
    """How long all CPUs were in use, and how long there were any, in ticks."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def settle():
    """Waits until what the one before left to be done is over: cells that are ended, and new ones made."""
    until = time.monotonic() + SETTLING
    before = busy()
    while time.monotonic() < until:
        time.sleep(0.05)
        now = busy()
        if now[0] - before[0] <= SETTLED * (now[1] - before[1]):
            return
        before = now


def begin(contestants, turn, missing):
    """Those that work, warm."""
    started, mates = [], []
    for contestant in contestants:  # all of them, and then one after the other: most of it is their interpreters' start
        try:
            started.append(Mate(contestant))
        except OSError as error:
            missing.append((contestant.name, f"it does not work here: {error}"))
    for mate in started:
        progress(f"{mate.contestant.name}: warms up", is_passing=True)
        try:
            warm_up(mate, turn)
            mates.append(mate)
        except RuntimeError as error:
            missing.append((mate.contestant.name, f"it does not work here: {error}"))
            mate.close()
    return mates


def run(title, contestants, rounds, turn, missing=()):
    """The table of it; a turn takes about so many s, and 0 is a turn of one. What does not work here is listed as missing."""
    missing = list(missing)
    mates = begin(contestants, turn, missing)
    try:
        for number in range(rounds):
            if number % max(1, rounds // 4) == 0 or sys.stderr.isatty():
                progress(f"{title}: round {number + 1} of {rounds}")
            for mate in random.sample(mates, len(mates)):
                settle()
                for _ in range(mate.block):
                    time.sleep(SPACING)
                    mate.times.append(mate.go())
    finally:
        for mate in mates:
            mate.close()
        if sys.stderr.isatty():
            progress("")
    rows = [Row(mate.contestant.name, mate.contestant.argv, sorted(mate.times), mate.contestant.holes, mate.contestant.note) for mate in mates]
    return Table(rows, missing, rounds)
