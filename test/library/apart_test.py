#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Cells of one pool are apart from each other, and from the program and the supervisor that they work for.

Each act has its control: the same one reaches what it wants where nothing parts it from that.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
from vitrotest import APART, IS_ROOT, SIGNALS, check, check_equal, children, is_confined, main, proc, skip, test, wait_until
from warm import Program, need_program, supervisor_of

SECRET = "apart-" + uuid.uuid4().hex
NEEDLE = bytes(~byte & 255 for byte in SECRET.encode()).hex()

# What one process of a cell leaves where others could find it.
SHOW = """
import ctypes, os, socket, subprocess, sys
name, look = sys.argv[1:3]
for folder in ("/tmp/", "/dev/shm/"):
    open(folder + name, "w").close()
listeners = []
for address in ("\\0" + name, "/tmp/" + name + ".socket"):
    try:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(64)
        listeners.append(listener)
    except OSError:
        pass
try:
    ctypes.CDLL("librt.so.1").mq_open(("/" + name).encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
except AttributeError:
    pass
print(subprocess.run([sys.executable, "-c", look, name], stdout=subprocess.PIPE, text=True).stdout)
"""
# And what another finds of it.
LOOK = """
import ctypes, json, os, signal, socket, sys, time
name, found = sys.argv[1], []
time.sleep(float(os.environ.get("WAIT", 0)))
for folder in ("/tmp/", "/dev/shm/"):
    if os.path.exists(folder + name):
        found.append(folder)
for label, address in (("abstract", "\\0" + name), ("socket", "/tmp/" + name + ".socket")):
    try:
        socket.socket(socket.AF_UNIX).connect(address)
        found.append(label)
    except OSError:
        pass
if ctypes.CDLL("librt.so.1").mq_open(("/" + name).encode(), os.O_RDWR, 0o666, None) >= 0:
    found.append("queue")
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if name.encode() in open(f"/proc/{pid}/cmdline", "rb").read() and int(pid) != os.getpid():
            found.append("process")
            os.kill(int(pid), 0)
            found.append("signal")
    except OSError:
        pass
if any(name in text for text in (open("/proc/self/mountinfo").read(),)):
    found.append("mount")
print(json.dumps(sorted(set(found))))
"""


def descendants(pid):
    return [other for child in children(pid) for other in (child, *descendants(child))]


@test("apart: a secret of the caller's is in no occupant's memory, environment, or descriptors")
def _():
    env = {**os.environ, "VITRO_APART_SECRET": SECRET}
    with tempfile.TemporaryFile() as file:
        file.write(SECRET.encode())
        file.flush()
        with Program(env=env, pass_fds=[file.fileno()]) as program:
            for _ in range(3):
                check_equal(program.value("search", needle=NEEDLE), 0, "finds in an occupant's memory")
            check_equal(program.value("descriptors"), [0, 1, 2, 3], "an occupant's descriptors")
            said = program.python(f"""
import os
needle = bytes(~byte & 255 for byte in bytes.fromhex("{NEEDLE}"))
print(needle in repr(os.environb).encode())
for pid in filter(str.isdigit, os.listdir("/proc") if {not program.bare} else []):
    for name in ("environ", "cmdline"):
        print(needle in open(f"/proc/{{pid}}/{{name}}", "rb").read())
""")
            check("False" in said and "True" not in said, said)
            done = subprocess.run([APART, "--do", "descriptors", "{}"], pass_fds=[file.fileno()], check=True,
                                  stdout=subprocess.PIPE)
            check(file.fileno() in json.loads(done.stdout), "the control: a child of the caller's has descriptors")
            program.tell(f"inherited {NEEDLE}")
            check(int(program.expect("inherited")) >= 3, "the control: a child of the caller's finds it")


