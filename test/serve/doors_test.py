#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Who is let in by a server, what strangers at its doors can do, and what it leaves alone when it opens them."""

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from serving import Client, run_in, serving
from vitrotest import (BINARY, PREFIX, check, check_equal, check_in, folder, isolation, main, run, skip, test,
                       wait_until, write)

LOOSE = {"require": "best-effort"} if isolation().refused else {}
STRANGER = 12345
# Prints what a server says first to a user who connects: by argument, a path, a user or -1, and how often.
KNOCK = """
import os, socket, struct, sys
path, user, times = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if user >= 0:
    os.setgroups([]); os.setgid(user); os.setuid(user)
hello = b'{"do":"hello","version":1}'
said, held = [], []
for _ in range(times):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(path)
    try:
        sock.sendall(struct.pack("<II", len(hello), len(hello)) + hello)
    except OSError:
        pass
    said.append(sock.recv(4096)[8:].decode())
    held.append(sock)
print("\\n".join(said))
"""


def knock(path, user=-1, times=1):
    done = run([sys.executable if user < 0 else "/usr/bin/python3", "-c", KNOCK, path, str(user), str(times)], cwd="/")
    check_equal(done.code, 0, "who knocks", done)
    return done.out.splitlines()


# ---- who is let in -------------------------------------------------------------------------------


@test("root: a server in a user namespace that shows all strangers as its own user lets none of them in", root=True)
def _():
    if run(["unshare", "-U", "true"]).code:
        skip("no user namespace can be made here")
    check_in("serves only that user and root", knock_at(())[0], "the control: a namespace that knows both")
    said = knock_at(("unshare", "-U"))[0]
    check_in("shows user 65534 for all users that it does not map", said, "what it is told")


def knock_at(prefix):
    """What a stranger is told by a server in such a place, whose socket is open to all."""
    with folder() as around:
        os.chmod(around, 0o777)
        path = f"{around}/socket"
        process = subprocess.Popen([*prefix, *PREFIX, BINARY, "serve", "--socket", path], stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: process.poll() is not None or os.path.exists(path), 20, "a server")
            if process.poll() is not None:
                skip(process.stderr.read())
            os.chmod(path, 0o666)
            return knock(path, STRANGER)
        finally:
            process.kill()
            process.communicate()


@test("root: processes outside the server's pid namespace are one client together", root=True)
def _():
    if run(["unshare", "-p", "-f", "--mount-proc", "true"]).code:
        skip("no pid namespace can be made here")
    with folder() as around:
        path = f"{around}/socket"
        inner = subprocess.Popen(["unshare", "-p", "-f", "--mount-proc", "--kill-child", *PREFIX, BINARY, "serve", "--clients",
                                  "100", "--socket", path], stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: inner.poll() is not None or os.path.exists(path), 20, "a server")
            if inner.poll() is not None:
                skip(inner.stderr.read())
            said = knock(path, times=80)
            check_equal(sum('"is":"hello"' in one for one in said), 64, "who is let in")
            check_in("outside the server's pid namespace", said[-1], "what the others are told")
        finally:
            inner.kill()
            inner.communicate()


@test("root: a user who is refused does not fill the log", root=True)
def _():
    with serving() as server:
        os.chmod(server.path, 0o666)
        for said in knock(server.path, STRANGER, 500):
            check_in("serves only that user and root", said, "each is told")
        check(server.said().count("you are user") == 1, server.said()[:2000])


# ---- what it opens, and leaves alone --------------------------------------------------------------


@test("what stands beside the socket's name is left alone: X.new, X.lock, and what is put there meanwhile")
def _():
    with folder() as place:
        path = f"{place}/vitro"
        write(f"{path}.new", "mine")
        process = subprocess.Popen([*PREFIX, BINARY, "serve", "--socket", path], stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(path) or process.poll() is not None, 20, "a server")
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        with open(f"{path}.new", encoding="utf-8") as file:
            check_equal(file.read(), "mine", "X.new")
        check_equal(os.listdir(place), ["vitro.new"], "what it leaves")
        # Somebody else's lock, such as poetry.lock for a socket that is called poetry.
        write(f"{path}.lock", "mine")
        done = run([*PREFIX, BINARY, "serve", "--socket", path])
        check_equal(done.code, 125, "a lock that is none", done)
        check_in("is no lock of a server", done.err, "message", done)
        with open(f"{path}.lock", encoding="utf-8") as file:
            check_equal(file.read(), "mine", "X.lock")
        os.unlink(f"{path}.lock")
        os.mkfifo(f"{path}.lock")
        check_in("is no lock of a server", run([*PREFIX, BINARY, "serve", "--socket", path]).err, "a pipe")
        check(stat.S_ISFIFO(os.stat(f"{path}.lock").st_mode), "the pipe is gone")
        os.unlink(f"{path}.lock")
        # A server whose own name is X.new is not cut off by that of X; nor is a file removed for its metrics.
        with listening(f"{path}.new2"), listening(path):
            with Client(reach(f"{path}.new2")):
                pass
        write(path, "mine")
        check_in("is no socket", run([*PREFIX, BINARY, "serve", "--socket", path]).err, "a file in its place")


