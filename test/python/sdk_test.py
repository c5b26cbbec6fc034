#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: functions, code and commands in cells, and all that can go wrong with them."""

import asyncio
import builtins
import concurrent.futures
import datetime
import decimal
import functools
import gc
import json
import logging
import math
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from pythons import new_mark, processes_with
from vitrotest import (BINARY, check, check_equal, check_in, folder, is_bare, isolation, need_held, proc, run, skip, test,
                       vitro_json, wait_until, write)

import vitro

BEST = {"require": "best-effort"}


@functools.lru_cache(maxsize=None)
def box():
    """One sandbox for most tests, under a policy that works wherever the tests do."""
    return vitro.Sandbox(BEST)


def raises(kind, function, *args, **kwargs):
    """What the function raises, which is of that very kind."""
    try:
        value = function(*args, **kwargs)
    except kind as error:
        check_equal(type(error), kind, "what is raised")
        return error
    raise AssertionError(f"nothing was raised, and the value is {value!r}")


# ---- what it is for -----------------------------------------------------------------------------------------------


@test("call: functions of the program's own, with arguments and values of all plain kinds")
def _():
    check_equal(box().call(toolbox.add, 2, 3), 5, "a sum")
    check_equal(box().call(toolbox.add_later, 2, b=3), 5, "a coroutine function")
    check_equal(box().call(functools.partial(toolbox.add, 2), 3), 5, "a partial")
    check_equal(box().call(math.factorial, 30), math.factorial(30), "a large number")
    values = [None, True, -1, 2**200, 1.5, "é\0\ud800", b"\0\xff", [1, [2]], (1, (2,)), {1, 2}, frozenset((3,)),
              {1: "a", (2, 3): None, "x": {}}, {"$bytes": 1}, datetime.datetime(2026, 1, 2, 3, 4, 5, 6, datetime.timezone.utc),
              datetime.date(2026, 1, 2), datetime.timedelta(1, 2, 3), decimal.Decimal("1.20"),
              uuid.UUID(int=5), complex(1, -2), float("inf"), bytearray(b"abc")]
    args, kwargs = box().call(toolbox.echo, *values, key=values)
    check_equal((list(args), kwargs), (values, {"key": values}), "values")
    check_equal([*map(type, args)], [*map(type, values)], "types")
    check(math.isnan(box().call(toolbox.add, float("nan"), 1)), "not a number")


@test("call: functions of modules beside a script in /tmp, of which a cell has its own, and in folders below it")
def _():
    if is_bare():
        skip("cells without namespaces have every folder at its own place")
    name = f"beside_{uuid.uuid4().hex}"
    with folder(parent="/tmp") as below:
        for place in ("/tmp", below):
            files = [os.path.join(place, f"{name}.py"), os.path.join(place, f"{name}_main.py")]
            try:
                write(files[0], "def double(x):\n    return x * 2\n")
                write(files[1], f"import sys\nsys.path.append({str(pythons.SDK)!r})\nimport vitro\n"
                      f"from {name} import double\nwith vitro.Sandbox({BEST!r}) as box:\n    print(box.call(double, 21))\n")
                done = run([sys.executable, files[1]])
                check_equal(done.out, "42\n", f"a script in {place}", done)
            finally:
                for file in files:
                    os.remove(file)


@test("eval: the last expression is the value, await works, and a failure shows its line")
def _():
    check_equal(box().eval("x = 20\nx + 1"), 21, "a value")
    check_equal(box().eval("x = 1"), None, "no value")
    check_equal(box().eval("import asyncio\nawait asyncio.sleep(0, 'slept')"), "slept", "await")
    error = raises(vitro.ToolError, box().eval, "def f():\n    return 1 / 0\n\nf()")
    check_equal((error.type, str(error), error.message), ("ZeroDivisionError", "ZeroDivisionError: division by zero", "division by zero"), "it")
    check_in("line 2, in f\n    return 1 / 0", error.traceback, "the traceback")
    check("harness" not in error.traceback, error.traceback)
    error = raises(vitro.ToolError, box().eval, "x = = 1")
    check_equal(error.type, "SyntaxError", "what is no code")


@test("run: a command's result, and what it raises")
def _():
    result = box().run(["cat"], stdin="hé")
    check_equal((result.ok, result.exit_code, result.stdout, result.stderr), (True, 0, "hé", ""), "the result")
    error = raises(vitro.ToolError, box().run, ["sh", "-c", "echo no >&2; exit 3"])
    check_equal((error.type, error.result.exit_code, error.result.stderr), ("ExitCode", 3, "no\n"), "a failure")
    check_equal((str(error), error.message), ("exited with code 3: no", "exited with code 3"), "in words")
    check_equal(box().run(["false"], result=True).status, "error", "status")
    check_equal(raises(vitro.Refused, box().run, ["vitro-has-no-such"]).result.status, "refused", "no such program")


@test("a result has the one shape")
def _():
    want = vitro_json("run", "--", "true", leaks=False)
    want.pop("call")
    result = box().run(["true"])
    check_equal(sorted(json.loads(result.to_json())), sorted(want), "members")
    check_equal(sorted(result.to_dict()["usage"]), sorted(want["usage"]), "usage")
    failed = box().eval("1/0", result=True).to_dict()
    check_equal(sorted(failed["error"]), ["message", "traceback", "type"], "error")
    check_equal((failed["ok"], failed["status"], failed["value"]), (False, "error", None), "a failure")
    check_equal(json.loads(box().eval("(1, {2: b'x'}, float('nan'))", result=True).to_json())["value"],
                [1, {"2": "x"}, None], "a value as JSON")
    check(result.isolation and result.isolation["level"] in ("strict", "full", "partial"), result.isolation)


@test("result: what a cell chose as its value cannot make a line of a log fail")
def _():
    result = box().eval("n = 1 << 20_000\n[n, -n, {n: 1}, {(n,): 2}, 7]", result=True)
    check_equal(result.status, "ok", repr(result.error))
    first, second, third, fourth, last = json.loads(result.to_json())["value"]
    check_equal((int(first, 16), int(second, 16), last), (1 << 20_000, -(1 << 20_000), 7), "integers")
    if hasattr(sys, "set_int_max_str_digits"):
        check_in("cannot be shown", str([*third, *fourth]), "keys")
        check_in("value=<list that cannot be shown: ValueError>", repr(result), "the result")
    check_in("value=[1, 'a']", repr(box().eval("[1, 'a']", result=True)), "another")
    deep = box().eval("x = []\nfor _ in range(250): x = [x]\nx", result=True)
    check_equal(deep.status, "no_result", "nested deep")
    deep = box().eval("x = []\nfor _ in range(190): x = [x]\nx", result=True)
    check_equal((deep.status, deep.to_json() != "", repr(deep) != ""), ("ok", True, True), "not so deep")


@test("eval: files that were not asked for make the result none")
def _():
    forge = ("import sys\ncwd = sys.modules['_vitro_runtime.cwd']\n"
             "cwd.collect = lambda *_: {%r: b'x'}\n1")
    for name, status in (("out/a", "ok"), ("b", "no_result"), ("out", "no_result")):
        result = box().eval(forge % name, collect=["out/*"], result=True)
        check_equal(result.status, status, f"{name}: {result.error}")


