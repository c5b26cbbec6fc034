#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What vitro says beside the result: notes about a policy, and hints about what failed."""

import json
import os
import shlex
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BIN, ROOT, check, check_equal, check_in, folder, is_bare, main, need_proc, open_terminal, run, skip,
                       test, vitro, write)


WITHIN = [os.path.join(BIN, "matrix", "vitro-within"), "--deny-userns", "--"]


def refused(*args, says=(), **options):
    """The call is turned down with exit 125 and one line that says these words, and nothing runs."""
    call = vitro("run", *args, "--", "/bin/echo", "ran", **options)
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
    for word in says:
        check_in(word, call.err, "the message", call)


@test("files.deny: a pattern is refused, and a name with such letters is none")
def _():
    with folder() as place:
        write(place + "/data/.env", "secret\n")
        for pattern in ("*.env", "data/.en?", "data/[.]env", place + "/*/.env"):
            refused("--read", ".", "--deny", pattern, cwd=place,
                    says=["--deny", "there are no patterns", "name the file or its folder"])
        if is_bare():
            skip("no deny inside a grant without namespaces")
        write(place + "/data/[x]*?", "secret\n")
        call = vitro("run", "--read", ".", "--deny", "data/[x]*?", "--", "/bin/cat", place + "/data/[x]*?",
                     cwd=place)
        check_equal((call.code, call.out), (1, ""), "a file of that name is denied", call)


@test("files.read, files.write: a pattern or a variable is none here, and names with such letters are names")
def _():
    with folder() as place:
        write(place + "/a.py", "1\n")
        for key in ("read", "write"):
            for name, says in (("*.py", "there are no patterns: name the file or its folder"),
                               ("$HOME", "there are no variables: write the whole path"),
                               ("${HOME}/x", "there are no variables: write the whole path")):
                refused(f"--{key}", name, cwd=place, says=[f"--{key}", name, says])
                write(place + "/policy.json", json.dumps({"files": {key: [name]}}))
                refused("-p", "policy.json", cwd=place, says=[f"files.{key}[0]", says])
        write(place + "/$*.py", "1\n")
        call = vitro("run", "--read", "$*.py", "--", "/bin/cat", place + "/$*.py", cwd=place)
        check_equal((call.code, call.out), (0, "1\n"), "a file of that name", call)


@test("files.deny: one that denies nothing is noted, by explain too", holds={"files": "*"})
def _():
    need_proc()
    with folder() as place:
        write(place + "/a/note", "note\n")
        write(place + "/b/secret", "secret\n")
        says = f"--deny: '{place}/b/secret' lies in nothing that the cell could see, so it denies nothing"
        flags = ["--read", place + "/a", "--deny", place + "/b/secret"]
        call = vitro("run", *flags, "--", "/bin/true")
        check_equal((call.code, call.err), (0, f"vitro: note: {says}\n"), "exit code and note", call)
        call = vitro("run", "--json", *flags, "--", "/bin/true")
        check_equal((call.code, call.err), (0, f"vitro: note: {says}\n"), "the same beside JSON", call)
        check_equal(call.json["ok"], True, "the result", call)
        check_in(says, " ".join(vitro("explain", *flags).out.split()), "explain")
        call = vitro("run", "--read", place + "/a", "--deny", place, "--", "/bin/cat", place + "/a/note")
        check_equal(call.out, "", "a deny around a grant", call)
        check("vitro: note:" not in call.err, f"it does deny\n{call}")


@test("a root's cell without namespaces: what only an owner reaches is refused, with the remedy", root=True,
      needs=[WITHIN[0]], holds={"files": "landlock"})
