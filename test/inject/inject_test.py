#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""System calls that fail: of each kind the n-th, in each process that has a part in a call.

Whatever fails, the call ends with a true status. Where it was run, the cell was as sealed as ever: what the probe
sees there is compared line by line with what it sees when nothing fails. Nothing hangs, and nothing stays.

A few points of each, spread over all; with VITRO_INJECT=all every one, with VITRO_INJECT=N at most N of each.
VITRO_INJECT_COUNTS names a file for the counts.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from vitrotest import BIN, BINARY, ROOT, Before, Failed, check, main, skip, test  # noqa: E402

INJECT = os.path.join(BIN, "vitro-inject")
PROBE = os.path.join(BIN, "vitro-probe")
HERE = pathlib.Path(__file__).resolve().parent
ROLES = ("supervisor", "helper", "spawner", "zygote", "init", "occupant")
FEW = 2
HANG_SECONDS = 30
STATUSES = {"ok", "error", "crashed", "no_result", "refused", "lost", "cancelled", "timeout"}
# Whatever runs in a cell and is started anew sees these differ, or each time another.
UNSTABLE = ("SigQ:",)

WAYS = {
    "a command": [BINARY, "run", "--json", "--read", PROBE, "--", PROBE],
    "a C tool": [PROBE, "call"],
    "Python": [shutil.which("python3"), str(HERE / "client.py"), PROBE],
    "Node": [shutil.which("node"), str(HERE / "client.mjs"), PROBE],
}


class Run:
    """One run of a way, with one call that fails or none."""

    def __init__(self, way, point=None):
        before = Before()
        with tempfile.TemporaryDirectory(prefix="inject-test-") as folder:
            log = os.path.join(folder, "log")
            at = ["--at", ":".join(map(str, point))] if point else []
            env = {**os.environ, "VITRO_BINARY": BINARY, "PYTHONPATH": str(ROOT / "sdk" / "python"), "VITRO_TEST_MARK": before.token}
            try:
                done = subprocess.run([INJECT, log, *at, *WAYS[way]], stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=HANG_SECONDS, env=env)
            except subprocess.TimeoutExpired as error:
                raise Failed(f"{way}, {point}: not over after {HANG_SECONDS} s\n{error.stdout}\n{error.stderr}") from None
            self.log = pathlib.Path(log).read_text().splitlines()
        self.way, self.point, self.code = way, point, done.returncode
        self.out, self.err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.hit = any(line.startswith("hit ") for line in self.log)
        self.left = [line for line in self.log if line.startswith("left ")]
        # What could not be removed is for the next call to sweep.
        before.check_nothing_left(0, cgroups=not (point and point[1] in ("rmdir", "unlinkat")), seconds=5)

    def counts(self):
        words = (line.split() for line in self.log if line.startswith("count "))
        return {(role, call): int(count) for _, role, call, count in words}

    @functools.cached_property
    def result(self):
        try:
            return json.loads(self.out)
        except ValueError:
            return None

    def seen(self):
        return normal(self.result["stdout"])

    def __str__(self):
        told = {**self.result, "stdout": f"{len(self.result['stdout'])} bytes"} if self.result else self.out[:1000]
        return f"{self.way}, {self.point}: exit {self.code}, {told}, stderr: {self.err[:1000]!r}, {self.left}"


def normal(text):
    """What the probe saw, in a form that is the same each time."""
    lines = []
    for line in text.splitlines():
        match = re.match(r"(/proc/self/ns/(\w+)): (.*)", line)
        if match:
            line = f"{match[1]}: {'the host' if match[3] == os.readlink(match[1]) else 'its own'}"
        if line and not line.startswith(UNSTABLE):
            lines.append(line)
    return lines


@functools.lru_cache(maxsize=None)
def baseline(way):
    if not all(WAYS[way]):
        skip(f"{WAYS[way][0]} is not installed")
    run, again = Run(way), Run(way)
    check(run.result and run.result["status"] == "ok", f"nothing fails, and yet: {run}")
    check(not run.left, f"processes are left: {run}")
    check(len(run.seen()) > 40, f"the probe saw little: {run}")
    check(run.seen() == again.seen(), f"two calls differ: {run}\n{again}")
    return run


