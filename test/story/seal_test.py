#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The making of a cell: what init keeps, and paths that mislead while they are mounted."""

import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, IS_ROOT, check, check_equal, check_in, children, folder, init_of,
                       is_bare, landlock_abi, main, need_power, proc, run, skip, test, vitro, vitro_started,
                       wait_until, write)


@contextlib.contextmanager
def init_of_call(*flags, **options):
    """The pid of init while its command runs."""
    with vitro_started("run", *flags, "--", "/bin/sh", "-c", "echo ready; sleep 20",
                       stdout=subprocess.PIPE, **options) as (process, _):
        check_equal(process.stdout.readline(), b"ready\n", "first line")
        yield wait_until(lambda: init_of(process.pid), 5, "its init")


@test("init has no capability and can gain none while the command runs")
def _():
    def powers():
        lines = proc(f"{init}/status").decode().splitlines()
        check(lines, "init is not seen")
        return {line for line in lines if line.startswith(("CapEff", "CapPrm", "CapInh"))
                and line.split()[1].strip("0")}

    with init_of_call() as init:
        wait_until(lambda: not powers(), 5, "init gives up its capabilities")


@test("init keeps nothing of the caller's environment, and no descriptor but its socket and its occupant's",
      root=True)
def _():
    need_power(19, "CAP_SYS_PTRACE")
    secret = "secret-of-the-caller"
    with init_of_call(env={**os.environ, "SECRET": secret}) as init:
        parent = pathlib.Path(f"/proc/{init}/status").read_text().split("PPid:")[1].split()[0]
        environ = pathlib.Path(f"/proc/{parent}/environ").read_bytes()
        check_in(secret.encode(), environ, "vitro's own environment has it")
        environ = pathlib.Path(f"/proc/{init}/environ").read_bytes()
        check(secret.encode() not in environ, f"init's environment: {environ}")

        def kept():
            return {os.readlink(f"/proc/{init}/fd/{fd}") for fd in os.listdir(f"/proc/{init}/fd")}

        def is_little():
            kinds = sorted(name.split(":")[0] for name in kept())
            # Without namespaces it sees that vitro dies by itself, and removes the private folder
            # from the one around it.
            return kinds == ["anon_inode", "socket"] or is_bare() and re.fullmatch(
                r"/\S* /\S*/vitro-\w+ anon_inode socket", " ".join(kinds))

        wait_until(is_little, 5, f"a socket and the occupant's pidfd are all that is open: {kept()}")


class Swapper:
    """Exchanges two names of a folder as fast as it can, until it is told to stop."""

    EXCHANGE = 2

    def __init__(self, one, other):
        self.names = one.encode(), other.encode()
        self.over = False
        self.thread = threading.Thread(target=self.swap, daemon=True)

    def swap(self):
        libc = ctypes.CDLL(None, use_errno=True)
        while not self.over:
            libc.renameat2(-100, self.names[0], -100, self.names[1], self.EXCHANGE)
            time.sleep(0.0003)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.over = True
        self.thread.join()


