# SPDX-License-Identifier: Apache-2.0
"""Pools of Python interpreters for tests, which speak the wire and call functions of a module of their own, which lies in a
folder for reading. Whether something was imported ahead of a call shows in that two calls see the same moment of it.

VITRO_TEST_PYTHON is the interpreter that most of them are for, else the system's.
"""

import base64
import contextlib
import glob
import json
import os
import pathlib
import pickle
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
import client as wire
from pythons import closed_folder
from vitrotest import (BINARY, FLAGS, PREFIX, WITHIN, Failed, check_equal, children, folder, is_bare, proc, skip,
                       wait_until, write)

SYSTEM = os.environ.get("VITRO_TEST_PYTHON", "/usr/bin/python3")
PROBE = """
import sys
def run(code):
    scope = {}
    exec(code, scope)
    return scope.get("value")
"""
MOMENT = "import time\nMOMENT = time.time_ns()\n"
POLICY = [{"key": "require", "value": "best-effort"}] if FLAGS else []
# How long a zygote may take for what it does behind the caller's back.
PATIENCE = 20
TRIAL = 10  # s that an import is tried for


def spawn(prefix, program=BINARY):
    """As the wire's own client does, on a machine that may be made poorer for it."""
    ours, theirs = wire.socket.socketpair()
    at, null = theirs.fileno(), subprocess.DEVNULL
    script = 'exec "$@" supervise' if at == 3 else f'exec "$@" supervise 3<&{at} {at}<&-'
    process = subprocess.Popen(["/bin/sh", "-c", script, "sh", *prefix, *PREFIX, program], stdin=null, stdout=null,
                               stderr=null, pass_fds=[at], start_new_session=True)
    theirs.close()
    return ours, process


def kinds():
    """How cells are made here: prefixes of the supervisor, by name."""
    yield "as they are", ()
    if not is_bare() and os.path.exists(WITHIN):
        yield "without namespaces", (WITHIN, "--deny-userns", "--")