def _():
    with folder() as place:
        options = {"prefix": () if is_bare() else WITHIN, "cwd": place}
        write(place + "/shut/in/note", "note\n")
        write(place + "/secret", "secret\n", 0o600)
        os.chmod(place + "/shut", 0o700)
        closed = [f"'{place}/shut' belongs to root", f"chmod o+x {place}/shut", "as an ordinary user"]
        refused("--read", "shut/in", says=["files.read", *closed], **options)
        refused("--write", "shut", says=["files.write", *closed], **options)
        refused("--read", ".", "--cwd", "shut/in", says=["the working directory", *closed], **options)
        refused("--read", "secret", says=[f"chmod o+r {place}/secret"], **options)
        os.chmod(place + "/shut", 0o711)
        call = vitro("run", "--read", "shut/in", "--cwd", "shut/in", "--", "/bin/cat", "note", **options)
        check_equal((call.code, call.out), (0, "note\n"), "after what the message says", call)


@test("a root's cell without namespaces: a folder that it cannot write is noted, and ids are in the result", root=True,
      needs=[WITHIN[0]], holds={"files": "landlock"})
def _():
    with folder() as place:
        options = {"prefix": () if is_bare() else WITHIN, "cwd": place}
        os.chmod(place, 0o755)
        call = vitro("run", "--json", "--write", ".", "--", "/bin/touch", place + "/new", **options)
        check_equal(call.json["exit_code"], 1, "it cannot", call)
        check_in(f"vitro: note: files.write: '{place}' belongs to root", call.err, "the note", call)
        check_in("a user of its own", call.json["isolation"]["notes"]["ids"], "the result", call)
        os.chmod(place, 0o777)
        call = vitro("run", "--write", ".", "--", "/bin/touch", place + "/new", **options)
        check_equal((call.code, call.err), (0, ""), "after what the message says", call)


@test("a working directory that is a file, or denied; a folder for writing that is not there")
def _():
    with folder() as place:
        write(place + "/tool.py", "")
        refused("--read", ".", "--cwd", "tool.py", cwd=place, says=["tool.py' is a file, not a folder"])
        refused("--write", "out", cwd=place, says=["--write", "/out'", "make it first"])
        need_proc()
        refused("--read", ".", "--write", ".", "--deny", ".", "--cwd", ".", cwd=place,
                says=["the working directory", "is denied by the policy"])


@test("hint: beside JSON too, on standard error")
def _():
    with folder() as place:
        write(place + "/data/n.txt", "1\n")
        call = vitro("run", "--json", "--", "/bin/cat", "data/n.txt", cwd=place)
        check_equal(call.json["exit_code"], 1, "the result", call)
        check_equal(call.err, "vitro: 'data/n.txt' exists here but not inside the cell; add: --read . --cwd .\n",
                    "the hint", call)


@test("hint: what is granted, but not where the command begins")
def _():
    with folder() as place:
        write(place + "/sum.sh", "echo ran\n")
        for name in ("sum.sh", "./sum.sh"):
            call = vitro("run", "--read", ".", "--", "/bin/sh", name, cwd=place)
            check(call.code != 0, f"it is not there\n{call}")
            check_in(f"vitro: '{name}' is at {place}/sum.sh inside; add: --cwd .\n", call.err, "the hint", call)
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "/bin/sh", "sum.sh", cwd=place)
        check_equal((call.code, call.out, call.err), (0, "ran\n", ""), "and with it it works", call)


@test("hint: what leads out of the current folder needs a grant of its own, by .. or by a link")
def _():
    with folder() as place:
        os.chmod(place, 0o755)
        write(place + "/a/own.txt", "own\n")
        write(place + "/py/n.txt", "1\n")
        os.symlink("../py", place + "/a/link")
        for name, shown in (("../py/n.txt", "../py/n.txt"), ("link/n.txt", place + "/py/n.txt"),
                            ("../a/../py/n.txt", place + "/py/n.txt")):
            flags = []
            for says in (f"--read {shown} --read . --cwd .", f"--read {shown}"):
                call = vitro("run", *flags, "--", "/bin/cat", name, cwd=place + "/a")
                check(call.code != 0, f"it is not there\n{call}")
                check_in(f"vitro: '{name}' exists here but not inside the cell; add: {says}\n", call.err, "the hint", call)
                flags = ["--read", ".", "--cwd", "."]
            call = vitro("run", "--read", shown, *flags, "--", "/bin/cat", name, cwd=place + "/a")
            check_equal((call.code, call.out), (0, "1\n"), "and with it it works", call)
        call = vitro("run", "--read", "../py", "--", "/bin/cat", "../py/n.txt", cwd=place + "/a")
        check_in(f"'../py/n.txt' is at {place}/py/n.txt inside; add: --read . --cwd .\n", call.err, "the hint", call)


