#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vitro.Executor beside ProcessPoolExecutor: the same tests for both, then what differs, and the tests that come with the
interpreter for executors of its own."""

import asyncio
import concurrent.futures as futures
import contextlib
import functools
import gc
import importlib
import multiprocessing
import os
import pickle
import sys
import threading
import time
import unittest
import warnings
import weakref
from concurrent.futures.process import BrokenProcessPool

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from vitrotest import check, check_equal, check_in, folder, need_held, raises, run, skip, test, wait_until, write

import vitro

warnings.filterwarnings("ignore", message=".*fork.*", category=DeprecationWarning)
BEST = {"require": "best-effort"}


class Ours:
    name = "vitro.Executor"
    make = staticmethod(functools.partial(vitro.Executor, policy=BEST))
    source = f"functools.partial(vitro.Executor, policy={BEST!r})"


class Theirs:
    name = "ProcessPoolExecutor"
    make = staticmethod(functools.partial(futures.ProcessPoolExecutor, mp_context=multiprocessing.get_context("fork")))
    source = "functools.partial(concurrent.futures.ProcessPoolExecutor, mp_context=multiprocessing.get_context('fork'))"


@functools.lru_cache(maxsize=None)
def shared(kind):
    """One for most tests, with two workers."""
    return kind.make(2)


def both(name):
    """Registers a test of both: function(kind)."""
    def register(function):
        for kind in (Theirs, Ours):
            test(f"{kind.name}: {name}")(functools.partial(function, kind))
        return function
    return register


# ---- the same ------------------------------------------------------------------------------------------------------


@both("submit: arguments of any names, and values")
def _(kind):
    check_equal(shared(kind).submit(pow, 2, 8).result(), 256, "a built-in")
    check_equal(shared(kind).submit(toolbox.add, 2, b=3).result(), 5, "a function")
    names = dict(timeout=1, policy=2, fn=3, self=4, result=5, func=6)
    check_equal(shared(kind).submit(toolbox.echo, 1, **names).result(), ((1,), names), "names")
    raises(TypeError, shared(kind).submit)
    check_equal(shared(kind).submit(functools.partial(toolbox.add, 1), 2).result(), 3, "a partial")


@both("exceptions: of their own class, with their text and the traceback of where they were raised")
def _(kind):
    error = shared(kind).submit(toolbox.fail, "no good").exception()
    check(isinstance(error, ValueError), repr(error))
    check_equal(str(error), "no good", "its text")
    check_in("in fail", str(error.__cause__), "its cause")
    check(isinstance(raises(LookupError, shared(kind).submit(toolbox.echo, 1).result().__getitem__, 5), IndexError), "one of here")
    for function, want in ((toolbox.decode_badly, UnicodeDecodeError), (toolbox.open_nothing, FileNotFoundError)):
        check(isinstance(shared(kind).submit(function).exception(), want), function.__name__)
    check_equal(shared(kind).submit(toolbox.add, 1, 2).exception(), None, "none")
    check_equal(shared(kind).submit(toolbox.add, 1, 2).result(), 3, "the next call")


@both("an argument that cannot be pickled fails its future alone")
def _(kind):
    failed = shared(kind).submit(toolbox.size, threading.Lock())
    check(failed.exception() is not None, failed)
    check(isinstance(failed.exception(), (TypeError, pickle.PicklingError)), repr(failed.exception()))
    check_equal(shared(kind).submit(toolbox.add, 1, 2).result(), 3, "the next call")


@both("states: pending, running, done; a pending one can be cancelled")
def _(kind):
    executor = kind.make(1)
    first = executor.submit(toolbox.sleep, 0.5)
    more = [executor.submit(toolbox.sleep, 0) for _ in range(6)]
    wait_until(first.running, 20, "it runs")
    last = more[-1]  # ProcessPoolExecutor takes one or two more for running
    check_equal((last.running(), last.done(), last.cancelled()), (False, False, False), "pending")
    heard = []
    last.add_done_callback(heard.append)
    check_equal((last.cancel(), last.cancelled(), last.done(), last.running()), (True, True, True, False), "cancelled")
    check_equal(heard, [last], "its call-back")
    check_equal(last.cancel(), True, "again")
    raises(futures.CancelledError, last.result)
    raises(futures.CancelledError, last.exception)
    raises(futures.TimeoutError, first.result, 0.01)
    check_equal(first.result(), 0.5, "the first")
    check_equal((first.running(), first.done(), first.cancelled(), first.cancel()), (False, True, False, False), "done")
    check_equal([future.result() for future in more[:-1]], [0] * 5, "the others")
    done, pending = futures.wait([first, *more], 5)
    check_equal((len(done), len(pending)), (7, 0), "a cancelled one is done")
    executor.shutdown()


@both("call-backs: in their order, also when it is over already; what they raise harms nothing")
def _(kind):
    heard = []
    future = shared(kind).submit(toolbox.sleep, 0.1)
    for number in range(3):
        future.add_done_callback(lambda f, n=number: heard.append((n, f.result())))
    future.add_done_callback(lambda f: 1 / 0)
    future.add_done_callback(lambda f: heard.append("last"))
    with contextlib.redirect_stderr(None):
        import logging
        logging.disable(logging.CRITICAL)
        try:
            future.result()
            wait_until(lambda: len(heard) == 4, 20, "all were called")
        finally:
            logging.disable(logging.NOTSET)
    check_equal(heard, [(0, 0.1), (1, 0.1), (2, 0.1), "last"], "call-backs")
    future.add_done_callback(lambda f: heard.append("late"))
    check_equal(heard[-1], "late", "at once")


@both("a call-back may submit")
def _(kind):
    made = []
    shared(kind).submit(toolbox.add, 1, 2).add_done_callback(
        lambda done: made.append(shared(kind).submit(toolbox.add, done.result(), 10)))
    wait_until(lambda: made, 20, "it was submitted")
    check_equal(made[0].result(), 13, "what it gives")


@both("map: in order, of several iterables, in chunks, of none")
def _(kind):
    want = [*map(pow, range(10), range(10))]
    for chunksize in (1, 3, 10, 50):
        check_equal([*shared(kind).map(pow, range(10), range(12), chunksize=chunksize)], want, f"chunks of {chunksize}")
    check_equal([*shared(kind).map(toolbox.add, [])], [], "of none")
    raises(ValueError, shared(kind).map, pow, [1], [2], chunksize=0)


@both("map: raises where a call did, when its turn comes")
def _(kind):
    for chunksize, before in ((1, [1.0, 2.0]), (2, [1.0, 2.0])):
        values, got = shared(kind).map(toolbox.divide, [1, 2, 3, 4], [1, 1, 0, 1], chunksize=chunksize), []
        raises(ZeroDivisionError, lambda: [got.append(value) for value in values])
        check_equal(got, before, "those before it")


@both("map: timeout is for all of it")
def _(kind):
    got = []
    with kind.make(1) as executor:
        executor.submit(toolbox.add, 1, 2).result()
        values = executor.map(toolbox.sleep, [0, 0, 3], timeout=2)
        raises(futures.TimeoutError, lambda: [got.append(value) for value in values])
    check_equal(got, [0, 0], "those in time")


@both("wait: the first, the first that fails, all")
def _(kind):
    slow, quick = shared(kind).submit(toolbox.sleep, 0.5), shared(kind).submit(toolbox.sleep, 0)
    done, pending = futures.wait([slow, quick], return_when=futures.FIRST_COMPLETED)
    check_equal((done, pending), ({quick}, {slow}), "the first")
    failed = shared(kind).submit(toolbox.fail, "x")
    done, pending = futures.wait([slow, failed], return_when=futures.FIRST_EXCEPTION)
    check(failed in done, "the first that fails")
    done, pending = futures.wait([slow, failed, quick])
    check_equal(pending, set(), "all")
    done, pending = futures.wait([shared(kind).submit(toolbox.sleep, 0.5)], 0.01)
    check_equal((len(done), len(pending)), (0, 1), "none in time")


@both("as_completed: as they come, and its timeout")
def _(kind):
    slow, quick = shared(kind).submit(toolbox.sleep, 0.4), shared(kind).submit(toolbox.sleep, 0)
    check_equal([*futures.as_completed([slow, quick, quick])], [quick, slow], "their order")
    late = shared(kind).submit(toolbox.sleep, 0.4)
    raises(futures.TimeoutError, lambda: [*futures.as_completed([late], 0.01)])
    late.result()


@both("max_workers is how many run at once")
def _(kind):
    with kind.make(3) as executor:
        times = [*executor.map(toolbox.note_times, [0.1] * 9)]
    most = max(sum(start <= at < end for start, end in times) for at, _ in times)
    check(1 < most <= 3, f"{most} at once")
    for wrong in (0, -1):
        raises(ValueError, kind.make, wrong)


@both("shutdown: what was submitted is done, and nothing more is taken")
def _(kind):
    executor = kind.make(2)
    heard = []
    made = [executor.submit(toolbox.sleep, 0.05) for _ in range(8)]
    for future in made:
        future.add_done_callback(lambda _: (time.sleep(0.01), heard.append(1)))
    executor.shutdown()
    check(all(future.done() for future in made), "all are done")
    check_equal(len(heard), 8, "call-backs have run")
    check_in("after shutdown", str(raises(RuntimeError, executor.submit, pow, 2, 3)), "no more")
    executor.shutdown()
    with kind.make(1) as executor:
        future = executor.submit(toolbox.sleep, 0.2)
    check(future.done(), "at the end of a with")
    kind.make(1).shutdown()  # that was never used


@both("shutdown without waiting: calls go on")
def _(kind):
    if sys.version_info < (3, 9) and kind is Theirs:
        skip("ProcessPoolExecutor of Python 3.8 loses them (bpo-39205)")
    executor = kind.make(1)
    made = [executor.submit(toolbox.sleep, 0.1) for _ in range(3)]
    executor.shutdown(wait=False)
    check(not made[-1].done(), "it did not wait")
    raises(RuntimeError, executor.submit, pow, 2, 3)
    check_equal([future.result(20) for future in made], [0.1] * 3, "they end")


@both("shutdown with cancel_futures: those that have not begun are cancelled, the others end")
def _(kind):
    if sys.version_info < (3, 9) and kind is Theirs:
        skip("ProcessPoolExecutor has it since Python 3.9")
    executor = kind.make(1)
    made = [executor.submit(toolbox.sleep, 0.3) for _ in range(8)]
    wait_until(made[0].running, 20, "it runs")
    executor.shutdown(cancel_futures=True)
    check_equal(made[0].result(), 0.3, "the first")
    check(made[-1].cancelled() and made[-2].cancelled(), "the last")
    check(all(future.done() for future in made), "all are done")


@both("an executor that nobody has any more goes when its futures are done")
def _(kind):
    executor = kind.make(1)
    made, gone = [executor.submit(toolbox.sleep, 0.05) for _ in range(4)], weakref.ref(executor)
    del executor
    check_equal([future.result(20) for future in made], [0.05] * 4, "they end")
    wait_until(lambda: gc.collect() >= 0 and gone() is None, 20, "it is gone")


@both("the initializer comes before each call; one that fails breaks calls")
def _(kind):
    with kind.make(2, initializer=toolbox.prepare, initargs=("a", "b")) as executor:
        for _ in range(3):
            check_equal(executor.submit(toolbox.see_prepared).result()[0], ["a", "b"], "what it did")
    with contextlib.redirect_stderr(open(os.devnull, "w")), kind.make(1, initializer=toolbox.prepare_badly) as executor:
        import logging
        logging.disable(logging.CRITICAL)
        try:
            raises(BrokenProcessPool, executor.submit(toolbox.add, 1, 2).result)
        finally:
            logging.disable(logging.NOTSET)
    raises(TypeError, kind.make, 1, initializer=5)


@both("a process that dies fails its future with a BrokenProcessPool")
def _(kind):
    with kind.make(1) as executor:
        error = executor.submit(toolbox.kill_self, 9).exception()
        check(isinstance(error, (BrokenProcessPool, futures.BrokenExecutor)), repr(error))
    for code in (0, 1):
        with kind.make(1) as executor:
            raises(BrokenProcessPool, executor.submit(toolbox.leave_at_once, code).result)


@both("an event loop's run_in_executor")
def _(kind):
    async def work():
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*[loop.run_in_executor(shared(kind), toolbox.add, n, 1) for n in range(5)])

    check_equal(asyncio.run(work()), [1, 2, 3, 4, 5], "values")


@both("a program's end waits for what was submitted, and a call-back of it runs")
def _(kind):
    with folder() as place:
        script = write(os.path.join(place, "script.py"), f"""
