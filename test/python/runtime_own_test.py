#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools: nothing that calls can write is started by vitro, which runs it outside of cells."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
import client as wire
from interpreters import PATIENCE, SYSTEM, kinds, spawn
from vitrotest import BINARY, IS_ROOT, PREFIX, Failed, check, check_equal, check_in, folder, is_bare, main, skip, test, wait_until, write


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


@test("a shared object gets no library that calls can write", needs=["gcc"])
def _():
    if not os.path.exists(os.path.join(os.path.dirname(BINARY), "vitro-object")):
        skip("this build has no vitro-object")
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            free, fixed, bare = stack.enter_context(folder(writable=True)), stack.enter_context(folder()), bool(prefix) or is_bare()
            write(f"{fixed}/far.c", "#include <fcntl.h>\nint far(void)\n{\n\treturn 5;\n}\n__attribute__((constructor)) static void run(void)\n{\n"
                  f"\topen(\"{fixed}/ran\", O_CREAT | O_WRONLY, 0600);\n}}\n")
            write(f"{fixed}/near.c", "int far(void);\nint work(void)\n{\n\treturn far();\n}\n")
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"{free}/libfar.so", f"{fixed}/far.c"], check=True)
            subprocess.run(["gcc", "-shared", "-fPIC", "-o", f"{fixed}/near.so", f"{fixed}/near.c", f"-L{free}", "-lfar", f"-Wl,-rpath,{free}"], check=True)
            for key in ("files.write", "files.read"):
                client = stack.enter_context(wire.Client(*spawn(prefix)))
                client.say({"do": "hello", "version": 1})
                client.until(lambda: client.version)
                held = client.pool(1, [{"key": "require", "value": "best-effort"}, {"key": key, "value": free}], object=f"{fixed}/near.so")["files"]
                client.call(1, 1, "nothing")
                text = json.dumps(client.wait(1), default=str)
                loads = bare or key == "files.read"  # a bare cell loads it for itself
                check_in("no function of that name" if loads else "libfar.so: cannot open shared object file", text, f"cells {kind}: {key}")
                if key == "files.read" or held != "none":  # else a cell may do that, too
                    check_equal(os.path.exists(f"{fixed}/ran"), bare and key == "files.read", f"cells {kind}: {key}: it ran outside of cells")


@test("a program that holds tools ready sees nothing that calls can write, from its beginning")
def _():
    for kind, prefix in kinds():
        with contextlib.ExitStack() as stack:
            free, fixed, bare = stack.enter_context(folder(writable=True)), stack.enter_context(folder()), bool(prefix) or is_bare()
            write(f"{free}/planted", "planted")
            # What it finds by an RPATH, say. The working directory is one that calls can write.
            write(f"{fixed}/program", f"#!/bin/sh\ncat {free}/planted planted >&2\nexit 3\n", 0o755)
            for key in ("files.read", "files.write"):
                client = stack.enter_context(wire.Client(*spawn([*prefix, "sh", "-c", 'cd "$0" && exec "$@"', free])))
                client.say({"do": "hello", "version": 1})
                client.until(lambda: client.version)
                client.pool(1, [{"key": "require", "value": "best-effort"}, {"key": key, "value": free}], program=f"{fixed}/program")
                client.call(1, 1, "nothing")
                text = json.dumps(client.wait(1), default=str)
                says = "No such file or directory" if key == "files.write" and not bare else "plantedplanted"
                check_in("it said: ", text, f"cells {kind}: {key}")
                check_in(says, text, f"cells {kind}: {key}")
                check_equal("plantedplanted" in text, says == "plantedplanted", f"cells {kind}: {key}: {text}")


@test("nor by another name that the host's mounts give it")
def _():
    if is_bare() or not IS_ROOT:
        skip("needs cells in namespaces, and to mount on the host")
    with folder(writable=True) as free, folder() as fixed:
        write(f"{free}/planted", "planted")
        os.makedirs(f"{fixed}/other")
        write(f"{fixed}/one", "one")
        write(f"{fixed}/program", f"#!/bin/sh\ncat {fixed}/other/planted >&2\nexit 3\n", 0o755)
        for key, mount, says in (("files.read", f"{free} {fixed}/other", "it said: planted"), ("files.write", f"{free} {fixed}/other", "No such file"),
                                 ("files.write", f"{free}/planted {fixed}/one", "keep from what is loaded ahead of calls"),
                                 ("files.write", f"{free} /dev/shm", "keep from what is loaded ahead of calls")):
            prefix = ["unshare", "-m", "sh", "-c", f'mount --bind {mount} && exec "$@"', "sh"]
            with wire.Client(*spawn(prefix)) as client:
                client.say({"do": "hello", "version": 1})
                client.until(lambda: client.version)
                client.pool(1, [{"key": "require", "value": "best-effort"}, {"key": key, "value": free}], program=f"{fixed}/program")
                client.call(1, 1, "nothing")
                check_in(says, json.dumps(client.wait(1), default=str), f"{key}: {mount}")


if __name__ == "__main__":
    main()
