# SPDX-License-Identifier: Apache-2.0
"""A tool call by a process that multiprocessing spawns: what SubprocessSandbox of loomflow and jeevesagent does.

The process is waited for before its result is taken from the queue, the function goes by pickle, and so does the result.
"""

import asyncio
import inspect
import multiprocessing
import pickle
import queue as queues
import time
from concurrent.futures import ThreadPoolExecutor

from loomflow.core.types import ToolResult

_threads = ThreadPoolExecutor(40)  # as many as anyio has


async def _finish(coroutine):
    return await coroutine


def work(function, arguments, queue):
    """In the child."""
    try:
        value = pickle.loads(function)(**arguments)
        if inspect.iscoroutine(value):
            value = asyncio.run(_finish(value))
        queue.put(("value", value))
    except BaseException as error:
        queue.put(("error", f"{type(error).__name__}: {error}"))


def end(process):
    process.terminate()
    process.join(1)
    if process.is_alive():
        process.kill()
        process.join()


class SubprocessSandbox:
    """Takes a host with get(name) and seconds."""

    def __init__(self, inner, *, timeout_seconds=30.0):
        self.inner, self.timeout_seconds = inner, timeout_seconds

    def failed(self, call_id, text):
        return ToolResult.error_(call_id=call_id, message=f"SubprocessSandbox: {text}")

    async def call(self, tool, args, *, call_id=""):
        until = time.monotonic() + self.timeout_seconds
        try:
            function = pickle.dumps(self.inner.get(tool).fn)
            context = multiprocessing.get_context("spawn")
            queue = context.Queue()
            process = context.Process(target=work, args=(function, dict(args), queue))
            process.start()
        except (pickle.PickleError, TypeError) as error:
            return self.failed(call_id, f"{tool} or its arguments are not picklable: {error}")

        def wait():
            process.join(max(0, until - time.monotonic()))
            if process.is_alive():
                end(process)
                return "late", None
            try:
                return queue.get_nowait()
            except queues.Empty:
                return "nothing", None

        kind, told = await asyncio.get_running_loop().run_in_executor(_threads, wait)
        if kind == "value":
            return ToolResult.success(call_id=call_id, output=told)
        return self.failed(call_id, {"late": f"tool exceeded {self.timeout_seconds}s", "error": f"tool raised {told}",
                                     "nothing": "subprocess exited without producing a result"}[kind])