import concurrent.futures, functools, multiprocessing, sys, warnings
warnings.simplefilter("ignore")
sys.path[:0] = [{str(pythons.SDK)!r}, {HERE!r}]
import toolbox, vitro
if __name__ == "__main__":
    executor = {kind.source}(2)
    for n in range(4):
        executor.submit(toolbox.sleep, 0.2).add_done_callback(lambda f: print("done", f.result(), flush=True))
    def late():
        try:
            executor.submit(pow, 2, 3)
        except RuntimeError as error:
            print("refused")
    import atexit
    atexit.register(late)
""")
        done = run([sys.executable, script], timeout=50)
        check_equal(done.out.count("done 0.2"), 4, "call-backs", done)


# ---- what differs: docs/guide/python-executor.md lists it --------------------------------------------------------------------


@test("differs: a process that dies fails its own future; ProcessPoolExecutor is broken for good")
def _():
    with futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor:
        raises(BrokenProcessPool, executor.submit(toolbox.kill_self, 9).result)
        raises(BrokenProcessPool, executor.submit, toolbox.add, 1, 2)
    with vitro.Executor(2, policy=BEST) as executor:
        beside = executor.submit(toolbox.sleep, 0.3)
        error = raises(vitro.Crashed, executor.submit(toolbox.kill_self, 9).result)
        check_equal(error.result.signal, 9, "its signal")
        check_equal((beside.result(), executor.submit(toolbox.add, 1, 2).result()), (0.3, 3), "others")


@test("differs: cancel() ends a call that runs; ProcessPoolExecutor's goes on")
def _():
    with Theirs.make(1) as executor:
        future = executor.submit(toolbox.sleep, 0.5)
        wait_until(future.running, 20, "it runs")
        check_equal((future.cancel(), future.cancelled(), future.result()), (False, False, 0.5), "theirs")
    start = time.monotonic()
    with Ours.make(1) as executor:
        future = executor.submit(toolbox.sleep, 29)
        wait_until(future.running, 20, "it runs")
        check_equal((future.cancel(), future.cancelled(), future.running()), (True, True, False), "ours")
        check_equal(executor.submit(toolbox.add, 1, 2).result(), 3, "the next")
    check(time.monotonic() - start < 25, "its worker is free at once")


@test("differs: each call has a fresh process")
def _():
    with Theirs.make(1) as executor:
        check_equal(executor.submit(os.getpid).result(), executor.submit(os.getpid).result(), "one process")
        executor.submit(toolbox.prepare, "x").result()
        check_equal(executor.submit(toolbox.see_prepared).result()[0], ["x"], "with what the last left")
    shared(Ours).submit(toolbox.prepare, "x").result()
    check_equal(shared(Ours).submit(toolbox.see_prepared).result()[0], [], "nothing that another left")


@test("differs: values are plain data, unless result_types or trust_results allow more")
def _():
    check(isinstance(shared(Theirs).submit(toolbox.make_point, 1, 2).result(), toolbox.Point), "a pickle")
    raises(vitro.ToolError, shared(Ours).submit(toolbox.make_point, 1, 2).result)
    for more in ({"result_types": [toolbox.Point]}, {"trust_results": True}):
        with vitro.Executor(1, policy=BEST, **more) as executor:
            check_equal(executor.submit(toolbox.make_point, 1, 2).result(), toolbox.Point(1, 2), str(more))


@test("differs: of exceptions, the built-in classes come as they are, and others where error_types names them")
def _():
    error = shared(Ours).submit(toolbox.fail, "x").exception()
    check(isinstance(error, ValueError) and isinstance(error, vitro.ToolError), type(error).__mro__)
    check_equal((error.type, error.message, error.result.status), ("ValueError", "x", "error"), "both")
    again = pickle.loads(pickle.dumps(error))
    check(isinstance(again, ValueError) and isinstance(again, vitro.ToolError) and str(again) == "x", repr(again))
    error = shared(Ours).submit(toolbox.be_unlucky).exception()
    check_equal((type(error), error.type, str(error)), (vitro.ToolError, "Unlucky", "Unlucky: unlucky 13"), "no class of here")
    error = shared(Ours).submit(toolbox.stop_iterating).exception()
    check_equal((type(error), error.type), (vitro.ToolError, "StopIteration"), "what generators take for their end")
    error = shared(Ours).submit(toolbox.leave).exception()
    check_equal((type(error), error.type), (vitro.ToolError, "SystemExit"), "what is no Exception")
    with vitro.Executor(1, policy=BEST, error_types=[toolbox.Unlucky]) as executor:
        error = executor.submit(toolbox.be_unlucky).exception()
        check(isinstance(error, toolbox.Unlucky) and isinstance(error, vitro.ToolError), type(error).__mro__)
        check_equal((str(error), hasattr(error, "number")), ("unlucky 13", False), "no code of its class has run")
    raises(TypeError, vitro.Executor, error_types=[int])


@test("differs: a deadline, and a policy")
def _():
    with vitro.Executor(2, policy={**BEST, "limits": {"memory_mb": 64}}, timeout=0.3) as executor:
        error = raises(vitro.Timeout, executor.submit(toolbox.spin).result)
        check(isinstance(error, TimeoutError), repr(error))
        check_equal(executor.submit(toolbox.add, 1, 2).result(), 3, "the next")
        need_held({"memory": ("cgroup-v1", "cgroup-v2")})
    with vitro.Executor(2, policy={**BEST, "limits": {"memory_mb": 64}}) as executor:
        raises(BrokenProcessPool, executor.submit(toolbox.fill_memory).result)


@test("differs: what calls print is on_output's")
def _():
    heard = []
    with vitro.Executor(1, policy=BEST, on_output=lambda stream, text: heard.append((stream, text))) as executor:
        executor.submit(toolbox.speak, "hello").result()
    check_in("hello", "".join(text for stream, text in heard if stream == "stdout"), "what it printed")


@test("map: leaving it early ends calls that are under way")
def _():
    with vitro.Executor(2, policy=BEST) as executor:
        executor.submit(toolbox.add, 1, 2).result()
        start = time.monotonic()
        for value in executor.map(toolbox.sleep, [0, 20, 20, 20]):
            check_equal(value, 0, "the first")
            break
        gc.collect()
        check_equal(executor.submit(toolbox.add, 1, 2).result(10), 3, "workers are free")
    check(time.monotonic() - start < 10, time.monotonic() - start)


@test("map: chunks of coroutine functions; a chunk is one process")
def _():
    check_equal([*shared(Ours).map(toolbox.add_later, range(4), range(4), chunksize=2)], [0, 2, 4, 6], "awaited")
    check_equal(len({*shared(Ours).map(toolbox.note_process, range(4), chunksize=4)}), 1, "one process")
    check_equal([*shared(Ours).map(toolbox.give_more, [2, 3, 4], chunksize=2)], [2, 3, 4], "control")
    raises(vitro.NoResult, list, shared(Ours).map(toolbox.give_more, [1, 2, 3, 4], chunksize=2))


@test("the initializer runs once where a fork has what it did, and else in each cell")
def _():
    with vitro.Executor(1, policy=BEST, initializer=toolbox.count_up, initargs=("/tmp/none",)) as executor:
        stamps = {executor.submit(toolbox.see_stamp).result() for _ in range(3)}
    check_equal(len(stamps), 1, "the same in all: it ran once") if not is_each() else check_equal(len(stamps), 3, "in each")
    with vitro.Executor(1, policy=BEST, initializer=toolbox.prepare_in_thread, initargs=("a",)) as executor:
        for _ in range(2):
            check_equal(executor.submit(toolbox.see_prepared).result(), (["a"], 2), "a thread that is there")
    with vitro.Executor(1, policy=BEST, initializer=toolbox.prepare_file, initargs=("a",)) as executor:
        for _ in range(2):
            check_equal(executor.submit(toolbox.see_prepared).result()[0], [True], "an open file")


@test("what the initializer leaves running, as a child or as nobody's, ends with the executor")
def _():
    for leave in (toolbox.prepare_process, toolbox.leave_grandchild):
        mark = pythons.new_mark()
        with vitro.Executor(1, policy=BEST, initializer=leave, initargs=(mark,)) as executor:
            check_equal(executor.submit(toolbox.add, 2, 3).result(), 5, f"{leave.__name__}: a call")
            if not is_each():
                check(pythons.processes_with(mark), f"{leave.__name__}: the control: it is there")
        wait_until(lambda: not pythons.processes_with(mark), 5, f"{leave.__name__}: it is gone")


@test("the initializer never runs ahead of calls where these can write what it may read")
def _():
    with folder() as place:
        policy = {**BEST, "files": {"write": [place]}}
        with vitro.Executor(1, policy=policy, initializer=toolbox.count_up, initargs=(place,)) as executor:
            stamps = {executor.submit(toolbox.see_stamp).result() for _ in range(3)}
    check_equal(len(stamps), 3, "in each cell")


@test("the initializer of a script sets its globals, which calls see")
def _():
    with folder() as place:
        script = write(os.path.join(place, "script.py"), f"""
