#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The wire, as docs/wire.md has it: the client that was written from that page, and the vectors, in Python."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
from client import Broken, Client, Number, next_frame, read_head, spawn, write_head
from vitrotest import BINARY, FLAGS, PREFIX, Failed, check, check_equal, check_in, folder, main, skip, test, wait_until

VECTORS = json.loads((HERE / "vectors.json").read_text())
POLICY = [{"key": "require", "value": "best-effort"}] if FLAGS else []


def need_no_prefix():
    if PREFIX:
        skip("the machine is made poorer for commands, not for what speaks on a descriptor")


def start():
    need_no_prefix()
    return Client.start(BINARY)


def make(client, number, command, policy=()):
    try:
        return client.pool(number, [*POLICY, *policy], command=command, ready_min=1)
    except PermissionError as why:
        if "refused: " in str(why):
            skip(str(why))
        raise


# ---- a supervisor ---------------------------------------------------------------------------------------


@test("a client that was written from the page runs a command, and has its result")
def _():
    with start() as client:
        held = make(client, 1, "cat")
        client.call(1, pool=1, words=["cat"], stdin=b"hello \xff\n")
        result = client.wait(1)
        check_equal(result["status"], "ok", "status")
        check_equal(result["stdout"], "hello \ufffd\n", "what it printed")
        check_equal(result["exit_code"], 0, "exit code")
        check_equal(result["isolation"], held, "isolation")
        check(result["usage"]["wall_ms"] > 0, "it took some time")
        client.call(1, pool=1, words=["cat", "/nowhere"])
        result = client.wait(1)
        check_equal((result["status"], result["error"]["type"], result["exit_code"]), ("error", "ExitCode", 1), "failure")
        check_in("/nowhere", result["stderr"], "standard error")
        check_equal(client.count()["calls"], 2, "calls that were counted")
    check_equal(client.process.returncode, 0, "exit code of the supervisor")


@test("output is streamed while the command runs, and the result has it too")
def _():
    heard = {1: b"", 2: b""}

    def hear(stream, data):
        heard[stream] += data
        if heard == {1: b"one\n", 2: b"two\n"}:
            client.cancel(1)  # else it takes its time

    with start() as client:
        make(client, 1, "sh")
        client.call(1, pool=1, words=["sh", "-c", "echo one; echo two >&2; exec sleep 20"], output=hear)
        result = client.wait(1)
        check_equal(heard, {1: b"one\n", 2: b"two\n"}, "what was heard")
        check_equal(result["status"], "cancelled", "it was heard before the end")
        check_equal((result["stdout"], result["stderr"]), ("one\n", "two\n"), "the result's")


@test("a call is cancelled while others run, and one that is over is no mistake to cancel")
def _():
    with start() as client:
        make(client, 1, "sleep")
        begun = time.monotonic()
        client.call(1, pool=1, words=["sleep", "50"])
        client.call(2, pool=1, words=["sleep", "0.2"])
        client.cancel(1)
        check_equal(client.wait(1)["status"], "cancelled", "status")
        check_equal(client.wait(2)["status"], "ok", "the other's")
        client.cancel(1)
        client.call(1, pool=1, words=["sleep", "50"], wall_ms=100)
        check_equal(client.wait(1)["status"], "timeout", "with a deadline of its own")
        check(time.monotonic() - begun < 20, "nobody waited for the sleepers")


@test("pools: what cannot be had says why, a number is free after a drop, and a policy alone has no cells")
def _():
    with start() as client:
        for policy, fields, num in (([], {"command": "vitro-has-no-such-program"}, 2),
                                    ([{"key": "limits.nothing", "value": "1"}], {}, 22)):
            try:
                client.pool(1, policy, **fields)
                raise Failed(f"{policy} {fields} was agreed to")
            except PermissionError as why:
                check_equal(why.args[0], num, f"errno of {policy} {fields}")
        check_in("level", client.pool(1, POLICY), "what holds")
        client.say({"do": "drop", "pool": 1})
        make(client, 1, "true", [{"json": '{"limits": {"wall_ms": 2000}}'}])
        client.call(1, pool=1, words=["true"])
        check_equal(client.wait(1)["status"], "ok", "status")


@test("a client that is gone leaves nothing behind, and one that lost its supervisor has a result for each call")
def _():
    with start() as client:
        make(client, 1, "sleep")
        client.call(1, pool=1, words=["sleep", "50"])
        wait_until(lambda: client.count()["live"] == 1, 10, "the call runs")
    check_equal(client.process.returncode, 0, "exit code of the supervisor")
    with start() as client:
        make(client, 1, "sleep")
        client.call(1, pool=1, words=["sleep", "50"])
        wait_until(lambda: client.count()["live"] == 1, 10, "the call runs")
        client.process.kill()
        check_equal(client.wait(1)["status"], "lost", "status")


