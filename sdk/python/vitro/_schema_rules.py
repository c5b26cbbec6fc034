# SPDX-License-Identifier: Apache-2.0
"""How values are checked by a compiled schema: the walk, its bounds, and the rules of each keyword.

A schema is a graph of nodes; a node is a list of rules; a rule is a keyword with what it was given. See
_schema.py, which compiles them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Callable, Dict, List, Optional, Tuple

from ._pattern import Pattern, Steps, TooMuchWork
from ._say import (ARRAY, NUMBER, OBJECT, STRING, Place, closest, listed, show, show_all, show_place, show_text,
                   show_types, types_of)

NESTING_MOST = 200  # of schemas applied in one another, in a check
STEPS_MOST = 1000000  # of one check: a second of work at the worst


class Invalid(Exception):
    """A value does not fit; the text is not made while alternatives are tried."""


class Node:
    """A compiled schema: its rules, in the order of checking."""

    __slots__ = ("source", "rules", "never", "walked")

    def __init__(self, source: Any, never: bool = False) -> None:
        self.source = source
        self.rules: List[Rule] = []
        self.never = never
        self.walked = 0  # while cycles are looked for: 1 within, 2 done


class Rule:
    __slots__ = ("name", "types", "check", "given")

    def __init__(self, name: str, types: int, check: Any, given: Any) -> None:
        self.name, self.types, self.check, self.given = name, types, check, given


ALWAYS, NEVER = Node(None), Node(None, never=True)


# ---- values --------------------------------------------------------------------------------------


def _equal(a: Any, b: Any, steps: Steps, depth: int = 0) -> bool:
    """As JSON has it: 1 is 1.0, and true is not 1."""
    steps.spend(1)
    if depth > NESTING_MOST:
        raise TooMuchWork
    kinds = types_of(a), types_of(b)
    if kinds[0] & kinds[1] & NUMBER:
        return bool(a == b)
    if kinds[0] != kinds[1]:
        return False
    if kinds[0] == ARRAY:
        return len(a) == len(b) and all(_equal(x, y, steps, depth + 1) for x, y in zip(a, b))
    if kinds[0] == OBJECT:
        return len(a) == len(b) and all(key in b and _equal(a[key], b[key], steps, depth + 1) for key in a)
    if kinds[0] == STRING:
        steps.spend(len(a) // 16)
    return bool(a == b)


def _canonical(value: Any, steps: Steps, depth: int = 0) -> str:
    """Text that is the same for equal values. Text, since nobody can make its hashes collide."""
    steps.spend(1)
    if depth > NESTING_MOST:
        raise TooMuchWork
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_canonical(item, steps, depth + 1) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{_canonical(value[key], steps, depth + 1)}" for key in sorted(value, key=str)) + "}"
    if isinstance(value, int) and not isinstance(value, bool):
        steps.spend(value.bit_length() // 64)
        return f"{value:x}"
    if isinstance(value, str):
        steps.spend(len(value) // 16)
    return f"{type(value).__name__}{value!r}"


def fraction_of(number: Any) -> Fraction:
    """The number that is meant by how it is written: 0.1 is a tenth."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


# ---- checking ------------------------------------------------------------------------------------


class Checking:
    """One check: what is left to spend, and how loud it is."""

    __slots__ = ("name", "steps", "depth", "quiet")

    def __init__(self, name: str) -> None:
        self.name, self.steps, self.depth, self.quiet = name, Steps(STEPS_MOST), 0, 0

    def fail(self, at: Optional[Place], what: str) -> Invalid:
        return Invalid(f"{show_place(self.name, at)}: {what}")

    def wrong(self, at: Optional[Place], value: Any, want: str) -> Invalid:
        return self.fail(at, f"want {want}, found {show(value)}")

    def node(self, node: Node, value: Any, at: Optional[Place]) -> None:
        """Applies a schema: returns if it fits, else raises."""
        self.steps.spend(1)
        if self.depth == NESTING_MOST:
            raise TooMuchWork
        if node.never:
            raise self.wrong(at, value, "nothing here") if not self.quiet else Invalid
        self.depth += 1
        types = types_of(value)
        for rule in node.rules:
            if types & rule.types:
                rule.check(self, rule.given, value, at)
        self.depth -= 1

    def fits(self, node: Node, value: Any, at: Optional[Place]) -> bool:
        """The same, where a failure is an answer."""
        depth = self.depth
        self.quiet += 1
        try:
            self.node(node, value, at)
        except Invalid:
            self.depth = depth
            return False
        finally:
            self.quiet -= 1
        return True


