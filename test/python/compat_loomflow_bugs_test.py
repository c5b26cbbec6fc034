#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What is wrong with the sandbox of loomflow and jeevesagent, and not with the drop-in. Each test runs one program by both:
the control is a re-creation of what the framework does, on which it fails."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import compat_common
from compat_common import BEST, check_gone, check_survives, new_mark, processes_with, run_script
from vitrotest import check, check_equal, check_in, folder, is_bare, main, need_held, test, wait_until

import compat_decorated
import compat_tools
from loomflow.tools.registry import InProcessToolHost
from recreations import spawned
from vitro.compat.loomflow import SubprocessSandbox

LATE = 3.0  # seconds: enough for the control to start a process


def host():
    tools = [getattr(compat_tools, name) for name in dir(compat_tools)]
    made = InProcessToolHost([one for one in tools if callable(one) and not isinstance(one, type)])
    made.register(compat_decorated.double)
    return made


def by(kind, tool, timeout=20.0, inner=None, **args):
    """One call, by the drop-in or by the re-creation."""
    options = {"policy": BEST} if kind is SubprocessSandbox else {}
    return asyncio.run(kind(inner or host(), timeout_seconds=timeout, **options).call(tool, args, call_id="c1"))


def by_both(tool, timeout=20.0, inner=None, **args):
    return (by(SubprocessSandbox, tool, timeout, inner, **args), by(spawned.SubprocessSandbox, tool, timeout, inner, **args))


@test("results of 70 kB and more always time out")
def _():
    ours, theirs = by_both("produce", LATE, size=200_000)
    check_equal(ours.output, b"x" * 200_000, ours.error)
    check_equal(theirs.error, f"SubprocessSandbox: tool exceeded {LATE}s", "the control")


@test("functions under its own @tool decorator never work")
def _():
    ours, theirs = by_both("double", x=21)
    check_equal(ours.output, 42, ours.error)
    check_in("not the same object", theirs.error or "", "the control")


@test("closures escape as AttributeError")
def _():
    kept = os.sep

    def local():
        return kept

    inner = InProcessToolHost([local])
    ours = by(SubprocessSandbox, "local", inner=inner)
    try:
        theirs = by(spawned.SubprocessSandbox, "local", inner=inner)
        check(False, f"the control: {theirs}")
    except AttributeError as error:
        check_in("local", str(error), "the control")
    if not ours.ok:  # it is, where cloudpickle is installed
        check_in("tool 'local' was not called, since it is not picklable", ours.error, "which of the two")
        check_in("at the top level of a module", ours.error, "what to do")


@test("a segfault, an OOM kill, _exit and an unpicklable result all look the same")
def _():
    calls = [("crash", {}), ("die_of_memory", {"megabytes": 200}), ("leave_at_once", {"code": 3}), ("make_function", {})]
    policy = {**BEST, "limits": {"memory_mb": 64}}

    async def story(sandbox):
        return [(await sandbox.call(tool, args)).error for tool, args in calls]

    ours = asyncio.run(story(SubprocessSandbox(host(), policy=policy)))
    theirs = asyncio.run(story(spawned.SubprocessSandbox(host())))
    start = "SubprocessSandbox: subprocess exited without producing a result"
    check_equal({*theirs}, {start}, "the control")
    check(all(text.startswith(start + ": ") for text in ours), ours)
    for text, cause in zip(ours, ("SIGSEGV", "limits.memory_mb", "exited with code 3", "result is a function")):
        check_in(cause, text, "the cause")


@test("the result is unpickled in the parent, so a tool can run code in the agent")
def _():
    with folder(writable=True) as place:
        path = os.path.join(place, "left")
        check_in("Secret", by(SubprocessSandbox, "make_secret", path=path).error, "the error")
        check(not os.path.exists(path), "the tool ran code here")
        by(spawned.SubprocessSandbox, "make_secret", path=path)
        with open(path) as file:
            check_equal(int(file.read()), os.getpid(), "the control: who ran it")


SPEAKER = """
import asyncio, sys
from loomflow.tools.registry import InProcessToolHost
from %s import SubprocessSandbox
import compat_tools
%s
    result = asyncio.run(SubprocessSandbox(InProcessToolHost([compat_tools.speak])%s).call("speak", {"text": "spoken"}))
    sys.stderr.write(f"{result.output} {result.error}")
"""


