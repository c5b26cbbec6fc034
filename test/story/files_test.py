#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Files and surroundings of a cell: grants, moves, owners, environment, ids, hints."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, ESCAPE, IS_ROOT, binary_for_all, check, check_equal, check_in, children,
                       folder, is_bare, main, need_proc, proc, skip, test, vitro, vitro_json,
                       vitro_started, wait_until, write)



def shell(script, *flags, **options):
    """Runs a shell script in a cell; its output."""
    call = vitro("run", *flags, "--", "/bin/sh", "-c", script, **options)
    check_equal(call.code, 0, "exit code", call)
    return call.out


@test("files.read: a folder is there at the same place, and only to be read", holds={"files": "*"})
def _():
    with folder() as place:
        write(place + "/note", "hello\n")
        script = f"cat {place}/note; touch {place}/new 2>/dev/null || echo denied"
        check_equal(shell(script, "--read", place), "hello\ndenied\n", "output")
        check(not os.path.exists(place + "/new"), "nothing was made on the host")


@test("files.read: a single file, and a relative path in a flag", holds={"files": "*"})
def _():
    with folder() as place:
        write(place + "/note", "hello\n")
        write(place + "/other", "hidden\n")
        script = f"cat {place}/note; cat {place}/other 2>/dev/null || echo absent"
        check_equal(shell(script, "--read", "note", cwd=place), "hello\nabsent\n", "output")


@test("files.write: what is written is on the host, with the caller as its owner",
      holds={"files": "mountns"} if IS_ROOT else None)
def _():
    with folder() as place:
        shell(f"mkdir {place}/d && echo written > {place}/d/f", "--write", place)
        with open(place + "/d/f", encoding="ascii") as file:
            check_equal(file.read(), "written\n", "content")
        for path in (place + "/d", place + "/d/f"):
            st = os.stat(path)
            check_equal((st.st_uid, st.st_gid), (os.getuid(), os.getgid()), f"owner of {path}")


@contextlib.contextmanager
def shared_mount():
    """A folder that is a shared mount, as most of a systemd host is."""
    with folder() as place:
        os.chmod(place, 0o755)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=777", "vitro-test", place], check=True)
        try:
            subprocess.run(["mount", "--make-shared", place], check=True)
            yield place
        finally:
            subprocess.run(["umount", "-l", place], check=True)


@test("mounts: nothing that a cell mounts shows up on the host, though its mounts are shared",
      root=True, holds={"files": "mountns"})
def _():
    with shared_mount() as place:
        os.mkdir(place + "/sub")
        shell(f"touch {place}/sub/x", "--read", place, "--write", place + "/sub")
        left = [line for line in proc("self/mountinfo").decode().splitlines()
                if f"{place}/sub" in line]
        check_equal(left, [], "mounts left")


@test("mounts: nothing that the host mounts below a grant during a call shows up inside", root=True,
      holds={"files": "mountns"})
def _():
    users = (), ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    # A folder for reading may be shown by an overlay, one for writing is always a copied mount.
    for prefix, grant in itertools.product(users, ("--read", "--write")):
        with binary_for_all(), shared_mount() as place:
            os.mkdir(place + "/later", 0o777)
            script = f"echo ready; read line; ls {place}/later"
            with vitro_started("run", grant, place, "--", "/bin/sh", "-c", script,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, prefix=prefix,
                               text=True) as (call, _):
                check_equal(call.stdout.readline(), "ready\n", "the call has begun")
                subprocess.run(["mount", "-t", "tmpfs", "vitro-test", place + "/later"], check=True)
                try:
                    write(place + "/later/secret", "")
                    call.stdin.write("go\n")
                    call.stdin.close()
                    check_equal(call.stdout.read(), "", "what the call sees")
                finally:
                    subprocess.run(["umount", place + "/later"], check=True)


@test("a socket in the command's own prefix cannot be connected to")
def _():
    with folder() as place:
        for name in ("bin", "lib"):
            os.mkdir(f"{place}/{name}")
        program = shutil.copy(ESCAPE, place + "/bin")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place + "/lib/socket")
            os.chmod(place + "/lib/socket", 0o777)
            listener.listen()
            threading.Thread(target=lambda: listener.accept()[0].sendall(b"hello"), daemon=True).start()
            act = [program, "unix_path", place + "/lib/socket"]
            call = vitro("run", "--", *act)
            check_in("denied", call.out, "inside", call)
            control = subprocess.run(act, stdout=subprocess.PIPE, text=True, check=False)
            check_in("reached", control.stdout, "outside")


