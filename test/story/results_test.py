#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Results and audit lines: where a cell cannot reach them, and never lost in silence."""

import json
import os
import shlex
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (FLAGS, check, check_equal, check_in, folder, main, run, skip, test, vitro,
                       vitro_command, vitro_started, write)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def flags_for(path):
    """The ways to have something written to a file."""
    return ([f"--json={path}"], ["--audit", path], ["--json", "--audit", path])


@test("a result or audit file inside a write grant is refused, and nothing runs")
def _():
    with folder() as place:
        os.mkdir(place + "/ws")
        os.symlink("ws", place + "/link")
        for grant in ("ws", "link"):
            for name in ("ws/r", "link/r"):
                for flags in flags_for(f"{place}/{name}"):
                    call = vitro("run", *flags, "--write", f"{place}/{grant}", "--", "/bin/touch",
                                 place + "/ws/ran")
                    check_equal(call.code, 125, "exit code", call)
                    check_in("may write", call.out + call.err, "the message", call)
                    check(not os.path.exists(place + "/ws/ran"), f"nothing ran\n{call}")
        moved = json.dumps({"from": place + "/ws", "to": "/srv"})
        for flags in flags_for(place + "/ws/r"):
            call = vitro("run", *flags, "--write", moved, "--", "/bin/touch", "/srv/ran")
            check_equal(call.code, 125, "exit code", call)
            check(not os.path.exists(place + "/ws/ran"), f"nothing ran\n{call}")


@test("a policy that the command could change is refused, and nothing runs")
def _():
    if FLAGS:
        skip("calls here ask for best effort, which only warns")
    with folder() as place:
        os.makedirs(place + "/ws/sub")
        os.symlink("../own.json", place + "/ws/link.json")
        os.symlink("ws", place + "/way")
        write(place + "/own.json", "{}")
        write(place + "/ws/own.json", "{}")
        write(place + "/ws/profile.json", '{"defaultAction": "SCMP_ACT_ALLOW"}')
        write(place + "/extends.json", '{"extends": "ws/own.json"}')
        for flags in (["-p", place + "/ws/own.json"], ["-p", place + "/ws/link.json"],
                      ["-p", place + "/way/sub/../own.json"], ["-p", place + "/extends.json"],
                      ["--set", f"syscalls={place}/ws/profile.json"]):
            call = vitro("run", *flags, "--write", place + "/ws", "--", "/bin/touch", place + "/ws/ran")
            check_equal(call.code, 125, "exit code", call)
            check_in("what the next call may do", call.err, "the message", call)
            check(not os.path.exists(place + "/ws/ran"), f"nothing ran\n{call}")


@test("a policy that is denied stays as it is, though the command may write around it",
      holds={"files": "mountns"})
def _():
    with folder() as place:
        os.mkdir(place + "/ws")
        attack = ("--write", place + "/ws", "--", "/bin/sh", "-c",
                  f"cd {place}/ws; rm -f own.json; echo changed >own.json; mv own.json x; true")
        for policy, left in (("/ws/own.json", "{}"), ("/other.json", None)):
            write(place + "/ws/own.json", "{}")
            write(place + policy, "{}")
            call = vitro("run", "-p", place + policy, "--deny", place + policy, *attack)
            check_equal(call.code, 0, "exit code", call)
            found = read(place + "/ws/own.json") if os.path.exists(place + "/ws/own.json") else None
            check_equal(found, left, f"its file, with {policy}")


@test("a result or audit file that is a link, or has no name, is refused in words")
def _():
    with folder() as place:
        os.symlink("other", place + "/link")
        for path in (place + "/link", "/dev/stdout"):
            for flags in flags_for(path):
                call = vitro("run", *flags, "--", "/bin/true")
                check_equal(call.code, 125, "exit code", call)
                check_in(f"{path}: that is a link, which is not followed", call.err + call.out,
                         "the message", call)
        check_equal(os.listdir(place), ["link"], "what is there")
        call = vitro("run", "--audit", "", "--", "/bin/true")
        check_in("--audit: the path is empty", call.err, "the message", call)


