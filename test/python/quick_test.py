#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The short way of usual calls: large arguments and values, and what a cell must not be able to do by it."""

import asyncio
import logging
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from sandboxes import BEST, Heard
from vitrotest import check, check_equal, check_in, skip, test

pythons.see_frameworks()
try:
    import numpy
except ImportError:
    numpy = None

import vitro
from vitro import _codec as codec
from vitro import _quick
from vitro._hooks import Hooks
from vitro._order import Options
from vitro._outcome import conclude
from vitro._session import Call


def need_numpy():
    if not numpy:
        skip("numpy is not installed")


def route(sandbox, function, *args):
    """The short way of a function, which was called once for it."""
    sandbox.call(function, *args)
    return sandbox._routes[function].hurry


@test("large bytes go there and back by the short way, as they are")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        hurry = route(sandbox, toolbox.give, b"")
        for size in (0, 1, 1 << 12, (1 << 13) - 200, 1 << 13, (1 << 16) - 1, 1 << 16, 3 << 20, 9 << 20):
            data = os.urandom(size)
            value = sandbox.call(toolbox.give, data)
            check(type(value) is bytes and value == data, f"{size} bytes")
        data = os.urandom(1 << 20)
        value = hurry((data,))
        check(type(value) is bytes and value == data, "the short way is taken")
        check_equal(sandbox.call(toolbox.add, b"a" * 100_000, b"b"), b"a" * 100_000 + b"b", "one that is large, and one that is not")


@test("arrays of numbers go there and back by the short way, and are what they were")
def _():
    need_numpy()
    with vitro.Sandbox(BEST) as sandbox:
        hurry = route(sandbox, toolbox.give, numpy.zeros(9))
        for dtype in ("u1", "<i2", "<f4", "<f8", "<c16", "?", "<u8"):
            data = numpy.frombuffer(os.urandom(1 << 20), "u1").copy()
            data = (data % 2).astype(dtype) if dtype == "?" else data.view(dtype)
            data = data.reshape(4, -1, 8)
            check(hurry((data,)) is not _quick.LONG_WAY, f"{dtype}: the short way is taken")
            value = sandbox.call(toolbox.give, data)
            check_equal((type(value), value.dtype, value.shape, value.flags.writeable), (numpy.ndarray, data.dtype, data.shape, True), dtype)
            check(value.tobytes() == data.tobytes(), f"{dtype}: its bytes")
        check_equal(sandbox.call(toolbox.change, numpy.zeros(100_000, "u1")), 7, "it can be written to")


@test("arrays that are more than their bytes go the long way, and come to the same")
def _():
    need_numpy()
    whole = numpy.arange(1 << 16, dtype="<f8").reshape(256, 256)
    fixed = whole.copy()
    fixed.flags.writeable = False
    kinds = {"part": whole[::2], "turned": whole.T, "fixed": fixed, "masked": numpy.ma.masked_array(whole, whole > 3),
             "dates": numpy.zeros(1 << 13, "M8[s]"), "other order": whole.astype(">f8")}
    with vitro.Sandbox(BEST) as sandbox:
        hurry = route(sandbox, toolbox.is_writable, whole)
        for name, value in kinds.items():
            check(hurry((value,)) is _quick.LONG_WAY, name)
        check_equal([sandbox.call(toolbox.is_writable, one) for one in (whole, fixed)], [True, False], "who may write")
        check((sandbox.call(toolbox.give, whole.T) == whole.T).all(), "an array that is turned")


def message(head, data, length=None):
    """What a cell could say, with `length` as the size of its buffer."""
    text, *_ = codec.pack(head, [data])
    if length is not None:
        text = text[:-8] + length.to_bytes(8, "little")
    return text + data


def array(dtype, shape):
    return {"value": {"$ndarray": {"dtype": dtype, "shape": shape, "order": "C", "buffer": 0}}}


