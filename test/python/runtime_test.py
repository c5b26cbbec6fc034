#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of Python interpreters: what their zygotes load, learn, refuse to load, and live through.

Each test speaks the wire, and calls functions of a module of its own, which lies in a folder for reading. Whether
something was imported ahead of a call shows in that two calls see the same moment of it.

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
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
import client as wire
from pythons import closed_folder
from vitrotest import (BINARY, FLAGS, IS_ROOT, PREFIX, WITHIN, Failed, check, check_equal, check_in, children, folder,
                       is_bare, main, proc, skip, test, wait_until, write)

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


# ---- interpreters ---------------------------------------------------------------------------------------


@test("a call in a pool of Python gives its value, its output, and its failures")
def _():
    for kind, prefix in kinds():
        with Pool(prefix=prefix) as pool:
            check_equal(pool.run("value = [1, 'two', None]"), [1, "two", None], f"cells {kind}: value")
            result = pool.result("import sys\nprint('out', flush=True)\nprint('err', file=sys.stderr, flush=True)")
            check_equal((result["stdout"], result["stderr"]), ("out\n", "err\n"), f"cells {kind}: output")
            result = pool.result("raise KeyError('no such')")
            check_equal((result["status"], result["error"]["type"]), ("error", "KeyError"), f"cells {kind}: failure")
            result = pool.result("import os; os.kill(os.getpid(), 11)")
            check_equal((result["status"], result["signal"]), ("crashed", 11), f"cells {kind}: a crash")
            check_equal(pool.run("value = 5"), 5, f"cells {kind}: the next")


@test("every Python from 3.8 on works, by its own name and prefix")
def _():
    for python in pythons():
        for kind, prefix in kinds():
            about = try_one(python, prefix)
            if about:
                check_equal(about[2], python, f"{python}, cells {kind}: its name")
                check(os.path.realpath(python).startswith(os.path.realpath(about[1])), f"{python}: prefix {about[1]}")


@test("a venv of each is one: its prefix, its packages and their .pth files, none of which another Python sees")
def _():
    for python in pythons():
        if closed_folder(python):
            continue
        with venv_of(python) as venv:
            with Pool(f"{venv}/bin/python3", preload=["of_the_venv", "by_a_pth"]) as pool:
                check_equal(pool.run("import sys; value = sys.prefix"), venv, f"{python}: prefix")
                check(pool.is_ahead("of_the_venv"), f"{python}: a package of the venv: {pool.lines}")
                check(pool.is_ahead("by_a_pth"), f"{python}: by its .pth: {pool.lines}")
            with Pool(python, preload=["of_the_venv"]) as pool:
                pool.until_told("No module named 'of_the_venv'")


@test("a name on PATH is looked up as a command is, through a shim of pyenv's too")
def _():
    name = shutil.which("python3")
    if not name or "/shims/" not in name:
        skip("python3 is no shim of pyenv here")
    if closed_folder(os.path.dirname(name)):
        skip("pyenv is closed to the users of cells here")
    with Pool("python3") as pool:
        found = pool.run("import sys; value = sys.executable")
        want = subprocess.run([name, "-c", "import sys; print(sys.executable)"], stdout=subprocess.PIPE, check=True)
        check_equal(os.path.realpath(found), os.path.realpath(want.stdout.decode().strip()), "the interpreter")


@test("what is no Python from 3.8 on, or cannot be had, is refused with a reason")
def _():
    with Pool("/bin/true") as pool:
        result = pool.result("value = 1")
        check_in("CPython 3.8", result["error"]["message"], "of another program")
    try:
        Pool("no-such-python").end()
        raise Failed("it is there")
    except PermissionError as why:
        check_equal(why.errno, 2, "num of one that is not there")


@test("a setup that is none is refused with a reason")
def _():
    for setup in ("", "[]", "{", '{"version": 2}', '{"version": 1, "path": "/x"}', '{"version": 1, "preload": [1]}'):
        with wire.Client(*spawn(())) as client:
            client.say({"do": "hello", "version": 1})
            client.until(lambda: client.version)
            client.pool(1, POLICY, python=SYSTEM, setup=setup)
            client.call(1, pool=1, tool="probe:run")
            check_in("JSON object of version 1", client.wait(1)["error"]["message"], f"of {setup!r}")


