#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What runs in a Python occupant: values, errors, logs, files, and what is done before a call comes."""

import collections
import datetime
import errno
import json
import os
import pickle
import select
import shutil
import signal
import socket
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
from occupant import Cell, Extension, call, cell, codec, complain, harness, run, talk, value_of, with_module
from vitrotest import ROOT, check, check_equal, check_in, main, test


@test("harness: the last expression is the value, as in a notebook")
def _():
    for code, want in (("1 + 1", 2), ("x = 3\nx * 2", 6), ("x = 3", None), ("", None), ("# nothing", None), ("'text'", "text"),
                       ("if True:\n    5", None), ("(1, {2: b'x'})", (1, {2: b"x"})), ("x = 1;x", 1), ("def f():\n    return 7\nf()", 7),
                       ("__name__", "__main__"), ("import sys; sys.modules['__main__'].__dict__ is globals()", True),
                       ("from __future__ import annotations\ndef f(x: nothing): pass\nf.__annotations__['x']", "nothing"),
                       ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int' = 3\nA().x", 3),
                       ("__file__ if '__file__' in globals() else 0", 0), ("import gc; gc.isenabled()", True)):
        check_equal(value_of(code), want, code)


@test("harness: await works at top level")
def _():
    check_equal(value_of("import asyncio\nawait asyncio.sleep(0)\n5"), 5, "a value")
    check_equal(value_of("async def f(x):\n    return x + 1\n[await f(i) for i in range(3)]"), [1, 2, 3], "in a comprehension")
    check_equal(value_of("import asyncio\nasync def g():\n    yield 1\n    yield 2\nr = []\nasync for i in g():\n    r.append(i)\nr"),
                [1, 2], "async for")
    check_equal(value_of("import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 4\nasyncio.run(main())"), 4, "asyncio.run")
    failed = run("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    raise KeyError('k')\nawait f()")
    check_equal((failed.type, failed.message), ("KeyError", "'k'"), "an exception")
    check_equal([line.strip() for line in failed.traceback.splitlines() if "File" in line],
                ['File "<eval>", line 5, in <module>', 'File "<eval>", line 4, in f'], "its frames")


@test("harness: a function is called; an async one runs to its end")
def _():
    check_equal(call("operator", "add", 2, 3).value, 5, "a value")
    check_equal(call("datetime", "timedelta", hours=25).value, datetime.timedelta(hours=25), "keyword arguments")
    prepare = with_module("import asyncio\nasync def slow(x):\n    await asyncio.sleep(0.01)\n    return [x]\n"
                          "class C:\n    @staticmethod\n    def m(x): return x\ndef taken(x): return [type(x).__name__, bytearray(x)]\n")
    check_equal(call("mod", "slow", 3, prepare=prepare).value, [3], "an async function")
    check_equal(call("mod", "C.m", b"x", prepare=prepare).value, b"x", "a qualified name")
    data = bytearray(b"xy" * (5 << 20))
    got = call("mod", "taken", pickle.PickleBuffer(data), prepare=prepare, result="pickle")
    check(got.ok and got.value == ["bytearray", data], f"10 MB out of band, by pickle: {got.message}")
    got = call("mod", "C.m", bytes(data), prepare=prepare)
    check(got.value == data, "10 MB both ways")


@test("harness: large arguments are objects of their own, those that are to be bytes are bytes")
def _():
    prepare = with_module("def taken(*all): return [[type(x).__name__, bytes(x) == bytes([65 + i]) * len(x), len(x)] "
                          "for i, x in enumerate(all)]\n")
    buffers = [pickle.PickleBuffer(bytearray(b"A" * 3)), pickle.PickleBuffer(bytearray(b"B" * 90_000)),
               pickle.PickleBuffer(b"C" * 5_000_000), pickle.PickleBuffer(bytearray(b"D"))]
    for fixed, kinds in (((), ["bytearray", "bytearray", "memoryview", "bytearray"]),
                         ((3,), ["bytearray", "bytearray", "bytes", "bytearray"])):
        got = call("mod", "taken", *buffers, prepare=prepare, fixed=fixed)
        check(got.ok, f"it is taken: {got.message}")
        check_equal(got.value, [[kind, True, size] for kind, size in zip(kinds, (3, 90_000, 5_000_000, 1))], "what came")


