#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The forbidden acts of test/escape in cells of a pool, where a tool becomes the program that tries them.

What is denied in a cell of `vitro run` is denied there too. The rows, their controls and the world that
they reach for are those of test/escape.
"""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "lib"), os.path.join(HERE, "..", "escape")]
import escape_test as escape
from tries import CONTROLS, PARENT, TRIES
from vitrotest import Failed, IS_ROOT, check, landlock_abi, main, need_broker, need_held, run, skip, test
from warm import Program, need_program
from world import World

# Flags of `vitro run` as keys of a policy.
LISTS = {"--read": "read", "--write": "write", "--socket": "sockets"}
LIMITS = {"--memory": "memory_mb", "--pids": "pids", "--timeout": "wall_ms", "--cpu-time": "cpu_ms"}
# An occupant's parent is outside of its pid namespace, and thus 0: for kill(), the caller's own group.
ENDS = {"kill_parent": "crashed"}
# The note of an ordinary user's bare cells: what they may have is theirs together.
SHARED = "for which there is room beside"
programs = {}


def put(policy, key, value):
    folder, _, name = key.rpartition(".")
    (policy.setdefault(folder, {}) if folder else policy)[name] = value


def policy_of(flags):
    policy = {}
    for flag, value in zip(flags[::2], flags[1::2]):
        if flag in LISTS:
            files = policy.setdefault("files", {})
            files.setdefault(LISTS[flag], []).append(json.loads(value) if value[0] == "{" else value)
        elif flag in LIMITS:
            put(policy, "limits." + LIMITS[flag], int(value.rstrip("Mms")))
        elif flag == "--net":
            policy["network"] = value
        elif flag == "--cwd":
            put(policy, "files.cwd", value)
        else:
            check(flag == "--set", f"an unknown flag: {flag}")
            key, _, word = value.partition("=")
            put(policy, key, int(word) if word.isdigit() else word)
    return policy


def program_of(row, policy, world, options):
    """One for all rows of a policy, unless the row wants to be called in a way of its own."""
    own = row.prefix or row.cwd or row.leak
    key = json.dumps(policy, sort_keys=True)
    if key not in programs or own:
        made = Program(policy, prefix=CONTROLS[row.prefix] if row.prefix else (),
                       cwd=world.fill(row.cwd)[0] if row.cwd else None, **options)
        if own:
            return made, True
        programs[key] = made
    return programs[key], False


def inside(row, act, args, world, options):
    flags = [*world.fill(row.flags), "--read", os.path.dirname(act),
             *(["--cwd", "/tmp"] if "{tmp}" in row.args else [])]
    program, alone = program_of(row, policy_of(flags), world, options)
    try:
        return program.call("become", words=[act, row.act, *args])
    finally:
        if alone:
            program.end()


def attempt(row, world):
    if row.stdin:
        skip("a tool's standard input is empty")
    if world is None:
        skip("no folder can be made here")
    need_held(escape.promises(row))
    if "--socket" in row.flags:
        need_broker()
    if row.root and not IS_ROOT:
        skip("needs root")
    if row.prefix and run([*CONTROLS[row.prefix], "true"]).code:
        skip("there is no such caller here")
    if row.abi > landlock_abi():
        skip(f"stands on Landlock ABI {row.abi}; this kernel has {landlock_abi()}")
    with escape.surroundings(row, world) as (program, options):
        missing = escape.outside(row, program, world.fill(row.control_args or row.args), world, options)
    with escape.surroundings(row, world) as (program, options):
        result = inside(row, program, world.fill(row.args), world, options)
    word, line = escape.said(result["stdout"] or "")
    if row.unless and any(row.unless in note for note in result["isolation"].get("notes", {}).values()):
        skip(f"not promised here: {row.unless}")
    if row.act in ("take_processes", "take_threads") and SHARED in result["isolation"].get("notes", {}).get("pids", ""):
        skip("pids: counted with those of the pool's other cells, which leaves each more than its own")
    if row.cgroup and not result["isolation"]["memory"].startswith("cgroup"):
        skip("only a cgroup counts this memory, and there is none")
    if word == "unclear" and missing and "either: unclear" in missing:
        skip(f"cannot be tried here: {line}")
    ends = ENDS.get(row.act, row.ends).split()
    if word != "denied" and not (word is None and result["status"] in ends):
        raise Failed(f"in a warm cell: {line or 'the act said nothing'}\n{result}")
    if missing:
        skip(f"denied inside, but without a control: {missing}")


def register():
    world = World(PARENT) if PARENT else None
    for row in TRIES:
        label = f" {row.label}" if row.label else ""
        test(f"warm escape: {row.act}{label}")(lambda row=row: attempt(row, world))
    return world


if __name__ == "__main__":
    need_program()
    made = register()
    try:
        main()
    finally:
        for program in programs.values():
            program.end()
        if made:
            made.remove()
