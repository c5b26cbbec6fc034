#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: many calls at once, of threads and of event loops, and one after the other."""

import asyncio
import concurrent.futures
import contextlib
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from pythons import new_mark, processes_with
from sandboxes import BEST, box
from vitrotest import check, check_equal, check_in, need_held, test, wait_until

import vitro


@test("threads that are the first to use a sandbox, all at once")
def _():
    for _ in range(5):
        with vitro.Sandbox(BEST) as sandbox, concurrent.futures.ThreadPoolExecutor(8) as pool:
            check_equal([*pool.map(lambda n: sandbox.call(toolbox.add, n, 1), range(8))], [*range(1, 9)], "values")


@contextlib.contextmanager
def holding(session, mark):
    """The first request with this mark in it waits for half a second before it is sent."""
    send, held = session.send, []

    def send_later(pieces):
        if not held and any(mark in bytes(piece) for piece in pieces):
            held.append(mark)
            time.sleep(0.5)
        return send(pieces)

    session.send = send_later
    yield held
    del session.send


@test("threads may send their requests in another order than they made them")
def _():
    with vitro.Sandbox(BEST) as sandbox, concurrent.futures.ThreadPoolExecutor(2) as threads:
        sandbox.eval("1")
        with holding(sandbox._session, b'"do":"pool"') as held:
            calls = []
            for n in range(2):
                calls.append(threads.submit(sandbox.eval, str(n), policy={**BEST, "limits": {"pids": 100 + n}}, result=True))
                wait_until(lambda: held, 10, "the first is held up")
            check_equal([(call.result().status, call.result().value) for call in calls], [("ok", 0), ("ok", 1)], "of two pools")
        with holding(sandbox._session, b'"do":"call"') as held:
            call = threads.submit(sandbox.eval, "import time; time.sleep(20)", call_id="mine", result=True)
            wait_until(lambda: held, 10, "the call is held up")
            check(sandbox.cancel("mine"), "the control: the call is known")
            check_equal(call.result(10).status, "cancelled", "a call that was cancelled before it was sent")


@test("a pool is not dropped by one thread while another has it learn a module")
def _():
    most, vitro._session.POOLS_MAX = vitro._session.POOLS_MAX, 1
    try:
        with vitro.Sandbox(BEST) as sandbox, concurrent.futures.ThreadPoolExecutor(2) as threads:
            sandbox.eval("1")
            session = sandbox._session
            with holding(session, b'"do":"learn"') as held:
                call = threads.submit(sandbox.call, toolbox.add, 1, 2)
                wait_until(lambda: held, 10, "it is to learn the module")
                other = sandbox.eval("3", policy={**BEST, "limits": {"pids": 101}}, result=True)
                check_equal((call.result(), other.value, other.status), (3, 3, "ok"), "values")
            check_equal((sandbox.eval("4"), session.lost), (4, None), "the session")
    finally:
        vitro._session.POOLS_MAX = most


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


pythons.main("oldest")
