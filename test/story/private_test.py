#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Private folders of cells without namespaces, in a place where somebody else renames meanwhile: another
call of the same user's, say. Whatever he puts there, the cell gets nothing of it, and nothing of it goes
when the cell does. Each moment is met exactly: vitro-within runs a command before a system call."""

import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, IS_ROOT, WITHIN, check, check_equal, check_in, folder, landlock_abi, main,
                       need_proc, run, skip, test, vitro, write)

# Puts a link to $1 where a private folder is, once, and keeps the folder.
SWAP = 'for p in "$0"/vitro-*; do test -d "$p" -a ! -L "$p" && mv "$p" "$0/kept" && ln -s "$1" "$p"; done'


def need_user(abi=6):
    if IS_ROOT:
        skip("root's cells have a user of their own; the pass as a user has it")
    if landlock_abi() < abi:
        skip(f"stands on Landlock ABI {abi}; this kernel has {landlock_abi()}")
    call = run([WITHIN, "--at", "chroot=true", "--", "/bin/true"])
    if "Operation canceled" in call.err:
        skip("the filter around the tests has the one listener that a process can be under")


def at(call, script, *args):
    """vitro-within's option: a script before a call. Its arguments are paths without spaces."""
    return ["--at", f"{call}=exec sh -c '{script}' {' '.join(args)}"]


def in_place(place, script, *flags, within=(), **options):
    """A bare cell whose private folder is made in that place."""
    return vitro("run", "--set", "require=best-effort", *flags, "--", "/bin/sh", "-c", script,
                 prefix=[WITHIN, "--deny-userns", *within, "--"], leaks=False,
                 env={**os.environ, "TMPDIR": place}, **options)


def places(top):
    """A place for private folders, and a folder with a secret beside it."""
    os.mkdir(top + "/place")
    write(top + "/home/secret", "secret\n", 0o600)
    return top + "/place", top + "/home"


def check_kept(home, call):
    check_equal(sorted(os.listdir(home)), ["secret"], "what is in the other folder", call)
    with open(home + "/secret", encoding="utf-8") as file:
        check_equal(file.read(), "secret\n", "the other file", call)


@test("bare: a private folder that is swapped before its rule is made: the rule is for what was made")
def _():
    need_user()
    with folder() as top:
        place, home = places(top)
        act = f"pwd; echo own > file; cat {home}/secret; echo planted > {home}/planted; cat file"
        within = at("landlock_create_ruleset", SWAP, place, home)
        control = run(["sh", "-c", f"cd {top}; cat {home}/secret; : > {home}/planted; rm {home}/planted"])
        check_equal((control.code, control.out), (0, "secret\n"), "the control outside", control)
        call = in_place(place, act, within=within)
        links = [path for path in glob.glob(place + "/vitro-*") if os.path.islink(path)]
        check_equal(len(links), 1, "it was swapped", call)
        check("secret" not in call.out, call)
        check_kept(home, call)
        # It works in its own, and that is emptied; the link is not vitro's, and stays.
        check_equal(call.out.splitlines()[-1:], ["own"], "its own file", call)
        check_equal(os.listdir(place + "/kept"), [], "what is left in its own folder", call)


@test("bare: what is put in a private folder's place before it is opened is not taken for it")
def _():
    need_user()
    with folder() as top:
        place, home = places(top)
        swap = ('for p in "$0"/vitro-*; do test -d "$p" -a ! -e "$0/kept" && mv "$p" "$0/kept" && mv "$1" "$p"; '
                "done; :")
        act = "cat secret; : > planted"
        call = in_place(place, act, within=at("openat", swap, place, home))
        check(os.path.isdir(place + "/kept") and not os.path.exists(home), f"it was not swapped: {call}")
        check_equal((call.code, call.out), (125, ""), "nothing ran", call)
        check_in("find the private folder that was made at", call.err, "why", call)
        check_kept(glob.glob(place + "/vitro-*")[0], call)


