#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The package's side of docs/wire.md: the vectors, and what a supervisor must not be able to do to it."""

import json
import os
import pathlib
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import pythons
from vitrotest import check, check_equal, test

from vitro import _codec as codec
from vitro import _outcome, _wire
from vitro._order import SERVER_TOOL, Options, Order, PoolSpec
from vitro._session import Pool
from vitro._start import Connection
from vitro._threads import ThreadSession

VECTORS = json.loads((pathlib.Path(__file__).resolve().parents[1] / "wire" / "vectors.json").read_text())


def data_of(what):
    """Bytes as the file writes them."""
    if isinstance(what, str):
        return what.encode()
    if isinstance(what, list):
        return b"".join(map(data_of, what))
    return bytes.fromhex(what["hex"]) if "hex" in what else data_of(what["repeat"]) * what["times"]


def stream_of(says):
    out = b""
    for one in says:
        head, body = data_of(one.get("head", "")), data_of(one.get("body", ""))
        lengths = (len(head) + len(body)).to_bytes(4, "little") + len(head).to_bytes(4, "little")
        out += lengths + head + body if "head" in one else data_of(one["bytes"])
    return out


def frames_of(data, step):
    """The frames of what comes in pieces of so many bytes, and how it ends."""
    reader, frames = _wire.Reader(), []
    while data:
        room = reader.get_buffer()
        check(len(room), "there is room")
        piece = data[:min(step, len(room))]
        room[:len(piece)] = piece
        data = data[len(piece):]
        frames += [(bytes(head), bytes(body)) for head, body in reader.advance(len(piece))]
        if reader.is_broken:
            return frames, "refused"
    return frames, "end" if reader.is_between else "more"


def describe(value):
    kinds = {bool: "flag", int: "integer", _wire.Number: "number", str: "text", type(None): "null"}
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return kinds[type(value)], text


def is_like(want, got):
    if isinstance(want, dict):
        return isinstance(got, dict) and all(name in got and is_like(want[name], got[name]) for name in want)
    return want == got


@test("vectors: frames, however they are cut")
def _():
    for vector in VECTORS["frames"]:
        data = data_of(vector["bytes"])
        for step in (1 << 20, 4096, *((7,) if len(data) < 1 << 17 else ())):
            frames, then = frames_of(data, step)
            check_equal([[len(head), len(body)] for head, body in frames], vector["frames"], vector["name"])
            check_equal(then, vector["then"], vector["name"])


@test("frames of all sizes come as they were sent, however they are cut")
def _():
    sizes = [0, 1, 100, 65527, 131063, 131064, 131065, 200_000, 3 << 20, 5]
    bodies = [os.urandom(size) for size in sizes]
    data = b"".join(_wire.frame(b"{}", len(body)) + body for body in bodies)
    for step in (1 << 22, 131072, 70_001, 1000):
        frames, then = frames_of(data, step)
        check([body for _, body in frames] == bodies and then == "end", f"in steps of {step}")


def done_of(value, printed=b""):
    """The frame of a call that went well."""
    head = b'{"is":"done","call":1,"status":"ok","value":%d,"stdout":%d,"cell":true}' % (len(value), len(printed))
    return _wire.frame(head, len(value) + len(printed)) + value + printed


def body_of(data, step):
    """The one body in what comes in pieces."""
    reader, bodies, data = _wire.Reader(), [], memoryview(data)
    while data:
        piece = data[:min(step, len(reader.get_buffer()))]
        reader.get_buffer()[:len(piece)] = piece
        data = data[len(piece):]
        bodies += [body for _, body in reader.advance(len(piece))]
    check(reader.is_between and len(bodies) == 1, "there is one")
    return bodies[0]


@test("a large value is received into objects of its own, however it is cut")
def _():
    blob, block, small = os.urandom(5 << 20), os.urandom(200_000), b"xyz"
    tree = {"value": [{"$bytes": 0}, {"$bytearray": 1}, {"$bytes": 2}, {"$bytes": 3}]}
    value = b"".join(bytes(piece) for piece in codec.pack(tree, [blob, block, small, b""]))
    for printed in (b"", b"out" * 50_000):
        for step in (1 << 30, 131_072, 70_001, 4096, 99):
            body = body_of(done_of(value, printed), step)
            is_parted = isinstance(body, _wire.Parted)
            check_equal(is_parted, step > 99, "it is taken apart, where its head came at once")
            head, buffers = body.unpack() if is_parted else codec.unpack(body[:len(value)])
            got = codec.decode(head["value"], buffers)
            check_equal([type(one) for one in got], [bytes, bytearray, bytes, bytes], "types")
            check(got == [blob, block, small, b""], f"in pieces of {step} it is what was sent")
            if is_parted:
                check(got[0] is buffers[0], "bytes are not copied")
                check(bytes(body.tail.view) == printed, "what was printed")


