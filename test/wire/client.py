# SPDX-License-Identifier: Apache-2.0
"""A client of vitro in plain Python, written from docs/wire.md alone.

    with Client.start("vitro") as client:
        client.pool(1, command="cat")
        client.call(1, pool=1, words=["cat"], stdin=b"hello")
        print(client.wait(1)["stdout"])
"""

import json
import re
import socket
import struct
import subprocess

FRAME_MAX, HEAD_MAX, MEMBERS_MAX = 1 << 30, 1 << 16, 24
BIG = (1 << 63) - 1
STATUSES = {"ok": None, "error": "Error", "timeout": "Timeout", "cpu_limit": "CpuLimit", "memory_limit": "MemoryLimit",
            "crashed": "Crashed", "no_result": "NoResult", "result_limit": "ResultLimit", "cancelled": "Cancelled",
            "refused": "Refused", "lost": "Lost"}
# What a message of the supervisor may have: bool, str, or the bounds of an integer.
FIELDS = {"is": str, "call": (0, BIG), "status": str, "value": (0, BIG), "stdout": (0, BIG), "stderr": (0, BIG),
          "dropped_stdout": (0, BIG), "dropped_stderr": (0, BIG), "exit_code": (-1, 255), "signal": (0, 127),
          "wall_ns": (0, BIG), "cpu_ns": (0, BIG), "peak_kb": (-1, BIG), "processes": (-1, BIG), "cell": bool,
          "unreaped": bool, "protected": str, "error_type": str, "error": str, "stream": (1, 2), "ask": (0, BIG), "tool": str,
          "pool": (0, BIG), "ok": bool, "num": (1, 4095), "version": (0, BIG), "vitro": str}
MUST = {"hello": ("version", "vitro"), "pool": ("pool", "ok"), "output": ("call", "stream"), "log": (),
        "ask": ("call", "ask", "tool"), "done": ("call", "status"), "count": ()}


class Broken(Exception):
    """The other side does not keep to the protocol, or is gone."""


class Number(str):
    """A number that is no integer of 64 bits, as it was written."""


def whole(text):
    return int(text) if len(text) < 21 and -BIG - 1 <= int(text) <= BIG else Number(text)


def refuse_constant(text):
    raise Broken(f"{text} in a head")


def flat(pairs):
    head = dict(pairs)
    if len(head) != len(pairs) or len(head) > MEMBERS_MAX:
        raise Broken("a name twice, or too many")
    for text in [*head, *head.values()]:
        if isinstance(text, (list, dict)):
            raise Broken("something nested")
        if isinstance(text, str) and ("\0" in text or re.search("[\ud800-\udfff]", text)):
            raise Broken("what is no text")
    return head


