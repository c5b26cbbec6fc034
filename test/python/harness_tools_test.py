#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Tools in a Python occupant: called, awaited, many at once, and from threads."""

import ast
import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from occupant import awaited, cell, codec, run, talk, value_of
from vitrotest import check_equal, check_in, main, test


def one_by_one(name, args, kwargs):
    return [name, *args, *sorted(kwargs.items())]


def run_all_at_once(code, count, tools=("search",)):
    """Answers when so many questions are there, the last first: only who asks all at once gets on."""
    held = []
    with cell() as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack({"op": "eval", "code": code, "tools": list(tools)}))

        def hold(message):
            if message.kind != talk.ASK:
                return False
            held.append(message)
            if len(held) == count:
                for one in reversed(held):
                    it.answer(one, lambda name, args, kwargs: args[0] * 10)
                held.clear()
            return True

        return it.finish(None, None, hold)


@test("harness: tools are plain functions")
def _():
    for code, want in (("search('a', k=2)", ["search", "a", ("k", 2)]), ("x = search(1)\nx[1] + 1", 2), ("[search(i)[1] for i in range(3)]", [0, 1, 2]),
                       ("tools['my tool'](b'x')", ["my tool", b"x"]), ("tools.search(1)", ["search", 1]), ("search((1, {2}), k={3: 4})", ["search", (1, {2}), ("k", {3: 4})]),
                       ("def f():\n    return search(1)\nf()", ["search", 1]), ("list(map(search, [1]))", [["search", 1]]), ("sorted(tools)", ["my tool", "search"]),
                       ("(search.__name__, repr(search), len(tools))", ("search", "<tool 'search'>", 2)),
                       ("import json\njson.dumps(search(1))", '["search", 1]')):
        check_equal(value_of(code, tools=["search", "my tool"], answer=one_by_one), want, code)
    check_equal(value_of("len(search(bytes(3_000_000)))", tools=["search"], answer=lambda name, args, kwargs: args[0] * 2), 6_000_000, "3 MB, and 6")


@test("harness: a tool's exception is raised inside")
def _():
    class Odd(Exception):
        type_name = "app.Odd"

    def fail(name, args, kwargs):
        raise {"key": KeyError, "odd": Odd, "unicode": type("UnicodeDecodeError", (Exception,), {}), "exit": type("SystemExit", (Exception,), {}),
               "stop": StopIteration, "os": PermissionError}[args[0]]("why")

    for what, want in (("key", ["KeyError", "'why'"]), ("os", ["PermissionError", "why"]), ("odd", ["ToolError", "app.Odd: why"]),
                       ("unicode", ["ToolError", "UnicodeDecodeError: why"]), ("exit", ["ToolError", "SystemExit: why"]), ("stop", ["ToolError", "StopIteration: why"])):
        for wait in ("", "await "):
            code = f"try:\n    {wait}search({what!r})\nexcept Exception as error:\n    r = [type(error).__name__, str(error)]\nr"
            check_equal(value_of(code, tools=["search"], answer=fail), want, wait + what)
    check_equal(value_of("try:\n    search('odd')\nexcept tools.ToolError as error:\n    r = [error.type, error.message]\nr", tools=["search"], answer=fail),
                ["app.Odd", "why"], "its parts")
    failed = run("search(object())", tools=["search"])
    check_equal(failed.type, "NotPlain", "an argument that cannot be sent")
    check_in("search() arguments[0] is an object", failed.message, "which")
    failed = run("search(x=bytes(2_000_000))", tools=["search"], config={"result_bytes": 1_000_000})
    check_in("limits.result_mb", failed.message, "one that is too large")


