# SPDX-License-Identifier: Apache-2.0
"""A connection to a supervisor: to one of its own, started for it, or to a server's socket.

A supervisor of its own is a child of this program, in a session of its own. It has one end of a socket pair and ends
when the other end is closed: with this program, however that ends.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import socket
import stat
import sys
import threading
import time
from typing import List, Optional, Tuple

from ._binary import find_binary
from ._logs import emit, warn_of_module
from ._wire import Broken, Frame, Head, Reader, frame, read_message, write_head
from .errors import Lost, Refused

log = logging.getLogger("vitro")
# syslog's levels as logging's.
LEVELS = {0: 50, 1: 50, 2: 50, 3: 40, 4: 30, 5: 20, 6: 20, 7: 10}
_HELLO_SECONDS = 30.0
_END_SECONDS = 10.0
_SOCKET_BYTES = 4 << 20
_FILES = 1024  # that the supervisor needs at the least
_ABOVE = 16  # all descriptors that are given places


def log_line(head: Head, body: memoryview) -> None:
    """A line of the supervisor's own."""
    given, text = head.get("level"), str(body, "utf-8", "replace")
    level = LEVELS.get(given, 20) if isinstance(given, int) else 20
    emit(log, level, "", text)
    if level == logging.WARNING:
        warn_of_module(text)


class Process:
    """A supervisor that is a child of this process."""

    __slots__ = ("pid", "owner", "_over")

    def __init__(self, pid: int) -> None:
        self.pid, self.owner, self._over = pid, os.getpid(), False

    def reap(self, seconds: float = _END_SECONDS) -> None:
        """Waits for its end, which closing the socket brings about; one that does not end is killed."""
        if self._over or os.getpid() != self.owner:
            return
        end, pause = time.monotonic() + seconds, 0.0005
        while not self._is_over():
            if time.monotonic() > end:
                os.kill(self.pid, signal.SIGKILL)  # it is not reaped, so the number is still its own
                end += seconds
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def _is_over(self) -> bool:
        try:
            self._over = os.waitpid(self.pid, os.WNOHANG)[0] == self.pid
        except ChildProcessError:  # somebody else waits for all children
            self._over = True
        return self._over


class Connection:
    """A socket on which both sides have said hello, and what came with that."""

    __slots__ = ("sock", "process", "reader", "frames", "version", "frame_max")

    def __init__(self, sock: socket.socket, process: Optional[Process], frame_max: int) -> None:
        self.sock, self.process, self.frame_max = sock, process, frame_max
        self.reader, self.version = Reader(), ""
        self.frames: List[Frame] = []  # that came behind the hello

    def close(self) -> None:
        """Ends it, and a supervisor of its own with it."""
        self.sock.close()
        if self.process:
            self.process.reap()

    def close_beside(self) -> None:
        """The same by a thread: an event loop does not wait for a supervisor's end."""
        try:
            threading.Thread(target=self.close, name="vitro-close", daemon=True).start()
        except RuntimeError:  # the program is about to end
            self.close()

    def greet(self, head: Head, body: bytes) -> None:
        """Says hello, and hears it."""
        self.sock.settimeout(_HELLO_SECONDS)
        said = write_head(head)
        self.sock.sendall(frame(said, len(body)) + body)
        while not self.version:
            count = self.sock.recv_into(self.reader.get_buffer())
            if not count:
                raise Broken("it has closed the socket")
            for data, rest in self.reader.advance(count):
                if self.version:
                    self.frames.append((data, rest))
                else:
                    assert isinstance(rest, memoryview)
                    self._hear(read_message(data), rest)
            if self.reader.is_broken:
                raise Broken("what it says is no frame")
        self.sock.settimeout(None)

    def _hear(self, head: Head, body: memoryview) -> None:
        if head["is"] == "log":
            log_line(head, body)
        elif head["is"] == "refused":
            raise Broken(f"it refuses: {head.get('error', 'no reason was given')}")
        elif head["is"] == "hello":
            if head["version"] != 1:
                raise Broken(f"it speaks version {head['version']} of the wire, and this package version 1")
            self.version = head["vitro"]


def _actions(theirs: int, errors: int) -> List[Tuple[int, ...]]:
    """What is done with descriptors in the newborn: 3 is the socket, 2 says what went wrong, no others."""
    actions: List[Tuple[int, ...]] = [
        (os.POSIX_SPAWN_DUP2, errors, 2), (os.POSIX_SPAWN_DUP2, theirs, 3),
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),  # type: ignore[list-item]
        (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]  # type: ignore[list-item]
    for name in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else ["4"]:
        fd = int(name)
        try:
            if fd > 3 and os.get_inheritable(fd):
                actions.append((os.POSIX_SPAWN_CLOSE, fd))
        except OSError:  # that by which the folder was read
            pass
    return actions


