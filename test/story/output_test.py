#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Input and output: streaming, caps, terminals, result files, the audit log."""

import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, WITHIN, check, check_equal, check_in, folder, main, need_proc,
                       open_terminal, proc, run, sanitized, test, vitro, vitro_command, vitro_json,
                       vitro_started, write)

MB = 1 << 20


@test("standard input passes through, from a pipe and from a file")
def _():
    call = vitro("run", "--", "/usr/bin/tr", "a-z", "A-Z", stdin="hello\n")
    check_equal(call.out, "HELLO\n", "stdout", call)
    with folder() as place, open(write(place + "/in", "from a file\n"), "rb") as file:
        call = vitro("run", "--", "/bin/cat", stdin=file)
        check_equal(call.out, "from a file\n", "stdout", call)


@test("a megabyte of binary input and output comes through unchanged")
def _():
    data = os.urandom(MB)
    call = vitro("run", "--", "/bin/cat", stdin=data)
    check(call.out_bytes == data, f"{len(call.out_bytes)} of {len(data)} bytes, or other ones")


@test("closed standard streams of the caller do no harm")
def _():
    start = shlex.join(vitro_command("run", "--", "/bin/sh", "-c"))
    call = run(["sh", "-c", f'{start} "echo hello" <&-'])
    check_equal((call.code, call.out), (0, "hello\n"), "without stdin", call)
    call = run(["sh", "-c", f'{start} "echo hello; exit 4" >&-'])
    check(call.code in (4, 125), f"without stdout\n{call}")
    call = run(["sh", "-c", f'{start} "echo hello; exit 4" 2>&-'])
    check_equal((call.code, call.out), (4, "hello\n"), "without stderr", call)


@test("stdout and stderr are kept apart")
def _():
    script = "echo out; echo err >&2"
    call = vitro("run", "--", "/bin/sh", "-c", script)
    check_equal((call.out, call.err), ("out\n", "err\n"), "passed through", call)
    result = vitro_json("run", "--", "/bin/sh", "-c", script)
    check_equal((result["stdout"], result["stderr"]), ("out\n", "err\n"), "captured")
    check_equal(result["call"].err, "", "vitro's own stderr", result["call"])


@test("output streams as it comes, not at the end")
def _():
    with vitro_started("run", "--", ACTOR, "say_then_sleep", "3000",
                       stdout=subprocess.PIPE) as (process, _):
        start = time.monotonic()
        check_equal(process.stdout.readline(), b"first\n", "first line")
        check(time.monotonic() - start < 1.5, "the first line came before the command ended")
        check(process.poll() is None, "the command still runs")
        check_equal(process.stdout.readline(), b"last\n", "last line")


def peak_kb(pid):
    return int(re.search(rb"VmHWM:\s+(\d+)", proc(f"{pid}/status"))[1])


@test("a gigabyte of output under a cap of 1 MB: vitro stays small, the command runs to its end")
def _():
    size, peak = 1 << 30, 0
    with vitro_started("run", "--json", "--timeout", "50s", "--", ACTOR, "big_output", str(size),
                       stdout=subprocess.PIPE) as (process, before):
        while not select.select([process.stdout], [], [], 0.05)[0]:
            try:
                peak = max(peak, peak_kb(process.pid))
            except (OSError, TypeError):
                break
        result = json.loads(process.stdout.read())
        process.wait(5)
        before.check_nothing_left(process.pid)
    check_equal((result["status"], result["exit_code"]), ("ok", 0), "how it ended")
    text, dropped = result["stdout"], result["dropped"]["stdout"]
    check(text.startswith("HEADx") and text.endswith("xTAIL"), "head and tail are kept")
    kept = text.count("x") + 8
    check_equal(kept + dropped, size, "kept and dropped together")
    check(900_000 <= kept <= MB, f"kept {kept}")
    check(str(dropped) in text, "the seam says how much is missing")
    if not sanitized():
        check(0 < peak < 8192, f"vitro's peak memory was {peak} kB")


@test("passed-on output is not cut unless a cap is given")
def _():
    call = vitro("run", "--", ACTOR, "big_output", str(5 * MB))
    check_equal(len(call.out_bytes), 5 * MB, "bytes without a cap")
    call = vitro("run", "--set", "limits.stdout_kb=64", "--", ACTOR, "big_output", str(5 * MB))
    check_equal(call.code, 0, "exit code", call)
    check(len(call.out_bytes) < 80 << 10, f"{len(call.out_bytes)} bytes with a cap of 64 kB")