@test("harness: tools can be awaited, many at once")
def _():
    for code in ("import asyncio\nawait asyncio.gather(search(0), search(1), search(2))",
                 "import asyncio\nawait asyncio.gather(*[search(i) for i in range(3)])",
                 "import asyncio\nawait asyncio.gather(*(search(i) for i in range(3)))",
                 "import asyncio\nawait asyncio.gather(*map(search, range(3)))",
                 "import asyncio\nawait asyncio.gather(*map(lambda i: search(i), range(3)))",
                 "from asyncio import gather\ntasks = [search(i) for i in range(3)]\nawait gather(*tasks)",
                 "import asyncio\ntasks = []\nfor i in range(3):\n    tasks.append(search(i))\nawait asyncio.gather(*tasks)",
                 "import asyncio\ntasks = [asyncio.create_task(search(i)) for i in range(3)]\n[await t for t in tasks]",
                 "import asyncio\na, b, c = search(0), search(1), search(2)\n[await a, await b, await c]",
                 "tasks = {i: search(i) for i in range(3)}\n[await tasks[i] for i in tasks]",
                 "tasks = {i: search(i) for i in range(3)}\nr = []\nfor k, t in tasks.items():\n    r.append(await t)\nr",
                 "import asyncio\nasync def one(i):\n    return await search(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
                 "import asyncio\nasync def one(c):\n    return await c\nawait asyncio.gather(*[one(search(i)) for i in range(3)])",
                 "import asyncio\ndef one(i):\n    return search(i)\nawait asyncio.gather(*[one(i) for i in range(3)])",
                 "import asyncio\nasync def main():\n    return await asyncio.gather(*[search(i) for i in range(3)])\nasyncio.run(main())",
                 "import asyncio\nasync def main():\n    return await asyncio.gather(*[search(i) for i in range(3)])\nawait main()",
                 "import asyncio\nfs = [asyncio.wait_for(search(i), 30) for i in range(3)]\nlist(await asyncio.gather(*fs))",
                 "import asyncio\nr = []\nfor f in asyncio.as_completed([search(i) for i in range(3)]):\n    r.append(await f)\nsorted(r)",
                 "import asyncio\nts = [asyncio.ensure_future(search(i)) for i in range(3)]\ndone, _ = await asyncio.wait(ts)\nsorted(t.result() for t in done)",
                 "import asyncio\nf = search\nawait asyncio.gather(*[f(i) for i in range(3)])",
                 "import asyncio\nawait asyncio.gather(*[tools['search'](i) for i in range(3)])",
                 "import asyncio\nawait asyncio.gather(*[asyncio.to_thread(search, i) for i in range(3)])" if sys.version_info >= (3, 9) else None,
                 "import asyncio\nloop = asyncio.get_running_loop()\nawait asyncio.gather(*[loop.run_in_executor(None, search, i) for i in range(3)])",
                 "import asyncio\nasync with asyncio.TaskGroup() as g:\n    ts = [g.create_task(search(i)) for i in range(3)]\n[t.result() for t in ts]" if sys.version_info >= (3, 11) else None,
                 "class A:\n    def __init__(self):\n        self.tasks = []\n    async def go(self):\n        for i in range(3):\n            self.tasks.append(search(i))\n"
                 "        return [await t for t in self.tasks]\nawait A().go()"):
        if code:
            got = run_all_at_once(code, 3)
            check_equal((got.ok, got.value), (True, [0, 10, 20]), f"{code}\n{got.message}\n{got.traceback}")
    for code, want in (("await search(1)", ["search", 1]), ("(await search(1))[1] + (await search(2))[1]", 3), ("x = await search(1)\ny = search(x[1])\ny[1]", 1),
                       ("await search(search(5)[1])", ["search", 5]), ("import asyncio\nawait asyncio.sleep(search(0)[1])\n1", 1),
                       ("import asyncio\nasyncio.run(search(1))", ["search", 1]), ("await search(1) if search(2) else 0", ["search", 1]),
                       ("async def f():\n    return search(1)\nawait f()", ["search", 1]), ("r = [search(i)[1] for i in [1, 2]]\nawait search(sum(r))", ["search", 3]),
                       ("for f in (search, tools['my tool']):\n    r = await f(1)\nr", ["my tool", 1])):
        check_equal(value_of(code, tools=["search", "my tool"], answer=one_by_one), want, code)


@test("harness: tools can be called from threads, many at once, beside a loop")
def _():
    for code in ("from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(3) as pool:\n    r = list(pool.map(search, range(3)))\nr",
                 "import threading\nr = {}\nts = [threading.Thread(target=lambda i=i: r.__setitem__(i, search(i))) for i in range(3)]\n"
                 "[t.start() for t in ts]\n[t.join() for t in ts]\n[r[i] for i in range(3)]",
                 "import asyncio, threading\nr = []\nt = threading.Thread(target=lambda: r.append(search(2)))\nt.start()\na, b = await asyncio.gather(search(0), search(1))\n"
                 "await asyncio.get_running_loop().run_in_executor(None, t.join)\n[a, b, *r]",
                 "import asyncio, threading\nr = {}\nasync def one(i):\n    return await search(i)\n"
                 "ts = [threading.Thread(target=lambda i=i: r.__setitem__(i, asyncio.run(one(i)))) for i in range(3)]\n"
                 "[t.start() for t in ts]\n[t.join() for t in ts]\n[r[i] for i in range(3)]"):
        got = run_all_at_once(code, 3)
        check_equal((got.ok, got.value), (True, [0, 10, 20]), f"{code}\n{got.message}\n{got.traceback}")
    # 50 threads, 20 questions each, answered at once.
    code = "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(50) as pool:\n    r = list(pool.map(search, range(1000)))\nr"
    check_equal(value_of(code, tools=["search"], answer=lambda name, args, kwargs: args[0] * 2), [i * 2 for i in range(1000)], "1000 questions")