@test("harness: what cannot come back says so; what is named can")
def _():
    prepare = with_module("def give(): return [1, object()]\n")
    failed = call("mod", "give", prepare=prepare)
    check_equal(failed.type, "NotPlain", "its type")
    check_in("result[1] is an object", failed.message, "where")
    check_in("result_types", failed.message, "what to do")
    failed = run("class C:\n    def __repr__(self): return 1 / 0\nC()")
    check_in("result is a __main__:C", failed.message, "code's value that cannot be shown")
    check("result_types" in failed.message and "trust_results" not in failed.message, "nobody is told to trust code")
    for code, advice in (("(i for i in [1])", "make a list of it"), ("async def f(): pass\nf()", "await it")):
        check_in(advice, run(code).message, "what to do")
    code = "import collections\nP = collections.namedtuple('P', 'x y', module='__main__')\nP(1, 2)"
    mine = collections.namedtuple("P", "x y")
    got = run(code, types=["__main__:P"], classes={"__main__:P": mine})
    check_equal((type(got.value), got.value), (mine, (1, 2)), "a named class")
    check_equal(run("1 + 2j", result="pickle").value, 1 + 2j, "by pickle")
    failed = call("mod", "lie", prepare=with_module("def lie(): return lambda: 0\n"), result="pickle")
    check_in("the result cannot be pickled", failed.message, "a lambda")


@test("harness: code that ends in what is no plain data is shown, and keeps its files")
def _():
    for result in ("plain", "pickle"):
        got = run("open('a', 'w').write('x')\nimport threading\n[b'bytes', lambda: 0, threading.Lock()]", result=result, collect=["*"])
        check_equal((got.head["shown"]["type"], got.files), ("builtins:list", {"a": b"x"}), f"as {result}", got)
        check_in("[b'bytes', <function <lambda>", got.head["shown"]["text"], "its text")
    got = run("x = []\nx.append(x)\nx")
    check_equal(got.head["shown"]["text"], "[[...]]", "what holds itself")
    got = run("class C:\n    def __repr__(self): return '\\ud800' + 'x' * 10**6\nC()")
    check_equal(got.head["shown"], {"type": "__main__:C", "text": "\\ud800" + "x" * ((32 << 10) - 6) + "..."}, "what is long")


@test("harness: a tool of a manifest takes and gives JSON")
def _():
    prepare = with_module("def f(x, y=2): return {'a': [x, (y, None)]}\ndef g(): return {1: 2}\ndef h(): return [float('nan')]\n"
                          "def s(): return {1}\nasync def k(): return 'é'\nimport dataclasses, datetime, enum\n"
                          "class C(enum.Enum):\n    RED = 'r'\n@dataclasses.dataclass\nclass P:\n    x: float\n    c: C = C.RED\n"
                          "def made(p: P, days: 'list[datetime.date]'): return [repr(p.x), p.c.name, [d.year for d in days]]\n"
                          "class D:\n    def __init__(self, fn): self.fn = fn\n@D\ndef wrapped(x): return x\nN = 3\n")
    for tool, body, want in ((b"mod:f", b'{"x": 1.5}', {"a": [1.5, [2, None]]}), (b"mod:k", b"", "é"),
                             (b"mod:made", b'{"p": {"x": 1, "c": "r"}, "days": ["2024-02-29"]}', ["1.0", "RED", [2024]]),
                             (b"mod:wrapped", b'{"x": 5}', 5)):
        with cell(config={"mode": "json"}, prepare=prepare) as it:
            it.talk.send(talk.EXECUTE, tool + b"\0c1", [body])
            message = it.talk.hear()
            check_equal((message.kind, json.loads(bytes(message.body))), (talk.RESULT, want), tool)
    for tool, body, says in ((b"mod:g", b"{}", "result has the key 1"), (b"mod:h", b"{}", "result[0] is nan, which JSON cannot say"),
                             (b"mod:s", b"{}", "result is a set"), (b"mod:f", b"[1]", "not an object"), (b"mod:f", b'{"z":1}', "'z'"),
                             (b"mod:no", b"{}", "module 'mod' has no 'no'"), (b"mod:N", b"{}", "mod:N is no function"),
                             (b"mod.py:f", b"{}", "leave off the .py"), (b"nowhere:f", b"{}", "the folder of the manifest"),
                             (b"mod:made", b'{"p": {"x": 1, "c": "blue"}, "days": []}', "arguments.p: ValueError: 'blue'")):
        with cell(config={"mode": "json"}, prepare=prepare) as it:
            it.talk.send(talk.EXECUTE, tool + b"\0c1", [body])
            failed = it.finish(None)
            check_in(says, failed.message, tool)