@test("the caps of stdout and stderr hold apart")
def _():
    result = vitro_json("run", "--set", "limits.stdout_kb=4", "--set", "limits.stderr_kb=8", "--",
                        "/bin/sh", "-c", "yes out | head -c 100000; yes err | head -c 100000 >&2")
    check_equal(result["status"], "ok", "status", result["call"])
    for name, cap in (("stdout", 4096), ("stderr", 8192)):
        check(cap - 200 < len(result[name]) < cap + 100, f"{name} has {len(result[name])} bytes")
        check(100000 - cap <= result["dropped"][name] < 100000, f"dropped: {result['dropped']}")


@test("output that is not UTF-8 does not break the result")
def _():
    result = vitro_json("run", "--", "/usr/bin/printf", r"a\377\376b\000c")
    check(result["stdout"].startswith("a") and result["stdout"].endswith("c"), f"{result['call']}")
    check_in("b", result["stdout"], "stdout")


@test("--json=FILE writes the result to the file and passes output through")
def _():
    with folder() as place:
        path = place + "/result.json"
        call = vitro("run", f"--json={path}", "--", "/bin/sh", "-c", "echo hello; exit 3")
        check_equal((call.code, call.out), (3, "hello\n"), "passed through", call)
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        check_equal((result["status"], result["exit_code"]), ("error", 3), "in the file")


@test("--json=FILE into a folder that does not exist is an error before anything runs")
def _():
    with folder() as place:
        call = vitro("run", f"--json={place}/no/result.json", "--write", place, "--", "/bin/touch",
                     place + "/ran")
        check_equal((call.code, call.out), (125, ""), "exit code, and nothing where the command's output goes", call)
        check_in("vitro: --json ", call.err, "why", call)
        check(not os.path.exists(place + "/ran"), "nothing ran")


@test("--audit appends one JSON line per call: who, what, policy, verdict, usage")
def _():
    with folder() as place:
        path = place + "/audit.log"
        for code in (0, 3):
            vitro("run", "--audit", path, "--", "/bin/sh", "-c", f"exit {code}")
        vitro("run", "--audit", path, "--timeout", "200ms", "--", ACTOR, "ignore_term")
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        check_equal(len(lines), 3, "lines")
        check_equal([line["status"] for line in lines], ["ok", "error", "timeout"], "statuses")
        for line in lines:
            text = json.dumps(line)
            check_in("usage", line, f"fields of {text}")
            check_in("policy", line, f"fields of {text}")
            check(re.search(r'"uid": ?\d+', text), f"who: {text}")
        check_in("exit 3", json.dumps(lines[1]), "what")


@test("concurrent calls do not mix their audit lines")
def _():
    with folder() as place:
        path = place + "/audit.log"
        held = [vitro_started("run", "--audit", path, "--", "/bin/echo", "x" * 2000,
                              stdout=subprocess.DEVNULL) for _ in range(8)]
        for process, _ in [each.__enter__() for each in held]:
            process.wait(20)
        for each in held:
            each.__exit__(None, None, None)
        with open(path, encoding="utf-8") as file:
            check_equal(len([json.loads(line) for line in file]), 8, "lines that parse")


def on_terminal(*args, seconds=10):
    """What a terminal gets to see when vitro's stdout is one."""
    ours, theirs = open_terminal()
    seen = b""
    with vitro_started(*args, stdout=theirs, stderr=theirs) as (process, _):
        os.close(theirs)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.1)[0]:
                continue
            try:
                got = os.read(ours, 65536)
            except OSError:
                break
            if not got:
                break
            seen += got
        process.wait(5)
    os.close(ours)
    return seen


@test("escape sequences of a cell do not reach a terminal")
def _():
    script = (r"printf '\033]0;owned\007\033[2J\033[31mred\033[0m \302\233 \342\200\256 \b"
              r"\na\tb caf\303\251 \346\227\245\n'")
    for redirect in ("", " >&2"):
        seen = on_terminal("run", "--", "/bin/sh", "-c", script + redirect)
        check(b"\x1b" not in seen, f"an escape character came through: {seen!r}")
        for bad in (b"\x07", b"\xc2\x9b", b"\xe2\x80\xae", b"\b"):
            check(bad not in seen, f"{bad!r} came through: {seen!r}")
        check_in(b"red", seen, "the text itself")
        check_in("a\tb caf\u00e9 \u65e5".encode(), seen, "honest text in other languages")


@test("escape sequences pass where stdout is not a terminal")
def _():
    call = vitro("run", "--", "/usr/bin/printf", r"\033[31mred")
    check_equal(call.out_bytes, b"\x1b[31mred", "stdout")


