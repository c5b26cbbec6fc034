# SPDX-License-Identifier: Apache-2.0
"""The ways to call a Python function that are compared. Each gives what calls one, and what submits one, where it can."""

import asyncio
import contextlib
import multiprocessing
import os
import pathlib
import types
from concurrent.futures import ProcessPoolExecutor

from probe import probe
from work import add

HERE = pathlib.Path(__file__).resolve().parent


@contextlib.contextmanager
def vitro_call(at_once):
    import vitro
    with vitro.Sandbox({"limits": {"result_mb": 128, "memory_mb": 1024}}, ready_min=max(8, at_once)) as sandbox:
        yield sandbox.call, sandbox.submit


@contextlib.contextmanager
def vitro_eval(at_once):
    import vitro
    with vitro.Sandbox() as sandbox:
        # The same as an expression: code that a model wrote has no function of the program's.
        def call(function, *args):
            if function is add:
                return sandbox.eval(f"{args[0]} + {args[1]}")
            return sandbox.eval(f"{(HERE / 'probe.py').read_text()}\nprobe(*{args!r})")
        yield call, None


@contextlib.contextmanager
def vitro_run(at_once):
    """No function, but a command in a cell that is ready."""
    import vitro
    with vitro.Sandbox(ready_min=8) as sandbox:
        def call(function, *args):
            if function is add:
                sandbox.run(["/bin/true"])
                return 5
            words = [os.path.join(os.path.dirname(os.environ["VITRO_BINARY"]), "bench", "vitro-bench"), "--probe", *map(str, args)]
            return [int(word) for word in sandbox.run(words).stdout.split()[1::2]]
        yield call, None


@contextlib.contextmanager
def pool(at_once):
    with ProcessPoolExecutor(max(1, min(at_once, os.cpu_count()))) as executor:
        yield lambda function, *args: executor.submit(function, *args).result(), executor.submit


def send(pipe, function, args):
    pipe.send(function(*args))
    pipe.close()


@contextlib.contextmanager
def forkserver(at_once):
    """A process for each call, forked off a server that has this module loaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["ways"])

    def call(function, *args):
        ours, theirs = context.Pipe(False)
        process = context.Process(target=send, args=(theirs, function, args))
        process.start()
        theirs.close()
        return ours.recv()  # multiprocessing reaps it at the next start
    yield call, None


@contextlib.contextmanager
def loomflow(at_once):
    from loomflow.tools.registry import InProcessToolHost
    from recreations.spawned import SubprocessSandbox
    loop = asyncio.new_event_loop()
    sandbox = SubprocessSandbox(InProcessToolHost([add, probe]))

    def call(function, *args):
        names = function.__code__.co_varnames[:len(args)]
        return loop.run_until_complete(sandbox.call(function.__name__, dict(zip(names, args)))).output
    yield call, None
    loop.close()


@contextlib.contextmanager
def calute(at_once):
    from recreations.piped import SubprocessSandboxBackend
    backend = SubprocessSandboxBackend(types.SimpleNamespace(sandbox_timeout=30.0, sandbox_memory_limit_mb=512,
                                                             sandbox_network_access=False, working_directory=None))

    def call(function, *args):
        names = function.__code__.co_varnames[:len(args)]
        return backend.execute(function.__name__, function, dict(zip(names, args)))
    yield call, None


WAYS = {way.__name__: way for way in (vitro_call, vitro_eval, vitro_run, pool, forkserver, loomflow, calute)}

