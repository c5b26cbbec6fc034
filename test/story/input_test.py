#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line on stderr, exit 125, and nothing runs."""

import json
import os
import re
import shlex
import sys
from concurrent import futures

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, check, check_equal, check_in, folder, is_bare, isolation, main,
                       need_file_size, need_proc, run, sanitized, skip, started, test, vitro, vitro_command, write)



def refused(*args, says=(), command=("/bin/echo", "ran"), **options):
    """vitro run turns the arguments down with one line that says what is wrong."""
    call = vitro("run", *args, "--", *command, **options)
    check_equal(call.code, 125, "exit code", call)
    check("ran" not in call.out, f"nothing ran\n{call}")
    lines = call.err.splitlines()
    check_equal(len(lines), 1, "lines on stderr", call)
    check(lines[0].startswith("vitro: "), f"it speaks as vitro\n{call}")
    check(lines[0].isprintable(), f"it is printable\n{call}")
    for word in says:
        check_in(word, lines[0], "the message", call)
    return lines[0]


def refused_policy(text, *says):
    if not isinstance(text, str):
        text = json.dumps(text)
    with folder() as place:
        return refused("-p", write(place + "/p.json", text), says=["p.json", *says])


@test("bad input: unknown keys, and the key that was meant")
def _():
    refused_policy({"limit": {}}, "limit")
    refused_policy({"limits": {"wall": 3}}, "limits.wall")
    line = refused_policy({"limits": {"wal_ms": 3}}, "limits.wal_ms")
    check_in("wall_ms", line, "what was meant")
    refused("--set", "limits.nothing=1", says=["limits.nothing"])
    refused("--set", "wall_ms=1", says=["wall_ms"])


@test("bad input: wrong types")
def _():
    refused_policy({"limits": {"wall_ms": "soon"}}, "limits.wall_ms")
    refused_policy({"limits": 3}, "limits")
    refused_policy({"files": {"read": "/etc"}}, "files.read")
    refused_policy({"files": {"read": [3]}}, "files.read")
    refused_policy({"files": {"read": [{"from": "/etc"}, {"to": "/x"}]}}, "files.read")
    refused_policy({"files": {"read": [{"from": "/etc", "to": "/x", "mode": 1}]}}, "mode")
    refused_policy({"network": True}, "network")
    refused_policy({"network": "nothing"}, "network")
    refused_policy({"env": {"set": {"A": 1}}}, "env.set")
    refused_policy({"env": {"pass": "HOME"}}, "env.pass")
    refused_policy({"limits": {"pids": 1.5}}, "limits.pids")
    refused_policy({"limits": {"pids": True}}, "limits.pids")
    refused_policy([1, 2])
    refused_policy("3")


@test("bad input: numbers that are negative, zero, huge or not numbers")
def _():
    for value in (-1, 0, 10 ** 9, 2 ** 63 - 1, 1e300):
        refused_policy({"limits": {"wall_ms": value}}, "limits.wall_ms")
    refused_policy('{"limits": {"memory_mb": 99999999999999999999999999}}', "p.json")
    refused_policy('{"limits": {"memory_mb": -99999999999999999999999999}}', "p.json")
    for flag, value in (("--timeout", "-1s"), ("--timeout", "0"), ("--timeout", "1e99s"),
                        ("--timeout", "99999999999999999999"), ("--timeout", "5 parsecs"),
                        ("--timeout", "nan"), ("--timeout", "inf"), ("--timeout", ""),
                        ("--timeout", "0x10"), ("--memory", "-5M"), ("--memory", "0"),
                        ("--memory", "9999999999999999999G"), ("--memory", "64Q"),
                        ("--memory", "M"), ("--pids", "0"), ("--pids", "-3"), ("--pids", "3.5"),
                        ("--pids", "many"), ("--cpus", "0"), ("--cpus", "-1"), ("--cpus", "nan"),
                        ("--cpus", "1e400")):
        refused(flag, value, says=[flag])


@test("bad input: files that are missing or of the wrong kind")
def _():
    refused("--read", "/no/such/file", says=["--read", "/no/such/file"])
    refused("--write", "/no/such/folder", says=["--write", "/no/such/folder"])
    refused("-p", "/no/such/policy.json", says=["/no/such/policy.json"])
    refused("-p", "no-such-builtin", says=["no-such-builtin", "strict", "compute"])
    with folder() as place:
        refused("-p", place, says=[place])
        refused("-p", write(place + "/p.json", ""), says=["p.json: it is empty", "{}"])
        refused_policy({"files": {"read": ["missing/place"]}}, "files.read", "missing/place")
        os.symlink("nowhere", place + "/dangling")
        refused("--read", place + "/dangling", says=["dangling"])
    refused("-p", "/dev/zero", says=["/dev/zero"])