def reports(place, flags, grant, prepare="true"):
    """A call in a mount namespace of its own whose command, in its grant, puts another file in place
    of r. Its exit code, and whether the file is what vitro wrote."""
    forge = f"cd {grant}; test -e r && mv r old; echo FORGED > r"
    words = " ".join(map(shlex.quote, vitro_command("run", *flags, "--write", grant, "--",
                                                    "/bin/sh", "-c", forge)))
    return run(["unshare", "-m", "sh", "-c", f"{prepare} && exec {words}"], cwd=place)


@test("another mount of a write grant is no place for a result or audit file", root=True,
      holds={"files": "mountns"})
def _():
    with folder() as place:
        for name in ("w/deep", "other", "aside", "file"):
            os.makedirs(f"{place}/{name}")
        write(place + "/w/f", "")
        write(place + "/one", "")
        bind = f"mount --bind {place}/w {place}/other"
        deep = f"mount --bind {place}/w/deep {place}/aside"
        for prepare, grant, path in (
                (bind, place + "/other", place + "/w/r"), (bind, place + "/w", place + "/other/r"),
                (bind, place + "/other", place + "/w/deep/r"),
                (deep, place + "/w", place + "/aside/r"),
                (f"{bind} && mount --bind {place}/w {place}/w/deep", place + "/other",
                 place + "/w/deep/r"),
                (bind, place + "/other", "w/r")):
            for flags in flags_for(path):
                call = reports(place, flags, grant, prepare)
                check_equal(call.code, 125, "exit code", call)
                check_in("may write", call.out + call.err, "the message", call)
                for name in ("w/r", "w/deep/r", "w/old"):
                    check(not os.path.exists(f"{place}/{name}"), f"{name} is not there\n{call}")
        call = reports(place, [f"--json={place}/one"], place + "/w/f",
                       f"mount --bind {place}/one {place}/w/f")
        check_equal(call.code, 125, "a file that is granted by another mount", call)
        # The same without the mount: each folder is its own.
        for flags in flags_for(place + "/other/r"):
            call = reports(place, flags, place + "/w")
            check_equal(call.code, 0, "the control", call)
            check_equal(read(place + "/w/r"), "FORGED\n", "what the command wrote", call)
            check_in('"ok"', read(place + "/other/r"), "what vitro wrote", call)
            os.remove(place + "/w/r")


@test("a link to a folder that an earlier cell made leads no result or audit file elsewhere")
def _():
    with folder() as place:
        for name in ("ws", "target", "x"):
            os.mkdir(f"{place}/{name}")
        os.symlink(place + "/target", place + "/ws/link")
        os.symlink("ws/link", place + "/far")
        for name in ("ws/link/r", "x/../ws/link/r", "far/r", "ws/../ws/link/r"):
            for flags in flags_for(f"{place}/{name}"):
                for more in ([], ["--read", "/no/such/file"]):
                    call = vitro("run", *flags, *more, "--write", place + "/ws", "--",
                                 "/bin/echo", "ran")
                    check_equal(call.code, 125, "exit code", call)
                    check("ran\n" not in call.out, f"nothing ran\n{call}")
                    check_equal(os.listdir(place + "/target"), [], "what was made there", call)
        for flags in flags_for(place + "/far/r"):
            call = vitro("run", *flags, "--write", place + "/x", "--", "/bin/true")
            check_equal(call.code, 0, "the control: no cell writes to that folder", call)
        check_equal(os.listdir(place + "/target"), ["r"], "what was made there")


