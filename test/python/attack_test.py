#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Attacks on pools: through what a zygote loads, the socket that a call comes by, and folders that change while cells
are refilled. docs/attacks.md has the list of all ideas."""

import ctypes
import fcntl
import glob
import os
import shutil
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons  # which finds the package
from vitrotest import FLAGS, check, check_equal, check_in, folder, is_bare, main, run, skip, test, write

import vitro

BASE = {"require": "best-effort"} if FLAGS else {}
REFILLS = 24  # more calls than there are cells at first


def sandbox(**policy):
    return vitro.Sandbox({**BASE, **policy})


# ---- what a zygote loads ------------------------------------------------------------------------------------------


def a_library():
    """Some shared object, to be a planted one."""
    found = [path for pattern in ("/usr/lib/*-linux-gnu/libz.so.1", "/usr/lib/*-linux-gnu/libm.so.6", "/lib/libm.so.6")
             for path in glob.glob(pattern)]
    return found[0] if found else skip("there is no library to plant")


@test("attack: a library that calls can write, and the policy names for the loader, is loaded in calls and never ahead of them",
      needs=["/bin/cat"])
def _():
    with folder(writable=True) as place:
        planted = shutil.copy(a_library(), place + "/planted.so")
        maps = "open('/proc/self/maps').read()"
        outside = run(["/bin/cat", "/proc/self/maps"], env={"LD_PRELOAD": planted})
        check_in(planted, outside.out, "the control: a program of the host heeds it", outside)
        with sandbox(files={"write": [place]}, env={"set": {"LD_PRELOAD": planted}}) as box:
            # A fork has what its zygote has loaded.
            check("planted.so" not in box.eval(maps), "the zygote has loaded what a call could have written")
            check_in("planted.so", box.run(["/bin/cat", "/proc/self/maps"]).stdout, "a call's own programs heed it")


@test("attack: variables that name code are in calls as the policy has them")
def _():
    given = {"LD_LIBRARY_PATH": "/nowhere", "OPENSSL_CONF": "/nowhere/ssl", "NODE_OPTIONS": "--no-warnings",
             "GCONV_PATH": "/nowhere", "PYTHONPATH": "/nowhere", "NODE_V8_COVERAGE": "/nowhere", "SSLKEYLOGFILE": "/nowhere/keys",
             "NODE_ENV": "test", "PLAIN": "1", "ÄÖ": "2"}
    with sandbox(env={"set": given}) as box:
        for code in ("dict(os.environ)", "dict(word.split('=', 1) for word in subprocess.check_output(['/usr/bin/env'], text=True).splitlines())"):
            seen = box.eval("import os, subprocess\n" + code)
            check_equal({name: seen.get(name) for name in given}, given, code)
            odd = [name for name in seen if not name.isidentifier()]
            check_equal(odd, [], f"names that nobody gave, in {code}")


AHEAD = """
import os, subprocess
seen, pid = {**os.environ}, os.getpid()
child = subprocess.check_output(["/usr/bin/env"], text=True)
def tell():
    return [pid != os.getpid(), seen, child, {**os.environ}]
"""


@test("attack: what is imported ahead of calls has of the policy's variables all but those that lead to code or to what is written")
def _():
    led = {"PYTHONPATH": "/nowhere", "PYTHONSTARTUP": "/nowhere/a.py", "NODE_PATH": "/nowhere", "NODE_REDIRECT_WARNINGS": "/nowhere/a",
           "SSLKEYLOGFILE": "/nowhere/keys", "BASH_ENV": "/nowhere/a", "LD_DEBUG_OUTPUT": "/nowhere/a"}
    plain = {"API_URL": "http://a", "NODE_ENV": "test", "TZ": "UTC"}
    with folder() as place:
        write(f"{place}/ahead.py", AHEAD)
        sys.path.append(place)
        try:
            import ahead
            with vitro.Sandbox({**BASE, "env": {"set": {**led, **plain}}}, preload=["ahead"]) as box:
                is_ahead, seen, child, now = box.call(ahead.tell)
        finally:
            sys.path.remove(place)
    check(is_ahead, "it was imported in the call")
    check_equal({name: seen.get(name) for name in plain}, plain, "what is ordinary")
    check_equal([name for name in led if name in seen or f"\n{name}=" in f"\n{child}"], [], "what leads to code, in it or in what it started")
    check_equal({name: now.get(name) for name in {**led, **plain}}, {**led, **plain}, "in a call")


# ---- the socket that a call comes by --------------------------------------------------------------------------------

INTERFACES = """
import array, fcntl, struct
def interfaces(fd):
    room = array.array("B", bytes(4096))
    try:
        told = fcntl.ioctl(fd, 0x8912, struct.pack("iL", 4096, room.buffer_info()[0]))  # SIOCGIFCONF
    except OSError as error:
        return error.errno
    return [room.tobytes()[at:at + 16].rstrip(b"\\0").decode("latin-1") for at in range(0, struct.unpack("iL", told)[0], 40)]