def check_const(c: Checking, wanted: Any, value: Any, at: Optional[Place]) -> None:
    if _equal(wanted, value, c.steps):
        return
    if c.quiet:
        raise Invalid
    if isinstance(wanted, (dict, list)):
        raise c.fail(at, "want the one value that the schema's 'const' names")
    raise c.wrong(at, value, show(wanted))


def check_enum(c: Checking, values: List[Any], value: Any, at: Optional[Place]) -> None:
    if any(_equal(wanted, value, c.steps) for wanted in values):
        return
    if c.quiet:
        raise Invalid
    error = f"want {show_all(values)}, found {show(value)}"
    near = closest(value, values) if isinstance(value, str) else None
    raise c.fail(at, error if near is None else f'{error}; did you mean "{show_text(near, 64)}"?')


def check_type(c: Checking, types: int, value: Any, at: Optional[Place]) -> None:
    if not types_of(value) & types:
        raise Invalid if c.quiet else c.wrong(at, value, show_types(types))


def check_ref(c: Checking, target: List[Node], value: Any, at: Optional[Place]) -> None:
    c.node(target[0], value, at)


def bound(words: str, holds: Callable[[Any, Any], bool]) -> Callable[..., None]:
    def check(c: Checking, bound: Any, value: Any, at: Optional[Place]) -> None:
        if not holds(value, bound):
            raise c.wrong(at, value, f"a number {words} {show(bound)}")

    return check