@test("a pool of a fifo, which is no program, does not keep the supervisor waiting")
def _():
    with folder() as place, start() as client:
        os.mkfifo(path := os.path.join(place, "fifo"))
        try:
            client.pool(1, POLICY, program=path, ready_min=1)
            client.call(1, pool=1)
            check(client.wait(1)["status"] in ("refused", "error", "lost"), "it does not run")
        except PermissionError:
            pass  # as good
        check_equal(client.count()["live"], 0, "calls that run")


@test("a supervisor without a socket says so and ends")
def _():
    done = subprocess.run([BINARY, "supervise"], capture_output=True, check=False)
    check_equal(done.returncode, 125, "exit code")
    check_in("programs that embed vitro", done.stderr.decode(), "what it says")


# ---- the vectors ----------------------------------------------------------------------------------------


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


def frames_of(data):
    """The frames, and how it ends."""
    frames = []
    try:
        while came := next_frame(data):
            frames.append(came)
            data = data[came[2]:]
    except Broken:
        return frames, "refused"
    return frames, "more" if data else "end"


def is_like(want, got):
    if isinstance(want, dict):
        return isinstance(got, dict) and all(name in got and is_like(want[name], got[name]) for name in want)
    return want == got


@test("vectors: frames")
def _():
    for vector in VECTORS["frames"]:
        frames, then = frames_of(data_of(vector["bytes"]))
        check_equal([[len(head), len(body)] for head, body, _ in frames], vector["frames"], vector["name"])
        check_equal(then, vector["then"], vector["name"])


def describe(value):
    kinds = {bool: "flag", int: "integer", Number: "number", str: "text", type(None): "null"}
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return kinds[type(value)], text


@test("vectors: heads, read and written")
def _():
    for vector in VECTORS["heads"]:
        try:
            members = [[name, *describe(value)] for name, value in read_head(data_of(vector["text"])).items()]
        except Broken:
            members = None
        want = vector.get("members")
        if want is not None:
            want = [[name, kind, data_of(value).decode()] for name, kind, value in want]
        check_equal(members, want, vector["name"])
    make_of = {"text": str, "integer": int, "flag": lambda text: text == "true", "null": lambda _: None}
    for vector in VECTORS["written"]:
        members = {name: make_of[kind](value) for name, kind, value in vector["members"]}
        check_equal(write_head(members).decode(), vector["text"], vector["name"])


@test("vectors: messages of a supervisor, and what becomes of the call")
def _():
    for vector in VECTORS["messages"]:
        ours, theirs = socket.socketpair()
        output = []
        with Client(ours) as client:
            client.version, client.pools = "0", {1: ({"ok": True}, b'{"level": "full"}')}
            client.call(1, pool=1, output=lambda stream, data, output=output: output.append((stream, data)))
            theirs.sendall(stream_of(vector["says"]))
            theirs.close()
            result = client.wait(1)
        check(is_like(vector["result"], result), f"{vector['name']}: {result}")
        check_equal(output, [(stream, data_of(data)) for stream, data in vector.get("output", [])], vector["name"])


@test("vectors: sessions, of a supervisor that runs")
def _():
    need_no_prefix()
    for vector in VECTORS["sessions"]:
        ours, process = spawn(BINARY)
        ours.sendall(stream_of(vector["says"]))
        ours.shutdown(socket.SHUT_WR)
        data = b""
        while got := ours.recv(1 << 16):
            data += got
        ours.close()
        check_equal(process.wait(10), 0, f"{vector['name']}: exit code")
        heard = [read_head(head) for head, _, _ in frames_of(data)[0]]
        ended = bool(heard) and heard[-1]["is"] == "log" and heard[-1]["level"] == 3
        check_equal(ended, vector["ends"], f"{vector['name']}: {heard}")
        heard = [head for head in heard if head["is"] != "log"]
        check(len(heard) == len(vector["hears"]) and all(map(is_like, vector["hears"], heard)),
              f"{vector['name']}: {heard}")


@test("the session on the page is one, byte by byte")
def _():
    page = HERE.parents[1] / "docs" / "wire.md"
    if not page.exists():
        skip("the page is not here")
    session = page.read_text().split("## A session")[1].split("```")[1]
    shown = re.findall(r"^[<>] ((?:[0-9a-f ]+\n)(?:^ +[0-9a-f ]+\n)*)((?:^ {3,}.*\n)+)", session, re.M)
    check(len(shown) > 6, f"{len(shown)} frames")
    for digits, text in shown:
        head, body, length = next_frame(bytes.fromhex(re.sub(r"\s", "", digits)))
        check_equal(length, len(bytes.fromhex(re.sub(r"\s", "", digits))), "length of a frame")
        flat = re.sub(r"\s+", "", (head + body).decode().replace("\0", "NUL").replace("\n", "\\n"))
        check_equal(flat, re.sub(r"\s+", "", text), "a frame")


main()