"""


@test("attack: the socket that a call comes by tells nothing of the host's network")
def _():
    scope = {}
    exec(INTERFACES, scope)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        if not scope["interfaces"](ours.fileno()):
            skip("the host has no interface to tell of")
    for network in ("none",) if is_bare() else ("none", "loopback"):
        with sandbox(network=network) as box:
            told = box.eval(INTERFACES + "interfaces(3)")
            check(isinstance(told, int), f"network {network}: it tells of {told}")


PEER = """
import ctypes, fcntl, os, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
def number(*call):
    return libc.syscall(*call) if libc.syscall(*call) >= 0 else -ctypes.get_errno()
def reach(fd):
    with socket.socket(fileno=os.dup(fd)) as end:
        try:
            peer, = struct.unpack("i", end.getsockopt(socket.SOL_SOCKET, 77, 4))  # SO_PEERPIDFD
        except OSError as error:
            return {}
    found = {"signal": number(424, peer, 0, None, 0), "descriptor": number(438, peer, 1, 0)}
    for name, request in (("mounts", 0xff03), ("network", 0xff04), ("users", 0xff09)):
        try:
            found[name] = fcntl.ioctl(peer, request, 0)
        except OSError as error:
            found[name] = -error.errno
    return found
"""


@test("attack: a handle of the supervisor, which its socket gives, is good for nothing")
def _():
    scope = {}
    exec(PEER, scope)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outside = scope["reach"](ours.fileno())  # of ourselves
    if not outside:
        skip("sockets have no handles of their peers here")
    check(outside["signal"] == 0, f"the control: {outside}")
    for syscalls in ("default", "all"):
        with folder() as place:
            profile = write(place + "/all.json", '{"defaultAction": "SCMP_ACT_ALLOW"}')
            with sandbox(**({} if syscalls == "default" else {"syscalls": profile})) as box:
                inside = box.eval(PEER + "reach(3)")
        reached = {name: what for name, what in inside.items() if what >= 0}
        check_equal(reached, {}, f"what is reached by it, system calls {syscalls}")


# ---- refills --------------------------------------------------------------------------------------------------------


@test("attack: a folder that is replaced on the host while cells are refilled: no call sees what took its place",
      holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/open/file", "open")
        write(place + "/secret/file", "secret")
        look = f"open({place + '/open/file'!r}).read()"
        with sandbox(files={"read": [place + "/open"]}) as box:
            check_equal(box.eval(look), "open", "before")
            os.rename(place + "/open", place + "/away")
            os.symlink("secret", place + "/open")
            check_equal(open(place + "/open/file").read(), "secret", "the control: the name leads elsewhere now")
            seen = {box.eval(look) for _ in range(REFILLS)}
        check_equal(seen, {"open"}, "what calls saw")


@test("attack: calls that swap the folder which another grant lies in, while cells are refilled, move nothing",
      holds={"files": "mountns"})
def _():
    with folder(writable=True) as place, folder() as fixed:
        write(fixed + "/file", "fixed")
        os.makedirs(place + "/held/inner")
        os.makedirs(place + "/other/inner")
        write(place + "/other/inner/file", "planted")
        grants = {"write": [place], "read": [{"from": fixed, "to": place + "/held/inner"}]}
        swap = f"""
import ctypes, os, time
libc, end = ctypes.CDLL(None), time.monotonic() + 1
swaps = 0
while time.monotonic() < end:
    swaps += libc.renameat2(-100, {place + '/held'!r}.encode(), -100, {place + '/other'!r}.encode(), 2) == 0  # exchange
swaps
"""
        look = f"""
import os
found = []
for name in ("held", "other"):
    try:
        with open(os.path.join({place!r}, name, "inner/file"), "r+") as file:
            found.append(file.read())
    except OSError as error:
        found.append(type(error).__name__)
