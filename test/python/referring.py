# SPDX-License-Identifier: Apache-2.0
"""What tests of references share: how sending is refused, how a cell fails, modules and programs for a while."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import sending  # noqa: E402
from sending import send  # noqa: E402
from vitro._reference import NotSendable  # noqa: E402
from vitrotest import check_equal, folder, run, write  # noqa: E402


def refused(function, *args, **kwargs):
    """The sentence with which sending is refused."""
    try:
        sending.pack(function, *args, **kwargs)
    except NotSendable as error:
        return str(error)
    raise AssertionError(f"{function} was sent")


def cell_fails(function, *args, **options):
    """The sentence with which the cell fails."""
    try:
        value = send(function, *args, **options)
    except sending.Failed as error:
        return str(error)
    raise AssertionError(f"the cell gave {value}")


class Module:
    """A module of a test's own, in a folder that is on sys.path, and gone afterwards."""

    def __init__(self, source, name="sent_module"):
        self.source, self.name = source, name

    def __enter__(self):
        self.context = folder()
        self.path = self.context.__enter__()
        write(pathlib.Path(self.path, *self.name.split(".")).with_suffix(".py"), self.source)
        sys.path.insert(0, self.path)
        __import__(self.name)
        return sys.modules[self.name]

    def __exit__(self, *error):
        sys.path.remove(self.path)
        del sys.modules[self.name]
        sys.path_importer_cache.pop(self.path, None)
        self.context.__exit__(*error)


def program(source, *args, stdin=None, path=(), name="script.py", python=sys.executable, cwd=None):
    """Runs a host program that has send(); what it printed, as lines."""
    env = {**os.environ, "PYTHONPATH": f"{HERE}", "SENDING_PATH": " ".join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    with folder() as place:
        args = args or (write(pathlib.Path(place) / name, source),)
        call = run([python, *args], cwd=cwd or place, env=env, **({} if stdin is None else {"stdin": stdin}))
    check_equal(call.code, 0, "exit", call)
    return call.out.splitlines()