@test("files.write as root: files keep the owner of the folder on disk", root=True,
      holds={"files": "mountns"})
def _():
    for owner in (0, 1234):
        with folder() as place:
            os.chown(place, owner, owner)
            os.chmod(place, 0o700)
            write(place + "/before", "before\n", 0o600)
            os.chown(place + "/before", owner, owner)
            out = shell(f"cat {place}/before; echo more >> {place}/before; echo x > {place}/after;"
                        f"id -u; stat -c %u {place} {place}/before {place}/after",
                        "--write", place)
            lines = out.split()
            check_equal(lines[0], "before", "a private file of the owner's can be read")
            check_equal(len(set(lines[1:])), 1, f"inside all belong to the cell's user: {lines}")
            check(lines[1] != "0", f"who is not root: {lines}")
            for name in ("before", "after"):
                st = os.stat(f"{place}/{name}")
                check_equal((st.st_uid, st.st_gid), (owner, owner), f"owner of {name} on disk")


@test("files.read as root: a folder that only its owner may enter can be read", root=True,
      holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/private", "private\n", 0o600)
        os.chmod(place, 0o700)
        check_equal(shell(f"cat {place}/private", "--read", place), "private\n", "content")


@test("as root no process of the cell is root or nobody on the host", root=True)
def _():
    with vitro_started("run", "--", ACTOR, "sleep_ms", "5000") as (process, _):
        def status(pid, key):
            lines = proc(f"{pid}/status").decode().splitlines()
            return next((line.split()[1:] for line in lines if line.startswith(key + ":")), [])

        def is_occupant(pid):
            return proc(f"{pid}/cmdline").startswith(ACTOR.encode())

        def is_inside(pid):  # and not vitro's own, beside the cell and out of its reach
            if is_bare():
                return is_occupant(pid)
            return len(status(pid, "NSpid")) > len(status(process.pid, "NSpid"))

        def below(pid):
            return [each for child in children(pid) for each in (child, *below(child))]

        def inside():  # once the command runs: until then the cell is being made, by root
            found = [pid for pid in below(process.pid) if is_inside(pid)]
            return found if any(map(is_occupant, found)) else None

        found = wait_until(inside, 5, "the command runs")
        check(is_bare() or len(found) == 2, f"init and occupant: {found}")
        for pid in found:
            uids = status(pid, "Uid")
            check(len(uids) == 4 and not {"0", "65534"} & set(uids), f"process {pid} has ids {uids}")


@test("moves: {\"from\", \"to\"} in a policy puts a host folder at another place",
      holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/data/note", "moved\n")
        os.mkdir(place + "/out")
        policy = write(place + "/policy.json", json.dumps({"files": {
            "read": [{"from": "data", "to": "/srv/input"}],
            "write": [{"from": place + "/out", "to": "/srv/output"}]}}))
        out = shell("cat /srv/input/note; cp /srv/input/note /srv/output/copy;"
                    f"ls {place} 2>/dev/null || echo absent;"
                    "touch /srv/input/x 2>/dev/null || echo ro",
                    "-p", policy)
        check_equal(out, "moved\nabsent\nro\n", "output")
        check(os.path.exists(place + "/out/copy"), "the copy is on the host")


@test("paths in a policy are relative to its file, not to the working directory")
def _():
    with folder() as place:
        write(place + "/here/note", "relative\n")
        policy = write(place + "/policy.json", '{"files": {"read": ["here"]}}')
        check_equal(shell(f"cat {place}/here/note", "-p", policy, cwd="/"), "relative\n", "output")


@test("extends: what comes later wins, lists grow")
def _():
    with folder() as place:
        for name in "ab":
            write(f"{place}/{name}/note", name)
        write(place + "/base.json", '{"files": {"read": ["a"]}, "limits": {"open_files": 77}}')
        policy = write(place + "/top.json", '{"extends": "base.json", "files": {"read": ["b"]}}')
        out = shell(f"cat {place}/a/note {place}/b/note; ulimit -n", "-p", policy)
        check_equal(out, "ab77\n", "output")
        out = shell("ulimit -n", "-p", policy, "--set", "limits.open_files=88")
        check_equal(out, "88\n", "a flag wins over the file")


@test("built-in policies: default, strict and compute run a command")
def _():
    for name in ("default", "strict", "compute"):
        result = vitro_json("run", "-p", name, "--", "/bin/echo", "hello")
        if name == "strict" and result["status"] == "refused":
            continue  # a plain user may not have what it requires
        check_equal(result["stdout"], "hello\n", f"output under {name}", result["call"])


@test("/tmp is private, writable and empty; HOME is there; nothing else can be written",
      holds={"files": "*"})
def _():
    marker = f"/tmp/test-marker-{os.getpid()}"
    try:
        write(marker, "host\n")
    except OSError as error:
        skip(f"/tmp cannot be written: {error.strerror}")
    try:
        out = shell("pwd; echo $HOME; ls -A $HOME | wc -l; echo x > $HOME/mine && cat $HOME/mine;"
                    f"cat {marker} 2>/dev/null || echo closed")
        home = out.split()[0]
        check_equal(out, f"{home}\n{home}\n0\nx\nclosed\n", "output")
        check(is_bare() or home == "/tmp", f"home: {home}")
    finally:
        os.unlink(marker)
    check(not os.path.exists(home + "/mine"), "the cell's /tmp is not the host's")


@test("two calls do not see each other's /tmp")
def _():
    shell("echo secret > $HOME/left")
    check_equal(shell("ls -A $HOME"), "", "what the next call finds")


@test("two calls at the same time do not see each other's /tmp", holds={"files": "*"})
def _():
    with vitro_started("run", "--", "/bin/sh", "-c", "echo secret > $HOME/left; echo $HOME; sleep 20",
                       stdout=subprocess.PIPE) as (process, _):
        home = process.stdout.readline().decode().strip()
        call = vitro("run", "--", "/bin/sh", "-c", f"ls -A $HOME; cat {home}/left; ls -A {home}",
                     leaks=False)
        check_equal(call.out, "", "what the other finds", call)


@test("/dev has null, zero, full, random, urandom, and no terminal or disk",
      holds={"files": "mountns"})
def _():
    out = shell("ls /dev; head -c 4 /dev/zero | wc -c; head -c 4 /dev/urandom | wc -c;"
                "echo x > /dev/null && echo ok; (echo x > /dev/full) 2>/dev/null || echo full")
    names = set(out.split())
    check({"null", "zero", "full", "random", "urandom"} <= names, out)
    check(not names & {"tty", "ptmx", "console", "mem", "kmsg", "vda", "sda", "pts"}, out)
    check_in("4\n4\nok\nfull\n", out, "what devices do")


@test("/proc shows the cell alone", holds={"files": "*"})
def _():
    pids = shell("cd /proc; echo [0-9]*").split()
    check(len(pids) <= 3, f"processes: {pids}")


@test("the environment is minimal: nothing of the caller's but the language and the time zone")
def _():
    caller = {"PATH": os.environ["PATH"], "SECRET_TOKEN": "x", "LANG": "C.UTF-8", "TZ": "UTC",
              "LD_PRELOAD_NOT": "y", "HOME": "/root"}
    call = vitro("run", "--", "/usr/bin/env", env=caller, mark=False)
    names = {line.split("=")[0] for line in call.out.splitlines()}
    more = {"TMPDIR"} if is_bare() else set()
    check_equal(names, {"PATH", "HOME", "LANG", "TZ"} | more, "variables", call)
    check_in("HOME=/tmp/vitro-" if is_bare() else "HOME=/tmp\n", call.out, "HOME")


@test("--env K=V sets, --env K passes the caller's, env.pass takes \"*\"")
def _():
    caller = {**os.environ, "GIVEN": "from outside"}
    check_equal(shell("echo $A-$GIVEN", "--env", "A=1", "--env", "GIVEN", env=caller),
                "1-from outside\n", "output")
    check_equal(shell("echo $GIVEN", "--set", "env.pass=*", env=caller), "from outside\n", "*")
    check_equal(shell("echo $PATH", "--env", "PATH=/bin"), "/bin\n", "PATH can be set")


@test("signals are reset: what the caller blocked or ignored is neither inside")
def _():
    def spoil():
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2, signal.SIGTERM, signal.SIGALRM})

    call = vitro("run", "--", ACTOR, "signals", preexec_fn=spoil)
    check_equal((call.code, call.out), (0, "done\n"), "signals", call)


