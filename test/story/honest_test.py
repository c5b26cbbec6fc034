#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Honest programs just work under the default policy."""

import glob
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (IS_ROOT, check, check_equal, check_in, folder, is_bare, main, need_modes,
                       need_proc, run, skip, test, vitro, write)



def works(*args, out=None, contains=None, **options):
    """Runs to a good end with this output."""
    call = vitro("run", "--timeout", "40s", *args, timeout=45, **options)
    check_equal(call.code, 0, "exit code", call)
    if out is not None:
        check_equal(call.out, out, "stdout", call)
    if contains is not None:
        check_in(contains, call.out, "stdout", call)
    return call


@test("bash: pipelines, process substitution, here documents, job control", needs=["bash"])
def _():
    works("--", "bash", "-c", "seq 1000 | sort -rn | head -n 1 | tr 1 x", out="x000\n")
    need_proc()
    works("--", "bash", "-c", "diff <(echo a) <(echo a) && cat <<< here", out="here\n")
    works("--", "bash", "-c", "{ for i in 1 2 3; do (sleep 0.0$i; echo $i) & done; wait; } | sort",
          out="1\n2\n3\n")


@test("sh: find, xargs, sed, awk, grep over the system's files")
def _():
    works("--", "sh", "-c", "find /usr/bin -name 'a*' | xargs ls -l | awk 'NR==1' | wc -l",
          out="1\n")


@test("git: init, add, commit, log, diff in a write grant", needs=["git"])
def _():
    need_modes()
    # Git wants to read the machine's settings where they are to be seen, or not to see them.
    seen = is_bare() and os.path.exists("/etc/gitconfig")
    flags = ["--read", "/etc/gitconfig"] if seen else []
    with folder(writable=True) as place:
        works("--write", place, "--cwd", place, *flags, "--", "sh", "-ec",
              "mkdir r; cd r; git init -q; git config user.email a@example.org; git config user.name A;"
              "echo hello > f; git add f; git commit -qm first; echo more >> f; git diff --stat;"
              "git stash -q; git checkout -qb other; git log --oneline | wc -l; git gc -q;"
              "git clone -q . $HOME/copy && cat $HOME/copy/f", contains="1\nhello\n")
        check(os.path.exists(place + "/r/.git/HEAD"), "the repository is on the host")
        if shutil.which("git"):
            call = run(["git", "-c", "safe.directory=*", "-C", place + "/r", "log", "--format=%s"])
            check_equal(call.out, "first\n", "the host can read it", call)


@test("gcc: compile, link and run, also in several steps", needs=["gcc"])
def _():
    source = ('#include <stdio.h>\n#include <math.h>\nint main(int c, char **v) '
              '{ (void)v; printf("%.1f\\n", sqrt(c * 16.0)); return 0; }\n')
    need_modes()
    with folder(writable=True) as place:
        write(place + "/a.c", source)
        works("--write", place, "--cwd", place, "--", "sh", "-ec",
              "gcc -O2 -Wall -c a.c; gcc -o a a.o -lm; ./a; gcc -fPIC -shared -o liba.so a.c -lm",
              out="4.0\n")
        works("--read", place, "--", "sh", "-ec", f"gcc -pipe {place}/a.c -o $HOME/a -lm && $HOME/a",
              out="4.0\n")


@test("make: a parallel build", needs=["make", "gcc"])
def _():
    need_modes()
    with folder(writable=True) as place:
        for name in "abcd":
            write(f"{place}/{name}.c", f"int {name}(void); int {name}(void) {{ return 1; }}\n")
        write(place + "/m.c", "int a(void), b(void), c(void), d(void);\n"
                              "int main(void) { return a() + b() + c() + d() - 4; }\n")
        write(place + "/Makefile", "m: a.o b.o c.o d.o m.o\n\tgcc -o $@ $^\n")
        works("--write", place, "--cwd", place, "--", "sh", "-ec",
              "make -s -j4 && ./m && echo built", contains="built\n")


