# SPDX-License-Identifier: Apache-2.0
"""Regular expressions of JSON schemas: ECMA-262's, found in a text within a bounded number of steps.

Python's `re` reads another language ($ matches before a last newline, \\d has all the world's digits), and
takes time without bound, with the interpreter's lock held, for an expression like (a+)+$ and a text that a
model wrote for it. So expressions are parsed here. Those that cannot take long are handed to `re`, in its
words; the others are run by a matcher that counts its steps.

What is understood is what the C library has of ECMA-262: groups, named ones too, alternatives, greedy and
lazy counts, look-ahead and look-behind, back references, \\d \\w \\s \\b (ASCII), \\uXXXX, \\u{X}, \\xXX, \\cX,
\\p{L} and other general categories, [^]. What PCRE2 has beyond that (recursion, possessive counts, atomic
groups, inline flags, scripts in \\p) is an error here.
"""

from __future__ import annotations

import re
from typing import Any, List, Optional, Tuple

from ._pattern_tree import Node, Parser, PatternError

__all__ = ["Pattern", "PatternError", "Steps", "TooMuchWork"]

LENGTH_MOST = 4096
PROGRAM_MOST = 20000
FAST_MOST = 2000000  # steps that `re` may take; some 20 ms
STEP_CHARACTERS = 16  # of a text, passed over in one step


class TooMuchWork(Exception):
    """The steps are used up."""


