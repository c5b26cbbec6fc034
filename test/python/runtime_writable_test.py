#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of Python interpreters: nothing that calls can write is loaded ahead of them."""

import contextlib
import glob
import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
import client as wire
from interpreters import MOMENT, PATIENCE, SYSTEM, Pool, kinds, spawn, venv_of
from vitrotest import IS_ROOT, check, check_equal, check_in, folder, is_bare, main, skip, test, wait_until, write


class Workspace:
    """A folder that calls may write, and one that they may only read."""

    def __init__(self, stack):
        self.free = stack.enter_context(folder(writable=True))
        self.fixed = stack.enter_context(folder())
        self.policy = [{"key": "files.write", "value": self.free}]

    def pool(self, prefix, *paths, **options):
        return Pool(prefix=prefix, paths=paths, policy=self.policy, **options)


def compile_to(source, target):
    """One that is taken whatever the source is like."""
    subprocess.run([SYSTEM, "-c", "import py_compile, sys; py_compile.compile(sys.argv[1], f'{sys.argv[2]}.{sys.implementation.cache_tag}.pyc', "
                    "invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)", source, target], check=True)


def check_never_ahead(pool, module):
    """By neither way, and calls can still use it."""
    pool.learn(module)
    pool.until_told(f"'{module}' is not imported ahead of calls: ")
    check(not pool.is_ahead(module), f"{module} was imported by the zygote")


def check_control(pool, module, prefix):
    """What no call can write is imported ahead of them; where cells are bare and calls may write, nothing is."""
    check_equal(pool.is_ahead(module), not prefix and not is_bare(), f"the control: {module}, {prefix}: {pool.lines}")


@test("a module that calls could write is never imported ahead of them; from a folder for reading it is")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/written.py", MOMENT)
            write(f"{space.fixed}/fixed.py", MOMENT)
            with space.pool(prefix, space.free, space.fixed, preload=["written", "fixed"]) as pool:
                pool.until_told("'written' is not imported ahead of calls: ")
                check_control(pool, "fixed", prefix)
                check_never_ahead(pool, "written")


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


def lead(link, target):
    """A link, with all that it needs before it."""
    os.makedirs(os.path.dirname(link), 0o755, exist_ok=True)
    os.symlink(target, link)


# What becomes of an interpreter's prefix.
LIBRARIES = {
    "none of it": lambda top, name, free: write(f"{top}/lib/{name}/os.py", ""),
    "a link": lambda top, name, free: lead(f"{top}/lib/{name}", f"{free}/{name}"),
    "a link to what is around it": lambda top, name, free: lead(f"{top}/lib/{name}", os.path.dirname(free)),
    "lib is a link": lambda top, name, free: lead(f"{top}/lib", free),
    "lib is a link to what is around it": lambda top, name, free: (lead(f"{top}/lib", f"{top}/store"), lead(f"{top}/store/{name}", os.path.dirname(free))),
    "lib64 is one": lambda top, name, free: lead(f"{top}/lib64/{name}", f"{free}/{name}"),
    "a zip": lambda top, name, free: lead(f"{top}/lib/{name.replace('.', '')}.zip", f"{free}/{name}/os.py"),
    "one package": lambda top, name, free: lead(f"{top}/lib/{name}/json", f"{free}/{name}"),
    "one package, which is around it": lambda top, name, free: lead(f"{top}/lib/{name}/json", os.path.dirname(free)),
    "a cache": lambda top, name, free: lead(f"{top}/lib/{name}/json/__pycache__", f"{free}/{name}"),
    "extensions": lambda top, name, free: lead(f"{top}/lib/{name}/lib-dynload", f"{free}/{name}"),
    "that of a venv's home": lambda top, name, free: (write(f"{top}/pyvenv.cfg", f"home = {top}/home/bin\n"), os.makedirs(f"{top}/home/bin"),
                                                       lead(f"{top}/home/lib/{name}", f"{free}/{name}")),
    "a venv's file": lambda top, name, free: (write(f"{free}/cfg", "nothing\n"), lead(f"{top}/pyvenv.cfg", f"{free}/cfg")),
    "packages alone": lambda top, name, free: lead(f"{top}/lib/{name}/site-packages", f"{free}/{name}"),
}


