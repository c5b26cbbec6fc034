# SPDX-License-Identifier: Apache-2.0
"""What a checker of types makes of the package: mypy reads this, nobody runs it. An ignored error must be one."""

import vitro


def half(number: int) -> float:
    return number / 2


async def later(text: str) -> str:
    return text


def use(sandbox: vitro.Sandbox, flag: bool) -> None:
    number: float = sandbox.call(half, 3)
    text: str = sandbox.call(later, "x", timeout=5)
    whole: vitro.Result = sandbox.call(half, 3, result=True)
    wrong: str = sandbox.call(half, 3)  # type: ignore[assignment]
    sandbox.call(half, 3, timeout="5")  # type: ignore[call-overload]
    value: int = sandbox.eval("1")
    sandbox.eval("1", result=True).nonsense  # type: ignore[attr-defined]
    sandbox.eval("1", result=flag)
    sandbox.call(half, 3, result=flag)
    sandbox.call_tool("x", result=True).nonsense  # type: ignore[attr-defined]
    sandbox.submit(half, 3, timeout="5")  # type: ignore[arg-type]
    sandbox.submit_eval("1", nonsense=1)  # type: ignore[call-arg]
    sandbox.submit_run(["true"], nonsense=1)  # type: ignore[call-arg]
    print(number, text, whole, wrong, value)


async def use_async(sandbox: vitro.AsyncSandbox) -> None:
    number: float = await sandbox.call(half, 3)
    text: str = await sandbox.call(later, "x", timeout=5)
    whole: vitro.Result = await sandbox.call(half, 3, result=True)
    (await sandbox.eval("1", result=True)).nonsense  # type: ignore[attr-defined]
    (await sandbox.call_tool("x", result=True)).nonsense  # type: ignore[attr-defined]
    print(number, text, whole)


host = vitro.ToolHost(policy="strict", timeout=5, preload=["json"])
vitro.ToolHost(nonsense=1)  # type: ignore[call-arg]
vitro.AsyncToolHost(preload=5)  # type: ignore[arg-type]
host.register(["wc", "-l", "{files...}"], name="count")


@host.register
def add(left: int, right: int) -> int:
    return left + right


@host.register(name="math:sub", timeout=5)
def sub(left: int, right: int) -> int:
    return left - right


add(1, "2")  # type: ignore[arg-type]
sub(1, "2")  # type: ignore[arg-type]
