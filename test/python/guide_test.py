#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every example of docs/guide-python.md, of the pages about drop-ins, and of the README's about Python, runs."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import pythons
from vitrotest import check, check_equal, folder, is_bare, isolation, run, skip, test, write


def register(page, number, example):
    @test(f"{page}: example {number}")
    def _():
        if isolation().refused:
            skip("the default policy is refused here")
        if os.geteuid() == 0 and is_bare() and re.search("TemporaryDirectory|mkdtemp|CodeExecutor", example):
            skip("temporary folders of root's are closed to the users of cells here")
        with folder() as place:
            path = write(os.path.join(place, "example.py"), example)
            done = run([sys.executable, path], cwd=place, env={**os.environ, "PYTHONPATH": str(pythons.SDK)}, timeout=55)
            check_equal((done.code, done.err), (0, ""), "it runs", done)


def examples():
    found = 0
    for page in ("docs/guide-python.md", "docs/migrate-loomflow.md", "docs/migrate-calute.md", "README.md",
                 "sdk/python/README.md"):
        path = pythons.ROOT / page
        if path.exists():
            for number, example in enumerate(re.findall(r"^```python\n(.*?)^```", path.read_text(), re.M | re.S), 1):
                register(page, number, example)
                found += 1
    return found


FOUND = examples()


@test("there are examples")
def _():
    if not (pythons.ROOT / "docs" / "guide-python.md").exists():
        skip("the page is not here")
    check(FOUND > 9, FOUND)


pythons.main()
