#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Denies inside grants: they hold for the whole call, whoever renames what, and leave no trace."""

import contextlib
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import vitrotest
from vitrotest import (BINARY, check, check_equal, check_in, folder, main, proc, run, started, vitro,
                       vitro_command, vitro_started, wait_until, write)


def test(name, **options):
    """A deny inside a grant takes mounts of its own: without namespaces it is refused."""
    return vitrotest.test(name, holds={"files": "mountns"}, **options)


SECRET = "the-denied-secret"
PYTHON = "/usr/bin/python3"
SETPRIV = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

# Every road to the secret that a cell could try. Prints the names of those that led there, and what
# could be moved. Runs outside too, where they must lead there. The working directory is the grant.
ROADS = r'''
import ctypes, os, shutil, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
HERE = os.getcwd()
OUT = sys.argv[1]
def read(path):
    with open(path) as f: return f.read()
def tree(top):
    text = ""
    for at, _, names in os.walk(top):
        for name in names:
            try: text += read(os.path.join(at, name))
            except OSError: pass
    return text
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2): raise OSError(ctypes.get_errno(), "exchange")
def moved(a, b):
    os.rename(a, b); text = tree(b) if os.path.isdir(b) else read(b); os.rename(b, a); return text
def linked(a):
    os.link(a, OUT + "/linked")
    try: return read(OUT + "/linked")
    finally: os.unlink(OUT + "/linked")
def symlinked(target):
    os.symlink(target, OUT + "/sym")
    try: return read(OUT + "/sym")
    finally: os.unlink(OUT + "/sym")
def swapped():
    os.mkdir("other"); write("other/key", "x")
    try: exchange("sub", "other")
    except OSError: shutil.rmtree("other"); raise
    text = tree("other"); exchange("sub", "other"); shutil.rmtree("other"); return text
def write(path, text):
    with open(path, "w") as f: f.write(text)
def executed():
    return subprocess.run(["./tool"], capture_output=True, text=True).stdout
def by_folder_fd():
    fd = os.open("sub", os.O_RDONLY); return os.read(os.open("key", os.O_RDONLY, dir_fd=fd), 99).decode()
def chmodded(path):
    os.chmod(path, 0o644); return read(path)
def truncated():
    os.truncate(".env", 0); return "the-denied-secret"
def replaced():
    mine = OUT + "/mine"; write(mine, "x"); old = read(".env"); os.rename(mine, ".env"); write(".env", old); return old
def copied():
    shutil.copytree("sub", OUT + "/copy"); text = tree(OUT + "/copy"); shutil.rmtree(OUT + "/copy"); return text
READS = {
    "name": lambda: read(".env"), "deep": lambda: read("sub/key"), "folder": lambda: tree(".git"),
    "dots": lambda: read("sub/../.env"), "whole": lambda: read(HERE + "/.env"),
    "proc root": lambda: read("/proc/self/root" + HERE + "/.env"),
    "proc cwd": lambda: read("/proc/self/cwd/.env"), "exec": executed, "folder fd": by_folder_fd,
    "walk": lambda: tree("."), "link in the grant": lambda: read("link"),
    "folder link": lambda: read("sub-link/key"),
}
WRITES = {
    "rename file": lambda: moved(".env", "e2"), "rename parent": lambda: moved("sub", "sub2"),
    "rename folder": lambda: moved(".git", "git2"), "exchange": swapped,
    "hard link": lambda: linked(".env"), "new link": lambda: symlinked(HERE + "/.env"),
    "chmod": lambda: chmodded("sub/key"), "replace": replaced, "copy parent": copied,
    "truncate": truncated,
}
for name, road in {**READS, **(WRITES if sys.argv[2] == "w" else {})}.items():
    try:
        if "the-denied-secret" in road(): print(name)
    except OSError as error:
        pass
print("end")
'''

ALL_READS = {"name", "deep", "folder", "dots", "whole", "proc root", "proc cwd", "exec", "folder fd", "walk",
             "link in the grant", "folder link"}
ALL_WRITES = ALL_READS | {"rename file", "rename parent", "rename folder", "exchange", "hard link", "new link",
                          "chmod", "truncate", "replace", "copy parent"}
DENIES = [".env", "sub/key", ".git", "tool", "later", "gone/key"]


