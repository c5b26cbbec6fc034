# SPDX-License-Identifier: Apache-2.0
"""A client of test/soak: client.py FOLDER [SOCKET]. Python code, functions and commands under several policies, that end in
every way, by a server's socket or a supervisor of its own.

A line "go SECONDS" on standard input: calls for so long. Then a line of JSON tells what came of them. Commands leave marks
in the folder: what ended well ran once, whatever else was killed, and what did not at most once.
"""

import asyncio
import collections
import gc
import json
import math
import pathlib
import random
import sys
import time

import vitro

AT_ONCE = 3
MARKS = pathlib.Path(sys.argv[1]) / "marks"
PLAIN = "2 + 3"
POLICIES = [{}, {"network": "loopback", "limits": {"memory_mb": 128}}, "compute"]
HURT = {"lost", "crashed"}

# What is done, what becomes of it, and the value where it is given.
EVALS = [
    (PLAIN, "ok", 5),
    (PLAIN, "ok", 5),
    (PLAIN, "ok", 5),
    ("print('x' * 100_000)\n1", "ok", 1),
    ("'y' * 1_000_000", "ok", "y" * 1_000_000),
    ("twice(4)", "ok", 8),
    ("open('a/b').read()", "ok", "given"),
    ("import subprocess\nsubprocess.Popen(['sleep', '60'], start_new_session=True)\n1", "ok", 1),
    ("import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n1", "ok", 1),
    ("raise RuntimeError('as it should')", "error", None),
    ("import os\nos._exit(7)", "error", None),
    ("import os\nos.abort()", "crashed", None),
    ("while True: pass", "timeout", None),
]


class Client:
    def __init__(self, sandbox):
        self.sandbox, self.number = sandbox, 0
        self.begin_anew()

    def begin_anew(self):
        self.calls = self.hurt = 0
        self.times, self.wrong, self.marked = [], [], {}

    def judge(self, what, result, status, value):
        if result.status != status and result.status in HURT:
            self.hurt += 1
        elif result.status != status or (status == "ok" and result.value != value):
            self.wrong.append(f"{what[:80]!r}: {result.status}, {result.error and result.error.message}")

    async def eval(self):
        code, status, value = random.choice(EVALS)
        began = time.perf_counter()
        result = await self.sandbox.eval(code, policy=random.choice(POLICIES), result=True, files={"a/b": "given"},
                                         tools={"twice": lambda n: n * 2}, timeout=0.2 if status == "timeout" else 29)
        if code == PLAIN:
            self.times.append(time.perf_counter() - began)
        self.judge(code, result, status, value)

    async def call(self):
        result = await self.sandbox.call(math.factorial, 20, result=True)
        self.judge("call", result, "ok", math.factorial(20))

    async def command(self):
        self.number += 1
        name = f"m{self.number}"
        result = await self.sandbox.run(["sh", "-c", f"echo {name} >>{MARKS}"], policy={"files": {"write": [str(MARKS.parent)]}}, result=True)
        self.marked[name] = result.status
        self.judge("command", result, "ok", None)

    async def cancel(self):
        task = asyncio.ensure_future(self.sandbox.eval("import time\ntime.sleep(60)", result=True))
        await asyncio.sleep(random.random() / 20)
        task.cancel()
        try:
            result = await task
            self.judge("cancel", result, "cancelled", None)
        except asyncio.CancelledError:
            pass  # as it should

    async def go_on(self, until):
        while time.monotonic() < until:
            self.calls += 1
            await random.choices([self.eval, self.call, self.command, self.cancel], [6, 2, 2, 1])[0]()

    def check_marks(self):
        counts = collections.Counter(MARKS.read_text().split() if MARKS.exists() else [])
        MARKS.unlink(missing_ok=True)
        for name, status in self.marked.items():
            if counts[name] > 1 or (status == "ok" and counts[name] != 1):
                self.wrong.append(f"a command ran {counts[name]} times, and was {status}")

    def tell(self):
        self.times.sort()
        micro = [round(1e6 * self.times[int(len(self.times) * share)]) if self.times else 0 for share in (0.5, 0.99)]
        for text in self.wrong[:20]:
            print(text, file=sys.stderr, flush=True)
        print(json.dumps({"calls": self.calls, "wrong": len(self.wrong), "hurt": self.hurt, "p50_us": micro[0], "p99_us": micro[1]}), flush=True)


async def main():
    socket = sys.argv[2] if len(sys.argv) > 2 else None
    loop = asyncio.get_running_loop()
    async with vitro.AsyncSandbox(socket=socket, ready_min=2, ready_max=2) as sandbox:
        client = Client(sandbox)
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            client.begin_anew()
            until = time.monotonic() + float(line.split()[1])
            await asyncio.gather(*(client.go_on(until) for _ in range(AT_ONCE)))
            client.check_marks()
            gc.collect()
            client.tell()


asyncio.run(main())
