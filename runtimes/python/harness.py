# SPDX-License-Identifier: Apache-2.0
"""A stand-in: hears one call of mode "json", does it, and tells its value."""

from __future__ import annotations

import _socket
import importlib
import json
import struct
import time
from typing import Any, Dict, NoReturn

import _vitro_zygote

HEAD = struct.Struct("<IIIIQQ")
RESULT, ERROR = 5, 6


def receive(sock: Any, length: int) -> bytes:
    data = b""
    while len(data) < length:
        got = sock.recv(length - len(data))
        if not got:
            raise SystemExit(0)
        data += got
    return data


def say(sock: Any, kind: int, name: bytes, body: bytes) -> None:
    data = memoryview(HEAD.pack(kind, 0, len(name), 0, 0, len(body)) + name + body)
    while data:
        data = data[sock.send(data):]


def main(config: Dict[str, Any]) -> NoReturn:
    sock = _socket.socket(fileno=3)
    json.loads(json.dumps(eval("1 + 1", {})))
    _vitro_zygote.park()
    _, _, name_len, _, _, body_len = HEAD.unpack(receive(sock, HEAD.size))
    module, _, function = receive(sock, name_len).split(b"\0")[0].decode().partition(":")
    try:
        arguments = json.loads(receive(sock, body_len).decode())
        value = getattr(importlib.import_module(module), function)(**arguments)
        say(sock, RESULT, b"", json.dumps(value).encode())
    except BaseException as error:
        say(sock, ERROR, type(error).__name__.encode(), str(error).encode())
    while True:
        time.sleep(3600)