@contextlib.contextmanager
def project():
    """A folder with a project in it that has secrets: the project."""
    with folder() as place:
        p = place + "/p"
        for name in (".env", "sub/key", ".git/config", ".git/objects/x"):
            write(f"{p}/{name}", SECRET + "\n")
        write(p + "/tool", f"#!/bin/sh\necho {SECRET}\n", 0o755)
        for name in ("plain", "sub/other", "free/x"):
            write(f"{p}/{name}", name + "\n")
        os.symlink(".env", p + "/link")
        os.symlink("sub", p + "/sub-link")
        yield p


def listing(top):
    """All that a trace could be in: names, types, modes, owners, attributes, contents. Not times."""
    found = {}
    for at, folders, files in os.walk(top):
        for path in [at] + [os.path.join(at, name) for name in folders + files]:
            st = os.lstat(path)
            text = ""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as file:
                    text = file.read()
            elif stat.S_ISLNK(st.st_mode):
                text = os.readlink(path)
            found[os.path.relpath(path, top)] = (st.st_mode, st.st_uid, st.st_gid, st.st_nlink, st.st_rdev, text,
                                                tuple(os.listxattr(path, follow_symlinks=False)))
    return found


def denies(p, names=DENIES):
    return [word for name in names for word in ("--deny", f"{p}/{name}")]


def found(call):
    lines = call.out.splitlines()
    check(lines and lines[-1] == "end", f"the roads were not all tried\n{call}")
    return set(lines[:-1])


def refused(*args, says=(), **options):
    call = vitro("run", *args, "--", "/bin/echo", "ran", **options)
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    for word in says:
        check_in(word, call.err, "the message", call)


def roads_outside(p, how):
    """The control: as the one who can do all, every road leads there."""
    with folder() as out:
        return found(run([PYTHON, "-c", ROADS, out, how], cwd=p))


@test("a deny in a folder for reading: no road leads to it, and outside each does")
def _():
    with project() as p:
        check_equal(roads_outside(p, "r"), ALL_READS, "outside")
        call = vitro("run", "--read", p, "--cwd", p, *denies(p), "--", PYTHON, "-c", ROADS, "/tmp", "r")
        check_equal(found(call), set(), "inside", call)
        call = vitro("run", "--read", p, "--cwd", p, *denies(p), "--", "/bin/sh", "-c",
                     "ls -A . sub; cat plain sub/other; cat .env")
        check_equal(call.out, ".:\nfree\nlink\nplain\nsub\nsub-link\n\nsub:\nother\nplain\nsub/other\n", "the rest", call)
        check_in("No such file", call.err, "what is denied is not there", call)


@test("a deny in a folder for writing: no road leads to it, now or in the next call, and no trace is left")
def _():
    with project() as p:
        check_equal(roads_outside(p, "w"), ALL_WRITES, "outside")
    with project() as p:
        before = listing(p)
        above = os.listdir(os.path.dirname(p))
        call = vitro("run", "--write", p, "--cwd", p, *denies(p), "--", PYTHON, "-c", ROADS, "/tmp", "w")
        check_equal(found(call), set(), "inside", call)
        check_equal(listing(p), before, "the host's folder after it", call)
        call = vitro("run", "--write", p, "--cwd", p, *denies(p), "--", PYTHON, "-c", ROADS, p, "w")
        check_equal(found(call), set(), "inside, with links made beside it", call)
        for leftover in ("mine", "copy"):
            run(["rm", "-rf", f"{p}/{leftover}"])
        check_equal(listing(p), before, "the host's folder after it", call)
        check_equal(os.listdir(os.path.dirname(p)), above, "the folder around it", call)


CHANGES = """
set -e
echo new > new; mkdir d; echo n > d/n; mv d d2; mv d2 sub/; ln new hard; ln -s new soft; rm plain
mkdir -p q/r; mv q/r sub/r; rmdir q; chmod 700 sub; mv sub/other free/; mkdir m; rmdir m; mv free free2
(rm -rf sub .git .env later tool gone; mv sub gone; mv .git sub/; mv -T free2 sub; rmdir sub) 2>/dev/null || true
echo again > plain; mkfifo pipe; echo x > sub/d3; rm -f sub/d3; touch -d 2001-01-01 new
"""


@test("what a deny is made of is not in the cell: the folder as it is could be found there")
def _():
    with project() as p:
        for how in ("--read", "--write"):
            call = vitro("run", how, p, *denies(p), "--", "/bin/ls", "-A", "/")
            check_in("tmp\n", call.out, how, call)
            check(".vitro" not in call.out, f"{how}: it is there\n{call}")


