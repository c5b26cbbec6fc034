#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes targets in turn until each has had so many seconds of CPU: campaign.py SECONDS NAME...

What each had in all is kept in build-fuzz/ledger.json, and printed in the end: a campaign can be stopped and goes on later, up to
so many seconds in all with --total. Where there is none yet, it goes on from the table in docs/evidence.md, to which --write puts
what it came to. tools/fuzz builds the targets, and starts this.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHERE = os.path.join(ROOT, "build-fuzz")
LEDGER = os.path.join(WHERE, "ledger.json")
PAGE = os.path.join(ROOT, "docs", "evidence.md")
# "| `audit` | lines of the audit log | 1.4 | 1,696,924 | 159 | 0 |"; the last two are cells that a person may have written to.
ROW = re.compile(r"^(\| `([\w.]+)` \| [^|]+ \| )([\d.]+) \| ([\d,]+) \| ([\d,]+)", re.M)
LATE = 124  # of timeout(1): the machine had other things to do. What hangs by itself the fuzzer tells.
SLICE = 100  # seconds of a turn
NEW = {"cpu": 0, "runs": 0, "findings": []}


def load():
    try:
        with open(LEDGER) as file:
            return json.load(file)
    except FileNotFoundError:
        with open(PAGE, encoding="utf-8") as file:
            rows = ROW.findall(file.read())
        return {name: dict(NEW, cpu=60 * float(minutes), runs=int(runs.replace(",", "")), edges=int(edges.replace(",", "")), findings=[])
                for _, name, minutes, runs, edges in rows}


def save(ledger):
    with open(LEDGER + ".new", "w") as file:
        json.dump(ledger, file, indent=1)
    os.replace(LEDGER + ".new", LEDGER)


def write(ledger):
    """Puts what each had into the table of the page."""
    def renew(row):
        had = ledger[row[2]]
        return f"{row[1]}{had['cpu'] / 60:.1f} | {had['runs']:,} | {had['edges'] or 0:,}"

    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    missing = sorted(set(ledger) - {row[2] for row in ROW.finditer(text)})
    if missing:
        sys.exit(f"{PAGE} has no row for {', '.join(missing)}")
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(ROW.sub(renew, text))


def command(name, seconds):
    """What fuzzes a target, in build-fuzz. All of them end by themselves, and print how often they ran."""
    kind = name.partition(".")[0]
    options = [f"-dict=../test/fuzz/{kind}.dict", f"-max_total_time={seconds}", "-timeout=300", "-print_final_stats=1", name,
               f"../test/fuzz/corpus/{kind}"]
    if name.endswith(".py"):
        return ["../build/atheris/bin/python", f"../test/fuzz/{kind}_fuzz.py", *options]
    if name.endswith(".mjs"):
        return ["node", f"../test/fuzz/{kind}_fuzz.mjs", *options]
    return [f"./{name}_fuzz", *options]


def is_there(name):
    if name.endswith(".py") and not os.path.exists(os.path.join(ROOT, "build", "atheris", "complete")):
        print(f"{name} is left out: there is no atheris (tools/setup fuzz)", file=sys.stderr)
        return False
    return True


def seconds_until(clock):
    now = time.gmtime()
    hour, minute = map(int, clock.split(":"))
    return (hour - now.tm_hour) * 3600 + (minute - now.tm_min) * 60 - now.tm_sec - 15


def turn(name, seconds, prefix):
    """Fuzzes a target once; its CPU, its executions, and what it found."""
    os.makedirs(os.path.join(WHERE, name), exist_ok=True)
    log = os.path.join(WHERE, name + ".log")
    with open(log, "w") as file:
        child = subprocess.Popen(["timeout", str(2 * seconds + 300), *prefix, *command(name, seconds)], cwd=WHERE,
                                 stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    with open(log, errors="replace") as file:
        text = file.read()
    runs = re.search(r"number_of_executed_units: *(\d+)|Done (\d+) runs", text)
    # An input that ends the process is written down beforehand, so that where no total is told the last count is.
    last = re.findall(r"^#(\d+)\s", text, re.M)
    executed = int(next(filter(None, runs.groups()))) if runs else int(last[-1]) if last else 0
    finding = None
    if child.returncode not in (0, LATE):
        place = re.search(r"Test unit written to (\S+)", text)
        finding = place.group(1) if place else f"status {child.returncode}"
        os.replace(log, f"{log}.{int(time.time())}")
    cover = re.findall(r" (?:cov|features): (\d+)", text)
    return usage.ru_utime + usage.ru_stime, executed, finding, int(cover[-1]) if cover else None


def table(ledger):
    rows = ["| target | CPU, minutes | executions | edges | findings |", "|---|---:|---:|---:|---:|"]
    for name, had in sorted(ledger.items()):
        rows.append(f"| `{name}` | {had['cpu'] / 60:.1f} | {had['runs']:,} | {had.get('edges') or '–'} | "
                    f"{len(had['findings'])} |")
    return "\n".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=float, help="of CPU that each target gets; 0: only print what each had")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--total", action="store_true", help="what a target had before counts")
    parser.add_argument("--until", help="HH:MM (UTC) at which the last turn has ended")
    parser.add_argument("--write", action="store_true", help="put what each had in all on docs/evidence.md")
    parser.add_argument("--prefix", default="", help="what is put before each command, such as 'chrt -i 0'")
    options = parser.parse_intermixed_args()
    broken = set()
    names = [name for name in options.names if is_there(name)]
    before = {} if options.total else {name: had["cpu"] for name, had in load().items()}
    while True:
        ledger = load()
        left = {name: options.seconds + before.get(name, 0) - ledger.get(name, NEW)["cpu"] for name in names if name not in broken}
        name = max(left, key=left.get, default=None)
        seconds = min(SLICE, left[name] if name else 0)
        if options.until:
            seconds = min(seconds, seconds_until(options.until))
        if seconds < 1:
            print(table(ledger))
            if options.write:
                write(ledger)
            return 1 if broken else 0
        cpu, runs, finding, edges = turn(name, math.ceil(seconds), options.prefix.split())
        ledger = load()  # another campaign may have written meanwhile, of other targets
        had = ledger.setdefault(name, dict(NEW, findings=[]))
        had["cpu"] += cpu
        had["runs"] += runs
        had["edges"] = max(edges or 0, had.get("edges") or 0) or None  # a short turn comes to fewer
        if finding:
            had["findings"].append(finding)
            broken.add(name)  # it would meet the same again
        save(ledger)
        print(f"{time.strftime('%H:%M')} {name}: {cpu:.0f} s of {had['cpu']:.0f} s CPU, {runs} runs"
              f"{', FOUND ' + finding if finding else ''}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
