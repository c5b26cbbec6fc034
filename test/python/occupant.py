# SPDX-License-Identifier: Apache-2.0
"""What runs in a Python occupant, driven over a socket by a supervisor of the test's own: each call is a fork that lives
in harness.main() until it is killed. Nothing is sealed here."""

import collections
import contextlib
import json
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import types

from vitrotest import ROOT, check, check_equal

RUNTIME = ROOT / "runtimes" / "python"
package = types.ModuleType("_vitro_runtime")  # as the zygote does it
package.__path__ = [str(RUNTIME)]
sys.modules["_vitro_runtime"] = package
from _vitro_runtime import awaited, codec, complain, harness, talk

Outcome = collections.namedtuple("Outcome", "ok value type message traceback logs files head output pid")


class Extension:
    """What stands for the zygote's own module."""

    parked = 0

    @classmethod
    def park(cls):
        cls.parked += 1

    @staticmethod
    def is_awaited():
        return False


class Cell:
    """A process in harness.main(), in an empty folder, and the supervisor's end of its call socket."""

    def __init__(self, config=None, env=None, prepare=None):
        self.folder = tempfile.mkdtemp(prefix="test-")
        self.out = os.memfd_create("output")
        mine, its = socket.socketpair()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            try:
                mine.close()
                os.dup2(self.out, 1)
                os.dup2(self.out, 2)
                os.chdir(self.folder)
                os.environ.clear()
                os.environ.update({"PATH": "/usr/bin:/bin"}, **(env or {}))
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                if prepare:
                    prepare()
                wanted = {"mode": "message", "result_bytes": 64 << 20, **(config or {})}
                harness.main(harness.Occupant(talk.Talk(its.detach()), wanted, wanted.get("initializer")), Extension)
            finally:
                os._exit(99)
        its.close()
        self.talk = talk.Talk(mine.detach())

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.talk.close()
        os.close(self.out)
        shutil.rmtree(self.folder)

    def output(self):
        return os.pread(self.out, 1 << 20, 0).decode("utf-8", "replace")

    def finish(self, answer, types=None, on_message=None):
        """Hears the cell to its end. answer(name, args, kwargs): gives a value or raises."""
        logs, traceback = [], None
        while True:
            message = self.talk.hear()
            if on_message and on_message(message):
                continue
            if message.kind == talk.ASK:
                self.answer(message, answer)
            elif message.kind == talk.LOG and message.name == b"vitro.traceback":
                traceback = bytes(message.body).decode()
            elif message.kind == talk.LOG:
                logs.append((message.name.decode(), bytes(message.body).decode()))
            elif message.kind == talk.ERROR:
                return Outcome(False, None, message.name.decode(), bytes(message.body).decode(), traceback, logs, {}, {},
                               self.output(), self.pid)
            else:
                check_equal(message.kind, talk.RESULT, "a message's kind")
                head, buffers = codec.unpack(message.body)
                value = None
                if "value" in head:
                    value = codec.decode(head["value"], buffers, types)
                elif "pickle" in head:
                    value = pickle.loads(buffers[0], buffers=buffers[1:1 + head["oob"]])
                files = codec.read_files(head.get("files"), buffers, ["**"])
                return Outcome(True, value, None, None, traceback, logs, files, head, self.output(), self.pid)

    def answer(self, message, answer):
        head, buffers = codec.unpack(message.body)
        args = codec.decode(head["args"], buffers)
        kwargs = {name: codec.decode(tree, buffers) for name, tree in head["kwargs"].items()}
        try:
            tree, more = codec.encode(answer(message.name.decode(), args, kwargs))
            self.talk.send(talk.ANSWER, b"", codec.pack({"value": tree}, more), message.id)
        except Exception as error:
            text = json.dumps({"type": getattr(error, "type_name", type(error).__name__), "message": str(error.args[0])})
            self.talk.send(talk.ANSWER, b"", [text.encode()], message.id, talk.FAILED)


@contextlib.contextmanager
def cell(**options):
    made = Cell(**options)
    try:
        yield made
    finally:
        made.close()


def run(code, *, tools=(), answer=lambda name, args, kwargs: [name, args, kwargs], files=None, collect=(), stdin=None, types=(),
        classes=None, result="plain", on_message=None, **options):
    """Code in a cell of its own."""
    buffers = list((files or {}).values())
    head = {"op": "eval", "code": code, "filename": "<eval>", "tools": list(tools), "collect": list(collect), "result": result,
            "files": {name: at for at, name in enumerate(files or {})}, "stdin": None, "types": list(types)}
    if stdin is not None:
        head["stdin"] = len(buffers)
        buffers.append(stdin)
    with cell(**options) as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack(head, buffers))
        return it.finish(answer, classes, on_message)


def call(module, name, *args, result="plain", types=(), classes=None, raw=None, prepare=None, fixed=(), **kwargs):
    """A function in a cell of its own."""
    buffers = [None]
    buffers[0] = raw or pickle.dumps((args, kwargs), 5, buffer_callback=lambda more: buffers.append(more.raw()))
    head = {"op": "call", "function": {"module": module, "name": name, "unwrap": []}, "args": 0, "oob": len(buffers) - 1,
            "result": result, "types": list(types), "bytes": list(fixed)}
    with cell(prepare=prepare) as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack(head, buffers))
        return it.finish(None, classes)


def value_of(code, **options):
    outcome = run(code, **options)
    check(outcome.ok, f"{code!r} failed: {outcome.type}: {outcome.message}\n{outcome.traceback}\n{outcome.output}")
    return outcome.value


def with_module(text):
    """For `prepare`: a module `mod` that can be imported in the cell."""
    def prepare():
        with open("mod.py", "w") as file:
            file.write(text)
        sys.path.insert(0, os.getcwd())
    return prepare
