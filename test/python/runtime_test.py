#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of Python interpreters: which these are, what is loaded and learned ahead of calls, and what siblings share."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
import client as wire
from interpreters import MOMENT, PATIENCE, POLICY, SYSTEM, Pool, kinds, pythons, spawn, try_one, venv_of
from pythons import closed_folder
from vitrotest import BINARY, Failed, check, check_equal, check_in, folder, is_bare, main, skip, test, wait_until, write


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


# ---- what siblings share --------------------------------------------------------------------------------


@test("siblings differ in what is random, and have the environment that the policy gives")
def _():
    for kind, prefix in kinds():
        policy = [{"key": "env.set", "value": '{"MARK": "7", "OMP_NUM_THREADS": "3"}'}]
        with Pool(prefix=prefix, preload=["random", "ssl", "tempfile", "multiprocessing"], policy=policy) as pool:
            numbers = [pool.run("import random, os, ssl, multiprocessing; value = [random.random(), os.urandom(4).hex(), "
                                "ssl.RAND_bytes(8).hex(), multiprocessing.current_process().authkey.hex()]") for _ in range(3)]
            check_equal([len({*drawn}) for drawn in zip(*numbers)], [3] * 4, f"cells {kind}: numbers {numbers}")
            seen = pool.run("import os; value = dict(os.environ)")
            check_equal((seen["MARK"], seen["OMP_NUM_THREADS"]), ("7", "3"), f"cells {kind}: variables")
            check(not [name for name in seen if name in ("VITRO_ZYGOTE", "LD_BIND_NOW", "OPENBLAS_NUM_THREADS")],
                  f"cells {kind}: what is the zygote's own: {seen}")
            kept = pool.run("import os, tempfile\nwith tempfile.NamedTemporaryFile() as file:\n"
                            "    value = [os.path.dirname(file.name), os.environ['HOME']]")
            check_equal(kept[0], kept[1], f"cells {kind}: the private folder")
            check_equal(pool.run("import os, gc; value = sorted(os.listdir('/proc/self/fd'))[:5]")[:4], ["0", "1", "2", "3"],
                        f"cells {kind}: descriptors")
            if not prefix and not is_bare():
                check_equal(pool.run("import os; value = os.getpid()"), 2, "the number that no zygote may have, for OpenSSL")


@test("a time limit for all sockets to come, which a module sets, is not for vitro's own")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(os.path.join(place, "hasty.py"), "import socket\nsocket.setdefaulttimeout(0.2)\n")
            with Pool(prefix=prefix, paths=[place], preload=["hasty"]) as pool:
                for _ in range(2):
                    time.sleep(1)
                    check_equal(pool.run("import socket; value = socket.getdefaulttimeout()"), 0.2, f"cells {kind}: {pool.lines}")


# What a call sees of its own process, and of a fork that it makes beside a thread.
FORKS = """
import json, logging, os, random, threading
end = threading.Event()
other = threading.Thread(target=end.wait)
other.start()
theirs, ours = os.pipe()
drawn = random.getstate()
if not os.fork():
    logging.getLogger().warning("from a fork")
    os.write(ours, json.dumps([random.getstate() == drawn, len(threading.enumerate()), AHEAD]).encode())
    os._exit(0)
os.wait()
value = json.loads(os.read(theirs, 100)), threading.main_thread().native_id == threading.get_native_id()
end.set()
"""


@test("forks that a call makes have all that Python does after one, and occupants what is left of it, and modules' own")
def _():
    # What it draws is for the zygote's own, and half of a pair is left there.
    hook = ("import os, random\nFORKS = []\nDRAWN = []\nrandom.gauss(0, 1)\n"
            "def forked():\n    FORKS.append(1)\n    DRAWN.append(random.random())\n"
            "os.register_at_fork(after_in_child=forked)\n")
    for python in pythons():
        with folder() as place:
            write(os.path.join(place, "hooked.py"), hook)
            with Pool(python, paths=[place], preload=["hooked"]) as pool:
                found = pool.run(FORKS.replace("AHEAD", "__import__('hooked').FORKS"))
                check_equal(found, [[False, 1, [1, 1]], True],
                            f"{python}: the fork has the state that was there, threads, calls of a module's; the thread's number")
                draws = [pool.run("import hooked, random; value = [hooked.DRAWN[0], random.gauss(0, 1), random.random()]")
                         for _ in range(3)]
                check_equal([len({*drawn}) for drawn in zip(*draws)], [3, 3, 3], f"{python}: {draws}")


if __name__ == "__main__":
    main()