@test("a terminal as standard input reaches the command as text")
def _():
    ours, theirs = open_terminal()
    with vitro_started("run", "--", "/bin/sh", "-c", "read line; echo got $line; test -t 0",
                       stdin=theirs, stdout=subprocess.PIPE) as (process, _):
        os.close(theirs)
        os.write(ours, b"typed\n")
        out, _ = process.communicate(timeout=10)
        check_equal((out, process.returncode), (b"got typed\n", 1), "output; no terminal inside")
    os.close(ours)


@test("vitro's messages are lines of their own, whatever the command left unended")
def _():
    says = "vitro: the call ran past its 0.3 s deadline (limits.wall_ms)"
    for script, err in (("printf foo >&2; sleep 5", f"foo\n{says}\n"),
                        ("echo foo >&2; sleep 5", f"foo\n{says}\n"),
                        ("printf foo; sleep 5", f"{says}\n"), ("sleep 5", f"{says}\n")):
        call = vitro("run", "--timeout", "300ms", "--", "/bin/sh", "-c", script)
        check_equal((call.code, call.err), (124, err), f"stderr of {script!r}", call)
    call = vitro("run", "--", "/bin/sh", "-c", "printf foo >&2; printf bar")
    check_equal((call.code, call.out, call.err), (0, "bar", "foo"), "where vitro says nothing", call)
    call = vitro("run", "--json", "--timeout", "300ms", "--", "/bin/sh", "-c",
                 "printf foo >&2; sleep 5")
    check_equal((call.err, call.json["stderr"]), ("", "foo"), "where it is captured", call)


