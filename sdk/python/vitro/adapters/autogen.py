# SPDX-License-Identifier: Apache-2.0
"""A code executor for AutoGen (autogen-core 0.4 and later), whose blocks each run in a cell of their own.

    from vitro.adapters.autogen import CodeExecutor

    async with CodeExecutor(timeout=10) as executor:
        agent = CodeExecutorAgent("coder", code_executor=executor)

It does what autogen_ext's LocalCommandLineCodeExecutor does: blocks run one after the other until one fails; `output` is all
that they printed; exit codes are 124 for a timeout and 125 where it was cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import subprocess
import sys
import tempfile
import weakref
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from .._base import Path
from .._binary import find_binary
from .._policy import Policy
from .._result import Result
from ..aio import AsyncSandbox
from ..errors import VitroError

__all__ = ["CodeExecutor", "CodeResult"]

_SHELLS = {"bash": "bash", "sh": "sh", "shell": "sh"}
_PYTHONS = ("python", "py", "python3")
_TIMEOUT, _CANCELLED = 124, 125
_REMOVAL_SECONDS = 60


@dataclass
class CodeResult:
    """How blocks ended; autogen_core's own, where that is imported."""

    exit_code: int
    output: str


class CodeExecutor:
    """An autogen_core.code_executor.CodeExecutor.

    timeout     seconds for each block
    work_dir    a folder where blocks work, which they may write to, and which is there afterwards. Without it they have a
                temporary one, until the executor is stopped.
    policy      what blocks may use apart from that: see Sandbox

    Python blocks are fresh programs, as in AutoGen's command-line executors: no variable is kept for the next one.
    """

    def __init__(self, *, timeout: float = 60, work_dir: Optional[Path] = None,
                 policy: Policy = None) -> None:
        if timeout <= 0:
            raise ValueError("timeout must be positive")
        self._timeout = timeout
        self._policy, self._work_dir = policy, work_dir
        self._sandbox: Optional[AsyncSandbox] = None
        self._remove: Optional["weakref.finalize[Any, CodeExecutor]"] = None
        real = sys.modules.get("autogen_core.code_executor")
        if real is not None:
            real.CodeExecutor.register(type(self))

    @property
    def timeout(self) -> float:
        """Seconds for each block."""
        return self._timeout

    async def execute_code_blocks(self, code_blocks: Sequence[Any], cancellation_token: Any) -> Any:
        """Runs blocks, each with `code` and `language`, until one fails."""
        output, code = "", 0
        for block in code_blocks:
            code, said = await self._execute(block.code, block.language.lower(), cancellation_token)
            output += said
            if code:
                break
        real = sys.modules.get("autogen_core.code_executor")
        return CodeResult(code, output) if real is None else real.CodeResult(exit_code=code, output=output)

    async def start(self) -> None:
        """Makes it ready. The first block does, too."""
        if self._sandbox is None:
            users: List[AsyncSandbox] = []
            self._sandbox = AsyncSandbox(_with_folder(self._policy, self._folder(users)))
            users.append(self._sandbox)

    def _folder(self, users: List[AsyncSandbox]) -> str:
        if self._work_dir is not None:
            return os.path.abspath(self._work_dir)
        made = tempfile.mkdtemp(prefix="vitro-autogen-")
        self._remove = weakref.finalize(self, _remove_folder, made, users)
        return made

    async def stop(self) -> None:
        """Ends all that runs."""
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.close()
        if self._remove is not None:
            await asyncio.get_running_loop().run_in_executor(None, self._remove)

    async def restart(self) -> None:
        """Ends all that runs, and empties a temporary folder."""
        await self.stop()
        await self.start()

    async def __aenter__(self) -> "CodeExecutor":
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _execute(self, code: str, language: str, token: Any) -> Tuple[int, str]:
        if language not in _PYTHONS and language not in _SHELLS:
            return 1, f"\nunknown language {language}"
        await self.start()
        assert self._sandbox is not None
        if language in _PYTHONS:
            # What the last expression is, nobody asks: it may be anything.
            call = self._sandbox.eval(f"{code}\nNone", timeout=self._timeout, result=True)
        else:
            call = self._sandbox.run([_SHELLS[language], "-c", code], timeout=self._timeout, result=True)
        task = asyncio.ensure_future(call)
        if token is not None:
            token.link_future(task)
        try:
            return _read(await task)
        except asyncio.CancelledError:
            if token is None or not token.is_cancelled():
                raise
            return _CANCELLED, "\nCancelled"
        except VitroError as error:
            return 1, f"\n{type(error).__name__}: {error}"


def _read(result: Result) -> Tuple[int, str]:
    """The exit code and the output, as programs have them."""
    said = result.stderr + result.stdout
    if result.ok:
        return 0, said
    if result.status == "timeout":
        return _TIMEOUT, said + "\nTimeout"
    error = result.error
    assert error is not None
    if error.type == "SystemExit":
        return _exit_code(error.message, said)
    if error.traceback:
        said += error.traceback
    elif not (result.status == "error" and result.exit_code):  # a program that exits has said what it has to say
        said += f"\n{error.type}: {error.message}"
    return result.exit_code or 1, said


def _exit_code(word: str, said: str) -> Tuple[int, str]:
    """What sys.exit() with that argument makes of a program."""
    if word in ("", "None"):
        return 0, said
    return (int(word) & 255, said) if re.fullmatch(r"-?[0-9]{1,9}", word) else (1, f"{said}{word}\n")


def _with_folder(policy: Policy, folder: str) -> Mapping[str, Any]:
    """The policy, with that folder to work in."""
    made: Dict[str, Any] = {"extends": policy} if isinstance(policy, (str, os.PathLike)) else dict(policy or {})
    files = dict(made.get("files", {}))
    write: List[Any] = [*files.get("write", ()), folder]
    return {**made, "files": {**files, "write": write, "cwd": folder}}


def _remove_folder(folder: str, users: List[AsyncSandbox]) -> None:
    """Of what uses it nothing may run any more. What blocks left there may nest deeper than a program can follow, be closed,
    and lead elsewhere: vitro's own program removes it, by descriptors, through no link, and nothing outside of it."""
    for sandbox in users:
        sandbox._let_go()
    with contextlib.suppress(OSError):
        os.rmdir(folder)
        return
    try:
        subprocess.run([find_binary(), "discard", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.PIPE, timeout=_REMOVAL_SECONDS, check=True)
    except (OSError, VitroError, subprocess.SubprocessError) as error:
        said = str(getattr(error, "stderr", None) or b"", "utf-8", "replace").strip()
        logging.getLogger("vitro").warning("an executor's folder stays: %s", said or error)
