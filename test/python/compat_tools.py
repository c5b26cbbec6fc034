# SPDX-License-Identifier: Apache-2.0
"""Tools that tests call through the drop-ins, and through what these stand for."""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time

from toolbox import add, add_later, echo, fail, leave_at_once, leave_grandchild, leave_thread, produce, sleep  # noqa: F401


class Secret:
    """Reading the pickle of it runs code of the tool's choice in whoever reads it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return write_pid, (self.path,)


def write_pid(path):
    with open(path, "w") as file:
        file.write(str(os.getpid()))


def make_secret(path):
    return Secret(path)


def make_function():
    return lambda: None


def crash():
    ctypes.string_at(0)


def take_memory(megabytes):
    """Uses so much that somebody should mind, for as long as it takes to see it."""
    taken = [bytearray(b"x" * (1 << 20)) for _ in range(megabytes)]
    time.sleep(1)
    return len(taken)


def die_of_memory(megabytes):
    """The same, on a machine where the kernel does."""
    take_memory(megabytes)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(30)


def take_memory_by_children(count, megabytes):
    """Each of some processes uses less than the limit, and all of them more."""
    code = f"import sys\nx = bytearray(b'x' * ({megabytes} << 20))\nprint(len(x), flush=True)\nsys.stdin.read()"
    children = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                for _ in range(count)]
    said = [child.stdout.readline() for child in children]
    time.sleep(1)
    for child in children:
        child.communicate()
    return sum(int(line or b"0") >> 20 for line in said)


def run_sleep(mark):
    """A child that others find by its words."""
    subprocess.run(["sleep", mark], check=False)


def leave_grandchild_and_sleep(mark):
    leave_grandchild(mark)
    time.sleep(60)


def speak(text):
    print(text, flush=True)
    return len(text)


def see_variable(name):
    return os.environ.get(name)


def see_module(name):
    return name in sys.modules


def see_place():
    return os.getcwd(), sorted(os.listdir("."))


def see(path):
    return os.path.exists(path)


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    with open(path, "w") as file:
        return file.write(text)


def connect(port):
    with socket.create_connection(("127.0.0.1", port), 5) as sock:
        return sock.recv(100).decode()


def leave(code):
    sys.exit(code)


def make_all_kinds():
    import datetime
    return {"tuple": (1, 2), "bytes": b"\0\xff", "set": {1, 2}, "date": datetime.date(2026, 1, 2), 7: "seven"}