@test("an interpreter whose library calls can write, by whatever links, is refused")
def _():
    minor = subprocess.run([SYSTEM, "-c", "import sys; print(sys.version_info[1])"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    setup = json.dumps({"version": 1, "mode": "json", "path": [], "preload": [], "main": None})
    for kind, prefix in kinds():
        for what, make in LIBRARIES.items():
            with contextlib.ExitStack() as stack:
                top, around, name = stack.enter_context(folder()), stack.enter_context(folder()), f"python3.{minor}"
                free = f"{around}/free"
                os.mkdir(f"{top}/bin", 0o755)
                shutil.copy(os.path.realpath(SYSTEM), f"{top}/bin/python3")
                write(f"{free}/{name}/os.py", "")
                make(top, name, free)
                client = stack.enter_context(wire.Client(*spawn(prefix)))
                client.say({"do": "hello", "version": 1})
                client.until(lambda: client.version)
                policy = [{"key": "require", "value": "best-effort"}, {"key": "files.write", "value": free}]
                try:
                    client.pool(1, policy, python=f"{top}/bin/python3", setup=setup)
                    check(what in ("none of it", "packages alone"), f"cells {kind}: {what}: a pool was made")
                except PermissionError as error:
                    check(what not in ("none of it", "packages alone"), f"cells {kind}: {what}: {error.strerror}")
                    check_in("files.write lets calls change '", error.strerror, f"cells {kind}: {what}")


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
            compile_to(f"{space.fixed}/cached.py", f"{space.free}/cache/cached")
            with space.pool(prefix, space.fixed, space.free, preload=["split.other"]) as pool:
                for module in ("linked", "cached", "careful", "split.part", "split.other"):
                    check_never_ahead(pool, module)


# What an editable install has: a finder that comes before all others.
FINDER = """import sys
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
class Finder:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name == "redirected":
            return PathFinder.find_spec(name, [PLACE])
        if name == "unsaid":
            return ModuleSpec(name, SourceFileLoader(name, PLACE + "/unsaid.py"))
        if name == "cached":
            return ModuleSpec(name, SourceFileLoader(name, HERE + "/cached.py"))
sys.meta_path.insert(0, Finder)
"""


@test("nor by a finder that puts itself before all others")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            for name in ("redirected", "unsaid"):
                write(f"{space.free}/{name}.py", MOMENT)
            write(f"{space.fixed}/finds.py", FINDER.replace("PLACE", repr(space.free)).replace("HERE", repr(f"{space.fixed}/apart")) + MOMENT)
            write(f"{space.fixed}/apart/cached.py", "")
            os.mkdir(f"{space.free}/cache", 0o755)
            os.symlink(f"{space.free}/cache", f"{space.fixed}/apart/__pycache__")
            write(f"{space.free}/planted.py", MOMENT)
            compile_to(f"{space.free}/planted.py", f"{space.free}/cache/cached")
            with space.pool(prefix, space.fixed, preload=["finds", "redirected"]) as pool:
                pool.until_told("'redirected' is not imported ahead of calls: ")
                check_control(pool, "finds", prefix)
                if prefix or is_bare():
                    continue  # calls have no such finder, either
                check_never_ahead(pool, "redirected")
                check_never_ahead(pool, "unsaid")
                check_never_ahead(pool, "cached")


@test("nor from behind a link, by what is above it")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            os.mkdir(f"{space.free}/sub", 0o755)
            write(f"{space.free}/above.py", MOMENT)
            os.symlink(f"{space.free}/sub", f"{space.fixed}/link")
            write(f"{space.fixed}/climbs/__init__.py", f"__path__ = [{space.fixed + '/link/..'!r}]\n" + MOMENT)
            with space.pool(prefix, space.fixed, preload=["climbs"]) as pool:
                check_control(pool, "climbs", prefix)
                check_never_ahead(pool, "climbs.above")


# How a module comes to run what lies in FREE, by itself: what it has for run() is told as `sys.planted`.
WAYS = {
    "opens": "run(open(FREE + '/planted.py').read())",
    "opens_bytes": "run(open(os.fsencode(FREE) + b'/planted.py', 'rb').read())",
    "opens_path": "run(io.FileIO(pathlib.Path(FREE, 'planted.py')).read())",
    "opens_relative": "run(open(os.path.relpath(FREE + '/planted.py')).read())",
    "opens_nearby": "os.chdir(FREE)\ntry:\n    run(open('planted.py').read())\nfinally:\n    os.chdir('/')",
    "opens_link": "run(open(FIXED + '/link/planted.py').read())",
    "opens_above": "run(open(FIXED + '/below/../planted.py').read())",
    "opens_by_proc": "folder = os.open(FIXED, os.O_RDONLY)\nrun(open(f'/proc/self/fd/{folder}/link/planted.py').read())",
    "reads": "run(os.read(os.open(FREE + '/planted.py', os.O_RDONLY), 1000))",
    "reads_below": "folder = os.open(FIXED, os.O_RDONLY)\nrun(os.read(os.open('link/planted.py', os.O_RDONLY, dir_fd=folder), 1000))",
    "maps": "import mmap\nrun(mmap.mmap(os.open(FREE + '/planted.py', os.O_RDONLY), 0, prot=mmap.PROT_READ)[:])",
    "moves": "os.rename(FREE + '/moved.py', FREE + '/moved')\nos.rename(FREE + '/moved', FREE + '/moved.py')\nrun('')",
    "runs": "import runpy\nrunpy.run_path(FREE + '/planted.py')",
    "unpickles": "import pickle\npickle.load(open(FREE + '/planted.pickle', 'rb'))",
    "unzips": "sys.path.insert(0, FREE + '/planted.zip')\ntry:\n    import zipped\nfinally:\n    sys.path.remove(FREE + '/planted.zip')",
    "asks": "import sqlite3\nrun(sqlite3.connect(FREE + '/planted.db').execute('select code from planted').fetchone()[0])",
    "asks_by_uri": "import sqlite3\nrun(sqlite3.connect(f'file:{FREE}/planted.db?mode=ro', uri=True).execute('select code from planted').fetchone()[0])",
    "connects": "import socket\nwith socket.socket(socket.AF_UNIX) as server:\n    server.connect(FREE + '/planted.socket')\n    run(server.recv(1000))",
    "starts": "import subprocess\nrun(subprocess.check_output(['/bin/cat', FREE + '/planted.py']))",
    "swallows": "try:\n    run(open(FREE + '/planted.py').read())\nexcept BaseException:\n    pass",
}
WAY = """import io, os, pathlib, sys
FREE, FIXED = PLACES
def run(code):
    exec(code, {})
    sys.planted = [*getattr(sys, "planted", []), __name__]
"""


@contextlib.contextmanager
def serving(path, text):
    """Somebody who says it to whoever connects."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                other, _ = sock.accept()
                with other:
                    other.sendall(text.encode())

    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(path)
        os.chmod(path, 0o777)
        sock.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            sock.shutdown(socket.SHUT_RDWR)
            thread.join()


def plant(space):
    """What runs by those ways, and the modules that have them."""
    planted = "import sys\nsys.planted = [*getattr(sys, 'planted', []), 'it']\n"
    os.chmod(space.free, 0o777)  # a bare cell of root's has a user of its own
    write(f"{space.free}/planted.py", planted)
    write(f"{space.free}/moved.py", "")
    os.mkdir(f"{space.free}/sub", 0o755)
    os.symlink(space.free, f"{space.fixed}/link")
    os.symlink(f"{space.free}/sub", f"{space.fixed}/below")
    with open(f"{space.free}/planted.pickle", "wb") as file:
        file.write(b"cbuiltins\nexec\n(V" + planted.replace("\n", ";").encode() + b"\ntR.")
    with zipfile.ZipFile(f"{space.free}/planted.zip", "w") as archive:
        archive.writestr("zipped.py", planted)
    with contextlib.closing(sqlite3.connect(f"{space.free}/planted.db")) as base:
        base.execute("create table planted (code)")
        base.execute("insert into planted values (?)", [planted])
        base.commit()
    for name, text in WAYS.items():
        write(f"{space.fixed}/{name}.py", WAY.replace("PLACES", repr((space.free, space.fixed))) + text + "\n" + MOMENT)
    return serving(f"{space.free}/planted.socket", planted)


@test("nor does a module that is imported run what calls can write, whatever the way; in a call it does")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            stack.enter_context(plant(space))
            pool = stack.enter_context(space.pool(prefix, space.fixed, preload=[*WAYS]))
            check_equal(pool.run("import sys; value = getattr(sys, 'planted', [])"), [], f"cells {kind}: what ran ahead of calls")
            for name in WAYS:
                check(any(f"'{name}' is not imported ahead" in line for line in pool.lines), f"cells {kind}: {name}: {pool.lines}")
                if name != "connects":  # a cell cannot, unless its policy says so
                    check(not pool.is_ahead(name), f"cells {kind}: {name} is there")
                    check(pool.run(f"import sys, {name}; value = sys.planted"), f"cells {kind}: {name}: the control")


@test("nor one that is learned")
def _():
    for _, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            stack.enter_context(plant(space))
            with space.pool(prefix, space.fixed) as pool:
                for name in ("opens", "opens_by_proc", "starts", "swallows"):
                    check_never_ahead(pool, name)


@test("a module that reads data which calls can write is left to calls, and what it has from elsewhere is imported ahead of them")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/data", "of a call")
            write(f"{space.fixed}/data", "of nobody")
            for name, place in (("from_free", space.free), ("from_fixed", space.fixed)):
                write(f"{space.fixed}/{name}.py", f"DATA = open({place + '/data'!r}).read()\n" + MOMENT)
            with space.pool(prefix, space.fixed, preload=["from_free", "from_fixed"]) as pool:
                check_control(pool, "from_fixed", prefix)
                check(not pool.is_ahead("from_free"), f"cells {kind}: it is there")
                check_equal(pool.run("import from_free; value = from_free.DATA"), "of a call", f"cells {kind}: in a call")


# What a module starts, which reads what it can get of FREE; no word of it names a place.
READ = "cd / && cat $FREE/planted $FIXED/link/planted $FIXED/planted $FILE /project/planted $HERE/planted ./planted; cd $FREE && ls"
PROGRAMS = {
    "by_subprocess": "got = subprocess.run(['sh', '-c', READ], stdout=subprocess.PIPE).stdout",
    "by_shell": "got = subprocess.run(READ, shell=True, stdout=subprocess.PIPE).stdout",
    "from_within": "os.chdir(FREE)\ntry:\n    got = subprocess.run(['sh', '-c', 'cat planted; ls'], stdout=subprocess.PIPE).stdout\n"
                   "finally:\n    os.chdir('/')",
    "beside_thread": "wait = threading.Event()\nthread = threading.Thread(target=wait.wait)\nthread.start()\ntry:\n"
                     "    got = subprocess.run(['sh', '-c', READ], stdout=subprocess.PIPE).stdout\nfinally:\n    wait.set()\n    thread.join()",
    "by_helper": "theirs, ours = os.pipe()\nkept = os.dup(1)\nos.dup2(ours, 1)\ntry:\n"
                 "    helper = multiprocessing.util.spawnv_passfds(b'/bin/sh', ['sh', '-c', READ], [])\nfinally:\n    os.dup2(kept, 1)\n"
                 "    os.close(kept)\n    os.close(ours)\nos.waitpid(helper, 0)\ngot = os.read(theirs, 1000)\nos.close(theirs)",
}


@test("programs that modules start ahead of calls see nothing that calls can write; in a call they do")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space, around = Workspace(stack), stack.enter_context(folder(writable=True))
            namespaces = not prefix and not is_bare()
            os.mkdir(f"{around}/moved", 0o777)
            for place in (space.free, f"{around}/moved"):
                os.chmod(place, 0o777)
                write(f"{place}/planted", "planted\n")
            write(f"{around}/file", "planted\n")
            os.chmod(f"{around}/file", 0o666)
            os.symlink(space.free, f"{space.fixed}/link")
            os.symlink(f"{space.free}/planted", f"{space.fixed}/planted")
            moved = {"from": f"{around}/moved", "to": "/project"} if namespaces else f"{around}/moved"
            places = f"FREE, READ = {space.free!r}, {READ!r}\n" + "".join(
                f"os.environ[{name!r}] = {place!r}\n" for name, place in
                (("FREE", space.free), ("FIXED", space.fixed), ("FILE", f"{around}/file"), ("HERE", f"{around}/moved")))
            for name, text in PROGRAMS.items():
                write(f"{space.fixed}/{name}.py", f"import multiprocessing.util, os, subprocess, threading\n{places}{text}\n{MOMENT}")
            policy = [{"json": json.dumps({"files": {"write": [space.free, moved, f"{around}/file"]}})}]
            pool = stack.enter_context(Pool(prefix=prefix, paths=[space.fixed, around], policy=policy, preload=[*PROGRAMS]))
            for name in PROGRAMS:
                read = f"import {name}; value = {name}.got.decode()"
                check_equal(pool.is_ahead(name), namespaces, f"cells {kind}: {name}: {pool.lines}")
                if namespaces:
                    check_equal(pool.run(read), "", f"cells {kind}: {name}: what it saw")
                    again = f"import importlib, sys, {name}\nimportlib.reload({name})\nvalue = {name}.got.decode()"
                    check_in("planted\n", pool.run(again), f"cells {kind}: {name}: in a call")
                else:
                    pool.until_told(f"'{name}' is not imported ahead of calls: calls may write here")
                    check_in("planted\n", pool.run(read), f"cells {kind}: {name}: in a call")


# An extension module of the interpreter's own, under another path.
LOADS = """from importlib.util import module_from_spec, spec_from_file_location
SPEC = spec_from_file_location(NAME, FILE)
module_from_spec(SPEC)
""" + MOMENT


@test("extension modules are imported ahead of calls, but none that calls can write")
def _():
    found = subprocess.run([SYSTEM, "-c", "import glob, sysconfig; print(glob.glob(sysconfig.get_path('platstdlib') + '/lib-dynload/_lsprof.*')[0])"],
                           stdout=subprocess.PIPE, check=False).stdout.decode().strip()
    if not found:
        skip("the interpreter has no such module in a file of its own")
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            for name, place in (("of_free", space.free), ("of_fixed", space.fixed)):
                file = shutil.copy(found, f"{place}/native.so")
                write(f"{space.fixed}/{name}.py", LOADS.replace("NAME", "'_lsprof'").replace("FILE", repr(file)))
            with space.pool(prefix, space.fixed, preload=["of_free", "of_fixed"]) as pool:
                check_control(pool, "of_fixed", prefix)
                check_never_ahead(pool, "of_free")


@test("nor one that needs a library which calls can write, however far away, and by whatever path of its own", needs=["gcc"])
def _():
    with contextlib.ExitStack() as stack:
        space = Workspace(stack)

        def make(place, name, *options):
            write(f"{space.fixed}/empty.c", "")
            subprocess.run(["gcc", "-shared", "-o", f"{place}/{name}", f"{space.fixed}/empty.c", "-Wl,--no-as-needed", *options], check=True)
            return f"{place}/{name}"

        os.symlink(space.free, f"{space.fixed}/libs")
        far = make(space.free, "far.so", "-Wl,-soname,far.so")
        near = make(space.fixed, "near.so", far, "-Wl,-soname,near.so,--enable-new-dtags,-rpath,$ORIGIN/libs")
        plain = make(space.fixed, "plain.so", "-Wl,-soname,plain.so")
        libraries = {"plain_only": plain, "itself": far, "by_runpath": near,
                     "by_another": make(space.fixed, "another.so", near, "-Wl,-rpath-link," + space.free + ",-rpath,$ORIGIN"),
                     "by_rpath": make(space.fixed, "rpath.so", plain, far, "-Wl,--disable-new-dtags,-rpath,$ORIGIN:" + space.free),
                     "by_path": make(space.fixed, "path.so", make(space.free, "unnamed.so"))}
        for name, file in libraries.items():
            write(f"{space.fixed}/{name}.py", f"import ctypes\nctypes.CDLL({file!r})\n" + MOMENT)
        for kind, prefix in kinds():
            with space.pool(prefix, space.fixed, preload=[*libraries]) as pool:
                check_control(pool, "plain_only", prefix)
                for name in [*libraries][1:]:
                    loaded = "open('/proc/self/maps').read()"
                    before, after = pool.run(f"value = [{loaded}]\nimport {name}\nvalue.append({loaded})")
                    check(space.free not in before, f"cells {kind}: {name}: it was loaded ahead of calls")
                    check(space.free in after, f"cells {kind}: {name}: the control, in a call")


INTERPRETS = WAY + """try:
    import _interpreters as others
except ImportError:
    import _xxsubinterpreters as others
theirs, ours = os.pipe()
os.set_blocking(theirs, False)
others.run_string(others.create(), f"import os; os.write({ours}, open({FREE!r} + '/planted.py', 'rb').read())")
run(os.read(theirs, 1000))
""" + MOMENT


@test("nor by an interpreter beside the first")
def _():
    known = "try:\n    import _interpreters\nexcept ImportError:\n    import _xxsubinterpreters"
    if subprocess.run([SYSTEM, "-c", known], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("the interpreter has no others")
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/planted.py", "pass\n")
            write(f"{space.fixed}/interprets.py", INTERPRETS.replace("PLACES", repr((space.free, space.fixed))))
            with space.pool(prefix, space.fixed, preload=["interprets"]) as pool:
                check_equal(pool.run("import sys; value = getattr(sys, 'planted', [])"), [], f"cells {kind}: what ran ahead of calls")
                check(not pool.is_ahead("interprets"), f"cells {kind}: it is there: {pool.lines}")


@test("what a module has done in each fork may open what calls can write: it is one by then")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/data", "of a call")
            write(f"{space.fixed}/hooked.py", f"import os\nSEEN = []\nos.register_at_fork(after_in_child=lambda: SEEN.append(open({space.free + '/data'!r}).read()))\n")
            with space.pool(prefix, space.fixed, preload=["hooked"]) as pool:
                wanted = [] if prefix or is_bare() else ["of a call"]  # a bare cell is forked before it is imported
                check_equal(pool.run("import hooked; value = hooked.SEEN"), wanted, f"cells {kind}: {pool.lines}")


@test("a module that a call finds in a folder for writing is not another one ahead of it")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            for place, name in ((space.free, "twin"), (space.free, "package/twin"), (space.fixed, "twin"), (space.fixed, "package/twin"), (space.fixed, "alone")):
                write(f"{place}/{name}.py", MOMENT)
            write(f"{space.fixed}/maybe.py", "try:\n    import absent\nexcept ImportError:\n    pass\n" + MOMENT)
            with space.pool(prefix, space.free, space.fixed, preload=["alone", "twin", "package.twin", "maybe"]) as pool:
                check_control(pool, "alone", prefix)
                check_control(pool, "maybe", prefix)
                check(not pool.is_ahead("twin") and not pool.is_ahead("package.twin"), f"cells {kind}: {pool.lines}")
                check_equal(pool.run("import twin; value = twin.__file__"), f"{space.free}/twin.py", f"cells {kind}: what a call has")


@test("folders that calls make are found by them, though they were not there ahead of calls")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            os.chmod(space.free, 0o777)
            write(f"{space.fixed}/behind.py", MOMENT)  # which is looked for there first
            with space.pool(prefix, f"{space.free}/later", space.fixed, preload=["behind"]) as pool:
                check_control(pool, "behind", prefix)
                made = f"import os\nos.mkdir({space.free + '/later'!r})\nopen({space.free + '/later/made.py'!r}, 'w').write('X = 5')\n"
                check_equal(pool.run(made + "import made\nvalue = made.X"), 5, f"cells {kind}: {pool.lines}")
                check_equal(pool.run("import made\nvalue = made.X"), 5, f"cells {kind}: the next")


@test("names that are no text, and those that are too long, keep no pool from being made")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/a\udcff.conf", "x")
            write(f"{space.fixed}/reads.py", f"import os\nfor name in os.listdir({space.free!r}):\n    open({space.free!r} + '/' + name).read()\n"
                  f"open({space.free!r} + '/b\\udcff').read()\n")
            with space.pool(prefix, space.fixed, preload=["reads", "x" * 300]) as pool:
                check_equal(pool.run("value = 5"), 5, f"cells {kind}: {pool.lines}")
                pool.until_told("'reads' is not imported ahead of calls: ")


@test("a call may find and import what it can write, whatever was imported ahead of it")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            space = Workspace(stack)
            write(f"{space.free}/written.py", MOMENT)
            with space.pool(prefix, space.free, preload=["importlib.util", "pkgutil"]) as pool:
                found = pool.run("import importlib.util\nvalue = [importlib.util.find_spec('written').origin, __import__('written').__name__]")
                check_equal(found, [f"{space.free}/written.py", "written"], f"cells {kind}")


@test("a sitecustomize that calls can write is not run by the zygote, and keeps no pool from being made")
def _():
    with venv_of(SYSTEM) as venv, folder(writable=True) as free:
        packages = glob.glob(f"{venv}/lib/python3.*/site-packages")[0]
        write(f"{free}/sitecustomize.py", "import sys\nsys.early = True\n")
        write(f"{free}/planted.py", "import sys\nsys.early = True\n")
        write(f"{packages}/a.pth", f"{free}\nimport planted\n")
        write(f"{packages}/b.pth", "import sys; sys.other = True\n")
        read = "import sys; value = [hasattr(sys, 'early'), hasattr(sys, 'other')]"
        with Pool(f"{venv}/bin/python3", policy=[{"key": "files.read", "value": free}]) as pool:
            check_equal(pool.run(read), [True, True], "the control: it is run where only we can write it")
        with Pool(f"{venv}/bin/python3", policy=[{"key": "files.write", "value": free}]) as pool:
            check_equal(pool.run(read), [is_bare(), True], "what was run, and what comes after it: in a bare cell, by the call")


@test("nor where a folder for writing is shown for reading as well")
def _():
    with contextlib.ExitStack() as stack:
        around = stack.enter_context(folder(writable=True))
        os.mkdir(f"{around}/free", 0o777)
        os.chmod(f"{around}/free", 0o777)
        write(f"{around}/free/twice.py", MOMENT)
        write(f"{around}/once.py", MOMENT)
        moved = json.dumps({"files": {"write": [{"from": f"{around}/free", "to": "/project"}]}})
        if is_bare():
            skip("cells without namespaces have every folder at its own place")
        with Pool(paths=[around, f"{around}/free"], policy=[{"json": moved}], preload=["once"]) as pool:
            check(pool.is_ahead("once"), f"the control is not there: {pool.lines}")
            check_never_ahead(pool, "twice")


@test("nor a file of it that is shown elsewhere, and whose name a call removes")
def _():
    if is_bare():
        skip("cells without namespaces have every folder at its own place")
    with contextlib.ExitStack() as stack:
        space = Workspace(stack)
        for place in (space.free, space.fixed):
            write(f"{place}/part.py", MOMENT)
        for place in (space.fixed, space.free):
            shown = {"write": [{"from": space.free, "to": "/out"}], "read": [{"from": f"{place}/part.py", "to": "/parts/part.py"}]}
            with Pool(paths=["/parts"], policy=[{"json": json.dumps({"files": shown})}]) as pool:
                pool.run("import os\nos.link('/out/part.py', '/out/kept')\nos.unlink('/out/part.py')\nvalue = 0")
                if place == space.free:
                    check_never_ahead(pool, "part")
                    continue
                pool.learn("part")
                wait_until(lambda: pool.is_ahead("part"), PATIENCE, "the control: it cannot be written")
                os.rename(f"{space.free}/kept", f"{space.free}/part.py")


@test("what was moved away from its place is not seen there, and keeps no pool from its calls")
def _():
    if is_bare():
        skip("cells without namespaces have every folder at its own place")
    with contextlib.ExitStack() as stack:
        around = stack.enter_context(folder(writable=True))
        os.mkdir(f"{around}/free", 0o777)
        os.chmod(f"{around}/free", 0o777)
        write(f"{around}/away/twice.py", "")
        write(f"{around}/once.py", MOMENT)
        write(f"{around}/free/twice.py", MOMENT)
        moved = json.dumps({"files": {"write": [{"from": f"{around}/free", "to": "/project"}]}})
        with Pool(paths=[around, f"{around}/moved"], policy=[{"json": moved}]) as pool:
            check_equal(pool.run("value = 5"), 5, "a call")
            os.rename(f"{around}/free", f"{around}/moved")
            before = pool.zygote
            os.kill(before, signal.SIGKILL)
            wait_until(lambda: pool.run("value = 5") == 5 and pool.zygote not in (None, before), PATIENCE, "calls go on with another")
            check_never_ahead(pool, "twice")


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
            check_equal(pool.run(read), is_bare(), "it was read, but by a call in a bare cell")


if __name__ == "__main__":
    main()
