#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Values and messages: what round trips, and what is refused."""

import collections
import copy
import dataclasses
import datetime
import enum
import json
import os
import random
import struct
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
from coding import carry, codec, describe, join, message, numpy, random_value, refused, same, vector_groups
from vitrotest import ROOT, check, check_equal, check_in, main, skip, test

try:
    import pydantic
except ImportError:
    pydantic = None


@test("codec: every vector is read, and written, as it says")
def _():
    seen = 0
    for what, case in vector_groups("tests"):
        buffers = [bytes.fromhex(data) for data in case.get("buffers", ())]
        if case.get("malformed"):
            refused(lambda: codec.decode(json.loads(json.dumps(case["tree"])), buffers), what)
            refused(lambda: codec.decode(json.dumps(case["tree"]).encode(), buffers), what + " (as text)")
        else:
            value = codec.decode(json.loads(json.dumps(case["tree"])), list(map(bytearray, buffers)))
            want = {"null": None} if "undefined" in case["value"] else case["value"]
            check(same(describe(value), want), f"{what}: got {describe(value)}, want {case['value']}")
            if case.get("only") != "read":
                tree, written = codec.encode(value)
                check_equal(tree, case["tree"], what + ", written")
                check_equal([bytes(memoryview(data)) for data in written], buffers, what + ", its buffers")
        seen += 1
    check(seen > 80, "few vectors were seen")


@test("codec: every message of the vectors is read or refused as it says")
def _():
    for what, case in vector_groups("messages"):
        if "nested" in case:
            text = b'{"a":' + b"[" * case["nested"] + b"]" * case["nested"] + b"}"
            data = struct.pack("<I", len(text)) + text + b"\0\0\0\0"
        else:
            data = bytes.fromhex(case["message"])
        if case.get("malformed"):
            refused(lambda: codec.unpack(data), what)
        else:
            head, views = codec.unpack(data)
            check_equal((head, [bytes(view).hex() for view in views]), (case["head"], case["buffers"]), what)


# ---- round trips ---------------------------------------------------------------------------------


def typed(value):
    """A value with its types: 1, 1.0 and True are not the same."""
    kind = type(value)
    if kind in (list, tuple):
        return kind, [typed(item) for item in value]
    if kind in (set, frozenset):
        return kind, sorted(map(repr, map(typed, value)))
    if kind is dict:
        return kind, [(typed(key), typed(item)) for key, item in value.items()]
    return kind, repr(value)


@test("codec: 4000 random values come back as they were, with their types")
def _():
    rng = random.Random(1)
    for number in range(4000):
        value = random_value(rng, rng.randrange(5))
        before = typed(value)
        got = typed(carry(value))
        check_equal(got, before, f"value {number}")
        check_equal(typed(value), before, f"value {number}, afterwards")


@test("codec: a short message is read, or refused, as a long one")
def _():
    rng, seeds = random.Random(1), [b"".join(map(bytes, codec.pack(head, buffers))) for head, buffers in (
        ({"op": "call", "args": [1, 2.5, "x"]}, [b"12345"]), ({"value": [None, True, {"k": "ü"}]}, []),
        ({"value": {"$bytes": 0}}, [b"abc"]), ({}, []), ({"a": 1}, [b"", b"2"]))]

    def read(data, small):
        message._SMALL = small
        try:
            head, buffers = codec.unpack(memoryview(data))
            return repr(head), [bytes(buffer) for buffer in buffers], buffers.is_plain
        except codec.Malformed:
            return None

    usual = message._SMALL
    try:
        for _ in range(20_000):
            data = bytearray(rng.choice(seeds))
            for _ in range(rng.randrange(3)):
                at = rng.randrange(len(data) + 1)
                if rng.random() < 0.3:
                    del data[at:]
                else:
                    data[at:at + rng.randrange(2)] = rng.choice([b"\0", b"\1", b"\2", b'"', b"$", b"\\", b"[", b"}", b" ", b"NaN", b"\xff"])
            whole = read(data, 0)
            check_equal(read(data, usual), whole, f"{bytes(data)!r}")
            message._SMALL = usual
            plain = codec.read_plain(bytes(data))
            check(plain is None or whole == (repr(plain), [], True), f"{bytes(data)!r}: plain")
    finally:
        message._SMALL = usual


@test("codec: long lists of one kind that hold one exception")
def _():
    for many, odd in ((1, 1 << 53), (1, -(1 << 53)), (1, 1.5), (1, True), (1, None), (1.5, float("nan")), (1.5, float("inf")),
                      (1.5, float("-inf")), (1.5, 1), ("a", b"b"), (True, 1), (1e308, 1e308)):
        value = [many] * 20
        value[13] = odd
        check_equal(repr(carry(value)), repr(value), f"{odd!r} among {many!r}")
        if type(odd) is int and abs(odd) > codec.SAFE_INT:  # which other languages' JSON reads as another
            check_equal(codec.encode(value)[0][13], {"$int": hex(odd)}, f"{odd} is written as")