def check_clean(program, found, clean):
    """Of what a call finds; where it was."""
    here, pid = found.pop("here"), found.pop("pid")
    check_equal(found, clean, "what a call finds")
    check("/vitro-p" in here if program.bare else (here, pid) == ("/tmp", 2), (here, pid))
    return here


@test("apart: nothing of one call is there in the next, nor in one at the same time", holds={"files": "*"})
def _():
    with Program() as program:
        program.value("nap", ms=0)
        clean = {"calls": 0, "memory": False, "file": False, "shm": False, "variable": False, "left": True,
                 "left_shm": not program.bare}
        places = []
        for _ in range(4):
            places.append(check_clean(program, program.value("linger"), clean))
        for call in [program.submit("linger") for _ in range(4)]:
            places.append(check_clean(program, program.wait(call)["value"], clean))
        check(len(set(places)) == (8 if program.bare else 1), places)
        said = program.value("linger", twice=1)
        check(said["calls"] == 1 and all(said[key] for key in ("memory", "file", "variable"))
              and said["shm"] == said["left_shm"] and said["here"] == "/", f"the control: {said}")


@test("apart: a cell sees, reaches and signals nothing of another that runs")
def _():
    name = "mark-" + uuid.uuid4().hex
    with Program({"limits": {"wall_ms": 20000}}) as program:
        program.need_namespaces()
        program.value("nap", ms=0)
        shown = program.submit("run", words=["/usr/bin/env", "WAIT=1.5", "/usr/bin/python3", "-c", SHOW, name, LOOK])
        time.sleep(0.7)
        looked = program.value("run", words=["/usr/bin/python3", "-c", LOOK, name])
        own = json.loads(program.wait(shown)["value"]["out"])
        check({"/tmp/", "/dev/shm/", "socket", "abstract", "process", "signal"} <= set(own), f"the control: {own}")
        check_equal(looked["out"].strip(), "[]", "what another cell finds")


# One who listens by a name, sends the listener to itself, and ends: only the kernel's collector closes it then.
LEAVE = """
import array, socket, sys
def listen(name):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen(8)
    return listener
found = []
name = "\\0" + sys.argv[1]
try:
    socket.socket(socket.AF_UNIX).connect(name)
    found.append("reached")
except OSError:
    pass
try:
    listener = listen(name)
except OSError as error:
    found.append(error.strerror)
near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
for held in (near, far, listener):
    near.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [held.fileno()]))])
print(found)
"""


@test("apart: what a call listens to is not there in the next, which may get the same network namespace")
def _():
    with Program({"limits": {"wall_ms": 20000}}) as program:
        if program.bare:
            skip("there are no network namespaces here")
        for _ in range(12):
            check_equal(program.python(LEAVE.replace("sys.argv[1]", repr(SECRET))), "[]\n", "what a call finds")


@test("apart: a bare cell reads, changes and signals nothing of another that runs", holds={"files": "*"})
def _():
    with Program({"limits": {"wall_ms": 20000}}) as program:
        if not program.bare:
            skip("there are none here")
        showing = program.submit("show", ms=1000)
        pid, place = program.expect("log").split(" ")[1:]
        reached = program.value("reach", pid=int(pid), place=place)
        own = program.wait(showing)["value"]
        # Where signals are denied altogether, so are those to oneself.
        wanted = {name for name in own if name != "signal" or program.processes in SIGNALS["processes"]}
        check(all(own[name] for name in wanted), f"the control: {own}")
        check_equal([name for name in reached if reached[name]], [], "what another cell can do")


