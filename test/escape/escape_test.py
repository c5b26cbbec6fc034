#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Forbidden acts: each must succeed outside (the control) and be denied inside a cell.

An act is one function of vitro-escape; a row of tries.py says with what arguments it is tried, where its
control can succeed, and under which flags of vitro run it must be denied. A control that this
machine or this user cannot have makes the test a skip, never a pass; what is reached inside fails
in any case.

All but a few must be denied as well under a seccomp profile that allows every call: what a profile
says decides about system calls, and about no other promise.
"""

import contextlib
import os
import platform
import re
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tries import CONTROLS, GROUPS, PARENT, PARTED, TRIES
from vitrotest import (BIN, ESCAPE, Failed, IS_ROOT, check, is_bare, is_confined, landlock_abi, main, need_alone,
                       need_broker, need_held, proc, run, sanitized, skip, started, test, vitro, wait_until)
from world import SECRET, World, leaked_descriptors, standard_input


def said(text):
    """The line that the act printed: ("reached", the line), or (None, "") if it said nothing."""
    lines = re.findall(r"^((reached|denied|unclear): .*)$", text, re.MULTILINE)
    return (lines[-1][1], lines[-1][0]) if lines else (None, "")


def outside(row, program, args, world, options):
    """Runs the control. Returns None where the act was reached, else why not."""
    if row.control == "root" and not IS_ROOT:
        return "needs root outside"
    start = CONTROLS[row.control]
    for needed in start[:1]:
        if not shutil.which(needed):
            return f"{needed} is not installed"
    act = [program, row.act, *args]
    if row.setup:
        act = ["sh", "-c", " ".join(world.fill(row.setup)) + ' && exec "$@"', "sh", *act]
    call = run([*start, *act], cwd=world.fill(row.cwd)[0] if row.cwd else "/", **options)
    word, line = said(call.out)
    if word == "reached":
        return None
    reason = line or call.err.strip().splitlines()[-1:] or f"exit {call.code}"
    if word is None and "unshare" in call.err:
        return f"no namespaces for the control: {call.err.strip()}"
    if row.maybe or is_confined():
        return f"not reached outside either: {reason}"
    raise Failed(f"the control did not reach it\n{call}")


def inside(row, program, args, world, options, missing, flags=()):
    """Runs the act in a cell, and fails unless it was denied. missing: why the control did not reach it."""
    prefix = CONTROLS[row.prefix] if row.prefix else []
    flags = [*world.fill(row.flags), *flags, *(["--cwd", "/tmp"] if "{tmp}" in row.args else [])]
    call = vitro("run", "--json", "--read", os.path.dirname(program), *flags,
                 "--", program, row.act, *args,
                 cwd=world.fill(row.cwd)[0] if row.cwd else None, prefix=prefix, **options)
    result = call.json
    word, line = said(result["stdout"] or "")
    if row.cgroup and not result["isolation"]["memory"].startswith("cgroup"):
        skip("only a cgroup counts this memory, and there is none")
    notes = (result["isolation"] or {}).get("notes", {})
    if row.unless and any(row.unless in note for note in notes.values()):
        skip(f"not promised here: {row.unless}")
    if word == "denied" or (word is None and result["status"] in row.ends.split()):
        return
    if row.stdin == "folder" and result["status"] == "refused":
        return  # a folder as standard input may be turned down altogether
    if word == "unclear" and missing and "either: unclear" in missing:
        skip(f"cannot be tried here: {line}")
    raise Failed(f"inside: {line or 'the act said nothing'}\n{call}")


@contextlib.contextmanager
def surroundings(row, world):
    """The act's program and the options it is started with. What an act may have changed is new."""
    world.refresh()
    with started(["sleep", "1000"], env={"WORD": world.word}) as victim, \
            started(["sh", "-c", "sleep 1000; :", world.word]) as named, \
            tempfile.TemporaryDirectory() as copies, \
            standard_input(row.stdin, world) as input_options, \
            leaked_descriptors(row.leak, world) as leak_options:
        for process in (victim, named):  # an exec is told before its arguments can be seen
            wait_until(lambda pid=process.pid: proc(f"{pid}/cmdline"), 5,
                       "a process shows its arguments")
        world.names["victim"] = str(victim.pid)
        os.chmod(copies, 0o755)
        program = shutil.copy(ESCAPE, copies) if row.act == "replace_self" else ESCAPE
        yield program, {"env": {**os.environ, "VITRO_TEST_SECRET": SECRET},
                        **input_options, **leak_options}