@test("call: a function that was called before gets plain arguments of every kind and size, and gives what it should")
def _():
    for size in (0, 10, 8_100, 8_200, 32_700, 32_800, 70_000, 5 << 20):
        data, text = os.urandom(size), "ü" * (size % 70_001)
        for _ in range(2):
            check(box().call(toolbox.add, data, b"x") == data + b"x", f"{size} bytes")
            check(box().call(toolbox.add, data, data) == data + data, f"{size} bytes twice")
            check(box().call(toolbox.add, text, "$") == text + "$", f"{len(text)} characters")
    for one, other in ((True, 1), (1 << 70, -1), (-1 << 60, 0.5), (float("inf"), 1), ("\\\ud800", "\0")):
        check_equal(box().call(toolbox.add, one, other), one + other, "the value")
    for _ in range(2):
        error = raises(vitro.ToolError, box().call, toolbox.add, 1, None)
        check_in("TypeError", str(error), "what it raised")
        check_in("toolbox.py", error.result.error.traceback, "where")
        check(not {"harness.py", "talk.py"} & set(error.result.error.traceback.replace('"', "/").split("/")), "no frames of vitro's")


@test("eval: tools run here, as ordinary and awaited calls, many at once, and raise inside")
def _():
    here, seen = os.getpid(), []

    def tool(*args, **kwargs):
        seen.append((os.getpid(), args, kwargs))
        return [args, kwargs]

    def broken(_):
        raise KeyError("gone")

    async def later(x):
        await asyncio.sleep(0.001)
        return x * 2

    tools = {"tool": tool, "broken": broken, "later": later, "odd name": tool}
    check_equal(box().eval("tool(1, b'x', key=(2,))", tools=tools), [(1, b"x"), {"key": (2,)}], "a call")
    check_equal(seen, [(here, (1, b"x"), {"key": (2,)})], "where it ran")
    check_equal(box().eval("tools['odd name']()", tools=tools), [(), {}], "a name that is none")
    check_equal(box().eval("await later(4)", tools=tools), 8, "an async tool")
    check_equal(box().eval("import asyncio\nawait asyncio.gather(*[tool(i) for i in range(50)])", tools=tools),
                [[(i,), {}] for i in range(50)], "many at once")
    check_equal(box().eval("try:\n    broken(1)\nexcept KeyError as e:\n    said = repr(e)\nsaid", tools=tools),
                "KeyError('gone')", "an exception")
    error = raises(vitro.ToolError, box().eval, "tool(object())", tools=tools)
    check_in("object", str(error), "what cannot be sent")
    error = raises(vitro.ToolError, box().eval, "tool()", tools={"tool": object})
    check_in("object", str(error), "what cannot come back")


@test("eval: one use of a tool after the other, between lines that are logged, uses of threads, and what is large or not plain")
def _():
    given = [1, "a", None, True, 2.5, "\\ü$", 1 << 70, [1, {"a": "b"}], (1,), b"b" * 70_000, "c" * 70_000, float("inf"), {3: 4}]
    code = ("import logging, threading\nsaid, failed = [], 0\nfor value in given():\n    said.append(same(value))\n"
            "    logging.warning('between')\n    said.append(same(value=value)['value'])\n"
            "    try:\n        wrong(1)\n    except KeyError:\n        failed += 1\n"
            "many = [threading.Thread(target=lambda: [said.append(same(n)) for n in range(20)]) for _ in range(4)]\n"
            "[one.start() for one in many], [one.join() for one in many]\n(said, failed)")
    tools = {"given": lambda: given, "same": lambda *args, **kwargs: kwargs or args[0], "wrong": {}.pop}
    result = box().eval(code, tools=tools, result=True)
    said, failed = result.value
    check_equal(said[:2 * len(given)], [value for value in given for _ in range(2)], "one after the other")
    check_equal(sorted(said[2 * len(given):]), sorted([*range(20)] * 4), "by threads")
    check_equal((failed, len(result.logs)), (len(given), len(given)), "exceptions, lines")


@test("eval: a tool may use the sandbox itself")
def _():
    def deeper(n):
        return box().eval(f"deeper({n - 1}) + 1", tools={"deeper": deeper}) if n else box().call(toolbox.add, 0, 0)

    check_equal(deeper(4), 4, "four deep")


@test("eval: files, collected files and standard input")
def _():
    result = box().eval("open('out/b', 'wb').write(open('in/a', 'rb').read() * 2) if not __import__('os').mkdir('out') "
                        "else 0\ninput()", files={"in/a": b"\0x", "t": "é"}, collect=["out/**"], stdin="a line\n", result=True)
    check_equal((result.value, result.files), ("a line", {"out/b": b"\0x\0x"}), "what came back", result)
    for name in ("/etc/x", "../x", "a/../../x", ""):
        check_equal(box().eval("1", files={name: ""}, result=True).status, "refused", name)


@test("the caller's folders are there for its functions, and not for code")
def _():
    error = raises(vitro.ToolError, box().eval, f"open({toolbox.__file__!r})")  # by Landlock alone, what is closed is there
    check(error.type in ("FileNotFoundError", "PermissionError"), f"for code: {error}")
    check_equal(box().call(toolbox.read, toolbox.__file__), pathlib.Path(toolbox.__file__).read_text(), "for functions")
    with folder() as place:
        write(os.path.join(place, "late_module.py"), "def f():\n    return __file__\n")
        sys.path.append(place)
        try:
            import late_module
            check_equal(box().call(late_module.f), late_module.__file__, "a folder that is new on sys.path")
        finally:
            sys.path.remove(place)


@test("a function of a script, with and without a guard, and of -c and stdin")
def _():
    script = ("import os, sys\nsys.path.insert(0, {!r})\nimport vitro\n"
              "print('top level of', os.getpid())\ndef double(x): return helper(x) * 2\ndef helper(x): return x\n"
              "{}s = vitro.Sandbox({!r}); print(s.call(double, 21)); s.close()\n")
    with folder() as place:
        for guard in ("", "if __name__ == '__main__': "):
            path = write(os.path.join(place, "script.py"), script.format(str(pythons.SDK), guard, BEST))
            done = run([sys.executable, path])
            check_equal(done.code, 0, "exit code", done)
            check_equal([line.split()[0] for line in done.out.splitlines()], ["top", "42"], "what it says", done)
        text = script.format(str(pythons.SDK), "", BEST)
        done = run([sys.executable, "-c", text], cwd=place)
        check_equal(done.out.splitlines()[-1:], ["42"], "-c", done)
        done = run([sys.executable, "-"], stdin=text, cwd=place)
        check_equal(done.out.splitlines()[-1:], ["42"], "stdin", done)


# ---- results ------------------------------------------------------------------------------------------------------


