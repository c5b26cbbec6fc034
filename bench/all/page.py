# SPDX-License-Identifier: Apache-2.0
"""docs/benchmarks.md, its pictures, and the table in README.md, from what was measured."""

import re

import chart
from probe import HOLES

INTRO = """# Benchmarks

Written by `make bench{quick}`; the same command makes this page of your machine. Contestants of a table ran in turns, in a random order
per round, 20 ms apart, each timed by itself from the call to the value, or to the command's end. These machines are noisy: compare
within a table, and trust ratios.

{machine}

The columns of ticks are measured as well: a probe ran in each contestant and tried to see a process of the host, connect to
its loopback, read a file that nobody granted, find no system call filter on it, find that it could gain privileges by exec, and
write to the root. A tick: it could not. The same probe outside could do all that this user can do at all.
"""
QUICK = """
**This is a quick look, of few rounds each: a p99 is about the slowest of a dozen, and a bar that is missed by little says nothing.
Pools ran on all CPUs alone, not pinned to one as well, and Python has no bars of 100 MB. `make bench` takes its time, some 25 minutes.**
"""


def intro(machine, is_quick):
    text = INTRO.format(machine=machine, quick=" QUICK=1" if is_quick else "")
    return text.replace("trust ratios.\n", "trust ratios.\n" + QUICK) if is_quick else text


def ratio(value):
    return f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 2 else f"{value:.2f}"


def contest(table, ours):
    """A contest as Markdown; ratios are to the row called ours."""
    base = next((row for row in table.rows if row.name == ours), table.rows[0])
    checked = any(row.holes is not None for row in table.rows)
    heads = ["", "p50", "p99", f"p50 / {base.name}", *(HOLES if checked else ())]
    out = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * 3 + (":-:|" * len(HOLES) if checked else "")]
    for row in table.rows:
        ticks = [] if not checked else ["?"] * len(HOLES) if row.holes is None else ["–" if hole in row.holes else "✓" for hole in HOLES]
        name = f"**{row.name}**" if row.name.startswith("vitro") else row.name
        out.append("| " + " | ".join([name, chart.short(row.p50), chart.short(row.p99), ratio(row.p50 / base.p50), *ticks]) + " |")
    notes = [f"{row.name}: {row.note}" for row in table.rows if row.note] + [f"{name} is missing: {why}" for name, why in table.missing]
    return "\n".join([*out, *([""] if notes else []), *(f"- {note}" for note in notes)]) + "\n"


def c_table(table):
    """A table of the programs in C, whose times are in µs."""
    out = [f"| {table['title']}, {table['pattern']} | min | p50 | p99 | p50 / {table['base']} |", "|---|--:|--:|--:|--:|"]
    for row in table["rows"]:
        out.append("| " + " | ".join([row["name"], *(chart.short(row[key] * 1e3) for key in ("min_us", "p50_us", "p99_us")),
                                      ratio(row["ratio"])]) + " |")
    return "\n".join(out) + "\n"


def bars(groups):
    """Every bar, held or missed; behind it the same beside another, and a floor, which is it done with nothing of vitro in it."""
    every = [bar for _, found in groups for bar in found]
    out = [f"{sum(bar['held'] for bar in every)} of {len(every)} are held. {LEGEND}", "",
           "| of | bar | measured | demanded | |", "|---|---|--:|--:|---|"]
    for group, found in groups:
        for bar in found:
            out.append(f"| {group} | {bar['name']} | {bar['value']:.3g} | {'≥' if bar['at_least'] else '≤'} {bar['limit']:.3g} | "
                       f"{'held' if bar['held'] else '**missed**'}"
                       + "".join(f", {floor} {value:.3g}" for floor, value in {**bar.get("beside", {}), **bar.get("floors", {})}.items()) + " |")
    return "\n".join(out) + "\n"


LEGEND = """A ratio compares two things that ran in turns: what the bar's name has before and behind its slash; where it has
none, vitro and, of Python, a warm `ProcessPoolExecutor(1)` that isolates nothing, or the cold start that the name says; of call-backs, a round
trip of a pipe; of Node, a cold `node -e` (*PATH alone*: of one with a bare environment, which starts faster). A *floor* is the same work by hand with
nothing of vitro in it, *fresh* by a process that was just forked, *entered* by one that enters the namespaces of a cell."""

