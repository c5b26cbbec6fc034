#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Modes and times in an ordinary user's cell without namespaces: its own files', and no others'."""

import os
import re
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BIN, IS_ROOT, check, check_equal, check_in, folder, main, run, skip, test, vitro,
                       vitro_command, vitro_json, write)

WITHIN = os.path.join(BIN, "matrix", "vitro-within")
BARE = [WITHIN, "--deny-userns", "--"]
CHANGES = "modes and times can be changed only inside folders that may be written"


def explained(prefix):
    """What explain says of files."""
    call = run([*prefix, *vitro_command("explain", "--set", "require=best-effort")])
    found = re.search(r"^files .*(\n .*)*", call.out, re.MULTILINE)
    return " ".join(found[0].split()) if found else str(call)


def need_changes(prefix=BARE):
    if IS_ROOT:
        skip("root's cells have a user of their own; the pass as a user has it")
    files = explained(prefix)
    if CHANGES not in files:
        skip(f"not here: {files}")


def in_bare(place, script, *flags, prefix=BARE, **options):
    return vitro("run", "--set", "require=best-effort", "--write", place, "--cwd", place, *flags, "--",
                 "/bin/sh", "-ec", script, prefix=prefix, **options)


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


@test("bare: touch, and chmod +x of a program that then runs, in a grant and in the private folder")
def _():
    need_changes()
    script = ("printf '#!/bin/sh\\necho ran\\n' > tool; chmod +x tool; ./tool; touch -d @1000 tool;"
              "mkdir -p d; chmod 700 d; ln -sf tool link; touch -h -d @2000 link; touch tool2")
    with folder(writable=True) as place:
        call = in_bare(place, script + "; cd $HOME; " + script + "; stat -c '%a %Y' tool link")
        check_equal((call.code, call.out), (0, "ran\nran\n755 1000\n777 2000\n"), "the call", call)
        check_equal(mode_of(place + "/tool"), 0o755, "the mode on the host")
        check_equal(mode_of(place + "/d"), 0o700, "the folder's mode on the host")
        check_equal(int(os.stat(place + "/tool").st_mtime), 1000, "the time on the host")
        check_equal(int(os.lstat(place + "/link").st_mtime), 2000, "the link's time on the host")


@test("bare: cp -p, install and tar keep modes and times", needs=["tar", "install"])
def _():
    need_changes()
    with folder(writable=True) as place:
        write(place + "/d/script", "#!/bin/sh\necho unpacked\n", 0o750)
        os.utime(place + "/d/script", (1000, 1000))
        call = in_bare(place, "tar cf d.tar d; tar xf d.tar -C $HOME; $HOME/d/script; cp -p d/script a;"
                              "cp -a d e; install -m 711 a b; stat -c '%a %Y' $HOME/d/script a e/script;"
                              "stat -c %a b")
        check_equal((call.code, call.out), (0, "unpacked\n" + "750 1000\n" * 3 + "711\n"), "it", call)
        check_equal(call.err, "", "what they complain about", call)


@test("bare: git init and commit in a grant", needs=["git"])
def _():
    need_changes()
    with folder(writable=True) as place:
        call = in_bare(place, "export GIT_CONFIG_NOSYSTEM=1; mkdir r; cd r; git init -q; echo a > f;"
                              "chmod +x f; git add f; git -c user.name=A -c user.email=a@example.org "
                              "commit -qm first; git ls-files -s | cut -c1-6; git log --format=%s")
        check_equal((call.code, call.out), (0, "100755\nfirst\n"), "the call", call)


@test("bare: a compiled program can be run", needs=["gcc"])
def _():
    need_changes()
    with folder(writable=True) as place:
        write(place + "/a.c", "int main(void) { return 7; }\n")
        call = in_bare(place, "gcc -o a a.c; ./a")
        check_equal(call.code, 7, "exit code", call)


@test("bare: modes and times of what may only be read, of the input, and of the folders themselves stay")
def _():
    need_changes()
    with folder() as place, folder() as read:
        secret = write(read + "/file", "x", 0o600)
        os.utime(secret, (1000, 1000))
        script = (f"for f in {secret} link /proc/self/fd/0 {read} {place} $HOME .; do"
                  "  chmod 777 $f && echo changed $f; touch -d @2000 $f && echo touched $f; done; true")
        os.symlink(secret, place + "/link")
        outside = run(["sh", "-c", f"cd {place}; chmod 640 link && touch -d @3000 link && echo both"])
        check_equal((outside.out, mode_of(secret)), ("both\n", 0o640), "the control", outside)
        with open(secret, encoding="utf-8") as stdin:
            call = in_bare(place, script, "--read", read, stdin=stdin)
        check_equal((call.code, call.out), (0, ""), "what was changed", call)
        check_equal((mode_of(secret), int(os.stat(secret).st_mtime)), (0o640, 3000), "the file", call)
        check_equal((mode_of(read), mode_of(place)), (0o755, 0o755), "the folders", call)


@test("bare: a private folder stays open to who measures it, and is removed whatever its modes")
def _():
    need_changes()
    with folder(writable=True) as place:
        call = in_bare(place, "cd $HOME; mkdir -p a/b; touch a/b/c; chmod 000 a && echo closed; "
                              "chmod 555 a/b a; sleep 0.3; pwd")
        check_equal(call.code, 0, "exit code", call)
        check("closed" not in call.out, call)
        check(not os.path.exists(call.out.strip()), call)


@test("bare: changes work where containers deny pidfd_getfd")
def _():
    prefix = [WITHIN, "--deny-userns", "--deny", "pidfd_getfd=EPERM", "--"]
    need_changes(prefix)
    with folder(writable=True) as place:
        call = in_bare(place, "touch a; chmod 711 a; stat -c %a a", prefix=prefix)
        check_equal((call.code, call.out), (0, "711\n"), "the call", call)


@test("bare: where nobody can answer, modes and times cannot be changed, and explain says why")
def _():
    need_changes()
    prefix = [WITHIN, "--deny-userns", "--deny", "process_vm_readv=EPERM", "--"]
    check_in("modes, owners and times cannot be changed (process_vm_readv(): ", explained(prefix), "files")
    with folder(writable=True) as place:
        call = in_bare(place, ": > a; chmod 711 a || touch a || echo denied", prefix=prefix)
        check_equal((call.code, call.out), (0, "denied\n"), "the call", call)


@test("bare: a cell that floods with changes is ended in time, and keeps nobody from it")
def _():
    need_changes()
    with folder(writable=True) as place:
        result = vitro_json("run", "--set", "require=best-effort", "--write", place, "--cwd", place,
                            "--timeout", "700ms", "--", "/bin/sh", "-c",
                            ": > a; for i in $(seq 30); do (while :; do chmod 600 a; chmod 700 /; done) & "
                            "done 2>/dev/null; wait", prefix=BARE)
        check_equal(result["status"], "timeout", "status", result["call"])
        check(result["call"].seconds < 5, result["call"])


main()