@test("results of 70 kB, 1 MB and more come back; one of 1 GB is refused by its limit")
def _():
    for size in (70_000, 1 << 20, 20 << 20):
        value = box().call(toolbox.produce, size)
        check(type(value) is bytes and value == b"x" * size, f"{size} bytes")
        check(box().eval(f"'y' * {size}") == "y" * size, f"{size} characters")
    error = raises(vitro.ResultLimit, box().eval, "bytes(1 << 30)", policy={**BEST, "limits": {"memory_mb": 2048}})
    check_in("limits.result_mb", str(error), "the message")
    check_equal(error.result.status, "result_limit", "status")


@test("large arguments go over, too")
def _():
    data = os.urandom(20 << 20)
    check(box().call(toolbox.echo, data)[0][0] == data, "20 MB there and back")
    check_equal(box().eval("import sys\nlen(open('f','rb').read()) + len(sys.stdin.buffer.read())",
                           files={"f": data}, stdin=data), 40 << 20, "files and stdin")


@test("what is printed is output, whatever it looks like")
def _():
    text = '{"is":"done","call":1,"status":"ok"} \x10\0\0\0'
    result = box().call(toolbox.speak, text, result=True)
    check_equal((result.status, result.value), ("ok", "value"), "the value")
    check_equal((result.stdout, result.stderr), (f"{text}\n{text}\n", text + "\n"), "output")
    result = box().eval("print('x' * 3_000_000)", result=True)
    check(result.ok and result.dropped["stdout"] > 1_500_000 and len(result.stdout_bytes) < 1_200_000, result.dropped)


@test("output and logs come as they are made, as text, and an exception of a call-back ends the call")
def _():
    heard, times = [], []

    def hear(stream, text):
        heard.append((stream, text))
        times.append(time.monotonic())

    result = box().eval("import time, sys\nprint('é', flush=True)\ntime.sleep(0.3)\nprint('b', file=sys.stderr, flush=True)",
                        on_output=hear, result=True)
    check_equal((heard, result.stdout), ([("stdout", "é\n"), ("stderr", "b\n")], "é\n"), "output")
    check(times[1] - times[0] > 0.2, "it comes when it is printed")
    lines = []
    result = box().eval("import logging\nlogging.warning('w')\nlogging.getLogger('x').error('e')",
                        on_log=lambda level, text: lines.append((level, text)), result=True)
    check_equal(lines, [("warning", "w"), ("error", "x: e")], "logs")
    check_equal([tuple(log) for log in result.logs], lines, "logs of the result")
    begun = time.monotonic()
    raises(ZeroDivisionError, box().eval, "import time\nprint(1, flush=True)\ntime.sleep(30)", on_output=lambda *_: 1 / 0)
    check(time.monotonic() - begun < 10, "at once")
    check_equal(len(box().call(toolbox.log_lines, 10_000, result=True).logs), 10_000, "many lines")


@test("what tools log is logged here, under vitro.tool")
def _():
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("vitro.tool")
    logger.addHandler(handler)
    try:
        box().eval("import logging\nlogging.error('bad')", call_id="mine")
    finally:
        logger.removeHandler(handler)
    check_equal([(r.levelname, r.getMessage()) for r in records], [("ERROR", "mine: bad")], "records")


@test("an object whose unpickling would run code never does here")
def _():
    with folder(writable=True) as place:
        path = os.path.join(place, "ran")
        error = raises(vitro.ToolError, box().call, toolbox.make_evil, path)
        check_in("toolbox:Evil", str(error), "which class")
        check_in("trust_results", str(error), "what to do")
        # A cell that writes frames of its own: the value is a pickle, though nobody asked for one.
        forged = ("import os, pickle, struct\n"
                  f"class E:\n    def __reduce__(self): return open, ({path!r}, 'w')\n"
                  "p = pickle.dumps(E()); j = b'{\"pickle\":0,\"oob\":0}'\n"
                  "m = struct.pack('<I', len(j)) + j + struct.pack('<IQ', 1, len(p)) + p\n"
                  "os.write(3, struct.pack('<IIIIQQ', 5, 0, 0, 0, 0, len(m)) + m)\n"
                  "import time; time.sleep(20)")
        value = box().eval(forged, result=True)
        check_equal((value.status, value.value), ("ok", None), "a forged result")
        for text in (b"{", b"[1]", b'{"value":{"$object":{"type":"os:system","state":{}}}}', b'{"value":{"$what":1}}'):
            forged = (f"import os, struct\nj = {text!r}\nm = struct.pack('<I', len(j)) + j + struct.pack('<I', 0)\n"
                      "os.write(3, struct.pack('<IIIIQQ', 5, 0, 0, 0, 0, len(m)) + m)\nimport time; time.sleep(20)")
            check_equal(box().eval(forged, result=True).status, "no_result", text.decode())
        check(not os.path.exists(path), "it ran in this process")
        box().call(toolbox.make_evil, path, trust_results=True).close()
        check(os.path.exists(path), "the control: with trust it does")


@test("classes come back where they are named, and pickles where they are trusted")
def _():
    error = raises(vitro.ToolError, box().call, toolbox.make_point, 1, 2)
    check_in("result_types", str(error), "what to do")
    point = box().call(toolbox.make_point, 1, 2, result_types=[toolbox.Point])
    check_equal((type(point), point), (toolbox.Point, toolbox.Point(1, 2)), "a dataclass")
    check_equal(box().call(toolbox.make_point, 1, 2, trust_results=True), toolbox.Point(1, 2), "a pickle")


@test("mistakes of the caller are told before anything runs, by the name of the argument")
def _():
    for kind, said, given in (
            (TypeError, "tools is a dict of functions", {"tools": [len]}),
            (TypeError, "tools['x'] is a function, not int", {"tools": {"x": 3}}),
            (TypeError, "a name is a text", {"tools": {3: len}}),
            (TypeError, "files is a dict of contents", {"files": ["a"]}),
            (TypeError, "files['a'] is text or bytes, not int", {"files": {"a": 3}}),
            (ValueError, "files: '/etc/passwd' is no name below", {"files": {"/etc/passwd": ""}}),
            (ValueError, "files: 'a/../b' is no name below", {"files": {"a/../b": ""}}),
            (TypeError, "stdin is text or bytes, not int", {"stdin": 3}),
            (TypeError, "result_types is a list of classes", {"result_types": toolbox.Point}),
            (TypeError, "threading:Thread is no dataclass", {"result_types": [threading.Thread]}),
            (TypeError, "result_types is a list of classes, not int (5)", {"result_types": 5}),
            (TypeError, "collect[0] is a text, not int (5)", {"collect": [5]}),
            (TypeError, "collect is a list of patterns, not int (5)", {"collect": 5}),
            (TypeError, "collect is a list of patterns, not a text", {"collect": "out/**"}),
            (TypeError, "timeout is a number of seconds, not 'x'", {"timeout": "x"}),
            (TypeError, "call_id is a text, not int (5)", {"call_id": 5}),
            (TypeError, "trust_results is True or False, not str ('no')", {"trust_results": "no"}),
            (TypeError, "on_output is a function", {"on_output": 3}),
            (TypeError, "on_log is a function, and no coroutine function", {"on_log": toolbox.add_later})):
        check_in(said, str(raises(kind, box().eval, "1", **given)), "eval")
    error = raises(vitro.Refused, box().eval, "1", policy="no-such-policy")
    check(str(error).startswith("policy: there is no file"), str(error))
    result = box().eval("1", policy={**BEST, "limits": {"memory_mb": 1}}, result=True)
    # Where memory is only sampled, so short a call may be over before.
    check(result.ok or "memory" in result.error.message, f"too little memory to begin with: {result.error}")
    check_in("ready_min, 5, is more than ready_max, 2", str(raises(ValueError, vitro.Sandbox, ready_min=5, ready_max=2)), "cells")
    check_in("make one there", str(raises(TypeError, pickle.dumps, box())), "a sandbox for another process")
    check_in("argv[1] is a text, not int (1)", str(raises(TypeError, box().run, ["sleep", 1])), "run")
    check_in("argv is a list of words, the program's first, not int (5)", str(raises(TypeError, box().run, 5)), "run")