@test("a link on the way to a result or audit file that an earlier cell made is refused, or told of")
def _():
    with folder() as place:
        ws, conf = place + "/ws", place + "/home/conf"
        os.makedirs(ws + "/out")
        os.makedirs(conf)
        os.chmod(ws, 0o777)  # root's cell is another user where there are no namespaces
        kept = write(conf + "/r", "kept\n")
        call = vitro("run", "--write", ws, "--", "/bin/sh", "-c",
                     f"cd {ws}; rmdir out; ln -s ../home/conf out")
        check_equal((call.code, call.err), (0, ""), "the earlier call", call)
        os.symlink("ws/out", place + "/far")
        for name in ("ws/out/r", "far/r", "ws/../ws/out/r", "ws/out/../conf/r"):
            for flags in flags_for(f"{place}/{name}"):
                call = vitro("run", *flags, "--read", ws, "--", "/bin/echo", "ran", cwd=place)
                said = call.out + call.err
                check_equal(call.code, 125, "exit code", call)
                check("ran\n" not in call.out, f"nothing ran\n{call}")
                for words in (f"passes the link '{ws}/out'", f"leads to '{conf}'", "name that folder"):
                    check_in(words, said, "the message", call)
                check_equal(read(kept), "kept\n", "the file", call)
        call = vitro("run", "--json=out/r", "--read", ".", "--", "/bin/echo", "ran", cwd=ws)
        check_equal((call.code, read(kept)), (125, "kept\n"), "a relative name", call)
        # By its own name, and where nobody says that cells work there.
        call = vitro("run", f"--json={kept}", "--read", ws, "--", "/bin/true")
        check_equal((call.code, call.err), (0, ""), "by its own name", call)
        for flags in flags_for(ws + "/out/r"):
            call = vitro("run", *flags, "--", "/bin/true")
            check_equal(call.code, 0, "a link elsewhere", call)
            check_equal(call.err, f"vitro: note: {flags[-2] if flags[-1][0] == '/' else '--json'} "
                        f"'{ws}/out/r' passes the link '{ws}/out' and leads to '{conf}'\n",
                        "the note", call)
        call = vitro("run", f"--json={ws}/out/r", "--read", "/no/such/file", "--", "/bin/true")
        check_equal(call.code, 125, "a refusal for another reason", call)
        check_in(f"leads to '{conf}'", call.err, "is written there as well, and that is told", call)


@test("a file for results that is refused is as it was: neither made nor written")
def _():
    with folder() as place:
        os.mkdir(place + "/ws")
        kept = write(place + "/ws/kept", "kept\n")
        for path in (kept, place + "/ws/new"):
            for flags in flags_for(path):
                call = vitro("run", *flags, "--write", place + "/ws", "--", "/bin/true")
                check_equal(call.code, 125, "exit code", call)
        check_equal((read(kept), os.listdir(place + "/ws")), ("kept\n", ["kept"]), "the folder")
        audit = place + "/log"
        call = vitro("run", f"--json={kept}", "--audit", audit, "--write", place + "/ws", "--",
                     "/bin/true")
        check_equal(call.code, 125, "exit code", call)
        check_equal(json.loads(read(audit))["status"], "refused", "the audit log has it", call)


@test("a result or audit file beside a write grant, or in a read grant, is written")
def _():
    with folder() as place:
        os.mkdir(place + "/ws")
        for flags in (["--write", place + "/ws"], ["--read", place]):
            call = vitro("run", *flags, f"--json={place}/ws.json", "--audit", place + "/ws.log",
                         "--", "/bin/true")
            check_equal(call.code, 0, "exit code", call)
        check_equal(json.loads(read(place + "/ws.json"))["status"], "ok", "the result")
        check_equal(len(read(place + "/ws.log").splitlines()), 2, "audit lines")


@test("a link as result or audit file is not followed")
def _():
    with folder() as place:
        write(place + "/precious", "precious\n")
        os.symlink("precious", place + "/link")
        os.symlink("new", place + "/dangling")
        for name in ("link", "dangling"):
            for flags in flags_for(f"{place}/{name}"):
                call = vitro("run", *flags, "--", "/bin/echo", "ran")
                check_equal(call.code, 125, "exit code", call)
                check("ran\n" not in call.out, f"nothing ran\n{call}")
        check_equal(read(place + "/precious"), "precious\n", "what the link leads to")
        check(not os.path.exists(place + "/new"), "nothing was made where it dangled to")


@test("a result file is replaced whole: nothing of a longer one before it is left")
def _():
    with folder() as place:
        path = write(place + "/r.json", "x" * 100_000)
        call = vitro("run", f"--json={path}", "--", "/bin/true")
        check_equal(call.code, 0, "exit code", call)
        check_equal(json.loads(read(path))["status"], "ok", "the result")
        write(path, "y" * 100_000)
        call = vitro("run", f"--json={path}", "--read", "/no/such/file", "--", "/bin/true")
        check_equal(call.code, 125, "exit code", call)
        check_equal(json.loads(read(path))["status"], "refused", "the refusal is a result too")


