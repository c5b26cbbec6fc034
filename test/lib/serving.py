# SPDX-License-Identifier: Apache-2.0
"""A server of a test's own, and its clients by the wire."""

import contextlib
import json
import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "wire"))
from client import Client
from vitrotest import BINARY, PREFIX, cgroups_left, check, check_equal, folder, skip, started, wait_until


class Server:
    """One of the test's own. said: its log so far."""

    def __init__(self, place, process):
        self.place, self.process, self.path, self.log = place, process, f"{place}/socket", f"{place}/log"
        self.clients = []

    def said(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def join(self, environment=b"", cwd="/"):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(self.path)
        sock.settimeout(30)
        client = Client(sock)
        client.say({"do": "hello", "version": 1, "cwd": cwd}, environment)
        client.until(lambda: client.version)
        self.clients.append(client)
        return client

    def rss_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) >> 10 for line in file if line.startswith("VmRSS"))


@contextlib.contextmanager
def serving(*flags, prefix=()):
    """A server; prefix: what it is started by, which becomes it."""
    before = cgroups_left(0)
    with folder() as place:
        os.chmod(place, 0o755)
        with open(f"{place}/log", "wb") as log:
            with started([*prefix, *PREFIX, BINARY, "serve", "--socket", f"{place}/socket", *flags], stderr=log) as process:
                server = Server(place, process)
                wait_until(lambda: process.poll() is not None or "serving" in server.said(), 20, "a server")
                if process.poll() is not None and "refused: " in server.said():
                    skip(server.said())
                check(process.poll() is None, server.said)
                yield server
                for client in server.clients:
                    client.sock.close()
                process.send_signal(signal.SIGTERM)
                check_equal(process.wait(20), 0, "its end")
        wait_until(lambda: not cgroups_left(process.pid) - before, 2, "the end of its cgroups")


def call_tool(client, number, name, **arguments):
    """A call of one of the server's own tools."""
    client.calls[number] = {"id": "c", "pool": -1, "command": True, "output": None, "ask": None, "logs": []}
    client.pools[-1] = {}, b"null"
    client.say({"do": "tool", "call": number, "tool": name, "id": "c"}, json.dumps(arguments).encode())
    return client.wait(number)


def run_in(client, number, pool, *words):
    client.call(number, pool, words=words)
    return client.wait(number)
