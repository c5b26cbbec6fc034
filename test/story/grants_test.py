#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Grants and denials that mislead: links, places that cannot be, and what is not kept apart."""

import contextlib
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (check, check_equal, check_in, folder, is_bare, main, run, skip, test, vitro,
                       write)


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


@test("files.deny of what no grant shows is no reason to refuse, and it is not there")
def _():
    with folder() as place:
        write(place + "/a/note", "note\n")
        write(place + "/b/secret", "secret\n")
        call = vitro("run", "--read", place + "/a", "--deny", place + "/b", "--", "/bin/sh", "-c",
                     f"cat {place}/a/note; cat {place}/b/secret 2>/dev/null || echo absent")
        check_equal((call.code, call.out), (0, "note\nabsent\n"), "output", call)


if __name__ == "__main__":
    main()
