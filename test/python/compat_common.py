# SPDX-License-Identifier: Apache-2.0
"""What tests of the drop-ins have in common."""

import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
STANDINS = os.path.join(HERE, "standins")
sys.path[:0] = [HERE, STANDINS, os.path.join(HERE, "..", "lib")]
import pythons  # noqa: E402
from pythons import new_mark, processes_with  # noqa: E402, F401
from vitrotest import Failed, check, run, write  # noqa: E402

BEST = {"require": "best-effort"}


def main(run_tests):
    """Runs the tests, unless cells here cannot have this interpreter."""
    if os.environ.get("VITRO_TEST_PYTHON") == "1" or run_tests is not pythons.main:
        import vitro
        with vitro.Sandbox(BEST) as sandbox:
            said = sandbox.call(len, "four", result=True)
        if said.status == "refused":
            print(f"1..0 # SKIP {said.error.message}")
            return
    run_tests()


def check_survives(mark):
    """A process with the mark goes on without end: the control of a test that none does."""
    found = processes_with(mark)
    check(found, "the control: nothing was left behind")
    time.sleep(0.2)
    check(processes_with(mark), "the control: what was left behind ended by itself")
    for pid in found:
        os.kill(pid, signal.SIGKILL)


def check_gone(mark, seconds=5):
    """No process with the mark is there any more."""
    until = time.monotonic() + seconds
    while processes_with(mark):
        if time.monotonic() > until:
            raise Failed(f"processes {processes_with(mark)} are left")
        time.sleep(0.02)


def run_script(place, text, python=None, **options):
    """Runs a program of its own, with all that tests import."""
    path = write(os.path.join(place, "script.py"), text)
    words = [python or sys.executable, path]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([HERE, STANDINS, str(pythons.SDK)])}
    return run(words, cwd=place, env={**env, **options.pop("env", {})}, timeout=55, **options)
