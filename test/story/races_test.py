#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names that change while vitro looks at them: a running cell swaps a folder with a link that leads out.

VITRO_RACE_ROUNDS is how often each is tried; by itself a few times. A control counts that both were met:
rounds in which the folder was seen, and rounds in which the link was. The last test meets each moment
exactly: vitro-within runs a command before a system call."""

import contextlib
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import ACTOR, WITHIN, check, folder, main, run, skip, test, vitro_command, vitro_started, write

ROUNDS = int(os.environ.get("VITRO_RACE_ROUNDS", "100"))


def make(place):
    """w, with the folder d and the link l, which leads to the folder outside."""
    for name in ("w/d/inside", "outside/inside"):
        write(f"{place}/{name}", name.split("/")[0])
        os.chmod(os.path.dirname(f"{place}/{name}"), 0o777)
    os.chmod(place + "/w", 0o777)
    os.symlink("../outside", place + "/w/l")


@contextlib.contextmanager
def swapping():
    """The same, and a cell that swaps the two."""
    with folder(writable=True) as place:
        make(place)
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


@test("what is denied in a folder is denied there, not where a link led meanwhile", holds={"files": "mountns"})
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


# Once, before the call that has this number of those that look at names, d and l change places.
SWAP = "cd {}; read n <n; echo $((n + 1)) >n; test $n != {} || { mv w/d w/t && mv w/l w/d && mv w/t w/l; }"


@test("a name that changes at one moment, whichever it is, leads nowhere that was not judged", holds={"files": "mountns"})
def _():
    if "Operation canceled" in run([WITHIN, "--at", "chroot=true", "--", "/bin/true"]).err:
        skip("the filter around the tests has the one listener that a process can be under")
    outcomes = set()
    for flags in (["--write", "{}/w", "--read", "{}/w/d"], ["--write", "{}/w", "--deny", "{}/w/d/inside"]):
        for moment in range(100):
            with folder(writable=True) as place:
                make(place)
                os.rename(place + "/w/l", place + "/w/t")  # it is a link first
                os.rename(place + "/w/d", place + "/w/l")
                os.rename(place + "/w/t", place + "/w/d")
                os.chmod(write(place + "/n", "0\n"), 0o666)
                command = SWAP.replace("{}", place, 1).replace("{}", str(moment), 1)
                call = run([WITHIN, *(word for name in ("openat2", "readlink") for word in ("--at", f"{name}={command}")), "--",
                            *vitro_command("run", *(flag.format(place) for flag in flags), "--", "/bin/cat",
                                           f"{place}/w/d/inside")])
                with open(place + "/n", encoding="utf-8") as file:
                    swapped = int(file.read()) > moment
            wrong = "outside" if "--read" in flags else "w"
            check(call.out != wrong, f"led astray, swapped at look {moment}\n{call}")
            outcomes.add((call.code, swapped))
            if not swapped:
                break
        check(moment > 5, f"it was swapped at only {moment} looks\n{call}")
        check(not swapped, f"it looks more than {moment} times\n{call}")
    check((125, True) in outcomes, f"never refused: {outcomes}")


if __name__ == "__main__":
    main()
