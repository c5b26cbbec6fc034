# SPDX-License-Identifier: Apache-2.0
"""Schemas of tools' inputs: the cases that all implementations pass, messages, and what is made to take for
ever."""

import json
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parents[1] / "sdk" / "python")]

from vitro._pattern import Pattern, PatternError, Steps  # noqa: E402
from vitro._schema import Schema, SchemaError  # noqa: E402
from vitrotest import check, check_equal, check_in, main, test  # noqa: E402

MUCH = "arguments: too much work to check; make it simpler or smaller"


def check_value(schema, value):
    return Schema(schema).check(value, "arguments")


def wrong(schema):
    """What is wrong with a schema."""
    try:
        Schema(schema, "schema")
    except SchemaError as error:
        return str(error)
    return "it is accepted"


@test("all cases of test/vectors/schema.json")
def _():
    groups = json.loads((HERE.parent / "vectors" / "schema.json").read_text(encoding="utf-8"))
    failed, count = [], 0
    for group in groups:
        if "error" in group:
            count += 1
            said = wrong(group["schema"])
            if not said.startswith(group["error"] + ":"):
                failed.append(f"{group['description']}: {said}")
            continue
        schema = Schema(group["schema"], "schema")
        warned = group.get("warns", [])
        if len(schema.warnings) != len(warned) or not all(f"'{k}'" in " ".join(schema.warnings) for k in warned):
            failed.append(f"{group['description']}: warns {schema.warnings}")
        for case in group.get("tests", []):
            count += 1
            said = schema.check(case["data"], "value")
            if (said is None) != case["valid"] or "where" in case and not said.startswith(case["where"] + ":"):
                failed.append(f"{group['description']}, {case['description']}: {said}")
    check(count > 500, f"there are {count} cases")
    check(not failed, lambda: "\n".join(failed))


FILES = {"type": "object", "properties": {"files": {"type": "array", "items": {
    "properties": {"name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
                   "mode": {"enum": ["read", "write", "append"]}, "size": {"minimum": 0.5},
                   "to": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"const": None}]},
                   "tags": {"uniqueItems": True, "maxItems": 2}, "kind": {"const": "x"},
                   "not": {"not": {"const": 1}}, "never": False, "step": {"multipleOf": 0.1}},
    "additionalProperties": False, "required": ["name"]}}}}


@test("messages are the C library's")
def _():
    for item, want in (
            ({"name": 5}, ".name: want a string, found 5"),
            ({"name": {}}, ".name: want a string, found an empty object"),
            ({"name": "a"}, ".name: want at least 2 characters, found 1"),
            ({"name": "a\nb"}, ".name: want text that matches '^[a-z]+$', found \"a\\nb\""),
            ({}, ": \"name\" is missing"),
            ({"nam": "ab"}, ".nam: there is no such property; did you mean 'name'?"),
            ({"name": "ab", "quite else": 1}, "[\"quite else\"]: there is no such property"),
            ({"name": "ab", "mode": "wirte"},
             ".mode: want \"read\", \"write\" or \"append\", found \"wirte\"; did you mean \"write\"?"),
            ({"name": "ab", "mode": 1}, ".mode: want \"read\", \"write\" or \"append\", found 1"),
            ({"name": "ab", "size": 0.1}, ".size: want a number of at least 0.5, found 0.1"),
            ({"name": "ab", "to": 1.5}, ".to: want a string, an integer or null, found 1.5"),
            ({"name": "ab", "tags": [1, 1.0]}, ".tags: want items that differ, found [0] and [1] equal"),
            ({"name": "ab", "tags": [1, 2, 3]}, ".tags: want at most 2 items, found 3"),
            ({"name": "ab", "kind": "y"}, ".kind: want \"x\", found \"y\""),
            ({"name": "ab", "not": 1}, ".not: found 1, which the schema's 'not' excludes"),
            ({"name": "ab", "never": [1]}, ".never: want nothing here, found an array"),
            ({"name": "ab", "step": 0.25}, ".step: want a number that is a multiple of 0.1, found 0.25")):
        check_equal(check_value(FILES, {"files": [{"name": "ok"}, item]}), "arguments.files[1]" + want, str(item))
    check_equal(wrong({"properties": {"a": {"type": "strin"}}}),
                'schema.properties.a.type: there is no type "strin"; did you mean "string"?', "a type")
    check_equal(wrong({"items": {"$ref": "#/$defs/x"}}), 'schema.items.$ref: "#/$defs/x" names nothing in this schema', "ref")


