#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: its supervisor, which dies, is forked away from, is a server with tools of its own, or is not there."""

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from sandboxes import BEST, box, raises
from vitrotest import BINARY, check, check_equal, check_in, folder, proc, run, test, wait_until, write

import vitro


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


@test("a program that has no descriptors left is told so, loses none, and goes on")
def _():
    program = f"""
import json, os, resource, sys
sys.path.insert(0, {str(pythons.SDK)!r})
import vitro

def fill(free):
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    for _ in range(free):
        os.close(held.pop())
    return held

vitro.Sandbox({BEST!r}).eval("1")  # what is imported late has been
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
told, open_before = [], len(os.listdir("/proc/self/fd"))
for kind in (dict(), dict(socket="/none")):
    for free in range(4 if not kind else 1):
        sandbox = vitro.Sandbox({BEST!r}, **kind)
        held = fill(free)
        result = sandbox.eval("1", result=True)
        for fd in held:
            os.close(fd)
        told.append([result.status, result.error.type, "Too many open files" in result.error.message])
    if not kind:
        told.append(sandbox.eval("2"))
        sandbox.close()
print(json.dumps([told, len(os.listdir("/proc/self/fd")) - open_before]))
"""
    done = run([sys.executable, "-c", program])
    check_equal(done.err, "", "what it says")
    check_equal(json.loads(done.out), [[["lost", "Lost", True]] * 4 + [2, ["refused", "Refused", True]], 0], "what it is told, and what stays open")


class Awaited:
    """An AsyncSandbox of which everything is waited for."""

    def __init__(self, *args, **kwargs):
        self._sandbox, self._loop = vitro.AsyncSandbox(*args, **kwargs), asyncio.new_event_loop()

    def __getattr__(self, name):
        def wait(*args, **kwargs):
            return self._loop.run_until_complete(getattr(self._sandbox, name)(*args, **kwargs))
        return wait

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
        self._loop.close()


@test("a sandbox that is closed while its supervisor starts has none, and does no call")
def _():
    begin, starting, started = vitro._start.start, threading.Event(), []

    def start():
        started.append(begin())
        starting.set()
        time.sleep(0.5)
        return started[0]

    results, sandbox = [], vitro.Sandbox(BEST)
    vitro._start.start = start
    try:
        thread = threading.Thread(target=lambda: results.append(sandbox.eval("1", result=True)))
        thread.start()
        starting.wait(20)
        sandbox.close()
        thread.join(20)
    finally:
        vitro._start.start = begin
    check_equal([(result.status, result.error.message) for result in results], [("refused", "the sandbox is closed")], "the call")
    check_equal(sandbox.eval("1", result=True).status, "refused", "the next")
    wait_until(lambda: not os.path.exists(f"/proc/{started[0].process.pid}"), 10, "the supervisor is gone")


