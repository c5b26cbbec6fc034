# SPDX-License-Identifier: Apache-2.0
"""What the way of a call costs at the least, for bench/python.py.

Two plain interpreters, with a process of C between them that copies what comes (bench/relay.c), as a supervisor does.
Nothing is sealed, bounded, checked or framed. So much of a row is the way itself, and no code of vitro's.

The far one serves all turns itself, or has forks of it serve one each, as a zygote has: these wait, and have rehearsed, so
that what a fresh process costs is in it, too. Or it forks when a turn comes, and the fork enters the namespaces of a cell that
was made by hand (bench/hull.c), before the turn or as its first part.
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
# Forks for each turn, into a cell by hand: one for all of them, or with "make" one for each, which a turn of "e" ends. Has
# loaded what a zygote has.
ENTERER = '''
import asyncio, ctypes, gc, json, logging, os, pickle, socket, subprocess, sys
from vitro_bench_module import add

NEW_PID = 0x20000000
OTHERS = 0x10000000 | 0x00020000 | 0x08000000 | 0x04000000 | 0x02000000 | 0x40000000  # user, mount, ipc, uts, cgroup, network
setns = getattr(os, "setns", None) or ctypes.CDLL(None).setns
makes = sys.argv[3] == "make"
hand = subprocess.Popen(sys.argv[1:3], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
cell = -1

def child_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return int(children.read().split()[0])

def by_hand(order):
    os.write(hand.stdin.fileno(), order)
    if os.read(hand.stdout.fileno(), 1) != order:
        sys.exit("no cell could be made by hand")

def open_cell():
    by_hand(b"m")
    return os.pidfd_open(child_of(keeper))

def enter(cell, namespaces):
    if setns(cell, namespaces) == -1:
        sys.exit("the cell by hand cannot be entered")

def serve():
    a, b = map(int, end.recv(64).split())
    end.send(b"%d" % add(a, b))
    os._exit(0)

end = socket.socket(fileno=0)
by_hand(b"m")
keeper = child_of(hand.pid)  # of all cells
by_hand(b"e")
if not makes:
    cell = open_cell()
gc.collect()
gc.disable()
gc.freeze()
while True:
    order = end.recv(1, socket.MSG_PEEK)
    if not order:
        break
    if order == b"e":
        by_hand(b"e")
        os.close(cell)
        end.send(end.recv(64))
        continue
    if makes:
        cell = open_cell()
    enter(cell, NEW_PID)
    pid = os.fork()
    if not pid:
        enter(cell, OTHERS)
        serve()
    os.waitpid(pid, 0)
'''
QUESTION = b"x" * 70  # as long as a call-back on the wire


class Floor:
    """One kind of turn, between this process and a plain one, or as many forks of it as wait for theirs."""

    def __init__(self, binary, kind, forks=0, relayed=True):
        """relayed: there is somebody between the two, as a supervisor is."""
        programs = pathlib.Path(binary).parent / "bench"
        words = [ENTERER, programs / "vitro-bench-hand", binary, kind] if kind in ("enter", "make") else [PEER, kind, str(forks)]
        self.end, near = socket.socketpair()
        ends, self.processes, theirs = [self.end, near], [], near
        if relayed:
            far, theirs = socket.socketpair()
            ends += [far, theirs]
            self.processes.append(subprocess.Popen([programs / "vitro-bench-relay"], stdin=near, stdout=far))
        for one in ends:  # as a supervisor's: a message of 1 MB goes at once
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self.processes.append(subprocess.Popen([sys.executable, "-c", *words], stdin=theirs))
        for one in ends[1:]:
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

    total = enter = make = add

    def end_cell(self):
        self.end.send(b"e")
        self.end.recv(64)

    def close(self):
        self.end.close()
        for process in self.processes:
            process.wait()
