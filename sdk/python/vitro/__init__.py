# SPDX-License-Identifier: Apache-2.0
"""vitro runs every tool call of an AI agent, and every piece of code that a model wrote, in its own sealed, single-use
process.

    import vitro

    with vitro.Sandbox() as sandbox:
        sandbox.eval("sum(range(10))")          # code, as in a notebook
        sandbox.call(my_module.function, 2, 3)  # a function of this program
        sandbox.run(["ls", "-l"]).stdout        # a command

AsyncSandbox is the same for asyncio. Executor is concurrent.futures' interface, and @isolated a decorator. ToolHost and AsyncToolHost are sets of named tools with schemas.
"""

import logging as _logging

from ._isolated import isolated
from ._reference import NotSendable
from ._result import Error, Log, Result, Shown, Usage
from ._served import ServerTool
from .aio import AsyncSandbox
from .errors import (Cancelled, CpuLimit, Crashed, Lost, MemoryLimit, NoResult, Refused, ResultLimit, Timeout, ToolError,
                     Unsupported, VitroError)
from .executor import Executor
from .sandbox import Sandbox
from .toolhost import AsyncToolHost, ToolHost

__all__ = ["Sandbox", "AsyncSandbox", "Executor", "isolated", "ToolHost", "AsyncToolHost", "ServerTool", "Result", "Error", "Log", "Shown",
           "Usage", "VitroError", "ToolError", "Timeout", "CpuLimit", "MemoryLimit", "Crashed", "NoResult", "ResultLimit", "Cancelled",
           "Refused", "Lost", "Unsupported", "NotSendable"]

for _public in (VitroError, ToolError, Timeout, CpuLimit, MemoryLimit, Crashed, NoResult, ResultLimit, Cancelled, Refused, Lost,
                Unsupported, NotSendable):
    _public.__module__ = __name__  # tracebacks name them as programs do


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib import metadata  # which takes 20 ms
        return metadata.version("vitro-sandbox")
    raise AttributeError(f"module 'vitro' has no attribute {name!r}")


_logging.getLogger("vitro").addHandler(_logging.NullHandler())  # what to show is the program's choice
