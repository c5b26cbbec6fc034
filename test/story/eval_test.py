#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Stories about vitro eval: code in a language, in a cell."""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
from vitrotest import BINARY, check, check_equal, check_in, folder, main, run, skip, test, vitro, write


@test("eval: code is run, sealed, and says what it prints")
def _():
    call = vitro("eval", "print(6 * 7)")
    check_equal((call.code, call.out, call.err), (0, "42\n", ""), "what it prints", call)
    call = vitro("eval", "open('/etc/shadow')")
    check_equal(call.code, 1, "a file of the host's", call)
    check_in("/etc/shadow", call.err, "why", call)
    call = vitro("eval", "raise SystemExit(7)")
    check_equal(call.code, 7, "its own code", call)


@test("eval: code is read from standard input")
def _():
    call = vitro("eval", "--json", "-", stdin=b"import sys\nprint(len(sys.stdin.read()))\n")
    result = json.loads(call.out)
    check_equal((result["status"], result["stdout"]), ("ok", "0\n"), "nothing else is there to read", call)


@test("eval: flags are those of vitro run, and code may begin with a dash")
def _():
    call = vitro("eval", "--timeout", "300ms", "while True: pass")
    check_equal(call.code, 124, "its deadline", call)
    call = vitro("eval", "--lang", "python", "--", "-1")
    check_equal((call.code, call.out, call.err), (0, "-1\n", ""), "an expression", call)


@test("eval: what the caller has set up for Python is left out")
def _():
    call = vitro("eval", "--env", "PYTHONPATH=/nowhere", "import sys; print('/nowhere' in sys.path)")
    check_equal(call.out, "False\n", "the path", call)


@test("eval: the value of the last expression is printed, after what the code prints")
def _():
    for code, says in (("6 * 7", "42\n"), ("print('a')\n'b'", "a\n'b'\n"), ("x = 1", ""), ("None", ""), ("", ""),
                       ("import asyncio\nawait asyncio.sleep(0, [1])", "[1]\n"),
                       ("async def f():\n    return 5\nawait f()", "5\n"),
                       ("import sys\n[__name__, sys.argv, sys.modules['__main__'].__dict__ is globals()]",
                        "['__main__', ['-c'], True]\n"),
                       ("sorted(name for name in globals() if name[0] != '_')", "[]\n")):
        call = vitro("eval", code)
        check_equal((call.code, call.out, call.err), (0, says, ""), code, call)
    call = vitro("eval", "-", stdin=b"x = 6\nx * 7\n")
    check_equal((call.code, call.out), (0, "42\n"), "from standard input", call)


@test("eval: a traceback has the code's own frames, and no others")
def _():
    call = vitro("eval", "print('a')\ndef f(x):\n    return 1 / x\nf(0)")
    check_equal((call.code, call.out), (1, "a\n"), "an exception", call)
    check_equal(re.sub(r"\n +[~^]+(?=\n)", "", call.err),
                'Traceback (most recent call last):\n  File "<eval>", line 4, in <module>\n    f(0)\n'
                '  File "<eval>", line 3, in f\n    return 1 / x\nZeroDivisionError: division by zero\n', "traceback", call)
    call = vitro("eval", "import asyncio\nawait asyncio.sleep(0)\nraise KeyError('x')")
    check_equal((call.code, call.err), (1, 'Traceback (most recent call last):\n  File "<eval>", line 3, in <module>\n'
                                        "    raise KeyError('x')\nKeyError: 'x'\n"), "where code awaits", call)
    call = vitro("eval", "1 +")
    check(call.code == 1 and call.err.startswith('  File "<eval>", line 1\n    1 +\n'), call)


@test("eval: the marks in a traceback stand below what failed")
def _():
    call = vitro("eval", "import sys\n[sys.version_info >= (3, 11), 1 / 0]")
    if "~" not in call.err:
        skip("this Python marks nothing")
    check_in("    [sys.version_info >= (3, 11), 1 / 0]\n                                  ~~^~~\n", call.err, "marks", call)


@test("eval: what lies in the working directory can be imported, where the cell has it")
def _():
    with folder() as place:
        write(os.path.join(place, "beside.py"), "VALUE = 5\n")
        call = vitro("eval", "--read", place, "--cwd", place, "import beside\nbeside.VALUE")
        check_equal((call.code, call.out), (0, "5\n"), "a module", call)
        call = vitro("eval", "import beside", cwd=place)
        check_equal(call.code, 1, "the control: it is not granted", call)


