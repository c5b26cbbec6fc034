#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Grants and denials that mislead: links, places that cannot be, and what is not kept apart."""

import contextlib
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (binary_for_all, check, check_equal, check_in, folder, is_bare, landlock_abi, main,
                       need_power, need_proc, run, sanitized, skip, test, vitro, vitro_command, write)


def refused(*args, says=(), **options):
    """The call is turned down with exit 125 and one line, and nothing runs."""
    call = vitro("run", *args, "--", "/bin/echo", "ran", **options)
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
    for word in says:
        check_in(word, call.err, "the message", call)


@contextlib.contextmanager
def links(**targets):
    with folder() as place:
        for name, target in targets.items():
            os.symlink(target, f"{place}/{name}")
        yield place


@test("a link to /etc as a read grant: what only root may read stays closed", root=True)
def _():
    with links(L="/etc") as place:
        script = f"cat {place}/L/shadow; cat /etc/shadow; cat {place}/L/hostname"
        outside = run(["sh", "-c", f"cat {place}/L/shadow"])
        check_in("root:", outside.out, "outside it can be read")
        for flags in (["--read", place + "/L"], ["--read", place, "--read", place + "/L"],
                      ["--read", place + "/L/."], ["--read", "/etc"]):
            call = vitro("run", *flags, "--", "/bin/sh", "-c", script)
            check("root:" not in call.out, f"shadow is seen\n{call}")
        call = vitro("run", "--read", place + "/L", "--", "/bin/cat", place + "/L/passwd")
        check_in("root:x:", call.out, "what everybody may read is there", call)


@test("a link to /proc, /sys or /dev is no grant, at any place and of any kind")
def _():
    with links(P="/proc", S="/proc/self/root/proc", D="/dev") as place:
        for name in "PSD":
            for flag in ("--read", "--write"):
                refused(flag, f"{place}/{name}")
            refused("--read", json.dumps({"from": f"{place}/{name}", "to": "/x"}))


@test("/ as a whole is not given for writing or at another place, by a link neither")
def _():
    with links(R="/", U="..", Q="R") as place:
        refused("--write", place + "/R", says=["'/'"])
        refused("--write", place + "/Q", says=["'/'"])
        refused("--read", place + "/R", says=["'/'"])
        refused("--read", '{"from": "/", "to": "/h"}', says=["'/'"])
        refused("--write", '{"from": "/", "to": "/h"}', says=["'/'"])
        refused("--read", json.dumps({"from": place + "/R", "to": "/h"}),
                says=[] if is_bare() else ["'/'"])  # nothing can be moved there
        refused("--write", "/", says=["'/'"])
        refused("--write", "../" * 20, says=["'/'"], cwd=place)
        refused("--write", place + "/../../../../../../..")


@test("without namespaces, what takes a mount or a network of the cell's own is refused by name")
def _():
    if not is_bare():
        skip("cells have namespaces here")
    with folder() as place, socket.socket(socket.AF_UNIX) as listener:
        write(place + "/d/note", "note\n")
        listener.bind(place + "/socket")
        call = vitro("run", "--read", place + "/d", "--", "/bin/cat", place + "/d/note")
        check_equal((call.code, call.out), (0, "note\n"), "the control", call)
        refused("--read", place + "/d", "--deny", place + "/d/note", says=["--deny", "/d/note"])
        refused("--write", json.dumps({"from": place + "/d", "to": "/h"}), says=["--write", "'/h'"])
        refused("--socket", place + "/socket", says=["files.sockets"])
        refused("--net", "loopback", says=["loopback"])


@test("files.deny of what no grant shows is no reason to refuse, and it is not there",
      holds={"files": "*"})
def _():
    need_proc()
    with folder() as place:
        write(place + "/a/note", "note\n")
        write(place + "/b/secret", "secret\n")
        call = vitro("run", "--read", place + "/a", "--deny", place + "/b", "--", "/bin/sh", "-c",
                     f"cat {place}/a/note; cat {place}/b/secret 2>/dev/null || echo absent")
        check_equal((call.code, call.out), (0, "note\nabsent\n"), "output", call)


