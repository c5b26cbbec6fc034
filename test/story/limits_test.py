#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every limit of a policy holds, and says so."""

import contextlib
import ctypes
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, ESCAPE, IS_ROOT, check, check_equal, check_in, folder, is_bare, main, run,
                       skip, started, test, vitro, vitro_json, vitro_started)



@test("limits.wall_ms, as --timeout in every unit")
def _():
    for given, least in (("300ms", 0.3), ("0.3s", 0.3), ("1s", 1.0)):
        result = vitro_json("run", "--timeout", given, "--", ACTOR, "ignore_term")
        check_equal(result["status"], "timeout", "status", result["call"])
        check(least * 0.95 <= result["call"].seconds < least + 1, f"{given}: {result['call']}")
    result = vitro_json("run", "--set", "limits.wall_ms=300", "--", ACTOR, "ignore_term")
    check_equal(result["status"], "timeout", "status", result["call"])


@test("limits.pids: threads and processes, and the command can go on")
def _():
    for act, kind in (("take_processes", "processes"), ("take_threads", "threads")):
        result = vitro_json("run", "--pids", "20", "--read", ESCAPE, "--", ESCAPE, act, "30")
        got = re.fullmatch(rf"denied: EAGAIN after (\d+) {kind}\n", result["stdout"])
        # Where the user is the caller's own, what else that user runs can come and go.
        wanted = range(10, 30) if is_bare() and not IS_ROOT else (19,)
        check(got and int(got[1]) in wanted, f"beside the command itself\n{result['call']}")
        result = vitro_json("run", "--pids", "40", "--read", ESCAPE, "--", ESCAPE, act, "30")
        check_equal(result["stdout"], f"reached: has 30 {kind}\n", "within the limit",
                    result["call"])
    result = vitro_json("run", "--pids", "64", "--", ACTOR, "fork_many", "200")
    check_equal(result["stdout"], "200 of 200\n", "processes that end are not counted",
                result["call"])


@test("limits.open_files")
def _():
    call = vitro("run", "--set", "limits.open_files=50", "--", "/bin/sh", "-c",
                 "ulimit -n; ulimit -Hn")
    check_equal(call.out, "50\n50\n", "ulimit", call)


@test("limits.open_files: the caller's own hard limit is in the plan, and noted where more is asked for",
      needs=("prlimit",))
def _():
    lower = ("prlimit", "--nofile=500:500")
    says = "limits.open_files: the caller's own hard limit (ulimit -Hn) is lower and holds: 500"
    call = vitro("run", "--set", "limits.open_files=1048576", "--", "/bin/sh", "-c", "ulimit -n", prefix=lower)
    check_equal((call.out, call.err), ("500\n", f"vitro: note: {says}\n"), "ulimit and note", call)
    call = vitro("explain", "--set", "limits.open_files=1048576", prefix=lower)
    check_in("500 open at once", call.out, "explain", call)
    check_in(says, " ".join(call.out.split()), "explain's note", call)
    call = vitro("run", "--", "/bin/sh", "-c", "ulimit -n", prefix=lower)
    check_equal((call.out, call.err), ("500\n", ""), "of the default nobody asked for", call)


@test("limits.file_mb: a file that grows past it, in a write grant")
def _():
    with folder() as place:
        os.chmod(place, 0o777)
        result = vitro_json("run", "--set", "limits.file_mb=2", "--write", place, "--",
                            "/bin/sh", "-c", f"head -c 5000000 /dev/zero > {place}/large")
        check(result["status"] in ("error", "crashed"), f"{result['call']}")
        check_equal(os.path.getsize(place + "/large"), 2 << 20, "size on the host")


@test("limits.tmp_mb bounds /tmp and /dev/shm together", holds={"files": "mountns"})
def _():
    result = vitro_json("run", "--set", "limits.tmp_mb=8", "--", "/bin/sh", "-c",
                        "head -c 6000000 /dev/zero > /tmp/a && echo first;"
                        "head -c 6000000 /dev/zero > /dev/shm/b && echo second; exit 0")
    check_equal(result["stdout"], "first\n", "what fits", result["call"])


@test("limits.cpus: half a CPU gives about half the time")
def _():
    result = vitro_json("run", "--cpus", "0.25", "--", ACTOR, "burn_for", "1500")
    if result["status"] == "refused":
        check_in("limits.cpus", result["error"]["message"], "the refusal names the key")
        skip(f"refused here: {result['error']['message']}")
    if result["isolation"]["cpus"] == "none":
        skip("nothing holds it here, and best effort is asked for")
    check(100 < int(result["stdout"]) < 700, f"CPU ms of 1500: {result['call']}")


@test("limits.memory_mb in every unit", holds={"memory": "*"})
def _():
    for size in ("64M", "65536K", "0.0625G"):
        result = vitro_json("run", "--memory", size, "--", ACTOR, "eat_heap", "300")
        check_equal(result["status"], "memory_limit", f"status with {size}", result["call"])
        check_in("64 MB", result["error"]["message"], "the message says the limit")


@test("limits.memory_mb: where it is sampled, a burst passes it by no more than is stated, also on a busy machine",
      holds={"memory": "watchdog"})
