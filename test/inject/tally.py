#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tally.py POINTS: writes what came of the system calls that failed to docs/evidence.md. POINTS has a line for each
(inject_test.py); of several for the same call the last counts."""

import collections
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
import evidence  # noqa: E402

ROLES = ("supervisor", "helper", "spawner", "zygote", "init", "occupant")
HARMLESS, TOLD, REFUSED = "harmless", "failed, and told", "refused"
OUTCOMES = {"ok": HARMLESS, "refused": REFUSED, "WRONG": "wrong"}


def main():
    points, made = {}, {}
    for line in pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        point = json.loads(line)
        place = point["way"], point["role"]
        points[(*place, point["call"], point["number"])] = OUTCOMES.get(point["status"], TOLD)
        made[place] = max(point["of"], made.get(place, 0))
    ways = list(dict.fromkeys(way for way, _ in made))
    counts = collections.Counter()
    for (way, role, _, _), outcome in points.items():
        for key in ((way, role), (way, "all"), ("all", role), ("all", "all"), (way, outcome), ("all", outcome), (role, outcome)):
            counts[key] += 1

    def cell(way, role):
        got, of = counts[way, role], made.get((way, role), 0)
        return "" if not of else got if got >= of else f"{got} of {of}"

    outcomes = (HARMLESS, TOLD, REFUSED, "wrong")
    rows = [(way, *(cell(way, role) for role in ROLES), counts[way, "all"], *(counts[way, one] for one in outcomes)) for way in ways]
    rows.append(("**all**", *(counts["all", role] for role in ROLES), counts["all", "all"], *(counts["all", one] for one in outcomes)))
    by_role = [(role, counts["all", role], *(counts[role, one] for one in outcomes)) for role in ROLES]
    evidence.write("inject", evidence.table(("way", *ROLES, "all", *outcomes), rows) + "\n"
                   + evidence.table(("process", "failed calls", *outcomes), by_role))


if __name__ == "__main__":
    main()
