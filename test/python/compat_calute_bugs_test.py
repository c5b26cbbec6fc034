#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the sandbox of calute and xerxes, and not with the drop-in. Each test runs one program by both: the
control is a re-creation of what the framework does, on which it fails."""

import contextlib
import datetime
import os
import socket
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import compat_common
from compat_common import BEST, check_gone, check_survives, new_mark, run_script
from vitrotest import check, check_equal, check_in, folder, main, need_held, test, write

import compat_tools
from calute.security.sandbox import SandboxConfig
from recreations import piped
from vitro.compat.calute import SubprocessSandboxBackend

LATE = 3.0  # seconds: enough for the control to start an interpreter


def backends(form="pickle", **config):
    """The drop-in and the re-creation, of one config."""
    made = SandboxConfig(**config)
    return SubprocessSandboxBackend(made, policy=BEST), piped.SubprocessSandboxBackend(made, form)


def value_of(backend, tool, **arguments):
    """What a call gives, or the text of its error."""
    try:
        return backend.execute(tool, getattr(compat_tools, tool), arguments)
    except RuntimeError as error:
        return str(error)


@contextlib.contextmanager
def reachable():
    """The control's child finds the tests' modules only if the environment says so."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:3])
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]


def by_both(tool, form="pickle", config=None, **arguments):
    with reachable():
        return [value_of(backend, tool, **arguments) for backend in backends(form, **(config or {}))]


@test("print() in a tool corrupts the protocol")
def _():
    ours, theirs = by_both("speak", text="spoken!!")
    check_equal(ours, 8, "the value")
    check_in("Failed to deserialise subprocess sandbox result for tool 'speak'", theirs, "the control")


@test("unpickling in the parent")
def _():
    with folder(writable=True) as place:
        path = os.path.join(place, "left")
        ours, theirs = backends()
        with reachable():
            check_in("Failed to deserialise", value_of(ours, "make_secret", path=path), "the error")
            check(not os.path.exists(path), "the tool ran code here")
            value_of(theirs, "make_secret", path=path)
        with open(path) as file:
            check_equal(int(file.read()), os.getpid(), "the control: who ran it")


@test("async tools succeed with a coroutine's repr")
def _():
    ours, theirs = by_both("add_later", "json", a=2, b=3)
    check_equal(ours, 5, "the value")
    check_in("<coroutine object add_later", theirs, "the control")


@test("a grandchild that holds stdout turns a finished call into a timeout", holds={"processes": "pidns"})
def _():
    marks = new_mark(), new_mark()
    ours, theirs = backends(sandbox_timeout=LATE)
    with reachable():
        check_equal(value_of(ours, "leave_grandchild", mark=marks[0]), True, "the value")
        check_gone(marks[0])
        check_in(f"timed out after {LATE}s", value_of(theirs, "leave_grandchild", mark=marks[1]), "the control")
    check_survives(marks[1])


@test("RLIMIT_AS is per process and silently skipped where it fails")
def _():
    need_held({"memory": "*"})
    # Per process: four of them use what one may not.
    ours, theirs = by_both("take_memory_by_children", config={"sandbox_memory_limit_mb": 192}, count=4, megabytes=80)
    check_in("limits.memory_mb", str(ours), "the limit of the whole call")
    check_equal(theirs, 320, "the control")
    # What cannot be a limit is none there, and the tool runs without one.
    ours, theirs = by_both("take_memory", config={"sandbox_memory_limit_mb": -1}, megabytes=700)
    check_in("limits.memory_mb", str(ours), "the key of what is wrong")
    check_equal(theirs, 700, "the control")


@contextlib.contextmanager
def listener():
    """A server on this machine's loopback that greets whoever comes. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def greet():
            while True:
                try:
                    with server.accept()[0] as sock:
                        sock.sendall(b"hello")
                except OSError:  # it is closed
                    return

        thread = threading.Thread(target=greet)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


@test("network access = False is ignored")
def _():
    need_held({"network": "*"})
    with listener() as port:
        ours, theirs = by_both("connect", port=port)
        check_in("the policy's key is network", ours, "the denial")
        check_equal(theirs, "hello", "the control")
        allowed, _ = backends(sandbox_network_access=True)
        check_equal(value_of(allowed, "connect", port=port), "hello", "network access = True")


@test("the environment is fully inherited")
def _():
    os.environ["COMPAT_SECRET"] = "token"
    try:
        check_equal(by_both("see_variable", name="COMPAT_SECRET"), [None, "token"], "what the tool sees")
    finally:
        del os.environ["COMPAT_SECRET"]


SCRIPT = """
import sys
sys.path.insert(0, %r)
from calute.security.sandbox import SandboxConfig
from %s import SubprocessSandboxBackend
from found_later import triple

def mine(x):
    return triple(x) + 1

backend = SubprocessSandboxBackend(SandboxConfig()%s)
for function in (triple, mine):
    try:
        print(backend.execute(function.__name__, function, {"x": 2}))
    except RuntimeError as error:
        print(str(error).splitlines()[-1])
"""


@test("the parent's sys.path is not forwarded, __main__ functions cannot work")
def _():
    with folder() as place:
        added = os.path.join(place, "added")
        write(os.path.join(added, "found_later.py"), "def triple(x):\n    return x * 3\n")
        ours = run_script(place, SCRIPT % (added, "vitro.compat.calute", f", policy={BEST!r}"))
        check_equal((ours.out, ours.err), ("6\n7\n", ""), "the values", ours)
        theirs = run_script(place, SCRIPT % (added, "recreations.piped", "")).out.splitlines()
        check_in("No module named 'found_later'", theirs[0], "the control: sys.path")
        check_in("Can't get attribute 'mine'", theirs[1], "the control: __main__")


@test("sys.exit gives failed to deserialise")
def _():
    ours, theirs = by_both("leave", code=0)
    check_in("Subprocess sandbox execution of tool 'leave' failed (exit 0): it called sys.exit()", ours, "what happened")
    check_in("Failed to deserialise", theirs, "the control")
    ours, theirs = by_both("leave", code=3)
    start = "Subprocess sandbox execution of tool 'leave' failed (exit 3)"
    check(ours.startswith(start) and theirs.startswith(start), (ours, theirs))


@test("the newer JSON version turns tuples to lists, bytes, sets and dates to text, int keys to strings")
def _():
    ours, theirs = by_both("make_all_kinds", "json")
    check_equal(ours, {"tuple": (1, 2), "bytes": b"\0\xff", "set": {1, 2}, "date": datetime.date(2026, 1, 2), 7: "seven"},
                "the value")
    check_equal(theirs, {"tuple": [1, 2], "bytes": repr(b"\0\xff"), "set": repr({1, 2}),
                         "date": "datetime.date(2026, 1, 2)", "7": "seven"}, "the control")


if __name__ == "__main__":
    compat_common.main(main)