@test("hint: a file that was to be made in a folder that is not there inside")
def _():
    with folder() as place:
        os.chmod(place, 0o777)
        os.mkdir(place + "/out")
        os.chmod(place + "/out", 0o777)
        for name, flags in ((place + "/out/new", f"--write {place}/out"), ("out/new", "--write out --read . --cwd ."),
                            ("./out/new", "--write ./out --read . --cwd .")):
            call = vitro("run", "--", "/bin/touch", name, cwd=place)
            parent = os.path.dirname(name)
            check_equal(call.code, 1, "it cannot", call)
            check_in(f"vitro: '{parent}' exists here but not inside the cell; to write to it, add: {flags}\n", call.err,
                     "the hint", call)
            call = vitro("run", *flags.split(), "--", "/bin/touch", name, cwd=place)
            check_equal((call.code, call.err), (0, ""), "and with it it works", call)
            os.unlink(place + "/out/new")
        for name in (place + "/nowhere/new", "/proc/new", "new"):
            call = vitro("run", "--cwd", "/usr", "--", "/bin/cat", name, cwd=place)
            check("to write to it" not in call.err, f"there is no such folder to grant\n{call}")
        call = vitro("run", "--", "/bin/sh", "-c", f"cat {place}/out/new", cwd=place)
        check("exists here" not in call.err, f"whether other folders exist is not for code to ask\n{call}")


@test("no hint where the command did not speak of what is missing")
def _():
    with folder() as place:
        write(place + "/data", "x\n")
        write(place + "/o", "x\n")
        for args in (["/bin/grep", "data", "/dev/null"], ["/bin/sh", "-c", "exit 3", "data"],
                     ["/bin/sh", "-c", "echo database mydata >&2; exit 3", "data"],
                     ["/bin/sh", "-c", "echo no such >&2; exit 3", "o"]):
            call = vitro("run", "--", *args, cwd=place)
            check(call.code in (1, 3), f"it fails\n{call}")
            check("vitro:" not in call.err, f"and vitro has nothing to say\n{call}")
        script = "yes | head -c 100000 >&2; echo data: gone >&2; exit 1"
        call = vitro("run", "--", "/bin/sh", "-c", script, "data", cwd=place)
        check_in("vitro: 'data' exists here", call.err[-200:], "the last words count", call)


@test("--json FILE: the flag takes its file with =")
def _():
    for args in (["x.json", "--", "cat"], ["out/x.json"]):
        call = vitro("run", "--json", *args)
        check_in(f"to write the result to a file: --json={args[0]}", call.json["error"]["message"], "the message",
                 call)
    for args in (["--json", "--", "x.json"], ["--json", "nosuchcommand"]):
        call = vitro("run", *args)
        check("--json" not in call.json["error"]["message"], f"that is a command\n{call}")


@test("a policy that is none: a folder, a mistyped name, a seccomp profile, standard input")
def _():
    with folder() as place:
        refused("-p", ".", cwd=place, says=["--policy", "'.' is a folder"])
        refused("-p", "defalt", cwd=place, says=["'defalt'", "did you mean default?"])
        refused("-p", "-", cwd=place, says=["/dev/stdin"])
        for text, says in (("limits:\n  pids: 5\n", "want a JSON object: {...}"),
                           ("[limits]\npids = 5\n", "want a JSON object: {...}"),
                           ('// five\n{"limits": {"pids": 5}}', "JSON has no comments")):
            write(place + "/other", text)
            refused("-p", "other", cwd=place, says=["other:1:", says])
        write(place + "/profile.json", '{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": []}')
        refused("-p", "profile.json", cwd=place, says=["a seccomp profile", "--set syscalls=profile.json"])
        call = vitro("run", "--set", "syscalls=profile.json", "--", "/bin/echo", "ran", cwd=place)
        check_equal((call.code, call.out), (0, "ran\n"), "with what the message says", call)
        refused("--memory", "64MB", says=["--memory", "write 64M"])
        need_proc()  # which /dev/stdin leads to
        call = vitro("run", "-p", "/dev/stdin", "--", "/bin/echo", "ran", stdin="{}")
        check_equal((call.code, call.out), (0, "ran\n"), "from standard input", call)