@test("eval: the audit log has the code, and none of vitro's own text")
def _():
    with folder() as place:
        log = os.path.join(place, "log")
        vitro("eval", "--audit", log, "6 * 7")
        line = json.loads(open(log).read())
        check_equal(line["argv"][1:], ["-I", "-c", "python/evaluate.py", "6 * 7"], "its words", line)


def evaluate(code, *flags, lang="python"):
    call = vitro("eval", "--json", "--lang", lang, *flags, "--", code)
    return json.loads(call.out)


@test("eval: the result has the value, as JSON has it")
def _():
    for code, value in (("6 * 7", 42), ("None", None), ("x = 1", None), ("[1, (2.5, 'a'), {'k': [True, None]}]", [1, [2.5, "a"], {"k": [True, None]}]),
                        ("2 ** 200", 2 ** 200), ("'\\0\\u00e9\\U0001f600'", "\0\u00e9\U0001f600"),
                        ("import asyncio\nawait asyncio.sleep(0, 5)", 5)):
        result = evaluate(code)
        check_equal((result["status"], result["value"], result["error"]), ("ok", value, None), code, result)
    result = evaluate("print('a')\n6 * 7")
    check_equal((result["stdout"], result["value"]), ("a\n42\n", 42), "it is printed as without --json", result)


@test("eval: of what JSON has no word for, the result has the text")
def _():
    for code, value in (("{1, 2}", {"$repr": "{1, 2}"}), ("[1, b'x']", [1, {"$repr": "b'x'"}]), ("float('nan')", {"$repr": "nan"}),
                        ("{1: 2}", {"$repr": "{1: 2}"}), ("'\\ud800'", {"$repr": "'\\ud800'"}),
                        ("import collections\ncollections.OrderedDict(a=1)['a']", 1)):
        result = evaluate(code)
        check_equal((result["status"], result["value"]), ("ok", value), code, result)
    result = evaluate("x = []\nx.append(x)\nx")
    check_equal(result["status"], "ok", "what has itself in it", result)
    check_in("$repr", json.dumps(result["value"]), "at some depth", result)


@test("eval: the result has what the code raised")
def _():
    result = evaluate("print('a')\ndef f(x):\n    return 1 / x\nf(0)")
    check_equal((result["status"], result["exit_code"], result["value"]), ("error", 1, None), "how it ended", result)
    check_equal((result["error"]["type"], result["error"]["message"]), ("ZeroDivisionError", "division by zero"), "error", result)
    check_equal(result["error"]["traceback"], result["stderr"], "the traceback is what it printed", result)
    check_in('File "<eval>", line 3, in f\n', result["error"]["traceback"], "its frames", result)
    for code, kind in (("1 +", "SyntaxError"), ("class Odd(Exception):\n    def __str__(self):\n        1 / 0\nraise Odd", "Odd"),
                       ("import asyncio\nawait asyncio.sleep(0)\n{}['x']", "KeyError")):
        check_equal(evaluate(code)["error"]["type"], kind, code)


@test("eval: what ends otherwise has no value, whatever the code says of itself")
def _():
    forged = "import os\nos.write(4, b'{\"value\": 5}')\n"
    check_equal(evaluate(forged + "os._exit(0)")["value"], 5, "the control: it is the code's own to say")
    for code, status, kind in (("raise SystemExit(7)", "error", "ExitCode"), ("os._exit(1)", "error", "ExitCode"),
                               ("os.kill(os.getpid(), 9)", "crashed", "Crashed"), ("while True: pass", "timeout", "Timeout")):
        result = evaluate(forged + code, "--timeout", "1s")
        check_equal((result["status"], result["error"]["type"], result["value"]), (status, kind, None), code, result)
    for text in ("{", "[1]", "null", "{\"error\": 5}", "x" * 100000):
        result = evaluate(f"import os\nos.write(4, {text.encode()!r})\nos._exit(0)")
        check_equal((result["status"], result["value"], result["error"]), ("ok", None, None), text[:20], result)
    result = evaluate("import os\nif os.fork() == 0:\n    os.closerange(0, 3)\nelse:\n    os.wait()\n6 * 7")
    check_equal(result["value"], 42, "a child that comes to the same end", result)


@test("eval: nothing of the code's own is written to in place of the pipe")
def _():
    result = evaluate("import os\nos.close(4)\nfile = open('/tmp/x', 'w+')\n"
                      "os.dup2(file.fileno(), 4)\nimport atexit\n"
                      "atexit.register(lambda: print(os.path.getsize('/tmp/x')))\n5")
    check_equal((result["status"], result["stdout"], result["value"]), ("ok", "5\n0\n", None), "its file is empty", result)


