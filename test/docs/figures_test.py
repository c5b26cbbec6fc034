#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md and the table in README.md say what was measured: they are what bench/all/page.py makes of the figures."""

import json
import os
import pathlib
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", part) for part in ("lib", "../bench/all")]
import page
from vitrotest import ROOT, check, check_equal, check_in, main, test

DOCS = ROOT / "docs"


def figures():
    return json.loads((DOCS / page.FIGURES).read_text(encoding="utf-8"))


@test("the page and its pictures are made of the figures beside it")
def _():
    with tempfile.TemporaryDirectory() as out:
        page.write(figures(), pathlib.Path(out))
        made = sorted(path.relative_to(out) for path in pathlib.Path(out).rglob("*") if path.is_file())
        check(len(made) > 5, f"only {made} are made")
        for name in made:
            check_equal((DOCS / name).read_text(encoding="utf-8"), (pathlib.Path(out) / name).read_text(encoding="utf-8"), str(name))


@test("the table in README.md is made of them, too")
def _():
    check_in(page.brief(figures()), (ROOT / "README.md").read_text(encoding="utf-8"), "README.md")


@test("the figures are of a whole run, in which vitro isolated, and every bar that is missed has a reason")
def _():
    told = figures()
    check_equal(told["quick"], False, "quick")
    check_equal(told["failed"], [], "failed")
    check_equal({figure["name"] for figure in told["contests"]}, {"commands", "python", "node"}, "contests")
    ours = [row for figure in told["contests"] for row in figure["rows"] if page.is_ours(row)]
    check(len(ours) >= 5 and not any(row["holes"] for row in ours), "vitro is not closed in the figures")
    check("Not known." not in page.render(told), "a bar is missed, and no reason is given")


main()
