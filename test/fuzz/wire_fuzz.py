#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python client's reader of frames, heads and messages under any stream, in any pieces: frames are those of a plain walk
over the bytes, quick ways of reading a head say what the careful one says, and only Broken is raised.

Input: as in frames.h, but that the first byte's upper half is the size of pieces.
"""

import struct

import drive

with drive.instrument():
    from vitro import _wire as wire

# So that short inputs are long ones, too.
wire._BUFFER, wire.HEAD_MAX, wire.FRAME_MAX = 512, 256, 1 << 20
LINES = 1


def stream_of(data):
    if not data[:1] or not data[0] & LINES:
        return data[1:]
    frames = []
    for line in data[1:].split(b"\n"):
        head, _, body = line.partition(b"\t")
        frames.append(struct.pack("<II", len(head) + len(body), len(head)) + head + body)
    return b"".join(frames)


def walk(stream):
    """Frames, and how the rest is: None where it is broken."""
    frames, at = [], 0
    while len(stream) - at >= 8:
        length, head = struct.unpack_from("<II", stream, at)
        if head > length or head > wire.HEAD_MAX or length > wire.FRAME_MAX:
            return frames, None
        if len(stream) - at < 8 + length:
            break
        frames.append((stream[at + 8:at + 8 + head], stream[at + 8 + head:at + 8 + length]))
        at += 8 + length
    return frames, stream[at:]


def body_of(body):
    if not isinstance(body, wire.Parted):
        return bytes(body)
    return [bytes(room.made) for room in body.rooms], bytes(body.tail.made), len(body)


def check_body(got, wanted):
    if not isinstance(got, tuple):
        drive.require(got == wanted, "a body", got, wanted)
        return
    rooms, tail, size = got
    drive.require(size == len(wanted) and wanted.endswith(b"".join(rooms) + tail), "a body in parts", got, wanted)


def check_stream(stream, piece):
    wanted, rest = walk(stream)
    reader, got, at = wire.Reader(), [], 0
    while at < len(stream) and not reader.is_broken:
        room = reader.get_buffer()
        drive.require(len(room) > 0, "no room")
        count = min(piece, len(room), len(stream) - at)
        room[:count] = stream[at:at + count]
        at += count
        got += [(head, body_of(body)) for head, body in reader.advance(count)]
    drive.require(len(got) == len(wanted), "frames", len(got), len(wanted))
    for (head, body), (wanted_head, wanted_body) in zip(got, wanted):
        drive.require(head == wanted_head, "a head", head, wanted_head)
        check_body(body, wanted_body)
    drive.require(reader.is_broken == (rest is None), "broken", rest)
    drive.require(reader.is_broken or reader.is_between == (rest == b""), "between", rest)
    return [head for head, _ in wanted]


def read(how, head):
    try:
        return how(head)
    except wire.Broken:
        return None


def read_carefully(head):
    quickly, wire._read_quickly = wire._read_quickly, lambda text: None
    try:
        return wire.read_head(head)
    finally:
        wire._read_quickly = quickly


def check_head(head):
    members, careful = read(wire.read_head, head), read(read_carefully, head)
    drive.require(repr(members) == repr(careful), "a head", head, members, careful)
    message = read(wire.read_message, head)
    if message is not None:
        drive.require(members is not None and isinstance(message["is"], str), "a message", head)
        drive.require(all(members[name] == value for name, value in message.items()), head, members, message)
    usual = wire.match_done(head)
    if usual is not None:
        drive.require(message is not None and message["status"] == "ok" and message["value"] == int(usual[2]), "an end", head, message)


def target(data):
    piece = 1 + (data[0] >> 4) * 37 if data else 1
    for head in check_stream(stream_of(data), piece):
        check_head(head)
    check_head(data[1:])


if __name__ == "__main__":
    drive.main(target)
