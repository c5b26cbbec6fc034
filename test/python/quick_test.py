#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The short way of usual calls: large arguments and values, and what a cell must not be able to do by it."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from vitrotest import check, check_equal, skip, test

try:
    import numpy
except ImportError:
    numpy = None

import vitro
from vitro import _codec as codec
from vitro import _quick

BEST = {"require": "best-effort"}


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


pythons.main()
