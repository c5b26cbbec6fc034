# SPDX-License-Identifier: Apache-2.0
"""What tests of the codec share: it, its vectors, values at random, and how values are compared."""

import datetime
import decimal
import importlib
import json
import math
import struct
import sys
import types
import uuid

import pythons
from vitrotest import ROOT, check

pythons.see_frameworks()
try:
    import numpy
except ImportError:
    numpy = None


def load():
    """By the package's names, so that the links are tested too; and without the rest of the package."""
    package = types.ModuleType("_coding")
    package.__path__ = [str(ROOT / "sdk" / "python" / "vitro")]
    sys.modules[package.__name__] = package
    return importlib.import_module("_coding._codec"), importlib.import_module("_coding._message")


codec, message = load()
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
