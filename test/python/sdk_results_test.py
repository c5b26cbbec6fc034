#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: values, output and logs of calls, and mistakes of the caller."""

import asyncio
import inspect
import logging
import os
import pickle
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from sandboxes import BEST, box, raises
from vitrotest import check, check_equal, check_in, folder, skip, test, write

import vitro


@test("results of 70 kB, 1 MB and more come back; one of 1 GB is refused by its limit")
def _():
    for size in (70_000, 1 << 20, 20 << 20):
        value = box().call(toolbox.produce, size)
        check(type(value) is bytes and value == b"x" * size, f"{size} bytes")
        check(box().eval(f"'y' * {size}") == "y" * size, f"{size} characters")
    error = raises(vitro.ResultLimit, box().eval, "bytes(1 << 30)", policy={**BEST, "limits": {"memory_mb": 2048}})
    check_in("limits.result_mb", str(error), "the message")
    check_equal(error.result.status, "result_limit", "status")


@test("an error that looks like a denial names the policy's key, the same for all that a cell lacks")
def _():
    if not box().capabilities()["files"].startswith("mountns"):
        skip("what is closed is there, and says so itself")
    own = "; the call began in a /tmp of its own: the policy's keys are {} and files.cwd, or eval() takes it by files"
    denied, below = "; if the cell was denied it, the policy's key is {}", "files.read (files.write to write there)"
    with folder() as place:
        granted = {**BEST, "files": {"read": [place], "cwd": place}}
        write(os.path.join(place, "there"), "")
        write(os.path.join(place, ".env"), "")
        closed = {**BEST, "files": {"write": [place], "cwd": place, "deny": [place + "/.env"]}}
        both = "; if the cell was denied it, the policy's keys are files.read and files.deny"
        for code, policy, want in (
                ("open('data.csv')", None, own.format("files.read")), ("open('out/a', 'w')", None, own.format(below)),
                ("open('/tmp/x')", None, denied.format("files.read")), ("open('/etc/not-there')", None, denied.format("files.read")),
                (f"open({place + '/there'!r})", None, denied.format(below)), (f"open({place + '/not-there'!r})", None, denied.format(below)),
                ("open('/srv/nothing/a', 'w')", None, denied.format(below)), ("open('/usr/not-there')", None, ""),
                ("open('.env')", closed, both), ("open('not-there')", granted, ""), ("open('there', 'a')", granted, denied.format("files.write"))):
            error = raises(vitro.ToolError, box().eval, code, policy=policy)
            check(str(error).endswith("'" + want), f"{code}: {error}")


_MISSING = "the value is a numpy array, and this program has not imported numpy: import it, or return .tolist()"
_GRANTED = {**BEST, "files": {"read": [pythons.FRAMEWORKS]}, "limits": {"memory_mb": 2048}}


@test("a program without numpy gets numpy's scalars as Python's own, and arrays as they are shown")
def _():
    if not pythons.has_framework("numpy"):
        skip("numpy is not installed for this python3")
    check("numpy" not in sys.modules, "the control: it is not imported here")
    begin = f"import sys\nsys.path.append({pythons.FRAMEWORKS!r})\nimport numpy as np\n"
    scalars = "[np.float64(2.5), {'a': np.bool_(True)}, (np.str_('x'), np.bytes_(b'y')), np.array([1, 2]).mean()]"
    code = begin + f"said = tool({scalars})\ntry: tool(np.arange(2))\nexcept Exception as error: said = [said, str(error)]\n"
    want, said = [2.5, {"a": True}, ("x", b"y"), 1.5], []

    def tool(value):
        said.append(repr(value))

    with vitro.Sandbox(_GRANTED) as sandbox:
        value = sandbox.eval(code + f"said.append({scalars})\nsaid", tools={"tool": tool})
        check_equal(repr(value), repr([None, f"NotImported: {_MISSING}", want]), "code's")
        check_equal(said, [repr(want)], "a tool's argument")
        value = sandbox.eval(begin + "{'a': [np.arange(3)], 'b': np.float32(1)}")
        check_in("{'a': [array([0, 1, 2])]", str(value), "what has an array in it")
        check_equal((type(value), value.type), (vitro.Shown, "builtins:dict"), "it is shown")
        check_equal(repr(sandbox.call(toolbox.use_numpy, pythons.FRAMEWORKS, scalars)), repr(want), "a function's")
        error = raises(vitro.NoResult, sandbox.call, toolbox.use_numpy, pythons.FRAMEWORKS, "[np.arange(2)]")
        check_equal(str(error), _MISSING, "an array of a function")

    async def wait():
        async with vitro.AsyncSandbox(_GRANTED) as sandbox:
            return await sandbox.eval(begin + "np.arange(3)")

    check_equal(asyncio.run(wait()), vitro.Shown("numpy:ndarray", "array([0, 1, 2])"), "asyncio")
    check("numpy" not in sys.modules, "a cell had it imported")


