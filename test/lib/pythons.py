# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python package, under the python3 of the system, and the oldest and newest of the machine that it is for.

A test file ends with main() of this module in place of vitrotest's. VITRO_TEST_PYTHON=1 is for the interpreter that
it is started with alone, VITRO_TEST_PYTHON=all for every one there is: make test-pythons.
"""

import glob
import os
import pathlib
import re
import subprocess
import sys
import uuid

import vitrotest

ROOT = vitrotest.ROOT
SDK = ROOT / "sdk" / "python"
sys.path.insert(0, str(SDK))
os.environ["VITRO_BINARY"] = vitrotest.BINARY
FRAMEWORKS = os.environ.get("VITRO_TEST_FRAMEWORKS", str(ROOT / "build" / "frameworks"))


def interpreters():
    """version → path of each CPython from 3.8 on, the system's first."""
    found = {}
    places = ["/usr/bin/python3", sys.executable, "/usr/bin/python3.[0-9]*", "/usr/local/bin/python3.[0-9]*",
              os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")]
    for path in [path for place in places for path in [*sorted(glob.glob(place))]]:
        asked = subprocess.run([path, "-c", "import sys; print(sys.implementation.name, *sys.version_info[:3])"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout.decode().split()
        if asked and asked[0] == "cpython" and (3, 8) <= tuple(map(int, asked[1:3])):
            found.setdefault(".".join(asked[1:]), path)
    return found


def are_frameworks_for_this():
    """Whether the agent frameworks were fetched for this python3."""
    try:
        with open(os.path.join(FRAMEWORKS, "python")) as file:
            return file.read().strip() == "%d.%d" % sys.version_info[:2]
    except OSError:
        return os.path.realpath(sys.executable) == os.path.realpath("/usr/bin/python3")


def has_framework(package):
    return are_frameworks_for_this() and os.access(os.path.join(FRAMEWORKS, package), os.R_OK)


def see_frameworks():
    """From here on they can be imported, numpy and pydantic among them, where they are for this python3."""
    if are_frameworks_for_this() and FRAMEWORKS not in sys.path:
        sys.path.append(FRAMEWORKS)


def closed_folder(path, is_bare=False):
    """A folder on the way to an interpreter that is closed to cells, where they are bare and have users of their own; or None."""
    if os.geteuid() == 0 and (is_bare or vitrotest.is_bare()):
        for folder in reversed(pathlib.Path(path).resolve().parents):
            if not folder.stat().st_mode & 0o001:
                return folder
    return None


def new_mark():
    """A time to sleep that no other process has among its words."""
    return f"{uuid.uuid4().int % 10**6 + 10**6}.5"


def processes_with(mark):
    """Processes of the machine that have the mark among their words."""
    return [int(name) for name in os.listdir("/proc")
            if name.isdigit() and mark.encode() in vitrotest.proc(f"{name}/cmdline").split(b"\0")]


def relay(version, path, args):
    """Runs the tests under one interpreter, and says what they say, with the version. Its exit code."""
    closed = closed_folder(path)
    if closed:
        print("1..1", f"ok 1 - {version} # SKIP cells here have users of their own, for whom '{closed}' is closed", sep="\n", flush=True)
        return 0
    process = subprocess.Popen([path, *args], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                               env={**os.environ, "VITRO_TEST_PYTHON": "1"})
    for line in process.stdout:
        text = line.decode(errors="replace").rstrip("\n")
        print(re.sub(r"^((?:not )?ok \d+ - )", rf"\g<1>{version}: ", text), flush=True)
    return process.wait()


def chosen(ages):
    """Those of these ages, or all."""
    found = interpreters()
    if os.environ.get("VITRO_TEST_PYTHON") == "all":
        return found
    by_age = sorted(found, key=lambda version: [int(part) for part in version.split(".")])
    known = {"system": next(iter(found)), "oldest": by_age[0], "newest": by_age[-1]}
    wanted = {known[age] for age in ages}
    return {version: path for version, path in found.items() if version in wanted}


def main(*ages):
    """Runs the tests that were registered, under interpreters of these ages: those that take long need not have all
    three, between which there is little that only one does."""
    # What a sanitized build adds is the same for all of them.
    if os.environ.get("VITRO_TEST_PYTHON") == "1" or vitrotest.sanitized():
        vitrotest.main()
    codes = [relay(version, path, [str(pathlib.Path(sys.argv[0]).resolve()), *sys.argv[1:]])
             for version, path in chosen(ages or ("system", "oldest", "newest")).items()]
    sys.exit(max(codes))
