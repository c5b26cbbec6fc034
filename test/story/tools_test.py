#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tools from a manifest: what vitro tools says of it, what vitro call makes of its tools, and what is refused."""

import contextlib
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from manifests import EXAMPLE, RESULT, call, example, make, shell, tools, value_of
from vitrotest import (MARK, ROOT, SIGNALS, Before, check, check_equal, check_in, folder, is_bare, isolation, main,
                       open_terminal, run, skip, started, test, vitro_command, write)


@test("the example is sound, and tools lists what it has")
def _():
    listed = tools(EXAMPLE)
    check_equal(listed.code, 0, "exit", listed)
    check_equal(re.findall(r"^\w.*$", listed.out, re.M),
                ["calculate expression", "convert_to_utf8 file encoding", "query_database file sql",
                 "run_script script", "search_files pattern path"], "tools")
    check_in("    Runs a shell script, which", listed.out, "descriptions")
    found = tools(EXAMPLE, "--query", "SQL rows")
    check_equal(re.findall(r"^\w+", found.out, re.M), ["query_database"], "found")
    check_equal(tools(EXAMPLE, "--query", "elephants").out, "", "found")
    as_json = tools("--json", EXAMPLE).json
    written = {tool["name"]: tool for tool in json.loads(EXAMPLE.read_text(encoding="utf-8"))["tools"]}
    check_equal({tool["name"]: tool for tool in as_json},
                {name: {key: tool[key] for key in ("name", "description", "input_schema")}
                 for name, tool in written.items()}, "as JSON")


@test("what a command cannot do without is shown as needed, and is required, whatever its schema says")
def _():
    with folder() as place:
        manifest = make(place, [
            {"name": "a", "command": ["printf", "%s", "{-word}"],
             "input_schema": {"type": "object", "properties": {"word": {"type": "string"}, "more": {}}}},
            {"name": "b", "command": ["cat"], "stdin": "{text}{more?}"}])
        check_equal(tools(manifest).out, "a word [more]\nb text\n", "usages")
        listed = json.loads(tools(manifest, "--json").out)
        check_equal([tool["input_schema"]["required"] for tool in listed], [["word"], ["text"]], "for models")
        done = call(manifest, "a", "{}")
        check_equal(done.code, 125, "without it", done)
        check_in("word", done.err, "what is missing", done)
        check_equal(call(manifest, "a", '{"word": "-x"}').out, "-x", "with it")


@test("example: files are searched", needs=["grep"])
def _():
    with example() as place:
        write(f"{place}/notes/a.txt", "tea\ncoffee\n-rf\n")
        check_equal(value_of(place, "search_files", pattern="^co+f", path="."), "./notes/a.txt:2:coffee\n", "found")
        check_equal(value_of(place, "search_files", pattern="-rf", path="notes"), "notes/a.txt:3:-rf\n", "found")
        check_equal(value_of(place, "search_files", pattern="beer", path="."), "", "found")
        outside = call(f"{place}/tools.json", "search_files", '{"pattern": "root", "path": "/etc/shadow"}')
        check(outside.code and "root" not in outside.out, outside)


@test("example: a script runs, and reaches nothing")
def _():
    with example() as place:
        write(f"{place}/secret", "x")
        check_equal(value_of(place, "run_script", script="for i in 1 2 3; do echo $((i * i)); done"), "1\n4\n9\n", "value")
        check_equal(value_of(place, "run_script", script="echo '{\"a\": [1]}'"), {"a": [1]}, "value")
        done = call(f"{place}/tools.json", "run_script", json.dumps({"script": f"cat {place}/secret; exit 7"}))
        check_equal((done.code, done.out), (7, ""), "of what is not granted", done)
        check_in("vitro: run_script: exited with code 7\n", done.err, "message", done)