@test("a runtime that others can write is not loaded")
def _():
    with folder() as place:
        binary = shutil.copy(BINARY, place)
        runtime = pathlib.Path(shutil.copytree(pathlib.Path(BINARY).parent / "python", f"{place}/python"))
        for path in (None, runtime / "harness.py", runtime / "__pycache__" / "codec.pyc", runtime):
            if path and not path.exists():
                write(path, "")
            if path:
                path.chmod(0o777)
            with wire.Client.start(binary) as client:
                try:
                    client.pool(1, POLICY, python=SYSTEM, setup="{}")
                    check(not path, f"{path} may be written, and is loaded")
                except PermissionError as why:
                    check_in("others may write", str(why), f"of {path}")
            if path:
                path.chmod(0o755)


@test("a vitro without its Python runtime says so")
def _():
    with folder() as place:
        binary = shutil.copy(BINARY, place)
        with wire.Client.start(binary) as client:
            try:
                client.pool(1, POLICY, python=SYSTEM, setup="{}")
                raise Failed("it has one")
            except PermissionError as why:
                if "refused: " in str(why):
                    skip(str(why))
                check_in("built without Python", str(why), "refusal")


@test("an interpreter that calls could change is refused: where it lies, and where its venv leads")
def _():
    with venv_of(SYSTEM) as venv, folder(writable=True) as free:
        write_grant = [{"key": "files.write", "value": os.path.dirname(venv)}]
        with Pool(f"{venv}/bin/python3") as pool:  # control
            check_equal(pool.run("value = 1"), 1, "without the grant")
        os.symlink(f"{venv}/bin/python3", f"{free}/python3")
        for python, policy in ((f"{venv}/bin/python3", write_grant),
                               (f"{free}/python3", [{"key": "files.write", "value": free}])):
            try:
                Pool(python, policy=policy).end()
                raise Failed(f"{python} is started though calls may change it")
            except PermissionError as why:
                check_in("lets calls change", str(why), "refusal")


# ---- ahead of calls -------------------------------------------------------------------------------------


@test("what is to be loaded is there before the call, once; what is not, is not")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(f"{place}/wanted.py", MOMENT)
            write(f"{place}/other.py", MOMENT)
            with Pool(prefix=prefix, paths=[place], preload=["wanted", "no_such_module"]) as pool:
                check(pool.is_ahead("wanted"), f"cells {kind}: it is not there: {pool.lines}")
                check(not pool.is_ahead("other"), f"cells {kind}: the control is there")
                pool.until_told("No module named 'no_such_module'")
                check(pool.has("asyncio") and pool.has("logging"), "what every piece of code may need")


@test("what was learned is there in the cells to come, and in those that were ready")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(f"{place}/lesson.py", MOMENT)
            with Pool(prefix=prefix, paths=[place]) as pool:
                check(not pool.is_ahead("lesson"), f"cells {kind}: it is there before")
                pool.learn("lesson")
                pool.learn("lesson.no_such_part")
                pool.until_all_have("lesson")
                # Where no other is ready, one of before may still serve a call.
                wait_until(lambda: pool.is_ahead("lesson"), PATIENCE, f"cells {kind}: none has its own")
                pool.until_told("lesson.no_such_part")
                check_equal(pool.client.lost, None, "the session goes on")