PYTHON = {
    "threads": "import threading; r = []\n"
               "ts = [threading.Thread(target=r.append, args=(i,)) for i in range(20)]\n"
               "[t.start() for t in ts]; [t.join() for t in ts]; print(sum(r))",
    "subprocess": "import subprocess\n"
                  "print(subprocess.run('echo $((95 * 2))', shell=True, capture_output=True,"
                  "text=True).stdout.strip())",
    "multiprocessing": "import multiprocessing as m\n"
                       "def f(x): return x * 2\n"
                       "if __name__ == '__main__':\n"
                       "    with m.Pool(3) as p: print(sum(p.map(f, range(95))) - 8740)",
    "multiprocessing with spawn": "import multiprocessing as m\n"
                                  "def f(q): q.put(190)\n"
                                  "if __name__ == '__main__':\n"
                                  "    c = m.get_context('spawn'); q = c.Queue()\n"
                                  "    p = c.Process(target=f, args=(q,)); p.start()\n"
                                  "    print(q.get(timeout=20)); p.join()",
    "shared memory and locks": "from multiprocessing import Value, Lock, shared_memory\n"
                               "s = shared_memory.SharedMemory(create=True, size=4096)\n"
                               "s.buf[0] = 190; v = Value('i', s.buf[0])\n"
                               "print(v.value); s.close(); s.unlink()",
    "asyncio": "import asyncio\n"
               "async def f(i):\n    await asyncio.sleep(0.01); return i\n"
               "async def main():\n"
               "    p = await asyncio.create_subprocess_exec('true'); await p.wait()\n"
               "    print(sum(await asyncio.gather(*map(f, range(20)))))\n"
               "asyncio.run(main())",
    "executors": "from concurrent.futures import *\n"
                 "if __name__ == '__main__':\n"
                 "    with ProcessPoolExecutor(2) as p, ThreadPoolExecutor(4) as t:\n"
                 "        print(sum(t.map(abs, range(-10, 10))) + sum(p.map(abs, range(-9, 10))))",
    "tempfile, sqlite3, ssl, ctypes, zoneinfo":
        "import tempfile, sqlite3, ssl, ctypes, decimal, zoneinfo, uuid, secrets, resource\n"
        "f = tempfile.NamedTemporaryFile(); d = sqlite3.connect(f.name)\n"
        "d.execute('create table t (x)'); d.execute('insert into t values (190)'); d.commit()\n"
        "ssl.create_default_context(); ctypes.CDLL(None).getpid()\n"
        "print(d.execute('select x from t').fetchone()[0])",
}


SHARING = ("multiprocessing", "multiprocessing with spawn", "shared memory and locks", "executors")


def python_works(python, names):
    with folder() as place:
        for name in names:
            code = PYTHON[name]
            script = write(f"{place}/try_{name.split()[0].strip(',')}.py", code + "\n")
            try:
                works("--read", place, "--", python, script, out="190\n")
            except Exception as error:
                raise type(error)(f"{python}, {name}: {error}") from None


@test("python3 of the system: threads, subprocess, asyncio and more", needs=["/usr/bin/python3"])
def _():
    python_works("/usr/bin/python3", [name for name in PYTHON if name not in SHARING])


@test("python3 of the system: multiprocessing, shared memory and executors, which need /dev/shm",
      needs=["/usr/bin/python3"], holds={"files": "mountns"})
def _():
    python_works("/usr/bin/python3", SHARING)


@test("python3 of pyenv: through its shim, and each version")
def _():
    root = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    shim = root + "/shims/python3"
    if not os.access(shim, os.X_OK):
        skip("there is no pyenv that we may use")
    if is_bare() and IS_ROOT and not os.stat(os.path.expanduser("~")).st_mode & 0o001:
        skip("a cell without namespaces has a user of its own, who may not enter root's home")
    works("--", shim, "-c", "import sys, ssl, sqlite3; print(sys.prefix)", contains="versions")
    versions = glob.glob(root + "/versions/3.*/bin/python3")
    for python in versions:
        works("--", python, "-c", "import sys, ssl; print(sys.executable)", contains="versions")
    python_works(max(versions, key=os.path.getmtime),
                 [name for name in PYTHON if not is_bare() or name not in SHARING])


@test("python3 of a venv: its own packages are there")
def _():
    with folder() as place:
        call = run(["/usr/bin/python3", "-m", "venv", "--without-pip", place + "/venv"])
        if call.code:
            skip("/usr/bin/python3 cannot make a venv")
        site = glob.glob(place + "/venv/lib/python*/site-packages")[0]
        write(site + "/only_here.py", "word = 'from the venv'\n")
        works("--", place + "/venv/bin/python3", "-c", "import only_here; print(only_here.word)",
              out="from the venv\n")
        works("--", place + "/venv/bin/python", "-c", "import sys; print(sys.prefix)",
              out=place + "/venv\n")