@test("harness: what is printed is there before the result, and is only output")
def _():
    got = run("import os, sys\nprint('a')\nos.write(1, b'b\\n')\nprint('c', file=sys.stderr)\nsys.stdout.write('d')\n")
    check_equal(sorted(got.output.replace("d", "d\n").split()), ["a", "b", "c", "d"], "output")
    check_equal(value_of("import sys\nsys.stdout.close()\nsys.stderr = None\n5"), 5, "without a stdout")
    check_equal(value_of("import sys\nclass S:\n    def flush(self): raise SystemExit\n    def write(self, x): pass\nsys.stdout = S()\n5"), 5, "a hostile one")


@test("harness: it waits to be killed, whatever is left over")
def _():
    code = "import signal, threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()\n" \
           "signal.signal(signal.SIGUSR1, lambda *_: 1 / 0)\n1"
    with cell() as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack({"op": "eval", "code": code}))
        check_equal(it.finish(None).value, 1, "the value")
        os.kill(it.pid, signal.SIGUSR1)
        ready = select.select([it.talk.fileno()], [], [], 0.3)[0]
        check_equal((ready, os.waitpid(it.pid, os.WNOHANG)), ([], (0, 0)), "it said more, or has ended")


@test("harness: what is no call is an error, and the supervisor's end is its end")
def _():
    for body in ([b""], [b"\xff" * 40], codec.pack({}), codec.pack({"op": "open"}), codec.pack({"op": "eval"}),
                 codec.pack({"op": "call", "function": {"module": "os", "name": "getcwd"}, "args": 7})):
        with cell() as it:
            it.talk.send(talk.EXECUTE, b"\0c1", body)
            check(not it.finish(None).ok, f"{body} succeeded")
    made = Cell()
    made.talk.close()
    check_equal(os.waitpid(made.pid, 0)[1], 0, "its end")
    os.close(made.out)
    shutil.rmtree(made.folder)


# ---- errors --------------------------------------------------------------------------------------


@test("harness: every exception is told by its type and text")
def _():
    for code, name, text in (("1/0", "ZeroDivisionError", "division by zero"), ("raise SystemExit(3)", "SystemExit", "3"),
                             ("import sys; sys.exit('bye')", "SystemExit", "bye"), ("raise KeyboardInterrupt", "KeyboardInterrupt", ""),
                             ("raise GeneratorExit('g')", "GeneratorExit", "g"), ("class B(BaseException): pass\nraise B('x')", "B", "x"),
                             ("import asyncio\nraise asyncio.CancelledError()", "CancelledError", ""),
                             ("import asyncio\nawait asyncio.sleep(0)\nraise SystemExit(4)", "SystemExit", "4"),
                             ("class E(Exception):\n    def __str__(self): raise SystemExit\nraise E", "E", "(an exception that cannot be shown)"),
                             ("class M(type):\n    __name__ = '\\udc80x\\0y'\nclass E(Exception, metaclass=M): pass\nraise E('m')", "\\udc80xy", "m"),
                             ("class M(type):\n    __name__ = property(lambda self: 1 / 0)\nclass E(Exception, metaclass=M): pass\nraise E('m')", "Exception", "m"),
                             ("raise type('a' + 'é' * 300, (Exception,), {})('m')", "a" + "é" * 255, "m"),
                             ("raise ValueError('\\ud800')", "ValueError", "\\ud800"), ("x = [", "SyntaxError", None),
                             ("def f(): f()\nf()", "RecursionError", None), ("raise type('N' * 600, (Exception,), {})", "N" * 512, "")):
        failed = run(code)
        check_equal((failed.ok, failed.type), (False, name), code)
        if text is not None:
            check_equal(failed.message, text, code)
        check(failed.traceback is not None, f"{code}: no traceback")


