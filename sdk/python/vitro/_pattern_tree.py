# SPDX-License-Identifier: Apache-2.0
"""Regular expressions as ECMA-262 writes them, read into a tree. _pattern.py says what for."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

NESTING_MOST = 100

Range = Tuple[int, int]
_DIGIT: List[Range] = [(48, 57)]
_WORD: List[Range] = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE: List[Range] = [(9, 13), (32, 32)]
_LAST = 0x10FFFF


class PatternError(ValueError):
    """An expression that is not valid; the message says why."""


def _inverted(ranges: List[Range]) -> List[Range]:
    result, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    if start <= _LAST:
        result.append((start, _LAST))
    return result


class Set:
    """Characters: ranges, and general categories of Unicode ("L", "Nd", or "^L" for all others)."""

    __slots__ = ("ranges", "categories", "negated", "_known")

    def __init__(self, ranges: List[Range], categories: Tuple[str, ...] = (), negated: bool = False) -> None:
        self.ranges, self.categories, self.negated = ranges, categories, negated
        self._known: Dict[str, bool] = {}

    def has(self, character: str) -> bool:
        known = self._known.get(character)
        if known is None:
            if len(self._known) > 4096:
                self._known.clear()
            known = self._known[character] = self._look(character) != self.negated
        return known

    def _look(self, character: str) -> bool:
        code = ord(character)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        kind = unicodedata.category(character) if self.categories else ""
        return any(not kind.startswith(name[1:]) if name[0] == "^" else kind.startswith(name)
                   for name in self.categories)

    def text(self) -> Optional[str]:
        """In the words of `re`; None: it has none for it."""
        if self.categories:
            return None
        ranges = _inverted(self.ranges) if self.negated else self.ranges
        if not ranges:
            return "(?!)"
        return "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"


class Node(NamedTuple):
    """kind: set, cat, alt, group, repeat, start, end, word, look, ref."""

    kind: str
    parts: Tuple[Any, ...] = ()  # nodes
    set: Any = None
    low: int = 0  # of a count; the number of a group; of a look 1 for ahead, 0 for behind
    high: Optional[int] = None
    flag: bool = False  # lazy; or negated


class Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.groups = 0
        self.names: Dict[str, int] = {}
        self.references: List[Any] = []  # numbers, or names

    def fail(self, why: str, at: Optional[int] = None) -> PatternError:
        return PatternError(f"{why}, at its character {self.at if at is None else at}")

    def peek(self, count: int = 1) -> str:
        return self.text[self.at:self.at + count]

    def take(self, text: str) -> bool:
        if self.text.startswith(text, self.at):
            self.at += len(text)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.fail("it ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def whole(self) -> Node:
        node = self.alternatives()
        if self.at < len(self.text):
            raise self.fail("unmatched closing parenthesis")
        return node

    def alternatives(self) -> Node:
        self.depth += 1
        if self.depth > NESTING_MOST:
            raise self.fail("groups are nested too deeply")
        parts = [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Node("alt", tuple(parts))

    def sequence(self) -> Node:
        parts: List[Node] = []
        while self.at < len(self.text) and self.peek() not in "|)":
            parts.append(self.counted(self.atom()))
        return parts[0] if len(parts) == 1 else Node("cat", tuple(parts))

    def counted(self, node: Node) -> Node:
        start = self.at
        bounds = self.bounds()
        if bounds is None:
            return node
        low, high = bounds
        if high is not None and high < low:
            raise self.fail("the numbers of a count are in the wrong order", start)
        lazy = self.take("?")
        start = self.at
        if self.bounds() is not None:
            raise self.fail("there is nothing to repeat", start)
        return Node("repeat", (node,), None, low, high, lazy)

    def bounds(self) -> Optional[Tuple[int, Optional[int]]]:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return bounds
        found = re.compile(r"\{([0-9]+)(,([0-9]*))?\}").match(self.text, self.at)
        if not found:
            return None
        if any(len(number or "") > 5 for number in found.group(1, 3)):
            raise self.fail("a count is too large")
        self.at = found.end()
        low = int(found[1])
        return low, low if found[2] is None else int(found[3]) if found[3] else None

    def atom(self) -> Node:
        character = self.next()
        if character == "(":
            return self.group()
        if character == "[":
            return Node("set", set=self.klass())
        if character == "\\":
            return self.escape()
        if character == ".":
            return Node("set", set=Set([(10, 10), (13, 13)], negated=True))
        if character in "^$":
            return Node("start" if character == "^" else "end")
        if character in "*+?":
            raise self.fail("there is nothing to repeat", self.at - 1)
        return self.literal(ord(character))

    @staticmethod
    def literal(code: int) -> Node:
        return Node("set", set=Set([(code, code)]))

    def group(self) -> Node:
        for text, low, negated in (("?=", 1, False), ("?!", 1, True), ("?<=", 0, False), ("?<!", 0, True)):
            if self.take(text):
                return Node("look", (self.closed(),), None, low, None, negated)
        if self.take("?:"):
            return self.closed()
        self.groups += 1
        number = self.groups
        if self.take("?<") or self.take("?P<"):
            name = self.name(">")
            if name in self.names:
                raise self.fail(f"two groups are called {name!r}")
            self.names[name] = number
        elif self.take("?P="):
            self.groups -= 1
            return self.reference(self.name(")"))
        elif self.peek() == "?":
            raise self.fail("a group of this kind is not known")
        return Node("group", (self.closed(),), None, number)

    def closed(self) -> Node:
        start = self.at
        node = self.alternatives()
        if not self.take(")"):
            raise self.fail("missing closing parenthesis", start)
        return node

    def name(self, end: str) -> str:
        stop = self.text.find(end, self.at)
        name = self.text[self.at:stop]
        if stop < 0 or not name.replace("$", "_").isidentifier():
            raise self.fail("want a group's name")
        self.at = stop + 1
        return name

    def reference(self, to: Any) -> Node:
        self.references.append(to)
        return Node("ref", (to,))

    def escape(self) -> Node:
        character = self.next()
        if character in "bB":
            return Node("word", flag=character == "B")
        if character in "AZz":
            return Node("start" if character == "A" else "end")
        if character in "123456789":
            while self.peek() and self.peek() in "0123456789":
                character += self.next()
            return self.reference(int(character[:9]))
        if character == "k" and self.take("<"):
            return self.reference(self.name(">"))
        found = self.kind(character)
        if found is not None:
            return Node("set", set=found)
        return self.literal(self.code(character))

    def kind(self, character: str) -> Optional[Set]:
        """A class by its letter."""
        ranges = {"d": _DIGIT, "w": _WORD, "s": _SPACE}.get(character.lower())
        if ranges is not None:
            return Set(ranges if character.islower() else _inverted(ranges))
        if character not in "pP":
            return None
        found = re.compile(r"\{(?:gc=|General_Category=)?\^?([A-Za-z][a-z]?|Any)\}").match(self.text, self.at)
        if not found or found[1][0] not in "LMNPSZCA":
            raise self.fail("want a general category such as \\p{L} or \\p{Lu}")
        negated = (character == "P") != ("^" in found[0])
        self.at = found.end()
        if found[1] == "Any":
            return Set([] if negated else [(0, _LAST)])
        return Set([], (("^" if negated else "") + found[1],))

    def code(self, character: str) -> int:
        """The character that an escape stands for."""
        simple = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}.get(character)
        if simple is not None:
            return simple
        if character == "c" and self.peek().isalpha() and self.peek().isascii():
            return ord(self.next()) % 32
        if character in "xu":
            found = re.compile(r"[0-9A-Fa-f]{2}" if character == "x" else r"[0-9A-Fa-f]{4}|\{[0-9A-Fa-f]{1,8}\}").match(
                self.text, self.at)
            if found:
                self.at = found.end()
                return self.pair(int(found[0].strip("{}"), 16))
            return ord(character)
        if character.isalnum() and character.isascii():
            raise self.fail("there is no such escape", self.at - 1)
        return ord(character)

    def pair(self, code: int) -> int:
        """\\ud83d\\ude00 is one character."""
        found = re.compile(r"\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})").match(self.text, self.at)
        if 0xD800 <= code < 0xDC00 and found:
            self.at = found.end()
            return 0x10000 + (code - 0xD800 << 10) + int(found[1], 16) - 0xDC00
        if code > _LAST:
            raise self.fail("there is no such character")
        return code

    def klass(self) -> Set:
        start, negated = self.at, self.take("^")
        ranges: List[Range] = []
        categories: Tuple[str, ...] = ()
        while not self.take("]"):
            if self.at >= len(self.text):
                raise self.fail("missing ] for a class", start)
            low = self.member()
            if isinstance(low, Set):
                ranges, categories = ranges + low.ranges, categories + low.categories
                continue
            high: Any = low
            if self.peek() == "-" and self.peek(2)[1:] not in ("]", ""):
                mark = self.at
                self.at += 1
                high = self.member()
                if isinstance(high, Set):  # [a-\d]: a hyphen
                    self.at, high = mark, low
                    ranges.append((45, 45))
                    self.at += 1
                elif high < low:
                    raise self.fail("a range is in the wrong order", mark)
            ranges.append((low, high))
        return Set(ranges, categories, negated)

    def member(self) -> Any:
        character = self.next()
        if character != "\\":
            return ord(character)
        character = self.next()
        if character == "b":
            return 8
        found = self.kind(character)
        return found if found is not None else self.code(character)