@test("a program that is not executable: what makes it so")
def _():
    with folder() as place:
        write(place + "/tool", "#!/bin/sh\necho ran\n", 0o644)
        call = vitro("run", "--", "./tool", cwd=place)
        check_equal((call.code, call.out), (126, ""), "exit code and stdout", call)
        check_in("'./tool' is not executable; chmod +x ./tool", call.err, "the message", call)
        os.chmod(place + "/tool", 0o755)
        call = vitro("run", "--", "./tool", cwd=place)
        check_equal((call.code, call.out), (0, "ran\n"), "after what the message says", call)


@test("a file that is no program: no chmod makes it one")
def _():
    with folder() as place:
        write(place + "/data.txt", "no program\n", 0o644)
        for name in (place + "/data.txt", "/etc/passwd"):
            call = vitro("run", "--", name)
            check_equal((call.code, call.out), (126, ""), "exit code and stdout", call)
            check_equal(call.err, f"vitro: '{name}' is not executable\n", "the message", call)


@test("hint: a name in a script or in code, in the current folder alone")
def _():
    with folder() as place:
        write(place + "/data/n.txt", "1\n")
        says = "vitro: 'data/n.txt' exists here but not inside the cell; add: --read . --cwd .\n"
        for args in (["run", "--", "/bin/sh", "-c", "cat <data/n.txt"], ["run", "--", "/bin/sh", "-c", 'cat "data/n.txt"; exit 3']):
            check_in(says, vitro(*args, cwd=place).err, "the hint")
        call = vitro("run", "--", "/bin/sh", "-c", f"cat {place}/data/n.txt", cwd="/")
        check_equal(call.code, 1, "it is not there", call)
        check("exists here" not in call.err, f"whether other files exist is not for code to ask\n{call}")
        call = vitro("run", "--", "/bin/sh", "-c", "cat ../data/n.txt", cwd=place + "/data")
        check("exists here" not in call.err, f"nor above the current folder\n{call}")
        call = vitro("run", "--", "/bin/sh", "-c", "cat nowhere.txt", cwd=place)
        check("vitro:" not in call.err, f"what is not there is no grant's matter\n{call}")


@test("hint: a file that a script's words were to make, in a folder that is not there inside")
def _():
    with folder() as place:
        os.mkdir(place + "/out")
        write(place + "/n.txt", "1\n")
        call = vitro("run", "--read", "n.txt", "--cwd", ".", "--", "/bin/sh", "-c", "cp n.txt out/x", cwd=place)
        check_in("vitro: 'out' exists here but not inside the cell; to write to it, add: --write out\n", call.err, "the hint", call)


@test("hint: what only a script names is not named by vitro, and no grant for it")
def _():
    says = "vitro: it names what exists here but is not there inside; --read and --write grant files and folders, and --cwd . begins here\n"
    with folder() as place:
        write(place + "/data/n.csv", "1\n")
        os.mkdir(place + "/out")

        def hint_for(script, *flags):
            write(place + "/script", "#!/bin/sh\n" + script + "\n")
            os.chmod(place + "/script", 0o755)
            call = vitro("run", *flags, "--", "./script", cwd=place)
            check(call.code != 0, f"it fails\n{call}")
            return "".join(line for line in call.err.splitlines(True) if line.startswith("vitro: "))

        begins = ["--read", "script", "--cwd", "."]
        for script in ("cat data/n.csv", "cat data/*.csv", "cat <data/n.csv", "echo 1 >out/sum", "mkdir out/new"):
            check_equal(hint_for(script), says, script)
            check_equal(hint_for(script, *begins), says, script)
        check_equal(hint_for("cat data/n.csv", "--read", "data"), says, "it is granted, but the command begins elsewhere")
        for script in ("cat nowhere.csv", "cat nowhere/n.csv", f"cat {place}/data/n.csv", "cat ../data/n.csv", "cat data/n.csv 2>&1; exit 1"):
            check_equal(hint_for(script), "", script)
        check_equal(hint_for("cat data/none", "--read", "data", *begins), "", "what is there inside")