@test("what a cell may do beside a deny is on the host at once, with the right owner and no marks of an overlay")
def _():
    with project() as p, project() as plain:
        for flags, top in ((denies(p), p), ([], plain)):
            call = vitro("run", "--write", top, "--cwd", top, *flags, "--", "/bin/sh", "-c", CHANGES)
            check_equal((call.code, call.err), (0, ""), "the changes", call)
        after = listing(p)
        for name, (mode, uid, gid, _, rdev, _, marks) in after.items():
            check_equal((uid, gid, marks), (os.geteuid(), os.getegid(), ()), f"owner and marks of {name}")
            check(not (stat.S_ISCHR(mode) and rdev == 0), f"{name} is a whiteout")
        for name in (".env", "tool", ".git/config", "sub/key"):
            check_equal(os.path.exists(f"{p}/{name}"), True, f"{name} is still there")
        check_equal(os.path.exists(p + "/later") or os.path.exists(p + "/gone"), False, "a placeholder on the host")
        names = {"new", "hard", "soft", "sub", "plain", "pipe"}
        check_equal(names - set(os.listdir(p)), set(), "what the cell made")
        check_equal(stat.S_IMODE(os.stat(p + "/new").st_mode), 0o644, "mode of a new file")


@test("files of the cell are seen on the host while it runs, and the host's in the cell")
def _():
    with project() as p:
        # Asked for once before it is there, a name may stay unseen; a folder that is listed shows it.
        script = "echo hello > said; while ! ls | grep -q answer; do sleep 0.02; done; cat answer; cat plain"
        with vitro_started("run", "--write", p, "--cwd", p, *denies(p), "--", "/bin/sh", "-c", script,
                           stdout=subprocess.PIPE) as (process, _):
            wait_until(lambda: os.path.exists(p + "/said"), 10, "the cell's file on the host")
            with open(p + "/plain", "a") as file:
                file.write("more\n")
            write(p + "/answer", "hello too\n")
            out, _ = process.communicate(timeout=20)
            check_equal((process.returncode, out), (0, b"hello too\nplain\nmore\n"), "what the cell saw")


POLL = r'''
import os, sys, time
end = time.monotonic() + 1.5
open("/tmp/ready", "w").close()
print("ready", flush=True)
seen = set()
while time.monotonic() < end:
    for name in (".env", "sub/key", "later", "gone/key", ".git/config", "tool"):
        try:
            with open(name) as f: seen.add(f.read().strip())
        except OSError as error: seen.add(type(error).__name__)
    os.listdir("."), os.listdir("sub")
print(sorted(s for s in seen if not s.endswith("Error")))
'''


def replace(path, text):
    write(path + ".new", text)
    os.rename(path + ".new", path)


def host_is_busy(p, stop):
    """What editors, package managers and git do to denied names all day."""
    n = 0
    while not stop.is_set():
        n += 1
        for name in (".env", "sub/key", "later", "tool"):
            replace(f"{p}/{name}", SECRET)
        os.rename(p + "/.git", p + "/.git.old")
        write(p + "/.git/config", SECRET)
        write(p + "/gone/key", SECRET)
        run(["rm", "-rf", p + "/.git", p + "/gone"])
        os.rename(p + "/.git.old", p + "/.git")
        os.unlink(p + "/later")
        os.unlink(p + "/.env")
        write(p + "/.env", SECRET)
    return n


@test("a host that replaces, makes and removes denied names all the time does not open them")
def _():
    for how in ("--read", "--write"):
        with project() as p:
            def one(flags):
                stop = threading.Event()
                with vitro_started("run", how, p, "--cwd", p, *flags, "--", PYTHON, "-c", POLL,
                                   stdout=subprocess.PIPE) as (process, _):
                    check_equal(process.stdout.readline(), b"ready\n", "it runs")
                    busy = threading.Thread(target=host_is_busy, args=(p, stop))
                    busy.start()
                    try:
                        out = process.stdout.read().decode()
                    finally:
                        stop.set()
                        busy.join()
                    return out
            check_in(SECRET, one([]), f"{how}: without a deny it is seen")
            check_equal(one(denies(p)), "[]\n", f"{how}: what the cell saw of them")