@test("numpy's values that a cell only says to have are a plain error, and nothing is imported for them")
def _():
    forge = "import sys\nsys.modules['_vitro_runtime.harness']._tell_value = lambda head, value, buffers: buffers.append(%r) or {'value': %r}\n1"
    array = {"dtype": "|u1", "shape": [1], "order": "C", "buffer": 0}
    for tree, want in (({"$ndarray": array}, _MISSING), ({"$npscalar": {"dtype": "|u1", "buffer": 0}}, None), ({"$npscalar": {"dtype": "<f16", "buffer": 0}}, "or return .item()"),
                       ({"$npscalar": {"dtype": "|O8", "buffer": 0}}, "its value is malformed"), ({"$npscalar": {"dtype": "<U9", "buffer": 0}}, "its value is malformed")):
        result = box().eval(forge % (b"\7", tree), result=True)
        check_equal((result.status, result.value), ("no_result" if want else "ok", None if want else 7), f"{tree}: {result.error}")
        check_in(want or "", result.error.message if result.error else "", f"{tree}")
    check("numpy" not in sys.modules, "it was imported")


@test("large arguments go over, too")
def _():
    data = os.urandom(20 << 20)
    check(box().call(toolbox.echo, data)[0][0] == data, "20 MB there and back")
    check_equal(box().eval("import sys\nlen(open('f','rb').read()) + len(sys.stdin.buffer.read())",
                           files={"f": data}, stdin=data), 40 << 20, "files and stdin")


@test("what is printed is output, whatever it looks like")
def _():
    text = '{"is":"done","call":1,"status":"ok"} \x10\0\0\0'
    result = box().call(toolbox.speak, text, result=True)
    check_equal((result.status, result.value), ("ok", "value"), "the value")
    check_equal((result.stdout, result.stderr), (f"{text}\n{text}\n", text + "\n"), "output")
    result = box().eval("print('x' * 3_000_000)", result=True)
    check(result.ok and result.dropped["stdout"] > 1_500_000 and len(result.stdout_bytes) < 1_200_000, result.dropped)


@test("what was printed is told, however a call ends")
def _():
    for end, status in (("while True: pass", "timeout"), ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "crashed"),
                        ("import os\nos._exit(0)", "no_result")):
        result = box().eval(f"import sys\nprint('one')\nprint('two', file=sys.stderr)\n{end}", timeout=1, result=True)
        check_equal((result.status, result.stdout, result.stderr), (status, "one\n", "two\n"), "what it printed")


@test("output and logs come as they are made, as text, and an exception of a call-back ends the call")
def _():
    heard, times = [], []

    def hear(stream, text):
        heard.append((stream, text))
        times.append(time.monotonic())

    result = box().eval("import time, sys\nprint('é')\ntime.sleep(0.3)\nprint('b', file=sys.stderr)",
                        on_output=hear, result=True)
    check_equal((heard, result.stdout), ([("stdout", "é\n"), ("stderr", "b\n")], "é\n"), "output")
    check(times[1] - times[0] > 0.2, "it comes when it is printed")
    lines = []
    result = box().eval("import logging\nlogging.warning('w')\nlogging.getLogger('x').error('e')",
                        on_log=lambda level, text: lines.append((level, text)), result=True)
    check_equal(lines, [("warning", "w"), ("error", "x: e")], "logs")
    check_equal([tuple(log) for log in result.logs], lines, "logs of the result")
    begun = time.monotonic()
    raises(ZeroDivisionError, box().eval, "import time\nprint(1, flush=True)\ntime.sleep(30)", on_output=lambda *_: 1 / 0)
    check(time.monotonic() - begun < 10, "at once")
    check_equal(len(box().call(toolbox.log_lines, 10_000, result=True).logs), 10_000, "many lines")