def read_head(data):
    """The members of a head."""
    try:
        text = data.decode("utf-8")
        if "[" in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):  # so that nothing deep is read
            raise Broken("something nested")
        head = json.loads(text, object_pairs_hook=flat, parse_int=whole, parse_float=Number,
                          parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise Broken(f"no JSON: {error}") from None
    if not isinstance(head, dict):
        raise Broken("no object")
    return head


def write_head(members):
    return json.dumps(members, separators=(",", ":"), ensure_ascii=False).encode()


def frame(members, body=b""):
    head = write_head(members)
    return struct.pack("<II", len(head) + len(body), len(head)) + head + body


def next_frame(data):
    """(head, body, how many bytes that was) of the first frame; None: more has to come."""
    if len(data) < 8:
        return None
    length, head = struct.unpack_from("<II", data)
    if head > length or head > HEAD_MAX or length > FRAME_MAX:
        raise Broken("lengths of no frame")
    if len(data) < 8 + length:
        return None
    return bytes(data[8:8 + head]), bytes(data[8 + head:8 + length]), 8 + length


def is_right(value, kind):
    if isinstance(kind, tuple):
        return type(value) is int and kind[0] <= value <= kind[1]
    return type(value) is kind


def read_message(head):
    """A message without what is null. One of a kind that is not known comes without a check of its own."""
    head = {name: value for name, value in read_head(head).items() if value is not None}
    for name, value in head.items():
        if name in FIELDS and not is_right(value, FIELDS[name]):
            raise Broken(f"{name} is {value!r}")
    if "is" not in head or any(name not in head for name in MUST.get(head["is"], ())):
        raise Broken(f"a message lacks its parts: {head}")
    return head


def depth_of(text):
    depth = most = 0
    for mark in re.sub(r'"(?:[^"\\]|\\.)*"', "", text):
        depth += (mark in "[{") - (mark in "]}")
        most = max(most, depth)
    return most


def read_value(body):
    """What a tool gave. It is from a cell, and may be anything."""
    text = body.decode("utf-8")
    if depth_of(text) > 512:
        raise ValueError("too deep")
    return json.loads(text, parse_constant=refuse_constant)


def spawn(binary):
    """A supervisor, whose descriptor 3 is the other end of the socket."""
    ours, theirs = socket.socketpair()
    at, null = theirs.fileno(), subprocess.DEVNULL
    script = 'exec "$0" supervise' if at == 3 else f'exec "$0" supervise 3<&{at} {at}<&-'
    process = subprocess.Popen(["/bin/sh", "-c", script, binary], stdin=null, stdout=null, stderr=null, pass_fds=[at],
                               start_new_session=True)
    theirs.close()
    return ours, process


class Client:
    def __init__(self, sock, process=None):
        self.sock, self.process, self.data = sock, process, bytearray()
        self.calls, self.pools, self.results, self.counts, self.lines = {}, {}, {}, None, []
        self.lost = self.version = None

    @classmethod
    def start(cls, binary):
        """With a supervisor of its own."""
        client = cls(*spawn(binary))
        client.say({"do": "hello", "version": 1})
        client.until(lambda: client.version)
        return client

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()
        if self.process:
            self.process.wait(10)

    def say(self, head, body=b""):
        try:
            self.sock.sendall(frame({name: value for name, value in head.items() if value is not None}, body))
        except OSError:
            pass  # what it said last can still be read

    def pool(self, number, policy=(), **fields):
        """Makes a pool; gives what holds there, or raises what is wrong with it."""
        self.pools.pop(number, None)
        self.say({"do": "pool", "pool": number, **fields}, json.dumps(list(policy)).encode())
        self.until(lambda: number in self.pools)
        head, body = self.pools[number]
        if not head["ok"]:
            raise PermissionError(head.get("num"), head.get("error"))
        return json.loads(body)

    def call(self, number, pool, tool="tool", words=None, arguments=b"{}", stdin=b"", output=None, ask=None, **fields):
        """Begins a call; output(stream, bytes) and ask(tool, arguments) are called while it runs."""
        call_id = f"c{number}"
        self.calls[number] = {"id": call_id, "pool": pool, "command": words is not None, "output": output,
                              "ask": ask, "logs": []}
        body = arguments if words is None else b"".join(word.encode() + b"\0" for word in words) + stdin
        self.say({"do": "call", "call": number, "pool": pool, "tool": tool, "id": call_id,
                  "stream": True if output else None, "stdin": len(stdin) if words is not None else None, **fields},
                 body)

    def cancel(self, number):
        self.say({"do": "cancel", "call": number})

    def count(self):
        self.counts = None
        self.say({"do": "count"})
        self.until(lambda: self.counts)
        return self.counts

    def wait(self, number):
        self.until(lambda: number in self.results, quiet=True)
        return self.results.pop(number)

    def until(self, is_so, quiet=False):
        """Hears messages until that is so. One that is broken ends all calls."""
        while not is_so():
            try:
                self.hear()
            except (Broken, OSError) as why:
                self.lost = str(why)
                self.sock.close()
                for number in list(self.calls):
                    self.end(number, {"status": "lost", "error": self.lost}, b"")
                if not is_so() or not quiet:
                    raise Broken(self.lost) from None

    def hear(self):
        while not (came := next_frame(self.data)):
            got = self.sock.recv(1 << 16)
            if not got:
                raise Broken("the supervisor is gone")
            self.data += got
        head, body, length = came
        del self.data[:length]
        self.take(read_message(head), body)

    def take(self, head, body):
        kind = head["is"]
        if kind == "hello" and not self.version:
            if head["version"] != 1:
                raise Broken("another version")
            self.version = head["vitro"]
        elif kind == "log" and "call" not in head:
            self.lines.append((head.get("level"), body.decode("utf-8", "replace")))
        elif kind == "count":
            self.counts = {name: value for name, value in head.items() if name != "is"}
        elif kind == "pool" and head["pool"] not in self.pools and not self.calls:
            self.pools[head["pool"]] = head, body
        elif kind in MUST:
            self.take_of_call(kind, head, body)

    def take_of_call(self, kind, head, body):
        call = self.calls.get(head.get("call"))
        if not call:
            raise Broken(f"{kind} of no call")
        if kind == "output":
            if call["output"] and body:
                call["output"](head["stream"], body)
        elif kind == "log":
            if type(head.get("level")) is not str:
                raise Broken("a line without a level")
            call["logs"].append({"level": head["level"], "text": body.decode("utf-8", "replace")})
        elif kind == "ask":
            self.answer(call, head, body)
        else:
            self.end(head["call"], head, body)

    def answer(self, call, head, body):
        try:
            if not call["ask"]:
                raise ValueError("there is no such tool")
            ok, said = True, json.dumps(call["ask"](head["tool"], read_value(body))).encode()
        except (ValueError, Broken) as why:
            ok, said = False, str(why).encode()
        self.say({"do": "answer", "call": head["call"], "ask": head["ask"], "ok": ok}, said)

    def end(self, number, head, body):
        """The call's one result, in the shape that results have everywhere."""
        status, value, error = head["status"], None, None
        lengths = [head.get(name, 0) for name in ("value", "stdout", "stderr")]
        if status not in STATUSES or sum(lengths) != len(body):
            raise Broken("a result of no status, or of other lengths than it says")
        call = self.calls.pop(number)
        if status == "ok" and not call["command"]:
            try:
                value = read_value(body[:lengths[0]])
            except (ValueError, Broken):
                status, head = "no_result", {**head, "error": "what the tool gave as its value is not JSON"}
        if status != "ok":
            error = {"type": head.get("error_type", STATUSES[status]),
                     "message": head.get("error", "no reason was given"), "traceback": None}
        code, peak, processes = (head.get(name, -1) for name in ("exit_code", "peak_kb", "processes"))
        out, err = body[lengths[0]:sum(lengths[:2])], body[sum(lengths[:2]):]
        self.results[number] = {
            "call_id": call["id"], "ok": status == "ok", "status": status, "value": value, "error": error,
            "exit_code": None if code < 0 else code, "signal": head.get("signal") or None,
            "stdout": out.decode("utf-8", "replace"), "stderr": err.decode("utf-8", "replace"),
            "dropped": {name: head.get(f"dropped_{name}", 0) for name in ("stdout", "stderr")}, "logs": call["logs"],
            "usage": {"wall_ms": round(head.get("wall_ns", 0) / 1e6, 1), "cpu_ms": round(head.get("cpu_ns", 0) / 1e6, 1),
                      "peak_memory_kb": None if peak < 0 else peak, "processes": None if processes < 0 else processes},
            "isolation": json.loads(self.pools[call["pool"]][1]) if head.get("cell") else None,
            **({"protected": json.loads(head["protected"])} if "protected" in head else {}),
            **({"unreaped": True} if head.get("unreaped") else {})}
