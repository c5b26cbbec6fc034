#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks by what one call leaves for the next, by names, and by processes that do not want to end. docs/attacks.md
has the list of all ideas."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, IS_ROOT, WITHIN, check, check_equal, check_in, folder, is_bare, main, processes_of,
                       run, skip, test, vitro, vitro_command, wait_until, write)

PYTHON = "/usr/bin/python3"
SOON = 5  # s that vitro may take to look at a command, on a busy machine
BARE = [WITHIN, "--deny-userns", "--"]


def kinds():
    """How cells are made: prefixes of vitro, by name."""
    yield "as they are", []
    if not is_bare() and not IS_ROOT and os.path.exists(WITHIN):
        yield "without namespaces", BARE


# ---- what one call leaves for the next ------------------------------------------------------------------------------


def plant(place, name):
    """What a call could have left in a workspace: a venv of which one file has no end."""
    write(f"{place}/bin/tool", "#!/bin/sh\necho ran\n", 0o755)
    os.symlink(PYTHON, f"{place}/bin/python3")
    config = f"{place}/pyvenv.cfg"
    if name == "pipe":
        os.mkfifo(config)
    else:
        with open(config, "wb") as file:
            file.truncate(1 << 42)


@test("attack: a pyvenv.cfg that has no end, or is a pipe, does not keep vitro waiting", needs=[PYTHON])
def _():
    for name in ("hole", "pipe"):
        with folder(writable=True) as place:
            try:
                plant(place, name)
            except OSError as error:
                skip(f"it cannot be planted here: {error}")
            reader = run(["sh", "-c", 'exec timeout 1 cat "$0" >/dev/null', f"{place}/pyvenv.cfg"])
            check_equal(reader.code, 124, f"the control: who reads a {name} does not end", reader)
            start = time.monotonic()
            call = run(vitro_command("explain", "--write", place, "--", f"{place}/bin/python3", "-c", "1"),
                       timeout=4 * SOON)
            check(time.monotonic() - start < SOON, f"{name}: vitro took {time.monotonic() - start:.1f} s\n{call}")


@test("attack: a program that is a pipe, or names itself, does not keep vitro waiting")
def _():
    with folder(writable=True) as place:
        os.mkfifo(place + "/pipe", 0o777)
        os.chmod(place + "/pipe", 0o777)
        write(place + "/itself", f"#!{place}/itself\n", 0o755)
        check_equal(run(["timeout", "1", "cat", place + "/pipe"]).code, 124, "the control: who opens the pipe waits")
        for name in ("pipe", "itself"):
            start = time.monotonic()
            call = vitro("run", "--write", place, "--", f"{place}/{name}")
            check_equal(call.code, 126, f"{name}", call)
            check(time.monotonic() - start < SOON, f"{name}: it took {time.monotonic() - start:.1f} s")


@test("attack: a file called strict, where the caller stands, is not the policy of that name")
def _():
    with folder() as place:
        write(place + "/strict", '{"network": "host"}')
        shown = {policy: next(line.split()[1] for line in run(vitro_command("explain", "--policy", policy), cwd=place).out
                              .splitlines() if line.startswith("network ")) for policy in ("strict", "./strict")}
        check_equal(shown["./strict"], "-", "the control: a path is the file, and that has the host's network")
        check(shown["strict"] != "-", f"a name is vitro's own: {shown}")


# ---- names ----------------------------------------------------------------------------------------------------------


@test("attack: where a planted link leads is told without what steers a terminal")
def _():
    with folder() as place:
        target = place + "/a\x1b]0;owned\x07b\x9b2J"
        os.mkdir(target)
        os.symlink(target, place + "/link")
        check_in("\x1b", os.readlink(place + "/link"), "the control: the link has it")
        for words in (("run",), ("explain",)):
            call = run(vitro_command(*words, "--read", place + "/link", "--", "/bin/true"))
            check_in("owned", call.out + call.err, "it is told of", call)
            for byte in ("\x1b", "\x07", "\x9b"):
                check(byte not in call.out + call.err, f"{words[0]}: {byte!r} is in what vitro says\n{call}")


@test("attack: words and output with ends of lines stay one line of the audit log", needs=[PYTHON])
def _():
    with folder() as place:
        log = place + "/log"
        forged = '\n{"call_id": "forged", "status": "ok"}\n'
        call = vitro("run", "--audit", log, "--", "/bin/echo", forged)
        check_in("forged", call.out, "the control: it is said", call)
        lines = open(log, encoding="utf-8").read().splitlines()
        check_equal(len(lines), 1, "lines of the log")
        check(json.loads(lines[0])["call_id"] != "forged", lines[0])
        verified = run([BINARY, "audit", "verify", log])
        check_equal(verified.code, 0, "the chain is whole", verified)


# ---- what does not want to end ----------------------------------------------------------------------------------------

# Orphans are its own to reap, each begins a session, ignores what it can, and clears the signal of its parent's death.
SURVIVORS = """
import ctypes, os, signal, sys, time
libc = ctypes.CDLL(None)
libc.prctl(36, 1, 0, 0, 0)
told, tell = os.pipe()
def stay():
    os.setsid()
    libc.prctl(1, 0, 0, 0, 0)
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    os.write(tell, b"x")
    time.sleep(30)
for _ in range(8):
    if os.fork() == 0:
        libc.prctl(36, 1, 0, 0, 0)
        if os.fork() == 0:
            stay()
        os._exit(0)
for _ in range(8):
    os.read(told, 1)
os._exit(0)
"""


@test("attack: a cell's own reapers, sessions and cleared death signals do not outlive it", needs=[PYTHON])
def _():
    value = f"survivor-{os.getpid()}-{time.monotonic_ns()}"
    outside = run(["sh", "-c", 'exec "$@" >/dev/null 2>&1', "sh", PYTHON, "-c", SURVIVORS + "#" + value])
    check_equal(outside.code, 0, "the control runs", outside)
    left = [pid for pid in processes_of(value)]
    for pid in left:
        os.kill(pid, 9)
    check_equal(len(left), 8, "the control: outside they stay")
    wait_until(lambda: not processes_of(value), 5, "the control is gone")
    for kind, prefix in kinds():
        call = vitro("run", "--", PYTHON, "-c", SURVIVORS, prefix=prefix)  # which looks at what is left
        check_equal(call.code, 0, f"cells {kind}", call)


@test("attack: a tree of folders too deep for a path, and closed, goes with the call", needs=[PYTHON])
def _():
    build = """
import os
os.chdir(os.environ.get("TMPDIR", "/tmp"))
for depth in range(600):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
    if depth % 50 == 49:
        try: os.chmod(".", 0o300)
        except PermissionError: pass  # a bare cell's folders stay open to who measures them
try:
    os.getcwd(); print("short")
except OSError:
    print("deep")
"""
    for kind, prefix in kinds():
        call = vitro("run", "--", PYTHON, "-c", build, prefix=prefix)  # looks at what is left
        # A bare cell's is measured, and ended for it.
        check("deep" in call.out or "too deep" in call.err, f"cells {kind}: the control: no path leads there\n{call}")


main()