@test("a call works though the caller ignores SIGCHLD and blocks every signal")
def _():
    def spoil():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))

    call = vitro("run", "--", "/bin/sh", "-c", "exit 5", preexec_fn=spoil)
    check_equal(call.code, 5, "exit code", call)
    call = vitro("run", "--timeout", "300ms", "--", ACTOR, "ignore_term", preexec_fn=spoil)
    check_equal(call.code, 124, "exit code", call)


@test("the occupant has no capabilities, no_new_privs, a filter, a session of its own, a umask")
def _():
    need_proc()
    out = vitro("run", "--", "/bin/grep", "-E", "^(Cap|NoNewPrivs|Seccomp:)", "/proc/self/status").out
    check_equal(out.count("Cap"), 5, "sets of capabilities")
    out += shell("umask; read -r pid name state parent group session rest < /proc/self/stat;"
                 "test $session = $$ && echo session")
    for line in out.splitlines():
        # Who has no capability cannot lower the bounding set, and with no_new_privs gains none from it.
        if line.startswith("Cap") and not (line.startswith("CapBnd") and is_bare() and not IS_ROOT):
            check_equal(line.split()[1].strip("0"), "", line)
    check_in("NoNewPrivs:\t1", out, "status")
    check_in("Seccomp:\t2", out, "status")
    check_in("0022\nsession\n", out, "umask and session")


