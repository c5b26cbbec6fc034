# SPDX-License-Identifier: Apache-2.0
"""A call of a Python function, in one way, for each line: pythons.py WAY [SIZE [AT_ONCE]]; or the isolation check in that way,
once: pythons.py WAY --probe PORT SECRET

A call gives SIZE bytes back, or for 0 the sum of two numbers; AT_ONCE of them are under way at once. Processes of others import
this file anew for each call, so it has little to import itself."""

import os
import pathlib
import sys


def find_modules():
    here = pathlib.Path(__file__).resolve().parent
    root = here.parents[1]
    tests = root / "test" / "python"
    sys.path[:0] = [str(here), str(tests), str(tests / "standins"), str(root / "sdk" / "python")]
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:4])


def main(way, size=0, at_once=1):
    find_modules()
    import mate
    import ways
    from work import add, produce

    with ways.WAYS[way](at_once) as (call, submit):
        def once():
            if size:
                assert len(call(produce, size)) == size
            else:
                assert call(add, 2, 3) == 5

        def many():
            for future in [submit(add, 2, 3) for _ in range(at_once)]:
                assert future.result() == 5
        mate.serve(once if at_once == 1 else many)


def check(way, port, secret):
    find_modules()
    import ways
    from probe import probe

    with ways.WAYS[way](1) as (call, _):
        print("holes %d scratch %d" % tuple(call(probe, port, secret)))


if __name__ == "__main__":
    if sys.argv[2:3] == ["--probe"]:
        check(sys.argv[1], int(sys.argv[3]), sys.argv[4])
    else:
        main(sys.argv[1], *(int(word) for word in sys.argv[2:]))
