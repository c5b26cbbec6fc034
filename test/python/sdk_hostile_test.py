#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: cells that are hostile to the program."""

import asyncio
import logging
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
from sandboxes import BEST, Heard, box, raises
from vitrotest import check, check_equal, check_in, folder, need_held, run, test, write

import vitro

# Code that writes many requests for a tool by hand, where a cell's own client would wait for each answer.
FORGE = """import os, struct, time
j = b'{"args":[],"kwargs":{}}'
m = struct.pack('<I', len(j)) + j + struct.pack('<I', 0)
def ask(first, count, name=b'tool'):
    data = memoryview(b''.join(struct.pack('<IIIIQQ', 3, 0, len(name), 0, first + i, len(m)) + name + m for i in range(count)))
    while data:
        data = data[os.write(3, data):]
"""


@test("futures: a flood of requests for tools has few threads, and ends with the call")
def _():
    runs, most = [], [0]

    def tool():
        runs.append(1)
        most[0] = max(most[0], sum(thread.name == "vitro-tool" for thread in threading.enumerate()))
        time.sleep(0.3)

    result = box().submit_eval(FORGE + "ask(0, 2000)\ntime.sleep(1)\n5", tools={"tool": tool}, result=True).result(30)
    check_equal((result.status, result.value), ("ok", 5), "the call")
    count = len(runs)
    check(8 < count < 100 and 1 < most[0] <= 8, (count, most))
    time.sleep(0.7)
    check(len(runs) <= count + 8, f"{len(runs) - count} runs after its end")


@test("a call that asks for too much at once is cancelled, and says so")
def _():
    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            return await sandbox.eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True)

    code = FORGE + "ask(0, 12000)\ntime.sleep(20)"
    begun = time.monotonic()
    for result in (box().eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True),
                   box().submit_eval(code, tools={"tool": lambda: time.sleep(0.2)}, result=True).result(30),
                   asyncio.run(story())):
        check_equal(result.status, "cancelled", "status")
        check_in("10000 uses of tools", result.error.message, "the reason")
    check(time.monotonic() - begun < 15, "soon")


@test("eval: no tool runs when the call is over, however many it asked for")
def _():
    runs, last = [], [0.0]

    def tool():
        runs.append(1)
        time.sleep(0.002)
        last[0] = time.monotonic()

    begun = time.monotonic()
    result = box().eval(FORGE + "ask(0, 5000)\ntime.sleep(30)", tools={"tool": tool}, result=True, timeout=0.5)
    check_equal(result.status, "timeout", "status")
    check(0 < len(runs) < 1500 and last[0] - begun < 3 and time.monotonic() - begun < 3, (len(runs), last[0] - begun))


@test("asyncio: no tool runs when the call is over, however many it asked for")
def _():
    runs = []

    def tool():
        runs.append(1)
        time.sleep(0.01)

    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            result = await sandbox.eval(FORGE + "ask(0, 5000)\ntime.sleep(30)", tools={"tool": tool}, result=True,
                                        timeout=1.5)
            check_equal(result.status, "timeout", "status")
            count = len(runs)
            await asyncio.sleep(0.5)
            check(0 < count and len(runs) <= count + 8, (count, len(runs)))

    asyncio.run(story())


@test("a slow call-back for output holds a call up for little longer than its deadline")
def _():
    heard = []

    def hear(_, text):
        heard.append(text)
        time.sleep(0.05)

    code = "import os, time\nfor n in range(400):\n    os.write(1, b'x'); time.sleep(0.001)\ntime.sleep(30)"
    begun = time.monotonic()
    result = box().eval(code, on_output=hear, result=True, timeout=2)
    taken, count = time.monotonic() - begun, len(result.stdout)  # on a busy machine it does not come to all 400
    check_equal((result.status, result.stdout), ("timeout", "x" * count), "the result")
    check_equal("".join(heard), result.stdout, "what was heard")
    check(count >= 200, f"there were more pieces than could be heard one by one: {count}")
    check(taken < 8, taken)
    # Pieces that cannot be joined: the program's own clock ends it.
    code = "import os, time\nfor n in range(200):\n    os.write(1 + n % 2, b'x'); time.sleep(0.002)\ntime.sleep(30)"
    begun = time.monotonic()
    box().eval(code, on_output=hear, result=True, timeout=1)
    check(time.monotonic() - begun < 7, time.monotonic() - begun)


@test("a grant through a link that an earlier call may have made is a warning, once")
def _():
    with folder(writable=True) as place, vitro.Sandbox(BEST) as sandbox, Heard() as heard:
        shared, other = os.path.join(place, "shared"), os.path.join(place, "other")
        for path in (shared, other):
            os.mkdir(path)
            os.chmod(path, 0o777)
        link = os.path.join(shared, "link")
        policy = {**BEST, "files": {"write": [shared]}}
        sandbox.eval(f"import os\nos.symlink({other!r}, {link!r})", policy=policy)
        for key in ("read", "read", "write"):
            sandbox.eval("1", policy={**BEST, "files": {key: [link]}})
        said = [record.getMessage() for record in heard.records if record.levelno == logging.WARNING]
        check_equal(said, [f"files.{key}[0] of policy: '{link}' is a link and leads to '{other}'" for key in ("read", "write")], "warnings")