def reach(path):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock


@contextlib.contextmanager
def listening(path):
    process = subprocess.Popen([*PREFIX, BINARY, "serve", "--socket", path], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: os.path.exists(path) or process.poll() is not None, 20, "a server")
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


# ---- its log -------------------------------------------------------------------------------------


@test("the policy of a line is a file's name where it is that and nothing else, whatever the client says")
def _():
    with folder() as place:
        log, policy = f"{place}/calls.log", write(f"{place}/strict.json", json.dumps(LOOSE))
        with serving("--audit", log) as server:
            client = server.join(b"PATH=/usr/bin:/bin\0")
            more = {"key": "limits.wall_ms", "value": "9s"}
            pools = [([{"load": policy}], policy), ([], "default"), ([{"load": policy}, more], "the client's own"),
                     ([{"json": json.dumps({**LOOSE, "extends": policy})}], "the client's own"), ([more], "the client's own")]
            if LOOSE:
                pools = [pool for pool in pools if pool[0] and pool[0] != [more]]
            for number, (sources, _name) in enumerate(pools):
                client.pool(number, sources, command="true")
                check_equal(run_in(client, number, number, "true")["status"], "ok", sources)
            with contextlib.suppress(PermissionError):
                client.pool(99, [{"json": json.dumps(LOOSE), "from": policy}], command="true")
                check(False, "a text that says it is part of a file is taken")
        with open(log, encoding="utf-8") as file:
            check_equal([json.loads(line)["policy"] for line in file], [name for _sources, name in pools], "names")


@test("a log that others may open, and so keep locked, is said at the start")
def _():
    with folder() as place:
        log = f"{place}/calls.log"
        with serving("--audit", log) as server:
            check("keep it locked" not in server.said(), server.said())
        os.chmod(log, 0o644)
        with serving("--audit", log) as server:
            check_in(f"the audit log '{log}' has mode 0644: others can open it, and keep it locked", server.said(), "log")


# ---- metrics -------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def get(address, request):
    with socket.socket(socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(address)
        sock.sendall(request.encode())
        said = b""
        with contextlib.suppress(ConnectionResetError):
            while part := sock.recv(1 << 16):
                said += part
        return said.decode()


@test("metrics on a port are for those who ask this host: a page in a browser that has its own name lead here reads nothing")
def _():
    port = free_port()
    with serving("--metrics", f"127.0.0.1:{port}") as server:
        address = "127.0.0.1", port
        for host in (f"127.0.0.1:{port}", "127.0.0.1", f"localhost:{port}", "LOCALHOST", f"[::1]:{port}"):
            check_in("vitro_clients", get(address, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"), host)
        check_in("vitro_clients", get(address, "GET /metrics HTTP/1.0\r\n\r\n"), "without a host")
        for host in (f"evil.example:{port}", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "127.0.0.1:80x", "",
                     "127.0.0.1@evil.example"):
            said = get(address, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n")
            check("vitro_clients" not in said and said.startswith("HTTP/1.0 421 "), f"{host}: {said}")
        said = get(address, f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nhost:evil.example\r\n\r\n")
        check_in("421", said, "two of them")
        check(server.process.poll() is None, "it has ended")
    with folder() as place:
        with serving("--metrics", f"{place}/metrics"):
            check_in("vitro_clients", get(f"{place}/metrics", "GET /metrics HTTP/1.1\r\nHost: any\r\n\r\n"), "at a path")


@test("connections that ask nothing do not shut the metrics, however many they are")
def _():
    port = free_port()
    with serving("--metrics", f"127.0.0.1:{port}"), contextlib.ExitStack() as idle:
        for _ in range(40):
            sock = idle.enter_context(socket.socket())
            sock.connect(("127.0.0.1", port))
        time.sleep(0.2)
        begun = time.monotonic()
        for _ in range(10):
            check_in("vitro_clients", get(("127.0.0.1", port), "GET /metrics HTTP/1.0\r\n\r\n"), "while they are there")
        check(time.monotonic() - begun < 2, "it took long")


main()
