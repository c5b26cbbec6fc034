#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every example in Python of the documentation runs."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
import pages
import pythons
from vitrotest import check, check_equal, folder, is_bare, isolation, run, skip, test, write


def register(page, number, example):
    @test(f"{page}: example {number}")
    def _():
        if isolation().refused:
            skip("the default policy is refused here")
        if os.geteuid() == 0 and is_bare() and re.search("TemporaryDirectory|mkdtemp|CodeExecutor", example):
            skip("temporary folders of root's are closed to the users of cells here")
        if "langchain" in example and not pythons.has_framework("langchain_core"):
            skip("langchain_core is not in build/frameworks, or not for this python3; tools/setup test fetches it")
        with folder() as place:
            path = write(os.path.join(place, "example.py"), example)
            done = run([sys.executable, path], cwd=place, env={**os.environ, "PYTHONPATH": f"{pythons.SDK}:{pythons.FRAMEWORKS}"}, timeout=55)
            check_equal((done.code, done.err), (0, ""), "it runs", done)


def examples():
    found = 0
    for page in pages.names():
        for number, block in enumerate((block for block in pages.blocks(page) if block.language == "python"), 1):
            register(page, number, block.text)
            found += 1
    return found


FOUND = examples()


@test("there are examples")
def _():
    check(FOUND > 20, FOUND)


pythons.main("system")
