#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vitro.compat.calute: what it promises to programs that were written for calute or xerxes. The framework is a stand-in
here."""

import os
import pathlib
import signal
import sys
import types
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import compat_common
from compat_common import BEST, pythons, run_script
from vitrotest import check, check_equal, check_in, folder, need_held, test, wait_until, write

import compat_tools
import toolbox
from calute.security import sandbox_backends
from calute.security.sandbox import SandboxConfig, SandboxRouter
from vitro import ToolError, VitroError
from vitro.compat import calute as compat
from vitro.compat._shared import shared_sandbox
from vitro.compat.calute import SubprocessSandboxBackend, VitroSandboxBackend


def backend(**config):
    return SubprocessSandboxBackend(SandboxConfig(**config), policy=BEST)


def execute(made, tool, **arguments):
    return made.execute(tool, getattr(compat_tools, tool), arguments)


def error_of(made, tool, **arguments):
    try:
        value = execute(made, tool, **arguments)
    except RuntimeError as error:
        check_equal(type(error), RuntimeError, "its class")
        return str(error)
    raise AssertionError(f"nothing was raised, and the value is {value!r}")


@test("execute: values, coroutine functions, arguments by any name, many threads")
def _():
    made = backend()
    check_equal(execute(made, "add", a=2, b=3), 5, "a value")
    check_equal(execute(made, "add_later", a=2, b=3), 5, "an awaited one")
    check_equal(execute(made, "echo", self=1, timeout=2, tool_name=3), ((), {"self": 1, "timeout": 2, "tool_name": 3}), "names")
    check_equal(execute(made, "make_all_kinds")[7], "seven", "a dict with other keys")
    with ThreadPoolExecutor(8) as pool:
        check_equal([*pool.map(lambda n: execute(made, "add", a=n, b=1), range(40))], [*range(1, 41)], "by threads")


@test("texts that programs match on, and the whole result behind them")
def _():
    made = backend(sandbox_timeout=1.0)
    say = "Subprocess sandbox execution of tool"
    check_equal(error_of(made, "sleep", seconds=30), f"{say} 'sleep' timed out after 1.0s", "a timeout")
    check_equal(error_of(made, "fail", message="msg"), "Tool 'fail' raised ValueError inside subprocess sandbox: msg", "a failure")
    check_in(f"{say} 'crash' failed (exit -11): killed by SIGSEGV", error_of(made, "crash"), "a crash")
    check_equal(error_of(made, "leave_at_once", code=3), f"{say} 'leave_at_once' failed (exit 3): ", "an exit")
    check_equal(error_of(made, "leave", code="words"), f"{say} 'leave' failed (exit 1): words", "an exit with words")
    check_in("Failed to deserialise subprocess sandbox result for tool 'make_function': result is a function",
             error_of(made, "make_function"), "what is no value")
    check_in("limits.result_mb", error_of(made, "produce", size=70 << 20), "too large a value")
    check_in("argument 'thing'", error_of(made, "echo", thing=sys.stdout), "what cannot be sent")
    try:
        execute(made, "fail", message="msg")
    except RuntimeError as error:
        check(isinstance(error.__cause__, ToolError) and "in fail" in error.__cause__.traceback, error.__cause__)
    try:
        made.execute("local", lambda: 1, {})
    except RuntimeError as error:
        check_in("a lambda", str(error), "what cannot be sent")
        check(isinstance(error.__cause__, VitroError), error.__cause__)


@test("the config is read by attribute, for each call, and has defaults")
def _():
    config = types.SimpleNamespace()
    made = SubprocessSandboxBackend(config, policy=BEST)
    check_equal(execute(made, "add", a=2, b=3), 5, "without any attribute")
    said = made.get_capabilities()
    check_equal((said["memory_limit_mb"], said["timeout"]), (512, 30.0), "the defaults")
    config.sandbox_timeout = 0.5
    check_in("timed out after 0.5s", error_of(made, "sleep", seconds=9), "a timeout that was set later")
    for none in (None, float("inf")):
        config.sandbox_timeout = none
        check_equal((execute(made, "add", a=2, b=3), made.get_capabilities()["timeout"]), (5, none), "no timeout")
    need_held({"memory": "*"})
    config.sandbox_memory_limit_mb = 64
    check_in("failed (exit -9): ", error_of(made, "take_memory", megabytes=200), "a limit that was set later")
    check_in("limits.memory_mb", error_of(made, "take_memory", megabytes=200), "its key")


@test("working_directory is mounted, for reading, and is the cwd; the policy opens more")
def _():
    need_held({"files": "mountns"})
    with folder(parent="/var/tmp", writable=True) as place:
        write(os.path.join(place, "data.txt"), "known")
        made = backend(working_directory=place)
        check_equal(execute(made, "see_place"), (place, ["data.txt"]), "where it is")
        check_equal(execute(made, "read", path="data.txt"), "known", "a file there")
        check_in("files.write", error_of(made, "write", path="new.txt", text="x"), "writing")
        check_in("files.read", error_of(backend(), "read", path=os.path.join(place, "data.txt")), "not mounted")
        opened = SubprocessSandboxBackend(SandboxConfig(working_directory=place), policy={**BEST, "files": {"write": [place]}})
        check_equal(execute(opened, "write", path="new.txt", text="x"), 1, "writing where it is open")
        check_equal(pathlib.Path(place, "new.txt").read_text(), "x", "the file")
        check_in("files", error_of(backend(working_directory=place + "/none"), "add", a=1, b=2), "a folder that is not there")


@test("values of classes come back where they are named, and as pickles by an explicit word")
def _():
    config = SandboxConfig()
    for options in ({"result_types": [toolbox.Point]}, {"trust_results": True}):
        made = SubprocessSandboxBackend(config, policy=BEST, **options)
        check_equal(made.execute("point", toolbox.make_point, {"x": 1, "y": 2}), toolbox.Point(1, 2), str(options))


@test("get_capabilities: historic values, with the truth beside them; VitroSandboxBackend is true throughout")
def _():
    config = SandboxConfig(sandbox_timeout=5.0, sandbox_memory_limit_mb=256)
    said = SubprocessSandboxBackend(config, policy=BEST).get_capabilities()
    truth = said.pop("vitro")
    check_equal(said, {"backend": "subprocess", "available": True, "isolation_level": "process", "filesystem_isolation": False,
                       "network_isolation": False, "memory_limit_mb": 256, "timeout": 5.0}, "as ever")
    check(truth["available"] and truth["level"] in ("strict", "full", "partial") and truth["processes"], truth)
    said = VitroSandboxBackend(config, policy=BEST).get_capabilities()
    check_equal((said["backend"], said["available"], said["isolation_level"], said["vitro"]), ("vitro", True, truth["level"], truth),
                "the truth")
    check_equal(said["filesystem_isolation"], truth.get("files", "none") != "none", "files")
    check_equal(said["network_isolation"], truth.get("network", "none") != "none", "network")
    config.sandbox_network_access = True
    said = VitroSandboxBackend(config, policy=BEST).get_capabilities()
    check_equal((said["network_isolation"], said["vitro"]["network"]), (False, "host"), "with network")


@test("is_available, truthfully: not where a policy cannot be held, nor without the program")
def _():
    check_equal(backend().is_available(), True, "here")
    refused = VitroSandboxBackend(SandboxConfig(), policy={"limits": {"no_such": 1}})
    check_equal(refused.is_available(), False, "a policy that is none")
    said = refused.get_capabilities()
    check_equal((said["available"], said["isolation_level"], said["filesystem_isolation"]), (False, "none", False), "the truth")
    check_in("no_such", said["vitro"]["error"], "why")
    with folder() as place:
        done = run_script(place, "import compat_tools\nfrom vitro.compat.calute import SubprocessSandboxBackend\n"
                          "made = SubprocessSandboxBackend(None)\nprint(made.is_available())\n"
                          "try:\n    made.execute('add', compat_tools.add, {'a': 1, 'b': 2})\n"
                          "except RuntimeError as error:\n    print(error)\n", env={"VITRO_BINARY": "/nowhere/vitro"})
        check_in("False\nSubprocess sandbox execution of tool 'add'", done.out, "without the program", done)


@test("a supervisor that dies takes the call with it, which says so, and the next call has a new one")
def _():
    made = backend()
    with ThreadPoolExecutor(1) as pool:
        execute(made, "add", a=2, b=3)
        future = pool.submit(error_of, made, "sleep", seconds=20)
        session = shared_sandbox()._session
        wait_until(lambda: session.calls, 10, "the call is under way")
        os.kill(session.connection.process.pid, signal.SIGKILL)
        check_in("Subprocess sandbox execution of tool 'sleep' was lost, and may have run: ", future.result(20), "what it says")
    check_equal(execute(made, "add", a=2, b=3), 5, "the next one")


@test("the registry and the router of the framework, and a registry without it")
def _():
    check_equal(sandbox_backends.backends, {"vitro": VitroSandboxBackend}, "what was registered")
    config = SandboxConfig(mode="strict", sandboxed_tools={"see_variable"}, backend_type="vitro")
    router = SandboxRouter(config, sandbox_backends.get_backend(config.backend_type, config))
    router.backend._given = BEST
    os.environ["COMPAT_SECRET"] = "token"
    try:
        inside = router.execute("see_variable", compat_tools.see_variable, {"name": "COMPAT_SECRET"})
        outside = router.execute("other", compat_tools.see_variable, {"name": "COMPAT_SECRET"})
    finally:
        del os.environ["COMPAT_SECRET"]
    check_equal((inside, outside), (None, "token"), "where they ran")
    check_equal(compat.list_backends(), ["subprocess", "vitro"], "names")
    check_equal(type(compat.get_backend("vitro", config)), VitroSandboxBackend, "by name")
    try:
        compat.get_backend("docker", config)
    except ValueError as error:
        check_in("subprocess, vitro", str(error), "what there is")


@test("a project that only has the framework's name is not imported for its registry")
def _():
    with folder() as place:
        write(os.path.join(place, "xerxes", "__init__.py"), "print('imported')\n")
        write(os.path.join(place, "calute", "__init__.py"), "")
        write(os.path.join(place, "calute", "security", "sandbox_backends", "__init__.py"), "1 / 0\n")
        done = run_script(place, "import vitro.compat.calute\nprint('well')\n", env={"PYTHONPATH": str(pythons.SDK)})
        check_equal(done.out, "well\n", "what was printed", done)


if __name__ == "__main__":
    compat_common.main(pythons.main)