@test("harness: a traceback has the tool's own frames, with their source, and what they came from")
def _():
    failed = run("def f(x):\n    return g(x)\ndef g(x):\n    try:\n        return 1 / x\n    except ZeroDivisionError as error:\n"
                 "        raise ValueError('no') from error\nf(0)")
    lines = [line.strip() for line in failed.traceback.splitlines()]
    frames = [line for line in lines if line.startswith("File")]
    check_equal(frames, ['File "<eval>", line 5, in g', 'File "<eval>", line 8, in <module>', 'File "<eval>", line 2, in f',
                         'File "<eval>", line 7, in g'], "the frames")
    for text in ("return 1 / x", "raise ValueError('no') from error", "ZeroDivisionError: division by zero", "ValueError: no",
                 "The above exception was the direct cause of the following exception:"):
        check_in(text, lines, "the traceback")
    failed = call("mod", "f", prepare=with_module("def f():\n    raise ValueError(1)  # here\n"))
    check_in("raise ValueError(1)  # here", failed.traceback, "a line of a file")
    check("harness.py" not in failed.traceback and "resolve" not in failed.traceback, failed.traceback)
    failed = run("search('x')", tools=["search"], answer=lambda *_: [][0])
    check(failed.traceback.count("File") == 1 and "tools.py" not in failed.traceback, failed.traceback)


@test("harness: texts are bounded by 64 KiB; both ends are kept")
def _():
    failed = run("raise ValueError('a' + 'x' * 10_000_000 + 'z')")
    for text in (failed.message, failed.traceback):
        check(60_000 < len(text) <= 65536, f"{len(text)} bytes")
        check_in("bytes are left out", text, "what is missing")
        check(text.rstrip().endswith("xz"), "its end")
    failed = run("def f(n):\n    return f(n - 1) if n else g(n)\ndef g(n):\n    return h(n)\nf(5000)")
    check(len(failed.traceback) < 65536, "a deep one")


@test("harness: an error that looks like a denial names the policy's key")
def _():
    below = "files.read (files.write to write there)"
    for code, key in (("open('/nowhere')", "files.read"), ("open('/nowhere/x')", below), ("open('/nowhere/x', 'w')", below), ("import os; os.environ['NOT_THERE']", "env.pass"),
                      ("raise PermissionError(13, 'Permission denied', '/')", "files.write"), ("raise OSError(30, 'Read-only', '/x')", "files.write"),
                      # The kernel denies it, or there is no network at all.
                      ("import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('255.255.255.255', 9))", "network"),
                      ("import socket\nraise socket.gaierror(-3, 'Temporary failure in name resolution')", "network"),
                      ("import urllib.request, socket\ndef f(*a, **k): raise socket.gaierror(-3, 'x')\nsocket.getaddrinfo = f\nurllib.request.urlopen('http://a.example/')", "network"),
                      ("try:\n    open('/nowhere/x')\nexcept OSError as error:\n    raise RuntimeError('wrapped') from error", below),
                      ("raise OSError(24, 'Too many open files')", "limits.open_files"), ("raise OSError(28, 'No space', 'x')", "limits.tmp_mb"),
                      ("raise MemoryError", "limits.memory_mb")):
        failed = run(code)
        check(failed.message.endswith(key), f"{code}: {failed.message}")
    failed = run("import os; os.environ['TOKEN']")
    check_in("the cell has no variable TOKEN: it was not set when the sandbox started, or is not in env.pass", failed.message, "the sentence")
    for code in ("open('/proc/not-there')", "{}['NOT_THERE']", "raise OSError('x')", "raise PermissionError(13, 'x')",
                 "try:\n    open('/nowhere/x')\nexcept OSError:\n    1 / 0", "import subprocess; subprocess.run(['no-such-program'])"):
        failed = run(code)
        for key in ("files.", "env.pass", "network", "limits."):
            check(key not in failed.message, f"{code}: {failed.message}")


def denied(case):
    """What Python raises where Node has such an error."""
    if case["act"] == "getaddrinfo":
        return socket.gaierror(-3, "text")
    number = getattr(errno, case["code"])
    return OSError(number, "text", case["path"]) if case["path"] else OSError(number, "text")


def by_connect(error):
    """Raises it from where sockets are used: by its names, this calls connect()."""
    if error is None:
        error.connect()
    raise error


def by_another(error):
    raise error


@test("complain: all cases of test/vectors/denials.json")
def _():
    cases, before = json.loads((ROOT / "test" / "vectors" / "denials.json").read_text(encoding="utf-8")), os.getcwd()
    os.chdir("/tmp")
    for case in cases:
        try:
            (by_connect if case["act"] == "connect" else by_another)(denied(case))
        except OSError as error:
            said = complain.say(error).decode()
            check_equal(said, f"{error}; {case['advice']}" if case["advice"] else str(error), case["description"])
    os.chdir(before)
    check(len(cases) >= 23, "the file lost its cases")


