#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Values and messages: what round trips, what is refused, and what a hostile cell can make its host pay."""

import collections
import dataclasses
import datetime
import decimal
import enum
import importlib.util
import itertools
import json
import math
import os
import pathlib
import random
import resource
import struct
import sys
import time
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
from vitrotest import ROOT, check, check_equal, check_in, main, skip, test

try:
    import numpy
except ImportError:
    numpy = None
try:
    import pydantic
except ImportError:
    pydantic = None


def load():
    """By the package's name for it, so that the link is tested too."""
    spec = importlib.util.spec_from_file_location("_codec", ROOT / "sdk" / "python" / "vitro" / "_codec.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


codec = load()
VECTORS = json.loads((ROOT / "test" / "vectors" / "values.json").read_text())


def join(head, buffers=()):
    return bytearray(b"".join(codec.pack(head, buffers)))


def carry(value, types=(), classes=None):
    """A value's way through bytes."""
    tree, buffers = codec.encode(value, types)
    head, views = codec.unpack(join({"value": tree}, buffers))
    return codec.decode(head["value"], views, classes)


def describe(value):
    """A value as the vectors say it."""
    kind = type(value)
    if value is None:
        return {"null": None}
    if kind is bool:
        return {"bool": value}
    if kind is int:
        return {"int": str(value)}
    if kind is float:
        return {"float": "nan" if math.isnan(value) else struct.pack(">d", value).hex()}
    if kind is str:
        return {"text": value}
    if kind in (bytes, bytearray):
        return {kind.__name__: value.hex()}
    if kind in (list, tuple, set, frozenset):
        return {kind.__name__: [describe(item) for item in value]}
    if kind is dict:
        return {"dict": [[describe(key), describe(item)] for key, item in value.items()]}
    if kind is complex:
        return {"complex": [describe(value.real), describe(value.imag)]}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if kind in (datetime.datetime, datetime.date, datetime.time):
        return {kind.__name__: value.isoformat()}
    if kind in (decimal.Decimal, uuid.UUID):
        return {kind.__name__.lower(): str(value)}
    if numpy and kind is numpy.ndarray:
        return {"ndarray": {"dtype": value.dtype.str, "shape": list(value.shape), "data": value.tobytes("C").hex()}}
    if numpy and isinstance(value, numpy.generic):
        return {"npscalar": {"dtype": value.dtype.str, "data": value.tobytes().hex()}}
    raise AssertionError(kind)


def same(got, want):
    """Equal, where a set's items may come in any order."""
    if isinstance(want, dict) and len(want) == 1 and "set" in want and isinstance(got, dict) and "set" in got:
        key = lambda item: json.dumps(item, sort_keys=True)
        return sorted(got["set"], key=key) == sorted(want["set"], key=key)
    return got == want


def vector_groups(name):
    for group in VECTORS:
        if group.get("needs") == "arrays" and not numpy:
            continue
        for case in group.get(name, ()):
            yield f"{group['description']}: {case['description']}", case


def refused(function, what):
    try:
        value = function()
    except codec.Malformed as error:
        return str(error)
    check(False, f"{what}: it was read: {value!r:.200}")


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


def random_text(rng):
    alphabet = rng.choice(["abc", "é€😀\0\"\\\n", "$", "\ud800a"])
    return "".join(rng.choice(alphabet) for _ in range(rng.randrange(6)))


SCALARS = [
    lambda rng: None,
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.randrange(-10, 10),
    lambda rng: rng.randrange(-1 << 70, 1 << 70),
    lambda rng: rng.choice([0.0, -0.0, 0.1, 1e308, float("inf"), float("-inf"), rng.random()]),
    random_text,
    lambda rng: bytes(rng.randrange(256) for _ in range(rng.randrange(4))),
    lambda rng: complex(rng.random(), rng.randrange(3)),
    lambda rng: decimal.Decimal(rng.randrange(-10**6, 10**6)).scaleb(rng.randrange(-9, 9)),
    lambda rng: uuid.UUID(int=rng.getrandbits(128)),
    lambda rng: datetime.datetime(rng.randrange(1, 9999), 1, 2, 3, 4, 5, rng.choice([0, 6]),
                                  rng.choice([None, datetime.timezone(datetime.timedelta(minutes=rng.randrange(-900, 900)))])),
    lambda rng: datetime.date(rng.randrange(1, 9999), 12, 31),
    lambda rng: datetime.time(rng.randrange(24), 5, rng.randrange(60)),
    lambda rng: datetime.timedelta(rng.randrange(-999, 999), rng.randrange(86400), rng.randrange(10**6)),
]


def random_key(rng, depth):
    if depth and rng.random() < 0.3:
        items = [random_key(rng, depth - 1) for _ in range(rng.randrange(4))]
        return rng.choice([tuple, frozenset])(items)
    return rng.choice(SCALARS)(rng)


def random_value(rng, depth):
    if not depth or rng.random() < 0.3:
        return rng.choice(SCALARS)(rng)
    size = rng.choice([0, 1, 2, 3, 12])
    kind = rng.choice([list, tuple, set, frozenset, dict, "text dict", bytearray])
    if kind is dict:
        return {random_key(rng, 2): random_value(rng, depth - 1) for _ in range(size)}
    if kind == "text dict":
        return {random_text(rng): random_value(rng, depth - 1) for _ in range(size)}
    if kind in (set, frozenset):
        return kind(random_key(rng, 2) for _ in range(size))
    if kind is bytearray:
        return bytearray(size)
    if rng.random() < 0.3:  # of one kind, which is written in one go
        make = rng.choice(SCALARS)
        return kind(make(rng) for _ in range(size))
    return kind(random_value(rng, depth - 1) for _ in range(size))


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
        codec._SMALL = small
        try:
            head, buffers = codec.unpack(memoryview(data))
            return repr(head), [bytes(buffer) for buffer in buffers], buffers.is_plain
        except codec.Malformed:
            return None

    usual = codec._SMALL
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
            codec._SMALL = usual
            plain = codec.read_plain(bytes(data))
            check(plain is None or whole == (repr(plain), [], True), f"{bytes(data)!r}: plain")
    finally:
        codec._SMALL = usual


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


@test("codec: reading imports nothing, whatever is asked for")
def _():
    # A cell that may write to a folder of the host's sys.path could plant a module there.
    trees = [{"$decimal": "1"}, {"$uuid": str(uuid.UUID(int=1))}, {"$date": "2024-01-01"}, {"$ndarray": {"dtype": "|u1", "shape": [0], "order": "C", "buffer": 0}}]
    program = f"""
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("_codec", {str(ROOT / "runtimes" / "python" / "codec.py")!r})
codec = importlib.util.module_from_spec(spec)
spec.loader.exec_module(codec)
before = set(sys.modules)
for name in ("decimal", "uuid", "datetime", "numpy"):
    assert name not in before, name
for tree in json.loads({json.dumps(trees)!r}):
    try:
        codec.decode(tree, [b""])
    except codec.Malformed as error:
        assert "import it first" in str(error), error
    else:
        raise SystemExit("it was read")
assert set(sys.modules) == before, set(sys.modules) - before
"""
    import subprocess
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    check_equal((done.returncode, done.stderr), (0, ""), "the program")


# ---- what a hostile cell says --------------------------------------------------------------------


def bounded(what, seconds, megabytes, function):
    """Runs it in a process of its own, and checks what that cost. function: returns a text."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            began = time.process_time()
            text = function()
            took = time.process_time() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            os.write(write, json.dumps([text, took, (peak - before) / 1024]).encode())
        except BaseException as error:
            os.write(write, json.dumps([f"{type(error).__name__}: {error!s:.200}", -1, 0]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    check(said, f"{what}: it died")
    text, took, grown = json.loads(said)
    check(took >= 0, f"{what}: {text}")
    check(took < seconds, f"{what}: took {took:.1f} s")
    check(grown < megabytes, f"{what}: took {grown:.0f} MB")
    return text


def read_message(text, buffers=(), classes=None):
    """Reads a message with this text as its value; says what became of it."""
    head = b'{"value":' + text + b"}"
    lengths = b"".join(struct.pack("<Q", len(data)) for data in buffers)
    data = b"".join([struct.pack("<I", len(head)), head, struct.pack("<I", len(buffers)), lengths, *buffers])
    try:
        tree, views = codec.unpack(data)
        codec.decode(tree["value"], views, classes)
        return "read"
    except codec.Malformed as error:
        return str(error)


def same_hashes(count):
    """Different numbers that all have one hash."""
    prime = sys.hash_info.modulus
    return [5 + number * prime for number in range(count)]


@test("codec: bombs are refused within bounds of time and memory")
def _():
    many = 20_000_000
    colliding = same_hashes(100_000)
    hexed = ",".join('{"$int":"%s"}' % hex(number) for number in colliding).encode()
    cases = [
        ("lists in a list", lambda: b"[" + b"[]," * (many // 3) + b"[]]", "too many parts"),
        ("objects in a list", lambda: b"[" + b'{"":0},' * (many // 7) + b"0]", "too many parts"),
        ("zeros", lambda: b"[" + b"0," * (many // 2) + b"0]", "too many parts"),
        ("lists without an end", lambda: b"[" * 9_000_000, "nests too deep"),
        ("nested lists", lambda: b"[" * 900_000 + b"]" * 900_000, "nests too deep"),
        ("nested objects", lambda: b'{"a":' * 900_000 + b"0" + b"}" * 900_000, "nests too deep"),
        ("nested tuples", lambda: b'{"$tuple":[' * 300_000 + b"]}" * 300_000, "nests too deep"),
        ("an integer of digits", lambda: b"9" * 5_000_000, "too long"),
        ("many of them", lambda: b"[" + b",".join([b"9" * 4000] * 2000) + b"]", "too long"),
        ("a negative one", lambda: b"-" + b"1" * 5_000_000, "too long"),
        ("a text of digits", lambda: b'"' + b"9" * 20_000_000 + b'"', "read"),
        ("a fraction of digits", lambda: b"0." + b"9" * 5_000_000, "read"),
        ("an exponent of digits", lambda: b"1e-" + b"9" * 5_000_000, "read"),
        ("a large integer", lambda: b'{"$int":"0x' + b"f" * 20_000_000 + b'"}', "read"),
        ("a large decimal", lambda: b'{"$decimal":"' + b"9" * 5_000_000 + b'"}', "read"),
        ("a decimal's exponent", lambda: b'{"$set":[{"$decimal":"1E+999999999999999999"},1,{"$decimal":"1E+99999999999999999999"}]}', None),
        ("keys that collide", lambda: b'{"$set":[' + hexed + b"]}", "collide"),
        ("tuples that collide", lambda: b'{"$set":[' + b",".join(b'{"$tuple":[{"$int":"%s"}]}' % hex(n).encode() for n in colliding) + b"]}", "collide"),
        ("keys of a dict that collide", lambda: b'{"$dict":[' + b",".join(b'[{"$int":"%s"},0]' % hex(n).encode() for n in colliding) + b"]}", "collide"),
        ("UUIDs that collide", lambda: b'{"$set":[' + b",".join(b'{"$uuid":"%s"}' % str(uuid.UUID(int=n)).encode() for n in colliding) + b"]}", "collide"),
        ("many small sets that collide", lambda: b"[" + b",".join([b'{"$set":[' + b",".join(b'{"$int":"%s"}' % hex(n).encode() for n in colliding[:64]) + b"]}"] * 2000) + b"]", "read"),
        ("numbers that share their last bits", lambda: b'{"$set":[' + b",".join(b'{"$int":"%s"}' % hex(n << 40).encode() for n in range(200_000)) + b"]}", "read"),
        ("a decimal beside a huge integer", lambda: b'{"$set":[{"$decimal":"5"},{"$int":"0x' + b"f" * 1_000_000 + b'"}]}', "too large to be keys"),
        ("sets in sets", lambda: b'{"$set":[' + b'{"$frozenset":[' * 98 + b"]}" * 98 + b"]}", "read"),
        ("too many sets in sets", lambda: b'{"$set":[' + b'{"$frozenset":[' * 100 + b"]}" * 100 + b"]}", "nests too deep"),
        ("an unknown name, long", lambda: b'{"$' + b"x" * 20_000_000 + b'":1}', "is not the name of a type"),
    ]
    for what, make, says in cases:
        text = make()
        said = bounded(what, 8, 700, lambda: read_message(text))
        if says:
            check_in(says, said, what)


@test("codec: buffers cannot be multiplied")
def _():
    check_in("used twice", bounded("one buffer, often", 5, 200, lambda: read_message(
        b"[" + b",".join([b'{"$bytes":0}'] * 1000) + b"]", [bytes(10 << 20)])), "why")
    empty = b"".join([struct.pack("<I", 2), b"{}", struct.pack("<I", 5_000_000), bytes(40_000_000)])
    check_in("too many buffers", bounded("empty buffers", 5, 200, lambda: refused(lambda: codec.unpack(empty), "they")), "why")
    head, views = codec.unpack(join({"files": {"a": 0, "b": 0}}, [b"x"]))
    check_in("used twice", refused(lambda: codec.read_files(head["files"], views, ["*"]), "one buffer for two files"), "why")


@test("codec: a program that raised its recursion limit is not brought down")
def _():
    def read():
        sys.setrecursionlimit(1_000_000)
        return [read_message(b"[" * 2_000_000 + b"]" * 2_000_000), read_message(b'["]"' + b',["["' * 150 + b"]" * 151),
                read_message(b'["]"' + b',["["' * 300 + b"]" * 301)]

    said = bounded("nested", 20, 1000, read)
    check_equal((said[0], said[1], said[2]), ("the message nests too deep", "read", "the message nests too deep"), "what was said")


@test("codec: nesting is counted as JSON has it, in time that grows with the text")
def _():
    deepest = codec.NESTING_MAX - 1  # the message is an object itself
    for what, begin, end in (("lists", b"[", b"]"), ("objects", b'{"a":', b"}"), ("texts of brackets", b'["]]]",', b"]"),
                             ("escaped quotes", rb'["\"]",', b"]"), ("escaped backslashes", rb'["\\","]\\\"]",', b"]"),
                             ("escapes", rb'["\n]\u0022]",', b"]"), ("siblings", b"[[],[[]],", b"]")):
        for depth, says in ((deepest - 2, "read"), (deepest + 1, "nests too deep")):
            check_in(says, read_message(begin * depth + b"0" + end * depth), f"{what}, {depth} deep")
    for what, text in (("an unterminated text of quotes", b"[" * 300 + b'"' + rb'\"' * 10_000_000), ("many texts", b"[[" * 150 + b'"",' * 4_000_000),
                       ("backslashes", b"[" * 300 + b'"' + b"\\" * 20_000_001), ("quotes", b"[" * 300 + b'"' * 20_000_001)):
        sys.setrecursionlimit(6000)
        try:
            bounded(what, 3, 700, lambda: read_message(text))
        finally:
            sys.setrecursionlimit(1000)
    flat = b"[" + b",".join([b"[[[[[[[[[[0]]]]]]]]]]"] * 400_000) + b"]"
    check_equal(bounded("lists, ten deep", 3, 700, lambda: read_message(flat)), "read", "it")


def colliding_tuples(count, length=13):
    """Tuples that all have one hash, as text: that of -1 is that of -2."""
    return ['{"$tuple":[%s]}' % ",".join(map(str, item)) for item in itertools.islice(itertools.product((-1, -2), repeat=length), count)]


def frozensets(items, twins, count):
    """So many that have all but one item in common."""
    return ['{"$frozenset":[%s]}' % ",".join(items[:twins - 1] + [items[twins - 1 + number]]) for number in range(count)]


@test("codec: keys that collide cost a message little, however they are nested")
def _():
    def nest(twins, levels):
        items = colliding_tuples(twins * (levels + 1))
        for level in range(levels - 1, 0, -1):
            items = frozensets(items, twins, twins * (level + 1) - twins + 1 if level > 1 else twins)
        return items[:twins]

    made = [(f"{twins} twins, {levels} levels", '{"$set":[%s]}' % ",".join(nest(twins, levels)))
            for twins, levels in ((2, 8), (4, 5), (8, 3), (12, 3), (16, 3), (20, 3), (28, 3), (64, 2), (64, 3), (100, 1), (1000, 1))]
    made.append(("long tuples", '{"$set":[%s]}' % ",".join('{"$tuple":[%s%s]}' % ("0," * 10_000, item[11:-2]) for item in colliding_tuples(64))))
    text = '"' + "x" * 100_000 + '",'
    made.append(("long texts", '{"$set":[%s]}' % ",".join('{"$tuple":[%s%s]}' % (text, item[11:-2]) for item in colliding_tuples(64))))
    made.append(("many sets", "[%s]" % ",".join(['{"$set":[%s]}' % ",".join(colliding_tuples(64))] * 2000)))
    made.append(("a dict", '{"$dict":[%s]}' % ",".join(f"[{item},0]" for item in colliding_tuples(4000))))
    made.append(("values of a dict", '{"a":[%s]}' % ",".join('{"$set":[%s]}' % ",".join(colliding_tuples(60, 7)) for _ in range(1000))))
    refusals = 0
    for what, text in made:
        said = bounded(what, 1.5, 300, lambda: read_message(text.encode()))
        check(said in ("read", "keys collide"), f"{what}: {said}")
        refusals += said != "read"
    check(refusals >= 8, f"{refusals} were refused")
    for what in ("28 twins, 3 levels", "1000 twins, 1 levels", "many sets"):
        check_equal(read_message(dict(made)[what].encode()), "keys collide", what)


@test("codec: honest keys are none that collide")
def _():
    rng = random.Random(4)
    for what, value in (("tuples", {(n, n + 1) for n in range(100_000)}), ("a grid", {(x, y) for x in range(-200, 200) for y in range(-200, 200)}),
                        ("steps", set(itertools.product((-1, 0, 1), repeat=9))), ("tuples as keys", {(n, str(n)): n for n in range(100_000)}),
                        ("small numbers", {tuple(rng.randrange(-10, 10) for _ in range(5)) for _ in range(50_000)}),
                        ("frozensets", {frozenset((n, -n)) for n in range(50_000)}), ("floats", {n / 7 for n in range(-100_000, 100_000)}),
                        ("decimals", {decimal.Decimal(n) / 8 for n in range(-20_000, 20_000)}), ("powers of two", {1 << n for n in range(2000)}),
                        ("edges", {frozenset(((n, n), (n, -1))) for n in range(20_000)})):
        tree, buffers = codec.encode(value)
        data = join({"value": tree}, buffers)
        got = []

        def read():
            head, views = codec.unpack(data)
            got.append(codec.decode(head["value"], views))
            return "read" if got[0] == value else "another value"

        check_equal(bounded(what, 2, 700, read), "read", what)


@test("codec: names of files lead nowhere else")
def _():
    for name in ("", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b", "..", ".", "x" * 5000):
        head, views = codec.unpack(join({"files": {name: 0}}, [b"x"]))
        refused(lambda: codec.read_files(head["files"], views, ["**"]), repr(name))
    head, views = codec.unpack(join({"files": {"out/a b.txt": 0, "...": 1, "é": 2}}, [b"x", b"y", b"z"]))
    check_equal(codec.read_files(head["files"], views, ["**"]), {"out/a b.txt": b"x", "...": b"y", "é": b"z"}, "good names")
    refused(lambda: codec.read_files([1], views, ["**"]), "a list")
    check_equal(codec.read_files(None, views), {}, "none")


@test("codec: files are those that were asked for, and no more than those")
def _():
    for patterns, good, bad in ((["out/**"], ["out/a", "out/b/c"], ["out", "a", "in/out/a"]), (["*.csv", "b"], ["a.csv", ".csv", "b"], ["a/b.csv", "a.csvx", "bb"]),
                                (["**/a"], ["a", "x/a", "x/y/a"], ["x/ab", "a/b"]), (["x/**/y/*.t"], ["x/y/a.t", "x/b/y/.t", "x/y/y/a.t"], ["y/a.t", "x/a.t"]),
                                (["a?c[0-9][!x]"], ["abc1y", "a€c0]"], ["ac1y", "abc1x", "abcdy"]), (["a*b*c"], ["abc", "axbxbc"], ["acb", "abcd", "a/b/c"]),
                                ((), [], ["a"]), (["./a"], ["a"], ["b"]), (["../a"], [], ["a"]), (["a\n*"], ["a\nb\n"], ["a"])):
        for name in good + bad:
            head, views = codec.unpack(join({"files": {name: 0}}, [b"x"]))
            if name in good:
                check_equal(codec.read_files(head["files"], views, patterns), {name: b"x"}, f"{patterns}")
            else:
                refused(lambda: codec.read_files(head["files"], views, patterns), f"{patterns}: {name}")
    many = {str(number): number for number in range(codec.FILES_MAX + 1)}
    refused(lambda: codec.read_files(many, codec.Attachments.of([b""] * len(many)), ["*"]), "too many")
    del many["0"]
    check_equal(len(codec.read_files(many, codec.Attachments.of([b""] * (codec.FILES_MAX + 1)), ["*"])), codec.FILES_MAX, "as many as can be")
    slow = {"a" * 4000: 0}, {"a/" * 2000 + "b": 0}, {"/".join(["a" * 60] * 60): 0}
    for files in slow:
        bounded("names that are slow to match", 0.5, 100, lambda: refused(lambda: codec.read_files(
            files, codec.Attachments.of([b""]), ["*a*a*a*a*a*c", "**/**/**/**/**/c", "**/*a*a*a*b*/**/*a*a*b"]), "it"))


@test("codec: 30000 mutated messages are read, or refused by Malformed alone")
def _():
    rng = random.Random(2)
    seeds = []
    for number in range(60):
        tree, buffers = codec.encode([random_value(rng, 3), b"x", 1 << 60])
        seeds.append(bytes(join({"value": tree}, buffers)))
    if numpy:
        tree, buffers = codec.encode([numpy.arange(6).reshape(2, 3), numpy.float32(1)])
        seeds += [bytes(join({"value": tree}, buffers))] * 10
    words = [b"$int", b"$set", b"$dict", b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"1e999", b"-0", b"\\u0024", b"\xff", b"<M8[0s]", b"|O"]
    counts = collections.Counter()
    for number in range(30000):
        seed = rng.choice(seeds)
        end = 4 + int.from_bytes(seed[:4], "little")
        is_framed = rng.random() < 0.7  # only its JSON is changed, and the length is right again
        data = bytearray(seed[4:end] if is_framed else seed)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(5)
            if kind == 0 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del data[at:at + rng.randrange(1, 9)]
            elif kind == 2:
                data[at:at] = rng.choice(words)
            elif kind == 3:
                other = rng.choice(seeds)
                start = rng.randrange(len(other))
                data[at:at + 4] = other[start:start + rng.randrange(20)]
            elif at < len(data):
                data[at] = rng.choice(b'[]{}",:$0123456789abcdefx')
        if is_framed:
            data = bytearray(struct.pack("<I", len(data)) + data + seed[end:])
        try:
            head, views = codec.unpack(data)
            codec.decode(head.get("value"), views)
            counts["read"] += 1
        except codec.Malformed:
            counts["refused"] += 1
        except BaseException as error:
            check(False, f"message {number} raised {error!r}: {bytes(data)!r}")
    check(counts["read"] > 1000 and counts["refused"] > 1000, f"the mutations are all of one kind: {counts}")


@test("codec: 30000 random trees are read, or refused by Malformed alone")
def _():
    rng = random.Random(3)
    tags = list(codec._readers)
    leaves = [None, True, 0, 1, -1, 1 << 60, 1.5, "", "0x1", "nan", "2024-01-01", "12:00", "1E+5", "<f8", "|b1", "C", "a:B", "sNaN", "M8[ns]",
              "12345678-1234-5678-1234-567812345678"]

    def grow(depth):
        kind = rng.randrange(6) if depth else 0
        if kind <= 1:
            return rng.choice(leaves)
        if kind == 2:
            return [grow(depth - 1) for _ in range(rng.randrange(4))]
        if kind == 3:
            return {rng.choice(["a", "b", "dtype", "shape", "order", "buffer", "type", "state"]): grow(depth - 1) for _ in range(rng.randrange(4))}
        if kind == 4 and rng.random() < 0.3:
            return {"$ndarray": {"dtype": rng.choice(["<f8", "|b1", "<M8[s]", "<U1", grow(0)]), "shape": grow(1), "order": rng.choice("CFK"), "buffer": rng.randrange(3)}}
        return {rng.choice(tags): grow(depth - 1)}

    counts = collections.Counter()
    for number in range(30000):
        tree = grow(4)
        text = json.dumps(tree)
        try:
            codec.decode(tree, [bytes(8), b"\x02", b""])
            counts["read"] += 1
        except codec.Malformed:
            counts["refused"] += 1
        except BaseException as error:
            check(False, f"tree {number} raised {error!r}: {text}")
    check(counts["read"] > 1000 and counts["refused"] > 1000, f"the trees are all of one kind: {counts}")


main()
