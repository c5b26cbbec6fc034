# SPDX-License-Identifier: Apache-2.0
"""What the way of a call costs at the least, for bench/python.py.

Two plain interpreters, with a process of C between them that copies what comes (bench/relay.c), as a supervisor does.
Nothing is sealed, bounded, checked or framed. So much of a row is the way itself, and no code of vitro's.

The far one serves all turns itself, or has forks of it serve one each, as a zygote has: these wait, and have rehearsed, so
that what a fresh process costs is in it, too.
"""

import json
import pathlib
import socket
import subprocess
import sys

PEER = '''
import json, os, socket, sys, time

def raw(end, data):
    return data

def with_json(end, data):
    return json.dumps({"value": json.loads(data)["args"][0]}).encode()

def take(end, data):
    memory, got = memoryview(bytearray(int(data))), 0
    end.send(b".")
    while got < len(memory):
        got += end.recv_into(memory[got:])
    return b"."

def give(end, data):
    return bytes(int(data))

def give_array(end, data):
    return memoryview(numpy.ones(int(data), "u1"))

def add(end, data):
    a, b = map(int, data.split())
    return b"%d" % (a + b)

def total(end, data):
    return b"%d" % pandas.Series([*map(int, data.split())]).sum()

kind, forks = sys.argv[1], int(sys.argv[2])
if kind == "give_array":
    import numpy
if kind == "total":
    import pandas
do = globals()[kind]

def serve(end):
    data = end.recv(8192)
    if data:
        end.sendall(do(end, data))
    return bool(data)

def serve_once(end):
    near, far = socket.socketpair()
    near.send({"add": b"2 3", "total": b"2 3"}.get(kind, b"0"))
    serve(far)
    os._exit(0 if serve(end) else 1)

end = socket.socket(fileno=0)
while not forks and serve(end):
    pass
parked = 0
while forks:
    while parked < forks:
        if not os.fork():
            serve_once(end)
        parked += 1
    if os.wait()[1]:
        break
    parked -= 1
    if forks > 1:  # as a pool, which makes no others while calls keep coming
        time.sleep(0.05)
        while parked and os.waitpid(-1, os.WNOHANG)[0]:
            parked -= 1
'''
QUESTION = b"x" * 70  # as long as a call-back on the wire


class Floor:
    """One kind of turn, between this process and a plain one, or as many forks of it as wait for theirs."""

    def __init__(self, binary, kind, forks=0):
        relay = pathlib.Path(binary).parent / "bench" / "vitro-bench-relay"
        self.end, near = socket.socketpair()
        far, theirs = socket.socketpair()
        for one in (self.end, near, far, theirs):  # as a supervisor's: a message of 1 MB goes at once
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.processes = [subprocess.Popen([relay], stdin=near, stdout=far),
                          subprocess.Popen([sys.executable, "-c", PEER, kind, str(forks)], stdin=theirs)]
        for one in (near, far, theirs):
            one.close()
        self.turn = getattr(self, kind)

    def raw(self, _=None):
        self.end.send(QUESTION)
        self.end.recv(8192)

    def with_json(self, _=None):
        self.end.send(json.dumps({"args": [1], "kwargs": {}}).encode())
        json.loads(self.end.recv(8192))

    def take(self, data):
        self.end.send(b"%d" % len(data))
        self.end.recv(1)
        self.end.sendall(data)
        self.end.recv(1)

    def give(self, size):
        self.end.send(b"%d" % size)
        memory, got = memoryview(bytearray(size)), 0
        while got < size:
            got += self.end.recv_into(memory[got:])

    give_array = give

    def add(self, _=None):
        self.end.send(b"2 3")
        assert self.end.recv(64) == b"5"

    total = add

    def close(self):
        self.end.close()
        for process in self.processes:
            process.wait()