@contextlib.contextmanager
def piped(path):
    """A named pipe in a folder, and a descriptor of it that has written to it and reads."""
    os.mkfifo(path + "/pipe")
    os.chmod(path + "/pipe", 0o666)
    fd = os.open(path + "/pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(fd, b"host ")
        yield fd
    finally:
        os.close(fd)


def use_pipe(path, *flags, **options):
    """The call, which writes to the pipe at path whether anybody reads it or not."""
    script = f"exec 3<>{path}/pipe && echo cell >&3 && test -p {path}/pipe"
    return vitro("run", "--json", *flags, "--", "/bin/sh", "-c", script, **options)


@test("a named pipe in a folder for writing is the host's, in one for reading nobody's",
      holds={"files": "mountns"})
def _():
    def moved(path, to):
        return ["--read", json.dumps({"from": path, "to": to})]

    with folder() as read, folder(writable=True) as write_to:
        os.mkdir(write_to + "/inner")
        with piped(write_to) as host:
            call = use_pipe(write_to, "--write", write_to)
            check_equal((call.code, os.read(host, 100)), (0, b"host cell\n"), "the control", call)
        places = [("/tmp/a/b", moved(read, "/tmp/a/b")), ("/srv/a", moved(read, "/srv/a")),
                  (write_to + "/inner", ["--write", write_to, *moved(read, write_to + "/inner")])]
        with piped(read) as host:
            for path, flags in places:
                call = use_pipe(path, *flags)
                if "named pipes" in call.json["isolation"].get("notes", {}).get("files", ""):
                    skip("no overlay can be had here, and vitro says so")
                check_equal(os.read(host, 100), b"host ", f"what is in the pipe of {path}", call)
                os.write(host, b"host ")


@test("a folder for reading below /tmp looks as it does on the host", holds={"files": "mountns"})
def _():
    script = "cd /tmp/a && stat -c '%n %a %s %Y' . file sub link && ls && ./sub/run && ! echo > file"
    with folder() as place:
        write(place + "/file", "text\n")
        write(place + "/sub/run", "#!/bin/sh\necho ran\n", 0o755)
        os.symlink("sub/run", place + "/link")
        os.utime(place, (1, 2))
        outside = run(["sh", "-c", script.replace("/tmp/a", place).replace(" && ! echo > file", "")])
        check_in("ran\n", outside.out, "the control", outside)
        call = vitro("run", "--read", json.dumps({"from": place, "to": "/tmp/a"}), "--", "/bin/sh", "-c",
                     script)
        check_equal((call.code, call.out), (0, outside.out), "what is seen inside", call)


@test("where no overlay can be made, pipes can be written to, and explain and the result say so",
      root=True, needs=["unshare", "mount"], holds={"files": "mountns"})
def _():
    with folder("/tmp") as place, piped(place) as host:
        os.mkdir(place + "/sub")
        mounted = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs none {place}/sub && exec "$@"', "sh"]
        call = use_pipe(place, "--read", place, prefix=mounted)
        check_equal(os.read(host, 100), b"host cell\n", "what is in the pipe", call)
        said = call.json["isolation"]["notes"]["files"]
        check_in(f"named pipes in folders for reading, as in '{place}', can be written to", said, "the note")
        explained = vitro("explain", "--read", place, prefix=mounted).out
        check_in(said, " ".join(explained.split()), "explain")
        notes = use_pipe(place, "--read", place).json["isolation"].get("notes", {})
        check("files" not in notes, f"a note without need: {notes}")


@contextlib.contextmanager
def workspace():
    """A folder for cells to write to, and a private one beside it, with a socket in it."""
    with folder(writable=True) as place, socket.socket(socket.AF_UNIX) as listener:
        os.mkdir(place + "/ws")
        os.chmod(place + "/ws", os.stat(place).st_mode & 0o777)
        write(place + "/priv/secret", "secret\n")
        listener.bind(place + "/priv/socket")
        listener.listen()
        yield place


@test("without /proc a deny and a link beside a grant for writing are refused, and a link without one is not",
      root=True, needs=["unshare", "umount", "setpriv"])
def _():
    need_power(21, "CAP_SYS_ADMIN")
    if sanitized():
        skip("a sanitizer needs /proc itself")
    if landlock_abi() < 6:
        skip("without /proc a cell of an ordinary user stands on Landlock ABI 6")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    hidden = {"prefix": ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", *user]}
    best = ["--set", "require=best-effort"]
    with binary_for_all(), workspace() as place:
        os.chown(place + "/ws", 65534, 65534)
        os.symlink("priv", place + "/link")
        link, priv = place + "/link", place + "/priv"
        call = vitro("run", *best, "--read", link, "--", "/bin/cat", priv + "/secret", **hidden)
        check_equal((call.code, call.out), (0, "secret\n"), "a link without a grant for writing", call)
        for flags in (["--read", priv, "--deny", priv + "/secret"], ["--read", link, "--write", place + "/ws"]):
            refused(*best, *flags, **hidden,
                    says=["is mounted cannot be found out: /proc/self/mountinfo cannot be read"])


@test("a grant through a link that this call's cell could change is refused, of every kind")
def _():
    need_proc()
    with workspace() as place:
        ws, priv = place + "/ws", place + "/priv"
        os.symlink(priv, ws + "/out")
        os.symlink("ws/out", place + "/far")
        moved = json.dumps({"from": ws + "/out", "to": "/x"})
        says = ["symbolic link", f"'{ws}/out'", f"'{ws}'"]
        for flags in (["--read", ws + "/out"], ["--write", ws + "/out"],
                      ["--read", ws + "/out/secret"], ["--read", place + "/far"]):
            refused("--write", ws, *flags, says=says)
            refused(*flags, "--write", ws, says=says)
        if not is_bare():
            refused("--write", ws, "--read", moved, says=says)
            refused("--write", ws, "--socket", ws + "/out/socket", says=says)
            refused("--write", ws, "--deny", ws + "/out/secret", says=["symbolic link"])
        call = vitro("run", "--write", ws, "--read", priv, "--", "/bin/cat", priv + "/secret")
        check_equal((call.code, call.out, call.err), (0, "secret\n", ""), "by its own name", call)


@test("the same where the link is reached by another mount of the folder", root=True)
def _():
    need_power(21, "CAP_SYS_ADMIN")
    with workspace() as place:
        os.symlink(place + "/priv", place + "/ws/out")
        os.mkdir(place + "/other")
        words = " ".join(vitro_command("run", "--write", place + "/other", "--read",
                                       place + "/ws/out", "--", "/bin/echo", "ran"))
        control = run(["unshare", "-m", "sh", "-c", words])
        check_equal((control.code, control.out), (0, "ran\n"), "without the mount", control)
        call = run(["unshare", "-m", "sh", "-c",
                    f"mount --bind {place}/ws {place}/other && {words}"])
        check_equal((call.code, call.out), (125, ""), "with it", call)
        check_in("symbolic link", call.err, "the message", call)


@test("a grant through a link that an earlier cell made: a note says where it leads")
def _():
    with workspace() as place:
        ws, priv = place + "/ws", place + "/priv"
        call = vitro("run", "--write", ws, "--", "/bin/ln", "-s", priv, ws + "/out")
        check_equal((call.code, call.err), (0, ""), "the earlier call", call)
        note = f"--read: '{ws}/out' is a link and leads to '{priv}'"
        call = vitro("run", "--read", ws + "/out", "--", "/bin/cat", priv + "/secret")
        check_equal(call.err.splitlines()[0], f"vitro: note: {note}", "on stderr", call)
        call = vitro("run", "--json", "--read", ws + "/out", "--", "/bin/true")
        check_equal(call.json["isolation"]["notes"]["links"], note, "in the result", call)
        call = vitro("explain", "--read", ws + "/out")
        check_in(note, " ".join(call.out.split()), "in explain", call)
        need_proc()  # for where it is mounted, beside a grant for writing
        call = vitro("run", "--write", ws + "/out/secret", "--", "/bin/true")
        check_in(f"passes the link '{ws}/out' and leads to '{priv}/secret'", call.err,
                 "a link on the way", call)


@test("a grant inside another that a folder closed by its owner lies around: the message says so",
      root=True, holds={"files": "mountns"})
def _():
    with folder() as place:
        out = place + "/ws/a/out"
        os.makedirs(out)
        os.chown(place + "/ws/a", 1234, 1234)
        os.chmod(place + "/ws/a", 0o700)
        flags = ["--read", place + "/ws", "--write", out, "--", "/bin/true"]
        call = vitro("run", *flags)
        check_equal((call.code, call.out), (125, ""), "exit code", call)
        for words in ("as the cell's user", out[1:], "Permission denied"):
            check_in(words, call.err, "the message", call)
        check("namespaces" not in call.err, f"of what is not the cause\n{call}")
        os.chmod(place + "/ws/a", 0o711)
        check_equal(vitro("run", *flags).code, 0, "the control")


@test("links of the system's own, and paths without any, get no note")
def _():
    with folder() as place:
        for path in (place, "/var/run", "/usr/bin"):
            call = vitro("run", "--json", "--read", path, "--", "/bin/true")
            check("is a link" not in call.err, f"no note on {path}\n{call}")
            check("links" not in (call.json["isolation"] or {}).get("notes", {}),
                  f"no note on {path}\n{call}")


if __name__ == "__main__":
    main()
