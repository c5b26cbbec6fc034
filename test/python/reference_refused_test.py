# SPDX-License-Identifier: Apache-2.0
"""References to functions that cannot be sent, or only by cloudpickle: what is said of them."""

import dataclasses
import functools
import os
import pathlib
import sys
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
from referring import Module, cell_fails, refused  # noqa: E402

from sending import send  # noqa: E402
from vitro._reference import NotSendable, describe, dumps  # noqa: E402
from vitrotest import check, check_equal, check_in, main, skip, test  # noqa: E402

lock = threading.Lock()


@dataclasses.dataclass
class Point:
    x: int


def fact(n):
    return 1 if n < 2 else n * fact(n - 1)


def uses_lock():
    return lock


def calls_lock():
    return uses_lock()


class Locked:
    def __init__(self):
        self.lock = lock

    def get(self):
        return 1


def local():
    n = 1

    def inner():
        return n

    class Inner:
        pass

    return inner, Inner


@test("a function that cannot be sent says which part of it, and what to do")
def _():
    said = refused(uses_lock)
    for word in ("the function __main__:uses_lock", "the global 'lock'", "define the function in a module"):
        check_in(word, said, "error")
    check_in("'uses_lock', which uses the global 'lock'", refused(calls_lock), "a part's part")
    said = refused(Locked().get)
    check_in("its object, a Locked", said, "a method")
    check_in("argument 1 of its partial", refused(functools.partial(fact, lock)), "a partial")
    check_in("an int, which cannot be called", refused(5), "no function")
    check(issubclass(NotSendable, TypeError), "its kind")


@test("arguments that cannot be sent are named")
def _():
    check_in("argument 2, a lock, cannot be sent", refused(len, 1, lock), "by position")
    check_in("argument 'key', a dict, cannot be sent", refused(len, key={"a": [lock]}), "by name")
    deep = []
    for _ in range(100000):
        deep = [deep]
    check_in("nested too deeply", refused(len, deep), "depth")


def without_cloudpickle(function):
    """Runs a test as if cloudpickle were not installed."""
    kept = sys.modules.get("cloudpickle")
    sys.modules["cloudpickle"] = None
    try:
        function()
    finally:
        del sys.modules["cloudpickle"]
        if kept:
            sys.modules["cloudpickle"] = kept


@test("lambdas, closures and local classes without cloudpickle: the error says so")
def _():
    def look():
        inner, Inner = local()
        for said, kind in ((refused(lambda: 1), "a lambda"), (refused(inner), "the local function 'local.<locals>.inner'"),
                           (refused(Inner), "the local class"), (refused(len, lambda: 1), "a lambda"),
                           (refused(functools.partial(lambda: 1)), "a lambda"), (refused(len, Inner()), "the local class")):
            check_in(kind, said, "error")
            check_in("module, or install cloudpickle", said, "error")
        check_in("the arguments", refused(len, lambda: 1), "which of both")
        check_in("the function __main__:", refused(lambda: 1), "which of both")
    without_cloudpickle(look)


FAKE = """
import marshal, pickle
def _make(data): return type(_make)(marshal.loads(data), globals())
class _Pickler(pickle.Pickler):
    def reducer_override(self, thing):
        if getattr(thing, "__name__", "") != "<lambda>": return NotImplemented
        return _make, (marshal.dumps(thing.__code__),)
def dumps(thing, protocol, buffer_callback=None):
    import io
    file = io.BytesIO()
    _Pickler(file, protocol, buffer_callback=buffer_callback).dump(thing)
    return file.getvalue()
"""


@test("lambdas go by cloudpickle where it is installed; the cell needs it, too")
def _():
    kept = sys.modules.pop("cloudpickle", None)
    try:
        with Module(FAKE, "cloudpickle"):
            check_equal(send(lambda a: a + 1, 2, path=sys.path[:1]), "3", "value")
            check_equal(describe(lambda: 1).ref["cloudpickle"], True, "ref")
            check_equal(send(map, lambda: 1, [], path=sys.path[:1])[:11], "<map object", "an argument")
            said = cell_fails(lambda: 1, path=["/nowhere"])
            check_in("cloudpickle, which cannot be imported in the cell", said, "error")
    finally:
        if kept:
            sys.modules["cloudpickle"] = kept


@test("lambdas and closures by the real cloudpickle")
def _():
    try:
        import cloudpickle
    except ImportError:
        skip("cloudpickle is not installed for this interpreter")
    path = [os.path.dirname(os.path.dirname(cloudpickle.__file__))]
    inner, Inner = local()
    check_equal(send(lambda p: (isinstance(p, Point), p.x), Point(3), path=path), "(True, 3)", "a class of both sides")
    check_equal(send(inner, path=path), "1", "a closure")
    check_in("Inner object", send(Inner, path=path), "a local class")


@test("large buffers stay out of the pickle")
def _():
    import pickle
    data = bytearray(1 << 20)
    oob = []
    packed = dumps((pickle.PickleBuffer(data),), {}, None, oob.append)
    check(len(packed) < 1000 and len(oob) == 1, (len(packed), len(oob)))
    check_equal(send(len, pickle.PickleBuffer(data)), str(1 << 20), "value")


if __name__ == "__main__":
    main()
