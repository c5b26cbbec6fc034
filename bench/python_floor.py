# SPDX-License-Identifier: Apache-2.0
"""What the way of a call costs at the least, for bench/python.py.

Two plain interpreters, with a process of C between them that copies what comes (bench/relay.c), as a supervisor does.
Nothing is sealed, fresh, bounded, checked or framed. So much of a row is the way itself, and no code of vitro's.
"""

import json
import pathlib
import socket
import subprocess
import sys

PEER = '''
import json, socket, sys
end = socket.socket(fileno=0)

def raw(data):
    return data

def with_json(data):
    return json.dumps({"value": json.loads(data)["args"][0]}).encode()

def take(data):
    memory, got = memoryview(bytearray(int(data))), 0
    end.send(b".")
    while got < len(memory):
        got += end.recv_into(memory[got:])
    return b"."

def give(data):
    return bytes(int(data))

do = globals()[sys.argv[1]]
while True:
    data = end.recv(8192)
    if not data:
        break
    end.sendall(do(data))
'''
QUESTION = b"x" * 70  # as long as a call-back on the wire


class Floor:
    """One kind of turn, between this process and a plain one."""

    def __init__(self, binary, kind):
        relay = pathlib.Path(binary).parent / "bench" / "vitro-bench-relay"
        self.end, near = socket.socketpair()
        far, theirs = socket.socketpair()
        for one in (self.end, near, far, theirs):  # as a supervisor's: a message of 1 MB goes at once
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.processes = [subprocess.Popen([relay], stdin=near, stdout=far),
                          subprocess.Popen([sys.executable, "-c", PEER, kind], stdin=theirs)]
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

    def close(self):
        self.end.close()
        for process in self.processes:
            process.wait()