@test("eval: a value that is too large is a result of its own")
def _():
    result = evaluate("'x' * (2 << 20)", "--set", "limits.result_mb=1")
    check_equal((result["status"], result["error"]["type"], result["value"]), ("result_limit", "ResultLimit", None), "it", result)
    check_in("limits.result_mb (1 MB)", result["error"]["message"], "why", result)
    result = evaluate("'x' * (2 << 20)")
    check_equal((result["status"], len(result["value"])), ("ok", 2 << 20), "the control", result)


@test("eval: a process that the code starts has no hold on the pipe")
def _():
    result = evaluate("import subprocess\nsubprocess.run(['/bin/sh', '-c', 'ls /proc/self/fd'], close_fds=False, stdout=-1).stdout")
    check("'4'" not in repr(result["value"]["$repr"].split("\\n")), result)


@test("eval: node's results have values and errors too")
def _():
    if not shutil.which("node"):
        skip("there is no node here")
    for code, value in (("return 6 * 7", 42), ("1", None), ("return { a: [1, undefined, null], b: undefined, c: new Date(0) }",
                                                            {"a": [1, None, None], "c": "1970-01-01T00:00:00.000Z"}),
                        ("return [10n, new Set([1]), NaN]", [{"$repr": "10n"}, {"$repr": "Set(1) { 1 }"}, {"$repr": "NaN"}]),
                        ("const a = []; a.push(a); return a.length", 1),
                        ("return { toJSON() { throw 5 } }", {"$repr": "{ toJSON: [Function: toJSON] }"})):
        result = evaluate(code, lang="node")
        check_equal((result["status"], result["value"], result["error"]), ("ok", value, None), code, result)
    check_equal(evaluate("return '\\ud800'", lang="node")["value"]["$repr"].lower(), "'\\ud800'", "half a pair")
    result = evaluate("let a = 1;\nthrow new RangeError('far')", lang="node")
    check_equal((result["status"], result["error"]["type"], result["error"]["message"]), ("error", "RangeError", "far"), "it", result)
    check_in("<eval>:2:7", result["error"]["traceback"], "its stack", result)
    result = evaluate("throw 'text'", lang="node")
    check_equal((result["error"]["type"], result["error"]["message"]), ("Thrown", "text"), "what is no error", result)


@test("eval: a file's name in place of code is told what to do")
def _():
    with folder() as place:
        write(os.path.join(place, "job.py"), "print(6 * 7)\n")
        call = vitro("eval", "job.py", cwd=place)
        check_equal(call.code, 1, "it is code", call)
        check_in("'job.py' was run as code; to run what is in that file: vitro eval - < job.py", call.err, "hint", call)
        check_equal(vitro("eval", "-", stdin=b"print(6 * 7)\n", cwd=place).out, "42\n", "as it says")
        if shutil.which("node"):
            call = vitro("eval", "--lang", "node", "job.py", cwd=place)
            check_in("vitro eval --lang node - < job.py", call.err, "in its language", call)


@test("eval: node")
def _():
    if not shutil.which("node"):
        skip("there is no node here")
    for code, out in (("console.log(6 * 7)", "42\n"), ("return [1, await 2]", "[ 1, 2 ]\n"), ("1 + 1", ""),
                      ("return (await import('node:path')).sep", "/\n"), ("return this === undefined", "true\n")):
        call = vitro("eval", "--lang", "node", "--", code)
        check_equal((call.code, call.out), (0, out), "what it prints", call)
    call = vitro("eval", "--lang", "node", "-", stdin="return -1 // a comment")
    check_equal((call.code, call.out), (0, "-1\n"), "code that is read", call)


@test("eval: code for node that has no value and does nothing is told of `return`")
def _():
    if not shutil.which("node"):
        skip("there is no node here")
    with folder() as place:
        for args, noted in ((["6 * 7"], True), (["--json", "6 * 7"], True), (["console.log(6 * 7)"], False),
                            (["console.error(6 * 7)"], False), (["return undefined"], False), (["--write", place, "6 * 7"], False),
                            (["--timeout", "0.1s", "for (;;);"], False)):
            call = vitro("eval", "--lang", "node", *args)
            check_equal("vitro: note: the code has no `return`, and so no value" in call.err, noted, f"{args}", call)
            check("`return`" not in call.out, call)
        call = vitro("eval", "--lang", "node", "-", stdin="6 * 7")
        check_equal((call.code, call.err), (0, ""), "code that is read in the cell alone", call)
    check_equal(vitro("eval", "x = 6 * 7").err, "", "Python needs no word for it")


