#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The drop-ins under the real frameworks, from the venv that tools/setup makes: an agent of theirs, whose model is a script, has
its tools called through vitro. A framework that is not there is a skip."""

import glob
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
import compat_common
from compat_common import BEST, pythons, run_script
from vitrotest import ROOT, check, check_equal, check_in, folder, main, skip, test, write

FRAMEWORKS = os.environ.get("VITRO_TEST_REPLACED", str(ROOT / "build" / "replaced"))
PYTHON = os.path.join(FRAMEWORKS, "bin", "python")

TOOLS = """
from {package} import tool

@tool
def add(a: int, b: int) -> int:
    '''Adds two numbers.'''
    return a + b

@tool
async def produce(size: int) -> str:
    '''A long text.'''
    return "x" * size

@tool
def secret() -> str:
    '''What the environment has.'''
    import os
    return os.environ.get("COMPAT_SECRET", "nothing")
"""

AGENT = """
import asyncio, json
from {package} import Agent
from {package}.core.errors import ConfigError
from {package}.core.types import ToolCall, ToolResult
from {package}.model.scripted import ScriptedModel, ScriptedTurn
from {package}.security.sandbox import SubprocessSandbox as Theirs
from {package}.tools.registry import InProcessToolHost
from vitro.compat.loomflow import SubprocessSandbox
import app_tools

host = InProcessToolHost([app_tools.add, app_tools.produce, app_tools.secret])
said = {{}}

async def story():
    sandbox = SubprocessSandbox(host, timeout_seconds=20, policy={policy!r})
    for name, args in (("add", {{"a": 2, "b": 3}}), ("produce", {{"size": 300000}}), ("secret", {{}}), ("nope", {{}})):
        result = await sandbox.call(name, args, call_id="c1")
        assert type(result) is ToolResult and result.call_id == "c1", result
        said[name] = result.error or (result.output if name != "produce" else len(result.output))
    said["tools"] = [one.name for one in await sandbox.list_tools()]
    said["events"] = [event async for event in sandbox.watch()]
    calls = [ToolCall(tool="add", args={{"a": 20, "b": 22}}), ToolCall(tool="secret", args={{}})]
    model = ScriptedModel([ScriptedTurn(tool_calls=calls), ScriptedTurn(text="done")])
    answer = await Agent("You add.", model=model, tools=sandbox).run("what is 20 + 22?")
    said["agent"] = str(getattr(answer, "output", answer))
    said["heard"] = model.remaining
    said["control"] = (await Theirs(host, timeout_seconds=4).call("produce", {{"size": 300000}})).error

if __name__ == "__main__":
    asyncio.run(story())
    try:
        SubprocessSandbox(SubprocessSandbox(host))
    except ConfigError as error:
        said["wrapped"] = str(error)
    print(json.dumps(said))
"""


def need(package):
    if not os.access(PYTHON, os.X_OK):
        skip(f"{FRAMEWORKS} is not there, or not for this user: tools/setup test")
    done = subprocess.run([PYTHON, "-c", f"import {package}"], stderr=subprocess.PIPE, check=False)
    if done.returncode:
        skip(f"{package} cannot be imported: {done.stderr.decode().strip().splitlines()[-1]}")


def check_agent(package):
    need(package)
    with folder() as place:
        write(os.path.join(place, "app_tools.py"), TOOLS.format(package=package))
        done = run_script(place, AGENT.format(package=package, policy=BEST), PYTHON,
                          env={"COMPAT_SECRET": "token", "PYTHONPATH": str(pythons.SDK)})
    check_equal(done.code, 0, "it runs", done)
    said = json.loads(done.out.splitlines()[-1])
    check_equal([said[name] for name in ("add", "produce", "secret", "nope", "tools", "events")],
                [5, 300000, "nothing", "unknown tool: nope", ["add", "produce", "secret"], []], "calls", done)
    check_equal((said["agent"], said["heard"]), ("done", 0), "the agent", done)
    check_in("wraps InProcessToolHost only", said["wrapped"], "another host")
    check(said["control"], "the control: the framework's own sandbox gives a long text")


@test("loomflow: its host, its @tool, its results, its agent")
def _():
    check_agent("loomflow")


@test("jeevesagent: its host, its @tool, its results, its agent")
def _():
    check_agent("jeevesagent")


EXECUTOR = """
import asyncio
from loomflow.tools.executor import CodeExecutor as Protocol, ExecResult
from vitro.compat.loomflow import CodeExecutor

