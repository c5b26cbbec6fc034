#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md, its pictures, and the table in README.md, from figures alone: bench/all/run measures them, and leaves them in
benchmarks/figures.json beside the page. bench/all/page.py [FOLDER] writes the page of FOLDER, or of docs, from those anew."""

import itertools
import json
import pathlib
import re
import sys

import chart
from probe import HOLES
from reasons import reasons

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = "benchmarks/figures.json"

INTRO = """# Benchmarks

`make bench{quick}` wrote this page; run it to get the same page for your machine. Within a table, contestants ran in turns, in a random
order per round, 20 ms apart. Each was timed from the call to the value, or to the command's end. The machine is noisy: compare within
a table, and trust ratios.

{machine}

The isolation columns are measured too. A probe ran inside each contestant and tried to see a process of the host, to connect to its
loopback, to read a file that was not granted, and to write to the root; and it looked in /proc for a system call filter and for
no_new_privs. ✓ means closed, – means open. Outside, the same probe finds open all that this user can reach.
"""
QUICK = """
**This is a quick look with few rounds: a p99 is close to the slowest of a dozen calls, and a bar that is narrowly missed says nothing.
Pools ran on all CPUs only, and Python has no bars for 100 MB. `make bench` takes its time: some 25 minutes.**
"""
COMMANDS = """### How each was run

Each contestant is set up to give what a cell gives, as nearly as its own options allow.