@test("harness: modules and arguments that cannot be had are clear errors")
def _():
    failed = call("no_such_module", "f")
    check_in("no_such_module", failed.message, "the module")
    failed = call("mod", "f", prepare=with_module("import os\nTOKEN = os.environ['API_TOKEN']\ndef f(): pass\n"))
    check_in("env.pass", failed.message, "what to do")
    check_in("API_TOKEN", failed.message, "which")
    failed = call("operator", "add", raw=b"cno_such_module\nC\n.")
    check_equal(failed.type, "ModuleNotFoundError", "its type")
    check_in("the arguments cannot be unpickled in the cell: ModuleNotFoundError: No module named 'no_such_module'", failed.message, "why")
    failed = call("operator", "add", raw=b"garbage")
    check_in("the arguments cannot be unpickled", failed.message, "garbage")


# ---- logs ----------------------------------------------------------------------------------------


@test("harness: log records are sent, and logging is what it is elsewhere")
def _():
    got = run("import logging\nlog = logging.getLogger()\nlog.warning('w %d', 1)\nlog.info('not shown')\nlogging.getLogger('a.b').error('e')\n"
              "logging.basicConfig(level=logging.INFO, format='<%(message)s>')\nlogging.info('shown')\n"
              "try:\n    1/0\nexcept Exception:\n    logging.exception('x')\n"
              "logging.addLevelName(35, 'vitro.traceback')\nlogging.log(35, 'forged')\nlogging.warning('%d', 'wrong')\nlogging.error('y' * 100000)\n1")
    check_equal(got.logs[:3], [("warning", "w 1"), ("error", "a.b: e"), ("info", "shown")], "the records")
    check_in("ZeroDivisionError", got.logs[3][1], "an exception's")
    check_equal((got.logs[4], got.traceback), (("info", "forged"), None), "a forged level")
    check_equal((got.logs[5][0], len(got.logs[5][1])), ("error", 65536), "a long one")
    check_in("<shown>", got.output, "what handlers print")
    check_in("wrong", got.output, "a wrong one is reported as usual")


@test("harness: a log in the middle of a message of the same thread waits for its end")
def _():
    mine, its = socket.socketpair()
    sender, hearer = talk.Talk(mine.detach()), talk.Talk(its.detach())
    send_pieces = sender._send_pieces

    def interrupted(pieces):
        sender._send_pieces = send_pieces
        sender.send(talk.LOG, b"info", [b"from a finalizer"])
        send_pieces(pieces)

    sender._send_pieces = interrupted
    sender.send(talk.RESULT, b"", [b"value"])
    check_equal([bytes(hearer.hear().body) for _ in range(2)], [b"value", b"from a finalizer"], "what came")
    sender.close()
    try:
        hearer.hear()
        check(False, "it heard more")
    except talk.Gone:
        pass
    hearer.close()


# ---- files ---------------------------------------------------------------------------------------


@test("harness: files are placed, collected and can be imported; stdin is read")
def _():
    got = run("import os, helper\nos.makedirs('out/deep/er')\nopen('out/a.txt', 'w').write('A')\nopen('out/deep/er/b.bin', 'wb').write(b'\\0B')\nopen('c.txt', 'w').write('C')\n"
              "os.symlink('/etc/passwd', 'out/link')\nos.symlink('/etc', 'out/folder')\nos.mkfifo('out/pipe')\n[helper.x, open('in/data.txt').read()]",
              files={"helper.py": b"x = 5\n", "in/data.txt": "é".encode()}, collect=["out/**"])
    check_equal((got.value, got.files), ([5, "é"], {"out/a.txt": b"A", "out/deep/er/b.bin": b"\0B"}), got.message)
    check_equal(value_of("import sys\n[input(), sys.stdin.read()]", stdin="é\nrest\n".encode()), ["é", "rest\n"], "stdin")
    check_equal(value_of("import sys\nsys.stdin.buffer.read()", stdin=b"\xff\0"), b"\xff\0", "bytes")
    make = "import os\nfor n in ('a.txt', 'b.png', 'd/a.txt', 'd/e/a.txt', 'x[1].txt'):\n    os.makedirs(os.path.dirname(n) or '.', exist_ok=True)\n    open(n, 'w')\n"
    for patterns, want in ((["*.txt"], ["a.txt", "x[1].txt"]), (["**"], ["a.txt", "b.png", "d/a.txt", "d/e/a.txt", "x[1].txt"]), (["**/a.txt"], ["a.txt", "d/a.txt", "d/e/a.txt"]),
                           (["d/*"], ["d/a.txt"]), (["d/**/a.txt"], ["d/a.txt", "d/e/a.txt"]), (["?.p[mn]g"], ["b.png"]), (["./a.txt", "a.*"], ["a.txt"]), (["d"], []), (["[!a].*"], ["b.png"]),
                           (["x[[]1].txt"], ["x[1].txt"])):
        got = run(make, collect=patterns)
        check_equal((got.ok, sorted(got.files)), (True, want), f"{patterns} {got.message}")