def speak(guard):
    with folder() as place:
        return [run_script(place, SPEAKER % (name, guard, options)) for name, options in
                (("vitro.compat.loomflow", f", policy={BEST!r}"), ("recreations.spawned", ""))]


@test("print() lands on the agent's stdout")
def _():
    ours, theirs = speak('if __name__ == "__main__":')
    check_equal((ours.out, ours.err), ("", "6 None"), "the agent's own output", ours)
    check_equal((theirs.out, theirs.err), ("spoken\n", "6 None"), "the control", theirs)


@test("a script without a __main__ guard fails every call")
def _():
    ours, theirs = speak("if True:")
    check_equal(ours.err, "6 None", "the result", ours)
    check_in("subprocess exited without producing a result", theirs.err, "the control")


@test("grandchildren survive timeouts and normal returns", holds={"processes": "pidns"})
def _():
    for tool, timeout in (("leave_grandchild", 2 * LATE), ("leave_grandchild_and_sleep", LATE)):
        marks = new_mark(), new_mark()
        ours = by(SubprocessSandbox, tool, timeout, mark=marks[0])
        check_gone(marks[0])
        theirs = by(spawned.SubprocessSandbox, tool, timeout, mark=marks[1])
        check_equal((ours.ok, theirs.ok), (timeout > LATE,) * 2, f"{ours.error}; {theirs.error}")
        check_survives(marks[1])


@test("cancelling the awaiting task leaks the child")
def _():
    async def story(sandbox, mark):
        task = asyncio.ensure_future(sandbox.call("run_sleep", {"mark": mark}))
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, wait_until, lambda: processes_with(mark), 20, "the tool runs")
        task.cancel()
        await asyncio.wait([task])
        check(task.cancelled(), "it is not cancelled")

    marks = new_mark(), new_mark()
    asyncio.run(story(SubprocessSandbox(host(), policy=BEST), marks[0]))
    check_gone(marks[0])
    asyncio.run(story(spawned.SubprocessSandbox(host()), marks[1]))
    check_survives(marks[1])


@test("a leftover thread turns a finished call into a timeout")
def _():
    ours, theirs = by_both("leave_thread", LATE)
    check_equal(ours.output, "done", ours.error)
    check_equal(theirs.error, f"SubprocessSandbox: tool exceeded {LATE}s", "the control")


@test("no memory limit")
def _():
    need_held({"memory": "*"})
    with_limit = SubprocessSandbox(host(), policy={**BEST, "limits": {"memory_mb": 64}})
    ours = asyncio.run(with_limit.call("take_memory", {"megabytes": 200}))
    check_in("limits.memory_mb", ours.error or "", "the limit")
    check_equal(by(spawned.SubprocessSandbox, "take_memory", megabytes=200).output, 200, "the control")
    if not is_bare():
        check_in("limits.memory_mb", by(SubprocessSandbox, "take_memory", megabytes=700).error or "", "the usual limit")


@test("the whole environment is visible")
def _():
    os.environ["COMPAT_SECRET"] = "token"
    try:
        ours, theirs = by_both("see_variable", name="COMPAT_SECRET")
    finally:
        del os.environ["COMPAT_SECRET"]
    check_equal((ours.ok, ours.output), (True, None), ours.error)
    check_equal(theirs.output, "token", "the control")


@test("each child imports the whole framework")
def _():
    fresh = {**BEST, "env": {"set": {"FRESH": "yes"}}}  # a pool that has learned nothing yet
    ours = asyncio.run(SubprocessSandbox(host(), policy=fresh).call("see_module", {"name": "loomflow"}))
    theirs = by(spawned.SubprocessSandbox, "see_module", name="loomflow")
    check_equal((ours.output, theirs.output), (False, True), f"{ours.error}, {theirs.error}")


@test("more than 40 concurrent calls queue inside the timeout")
def _():
    async def story(sandbox):
        calls = [sandbox.call("sleep", {"seconds": 0.7}) for _ in range(60)]
        return [result.error for result in await asyncio.gather(*calls)]

    ours = asyncio.run(story(SubprocessSandbox(host(), timeout_seconds=2.5, policy=BEST)))
    check_equal({*ours}, {None}, "errors")
    theirs = asyncio.run(story(spawned.SubprocessSandbox(host(), timeout_seconds=2.5)))
    check_in("SubprocessSandbox: tool exceeded 2.5s", theirs, "the control")


if __name__ == "__main__":  # the control's children import it, too
    compat_common.main(main)