@test("what tools log is logged here, under vitro.tool")
def _():
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    logger = logging.getLogger("vitro.tool")
    logger.addHandler(handler)
    try:
        box().eval("import logging\nlogging.error('bad')", call_id="mine")
    finally:
        logger.removeHandler(handler)
    check_equal([(r.levelname, r.getMessage()) for r in records], [("ERROR", "mine: bad")], "records")


@test("an object whose unpickling would run code never does here")
def _():
    with folder(writable=True) as place:
        path = os.path.join(place, "ran")
        error = raises(vitro.ToolError, box().call, toolbox.make_evil, path)
        check_in("toolbox:Evil", str(error), "which class")
        check_in("trust_results", str(error), "what to do")
        # A cell that writes frames of its own: the value is a pickle, though nobody asked for one.
        forged = ("import os, pickle, struct\n"
                  f"class E:\n    def __reduce__(self): return open, ({path!r}, 'w')\n"
                  "p = pickle.dumps(E()); j = b'{\"pickle\":0,\"oob\":0}'\n"
                  "m = struct.pack('<I', len(j)) + j + struct.pack('<IQ', 1, len(p)) + p\n"
                  "os.write(3, struct.pack('<IIIIQQ', 5, 0, 0, 0, 0, len(m)) + m)\n"
                  "import time; time.sleep(20)")
        value = box().eval(forged, result=True)
        check_equal((value.status, value.value), ("ok", None), "a forged result")
        for text in (b"{", b"[1]", b'{"value":{"$object":{"type":"os:system","state":{}}}}', b'{"value":{"$what":1}}'):
            forged = (f"import os, struct\nj = {text!r}\nm = struct.pack('<I', len(j)) + j + struct.pack('<I', 0)\n"
                      "os.write(3, struct.pack('<IIIIQQ', 5, 0, 0, 0, 0, len(m)) + m)\nimport time; time.sleep(20)")
            check_equal(box().eval(forged, result=True).status, "no_result", text.decode())
        check(not os.path.exists(path), "it ran in this process")
        box().call(toolbox.make_evil, path, trust_results=True).close()
        check(os.path.exists(path), "the control: with trust it does")


@test("classes come back where they are named, and pickles where they are trusted")
def _():
    error = raises(vitro.ToolError, box().call, toolbox.make_point, 1, 2)
    check_in("result_types", str(error), "what to do")
    point = box().call(toolbox.make_point, 1, 2, result_types=[toolbox.Point])
    check_equal((type(point), point), (toolbox.Point, toolbox.Point(1, 2)), "a dataclass")
    check_equal(box().call(toolbox.make_point, 1, 2, trust_results=True), toolbox.Point(1, 2), "a pickle")


