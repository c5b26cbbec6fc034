# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/evidence.md that tests write: what is between the marks of a name."""

import pathlib
import re

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "evidence.md"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def marks(name):
    return f"<!-- {name}: written by its test -->\n", f"<!-- {name}: end -->\n"


def rows(name):
    """The rows of the table that is there, as table() takes them."""
    begin, end = marks(name)
    lines = PAGE.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0].splitlines()
    return [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|") and "---" not in line]


def write(name, text):
    begin, end = marks(name)
    page = PAGE.read_text(encoding="utf-8")
    page, count = re.subn(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}{text.rstrip()}\n{end}", page, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{PAGE} has no place for '{name}': {begin.strip()} and {end.strip()}")
    PAGE.write_text(page, encoding="utf-8")
