# SPDX-License-Identifier: Apache-2.0
"""Why bars are missed, as far as it is known: what was measured beside each of them tells."""

import re

# By what a bar's group and name match; the first that does.
REASONS = (
    (r"parked cell, KB with the kernel's",
     "Most of it is the kernel's, and more than half of that is for the namespaces, mounts and two processes of a cell, which cost as much "
     "when they are made by hand ('made by hand', above). The memory cgroup, the filter, pipes and sockets come on top."),
    (r"C tools and pools: (call|call-back) / round trip",
     "A supervisor is a third process, and a fresh fork copies pages when it first answers. The rows 'through a third process' and 'and "
     "to a fresh fork' do just that by hand, in C, without a namespace, a filter or a library: what they leave of the bar is less than "
     "vitro's checks, clocks and counters take. On all CPUs the round trip itself is bimodal: it depends on whether the kernel puts both "
     "ends on one CPU."),
    (r"call / spawn, spaced",
     "After 20 ms the caches have lost the code and data of the three processes that a call passes, and each of them has to be woken. A "
     "spawn of a static program is one process, whose pages the kernel sets up anew in any case."),
    (r"call / spawn",
     "On two CPUs, wake-ups across them are most of a call, and a spawn has few of them."),
    (r"call, p99 / p50",
     "A p99 shows what else the machine did at that moment: compare the bare round trip of the same table, which has nothing of vitro "
     "in it."),
    (r"vitro / bwrap",
     "Nine tenths of vitro's CPU time are the kernel's, for namespaces, mounts, processes and their end; the network namespace alone is an "
     "eighth (`perf record -g`). bubblewrap pays for most of these as well, so noise in them moves the ratio; vitro's limits, Landlock, "
     "filter and result come on top."),
    (r"call among",
     "On all CPUs a call is fast or slow by whether the kernel puts its processes on one CPU or on two, which changes from round to "
     "round. It is not growth where 1000 live calls cost no more than 1."),
    (r"1000 read paths",
     "By hand only the mounts are made: nothing looks where each path leads, adds a Landlock rule for it, or seals the root."),
    (r"1 MB (bytes|array)",
     "A fresh process takes a page fault for each 4 KB that it receives or makes; the long-lived worker that it is compared with takes "
     "none. 'Floor fresh' is the same by hand: a bare fork and a socket, nothing sealed."),
    (r"100 MB (bytes|array)",
     "Most of it is copying through sockets: the same by hand with nothing of vitro in it ('floor') is as near to the bar, or above it, so "
     "noise decides."),
    (r"Python: a call-back",
     "It is compared with a byte through a pipe. 'Floor, json' is a round trip by hand with JSON arguments, Python at both ends, and a "
     "relay in C between them."),
    (r"Node: a call-back",
     "It is compared with a bare message between two processes. A call-back also passes through the supervisor, is checked, and settles "
     "a promise."),
    (r"Node: (spaced|back to back|nothing ready|throughput)",
     "These bars were set beside a cold `node -e` that read extra certificates at its start and took 75 to 90 ms. Here it has PATH alone, as "
     "cells do, and takes a third of that; what vitro takes did not change. 'Floor' is a fork by hand that enters the same namespaces."),
    (r"no occupant / fork|nothing ready",
     "Nothing was ready, so a whole occupant is made while the call waits. 'Floor' is a fork by hand that enters the same namespaces."),
    (r"add\(2, 3\)|a cold",
     "A fresh process copies each page that it touches; the one it is compared with stays. 'Floor fresh' is a bare fork by hand."),
    (r"empty pool / by hand|calls per second / cells by hand",
     "By hand it is the namespaces, mounts and two processes of a cell, and nothing else. vitro's cell also has a cgroup, a filter, Landlock, "
     "limits, pipes and a process of the tool's program that enters it, and its call passes three processes. A profile (`perf record -g`) "
     "shows no large part among these."),
    (r"throughput",
     "Every call makes, seals and ends a process; by hand it is forked into a cell, and not sealed."),
)


def reasons(programs):
    """A section with a line for each reason; none where no bar is missed."""
    told = {}
    for program in programs:
        for bar in program["bars"]:
            if not bar["held"]:
                name = f"{program['group']}: {bar['name']}"
                why = next((why for pattern, why in REASONS if re.search(pattern, name)), "Not known.")
                told.setdefault((program["group"], why), []).append(bar["name"])
    lines = [f"- {group}: *{'; '.join(names)}*. {why}\n" for (group, why), names in told.items()]
    return ["### Why some are missed\n\n" + "".join(lines)] if lines else []