@test("a folder that is swapped for a link to /proc while it is mounted: the host's is never shown",
      holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/open/file", "open\n")
        os.symlink("/proc", place + "/link")
        look = "test -e /in/version && echo proc; test -e /in/file && echo open"
        shown = caught = 0
        end = time.monotonic() + 40
        with Swapper(place + "/open", place + "/link"):
            while (shown < 5 or caught < 3) and time.monotonic() < end:
                result = vitro("run", "--json", "--read",
                               json.dumps({"from": place + "/open", "to": "/in"}), "--",
                               "/bin/sh", "-c", look, leaks=False).json
                if result["status"] == "ok":
                    check_equal(result["stdout"], "open\n", "what is there", result)
                    shown += 1
                elif "replaced while it was being mounted" in result["error"]["message"]:
                    caught += 1
                else:  # the plan has seen the link, or neither
                    check_equal(result["stdout"] or "", "", "nothing ran", result)
        check(shown and caught, f"the race was not run: {shown} shown, {caught} caught")


@test("a folder that is swapped for a link to /proc while its rule is made: no rule is for the host's",
      holds={"processes": "landlock-scope"})
def _():
    with folder() as place:
        write(place + "/open/file", "open\n")
        os.symlink("/proc", place + "/link")
        if not run(["cat", "/proc/cmdline"]).out:
            skip("/proc/cmdline cannot be read outside either")
        look = f"cat {place}/open/file 2>/dev/null; cat /proc/cmdline 2>/dev/null; :"
        shown = caught = 0
        end = time.monotonic() + 40
        with Swapper(place + "/open", place + "/link"):
            while (shown < 5 or caught < 3) and time.monotonic() < end:
                result = vitro("run", "--json", "--read", place + "/open", "--", "/bin/sh", "-c", look,
                               leaks=False).json
                if result["status"] == "ok":
                    check_in(result["stdout"], ("open\n", ""), "what is there", result)
                    shown += 1
                elif "what was there before" in result["error"]["message"]:
                    caught += 1
                else:  # the plan has seen the link, or neither
                    check_equal(result["stdout"] or "", "", "nothing ran", result)
        check(shown and caught, f"the race was not run: {shown} shown, {caught} caught")


@test("a mount's place that leads through a link in a granted folder: nothing is mounted elsewhere",
      holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/given/file", "given\n")
        os.makedirs(place + "/desk/real/sub")
        target = json.dumps({"from": place + "/given", "to": place + "/desk/real/sub"})
        call = vitro("run", "--read", place + "/desk", "--read", target, "--", "/bin/cat",
                     place + "/desk/real/sub/file")
        check_equal(call.out, "given\n", "without a link it is there", call)
        os.symlink("real", place + "/desk/beside")
        os.symlink("../" * 20 + place + "/desk/real", place + "/desk/above")
        os.symlink(place + "/desk/real", place + "/desk/whole")
        for link in ("beside", "above", "whole"):
            target = json.dumps({"from": place + "/given", "to": f"{place}/desk/{link}/sub"})
            call = vitro("run", "--read", place + "/desk", "--read", target, "--",
                         "/bin/echo", "ran")
            check_equal((call.code, call.out), (125, ""), f"through {link}", call)


@test("--net host: an abstract socket of the host cannot be reached, though unix sockets work",
      needs=["/usr/bin/python3"], holds={"processes": "pidns"})
def _():
    if landlock_abi() < 6:
        skip(f"stands on Landlock ABI 6; this kernel has {landlock_abi()}")
    name = "test-" + os.urandom(8).hex()
    act = ["/usr/bin/python3", "-c", f"""
import socket
inside = socket.socket(socket.AF_UNIX)
inside.bind("\\0{name}-own")
inside.listen()
socket.socket(socket.AF_UNIX).connect("\\0{name}-own")
print("own")
socket.socket(socket.AF_UNIX).connect("\\0{name}")
print("host's")
"""]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + name)
        listener.listen()
        check_equal(run(act).out, "own\nhost's\n", "outside")
        call = vitro("run", "--net", "host", "--", *act)
        check_equal(call.out, "own\n", "inside", call)


@test("a socket, a pipe and a device are no grants")
def _():
    with folder() as place, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place + "/socket")
        os.mkfifo(place + "/pipe")
        names = [place + "/socket", place + "/pipe"]
        if IS_ROOT:
            os.mknod(place + "/device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            names.append(place + "/device")
        for name in names:
            for flag in ("--read", "--write"):
                call = vitro("run", flag, name, "--", "/bin/echo", "ran")
                check_equal((call.code, call.out), (125, ""), f"{flag} {name}", call)
                check_in("only files and folders can be granted", call.err, "why", call)


@test("limits.cpu_ms: one process that burns ends though the supervisor is stopped")
def _():
    with vitro_started("run", "--set", "limits.cpu_ms=500", "--timeout", "50s", "--", ACTOR,
                       "burn_cpu", stdout=subprocess.PIPE) as (process, _):
        init = wait_until(lambda: init_of(process.pid), 5, "it runs")
        process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: not children(init), 30, "the process ends by itself")
        finally:
            process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    main()