def _():
    with folder() as place, contextlib.ExitStack() as busy:
        file = os.path.join(place, "touched")
        for _ in range(2):
            busy.enter_context(started([sys.executable, "-c", "while True: pass"]))
        for size in (384, 768) * int(os.environ.get("VITRO_BURSTS", "2")):
            with open(file, "wb") as out:
                out.write(bytes(8))
            os.chmod(file, 0o666)
            result = vitro_json("run", "--memory", "256M", "--write", place, "--", ACTOR, "burst", str(size), file)
            with open(file, "rb") as made:
                over = int.from_bytes(made.read(8), sys.byteorder) - 256
            stated = int(re.search(r"by up to about (\d+) MB", result["isolation"]["notes"]["memory"])[1])
            check(over <= stated, f"{over} MB above the limit, {stated} are stated\n{result['call']}")
            check(result["status"] == "memory_limit" or over < 0 or size - 256 <= stated, f"{result['call']}")


@test("limits.file_mb: the message names the limit that was passed, the caller's own too", needs=["prlimit"])
def _():
    for prefix, says in (([], "limits.file_mb (2 MB)"),
                         (["prlimit", "--fsize=1048576"], "the caller's own limit, 1024 KB")):
        result = vitro_json("run", "--set", "limits.file_mb=2", "--", "/bin/sh", "-c",
                            "exec head -c 3000000 /dev/zero > $HOME/f", prefix=prefix)
        check_equal(result["status"], "crashed", "status", result["call"])
        check_in(says, result["error"]["message"], "the message", result["call"])


QUEUE = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0), backlog=500)
ends, queued, want = [], 0, int(sys.argv[1]) << 20
while queued < want and len(ends) < 400:
    ends += [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    ends[-2].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    ends[-2].settimeout(0.02)
    try:
        while queued < want:
            queued += ends[-2].send(bytes(65536))
    except TimeoutError:
        pass
print(queued >> 20)
"""


@test("limits.memory_mb: what sockets of a loopback have queued is bounded, too", needs=["/usr/bin/python3"],
      holds={"memory": ("cgroup-v1", "cgroup-v2"), "network": "netns"})
def _():
    check_equal(run(["/usr/bin/python3", "-c", QUEUE, "200"]).out, "200\n", "outside, the control")
    result = vitro_json("run", "--net", "loopback", "--memory", "32M", "--", "/usr/bin/python3", "-c", QUEUE, "200")
    check(result["status"] == "memory_limit" or int(result["stdout"]) <= 80, f"{result['call']}")


@test("CPUs, schedulers and priorities of one's own threads and children can be set",
      holds={"processes": "pidns"})
def _():
    call = vitro("run", "--", ACTOR, "own_priority")
    check_equal((call.code, call.out), (0, "thread: Success\ndone\n"), "output", call)


@test("inotify: a cell that takes all instances leaves the caller some, and the next cell too",
      holds={"processes": "pidns"})
def _():
    libc = ctypes.CDLL(None, use_errno=True)
    with vitro_started("run", "--", ACTOR, "hold_watchers",
                       stdout=subprocess.PIPE) as (process, before):
        got = int(process.stdout.readline())
        check(8 <= got <= 32, f"the cell got {got}")
        fd = libc.inotify_init1(os.O_CLOEXEC)
        check(fd >= 0, f"outside: {os.strerror(ctypes.get_errno())}")
        os.close(fd)
        call = vitro("run", "--read", ESCAPE, "--", ESCAPE, "take_watchers", "8", leaks=False)
        check_in("reached", call.out, "another cell", call)
        process.terminate()
        process.wait(5)
        before.check_nothing_left(process.pid)


@test("a cell that has all descriptors on their way that it may does not stop another", needs=("prlimit",))
def _():
    if IS_ROOT:
        skip("each of root's cells has an id of its own, and so a count of its own")
    send = ("import array, socket; a, b = socket.socketpair(); "
            "a.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0]))])")
    with folder() as place, \
            vitro_started("run", "--set", "limits.open_files=600", "--", ACTOR, "hold_rights",
                          stdout=subprocess.PIPE) as (process, before):
        check_equal(process.stdout.readline().split()[1:], [b"ETOOMANYREFS"], "the flood's end")
        # The control: the count is the user's, and a program with no higher limit cannot send.
        control = run(["prlimit", "--nofile=500", sys.executable, "-c", send])
        check_in("Too many references", control.err, "a send outside", control)
        for flags in ([], ["--read", place]):
            call = vitro("run", "--set", "limits.open_files=500", *flags, "--", "/bin/sh", "-c",
                         "ulimit -n; ulimit -Hn", leaks=False, prefix=("prlimit", "--nofile=500:"))
            check_equal(call.out, "500\n500\n", f"another cell, {flags}", call)
        process.terminate()
        process.wait(5)
        before.check_nothing_left(process.pid)


def on_time(*part, flags, codes, seconds):
    call = vitro("run", "--timeout", "1s", *flags, "--", ACTOR, *part, timeout=20)
    check(call.code in codes, f"exit code\n{call}")
    check(call.seconds < seconds, f"it took {call.seconds:.2f} s\n{call}")


@test("limits.wall_ms: fifty processes that spin and hold the locks of their memory")
def _():
    on_time("hog", "50", "24", flags=["--pids", "300", "--memory", "512M"], codes=(124,), seconds=3)


@test("limits.wall_ms: the same with more memory than there may be")
def _():
    on_time("hog", "50", "300", flags=["--pids", "300", "--memory", "128M"], codes=(124, 137),
            seconds=3)


@test("core dumps are off, whatever the caller's limit", needs=["/usr/bin/python3"])
def _():
    # 1, not 0: a core_pattern with a pipe ignores 0, and runs its program on the host
    call = vitro("run", "--", "/usr/bin/python3", "-c",
                 "import resource; print(*resource.getrlimit(resource.RLIMIT_CORE))",
                 preexec_fn=lambda: resource.setrlimit(
                     resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2))
    check_equal(call.out, "1 1\n", "the limit", call)


if __name__ == "__main__":
    main()