@test("a zygote that takes another's place knows what that one has learned")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(f"{place}/lesson.py", MOMENT)
            write(f"{place}/birth.py", MOMENT)  # whose value is each zygote's own
            with Pool(prefix=prefix, paths=[place], preload=["birth"]) as pool:
                pool.learn("lesson")
                pool.until_ahead("lesson")
                pid, first = pool.zygote, pool.run("import birth; value = birth.MOMENT")
                check(pid, f"cells {kind}: there is a zygote")
                os.kill(pid, signal.SIGKILL)
                wait_until(lambda: pool.zygote not in (None, pid), PATIENCE, "there is another")
                seen = []  # of the next zygote's cells; those that were ready come before, and may know less
                for _ in range(200):
                    birth, had, moment = pool.run("import sys\nvalue = 'lesson' in sys.modules\nimport birth, lesson\n"
                                                  "value = [birth.MOMENT, value, lesson.MOMENT]")
                    if birth != first:
                        check(had, f"cells {kind}: one does not have it, after {seen}")
                        seen.append((birth, moment))
                    if len(seen) == 4:
                        break
                check_equal(len({*seen}), 1, f"cells {kind}: the next ones share it: {seen}")


@test("learning is for pools of Python")
def _():
    with wire.Client(*spawn(())) as client:
        client.say({"do": "hello", "version": 1})
        client.until(lambda: client.version)
        client.pool(1)
        client.say({"do": "learn", "pool": 1, "module": "json"})
        try:
            client.count()
            raise Failed("the session goes on")
        except wire.Broken:
            check_in("a module to learn", str(client.lines), "why")
    for name, lives in (("m" * 255, True), ("m" * 256, False), ("", False)):
        with Pool() as pool:
            pool.learn(name)
            try:
                pool.run("value = 1")
                check(lives, f"a name of {len(name)} bytes is taken")
            except (Failed, wire.Broken, OSError):
                check(not lives, f"a name of {len(name)} bytes ends the session")


# ---- what vitro itself is of ------------------------------------------------------------------------------


OBJECT = os.path.join(os.path.dirname(BINARY), "test", "plugin.so")


class Install:
    """A copy of vitro with all that it starts, in a folder `lib`, and a folder `work` beside that."""

    def __init__(self, stack):
        self.top = os.path.realpath(stack.enter_context(folder()))
        self.lib, self.work = f"{self.top}/lib", f"{self.top}/work"
        own = os.path.dirname(os.path.realpath(BINARY))
        os.mkdir(self.work)
        os.chmod(self.work, 0o777)
        shutil.copytree(f"{own}/python", f"{self.lib}/python")
        for name in ("vitro", "vitro-object"):
            shutil.copy2(f"{own}/{name}", f"{self.lib}/{name}")

    @contextlib.contextmanager
    def client(self, prefix=()):
        with wire.Client(*spawn(prefix, f"{self.lib}/vitro")) as client:
            client.say({"do": "hello", "version": 1})
            client.until(lambda: client.version)
            yield client


def policy_for(*writable, **more):
    return [{"key": "require", "value": "best-effort"}, {"json": json.dumps({"files": {"write": writable, **more}})}]


def kinds_of_pool():
    setup = json.dumps({"version": 1, "mode": "json", "path": [], "preload": [], "main": None})
    yield "python", {"python": SYSTEM, "setup": setup}
    if os.path.exists(OBJECT):
        yield "an object", {"object": OBJECT}


def check_refused(client, policy, what, **fields):
    try:
        client.pool(99, policy, **fields)
    except PermissionError as error:
        check_in("refused: files.write: ", error.strerror, what)
        check_in("which vitro runs outside of cells", error.strerror, what)
        check_equal(error.errno, 1, f"{what}: EPERM")
        return error.strerror
    raise Failed(f"{what}: a pool was made")