@test("of a value that is not what it says nothing is made by the short way")
def _():
    data = bytes(range(256)) * 400
    good = message({"value": {"$bytes": 0}}, data)
    begun = _quick._begin_large(b"before" + good, 6, len(good))
    check(begun is not None and begun.fill(None) and begun.make() == data, "the control: bytes")
    bad = {"a buffer that is shorter": (message({"value": {"$bytes": 0}}, data, len(data) - 1), None),
           "one that is longer": (message({"value": {"$bytes": 0}}, data, 1 << 62), None),
           "a body that is longer": (good, len(good) + 1),
           "another head": (message({"value": {"$bytes": 1}}, data), None),
           "a head of another length": (b"\xff" + good[1:], None),
           "two buffers": (good.replace(b"\1\0\0\0", b"\2\0\0\0", 1), None)}
    if numpy:
        right = message(array("<u2", [2, len(data) // 4]), data)
        made = _quick._begin_large(right, 0, len(right)).make()
        check_equal((made.dtype.str, made.shape, made.tobytes()), ("<u2", (2, len(data) // 4), data), "the control: an array")
        bad.update({"a shape that is larger": (message(array("<u2", [2, len(data)]), data), None),
                    "one that is smaller": (message(array("<u2", [2]), data), None),
                    "one that is nothing times much": (message(array("<u2", [0, 1 << 40]), data), None),
                    "one of too many sizes": (message(array("|u1", [1] * 8 + [len(data)]), data), None),
                    "numbers that there are none of": (message(array("<f1", [len(data)]), data), None),
                    "objects": (message(array("|O8", [len(data) // 8]), data), None),
                    "truths, which are looked at": (message(array("|b1", [len(data)]), data), None)})
    for name, (text, size) in bad.items():
        check(_quick._begin_large(text, 0, size or len(text)) is None, name)


class LateSocket:
    """A socket that is read from when all that is on its way has come."""

    def __init__(self, sock):
        self._sock = sock

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def recv_into(self, *args):
        time.sleep(1)
        return self._sock.recv_into(*args)


@test("bytes that come together with the end of another call are taken, and so is that")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        session = sandbox._use()
        sandbox.call(toolbox.sleep, 0)
        session.sock = LateSocket(session.sock)
        hurry = route(sandbox, toolbox.give, b"")
        other = sandbox._begin(sandbox._orders.call(toolbox.sleep, (0.2,), {}, Options(None, None, None, None, False, ""), (), False))[1]
        data = os.urandom(100)
        mine = hurry((data,))
        check_equal((type(mine), session.lost, other.told), (Call, None, True), "the other one is over already")
        order = sandbox._routes[toolbox.give].order
        sandbox._finish(session, mine, Hooks(order))
        check_equal(conclude(order, mine), data, "the value")


async def short_ways(sandbox, *calls):
    """Has functions called the long way, and from then on no other."""
    for function, *args in calls:
        await sandbox.call(function, *args)

    def refuse(*_):
        raise AssertionError("the long way was taken")

    sandbox._orders.call = refuse


async def raised(kind, awaitable):
    """What it raises, which is of that very kind."""
    try:
        value = await awaitable
    except kind as error:
        check_equal(type(error), kind, "what is raised")
        return error
    raise AssertionError(f"nothing was raised, and the value is {value!r}")


@test("asyncio: what was called before goes the short way, and comes to the same, whatever becomes of it")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            await short_ways(sandbox, (toolbox.give, numpy.zeros(9) if numpy else 1), (toolbox.scale, 4, 2),
                             (toolbox.speak, "a"), (toolbox.log_lines, 0), (toolbox.add_later, 1, 2))
            for value in (None, True, -5, 1.5, "", "ä$\\\"", b"", b"\0" * 9000, os.urandom(3 << 20), "x" * 9000):
                came = await sandbox.call(toolbox.give, value)
                check(type(came) is type(value) and came == value, f"{value!r:.20}")
            if numpy:
                data = numpy.arange(1 << 16, dtype="<f8").reshape(256, -1)
                check((await sandbox.call(toolbox.give, data) == data).all(), "an array")
            check_equal(await asyncio.gather(*(sandbox.call(toolbox.give, n) for n in range(200))), [*range(200)], "200 at once")
            check_equal(await sandbox.call(toolbox.add_later, 2, 3), 5, "a coroutine function")
            error = await raised(vitro.ToolError, sandbox.call(toolbox.scale, 4, 0))
            check_equal((error.type, "toolbox.py" in error.result.error.traceback), ("ZeroDivisionError", True), "what it raised")
            check_equal(await sandbox.call(toolbox.speak, "loud"), "value", "one that prints")
            with Heard() as heard:
                await sandbox.call(toolbox.log_lines, 3)
            check_equal([record.levelno for record in heard.records], [logging.WARNING] * 3, "one that logs")
            check(not sandbox.is_running(), "nothing is left")

    asyncio.run(story())


@test("asyncio: a call by the short way ends with its task, by terminate(), and with the supervisor")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            await short_ways(sandbox, (toolbox.sleep, 0), (toolbox.add, 1, 2))
            live = (await sandbox.counts())["live"]
            task = asyncio.ensure_future(sandbox.call(toolbox.sleep, 50))
            await asyncio.sleep(0.1)
            check_equal((await sandbox.counts())["live"], live + 1, "the control: it runs")
            task.cancel()
            await raised(asyncio.CancelledError, task)
            while (await sandbox.counts())["live"] > live:
                await asyncio.sleep(0.01)
            await raised(asyncio.TimeoutError, asyncio.wait_for(sandbox.call(toolbox.sleep, 50), 0.1))
            check_equal(await sandbox.call(toolbox.add, 2, 3), 5, "the next one")
            task = asyncio.ensure_future(sandbox.call(toolbox.sleep, 50))
            await asyncio.sleep(0.1)
            check_equal(sandbox.terminate(), 1, "how many there are")
            await raised(vitro.Cancelled, task)
            task = asyncio.ensure_future(sandbox.call(toolbox.sleep, 50))
            await asyncio.sleep(0.1)
            del sandbox._orders.call  # from here on there is no short way
            os.kill(sandbox._session.connection.process.pid, signal.SIGKILL)
            await raised(vitro.Lost, task)
            check_equal(await sandbox.call(toolbox.add, 3, 4), 7, "the next one has a supervisor")
        check_in("closed", str(await raised(vitro.Refused, sandbox.call(toolbox.add, 3, 4))), "when it is closed")

    asyncio.run(story())


@test("asyncio: what is unusual about a call has it go the long way")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            check_equal(await sandbox.call(toolbox.add, 1, 2), 3, "the first")
            heard = []
            result = await sandbox.call(toolbox.add, 1, 2, result=True, call_id="mine")
            check_equal((result.value, result.call_id), (3, "mine"), "a result")
            await sandbox.call(toolbox.speak, "a")
            await sandbox.call(toolbox.speak, "b", on_output=lambda *said: heard.append(said))
            check_in(("stderr", "b\n"), heard, "output")
            check_equal(await sandbox.call(toolbox.add, 1, b=2), 3, "an argument's name")
            check_equal(await sandbox.call(toolbox.add, [1], [2]), [1, 2], "lists")
            await raised(vitro.Timeout, sandbox.call(toolbox.sleep, 50, timeout=0.2))

            async def within(n):
                return await sandbox.call(toolbox.add, n, 1)

            check_equal(await sandbox.eval("await use(4)", tools={"use": within}), 5, "a call of a tool")
            sys.path.append("/nowhere")
            try:
                check_equal(await sandbox.call(toolbox.add, 5, 1), 6, "another sys.path")
            finally:
                sys.path.remove("/nowhere")

    asyncio.run(story())


@test("asyncio: the short way of one event loop is not another's")
def _():
    sandbox = vitro.AsyncSandbox(BEST)

    async def story(n):
        return [await sandbox.call(toolbox.add, n, one) for one in range(3)]

    for n in range(3):
        check_equal(asyncio.run(story(n)), [n, n + 1, n + 2], f"loop {n}")
    asyncio.run(sandbox.close())


pythons.main("system", "oldest")