@test("a large value that lies about itself is refused as any other")
def _():
    block = bytes(300_000)
    good = b"".join(bytes(piece) for piece in codec.pack({"value": {"$bytes": 0}}, [block]))
    at = good.index(b"\x01\0\0\0" + len(block).to_bytes(8, "little")) + 4
    for size in (0, len(block) - 1, len(block) + 1, 1 << 40, (1 << 64) - 1):
        body = body_of(done_of(good[:at] + size.to_bytes(8, "little") + good[at + 8:]), 1 << 30)
        check(not isinstance(body, _wire.Parted), f"a length of {size} is not believed")
        try:
            codec.unpack(body)
            check(False, f"a length of {size} is taken")
        except codec.Malformed:
            pass
    twice = b"".join(bytes(piece) for piece in codec.pack({"value": [{"$bytes": 0}, {"$bytes": 0}]}, [block]))
    head, buffers = body_of(done_of(twice), 1 << 30).unpack()
    try:
        codec.decode(head["value"], buffers)
        check(False, "a buffer is taken twice")
    except codec.Malformed:
        pass


@test("vectors: heads, read and written")
def _():
    for vector in VECTORS["heads"]:
        try:
            members = [[name, *describe(value)] for name, value in _wire.read_head(data_of(vector["text"])).items()]
        except _wire.Broken:
            members = None
        want = vector.get("members")
        if want is not None:
            want = [[name, kind, data_of(value).decode()] for name, kind, value in want]
        check(members == want, vector["name"])
    make_of = {"text": str, "integer": int, "flag": lambda text: text == "true"}
    for vector in VECTORS["written"]:
        members = {name: make_of[kind](value) for name, kind, value in vector["members"] if kind != "null"}
        said = _wire.read_head(_wire.write_head(members))
        check_equal(said, members, vector["name"])


def depth_of(text):
    depth = most = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (mark in "[{") - (mark in "]}")
        most = max(most, depth)
    return most


def refuse_constant(text):
    raise ValueError(text)


def read_json(body):
    """A value of a pool that is not Python's."""
    text = bytes(body).decode()
    if depth_of(text) > 512:
        raise ValueError("too deep")
    return json.loads(text, parse_constant=refuse_constant)


def session_of(says):
    """A session with call 1 under way, that hears this."""
    ours, theirs = socket.socketpair()
    connection = Connection(ours, None, 1 << 30)
    session = ThreadSession(connection)
    pool = Pool(1, PoolSpec("object", "x", "[]", None, 0, 0))
    pool.answered, pool.isolation = True, {"level": "full"}
    output = []
    options = Options(None, None, lambda stream, text: None, None, True, "c1")
    order = Order(pool.spec, "tool", [b"{}"], 0, options)
    call = session.begin(pool, order)
    check_equal(call.number, 1, "the call's number")
    theirs.sendall(stream_of(says))
    theirs.close()
    while not call.is_over:
        session.wait(call)
        call.told = False
        while call.events:
            head, body = call.take()
            output.append((head["stream"], bytes(body)))
    session.close()
    return call, output


@test("vectors: messages of a supervisor, and what becomes of the call")
def _():
    for vector in VECTORS["messages"]:
        call, output = session_of(vector["says"])
        head, value = call.head, None
        if head["status"] == "ok":
            try:
                value = read_json(call.body[:head.get("value", 0)])
            except ValueError:
                head = {**head, "status": "no_result"}
        result = _outcome.build(call, head)
        result.value = value
        shape = result.to_dict()
        check(is_like(vector["result"], shape), lambda: f"{vector['name']}: {shape}")
        check_equal(output, [(stream, data_of(data)) for stream, data in vector.get("output", [])], vector["name"])


@test("values of a server's tools are as in the vectors, and what is no JSON is none, however large")
def _():
    order, read = Order(SERVER_TOOL, "tool", [b"{}"], 0, Options(None, None, None, None, True, "c1")), 0
    for vector in VECTORS["messages"]:
        call, _ = session_of(vector["says"])
        if call.is_ok and call.value_size and vector["name"] != "a value 512 deep":  # Python prints less
            shape = _outcome.conclude(order, call).to_dict()
            check(is_like(vector["result"], shape), lambda: f"{vector['name']}: {shape}")
            read += 1
    check(read > 5, read)
    packed = b"".join(map(bytes, codec.pack({"value": {"$bytes": 0}}, [bytes(300_000)])))
    body = body_of(done_of(packed), 1 << 30)
    check(isinstance(body, _wire.Parted), "it is taken apart")
    call.end(b"", {"status": "ok", "value": len(packed)}, body, len(packed))
    check_equal(_outcome.conclude(order, call).status, "no_result", "and is no value")


pythons.main()
