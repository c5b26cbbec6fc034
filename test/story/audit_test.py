#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The audit log as a chain: what vitro audit verify says of a log, and of one that was tampered with."""

import fcntl
import hashlib
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, check, check_equal, check_in, folder, main, need_proc, run, skip, test,
                       vitro, vitro_started, write)

ZEROS = "0" * 64


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def log_of(path, calls):
    """A log of so many calls, as its lines."""
    for i in range(calls):
        call = vitro("run", "--audit", path, "--", "/bin/echo", f"call {i}")
        check_equal((call.code, call.err), (0, ""), f"call {i}", call)
    return read(path).splitlines(keepends=True)


def verify(path, *flags):
    return run([BINARY, "audit", "verify", *flags, path])


def check_wrong(path, line, words, *flags):
    call = verify(path, *flags)
    check_equal((call.code, call.out), (1, ""), "exit code and output", call)
    check_in(f"vitro: {path}: line {line} " if line else f"vitro: {path}: ", call.err, "where", call)
    check_in(words, call.err, "what", call)
    check_equal(call.err.count("\n"), 1, "lines of the message", call)


@test("each line has the hash of the one before it, which any tool can compute")
def _():
    with folder() as place:
        prev = ZEROS
        for line in log_of(place + "/log", 3):
            parsed = json.loads(line)
            text, tail = line.split(', "hash": "')
            check_equal(parsed["prev"], prev, "the hash of the line before")
            check_equal(hashlib.sha256(text.encode()).hexdigest(), parsed["hash"], "its own hash")
            check_equal(tail, parsed["hash"] + '"}\n', "the line's end")
            prev = parsed["hash"]
        call = verify(place + "/log")
        check_equal((call.code, call.err), (0, ""), "verified", call)
        check_in("3 lines, as written", call.out, "how many", call)
        check_in(f"last hash   {prev}\n", call.out, "the last hash", call)
        times = [json.loads(line)["time"] for line in read(place + "/log").splitlines()]
        check_in(f"first line  {times[0]}\nlast line   {times[-1]}\n", call.out, "from when to when", call)


@test("a line that was changed, removed, put in or moved is found, and named")
def _():
    with folder() as place:
        path = place + "/log"
        lines = log_of(path, 5)
        other = log_of(place + "/other", 2)
        for changed, line, words in (
                (lines[:2] + [lines[2].replace("call 2", "call X")] + lines[3:], 3, "was changed"),
                (lines[:2] + lines[3:], 3, "does not follow"),
                (lines[1:], 1, "began with were removed"),
                ([lines[0], lines[2], lines[1], *lines[3:]], 2, "does not follow"),
                ([*lines[:3], lines[1], *lines[3:]], 4, "does not follow"),
                ([*lines[:3], other[1], *lines[3:]], 4, "does not follow"),
                ([*lines, other[0]], 6, "begins a chain of its own"),
                ([*lines[:3], '{"time": "now"}\n', *lines[3:]], 4, "is not of the chain"),
                ([*lines[:3], "\n", *lines[3:]], 4, "is not of the chain"),
                ([*lines[:4], lines[4][:-20]], 5, "has no end")):
            write(path, "".join(changed))
            check_wrong(path, line, words)
        write(path, "".join(lines))
        check_equal(verify(path).code, 0, "the log as it was")


@test("lines missing at the end are found against a hash that was kept")
def _():
    with folder() as place:
        path = place + "/log"
        lines = log_of(path, 4)
        kept = json.loads(lines[2])["hash"]
        call = verify(path, "--expect", kept)
        check_equal(call.code, 0, "lines came after it", call)
        check_in("line 3 has that hash, and 1 line came after it", call.out, "which", call)
        write(path, "".join(lines[:2]))
        check_equal(verify(path).code, 0, "without the hash nothing shows")
        check_wrong(path, 0, "no line has the expected hash", "--expect", kept)
        write(path, "")
        check_equal(verify(path).out, f"{path}: no lines\n", "an empty log")
        check_wrong(path, 0, "no line has the expected hash", f"--expect={kept}")


