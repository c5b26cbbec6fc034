#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tally.py POINTS: writes what came of the system calls that failed to docs/evidence.md. POINTS has a line for each
(inject_test.py); of several for the same call the last counts. A way that has none there keeps the row that the page has."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import evidence  # noqa: E402

ROLES = ("supervisor", "helper", "spawner", "zygote", "init", "occupant")
HARMLESS, TOLD, REFUSED = "harmless", "failed, and told", "refused"
OUTCOMES = {"ok": HARMLESS, "refused": REFUSED, "WRONG": "wrong"}


HEAD = ("way", *ROLES, "all", HARMLESS, TOLD, REFUSED, "wrong")
ALL = "**all**"


def tally(path):
    """The row of each way that has points there."""
    points, made = {}, {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        point = json.loads(line)
        place = point["way"], point["role"]
        points[(*place, point["call"], point["number"])] = OUTCOMES.get(point["status"], TOLD)
        made[place] = max(point["of"], made.get(place, 0))
    counts = collections.Counter()
    for (way, role, _, _), outcome in points.items():
        counts.update([(way, role), (way, "all"), (way, outcome)])

    def cell(way, name):
        got, of = counts[way, name], made.get((way, name), 0)
        return f"{got} of {of}" if got < of else "" if name in ROLES and not of else str(got)

    return {way: (way, *(cell(way, name) for name in HEAD[1:])) for way, _ in made}


def main():
    rows = {row[0]: row for row in evidence.rows("inject") if len(row) == len(HEAD) and row[0] not in (HEAD[0], ALL)}
    rows |= tally(sys.argv[1])
    sums = [sum(int(row[column].split(" ")[0] or 0) for row in rows.values()) for column in range(1, len(HEAD))]
    evidence.write("inject", evidence.table(HEAD, [*rows.values(), (ALL, *sums)]))


if __name__ == "__main__":
    main()
