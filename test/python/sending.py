# SPDX-License-Identifier: Apache-2.0
"""A call without a sandbox: the host's side here, the cell's in a fresh interpreter that knows nothing but
the message and a few folders. For tests of references."""

import base64
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "sdk" / "python"))

from vitro import _reference  # noqa: E402

CELL = r"""
import sys
sys.path[:0] = RUNTIME
import resolve
del sys.path[0]
sys.path += PATH
import base64, json, pickle
message = json.loads(sys.stdin.readline())
def fail(error):
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
    sys.exit()
try:
    function = resolve.resolve(message["ref"], [base64.b64decode(b) for b in message["buffers"]])
    args, kwargs = pickle.loads(base64.b64decode(message["args"]),
                                buffers=[base64.b64decode(b) for b in message["oob"]])
    value = function(*args, **kwargs)
    if hasattr(value, "__await__"):
        import asyncio
        value = asyncio.run(value)
except Exception as error:
    import traceback
    traceback.print_exc()
    fail(error)
print(json.dumps({"value": repr(value)}))
"""


class Failed(Exception):
    """What the cell said went wrong."""


def text(data):
    return base64.b64encode(bytes(data)).decode()


def pack(function, *args, **kwargs):
    """The message, as JSON."""
    reference = _reference.describe(function)
    oob = []
    data = _reference.dumps(args, kwargs, reference, oob.append)
    return json.dumps({"ref": reference.ref, "buffers": [*map(text, reference.buffers)], "args": text(data),
                       "oob": [text(buffer.raw()) for buffer in oob]})


def execute(message, path=(), python=sys.executable, env=None):
    """What a cell answers to a message: (answer, standard error)."""
    code = CELL.replace("RUNTIME", repr([str(ROOT / "runtimes" / "python")])).replace("PATH", repr([*map(str, path)]))
    done = subprocess.run([python, "-I", "-S", "-B", "-c", code], input=message, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, env=env or {}, timeout=30, check=False, cwd="/")
    if not done.stdout:
        raise AssertionError(f"the cell died of {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), done.stderr


def send(function, *args, path=(), python=sys.executable, env=None, **kwargs):
    """Calls a function in another process and gives the repr of its value. path: folders to import from."""
    answer, _ = execute(pack(function, *args, **kwargs), path or os.environ.get("SENDING_PATH", "").split(), python, env)
    if "error" in answer:
        raise Failed(f"{answer['error']}: {answer['message']}")
    return answer["value"]