def promises(row):
    """property → mechanism that the denial stands on."""
    words = [next(words for rows, words in GROUPS if row in rows), row.holds]
    words += [f"{name}=*" for name in ("memory", "pids", "cpu_time")
              if f"--{name.replace('_', '-')} " in row.flags]
    # A filter is what denies it; or what a folder for writing cannot be had without.
    if row.filtered or "syscalls=" in row.flags or "--write " in row.flags:
        words.append("syscalls=*")
    promised = dict(word.split("=") for word in " ".join(words).split())
    if row.act in PARTED and "--net host" not in row.flags and not is_bare():
        del promised["network"]
    return promised


def attempt(row, world):
    if world is None:
        skip("no folder can be made here")
    need_held(promises(row))
    if "--socket" in row.flags:
        need_broker()
    if row.ends == "memory_limit lost":
        need_alone()
    if row.root and not IS_ROOT:
        skip("needs root")
    if row.prefix and (caller := run([*CONTROLS[row.prefix], "true"])).code:
        skip(f"there is no such caller here: {caller.err.strip() or caller.out.strip()}")
    if row.abi > landlock_abi():
        skip(f"stands on Landlock ABI {row.abi}; this kernel has {landlock_abi()}")
    with surroundings(row, world) as (program, options):
        missing = outside(row, program, world.fill(row.control_args or row.args), world, options)
    with surroundings(row, world) as (program, options):
        inside(row, program, world.fill(row.args), world, options, missing)
    if not (row.filtered or "syscalls=" in row.flags or sanitized()):  # one build is enough
        with surroundings(row, world) as (program, options):
            inside(row, program, world.fill(row.args), world, options, missing,
                   ["--set", f"syscalls={world.allow}"])
    if missing:
        skip(f"denied inside, but without a control: {missing}")


def register():
    world = World(PARENT) if PARENT else None
    listing = run([ESCAPE, "--list"])
    check(listing.code == 0, lambda: f"vitro-escape does not run\n{listing}")
    mechanisms = dict(line.split("\t")[:2] for line in listing.out.splitlines())
    for row in TRIES:
        label = f" {row.label}" if row.label else ""
        test(f"escape: {row.act} ({mechanisms[row.act]}){label}")(
            lambda row=row: attempt(row, world))

    @test("escape: every act of the program is tried")
    def _():
        # Helpers; and what shows only after the call, which `vitro doctor --self-test` looks at.
        untried = (set(mechanisms) - {row.act for row in TRIES}
                   - {"with_key", "idle", "stay_behind", "stay_unkept"})
        check(not untried, f"not tried: {sorted(untried)}")

    @test("escape: a tracer rewrites each call whose first argument a filter looks at")
    def _():
        listed = run([os.path.join(BIN, "vitro-syscalls"), "--first"])
        check(listed.code == 0 and "socket" in listed.out.split(), lambda: f"vitro-syscalls does not list them\n{listed}")
        untried = set(listed.out.split()) - {row.args.split()[0] for row in TRIES if row.act == "rewrite_call"}
        check(not untried, f"not tried: {sorted(untried)}")

    @test("a tracer writes registers where filters are shown them as calls take them")
    def _():
        need_held({"syscalls": "seccomp"})
        call = vitro("run", "--json", "--read", os.path.dirname(ESCAPE), "--",
                     ESCAPE, "rewrite_call", "personality", "change_personality", "0x0040000")
        line = said(call.json["stdout"] or "")[1]
        if line == "denied: EPERM be traced":
            skip("nothing is traced in such a cell")
        wanted = {"x86_64": "reached: ", "aarch64": "denied: EPERM write the registers"}[platform.machine()]
        check(line.startswith(wanted), lambda: f"{line}\n{call}")

    return world


if __name__ == "__main__":
    made = register()
    try:
        main()
    finally:
        if made:
            made.remove()