@test("example: a database is asked, and not changed", needs=["sqlite3"])
def _():
    with example() as place:
        with contextlib.closing(sqlite3.connect(f"{place}/d.db")) as database:
            database.executescript("create table t(a, b); insert into t values(1, 'x'), (2, 'y');")
        os.chmod(f"{place}/d.db", 0o644)
        check_equal(value_of(place, "query_database", file="d.db", sql="select * from t where a > 1"),
                    [{"a": 2, "b": "y"}], "rows")
        for sql in ("delete from t", ".shell id", ".output /tmp/x"):
            done = call(f"{place}/tools.json", "query_database", json.dumps({"file": "d.db", "sql": sql}))
            check(done.code, lambda done=done: f"{sql} passed: {done}")
        # The file's name is never an option.
        done = call(f"{place}/tools.json", "query_database", '{"file": "-cmd", "sql": "select 1"}')
        check_equal(done.code, 125, "an option", done)


@test("example: a text is converted", needs=["iconv"])
def _():
    with example() as place:
        with open(f"{place}/old.txt", "wb") as file:
            file.write("Grüße".encode("latin-1"))
        os.chmod(f"{place}/old.txt", 0o644)
        check_equal(value_of(place, "convert_to_utf8", file="old.txt", encoding="ISO-8859-1"), "Grüße", "value")
        done = call(f"{place}/tools.json", "convert_to_utf8", '{"file": "old.txt", "encoding": "-x"}')
        check_equal(done.code, 125, "an option", done)


@test("example: what is calculated", needs=["bc"])
def _():
    with example() as place:
        check_equal(value_of(place, "calculate", expression="2^64 + 1"), 18446744073709551617, "value")
        check_equal(value_of(place, "calculate", expression="scale=5; 1/3"), "\n".join([".33333", ""]), "value")


@test("the schema for editors allows the example, and refuses what vitro refuses")
def _():
    with folder() as place:
        schema = json.loads((ROOT / "docs" / "tools.schema.json").read_text(encoding="utf-8"))
        path = make(place, [{"name": "check", "input_schema": schema, "command": ["true"]}])
        done = call(path, "check", "-", stdin=EXAMPLE.read_text(encoding="utf-8"))
        check_equal((done.code, done.err), (0, ""), "the example", done)
        tool = {"name": "a", "command": ["b"]}
        for bad in ({}, {"tools": {}}, {"tools": [], "polcy": {}}, {"tools": [], "policy": 1}, {"tools": [{}]},
                    {"tools": [{**tool, "name": "a b"}]}, {"tools": [{**tool, "command": "b"}]},
                    {"tools": [{**tool, "command": []}]}, {"tools": [{**tool, "x": 1}]},
                    {"tools": [{**tool, "input_schema": []}]}, {"tools": [{**tool, "stdin": 1}]}):
            text = json.dumps(bad)
            check_equal((call(path, "check", text).code, tools(write(f"{place}/bad.json", text)).code), (125, 125), text)


@test("every mistake of a manifest is told at once, with its line and its key")
def _():
    with folder() as place:
        path = write(f"{place}/bad.json", """{
  "polcy": "strict",
  "tools": [
    {
      "name": "count",
      "comand": ["wc", "-l", "--", "{file}"],
      "policy": {
        "limits": { "wal_ms": 5, "pids": "x" }
      }
    },
    {
      "name": "count",
      "input_schema": {
        "properties": { "file": { "type": "strin" } }
      },
      "command": ["cat"]
    },
    { "name": "c", "command": ["sh", "-c",
        "cat {file}"] }
  ]
}
""")
        wanted = [(2, "unknown key 'polcy'; did you mean 'policy'?"),
                  (6, "tools[0]: unknown key 'comand'; did you mean 'command'?"),
                  (4, "tools[0]: there is no \"command\""),
                  (8, "tools[0].policy.limits.wal_ms: unknown key 'limits.wal_ms'; did you mean"),
                  (8, "tools[0].policy.limits.pids: "),
                  (12, "tools[1].name: 'count' is the name of tools[0] already"),
                  (14, "tools[1].input_schema.properties.file.type: "),
                  (19, "tools[2].command[2]: an argument inside a script would be code")]
        for done in (tools(path), call(path, "count")):
            check_equal((done.code, done.out), (125, ""), "exit", done)
            lines = done.err.splitlines()
            check_equal(len(lines), len(wanted), "mistakes", done)
            for line, (number, text) in zip(lines, wanted):
                check_in(f"vitro: {path}:{number}: {text}", line, "mistake", done)
        refused = call(path, "count", "--json")
        check_equal((refused.code, refused.json["status"]), (125, "refused"), "as a result", refused)
        check_in("bad.json:2: unknown key", refused.json["error"]["message"], "message", refused)