@test("asyncio: a supervisor that starts while its sandbox is closed, or its loop ends, is ended and reaped")
def _():
    begin, started = vitro._start.start, []

    def start():
        started.append(begin())
        time.sleep(0.3)
        return started[-1]

    async def close():
        sandbox = vitro.AsyncSandbox(BEST)
        call = asyncio.ensure_future(sandbox.eval("1", result=True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await sandbox.close()
        check(not proc(f"{started[-1].process.pid}/stat"), "closed: it is reaped by then")
        result = await call
        check_equal((result.status, result.error.message), ("refused", "the sandbox is closed"), "the call")

    async def cancel(closes):
        sandbox = vitro.AsyncSandbox(BEST)
        call = asyncio.ensure_future(sandbox.eval("1"))
        await asyncio.sleep(0.1)
        call.cancel()
        check_equal((await asyncio.gather(call, return_exceptions=True))[0].__class__, asyncio.CancelledError, "the call")
        if closes:
            await sandbox.close()

    vitro._start.start = start
    try:
        for name, story in (("closed", close), ("cancelled, closed", lambda: cancel(True)), ("cancelled", lambda: cancel(False))):
            asyncio.run(story())
            wait_until(lambda: started and not proc(f"{started[-1].process.pid}/stat"), 10, f"{name}: nothing is left")
    finally:
        vitro._start.start = begin
    check_equal(len(started), 3, "so many were started")


@test("asyncio: a sandbox that is dropped ends its supervisor, and does its event loop no harm")
def _():
    async def drop():
        sandbox = vitro.AsyncSandbox(BEST)
        await sandbox.eval("1")
        pid = supervisor_of(sandbox)
        os.kill(pid, signal.SIGSTOP)  # it takes its time to end
        begun = time.monotonic()
        del sandbox
        gc.collect()
        await asyncio.sleep(0.1)
        check(time.monotonic() - begun < 3, f"the loop stood still for {time.monotonic() - begun} s")
        return pid

    async def story():
        pids = [await drop() for _ in range(3)]  # the next socket has the number of the last one
        async with vitro.AsyncSandbox(BEST) as sandbox:
            check_equal(await sandbox.eval("2"), 2, "another one")
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        return pids

    for pid in asyncio.run(story()):
        wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "it is gone")
    loop = asyncio.new_event_loop()  # which does not run when it is dropped
    sandbox = vitro.AsyncSandbox(BEST)
    loop.run_until_complete(sandbox.eval("1"))
    pid = supervisor_of(sandbox)
    del sandbox
    gc.collect()
    wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20, "it is gone")
    loop.close()


