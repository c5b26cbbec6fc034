# SPDX-License-Identifier: Apache-2.0
"""CodeExecutor: code that a model wrote, run as a script, and what it left."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional

from .. import _codec as codec
from .._paths import Folders
from .._policy import Policy
from .._result import Result
from ._shared import DAY, default_policy, has_begun, lay_over, sealed, working_directory

_OUT = "out/"
_KEEP = _OUT + ".vitro"  # has the folder made
_SHELLS = ("bash", "sh", "shell")

# Runs in the cell. Its value is the exit code; whatever happens in the script is printed, as Python does it.
_RUNNER = '''
def _run(code, language, env, file="<code>"):
    import os, sys
    os.environ.update(env)
    os.unlink("out/.vitro")
    if language != "python":
        import subprocess
        return subprocess.run(["/bin/sh", "-c", code]).returncode
    import linecache, threading, traceback
    linecache.cache[file] = (len(code), None, code.splitlines(True), file)
    module = sys.modules["__main__"] = type(sys)("__main__")
    sys.argv = [file]
    status = 0
    try:
        exec(compile(code, file, "exec", 0, True), vars(module))
    except SystemExit as stop:
        status = stop.code
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != file:
            trace = trace.tb_next
        traceback.print_exception(type(error), error, trace)
        status = 1
    for thread in threading.enumerate():
        if thread is not threading.main_thread() and not thread.daemon:
            thread.join()
    if status is not None and not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    return int(status or 0) & 255
'''


@dataclass
class ExecResult:
    """How a piece of code ended."""

    stdout: str
    stderr: str
    returncode: int
    timed_out: bool = False
    artifacts: Dict[str, bytes] = field(default_factory=dict)


class CodeExecutor:
    """Runs pieces of code that a model wrote, each in a sealed process of its own, as a script.

    policy: what they may use: see vitro.compat.loomflow.
    """

    def __init__(self, *, policy: Policy = None) -> None:
        self._given = policy

    async def run(self, code: str, *, language: str = "python", timeout_s: float = 30.0,
                  files: Optional[Mapping[str, bytes]] = None, env: Optional[Mapping[str, str]] = None) -> Any:
        """Runs code, and gives an ExecResult.

        language   "python", or "bash", "sh" or "shell" for /bin/sh
        files      contents by relative names, for the code's working directory
        env        variables, beside the minimal environment

        What the code leaves in ./out, which is there, are its `artifacts`, by names relative to that, unless they are the
        files that were given. Code that runs too long has `timed_out`, the code -1, and no artifacts; one that is killed has
        the signal's number below 0. Raises ValueError for what is no language or no name of a file, and VitroError where
        nothing could be run.
        """
        if language != "python" and language not in _SHELLS:
            raise ValueError(f"language is \"python\" or \"bash\", not {language!r}")
        if not timeout_s > 0:
            raise ValueError("timeout_s must be positive")
        given = {codec.check_file_name(name): content.encode() if isinstance(content, str) else bytes(content)
                 for name, content in (files or {}).items()}
        text = f"{_RUNNER}\n_run({code!r}, {language!r}, {dict(env or {})!r})"
        policy = self._policy()
        result = await sealed(lambda sandbox, number: sandbox.eval(
            text, files={**given, _KEEP: b""}, collect=[_OUT + "**"], timeout=float(min(timeout_s, DAY)), policy=policy,
            result=True, call_id=number))
        return _outcome(result, given)

    def _policy(self) -> Policy:
        default = default_policy(None)
        cwd = working_directory()
        default["files"] = {"read": [*([cwd] if cwd else []), *Folders(True).grants]}
        return lay_over(self._given, default)


def _outcome(result: Result, given: Mapping[str, bytes]) -> Any:
    if not has_begun(result):
        result.unwrap()
    stderr: List[str] = [result.stderr]
    # The script may have answered in our stead.
    code = result.value if result.ok and type(result.value) is int and -64 <= result.value <= 255 else -1
    if not result.ok and result.error is not None:
        stderr.append(result.error.message + "\n")
        if result.status != "timeout":
            code = result.exit_code if result.exit_code is not None else -(result.signal or 1)
    artifacts = {name[len(_OUT):]: content for name, content in result.files.items()
                 if given.get(name) != content}
    framework = sys.modules.get("loomflow.tools.executor")
    kind = getattr(framework, "ExecResult", ExecResult)
    return kind(stdout=result.stdout, stderr="".join(stderr), returncode=code, timed_out=result.status == "timeout",
                artifacts=artifacts)