@test("what is found when a tool is tried is told with the manifest's line and key, too")
def _():
    if isolation().refused:
        skip("no policy of these can be held here")
    with folder() as place:
        path = f"{place}/tools.json"
        for fields, code, key, words in (
                ('"command": ["no-such-program"]', 127, ":3: tools[0].command: ", "is not on PATH"),
                ('"command": ["./none"]', 127, ":3: tools[0].command: ", "does not exist"),
                ('"command": ["/etc/passwd"]', 126, ":3: tools[0].command: ", "is not executable"),
                ('"command": ["true"],\n"policy": {"files": {"read": ["/no/such"]}}', 125, ":4: tools[0].policy: ",
                 "/no/such"),
                ('"command": ["true"],\n"policy": {"files": {"cwd": "/no/such"}}', 125, ":4: tools[0].policy: ",
                 "/no/such")):
            write(path, f'{{"tools": [\n{{"name": "t",\n{fields}}}]}}')
            called = call(path, "t")
            check_equal(called.code, code, fields, called)
            served = run(vitro_command("serve", "--socket", f"{place}/socket", "--tools", path))
            check_equal(served.code, 125, fields, served)
            for done in (called, served):
                check_in(f"vitro: {path}{key}", done.err, fields, done)
                check_in(words, done.err, fields, done)


@test("what is no manifest is refused in one line")
def _():
    with folder() as place:
        write(f"{place}/half.json", '{"tools": [\n{"name": ')
        for path, text in ((f"{place}/none.json", "No such file"), (place, "is a folder"),
                           (f"{place}/half.json", "half.json:2:")):
            for done in (tools(path), call(path, "x")):
                check_equal((done.code, done.out, done.err.count("\n")), (125, "", 1), "exit", done)
                check_in(text, done.err, "message", done)
        text = EXAMPLE.read_text(encoding="utf-8")
        piped = run(vitro_command("tools", "/dev/stdin"), stdin=text)
        if os.path.exists("/dev/stdin"):
            check_equal(piped.code, 0, "a pipe can be read", piped)
            called = call("/dev/stdin", "calculate", stdin=text)
            check_equal(called.code, 125, "its tools cannot be called", called)
            check_in("is no file", called.err, "message", called)
        for words in (["tools"], ["tools", "a", "b"], ["call"], ["call", "a"], ["call", "a", "b", "{}", "c"],
                      ["tools", "--quer"], ["call", "--timeout", "5", "a", "b"]):
            done = run(vitro_command(*words))
            check_equal((done.code, done.err.count("\n")), (125, 1), f"{words}", done)