made = CodeExecutor(policy=%r)
done = asyncio.run(made.run("open('out/x', 'w').write('y')\\nprint(6 * 7)"))
print(isinstance(made, Protocol), type(done) is ExecResult, done.stdout.strip(), done.artifacts)
"""


@test("loomflow: CodeExecutor is one of its own, and so is what it gives")
def _():
    need("loomflow")
    with folder() as place:
        done = run_script(place, EXECUTOR % BEST, PYTHON, env={"PYTHONPATH": str(pythons.SDK)})
    check_equal(done.out, "True True 42 {'x': b'y'}\n", "what it says", done)


TRIO = """
import sys
import trio
from compat_common import check_gone, new_mark, processes_with
from loomflow.tools.registry import InProcessToolHost
from vitro.compat.loomflow import CodeExecutor, SubprocessSandbox
import compat_tools

async def story():
    sandbox = SubprocessSandbox(InProcessToolHost([compat_tools.add, compat_tools.run_sleep]), policy=%r)
    result = await sandbox.call("add", {"a": 2, "b": 3}, call_id="c1")
    mark = new_mark()
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: sandbox.call("run_sleep", {"mark": mark}))
            while not processes_with(mark):
                await trio.sleep(0.02)
            scope.cancel()
    check_gone(mark)
    print(result.output, result.call_id, scope.cancelled_caught, (await CodeExecutor(policy=%r).run("print(7)")).stdout.strip())

trio.run(story)
"""


@test("loomflow: calls in a program of trio's, which are cancelled as others are")
def _():
    need("loomflow")
    need("trio")
    with folder() as place:
        done = run_script(place, TRIO % (BEST, BEST), PYTHON,
                          env={"PYTHONPATH": os.pathsep.join([compat_common.HERE, str(pythons.SDK)])})
    check_equal(done.out, "5 c1 True 7\n", "what it says", done)


ON_PYPI = {"calute": "one without sandbox backends", "xerxes": "another project of that name"}
BACKEND = """
from {package}.security.sandbox import SandboxConfig, SandboxRouter
from {package}.security.sandbox_backends import get_backend
import math
import vitro.compat.calute

backend = get_backend("vitro", SandboxConfig())
print(SandboxRouter(SandboxConfig(), backend).execute_in_sandbox("gcd", math.gcd, {{}}))
"""


def check_backend(package):
    found = glob.glob(os.path.join(FRAMEWORKS, "lib", "python3*", "site-packages", f"{package}-*.dist-info"))
    if not found:
        skip(f"{package} is not in {FRAMEWORKS}; on PyPI there is {ON_PYPI[package]}")
    place, name = os.path.split(found[0])
    if not os.path.isdir(os.path.join(place, package, "security", "sandbox_backends")):
        skip(f"{name[:-len('.dist-info')]} of PyPI has no sandbox backends")
    need(package)
    with folder() as place:
        done = run_script(place, BACKEND.format(package=package), PYTHON, env={"PYTHONPATH": str(pythons.SDK)})
    check_equal(done.out, "0\n", "what it gives", done)


@test("calute: its registry and its router")
def _():
    check_backend("calute")


@test("xerxes: its registry and its router")
def _():
    check_backend("xerxes")


if __name__ == "__main__":
    compat_common.main(main)