@test("codec: text that UTF-8 cannot say")
def _():
    for text in ("\ud800", "a\udfff€", "\udc80" * 3):
        check_equal(carry({text: [text]}), {text: [text]}, ascii(text))


@test("codec: plain data is neither copied nor changed when it is written")
def _():
    value = {"a": [1, "b", {"c": None}], "d": 0.5}
    tree, buffers = codec.encode(value)
    check(tree is value and not buffers, "it was copied")
    inner = [1, 2]
    value = [inner, (1,)]
    tree, _ = codec.encode(value)
    check(tree is not value and tree[0] is inner and value[1] == (1,), "what needed no change was copied")


@test("codec: large buffers are not copied when they are written")
def _():
    data = bytes(10 << 20)
    tree, buffers = codec.encode([data])
    pieces = codec.pack({"value": tree}, buffers)
    check(pieces[-1].obj is data, "bytes were copied")
    check_equal(sum(map(len, pieces[:-1])) % 16, 0, "where the first buffer begins, from a multiple of 16")


@test("codec: buffers that were received one by one are not copied again")
def _():
    data, array = bytes(5 << 20), bytearray(3)
    tree, buffers = codec.encode([data, array, (1,)])
    whole = join({"value": tree}, buffers)
    head, is_plain, lengths, at = codec.unpack_head(memoryview(whole)[:200], len(whole))
    check_equal((is_plain, list(lengths), at), (False, [5 << 20, 3], len(whole) - (5 << 20) - 3), "where they are")
    value = codec.decode(head["value"], codec.Attachments.of([data, array], is_plain))
    check(value == [data, array, (1,)] and value[0] is data, "bytes were copied")
    refused(lambda: codec.unpack_head(memoryview(whole)[:20], len(whole)), "too little")


# ---- what cannot be written ----------------------------------------------------------------------


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Rights(enum.Flag):
    READ = 1
    WRITE = 2


class Text(str):
    pass


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Box:
    size: int
    inner: object = None
    made: int = dataclasses.field(default=0, init=False)

    def __post_init__(self):
        if self.size < 0:
            raise ValueError("size is negative")
        self.made = 2 * self.size


@test("codec: what is not plain is an error that says where it is, and what to do")
def _():
    class Local:
        pass

    for value, says in (([0, [1, Local()]], "result[1][1] is a "), ({"a": {"b": Text("x")}}, "result['a']['b'] is a "),
                        ((1, {2: Level.LOW}), "result[1][2] is a "), ({1, Colour.RED}, "is a "), ({Colour.RED: 1}, "result.keys()[0] is a "),
                        (Point(1, 2), "result is a "), (collections.OrderedDict(a=1), "result is a "), (object, "result is a type"),
                        (memoryview(b"x"), "result is a memoryview"), (range(3), "result is a range"), ([Box(1)], "result[0] is a ")):
        try:
            codec.encode(value)
        except codec.NotPlain as error:
            check_in(says, str(error), repr(value))
            check_in("result_types", str(error), "what to do")
        else:
            check(False, f"{value!r} was written")
    looped = []
    looped.append(looped)
    try:
        codec.encode(looped)
        check(False, "a list that holds itself was written")
    except codec.NotPlain as error:
        check_in("holds itself", str(error), "why")


@test("codec: classes that the caller named come back, built by their own constructor")
def _():
    classes = {codec.name_type(kind): kind for kind in (Box, Point, Colour, Level, Rights)}
    box = Box(2, [Point(1, (2,)), Colour.RED, Level.LOW, Rights.READ | Rights.WRITE])
    box.made = 7
    got = carry([box], classes, classes)
    check_equal((type(got[0]), type(got[0].inner[0])), (Box, Point), "its types")
    check_equal(got[0].made, 4, "a field that the class computes, whatever the cell says")
    box.made = 4
    check_equal(got, [box], "what came back")
    try:
        codec.encode([Box(1, {"a": object()})], classes)
        check(False, "an object was written")
    except codec.NotPlain as error:
        check_in("result[0].inner['a'] is an object", str(error), "where")
    name = codec.name_type(Box)
    tree = {"$object": {"type": name, "state": {"size": 1, "inner": None, "made": 0}}}
    refused(lambda: codec.decode(json.loads(json.dumps(tree))), "a class that is not named")
    for state in ({"size": -1, "inner": None, "made": 0}, {"size": 1}, {"size": 1, "inner": 0, "made": 0, "__class__": 1}, {}, []):
        refused(lambda: codec.decode({"$object": {"type": name, "state": state}}, (), classes), state)
    for state in ({"name": "__class__"}, {"name": "BLUE"}, {"value": 9}, {"name": ["RED"]}, {}):
        refused(lambda: codec.decode({"$object": {"type": codec.name_type(Colour), "state": state}}, (), classes), state)


