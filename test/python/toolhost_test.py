# SPDX-License-Identifier: Apache-2.0
"""Tool hosts, on a sandbox that is none: registration, lists, watching, and what comes to a cell at all."""

import asyncio
import gc
import json
import pathlib
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parents[1] / "sdk" / "python")]

from vitro._result import Error, Result  # noqa: E402
from vitro.errors import error_of  # noqa: E402
from vitro.toolhost import AsyncToolHost, ToolHost  # noqa: E402
from vitrotest import check, check_equal, check_in, main, test  # noqa: E402


class Fake:
    """Calls in this very process, and notes them."""

    def __init__(self):
        self.calls, self.closed = [], False

    def _call(self, func, args, kwargs, *, timeout=None, policy=None, call_id=None, convert=False):
        self.calls.append((func, args, kwargs, timeout, policy, call_id))
        try:
            return Result(call_id=call_id, status="ok", value=func(*args, **kwargs))
        except Exception as error:
            return Result(call_id=call_id, status="error", error=Error(type(error).__name__, str(error)))

    def _run(self, argv, *, stdin=None, timeout=None, policy=None, call_id=None):
        self.calls.append((argv, stdin, timeout, policy, call_id))
        done = subprocess.run(argv, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        result = Result(call_id=call_id, status="ok", exit_code=done.returncode, stdout_bytes=done.stdout,
                        stderr_bytes=done.stderr)
        if done.returncode:
            result.status, result.error = "error", Error("Error", f"exited with code {done.returncode}")
        return result

    def close(self):
        self.closed = True


class Broken:
    def _call(self, *args, **options):
        raise OSError("it is gone")


class AsyncBroken:
    async def _call(self, *args, **options):
        raise OSError("it is gone")


class AsyncFake(Fake):
    async def _call(self, *args, **options):
        await asyncio.sleep(0)
        return Fake._call(self, *args, **options)

    async def _run(self, *args, **options):
        return Fake._run(self, *args, **options)


def add(a: int, b: int = 2) -> int:
    """Adds two numbers."""
    return a + b


def clashing(timeout: int, policy: str, call_id: str, func: int = 0, name: str = "", self: int = 1):  # noqa: N805
    return [timeout, policy, call_id, func, name, self]


def fails():
    raise ValueError("on purpose")


@test("functions are registered, described, called and removed")
def _():
    fake = Fake()
    host = ToolHost(fake)
    check(host.register(add) is add, "what was handed in comes back")
    result = host.call("add", {"a": 1}, "c1")
    check_equal((result.ok, result.value, result.call_id), (True, 3, "c1"), "result")
    check_equal(fake.calls, [(add, (), {"a": 1}, None, None, "c1")], "calls")
    check_equal(host.list_tools(), [{"name": "add", "description": "Adds two numbers.", "input_schema": {
        "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
        "required": ["a"], "additionalProperties": False}}], "list")
    check_equal((host.get("add").name, host.get("none"), "add" in host, len(host)), ("add", None, True, 1), "get")
    host.unregister("add")
    check_equal(host.list_tools(), [], "none")
    try:
        host.unregister("add")
        check(False, "twice")
    except KeyError as error:
        check_in("there is no tool 'add'", str(error), "error")


@test("register is a decorator, with and without settings")
def _():
    fake = Fake()
    host = ToolHost(fake, policy="strict", timeout=9)

    @host.register
    def one(a: str):
        """One."""
        return a

    @host.register(name="ns:two", description="Other words.", timeout=5, policy="compute",
                   schema={"type": "object", "properties": {"x": {"maximum": 3}}})
    def two(x, /):
        return x

    check_equal(one("a"), "a", "it is a function still")
    check_equal([tool["name"] for tool in host.list_tools()], ["ns:two", "one"], "names")
    check_equal(host.get("ns:two").definition["description"], "Other words.", "description")
    host.call("one", {"a": "b"})
    host.call("ns:two", {"x": 1}, timeout=2)
    host.call("ns:two", {"x": 1}, timeout=60)
    check_equal([call[3:5] for call in fake.calls], [(9, "strict"), (2, "compute"), (5, "compute")], "timeouts and policies")


@test("what does not fit is refused before a cell is used")
def _():
    fake = Fake()
    host = ToolHost(fake)
    host.register(add)
    host.register(["cat", "{file}"], name="cat")
    for name, args, kind, text in (
            ("add", {"a": "1"}, "InvalidArguments", 'add: arguments.a: want an integer, found "1"'),
            ("add", {}, "InvalidArguments", 'add: arguments: "a" is missing'),
            ("add", None, "InvalidArguments", 'add: arguments: "a" is missing'),
            ("add", {"a": 1, "bb": 2}, "InvalidArguments", "add: arguments.bb: there is no such property; did you mean 'b'?"),
            ("add", [1], "InvalidArguments", "add: arguments: want an object, found an array"),
            ("add", "[1]", "InvalidArguments", "add: arguments: want an object, found an array"),
            ("add", "{", "InvalidArguments", "add: arguments: this is not JSON: "),
            ("add", '{"a":', "InvalidArguments", "add: arguments: this is not JSON: it ends too early"),
            ("add", '{"a": \x1b}', "InvalidArguments", "add: arguments: this is not JSON: a value is wanted where '\\x1b}' is"),
            ("add", " ", "InvalidArguments", "add: arguments: this is not JSON: it is empty"),
            ("add", "[" * 100000, "InvalidArguments", "add: arguments: "),
            ("add", {1: 2}, "InvalidArguments", "add: arguments: want names that are text, found 1"),
            ("cat", {"file": "-n"}, "InvalidArguments", "cat: arguments.file: this gives a word that begins with '-'"),
            ("ad", {}, "NoSuchTool", "there is no tool 'ad'; did you mean 'add'?"),
            ("x\n" * 1000, {}, "NoSuchTool", "there is no tool 'x\\nx"),
            (None, {}, "NoSuchTool", "there is no tool 'null'")):
        result = host.call(name, args, "id")
        check_equal((result.ok, result.status, result.error.type, result.call_id), (False, "refused", kind, "id"), str(args)[:40])
        check(result.error.message.startswith(text), result.error.message)
    host.register(lambda: 1, name="b", schema={"type": "object"})
    check_equal(host.call("a", {}).error.message, "there is no tool 'a'", "of one letter nothing is guessed")
    host.unregister("b")
    for call_id in ("x" * 251, "a\nb", 5):
        result = host.call("add", {"a": 1}, call_id)
        check_equal((result.status, result.error.type), ("refused", "InvalidRequest"), repr(call_id))
    check_equal(fake.calls, [], "nothing was called")
    check_equal(host.call("add", '{"a": 1}').value, 3, "control: JSON text")
    check_equal(host.call("add", {"a": 1}, "x" * 250).call_id, "x" * 250, "an id as long as a sandbox takes it")


@test("a call never raises, whatever the tool and the sandbox do")
def _():
    host = ToolHost(Fake())
    host.register(fails)
    result = host.call("fails")
    check_equal((result.status, result.error.type, result.error.message), ("error", "ValueError", "on purpose"), "a tool")
    host = ToolHost(Broken())
    host.register(fails)
    result = host.call("fails", {}, "c")
    check_equal((result.status, result.error.type, result.call_id), ("lost", "OSError", "c"), "a sandbox")


@test("parameters may have the names of the tool host's own")
def _():
    host = ToolHost(Fake())
    host.register(clashing)
    result = host.call("clashing", {"timeout": 1, "policy": "p", "call_id": "c", "func": 2, "name": "n", "self": 3})
    check_equal(result.value, [1, "p", "c", 2, "n", 3], "value")


@test("ids are made where there is none, and differ")
def _():
    host = ToolHost(Fake())
    host.register(add)
    ids = [host.call("add", {"a": 1}).call_id for _ in range(3)]
    check(len(set(ids)) == 3 and all(ids), ids)


@test("commands: words, standard input, values and errors")
def _():
    fake = Fake()
    host = ToolHost(fake)
    words = ["printf", "%s|", "{-a}", "{-rest...}"]
    check(host.register(words) is words, "what was handed in comes back")
    check_equal(host.get("printf").input_schema, {"type": "object", "properties": {"a": {}, "rest": {"type": "array"}},
                                                  "additionalProperties": False, "required": ["a"]}, "schema")
    check_equal(host.call("printf", {"a": "-x y", "rest": [1, "b"]}).value, "-x y|1|b|", "value")
    host.register(["cat"], name="echo")
    check_equal(host.call("echo").value, {}, "standard input is JSON")
    host.register(["cat"], name="echo", schema={"type": "object"})
    check_equal(host.call("echo", {"a": ["é", 1.5]}).value, {"a": ["é", 1.5]}, "and so is standard output")
    host.register(["cat"], name="text", input="<{a}>")
    check_equal(host.call("text", {"a": "x"}).value, "<x>", "a text of its own")
    host.register(["sh", "-c", "echo no such thing >&2; exit 3"], name="bad")
    result = host.call("bad")
    check_equal((result.status, result.exit_code, result.error.message),
                ("error", 3, "exited with code 3: no such thing"), "error")
    check_equal(str(error_of(result)), "exited with code 3: no such thing", "what is raised has it once")
    host.register(["sh", "-c", "head -c 9000 /dev/zero | tr '\\0' x >&2; echo >&2; echo last >&2; exit 1"], name="long")
    check_equal(host.call("long").error.message, "exited with code 1: last", "the end of a long one")


@test("what nests deeper than the stack ends no program, whatever its limit of recursion is")
def _():
    class Deep(Fake):
        def _run(self, *args, **options):
            return Result(call_id="c", status="ok", stdout_bytes=b"[" * depth)

    host, depth, usual = ToolHost(Deep()), 900_000, sys.getrecursionlimit()
    host.register(["true"])
    sys.setrecursionlimit(1 << 30)
    try:
        check_equal(host.call("true").value, "[" * depth, "a value")
        check_in("nested too deeply", host.call("true", '{"a":' + "[" * depth).error.message, "arguments")
    finally:
        sys.setrecursionlimit(usual)


@test("output that was cut is no value")
def _():
    class Cut(Fake):
        def _run(self, *args, **options):
            return Result(call_id="c", status="ok", stdout_bytes=b"[1]", dropped={"stdout": 5, "stderr": 0})

    host = ToolHost(Cut())
    host.register(["true"])
    result = host.call("true")
    check_equal((result.status, result.error.type, result.value), ("result_limit", "ResultLimit", None), "result")


@test("what cannot be a tool is an error that says why")
def _():
    host = ToolHost(Fake())
    for target, options, word in (
            ("ls -l", {}, "a list of words"), (5, {}, "want a function"), ([], {"name": "x"}, "there must be a program"),
            (add, {"name": "a b"}, "name: want letters"), (add, {"name": "x" * 129}, "name: want letters"),
            (lambda: 1, {}, "name="), (add, {"schema": {"type": "strin"}}, "schema.type"), (add, {"schema": 5}, "schema: want"),
            (add, {"schema": "[]"}, "schema: want an object"), (["cat", "{b}"], {"schema": {"properties": {"a": {}},
             "additionalProperties": False}}, "no argument 'b'"), (add, {"timeout": 0}, "timeout"), (add, {"timeout": float("nan")}, "timeout"),
            (add, {"input": "x"}, "input: only a command"), (add, {"description": "x" * 70000}, "longer than 64 KB"),
            (add, {"schema": {"enum": ["x" * 300000]}}, "longer than 256 KB")):
        try:
            host.register(target, **options)
            check(False, f"{target}: it is accepted")
        except (TypeError, ValueError) as error:
            check_in(word, str(error), "error")
    check_equal(len(host), 0, "none is there")
    try:
        ToolHost(Fake(), preload=["json"])
        check(False, "options of another's sandbox")
    except TypeError as error:
        check_in("preload", str(error), "error")


@test("a list belongs to who asked for it; schemas to the tool")
def _():
    host = ToolHost(Fake())
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    host.register(add, schema=schema)
    schema["properties"]["a"]["type"] = "string"
    host.list_tools()[0]["input_schema"]["properties"].clear()
    check_equal(host.list_tools()[0]["input_schema"]["properties"], {"a": {"type": "integer"}}, "schema")
    check_equal(host.call("add", {"a": 1}).ok, True, "call")


@test("list_tools finds by words of names and descriptions")
def _():
    host = ToolHost(Fake())
    for name, text in (("read_file", "Reads a File."), ("write_file", "Writes one."), ("sum", "Adds numbers.")):
        host.register(lambda: 1, name=name, description=text)
    for query, want in ((None, 3), ("", 3), ("file", 2), ("FILE reads", 1), ("numbers add", 1), ("none", 0)):
        check_equal(len(host.list_tools(query)), want, repr(query))


@test("watchers are told of what is added, changed and removed, and of nothing else")
def _():
    host = ToolHost(Fake())
    host.register(add)
    watch = host.watch()
    host.register(add)
    host.register(add, description="other")
    host.register(fails)
    host.unregister("add")
    got = [watch.get(1) for _ in range(3)]
    check_equal([(event.kind, event.name) for event in got], [("changed", "add"), ("added", "fails"), ("removed", "add")], "events")
    check_equal(got[0].tool.description, "other", "the tool")
    check_equal(watch.get(0.01), None, "no more")
    threading.Timer(0.05, host.register, [add]).start()
    check_equal(next(watch).kind, "added", "waiting")
    threading.Timer(0.05, host.close).start()
    check_equal(list(watch), [], "closing ends it")


@test("a watcher that nobody has is let go")
def _():
    host = ToolHost(Fake())
    host.watch()
    gc.collect()
    check_equal(len(host._watches), 0, "watches")


@test("many threads register, call and list at once")
def _():
    host, errors = ToolHost(Fake()), []

    def work(number):
        try:
            for i in range(50):
                host.register(add, name=f"t{number}.{i % 3}")
                assert host.call(f"t{number}.{i % 3}", {"a": i}).value == i + 2
                host.list_tools("t")
                host.unregister(f"t{number}.{i % 3}")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[n]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_equal((errors, len(host)), ([], 0), "errors")


@test("closing leaves a sandbox that was given alone")
def _():
    fake = Fake()
    with ToolHost(fake) as host:
        host.register(add)
    check_equal(fake.closed, False, "closed")
    check_equal(host.call("add", {"a": 1}).value, 3, "it works on")
    with ToolHost() as host:
        host.register(add)
    result = host.call("add", {"a": 1})
    check_equal((result.status, result.error.message), ("refused", "the tool host is closed"), "one of its own is not made again")


@test("nothing is started by a tool host that makes no calls")
def _():
    code = ("import sys, threading; sys.path.insert(0, sys.argv[1]); from vitro.toolhost import ToolHost; import os;"
            "host = ToolHost(); host.register(lambda: 1, name='x'); host.close(); print(threading.active_count(), os.listdir('/proc/self/fd'))")
    done = subprocess.run([sys.executable, "-c", code, str(HERE.parents[1] / "sdk" / "python")], stdout=subprocess.PIPE,
                          check=True, stdin=subprocess.DEVNULL)
    check_equal(done.stdout.decode()[:2], "1 ", "threads")
    check(len(eval(done.stdout.decode()[2:])) <= 5, done.stdout)


@test("the same for asyncio")
def _():
    async def work():
        fake = AsyncFake()
        async with AsyncToolHost(fake, timeout=3) as host:
            host.register(add)
            host.register(["printf", "%s", "{a}"])
            results = await asyncio.gather(*(host.call("add", {"a": n}) for n in range(20)), host.call("printf", {"a": "[1]"}))
            check_equal([result.value for result in results], [*range(2, 22), [1]], "values")
            check_equal({call[3] for call in fake.calls if call[0] is add}, {3}, "timeout")
            check_equal((await host.call("add", {"a": "x"})).error.type, "InvalidArguments", "refused")
            broken = AsyncToolHost(AsyncBroken())
            broken.register(add)
            check_equal((await broken.call("add", {"a": 1})).status, "lost", "a sandbox that raises")

    asyncio.run(work())


@test("cancelling a task that awaits a call reaches the sandbox")
def _():
    seen = []

    class Slow:
        async def _call(self, *args, **options):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append("cancelled")
                raise

    async def work():
        host = AsyncToolHost(Slow())
        host.register(add)
        task = asyncio.ensure_future(host.call("add", {"a": 1}))
        await asyncio.sleep(0.01)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            seen.append("raised")

    asyncio.run(work())
    check_equal(seen, ["cancelled", "raised"], "seen")


@test("async watching, with changes from a thread")
def _():
    async def work():
        host = AsyncToolHost(AsyncFake())
        watch = host.watch()
        thread = threading.Thread(target=lambda: (time.sleep(0.02), host.register(add), host.unregister("add"), time.sleep(0.02),
                                                  host.register(fails), host._end_watches()))
        thread.start()
        kinds = [event.kind async for event in watch]
        thread.join()
        check_equal(kinds, ["added", "removed", "added"], "events")

    asyncio.run(asyncio.wait_for(work(), 10))


@test("definitions are plain JSON")
def _():
    host = ToolHost(Fake())
    host.register(add)
    check_equal(json.loads(json.dumps(host.list_tools())), host.list_tools(), "list")
    check_equal(host.get("add").warnings, [], "warnings")


if __name__ == "__main__":
    main()