import sys
sys.path[:0] = [{str(pythons.SDK)!r}]
import vitro
model, cache = None, {{}}
def load(value):
    global model
    model, cache["a"] = value, value
def use(n):
    return model, cache, n
if __name__ == "__main__":
    with vitro.Executor(2, policy={BEST!r}, initializer=load, initargs=("loaded",)) as executor:
        print([*executor.map(use, range(2))], model, cache)
""")
        done = run([sys.executable, script], timeout=50)
        check_equal(done.out, "[('loaded', {'a': 'loaded'}, 0), ('loaded', {'a': 'loaded'}, 1)] None {}\n", "it", done)


@test("an initializer that is too large, or cannot be sent, is refused at once")
def _():
    check_in("KiB", str(raises(vitro.NotSendable, vitro.Executor, 1, None, toolbox.prepare, ("x" * 100_000,))), "size")
    raises(vitro.NotSendable, vitro.Executor, 1, initializer=toolbox.prepare, initargs=(threading.Lock(),))


@test("a supervisor that dies fails what runs; what waits goes to the next one")
def _():
    with vitro.Executor(1, policy=BEST) as executor:
        first, following = executor.submit(toolbox.sleep, 20), executor.submit(toolbox.add, 1, 2)
        wait_until(lambda: executor._sandbox._session is not None and first.running(), 20, "it runs")
        os.kill(executor._sandbox._session.connection.process.pid, 9)
        raises(vitro.Lost, first.result)
        check_equal(following.result(30), 3, "the next")


@test("many threads submit and cancel at once, and nothing is lost")
def _():
    with vitro.Executor(3, policy=BEST) as executor:
        made, lock = [], threading.Lock()

        def work(seed):
            for number in range(15):
                future = executor.submit(toolbox.add, seed, number)
                if (seed + number) % 4 == 0:
                    future.cancel()
                with lock:
                    made.append((future, seed + number))

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for future, want in made:
            check(future.cancelled() or future.result(30) == want, future)
        check_equal((executor._begun, executor._unsettled, executor._settling), (set(), set(), []), "nothing is left")


@test("a call-back that waits for its executor's end is told so")
def _():
    heard = []

    def stop(_):
        try:
            executor.shutdown()
        except RuntimeError as error:
            heard.append(str(error))

    with vitro.Executor(1, policy=BEST) as executor:
        executor.submit(toolbox.sleep, 0.1).add_done_callback(stop)
    check_in("shutdown(wait=False)", "".join(heard), "what to do")


@test("a fork of a program whose executor has calls under way ends by itself")
def _():
    with folder() as place:
        script = write(os.path.join(place, "script.py"), f"""