@test("bare: a working directory that is swapped before it is entered: the call ends there")
def _():
    need_user()
    with folder() as top:
        place, home = places(top)
        os.makedirs(top + "/grant/sub")
        swap = ('for p in "$0"/vitro-*; do test -d "$p" -a ! -L "$1/sub" && mv "$1/sub" "$1/kept" '
                '&& ln -s "$2" "$1/sub"; done; :')
        flags = ["--write", top + "/grant", "--cwd", top + "/grant/sub"]
        control = in_place(place, "pwd -P", *flags)
        check_equal((control.code, control.out), (0, top + "/grant/sub\n"), "the control", control)
        call = in_place(place, "pwd -P", *flags,
                        within=at("landlock_create_ruleset", swap, place, top + "/grant", home))
        check(os.path.islink(top + "/grant/sub"), f"it was not swapped: {call}")
        check_equal((call.code, call.out), (125, ""), "nothing ran", call)
        check_in("find what was there before", call.err, "why", call)


def check_moved_folder(*within):
    """A folder is moved while it is being emptied, with two of three files in it, which somebody makes his own
    then: what is at its new place stays. Returns what is left of the two."""
    with folder() as top:
        place, home = places(top)
        deep = top + "/x/y/home"
        write(deep + "/secret", "secret\n")
        act = "mkdir -p a/b; : > a/b/1; : > a/b/2; : > a/b/3"
        move = ('set -- "$1" "$0"/vitro-*/a/b; test -d "$2" && test $(ls "$2" | wc -l) = 2 && mv "$2" "$1/moved" '
                '&& echo new | tee "$1/moved"/* > "$0.done"; :')
        control = in_place(place, act, within=within)
        check_equal((control.code, os.listdir(place)), (0, []), "the control: nobody moves it", control)
        call = in_place(place, act, within=[*within, *at("unlinkat", move, place, deep)])
        check(os.path.exists(place + ".done"), f"it was not moved: {call}")
        check(os.path.exists(deep + "/secret"), f"the other file is gone: {call}")
        check_equal(sorted(os.listdir(deep)), ["moved", "secret"], "what is at the new place", call)
        check_equal(os.listdir(top + "/x"), ["y"], "what is above it", call)
        check_kept(home, call)
        check_equal(os.listdir(place), [], "what is left of the private folder", call)
        return os.listdir(deep + "/moved"), call


@test("bare: a folder that is moved while it is being emptied: nothing around its new place goes")
def _():
    need_user()
    left, call = check_moved_folder()
    check_equal(len(left), 2, "the files that were put there", call)


@test("bare: the same without Landlock, which is a second wall")
def _():
    need_proc()
    need_user(abi=0)
    check_moved_folder("--deny", "landlock_create_ruleset=EOPNOTSUPP")


@test("bare: a closed folder that is swapped for a link while it is opened up: no other mode is changed")
def _():
    need_user()
    with folder() as top:
        place, home = places(top)
        close = ('for z in "$0"/vitro-*/z; do test ! -e "$0.done" -a -e "$z/f" && chmod 0 "$z" && : > "$0.done"; '
                 "done; :")
        swap = ('for z in "$0"/vitro-*/z; do test -d "$z" -a ! -L "$z" && mv "$z" "$z.kept" && ln -s "$1" "$z"; '
                "done; :")
        act = "mkdir z; : > z/f"
        control = in_place(place, act, within=at("unlinkat", close, place))
        check_equal((control.code, os.listdir(place)), (0, []), "the control: a closed one is removed", control)
        os.unlink(place + ".done")
        call = in_place(place, act, within=[*at("unlinkat", close, place), *at("chmod", swap, place, home + "/secret"),
                                            *at("fchmodat", swap, place, home + "/secret")])
        check(os.path.exists(place + ".done"), f"it was not closed: {call}")
        check_equal(call.code, 0, "exit code", call)
        check_equal(os.stat(home + "/secret").st_mode & 0o777, 0o600, "the other file's mode", call)
        check_kept(home, call)
        check_equal(os.listdir(place), [], "what is left", call)


@test("bare: files and folders can be moved and linked from one folder of a grant to another")
def _():
    need_proc()
    need_user(abi=3)
    with folder(writable=True) as place:
        write(place + "/p/q/r/file", "text\n")
        os.mkdir(place + "/p2")
        act = ("import os\nos.rename('p/q/r', 'p2/r')\nos.rename('p2/r/file', 'p/file')\n"
               "os.link('p/file', 'p2/link')\nos.rename('p2/link', os.environ['HOME'] + '/link')\n")
        for abi in (None, 5):
            within = ["--landlock-abi", str(abi)] if abi else []
            call = vitro("run", "--set", "require=best-effort", "--write", place, "--cwd", place, "--",
                         "/usr/bin/python3", "-c", act, prefix=[WITHIN, "--deny-userns", *within, "--"])
            check_equal((call.code, call.err), (0, ""), "the moves", call)
            check(os.path.isdir(place + "/p2/r") and os.path.exists(place + "/p/file"), call)
            os.rename(place + "/p2/r", place + "/p/q/r")
            os.rename(place + "/p/file", place + "/p/q/r/file")


