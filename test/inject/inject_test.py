#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""System calls that fail: of each kind the n-th, in each process that has a part in a call.

Whatever fails, the call ends with a true status. Where it was run, the cell was as sealed as ever: what the probe
sees there is compared line by line with what it sees when nothing fails. Nothing hangs, and nothing stays.

A few points of each, spread over all; with VITRO_INJECT=all every one, with VITRO_INJECT=N at most N of each; of
those with VITRO_INJECT_PART=K/N each N-th from the K-th on. VITRO_INJECT_POINTS names a file that what came of each is
added to, for docs/evidence.md: `make test-inject`.
"""

import atexit
import concurrent.futures
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
from vitrotest import BIN, BINARY, ROOT, Before, Failed, cgroups_left, check, main, skip, test, wait_until  # noqa: E402

INJECT = os.path.join(BIN, "vitro-inject")
PROBE = os.path.join(BIN, "vitro-probe")
HERE = pathlib.Path(__file__).resolve().parent
ROLES = ("supervisor", "helper", "spawner", "zygote", "init", "occupant")
FEW = 2
REHEARSALS = 10
AT_ONCE = 2
HANG_SECONDS = 45  # a call that waits for a cell is told after 30
STATUSES = {"ok", "error", "crashed", "no_result", "refused", "lost"}  # and no timeout: nothing is waited for so long
# Of these all are tried, each time: they went wrong once.
ALWAYS = {
    ("a command", "supervisor"): ("kill", "wait4"),
    ("a C tool", "supervisor"): ("recvfrom", "recvmsg"),
    ("a server's C tool", "supervisor"): ("epoll_ctl",),
}
# Of this way these alone: all else is as without a folder for writing.
ONLY = {
    "Python that may write": (("helper", "zygote"), ("chdir", "fchdir", "fsconfig", "fsmount", "fsopen", "mkdirat", "mknodat", "mount_setattr", "move_mount", "open_tree",
                                                     "openat2", "setns", "umount2", "unshare")),
}
# Whatever runs in a cell and is started anew sees these differ, or each time another.
UNSTABLE = ("SigQ:",)

EVAL = {"python": "import subprocess\nprint(subprocess.run([%r], capture_output=True, text=True).stdout)",
        "node": "process.stdout.write((await import('node:child_process')).execFileSync(%r))"}
# {folder}: one that is there for this run alone.
WAYS = {
    "a command": [BINARY, "run", "--json", "--read", PROBE, "--", PROBE],
    "a C tool": [PROBE, "call"],
    "a server's C tool": [PROBE, "serve", BINARY, "{folder}/socket"],
    "Python": [sys.executable, str(HERE / "client.py"), PROBE],
    "Python that may write": [sys.executable, str(HERE / "client.py"), PROBE, "{folder}/work"],
    "Node": [shutil.which("node"), str(HERE / "client.mjs"), PROBE],
    "eval of Python": [BINARY, "eval", "--json", "--read", PROBE, EVAL["python"] % PROBE],
    "eval of Node": [shutil.which("node") and BINARY, "eval", "--json", "--lang", "node", "--read", PROBE, EVAL["node"] % PROBE],
}


@functools.lru_cache(maxsize=None)
def binary_for(way):
    """vitro. For a pool of Node's one that stands beside scripts of which one number differs: how often a zygote rehearses.
    That is the same handful of calls 1500 times over, for what V8 compiles, and half of the time that a run takes."""
    if way != "Node":
        return BINARY
    folder = tempfile.mkdtemp(prefix="inject-test-vitro-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.chmod(folder, 0o755)
    shutil.copy(BINARY, folder)
    shutil.copytree(pathlib.Path(BINARY).with_name("node"), f"{folder}/node")
    harness = pathlib.Path(folder, "node", "harness.cjs")
    text, changed = re.subn(r"(?m)^const MANY = \d+;", f"const MANY = {REHEARSALS};", harness.read_text())
    check(changed == 1, f"{harness} does not say how often it rehearses")
    harness.unlink()  # where it is a link
    harness.write_text(text)
    return f"{folder}/{os.path.basename(BINARY)}"


class Run:
    """One run of a way, with one call that fails or none."""

    def __init__(self, way, point=None):
        before = Before()
        with tempfile.TemporaryDirectory(prefix="inject-test-") as folder:
            log = os.path.join(folder, "log")
            os.mkdir(os.path.join(folder, "work"), 0o777)
            at = ["--at", ":".join(map(str, point))] if point else []
            env = {**os.environ, "VITRO_BINARY": binary_for(way), "PYTHONPATH": str(ROOT / "sdk" / "python"), "VITRO_TEST_MARK": before.token,
                   "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
                   # The package is compiled once, not in each of some thousand runs.
                   "PYTHONPYCACHEPREFIX": os.path.join(BIN, "pycache"), "PYTHONDONTWRITEBYTECODE": ""}
            command = [word.replace("{folder}", folder) for word in WAYS[way]]
            try:
                done = subprocess.run([INJECT, log, *at, *command], stdin=subprocess.DEVNULL, capture_output=True,
                                      timeout=HANG_SECONDS, env=env)
            except subprocess.TimeoutExpired as error:
                raise Failed(f"{way}, {point}: not over after {HANG_SECONDS} s\n{error.stdout}\n{error.stderr}") from None
            self.log = pathlib.Path(log).read_text().splitlines()
        self.way, self.point, self.code = way, point, done.returncode
        self.out, self.err = (text.decode(errors="replace").replace(folder, "/tmp/inject") for text in (done.stdout, done.stderr))
        self.hit = any(line.startswith("hit ") for line in self.log)
        self.left = [line for line in self.log if line.startswith("left ")]
        self.began = sorted({re.sub(r"\bvitro-[\d.]+", "vitro-N", line[6:]) for line in self.log if line.startswith("began ")})
        try:
            before.check_nothing_left(0, cgroups=False, seconds=5)
            # What could not be removed is for the next call to sweep.
            if not point or point[1] not in ("rmdir", "unlinkat"):
                wait_until(lambda: not self.cgroups(), 5, f"the cgroups {self.cgroups()} are gone")
        except Failed as failure:
            raise Failed(f"{failure}\n{self}") from None

    def cgroups(self):
        """Those of its own: in the same folder others may be at work."""
        pids = [line.split()[1] for line in self.log if line.startswith("vitro ")]
        return [path for pid in pids for path in cgroups_left(int(pid)) if f"/vitro-{pid}." in path]

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
        if line.startswith("NSpid:"):  # threads of a runtime have numbers, too
            line = f"NSpid: of {len(line.split()) - 1} namespaces"
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
    check(run.log.count("mark") == (0 if BINARY in WAYS[way][:1] else 2), f"where the call begins and ends is not marked: {run.log}")
    check(run.began and run.began == again.began, f"two calls differ: {run.began}, {again.began}")
    if run.result["isolation"]["memory"].startswith("cgroup"):
        check(any("vitro-N" in line for line in run.began), f"it is in no cgroup of its own: {run.began}")
    return run


def spread(count, wanted):
    """So many of the numbers from 1 to count, from the first to the last."""
    return {1 + i * (count - 1) // max(1, wanted - 1) for i in range(min(count, wanted))}


def choose(counts, most):
    """At most so many of {call: count}, of each kind as many as of others: of rare ones all, and those are vitro's own."""
    share = dict.fromkeys(counts, 0)
    while most and (open_ := [call for call in counts if share[call] < counts[call]]):
        for call in open_[:: -(-len(open_) // most)]:
            share[call] += 1
            most -= 1
    return [(call, n) for call in counts for n in sorted(spread(counts[call], share[call]))]


def points(way, role):
    """(call, n) for all calls that the role makes; fewer, if not all are wanted."""
    calls = ONLY[way][1] if way in ONLY else None
    counts = {call: count for (who, call), count in sorted(baseline(way).counts().items()) if who == role and (calls is None or call in calls)}
    wanted = os.environ.get("VITRO_INJECT", str(FEW))
    of = sum(counts.values())
    always = [(call, n + 1) for call in ALWAYS.get((way, role), ()) for n in range(counts.get(call, 0))]
    part, parts = map(int, os.environ.get("VITRO_INJECT_PART", "1/1").split("/"))
    return sorted({*choose(counts, of if wanted == "all" else int(wanted)), *always})[part - 1 :: parts], of


def split_mounts(lines):
    """What lies on a host folder that a cell is shown, {place: options}, and all else."""
    mounts, rest = {}, []
    for line in lines:
        match = re.match(r"mount (/(?!(?:proc|dev)\b|tmp )\S+) (\S+)", line)  # a grant may lie below /tmp
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
    # Of a child that is said to be nobody's, and yet is there, nobody but who adopts it can see the end.
    check(not run.left or run.point[1].startswith("wait"), f"processes are left: {run}")
    check(set(run.began) <= set(baseline_run.began), f"not in the cgroups of its cell: {run.began}\n{run}")
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


def try_point(way, role, call, number):
    """What became of it, and what was wrong; (None, None) if there were not so many calls this time."""
    try:
        run = Run(way, (role, call, number))
        return (judge(run, baseline(way)), None) if run.hit else (None, None)
    except Failed as failure:
        return "WRONG", str(failure)


def note_point(**point):
    if os.environ.get("VITRO_INJECT_POINTS"):
        with open(os.environ["VITRO_INJECT_POINTS"], "a", encoding="utf-8") as file:
            print(json.dumps(point), file=file)


def inject(way, role):
    baseline(way)
    chosen, of = points(way, role)
    if not chosen:
        skip(f"{way} has no {role}")
    statuses, wrong = [], []
    # Processes, as each looks for what is left of its own children.
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE) as executor:
        tried = executor.map(functools.partial(try_point, way, role), *zip(*chosen))
        for (call, number), (status, text) in zip(chosen, tried):
            if status:
                statuses.append(status)
                note_point(way=way, role=role, of=of, call=call, number=number, status=status)
            if text:
                wrong.append(text)
    print(f"# {way}, {role}: {len(statuses)} failed calls: " + ", ".join(f"{statuses.count(one)} {one}" for one in sorted(set(statuses))))
    check(statuses, f"none of {chosen} was made again")
    check(not wrong, lambda: f"{len(wrong)} wrong:\n" + "\n\n".join(wrong[:20]))


@test("the control: outside of a cell the probe sees what no cell shows")
def _():
    seen = normal(subprocess.run([PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout)
    differs = weaker(seen, baseline("a command").seen(), True)
    for mark in ("NoNewPrivs:", "Seccomp:", "/proc/self/ns/pid:", "domains:"):
        check(any(line.startswith(mark) for line in differs), f"{mark} is not among {differs}")


for one in WAYS:
    for who in ONLY[one][0] if one in ONLY else ROLES:
        test(f"{one}: a call of the {who} fails")(functools.partial(inject, one, who))

if __name__ == "__main__":
    main()
