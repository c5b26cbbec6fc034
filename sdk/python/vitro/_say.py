# SPDX-License-Identifier: Apache-2.0
"""Places and values in messages about schemas, as the C library words them; safe to print."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence, Union

NULL, BOOLEAN, INTEGER, NUMBER, STRING, ARRAY, OBJECT = (1 << i for i in range(7))
ANY = (1 << 8) - 1  # what JSON has no type for, too

_WORDS = ((OBJECT, "an object"), (ARRAY, "an array"), (STRING, "a string"), (NUMBER, "a number"),
          (INTEGER, "an integer"), (BOOLEAN, "true or false"), (NULL, "null"))
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
_ESCAPES = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f"}
_PLACE_MOST = 160
_LISTED_MOST = 8
_GUESS_LONGEST = 64
_GUESSES_MOST = 1000


class Place(NamedTuple):
    """Where a value is: a member of an object, or an element of an array. The root is None."""

    up: Optional[Any]  # a Place
    key: Union[str, int]
    is_name: bool = False  # not the member is meant but its name

    def show(self) -> str:
        if isinstance(self.key, int):
            return f"[{self.key}]"
        shown = show_text(self.key, 48)
        note = " (its name)" if self.is_name else ""
        return (f".{shown}" if _PLAIN.match(self.key) else f'["{shown}"]') + note


def show_place(name: str, at: Optional[Place]) -> str:
    """name.files[2]["a b"]; one that is too long loses its middle."""
    parts: List[str] = []
    room = _PLACE_MOST - 48
    while at is not None:
        part = at.show()
        room -= len(part)
        if room < 0:
            parts.append("...")
            break
        parts.append(part)
        at = at.up
    return show_text(name, 48) + "".join(reversed(parts))


def show_text(text: str, most: int) -> str:
    """Text with what would steer a terminal escaped, cut to `most` characters."""
    shown = ""
    for character in text[:most + 1]:
        code = ord(character)
        if character in _ESCAPES:
            character = _ESCAPES[character]
        elif not character.isprintable():
            character = f"\\u{code:04x}" if code < 0x10000 else f"\\u{{{code:x}}}"
        if len(shown) + len(character) > most:
            return shown[:most - 3] + "..."
        shown += character
    return shown


def types_of(value: Any) -> int:
    """The JSON types of a value; a whole number has two."""
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return INTEGER | NUMBER
    if isinstance(value, float):
        return NUMBER | (INTEGER if value.is_integer() else 0)
    if isinstance(value, str):
        return STRING
    if isinstance(value, (list, tuple)):
        return ARRAY
    return OBJECT if isinstance(value, dict) else 1 << 7


def show(value: Any) -> str:
    """A value in a few words."""
    types = types_of(value)
    if types & (NULL | BOOLEAN):
        return {None: "null", True: "true", False: "false"}[value]
    if types & NUMBER:
        if isinstance(value, int) and value.bit_length() > 200:
            return "a very large integer"
        return f"{int(value)}" if isinstance(value, int) else f"{float(value)!r}"
    if types & STRING:
        return f'"{show_text(value, 68)}"'
    if types & (ARRAY | OBJECT):
        return ("an " if value else "an empty ") + ("array" if types & ARRAY else "object")
    return f"a Python object of type {show_text(type(value).__name__, 40)}"


def listed(words: Sequence[str]) -> str:
    """a, b or c"""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def show_types(types: int) -> str:
    if types & NUMBER:
        types &= ~INTEGER
    return listed([word for kind, word in _WORDS if types & kind])


def show_all(values: Sequence[Any]) -> str:
    if not values:
        return "nothing at all"
    words = [show(value) for value in values[:_LISTED_MOST]]
    if len(values) > _LISTED_MOST:
        return ", ".join(words) + f" or {len(values) - _LISTED_MOST} more"
    return listed(words)


def _distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        diagonal, row[0] = row[0], i
        for j, b in enumerate(other, 1):
            diagonal, row[j] = row[j], min(diagonal + (a != b), row[j] + 1, row[j - 1] + 1)
    return row[-1]


def closest(typed: str, known: Iterable[Any]) -> Optional[str]:
    """Which of some words was meant, if one is near."""
    best, steps = None, len(typed) // 3 + 2
    if not 1 < len(typed) <= _GUESS_LONGEST:
        return None
    for number, word in enumerate(known):
        if number == _GUESSES_MOST:
            break
        if isinstance(word, str) and len(word) <= _GUESS_LONGEST and abs(len(word) - len(typed)) < steps:
            found = _distance(typed, word)
            if found < steps:
                best, steps = word, found
    return best