@test("a line that a crash cut off is told of by the next call, and the chain goes on")
def _():
    with folder() as place:
        path = place + "/log"
        lines = log_of(path, 2)
        for cut in (1, len(lines[1]) // 2, len(lines[1]) - 2):
            write(path, lines[0] + lines[1][:cut])
            check_wrong(path, 2, "has no end")
            after = log_of(path, 1)
            check_equal(after[1], lines[1][:cut] + "\n", "what was left stays")
            check_equal(json.loads(after[2])["gap"], 1, "the line that tells of it")
            check_equal((len(after), json.loads(after[3])["status"]), (4, "ok"), "the call's line")
            call = verify(path)
            check_equal(call.code, 0, "verified", call)
            check_in("1 line was cut off", call.out, "it is told", call)
            write(path, after[0] + "{}\n" + "".join(after[2:]))
            check_wrong(path, 3, "tells of lines before it")


@test("a log from before there was a chain goes on as one, and its old lines are counted")
def _():
    with folder() as place:
        path = place + "/log"
        old = '{"time": "2025-01-01T00:00:00.000Z", "status": "ok"}\n' * 3
        write(path, old)
        check_wrong(path, 0, "none of its 3 lines has a hash")
        log_of(path, 2)
        check(read(path).startswith(old), "the old lines are as they were")
        call = verify(path)
        check_equal(call.code, 0, "verified", call)
        check_in("5 lines", call.out, "all lines", call)
        check_in("note: 3 lines before the chain have no hash", call.out, "what is not held", call)


@test("calls that end at the same time make one chain")
def _():
    with folder() as place:
        path = place + "/log"
        held = [vitro_started("run", "--audit", path, "--", "/bin/echo", "x" * 2000,
                              stdout=subprocess.DEVNULL) for _ in range(8)]
        for process, _ in [each.__enter__() for each in held]:
            check_equal(process.wait(30), 0, "exit code")
        for each in held:
            each.__exit__(None, None, None)
        call = verify(path)
        check_equal(call.code, 0, "verified", call)
        check_in("8 lines", call.out, "all of them", call)


@test("a log that somebody keeps locked: nothing runs, and an error in bounded time says so")
def _():
    with folder() as place:
        path = place + "/log"
        words = f"cannot append to '{path}', which another process keeps locked"
        log_of(path, 1)
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            call = vitro("run", "--audit", path, "--", "/bin/echo", "ran")
            check_equal((call.code, call.out), (125, ""), "nothing ran", call)
            check_in(words, call.err, "the message", call)
            check(4 < call.seconds < 20, f"it took {call.seconds} s")
            fcntl.flock(file, fcntl.LOCK_UN)
            # Locked while the command runs: that it went unrecorded is not kept quiet.
            with vitro_started("run", "--audit", path, "--", "/bin/sh", "-c", "echo ran; sleep 1",
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, _):
                check_equal(process.stdout.readline(), b"ran\n", "it runs")
                fcntl.flock(file, fcntl.LOCK_EX)
                _, err = process.communicate(timeout=30)
                check_equal(process.returncode, 125, f"exit code: {err!r}")
                check_in(words, err.decode(), "the message")
        check_equal(len(log_of(path, 1)), 2, "lines afterwards")
        check_equal(verify(path).code, 0, "verified")


@test("a log that is a descriptor, or a pipe, is a chain too")
def _():
    need_proc()
    with folder() as place:
        path = place + "/log"
        with open(path, "ab") as file:
            for _ in range(2):
                call = vitro("run", "--audit", f"/dev/fd/{file.fileno()}", "--", "/bin/true",
                             pass_fds=[file.fileno()])
                check_equal(call.code, 0, "exit code", call)
        check_in("2 lines, as written", verify(path).out, "verified")
        reading, writing = os.pipe()
        call = vitro("run", "--audit", f"/dev/fd/{writing}", "--", "/bin/true", pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        check_equal(json.loads(text)["prev"], ZEROS, "the first of its opener")
        call = run([BINARY, "audit", "verify", "/dev/stdin"], stdin=text)
        check_equal(call.code, 0, "from a pipe", call)


@test("what verify cannot read, or is not told right, is an error of its own")
def _():
    with folder() as place:
        write(place + "/log", "")
        for args, words in ((["verify", place + "/no"], "No such file"),
                            (["verify", place], "Is a directory"),
                            (["verify"], "no file given"),
                            ([], "vitro audit verify FILE"),
                            (["verfy", place + "/log"], "did you mean verify?"),
                            (["verify", place + "/log", "more"], "takes one file"),
                            (["verify", "--expect", "123", place + "/log"], "64 digits"),
                            (["verify", "--expect"], "--expect needs a value"),
                            (["verify", "--timeout", "1s", place + "/log"], "no flag '--timeout'")):
            call = run([BINARY, "audit", *args])
            check_equal((call.code, call.out), (125, ""), f"audit {args}", call)
            check_in(words, call.err, f"audit {args}", call)
        for args in (["help", "audit"], ["audit", "--help"], ["audit", "verify", "-h"]):
            call = run([BINARY, *args])
            check_equal((call.code, call.err), (0, ""), f"{args}", call)
            check(re.search(r"^usage: vitro audit verify", call.out), f"usage\n{call}")


@test("a log that the caller may write and not read is refused before anything runs")
def _():
    if os.geteuid() == 0:
        skip("root may read everything")
    with folder() as place:
        write(place + "/log", "", mode=0o200)
        call = vitro("run", "--audit", place + "/log", "--", "/bin/echo", "ran")
        check_equal((call.code, call.out), (125, ""), "nothing ran", call)
        check_in("it is read as well as written", call.err, "why", call)


if __name__ == "__main__":
    main()
