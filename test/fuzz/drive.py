# SPDX-License-Identifier: Apache-2.0
"""What runs a target in Python: replayed as a test by test/python/fuzz_test.py, or started with libFuzzer's arguments under
atheris. The package is that of this source."""

import contextlib
import os
import sys
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))


def require(condition, *what):
    """Whatever the input, this holds. Not an assertion, which -O leaves out."""
    if not condition:
        raise SystemError(repr(what)[:1000])


def read_folder(folder):
    for name in sorted(os.listdir(folder)):
        if not name.startswith("."):
            with open(os.path.join(folder, name), "rb") as file:
                yield name, file.read()


def replay(targets):
    """By folders, as a TAP test."""
    inputs = [(target, name, data) for folder, target in targets.items() for name, data in read_folder(folder)]
    print(f"1..{len(inputs)}")
    failed = len(inputs) < len(targets)  # an empty corpus would pass with nothing run
    for number, (target, name, data) in enumerate(inputs, 1):
        try:
            target(data)
        except Exception:
            failed = True
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {number} - {name}")
        else:
            print(f"ok {number} - {name}")
    return int(failed)


def is_fuzzing():
    return os.path.basename(sys.argv[0]).endswith("_fuzz.py")


def main(target):
    import atheris
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


def instrument():
    """Around imports of what is to be covered; nothing where it is replayed."""
    if not is_fuzzing():
        return contextlib.nullcontext()
    import atheris
    return atheris.instrument_imports(include=["vitro"])