@test("apart: an occupant has nothing of its caller's state")
def _():
    def spoil():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2])
        os.umask(0o077)
        os.setsid()
        if IS_ROOT and not is_confined():
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    code = """
import os
pid = os.getppid()
status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status").read().splitlines())
for key in ("SigBlk", "SigIgn", "SigCgt", "Umask", "CapEff", "CapPrm", "CapBnd", "NoNewPrivs", "Seccomp", "Threads"):
    print(key, status[key].strip())
fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
print("ids", pid, *fields[1:5])
print("environ", sorted(os.environ))
print("scheduler", os.sched_getscheduler(pid))
print("cwd", os.getcwd())
"""
    with tempfile.TemporaryDirectory() as folder:
        with Program(env={**os.environ, "LEAKED": "1"}, preexec_fn=spoil, cwd=folder) as program:
            said = dict(line.split(" ", 1) for line in program.python(code).splitlines())
            caller = proc(f"{program.process.pid}/status").decode()
    check("SigBlk:\t0000000000000800" in caller and "Umask:\t0077" in caller, f"the control: {caller}")
    for key in ("SigBlk", "SigIgn", "SigCgt", "CapEff", "CapPrm", "CapBnd"):
        if key != "CapBnd" or IS_ROOT or not program.bare:  # who has no capability cannot take that away either
            check_equal(int(said[key], 16), 0, key)
    wanted = {"Umask": "0022", "NoNewPrivs": "1", "Seccomp": "2", "Threads": "1",
              "scheduler": str(os.SCHED_OTHER)}
    check_equal({key: said[key] for key in wanted}, wanted, "an occupant's state")
    pid, parent, group, session, terminal = said["ids"].split()
    check_equal((group, session, terminal), (pid, pid, "0"), "an occupant's group, session and terminal")
    check("/vitro-p" in said["cwd"] if program.bare else (pid, parent, said["cwd"]) == ("2", "0", "/tmp"), said)
    check("LEAKED" not in said["environ"], said["environ"])


def serves(program, bound_ms, what):
    """Other calls are served meanwhile."""
    took = []
    for _ in range(5):
        start = time.monotonic()
        result = program.call("nap", ms=1)
        took.append((time.monotonic() - start) * 1000)
        check_equal(result["status"], "ok", f"a call beside {what}")
    check(statistics.median(took) < bound_ms, f"beside {what} others take {took} ms")


TALK = {
    "half a head": "timeout", "half a body": "timeout", "nothing, stopped": "timeout",
    "a huge length": "result_limit", "a huge name": "crashed", "a huge log line": "result_limit",
    "no kind": "crashed", "what only the supervisor says": "crashed", "an answer": "crashed",
    "a question of a negative number": "crashed", "a question of no name": "timeout",
    "a level of no name": "timeout", "descriptors": "timeout", "lines for ever": "timeout",
    "long lines for ever": "timeout", "questions for ever": "timeout",
    "questions whose answers nobody reads": "timeout", "output for ever": "timeout",
}


def fill(program):
    """As many cells are ready as may be."""
    for call in [program.submit("nap", ms=20) for _ in range(16)]:
        program.wait(call)
    wait_until(lambda: program.ready() == 8, 10, "the pool is full")


def talk(how, status):
    with Program({"limits": {"wall_ms": 1500}}) as program:
        fill(program)
        supervisor = supervisor_of(program)
        held = len(os.listdir(f"/proc/{supervisor}/fd"))
        attack = program.submit("talk", how=how)
        time.sleep(0.2)
        serves(program, 250, how)
        result = program.wait(attack)
        check_equal(result["status"], status, "how the attack ends", result)
        check(result["usage"]["wall_ms"] < 2500, f"its deadline is late: {result['usage']}")
        peak = int(next(line for line in proc(f"{supervisor}/status").decode().splitlines()
                        if line.startswith("VmHWM")).split()[1])
        check(peak < 64 << 10, f"the supervisor has grown to {peak} KB")
        serves(program, 250, f"what is left of {how}")
        wait_until(lambda: len(os.listdir(f"/proc/{supervisor}/fd")) <= held, 5,
                   f"the supervisor has no more than {held} descriptors again")


for _how, _status in TALK.items():
    test(f"apart: a tool that says {_how} harms no other call")(lambda how=_how, status=_status: talk(how, status))