class Pool:
    """One pool of a supervisor of its own. paths: folders on sys.path, for reading."""

    def __init__(self, python=SYSTEM, prefix=(), paths=(), preload=(), policy=(), initializer=None,
                 **fields):
        self.place = tempfile.mkdtemp(prefix="test-")
        os.chmod(self.place, 0o755)
        write(os.path.join(self.place, "probe.py"), PROBE)
        self.client = wire.Client(*spawn(prefix))
        self.numbers = 0
        setup = {"version": 1, "mode": "json", "path": [self.place, *paths], "preload": list(preload), "main": None}
        if initializer:  # of a module, without arguments
            module, name = initializer.split(":")
            setup["initializer"] = {"function": {"module": module, "name": name}, "modules": [module],
                                    "buffers": [base64.b64encode(pickle.dumps(((), {}))).decode()]}
        sources = [{"key": "require", "value": "best-effort"}] if FLAGS or prefix else []
        sources += [{"key": "files.read", "value": path} for path in (self.place, *paths) if os.path.isdir(path)]
        try:
            self.client.say({"do": "hello", "version": 1})
            self.client.until(lambda: self.client.version)
            self.client.pool(1, [*sources, *policy], python=python, setup=json.dumps(setup), **fields)
        except BaseException as why:
            self.end()
            if "built without Python" in str(why):
                skip(str(why))
            raise

    def end(self):
        self.client.__exit__()
        shutil.rmtree(self.place, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    @property
    def lines(self):
        self.client.count()
        return [text for _, text in self.client.lines]

    def result(self, code):
        self.numbers += 1
        self.client.call(self.numbers, pool=1, tool="probe:run", arguments=json.dumps({"code": code}).encode())
        return self.client.wait(self.numbers)

    def run(self, code):
        """What the code leaves as `value`."""
        result = self.result(code)
        if not result["ok"]:
            raise Failed(f"{code!r}: {result['status']}: {result['error']}\n{self.lines}")
        return result["value"]

    def learn(self, module):
        self.client.say({"do": "learn", "pool": 1, "module": module})

    def has(self, module):
        return self.run(f"import sys; value = {module!r} in sys.modules")

    def is_ahead(self, module):
        """Whether cells share what importing it made."""
        code = f"import sys\nvalue = {module!r} in sys.modules\nimport {module} as m\nvalue = [value, m.MOMENT]"
        first, second = self.run(code), self.run(code)
        check_equal(first[0] and second[0], first[1] == second[1], f"{module}: {first} and {second} agree")
        return first[0]

    def until_ahead(self, module):
        wait_until(lambda: self.has(module), PATIENCE, f"cells have {module}: {self.lines}")

    def until_all_have(self, module):
        """Cells of before serve calls until they are replaced."""
        wait_until(lambda: all(self.has(module) for _ in range(8)), PATIENCE, f"all cells have {module}: {self.lines}")

    def until_told(self, part):
        wait_until(lambda: any(part in line for line in self.lines), PATIENCE, f"the log has {part!r}: {self.lines}")

    @property
    def zygote(self):
        """The oldest of the supervisor's children that runs zygote.py, and is in no cell: a bare cell's init has all
        signals blocked."""
        found = []
        for pid in children(self.client.process.pid):
            status = dict(line.split(":", 1) for line in proc(f"{pid}/status").decode().splitlines())
            if (b"zygote.py" in proc(f"{pid}/cmdline") and len(status.get("NSpid", "").split()) == 1
                    and int(status["SigBlk"], 16) == 0):
                found.append((int(proc(f"{pid}/stat").split()[21]), pid))
        return min(found)[1] if found else None


def family(pid):
    found = [pid]
    for one in found:
        found += children(one)
    return found


def living(pids):
    """Those of pid → birth that have not ended, and what they are."""
    stats = {pid: proc(f"{pid}/stat") for pid in pids}
    return {pid: stat for pid, stat in stats.items()
            if stat and stat.split()[21:22] == pids[pid] and stat.split()[2] not in (b"Z", b"X")}


def pythons():
    """Every CPython from 3.8 on that is here for us."""
    found = {os.path.realpath(SYSTEM): SYSTEM}
    home = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for path in [*sorted(glob.glob("/usr/bin/python3.*[0-9]")), *sorted(glob.glob(f"{home}/versions/3.*/bin/python3"))]:
        if not os.access(path, os.X_OK) or os.path.realpath(path) in found:
            continue
        said = subprocess.run([path, "-c", "import sys; print(sys.version_info >= (3, 8), sys.implementation.name)"],
                              stdout=subprocess.PIPE, check=False).stdout.decode().split()
        if said == ["True", "cpython"]:
            found[os.path.realpath(path)] = path
    return [*found.values()]


@contextlib.contextmanager
def venv_of(python):
    """A venv with a module of its own, and another by a .pth."""
    with folder() as place:
        made = subprocess.run([python, "-m", "venv", "--without-pip", f"{place}/venv"], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        if made.returncode:  # Debian's own lacks ensurepip, and says so
            skip(f"{python} makes no venv: {made.stdout.decode().strip()[:200]}")
        packages = glob.glob(f"{place}/venv/lib/python3.*/site-packages")[0]
        write(f"{packages}/of_the_venv.py", MOMENT)
        write(f"{packages}/beside/by_a_pth.py", MOMENT)
        write(f"{packages}/beside.pth", "beside\n")
        yield f"{place}/venv"


def try_one(python, prefix):
    """A call in one, and what it says of itself; None: refused, since it is closed to who has cells without
    namespaces."""
    try:
        with Pool(python, prefix) as pool:
            return pool.run("import sys, os; value = [sys.version_info[:2], sys.prefix, sys.executable, sys.path]")
    except PermissionError as why:
        if closed_folder(python, bool(prefix)) and "is closed" in str(why):
            return None
        raise