@test("a denied name that the host makes during the call, before it was asked for, is closed too")
def _():
    script = "echo ready; read word; cat later gone/key 2>/dev/null; echo end"
    for how in ("--read", "--write"):
        for closed in (False, True):
            with project() as p, vitro_started("run", how, p, "--cwd", p, *(denies(p) if closed else []), "--",
                                               "/bin/sh", "-c", script, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, text=True) as (process, _):
                check_equal(process.stdout.readline(), "ready\n", "it runs")
                for name in ("later", "gone/key"):
                    write(f"{p}/{name}", SECRET + "\n")
                out, _ = process.communicate("go\n", timeout=20)
                check_equal(out, "end\n" if closed else f"{SECRET}\n" * 2 + "end\n", f"{how}, denied: {closed}")


@test("folders on the way to a denied name cannot be moved, deleted or put somewhere else")
def _():
    with folder() as place:
        p = place + "/p"
        write(p + "/a/b/c/key", SECRET)
        write(p + "/x/y", "y")
        before = listing(p)
        script = ("mv -T a x2; mv a/b b2; mv a/b/c c2; rmdir a/b/c; rm -rf a; mv -T x a; "
                  f"{PYTHON} -c 'import os; os.rename(\"a\", \"z\")'; "
                  f"{PYTHON} -c 'import os; os.rename(\"a/b\", \"z\")'; rm -rf x2 b2 c2 z; ls -R; cat a/b/c/key")
        outside = run(["/bin/sh", "-c", "mv a x2 && cat x2/b/c/key && mv x2 a"], cwd=p)
        check_in(SECRET, outside.out, "outside its parent can be moved", outside)
        call = vitro("run", "--write", p, "--cwd", p, "--deny", p + "/a/b/c/key", "--", "/bin/sh", "-c", script)
        check(SECRET not in call.out, f"it is seen\n{call}")
        check_equal(listing(p), before, "the host's folder after it", call)


@test("a deny is by host path: it holds in every grant that shows the place, moved or nested")
def _():
    with project() as p:
        sub = p + "/sub"
        read_moved = json.dumps({"from": p, "to": "/srv/here"})
        sub_moved = json.dumps({"from": sub, "to": "/srv/sub"})
        script = ("cat /srv/here/sub/key /srv/sub/key {p}/sub/key /srv/sub/../here/sub/key 2>/dev/null; "
                  "cat /srv/here/sub/other /srv/sub/other {p}/sub/other 2>/dev/null | wc -l").replace("{p}", p)
        for flags, shown in (
                (["--read", read_moved], 1), (["--write", read_moved], 1),
                (["--read", p, "--read", read_moved, "--read", sub_moved], 3),
                (["--write", p, "--write", sub_moved], 2), (["--read", p, "--write", sub], 1),
                (["--write", p, "--read", read_moved, "--write", sub_moved], 3),
                (["--write", p, "--write", read_moved], 2)):
            control = vitro("run", *flags, "--", "/bin/sh", "-c", script)
            check(control.out.count(SECRET) >= shown and control.out.endswith(f"\n{shown}\n"),
                  f"{flags}: not seen without a deny\n{control}")
            call = vitro("run", *flags, "--deny", sub + "/key", "--", "/bin/sh", "-c", script)
            check_equal((call.code, call.out), (0, f"{shown}\n"), f"{flags} with it", call)


@test("one grant cannot be used to move what is denied in another")
def _():
    with project() as p:
        before = listing(p)
        moved = json.dumps({"from": p, "to": "/srv/all"})
        script = "mv /srv/all/sub /srv/all/sub9; mv sub sub9; cat /srv/all/sub9/key sub9/key; rm -rf sub9 /srv/all/sub9"
        control = run(["/bin/sh", "-c", "mv sub sub9; cat sub9/key; mv sub9 sub"], cwd=p)
        check_in(SECRET, control.out, "outside it can be moved", control)
        call = vitro("run", "--write", p, "--write", moved, "--cwd", p, "--deny", p + "/sub/key", "--",
                     "/bin/sh", "-c", script)
        check(SECRET not in call.out, f"it is seen\n{call}")
        check_equal(os.path.exists(p + "/sub/key"), True, "it is where it was")
        call = vitro("run", "--read", p, "--", "/bin/sh", "-c", f"cat {p}/*/key {p}/sub9/key")
        check_equal(call.out.count(SECRET), before["sub/key"][5].decode().count(SECRET) * 2,
                    "found in sub and by sub-link alone", call)


