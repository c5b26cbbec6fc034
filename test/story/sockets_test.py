#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stories about unix sockets: which a cell reaches, which not, and who connects in its stead."""

import contextlib
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import vitrotest
from vitrotest import (IS_ROOT, check, check_equal, check_in, folder, landlock_abi, main, need_broker,
                       run, vitro, vitro_json, vitro_started, wait_until, write)


def test(name, **options):
    """A cell without namespaces has no unix sockets but pairs, nor has one where nobody can connect in
    its stead."""
    def register(function):
        def brokered():
            need_broker()
            function()
        return vitrotest.test(name, holds={"processes": "pidns"}, **options)(brokered)
    return register


PYTHON = "/usr/bin/python3"
NEEDS = [PYTHON]

# What the programs inside have in common. try_to() says what came of it, in one word.
PRELUDE = """
import ctypes, errno, os, socket, struct, sys, threading, time
def try_to(address, kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_UNIX, kind) as s:
        try:
            s.connect(address)
            return s.recv(64).decode()
        except OSError as error:
            return errno.errorcode[error.errno]
"""


class Server:
    """A listener of the host's that greets whoever comes, and notes who that is."""

    def __init__(self, path, mode=0o777, kind=socket.SOCK_STREAM):
        self.peers = []
        self.listener = socket.socket(socket.AF_UNIX, kind)
        self.listener.bind(path)
        os.chmod(path, mode)
        self.listener.listen(64)
        threading.Thread(target=self._greet, daemon=True).start()

    def _greet(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                self.peers.append(struct.unpack("3i", connection.getsockopt(
                    socket.SOL_SOCKET, socket.SO_PEERCRED, 12)))
                connection.sendall(b"hello")

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@contextlib.contextmanager
def place(parent=None):
    """A folder with two servers in it, "named" and "other"; its path and the servers."""
    with folder(parent) as path:
        servers = {name: Server(f"{path}/{name}") for name in ("named", "other")}
        try:
            yield path, servers
        finally:
            for server in servers.values():
                server.close()


def inside(*args, code, **options):
    """Runs Python code in a cell; what it printed."""
    call = vitro("run", *args, "--", PYTHON, "-c", PRELUDE + code, **options)
    check_equal(call.code, 0, "exit code", call)
    return call.out


@test("a named socket can be connected to, and one beside it cannot", needs=NEEDS)
def _():
    with place() as (path, servers):
        code = f"print(try_to('{path}/named'), try_to('{path}/other'))"
        check_equal(run([PYTHON, "-c", PRELUDE + code]).out, "hello hello\n", "outside")
        flags = ["--read", path, "--socket", f"{path}/named"]
        check_equal(inside(*flags, code=code), "hello EACCES\n", "inside")
        check_equal(inside("--socket", f"{path}/named", code=code), "hello ENOENT\n",
                    "without the folder")
        check_equal(inside("--read", path, code=code), "EACCES EACCES\n", "without a name")
        check_equal(inside(*flags, "--net", "host", code=code), "hello EACCES\n",
                    "on the host's network")
        check_equal(inside(*flags, "--set", "syscalls=strict", code=code), "hello EACCES\n",
                    "under the strict filter")


@test("what the other side sees is the cell's user, never root", needs=NEEDS)
def _():
    with place() as (path, servers):
        for flags in (["--read", path], []):
            servers["named"].peers.clear()
            inside(*flags, "--socket", f"{path}/named",
                   code=f"for i in range(3): assert try_to('{path}/named') == 'hello'")
            check_equal(len(servers["named"].peers), 3, "connections")
            for _, uid, gid in servers["named"].peers:
                if IS_ROOT:
                    check(uid >= 1000 and gid >= 1000, f"the peer is {uid}:{gid}")
                else:
                    check_equal((uid, gid), (os.getuid(), os.getgid()), "the peer")


@test("a named socket that only its owner may open works for the cell", needs=NEEDS)
def _():
    with folder() as path:
        server = Server(f"{path}/named", mode=0o600)
        for flags in (["--read", path], []):
            check_equal(inside(*flags, "--socket", f"{path}/named",
                               code=f"print(try_to('{path}/named'))"), "hello\n", flags)
        server.close()


@test("a named socket is found by a link to it, and lies at the name that was given", needs=NEEDS)
def _():
    with place() as (path, servers), folder() as links:
        os.symlink(f"{path}/named", f"{links}/link")
        code = (f"import stat; print(try_to('{links}/link'),"
                f" stat.S_ISSOCK(os.lstat('{links}/link').st_mode), os.path.exists('{path}'))")
        check_equal(inside("--socket", f"{links}/link", code=code), "hello True False\n", "inside")


@test("packets work too, datagrams do not beside a grant", needs=NEEDS)
def _():
    with folder() as path:
        server = Server(f"{path}/named", kind=socket.SOCK_SEQPACKET)
        code = (f"print(try_to('{path}/named', socket.SOCK_SEQPACKET))\n"
                "for kind in socket.SOCK_DGRAM, socket.SOCK_RAW:\n"
                "    try: socket.socket(socket.AF_UNIX, kind)\n"
                "    except OSError as e: print(errno.errorcode[e.errno])\n")
        check_equal(inside("--read", path, "--socket", f"{path}/named", code=code),
                    "hello\nESOCKTNOSUPPORT\nESOCKTNOSUPPORT\n", "inside")
        server.close()


@vitrotest.test("what is no socket, or not there, is refused by name", needs=NEEDS)
def _():
    with folder() as path:
        write(f"{path}/file", "")
        for name, why in (("file", "is no socket"), ("nowhere", "No such file"), ("", "is no socket")):
            call = vitro("run", "--socket", f"{path}/{name}", "--", "true")
            check_equal(call.code, 125, name, call)
            check_in("--socket", call.err, name, call)
            check_in(why, call.err, name, call)


OWN = """
def serve(address):
    s = socket.socket(socket.AF_UNIX); s.bind(address); s.listen(8)
    if os.fork() == 0:
        while True:
            c, _ = s.accept(); c.sendall(b'own'); c.close()
os.chdir('/tmp'); os.mkdir('deep')
for address in '/tmp/path', 'relative', '/dev/shm/shared', '\\0abstract', '\\0':
    serve(address); print(try_to(address))
os.chdir('deep'); print(try_to('../relative'), try_to('./../deep/../path'))
os.symlink('/tmp/path', 'link'); print(try_to('link'), try_to('/tmp/deep/link'))
os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone'); print(try_to('x'))
"""


@test("a cell's own sockets work between its processes, whatever is granted", needs=NEEDS)
def _():
    with place() as (path, servers):
        for flags in (["--read", path], ["--write", path], ["--read", path, "--net", "loopback"],
                      ["--read", path, "--socket", f"{path}/named"]):
            check_equal(inside(*flags, code=OWN),
                        "own\n" * 5 + "own own\nown own\nENOENT\n", flags)


@test("on the host's network, abstract sockets are out of reach even with a named one", needs=NEEDS)
def _():
    with place() as (path, servers):
        name = "test-" + os.path.basename(path)
        with socket.socket(socket.AF_UNIX) as abstract:
            abstract.bind("\0" + name)
            abstract.listen()
            code = f"print(try_to('\\0{name}'))"
            check_equal(inside("--read", path, "--socket", f"{path}/named", "--net", "host", code=code),
                        "EPERM\n", "inside")
            check_equal(inside("--read", path, code=code), "ECONNREFUSED\n", "in its own network")


@test("python's forkserver works beside a grant", needs=NEEDS)
def _():
    with folder() as path:
        write(f"{path}/job.py", "import multiprocessing as m\ndef f(x): return x * x\n"
              "if __name__ == '__main__':\n    m.set_start_method('forkserver')\n"
              "    with m.Pool(2) as pool: print(pool.map(f, range(4)))\n")
        call = vitro("run", "--read", path, "--", PYTHON, f"{path}/job.py")
        check_equal((call.code, call.out), (0, "[0, 1, 4, 9]\n"), "the job", call)


PEER = """
import collections, fcntl, signal
seen = collections.Counter()
s = socket.socket(socket.AF_UNIX); s.bind('/tmp/own'); s.listen(64)
def dial():
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as c: c.connect('/tmp/own')
threading.Thread(target=dial).start()
for _ in range(100):
    a, _ = s.accept()
    seen[struct.unpack('3i', a.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))] += 1
    try: fd, = struct.unpack('i', a.getsockopt(socket.SOL_SOCKET, 77, 4))  # SO_PEERPIDFD
    except OSError: continue
    for act in [lambda: signal.pidfd_send_signal(fd, 9)] + [
            lambda n=n: fcntl.ioctl(fd, 0xff00 | n) for n in range(1, 11)]:  # its namespaces
        try: act(); seen['reached'] += 1
        except OSError: pass
    os.close(fd)
print(dict(seen))
"""


@test("who connects in a cell's stead cannot be reached from inside", needs=NEEDS)
def _():
    with folder() as path:
        check_equal(inside("--read", path, code=PEER), "{(0, 1000, 1000): 100}\n", "the peer")


@test("a link in a writable folder does not lead to a forbidden socket", needs=NEEDS)
def _():
    with place() as (path, servers), folder() as writable:
        code = (f"os.symlink('{path}/other', '{writable}/link'); os.symlink('{path}', '{writable}/dir')\n"
                f"print(try_to('{writable}/link'), try_to('{writable}/dir/other'),"
                f" try_to('/proc/self/root{path}/other'))\nos.chdir('{path}');"
                f" print(try_to('other'), try_to('/proc/self/cwd/other'))\n"
                f"fd = os.open('{path}', os.O_RDONLY); print(try_to(f'/proc/self/fd/{{fd}}/other'))")
        flags = ["--read", path, "--write", writable, "--socket", f"{path}/named"]
        control = run([PYTHON, "-c", PRELUDE + code])
        check_equal(control.out, "hello hello hello\nhello hello\nhello\n", "outside")
        for name in ("link", "dir"):
            os.unlink(f"{writable}/{name}")
        call = inside(*flags, code=code)
        check("hello" not in call, f"inside: {call}")
        check_equal(call.split()[:2], ["EACCES", "EACCES"], "by links")
        check_equal(servers["other"].peers[6:], [], "connections beside the control's")


@test("a socket that a cell makes in a granted folder is not its own to connect to", needs=NEEDS)
def _():
    with folder() as path:
        code = ("s = socket.socket(socket.AF_UNIX)\n"
                f"s.bind('{path}/new'); s.listen()\n"
                f"c = socket.socket(socket.AF_UNIX); print(c.connect_ex('{path}/new'))")
        check_equal(run([PYTHON, "-c", PRELUDE + code]).out, "0\n", "outside")
        os.unlink(f"{path}/new")
        check_equal(inside("--write", path, code=code), "13\n", "inside")


SWAP = """
import itertools
place, other, seconds = sys.argv[1:4]
os.mkdir(place + '/a'); own = socket.socket(socket.AF_UNIX)
libc = ctypes.CDLL(None)
# 'a' holds a link to the cell's own socket, 'b' one to the forbidden: they change places for ever.
own.bind('/tmp/own'); own.listen(128); os.symlink('/tmp/own', place + '/a/s')
os.mkdir(place + '/b'); os.symlink(other, place + '/b/s')
if os.fork() == 0:
    while True:
        libc.renameat2(-100, (place + '/a').encode(), -100, (place + '/b').encode(), 2)
def accept():
    while True:
        c, _ = own.accept(); c.sendall(b'own'); c.close()
threading.Thread(target=accept, daemon=True).start()
seen, end = {}, time.monotonic() + float(seconds)
while time.monotonic() < end:
    word = try_to(place + '/a/s'); seen[word] = seen.get(word, 0) + 1
print(seen); sys.stdout.flush(); os._exit(0)
"""


@test("folders that change places while it connects do not get it through", needs=NEEDS)
def _():
    with place() as (path, servers), folder() as writable:
        call = vitro("run", "--read", path, "--write", writable, "--", PYTHON, "-c", PRELUDE + SWAP,
                     writable, f"{path}/other", "3", timeout=40)
        check_equal(call.code, 0, "exit code", call)
        check_in("'own'", call.out, "its own socket", call)
        check_in("'EACCES'", call.out, "the forbidden one", call)
        check_equal(servers["other"].peers, [], "connections to the forbidden socket")


# A thread writes the address, another the descriptor, while a third connects.
RACE = """
path, other, seconds = sys.argv[1:4]
libc = ctypes.CDLL(None, use_errno=True)
def address(p): return struct.pack('=H108s', socket.AF_UNIX, p.encode())
texts = address(path), address(other)
buf = ctypes.create_string_buffer(texts[0], 110)
stop = False
def flip():
    while not stop:
        for text in texts: ctypes.memmove(buf, text, 110)
def swap(fd):
    while not stop:
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            with socket.socket(socket.AF_UNIX, kind) as s: os.dup2(s.fileno(), fd)
        os.dup2(0, fd)
fd = os.dup(0)
threads = [threading.Thread(target=flip), threading.Thread(target=swap, args=(fd,))]
for t in threads: t.start()
seen, end = {}, time.monotonic() + float(seconds)
while time.monotonic() < end:
    with socket.socket(socket.AF_UNIX) as s:
        for target in s.fileno(), fd:
            r = libc.connect(target, buf, 110)
            word = 'ok' if r == 0 else errno.errorcode[ctypes.get_errno()]
            seen[word] = seen.get(word, 0) + 1
stop = True
for t in threads: t.join()
print(seen)
"""


@test("an address or a descriptor that changes while it connects does not get through", needs=NEEDS)
def _():
    with place() as (path, servers):
        # For writing: a folder for reading may be shown by an overlay, in which no socket is found.
        call = vitro("run", "--write", path, "--socket", f"{path}/named", "--", PYTHON, "-c",
                     PRELUDE + RACE, f"{path}/named", f"{path}/other", "3", timeout=40)
        check_equal(call.code, 0, "exit code", call)
        check_in("'ok'", call.out, "the named one", call)
        check_in("'EACCES'", call.out, "the forbidden one", call)
        check_equal(servers["other"].peers, [], "connections to the forbidden socket")
        check(servers["named"].peers, "the named one was reached")


GARBAGE = """
libc = ctypes.CDLL(None, use_errno=True)
path = sys.argv[1].encode()
def connect(address, length=None, family=socket.AF_UNIX, fd=None):
    s = socket.socket(socket.AF_UNIX)
    raw = ctypes.create_string_buffer(struct.pack('=H', family) + address, 300)
    r = libc.connect(s.fileno() if fd is None else fd, raw, 2 + len(address) if length is None else length)
    # Whether '/' may be written to is looked at first, and is not the same inside.
    number = {errno.EACCES: errno.ECONNREFUSED}.get(ctypes.get_errno(), ctypes.get_errno())
    return 'ok' if r == 0 else errno.errorcode[number]
for length in 0, 1, 2, 3, 111, 128, 129, 200, 0x7fffffff, -1, -2147483648:
    print(length, connect(path + b'\\0', length))
print('unterminated', connect(path), connect(b'/' * 108), connect(b'x' * 108))
print('zero inside', connect(path + b'\\0tail'))
print('families', [connect(path + b'\\0', family=f) for f in (0, 2, 10, 16, 0xffff)])
print('descriptors', [connect(path + b'\\0', fd=f) for f in (-1, 0, 999, 0x7fffffff)])
s = socket.socket(socket.AF_UNIX)
print('pointers', [libc.connect(s.fileno(), ctypes.c_void_p(p), 110) for p in (0, 8, 2**47, 2**63, 2**64 - 1)],
      errno.errorcode[ctypes.get_errno()])
"""


@test("nonsense as an address gets what the kernel says to it", needs=NEEDS)
def _():
    with place() as (path, servers), folder() as other:
        control = run([PYTHON, "-c", PRELUDE + GARBAGE, f"{path}/named"], cwd=other)
        check_in("unterminated ok", control.out, "outside", control)
        call = vitro("run", "--read", other, "--cwd", other, "--socket", f"{path}/named", "--", PYTHON,
                     "-c", PRELUDE + GARBAGE, f"{path}/named")
        check_equal(call.out, control.out, "inside, as outside", call)


@test("a thousand connects, one after another and from many threads", needs=NEEDS)
def _():
    with place() as (path, servers):
        code = f"""
assert all(try_to('{path}/named') == 'hello' for _ in range(600))
seen = []
threads = [threading.Thread(target=lambda: seen.extend(try_to('{path}/named') for _ in range(25)))
           for _ in range(16)]
for t in threads: t.start()
for t in threads: t.join()
print(len(seen), set(seen))
"""
        check_equal(inside("--read", path, "--socket", f"{path}/named", code=code, timeout=60),
                    "400 {'hello'}\n", "inside")
        check_equal(len(servers["named"].peers), 1000, "connections")


@test("a socket that does not block says so at once, and inet sockets work as ever", needs=NEEDS)
def _():
    with place() as (path, servers):
        code = """
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
c, _ = server.accept(); c.sendall(b'inet'); print(client.recv(9).decode())
late = socket.socket(); late.setblocking(False)
print(errno.errorcode[late.connect_ex(server.getsockname())])
server.accept(); time.sleep(.1); print(late.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); udp.connect(('127.0.0.1', 9)); print('udp')
full = socket.socket(socket.AF_UNIX); full.bind('/tmp/full'); full.listen(0)
first, second = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
second.setblocking(False); first.connect('/tmp/full'); print(errno.errorcode[second.connect_ex('/tmp/full')])
patient = socket.socket(socket.AF_UNIX); patient.settimeout(.2)
try: patient.connect('/tmp/full')
except OSError as e: print(type(e).__name__)
"""
        out = inside("--read", path, "--net", "loopback", code=code)
        check_equal(out, "inet\nEINPROGRESS\n0\nudp\nEAGAIN\nBlockingIOError\n", "inside")


@contextlib.contextmanager
def full_server(path):
    """One that never accepts, and has no room for another."""
    listener, first = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(0)
    first.connect(path)
    try:
        yield
    finally:
        first.close()
        listener.close()


def children_of(pid):
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", encoding="ascii") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == pid:
                found.append(int(name))
    return found


def namespaces_of(pid):
    """How deep a process is in pid namespaces."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            return len(next(line for line in file if line.startswith("NSpid:")).split()) - 1
    except OSError:
        return 0


def broker_of(pid):
    """The child of a vitro that is out of the cell and has a child: a looker has none."""
    return next((child for child in children_of(pid)
                 if namespaces_of(child) == namespaces_of(pid) and children_of(child)), None)


@test("a connect that nobody accepts ends with the deadline, and nothing is left", needs=NEEDS)
def _():
    with folder() as path, full_server(f"{path}/full"):
        code = (f"for i in range(20): threading.Thread(target=try_to, args=('{path}/full',)).start()\n"
                f"print(try_to('{path}/full'))")
        for flags in ([], ["--grace", "200ms"]):
            result = vitro_json("run", "--timeout", "500ms", *flags, "--read", path, "--socket",
                                f"{path}/full", "--", PYTHON, "-c", PRELUDE + code)
            check_equal(result["status"], "timeout", "status", result["call"])
            check(result["call"].seconds < 3, f"it took {result['call'].seconds} s")


@test("a vitro that is killed takes a connect in flight with it", needs=NEEDS)
def _():
    with folder() as path, full_server(f"{path}/full"):
        with vitro_started("run", "--read", path, "--socket", f"{path}/full", "--", PYTHON, "-c",
                           PRELUDE + f"try_to('{path}/full')") as (process, before):
            broker = wait_until(lambda: broker_of(process.pid), 10, "a broker with a helper")
            pids = [*children_of(process.pid), *children_of(broker)]
            process.kill()
            process.wait()
            wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") and "Z" not in
                                       _state(pid) for pid in pids), 2, "all of them are gone")
            before.check_nothing_left(process.pid, cgroups=False)


@test("a broker that is killed takes its helpers along, and nobody connects any more", needs=NEEDS)
def _():
    with folder() as path, full_server(f"{path}/full"):
        code = f"print(try_to('{path}/full')); print(try_to('{path}/full'))"
        with vitro_started("run", "--read", path, "--socket", f"{path}/full", "--", PYTHON, "-c",
                           PRELUDE + code, stdout=-1, text=True) as (process, _):
            broker = wait_until(lambda: broker_of(process.pid), 10, "a broker with a helper")
            helper, = children_of(broker)
            os.kill(broker, 9)
            wait_until(lambda: _state(broker) == _state(helper) == "Z", 2, "both are gone")
            check_equal(process.stdout.read(), "ENOSYS\nENOSYS\n", "what the cell gets")


def _state(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@test("a caller that is killed while it waits leaves nobody waiting in its stead", needs=NEEDS)
def _():
    with folder() as path, full_server(f"{path}/full"):
        code = f"""
for i in range(4):
    pids = []
    for j in range(20):
        pids.append(os.fork())
        if pids[-1] == 0: try_to('{path}/full'); os._exit(0)
    time.sleep(.3)
    # 9: it did wait; one that was sent away has exited.
    for pid in pids: os.kill(pid, 9); assert os.waitpid(pid, 0)[1] == 9
    time.sleep(.2)
print('done')
"""
        check_equal(inside("--read", path, "--socket", f"{path}/full", code=code), "done\n", "inside")


@test("a signal while it connects changes nothing", needs=NEEDS)
def _():
    with place() as (path, servers):
        code = f"""
import signal
count = 0
def handle(*_):
    global count
    count += 1
signal.signal(signal.SIGALRM, handle); signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, .001, .001)
words = set(try_to('{path}/named') for _ in range(200))
signal.setitimer(signal.ITIMER_REAL, 0)
print(words, count > 20)
"""
        check_equal(inside("--read", path, "--socket", f"{path}/named", code=code),
                    "{'hello'} True\n", "inside")


@test("a host's socket that is replaced during the call is not the one that was named", needs=NEEDS)
def _():
    # With the folder there, what took its place shows, unless the folder is shown by an overlay;
    # without, the old one, which is closed.
    for parent, read, word in (("/var/tmp", True, "EACCES" if landlock_abi() else "ECONNREFUSED"),
                               ("/tmp", True, "ECONNREFUSED"), ("/tmp", False, "ECONNREFUSED")):
        with place(parent) as (path, servers):
            code = f"print(try_to('{path}/named'), flush=True); input(); print(try_to('{path}/named'))"
            grant = ["--read", path] if read else []
            with vitro_started("run", *grant, "--socket", f"{path}/named", "--", PYTHON, "-c",
                               PRELUDE + code, stdin=-1, stdout=-1, text=True) as (process, _):
                check_equal(process.stdout.readline(), "hello\n", "before")
                servers["named"].close()
                os.rename(f"{path}/other", f"{path}/named")
                process.stdin.write("\n")
                process.stdin.close()
                check_equal(process.stdout.read(), word + "\n", "after")
            check_equal(servers["other"].peers, [], "connections to what took its place")


if __name__ == "__main__":
    main()
