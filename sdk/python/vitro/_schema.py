# SPDX-License-Identifier: Apache-2.0
"""JSON schemas of tools' inputs: compiled once, then every call's arguments are checked against them, before
a cell is used.

What is understood is draft 2020-12 as tools use it, the same as in the C library, whose cases
(test/vectors/schema.json) this passes. References are local ("#/$defs/x"); nothing is ever fetched. A keyword
that is not understood is accepted with a warning; one that is understood and wrong is an error.

Schemas and values may both be hostile: sizes, depths and the work of one check are bounded, regular
expressions included. A check that meets a bound fails. The bounds are those of the C library, but for two:
schemas are applied in one another 200 times, there 512, since each takes frames of Python's stack; and a check
takes half as many steps, each of which takes longer. What regular expressions are is said in _pattern.py.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

from ._pattern import Pattern, PatternError, TooMuchWork
from ._say import (ANY, ARRAY, BOOLEAN, INTEGER, NULL, NUMBER, OBJECT, STRING, Place, closest, show, show_place,
                   show_text, types_of)
from ._schema_rules import (
    Invalid, Node, Rule, ALWAYS, NEVER, Checking, fraction_of, bound, counted, check_const, check_enum, check_type,
    check_ref, check_multiple, check_pattern, check_prefix, check_items, check_unique, check_contains,
    check_patterns, check_additional, check_required, check_properties, check_names, check_dependent,
    check_dependent_schemas, check_all, check_any, check_one, check_not, check_if)

NODES_MOST = 10000  # schemas in a schema
VALUES_MOST = 100000  # JSON values in it, annotations included
DEPTH_MOST = 128  # of a schema as JSON
WARNINGS_MOST = 32

_TYPES = {"string": STRING, "integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN, "array": ARRAY, "object": OBJECT,
          "null": NULL}
_NOTES = {"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly",
          "writeOnly", "format", "contentMediaType", "contentEncoding"}
_TOO_MUCH = "too much work to check; make it simpler or smaller"


class SchemaError(ValueError):
    """A schema that is wrong, or too big. The message begins with the place."""


class _Compiling:
    def __init__(self, root: Any, name: str) -> None:
        self.root, self.name = root, name
        self.nodes: Dict[int, Node] = {}
        self.references: List[Tuple[List[Node], str, str]] = []  # what is to be set, text, place
        self.warned: Dict[str, str] = {}

    def fail(self, at: Optional[Place], what: str) -> SchemaError:
        return SchemaError(f"{show_place(self.name, at)}: {what}")

    def wrong(self, at: Optional[Place], value: Any, want: str) -> SchemaError:
        return self.fail(at, f"want {want}, found {show(value)}")

    def whole(self) -> Node:
        self.measure()
        root = self.node(self.root, None)
        for target, text, place in self.references:  # which grow by what they lead to
            target.append(self.node(self.follow(text, place), Place(None, text)))
        for node in list(self.nodes.values()):
            self.find_cycle(node, None, 0)
        return root

    def measure(self) -> None:
        """Bounds what compiling will take. A value that contains itself ends here too."""
        level, count = [self.root], 0
        for _ in range(DEPTH_MOST + 1):
            count += len(level)
            if count > VALUES_MOST:
                raise self.fail(None, f"the schema is too big: more than {VALUES_MOST} values")
            below: List[Any] = []
            for value in level:
                if types_of(value) == 1 << 7 or isinstance(value, dict) and not all(isinstance(k, str) for k in value):
                    raise self.fail(None, f"want JSON, found {show(value)}")
                below += value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
                if count + len(below) > VALUES_MOST:
                    break
            level = below
            if not level:
                return
        raise self.fail(None, "the schema is nested too deeply")

    def node(self, source: Any, at: Optional[Place]) -> Node:
        if isinstance(source, bool):
            return ALWAYS if source else NEVER
        if not isinstance(source, dict):
            raise self.wrong(at, source, "a schema: an object, true or false")
        node = self.nodes.get(id(source))
        if node is not None:
            return node
        if len(self.nodes) == NODES_MOST:
            raise self.fail(at, f"the schema is too big: more than {NODES_MOST} parts")
        node = self.nodes[id(source)] = Node(source)
        for name, (types, read, check) in _KEYWORDS.items():
            if name in source:
                given = read(self, source, source[name], Place(at, name))
                if check is not None and given is not None:
                    node.rules.append(Rule(name, types, check, given))
        self.warn(source, at)
        return node

    def warn(self, source: Dict[str, Any], at: Optional[Place]) -> None:
        for key in source:
            if key in _KEYWORDS or key in _NOTES or key in self.warned or len(self.warned) == WARNINGS_MOST:
                continue
            self.warned[key] = (f"{show_place(self.name, None)}: more keywords are not checked"
                                if len(self.warned) + 1 == WARNINGS_MOST else
                                f"{show_place(self.name, at)}: the keyword '{show_text(key, 68)}' is not known and not "
                                "checked")

    def pattern(self, text: str, at: Place) -> Pattern:
        try:
            return Pattern(text)
        except PatternError as error:
            raise self.fail(at, f"'{show_text(text, 68)}' is not a regular expression: {error}") from None

    def follow(self, text: str, place: str) -> Any:
        """What a reference names: a JSON pointer in a fragment."""
        shown = f'{place}: "{show_text(text, 68)}"'
        if not text.startswith("#"):
            raise SchemaError(f"{shown} is not in this schema; want one that begins with '#'")
        found = self.root
        try:
            pointer = _percents_decoded(text[1:])
            if pointer and not pointer.startswith("/"):
                raise KeyError(pointer)
            for part in pointer.split("/")[1:]:
                if "~" in part.replace("~0", "").replace("~1", ""):
                    raise KeyError(part)
                part = part.replace("~1", "/").replace("~0", "~")
                if isinstance(found, list):
                    if not part.isascii() or not part.isdigit() or part != str(int(part)):
                        raise KeyError(part)
                    found = found[int(part)]
                else:
                    found = found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise SchemaError(f"{shown} names nothing in this schema") from None
        return found

    def find_cycle(self, node: Node, via: Any, depth: int) -> None:
        """A check would walk without end where a schema leads to itself for the same value."""
        if node.source is None or node.walked == 2:
            return
        if node.walked == 1:
            for target, text, place in self.references:
                if target is via:
                    raise SchemaError(f'{place}: "{show_text(text, 68)}" leads back to itself for the same value')
            raise self.fail(None, "a reference leads back to itself")
        if depth > DEPTH_MOST:
            raise self.fail(None, "references are nested too deeply")
        node.walked = 1
        for rule in node.rules:
            for part in _in_place(rule):
                self.find_cycle(part, rule.given if rule.name == "$ref" else via, depth + 1)
        node.walked = 2


def _percents_decoded(text: str) -> str:
    data, at = bytearray(), 0
    while at < len(text):
        if text[at] == "%":
            digits = text[at + 1:at + 3]
            if len(digits) < 2 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError(text)
            data.append(int(digits, 16))
            at += 3
        else:
            data += text[at].encode()
            at += 1
    return data.decode()


def _in_place(rule: Rule) -> List[Node]:
    """The schemas that a rule applies to the same value, not to a part of it."""
    if rule.name in ("allOf", "anyOf", "oneOf", "$ref"):
        return list(rule.given)
    if rule.name == "dependentSchemas":
        return list(rule.given.values())
    if rule.name == "not":
        return [rule.given]
    return list(rule.given) if rule.name == "if" else []


def _read_value(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return value


def _read_const(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return [value]


def _read_enum(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, list):
        raise c.wrong(at, value, "an array of values")
    return value


def _one_type(c: _Compiling, value: Any, at: Place) -> int:
    found = _TYPES.get(value) if isinstance(value, str) else None
    if found is not None:
        return found
    near = closest(value, _TYPES) if isinstance(value, str) else None
    if near is not None:
        raise c.fail(at, f'there is no type {show(value)}; did you mean "{near}"?')
    raise c.wrong(at, value, 'one of "string", "integer", "number", "boolean", "array", "object" or "null"')


def _read_type(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, list):
        return _one_type(c, value, at)
    if not value:
        raise c.wrong(at, value, "a type, or some in an array")
    types = 0
    for index, item in enumerate(value):
        types |= _one_type(c, item, Place(at, index))
    return types


def _read_ref(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, str):
        raise c.wrong(at, value, 'a string such as "#/$defs/name"')
    target: List[Node] = []
    c.references.append((target, value, show_place(c.name, at)))
    return target


def _read_number(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not types_of(value) & NUMBER:
        raise c.wrong(at, value, "a number")
    return value


def _read_multiple(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not types_of(value) & NUMBER or not 0 < value < float("inf"):
        raise c.wrong(at, value, "a number above 0")
    return value, fraction_of(value)


def _read_count(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not types_of(value) & INTEGER or value < 0:
        raise c.wrong(at, value, "a whole number, 0 or more")
    return int(value)


def _read_pattern(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, str):
        raise c.wrong(at, value, "a regular expression in a string")
    return c.pattern(value, at)


def _read_unique(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, bool):
        raise c.wrong(at, value, "true or false")
    return value or None


def _read_node(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return c.node(value, at)


def _read_nodes(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, list) or not value:
        raise c.wrong(at, value, "an array of schemas, one at least")
    return [c.node(item, Place(at, index)) for index, item in enumerate(value)]


def _read_items(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if isinstance(value, list):
        raise c.wrong(at, value, "one schema for all items (a list of them is 'prefixItems')")
    prefix = source.get("prefixItems")
    return c.node(value, at), len(prefix) if isinstance(prefix, list) else 0


def _read_contains(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    node, bounds = c.node(value, at), []
    for name, default in (("minContains", 1), ("maxContains", float("inf"))):
        given = source.get(name, default)
        bounds.append(_read_count(c, source, given, Place(at.up, name)) if name in source else default)
    return (node, *bounds)


def _read_if(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return (c.node(value, at), *(c.node(source.get(name, True), Place(at.up, name)) for name in ("then", "else")))


def _members(c: _Compiling, value: Any, at: Place) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise c.wrong(at, value, "an object")
    return value


def _read_members(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return {key: c.node(part, Place(at, key)) for key, part in _members(c, value, at).items()}


def _read_patterns(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return [(c.pattern(key, Place(at, key)), c.node(part, Place(at, key)))
            for key, part in _members(c, value, at).items()]


def _read_additional(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    properties, patterns = source.get("properties", {}), source.get("patternProperties", {})
    return (c.node(value, at), properties if isinstance(properties, dict) else {},
            _read_patterns(c, source, patterns, Place(at.up, "patternProperties")))


def _read_names(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    if not isinstance(value, list):
        raise c.wrong(at, value, "an array of names")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise c.wrong(Place(at, index), item, "a property's name")
    return value


def _read_dependent(c: _Compiling, source: Dict[str, Any], value: Any, at: Place) -> Any:
    return {key: _read_names(c, source, part, Place(at, key)) for key, part in _members(c, value, at).items()}


# In the order of checking: types of values that it says something about, how it is read, how it is checked.
_KEYWORDS: Dict[str, Tuple[int, Callable[..., Any], Optional[Callable[..., None]]]] = {
    # What says most about a wrong value comes first.
    "const": (ANY, _read_const, lambda c, given, value, at: check_const(c, given[0], value, at)),
    "enum": (ANY, _read_enum, check_enum),
    "type": (ANY, _read_type, check_type),
    "$ref": (ANY, _read_ref, check_ref),
    "minimum": (NUMBER, _read_number, bound("of at least", lambda value, bound: bool(value >= bound))),
    "maximum": (NUMBER, _read_number, bound("of at most", lambda value, bound: bool(value <= bound))),
    "exclusiveMinimum": (NUMBER, _read_number, bound("above", lambda value, bound: bool(value > bound))),
    "exclusiveMaximum": (NUMBER, _read_number, bound("below", lambda value, bound: bool(value < bound))),
    "multipleOf": (NUMBER, _read_multiple, check_multiple),
    "minLength": (STRING, _read_count, counted("at least", "character", 1)),
    "maxLength": (STRING, _read_count, counted("at most", "character", -1)),
    "pattern": (STRING, _read_pattern, check_pattern),
    "minItems": (ARRAY, _read_count, counted("at least", "item", 1)),
    "maxItems": (ARRAY, _read_count, counted("at most", "item", -1)),
    "prefixItems": (ARRAY, _read_nodes, check_prefix),
    "items": (ARRAY, _read_items, check_items),
    "uniqueItems": (ARRAY, _read_unique, check_unique),
    "contains": (ARRAY, _read_contains, check_contains),
    "minContains": (ARRAY, _read_count, None),
    "maxContains": (ARRAY, _read_count, None),
    # A name that is not known explains one that is missing.
    "patternProperties": (OBJECT, _read_patterns, check_patterns),
    "additionalProperties": (OBJECT, _read_additional, check_additional),
    "required": (OBJECT, _read_names, check_required),
    "properties": (OBJECT, _read_members, check_properties),
    "propertyNames": (OBJECT, _read_node, check_names),
    "minProperties": (OBJECT, _read_count, counted("at least", "member", 1)),
    "maxProperties": (OBJECT, _read_count, counted("at most", "member", -1)),
    "dependentRequired": (OBJECT, _read_dependent, check_dependent),
    "dependentSchemas": (OBJECT, _read_members, check_dependent_schemas),
    "allOf": (ANY, _read_nodes, check_all),
    "anyOf": (ANY, _read_nodes, check_any),
    "oneOf": (ANY, _read_nodes, check_one),
    "not": (ANY, _read_node, check_not),
    "if": (ANY, _read_if, check_if),
    "then": (ANY, _read_node, None),
    "else": (ANY, _read_node, None),
    "$defs": (ANY, _read_members, None),
    "definitions": (ANY, _read_members, None),
}


class Schema:
    """A compiled schema, which any number of threads may check against. Raises SchemaError.

    source: what it was compiled from, as it is; do not change it afterwards.
    warnings: what it says that is not checked, a line for each keyword.
    """

    def __init__(self, source: Any, name: str = "schema") -> None:
        compiling = _Compiling(source, name)
        try:
            self._root = compiling.whole()
        except RecursionError:
            raise compiling.fail(None, "the schema is nested too deeply") from None
        self.source = source
        self.warnings: List[str] = list(compiling.warned.values())

    def check(self, value: Any, name: str = "arguments") -> Optional[str]:
        """None if a value fits; else where, what is wanted and what was found, in a line that is safe to print:
        "arguments.files[2].name: want a string, found 5"."""
        checking = Checking(name)
        try:
            checking.node(self._root, value, None)
        except Invalid as error:
            return str(error)
        except (TooMuchWork, RecursionError):
            return f"{show_place(name, None)}: {_TOO_MUCH}"
        return None
