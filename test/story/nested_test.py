#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vitro in a cell of vitro: it can make no namespaces there, and says what it does instead."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, FLAGS, check, check_equal, check_in, is_bare, isolation, landlock_abi, main, sanitized,
                       skip, test, vitro)

WHERE = os.path.dirname(os.path.realpath(BINARY))


def nested(*args, script=None):
    """Runs vitro with these arguments in a cell; script: what a shell in the cell does around it."""
    if landlock_abi() < 6:
        skip("a cell's own cells stand on Landlock ABI 6")
    if sanitized():
        skip("the sanitizer's own needs are not a cell's")
    words = [BINARY, *args[:1], *(FLAGS if args[:1] == ("run",) else []), *args[1:]]
    command = ["/bin/sh", "-c", script, "sh", *words] if script else words
    call = vitro("run", "--read", WHERE, "--timeout", "20s", "--", *command, mark=False)
    # The inner init is not dumpable: where nobody may look into it for a while, the limit does not hold.
    if is_bare() and call.code == 125 and "see how much the cell uses: Permission denied" in call.err:
        skip("the outer cell's memory cannot be watched while a vitro is inside")
    return call


@test("nested: a cell in a cell runs, and its result names what holds it")
def _():
    call = nested("run", "--json", "--", "/bin/echo", "ran")
    check_equal(call.code, 0, "exit code", call)
    result = json.loads(call.out)
    check_equal(result["stdout"], "ran\n", "stdout", call)
    check_equal(result["isolation"]["processes"], "landlock-scope", "processes", call)
    check_equal(result["isolation"]["files"], "landlock", "files", call)
    check_in("exist can be seen", result["isolation"]["notes"]["processes"], "the note", call)


@test("nested: explain and doctor say why there are no namespaces")
def _():
    call = nested("explain")
    check_equal(call.code, 125 if isolation().refused else 0, "exit code", call)
    check_in("no namespaces can be had here", call.out, "explain", call)
    call = nested("doctor")
    check_in("Cells have no namespaces of their own here", call.out, "doctor", call)


@test("nested: the inner cell sees no file of the outer one's, and none of its processes survives")
def _():
    script = ('echo secret > $HOME/secret; cat $HOME/secret; '
              '"$@" $HOME/secret 2>/dev/null || echo denied; sleep 0.2; ps -e -o comm= | grep -c sleep')
    call = nested("run", "--", "/bin/sh", "-c", 'sleep 100 & cat "$1"', "sh", script=script)
    check_equal(call.out, "secret\ndenied\n0\n", "stdout", call)


@test("nested: what takes namespaces is refused, and says so")
def _():
    call = nested("run", "--net", "loopback", "--", "/bin/true")
    check(call.code == 125, lambda: f"it is refused\n{call}")
    check_in("takes a network namespace", call.err, "the reason", call)


if __name__ == "__main__":
    main()