@test("codec: pydantic models that the caller named are validated")
def _():
    if not pydantic or not hasattr(pydantic.BaseModel, "model_dump"):
        skip("pydantic 2 is not installed")

    class Item(pydantic.BaseModel):
        name: str
        when: datetime.date

    class Order(pydantic.BaseModel):
        items: list
        first: Item

    classes = {codec.name_type(Order): Order}
    order = Order(items=[1], first=Item(name="a", when=datetime.date(2024, 1, 2)))
    check_equal(carry(order, classes, classes), order, "what came back")
    name = codec.name_type(Order)
    refused(lambda: codec.decode({"$object": {"type": name, "state": {"items": 5}}}, (), classes), "a wrong state")


# ---- numpy ---------------------------------------------------------------------------------------


def need_numpy():
    if not numpy:
        skip("numpy is not installed")


@test("codec: arrays of every type, order and shape come back; large ones are used in place")
def _():
    need_numpy()
    base = numpy.arange(24)
    for dtype in ("?", "i1", ">i2", "u4", "i8", "f2", "f4", ">f8", "g", "c8", "c16", "S3", "U2", "M8[ns]", "m8[25s]", "M8[D]"):
        array = base.astype(dtype).reshape(2, 3, 4)
        for shape in (array, numpy.asfortranarray(array), array[:, ::2], array.T, array[0, 0, 0], array[:0], array[0, 1:, ::-1]):
            shape = shape if isinstance(shape, numpy.ndarray) else numpy.array(shape)
            got = carry(shape)
            check_equal((got.dtype, got.shape, got.tobytes()), (shape.dtype, shape.shape, shape.tobytes()), f"{dtype} {shape.shape}")
            check(got.flags.writeable and got.flags.aligned, "it cannot be used")
    large = numpy.asfortranarray(numpy.arange(1e6).reshape(1000, 1000))
    tree, buffers = codec.encode(large)
    check(numpy.shares_memory(buffers[0], large), "it was copied when it was written")
    data = join({"value": tree}, buffers)
    head, views = codec.unpack(data)
    got = codec.decode(head["value"], views)
    check(numpy.shares_memory(got, numpy.frombuffer(data, "u1")), "it was copied when it was read")
    check(got.flags.f_contiguous and (got == large).all(), "it is another")


@test("codec: scalars of numpy keep their types; objects and records are refused")
def _():
    need_numpy()
    for value in (numpy.float64(1.5), numpy.int8(-3), numpy.bool_(True), numpy.datetime64("2024-01-02"), numpy.str_("ab"), numpy.complex64(1j)):
        got = carry([value])[0]
        check_equal((type(got), got), (type(value), value), repr(value))
    for value in (numpy.array([object()]), numpy.zeros(1, "i4,f8"), numpy.zeros(1, "V3"), numpy.ma.array([1])):
        try:
            codec.encode({"a": value})
            check(False, f"{value!r} was written")
        except codec.NotPlain as error:
            check_in("result['a'] is a", str(error), "where")


