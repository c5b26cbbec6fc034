#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""@vitro.isolated: functions, coroutine functions and methods whose calls run in cells."""

import asyncio
import inspect
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
from vitrotest import check, check_equal, check_in, folder, isolation, need_held, raises, run, skip, test, write

import kept
import vitro
from vitro import _isolated


@test("a call is as it was, in a process of its own")
def _():
    check_equal((kept.add(1), kept.add(1, b=2), kept.add(1, timeout=5)), (2, 3, 7), "values, and names of arguments")
    is_sealed, pid = kept.where()
    check(is_sealed, "in a cell")
    check_equal((kept.add.__name__, kept.add.__doc__, str(inspect.signature(kept.add))),
                ("add", "Adds.", "(a, b=1, *, timeout=0)"), "what it is called")
    check_equal(kept.add.__wrapped__(1, 2), 3, "the function itself")


@test("limits: a deadline, and memory")
def _():
    start = time.monotonic()
    raises(vitro.Timeout, kept.spin)
    check(time.monotonic() - start < 20, "in time")
    need_held({"memory": ("cgroup-v1", "cgroup-v2")})
    raises((vitro.MemoryLimit, vitro.ToolError), kept.fill)


@test("exceptions are of their own class, if that is built in or named")
def _():
    error = raises(ValueError, kept.fail, "value")
    check(isinstance(error, vitro.ToolError), repr(error))
    check_in("in fail", str(error.__cause__), "where")
    check(isinstance(raises(kept.Odd, kept.fail, "odd"), vitro.ToolError), "named")
    check_equal(raises(LookupError, lambda: asyncio.run(kept.later_fails())).type, "LookupError", "of a coroutine function")


@test("in a cell a decorated function is called as it is: recursion, and one that calls another")
def _():
    check_equal(kept.factorial(20), 2432902008176640000, "recursion")
    check_equal(kept.outer(5), [6, True, True], "another")
    check_equal(asyncio.run(kept.later_nested(4)), 10, "of coroutine functions")
    with vitro.Sandbox(kept.BEST) as sandbox, vitro.Executor(1, policy=kept.BEST) as executor:
        check_equal(sandbox.call(kept.add, 1, 2), 3, "by a sandbox")
        check_equal(executor.submit(kept.factorial, 5).result(), 120, "by an executor")


@test("methods: the object goes with the call, and what the call changes in it stays there")
def _():
    counter = kept.Counter(5)
    check_equal((counter.grow(2), counter.count), (7, 5), "a method")
    check_equal((counter.double(4), kept.Counter.double(5), counter.name()), (8, 10, "Counter"), "static, and of the class")
    for kind in (staticmethod, classmethod):
        check_in(f"@{kind.__name__} above", str(raises(TypeError, vitro.isolated, kind(kept.is_wrapped))), "the order")


@test("coroutine functions are awaited; many at once; cancelling ends the cell")
def _():
    check(inspect.iscoroutinefunction(kept.later), "it is one still")

    async def work():
        check_equal(await kept.later(4), (8, True), "one")
        start = time.monotonic()
        check_equal([n for n, _ in await asyncio.gather(*[kept.later(n, 0.3) for n in range(6)])], [0, 2, 4, 6, 8, 10], "six")
        check(time.monotonic() - start < 1.7, f"at once, not {time.monotonic() - start}")
        for _ in range(2):  # before it has begun, and while it runs
            start = time.monotonic()
            try:
                await asyncio.wait_for(kept.later_sleeps(""), 0.3)
            except asyncio.TimeoutError:
                pass
            else:
                check(False, "it ended")
            check(time.monotonic() - start < 10, "it was not waited for")
        sandbox = _isolated._sandboxes[json_of(kept.BEST)]
        for _ in range(100):
            if not sandbox.is_running():
                return
            await asyncio.sleep(0.05)
        check(False, "a cell runs on")

    asyncio.run(work())
    found = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(kept.later(1)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_equal(found, [(2, True)] * 4, "loops of many threads")


def json_of(policy):
    import json
    from vitro._policy import sources_of
    return json.dumps(sources_of(policy), sort_keys=True)


@test("functions with one policy share a sandbox, which is made when it is used")
def _():
    kept.add(1)
    before = len(_isolated._sandboxes)
    made = vitro.isolated(policy={**kept.BEST, "limits": {"pids": 77}})(kept.is_wrapped)
    check_equal(len(_isolated._sandboxes), before, "none is made for a definition")
    check_equal(made(), True, "a function under another policy")
    check_equal(len(_isolated._sandboxes), before + 1, "one more")
    check_equal(_isolated._within("strict", 64), {"extends": "strict", "limits": {"memory_mb": 64}}, "memory in a named policy")
    check_equal(_isolated._within({"limits": {"pids": 5, "memory_mb": 1}}, 64), {"limits": {"pids": 5, "memory_mb": 64}},
                "memory in a policy")


@test("values of classes that are named come back")
def _():
    check_equal(kept.point(), kept.Point(3), "a dataclass")


@test("what cannot be is refused where it is written")
def _():
    def generate():
        yield 1

    check_in("return a list", str(raises(TypeError, vitro.isolated, generate)), "a generator")
    check_in("functions", str(raises(TypeError, vitro.isolated, kept.Point)), "a class")
    raises(TypeError, vitro.isolated, 5)
    raises(ValueError, vitro.isolated, timeout=-1)
    raises(TypeError, vitro.isolated, timeout="soon")
    raises(TypeError, vitro.isolated, policy=5)
    raises(TypeError, vitro.isolated, error_types=[int])
    for wrong in (0, -5, True, 1.5, "64"):
        raises(ValueError, vitro.isolated, memory=wrong)


@test("functions of a script: recursion, with and without parentheses, and nothing is left at its end")
def _():
    if isolation().refused:
        skip("the default policy is refused here")
    with folder() as place:
        script = write(os.path.join(place, "script.py"), f"""
import asyncio, os, sys
sys.path[:0] = [{str(pythons.SDK)!r}]
import vitro
start = os.getpid()

@vitro.isolated
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

@vitro.isolated(timeout=5, memory=128)
async def twice(n):
    return fib(n) * 2

if __name__ == "__main__":
    print(fib(10), asyncio.run(twice(10)))
""")
        done = run([sys.executable, script], timeout=50)
        check_equal((done.out, done.err, done.code), ("55 110\n", "", 0), "it", done)


pythons.main("oldest")