def check_multiple(c: Checking, given: Tuple[Any, Fraction], value: Any, at: Optional[Place]) -> None:
    unit, fraction = given
    c.steps.spend(5 + (value.bit_length() // 64 if isinstance(value, int) else 0))
    if isinstance(value, float) and value - value != 0 or fraction_of(value) % fraction != 0:  # not finite
        raise c.wrong(at, value, f"a number that is a multiple of {show(unit)}")


def counted(words: str, noun: str, sign: int) -> Callable[..., None]:
    def check(c: Checking, count: Any, value: Any, at: Optional[Place]) -> None:
        found = len(value)
        if (found - count) * sign < 0:
            raise c.fail(at, f"want {words} {count} {noun}{'' if count == 1 else 's'}, found {found}")

    return check


def check_pattern(c: Checking, pattern: Pattern, value: str, at: Optional[Place]) -> None:
    if not pattern.found_in(value, c.steps):
        raise c.wrong(at, value, f"text that matches '{show_text(pattern.text, 150)}'")


def check_prefix(c: Checking, nodes: List[Node], value: Any, at: Optional[Place]) -> None:
    for index, (node, item) in enumerate(zip(nodes, value)):
        c.node(node, item, Place(at, index))


def check_items(c: Checking, given: Tuple[Node, int], value: Any, at: Optional[Place]) -> None:
    node, first = given
    if node.never and len(value) > first:
        raise c.fail(Place(at, first), f"want no more than {first} items, found {len(value)}")
    for index in range(first, len(value)):
        c.node(node, value[index], Place(at, index))


def check_unique(c: Checking, _: Any, value: Any, at: Optional[Place]) -> None:
    seen: Dict[str, int] = {}
    for index, item in enumerate(value):
        first = seen.setdefault(_canonical(item, c.steps), index)
        if first != index:
            raise c.fail(at, f"want items that differ, found [{first}] and [{index}] equal")


def check_contains(c: Checking, given: Tuple[Node, Any, Any], value: Any, at: Optional[Place]) -> None:
    node, least, most = given
    count = sum(c.fits(node, item, Place(at, index)) for index, item in enumerate(value))
    if count < least or count > most:
        words = f"at least {least}" if count < least else f"at most {most}"
        raise c.fail(at, f"want {words} items that fit the schema's 'contains', found {count}")


def check_patterns(c: Checking, given: List[Tuple[Pattern, Node]], value: Any, at: Optional[Place]) -> None:
    for key in value:
        for pattern, node in given:
            if isinstance(key, str) and pattern.found_in(key, c.steps):
                c.node(node, value[key], Place(at, key))


def check_additional(c: Checking, given: Tuple[Node, Dict[str, Any], List[Tuple[Pattern, Node]]], value: Any,
                      at: Optional[Place]) -> None:
    node, properties, patterns = given
    for key in value:
        c.steps.spend(1)
        if key in properties or any(pattern.found_in(str(key), c.steps) for pattern, _ in patterns):
            continue
        if not node.never:
            c.node(node, value[key], Place(at, str(key)))
            continue
        if c.quiet:
            raise Invalid
        near = closest(str(key), (name for name in properties if name not in value))
        guess = "" if near is None else f"; did you mean '{show_text(near, 64)}'?"
        raise c.fail(Place(at, str(key)), f"there is no such property{guess}")


def check_required(c: Checking, names: List[str], value: Any, at: Optional[Place]) -> None:
    c.steps.spend(len(names))
    for name in names:
        if name not in value:
            raise c.fail(at, f"{show(name)} is missing")


def check_properties(c: Checking, members: Dict[str, Node], value: Any, at: Optional[Place]) -> None:
    c.steps.spend(len(members))
    for key, node in members.items():
        if key in value:
            c.node(node, value[key], Place(at, key))


def check_names(c: Checking, node: Node, value: Any, at: Optional[Place]) -> None:
    for key in value:
        c.node(node, key, Place(at, str(key), True))


def check_dependent(c: Checking, given: Dict[str, List[str]], value: Any, at: Optional[Place]) -> None:
    for key, names in given.items():
        c.steps.spend(1 + len(names))
        for name in names if key in value else ():
            if name not in value:
                raise c.fail(at, f"{show(name)} is missing, which '{show_text(key, 68)}' needs")


def check_dependent_schemas(c: Checking, members: Dict[str, Node], value: Any, at: Optional[Place]) -> None:
    c.steps.spend(len(members))
    for key, node in members.items():
        if key in value:
            c.node(node, value, at)


def check_all(c: Checking, nodes: List[Node], value: Any, at: Optional[Place]) -> None:
    for node in nodes:
        c.node(node, value, at)


def check_any(c: Checking, nodes: List[Node], value: Any, at: Optional[Place]) -> None:
    if not any(c.fits(node, value, at) for node in nodes):
        raise _none_fits(c, nodes, value, at, "anyOf")


def check_one(c: Checking, nodes: List[Node], value: Any, at: Optional[Place]) -> None:
    first: Optional[int] = None
    for index, node in enumerate(nodes):
        if not c.fits(node, value, at):
            continue
        if first is not None:
            raise c.fail(at, f"want just one of the alternatives of 'oneOf', but [{first}] and [{index}] both fit")
        first = index
    if first is None:
        raise _none_fits(c, nodes, value, at, "oneOf")


def check_not(c: Checking, node: Node, value: Any, at: Optional[Place]) -> None:
    if c.fits(node, value, at):
        raise c.fail(at, f"found {show(value)}, which the schema's 'not' excludes")


def check_if(c: Checking, given: Tuple[Node, Node, Node], value: Any, at: Optional[Place]) -> None:
    c.node(given[1] if c.fits(given[0], value, at) else given[2], value, at)


def _is_meant(c: Checking, node: Node, value: Any, is_member: bool = False) -> bool:
    """Whether a value is of the kind that a schema is about, as far as it says by a type or a fixed value."""
    for rule in node.rules:
        is_fixed = rule.name == "const" or rule.name == "enum" and len(rule.given) == 1
        if rule.name == "$ref" and not _is_meant(c, rule.given[0], value, is_member):
            return False
        if is_fixed or not is_member and rule.name in ("type", "enum"):
            try:
                rule.check(c, rule.given, value, None)
            except Invalid:
                return False
        if rule.name == "properties" and not is_member and isinstance(value, dict):
            # {"kind": "circle", ...} is meant for the alternative that wants this kind.
            if not all(_is_meant(c, part, value[key], True) for key, part in rule.given.items() if key in value):
                return False
    return not node.never


def _none_fits(c: Checking, nodes: List[Node], value: Any, at: Optional[Place], name: str) -> Invalid:
    """Where only one alternative is about such values, what is wrong by that one is what helps."""
    if c.quiet:
        return Invalid()
    c.quiet += 1
    meant = [node for node in nodes if _is_meant(c, node, value)]
    c.quiet -= 1
    if len(meant) == 1:
        try:
            c.node(meant[0], value, at)
        except Invalid as error:
            return error
    words = [_wanted(node) for node in nodes]
    if None in words:
        return c.wrong(at, value, f"one of the {len(nodes)} alternatives of '{name}'")
    return c.wrong(at, value, listed([word for word in words if word is not None]))


def _wanted(node: Node) -> Optional[str]:
    """What a schema wants, in a few words, if there are some for it."""
    for rule in node.rules:
        if rule.name == "const":
            return show(rule.given[0])
        if rule.name == "enum":
            return show_all(rule.given)
        if rule.name == "type":
            return show_types(rule.given)
        if rule.name == "$ref":
            return _wanted(rule.given[0])
    return None