@test("a leaked nice value, umask or limit of the caller does not break a call")
def _():
    def spoil():
        os.umask(0o777)
        os.nice(5)

    with folder() as place:
        os.chmod(place, 0o777)
        call = vitro("run", "--write", place, "--", ACTOR, "write_file", place + "/f",
                     preexec_fn=spoil)
        check_equal(call.code, 0, "exit code", call)
        check_equal(os.stat(place + "/f").st_mode & 0o777, 0o644, "mode of a new file")


@test("--cwd: a granted folder as working directory, by a relative path too")
def _():
    with folder() as place:
        write(place + "/note", "here\n")
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "/bin/cat", "note", cwd=place)
        check_equal(call.out, "here\n", "stdout", call)
        call = vitro("run", "--cwd", place, "--", "/bin/pwd")
        check_equal(call.code, 125, "a working directory that is not there is refused", call)


@test("hint: a script in a folder that is not granted fails and says what would make it work",
      needs=["/usr/bin/python3"])
def _():
    with folder() as place:
        write(place + "/x.py", "print('ran')\n")
        call = vitro("run", "--", "/usr/bin/python3", "x.py", cwd=place)
        check(call.code != 0, f"it fails\n{call}")
        check_in("--read . --cwd .", call.err, "the hint", call)
        check_in("x.py", call.err, "the hint names the file", call)
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "/usr/bin/python3", "x.py",
                     cwd=place)
        check_equal((call.code, call.out), (0, "ran\n"), "and with the hint it works", call)


@test("no hint where nothing is missing")
def _():
    call = vitro("run", "--", "/bin/sh", "-c", "exit 3")
    check_equal((call.code, call.err), (3, ""), "exit code and stderr", call)


@test("--net loopback: a server of the cell's own can be reached by itself", needs=["python3"],
      holds={"network": "netns"})
def _():
    code = ("import socket; s = socket.create_server(('127.0.0.1', 0));"
            "c = socket.create_connection(s.getsockname()); print('connected')")
    call = vitro("run", "--net", "loopback", "--", "/usr/bin/python3", "-c", code)
    check_equal(call.out, "connected\n", "stdout", call)


@test("--net host: the host's own servers can be reached", needs=["python3"])
def _():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        code = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('connected')"
        call = vitro("run", "--net", "host", "--", "/usr/bin/python3", "-c", code)
        check_equal(call.out, "connected\n", "stdout", call)


@test("the caller's working directory may be gone, or closed to others")
def _():
    with folder() as place:
        os.mkdir(place + "/closed", 0o700)
        call = vitro("run", "--", "/bin/pwd", cwd=place + "/closed")
        check(call.out == "/tmp\n" or (is_bare() and call.out.startswith("/tmp/vitro-")), call)


if __name__ == "__main__":
    main()