class Steps:
    """What a check may still spend."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooMuchWork


# ---- the program ---------------------------------------------------------------------------------

_SET, _RUN, _SPLIT, _JUMP, _SAVE, _START, _END, _WORDS, _LOOK, _REF, _MARK, _MOVED, _MATCH = range(13)
Program = List[Tuple[Any, ...]]


class _Compiler:
    def __init__(self) -> None:
        self.code: Program = []
        self.marks = 0

    def put(self, *step: Any) -> int:
        if len(self.code) >= PROGRAM_MOST:
            raise PatternError("its counts make it too large")
        self.code.append(step)
        return len(self.code) - 1

    def node(self, node: Node) -> None:
        getattr(self, "node_" + node.kind)(node)

    def node_set(self, node: Node) -> None:
        self.put(_SET, node.set)

    def node_cat(self, node: Node) -> None:
        for part in node.parts:
            self.node(part)

    def node_alt(self, node: Node) -> None:
        ends = []
        for part in node.parts[:-1]:
            split = self.put(_SPLIT)
            self.node(part)
            ends.append(self.put(_JUMP))
            self.code[split] = (_SPLIT, split + 1, len(self.code))
        self.node(node.parts[-1])
        for end in ends:
            self.code[end] = (_JUMP, len(self.code))

    def node_group(self, node: Node) -> None:
        self.put(_SAVE, 2 * node.low)
        self.node(node.parts[0])
        self.put(_SAVE, 2 * node.low + 1)

    def node_repeat(self, node: Node) -> None:
        part, low, high, lazy = node.parts[0], node.low, node.high, node.flag
        if part.kind == "set":
            self.put(_RUN, part.set, low, high, lazy)
            return
        for _ in range(low):
            self.node(part)
        if high is None:
            split = self.put(_SPLIT)
            self.moving(part)
            self.put(_JUMP, split)
            self.split(split, lazy)
            return
        splits = []
        for _ in range(high - low):
            splits.append(self.put(_SPLIT))
            self.moving(part)
        for split in splits:
            self.split(split, lazy)

    def moving(self, part: Node) -> None:
        """One more time, which must not be empty: it would go on for ever."""
        mark = self.marks
        self.marks += 1
        self.put(_MARK, mark)
        self.node(part)
        self.put(_MOVED, mark)

    def split(self, at: int, lazy: bool) -> None:
        into, out = at + 1, len(self.code)
        self.code[at] = (_SPLIT, out, into) if lazy else (_SPLIT, into, out)

    def node_start(self, node: Node) -> None:
        self.put(_START)

    def node_end(self, node: Node) -> None:
        self.put(_END)

    def node_word(self, node: Node) -> None:
        self.put(_WORDS, node.flag)

    def node_ref(self, node: Node) -> None:
        self.put(_REF, node.low)

    def node_look(self, node: Node) -> None:
        inner = _Compiler()
        inner.marks = self.marks
        inner.node(node.parts[0])
        inner.put(_MATCH)
        self.marks = inner.marks
        if len(self.code) + len(inner.code) > PROGRAM_MOST:
            raise PatternError("its counts make it too large")
        self.put(_LOOK, inner.code, bool(node.low), node.flag, _width(node.parts[0]))


def _width(node: Node) -> Optional[int]:
    """How many characters it takes, if that is always the same."""
    widths = [_width(part) for part in node.parts if isinstance(part, Node)]
    if node.kind == "set":
        return 1
    if node.kind in ("start", "end", "word", "look"):
        return 0
    if node.kind == "ref" or None in widths:
        return None
    known = [width for width in widths if width is not None]
    if node.kind == "alt":
        return known[0] if len(set(known)) == 1 else None
    if node.kind == "repeat":
        return known[0] * node.low if node.low == node.high else None
    return sum(known)


def _is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and (text[at] == "_" or text[at].isascii() and text[at].isalnum())


def _run(code: Program, text: str, at: int, saved: Tuple[Any, ...], steps: Steps,
         end: Optional[int] = None) -> Optional[Tuple[Any, ...]]:
    """What the groups hold of a match that begins at `at`, and, if given, ends at `end`. None: there is none."""
    stack: List[Tuple[Any, ...]] = [(0, at, saved, ())]
    size = len(text)
    while stack:
        frame = stack.pop()
        pc, at, saved, marks = frame[:4]
        if len(frame) > 4:  # a run, which gives one back, or takes one more
            least, most, runs = frame[4:]
            if runs is None:
                at -= 1
                if at > least:
                    stack.append((pc, at, saved, marks, least, most, None))
            else:
                if at >= most or not runs.has(text[at]):
                    continue
                at += 1
                stack.append((pc, at, saved, marks, least, most, runs))
        while True:
            steps.spend(1)
            step = code[pc]
            kind = step[0]
            if kind == _SET:
                if at >= size or not step[1].has(text[at]):
                    break
                at += 1
            elif kind == _RUN:
                characters, low, high, lazy = step[1:]
                most = size if high is None else min(size, at + high)
                stop = at + low if lazy else most
                start, has = at, characters.has
                while at < stop and at < size and has(text[at]):
                    at += 1
                steps.spend((at - start) // 4)
                if at < start + low:
                    break
                if lazy:
                    stack.append((pc + 1, at, saved, marks, start + low, most, characters))
                elif at > start + low:
                    stack.append((pc + 1, at, saved, marks, start + low, most, None))
            elif kind == _SPLIT:
                stack.append((step[2], at, saved, marks))
                pc = step[1]
                continue
            elif kind == _JUMP:
                pc = step[1]
                continue
            elif kind == _SAVE:
                saved = saved[:step[1]] + (at,) + saved[step[1] + 1:]
            elif kind == _MARK:
                marks = marks + (-1,) * (step[1] + 1 - len(marks))
                marks = marks[:step[1]] + (at,) + marks[step[1] + 1:]
            elif kind == _MOVED:
                if marks[step[1]] == at:
                    break
            elif kind == _MATCH:
                if end is None or at == end:
                    return saved
                break
            elif kind == _LOOK:
                found = _look(step, text, at, saved, steps)
                if found is None:
                    break
                saved = found
            elif not _holds(step, text, at):
                if kind != _REF:
                    break
                part = _group(step[1], text, saved)
                steps.spend(len(part) // STEP_CHARACTERS)
                if not text.startswith(part, at):
                    break
                at += len(part)
            pc += 1
    return None


def _holds(step: Tuple[Any, ...], text: str, at: int) -> bool:
    kind = step[0]
    if kind == _START:
        return at == 0
    if kind == _END:
        return at == len(text)
    return kind == _WORDS and (_is_word(text, at - 1) != _is_word(text, at)) is not bool(step[1])


def _group(number: int, text: str, saved: Tuple[Any, ...]) -> str:
    start, end = saved[2 * number:2 * number + 2]
    return "" if start is None or end is None else text[start:end]


def _look(step: Tuple[Any, ...], text: str, at: int, saved: Tuple[Any, ...],
          steps: Steps) -> Optional[Tuple[Any, ...]]:
    _, code, ahead, negated, width = step
    found = None
    if ahead:
        found = _run(code, text, at, saved, steps)
    else:
        starts = range(at, -1, -1) if width is None else [at - width] if width <= at else []
        for start in starts:
            found = _run(code, text, start, saved, steps, at)
            if found is not None:
                break
    if negated:
        return saved if found is None else None
    return found


# ---- `re` ----------------------------------------------------------------------------------------


def _translated(node: Node) -> Optional[str]:
    """In the words of `re`; None: it has none for it, or means another thing."""
    parts = [_translated(part) for part in node.parts if isinstance(part, Node)]
    if None in parts or node.kind == "ref":
        return None
    inner = "".join(part for part in parts if part)
    if node.kind == "set":
        text: Optional[str] = node.set.text()
        return text
    if node.kind == "alt":
        return "(?:" + "|".join(part or "" for part in parts) + ")"
    if node.kind == "repeat":
        high = "" if node.high is None else str(node.high)
        return f"(?:{inner}){{{node.low},{high}}}" + ("?" if node.flag else "")
    if node.kind == "look":
        return "(?" + ("" if node.low else "<") + ("!" if node.flag else "=") + inner + ")"
    simple = {"start": r"\A", "end": r"\Z", "word": r"\B" if node.flag else r"\b"}.get(node.kind)
    return simple if simple is not None else f"(?:{inner})" if inner else ""


def _cost(node: Node) -> Optional[Tuple[int, int]]:
    """What a backtracking match may take at most: a power of the text's length, times a number. None: nobody
    knows."""
    costs = [_cost(part) for part in node.parts]
    if None in costs:
        return None
    known = [cost for cost in costs if cost is not None]
    if node.kind == "repeat":
        power, times = known[0]
        if node.high is None:
            return (1, times) if (power, times) == (0, 1) and _width(node.parts[0]) else None
        power, width = power * node.high, node.high - node.low + 1
        return (power, times ** node.high * width) if times == 1 or node.high < 32 else None
    if node.kind == "look" and not node.low and _width(node.parts[0]) not in range(16):
        return None
    power, times = max((cost[0] for cost in known), default=0), sum(cost[1] for cost in known)
    if node.kind != "alt":
        power, times = sum(cost[0] for cost in known), 1
        for cost in known:
            times *= cost[1]
    return (power, times) if times <= FAST_MOST else None


def _is_anchored(node: Node) -> bool:
    if node.kind == "start":
        return True
    if node.kind in ("cat", "group"):
        return bool(node.parts) and _is_anchored(node.parts[0])
    return node.kind == "alt" and all(_is_anchored(part) for part in node.parts)


class Pattern:
    """A compiled expression. Raises PatternError."""

    def __init__(self, text: str) -> None:
        if len(text) > LENGTH_MOST:
            raise PatternError(f"it has more than {LENGTH_MOST} characters")
        self.text = text
        parser = Parser(text)
        root = self._numbered(parser.whole(), parser)
        compiler = _Compiler()
        compiler.node(root)
        compiler.put(_MATCH)
        self._code = compiler.code
        self._groups = parser.groups
        self._anchored = _is_anchored(root)
        self._fast: Optional[re.Pattern[str]] = None
        cost = None if parser.references else _cost(root)
        if cost is not None:
            self._power = cost[0] + (not self._anchored)
            self._times = cost[1] * len(self._code)
            self._fast = self._compiled(_translated(root))

    @staticmethod
    def _compiled(text: Optional[str]) -> Optional[re.Pattern[str]]:
        try:
            return None if text is None else re.compile(text, re.ASCII | re.DOTALL)
        except (re.error, OverflowError, RecursionError):
            return None

    def _numbered(self, node: Node, parser: Parser) -> Node:
        """With back references by number."""
        if node.kind == "ref":
            to = node.parts[0]
            number = parser.names.get(to) if isinstance(to, str) else to if to <= parser.groups else None
            if number is None:
                raise PatternError(f"there is no group {to!r} that it could refer to")
            return Node("ref", low=number)
        return node._replace(parts=tuple(self._numbered(part, parser) for part in node.parts)) if node.parts else node

    def found_in(self, text: str, steps: Steps) -> bool:
        """Whether some part of a text matches. Raises TooMuchWork."""
        size = len(text)
        steps.spend(20 + size // STEP_CHARACTERS)
        if self._fast is not None and (size + 1) ** self._power * self._times <= FAST_MOST:
            steps.spend(size * len(self._code) // STEP_CHARACTERS)
            return self._fast.search(text) is not None
        none = (None,) * (2 * self._groups + 2)
        starts = range(1) if self._anchored else range(size + 1)
        return any(_run(self._code, text, start, none, steps) is not None for start in starts)