@test("messages are safe to print, and short")
def _():
    said = check_value({"additionalProperties": {"type": "null"}}, {"\x1b[31m\n\u202e" * 1000: "\x1b[31m\n" * 1000})
    check(said.isprintable() and len(said) < 400, repr(said))
    check_in('want null, found "\\u001b[31m\\n', said, "message")
    check(len(check_value({"enum": ["a" * 60] * 100}, "b" * 10000)) < 1000, "an enum")


@test("what is no JSON does not fit")
def _():
    check_in("found a Python object of type bytes", check_value({"type": "string"}, b"a"), "bytes")
    check_equal(check_value({"type": "array", "items": {"type": "integer"}}, (1, 2)), None, "a tuple is an array")
    check_in("want an integer, found true", check_value({"type": "integer"}, True), "bool")
    check_in("found nan", check_value({"multipleOf": 1}, float("nan")), "nan")
    check_in("want JSON", wrong({"const": b"a"}), "a schema")
    check_equal(check_value({"maximum": 2 ** 70}, 2 ** 70), None, "integers of any size")
    check_in("at most", check_value({"maximum": 2 ** 70}, 2 ** 70 + 1), "integers of any size")


BOMBS = (("^(a+)+$", "a", 40), ("^(a|aa)+$", "a", 60), ("(.*)*[xy]", "a", 5000), ("a*[bc]", "a", 200000),
         (".*[xy]", "ab\n", 100000), ("[^x]*[^x]*[^x]*[xy]", "a", 100000), ("(a*)*\\1[bc]", "a", 100000),
         ("(a*)\\1[bc]", "a", 300000), ("a{60000}[bc]", "a", 1000000), ("[ab]{30000}[cd]", "a", 1000000),
         ("(?:a(?=.*[bc]))+[bc]", "a", 100000), ("(?<=a{200})[bc]", "a", 1000000), ("(?<=a*)[bc]", "a", 100000),
         ("^(?:(?:a?){30}){30}[bc]$", "a", 1000), ("a?" * 30 + "a" * 30, "a", 29), ("(?:a|a)" * 30 + "$", "a", 30),
         ("(?:a{0,30}){30}[bc]", "a", 1000), ("(?:(?:a|b)(?:a|b)){20}c", "a", 50), ("(?:a{0,31}){0,31}$", "a", 200))


@test("patterns end, whatever the text")
def _():
    for pattern, unit, count in BOMBS:
        start = time.process_time()
        said = check_value({"pattern": pattern}, unit * count + "!")
        took = time.process_time() - start
        check(said is not None and took < 4, f"{pattern}: {said}, {took:.2f} s")


@test("a bound is no answer")
def _():
    text = "a" * 60 + "!"
    for schema in ({"not": {"pattern": "^(a+)+$"}}, {"anyOf": [{"pattern": "^(a+)+$"}, True]}, {"if": {"pattern": "^(a+)+$"}}):
        check_equal(check_value(schema, text), MUCH, str(schema))


@test("schemas and values that are made to take for ever end")
def _():
    doubling = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(40)}
    doubling["d40"] = {"type": "integer"}
    start = time.process_time()
    check_equal(check_value({"$ref": "#/$defs/d0", "$defs": doubling}, 1), MUCH, "doubling")
    tree, value = {"items": {"$ref": "#"}}, []
    for _ in range(60):
        value = [value]
    check_equal(check_value(tree, value), None, "deep")
    for _ in range(100000):
        value = [value]
    check_equal(check_value(tree, value), MUCH, "deeper")
    check_equal(check_value({"uniqueItems": True}, [value]), MUCH, "deeper")
    deep = {}
    for _ in range(200):
        deep = {"not": deep}
    check_in("nested too deeply", wrong(deep), "a schema")
    loop = {}
    loop["not"] = {"not": loop}
    check_in("nested too deeply", wrong(loop), "one that contains itself")
    check_in("leads back to itself", wrong({"$ref": "#"}), "a reference to itself")
    check_in("too big", wrong({"anyOf": [{} for _ in range(10000)]}), "parts")
    check_in("too big", wrong({"enum": list(range(100000))}), "values")
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5000)}
    check_in("nested too deeply", wrong({"$defs": {**chain, "d5000": True}}), "a chain")
    check(time.process_time() - start < 10, "time")