@test("apart: what a tool says after its result is not heard, and it does not live on while others are called")
def _():
    def spinning():
        ticks = []
        for pid in descendants(supervisor):
            if fields := proc(f"{pid}/stat").rpartition(b")")[2].split():
                ticks.append(int(fields[11]) + int(fields[12]))
        return max(ticks, default=0) / os.sysconf("SC_CLK_TCK")

    with Program() as program:
        program.value("nap", ms=0)
        supervisor = supervisor_of(program)
        control = program.submit("spin", ms=20000)  # one that may run: it is seen
        for _ in range(4):
            check_equal(program.value("outlive"), "first", "its result")
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            program.value("nap", ms=0)
        wait_until(lambda: spinning() > 0.2, 10, "the control: a call that spins is seen")
        program.tell(f"cancel {control}")
        program.wait(control)
        check(spinning() < 0.3, lambda: f"something spins: {spinning()} s")
        check_equal([line for line in program.logs if line[-1] == "late"], [], "late lines")


THINGS = ["processes", "watchers", "signals", "space", "descriptors"]


def exhaust(what):
    with Program({"limits": {"wall_ms": 20000, "pids": 64, "tmp_mb": 8}}) as program:
        program.value("nap", ms=0)
        if program.bare and what == "watchers":
            skip("a bare cell may have none")
        if program.bare and what == "space":
            skip("tmp: watched in a bare cell, which ends where it has taken all")
        if what == "signals" and program.processes not in SIGNALS["processes"]:
            skip("signals are denied here, even to oneself")
        check_equal(program.value("have")[what], 0, "before")
        taking = program.submit("take", what=what, ms=1500)
        while not any("holding" in line[-1] for line in program.logs):
            program.logs.append(program.expect("log").split(" ", 1))
        had = program.value("have")[what]
        own = program.wait(taking)["value"][what]
        if own == 0:
            skip("one cell may have as many as there are")
        if (what == "descriptors" or program.bare) and not IS_ROOT:
            skip("counted for the user, whose cells all are his")
        check_equal(had, 0, f"while another cell has all of its {what}, this is left")
        serves(program, 250, what)


for _what in THINGS:
    test(f"apart: a cell that takes all the {_what} it can takes none from others")(lambda what=_what: exhaust(what))


@test("apart: a tool cannot change the program that it is of")
def _():
    code = """
import os
for pid in ("self", os.getppid()):
    path = f"/proc/{pid}/exe"
    for act in (lambda: os.chmod(path, 0o777), lambda: os.utime(path, (1, 1)), lambda: os.open(path, os.O_WRONLY),
                lambda: os.truncate(path, 0), lambda: os.chown(path, os.getuid(), os.getgid()),
                lambda: os.setxattr(path, "user.vitro", b"1")):
        try:
            act()
            print("changed")
        except OSError:
            pass
"""
    before = os.stat(APART)
    with Program() as program:
        check_equal(program.python(code), "", "what a tool could do to its program")
    after = os.stat(APART)
    check_equal((after.st_mode, after.st_mtime, after.st_size), (before.st_mode, before.st_mtime, before.st_size),
                "the program")
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "sleep")
        subprocess.run(["cp", "/bin/sleep", copy], check=True)
        with subprocess.Popen([copy, "100"]) as process:
            os.chmod(f"/proc/{process.pid}/exe", 0o711)
            process.kill()
        check_equal(os.stat(copy).st_mode & 0o777, 0o711, "the control: a mode changed through exe")


@test("apart: a tool leaves the supervisor no child to reap")
def _():
    with Program() as program:
        check_equal(program.value("adopt_out"), 1, "EPERM from clone with CLONE_PARENT")
    done = subprocess.run(["sh", "-c", f"{APART} --do adopt_out '{{}}'; :"], stdout=subprocess.PIPE, text=True)
    check_equal(done.stdout.strip(), "0", "the control")


if __name__ == "__main__":
    need_program()
    main()