@test("mistakes in the options of a sandbox, a tool host or an executor are told when it is made")
def _():
    async_sandbox = vitro.AsyncSandbox(BEST)
    for said, given in (("python is a path, not int (5)", {"python": 5}), ("socket is a path, not int (5)", {"socket": 5}),
                        ("preload is a list of modules' names, not int (5)", {"preload": 5}),
                        ("preload[0] is a text, not int (5)", {"preload": [5]}), ("policy is a dict", {"policy": 5}),
                        ("unexpected keyword argument 'nonsense'", {"nonsense": 5})):
        for kind in (vitro.Sandbox, vitro.AsyncSandbox, vitro.Executor, vitro.ToolHost, vitro.AsyncToolHost):
            check_in(said, str(raises(TypeError, kind, **given)), kind.__name__)
    for said, given in (("max_workers is a whole number, not str ('x')", {"max_workers": "x"}),
                        ("max_tasks_per_child is a whole number", {"max_tasks_per_child": 1.5}),
                        ("initargs is a list of arguments, not int (5)", {"initargs": 5}),
                        ("timeout is a number of seconds", {"timeout": "x"}),
                        ("error_types is a list of classes, not int (5)", {"error_types": 5}),
                        ("result_types is a list of classes, not int (5)", {"result_types": 5})):
        check_in(said, str(raises(TypeError, vitro.Executor, **given)), "an executor")
    for kind, given, said in ((vitro.ToolHost, {"sandbox": 5}, "sandbox is a vitro.Sandbox, not int (5)"),
                              (vitro.ToolHost, {"sandbox": async_sandbox}, "sandbox is a vitro.Sandbox, not AsyncSandbox"),
                              (vitro.AsyncToolHost, {"sandbox": box()}, "sandbox is a vitro.AsyncSandbox, not Sandbox"),
                              (vitro.ToolHost, {"timeout": "x"}, "timeout is a number of seconds, not 'x'")):
        check_in(said, str(raises(TypeError, kind, **given)), "a tool host")


@test("what failed in a cell shows the traceback there, with nothing that leads a terminal astray")
def _():
    error = raises(vitro.ToolError, box().eval, "def f(x):\n    return {}[x]\nf('\\x1b[2Jk')")
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    check_in("line 2, in f\n    return {}[x]\n", shown, "the line in the cell")
    check("\x1b" not in shown, repr(shown))


# ---- how calls end ------------------------------------------------------------------------------------------------


@test("every BaseException is told by its name")
def _():
    kinds = [kind for kind in vars(builtins).values() if isinstance(kind, type) and issubclass(kind, BaseException)]
    check(len(kinds) > 60, len(kinds))
    names = sorted({kind.__name__ for kind in kinds} - {"UnicodeDecodeError", "UnicodeEncodeError", "UnicodeTranslateError",
                                                        "BaseExceptionGroup", "ExceptionGroup"})
    for name in names:
        error = raises(vitro.ToolError, box().eval, f"raise {name}('why')")
        check_equal(error.type, name, "type")
        check_in("why", str(error), name)
    error = raises(vitro.ToolError, box().eval, "class Own(BaseException): pass\nraise Own('x')")
    check_equal((error.type, str(error)), ("Own", "Own: x"), "a class of the code's own")
    check(not isinstance(raises(vitro.ToolError, box().call, toolbox.fail, "m"), ValueError), "never the class itself")


@test("one cause, one status: exits, signals and crashes")
def _():
    error = raises(vitro.ToolError, box().call, toolbox.leave)
    check_equal((error.type, error.message), ("SystemExit", "3"), "sys.exit")
    for code in (0, 3):
        result = box().call(toolbox.leave_at_once, code, result=True)
        check_equal((result.status, result.exit_code), ("no_result" if code == 0 else result.status, code), "os._exit")
        check(result.status in ("no_result", "error"), result)
    error = raises(vitro.Crashed, box().call, toolbox.read_null)
    check_equal((error.result.status, error.result.signal), ("crashed", signal.SIGSEGV), "a segfault")
    error = raises(vitro.Crashed, box().eval, "import os\nos.abort()")
    check_equal(error.result.signal, signal.SIGABRT, "abort")


@test("a call that kills itself", holds={"processes": ("pidns", "landlock-scope")})
def _():
    error = raises(vitro.Crashed, box().call, toolbox.kill_self, 9)
    check_equal(error.result.signal, 9, "the signal")


@test("deadlines: the policy's, shorter ones and longer ones")
def _():
    begun = time.monotonic()
    error = raises(vitro.Timeout, box().call, toolbox.sleep, 30, timeout=0.3)
    check(isinstance(error, TimeoutError) and error.result.status == "timeout", repr(error))
    check(0.25 < time.monotonic() - begun < 8, time.monotonic() - begun)
    raises(vitro.Timeout, box().call, toolbox.spin, timeout=0.2)
    short = {**BEST, "limits": {"wall_ms": 300}}
    raises(vitro.Timeout, box().call, toolbox.sleep, 30, policy=short)
    check_equal(box().call(toolbox.sleep, 0.6, policy=short, timeout=20), 0.6, "longer than the policy's")
    for wrong in (0, -1, float("nan"), float("inf"), "5", True):
        try:
            box().eval("1", timeout=wrong)
            raise AssertionError(f"timeout={wrong} was taken")
        except (ValueError, TypeError):
            pass


@test("memory and CPU time", holds={"memory": "*"})
def _():
    error = raises(vitro.MemoryLimit, box().call, toolbox.fill_memory,
                   policy={**BEST, "limits": {"memory_mb": 100, "wall_ms": 60000}})
    check(not isinstance(error, MemoryError), "this program has memory")
    raises(vitro.CpuLimit, box().call, toolbox.spin, policy={**BEST, "limits": {"cpu_ms": 300}})


