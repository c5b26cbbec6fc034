#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: how calls end, by themselves, by their limits, and by the caller."""

import builtins
import concurrent.futures
import logging
import os
import signal
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from pythons import new_mark, processes_with
from sandboxes import BEST, Heard, box, raises
from vitrotest import check, check_equal, check_in, test, wait_until

import vitro


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


@test("futures: one that is cancelled again, by many at once, stays cancelled; one that is over does not become so")
def _():
    heard, told = [], []
    with Heard(logging.getLogger("concurrent.futures")) as log:
        future = box().submit_run(["sleep", "30"])
        future.add_done_callback(lambda done: heard.append(done.cancel()))
        threads = [threading.Thread(target=lambda: told.append(future.cancel())) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        check_equal((future.cancel(), future.cancelled(), heard, told), (True, True, [True], [True] * 8), "cancelled")
        over = box().submit_eval("5")
        check_equal((over.result(20), over.cancel(), over.cancelled()), (5, False, False), "one that is over")
    check_equal(log.records, [], "what is logged")


@test("futures: where their thread cannot be started submit() says so, and later ones have one")
def _():
    start = threading.Thread.start

    def fail(thread):
        if thread.name == "vitro-futures":
            raise RuntimeError("can't start new thread")
        start(thread)

    with vitro.Sandbox(BEST) as sandbox:
        sandbox.eval("1")
        mark = new_mark()
        threading.Thread.start = fail
        try:
            raises(RuntimeError, sandbox.submit_run, ["sleep", mark])
        finally:
            threading.Thread.start = start
        wait_until(lambda: not sandbox.counts()["live"], 10, "the call has ended")
        check_equal(sandbox.submit_eval("2").result(20), 2, "the next")


pythons.main("oldest")