@test("node: timers, promises, files, child processes, workers", needs=["node"])
def _():
    works("--", "node", "-e", "setTimeout(() => console.log(6 * 7), 20)", out="42\n")
    works("--memory", "1G", "--", "node", "-e",
          "const {execFileSync} = require('child_process'); const fs = require('fs');"
          "const {Worker} = require('worker_threads');"
          "const file = process.env.HOME + '/x'; fs.writeFileSync(file, execFileSync('echo', ['child']));"
          "new Worker(\"require('worker_threads').parentPort.postMessage(7)\", {eval: true})"
          ".on('message', m => console.log(fs.readFileSync(file, 'utf8').trim(), m));",
          out="child 7\n")


@test("java: compile and run a single file", needs=["java", "javac"])
def _():
    need_proc()
    with folder() as place:
        source = write(place + "/Hello.java",
                       "public class Hello { public static void main(String[] a) throws Exception {"
                       "Thread t = new Thread(() -> System.out.println(6 * 7)); t.start();"
                       "t.join(); } }\n")
        works("--memory", "1G", "--read", place, "--", "java", source, out="42\n")
        works("--memory", "1G", "--read", place, "--", "sh", "-ec",
              f"javac -d $HOME/c {source} && java -cp $HOME/c Hello", out="42\n")


@test("perl: regular expressions, forks, sockets in pairs", needs=["perl"])
def _():
    works("--", "perl", "-e", "use Socket; socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die;"
          "if (!fork) { syswrite A, 'hello'; exit } wait; sysread B, $x, 5; $x =~ s/h/j/; print $x",
          out="jello")


@test("sqlite3: a database in HOME and in a write grant", needs=["sqlite3"])
def _():
    sql = "create table t (x); insert into t values (42); pragma journal_mode=wal; select x from t;"
    works("--", "sh", "-c", 'sqlite3 $HOME/db "$1"', "sh", sql, contains="42\n")
    with folder(writable=True) as place:
        works("--write", place, "--", "sqlite3", place + "/db", sql, contains="42\n")
        check(os.path.getsize(place + "/db") > 0, "the database is on the host")


@test("tar and gzip: pack and unpack, modes kept", needs=["tar", "gzip"])
def _():
    need_modes()
    with folder(writable=True) as place:
        write(place + "/d/script", "#!/bin/sh\necho unpacked\n", 0o755)
        works("--write", place, "--cwd", place, "--", "sh", "-ec",
              "tar czf d.tgz d && tar xzf d.tgz -C $HOME && $HOME/d/script", out="unpacked\n")


@test("curl against a server on the cell's own loopback", needs=["curl", "python3"],
      holds={"network": "netns"})
def _():
    script = ("cd /tmp; echo served > page; /usr/bin/python3 -m http.server 8123 --bind 127.0.0.1 "
              ">/dev/null 2>&1 & for i in $(seq 100); do"
              " curl -sf http://127.0.0.1:8123/page && exit; sleep 0.05; done; exit 1")
    works("--net", "loopback", "--", "sh", "-c", script, out="served\n")


@test("what is found on the caller's PATH is run, with its prefix")
def _():
    with folder() as place:
        write(place + "/tool/bin/greet", '#!/bin/sh\n. "$(dirname "$0")/../lib/words"\n', 0o755)
        write(place + "/tool/lib/words", "echo hello from the prefix\n")
        works("--", "greet", out="hello from the prefix\n",
              env={**os.environ, "PATH": f"{place}/tool/bin:{os.environ['PATH']}"})


@test("programs of other kinds, where they are installed: ruby, php, lua, dc, awk")
def _():
    ran = []
    for program, args, out in (("ruby", ["-e", "puts 42"], "42\n"),
                               ("php", ["-r", "echo 42;"], "42"),
                               ("lua", ["-e", "print(42)"], "42\n"), ("dc", ["-e", "42p"], "42\n"),
                               ("awk", ["BEGIN { print 42 }"], "42\n")):
        if shutil.which(program):
            works("--", program, *args, out=out)
            ran.append(program)
    if not ran:
        skip("none of them is installed")


if __name__ == "__main__":
    main()