def points(way, role):
    """(call, n) for all calls that the role makes; fewer, spread evenly, if not all are wanted."""
    every = [(call, n + 1) for (who, call), count in sorted(baseline(way).counts().items()) if who == role for n in range(count)]
    wanted = os.environ.get("VITRO_INJECT", str(FEW))
    most = len(every) if wanted == "all" else int(wanted)
    step = max(1, len(every) // max(1, most))
    return every[:: step][:most]


def split_mounts(lines):
    """What lies on a host folder that a cell is shown, {place: options}, and all else."""
    mounts, rest = {}, []
    for line in lines:
        match = re.match(r"mount (/(?!(?:proc|dev|tmp)\b)\S+) (\S+)", line)
        if match:
            mounts[match[1]] = match[2]
        else:
            rest.append(line)
    return mounts, rest


def weaker(seen, want, whole):
    """How what was seen differs from a cell that is whole, or from its beginning. Of what a command brings along less
    may be there, or parts of it."""
    mounts, lines = split_mounts(seen)
    all_mounts, all_lines = split_mounts(want)
    differs = set(lines) ^ set(all_lines) if whole else set(lines[:-1]) - set(all_lines)
    for place, options in mounts.items():
        around = [p for p in all_mounts if place == p or place.startswith(p + "/")]
        if not any(set(options.split(",")) >= set(all_mounts[p].split(",")) - {"idmapped"} for p in around):
            differs.add(f"mount {place} {options}")
    return sorted(differs)


def judge(run, baseline_run):
    """What must hold of every run. Where no result was given, that must be said, and by a code of failure."""
    check(not run.left, f"processes are left: {run}")
    result = run.result
    if result is None:
        check(run.code != 0 and run.err.strip(), f"neither a result nor a word: {run}")
        return "no result"
    check(result["status"] in STATUSES, f"status: {run}")
    is_ok = result["status"] == "ok"
    if result["stdout"]:  # a byte of the call ran: then all of the cell was there
        differs = weaker(run.seen(), baseline_run.seen(), is_ok)
        check(not differs, lambda: f"a weaker cell: {differs[:6]}\n{run}")
    if is_ok:
        check(result["isolation"] == baseline_run.result["isolation"], f"isolation: {run}")
    else:
        check(result["error"] and result["error"]["message"], f"no reason: {run}")
    return result["status"]


def note_counts(way, role, tally):
    print(f"# {way}, {role}: {sum(tally.values())} failed calls: " + ", ".join(f"{count} {status}" for status, count in sorted(tally.items())))
    if os.environ.get("VITRO_INJECT_COUNTS"):
        with open(os.environ["VITRO_INJECT_COUNTS"], "a", encoding="utf-8") as file:
            print(json.dumps({"way": way, "role": role, "tally": tally}), file=file)


def inject(way, role):
    whole, tally, wrong = baseline(way), {}, []
    chosen = points(way, role)
    if not chosen:
        skip(f"{way} has no {role}")
    for call, number in chosen:
        try:
            run = Run(way, (role, call, number))
            if not run.hit:
                continue  # not so many this time
            status = judge(run, whole)
        except Failed as failure:
            status = "WRONG"
            wrong.append(str(failure))
        tally[status] = tally.get(status, 0) + 1
    note_counts(way, role, tally)
    check(tally, f"none of {chosen} was made again")
    check(not wrong, lambda: f"{len(wrong)} wrong:\n" + "\n\n".join(wrong[:20]))


@test("the control: outside of a cell the probe sees what no cell shows")
def _():
    seen = normal(subprocess.run([PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout)
    differs = weaker(seen, baseline("a command").seen(), True)
    for mark in ("NoNewPrivs:", "Seccomp:", "/proc/self/ns/pid:", "domains:"):
        check(any(line.startswith(mark) for line in differs), f"{mark} is not among {differs}")


for one in WAYS:
    for who in ROLES:
        test(f"{one}: a call of the {who} fails")(functools.partial(inject, one, who))

if __name__ == "__main__":
    main()
