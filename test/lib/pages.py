# SPDX-License-Identifier: Apache-2.0
"""The pages of the documentation, and the blocks of code in them.

A block is a fence with a language. A comment right above it says what cannot be seen from it:

    <!-- file NAME -->            it is that file, for the blocks after it
    <!-- given NAME: TEXT -->     there is such a file, which the reader has to imagine
    <!-- not run: REASON -->      it cannot run in a test
    <!-- within FLAGS -->         vitro runs on a poorer machine: flags of vitro-within
    <!-- in the source folder --> it runs where include, examples and build are
"""

import re
from dataclasses import dataclass, field

from vitrotest import ROOT

# A comment has a line to itself; a fence begins at the margin.
COMMENT = re.compile(r"^<!-- (.*?) -->$")
FENCE = re.compile(r"^```(\w*)$")


@dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    notes: list = field(default_factory=list)

    def note(self, word):
        """What a comment that begins with the word says after it, or None."""
        return next((note[len(word):].strip(" :") for note in self.notes if note.startswith(word)), None)

    @property
    def given(self):
        """name → text of the files that are to be imagined."""
        found = (note[len("given "):].split(": ", 1) for note in self.notes if note.startswith("given "))
        return {name: text + "\n" for name, text in found}

    def __str__(self):
        return f"{self.page}:{self.line}"


def names():
    """The pages, by their paths in the source."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("sdk/*/README.md"), *ROOT.glob("test/vectors/*.md")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page):
    """The blocks of a page, in order."""
    found, notes, block = [], [], None
    for number, line in enumerate(read(page).splitlines(), 1):
        if block is not None:
            if line == "```":
                found.append(block)
                block = None
            else:
                block.text += line + "\n"
        elif fence := FENCE.match(line):
            block, notes = Block(page, number, fence[1], "", notes), []
        elif comment := COMMENT.match(line):
            notes.append(comment[1])
        elif line:
            notes = []
    if block is not None:
        raise ValueError(f"{block}: the block has no end")
    return found


def prose(page):
    """A page without its blocks, with as many lines."""
    return re.sub(r"^```\w*\n.*?^```$", lambda match: "\n" * match[0].count("\n"), read(page), flags=re.M | re.S)