@test("harness: files that lead out are refused; what is too large ends the call by its size")
def _():
    for name in ("../x", "/tmp/x", "a/../../b", ""):
        failed = run("1", files={name: b"x"})
        check_equal(failed.type, "Malformed", name)
    for pattern in ("../*", "/etc/*", "a/../b", ""):
        failed = run("1", collect=[pattern])
        check_in("is not a relative pattern", failed.message, pattern)
    with cell(config={"result_bytes": 1000}) as it:
        it.talk.send(talk.EXECUTE, b"\0c1", codec.pack({"op": "eval", "code": "open('a', 'wb').truncate(5_000_000_000)", "collect": ["*"]}))
        head = it.talk._socket.recv(4096)
        kind, _, _, _, _, size = talk._HEAD.unpack(head)
        check_equal((kind, size), (talk.RESULT, 5_000_000_000), "what it claims")


# ---- rehearsal -----------------------------------------------------------------------------------


LOOK = """
import asyncio, gc, linecache, logging, os, random, signal, sys, threading, warnings
class Loop:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            it = type(asyncio.get_event_loop_policy().get_event_loop()).__name__
    except RuntimeError:
        it = 'none'
{'modules': sorted(sys.modules), 'path': sys.path, 'argv': sys.argv, 'lines': sorted(n for n in linecache.cache if n.startswith('<')),
 'fds': sorted(os.listdir('/proc/self/fd'))[:-1], 'gc': gc.isenabled(), 'threads': threading.active_count(), 'names': sorted(globals()),
 'handlers': len(logging.root.handlers), 'level': logging.root.level, 'filters': len(warnings.filters), 'cwd': os.listdir('.'), 'env': dict(os.environ),
 'signals': [str(signal.getsignal(n)) for n in range(1, 32)], 'loop': Loop.it}
"""


@test("harness: a rehearsal leaves no trace")
def _():
    without = value_of(LOOK, config={"rehearse": []})
    check_equal(without["gc"], True, "the collector")
    for names in (["call"], ["usual"], ["eval"], ["tools"], ["await"], ["call", "eval", "tools", "await"], ["unknown"]):
        looks = value_of(LOOK, config={"rehearse": names})
        for key, value in looks.items():
            check_equal(value, without[key], f"after {names}: {key}")
    check_equal(run("import os; os.listdir('.')", config={"rehearse": ["call", "eval", "tools", "await"]}).output, "", "output")


@test("harness: siblings have no random numbers in common")
def _():
    code = "import random, os, uuid, tempfile\n[random.random(), random.randbytes(4) if hasattr(random, 'randbytes') else os.urandom(4), str(uuid.uuid4()), next(tempfile._get_candidate_names())]"
    import random
    random.seed(1)
    one, other = value_of(code), value_of(code)
    check(not set(map(str, one)) & set(map(str, other)), f"{one} {other}")
    try:
        import numpy.random
    except ImportError:
        return
    code = "import numpy.random\nnumpy.random.random()"
    check(value_of(code) != value_of(code), "numpy's are the same")


@test("harness: it says that it is ready once, after the rehearsal")
def _():
    read, write = os.pipe()

    def prepare():
        Extension.park = classmethod(lambda cls: os.write(write, b"P"))
        Occupant = harness.Occupant

        class Noting(Occupant):
            def serve(self):
                os.write(write, b"s")
                super().serve()

        harness.Occupant = Noting

    got = run("1", prepare=prepare, config={"rehearse": ["call", "eval"]})
    os.close(write)
    check_equal((got.value, os.read(read, 100)), (1, b"ssPs"), "the order")
    os.close(read)


main()