import os, sys
sys.path[:0] = [{str(pythons.SDK)!r}, {HERE!r}]
import toolbox, vitro
if __name__ == "__main__":
    executor = vitro.Executor(1, policy={BEST!r})
    future = executor.submit(toolbox.sleep, 1)
    child = os.fork()
    if child == 0:
        sys.exit(7)
    print(os.waitpid(child, 0)[1] >> 8, future.result())
""")
        done = run([sys.executable, "-W", "ignore", script], timeout=30)
        check_equal(done.out, "7 1\n", "both", done)


@test("arguments of ProcessPoolExecutor are taken where they are")
def _():
    with vitro.Executor(1, multiprocessing.get_context("fork"), toolbox.prepare, ("a",), policy=BEST,
                        max_tasks_per_child=5) as executor:
        check_equal(executor.submit(toolbox.see_prepared).result()[0], ["a"], "in their order")
    raises(ValueError, vitro.Executor, max_tasks_per_child=0)
    raises(ValueError, vitro.Executor, timeout=-1)


def is_each():
    from vitrotest import is_bare
    return is_bare()


# ---- tests that come with the interpreter --------------------------------------------------------------------------

# Their scripts import the executor from concurrent.futures by the name of its class; tests above do the same.
NOT_OURS = {"test_interpreter_shutdown", "test_submit_after_interpreter_shutdown", "test_hang_gh83386"}
PARTS = ("ExecutorTest", "WaitTests", "AsCompletedTests", "ExecutorShutdownTest")
SIGNALS = {"test_hang_gh94440"}  # only the main thread has them
SECONDS = {"test_map_timeout", "test_timeout"}  # sleep for 5 s and more; the same is tested above


def stdlib():
    """What test.test_concurrent_futures has, or None."""
    try:
        import test.test_concurrent_futures as package
        modules = [package]
        if not hasattr(package, "ExecutorTest"):
            names = ("executor", "test_wait", "test_as_completed", "test_shutdown", "util")
            modules = [importlib.import_module(f"test.test_concurrent_futures.{name}") for name in names]
    except ImportError:
        return None
    found = {}
    for module in modules:
        found.update(vars(module))
    return found


@test("the interpreter's own tests of executors pass")
def _():
    if sys.version_info < (3, 12) and os.environ.get("VITRO_TEST_PYTHON") != "all":
        skip("those of the newest interpreter are enough")
    found = stdlib()
    if found is None:
        skip("this interpreter came without its tests")
    cases = []
    for part in PARTS:
        kind = type(part, (found[part], found["ExecutorMixin"], unittest.TestCase), {
            "executor_type": vitro.Executor, "executor_kwargs": {"trust_results": True, "policy": BEST}})
        cases += [case for case in unittest.defaultTestLoader.loadTestsFromTestCase(kind)
                  if case._testMethodName not in NOT_OURS | SECONDS]

    def execute(case):
        result = unittest.TestResult()
        case.run(result)
        return result

    # They sleep most of the time, so that they can do it together.
    cases.sort(key=lambda case: case._testMethodName in SIGNALS)
    with contextlib.redirect_stdout(open(os.devnull, "w")), futures.ThreadPoolExecutor(6) as threads:
        beside = [case for case in cases if case._testMethodName not in SIGNALS]
        results = [*threads.map(execute, beside), *map(execute, cases[len(beside):])]
    failed = [text for result in results for _, text in result.errors + result.failures]
    check(not failed, lambda: "\n".join(failed))
    check(sum(not result.skipped for result in results) > 15, f"{len(results)} tests")


pythons.main("newest")