@test("hint: none for code about what lies elsewhere, whatever links it makes, or is")
def _():
    with folder(writable=True) as place:
        for script in ("ln -s /etc/hostname link; cat link", "ln -s /etc link; cat link/hostname"):
            call = vitro("run", "--set", "require=best-effort", "--write", ".", "--cwd", ".", "--", "/bin/sh", "-c", script, cwd=place)
            check(call.code != 0, f"it fails\n{call}")
            check("vitro: " not in call.err, f"a hint\n{call}")
            os.remove(place + "/link")
        for code in ("/etc/passwd", "../" + os.path.basename(place)):
            call = vitro("eval", code, cwd=place)
            check("was run as code" not in call.err, f"whether it exists is not for code to ask\n{call}")


@test("hint: nor about a folder that a link of its own leads to, or what could be made there")
def _():
    with folder() as elsewhere, folder(writable=True) as place:
        os.chmod(elsewhere, 0o777)
        write(elsewhere + "/there", "")
        for name in ("there", "absent"):
            for script in (f"ln -sfn {elsewhere} link; cat link/{name}", f"ln -sfn {elsewhere} link; echo >link/{name}"):
                call = vitro("run", "--set", "require=best-effort", "--write", ".", "--cwd", ".", "--", "/bin/sh", "-c", script, cwd=place)
                check(call.code != 0, f"it fails\n{call}")
                check("vitro: " not in call.err, f"a hint\n{call}")
            call = vitro("eval", f"link/{name}", cwd=place)
            check("vitro: " not in call.err, f"a hint\n{call}")
            for code in (f"./link/{name}", f"{elsewhere}/{name}"):
                call = vitro("run", "--set", "require=best-effort", "--write", ".", "--cwd", ".", "--", "/bin/sh", "-c", code, cwd=place)
                check(call.code != 0 and "vitro: " not in call.err, f"code that is nothing but a path\n{call}")


@test("hint: at the root there is none about words of code, as all that exists would be in the current folder")
def _():
    with folder() as place:
        write(place + "/there", "")
        call = vitro("run", "--", "/bin/sh", "-c", f"cat {place[1:]}/there", cwd="/")
        check(call.code != 0 and "vitro: " not in call.err, f"a hint\n{call}")
        call = vitro("run", "--", "/bin/cat", place[1:] + "/there", cwd="/")
        check_in("exists here but not inside the cell", call.err, "about an argument", call)


@test("hint: links that take long to follow do not keep it, nor the end", needs=["/usr/bin/python3"])
def _():
    script = "import os, sys; os.mkdir('d')\n" \
        "for i in range(39): os.symlink('d/../' * 780 + (f'k{i + 1}' if i < 38 else 'none'), f'k{i}')\n" \
        "sys.stderr.write('k0 ' * 1300 + '\\nNo such file or directory\\n'); sys.exit(1)"
    with folder(writable=True) as place:
        flags = ["--set", "require=best-effort", "--write", ".", "--cwd", "."]
        call = vitro("run", *flags, "--", "/usr/bin/python3", "-c", script, cwd=place)
        check_equal(call.code, 1, "it fails", call)
        for words in (["/usr/bin/python3", "-c", "open('k0')"], ["/bin/sh", "-c", "cat " + "k0 " * 300], ["/bin/cat", *["k0"] * 300]):
            begun = time.monotonic()
            call = vitro("run", *flags, "--", *words, cwd=place)
            took = time.monotonic() - begun
            check(call.code != 0 and took < 5, f"it took {took} s\n{call}")


