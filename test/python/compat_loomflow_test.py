#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vitro.compat.loomflow: what it promises to programs that were written for loomflow or jeevesagent. The framework is a
stand-in here; compat_real_test.py has the real ones."""

import asyncio
import dataclasses
import os
import pathlib
import signal
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import compat_common
from compat_common import BEST, HERE, pythons, run_script
from vitrotest import check, check_equal, check_in, folder, is_bare, need_held, raises, skip, test, write

import compat_decorated
import compat_tools
import toolbox
from loomflow.agent import Agent, ScriptedModel
from loomflow.core import errors, types
from loomflow.tools.registry import InProcessToolHost, RemoteToolHost
from vitro.compat import loomflow as compat
from vitro.compat._shared import shared_async_sandbox
from vitro.compat.loomflow import CodeExecutor, ExecResult, OSSandbox, SubprocessSandbox

os.environ["COMPAT_KEY"] = "passed"  # policies pass what was there when vitro was first used


def host(*tools):
    return InProcessToolHost(tools or (compat_tools.add, compat_tools.fail, compat_tools.sleep))


def call(sandbox, tool, **args):
    return asyncio.run(sandbox.call(tool, args, call_id="c1"))


def error_of(sandbox, tool, **args):
    result = call(sandbox, tool, **args)
    check(not result.ok and result.output is None, result)
    return result.error


def refusal(kind, *call, **options):
    """What it says that such a call raises."""
    return str(raises(kind, *call, **options))


# ---- SubprocessSandbox --------------------------------------------------------------------------------------------


@test("it is made of an in-process host and a time above 0, and says what is wrong with others")
def _():
    inner = host()
    made = SubprocessSandbox(inner)
    check_equal((made.inner, made.timeout_seconds), (inner, 30.0), "properties")
    for seconds in (0, -1, float("nan")):
        check_equal(refusal(ValueError, SubprocessSandbox, RemoteToolHost(), timeout_seconds=seconds),
                    "timeout_seconds must be positive", "checked first")
    for kind in (errors.ConfigError, compat.ConfigError):
        said = refusal(kind, SubprocessSandbox, RemoteToolHost())
        check_in("SubprocessSandbox wraps InProcessToolHost only", said, "what it wants")
        check_in("RemoteToolHost", said, "what it got")
    check_in("object", refusal(errors.ConfigError, SubprocessSandbox, object()), "whatever it is")

    class Mine(InProcessToolHost):
        pass

    check_equal(call(SubprocessSandbox(Mine([compat_tools.add]), policy=BEST), "add", a=2, b=3).output, 5, "a subclass")


@test("results are the framework's, where the host is; the host's own tools and events are told")
def _():
    sandbox = SubprocessSandbox(host(compat_tools.add, compat_decorated.double), policy=BEST)
    result = call(sandbox, "add", a=2, b=3)
    check_equal(type(result), types.ToolResult, "its class")
    fields = dataclasses.asdict(result)
    started = fields.pop("started_at")
    check_equal(fields, {"call_id": "c1", "ok": True, "output": 5, "error": None, "denied": False, "reason": None,
                         "duration_ms": None}, "its fields")
    check(started.tzinfo, "when")

    async def story():
        listed = await sandbox.list_tools(query="dou")
        return listed, [event async for event in sandbox.watch()]

    listed, events = asyncio.run(story())
    check_equal(listed, [types.ToolDef("double", "Twice as much.")], "tools")
    check_equal(events, [types.ToolEvent("added", "add"), types.ToolEvent("added", "double")], "events")
    sandbox.register(compat_tools.speak)
    check_equal(call(sandbox, "speak", text="abc").output, 3, "a tool that came later")
    sandbox.inner.unregister("speak")
    check_equal(error_of(sandbox, "speak", text="abc"), "unknown tool: speak", "one that is gone")


@test("functions, coroutine functions, and both under @tool; an agent with a scripted model")
def _():
    tools = (compat_tools.add, compat_tools.add_later, compat_decorated.double, compat_decorated.double_later, toolbox.fail)
    sandbox = SubprocessSandbox(host(*tools), timeout_seconds=20, policy=BEST)
    check_equal([call(sandbox, name, x=4).output for name in ("double", "double_later")], [8, 8], "under @tool")
    model = ScriptedModel([("add", {"a": 2, "b": 3}), ("add_later", {"a": 5, "b": 5}), ("fail", {"message": "no"}),
                           ("nothing", {}), "ten"])
    answer, messages = asyncio.run(Agent(model, sandbox).run("what is 2 + 3 + 5?"))
    check_equal((answer, messages[1:]), ("ten", [5, 10, "error: SubprocessSandbox: tool raised ValueError: no",
                                                 "error: unknown tool: nothing"]), "what the model heard")
    check_equal(model.heard[0][1], ["add", "add_later", "double", "double_later", "fail"], "what it was told of")


@test("texts that programs match on")
def _():
    def local(x):
        return x

    sandbox = SubprocessSandbox(host(compat_tools.sleep, compat_tools.fail, compat_tools.crash, compat_tools.echo, local),
                                timeout_seconds=0.5, policy=BEST)
    check_equal(error_of(sandbox, "nope"), "unknown tool: nope", "no such tool")
    check_equal(error_of(sandbox, "sleep", seconds=30), "SubprocessSandbox: tool exceeded 0.5s", "a timeout")
    check_equal(error_of(sandbox, "fail", message="msg"), "SubprocessSandbox: tool raised ValueError: msg", "a failure")
    check_equal(error_of(sandbox, "crash"), "SubprocessSandbox: subprocess exited without producing a result: "
                "killed by SIGSEGV", "a crash")
    said = error_of(sandbox, "echo", thing=threading.Lock())
    check_in("SubprocessSandbox: tool 'echo' was not called, since its arguments are not picklable", said, "arguments")
    check_in("argument 'thing'", said, "which")
    check_in("Pass plain data", said, "what to do")
    check_in("limits", error_of(SubprocessSandbox(host(), policy={"limits": {"no_such": 1}}), "add", a=1, b=2), "a policy")


@test("a call has no network, a private /tmp, a minimal environment; it starts in the working directory, and reads it")
def _():
    need_held({"files": "mountns", "network": "*"})
    os.environ["COMPAT_SECRET"] = "token"
    before = os.getcwd()
    tools = host(compat_tools.see_place, compat_tools.read, compat_tools.write, compat_tools.connect, compat_tools.see_variable,
                 compat_tools.see)
    with folder(parent="/var/tmp") as place, folder(parent="/var/tmp") as other, folder(parent="/tmp") as temporary:
        write(os.path.join(place, "data.txt"), "known")
        write(os.path.join(other, "data.txt"), "hidden")
        sandbox = SubprocessSandbox(tools, policy=BEST)
        try:
            os.chdir(place)
            check_equal(call(sandbox, "see_place").output, (place, ["data.txt"]), "where it is")
            check_equal(call(sandbox, "see", path=temporary).output, False, "what others have in /tmp")
            check_equal(call(sandbox, "read", path="data.txt").output, "known", "a file there")
            check_equal(call(sandbox, "read", path=os.path.join(HERE, "compat_tools.py")).ok, True, "a file of sys.path")
            check_equal(call(sandbox, "write", path="/tmp/x", text="x").output, 1, "a file of its own")
            check_in("files.write", error_of(sandbox, "write", path="new.txt", text="x"), "writing")
            check_in("files.read", error_of(sandbox, "read", path=f"{other}/data.txt"), "reading elsewhere")
            check_in("the policy's key is network", error_of(sandbox, "connect", port=1), "network")
            check_equal(call(sandbox, "see_variable", name="COMPAT_SECRET").output, None, "the environment")
            os.chdir(other)
            check_equal(call(sandbox, "read", path="data.txt").output, "hidden", "when the program has moved")
        finally:
            os.chdir(before)
            del os.environ["COMPAT_SECRET"]


@test("the home folder is not for tools, also where it is the working directory")
def _():
    need_held({"files": "mountns"})
    with folder(parent="/var/tmp") as home:
        write(os.path.join(home, "key"), "secret")
        text = ("import asyncio, compat_tools\nfrom vitro.compat.loomflow import InProcessToolHost, SubprocessSandbox\n"
                f"sandbox = SubprocessSandbox(InProcessToolHost([compat_tools.read]), policy={BEST!r})\n"
                "print(asyncio.run(sandbox.call('read', {'path': %r})).error)\n" % os.path.join(home, "key"))
        done = run_script(home, text, env={"HOME": home})
        check_in("tool raised FileNotFoundError", done.out, "what it says", done)


@test("policy: a dict opens what it names, and the rest stays; what extends another stands for itself")
def _():
    need_held({"files": "mountns"})
    tools = host(compat_tools.read, compat_tools.write, compat_tools.see_variable, compat_tools.see_place)
    before = os.getcwd()
    with folder(parent="/var/tmp") as place, folder(parent="/var/tmp", writable=True) as other:
        write(os.path.join(place, "data.txt"), "known")
        try:
            os.chdir(place)
            opened = SubprocessSandbox(tools, policy={**BEST, "files": {"write": [other]}, "env": {"pass": ["COMPAT_KEY"]}})
            check_equal(call(opened, "write", path=f"{other}/new", text="xyz").output, 3, "files.write")
            check_equal(pathlib.Path(other, "new").read_text(), "xyz", "the file")
            check_equal(call(opened, "see_variable", name="COMPAT_KEY").output, "passed", "env.pass")
            check_equal(call(opened, "read", path="data.txt").output, "known", "the working directory is still there")
            closed = SubprocessSandbox(tools, policy={"extends": "default", **BEST})
            check_equal(call(closed, "see_place").output[0], "/tmp", "where it starts")
            check_in("files.read", error_of(closed, "read", path=f"{place}/data.txt"), "what is not open")
        finally:
            os.chdir(before)


@test("values: plain data, and classes that were named; a pickle only by an explicit word")
def _():
    tools = host(toolbox.make_point, compat_tools.make_all_kinds)
    check_equal(call(SubprocessSandbox(tools, policy=BEST), "make_all_kinds").output["tuple"], (1, 2), "plain")
    check_in("result_types", error_of(SubprocessSandbox(tools, policy=BEST), "make_point", x=1, y=2), "a class")
    named = SubprocessSandbox(tools, policy=BEST, result_types=[toolbox.Point])
    check_equal(call(named, "make_point", x=1, y=2).output, toolbox.Point(1, 2), "one that was named")
    trusting = SubprocessSandbox(tools, policy=BEST, trust_results=True)
    check_equal(call(trusting, "make_point", x=1, y=2).output, toolbox.Point(1, 2), "a pickle")


@test("one sandbox in one event loop after the other, and in several at once")
def _():
    sandbox = SubprocessSandbox(host(compat_tools.add, compat_tools.sleep), policy=BEST)
    check_equal([call(sandbox, "add", a=n, b=1).output for n in range(3)], [1, 2, 3], "one after the other")
    found = {}

    async def story(number):
        results = await asyncio.gather(sandbox.call("sleep", {"seconds": 0.3}), sandbox.call("add", {"a": number, "b": 1}))
        found[number] = [result.output for result in results]

    threads = [threading.Thread(target=lambda n=n: asyncio.run(story(n))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    check_equal(found, {n: [0.3, n + 1] for n in range(3)}, "at once")


@test("a supervisor that dies takes the call with it, which says so, and the next call has a new one")
def _():
    sandbox = SubprocessSandbox(host(compat_tools.add, compat_tools.sleep), policy=BEST)

    async def story():
        await sandbox.call("add", {"a": 2, "b": 3})
        task = asyncio.ensure_future(sandbox.call("sleep", {"seconds": 20}))
        session = shared_async_sandbox()._session
        while not session.calls:
            await asyncio.sleep(0.01)
        os.kill(session.connection.process.pid, signal.SIGKILL)
        return await task, await sandbox.call("add", {"a": 2, "b": 3})

    lost, after = asyncio.run(story())
    check_in("SubprocessSandbox: the call was lost, and may have run: ", lost.error, "what it says")
    check_equal(after.output, 5, after.error)


@test("whatever a call is given, it gives a result: ids and arguments of all kinds")
def _():
    sandbox = SubprocessSandbox(host(compat_tools.echo), policy=BEST)
    for call_id in ("", "x" * 1000, "a\nb", "\ud800"):
        result = asyncio.run(sandbox.call("echo", {"self": 1, "timeout": 2, "func": 3}, call_id=call_id))
        check_equal((result.call_id, result.output), (call_id, ((), {"self": 1, "timeout": 2, "func": 3})), result.error)
    check_in("could not be made", asyncio.run(sandbox.call("echo", 5)).error, "what are no arguments")
    check_in("not begun", error_of(SubprocessSandbox(host(), policy="/nowhere/policy.json"), "add", a=1, b=2), "no policy")


# ---- without the framework ----------------------------------------------------------------------------------------


@test("without the framework: a host, tools and results of its own")
def _():
    @compat.tool(name="sum", destructive=True)
    def add_all(numbers: list, start: int = 0) -> int:
        """Adds them up."""
        return sum(numbers, start)

    check_equal((add_all.name, add_all.description, add_all.destructive), ("sum", "Adds them up.", True), "a tool")
    check_equal(add_all.input_schema["required"], ["numbers"], "its schema")
    own = compat.InProcessToolHost([compat_tools.add, compat_tools.fail])
    own.register(add_all)
    check_equal((own.get("sum"), own.get("nope")), (add_all, None), "by name")
    check_equal([one.name for one in asyncio.run(own.list_tools(query="SUM"))], ["sum"], "found by a text")
    check_equal(call(own, "sum", numbers=[1, 2]).output, 3, "without a sandbox")
    check_equal(call(own, "fail", message="no").error, "no", "a failure without a sandbox")
    check_equal((own.unregister("sum"), own.unregister("sum")), (True, False), "removed")
    result = call(SubprocessSandbox(own, policy=BEST), "add", a=2, b=3)
    check_equal((type(result), result.output), (compat.ToolResult, 5), "in a sandbox")
    check_in("a tool is", refusal(TypeError, own.register, 5), "what is no tool")


@test("neither framework is needed, nor imported")
def _():
    with folder() as place:
        done = run_script(place, "import sys\nimport vitro.compat.loomflow, vitro.compat.calute\n"
                          "print([name for name in ('loomflow', 'jeevesagent', 'xerxes') if name in sys.modules])\n")
        check_equal((done.out, done.err), ("[]\n", ""), "what is imported", done)
        done = run_script(place, "import sys\nfrom vitro.compat import loomflow, calute\nprint(loomflow.__all__)\n",
                          env={"PYTHONPATH": str(pythons.SDK)})
        check_in("SubprocessSandbox", done.out, "without any", done)


# ---- OSSandbox and CodeExecutor -----------------------------------------------------------------------------------


@test("OSSandbox: tools write below the roots and nowhere else, and the network is by a flag")
def _():
    need_held({"files": "mountns", "network": "*"})
    tools = host(compat_tools.write, compat_tools.see_place, compat_tools.connect, compat_tools.sleep)
    check_in("at least one writable root", refusal(ValueError, OSSandbox, tools, roots=[]), "no root")
    check_in("must be positive", refusal(ValueError, OSSandbox, tools, roots=["/x"], timeout_seconds=0), "no time")
    check_in("OSSandbox wraps InProcessToolHost only", refusal(errors.ConfigError, OSSandbox, 5, roots=["/x"]), "no host")
    with folder(parent="/var/tmp", writable=True) as place, folder(parent="/var/tmp", writable=True) as other:
        sandbox = OSSandbox(tools, roots=[place], timeout_seconds=5.0, path_args=["path"], policy=BEST)
        check_equal((sandbox.mode, sandbox.roots, sandbox.inner), ("vitro", (pathlib.Path(place).resolve(),), tools), "of it")
        check_equal(call(sandbox, "see_place").output[0], place, "where it starts")
        check_equal(call(sandbox, "write", path="in.txt", text="x").output, 1, "inside")
        check_equal(pathlib.Path(place, "in.txt").read_text(), "x", "the file")
        check_in("files.", error_of(sandbox, "write", path=f"{other}/out.txt", text="x"), "outside")
        check(not os.listdir(other), "something was written outside")
        check_in("network", error_of(sandbox, "connect", port=1), "no network")
        allowed = OSSandbox(tools, roots=[place], allow_network=True, policy=BEST)
        check_in("ConnectionRefusedError", error_of(allowed, "connect", port=1), "network")
        late = OSSandbox(tools, roots=[place], timeout_seconds=0.3, policy=BEST)
        check_equal(error_of(late, "sleep", seconds=9), "OSSandbox: tool exceeded 0.3s", "a timeout")


def execute(code, **options):
    return asyncio.run(CodeExecutor(policy=BEST).run(code, **options))


@test("CodeExecutor: what was printed, the exit code, and what was left in ./out")
def _():
    done = execute("import os, sys\nprint(__name__, os.environ['KEY'], open('in.txt').read())\n"
                   "open('out/new.txt', 'w').write('made')\nos.mkdir('out/sub')\nopen('out/sub/b', 'wb').write(b'\\0')\n"
                   "print('bad', file=sys.stderr)\nsys.exit(3)",
                   files={"in.txt": b"given", "out/same": b"1"}, env={"KEY": "value"})
    check_equal(done, ExecResult("__main__ value given\n", "bad\n", 3, False, {"new.txt": b"made", "sub/b": b"\0"}), "a script")
    check_equal(execute("pass"), ExecResult("", "", 0), "nothing")
    done = execute("def f():\n    return 1 / 0\n\nopen('out/x', 'w').close()\nf()")
    check_equal((done.returncode, done.artifacts), (1, {"x": b""}), "a failure")
    check_in('File "<code>", line 2, in f\n    return 1 / 0', done.stderr, "its traceback")
    check("_run" not in done.stderr, done.stderr)
    check_in("SyntaxError", execute("x = = 1").stderr, "what is no code")
    check_equal(execute("echo hi; exit 4", language="bash"), ExecResult("hi\n", "", 4), "a shell's")
    done = execute("while True: pass", timeout_s=0.3)
    check_equal((done.timed_out, done.returncode), (True, -1), "too long")
    check_equal(execute("import ctypes\nctypes.string_at(0)").returncode, -11, "a crash")
    check_equal(execute("import os\nos._exit(5)").returncode, 5, "_exit")


@test("CodeExecutor: what cannot be run raises, and the code cannot choose how it ended")
def _():
    for options in ({"language": "cobol"}, {"timeout_s": 0}, {"files": {"../x": b""}}, {"files": {"/etc/x": b""}}):
        raises(ValueError, execute, "pass", **options)
    forged = execute("import sys\nframe = sys._getframe()\nwhile frame.f_back is not None:\n    frame = frame.f_back\n"
                     "import builtins\nbuiltins.int = lambda *_: 'forged'")
    check_equal(type(forged.returncode), int, "the exit code is a number")
    if is_bare():
        skip("cells without namespaces share the network's names")
    done = execute("import socket\nsocket.create_connection(('127.0.0.1', 1))")
    check_equal(done.returncode, 1, "no network")


if __name__ == "__main__":
    compat_common.main(pythons.main)