"""
C_TOOLS = "A call to a C tool in a ready cell, and what such a call is made of.\n\n"
LANGUAGES = "Further figures of pools; their bars are in the list below.\n\n"
GOALS = "What this project has set itself to reach, and what was measured. Some bars leave less than the kernel's own part takes."
LEGEND = """A ratio compares two things that ran in turns: what stands before the slash in its name with what stands after it. Without a
slash, vitro is compared with a warm `ProcessPoolExecutor(1)`, which isolates nothing (Python), with the cold start that the name says, with
a round trip through a pipe (call-backs), or with a cold `node -e` that has PATH alone in its environment (Node). A
*floor* is the same work done by hand with nothing of vitro in it: *fresh* in a process that was just forked, *entered* in one that also
enters the namespaces of a cell. Bars were measured by programs of their own, so they differ a little from the tables above."""
README = """
Everything ran in turns on one machine; *vitro, ready* is `Sandbox.run()` of the Python package. Calls from Python and Node found a cell ready.
{lasting}[docs/benchmarks.md](docs/benchmarks.md) has what each of them isolates, how each was run, and the bars that vitro misses. Peers are
the versions of Debian 12, npm and PyPI; *as loomflow* and its like are re-creations of what that framework does for each call.
"""


def ratio(value):
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def is_ours(row):
    return row["name"].startswith("vitro")


def table(heads, aligned, rows):
    """Markdown; aligned has a letter for each column: l, r or c."""
    rulers = {"l": "---", "r": "--:", "c": ":-:"}
    ruler = "|" + "".join(rulers[letter] + "|" for letter in aligned)
    return "\n".join(["| " + " | ".join(heads) + " |", ruler, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def picture(figure):
    return f"![{figure['heading']}](benchmarks/{figure['name']}.svg)\n\n"


def contest(figure):
    """A contest; ratios are to the row that it names as ours."""
    base = next((row for row in figure["rows"] if row["name"] == figure["ours"]), figure["rows"][0])
    rows = []
    for row in figure["rows"]:
        ticks = ["–" if hole in row["holes"] else "✓" for hole in HOLES]
        name = f"**{row['name']}**" if is_ours(row) else row["name"]
        rows.append([name, chart.short(row["p50"]), chart.short(row["p99"]), ratio(row["p50"] / base["p50"]), *ticks])
    notes = [f"- {row['name']}: {row['note']}\n" for row in figure["rows"] if row["note"]]
    notes += [f"- {name} is missing: {why}\n" for name, why in figure["missing"]]
    return (f"## {figure['heading']}\n\n{picture(figure)}" + table(["", "p50", "p99", f"p50 / {base['name']}", *HOLES], "lrrr" + "c" * len(HOLES), rows)
            + ("\n" + "".join(notes) if notes else ""))


def growth(figure):
    """Lines over a size; what is not a time is calls per second."""
    show = ratio if figure["what"] == "calls per second" else chart.short
    sizes = sorted({x for line in figure["lines"].values() for x, _ in line})
    rows = []
    for who, line in figure["lines"].items():
        at = {x: show(y) for x, y in line}
        rows.append([who, *(at.get(x, "") for x in sizes)])
    return (f"## {figure['heading']}\n\n{figure['text']}{picture(figure)}"
            + table([figure["unit"], *map(chart.amount, sizes)], "l" + "r" * len(sizes), rows))


def c_table(figure):
    """A table of the programs in C, whose times are in µs."""
    rows = [[row["name"], *(chart.short(row[key] * 1e3) for key in ("min_us", "p50_us", "p99_us")), ratio(row["ratio"])]
            for row in figure["rows"]]
    return table([f"{figure['title']}, {figure['pattern']}", "min", "p50", "p99", f"p50 / {figure['base']}"], "lrrrr", rows)


def facts(heading, told):
    """What a program says beside tables, without the bars in it, which are shown with all others."""
    shown = [re.sub(r"(; MB:)? +[\d.]+ \([\d.]+: (held|MISSED)\)", "", fact.strip()) for fact in told["facts"]]
    return [f"### {heading}\n\n" + "".join(f"- {fact}\n" for fact in shown)] if shown else []


def bars(programs):
    """Every bar, held or missed, with its floors."""
    every = [bar for told in programs for bar in told["bars"]]
    rows = []
    for told in programs:
        for bar in told["bars"]:
            floors = bar.get("floors", {})
            rows.append([told["group"], bar["name"], f"{bar['value']:.3g}", f"{'≥' if bar['at_least'] else '≤'} {bar['limit']:.3g}",
                         ", ".join(["held" if bar["held"] else "**missed**", *(f"{name} {value:.3g}" for name, value in floors.items())])])
    return [f"## Every bar\n\n{GOALS} {sum(bar['held'] for bar in every)} of {len(every)} are held.\n\n"
            f"{LEGEND}\n\n" + table(["of", "bar", "measured", "demanded", ""], "llrrl", rows),
            *reasons(programs)] if every else []


def how(figure):
    """The words that ran each contestant."""
    return COMMANDS + "".join(f"- {row['name']}: `{row['words']}`\n" for row in figure["rows"])


def sections(figures):
    """The page in its order: who is compared, how that grows, what it is made of, and what it is held to."""
    programs = {told["group"]: told for told in figures["programs"]}
    contests = figures["contests"]
    yield from map(contest, contests)
    yield from map(growth, figures["growths"])
    yield from (how(figure) for figure in contests if figure["name"] == "commands")
    if (pools := programs.get("C tools and pools")) and pools["tables"]:
        yield "## C tools, by libvitro\n\n" + C_TOOLS + "\n".join(c_table(one) for one in pools["tables"] if "live call" not in one["title"])
    for heading, group in (("vitro run itself", "commands"), ("Throughput and memory", "C tools and pools")):
        yield from facts(heading, programs.get(group, {"facts": []}))
    languages = [part for group in ("Python", "drop-ins", "Node") for part in facts(group, programs.get(group, {"facts": []}))]
    if languages:
        yield "## Pools of Python and Node\n\n" + LANGUAGES + "\n".join(languages)
    if figures["failed"]:
        yield f"**Failed, and so missing here: {', '.join(figures['failed'])}**\n"
    yield from bars(figures["programs"])


def lasting(figures):
    """How many calls there are a second once those that were ready are used up; of a quick look nothing."""
    facts = {told["group"]: "\n".join(told["facts"]) for told in figures["programs"]}
    rates = [(group, re.search(r"^sustained: (\d+) calls/s", facts.get(group, ""), re.M)) for group in ("Python", "Node")]
    said = [f"{found[1]} of {group}" for group, found in rates if found]
    cpus = re.search(r"\d+ CPUs", figures["machine"])
    return f"Under a lasting load they wait for one: {cpus[0]} made {' or '.join(said)} a second.\n" if said and cpus else ""


def brief(figures):
    """The contests side by side, with one row for each place."""
    columns = []
    for figure in figures["contests"]:
        cells = [(f"**{row['name']}**", f"**{chart.short(row['p50'])}**") if is_ours(row) else (row["name"], chart.short(row["p50"]))
                 for row in figure["rows"]]
        columns.append([(figure["heading"].split(", from")[0], "p50"), *cells])
    lines = [list(itertools.chain.from_iterable(places)) for places in itertools.zip_longest(*columns, fillvalue=("", ""))]
    return table(lines[0], "lr" * len(columns), lines[1:]) + README.format(lasting=lasting(figures))


def into_readme(path, text):
    """Puts the short table between its marks, where they are."""
    page = path.read_text(encoding="utf-8")
    new, count = re.subn(r"(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)", lambda match: match[1] + text + match[2], page, flags=re.S)
    if count:
        path.write_text(new, encoding="utf-8")


def render(figures):
    """The page's text."""
    intro = INTRO.format(machine=figures["machine"], quick=" QUICK=1" if figures["quick"] else "")
    return intro + (QUICK if figures["quick"] else "") + "\n" + "\n".join(sections(figures))


def write(figures, out):
    """The page, its pictures and its figures, to the folder out; where that is docs, the table in README.md as well."""
    (out / "benchmarks").mkdir(parents=True, exist_ok=True)
    (out / FIGURES).write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for figure in figures["contests"]:
        (out / "benchmarks" / f"{figure['name']}.svg").write_text(chart.bars(figure["heading"], figure["rows"], is_ours), encoding="utf-8")
    for figure in figures["growths"]:
        show = chart.amount if figure["what"] == "calls per second" else chart.short
        (out / "benchmarks" / f"{figure['name']}.svg").write_text(
            chart.lines(figure["heading"], figure["lines"], figure["unit"], figure["what"], show), encoding="utf-8")
    (out / "benchmarks.md").write_text(render(figures), encoding="utf-8")
    if out == ROOT / "docs" and figures["contests"]:
        into_readme(ROOT / "README.md", brief(figures))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "docs"
    write(json.loads((folder / FIGURES).read_text(encoding="utf-8")), folder)