@test("hint: a dot is no name")
def _():
    with folder() as place:
        os.mkdir(place + "/data")
        for words in (["find", ".", "./none"], ["sh", "-c", "ls . ./none"]):
            call = vitro("run", "--read", "data", "--cwd", "data", "--", *words, cwd=place)
            check(call.code != 0 and "vitro: " not in call.err, call)


@test("hint: what is denied where the cell begins")
def _():
    with folder() as place:
        write(place + "/data/key", "x")
        call = vitro("run", "--set", "require=best-effort", "--read", "data", "--deny", "data/key", "--cwd", "data", "--", "/bin/cat", "key", cwd=place)
        if call.code == 125:
            skip("no file in a grant can be denied here")
        check_in("vitro: 'key' is denied by the policy\n", call.err, "the hint", call)


@test("hint: what it suggests is for the shell one word")
def _():
    with folder() as place:
        name = "a b;touch c"
        write(f"{place}/{name}", "x")
        call = vitro("run", "--", "/bin/cat", f"{place}/{name}", cwd="/")
        told = call.err.rpartition("add: --read ")[2].rstrip("\n")
        check_equal(shlex.split(told), [f"{place}/{name}"], "the suggestion", call)


@test("hint: the same for code of an evaluation", needs=["/usr/bin/python3"])
def _():
    with folder() as place:
        write(place + "/n.txt", "1\n")
        env = {**os.environ, "PATH": "/usr/bin:/bin"}  # another python3 may lie where bare cells cannot look
        call = vitro("eval", "open('n.txt').read()", cwd=place, env=env)
        check_equal(call.code, 1, "it is not there", call)
        check_in("vitro: 'n.txt' exists here but not inside the cell; add: --read . --cwd .\n", call.err, "the hint", call)


@test("hint: what cannot be written, where the cell has a root of its own", holds={"files": "mountns"})
def _():
    says = "vitro: inside, only /tmp and what --write grants can be written\n"
    with folder() as place:
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "/bin/sh", "-c", "echo 1 >n.txt", cwd=place)
        check(call.code != 0 and call.err.endswith(says), call)
        call = vitro("run", "--write", ".", "--cwd", ".", "--", "/bin/sh", "-c", "echo 1 >n.txt", cwd=place)
        check_equal((call.code, call.err), (0, ""), "and with it it works", call)


@test("hint: a network that is not there")
def _():
    for words in ("curl: (6) Could not resolve host: example.com", "Temporary failure in name resolution", "getaddrinfo EAI_AGAIN",
                  "connect: Network is unreachable", "socket: Address family not supported by protocol"):
        call = vitro("run", "--", "/bin/sh", "-c", 'echo "$1" >&2; exit 1', "sh", words)
        check_in("vitro: the cell has no network; ", call.err, "the hint", call)
        check_in("--net host", call.err, "what to do", call)
        check_equal("--net loopback" in call.err, not is_bare(), "only what can be had", call)
        call = vitro("run", "--", "/bin/sh", "-c", 'echo "$1" >&2; exit 0', "sh", words)
        check("vitro:" not in call.err, f"a command that did well needs none\n{call}")
        call = vitro("run", "--net", "host", "--", "/bin/sh", "-c", 'echo "$1" >&2; exit 1', "sh", words)
        check("no network" not in call.err, f"there is one\n{call}")


@test("vitro alone shows the way, and is an error all the same")
def _():
    call = vitro(mark=False)
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    check_equal(call.err, vitro("--help", mark=False).out, "what it says")
    check_in("vitro run -- echo hello", call.err, "a first command", call)