@test("bad input: all keys of a policy that are wrong are told, each in a line")
def _():
    wrong = {"limits": {"wal_ms": 3, "pids": "many"}, "netwrk": "none", "require": "ful", "files": [], "env": {"set": {"A": 1}}}
    says = ["unknown key 'limits.wal_ms'", "unknown key 'netwrk'", "files: ", "limits.pids: ", "env.set", "require: "]
    with folder() as place:
        path = write(f"{place}/p.json", json.dumps(wrong))
        for args in (["run", "-p", path, "--", "true"], ["explain", "-p", path], ["run", "--json", "-p", path, "--", "true"]):
            call = vitro(*args)
            said = call.err + (json.loads(call.out)["error"]["message"] if "--json" in args else "")
            check_equal((call.code, said.count(path)), (125, len(says)), "lines", call)
            for text in says:
                check_in(text, said, "a mistake", call)
        write(path, json.dumps({f"no{i}": 1 for i in range(100_000)}))
        check(20 < vitro("run", "-p", path, "--", "true").err.count("\n") < 200, "no more than a reader wants")


@test("bad input: a policy that extends itself, directly and in a circle")
def _():
    with folder() as place:
        own = write(place + "/own.json", '{"extends": "own.json"}')
        refused("-p", own, says=["own.json", "extends"])
        write(place + "/a.json", '{"extends": "b.json"}')
        write(place + "/b.json", '{"extends": "a.json"}')
        refused("-p", place + "/a.json", says=["extends"])
        refused("-p", write(place + "/c.json", '{"extends": "gone.json"}'), says=["gone.json"])
        for n in range(100):
            write(f"{place}/{n}.json", json.dumps({"extends": f"{n + 1}.json"}))
        write(place + "/100.json", "{}")
        refused("-p", place + "/0.json")


@test("bad input: paths with newlines, of 4096 bytes, empty, with control characters")
def _():
    refused("--read", "/tmp/a\nb", says=["--read"])
    refused("--read", "/" + "a" * 4096, says=["--read"])
    refused("--read", "/a" * 2100, says=["--read"])
    refused("--read", "", says=["--read"])
    refused("--cwd", "", says=["--cwd"])
    refused("--cwd", "/" + "b" * 5000, says=["--cwd"])
    refused("--read", "/tmp/\x1b[31mred", says=["--read"])
    refused_policy({"files": {"read": ["/tmp/a\nb"]}}, "files.read")
    refused_policy({"files": {"read": ["/tmp/a\0b"]}}, "p.json")
    refused_policy({"files": {"read": [{"from": "/etc", "to": "relative"}]}}, "files.read")
    refused_policy({"files": {"read": [{"from": "/etc", "to": "/a/../../b\n"}]}}, "files.read")


@test("a folder whose name has a newline, a quote and a space works when it exists")
def _():
    with folder() as place:
        odd = place + "/a\n'b c\""
        write(odd + "/note", "odd\n")
        call = vitro("run", "--read", place, "--cwd", place, "--", "/bin/sh", "-c", "cat */note")
        check_equal(call.out, "odd\n", "through its parent", call)


@test("bad input: no command, an empty command")
def _():
    for args in (["run"], ["run", "--"], ["run", "--", ""]):
        call = vitro(*args, mark=False)
        check_equal(call.code, 125, "exit code", call)
        check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
        check(call.err.startswith("vitro: "), f"it speaks as vitro\n{call}")


@test("bad input: invalid JSON is named with its line")
def _():
    line = refused_policy('{\n  "limits": {\n    "wall_ms": 3,\n  }\n}')
    check_in("4", line, "the line of the error")
    refused_policy("{")
    refused_policy("not json")
    refused_policy('{"limits": {"pids": 3}} trailing')
    refused_policy('{"limits": {"pids": 3}, "limits": {"pids": 4}}')
    refused_policy("[" * 100000)
    refused_policy('{"a":' * 5000)


@test("bad input: invalid UTF-8 and binary files")
def _():
    with folder() as place:
        with open(place + "/bad.json", "wb") as file:
            file.write(b'{"env": {"set": {"A": "\xff\xfe"}}}')
        refused("-p", place + "/bad.json", says=["bad.json"])
        with open(place + "/binary.json", "wb") as file:
            file.write(os.urandom(4096))
        refused("-p", place + "/binary.json", says=["binary.json"])