@test("threads that a call leaves do not hold it up, and its grandchildren end with it")
def _():
    begun = time.monotonic()
    check_equal(box().call(toolbox.leave_thread), "done", "value")
    check(time.monotonic() - begun < 20, "nobody waited for it")
    mark = new_mark()
    check_equal(box().call(toolbox.leave_grandchild, mark), True, "the control: there was one")
    wait_until(lambda: not processes_with(mark), 5, "the grandchild is gone")


@test("cancel, terminate and is_running")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        check_equal((sandbox.is_running(), sandbox.cancel("x"), sandbox.terminate()), (False, False, 0), "nothing runs")
        results = []

        def wait(call_id):
            results.append(sandbox.call(toolbox.sleep, 50, call_id=call_id, result=True))

        threads = [threading.Thread(target=wait, args=(f"call {n}",)) for n in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: sandbox.counts()["live"] == 3, 20, "all run")
        check(sandbox.is_running() and sandbox.cancel("call 1"), "one is cancelled")
        wait_until(lambda: results, 5, "it is over")
        check_equal((results[0].call_id, results[0].status), ("call 1", "cancelled"), "its result")
        check_equal(sandbox.terminate(), 2, "the others")
        for thread in threads:
            thread.join(10)
        check_equal([result.status for result in results], ["cancelled"] * 3, "all")
        check(not sandbox.is_running(), "nothing runs")
        check_equal(sandbox.eval("1"), 1, "it is still usable")


@test("an exception in the thread that waits ends the cell at once")
def _():
    mark = new_mark()

    def alarm(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, alarm)
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        raises(KeyboardInterrupt, box().run, ["sleep", mark])
    finally:
        signal.signal(signal.SIGUSR1, before)
    wait_until(lambda: not processes_with(mark), 5, "the command is gone")
    check_equal(box().eval("5"), 5, "it is still usable")


@test("futures: a call that is over before anybody looks after it is not passed by")
def _():
    add = vitro._futures.Pump.add

    def late(pump, call, step):
        wait_until(lambda: call.told, 20, "it is over")
        add(pump, call, step)

    first = box().submit_eval("import time; time.sleep(40)")  # whose thread reads meanwhile
    vitro._futures.Pump.add = late
    try:
        check_equal(box().submit_eval("1").result(20), 1, "its value")
    finally:
        vitro._futures.Pump.add = add
        first.cancel()


@test("futures: many at once, with results, exceptions and tools, and cancel() ends the cell")
def _():
    futures = [box().submit(toolbox.add, n, 1) for n in range(20)]
    check_equal([future.result(30) for future in futures], [*range(1, 21)], "values")
    check_equal(box().submit_eval("t(2)", tools={"t": lambda x: x + 1}).result(30), 3, "with a tool")
    check_equal(type(box().submit_eval("1/0").exception(30)), vitro.ToolError, "an exception")
    check_equal(box().submit_run(["false"], result=True).result(30).status, "error", "a result")
    done, _ = concurrent.futures.wait([box().submit_eval("1") for _ in range(3)], 30)
    check_equal(len(done), 3, "waiting for them")
    mark = new_mark()
    future = box().submit_run(["sleep", mark])
    wait_until(lambda: processes_with(mark), 10, "the control: it runs")
    check_equal((future.running(), future.cancel(), future.cancelled()), (True, True, True), "cancel")
    wait_until(lambda: not processes_with(mark), 5, "the command is gone")
    raises(TypeError, box().submit_eval, "1", nonsense=1)


# ---- cells that are hostile to the program -------------------------------------------------------------------------

# Code that writes many requests for a tool by hand, where a cell's own client would wait for each answer.
FORGE = """import os, struct, time
j = b'{"args":[],"kwargs":{}}'
m = struct.pack('<I', len(j)) + j + struct.pack('<I', 0)
def ask(first, count, name=b'tool'):
    data = memoryview(b''.join(struct.pack('<IIIIQQ', 3, 0, len(name), 0, first + i, len(m)) + name + m for i in range(count)))
    while data:
        data = data[os.write(3, data):]
"""


@test("futures: a flood of requests for tools has few threads, and ends with the call")
def _():
    runs, most = [], [0]

    def tool():
        runs.append(1)
        most[0] = max(most[0], sum(thread.name == "vitro-tool" for thread in threading.enumerate()))
        time.sleep(0.3)

    result = box().submit_eval(FORGE + "ask(0, 2000)\ntime.sleep(1)\n5", tools={"tool": tool}, result=True).result(30)
    check_equal((result.status, result.value), ("ok", 5), "the call")
    count = len(runs)
    check(8 < count < 100 and 1 < most[0] <= 8, (count, most))
    time.sleep(0.7)
    check(len(runs) <= count + 8, f"{len(runs) - count} runs after its end")


@test("a call that asks for too much at once is cancelled, and says so")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            return await sandbox.eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True)

    code = FORGE + "ask(0, 12000)\ntime.sleep(20)"
    begun = time.monotonic()
    for result in (box().eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True),
                   box().submit_eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True).result(30),
                   asyncio.run(story())):
        check_equal(result.status, "cancelled", "status")
        check_in("10000 uses of tools", result.error.message, "the reason")
    check(time.monotonic() - begun < 15, "soon")


@test("eval: no tool runs when the call is over, however many it asked for")
def _():
    runs, last = [], [0.0]

    def tool():
        runs.append(1)
        time.sleep(0.002)
        last[0] = time.monotonic()

    begun = time.monotonic()
    result = box().eval(FORGE + "ask(0, 5000)\ntime.sleep(30)", tools={"tool": tool}, result=True, timeout=0.5)
    check_equal(result.status, "timeout", "status")
    check(0 < len(runs) < 1500 and last[0] - begun < 3 and time.monotonic() - begun < 3, (len(runs), last[0] - begun))


@test("asyncio: no tool runs when the call is over, however many it asked for")
def _():
    runs = []

    def tool():
        runs.append(1)
        time.sleep(0.01)

    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            result = await sandbox.eval(FORGE + "ask(0, 5000)\ntime.sleep(30)", tools={"tool": tool}, result=True,
                                        timeout=1.5)
            check_equal(result.status, "timeout", "status")
            count = len(runs)
            await asyncio.sleep(0.5)
            check(0 < count and len(runs) <= count + 8, (count, len(runs)))

    asyncio.run(story())


@test("a slow call-back for output holds a call up for little longer than its deadline")
def _():
    heard = []

    def hear(_, text):
        heard.append(text)
        time.sleep(0.05)

    code = "import os, time\nfor n in range(400):\n    os.write(1, b'x'); time.sleep(0.001)\ntime.sleep(30)"
    begun = time.monotonic()
    result = box().eval(code, on_output=hear, result=True, timeout=2)
    taken, count = time.monotonic() - begun, len(result.stdout)  # on a busy machine it does not come to all 400
    check_equal((result.status, result.stdout), ("timeout", "x" * count), "the result")
    check_equal("".join(heard), result.stdout, "what was heard")
    check(count >= 200, f"there were more pieces than could be heard one by one: {count}")
    check(taken < 8, taken)
    # Pieces that cannot be joined: the program's own clock ends it.
    code = "import os, time\nfor n in range(200):\n    os.write(1 + n % 2, b'x'); time.sleep(0.002)\ntime.sleep(30)"
    begun = time.monotonic()
    box().eval(code, on_output=hear, result=True, timeout=1)
    check(time.monotonic() - begun < 7, time.monotonic() - begun)


