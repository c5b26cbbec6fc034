#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python reader of values under any bytes: it raises Malformed and nothing else, takes no more time than the bytes
deserve, and what it made can be written and read again as the same.

Input: with 1 in the first byte, the JSON of a value and its buffers, each behind a byte that UTF-8 has not; else a message.
"""

import time

import drive

with drive.instrument():
    from vitro import _codec as codec, _message as message
    from vitro import _wire  # noqa: F401  its own use of the codec

import datetime  # noqa: F401  what values may be made of is there
import decimal  # noqa: F401
import uuid  # noqa: F401

try:
    import numpy  # noqa: F401
except ImportError:
    pass

SECONDS = 5


def message_of(data):
    if not data or not data[0] & 1:
        return data[1:]
    text, *buffers = data[1:].split(b"\xff")
    text = b'{"value":' + text + b"}"
    lengths = b"".join(len(buffer).to_bytes(8, "little") for buffer in buffers)
    return (len(text).to_bytes(4, "little") + text + len(buffers).to_bytes(4, "little") + lengths + b"".join(buffers))


def describe(value):
    """The same for what is the same: sets have no order, and a NaN is not itself."""
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, *sorted(map(repr, map(describe, value))))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(describe, value))
    if isinstance(value, dict):
        return ("dict", *((describe(key), describe(item)) for key, item in value.items()))
    if type(value).__module__ == "numpy":
        return (str(value.dtype), getattr(value, "shape", ()), value.tobytes().hex())
    return (type(value).__name__, repr(value))


def check_readers_agree(data, head):
    plain = codec.read_plain(data)
    drive.require(plain is None or describe(plain) == describe(head), "read_plain", plain, head)
    small = message._unpack_small(memoryview(data)) if len(data) <= message._SMALL else None
    if small is not None:
        careful = codec.unpack_head(memoryview(data), len(data))
        drive.require(describe(small[0]) == describe(careful[0]), "small", small[0], careful[0])
        drive.require(careful[1] and [len(view) for view in small[1]] == list(careful[2]), "small's buffers")


def check_carried(value):
    try:
        tree, buffers = codec.encode(value)
    except codec.NotPlain as error:
        drive.require("nests too deep" in str(error), str(error))
        return
    packed = b"".join(codec.pack({"value": tree}, buffers))
    head, attachments = codec.unpack(packed)
    again = codec.decode(head["value"], attachments)
    drive.require(describe(again) == describe(value), describe(value), describe(again))


def target(data):
    message = message_of(data)
    began = time.process_time()
    try:
        head, attachments = codec.unpack(message)
    except codec.Malformed:
        drive.require(codec.read_plain(message) is None, "read_plain takes what is malformed")
        drive.require(time.process_time() - began < SECONDS, "slow")
        return
    check_readers_agree(message, codec.unpack(message)[0])
    try:
        value = codec.decode(head.get("value"), attachments)
        codec.read_files(head.get("files"), attachments, ["**", "a[!b]*?.txt"])
    except codec.Malformed:
        value = None
    drive.require(time.process_time() - began < SECONDS, "slow")
    check_carried(value)


if __name__ == "__main__":
    drive.main(target)