@test("eval: what is wrong with code for node is said, with its line, and ends it with 1")
def _():
    if not shutil.which("node"):
        skip("there is no node here")
    for code, says in (("let a = 1;\nthrow new RangeError('far')", "RangeError: far\n    at <eval>:2:7"),
                       ("let a = ;", "SyntaxError"), ("}); (async () => {", "SyntaxError"), ("throw null", "Uncaught null"),
                       ("await new Promise(() => {})", "never happen")):
        call = vitro("eval", "--lang", "node", "--", code)
        check_equal(call.code, 1, "how it ends", call)
        check_in(says, call.err, "what it says", call)


@test("doctor: it tells which node would hold functions ready, and how")
def _():
    found = json.loads(vitro("doctor", "--json").out)["findings"]
    one = next(one for one in found if one["name"] == "Node pools")
    check_equal(one["needed"], False, "it is no matter for cells")
    if not shutil.which("node"):
        check_in("node", one["why"], "what is missing")
    elif "built without Node" not in one["why"]:
        check(one["why"].endswith(", forked for each call") or ", started anew for each call: " in one["why"], one)
        with folder() as place:
            node = os.path.join(place, "node")
            for said, why in (("forked", f"{node}, forked for each call"), ("anew: it is old", f"{node}, started anew for each call: it is old"),
                              ("nonsense", "does not say whether it can be forked")):
                write(node, f"#!/bin/sh\nprintf '{said}'\n", 0o755)
                env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}
                found = json.loads(vitro("doctor", "--json", env=env).out)["findings"]
                check_in(why, next(one for one in found if one["name"] == "Node pools")["why"], said)


@test("doctor: it tells which python3 would hold functions ready, or why none does")
def _():
    def look(**env):
        found = json.loads(vitro("doctor", "--json", env={**os.environ, **env}).out)["findings"]
        return next(one for one in found if one["name"] == "Python pools")

    found = look()
    check_equal(found["needed"], False, "it is no matter for cells")
    if "built without Python" not in found["why"]:
        check_equal((found["state"], os.path.basename(found["why"])[:6]), ("works", "python"), "the interpreter", found)
        found = look(PATH="/nowhere")
        check_equal((found["state"], found["why"]), ("not", "'python3' is not on PATH"), "without one", found)


@test("eval: a vitro that came with one language says which")
def _():
    node = os.path.join(os.path.dirname(BINARY), "node")
    if not os.path.isdir(node):
        skip("this vitro was built without Node")
    with folder() as top:
        os.makedirs(f"{top}/libexec/vitro")
        shutil.copytree(node, f"{top}/libexec/vitro/node")
        os.mkdir(f"{top}/bin")
        shutil.copy(BINARY, f"{top}/bin/vitro")
        call = run([f"{top}/bin/vitro", "eval", "1"])
        check_equal((call.code, call.err), (125, "vitro: this vitro is packaged for node only: add --lang node; `make install` "
                                                 "brings all languages\n"), "of the other", call)


@test("eval: mistakes say what to do")
def _():
    for args, says in (((), "no code given: vitro eval [FLAGS] CODE | -"),
                       (("print(1)", "2"), "code is one word, so quote it"),
                       (("print(1)", "--timeout", "1s"), "flags come before the code"),
                       (("--lang", "ruby", "1"), "there is no language 'ruby'; there are python and node"),
                       (("--lang", "js", "1"), "there is no language 'js'; did you mean node?"),
                       (("--lang", "JavaScript", "1"), "there is no language 'JavaScript'; did you mean node?"),
                       (("--lang", "py", "1"), "there is no language 'py'; did you mean python?"),
                       (("--lang", "Python", "1"), "there is no language 'Python'; did you mean python?"),
                       (("--lang", "s", "1"), "there is no language 's'; there are python and node"),
                       (("--lang", "", "1"), "there is no language ''; there are python and node")):
        call = vitro("eval", *args)
        check_equal(call.code, 125, "vitro's own error", call)
        check_in(says, call.err, "what it says", call)
    check("usage: vitro eval" in vitro("eval", "--help").out, "its help")


if __name__ == "__main__":
    main()