@test("codec: bytes that no array of its type has are refused")
def _():
    need_numpy()
    for dtype, data in (("|b1", b"\1\2"), ("|b1", b"\xff"), ("<U1", b"\0\0\x11\0"), (">U1", b"\0\x11\0\0"), ("<U2", b"a\0\0\0\xff\xff\xff\xff")):
        size = numpy.dtype(dtype).itemsize
        refused(lambda: codec.decode({"$ndarray": {"dtype": dtype, "shape": [len(data) // size], "order": "C", "buffer": 0}}, [data]), f"{dtype} {data}")
        refused(lambda: codec.decode({"$npscalar": {"dtype": dtype, "buffer": 0}}, [data[-size:]]), f"{dtype} {data}")


_SCALARS = [("|b1", b"\1", True), ("|i1", b"\xfd", -3), (">u2", b"\1\0", 256), ("<i8", b"\xff" * 8, -1), ("<u8", b"\xff" * 8, 2**64 - 1),
            ("<f2", b"\0\x3e", 1.5), ("<f4", b"\0\0\xc0\x3f", 1.5), (">f8", b"\x3f\xf8" + bytes(6), 1.5), ("<c8", bytes(6) + b"\x80\x3f", 1j),
            ("<c16", b"\0" * 14 + b"\xf0\x3f", 1j), ("<U3", "ab\0".encode("utf-32-le"), "ab"), (">U1", b"\0\1\xf6\0", "\U0001f600"),
            ("|S3", b"ab\0", b"ab")]


@test("codec: scalars of numpy are read as Python's own without numpy; arrays are not, with a sentence of their own")
def _():
    def read(tree, data, load):
        return codec.decode(tree, [data], load=load)

    for dtype, data, want in _SCALARS:
        tree = {"$npscalar": {"dtype": dtype, "buffer": 0}}
        got = read(copy.deepcopy(tree), data, {}.get)
        check_equal((type(got), got), (type(want), want), dtype)
        if numpy:
            check_equal(read(copy.deepcopy(tree), data, sys.modules.get).item(), want, f"{dtype} with numpy")
        refused(lambda: read(tree, data + b"\0", {}.get), f"{dtype}, longer than it is")
    check_equal(codec.decode({"$dict": [[{"$npscalar": {"dtype": "|i1", "buffer": 0}}, 1]]}, [b"\2"], load={}.get), {2: 1}, "a key")
    for dtype, data in (("|b1", b"\2"), ("<U1", b"\0\0\x11\0"), ("<U1", b"\0\xd8\0\0")):
        refused(lambda: read({"$npscalar": {"dtype": dtype, "buffer": 0}}, data, {}.get), f"{dtype} {data}")
    for tree, says in (({"$ndarray": {"dtype": "|u1", "shape": [1], "order": "C", "buffer": 0}}, "the value is a numpy array, and this program has not "
                                                                                              "imported numpy: import it, or return .tolist()"),
                       ({"$npscalar": {"dtype": "<M8[s]", "buffer": 0}}, "of the type <M8[s], and this program"),
                       ({"$npscalar": {"dtype": "<f16", "buffer": 0}}, "or return .item()"), ({"$decimal": "1"}, "the value is of decimal, and")):
        try:
            read(tree, bytes(16), {}.get)
            check(False, f"{tree} was read")
        except codec.NotImported as error:
            check_in(says, str(error), "what it says")


@test("codec: scalars of numpy are written as Python's own for who lacks it, and arrays not at all")
def _():
    need_numpy()
    value = {"a": [numpy.float64(2.5), (numpy.bool_(True), numpy.int8(-3))], numpy.int64(2): {numpy.str_("x")}, "b": numpy.float64("nan"),
             "c": numpy.complex64(1j), "d": numpy.datetime64("2024-01-02"), "e": numpy.bytes_(b"y"), "f": numpy.uint64(2**64 - 1)}
    tree, buffers = codec.encode(value, lacks=["numpy"])
    got = codec.decode(tree, buffers, load={"datetime": datetime}.get)
    check_equal(repr(got), "{'a': [2.5, (True, -3)], 2: {'x'}, 'b': nan, 'c': 1j, 'd': datetime.date(2024, 1, 2), 'e': b'y', "
                           "'f': 18446744073709551615}", "the value")
    for lost in (numpy.arange(3), numpy.longdouble(1), numpy.datetime64(1, "ns"), numpy.datetime64("NaT"), numpy.timedelta64(1, "ns")):
        try:
            codec.encode([lost], lacks=["numpy"])
            check(False, f"{lost!r} was written")
        except codec.NotPlain as error:
            check_in("result[0] is a", str(error), "where")


@test("codec: reading imports nothing, whatever is asked for")
def _():
    # A cell that may write to a folder of the host's sys.path could plant a module there.
    trees = [{"$decimal": "1"}, {"$uuid": str(uuid.UUID(int=1))}, {"$date": "2024-01-01"}, {"$ndarray": {"dtype": "|u1", "shape": [0], "order": "C", "buffer": 0}}]
    program = f"""
import importlib, json, sys, types
sys.modules["runtime"] = types.ModuleType("runtime")
sys.modules["runtime"].__path__ = [{str(ROOT / "runtimes" / "python")!r}]
codec = importlib.import_module("runtime.codec")
before = set(sys.modules)
for name in ("decimal", "uuid", "datetime", "numpy"):
    assert name not in before, name
for tree in json.loads({json.dumps(trees)!r}):
    try:
        codec.decode(tree, [b""])
    except codec.Malformed as error:
        assert isinstance(error, codec.NotImported) and "import it, or return" in str(error), error
    else:
        raise SystemExit("it was read")
assert set(sys.modules) == before, set(sys.modules) - before
"""
    import subprocess
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    check_equal((done.returncode, done.stderr), (0, ""), "the program")


main()