@test("what is denied as a whole is not there: a grant, one around it, a file, the runtime's own")
def _():
    with project() as p:
        script = f"cat {p}/sub/key {p}/.env {p}/plain 2>/dev/null; ls -d {p} 2>/dev/null; echo end"
        for flags in (["--read", p, "--deny", p], ["--write", p, "--deny", os.path.dirname(p)],
                      ["--read", p + "/.env", "--deny", p + "/.env"],
                      ["--write", p + "/sub", "--read", p + "/.env", "--deny", p]):
            call = vitro("run", *flags, "--", "/bin/sh", "-c", script)
            check_equal((call.code, SECRET in call.out, "plain" in call.out), (0, False, False), f"{flags}", call)
        # the innermost decides nothing: a deny beats what is granted inside it
        call = vitro("run", "--read", p, "--read", p + "/sub", "--write", p + "/sub/key", "--deny", p + "/sub",
                     "--", "/bin/sh", "-c", script)
        check_equal((call.code, call.out), (0, f"{SECRET}\nplain\n{p}\nend\n"), "a grant inside a deny", call)
        call = vitro("run", "--deny", "/usr/bin/env", "--", "/bin/sh", "-c", "ls /usr/bin/env; /usr/bin/env; ls /usr/bin/id")
        check_equal((call.code, call.out), (0, "/usr/bin/id\n"), "a file of the runtime", call)
        for how in ("--read", "--write"):
            call = vitro("run", how, p, "--cwd", p, "--deny", p + "/.env", "--", "/bin/cat", ".env", cwd=p)
            check_equal((call.code, call.out), (1, ""), "a denied argument", call)
            check_in("'.env' is denied by the policy", call.err, "the hint", call)
        call = vitro("run", "--deny", "/usr/bin/id", "--", "id")
        check_equal(call.code, 127, "a command that is denied", call)
        call = vitro("run", "--deny", "/etc", "--", "/bin/sh", "-c", "cat /etc/ld.so.cache /etc/passwd | head -c 4")
        check_equal(call.out, "user", "of /etc the cell's own is left", call)
        refused("--deny", "/", says=["/dev"])
        refused("--deny", "/dev/null", says=["/dev"])


@test("a deny through a link means what it leads to, and the link's own name")
def _():
    with project() as p:
        place = os.path.dirname(p)
        os.symlink(p + "/sub", place + "/to-sub")
        os.symlink(p + "/.env", place + "/to-env")
        script = "cat sub/key .env link 2>/dev/null; echo end"
        for how in ("--read", "--write"):
            control = vitro("run", how, p, "--cwd", p, "--", "/bin/sh", "-c", script)
            check_equal(control.out, f"{SECRET}\n" * 3 + "end\n", "without a deny", control)
            call = vitro("run", how, p, "--cwd", p, "--deny", place + "/to-sub/key", "--deny", place + "/to-env",
                         "--", "/bin/sh", "-c", script)
            check_equal((call.code, call.out), (0, "end\n"), how, call)
            call = vitro("run", how, place + "/to-sub", "--deny", p + "/sub/key", "--", "/bin/sh", "-c",
                         f"cat {place}/to-sub/key; cat {place}/to-sub/other")
            check_equal(call.out, "sub/other\n", f"{how} through a link", call)
        call = vitro("run", "--read", p, "--cwd", p, "--deny", p + "/link", "--", "/bin/sh", "-c",
                     "ls link; cat .env; ls plain")
        check_equal(call.out, "plain\n", "a link that lies in the grant", call)
        # what the cell itself could point elsewhere
        refused("--write", p, "--deny", p + "/link", says=["link", "symbolic"])
        refused("--write", p, "--deny", p + "/sub-link/key", says=["sub-link", "symbolic"])
        os.symlink(p + "/sub-link", place + "/chain")
        refused("--write", p, "--deny", place + "/chain/key", says=["sub-link", "symbolic"])
        call = vitro("run", "--read", p, "--cwd", p, "--deny", place + "/chain/key", "--", "/bin/sh", "-c",
                     "cat sub/key sub-link/key; cat sub-link/other")
        check_equal(call.out, "sub/other\n", "for reading they are followed", call)


@test("denies are by name: another hard link of the same file is not covered, as documented")
def _():
    with project() as p:
        os.link(p + "/.env", p + "/twin")
        for how in ("--read", "--write"):
            call = vitro("run", how, p, "--cwd", p, "--deny", p + "/.env", "--", "/bin/sh", "-c", "cat twin; cat .env")
            check_equal(call.out, SECRET + "\n", how, call)


