#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Nothing survives a call and nothing hangs: processes, mounts, cgroups and files are looked at."""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, SIGNALS, Before, Failed, cgroups_left, check, check_equal, check_in, init_of, is_bare, main,
                       need_proc, open_terminal, own_cgroups, processes_of, run, skip, started, test, vitro, vitro_command,
                       vitro_started, wait_until)



def ends_soon(*command, flags=(), code=0, out=None, seconds=2.0):
    """The command ends by itself, with nothing left; and so it does when output is captured."""
    for json_flag in ([], ["--json"]):
        call = vitro("run", *json_flag, *flags, "--", *command, timeout=15)
        check_equal(call.code, code, "exit code", call)
        check(call.seconds < seconds, lambda: f"it took {call.seconds:.2f} s\n{call}")
        if out is not None:
            got = call.json["stdout"] if json_flag else call.out
            check_equal(got, out, "stdout", call)


@test("a daemon (double fork, setsid, closed stdio) does not survive")
def _():
    ends_soon(ACTOR, "double_fork_setsid", out="parent ends\n")


@test("a child that ignores every signal does not survive")
def _():
    ends_soon(ACTOR, "child_ignores_term")


@test("a stopped child does not survive", holds=SIGNALS)
def _():
    ends_soon(ACTOR, "stop_child", out="child is stopped\n")


@test("a child that keeps stdout open does not delay the end")
def _():
    ends_soon(ACTOR, "hold_stdout", out="parent ends\n")


@test("a grandchild that prints forever does not delay the end")
def _():
    ends_soon(ACTOR, "print_forever")


@test("a vfork spinner is ended by the deadline")
def _():
    ends_soon(ACTOR, "vfork_spin", flags=["--timeout", "300ms"], code=124)


@test("a stopped command is ended by the deadline")
def _():
    ends_soon(ACTOR, "stop_self", flags=["--timeout", "300ms"], code=124)


@test("a fork bomb is ended by the deadline")
def _():
    ends_soon(ACTOR, "fork_bomb", flags=["--timeout", "500ms", "--pids", "100"], code=124,
              seconds=4)


@test("a fork bomb of the default size is ended by the deadline, or by its memory")
def _():
    # 256 processes that fork on two CPUs starve everybody, the supervisor too: seconds were seen.
    call = vitro("run", "--timeout", "500ms", "--", ACTOR, "fork_bomb", timeout=25)
    check(call.code in (124, 137), f"exit code\n{call}")
    check(call.seconds < 15, f"it took {call.seconds:.2f} s")


@test("a command that closes its stdio still has its exit code")
def _():
    ends_soon(ACTOR, "close_stdio", "100", "7", code=7)


@test("a command that closes its stdio and stays is ended by the deadline")
def _():
    ends_soon(ACTOR, "close_stdio", "60000", flags=["--timeout", "300ms"], code=124)


@test("a fork bomb does not stop another call from forking")
def _():
    if is_bare():
        need_proc()  # which shows how many processes the caller has
    with vitro_started("run", "--timeout", "20s", "--pids", "200", "--", ACTOR, "fork_bomb",
                       stdout=subprocess.PIPE) as (bomb, before):
        check_equal(bomb.stdout.readline(), b"ready\n", "the bomb's first line")
        time.sleep(0.3)
        call = vitro("run", "--pids", "200", "--", ACTOR, "fork_many", "100", leaks=False)
        check_equal((call.code, call.out), (0, "100 of 100\n"), "the neighbour", call)
        bomb.send_signal(signal.SIGTERM)
        bomb.wait(5)
        before.check_nothing_left(bomb.pid)


def interrupted(number, code, part="ignore_term", flags=()):
    with vitro_started("run", "--timeout", "60s", *flags, "--", ACTOR, part,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE) as (process, before):
        check_equal(process.stdout.readline(), b"ready\n", "first line")
        start = time.monotonic()
        process.send_signal(number)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            raise Failed(f"signal {number} does not end vitro") from None
        check(time.monotonic() - start < 1, f"the end took {time.monotonic() - start:.2f} s")
        check_equal(process.returncode, code, "exit code")
        before.check_nothing_left(process.pid)


