#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: functions, code and commands in cells, under policies of all kinds."""

import asyncio
import collections
import datetime
import decimal
import functools
import json
import logging
import math
import os
import pathlib
import sys
import threading
import traceback
import uuid
import warnings

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from sandboxes import BEST, Heard, box, raises
from vitrotest import (check, check_equal, check_in, folder, is_bare, isolation, need_held, run, skip, test, vitro_json,
                       write)

import vitro


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


@test("call: an option that is also the name of an argument of the function's is a warning, which names the way")
def _():
    for use in (box().call, lambda *args, **kwargs: box().submit(*args, **kwargs).result(30)):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            check_equal(use(toolbox.wait_within, 1, timeout=20), (1, None), "it is the sandbox's")
        check_equal([str(one.message) for one in heard], ["timeout is taken by the sandbox; wait_within() has an argument of that "
                                                          "name, which functools.partial(..., timeout=...) sets"], "the warning")
        check_equal((heard[0].category, os.path.basename(heard[0].filename)), (RuntimeWarning, "sdk_test.py"), "where")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_equal(use(functools.partial(toolbox.wait_within, timeout=3), 1, timeout=20), (1, 3), "both are clear")
            check_equal(use(toolbox.wait_within, 1), (1, None), "neither is given")
            check_equal(use(toolbox.add, 1, 2, timeout=20), 3, "a function without one")


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


@test("eval: what is no plain data comes as its text; what a cell only says to be one makes the result none")
def _():
    code = "open('a', 'w').write('x')\nimport collections\ncollections.Counter('aab')"
    result = box().eval(code, collect=["*"], result=True)
    check_equal((result.value, result.files), (vitro.Shown("collections:Counter", "Counter({'a': 2, 'b': 1})"), {"a": b"x"}), "both")
    check_equal(str(box().eval(code)), "Counter({'a': 2, 'b': 1})", "its text")
    check_equal(json.loads(result.to_json())["value"], "Counter({'a': 2, 'b': 1})", "in JSON")
    error = raises(vitro.ToolError, box().call, collections.Counter, "aab")
    check_in("result is a collections:Counter", str(error), "of a function")
    forge = "import sys\nsys.modules['_vitro_runtime.harness']._show = lambda _: %s\nobject()"
    for shown, status in (("{'type': 'a', 'text': 'b'}", "ok"), ("{'type': 'a', 'text': 1}", "no_result"), ("{'type': 'a'}", "no_result"),
                          ("{'type': 'a', 'text': 'b', 'x': 'c'}", "no_result"), ("'text'", "no_result")):
        check_equal(box().eval(forge % shown, result=True).status, status, shown)


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

    async def in_a_loop():
        return box().eval("await later(4)", tools=tools)

    check_equal(asyncio.run(in_a_loop()), 8, "an async tool, of a caller who is in a loop, as in a notebook")
    check_equal(box().eval("import asyncio\nawait asyncio.gather(*[tool(i) for i in range(50)])", tools=tools),
                [[(i,), {}] for i in range(50)], "many at once")
    check_equal(box().eval("try:\n    broken(1)\nexcept KeyError as e:\n    said = repr(e)\nsaid", tools=tools),
                "KeyError('gone')", "an exception")
    error = raises(vitro.ToolError, box().eval, "tool(object())", tools=tools)
    check_in("object", str(error), "what cannot be sent")
    error = raises(vitro.ToolError, box().eval, "tool()", tools={"tool": object})
    check_in("what tool gave is an object", str(error), "what cannot come back")


def raised_by(error):
    """The exception of this program's, with its frames, that an error came of."""
    return error.__cause__.__cause__