@test("bad input: a policy file that is too large is not read into memory")
def _():
    need_file_size(1 << 33)
    with folder() as place:
        path = place + "/large.json"
        with open(path, "wb") as file:
            file.truncate(1 << 33)
        refused("-p", path, says=["large.json"], timeout=10)


@test("bad input: environment names and values that cannot be")
def _():
    refused("--env", "=x", says=["--env"])
    refused_policy({"env": {"set": {"A=B": "x"}}}, "env.set")
    refused_policy({"env": {"set": {"": "x"}}}, "env.set")
    refused_policy('{"env": {"set": {"A": "x\\u0000y"}}}', "p.json")


@test("bad input: unknown flags, flags without their value, unknown verbs")
def _():
    refused("--no-such-flag", says=["--no-such-flag"])
    refused("--net", "internet", says=["--net", "loopback"])
    refused("--set", "limits.pids", says=["--set"])
    refused("--set", "syscalls=none", says=["syscalls"])
    refused("--set", "require=maybe", says=["require"])
    for args in (["run", "--timeout"], ["frobnicate"]):
        call = run([BINARY, *args])
        check(call.code in (125, 2), f"exit code\n{call}")
        check(call.err, f"it says something\n{call}")


@test("bad input: a time or a size without its unit is asked back, with the units")
def _():
    for flag in ("--timeout", "--grace", "--cpu-time"):
        for value in ("5", "0.5", "1000"):
            refused(flag, value, says=[flag, value + "s", "ms", "m "])
    refused("--memory", "64", says=["--memory", "64M", "K", "G"])


@test("bad input: -- is no flag's value")
def _():
    for flag in ("--audit", "--timeout", "--read", "-p", "--set"):
        refused(flag, says=[flag, "needs a value"])
        check(not os.path.exists("--"), "no file is called --")


@test("bad input: the working directory must be inside")
def _():
    refused("--cwd", "/no/such/place", says=["/no/such/place"])


@test("the same mistakes under --json are a result with status refused")
def _():
    for args in (["--timeout", "-1s"], ["--read", "/no/such/file"], ["--set", "x.y=1"],
                 ["-p", "/no/such/policy.json"]):
        call = vitro("run", "--json", *args, "--", "/bin/echo", "ran")
        check_equal(call.code, 125, "exit code", call)
        check_equal(call.json["status"], "refused", "status", call)
        check(call.json["error"]["message"], f"message\n{call}")


@test("--help and --version say so and exit with 0")
def _():
    for args in (["--help"], ["-h"], ["help"], ["help", "help"], ["run", "--help"], ["--version"], ["version"]):
        call = run([BINARY, *args])
        check_equal((call.code, call.err), (0, ""), f"vitro {' '.join(args)}", call)
        check(len(call.out) > 4, f"{call}")
    check_equal(run([BINARY, "version"]).out, run([BINARY, "--version"]).out, "vitro version")


@test("help VERB, --help VERB, VERB --help and VERB -h are one text, each verb's own")
def _():
    texts = set()
    for verb in ("run", "explain", "doctor"):
        calls = [run([BINARY, *args]) for args in (["help", verb], ["--help", verb],
                                                   [verb, "--help"], [verb, "-h"])]
        for call in calls:
            check_equal((call.code, call.err), (0, ""), "exit code and stderr", call)
            check_equal(call.out, calls[0].out, "its text", call)
        check_in(f"usage: vitro {verb}", calls[0].out, "its text")
        texts.add(calls[0].out)
    check_equal(len(texts), 3, "texts")
    check("--audit" not in run([BINARY, "explain", "--help"]).out, "explain has no --audit")
    call = run([BINARY, "help", "rnu"])
    check_equal((call.code, call.out), (125, ""), "help for no verb", call)


def complains(*args, says):
    """vitro itself turns the arguments down, with one line that says these words."""
    call = run([BINARY, *args])
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
    for word in says:
        check_in(word, call.err, "the message", call)