@test("bare: the place of private folders is not granted for writing, unless that is asked for twice")
def _():
    need_proc()
    need_user()
    bare = [WITHIN, "--deny-userns", "--"]
    with folder() as top:
        place, _ = places(top)
        env = {**os.environ, "TMPDIR": place}
        os.mkdir(place + "/below")
        os.symlink(place, top + "/link")

        def call(*flags, env=env):
            return run([*bare, BINARY, "run", *flags, "--", "/bin/echo", "ran"], env=env)

        for grant in (place, top, top + "/link"):
            refused = call("--write", grant)
            check_equal((refused.code, refused.out), (125, ""), f"with {grant}", refused)
            check_in("private folders of the caller's other calls", refused.err, "why", refused)
        refused = call("--write", place, env={**env, "TMPDIR": top + "/link"})
        check_equal(refused.code, 125, "where TMPDIR is a link", refused)
        for flags in (["--write", place + "/below"], ["--write", top + "/home"]):
            done = call(*flags)
            check_equal((done.code, done.out, done.err), (0, "ran\n", ""), f"{flags}", done)
        done = call("--read", place)
        check_equal((done.code, done.out), (0, "ran\n"), "for reading", done)
        check_in("can read the private folders", done.err, "what is said", done)
        done = call("--set", "require=best-effort", "--write", place)
        check_equal((done.code, done.out), (0, "ran\n"), "best-effort", done)
        check_in("can read and change the private folders", done.err, "what is said", done)


# At its second call puts a link to $1 where the folder $0/d is.
SWAP_FOLDER = 'if mkdir "$0.once"; then exit; fi; test -L "$0/d" || { mv "$0/d" "$0.kept" && ln -s "$1" "$0/d"; }'
BY_PATHS = "import os, sys; d = sys.argv[1] + '/d'; [os.unlink(f'{d}/{name}') for name in os.listdir(d)]"


@test("discard: what a link leads to stays, though it comes in a folder's place between two looks")
def _():
    files = ["1", "2", "3"]
    for call, words, left in (("unlink", [sys.executable, "-c", BY_PATHS], 1), ("unlinkat", [BINARY, "discard"], 3)):
        with folder() as top:
            for place in ("/other", "/tree/d"):
                os.makedirs(top + place)
                for name in files:
                    write(f"{top}{place}/{name}", "")
            done = run([WITHIN, *at(call, SWAP_FOLDER, top + "/tree", top + "/other"), "--", *words, top + "/tree"])
            if "Operation canceled" in done.err:
                skip("the filter around the tests has the one listener that a process can be under")
            check(os.path.isdir(top + "/tree.kept"), done)
            check_equal(len(os.listdir(top + "/other")), left, f"what {words[-1]} left of the other folder", done)
            if call == "unlinkat":
                check_equal((done.code, os.path.lexists(top + "/tree")), (0, False), "the folder", done)


@test("discard: only a folder of the caller's goes, by its own name; one that is not there is gone")
def _():
    with folder() as top:
        os.makedirs(top + "/a/b")
        os.symlink("a", top + "/link")
        write(top + "/file", "")
        for name, why in (("link", "Not a directory"), ("file", "Not a directory")):
            call = vitro("discard", f"{top}/{name}")
            check_equal(call.code, 125, name, call)
            check_in(f"/{name}' cannot be removed: {why}", call.err, name, call)
        check_equal(sorted(os.listdir(top)), ["a", "file", "link"], "what is left")
        if not IS_ROOT:
            check_in("Operation not permitted", vitro("discard", "/usr").err, "somebody else's")
        for _ in range(2):
            check_equal(vitro("discard", top + "/a").code, 0, "the folder")
        check_equal(sorted(os.listdir(top)), ["file", "link"], "what is left")
        check_in("embed vitro", vitro("discard", "a").err, "no path")


main()
