#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Seccomp profiles in the OCI format: they decide about system calls, and about no other promise."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BIN, ROOT, check, check_equal, check_in, folder, main, need_modes, run, skip, test,
                       vitro, write)

PROFILES = os.environ.get("VITRO_TEST_PROFILES", str(ROOT / "build" / "profiles"))
PYTHON = "/usr/bin/python3"
ALLOW, ERRNO = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"

BUSY = """
import os, subprocess, tempfile, threading
thread = threading.Thread(target=lambda: None)
thread.start()
thread.join()
assert subprocess.run(["/bin/echo", "child"], check=True).returncode == 0
with tempfile.TemporaryFile() as file:
    file.write(b"x")
os.chmod(tempfile.mkdtemp(), 0o700)
print("busy")
"""


def profile(place, action, *rules, name="p.json", **more):
    """Writes a profile of this default action and these rules, and returns its path."""
    return write(f"{place}/{name}",
                 json.dumps({"defaultAction": action, "syscalls": list(rules), **more}))


def rule(action, *names, **more):
    return {"names": names, "action": action, **more}


def well_known(name):
    path = f"{PROFILES}/{name}.json"
    if not os.path.exists(path):
        skip(f"there is no {path}: tools/setup test fetches it")
    return path


for engine in ("docker", "podman"):
    @test(f"honest programs run under the default profile of {engine}", needs=[PYTHON])
    def _(engine=engine):
        need_modes()
        call = vitro("run", "--set", f"syscalls={well_known(engine)}", "--", PYTHON, "-c", BUSY)
        check_equal((call.code, call.out), (0, "child\nbusy\n"), "exit code and output", call)

    @test(f"the default profile of {engine} allows chmod, and setuid bits are denied all the same")
    def _(engine=engine):
        with folder() as place:
            need_modes()
            path = well_known(engine)
            os.chmod(place, 0o777)
            outside = run(["sh", "-c", f"touch {place}/out && chmod 4755 {place}/out && echo set"])
            check_equal(outside.out, "set\n", "the control", outside)
            call = vitro("run", "--write", place, "--set", f"syscalls={path}", "--", "/bin/sh", "-c",
                         f"touch {place}/f && chmod 755 {place}/f && echo plain;"
                         f"chmod 4755 {place}/f || chmod 2755 {place}/f || echo denied")
            check_equal(call.out, "plain\ndenied\n", "output", call)
            check_equal(os.stat(f"{place}/f").st_mode & 0o6000, 0, "setuid bits", call)

    @test(f"explain names the default profile of {engine}")
    def _(engine=engine):
        path = well_known(engine)
        call = vitro("explain", "--set", f"syscalls={path}")
        line = next(line for line in call.out.splitlines() if line.startswith("syscalls"))
        check_in("kernel", line, "the line about system calls", call)
        check_in(path, call.out, "the note about system calls", call)


    @test(f"vitro's filters leave fewer system calls reachable than the default profile of {engine}")
    def _(engine=engine):
        call = run([os.path.join(BIN, "vitro-syscalls"), "--json", well_known(engine)])
        check_equal(call.code, 0, "exit code", call)
        counts = json.loads(call.out)
        reach = {name: fates["passes"] + fates["depends"] for name, fates in counts.items()}
        check(100 < reach["strict"] < reach["default"] < reach["profile"], f"reachable: {reach}")
        check(counts["default"]["passes"] < counts["profile"]["passes"], f"without a look: {counts}")


@test("explain says that a profile decides in the place of vitro's own filter")
def _():
    with folder() as place:
        path = profile(place, ALLOW)
        call = vitro("explain", "--set", f"syscalls={path}")
        check_in(f"the profile {path} decides which calls pass; vitro's default filter is not in force",
                 " ".join(call.out.split()), "the note about system calls", call)


@test("a call that a profile denies fails with its errno, and without the profile it does not")
def _():
    with folder() as place:
        act = ["--", "/bin/sh", "-c", "mkdir $HOME/x && echo made"]
        denied = profile(place, ALLOW, rule(ERRNO, "mkdir", "mkdirat"))
        busy = profile(place, ALLOW, rule(ERRNO, "mkdir", "mkdirat", errnoRet=16), name="q.json")
        call = vitro("run", *act)
        check_equal(call.out, "made\n", "the control", call)
        call = vitro("run", "--set", f"syscalls={denied}", *act)
        check_equal((call.code, call.out), (1, ""), "exit code and output", call)
        check_in("Operation not permitted", call.err, "what mkdir says", call)
        call = vitro("run", "--set", f"syscalls={busy}", *act)
        check_in("Device or resource busy", call.err, "what mkdir says", call)