@test("mistakes of the caller are told before anything runs, by the name of the argument")
def _():
    for kind, said, given in (
            (TypeError, "tools is a dict of functions", {"tools": [len]}),
            (TypeError, "tools['x'] is a function, not int", {"tools": {"x": 3}}),
            (TypeError, "a name is a text", {"tools": {3: len}}),
            (TypeError, "files is a dict of contents", {"files": ["a"]}),
            (TypeError, "files['a'] is text or bytes, not int", {"files": {"a": 3}}),
            (ValueError, "files: '/etc/passwd' is not a name below", {"files": {"/etc/passwd": ""}}),
            (ValueError, "files: 'a/../b' is not a name below", {"files": {"a/../b": ""}}),
            (TypeError, "stdin is text or bytes, not int", {"stdin": 3}),
            (TypeError, "result_types is a list of classes", {"result_types": toolbox.Point}),
            (TypeError, "threading:Thread is not a dataclass", {"result_types": [threading.Thread]}),
            (TypeError, "result_types is a list of classes, not int (5)", {"result_types": 5}),
            (TypeError, "collect[0] is a text, not int (5)", {"collect": [5]}),
            (TypeError, "collect is a list of patterns, not int (5)", {"collect": 5}),
            (TypeError, "collect is a list of patterns, not a text", {"collect": "out/**"}),
            (ValueError, "collect: '/etc/passwd' is not a relative pattern, such as 'out/**'", {"collect": ["a", "/etc/passwd"]}),
            (ValueError, "collect: '[z-a]' is no pattern: ", {"collect": ["[z-a]"]}),
            (TypeError, "timeout is a number of seconds, not 'x'", {"timeout": "x"}),
            (TypeError, "call_id is a text, not int (5)", {"call_id": 5}),
            (TypeError, "trust_results is True or False, not str ('no')", {"trust_results": "no"}),
            (TypeError, "on_output is a plain function", {"on_output": 3}),
            (TypeError, "on_log is a plain function", {"on_log": toolbox.add_later})):
        check_in(said, str(raises(kind, box().eval, "1", **given)), "eval")
        if kind is TypeError:  # nobody may look at a result for it
            check_in(said, str(raises(kind, box().eval, "1", result=True, **given)), "with a result")
            check_in(said, str(raises(kind, asyncio.run, vitro.AsyncSandbox(BEST).eval("1", result=True, **given))), "of asyncio")
        else:
            result = box().eval("1", **{**given, "result": True})
            check_equal((result.status, result.error.type, result.isolation), ("refused", "ValueError", None), f"{said}: it has not run")
    error = raises(vitro.Refused, box().eval, "1", policy="no-such-policy")
    check(str(error).startswith("policy: there is no file"), str(error))
    result = box().eval("1", policy={**BEST, "limits": {"memory_mb": 1}}, result=True)
    # Where memory is only sampled, so short a call may be over before.
    check(result.ok or "memory" in result.error.message, f"too little memory to begin with: {result.error}")
    check_in("ready_min, 5, is more than ready_max, 2", str(raises(ValueError, vitro.Sandbox, ready_min=5, ready_max=2)), "cells")
    check_in("make one there", str(raises(TypeError, pickle.dumps, box())), "a sandbox for another process")
    check_in("argv[1] is a text, not int (1)", str(raises(TypeError, box().run, ["sleep", 1])), "run")
    check_in("no shell reads it; ['sh', '-c', command] has one", str(raises(TypeError, box().run, "echo hi")), "a text")
    for name in vitro.__all__:
        kind = getattr(vitro, name)
        if isinstance(kind, type) and issubclass(kind, Exception):
            check_equal(kind.__module__, "vitro", f"where tracebacks say {name} is")
    check_in("argv is a list of words, the program's first, not int (5)", str(raises(TypeError, box().run, 5)), "run")


@test("repr() of a result has what was printed as text, and not all of it")
def _():
    shown = repr(box().run(["sh", "-c", "echo hi; echo oh >&2; head -c 5000 /dev/zero | tr '\\0' x"], result=True))
    check_in("stderr='oh\\n'", shown, "standard error")
    check_in(f"stdout='hi\\n{'x' * 997}'... (5003 bytes)", shown, "standard output")
    check("_bytes" not in shown, shown)