@test("what vitro starts outside of cells is not for calls to write: neither it, nor what is around it or before it, nor by a"
      " link")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            install = Install(stack)
            with install.client(prefix) as client:
                for number, (name, fields) in enumerate(kinds_of_pool(), 2):
                    for place in (install.top, install.lib, f"{install.lib}/python", f"{install.lib}/python/harness.py",
                                  f"{install.lib}/vitro-object"):
                        text = check_refused(client, policy_for(place), f"{name}, {kind}: {place}", **fields)
                        check_in(f"'{install.lib}", text, "the path")
                    if not prefix and not is_bare():
                        moved = {"from": install.lib, "to": "/mnt/other"}
                        check_refused(client, policy_for(moved), f"{name}: elsewhere", **fields)
                        check_refused(client, policy_for(install.top, deny=[install.lib]), f"{name}: denied", **fields)
                    client.pool(number, policy_for(install.work), **fields)
                # Where an installed vitro has them is looked at first, though nothing is there.
                os.mkdir(f"{install.top}/libexec")
                for name, fields in kinds_of_pool():
                    check_refused(client, policy_for(f"{install.top}/libexec"), f"{name}, {kind}: before it", **fields)
                # One of its files is a link.
                os.rename(f"{install.lib}/python/cwd.py", f"{install.work}/cwd.py")
                os.symlink(f"{install.work}/cwd.py", f"{install.lib}/python/cwd.py")
                for name, fields in kinds_of_pool():
                    check_refused(client, policy_for(install.work), f"{name}, {kind}: a link", **fields)


@test("what commands of one pool could change, another does not start; alone they may")
def _():
    with contextlib.ExitStack() as stack:
        install = Install(stack)
        python = dict(kinds_of_pool())["python"]
        with install.client() as client:
            client.pool(1, policy_for(install.top), command="true")
            check_in("by a pool that was made before", check_refused(client, policy_for(), "after it", **python), "why")
        with install.client() as client:
            client.pool(2, policy_for(), **python)
            check_refused(client, policy_for(install.top), "before it", command="true")
            client.pool(3, policy_for(install.work), command="true")


