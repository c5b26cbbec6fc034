#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Standard input: its text goes in, and nothing of the cell's comes back through it."""

import contextlib
import fcntl
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, IS_ROOT, check, check_equal, check_in, folder, main, need_proc, run, test,
                       vitro, write)

INJECT = ("for name in /proc/self/fd/0 /dev/stdin /dev/fd/0; do"
          " (printf 'injected\\n' > $name) 2>/dev/null; done; :")


@contextlib.contextmanager
def pipe(text):
    """A pipe with text in it: its ends."""
    ours, theirs = os.pipe()
    try:
        os.write(theirs, text)
        yield ours, theirs
    finally:
        for fd in (ours, theirs):
            with contextlib.suppress(OSError):
                os.close(fd)


def rest_after(start, script):
    """What the next reader of a pipe finds after a command has had it as its standard input."""
    with pipe(b"a\nb\n") as (ours, theirs):
        call = start(ours, script)
        check_equal(call.code, 0, "exit code", call)
        os.close(theirs)
        return run(["cat"], stdin=ours).out


@test("a pipe as standard input: the next reader never gets text of the cell's")
def _():
    need_proc()

    def outside(stdin, script):
        return run(["sh", "-c", script], stdin=stdin)

    def inside(stdin, script):
        return vitro("run", "--", "/bin/sh", "-c", script, stdin=stdin)

    for script in (INJECT, "read line; " + INJECT, "head -c 3 >/dev/null; " + INJECT):
        check_in("injected", rest_after(outside, script), f"outside, after: {script}")
        rest = rest_after(inside, script)
        check("injected" not in rest, f"inside, after {script!r} the next reader got {rest!r}")
        check("a\nb\n".endswith(rest), f"what is left is the end of what was given: {rest!r}")


@test("a fifo as standard input: nobody who reads it gets text of the cell's")
def _():
    with folder() as place:
        path = place + "/fifo"
        os.mkfifo(path, 0o666)
        reader = os.open(path, os.O_RDWR)
        try:
            os.write(reader, b"a\n")
            stdin = os.open(path, os.O_RDONLY)
            call = vitro("run", "--", "/bin/sh", "-c", "read line; echo $line;" + INJECT,
                         stdin=stdin)
            os.close(stdin)
            check_equal((call.code, call.out), (0, "a\n"), "what the cell read", call)
            os.set_blocking(reader, False)
            with contextlib.suppress(BlockingIOError):
                check_equal(os.read(reader, 100), b"", "what is in the fifo")
        finally:
            os.close(reader)


@contextlib.contextmanager
def inputs(place):
    """One standard input of each kind: (its kind, its descriptor)."""
    ours, theirs = socket.socketpair()
    with pipe(b"a\n") as ends, ours, theirs, open(write(place + "/in", "a\n"), "rb") as file:
        yield ("a pipe", ends[0]), ("a socket", ours.fileno()), ("a file", file.fileno())


@test("O_NONBLOCK, set inside, is not on the caller's standard input afterwards")
def _():
    def sticks(fd):
        return bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK)

    with folder() as place, inputs(place) as kinds:
        for kind, fd in kinds:
            call = vitro("run", "--", ACTOR, "nonblock_stdin", stdin=fd)
            check_equal((call.code, sticks(fd)), (0, False), f"{kind}: exit code, flag", call)
            run([ACTOR, "nonblock_stdin"], stdin=fd)
            check(sticks(fd), f"outside it sticks to {kind}")


@test("a file as standard input: what the command left is given back, to the byte")
def _():
    with folder() as place, open(write(place + "/in", "one\ntwo\nthree\n"), "rb") as file:
        call = vitro("run", "--", "/bin/sh", "-c", "read line; echo $line", stdin=file)
        check_equal(call.out, "one\n", "what it read", call)
        check_equal(os.read(file.fileno(), 100), b"two\nthree\n", "what the next one reads")


@test("a file as standard input is never put back before where the call began")
def _():
    need_proc()
    before, given = 100_000, 1000
    with folder() as place, open(write(place + "/in", "x" * (before + given)), "rb") as file:
        for script in (":", "head -c 100 >/dev/null"):
            os.lseek(file.fileno(), before, os.SEEK_SET)
            # the sleep: all of it has come before the cell puts text of its own into the pipe
            call = vitro("run", "--", "/bin/sh", "-c", f"{script}; sleep 0.2;"
                         "head -c 40000 /dev/zero > /proc/self/fd/0 && echo stuffed", stdin=file)
            if not IS_ROOT:  # whose pipes are not the cell's user's to open
                check_equal(call.out, "stuffed\n", "the cell wrote to its own pipe", call)
            now = os.lseek(file.fileno(), 0, os.SEEK_CUR)
            check(before <= now <= before + given, f"the file stands at {now}, it began at {before}")


@test("a closed writer, an empty pipe and no reader inside: standard input never makes a call hang")
def _():
    for script, code in (("cat", 0), ("exec 0<&-; exit 3", 3), ("exit 4", 4)):
        call = vitro("run", "--", "/bin/sh", "-c", script, stdin="text\n" * 50_000, timeout=10)
        check_equal(call.code, code, f"exit code of {script!r}", call)
    ours, theirs = os.pipe()
    try:  # a writer that writes nothing and stays
        call = vitro("run", "--", "/bin/sh", "-c", "exit 5", stdin=ours, timeout=10)
        check_equal(call.code, 5, "exit code", call)
    finally:
        os.close(ours)
        os.close(theirs)


if __name__ == "__main__":
    main()
