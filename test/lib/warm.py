# SPDX-License-Identifier: Apache-2.0
"""A program with a tool host, vitro-apart, seen as a black box: calls go in, results come out."""

import json
import os
import select
import subprocess
import sys
import time
import uuid

from vitrotest import APART, BINARY, FLAGS, Failed, PREFIX, Skipped, skip

REFUSED = "refused: "  # how a policy is that cannot be held here


def need_program():
    """Ends a file of tests where the program was not built, or has no pools at all."""
    why = None
    if not os.path.exists(APART):
        why = "a sanitized library is not what others get"
    elif not os.path.exists("/proc/self"):
        why = "nothing is mounted at /proc, by which a pool's programs are found"
    else:
        try:
            Program().end()
        except Skipped as reason:
            why = reason
    if why:
        print(f"1..0 # SKIP {why}")
        sys.exit()


class Program:
    """One that runs; `with` ends it. processes: what parts those of its cells from others."""

    def __init__(self, policy=None, prefix=(), env=None, **options):
        policy = {**({"require": "best-effort"} if FLAGS else {}), **(policy or {})}
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [*prefix, *PREFIX, APART, json.dumps(policy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, **options,
            env={**(env or os.environ), "VITRO_BINARY": BINARY, "VITRO_TEST_PROGRAM": self.mark})
        self.text, self.results, self.logs, self.calls = b"", {}, [], 0
        try:
            self.processes = self.expect("ready")
        except EOFError:
            said = self.process.stderr.read().decode()
            self.end()
            if said.startswith(REFUSED):
                skip(said.strip())
            raise Failed(f"the program does not start: {said}") from None

    @property
    def bare(self):
        """Whether its cells are made without namespaces."""
        return self.processes != "pidns"

    def need_namespaces(self):
        """Skips a test of what bare cells do not promise."""
        if self.bare:
            skip(f"processes: held by {self.processes} here, which does not promise this")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process.stderr.close()

    def _line(self, seconds):
        until = time.monotonic() + seconds
        while b"\n" not in self.text:
            if not select.select([self.process.stdout], [], [], max(0, until - time.monotonic()))[0]:
                raise Failed(f"the program says nothing for {seconds} s")
            got = os.read(self.process.stdout.fileno(), 1 << 20)
            if not got:
                raise EOFError("the program ended")
            self.text += got
        line, self.text = self.text.split(b"\n", 1)
        return line.decode(errors="replace")

    def expect(self, word, seconds=30):
        """The rest of the next line that begins so. What comes before is kept."""
        while True:
            first, _, rest = self._line(seconds).partition(" ")
            if first == word:
                return rest
            if first == "result":
                call, _, result = rest.partition(" ")
                self.results[call] = json.loads(result)
            else:
                self.logs.append(rest.split(" ", 1))

    def tell(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def submit(self, tool, **arguments):
        self.calls += 1
        self.tell(f"call c{self.calls} {tool} {json.dumps(arguments)}")
        return f"c{self.calls}"

    def wait(self, call, seconds=30):
        while call not in self.results:
            number, _, result = self.expect("result", seconds).partition(" ")
            self.results[number] = json.loads(result)
        return self.results.pop(call)

    def call(self, tool, **arguments):
        return self.wait(self.submit(tool, **arguments))

    def value(self, tool, **arguments):
        """Of a call that must be ok."""
        result = self.call(tool, **arguments)
        if result["status"] != "ok":
            raise Failed(f"{tool}: {result}")
        return result["value"]

    def ready(self):
        """How many cells are."""
        self.tell("count")
        return int(self.expect("count").split()[0])

    def python(self, code):
        """What a piece of Python prints that a tool starts."""
        said = self.value("run", words=["/usr/bin/python3", "-c", code])
        if said["code"]:
            raise Failed(said["out"])
        return said["out"]


def supervisor_of(program):
    """The pid of the supervisor that a program started: the oldest that has its mark. Others are forks of it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{pid}/environ", "rb") as file:
                marked = program.mark.encode() in file.read()
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                born = int(file.read().rpartition(")")[2].split()[19])
        except OSError:
            continue
        if marked and words[1:2] == [b"supervise"]:
            found.append((born, int(pid)))
    if not found:
        raise Failed("the program has no supervisor")
    return min(found)[1]