class Heard(logging.Handler):
    """Records of vitro's own logger, for a while."""

    def __enter__(self):
        self.records = []
        self.emit = self.records.append
        logging.getLogger("vitro").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("vitro").removeHandler(self)


@test("a grant through a link that an earlier call may have made is a warning, once")
def _():
    with folder(writable=True) as place, vitro.Sandbox(BEST) as sandbox, Heard() as heard:
        shared, other = os.path.join(place, "shared"), os.path.join(place, "other")
        for path in (shared, other):
            os.mkdir(path)
            os.chmod(path, 0o777)
        link = os.path.join(shared, "link")
        policy = {**BEST, "files": {"write": [shared]}}
        sandbox.eval(f"import os\nos.symlink({other!r}, {link!r})", policy=policy)
        for key in ("read", "read", "write"):
            sandbox.eval("1", policy={**BEST, "files": {key: [link]}})
        said = [record.getMessage() for record in heard.records if record.levelno == logging.WARNING]
        check_equal(said, [f"files.{key}[0] of policy: '{link}' is a link and leads to '{other}'" for key in ("read", "write")], "warnings")


class Logged:
    """What the logger of tools does with its records, for a while."""

    def __init__(self, emit, accept=lambda record: True):
        self.handler, self.logger = logging.Handler(), logging.getLogger("vitro.tool")
        self.handler.emit, self.accept = emit, accept

    def __enter__(self):
        self.logger.addHandler(self.handler)
        self.logger.addFilter(self.accept)

    def __exit__(self, *_):
        self.logger.removeHandler(self.handler)
        self.logger.removeFilter(self.accept)


@test("a handler for what tools log may use the sandbox, and a filter that raises ends nothing")
def _():
    values, code = [], "import logging\nlogging.warning('x')\n3"

    def emit(record):
        if len(values) < 2:
            values.append(None)
            values.append(box().eval("4"))

    for way in (lambda: box().eval(code), lambda: box().submit_eval(code).result(10)):
        values.clear()
        with Logged(emit):
            thread = threading.Thread(target=lambda: values.append(way()), daemon=True)
            thread.start()
            thread.join(15)
        check_equal(values, [None, 4, 3], "values")
    before, sys.stderr = sys.stderr, open(os.devnull, "w")
    try:
        with Logged(lambda record: None, lambda record: 1 / 0):
            check_equal(box().eval(code), 3, "with a filter that raises")
    finally:
        sys.stderr.close()
        sys.stderr = before


@test("what tools log cannot forge lines of the program's log")
def _():
    records, raw = [], []
    with Logged(records.append):
        box().eval("import logging\nlogging.error('a\\nb\\x1b[31m\\u202e é \\\\n')", call_id="mine",
                   on_log=lambda level, text: raw.append(text))
    check_equal([record.getMessage() for record in records], ["mine: a\\nb\\x1b[31m\\u202e é \\n"], "the record")
    check_equal(raw, ["a\nb\x1b[31m\u202e é \\n"], "the call-back's text")


@test("whatever a tool raises, it is answered")
def _():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def mute():
        raise Mute()

    def leave():
        raise SystemExit(3)

    def stop():
        raise StopIteration

    async def give_up():
        raise asyncio.CancelledError

    code = "try:\n    tool()\nexcept BaseException as e:\n    r = (type(e).__name__, str(e))\nr"
    said = []

    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            for tool in (mute, stop, give_up):
                said.append(await sandbox.eval(code, tools={"tool": tool}))
            try:
                await sandbox.eval(code + "\nimport time; time.sleep(20)", tools={"tool": leave})
            except SystemExit as error:
                said.append(error.code)

    begun = time.monotonic()
    for value in (box().eval(code, tools={"tool": mute}), box().submit_eval(code, tools={"tool": mute}).result(20)):
        check_in("(no message)", value[1], "its message")
        check_in("Mute", ": ".join(value), "its type")
    check_equal(type(box().submit_eval(code, tools={"tool": leave}).exception(20)), SystemExit, "a future")
    raises(SystemExit, box().eval, code, tools={"tool": leave})
    asyncio.run(story())
    check_in("(no message)", said[0][1], "asyncio")
    check_equal(said[3:], [3], "asyncio, with an exit")
    check(time.monotonic() - begun < 15, "nothing waits for a deadline")


@test("the home folder on sys.path is not readable as a whole")
def _():
    need_held({"files": "mountns"})
    script = ("import os, sys, logging\nsys.path.insert(0, {!r})\nlogging.basicConfig(stream=sys.stdout, format='%(name)s')\n"
              "import vitro, beside, package.part\nhome = os.path.dirname(os.path.abspath(__file__))\n"
              "def look(): return beside.f(), package.part.f(), sorted(os.listdir(home))\n"
              "def late():\n    import unseen\n"
              "s = vitro.Sandbox({!r}); print(s.call(look)); print(s.call(beside.f))\n"
              "print(s.call(os.path.exists, home + '/secret'))\n"
              "print(s.call(late, result=True).error.type)\nimport unseen\nprint(s.call(unseen.f)); s.close()\n")
    with folder() as place:
        for name in ("beside.py", "package/__init__.py", "package/part.py", "unseen.py"):
            write(os.path.join(place, "home", name), "def f():\n    return 7\n")
        write(os.path.join(place, "home", "secret"), "key")
        path = write(os.path.join(place, "home", "script.py"), script.format(str(pythons.SDK), BEST))
        want = ["(7, 7, ['beside.py', 'package', 'script.py'])", "7", "False", "ModuleNotFoundError", "7"]
        for home in ("home", "home/deeper"):
            done = run([sys.executable, "-B", path], env={**os.environ, "HOME": os.path.join(place, home)})
            check_equal(done.out.splitlines(), ["vitro", *want], f"as or around {home}", done)
        done = run([sys.executable, "-B", path], env={**os.environ, "HOME": "/nowhere"})
        check_equal(done.out.splitlines()[2:3], ["True"], "the control: another folder", done)


# ---- many, and long -----------------------------------------------------------------------------------------------


@test("threads that are the first to use a sandbox, all at once")
def _():
    for _ in range(5):
        with vitro.Sandbox(BEST) as sandbox, concurrent.futures.ThreadPoolExecutor(8) as pool:
            check_equal([*pool.map(lambda n: sandbox.call(toolbox.add, n, 1), range(8))], [*range(1, 9)], "values")


@test("200 concurrent calls of threads")
def _():
    with concurrent.futures.ThreadPoolExecutor(200) as pool:
        values = [*pool.map(lambda n: box().call(toolbox.add, n, 1), range(200))]
    check_equal(values, [*range(1, 201)], "values")