@test("items that differ are told apart in good time")
def _():
    start = time.process_time()
    check_equal(check_value({"uniqueItems": True}, list(range(100000))), None, "many")
    check_equal(check_value({"uniqueItems": True}, [*range(1000), 777.0]),
                "arguments: want items that differ, found [777] and [1000] equal", "message")
    same = (1 << 61) - 1  # what all hashes of integers are a remainder of
    check_equal(check_value({"uniqueItems": True}, [same * i for i in range(50000)]), None, "with equal hashes")
    check_equal(check_value({"uniqueItems": True}, [1, True, "1", [1], {"a": 1}, {"a": True}]), None, "of many kinds")
    check_in("equal", check_value({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2.0, "a": 1}]), "objects")
    check(time.process_time() - start < 4, "time")


@test("regular expressions by either matcher")
def _():
    cases = (("^a.c$", "abc", True), ("^a.c$", "a\nc", False), ("a$", "a\n", False), (r"^\d$", "\u0663", False),
             (r"^\w+$", "é", False), ("[^]", "\n", True), ("[]", "a", False), (r"^(a|b)\1$", "bb", True),
             (r"^(a|b)\1$", "ab", False), (r"(?<x>a)\k<x>", "aa", True), ("(?<!a)b", "ab", False), ("(?<=a+)b", "aab", True),
             ("^(a*?)(a*)$", "aaa", True), ("^a{2,3}$", "aaaa", False), ("^(?:ab){2,3}$", "ababab", True), (r"\bx\B", "xy", True),
             (r"^\p{Lu}\P{Lu}$", "Éa", True), (r"^[\p{L}\d_]+$", "é1_", True), ("^(a|ab)(c|bcd)$", "abcd", True),
             (r"^(?:(a)|b)\1$", "b", True), ("a{,2}", "a{,2}", True), (r"^\cA$", "\x01", True), (r"^[\w-]+$", "a-b", True),
             (r"^\ud83d\ude00$", "\U0001f600", True), ("^(?:a?)*$", "aa", True), ("x*", "", True), ("^[a-]+$", "a-", True),
             ("(?=.*\\d)(?=.*[a-z])^.{4,8}$", "abc1", True), ("(?=.*\\d)(?=.*[a-z])^.{4,8}$", "abcd", False),
             (r"^[^\s@]+@[^\s@]+\.[a-z]{2,}$", "a.b@c.de", True), (r"[\b]", "\x08", True), (r"^\/\.\-$", "/.-", True))
    for text, subject, want in cases:
        pattern = Pattern(text)
        check_equal(pattern.found_in(subject, Steps(10000)), want, text)
        pattern._fast = None
        check_equal(pattern.found_in(subject, Steps(10000)), want, text + " without re")
    check(Pattern(r"^\d{4}-(0[1-9]|1[0-2])$")._fast is not None, "a plain one goes to re")
    for text in ("(", ")", "[", "a**", "a++", "*", "(?i)a", "(?1)", r"\1", r"\k<a>", "\\", "a{3,1}", "[b-a]", r"\q", "(?>a)",
                 r"\p{Greek}", "(" * 200 + ")" * 200, "((a{99999}){99999}){99999}", "a" * 5000, "(?<a>.)(?<a>.)", "a{100000}"):
        try:
            Pattern(text)
            check(False, f"{text[:40]} is accepted")
        except PatternError:
            pass


if __name__ == "__main__":
    main()