@test("the same where both streams go to one place")
def _():
    for script in ("printf foo; sleep 5", "printf foo >&2; sleep 5", "echo foo; sleep 5"):
        with vitro_started("run", "--timeout", "300ms", "--", "/bin/sh", "-c", script,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as (process, _):
            out, _ = process.communicate(timeout=10)
            check_equal(out, b"foo\nvitro: the call ran past its 0.3 s deadline (limits.wall_ms)\n", script)


FORGERY = "x\r\nvitro: FORGED\nFORGED \x1b[2J\a\u202ey\u2028z\U000e0041"
SHOWN = r"x\r\nvitro: FORGED\nFORGED \u001b[2J\u0007\u202ey\u2028z\udb40\udc41"


def check_own(text, what, call):
    """Each line of it is one of vitro's own, and nothing in it steers a terminal."""
    for mark in "\r\x1b\a\u202e\u2028\U000e0041":
        check(mark not in text, f"{what}: {mark!r} is in it\n{call}")
    for line in text.split("\n"):
        check(not line.startswith(("FORGED", "vitro: FORGED")), f"{what}: a forged line\n{call}")


def check_message(*args, says=SHOWN, **options):
    """vitro ends with a message of its own, in one line."""
    call = vitro(*args, **options)
    check_equal((call.code, call.out), (125, ""), "exit code, output", call)
    check_own(call.err, "stderr", call)
    check_equal((call.err.count("\n"), call.err[:7]), (1, "vitro: "), "lines, how it begins", call)
    check_in(says, call.err, "the message", call)


@test("what names, links, arguments and policies hold is shown in vitro's messages as escapes")
def _():
    with folder() as place:
        name = f"{place}/{FORGERY}"
        write(name + "/file", "")
        for args in (["--read", name + "/none"], ["--write", name + "/none"], ["--deny", name],
                     ["--cwd", name], ["-p", name], ["--audit", name],
                     ["--socket", name], ["--set", FORGERY], ["--timeout", FORGERY],
                     ["--" + FORGERY], ["--read", "/proc/" + FORGERY]):
            check_message("run", *args, "--", "/bin/true", says="x\\r\\nvitro: FORGED")
        check_message(FORGERY)
        check_message("doctor", "-p", name)
        check_message("explain", "-p", name)
        write(name + ".json", '{"files": {"\\r\\nFORGED": 1}}')
        check_message("run", "-p", name + ".json", "--", "/bin/true")
        call = vitro("run", "--", FORGERY)
        check_own(call.err, "a command that is not there", call)
        check_in(SHOWN, call.err, "a command that is not there", call)


@test("so is a script's interpreter, a link that a note tells of, and what a hint is about",
      holds={"files": "*"})
def _():
    with folder() as place:
        ws = place + "/ws"
        os.mkdir(ws)
        for line in ("#!/usr/bin/env no\rvitro: add: --read /home", "#!/no\rvitro:\x1b[2J\u202ex"):
            write(ws + "/s", line, 0o755)
            call = vitro("run", "--read", ws, "--", ws + "/s")
            check_own(call.err, line, call)
            check_in(r"no\rvitro:", call.err, line, call)
            check_equal(call.err.count("\n"), 1, "lines", call)
        write(f"{ws}/{FORGERY}/data", "")
        os.symlink(FORGERY, ws + "/out")
        os.symlink(FORGERY + "/data", ws + "/in")
        for grant in ("out", "in"):
            call = vitro("run", "--read", f"{ws}/{grant}", "--", "/bin/true")
            check_own(call.err, "the note", call)
            check_in(f"leads to '{ws}/{SHOWN}", call.err, "the note", call)
            check_equal(call.err.count("\n"), 1, "lines", call)
        call = vitro("run", "--", "/bin/sh", "-c", 'printf "%s\\n" "$0" >&2; exit 1', FORGERY, cwd=ws)
        hint = call.err[call.err.rindex("vitro: '"):]
        check_own(hint, "the hint", call)
        check_in(f"'{SHOWN}' exists here", hint, "the hint", call)


@test("each line of explain and doctor is one of vitro's own")
def _():
    with folder() as place:
        odd = f"{place}/{FORGERY}"
        os.mkdir(odd)
        os.mkdir(odd + "2")
        shutil.copy("/bin/true", odd + "2/tool")
        os.symlink(FORGERY, place + "/out")
        call = vitro("explain", "--read", place + "/out", "--env", "A=" + FORGERY, "--set",
                     "require=best-effort", "--", odd + "2/tool")
        check_own(call.out + call.err, "explain", call)
        seen = call.out.replace("\n    ", " ")
        for words in (f" {place}/{SHOWN}", f"  read    {place}/{SHOWN}2/tool\n", f"  A={SHOWN}\n",
                      f"leads to '{place}/{SHOWN}'"):
            check_in(words, seen, "explain", call)
        # The private folder of a bare cell, which is among the limits and the reasons.
        os.chmod(odd, 0o777)
        for verb in ("explain", "doctor"):
            call = vitro(verb, prefix=[WITHIN, "--deny-userns", "--"], env={**os.environ, "TMPDIR": odd})
            check(call.code in (0, 1, 125), f"{verb}\n{call}")
            check_own(call.out + call.err, verb, call)


def explained(*args):
    """What explain has as text, and as JSON with as little that steers a terminal; their exit codes agree."""
    text, call = vitro("explain", *args), vitro("explain", "--json", *args)
    check_own(call.out, "explain --json", call)
    check_equal((call.code, call.err), (text.code, text.err), "exit code and stderr", call)
    return text.out, json.loads(call.out)


@test("explain --json has what explain has: the plan, or why there is none")
def _():
    with folder() as place:
        odd = f"{place}/{FORGERY}"
        os.mkdir(odd)
        os.symlink(FORGERY, place + "/out")
        text, found = explained("--set", "require=best-effort", "--read", place + "/out", "--env", "A=" + FORGERY)
        check_equal((found["ok"], found["refused"]), (True, None), "it would run", found)
        plan = found["plan"]
        check_in(f"isolation: {plan['level']}\n", text, "the level")
        rows = [line.split()[:3] for line in text.split("\n\n")[1].splitlines()[1:] if line[0] != " "]
        check_equal([[one["name"], one["mechanism"] or "-", one["grade"] or "-"] for one in plan["properties"]], rows, "properties")
        check_in(odd, [one["from"] or one["path"] for one in plan["files"] if one["granted"]], "grants, by their own names", found)
        listed = re.search(r"^FILES.*\n((?:  .*\n)*)", text, re.M)[1].splitlines()
        check_equal([f"{one['kind']:7} {one['path'].replace(FORGERY, SHOWN)}" for one in plan["files"]],
                    [re.split(" from | -> | with | \\(", line.strip())[0] for line in listed], "files")
        check_in("A=" + FORGERY, plan["environment"], "variables")
    for args, word in ((("--read", "/no/such/file"), "/no/such/file"), (("--set", "limits.pids=many"), "limits.pids"),
                       (("--cwd", "/no/such/folder"), "/no/such/folder"), (("--nonsense",), "--nonsense")):
        text, found = explained(*args)
        check_equal((text, found["ok"], found["plan"]), ("", False, None), "there is none", found)
        check_in(word, found["refused"], "why")


@test("each line about what is denied is one of vitro's own, too")
def _():
    need_proc()
    with folder() as place:
        odd = f"{place}/{FORGERY}"
        write(odd + "/secret", "")
        os.symlink(FORGERY, place + "/out")
        call = vitro("explain", "--deny", place + "/out/secret")
        check_own(call.out + call.err, "a deny", call)
        check_in(f"{place}/{SHOWN}/secret", call.out, "a deny", call)
        call = vitro("explain", "--write", place, "--deny", place + "/out/secret")
        check_own(call.out + call.err, "a refusal", call)


if __name__ == "__main__":
    main()