@test("asyncio: 200 concurrent calls, tools on the loop, and cancelling a task ends its cell")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            values = await asyncio.gather(*(sandbox.call(toolbox.add, n, 1) for n in range(200)))
            check_equal(values, [*range(1, 201)], "values")
            running, most = 0, 0

            async def tool(n):
                nonlocal running, most
                running += 1
                most = max(most, running)
                await asyncio.sleep(0.2)
                running -= 1
                return n * 2

            code = "import asyncio\nawait asyncio.gather(*[tool(n) for n in range(20)])"
            check_equal(await sandbox.eval(code, tools={"tool": tool}), [n * 2 for n in range(20)], "tools")
            check(most > 10, f"{most} at once")
            check_equal(await sandbox.eval("t(3)", tools={"t": lambda n: threading.current_thread() is
                                                          threading.main_thread()}), False, "a plain tool")
            heard = []
            result = await sandbox.run(["sh", "-c", "echo a; echo b >&2"], on_output=lambda *what: heard.append(what))
            check_equal((sorted(heard), result.stdout), ([("stderr", "b\n"), ("stdout", "a\n")], "a\n"), "output")
            mark = new_mark()
            task = asyncio.ensure_future(sandbox.run(["sleep", mark]))
            while not processes_with(mark):
                await asyncio.sleep(0.01)
            task.cancel()
            begun = time.monotonic()
            try:
                await task
                raise AssertionError("not cancelled")
            except asyncio.CancelledError:
                pass
            check(time.monotonic() - begun < 1, "at once")
            wait_until(lambda: not processes_with(mark), 5, "the command is gone")
            try:
                await asyncio.wait_for(sandbox.call(toolbox.spin), 0.3)
                raise AssertionError("no timeout")
            except asyncio.TimeoutError:
                pass
            try:
                await sandbox.eval("1/0")
                raise AssertionError("no exception")
            except vitro.ToolError as error:
                check_equal(error.type, "ZeroDivisionError", "type")
            check_equal((await sandbox.eval("x", result=True)).status, "error", "a result")
            check_in("level", await sandbox.capabilities(), "capabilities")
            check((await sandbox.counts())["calls"] > 200, "counts")

    asyncio.run(story())


@test("asyncio: one sandbox in one event loop after the other")
def _():
    sandbox = vitro.AsyncSandbox(BEST)
    check_equal(asyncio.run(sandbox.eval("1")), 1, "the first")
    check_equal(asyncio.run(sandbox.eval("2")), 2, "the second")
    asyncio.run(sandbox.close())
    check_equal(asyncio.run(sandbox.eval("3", result=True)).status, "refused", "when it is closed")


@test("state never leaks from one call to the next")
def _():
    need_held({"files": "mountns"})
    fresh = box().call(toolbox.look)
    for _ in range(2):
        disturbed, _ = box().call(toolbox.disturb)
        check(all(disturbed[name] != fresh[name] for name in ("state", "env", "cwd", "tmp", "fds", "handler", "filters",
                                                              "path", "module", "level", "recursion")), disturbed)
        check_equal(box().call(toolbox.look), fresh, "what the next call finds")
    draws = [box().call(toolbox.draw) for _ in range(5)]
    check_equal((len({draw[0] for draw in draws}), len({draw[1] for draw in draws})), (5, 5), "random numbers differ")
    box().eval("import math, builtins\nmath.pi = 3\nbuiltins.left = 1\nopen('left', 'w').close()")
    check_equal(box().eval("import math, builtins, os\n(math.pi > 3, hasattr(builtins, 'left'), os.listdir('.'))"),
                (True, False, []), "code")


# ---- policies -----------------------------------------------------------------------------------------------------


@test("policies: a dict with relative paths, a file, a name, per call; what is wrong is named")
def _():
    need_held({"files": "*"})
    with folder() as place:
        write(os.path.join(place, "data", "x"), "content")
        file = write(os.path.join(place, "policy.json"), '{"require": "best-effort", "files": {"read": ["data"]}}')
        code = f"open({os.path.join(place, 'data', 'x')!r}).read()"
        raises(vitro.ToolError, box().eval, code)
        before = os.getcwd()
        os.chdir(place)
        try:
            check_equal(box().eval(code, policy={**BEST, "files": {"read": ["data"]}}), "content", "a relative path")
            check_equal(box().eval(code, policy="policy.json"), "content", "a file")
        finally:
            os.chdir(before)
        check_equal(box().eval(code, policy=pathlib.Path(file)), "content", "a path")
        raises(vitro.ToolError, box().eval, code)
        with vitro.Sandbox(file) as sandbox:
            check_equal(sandbox.eval(code), "content", "the sandbox's own")
            check_equal(sandbox.eval("1", timeout=100), 1, "a longer deadline than an unknown one")
    if not isolation().refused:
        check_equal(box().eval("1", policy="default"), 1, "a built-in")
    error = raises(vitro.Refused, box().eval, "1", policy={"limits": {"nonsense": 1}})
    check_in("limits.nonsense", str(error), "the key")
    check_equal(box().eval("1", policy={"limits": {"nonsense": 1}}, result=True).status, "refused", "a result")
    raises(TypeError, vitro.Sandbox, 5)


@test("many policies: pools that were not used for longest are dropped")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        for n in range(40):
            check_equal(sandbox.run(["echo", str(n)], policy={**BEST, "env": {"set": {"N": str(n)}}}).stdout, f"{n}\n", "it")
        check(len(sandbox._session.pools) <= 32, len(sandbox._session.pools))
        check_equal(sandbox.run(["echo", "0"], policy={**BEST, "env": {"set": {"N": "0"}}}).stdout, "0\n", "the first again")


@test("what cannot be sent says which and what to do; with result=True nothing is raised")
def _():
    for what in ((lambda: 1), threading.Lock().acquire):
        try:
            box().call(what)
            check("cloudpickle" in sys.modules, f"{what} was sent")
        except TypeError as error:
            check_in("cannot be sent", str(error), "the message")
    result = box().call(toolbox.echo, threading.Lock(), result=True)
    check_equal(result.status, "refused", "status")
    check_in("argument 1", result.error.message, "which")
    for wrong in ({"argv": "ls"}, {"argv": []}, {"argv": ["a\0b"]}):
        check_equal(box().run(**wrong, result=True).status, "refused", str(wrong))
    raises(ValueError, box().run, ["true"], call_id="x" * 999)


@test("another interpreter")
def _():
    others = [path for version, path in pythons.interpreters().items() if not sys.version.startswith(version + " ")]
    closed = [path for path in others if pythons.closed_folder(path)]
    for path in closed:
        with vitro.Sandbox(BEST, python=path) as sandbox:
            check_in("name one that everyone may read", str(raises(vitro.Refused, sandbox.eval, "1")), "one that is out of reach")
    others = [path for path in others if path not in closed]
    if not others:
        skip("there is one interpreter only that cells can reach")
    with vitro.Sandbox(BEST, python=others[0]) as sandbox:
        version = sandbox.eval("import sys\nsys.version")
        check(version != sys.version, version)
        check_equal(sandbox.call(toolbox.add, 2, 3), 5, "a function of this program")
    with vitro.Sandbox(BEST, python="/nowhere/python3") as sandbox:
        check_equal(sandbox.eval("1", result=True).status, "refused", "one that is not there")


