#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Sockets whose closing waits, sent to a supervisor by whoever can speak to it: nobody else waits for them.

A TCP connection whose peer does not read, with SO_LINGER: whoever closes the last descriptor of it sleeps until the peer has
read all. One that goes with SCM_RIGHTS to somebody that has no room for it is closed by the receiver, in recv() or in close().
The control of each is the same with a linger of 0, whose close returns at once."""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
from sandboxes import BEST
from vitrotest import vitro as vitro_run
from vitrotest import BINARY, WITHIN, check, check_equal, folder, test, wait_until

import vitro

NAP_MS, LATE_MS = 250, 100  # a neighbour's deadline, and how late it may be told
CALL, FROZEN = 1.2, 4  # s: how long a call attacks, and that is waited for the neighbour
def has_option():
    with socket.socket(socket.AF_UNIX) as end, contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, 83, 0)  # SO_PASSRIGHTS
        return True
    return False


KERNEL_BARS = has_option()
TCP = {**BEST, "network": "loopback"}

# Makes such a connection, and sends it behind so many bytes over a stream. `kept` has the peer, which never reads.
SENDS = """
import array, socket, struct
kept = []
def lingering():
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen()
    near = socket.create_connection(door.getsockname())
    kept.append(door.accept()[0])
    near.setblocking(False)
    try:
        while True:
            near.send(b"x" * 65536)
    except BlockingIOError:
        pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SECONDS))
    return near
def send(stream, near, data):
    try:
        stream.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [near.fileno()]))], FLAGS)
        stream.sendall(b"behind")
    except OSError as error:
        kept.append(near)
        return error.strerror
    near.close()  # before the other side does, or it is us who wait
    return "sent"
"""

# Of code in a cell: on the socket that its call came by, while nobody reads that.
CALLS = """
import os, time
stream, near = socket.socket(fileno=os.dup(3)), lingering()
print("ready", flush=True)
time.sleep(0.2)
said = send(stream, near, b"x")
print(said, flush=True)
time.sleep(AWHILE)
for peer in kept:
    peer.close()
"""

# Of a client's process: connects so often, and goes when it is told to.
CONNECTS = """
import os, sys
path, uid, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
nears, ends = [lingering() for _ in range(times)], []
if uid >= 0:
    os.setresuid(uid, uid, uid)
for near in nears:
    end = socket.socket(socket.AF_UNIX)
    end.connect(path)
    print(send(end, near, b"x"), flush=True)
    ends.append(end)
sys.stdin.read()
"""


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def attacker(server, how, path=None, uid=-1, times=1):
    """Another process that has connected so often, and sent such a connection each time, before anybody looked."""
    words = [path or server.path, str(uid), str(times)]
    with subprocess.Popen([sys.executable, "-c", how + CONNECTS, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            with stopped(server.pid):
                said = {process.stdout.readline().decode().strip() for _ in range(times)}
            yield said
        finally:
            process.kill()


@contextlib.contextmanager
def machine(poorer):
    """Where the package finds a vitro whose kernel has SO_PASSRIGHTS, or has not."""
    if not poorer:
        yield BINARY
        return
    with folder() as place:
        path = os.path.join(place, "vitro")
        with open(path, "w") as file:
            file.write(f'#!/bin/sh\nexec {WITHIN} --no-passrights -- {BINARY} "$@"\n')
        os.chmod(path, 0o755)
        os.environ["VITRO_BINARY"] = path
        try:
            yield path
        finally:
            os.environ["VITRO_BINARY"] = BINARY


@contextlib.contextmanager
def serving(binary, *flags, wide=False):
    """A server in a folder: its socket's path. wide: others may connect."""
    with folder() as place, contextlib.ExitStack() as stack:
        path, more = os.path.join(place, "socket"), {}
        if wide:
            os.chmod(place, 0o755)
            door = stack.enter_context(socket.socket(socket.AF_UNIX))
            door.bind(path)
            os.chmod(path, 0o666)
            door.listen()
            flags = (*flags, "--fd", str(door.fileno()))
            more = {"pass_fds": [door.fileno()]}
        else:
            flags = (*flags, "--socket", path)
        words = [binary, "serve", *(word.replace("PLACE", place) for word in flags)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more) as server:
            try:
                wait_until(lambda: os.path.exists(path), 10, "it serves")
                server.path = path
                yield server
            finally:
                server.kill()


def lateness(nap, act, expected):
    """How many ms late the deadline of a call is told that is made while something is done."""
    told = []

    def wait():
        begun = time.monotonic()
        status = nap().status
        told.append((time.monotonic() - begun, status))

    thread = threading.Thread(target=wait)
    with act() as said:
        thread.start()
        thread.join(FROZEN)
        is_frozen = thread.is_alive()
    thread.join()
    took, status = told[0]
    if expected and not is_frozen:
        check_equal(said, expected, "what became of what was sent")
    check(status == "timeout", f"the neighbour's call: {status}")
    return FROZEN * 1000 if is_frozen else round(took * 1000) - NAP_MS