@test("a thousand denies hold, and cost little")
def _():
    with folder() as place:
        p = place + "/p"
        for i in range(500):
            write(f"{p}/d{i % 10}/n{i}", SECRET)
        many = [f"d{i % 10}/n{i}" for i in range(1000)]
        for how in ("--read", "--write"):
            begin = time.monotonic()
            call = vitro("run", how, p, "--cwd", p, *denies(p, many), "--", "/bin/sh", "-c",
                         "cat d*/* 2>/dev/null; ls; echo end")
            check_equal((call.code, SECRET in call.out, call.out.split()[-1]), (0, False, "end"), how, call)
            check(time.monotonic() - begin < 5, f"{how}: {time.monotonic() - begin:.1f} s")
            check_equal(sorted(os.listdir(place)), ["p"], "what is left beside it")


@test("a killed vitro's work folder is removed by the next call, and one in use is left alone")
def _():
    with project() as p:
        place = os.path.dirname(p)
        flags = ["--write", p, "--cwd", p, "--deny", p + "/.env"]
        work = lambda: [name for name in os.listdir(place) if name.startswith(".vitro-")]
        with vitro_started("run", *flags, "--", "/bin/sh", "-c", "echo > up; sleep 30") as (process, before):
            wait_until(lambda: os.path.exists(p + "/up"), 10, "the cell")
            check_equal(len(work()), 1, "a work folder while it runs")
            mine = work()
            call = vitro("run", *flags, "--", "/bin/cat", "plain", leaks=False)
            check_equal((call.code, call.out), (0, "plain\n"), "a second call at the same place", call)
            check_equal(work(), mine, "the first one's folder")
            process.send_signal(signal.SIGKILL)
            process.wait()
        check_equal(work(), mine, "what the killed one left")
        wait_until(lambda: not before.left(process.pid, cgroups=False), 5, "the cell's end")
        call = vitro("run", *flags, "--", "/bin/cat", "plain")
        check_equal((call.code, call.out, work()), (0, "plain\n", []), "the next call", call)


@test("a work folder's name that somebody else uses is no way to have things deleted")
def _():
    with project() as p:
        place = os.path.dirname(p)
        write(place + "/precious/file", "x")
        os.symlink(place + "/precious", place + "/.vitro-1.1")
        write(place + "/.vitro-2", "x")
        write(place + "/.vitro-3.x/file", "x")
        os.mkdir(place + "/.vitro-4.4")
        os.symlink(place + "/precious", place + "/.vitro-4.4/work")
        notes = os.path.join(place, ".vitro-5.5", "work", "notes")
        write(notes + "/file", "x")
        call = vitro("run", "--write", p, "--deny", p + "/.env", "--", "/bin/true")
        check_equal(call.code, 0, "the call", call)
        check_equal(sorted(os.listdir(place)), 
                    [".vitro-1.1", ".vitro-2", ".vitro-3.x", ".vitro-5.5", "p", "precious"], "what is there")
        check_equal(os.listdir(notes), ["file"], "what no overlay left")
        check_equal(os.listdir(place + "/precious"), ["file"], "what a link leads to")


@test("refused where it cannot hold: another mount below, a whole mount for writing", root=True)
def _():
    with project() as p:
        try:
            check_equal(run(["mount", "-t", "tmpfs", "none", p + "/free"]).code, 0, "a mount of the test's own")
            refused("--read", p, "--deny", p + "/.env", says=["mounted in it", p])
            refused("--write", p, "--deny", p + "/.env", says=["mounted in it", p])
            write(p + "/free/key", SECRET)
            refused("--write", p + "/free", "--deny", p + "/free/key", says=["beside it", "for reading"])
            call = vitro("run", "--read", p + "/free", "--deny", p + "/free/key", "--", "/bin/ls", "-A", p + "/free")
            check_equal((call.code, call.out), (0, ""), "for reading it holds", call)
        finally:
            run(["umount", p + "/free"])