@test("a profile that kills ends the command with SIGSYS")
def _():
    with folder() as place:
        path = profile(place, ALLOW, rule("SCMP_ACT_KILL_PROCESS", "mkdir", "mkdirat"))
        call = vitro("run", "--set", f"syscalls={path}", "--", "/bin/mkdir", "/tmp/x")
        check_equal(call.code, 128 + 31, "exit code", call)
        check_in("SIGSYS", call.err, "the message", call)


@test("a profile is found beside the policy that names it, and a flag's beside the caller")
def _():
    with folder() as place:
        os.mkdir(place + "/sub")
        profile(place + "/sub", ALLOW, rule(ERRNO, "mkdir", "mkdirat"))
        policy = write(place + "/sub/policy.json", '{"syscalls": "p.json"}')
        act = ["--", "/bin/sh", "-c", "mkdir $HOME/x"]
        for flags, cwd in ((["-p", policy], "/"), (["--set", "syscalls=p.json"], place + "/sub"),
                           (["--set", "syscalls=./sub/p.json"], place)):
            call = vitro("run", *flags, *act, cwd=cwd)
            check_equal(call.code, 1, "exit code", call)
            check_in("not permitted", call.err, "what mkdir says", call)
        call = vitro("run", "-p", policy, "--set", "syscalls=default", *act)
        check_equal(call.code, 0, "exit code where a word took its place", call)


@test("what is wrong with a profile is said, with the file and the place in it, and nothing runs")
def _():
    bad = {
        "defaultAction": {"syscalls": []},
        "'SCMP_ACT_FOO'": {"defaultAction": "SCMP_ACT_FOO"},
        "SCMP_ACT_NOTIFY": {"defaultAction": ALLOW,
                            "syscalls": [rule("SCMP_ACT_NOTIFY", "read")]},
        "listenerPath": {"defaultAction": ALLOW, "listenerPath": "/run/x"},
        "syscalls[1].args[0].op": {"defaultAction": ALLOW, "syscalls": [
            rule(ERRNO, "dup"), rule(ERRNO, "dup2", args=[{"index": 0, "value": 1}])]},
        "unknown key 'arg'": {"defaultAction": ALLOW, "syscalls": [rule(ERRNO, "dup", arg=[])]},
        "contradicts": {"defaultAction": ALLOW, "syscalls": [
            rule(action, "dup", args=[{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}])
            for action in (ERRNO, "SCMP_ACT_TRAP")]},
        "does not allow execve": {"defaultAction": ERRNO, "syscalls": [rule(ALLOW, "read")]},
    }
    with folder() as place:
        for says, content in bad.items():
            path = write(place + "/bad.json", json.dumps(content))
            call = vitro("run", "--set", f"syscalls={path}", "--", "/bin/echo", "ran")
            check_equal((call.code, call.out), (125, ""), "exit code and output", call)
            check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
            check_in(path, call.err, "the message", call)
            check_in(says, call.err, "the message", call)
        for name in ("gone.json", "/dev/zero", place):
            call = vitro("run", "--set", f"syscalls={name}", "--", "/bin/echo", "ran", cwd=place)
            check_equal((call.code, call.out), (125, ""), "exit code and output", call)


@test("a profile may deny what installs it, and the command runs under it")
def _():
    with folder() as place:
        path = profile(place, ALLOW, rule(ERRNO, "seccomp", "prctl", "mkdir", "mkdirat"))
        call = vitro("run", "--set", f"syscalls={path}", "--", "/bin/sh", "-c",
                     "echo ran; mkdir /tmp/x")
        check_equal((call.code, call.out), (1, "ran\n"), "exit code and output", call)


@test("a profile that lets nothing be started ends the call at once, and says so")
def _():
    never = [{"index": 0, "value": 1, "op": "SCMP_CMP_NE"}]
    mute = ["sendto", "sendmsg", "write", "exit_group", "exit"]
    with folder() as place:
        cases = (
            (126, "not permitted", rule(ERRNO, "execve", args=never)),
            (128 + 31, "SIGSYS", rule("SCMP_ACT_KILL_PROCESS", "execve", args=never)),
            # It cannot even tell, nor leave.
            (128 + 11, "SIGSEGV", rule(ERRNO, "execve", *mute, args=never)),
        )
        for code, says, denial in cases:
            path = profile(place, ALLOW, denial)
            call = vitro("run", "--timeout", "20s", "--set", f"syscalls={path}", "--", "/bin/true")
            check_equal(call.code, code, "exit code", call)
            check_in(says, call.err, "the message", call)
            check(call.seconds < 10, f"took long\n{call}")


if __name__ == "__main__":
    main()