@test("harness: who waits long does not hold up the others")
def _():
    # "slow" is answered only when five of "quick", one after the other, are through.
    code = ("import threading, time\nr = []\nt = threading.Thread(target=lambda: r.append(search('slow')))\nt.start()\ntime.sleep(0.05)\n"
            "for i in range(5):\n    r.append(search('quick'))\nsearch('now')\nt.join()\nr")
    for code in (code, code.replace("t.start()\ntime.sleep(0.05)\nfor i in range(5):\n    r.append(search('quick'))\nsearch('now')",
                                    "q = threading.Thread(target=lambda: [r.append(search('quick')) for i in range(5)] + [search('now')])\n"
                                    "q.start()\nt.start()\nq.join()")):
        slow = []
        with cell() as it:
            it.talk.send(talk.EXECUTE, b"\0c1", codec.pack({"op": "eval", "code": code, "tools": ["search"]}))

            def hold(message):
                if message.kind != talk.ASK or codec.unpack(message.body)[0]["args"] == ["quick"]:
                    return False
                slow.append(message)
                if len(slow) == 2:  # "slow" and "now"
                    for one in slow:
                        it.answer(one, lambda name, args, kwargs: args[0])
                return True

            got = it.finish(lambda name, args, kwargs: args[0], None, hold)
            check_equal((got.ok, got.value), (True, ["quick"] * 5 + ["slow"]), got.message)


@test("harness: an exception of a signal's handler while a tool is awaited leaves the socket in order")
def _():
    code = ("import signal\nclass Late(Exception): pass\ndef late(*_): raise Late\nsignal.signal(signal.SIGALRM, late)\nr = []\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.1)\ntry:\n    search('never')\nexcept Late:\n    r.append('late')\nr.append(search('now'))\nr")
    with cell() as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack({"op": "eval", "code": code, "tools": ["search"]}))
        held = []

        def hold(message):
            if message.kind == talk.ASK and not held:
                held.append(message)
                return True
            if held and message.kind == talk.ASK:
                it.answer(held[0], lambda *_: "an answer that nobody waits for")
            return False

        got = it.finish(lambda name, args, kwargs: args[0], None, hold)
        check_equal((got.ok, got.value), (True, ["late", "now"]), f"{got.message} {got.traceback}")


@test("awaited: which calls want an awaitable")
def _():
    def marked(code):
        tree = compile(code, "x", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        awaited.mark(tree, "later")
        compile(ast.fix_missing_locations(tree), "x", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        return sorted({node.args[0].id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                       and node.func.id == "later" and isinstance(node.args[0], ast.Name)} - {"list", "tuple", "map"})

    for code, want in (("a(1)", []), ("await a(1)", ["a"]), ("x = a(1)\nawait x", ["a"]), ("x = a(1)\nprint(x)", []), ("await a(b(1))", ["a"]),
                       ("x = a()\ndef f():\n    x = b()\n    return x\nawait x", ["a"]), ("def f():\n    x = b()\n    return x\nawait f()", ["b", "f"]),
                       ("xs = list(a(i) for i in y)\nawait gather(*xs)", ["a", "gather"]), ("x: object = a()\nawait x", ["a"]), ("await (x := a())", ["a"]),
                       ("x = a() if b() else c()\nawait x", ["a", "c"]), ("xs = [a()] + [b()]\nfor x in xs:\n    await x", ["a", "b"]),
                       ("async def f(x, *, y=0):\n    await y\nawait f(a(), y=b())", ["b", "f"]), ("async def f(*cs):\n    await gather(*cs)\nawait f(a(), b())", ["a", "b", "f", "gather"]),
                       ("f = lambda: a()\nawait f()", ["a", "f"]), ("x = yes = a()\nawait yes", ["a"]), ("x = [a()]\nx.append(b())\nawait x.pop()", ["a", "b"]),
                       ("while True:\n    x = x\n    await x", []), ("def f(): return f()\nawait f()", ["f"])):
        check_equal(marked(code), want, code)


main()