def _check_limit() -> None:
    import resource
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if most != resource.RLIM_INFINITY and most < _FILES:
        raise Refused(f"the hard limit of open files (RLIMIT_NOFILE, ulimit -Hn) is {most}: "
                      f"the supervisor needs at least {_FILES}, and more for more cells")


def _spawn(binary: str, theirs: int, errors: int) -> Process:
    import fcntl
    defaults = [number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP)]
    above: List[int] = []  # both, where no place is that one of the newborn's will have; closed when it executes
    try:
        for fd in (theirs, errors):
            above.append(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE))
        return Process(os.posix_spawn(binary, [binary, "supervise"], os.environ, file_actions=_actions(*above),
                                      setsid=True, setsigmask=(), setsigdef=defaults))
    finally:
        for fd in above:
            os.close(fd)


def _launch(binary: str) -> Tuple[Process, socket.socket, int]:
    """The supervisor, this program's end of its socket, and the file in which it says what went wrong."""
    errors = os.memfd_create("vitro-errors", os.MFD_CLOEXEC)
    try:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with theirs:
            try:
                _enlarge(ours)
                _enlarge(theirs)
                return _spawn(binary, theirs.fileno(), errors), ours, errors
            except BaseException:
                ours.close()
                raise
    except BaseException:
        os.close(errors)
        raise


def start() -> Connection:
    """A supervisor of this program's own. Raises Lost where it cannot be started, with what it said."""
    binary = find_binary()
    _check_limit()
    try:
        process, ours, errors = _launch(binary)
    except OSError as error:
        raise Lost(f"cannot start {binary!r}: {error.strerror or error}") from error
    connection = Connection(ours, process, 1 << 30)
    try:
        connection.greet({"do": "hello", "version": 1}, b"")
    except (OSError, Broken) as error:
        connection.close()
        said = os.pread(errors, 4096, 0).decode("utf-8", "replace").strip()
        raise Lost(f"{binary!r} does not work as a supervisor: {said or f'it said nothing, and ended ({error}); is it vitro?'}") from error
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(errors)
    log.debug("started %s, version %s, as process %d", binary, connection.version, process.pid)
    return connection


def connect(path: str) -> Connection:
    """A server (`vitro serve`) by the path of its socket. It gets this program's environment and working directory. Raises
    Refused where there is none to be reached, so that nothing has begun, and Lost where one does not answer."""
    if sys.platform != "linux":
        find_binary()  # says so
    connection = Connection(_reach(path), None, 64 << 20)
    try:
        _enlarge(connection.sock)
        environment = b"".join(b"%s=%s\0" % pair for pair in os.environb.items())
        connection.greet({"do": "hello", "version": 1, "cwd": os.getcwd()}, environment)
    except (OSError, Broken) as error:
        connection.close()
        raise Lost(f"no server answers at {path!r}: {error}") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _reach(path: str) -> socket.socket:
    try:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(path)
        except BaseException:
            sock.close()
            raise
    except OSError as error:
        raise Refused(f"no server can be reached at {path!r}: {_why_not(path, error)}") from error
    return sock


def _why_not(path: str, error: OSError) -> str:
    """Why there is nobody, by what is there: in the words of the command."""
    try:
        there = os.stat(path)
    except (OSError, ValueError):
        there = None
    if there is not None and stat.S_ISDIR(there.st_mode):
        return "it is a folder; name the socket in it"
    if there is not None and not stat.S_ISSOCK(there.st_mode):
        return "it is no socket"
    if isinstance(error, PermissionError):
        whose = (f"it lies in a folder that is not for the user {os.geteuid()}, whom you are; connect as its owner" if there is None
                 else f"it is for the user {there.st_uid}, and you are {os.geteuid()}; connect as that user")
        return f"{whose}, or start a server of your own: vitro serve --socket PATH"
    is_none = isinstance(error, (FileNotFoundError, ConnectionRefusedError))
    return f"{error.strerror or error}{'; start one: vitro serve --socket PATH' if is_none else ''}"


def _enlarge(sock: socket.socket) -> None:
    """What is sent by this end goes over in fewer turns. The kernel gives what it allows."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)


def wait_writable(sock: socket.socket, readable: bool) -> bool:
    """Waits until it can be written to, or, if asked for, read from: whether it can be read from."""
    poll = select.poll()
    poll.register(sock, select.POLLOUT | (select.POLLIN if readable else 0))
    return any(flags & ~select.POLLOUT for _, flags in poll.poll(100))
