#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names that change while vitro looks at them: a running cell swaps a folder with a link that leads out.

VITRO_RACE_ROUNDS is how often each is tried; by itself a few times. A control counts that both were met:
rounds in which the folder was seen, and rounds in which the link was."""

import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import ACTOR, check, folder, main, run, test, vitro_command, vitro_started, write

ROUNDS = int(os.environ.get("VITRO_RACE_ROUNDS", "100"))


@contextlib.contextmanager
def swapping():
    """w, in which a cell swaps the folder d with the link l, which leads to the folder outside."""
    with folder(writable=True) as place:
        for name in ("w/d/inside", "outside/inside"):
            write(f"{place}/{name}", name.split("/")[0])
            os.chmod(os.path.dirname(f"{place}/{name}"), 0o777)
        os.chmod(place + "/w", 0o777)
        os.symlink("../outside", place + "/w/l")
        with vitro_started("run", "--timeout", "3600s", "--write", place + "/w", "--", ACTOR, "swap", place + "/w/d",
                           place + "/w/l", stdout=subprocess.PIPE) as (process, _):
            check(process.stdout.readline() == b"swapping\n", "the cell swaps")
            yield place
            check(process.poll() is None, "the cell swapped to the end")


def race(flags, command, through, seen):
    """Counts the calls that a swap led astray, which must be none. through: what tells one, of its place
    and the call; seen: the same of one that found the folder as it was, of which there must be some."""
    led, met, refused = [], 0, 0
    with swapping() as place:
        for _ in range(ROUNDS):
            call = run(vitro_command("run", *(flag.format(place) for flag in flags), "--",
                                     *(word.format(place) for word in command)))
            if through(pathlib.Path(place), call):
                led.append(call)
            met += seen(call)
            refused += call.code == 125
            if call.code == 125:
                check(any(why in call.err for why in ("link", "replaced while", "Stale file handle")),
                      f"why it was refused\n{call}")
    print(f"# {' '.join(flags)}: of {ROUNDS} calls {met} met the folder, {refused} were refused, {len(led)} were led astray", flush=True)
    check(not led, lambda: f"{len(led)} of {ROUNDS} calls were led astray, as this one:\n{led[0]}")
    check(met and refused, "no call met the folder, or none the link")


@test("a read grant in a write grant is never of what a link led to that was swapped in")
def _():
    race(["--write", "{}/w", "--read", "{}/w/d"], ["/bin/cat", "{}/w/d/inside"],
         lambda place, call: call.out == "outside", lambda call: call.out == "w")


@test("nor is a write grant in a write grant")
def _():
    def through(place, call):
        planted = place / "outside" / "planted"
        found = planted.exists()
        planted.unlink(missing_ok=True)
        return found

    race(["--write", "{}/w", "--write", "{}/w/d"], ["/bin/sh", "-c", "echo x > {}/w/d/planted"],
         through, lambda call: call.code == 0)


@test("what is denied in a folder is denied there, not where a link led meanwhile")
def _():
    race(["--write", "{}/w", "--deny", "{}/w/d/inside"], ["/bin/cat", "{}/w/d/inside"],
         lambda place, call: call.out == "w", lambda call: call.code == 1)


def output_race(flag, *flags):
    def through(place, call):
        led = place / "outside" / "out"
        found = led.exists() and "passes the link" not in call.err
        led.unlink(missing_ok=True)
        for name in ("d", "l"):
            with contextlib.suppress(OSError):
                (place / "w" / name / "out").unlink()
        return found

    race([flag, *flags], ["/bin/true"], through, lambda call: call.code == 0)


@test("a result goes to no other folder in silence")
def _():
    output_race("--json={}/w/d/out", "--read", "{}/w")


@test("nor does an audit line")
def _():
    output_race("--audit={}/w/d/out", "--read", "{}/w")


if __name__ == "__main__":
    main()