@test("Ctrl-C ends the cell at once")
def _():
    interrupted(signal.SIGINT, 130)


@test("SIGTERM to vitro ends the cell at once")
def _():
    interrupted(signal.SIGTERM, 143)


@test("SIGHUP to vitro ends the cell at once")
def _():
    interrupted(signal.SIGHUP, 129)


@test("SIGTERM to vitro: with a grace period the command can say goodbye")
def _():
    with vitro_started("run", "--timeout", "60s", "--grace", "5s", "--", ACTOR, "end_on_term",
                       stdout=subprocess.PIPE) as (process, before):
        check_equal(process.stdout.readline(), b"ready\n", "first line")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=5)
        check_equal(out, b"asked to end\n", "last words")
        before.check_nothing_left(process.pid)


@test("a cancelled call says so in its result")
def _():
    with vitro_started("run", "--json", "--timeout", "60s", "--", ACTOR, "sleep_ms", "60000",
                       stdout=subprocess.PIPE) as (process, before):
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=5)
        check_in(b'"cancelled"', out, "result")
        before.check_nothing_left(process.pid)


def killed(flags, part, delay=None):
    """Kills vitro with SIGKILL, at its command's first line or after so many seconds."""
    with vitro_started("run", "--timeout", "60s", *flags, "--", ACTOR, part,
                       stdout=subprocess.PIPE) as (process, before):
        if delay is None:
            check_equal(process.stdout.readline(), b"ready\n", "first line")
        else:
            time.sleep(delay)
        process.kill()
        process.wait(5)
        before.check_nothing_left(process.pid, cgroups=False)
        return cgroups_left(process.pid) - before.cgroups


def leave_some():
    """What a vitro that was killed has left; a call of another test may sweep it at once."""
    if not any(os.access(folder, os.W_OK) for folder in own_cgroups()):
        skip("no cgroup can be made here")
    for _ in range(10):
        left = killed([], "ignore_term")
        if left:
            return left
    raise Failed("a vitro that was killed has left nothing, ten times")


def remove_folders(paths):
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # somebody has swept it
            os.rmdir(path)


@test("a vitro that is killed with SIGKILL takes its cell with it, within a second")
def _():
    for part in ("ignore_term", "fork_bomb", "vfork_spin"):
        killed(["--pids", "50"], part)


@test("a vitro that is killed while it starts leaves nothing running")
def _():
    for tenth in range(0, 100, 4):
        killed([], "ignore_term", tenth / 10000)


@test("what a killed vitro could not remove, the next one does")
def _():
    left = leave_some()
    try:
        vitro("run", "--", "/bin/true")
        wait_until(lambda: not any(map(os.path.exists, left)), 1, f"still there: {left}")
    finally:
        remove_folders(left)


@test("what a vitro that somebody else killed has left is not held against a call; that of an orphan is", root=True)
def _():
    left = leave_some()
    check_equal(cgroups_left(0) & left, set(), "what a call is blamed for, that made none of it")
    remove_folders(left)
    before = Before()
    orphan = int(run([sys.executable, "-c", "import os\nif not os.fork(): print(os.getpid())"]).out)
    folder = next(iter(own_cgroups()))
    place = os.path.join(folder, f"vitro-test-{os.getpid()}")  # where no call of another test sweeps
    path = f"{place}/vitro-{orphan}.1"
    os.makedirs(path)
    try:
        wait_until(lambda: path in before.left(0), 5, "the control: an orphan's is found")
    finally:
        remove_folders([path, place])


@test("a caller that closes vitro's stdout is not waited for")
def _():
    with vitro_started("run", "--timeout", "5s", "--", ACTOR, "big_output", "100000000",
                       stdout=subprocess.PIPE) as (process, before):
        process.stdout.read(10)
        process.stdout.close()
        process.wait(8)
        before.check_nothing_left(process.pid)


