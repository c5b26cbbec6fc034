# SPDX-License-Identifier: Apache-2.0
"""What forbidden acts reach for: files, a process, listeners, standard input and descriptors that are passed on."""

import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import stat
import sys
import tempfile
import termios
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import IS_ROOT, is_bare, is_confined, open_terminal, write

SECRET = uuid.uuid4().hex
LIBC = ctypes.CDLL("librt.so.1", use_errno=True)


class World:
    """What the acts reach for: files, a process, listeners. Made once."""

    def __init__(self, parent):
        self.base = tempfile.mkdtemp(prefix="test-", dir=parent)
        os.chmod(self.base, 0o755)
        names = {name: os.path.join(self.base, name) for name in ("secret", "read", "write")}
        for path in names.values():
            os.mkdir(path)
        write(names["secret"] + "/file", "vitro-secret\n")
        os.chmod(write(names["secret"] + "/free", "anybody's\n"), 0o666)
        self.allow = write(self.base + "/allow.json", '{"defaultAction": "SCMP_ACT_ALLOW"}')
        self.word = "victim-" + uuid.uuid4().hex
        self.names = names | {"word": self.word, "abstract": "test-" + uuid.uuid4().hex,
                              "hostname": os.uname().nodename,
                              "tmp": "." if is_bare() else "/tmp"}  # as seen from there
        os.makedirs(names["write"] + "/held/inner")
        write(names["write"] + "/held/mine", "")
        if is_bare() and IS_ROOT:
            os.chmod(names["write"], 0o777)  # a cell has a user of its own, and nothing maps it
        if IS_ROOT:
            os.mknod(names["read"] + "/node", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
            os.chmod(names["read"] + "/node", 0o666)
            os.chown(write(names["read"] + "/group", "of the group\n", 0o040), 4712, 4711)
        os.mkfifo(names["read"] + "/pipe")
        os.chmod(names["read"] + "/pipe", 0o666)
        self.pipe = os.open(names["read"] + "/pipe", os.O_RDWR | os.O_NONBLOCK)
        self.refresh()
        self._listen()
        self._share()

    def _share(self):
        """A message queue that everybody may read, and a segment of shared memory."""
        self.names["segment"] = str(uuid.uuid4().int & 0x7fffffff)
        self.segment = LIBC.shmget(int(self.names["segment"]), 4096, 0o1600)  # IPC_CREAT
        self.names["queue"] = "/test-" + uuid.uuid4().hex
        queue = LIBC.mq_open(self.names["queue"].encode(), os.O_RDWR | os.O_CREAT, 0o644, None)
        if queue < 0 and not is_confined():
            raise OSError(ctypes.get_errno(), "mq_open")

    def remove(self):
        shutil.rmtree(self.base, ignore_errors=True)
        LIBC.mq_unlink(self.names["queue"].encode())
        LIBC.shmctl(self.segment, 0, None)  # IPC_RMID

    def refresh(self):
        """What acts may have changed outside."""
        write(self.names["read"] + "/file", "read me\n")
        write(self.names["read"] + "/spare", "spare\n")
        write(self.names["secret"] + "/input", "input\n")
        with contextlib.suppress(BlockingIOError):
            os.read(self.pipe, 100)
        os.write(self.pipe, b"for the host")

    def _listen(self):
        def stream(family, address):
            listener = socket.socket(family, socket.SOCK_STREAM)
            listener.bind(address)
            listener.listen(16)
            threading.Thread(target=self._greet, args=(listener,), daemon=True).start()
            return listener.getsockname()

        # Where this is itself a sandbox, some may not be had, and their controls say so.
        self.names |= {"tcp4": 1, "tcp6": 1, "udp4": 1}
        with contextlib.suppress(OSError):
            self.names["tcp4"] = stream(socket.AF_INET, ("0.0.0.0", 0))[1]
        with contextlib.suppress(OSError):
            self.names["tcp6"] = stream(socket.AF_INET6, ("::1", 0))[1]
        with contextlib.suppress(OSError):
            for name in ("socket", "named"):
                stream(socket.AF_UNIX, f"{self.names['read']}/{name}")
                os.chmod(f"{self.names['read']}/{name}", 0o777)
            stream(socket.AF_UNIX, "\0" + self.names["abstract"])
            self.datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.datagrams.bind(self.names["read"] + "/datagrams")
            os.chmod(self.names["read"] + "/datagrams", 0o777)
        with contextlib.suppress(OSError):
            udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            udp.bind(("127.0.0.1", 0))
            self.names["udp4"] = udp.getsockname()[1]
            threading.Thread(target=self._answer, args=(udp,), daemon=True).start()

    @staticmethod
    def _greet(listener):
        while True:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.sendall(b"hello")

    @staticmethod
    def _answer(udp):
        while True:
            _, sender = udp.recvfrom(16)
            udp.sendto(b"hello", sender)

    def fill(self, text):
        return [word.format(**self.names) for word in text.split()]


@contextlib.contextmanager
def standard_input(kind, world):
    """Options for Popen that give the act this standard input."""
    if kind == "terminal":
        ours, theirs = open_terminal()

        def control():  # it becomes the new session's terminal
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        try:
            yield {"stdin": theirs, "preexec_fn": control}
        finally:
            os.close(ours)
            os.close(theirs)
        return
    path = {"folder": world.names["secret"], "file": world.names["secret"] + "/input"}.get(kind)
    if not path:
        yield {}
        return
    fd = os.open(path, os.O_RDONLY)
    try:
        yield {"stdin": fd}
    finally:
        os.close(fd)


@contextlib.contextmanager
def leaked_descriptors(wanted, world):
    if not wanted:
        yield {}
        return
    fd = os.open(world.names["secret"], os.O_RDONLY | os.O_DIRECTORY)
    held = [os.dup2(fd, number, inheritable=True) for number in (700, 900)]
    try:
        yield {"pass_fds": tuple(held)}
    finally:
        for number in [fd, *held]:
            os.close(number)
