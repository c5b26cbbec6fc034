# SPDX-License-Identifier: Apache-2.0
"""Pictures of tables, as SVG that is readable on light and on dark: bars with p50 and p99, and lines for growth. Both axes of
time are logarithmic, since what is compared differs by thousands."""

import math
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT, SIDE, BAR, GAP = 760, 190, 150, 200, 16, 10
OURS, THEIRS, MARK = "#2f81f7", "#8b949e", "#d29922"
LINES = ("#2f81f7", "#d29922", "#8b949e", "#a371f7", "#3fb950", "#f85149")
STYLE = ("<style>text{font:12px system-ui,sans-serif;fill:#57606a}.title{font-weight:600;font-size:14px}"
         ".axis{stroke:#8b949e;stroke-opacity:.35}"
         "@media(prefers-color-scheme:dark){text{fill:#adbac7}}</style>")


def short(ns):
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            value = ns / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}" if value >= 10 else f"{value:.2f} {unit}"
    return f"{ns:.0f} ns"


def amount(count):
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if count >= size:
            return f"{count / size:g}{unit}"
    return f"{count:g}"


class Scale:
    """Where a value is between two places; whole powers of ten are where lines are drawn."""

    def __init__(self, least, most, begin, end):
        self.low, self.high = math.floor(math.log10(least)), math.ceil(math.log10(most))
        self.high += self.high == self.low
        self.begin, self.end = begin, end

    def __call__(self, value):
        share = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        return round(self.begin + share * (self.end - self.begin), 1)

    def marks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="start", kind=""):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{f" class={kind!r}" if kind else ""}>{escape(words)}</text>'


def wrap(title, height, parts):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
            f'aria-label="{escape(title, {chr(34): "&quot;"})}">{STYLE}{text(8, 20, title.replace("`", ""), kind="title")}' + "".join(parts) + "</svg>\n")


def bars(title, rows, is_ours):
    """One bar for each row, to its p50, with a mark at its p99."""
    scale = Scale(min(row["p50"] for row in rows), max(row["p99"] for row in rows), LEFT, WIDTH - RIGHT)
    bottom = 40 + len(rows) * (BAR + GAP)
    parts = []
    for mark in scale.marks():
        parts.append(f'<line class="axis" x1="{scale(mark)}" x2="{scale(mark)}" y1="34" y2="{bottom}"/>')
        parts.append(text(scale(mark), bottom + 14, short(mark).replace(".00", "").replace(".0", ""), "middle"))
    for number, row in enumerate(rows):
        y = 40 + number * (BAR + GAP)
        parts.append(text(LEFT - 8, y + 12, row["name"], "end"))
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{max(1, round(scale(row["p50"]) - LEFT, 1))}" height="{BAR}" '
                     f'fill="{OURS if is_ours(row) else THEIRS}"/>')
        parts.append(f'<rect x="{scale(row["p99"]) - 1}" y="{y}" width="2" height="{BAR}" fill="{MARK}"/>')
        parts.append(text(scale(row["p99"]) + 6, y + 12, f"{short(row['p50'])}, p99 {short(row['p99'])}"))
    return wrap(f"{title}: p50, logarithmic", bottom + 22, parts)


def lines(title, series, x_unit, y_name, y_text=short):
    """One line for each name: points (x, y), in the order of x."""
    height = 300
    points = [point for line in series.values() for point in line]
    across = Scale(min(x for x, _ in points), max(x for x, _ in points), 70, WIDTH - SIDE)
    up = Scale(min(y for _, y in points), max(y for _, y in points), height - 40, 44)
    parts = []
    for mark in across.marks():
        parts.append(f'<line class="axis" x1="{across(mark)}" x2="{across(mark)}" y1="44" y2="{height - 40}"/>')
        parts.append(text(across(mark), height - 24, amount(mark), "middle"))
    for mark in up.marks():
        parts.append(f'<line class="axis" x1="70" x2="{WIDTH - SIDE}" y1="{up(mark)}" y2="{up(mark)}"/>')
        parts.append(text(64, up(mark) + 4, y_text(mark).replace(".00", "").replace(".0", ""), "end"))
    ends = []
    for color, (name, line) in zip(LINES, series.items()):
        parts.append(f'<polyline fill="none" stroke="{color}" stroke-width="2" points="'
                     + " ".join(f"{across(x)},{up(y)}" for x, y in line) + '"/>')
        parts += [f'<circle cx="{across(x)}" cy="{up(y)}" r="3" fill="{color}"/>' for x, y in line]
        ends.append([up(line[-1][1]), name, color])
    ends.sort()
    for before, after in zip(ends, ends[1:]):
        after[0] = max(after[0], before[0] + 15)
    for y, name, color in ends:
        parts.append(f'<rect x="{WIDTH - SIDE + 8}" y="{y - 4}" width="8" height="8" fill="{color}"/>' + text(WIDTH - SIDE + 20, y + 5, name))
    parts.append(text(round((70 + WIDTH - SIDE) / 2), height - 6, x_unit, "middle"))
    return wrap(f"{title}: {y_name}", height, parts)