@test("clients of a server can have no pool that could change what it starts")
def _():
    with contextlib.ExitStack() as stack:
        install = Install(stack)
        place = stack.enter_context(folder())
        server = subprocess.Popen([*PREFIX, f"{install.lib}/vitro", "serve", "--socket", f"{place}/socket"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        sock = wire.socket.socket(wire.socket.AF_UNIX)
        wait_until(lambda: sock.connect_ex(f"{place}/socket") == 0, PATIENCE, "it serves")
        with wire.Client(sock) as client:
            client.say({"do": "hello", "version": 1})
            client.until(lambda: client.version)
            for number, (name, fields) in enumerate([*kinds_of_pool(), ("a command", {"command": "true"})], 2):
                check_refused(client, policy_for(install.top), name, **fields)
                client.pool(number, policy_for(install.work), **fields)


# ---- where calls can write ------------------------------------------------------------------------------


class Workspace:
    """A folder that calls may write, and one that they may only read."""

    def __init__(self, stack):
        self.free = stack.enter_context(folder(writable=True))
        self.fixed = stack.enter_context(folder())
        self.policy = [{"key": "files.write", "value": self.free}]

    def pool(self, prefix, *paths, **options):
        return Pool(prefix=prefix, paths=paths, policy=self.policy, **options)


def check_never_ahead(pool, module, told):
    """By neither way, and calls can still use it."""
    pool.learn(module)
    pool.until_told(f"'{module}' is not imported ahead of calls: {told}")
    check(not pool.is_ahead(module), f"{module} was imported by the zygote")


@test("a module that calls could write is never imported ahead of them; from a folder for reading it is")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/written.py", MOMENT)
            write(f"{space.fixed}/fixed.py", MOMENT)
            with space.pool(prefix, space.free, space.fixed, preload=["written", "fixed"]) as pool:
                pool.until_told("'written' is not imported ahead of calls: Writable")
                check(pool.is_ahead("fixed"), f"cells {kind}: the control is not there: {pool.lines}")
                check_never_ahead(pool, "written", "Writable")


@test("an initializer is called ahead of calls, but never where these could write what it reads")
def _():
    note = "import time\nnoted = []\ndef note():\n    noted.append(time.time_ns())\n"
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.fixed}/fixed.py", note)

            def ask(pool):
                with pool:
                    found = [pool.run("import fixed\nvalue = fixed.noted") for _ in range(3)]
                check_equal([len(noted) for noted in found], [1, 1, 1], f"cells {kind}: it was called before each")
                return len({noted[0] for noted in found})

            once = ask(Pool(prefix=prefix, paths=[space.fixed], initializer="fixed:note"))
            check_equal(once, 3 if prefix or is_bare() else 1, f"cells {kind}: the control")
            check_equal(ask(space.pool(prefix, space.fixed, initializer="fixed:note")), 3, f"cells {kind}: by each")


@test("nor by a link, a cache, a part of a namespace package, or from behind an except")
def _():
    for _, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            for name in ("linked", "cached", "whole"):
                write(f"{space.free}/{name}.py", MOMENT)
            write(f"{space.free}/split/part.py", MOMENT)
            os.symlink(f"{space.free}/linked.py", f"{space.fixed}/linked.py")
            write(f"{space.fixed}/cached.py", MOMENT)
            os.mkdir(f"{space.free}/cache", 0o755)
            os.symlink(f"{space.free}/cache", f"{space.fixed}/__pycache__")
            write(f"{space.fixed}/split/other.py", MOMENT)
            write(f"{space.fixed}/careful/__init__.py", MOMENT + "try:\n    import whole\nexcept BaseException:\n    pass\n")
            write(f"{space.fixed}/plain.py", MOMENT)
            subprocess.run([SYSTEM, "-c", "import py_compile, sys; py_compile.compile(sys.argv[1], "
                            "f'{sys.argv[2]}.{sys.implementation.cache_tag}.pyc')",
                            f"{space.fixed}/cached.py", f"{space.free}/cache/cached"], check=True)
            with space.pool(prefix, space.fixed, space.free) as pool:
                for module in ("linked", "cached", "careful", "split.other"):
                    check_never_ahead(pool, module, "Writable")


@test("nor where a folder for writing is shown for reading as well")
def _():
    with contextlib.ExitStack() as stack:
        around = stack.enter_context(folder(writable=True))
        os.mkdir(f"{around}/free", 0o777)
        os.chmod(f"{around}/free", 0o777)
        write(f"{around}/free/twice.py", MOMENT)
        write(f"{around}/once.py", MOMENT)
        moved = json.dumps({"files": {"write": [{"from": f"{around}/free", "to": "/work"}]}})
        if is_bare():
            skip("cells without namespaces have every folder at its own place")
        with Pool(paths=[around, f"{around}/free"], policy=[{"json": moved}], preload=["once"]) as pool:
            check(pool.is_ahead("once"), f"the control is not there: {pool.lines}")
            check_never_ahead(pool, "twice", "Writable")


@test("a .pth that calls could write is not read by the zygote")
def _():
    with venv_of(SYSTEM) as venv:
        packages = glob.glob(f"{venv}/lib/python3.*/site-packages")[0]
        write(f"{packages}/early.pth", "import sys; sys.early = True\n")
        read = "import sys; value = hasattr(sys, 'early')"
        with Pool(f"{venv}/bin/python3") as pool:
            check(pool.run(read), "the control: it is read where only we can write it")
        if IS_ROOT:
            os.chmod(packages, 0o777)
        with Pool(f"{venv}/bin/python3", policy=[{"key": "files.write", "value": packages}]) as pool:
            check(not pool.run(read), "it was read")


# ---- modules that do harm -------------------------------------------------------------------------------

HARM = {
    "starts_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
    "crashes": "import os\nos.kill(os.getpid(), 11)\n",
    "leaves": "import os\nos._exit(3)\n",
    "raises": "raise SystemExit(4)\n",
    "shares": "import mmap\nmemory = mmap.mmap(-1, 4096)\n",
}
SAYS = {"starts_thread": "starts a thread", "crashes": "ends the interpreter", "leaves": "ends the interpreter",
        "raises": "SystemExit", "shares": "memory that all calls would share"}


def write_harm(place):
    for name, text in HARM.items():
        write(f"{place}/{name}.py", text)
    write(f"{place}/good.py", MOMENT)


@test("learning what starts a thread, shares memory, crashes, leaves or raises does no harm")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write_harm(place)
            with Pool(prefix=prefix, paths=[place]) as pool:
                check(pool.run("value = True"), "a first call")
                before = pool.zygote
                for name in HARM:
                    pool.learn(name)
                pool.learn("good")
                pool.until_ahead("good")
                for name, said in SAYS.items():
                    check(any(f"'{name}'" in line and said in line for line in pool.lines),
                          f"cells {kind}: {name}: {pool.lines}")
                    check(not pool.has(name), f"cells {kind}: {name} is there")
                check_equal(pool.zygote, before, f"cells {kind}: the zygote is the same")


@test("what starts a thread, shares memory, crashes or leaves while it is loaded is left out by name, and the pool lives")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write_harm(place)
            with Pool(prefix=prefix, paths=[place], preload=[*HARM, "good"]) as pool:
                check(pool.is_ahead("good"), f"cells {kind}: the good one is there: {pool.lines}")
                for name in HARM:
                    check(not pool.has(name), f"cells {kind}: {name} is there")
                    check(any(f"'{name}'" in line for line in pool.lines), f"cells {kind}: {name}: {pool.lines}")


@test("learning what never ends keeps nobody waiting, and is given up")
def _():
    with folder() as place:
        write(f"{place}/hangs.py", "import time\ntime.sleep(600)\n")
        write(f"{place}/good.py", MOMENT)
        with Pool(paths=[place]) as pool:
            pool.run("value = 1")
            before = pool.zygote
            pool.learn("hangs")
            pool.learn("good")
            begin = time.monotonic()
            for _ in range(40):  # more than were ready
                pool.run("value = 1")
            check(time.monotonic() - begin < TRIAL / 2, "calls waited for it")
            wait_until(lambda: any("longer than" in line for line in pool.lines), TRIAL + PATIENCE, f"{pool.lines}")
            pool.until_ahead("good")
            check_equal(pool.zygote, before, "the zygote is the same")


@test("nothing survives a session, not even what is being tried")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(f"{place}/hangs.py", "import time\ntime.sleep(600)\n")
            with Pool(prefix=prefix, paths=[place]) as pool:
                pool.run("value = 1")
                pool.learn("hangs")
                time.sleep(0.3)
                check(not any("hangs" in line for line in pool.lines), f"it is still tried: {pool.lines}")
                pids = {pid: proc(f"{pid}/stat").split()[21:22] for pid in family(pool.client.process.pid)
                        if proc(f"{pid}/stat")}
            check(len(pids) > 3, f"cells {kind}: there were some: {pids}")
            wait_until(lambda: not living(pids), PATIENCE, f"all have ended: {living(pids)}")


# ---- what siblings share --------------------------------------------------------------------------------


@test("siblings differ in what is random, and have the environment that the policy gives")
def _():
    for kind, prefix in kinds():
        policy = [{"key": "env.set", "value": '{"MARK": "7", "OMP_NUM_THREADS": "3"}'}]
        with Pool(prefix=prefix, preload=["random", "tempfile"], policy=policy) as pool:
            numbers = [pool.run("import random, os; value = [random.random(), os.urandom(4).hex()]") for _ in range(3)]
            check_equal(len({tuple(pair) for pair in numbers}), 3, f"cells {kind}: numbers {numbers}")
            seen = pool.run("import os; value = dict(os.environ)")
            check_equal((seen["MARK"], seen["OMP_NUM_THREADS"]), ("7", "3"), f"cells {kind}: variables")
            check(not [name for name in seen if name in ("VITRO_ZYGOTE", "LD_BIND_NOW", "OPENBLAS_NUM_THREADS")],
                  f"cells {kind}: what is the zygote's own: {seen}")
            kept = pool.run("import os, tempfile\nwith tempfile.NamedTemporaryFile() as file:\n"
                            "    value = [os.path.dirname(file.name), os.environ['HOME']]")
            check_equal(kept[0], kept[1], f"cells {kind}: the private folder")
            check_equal(pool.run("import os, gc; value = sorted(os.listdir('/proc/self/fd'))[:5]")[:4], ["0", "1", "2", "3"],
                        f"cells {kind}: descriptors")


if __name__ == "__main__":
    main()
