#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Names that programs of the host run, in folders granted for writing: they stay as they are, and what appears is told."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import vitrotest
from vitrotest import check, check_equal, check_in, folder, main, vitro, write


def test(name, **options):
    """A name is kept by mounts: without namespaces that is a note."""
    return vitrotest.test(name, holds={"files": "mountns"}, **options)


def repository(place):
    """A folder with what git's own would have, so that the test needs no git."""
    for name in ("objects", "refs", "hooks"):
        os.makedirs(f"{place}/.git/{name}")
    write(f"{place}/.git/HEAD", "ref: refs/heads/main\n")
    write(f"{place}/.git/config", "[core]\n\tbare = false\n\thooksPath = tools/hooks\n")
    os.makedirs(f"{place}/tools/hooks")
    os.makedirs(f"{place}/lib/.vscode")
    write(f"{place}/lib/.vscode/settings.json", "{}\n")
    os.symlink("../../tools/run", f"{place}/.git/hooks/post-commit")
    write(f"{place}/tools/run", "#!/bin/sh\n", 0o755)
    vitrotest.run(["chmod", "-R", "a+rwX", place])


WAYS = ("echo x >>.git/config", "echo x >.git/hooks/pre-commit", "echo x >tools/hooks/pre-commit", "echo x >>tools/run",
        "rm .git/hooks/post-commit", "mv .git git", "mv tools other", "echo x >lib/.vscode/settings.json", "mv lib other",
        "ln -sf x .git/config")


@test("protect: what is there stays as it is, and what git does goes on")
def _():
    for way in WAYS:
        with folder(writable=True) as place:
            repository(place)
            before = vitrotest.run(["/bin/sh", "-c", f"cd {place} && find . -ls -type f -exec cat {{}} +"]).out
            call = vitro("run", "--write", place, "--cwd", place, "--", "/bin/sh", "-c", way)
            check(call.code != 0, f"{way}: it fails\n{call}")
            after = vitrotest.run(["/bin/sh", "-c", f"cd {place} && find . -ls -type f -exec cat {{}} +"]).out
            check_equal(after, before, way, call)
            call = vitro("run", "--protect", "none", "--write", place, "--cwd", place, "--", "/bin/sh", "-c", way)
            check_equal(call.code, 0, f"the control of {way}", call)
    with folder(writable=True) as place:
        repository(place)
        call = vitro("run", "--write", place, "--cwd", place, "--", "/bin/sh", "-c",
                     "echo y >.git/index.lock && mv .git/index.lock .git/index && echo z >.git/HEAD && mkdir .git/objects/aa")
        check_equal(call.code, 0, "the rest of it is the cell's", call)
        call = vitro("run", "--write", place, "--cwd", place, "--", "/bin/sh", "-c", "mv .git/HEAD .git/config")
        check_in("files.protect", call.err, "the key", call)


@test("protect: what appears is set apart, and told")
def _():
    with folder(writable=True) as place:
        repository(place)
        call = vitro("run", "--json", "--write", place, "--cwd", place, "--", "/bin/sh", "-c",
                     "touch .envrc .git/commondir HEAD; mkdir .claude; chmod 000 .; echo ok")
        check_equal(call.json["stdout"], "ok\n", "it went on", call)
        made = call.json["protected"]["set_apart"]
        ending = ".vitro-" + call.json["call_id"]
        check_equal(sorted(one["path"] for one in made),
                    sorted(f"{place}/{name}" for name in (".envrc", ".git/commondir", "HEAD", ".claude")), "what", call)
        for one in made:
            check_equal(one["to"], one["path"] + ending, "where", call)
            check(os.path.lexists(one["to"]) and not os.path.lexists(one["path"]), f"{one}\n{call}")
        os.chmod(place, 0o777)
        call = vitro("run", "--write", place, "--cwd", place, "--", "/bin/sh", "-c", "touch .envrc")
        check_in(f"'{place}/.envrc' appeared", call.err, "the line", call)
        call = vitro("run", "--json", "--protect", "none", "--write", place, "--cwd", place, "--", "/bin/sh", "-c", "touch .envrc")
        check("protected" not in call.json and os.path.exists(place + "/.envrc"), f"the control\n{call}")


@test("protect: the inner of two grants counts, and keeps its place")
def _():
    with folder(writable=True) as place:
        os.makedirs(place + "/a/b")
        write(place + "/a/b/note", "one\n")
        vitrotest.run(["chmod", "-R", "a+rwX", place])
        for way in ("echo two >a/b/note", "mv a c", "mv a/b c", "rm -r a/b"):
            call = vitro("run", "--write", place, "--read", place + "/a/b", "--cwd", place, "--", "/bin/sh", "-c", way)
            check(call.code != 0 and vitrotest.run(["cat", place + "/a/b/note"]).out == "one\n", f"{way}\n{call}")
        call = vitro("run", "--write", place, "--write", place + "/a/b", "--cwd", place, "--", "/bin/sh", "-c", "echo two >a/b/note")
        check_equal(call.code, 0, "the control", call)


@test("protect: names of one's own, and one that is granted")
def _():
    with folder(writable=True) as place:
        write(place + "/package.json", "{}\n", 0o666)
        write(place + "/.envrc", "x\n", 0o666)
        call = vitro("run", "--write", place, "--protect", "package.json", "--", "/bin/sh", "-c", f"echo >{place}/package.json")
        check(call.code != 0, f"a name of the policy\n{call}")
        call = vitro("run", "--write", place, "--write", place + "/.envrc", "--", "/bin/sh", "-c", f"echo y >{place}/.envrc")
        check_equal(call.code, 0, "a name that is granted", call)
        for name in ("/etc/x", "../x", "a//b", "*.py", ""):
            call = vitro("run", "--protect", name, "--", "/bin/true")
            check_equal(call.code, 125, f"{name!r} is refused", call)
            check_in("--protect", call.err, "by the flag", call)


if __name__ == "__main__":
    main()