@test("a caller that reads slowly does not delay the deadline")
def _():
    with vitro_started("run", "--timeout", "500ms", "--", ACTOR, "big_output", "100000000",
                       stdout=subprocess.PIPE) as (process, before):
        token = before.token

        def cell_is_gone():
            return not {p for p in processes_of(token) if p != process.pid}

        time.sleep(0.5)
        wait_until(cell_is_gone, 2, "the cell has ended though nobody read its output")
        process.stdout.read()
        check_equal(process.wait(5), 124, "exit code")


def at_terminal(key, *command):
    """What a shell with job control says when a key is pressed while it runs a command."""
    ours, theirs = open_terminal()
    seen, pressed, end = b"", False, time.monotonic() + 15
    with started(["sh", "-mc", '"$@"; echo "code $?"', "sh", *command], stdin=theirs, stdout=theirs,
                 stderr=theirs, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)):
        os.close(theirs)
        while b"code " not in seen and time.monotonic() < end:
            if not pressed and b"ready" in seen:
                os.write(ours, key)
                pressed = True
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 4096)
                except OSError:
                    break
    os.close(ours)
    return seen.decode(errors="replace")


@test("Ctrl-Z does not stop vitro: the deadline holds")
def _():
    outside = at_terminal(b"\x1a", "sh", "-c", "echo ready; exec sleep 2")
    check_in(f"code {128 + signal.SIGTSTP}", outside, "outside a command is stopped")
    start = time.monotonic()
    inside = at_terminal(b"\x1a", *vitro_command("run", "--timeout", "1s", "--", ACTOR,
                                                 "ignore_term"))
    check_in("code 124", inside, "inside")
    check(time.monotonic() - start < 3, f"it took {time.monotonic() - start:.2f} s")


@test("a cell's init that is killed takes the command with it")
def _():
    with vitro_started("run", "--timeout", "60s", "--", "/bin/sh", "-c", "pwd; exec sleep 50",
                       stdout=subprocess.PIPE, text=True) as (process, before):
        place = process.stdout.readline().strip()
        check(processes_of(before.token), "it is not seen while it runs")
        os.kill(wait_until(lambda: init_of(process.pid), 5, "its init"), signal.SIGKILL)
        check_equal(process.wait(20), 125, "exit code")
        wait_until(lambda: not processes_of(before.token), 5, "the command's end")
        if place != "/tmp":  # a folder on the host, which init would have removed
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(place)


# Processes that nobody may look at, and that are gone at once.
FLEETING = """if 1:
    import ctypes, os, time
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        if os.fork() == 0:
            ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
            os._exit(0)
        os.wait()
    print("lived on")
"""


@test("a call whose processes are not dumpable, and end while they are looked at, lives on",
      needs=["/usr/bin/python3"])
def _():
    call = vitro("run", "--cpu-time", "20s", "--", "/usr/bin/python3", "-c", FLEETING)
    check_equal((call.code, call.out), (0, "lived on\n"), "exit code and output", call)


@test("what a command leaves in its private folder goes with the call")
def _():
    call = vitro("run", "--", "/bin/sh", "-c", "mkdir -p a/b && echo x > a/b/c && umask 777 && mkdir d && echo made")
    # Where the folder is looked at, one that is closed to the look ends a call that is not over by then.
    looked_at = call.code == 137 and "closed a folder" in call.err
    check_equal((0 if looked_at else call.code, call.out), (0, "made\n"), "exit code and output", call)


@test("a hundred calls in a row leave nothing")
def _():
    for _ in range(100):
        call = vitro("run", "--", "/bin/true", leaks=False)
        check_equal(call.code, 0, "exit code", call)
    vitro("run", "--", "/bin/true")


@test("eight calls at once do not disturb each other")
def _():
    held = [vitro_started("run", "--", "/bin/sh", "-c", f"sleep 0.2; echo {n}; exit {n}",
                          stdout=subprocess.PIPE) for n in range(8)]
    running = [each.__enter__() for each in held]
    try:
        for n, (process, _) in enumerate(running):
            out, _ = process.communicate(timeout=20)
            check_equal((process.returncode, out), (n, f"{n}\n".encode()), f"call {n}")
    finally:
        for each in held:
            each.__exit__(None, None, None)


if __name__ == "__main__":
    main()