def holds(what, poorer, nap, act):
    """The neighbour's deadline is no later by the attack than by its control, which says how busy the machine is. Out of band
    is a byte that a read drops, and a look does not see."""
    expected, best = {"sent"} if poorer or not KERNEL_BARS else {"Operation not permitted"}, 0
    for seconds, flags in ((0, 0), (3600, 0), *([(3600, socket.MSG_OOB)] if poorer else ())):
        how, late = f"SECONDS, FLAGS, AWHILE = {seconds}, {flags}, {FROZEN + 1}\n{SENDS}", []
        while len(late) < 4 and (not late or min(late) > best + LATE_MS):
            late.append(lateness(nap, lambda: act(how), expected))
        best = best or min(late)
        print(f"# {what}, poorer {poorer}, linger {seconds}, flags {flags}: {late}", flush=True)
        check(min(late) <= best + LATE_MS, f"{what}, with a linger of {seconds} s: a neighbour's deadline is late by {late} ms")


def napping(socket=None):
    box = vitro.Sandbox({**BEST, "limits": {"wall_ms": NAP_MS}}, socket=socket)
    box.run(["true"])
    return box, lambda: box.run(["sleep", "20"], result=True)


@contextlib.contextmanager
def calling(box, pid, how, policy=None):
    """Code in a cell that attacks, for a while."""
    heard, results = queue.Queue(), []
    options = {"policy": policy, "result": True}
    box.eval("1", **options)
    thread = threading.Thread(target=lambda: results.append(box.eval(
        how + CALLS, timeout=CALL, on_output=lambda _, text: heard.put(text), **options)))
    thread.start()
    said = set()
    try:
        check_equal(heard.get(timeout=20), "ready\n", "the cell")
        with stopped(pid):
            time.sleep(0.4)
        with contextlib.suppress(queue.Empty):
            said.add(heard.get(timeout=0.5).strip())
        yield said
    finally:
        thread.join()


def kinds():
    """Whether the kernel is to be as one without SO_PASSRIGHTS."""
    return (False, True) if KERNEL_BARS else (False,)


@test("freeze: from a cell of a server")
def _():
    for poorer in kinds():
        with machine(poorer) as binary, serving(binary) as server:
            box, nap = napping(server.path)
            with box, vitro.Sandbox(TCP, socket=server.path) as other:
                holds("a cell of a server", poorer, nap, lambda how: calling(other, server.pid, how))


@test("freeze: from a cell of a private supervisor")
def _():
    for poorer in kinds():
        with machine(poorer):
            box, nap = napping()
            with box:
                pid = box._session.connection.process.pid
                holds("a cell of a private supervisor", poorer, nap, lambda how: calling(box, pid, how, TCP))


def from_clients(what, *flags, wide=False, **options):
    for poorer in kinds():
        with machine(poorer) as binary, serving(binary, *flags, wide=wide) as server:
            box, nap = napping(server.path)
            with box:
                holds(what, poorer, nap, lambda how: attacker(server, how, **options))


@test("freeze: from a client of a server")
def _():
    from_clients("a client")


@test("freeze: from a user who is refused", root=True)
def _():
    from_clients("a refused user", wide=True, uid=65521)


@test("freeze: from a client that is turned away")
def _():
    from_clients("one client too many", "--clients", "1", times=3)


@contextlib.contextmanager
def serving_later(binary, how):
    """A server that is given a socket at which somebody waits, and has sent something."""
    with folder() as place, socket.socket(socket.AF_UNIX) as door:
        path = os.path.join(place, "socket")
        door.bind(path)
        door.listen()
        with subprocess.Popen([sys.executable, "-c", how + CONNECTS, path, "-1", "2"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as early:
            check_equal({early.stdout.readline() for _ in range(2)}, {b"sent\n"}, "before there is a server")
            with subprocess.Popen([binary, "serve", "--fd", str(door.fileno())], pass_fds=[door.fileno()],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
                try:
                    yield path
                finally:
                    early.kill()
                    server.kill()


@test("freeze: from clients that connected before the server began")
def _():
    for poorer in kinds():
        for seconds in (0, 3600):
            how = f"SECONDS, FLAGS, AWHILE = {seconds}, 0, 0\n{SENDS}"
            with machine(poorer) as binary, serving_later(binary, how) as path:
                served = []
                thread = threading.Thread(target=lambda: served.append(napping(path)[0].close()), daemon=True)
                thread.start()
                thread.join(2 * FROZEN)
                check(served, f"linger {seconds}, poorer {poorer}: nobody is served")


@test("freeze: from whoever writes to the standard input of a run")
def _():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for seconds in (0, 3600):
            scope = {}
            exec(f"SECONDS, FLAGS = {seconds}, 0\n{SENDS}", scope)
            check_equal(scope["send"](ours, scope["lingering"](), b"x"), "sent", "on the input")
            begun = time.monotonic()
            done = vitro_run("run", "--set", f"limits.wall_ms={NAP_MS}", "--", "sleep", "20", stdin=theirs)
            check_equal(done.code, 124, "how it ends", done)
            check(time.monotonic() - begun < FROZEN, f"linger {seconds}: the deadline is not held")
            for peer in scope["kept"]:
                peer.close()
            theirs.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                theirs.recv(100)


@test("freeze: from readers of metrics")
def _():
    with folder() as place:
        path = os.path.join(place, "metrics")
        from_clients("a reader of metrics", "--metrics", path, path=path)
        from_clients("20 readers of metrics", "--metrics", path, path=path, times=20)


pythons.main("system")