@test("note: a shell at a terminal, which would have a prompt outside")
def _():
    for args, noted in ((["/bin/sh"], True), (["sh"], True), (["sh", "-c", "read line; exit $line"], False)):
        typist, terminal = open_terminal()
        try:
            os.write(typist, b"exit 3\n" if len(args) == 1 else b"3\n")
            call = vitro("run", "--", *args, stdin=terminal)
        finally:
            os.close(typist)
            os.close(terminal)
        check_equal(call.code, 3, "what was typed", call)
        check_equal("and so no prompt" in call.err, noted, f"a note for {args}", call)
    call = vitro("run", "--", "sh", stdin=b"exit 3\n")
    check_equal((call.code, call.err), (3, ""), "none where nobody types", call)


@test("--help fits a terminal of 80 columns")
def _():
    for verb in ("run", "eval", "explain", "audit", "tools", "call", "serve", "doctor"):
        text = vitro(verb, "--help", mark=False).out
        wide = [line for line in text.splitlines() if len(line) > 80]
        check(text and not wide, f"vitro {verb} --help: {wide}")


@test("--help says the defaults and units of limits, which are those that hold")
def _():
    text = " ".join(vitro("run", "--help", mark=False).out.split())
    for says in ("is killed (default 30s; in ms, s or m).", "/tmp (default 512M; in K, M or G).",
                 "threads in the cell (default 256).", "are allowed (default none).",
                 "CPU time of the whole cell (default none; in ms, s or m)."):
        check_in(says, text, "vitro run --help")


@test("hint: below /var/tmp, which is the cell's own inside, as anywhere else", holds={"files": "mountns"})
def _():
    if os.path.realpath("/var/tmp") != "/var/tmp" or not os.access("/var/tmp", os.W_OK):
        skip("there is no /var/tmp here")
    with folder("/var/tmp") as place:
        write(place + "/sum.sh", "echo ran\n")
        call = vitro("run", "--", "/bin/sh", "sum.sh", cwd=place)
        check_in("vitro: 'sum.sh' exists here but not inside the cell; add: --read . --cwd .\n", call.err,
                 "the hint", call)
        call = vitro("run", "--read", ".", "--cwd", ".", "--", "/bin/sh", "sum.sh", cwd=place)
        check_equal((call.code, call.out, call.err), (0, "ran\n", ""), "and with it it works", call)
        refused("--cwd", place, says=[f"'{place}' is not there inside; grant it: --read {place} (files.read)"])
        call = vitro("explain", "--cwd", place)
        check_in(f"'{place}' is not there inside; grant it: --read {place} (files.read)", " ".join((call.out + call.err).split()),
                 "explain", call)


@test("a working directory that cannot be granted, or was moved", holds={"files": "mountns"})
def _():
    with folder() as place:
        write(place + "/real/sum.sh", "echo ran\n")
        move = f'{{"from": "{place}/real", "to": "/project"}}'
        refused("--read", move, "--cwd", "real", cwd=place, says=["is at '/project' inside: --cwd /project"])
        call = vitro("run", "--read", move, "--", "/bin/sh", "sum.sh", cwd=place + "/real")
        check_in("vitro: 'sum.sh' is at /project/sum.sh inside; add: --cwd /project\n", call.err, "the hint", call)
        call = vitro("run", "--read", move, "--cwd", "/project", "--", "/bin/sh", "sum.sh", cwd=place + "/real")
        check_equal((call.code, call.out), (0, "ran\n"), "with what the hint says", call)
        call = vitro("run", "--read", move, "--", "/bin/cat", "real/sum.sh", cwd=place)
        check_in("vitro: 'real/sum.sh' is at /project/sum.sh inside\n", call.err, "without a --cwd that helps", call)
        refused("--read", "real:/project", cwd=place, says=[f'{{"from": "{place}/real", "to": "/project"}}'])
    if not os.access("/dev/shm", os.W_OK):
        skip("there is no /dev/shm here")
    with folder("/dev/shm") as place:
        refused("--cwd", ".", cwd=place, says=["cannot be granted: the cell has a /dev of its own"])