@test("a deny holds where the host mounts the same folder elsewhere too", root=True)
def _():
    with project() as p:
        place = os.path.dirname(p)
        twin, deep = place + "/twin", place + "/outer/sub"
        for path in (twin, deep):
            os.makedirs(path)
        try:
            check_equal(run(["mount", "--bind", p, twin]).code, 0, "a mount of the test's own")
            check_equal(run(["mount", "--bind", p + "/sub", deep]).code, 0, "another")
            script = f"cat {twin}/sub/key {deep}/key 2>/dev/null; cat {twin}/sub/other {deep}/other"
            flags = ["--read", twin, "--read", deep]
            control = vitro("run", *flags, "--", "/bin/sh", "-c", script)
            check_equal(control.out.count(SECRET), 2, "without a deny", control)
            for denied in (p + "/sub/key", twin + "/sub/key", deep + "/key"):
                call = vitro("run", *flags, "--deny", denied, "--", "/bin/sh", "-c", script)
                check_equal((call.code, call.out), (0, "sub/other\n" * 2), f"with {denied} denied", call)
            call = vitro("run", *flags, "--deny", p, "--", "/bin/sh", "-c", script)
            check_equal(call.out, "", "with all of it denied", call)
            refused("--read", place + "/outer", "--deny", p + "/sub/key", says=["mounted in it"])
        finally:
            run(["umount", twin])
            run(["umount", deep])


def mount_of(path):
    fd = os.open(path, os.O_PATH)
    number = re.search(rb"mnt_id:\s*(\d+)", proc(f"self/fdinfo/{fd}"))[1]
    os.close(fd)
    return number


@test("where the folder around a grant cannot be written, another place on the same mount serves", root=True,
      needs=("setpriv",))
def _():
    with folder("/srv") as place:  # where an ordinary user may make nothing
        p, binary = place + "/p", shutil.copy(BINARY, place)
        write(p + "/.env", SECRET)
        write(p + "/plain", "plain\n")
        for path in (p, p + "/.env", p + "/plain"):
            os.chown(path, 65534, 65534)
        before = listing(place)
        call = run([*SETPRIV, binary, "run", "--write", p, "--cwd", p, "--deny", p + "/.env", "--",
                    "/bin/sh", "-c", "cat plain; cat .env; mv .env x"])
        if mount_of("/srv") in (mount_of("/tmp"), mount_of("/var/tmp")):
            check_equal(call.out, "plain\n", "what it saw", call)
        else:
            check_equal((call.code, call.out), (125, ""), "refused", call)
            check_in("beside it", call.err, "the message", call)
        check_equal(listing(place), before, "what is there after it", call)
        check_equal([n for n in os.listdir("/tmp") if n.startswith(f".vitro-{call.pid}.")], [], "in /tmp", call)


@test("a folder around the grant that is closed to others is open to the caller, in many calls at once too", root=True)
def _():
    with project() as p:
        place = os.path.dirname(p)
        os.chmod(place, 0o700)
        flags = ["run", "--write", p, "--deny", p + "/.env", "--", "/bin/true"]
        for group in (0, 65534):  # that of the grant, and another
            os.chown(place, 0, group)
            call = vitro(*flags)
            check_equal((call.code, call.err), (0, ""), f"the call, with group {group} around", call)
        os.chown(place, 0, 0)
        with contextlib.ExitStack() as stack:
            calls = [stack.enter_context(started(vitro_command(*flags), stderr=subprocess.PIPE)) for _ in range(18)]
            check_equal([call.communicate(timeout=30)[1] for call in calls], [b""] * 18, "what 18 calls at once say")
            check_equal([call.returncode for call in calls], [0] * 18, "how they end")
        check_equal(os.listdir(place), ["p"], "what is there after them")


@test("places in a folder that are denied take no mount; a denied working directory is refused")
def _():
    with project() as p:
        other = json.dumps({"from": os.path.dirname(p) + "/o", "to": p + "/.git"})
        write(os.path.dirname(p) + "/o/file", "x")
        refused("--read", p, "--read", other, "--deny", p + "/.git", says=["denied"])
        refused("--read", p, "--deny", p + "/sub", "--cwd", p + "/sub", says=["working directory", "denied"])


@test("explain says what is denied")
def _():
    with project() as p:
        call = vitro("explain", "--write", p, "--deny", p + "/.env", "--deny", p + "/gone/key")
        section = call.out.partition("\n\nDENIED\n")[2].partition("\n\n")[0]
        for line in (f"  {p}/.env", f"  {p}/gone/key (all of {p}/gone)"):  # and other names of the place
            check_in(line, section.splitlines(), "the section", call)
        check_equal(re.findall(r"^  write +(\S+)", call.out, re.M), [p], "the grant", call)


if __name__ == "__main__":
    main()