@test("eval: what a tool raised, and no code caught, is known with its frames; code cannot name any but those")
def _():
    class Odd(Exception):
        pass

    def tool(what):
        raise {"key": KeyError("bob"), "os": FileNotFoundError(2, "No such file", "/x"), "odd": Odd("why"), "empty": Odd(),
               "long": ValueError("x" * 9000)}[what]

    async def later(what):
        await asyncio.sleep(0)
        tool(what)

    async def in_a_loop(code, tools):
        async with vitro.AsyncSandbox(BEST) as sandbox:
            try:
                await sandbox.eval(code, tools=tools)
            except vitro.ToolError as error:
                return error

    kinds = {"key": KeyError, "os": FileNotFoundError, "odd": Odd, "empty": Odd, "long": ValueError}
    for what, kind in kinds.items():
        for name in ("tool", "later"):
            error = raises(vitro.ToolError, box().eval, f"{name}({what!r})", tools={"tool": tool, "later": later})
            found = raised_by(error)
            check_equal(type(found), kind, f"{name} {what}: {error!r:.200}")
            check_in(", in tool\n", "".join(traceback.format_exception(type(error), error, error.__traceback__)), "its frame is shown")
            check_in("<eval>", str(error.__cause__), "the cell's frames are as well")
    check_equal(type(raised_by(box().submit_eval("tool('odd')", tools={"tool": tool}).exception(30))), Odd, "of a future")
    for name in ("tool", "later"):
        error = asyncio.run(in_a_loop(f"{name}('key')", {"tool": tool, "later": later}))
        check_equal(type(raised_by(error)), KeyError, f"asyncio: {name}")

    tools = {"tool": tool, "plain": lambda: object()}
    caught = "try:\n    tool('key')\nexcept KeyError:\n    pass\n"
    for code in (caught + "raise KeyError('alice')", caught + "raise ValueError('bob')", caught + "1/0", "raise KeyError('bob')",
                 caught + "raise KeyError('bob, and more')", "tools.nothing()", "plain()"):
        check_equal(raised_by(raises(vitro.ToolError, box().eval, code, tools=tools)), None, code)
    many = "for n in range(50):\n    try:\n        fail(n)\n    except ValueError:\n        pass\n"

    def fail(n):
        raise ValueError(str(n))

    check_equal(raised_by(raises(vitro.ToolError, box().eval, many + "raise ValueError('3')", tools={"fail": fail})), None,
                "of many the last few are kept")
    error = raises(vitro.ToolError, box().eval, many + "raise ValueError('49')", tools={"fail": fail})
    check_equal(str(raised_by(error)), "49", "the control: the last one is")


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
    for act in (box().eval, lambda *args, **kwargs: box().submit_eval(*args, **kwargs).result()):
        error = raises(TypeError, act, "1", collect=["out/**"])
        check_equal(str(error), "collect gives files in the result: add result=True", "where nobody would get them")
    error = raises(vitro.Refused, box().eval, "1", files={"a/big": b"x" * (64 << 20), "b": b"x" * ((64 << 20) + 1)})
    check_equal(str(error), f"files['b'] has {(64 << 20) + 1} bytes, and the policy's limits.file_mb allows 64 MB", "one too large")
    check_equal(box().eval("1", files={"b": b"x" * (2 << 20)}, result=True, policy={**BEST, "limits": {"file_mb": 1}}).status, "refused",
                "under another policy")
    with folder() as place:
        os.chmod(place, 0o755)
        policy = {**BEST, "files": {"read": [place], "cwd": place}}
        for name in ("x", "in/x"):
            error = raises(vitro.ToolError, box().eval, "1", files={name: ""}, policy=policy)
            check_in(f"files={{{name!r}: ...}} needs a working directory that can be written to, and {place!r} cannot: grant it by "
                     "files.write, or leave out files.cwd", str(error), "one for reading")
            check("policy's key" not in str(error), str(error))
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


@test("what cannot be sent says which and what to do; with result=True only a wrong type is raised")
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
    check_equal(box().run(["a\0b"], result=True).status, "refused", "a NUL")
    for wrong in ("ls", [], [5]):
        raises(TypeError, box().run, wrong, result=True)
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
    with vitro.Sandbox(BEST, preload=["wave", "vitro_has_no_such_module"]) as sandbox, Heard() as heard, \
            warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check_equal(sandbox.eval("import sys\n'wave' in sys.modules"), True, "preloaded")
        sandbox.eval("import vitro_no_other_module", result=True)  # which is not asked for
        said = [record.getMessage() for record in heard.records if record.levelno == logging.WARNING]
        check_equal(len(said), 1, f"one warning: {said}")
        check_in("'vitro_has_no_such_module' is not imported ahead of calls: ModuleNotFoundError", said[0], "what it says")
        sandbox.call(toolbox.add, 1, 1)  # has a pool of its own, which finds the same
        told = [(str(one.message), one.category, one.filename) for one in warned if "ahead of calls" in str(one.message)]
        check_equal(told, [(f"preload: {said[0]}", RuntimeWarning, __file__)], "where no log is shown")
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


pythons.main("oldest", "newest")