@test("hint: unix sockets that a grant beside --net host takes away", holds={"network": "netns"})
def _():
    code = "import socket; socket.socket(socket.AF_UNIX)"
    says = "there are no unix sockets inside but those that --socket names"
    if is_bare():
        skip("without namespaces there are none at all")
    explained = vitro("explain").out
    if "older than ABI 6" in explained or "landlock" not in explained:
        skip("abstract sockets of the host cannot be kept apart here")
    with folder() as place:
        call = vitro("run", "--net", "host", "--read", place, "--", "/usr/bin/python3", "-c", code)
        check_equal(call.code, 1, "it fails", call)
        check_in(says, call.err, "the hint", call)
        call = vitro("run", "--net", "host", "--", "/usr/bin/python3", "-c", code)
        check_equal((call.code, call.err), (0, ""), "without a grant they are there", call)
        call = vitro("run", "--read", place, "--", "/usr/bin/python3", "-c", code.replace("UNIX", "INET"))
        check_equal(call.code, 1, "another kind of socket fails", call)
        check(says not in call.err, f"and that is not what it is about\n{call}")


@test("hint: the limit that an error may come of, and none of another", holds={"files": "mountns"})
def _():
    cases = ((["--set", "limits.tmp_mb=1"], "head -c 3000000 /dev/zero >/tmp/x",
              "/tmp and /dev/shm inside hold 1 MB together; for more: --set limits.tmp_mb=SIZE"),
             (["--set", "limits.file_mb=1"], "trap '' XFSZ; head -c 3000000 /dev/zero >/tmp/x",
              "a file inside can grow to 1 MB; for more: --set limits.file_mb=SIZE"),
             (["--pids", "5"], "for i in 1 2 3 4 5 6 7 8 9; do sleep 9 & done",
              "there can be 5 processes and threads inside; for more: --pids N"))
    for flags, script, says in cases:
        call = vitro("run", *flags, "--", "/bin/sh", "-c", script)
        check(call.code not in (0, 124, 125), f"it fails\n{call}")
        check_equal(call.err.splitlines()[-1], f"vitro: {says}", "the hint", call)
    call = vitro("run", "--", "/bin/sh", "-c", "echo fork: Resource unavailable >&2; exit 1")
    check_equal(call.err, "fork: Resource unavailable\n", "other words", call)


@test("make install: a place that cannot be written is named in a line", needs=["make"])
def _():
    if not (ROOT / "Makefile").exists():
        skip("the sources are not here")
    call = run(["make", "--no-print-directory", "-C", str(ROOT), "-o", "build", "install", "PREFIX=/dev/null/x"])
    check_equal(call.code, 2, "exit code", call)
    check_in("make install: /dev/null cannot be written", call.err, "the message", call)
    check("Traceback" not in call.err + call.out, f"nothing else\n{call}")


@test("make install: says what went where, and leaves meson's words in a log", needs=["make"])
def _():
    if not (ROOT / "Makefile").exists() or not os.access(ROOT / "build", os.W_OK):
        skip("the sources and their build folder are not here, or cannot be written")
    with folder() as place:
        write(place + "/bin/meson", "#!/bin/sh\necho noise\n[ $1 != install ] || exit ${FAILS:-0}\n", 0o755)
        command = ["make", "--no-print-directory", "-C", str(ROOT), "-o", "build", "install", f"PREFIX={place}/to"]
        env = {**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}"}
        call = run(command, env=env)
        check_equal((call.code, call.err), (0, ""), "exit code and stderr", call)
        check_in(f"installed in {place}/to:\n  bin/vitro ", call.out, "what was said", call)
        check_in("-Wl,-rpath,$(pkg-config --variable=libdir vitro)", call.out, "how programs find the library there", call)
        check("noise" not in call.out, f"nothing of meson's\n{call}")
        packed = run([*command[:-1], "PREFIX=/usr", f"DESTDIR={place}/pkg"], env=env)
        check("rpath" not in packed.out, f"what is for a package is found as all is\n{packed}")
        call = run(command, env={**env, "FAILS": "1"})
        check_equal(call.code, 2, "exit code of one that fails", call)
        check_in("noise", call.out, "then meson's words", call)
        check("installed in" not in call.out, f"and no claim\n{call}")


if __name__ == "__main__":
    main()