found
"""
        probe = f"import os\nos.path.samefile({place + '/held/inner'!r}, {place + '/held'!r})"
        with sandbox(files=grants) as box:
            check_equal(box.eval(probe), False, "the grant is there")
            with vitro.Sandbox({**BASE, "files": {"write": [place]}}) as other:
                swaps = []
                attacker = threading.Thread(target=lambda: swaps.append(other.eval(swap)))
                attacker.start()
                time.sleep(0.2)
                results = [box.eval(look, result=True) for _ in range(REFILLS)]
                attacker.join()
        check(swaps[0] > 100, f"the control: {swaps[0]} swaps")
        for result in results:
            check(result.ok or result.status in ("refused", "lost"), f"{result.status}: {result.error}")
            # What is for reading is never opened for writing, by either name.
            check("fixed" not in (result.value or ()), f"the folder for reading was written to: {result.value}")
    # and nothing was mounted, or left, on the host: the folder could be removed


# ---- what calls leave ------------------------------------------------------------------------------------------------


@test("attack: a lock, a mapping and a timer of a call are gone with it")
def _():
    with folder(writable=True) as place:
        write(place + "/file", "x" * 4096)
        take = f"""
import fcntl, mmap, os, signal, threading, time
fd = os.open({place + '/file'!r}, os.O_RDWR)
fcntl.flock(fd, fcntl.LOCK_EX)
memory = mmap.mmap(fd, 4096)
def write_on():
    while True:
        memory[0:8] = time.monotonic_ns().to_bytes(8, "little")
threading.Thread(target=write_on, daemon=True).start()
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
signal.signal(signal.SIGALRM, lambda *_: None)
os.getpid()
"""
        with sandbox(files={"write": [place]}) as box:
            box.eval(take)
            with open(place + "/file", "r+b") as file:
                for _ in range(200):
                    try:
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    except BlockingIOError:
                        time.sleep(0.01)
                else:
                    raise AssertionError("the lock is held two seconds after the call")
                first = file.read(8)
                time.sleep(0.05)
                file.seek(0)
                check_equal(file.read(8), first, "what the mapping of a call that is over holds")


@test("attack: what a call sets on its descriptors, and locks by them, no other call has")
def _():
    leave = """
import fcntl
for fd in range(4):
    fcntl.fcntl(fd, fcntl.F_SETFL, fcntl.fcntl(fd, fcntl.F_GETFL) ^ os.O_APPEND)
    fcntl.fcntl(fd, 10, 40)  # F_SETSIG
    fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())
fcntl.flock(0, fcntl.LOCK_EX)
"""
    look = "import fcntl, os\n[[fcntl.fcntl(fd, what) for what in (fcntl.F_GETFL, 11, fcntl.F_GETOWN)] for fd in range(4)]"
    with sandbox() as box:
        before = box.eval(look)
        times = os.stat("/dev/null").st_mtime_ns
        if not is_bare():
            box.eval("import os\ntry:\n  os.utime(0)\nexcept OSError:\n  pass")
            check_equal(os.stat("/dev/null").st_mtime_ns, times, "when the host's /dev/null was changed")
        check(box.eval("import os" + leave + look) != before, "the control: a call sees what it has set itself")
        for _ in range(REFILLS):
            check_equal(box.eval(look), before, "what a later call has of its descriptors")
        with open("/dev/null", "rb") as null:
            fcntl.flock(null, fcntl.LOCK_EX | fcntl.LOCK_NB)


@test("attack: calls at once that take all watches of files leave some for the program")
def _():
    if is_bare():
        skip("a bare cell has none")
    take = ("import ctypes, time\nlibc, count = ctypes.CDLL(None), 0\nwhile count < 10000 and libc.inotify_init1(0) >= 0:\n"
            "    count += 1\ntime.sleep(2)\ncount")
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/sys/fs/inotify/max_user_instances") as file:
        calls = min(int(file.read()) // 32 + 1, 12)
    with sandbox() as box:
        begun = [box.submit_eval(take) for _ in range(calls)]
        time.sleep(1.5)
        fd = libc.inotify_init1(os.O_CLOEXEC)
        check(fd >= 0, f"outside: {os.strerror(ctypes.get_errno())}")
        os.close(fd)
        counts = [call.result() for call in begun]
        check(max(counts) >= 8, f"the control: calls have some: {counts}")


main()