@test("usage: the CPU time is the call's own, and not what its process used before")
def _():
    results = [box().call(toolbox.add, 2, 3, result=True) for _ in range(9)]
    check(max(result.usage.cpu_ms - result.usage.wall_ms for result in results) < 1, [result.usage for result in results])
    check(box().call(toolbox.use_cpu, 0.05, result=True).usage.cpu_ms >= 50, "the control: what it uses is counted")


@test("preloaded modules are there")
def _():
    with vitro.Sandbox(BEST, preload=["wave", "vitro_has_no_such_module"]) as sandbox, Heard() as heard:
        check_equal(sandbox.eval("import sys\n'wave' in sys.modules"), True, "preloaded")
        sandbox.eval("import vitro_no_other_module", result=True)  # which is not asked for
        said = [record.getMessage() for record in heard.records if record.levelno == logging.WARNING]
        check_equal(len(said), 1, f"one warning: {said}")
        check_in("'vitro_has_no_such_module' is not imported ahead of calls: ModuleNotFoundError", said[0], "what it says")
    check_equal(box().eval("import sys\n'wave' in sys.modules"), False, "the control")


@test("a tool host's functions and commands run in cells")
def _():
    with vitro.ToolHost(policy=BEST) as host:
        host.register(toolbox.scale)
        check_equal([tool["name"] for tool in host.list_tools()], ["scale"], "tools")
        result = host.call("scale", {"value": 3, "timeout": 2}, "mine")
        check_equal((result.status, result.value, result.call_id), ("ok", 6, "mine"), "a function", result)
        check_equal(host.call("scale", '{"value": "x"}').error.type, "InvalidArguments", "checked")
        check_equal(host.call("scale", {"value": 0, "timeout": 0}).error.type, "ZeroDivisionError", "a failure")
        host.register(toolbox.measure)
        result = host.call("measure", {"point": {"x": 3, "y": 4}, "factor": 2})
        check_equal((result.value, type((result.value or [0, 0])[1])), ([25, 2.0], float), "as annotated", result)
        host.register(toolbox.make_point)
        check_in("asdict", host.call("make_point", {"x": 1, "y": 2}).error.message, "what a tool is to return")

    async def story():
        async with vitro.AsyncToolHost(policy=BEST) as host:
            host.register(toolbox.scale)
            check_equal((await host.call("scale", {"value": 4, "timeout": 2})).value, 8, "asyncio")

    asyncio.run(story())


# ---- the supervisor -----------------------------------------------------------------------------------------------


def supervisor_of(sandbox):
    return sandbox._session.connection.process.pid


@test("a supervisor that dies: calls under way are lost, and the next has a new one")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        sandbox.eval("1")
        threading.Timer(0.3, os.kill, (supervisor_of(sandbox), signal.SIGKILL)).start()
        error = raises(vitro.Lost, sandbox.call, toolbox.sleep, 50)
        check_equal(error.result.status, "lost", "status")
        check_equal(sandbox.eval("2"), 2, "the next")
        os.kill(supervisor_of(sandbox), signal.SIGKILL)
        time.sleep(0.3)
        check_equal(sandbox.eval("3"), 3, "where it died while nothing ran, nothing is lost")


@test("after a fork the child has its own, and the parent's stays")
def _():
    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    parent = supervisor_of(sandbox)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if sandbox.eval("2") == 2 and supervisor_of(sandbox) != parent else 2
            sandbox.close()
        finally:
            os._exit(code)
    check_equal(os.waitpid(pid, 0)[1], 0, "the child")
    check_equal((sandbox.eval("3"), supervisor_of(sandbox)), (3, parent), "the parent")
    sandbox.close()


@test("texts of errors steer no terminal; results have them as they are")
def _():
    said = "a\x1b]0;x\x07\r\x9bm\nb\tc"
    error = raises(vitro.ToolError, box().eval, f"raise type('E\\x1b', (ValueError,), {{}})({said!r})")
    check_equal(str(error), "E\\x1b: a\\x1b]0;x\\x07\\r\\x9bm\nb\tc", "its text")
    check_equal((error.message, error.result.error.message), (said, said), "as it was")
    check("\x1b" not in "".join(traceback.format_exception(type(error), error, error.__traceback__)), "what is printed")


@test("a sandbox that is closed, dropped, or whose program ends in any way leaves nothing")
def _():
    def is_there(pid):
        return proc(f"{pid}/stat").split(b")")[-1].split()[:1] not in ([], [b"Z"], [b"X"])

    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    pid = supervisor_of(sandbox)
    check(is_there(pid), "the control: it runs")
    sandbox.close()
    check(not proc(f"{pid}/stat"), "closed: it is reaped")
    check_equal(raises(vitro.Refused, sandbox.eval, "1").result, None, "a closed one is of no use")
    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    pid = supervisor_of(sandbox)
    del sandbox
    gc.collect()
    check(not proc(f"{pid}/stat"), "dropped: it is reaped")
    program = (f"import sys\nsys.path.insert(0, {str(pythons.SDK)!r})\nimport vitro, os, signal\ns = vitro.Sandbox({BEST!r})\n"
               "s.eval('1')\nprint(s._session.connection.process.pid, flush=True)\n")
    for end in ("", "sys.exit(3)", "os._exit(0)", "os.kill(os.getpid(), 9)", "1/0"):
        done = run([sys.executable, "-c", program + end])
        pid = int(done.out.split()[0])
        wait_until(lambda: not is_there(pid), 5, f"it ends after {end!r}")


@test("a server's socket in place of a supervisor of its own")
def _():
    with folder() as place:
        path = os.path.join(place, "socket")
        with subprocess.Popen([BINARY, "serve", "--socket", path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                wait_until(lambda: os.path.exists(path), 10, "it serves")
                with vitro.Sandbox(BEST, socket=path) as sandbox:
                    check_equal(sandbox.run(["echo", "hi"]).stdout, "hi\n", "a command")
                    check_equal(sandbox.eval("6 * 7"), 42, "code")
                    check_equal(sandbox.call(toolbox.add, 2, 3), 5, "a function")
            finally:
                server.terminate()
        raises(vitro.Lost, vitro.Sandbox(socket=path).eval, "1")


@test("elsewhere than on Linux, and without the program, using it says so")
def _():
    text = f"import sys\nsys.path.insert(0, {str(pythons.SDK)!r})\n"
    use = "import vitro\ntry:\n    vitro.Sandbox().eval('1')\nexcept vitro.Unsupported as error:\n    print(error)\n"
    done = run([sys.executable, "-c", text + "sys.platform = 'darwin'\n" + use])
    check_in("this is darwin", done.out, "another system", done)
    env = {**os.environ, "VITRO_BINARY": "/nowhere/vitro"}
    done = run([sys.executable, "-c", text + use], env=env)
    check_in("VITRO_BINARY names '/nowhere/vitro'", done.out, "no program", done)


pythons.main()