@test("arguments come from the command line or from standard input, and must fit")
def _():
    with folder() as place:
        path = make(place, [{"name": "echo", "command": ["printf", "%s|", "{words...}"], "input_schema": {
            "properties": {"words": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": False}}])
        text = json.dumps({"words": ["a b", "$(id)", "'", "é"]})
        for done in (call(path, "echo", text), call(path, "echo", "-", stdin=text), call("--", path, "echo", text)):
            check_equal((done.code, done.out, done.err), (0, "a b|$(id)|'|é|", ""), "printed", done)
        check_equal(call(path, "echo").out, "|", "without any")
        for bad, message in (("{", "arguments:1:"), ("[]", "arguments: want an object"),
                             ("words=a", "invalid token near 'words'; want a JSON object: {...}"),
                             ('{"words": 5}', "arguments.words: want an array, found 5"),
                             ('{"word": []}', "did you mean 'words'?"), ('{"words": ["-n"]}', "option")):
            done = call(path, "echo", bad)
            check_equal((done.code, done.out), (125, ""), bad, done)
            check_in(message, done.err, "message", done)
        check_in("did you mean 'echo'?", call(path, "ecko").err, "message")
        for words in (["echo", "{}"], ["echo", "words=a"], [path, "{}"]):
            done = call(*words)
            check_equal((done.code, done.out), (125, ""), "without a manifest, or a tool", done)
            check_in(f"'{words[1]}' is no tool; a manifest comes first, and then the tool: vitro call TOOLS.json NAME",
                     done.err, "message", done)
        large = call(path, "echo", "-", stdin=b'{"words": ["' + b"x" * (5 << 20) + b'"]}')
        check_equal(large.code, 125, "too much", large)


@test("without a stdin of its own, a command reads the arguments")
def _():
    with folder() as place:
        path = make(place, [{"name": "cat", "command": ["cat"]},
                            {"name": "own", "command": ["cat"], "stdin": "<{a}{b?}>"}])
        check_equal(call(path, "cat", '{"a": 1}').out, '{"a": 1}', "read")
        check_equal(call(path, "own", '{"a": "-x\\n$(id)"}').out, "<-x\n$(id)>", "read")
        check_equal(call(path, "own", "{}").code, 125, "what is missing")


@test("exit codes and messages are those of vitro run")
def _():
    with folder() as place:
        path = make(place, [shell("exit 3", "exit"), shell("sleep 60", "sleep"),
                            shell("echo out; echo err >&2", "print"),
                            {"name": "none", "command": ["no-such-program"]}])
        for name, code, message in (("exit", 3, "exit: exited with code 3"), ("none", 127, "no-such-program")):
            done = call(path, name)
            check_equal(done.code, code, name, done)
            check_in(message, done.err, "message", done)
        start = time.monotonic()
        done = call(path, "sleep", "--timeout", "300ms")
        check_equal((done.code, done.err), (124, "vitro: the call ran past its 0.3 s deadline\n"), "timeout", done)
        check(time.monotonic() - start < 10, done)
        done = call(make(place, [{**shell("sleep 60", "sleep"), "policy": {"limits": {"wall_ms": 300}}}]), "sleep")
        check_equal((done.code, done.err), (124, "vitro: the call ran past its 0.3 s deadline (limits.wall_ms)\n"),
                    "that of the policy", done)
        path = make(place, [shell("echo out; echo err >&2", "print")])
        done = call(path, "print")
        check_equal((done.code, done.out, done.err), (0, "out\n", "err\n"), "printed", done)


@test("a crash is told by its signal", holds=SIGNALS)
def _():
    with folder() as place:
        done = call(make(place, [shell("kill -SEGV $$")]), "t")
        check_equal(done.code, 128 + signal.SIGSEGV, "exit", done)
        check_in("SIGSEGV", done.err, "message", done)


@test("a file that grows past the caller's own limit is told as that, and not as the policy's", needs=["prlimit"],
      holds=SIGNALS)
def _():
    with folder() as place:
        path = make(place, [shell("exec truncate -s 200M $HOME/f", policy={"limits": {"file_mb": 128}})])
        for fsize, says in (("unlimited", "limits.file_mb (128 MB)"), (str(100 << 20), "the caller's own limit, 102400 KB")):
            done = run(["prlimit", f"--fsize={fsize}", *vitro_command("call", path, "t")])
            check_equal(done.code, 128 + signal.SIGXFSZ, "exit", done)
            check_in(says, done.err, "message", done)


@test("results have the one shape, on standard output or in a file")
def _():
    with folder() as place:
        path = make(place, [shell("echo '[1, 2]'; echo err >&2", "ok"), shell("echo x; exit 5", "bad")])
        done = call(path, "ok", "{}", "--json")
        result = done.json
        check_equal((done.code, done.err, list(result)), (0, "", RESULT), "result", done)
        check_equal((result["ok"], result["value"], result["stdout"], result["stderr"], result["exit_code"]),
                    (True, [1, 2], "[1, 2]\n", "err\n", 0), "result", done)
        done = call("--json=" + place + "/result", path, "bad")
        check_equal((done.code, done.out), (5, "x\n"), "output", done)
        with open(f"{place}/result", encoding="utf-8") as file:
            result = json.load(file)
        check_equal((list(result), result["status"], result["value"], result["error"]["type"], result["stdout"]),
                    (RESULT, "error", None, "ExitCode", "x\n"), "result", done)


@test("a policy is a name, a file beside the manifest, or an object, and holds")
def _():
    with folder() as place:
        write(f"{place}/data/note", "tea")
        write(f"{place}/read.json", json.dumps({"files": {"read": ["data"], "cwd": "data"},
                                                **({"require": "best-effort"} if isolation().refused else {})}))
        path = make(place, [shell("cat note", "file", policy="read.json"),
                            shell("cat note", "object", policy={"files": {"read": ["data"], "cwd": "data"}}),
                            shell("cat note", "extended", policy={"extends": "read.json"}),
                            shell(f"cat {place}/data/note", "none"),
                            shell("echo $X", "shared")], {"env": {"set": {"X": "from the shared one"}}})
        for name in ("file", "object", "extended"):
            done = call(path, name)
            check_equal((done.code, done.out), (0, "tea"), name, done)
        done = call(path, "none")
        check(done.code == 1 and not done.out, done)
        check_equal(call(path, "shared").out, "from the shared one\n", "shared")
        # From another folder, too: paths are relative to the manifest.
        check_equal(call(os.path.relpath(path, "/"), "object", cwd="/").out, "tea", "elsewhere")


@test("a program beside the manifest is found from anywhere")
def _():
    with folder() as around:
        place = f"{around}/{{x}} y"
        write(f"{place}/bin/tool", "#!/bin/sh\necho tool $1\n", 0o755)
        path = make(place, [{"name": "t", "command": ["./bin/tool", "{x}"]}])
        for cwd in (place, "/"):
            done = call(path, "t", '{"x": 1}', cwd=cwd)
            check_equal((done.code, done.out), (0, "tool 1\n"), f"in {cwd}", done)
        check_equal(call(make(place, [{"name": "t", "command": ["bin/none"]}]), "t").code, 127, "one that is not there")


@test("a tool that could change its manifest, or its policy, is refused with all others")
def _():
    if isolation().refused:
        skip("under require=best-effort it is a warning")
    with folder(writable=True) as place:
        os.mkdir(f"{place}/out")
        os.chmod(f"{place}/out", 0o777)
        write_it = shell('echo x > "$PWD/$1"', "write")
        write_it["command"].append("{file}")
        # The control: what may be written can be, and this is how.
        path = make(place, [{**write_it, "policy": {"files": {"write": ["out"], "cwd": "out"}}}, shell("true", "other")])
        check_equal(call(path, "write", '{"file": "made"}').code, 0, "the control")
        check(os.path.exists(f"{place}/out/made"), "the control wrote nothing")
        kept = open(path, encoding="utf-8").read()
        for grants in (["."], [".."], ["tools.json"], ["link"]):
            with contextlib.suppress(FileExistsError):
                os.symlink(".", f"{place}/link")
            path = make(place, [{**write_it, "policy": {"files": {"write": grants, "cwd": "."}}}, shell("true", "other")],
                        name="tools.json")
            kept = open(path, encoding="utf-8").read()
            for name in ("write", "other"):
                done = call(path, name, '{"file": "tools.json"}' if name == "write" else "{}")
                check_equal(done.code, 125, f"{grants}: {name}", done)
                check_in("tools[0].policy: files.write: with '", done.err, "message", done)
            check_equal(open(path, encoding="utf-8").read(), kept, "the manifest")
        write(f"{place}/out/p.json", json.dumps({"files": {"write": ["."]}}))
        done = call(make(place, [{**write_it, "policy": "out/p.json"}]), "write", '{"file": "p.json"}')
        check_equal(done.code, 125, "its policy", done)
        check_in("could change '", done.err, "message", done)
        if not is_bare():
            path = make(place, [{**write_it, "policy": {
                "files": {"write": ["."], "deny": ["tools.json"], "cwd": "."}}}])
            kept = open(path, encoding="utf-8").read()
            done = call(path, "write", '{"file": "tools.json"}')
            check_equal(open(path, encoding="utf-8").read(), kept, "a manifest that is denied", done)


@test("root: another name of the manifest's folder is no way round", root=True)
def _():
    if isolation().refused:
        skip("under require=best-effort it is a warning")
    with folder() as place, folder() as other:
        path = make(place, [shell("echo x >tools.json", "write", policy={"files": {"write": [other], "cwd": other}})])
        # In mounts of its own, which end with it.
        script = 'mount --bind "$1" "$2" || exit 99; shift 2; exec "$@"'
        done = run(["unshare", "--mount", "sh", "-c", script, "sh", place, other, *vitro_command("call", path, "write")])
        if done.code == 99 or done.err.startswith("unshare: "):
            skip(f"nothing can be mounted here: {done.err.strip()}")
        check_equal(done.code, 125, "by another name", done)
        check_in("could change '", done.err, "message", done)


@test("the result is not written to where the tool can write")
def _():
    with folder(writable=True) as place:
        os.makedirs(f"{place}/out")
        os.chmod(f"{place}/out", 0o777)
        path = make(place, [shell("echo x", policy={"files": {"write": ["out"]}})])
        done = call(path, "t", f"--json={place}/out/result")
        check_equal(done.code, 125, "exit", done)
        check(not os.path.exists(f"{place}/out/result"), "it was made")


def ended_by(number, path):
    before = Before()
    with started(vitro_command("call", path, "t"), env={**os.environ, MARK: before.token},
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        check_equal(process.stdout.readline(), b"on\n", "first line")
        process.send_signal(number)
        check_equal(process.wait(20), 128 + number, "exit")
        check_in(b"vitro: the call was cancelled", process.stderr.read(), "message")
        before.check_nothing_left(process.pid)


@test("a signal ends the call, and leaves nothing")
def _():
    with folder() as place:
        path = make(place, [shell("echo on; sleep 60")])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            ended_by(number, path)


@test("when vitro call is killed, so is what it called")
def _():
    with folder() as place:
        path = make(place, [shell("echo on; sleep 60")])
        before = Before()
        with started(vitro_command("call", path, "t"), env={**os.environ, MARK: before.token},
                     stdout=subprocess.PIPE) as process:
            check_equal(process.stdout.readline(), b"on\n", "first line")
            process.kill()
            process.wait()
            before.check_nothing_left(process.pid, seconds=5)


@test("a reader that leaves ends the call quietly")
def _():
    with folder() as place:
        path = make(place, [shell("while :; do echo line; done")])
        before = Before()
        with started(vitro_command("call", path, "t"), env={**os.environ, MARK: before.token},
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            check_equal(process.stdout.readline(), b"line\n", "first line")
            process.stdout.close()
            check_equal(process.wait(20), 128 + signal.SIGPIPE, "exit")
            check_equal(process.stderr.read(), b"", "messages")
            before.check_nothing_left(process.pid)


@test("no escape sequence of a tool, or of a manifest, reaches the terminal")
def _():
    with folder() as place:
        path = make(place, [shell("printf 'a\\033[31mb\\n'", description="up\u001b[2J"), shell("x", "no\u001bname")])
        good = make(place, [shell("printf 'a\\033[31mb\\n'", description="up\u001b[2J")], name="good.json")
        for words, wanted in ((["call", good, "t"], b"a^[[31mb"), (["tools", good], b"up\\u001b[2J"),
                              (["tools", path], b"no\\u001bname")):
            ours, theirs = open_terminal()
            with started(vitro_command(*words), stdout=theirs, stderr=theirs) as process:
                process.wait(20)
                os.close(theirs)
                shown = b""
                with contextlib.suppress(OSError):
                    while got := os.read(ours, 65536):
                        shown += got
                os.close(ours)
            check_in(wanted, shown, f"{words}")
            check(b"\x1b" not in shown, f"{words}: {shown!r}")


if __name__ == "__main__":
    main()