@test("what goes to the policy is told so, and signatures are as they are written")
def _():
    for says, function, given in (
            ("timeout goes to each call, or to the policy: limits.wall_ms", vitro.Sandbox, {"timeout": 5}),
            ("timeout goes to each call, or to the policy: limits.wall_ms", vitro.AsyncSandbox, {"timeout": 5}),
            ("memory goes to the policy: limits.memory_mb", vitro.ToolHost, {"memory": 5}),
            ("cwd goes to the policy: files.cwd", box().run, {"argv": ["ls"], "cwd": "/"}),
            ("env goes to the policy: env.set and env.pass", box().run, {"argv": ["ls"], "env": {}}),
            ("env goes to the policy: env.set and env.pass", box().submit_run, {"argv": ["ls"], "env": {}}),
            ("network goes to the policy: network", vitro.Sandbox, {"network": "host"}),
            ("files goes to the policy: files.read and files.write", vitro.Sandbox, {"files": {}}),
            ("read goes to the policy: files.read", vitro.ToolHost, {"read": ["/srv"]}),
            ("memory goes to the policy: limits.memory_mb", vitro.Executor, {"memory": 5}),
            ("write goes to the policy: files.write", vitro.AsyncSandbox, {"write": ["/srv"]}),
            ("memory goes to the policy: limits.memory_mb", box().eval, {"code": "1", "memory": 5}),
            ("network goes to the policy: network", box().submit_eval, {"code": "1", "network": "host"}),
            ("run() got an unexpected keyword argument 'evn'; did you mean 'env'?", box().run, {"argv": ["ls"], "evn": {}}),
            ("eval() got an unexpected keyword argument 'timeot'; did you mean 'timeout'?", box().eval, {"code": "1", "timeot": 1}),
            ("did you mean 'preload'?", vitro.Sandbox, {"prelaod": []}), ("did you mean 'policy'?", vitro.ToolHost, {"polcy": {}}),
            ("call_tool() got an unexpected keyword argument 'zzzzzzzz'", box().call_tool, {"name": "x", "zzzzzzzz": 1})):
        check_in(says, str(raises(TypeError, function, **given)), "what goes elsewhere")
    later = vitro.AsyncSandbox(BEST).run(["ls"], cwd="/")
    check_equal(str(raises(TypeError, later.send, None)), "cwd goes to the policy: files.cwd", "the same awaited")
    check(inspect.iscoroutinefunction(vitro.AsyncSandbox.run) and "argv" in inspect.signature(vitro.Sandbox.run).parameters
          and "socket" in inspect.signature(vitro.Sandbox).parameters, "signatures are as they are written")


@test("mistakes in the options of a sandbox, a tool host or an executor are told when it is made")
def _():
    async_sandbox = vitro.AsyncSandbox(BEST)
    for said, given in (("python is a path, not int (5)", {"python": 5}), ("socket is a path, not int (5)", {"socket": 5}),
                        ("preload is a list of modules' names, not int (5)", {"preload": 5}),
                        ("preload[0] is a text, not int (5)", {"preload": [5]}), ("policy is a dict", {"policy": 5}),
                        ("unexpected keyword argument 'nonsense'", {"nonsense": 5})):
        for kind in (vitro.Sandbox, vitro.AsyncSandbox, vitro.Executor, vitro.ToolHost, vitro.AsyncToolHost):
            check_in(said, str(raises(TypeError, kind, **given)), kind.__name__)
    for said, given in (("max_workers is a whole number, not str ('x')", {"max_workers": "x"}),
                        ("max_tasks_per_child is a whole number", {"max_tasks_per_child": 1.5}),
                        ("initargs is a list of arguments, not int (5)", {"initargs": 5}),
                        ("timeout is a number of seconds", {"timeout": "x"}),
                        ("error_types is a list of classes, not int (5)", {"error_types": 5}),
                        ("result_types is a list of classes, not int (5)", {"result_types": 5})):
        check_in(said, str(raises(TypeError, vitro.Executor, **given)), "an executor")
    for kind, given, said in ((vitro.ToolHost, {"sandbox": 5}, "sandbox is a vitro.Sandbox, not int (5)"),
                              (vitro.ToolHost, {"sandbox": async_sandbox}, "sandbox is a vitro.Sandbox, not AsyncSandbox"),
                              (vitro.AsyncToolHost, {"sandbox": box()}, "sandbox is a vitro.AsyncSandbox, not Sandbox"),
                              (vitro.ToolHost, {"timeout": "x"}, "timeout is a number of seconds, not 'x'")):
        check_in(said, str(raises(TypeError, kind, **given)), "a tool host")


@test("what failed in a cell shows the traceback there, with nothing that leads a terminal astray")
def _():
    error = raises(vitro.ToolError, box().eval, "def f(x):\n    return {}[x]\nf('\\x1b[2Jk')")
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    check_in("line 2, in f\n    return {}[x]\n", shown, "the line in the cell")
    check("\x1b" not in shown, repr(shown))


pythons.main("oldest")