@test("an existing result file is kept where the flags could not be read")
def _():
    with folder() as place:
        path = write(place + "/r.json", "kept\n")
        for flags in ([f"--json={path}", "--timeout", "5"], ["--timeout", "5", f"--json={path}"],
                      [f"--json={path}", "--no-such-flag"]):
            call = vitro("run", *flags, "--", "/bin/echo", "ran")
            check_equal((call.code, read(path)), (125, "kept\n"), "exit code, file", call)
            check(call.err.startswith("vitro: "), f"it says why\n{call}")


@test("a reader of --json that left: the audit line is there, and the exit code tells")
def _():
    with folder() as place:
        path = place + "/audit.log"
        with vitro_started("run", "--json", "--audit", path, "--", "/bin/sleep", "0.2",
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, before):
            process.stdout.close()
            process.stdout = None
            _, err = process.communicate(timeout=10)
            check_equal(process.returncode, 125, "exit code")
            check(err.startswith(b"vitro: "), f"it says so: {err!r}")
            before.check_nothing_left(process.pid)
        lines = [json.loads(line) for line in read(path).splitlines()]
        check_equal([line["status"] for line in lines], ["ok"], "statuses in the audit log")


def ended(stdout, *flags):
    """vitro with another standard output: its exit code and its messages."""
    with vitro_started("run", *flags, "--", "/bin/echo", "hello", stdout=stdout,
                       stderr=subprocess.PIPE) as (process, _):
        _, err = process.communicate(timeout=10)
        return process.returncode, err.decode()


@test("output and results to a full device: a message, and exit 125")
def _():
    with folder() as place:
        audit = place + "/audit.log"
        for flags in ([], ["--json"], ["--audit", audit], ["--json=/dev/full"],
                      ["--audit", "/dev/full"]):
            with open("/dev/full", "wb") as full:
                code, err = ended(full, *flags)
            check_equal(code, 125, f"exit code with {flags}: {err!r}")
            check(err.startswith("vitro: "), f"a message with {flags}: {err!r}")
            check_in("No space left", err, f"the message with {flags}")
        check_equal(len(read(audit).splitlines()), 1, "audit lines")


@test("flags after the command are the command's")
def _():
    for args, out in ((["echo", "x", "--json"], "x --json\n"),
                      (["--", "echo", "--json"], "--json\n"),
                      (["echo", "--", "--timeout", "5"], "-- --timeout 5\n")):
        call = vitro("run", *args)
        check_equal((call.code, call.out, call.err), (0, out, ""), f"vitro run {args}", call)


@test("a result or audit line among the command's own output is refused, and another descriptor taken")
def _():
    for path in ("/dev/fd/1", "/dev/fd/2", "/dev/stdout", "/dev/stderr"):
        for flags in ([f"--json={path}"], ["--audit", path]):
            call = vitro("run", *flags, "--", "/bin/echo", "ran")
            check_equal(call.code, 125, f"exit code with {flags}", call)
            check("ran\n" not in call.out, f"nothing ran\n{call}")
            if path.startswith("/dev/fd/"):
                check_in("output goes there", call.err, "the message", call)
    call = vitro("run", "--json=/dev/fd/1", "--", "/bin/true")
    check_in("use --json alone", call.err, "what to do", call)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        call = vitro("run", f"--json=/dev/fd/{writing}", "--", "/bin/echo", "ran",
                     pass_fds=[writing])
        os.close(writing)
        check_equal((call.code, call.out), (0, "ran\n"), "a descriptor of its own", call)
        check_equal(json.loads(pipe.read())["status"], "ok", "the result")
    with folder() as place:
        os.mkdir(place + "/ws")
        # Without a /proc the file may be anywhere.
        elsewhere = 0 if os.path.exists("/proc/self") else 125
        for grant, code in (("ws", 125), ("x", elsewhere)):
            os.makedirs(f"{place}/{grant}", exist_ok=True)
            with open(place + "/ws/r", "wb") as file:
                call = vitro("run", f"--json=/dev/fd/{file.fileno()}", "--write",
                             f"{place}/{grant}", "--", "/bin/true", pass_fds=[file.fileno()])
            check_equal(call.code, code, f"a descriptor of a file, with {grant} granted", call)


if __name__ == "__main__":
    main()