@test("a mistyped flag, verb or key: which one was meant")
def _():
    refused("--tiemout", "5s", says=["'--tiemout'", "did you mean --timeout?"])
    refused("--tiemout=5s", says=["'--tiemout'", "did you mean --timeout?"])
    refused("-timeout", "5s", says=["did you mean --timeout?"])
    refused("--network", "host", says=["did you mean --net?"])
    refused("--mem", "5M", says=["did you mean --memory?"])
    refused("--time", "5s", says=["did you mean --timeout?"])
    refused("--cpu", "1", says=["did you mean --cpus?"])
    refused("--wall-ms", "5s", says=["did you mean --timeout?"])
    refused("--require", "strict", says=["did you mean --set require=VALUE?"])
    refused("--open-files", "9", says=["did you mean --set limits.open_files=VALUE?"])
    refused("--no-such-flag", says=["see vitro run --help"])
    refused("--" + "x" * 5000, says=["has no flag"])
    refused("--set", "limits.timeout=5s", says=["did you mean 'limits.wall_ms'?"])
    refused("--set", "timeout=5s", says=["did you mean 'limits.wall_ms'?"])
    refused_policy({"limits": {"timeout": 5}}, "did you mean 'limits.wall_ms'?")
    complains("rnu", says=["'rnu'", "did you mean run?"])
    complains("--verison", says=["'--verison'", "did you mean --version?"])
    complains("-hlep", says=["did you mean --help?"])
    complains("--read", ".", says=["a verb comes before the flags: vitro run --read ..."])
    complains("docter", says=["did you mean doctor?"])
    complains("python3", "x.py", says=["no verb 'python3'", "vitro run -- python3"])
    complains("--timeout", "5s", says=["vitro run --timeout"])
    complains("x" * 5000, says=["no verb"])
    complains("explain", "--raw", says=["explain has no flag '--raw'"])


@test("bad input: doctor takes its own flags and nothing else")
def _():
    complains("doctor", "now", says=["'now'", "vitro doctor --help"])
    complains("doctor", "--jsn", says=["'--jsn'", "did you mean --json?"])
    complains("doctor", "--json=file", says=["--json takes no value"])
    complains("doctor", "--raw", says=["doctor has no flag '--raw'"])
    complains("doctor", "--timeout", "5s", says=["only with --self-test", "vitro explain"])


@test("a script with CRLF line ends: which file, why, and what to do")
def _():
    with folder() as place:
        for head in ("#!/bin/sh", "#!/usr/bin/env sh", "#! /bin/sh"):
            script = write(place + "/crlf", head + "\r\necho ran\r\n", 0o755)
            call = vitro("run", "--", script)
            check_equal((call.code, call.out), (127, ""), "exit code and stdout", call)
            for word in (script, "CRLF", f"sed -i 's/\\r$//' {script}"):
                check_in(word, call.err, "the message", call)
        run(["sed", "-i", "s/\\r$//", script])
        call = vitro("run", "--", script)
        check_equal((call.code, call.out), (0, "ran\n"), "after what the message says", call)


@test("a script without its first line: what is missing")
def _():
    with folder() as place:
        script = write(place + "/bare", "echo ran\n", 0o755)
        call = vitro("run", "--", script)
        check_equal((call.code, call.out), (126, ""), "exit code and stdout", call)
        check_in(script, call.err, "the message", call)
        check_in("#!/bin/sh", call.err, "the message", call)


@test("from a deleted working directory all runs that needs no relative path")
def _():
    def from_nowhere(*args):
        script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
        with folder() as place:
            return vitro(*args, prefix=["/bin/sh", "-c", script, "sh", place])

    call = from_nowhere("run", "--read", "/etc", "--", "pwd")
    check_equal((call.code, call.err), (0, ""), "a command from PATH", call)
    check(re.fullmatch(r"/\S*/vitro-\w+\n" if is_bare() else "/tmp\n", call.out), call)
    call = from_nowhere("run", "--", "/bin/echo", "ran")
    check_equal((call.code, call.out), (0, "ran\n"), "a command by its whole path", call)
    call = from_nowhere("explain")
    check_equal((call.code, call.err), (125 if isolation().refused else 0, ""), "explain", call)
    for args, code in ((["--read", "."], 125), (["--cwd", "."], 125)):
        call = from_nowhere("run", *args, "--", "/bin/echo", "ran")
        check_equal((call.code, call.out), (code, ""), "a relative path", call)
        check_in("is gone", call.err, "the message", call)
    call = from_nowhere("run", "--", "./echo", "ran")
    check_equal((call.code, call.out), (127, ""), "a relative command", call)
    check_in("the working directory, which is gone", call.err, "the message", call)