# What is known of bars that are missed, by their names: what was measured beside them tells.
REASONS = (
    (r"parked cell, KB with the kernel's",
     "The kernel takes most of it for the namespaces, mounts and two processes of a cell, which cost about as much when they are made by hand, with "
     "nothing of vitro's in them ('made by hand', above); page tables and a memory cgroup are the largest parts."),
    (r"C tools and pools: (call|call-back) / round trip",
     "Any supervisor costs a third process, and a fresh fork copies pages when it first answers. The rows 'through a third process' and 'and to a fresh "
     "fork' are that by hand, in C, without a namespace, a filter or a library: what they leave of the bar is less than vitro's checks, clocks and "
     "counters take. On all CPUs the round trip itself is bimodal, by whether the kernel puts both ends on one CPU."),
    (r"call / spawn",
     "Where both processes are on two CPUs, a wake-up across them is most of a call, and a spawn has few of them."),
    (r"call, p99 / p50",
     "What else this machine does at that moment: compare the bare round trip of the same table, which has nothing of vitro in it."),
    (r"vitro / bwrap",
     "Nine tenths of vitro's CPU time are the kernel's, for namespaces, mounts, processes and their end; a network namespace alone is an eighth "
     "(`perf record -g`). bubblewrap pays for most of these as well, so that noise in them moves the ratio; limits, Landlock, a filter and a result come on top."),
    (r"call among",
     "On all CPUs a call is fast or slow by whether the kernel puts its processes on one CPU or two, and that changes from round to round: it is no growth where "
     "1000 live calls cost no more than 1."),
    (r"1000 read paths",
     "By hand the mounts are made, and nothing else is: no look at where each path leads, no rule of Landlock for it, no root that is sealed."),
    (r"1 MB (bytes|array)",
     "A fresh process takes a page fault for each 4 KB that it receives or makes, and the long-lived worker which it is compared with none. 'Floor "
     "fresh' is the same by hand: a bare fork and a socket, nothing sealed."),
    (r"Python: a call-back",
     "Compared with a byte through a pipe. 'Floor, json' is a round trip by hand with its arguments as JSON, in Python at both ends, through a relay in C."),
    (r"Node: a call-back",
     "Compared with a bare message between two processes; a call-back has the supervisor between them, and what it is checked for, and its promise, come on top."),
    (r"no occupant / fork|nothing ready",
     "Nothing was ready, so that a whole occupant is made while the call waits. 'Floor' is a fork by hand that enters the same namespaces."),
    (r"add\(2, 3\)|a cold",
     "A fresh process that copies the pages which it touches, against one that stays: 'floor fresh' is a bare fork by hand."),
)


def reasons(groups):
    """Why bars are missed, as far as it is known."""
    told = {}
    for group, found in groups:
        for bar in found:
            if not bar["held"]:
                why = next((why for pattern, why in REASONS if re.search(pattern, f"{group}: {bar['name']}")), "Not known.")
                told.setdefault((group, why), []).append(bar["name"])
    lines = [f"- {group}: *{'; '.join(names)}*. {why}" for (group, why), names in told.items()]
    return "\n### Why some are missed\n\n" + "\n".join(lines) + "\n" if lines else ""


def brief(contests):
    """The contests in a line each."""
    out = ["| p50, call to value, 20 ms apart | vitro | others |", "|---|---|---|"]
    for heading, table in contests:
        told = {True: [], False: []}
        for row in table.rows:
            told[row.name.startswith("vitro")].append(f"{row.name.removeprefix('vitro').removeprefix(', ')} {chart.short(row.p50)}".strip())
        out.append(f"| {heading.split(', from')[0]} | {'; '.join(told[True])} | {'; '.join(told[False])} |")
    return "\n".join(out) + """

Measured side by side, with what each of them isolates, in [docs/benchmarks.md](docs/benchmarks.md), which also has calls at full load: where no
cell is ready, a call waits until one is made. Peers are as Debian 12 and the registries have them; "as loomflow does it" and the like are
re-creations of what these do for each call.
"""


def into_readme(path, text):
    """Puts the short table between its marks, where they are."""
    page = path.read_text(encoding="utf-8")
    new, count = re.subn(r"(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)", lambda match: match[1] + text + match[2], page, flags=re.S)
    if count:
        path.write_text(new, encoding="utf-8")