@contextlib.contextmanager
def serving(*flags):
    """The path of a server's socket. It is ended afterwards."""
    with folder() as place:
        path = os.path.join(place, "socket")
        with subprocess.Popen([BINARY, "serve", "--socket", path, *flags], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                wait_until(lambda: os.path.exists(path), 10, "it serves")
                yield path
            finally:
                server.terminate()


@test("a server's socket in place of a supervisor of its own")
def _():
    with serving() as path, vitro.Sandbox(BEST, socket=path) as sandbox:
        check_equal(sandbox.run(["echo", "hi"]).stdout, "hi\n", "a command")
        check_equal(sandbox.eval("6 * 7"), 42, "code")
        check_equal(sandbox.call(toolbox.add, 2, 3), 5, "a function")
    gone = raises(vitro.Refused, vitro.Sandbox(socket=path).eval, "1")
    check_equal(str(gone), f"no server can be reached at {path!r}: No such file or directory; start one: vitro serve --socket PATH",
                "nothing was begun")
    for other, why in (("/usr", "it is a folder; name the socket in it"), ("/etc/passwd", "it is no socket")):
        check_equal(str(raises(vitro.Refused, vitro.Sandbox(socket=other).eval, "1")),
                    f"no server can be reached at {other!r}: {why}", "what is there")
    check_equal(vitro.Sandbox(socket=path).eval("1", result=True).status, "refused", "its result")
    raises(vitro.Refused, vitro.Sandbox(socket="/" + "x" * 200).eval, "1")


@test("a tool that gives more than a server takes fails alone")
def _():
    tools = {"read": lambda size: b"x" * size}
    with serving() as path:
        for sandbox in each_kind(BEST, socket=path):
            code = "try:\n    read(64 << 20)\nexcept Exception as error:\n    said = str(error)\nsaid, len(read(9))"
            said, size = sandbox.eval(code, tools=tools)
            check_in("a supervisor takes at most 67108864", said, "what the code is told")
            check_equal(size, 9, "the next use")


TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
MANIFEST = {"policy": BEST, "tools": [
    {"name": "say", "description": "Says it.", "input_schema": TEXT, "command": ["printf", "%s", "{text}"]},
    {"name": "fail", "command": ["sh", "-c", "echo before >&2; echo why >&2; exit 3"]},
    {"name": "nap", "command": ["sleep", "30"]},
    {"name": "flood", "command": ["head", "-c", "100000", "/dev/zero"], "policy": {**BEST, "limits": {"stdout_kb": 1}}},
    {"name": "shop:weigh", "python": "own:weigh"},
    {"name": "shop:fail", "python": "own:fail"}]}
OWN = """
def weigh(items):
    print("weighed")
    return {"total": sum(items)}

def fail():
    raise ValueError("why")
"""


@contextlib.contextmanager
def serving_tools():
    with folder() as place:
        write(os.path.join(place, "own.py"), OWN)
        manifest = write(os.path.join(place, "tools.json"), json.dumps(MANIFEST))
        with serving("--tools", manifest) as path:
            yield path


def each_kind(*args, **kwargs):
    for kind in (vitro.Sandbox, Awaited):
        with kind(*args, **kwargs) as sandbox:
            yield sandbox


@test("tools of a server: values, whole results, and what is heard")
def _():
    with serving_tools() as path:
        for sandbox in each_kind(BEST, socket=path):
            check_equal(sandbox.call_tool("say", {"text": "hello"}), "hello", "what a command printed")
            check_equal(sandbox.call_tool("say", {"text": '{"a": [1]}'}), {"a": [1]}, "the same as JSON")
            check_equal(sandbox.call_tool("shop:weigh", {"items": [1, 2]}), {"total": 3}, "what a function gave")
            heard = []
            result = sandbox.call_tool("shop:weigh", {"items": [*range(300)]}, result=True, call_id="mine",
                                       on_output=lambda stream, text: heard.append((stream, text)))
            check_equal((result.status, result.call_id, result.value, result.stdout, heard),
                        ("ok", "mine", {"total": 44850}, "weighed\n", [("stdout", "weighed\n")]), "a whole result")


@test("tools of a server that fail, are ended, or are not there")
def _():
    with serving_tools() as path:
        for sandbox in each_kind(BEST, socket=path):
            error = raises(vitro.ToolError, sandbox.call_tool, "fail")
            check_equal((error.result.status, error.result.exit_code, error.result.error.message),
                        ("error", 3, "exited with code 3: before\nwhy"), "a command")
            check_equal(str(error), "exited with code 3: before\nwhy", "its last words are told once")
            error = raises(vitro.ToolError, sandbox.call_tool, "shop:fail")
            check_equal((error.type, error.message), ("ValueError", "why"), "a function")
            raises(vitro.Timeout, sandbox.call_tool, "nap", timeout=0.2)
            raises(vitro.ResultLimit, sandbox.call_tool, "flood")
            for name, args in (("none", {}), ("say", {}), ("say", {"text": 5})):
                raises(vitro.Refused, sandbox.call_tool, name, args)
                check_equal(sandbox.call_tool(name, args, result=True).status, "refused", (name, args))
            for name, said in (("shop:wiegh", "the server has no tool 'shop:wiegh'; did you mean 'shop:weigh'?"),
                               ("elephants", "the server has no tool 'elephants'"), ("s", "the server has no tool 's'")):
                check_equal(str(raises(vitro.Refused, sandbox.call_tool, name)), said, name)
            for args in (("say", "x"), ("say", [1]), ("", {}), (5, {}), ("x" * 251, {}), ("say", {"text": {1}})):
                raises(TypeError, sandbox.call_tool, *args)
            check_equal(sandbox.call_tool("say", {"text": float("nan")}, result=True).status, "refused", "what JSON cannot say")
            check_equal(sandbox.call_tool("say", {"text": "x"}), "x", "the connection stays")


@test("tools of a server are cancelled with who waits for them")
def _():
    async def cancel(path):
        async with vitro.AsyncSandbox(BEST, socket=path) as sandbox:
            task = asyncio.create_task(sandbox.call_tool("nap", call_id="mine"))
            while not sandbox.is_running():
                await asyncio.sleep(0.01)
            task.cancel()
            check_equal([type(one) for one in await asyncio.gather(task, return_exceptions=True)], [asyncio.CancelledError], "the task")

    with serving_tools() as path:
        asyncio.run(cancel(path))
        with vitro.Sandbox(BEST, socket=path) as sandbox:
            threading.Thread(target=lambda: wait_until(lambda: sandbox.cancel("mine"), 10, "it is under way")).start()
            raises(vitro.Cancelled, sandbox.call_tool, "nap", call_id="mine")


@test("tools of a server are listed, and code in a cell may use them")
def _():
    with serving_tools() as path:
        for sandbox in each_kind(BEST, socket=path):
            tools = sandbox.server_tools()
            check_equal(sorted(tools), sorted(tool["name"] for tool in MANIFEST["tools"]), "their names")
            check_equal(tools["say"].definition, {"name": "say", "description": "Says it.", "input_schema": TEXT}, "one")
            code = "[say(text='a'), tools['shop:weigh'](items=[2, 3])]"
            check_equal(sandbox.eval(code, tools=tools), ["a", {"total": 5}], "from a cell")
            for use in ("say(text=5)", "say('a')"):
                check_in("say: ", str(raises(vitro.ToolError, sandbox.eval, use, tools=tools)), use)


@test("where there are no tools of a server, the error says so")
def _():
    for sandbox in each_kind(BEST):
        for use in (sandbox.server_tools, lambda: sandbox.call_tool("say", {"text": "x"})):
            check_equal(str(raises(vitro.Refused, use)), "only a server has tools of its own: give its socket, as in "
                        "vitro.Sandbox(socket=PATH)", "without a server")
        check_equal(sandbox.call_tool("say", result=True).status, "refused", "as a result")
    with serving() as path:
        for sandbox in each_kind(BEST, socket=path):
            check_equal(str(raises(vitro.Refused, sandbox.server_tools)), "this server has no tools of its own", "one without tools")
            check_equal(sandbox.call_tool("say", result=True).status, "refused", "a call")
    for sandbox in each_kind(BEST, socket=path):
        check_in("start one: vitro serve", str(raises(vitro.Refused, sandbox.server_tools)), "a list where no server is")
        check_in("start one: vitro serve", str(raises(vitro.Refused, sandbox.call_tool, "say")), "a call")


@test("elsewhere than on Linux, and without the program, using it says so")
def _():
    text = f"import sys\nsys.path.insert(0, {str(pythons.SDK)!r})\n"
    use = "import vitro\ntry:\n    vitro.Sandbox().eval('1')\nexcept vitro.Unsupported as error:\n    print(error)\n"
    done = run([sys.executable, "-c", text + "sys.platform = 'darwin'\n" + use])
    check_in("this is darwin", done.out, "another system", done)
    less = ("import asyncio, multiprocessing, os, select, shutil, socket, tempfile, uuid\n"
            "for name in ('pwd', 'grp', 'fcntl', 'resource', 'termios'):\n    sys.modules[name] = None\n"
            "for module, names in ((os, 'register_at_fork getuid geteuid fork posix_spawn memfd_create environb'), (select, 'poll epoll'), (socket, 'AF_UNIX MSG_DONTWAIT MSG_NOSIGNAL')):\n"
            "    for name in names.split():\n        delattr(module, name)\n"
            "sys.platform = 'win32'\nimport vitro.compat.calute, vitro.compat.loomflow\n")
    for act in ("Sandbox().eval('1')", "Sandbox(socket='x').counts()", "Sandbox().call(len, '')", "Executor().submit(len, '').result()"):
        done = run([sys.executable, "-c", text + less + use.replace("Sandbox().eval('1')", act)])
        check_in("this is win32", done.out, act, done)
    env = {**os.environ, "VITRO_BINARY": "/nowhere/vitro"}
    done = run([sys.executable, "-c", text + use], env=env)
    check_in("VITRO_BINARY names '/nowhere/vitro'", done.out, "no program", done)


pythons.main("oldest")
