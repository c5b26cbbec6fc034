# SPDX-License-Identifier: Apache-2.0
"""A tool call by an interpreter that is started for it: what SubprocessSandboxBackend of calute does, and of xerxes.

The call goes in by standard input, and what becomes of it comes out by standard output: as a pickle, or as JSON.
"""

import base64
import json
import os
import pickle
import subprocess
import sys

CHILD = """
import base64, os, sys
import FORM as form, pickle
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (int(os.environ["CALL_MEMORY"]),) * 2)
except (ImportError, OSError, ValueError):
    pass
function, arguments = pickle.loads(base64.b64decode(sys.stdin.read()))
try:
    told = form.dumps(["value", function(**arguments)]OPTIONS)
except Exception as error:
    told = form.dumps([type(error).__name__, str(error)])
sys.stdout.write(base64.b64encode(told if type(told) is bytes else told.encode()).decode())
"""


class SubprocessSandboxBackend:
    """Takes a config with sandbox_timeout, sandbox_memory_limit_mb and working_directory. form: pickle or json."""

    def __init__(self, sandbox_config, form="pickle"):
        self.config, self.form = sandbox_config, {"pickle": pickle, "json": json}[form]
        self.child = CHILD.replace("FORM", form).replace("OPTIONS", ", default=repr" if form == "json" else "")

    def execute(self, tool_name, func, arguments):
        say = f"Subprocess sandbox execution of tool {tool_name!r}"
        try:
            done = subprocess.run([sys.executable, "-c", self.child], input=base64.b64encode(pickle.dumps((func, arguments))),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=self.config.sandbox_timeout,
                                  cwd=self.config.working_directory, check=False,
                                  env={**os.environ, "CALL_MEMORY": str(self.config.sandbox_memory_limit_mb << 20)})
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{say} timed out after {self.config.sandbox_timeout}s") from None
        if done.returncode:
            raise RuntimeError(f"{say} failed (exit {done.returncode}): {done.stderr.decode().strip()}")
        try:
            kind, told = self.form.loads(base64.b64decode(done.stdout))
        except Exception as error:
            raise RuntimeError(f"Failed to deserialise subprocess sandbox result for tool {tool_name!r}: {error}") from error
        if kind != "value":
            raise RuntimeError(f"Tool {tool_name!r} raised {kind} inside subprocess sandbox: {told}")
        return told
