#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: its supervisor, which dies, is forked away from, is a server, or is not there."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons
import toolbox
from sandboxes import BEST, box, raises
from vitrotest import BINARY, check, check_equal, check_in, folder, proc, run, test, wait_until

import vitro


def supervisor_of(sandbox):
    return sandbox._session.connection.process.pid


@test("a supervisor that dies: calls under way are lost, and the next has a new one")
def _():
    with vitro.Sandbox(BEST) as sandbox:
        sandbox.eval("1")
        threading.Timer(0.3, os.kill, (supervisor_of(sandbox), signal.SIGKILL)).start()
        error = raises(vitro.Lost, sandbox.call, toolbox.sleep, 50)
        check_equal(error.result.status, "lost", "status")
        check_equal(sandbox.eval("2"), 2, "the next")
        os.kill(supervisor_of(sandbox), signal.SIGKILL)
        time.sleep(0.3)
        check_equal(sandbox.eval("3"), 3, "where it died while nothing ran, nothing is lost")


@test("after a fork the child has its own, and the parent's stays")
def _():
    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    parent = supervisor_of(sandbox)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if sandbox.eval("2") == 2 and supervisor_of(sandbox) != parent else 2
            sandbox.close()
        finally:
            os._exit(code)
    check_equal(os.waitpid(pid, 0)[1], 0, "the child")
    check_equal((sandbox.eval("3"), supervisor_of(sandbox)), (3, parent), "the parent")
    sandbox.close()


@test("texts of errors steer no terminal; results have them as they are")
def _():
    said = "a\x1b]0;x\x07\r\x9bm\nb\tc"
    error = raises(vitro.ToolError, box().eval, f"raise type('E\\x1b', (ValueError,), {{}})({said!r})")
    check_equal(str(error), "E\\x1b: a\\x1b]0;x\\x07\\r\\x9bm\nb\tc", "its text")
    check_equal((error.message, error.result.error.message), (said, said), "as it was")
    check("\x1b" not in "".join(traceback.format_exception(type(error), error, error.__traceback__)), "what is printed")


@test("a sandbox that is closed, dropped, or whose program ends in any way leaves nothing")
def _():
    def is_there(pid):
        return proc(f"{pid}/stat").split(b")")[-1].split()[:1] not in ([], [b"Z"], [b"X"])

    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    pid = supervisor_of(sandbox)
    check(is_there(pid), "the control: it runs")
    sandbox.close()
    check(not proc(f"{pid}/stat"), "closed: it is reaped")
    check_equal(raises(vitro.Refused, sandbox.eval, "1").result, None, "a closed one is of no use")
    sandbox = vitro.Sandbox(BEST)
    sandbox.eval("1")
    pid = supervisor_of(sandbox)
    del sandbox
    gc.collect()
    check(not proc(f"{pid}/stat"), "dropped: it is reaped")
    program = (f"import sys\nsys.path.insert(0, {str(pythons.SDK)!r})\nimport vitro, os, signal\ns = vitro.Sandbox({BEST!r})\n"
               "s.eval('1')\nprint(s._session.connection.process.pid, flush=True)\n")
    for end in ("", "sys.exit(3)", "os._exit(0)", "os.kill(os.getpid(), 9)", "1/0"):
        done = run([sys.executable, "-c", program + end])
        pid = int(done.out.split()[0])
        wait_until(lambda: not is_there(pid), 5, f"it ends after {end!r}")


@test("a server's socket in place of a supervisor of its own")
def _():
    with folder() as place:
        path = os.path.join(place, "socket")
        with subprocess.Popen([BINARY, "serve", "--socket", path], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                wait_until(lambda: os.path.exists(path), 10, "it serves")
                with vitro.Sandbox(BEST, socket=path) as sandbox:
                    check_equal(sandbox.run(["echo", "hi"]).stdout, "hi\n", "a command")
                    check_equal(sandbox.eval("6 * 7"), 42, "code")
                    check_equal(sandbox.call(toolbox.add, 2, 3), 5, "a function")
            finally:
                server.terminate()
        gone = raises(vitro.Refused, vitro.Sandbox(socket=path).eval, "1")
        check_equal(str(gone), f"no server can be reached at {path!r}; start one: vitro serve --socket PATH", "nothing was begun")
        check_equal(vitro.Sandbox(socket=path).eval("1", result=True).status, "refused", "its result")
        raises(vitro.Refused, vitro.Sandbox(socket="/" + "x" * 200).eval, "1")


@test("elsewhere than on Linux, and without the program, using it says so")
def _():
    text = f"import sys\nsys.path.insert(0, {str(pythons.SDK)!r})\n"
    use = "import vitro\ntry:\n    vitro.Sandbox().eval('1')\nexcept vitro.Unsupported as error:\n    print(error)\n"
    done = run([sys.executable, "-c", text + "sys.platform = 'darwin'\n" + use])
    check_in("this is darwin", done.out, "another system", done)
    env = {**os.environ, "VITRO_BINARY": "/nowhere/vitro"}
    done = run([sys.executable, "-c", text + use], env=env)
    check_in("VITRO_BINARY names '/nowhere/vitro'", done.out, "no program", done)


pythons.main("oldest", "newest")