@test("--env of a variable that is not set: a note, and the command runs")
def _():
    environ = {**os.environ, "IS_SET": ""}
    environ.pop("NOSUCH", None)
    call = vitro("run", "--env", "NOSUCH", "--", "/bin/echo", "ran", env=environ)
    check_equal((call.code, call.out), (0, "ran\n"), "the call", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
    check_in("--env NOSUCH", call.err, "the note", call)
    for args in (["--json", "--env", "NOSUCH"], ["--env", "NOSUCH", "--json"]):
        beside = vitro("run", *args, "--", "/bin/echo", "ran", env=environ)
        check_equal((beside.code, beside.err), (0, call.err), "the note beside JSON", beside)
    for args in (["--env", "IS_SET"], ["--env", "NOSUCH=1"], ["--env", "*"]):
        call = vitro("run", *args, "--", "/bin/echo", "ran", env=environ)
        check_equal((call.code, call.err), (0, ""), "no note", call)


@test("limits.cpus is refused with the reason of the cpu controller, not of another")
def _():
    call = vitro("run", "--cpus", "1", "--", "/bin/echo", "ran")
    if call.code == 0:
        skip("limits.cpus can be held here")
    check_equal(call.code, 125, "exit code", call)
    check("/memory" not in call.err, f"no word of the memory controller\n{call}")
    check_in("no cgroup with a cpu controller: ", call.err, "the message", call)
    check("controller: ;" not in call.err, f"there is a reason\n{call}")


@test("no hint to grant what no grant can be had of", holds={"files": "*"})
def _():
    for path in ("/proc/1/stat", "/dev/kmsg"):
        call = vitro("run", "--", "/bin/cat", path)
        check(call.code != 0, f"it is not there\n{call}")
        check("--read" not in call.err, f"no hint\n{call}")
    with folder() as place:
        path = write(place + "/note", "hello\n")
        call = vitro("run", "--", "/bin/cat", path)
        check_in(f"--read {path}", call.err, "the hint where it helps", call)


@test("a named pipe that was put in place of a policy, a profile or a manifest is refused at once")
def _():
    with folder() as place:
        os.mkfifo(place + "/pipe")
        write(place + "/p.json", '{"extends": "pipe"}')
        write(place + "/m.json", '{"tools": [{"name": "t", "description": "d", "command": ["true"], "policy": "pipe"}]}')
        with open(place + "/pipe", "r+b", buffering=0) as writer:
            writer.write(b"{}" * 50)  # all that it takes would be there
            for words in (["run", "-p", place + "/pipe", "--", "/bin/echo", "ran"],
                          ["run", "-p", "p.json", "--", "/bin/echo", "ran"], ["explain", "-p", "pipe"],
                          ["run", "--set", "syscalls=./pipe", "--", "/bin/echo", "ran"],
                          ["tools", "pipe"], ["tools", "m.json"], ["call", "pipe", "t"],
                          ["audit", "verify", "pipe"]):
                call = vitro(*words, cwd=place)
                check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
                check(call.seconds < 5, f"it waits for nothing\n{call}")
                check_in("anybody may have put there", call.err, "the message", call)


@test("a pipe of the caller's own whose writer writes nothing, or never ends: an error, and no call hangs",
      needs=["bash"])
def _():
    need_proc()
    if sanitized() or os.environ.get("VITRO_TEST_PROTECTED"):
        skip("tried by make test, with the plain build: it takes ten seconds")
    with folder() as place:
        start = shlex.join(vitro_command("run", "-p"))
        scripts = (f"exec {start} <(exec 2>&-; sleep 20) -- /bin/echo ran", f"exec {start} /dev/stdin -- /bin/echo ran < <(exec 2>&-; sleep 20)",
                   f"exec {start} <(exec 2>&-; for i in {{1..100}}; do echo; sleep 0.2; done) -- /bin/echo ran")
        with futures.ThreadPoolExecutor() as pool:  # each takes ten seconds
            calls = [*pool.map(lambda script: run(["bash", "-c", script], cwd=place), scripts)]
        for call in calls:
            check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
            check(8 < call.seconds < 15, f"it waits for a while, and not for ever\n{call}")
            check_in("is a pipe", call.err, "the message", call)


@test("a policy out of a pipe: by a slow writer, a late one, and one that writes nothing",
      needs=["bash"])
def _():
    need_proc()
    policy = '{"limits": {"wall_ms": 7000}}'
    for script in (f"echo '{policy}'", f"sleep 1; echo '{policy}'",
                   f"printf '{policy[:9]}'; sleep 1; echo '{policy[9:]}'"):
        words = " ".join(map(shlex.quote, vitro_command("explain")))
        call = run(["bash", "-c", f"exec {words} -p <({script})"])
        check_in("7 s", call.out, "the policy counts", call)
    with folder() as place:
        os.mkfifo(place + "/pipe")
        for text, code in ((policy, 0), ("", 125)):
            with started(["sh", "-c", f"sleep 0.5; printf '{text}' > {place}/pipe"]), \
                    open(os.open(place + "/pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as pipe:
                call = vitro("run", "-p", "/dev/stdin", "--", "/bin/true", stdin=pipe)
                check_equal(call.code, code, f"exit code with {text!r}", call)
                check(call.seconds < 5, f"it ends with its writer\n{call}")


if __name__ == "__main__":
    main()