class Logged:
    """What the logger of tools does with its records, for a while."""

    def __init__(self, emit, accept=lambda record: True):
        self.handler, self.logger = logging.Handler(), logging.getLogger("vitro.tool")
        self.handler.emit, self.accept = emit, accept

    def __enter__(self):
        self.logger.addHandler(self.handler)
        self.logger.addFilter(self.accept)

    def __exit__(self, *_):
        self.logger.removeHandler(self.handler)
        self.logger.removeFilter(self.accept)


@test("a handler for what tools log may use the sandbox, and a filter that raises ends nothing")
def _():
    values, code = [], "import logging\nlogging.warning('x')\n3"

    def emit(record):
        if len(values) < 2:
            values.append(None)
            values.append(box().eval("4"))

    for way in (lambda: box().eval(code), lambda: box().submit_eval(code).result(10)):
        values.clear()
        with Logged(emit):
            thread = threading.Thread(target=lambda: values.append(way()), daemon=True)
            thread.start()
            thread.join(15)
        check_equal(values, [None, 4, 3], "values")
    before, sys.stderr = sys.stderr, open(os.devnull, "w")
    try:
        with Logged(lambda record: None, lambda record: 1 / 0):
            check_equal(box().eval(code), 3, "with a filter that raises")
    finally:
        sys.stderr.close()
        sys.stderr = before


@test("what tools log cannot forge lines of the program's log")
def _():
    records, raw = [], []
    with Logged(records.append):
        box().eval("import logging\nlogging.error('a\\nb\\x1b[31m\\u202e é \\\\n')", call_id="mine",
                   on_log=lambda level, text: raw.append(text))
    check_equal([record.getMessage() for record in records], ["mine: a\\nb\\x1b[31m\\u202e é \\n"], "the record")
    check_equal(raw, ["a\nb\x1b[31m\u202e é \\n"], "the call-back's text")


@test("whatever a tool raises, it is answered")
def _():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no")

    def mute():
        raise Mute()

    def leave():
        raise SystemExit(3)

    def stop():
        raise StopIteration

    async def give_up():
        raise asyncio.CancelledError

    code = "try:\n    tool()\nexcept BaseException as e:\n    r = (type(e).__name__, str(e))\nr"
    said = []

    async def story():
        async with vitro.AsyncSandbox(BEST) as sandbox:
            for tool in (mute, stop, give_up):
                said.append(await sandbox.eval(code, tools={"tool": tool}))
            try:
                await sandbox.eval(code + "\nimport time; time.sleep(20)", tools={"tool": leave})
            except SystemExit as error:
                said.append(error.code)

    begun = time.monotonic()
    for value in (box().eval(code, tools={"tool": mute}), box().submit_eval(code, tools={"tool": mute}).result(20)):
        check_in("(no message)", value[1], "its message")
        check_in("Mute", ": ".join(value), "its type")
    check_equal(type(box().submit_eval(code, tools={"tool": leave}).exception(20)), SystemExit, "a future")
    raises(SystemExit, box().eval, code, tools={"tool": leave})
    asyncio.run(story())
    check_in("(no message)", said[0][1], "asyncio")
    check_equal(said[3:], [3], "asyncio, with an exit")
    check(time.monotonic() - begun < 15, "nothing waits for a deadline")


@test("the home folder on sys.path is not readable as a whole")
def _():
    need_held({"files": "mountns"})
    script = ("import os, sys, logging\nsys.path.insert(0, {!r})\nlogging.basicConfig(stream=sys.stdout, format='%(name)s')\n"
              "import vitro, beside, package.part\nhome = os.path.dirname(os.path.abspath(__file__))\n"
              "def look(): return beside.f(), package.part.f(), sorted(os.listdir(home))\n"
              "def late():\n    import unseen\n"
              "s = vitro.Sandbox({!r}); print(s.call(look)); print(s.call(beside.f))\n"
              "print(s.call(os.path.exists, home + '/secret'))\n"
              "print(s.call(late, result=True).error.type)\nimport unseen\nprint(s.call(unseen.f)); s.close()\n")
    with folder() as place:
        for name in ("beside.py", "package/__init__.py", "package/part.py", "unseen.py"):
            write(os.path.join(place, "home", name), "def f():\n    return 7\n")
        write(os.path.join(place, "home", "secret"), "key")
        path = write(os.path.join(place, "home", "script.py"), script.format(str(pythons.SDK), BEST))
        want = ["(7, 7, ['beside.py', 'package', 'script.py'])", "7", "False", "ModuleNotFoundError", "7"]
        for home in ("home", "home/deeper"):
            done = run([sys.executable, "-B", path], env={**os.environ, "HOME": os.path.join(place, home)})
            check_equal(done.out.splitlines(), ["vitro", *want], f"as or around {home}", done)
        done = run([sys.executable, "-B", path], env={**os.environ, "HOME": "/nowhere"})
        check_equal(done.out.splitlines()[2:3], ["True"], "the control: another folder", done)


pythons.main("oldest")
