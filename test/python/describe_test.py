# SPDX-License-Identifier: Apache-2.0
"""What a model is told of a function, by its hints and its docstring; and commands as tools."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import math
import pathlib
import sys
import typing
import uuid
from typing import Any, Dict, List, Optional, Set, Tuple, Union

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parents[1] / "sdk" / "python")]

from vitro import _docstring  # noqa: E402
from vitro._command import ArgumentsError, Command, CommandError, printed_value  # noqa: E402
from vitro._describe import describe_tool  # noqa: E402
from vitro._result import last_line, last_words  # noqa: E402
from vitro._schema import Schema  # noqa: E402
import pythons  # noqa: E402
from vitrotest import check, check_equal, check_in, main, skip, test  # noqa: E402


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Movie(typing.TypedDict, total=False):
    """A film.

    Args:
        name: Its title.
    """

    name: str
    year: int


class Pair(typing.NamedTuple):
    a: int
    b: str


@dataclasses.dataclass
class Node:
    """A tree's node."""

    value: int
    children: List["Node"] = dataclasses.field(default_factory=list)
    label: str = "x"


def schema_of(hint, default=None, **options):
    """The schema of one parameter of that type."""

    def function(x):
        pass

    function.__annotations__["x"] = hint
    schema = describe_tool(function)[2]
    Schema(schema)  # it compiles
    found = schema["properties"]["x"]
    return (found, schema["$defs"]) if "$defs" in schema else found


@test("types")
def _():
    string = {"type": "string"}
    for hint, want in (
            (int, {"type": "integer"}), (float, {"type": "number"}), (str, string), (bool, {"type": "boolean"}),
            (None, {"type": "null"}), (Any, {}), (list, {"type": "array"}), (List[int], {"type": "array", "items": {"type": "integer"}}),
            (typing.Sequence[str], {"type": "array", "items": string}), (Set[str], {"type": "array", "uniqueItems": True, "items": string}),
            (Tuple[int, str], {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, string]}),
            (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}), (tuple, {"type": "array"}),
            (dict, {"type": "object"}), (Dict[str, Any], {"type": "object"}),
            (Dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
            (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            (Union[int, str, None], {"anyOf": [{"type": "integer"}, string, {"type": "null"}]}),
            (Union[int, Any], {}), (typing.Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
            (typing.Literal["a", 1, None], {"enum": ["a", 1, None]}), (Color, {"type": "string", "enum": ["red", "blue"]}),
            (Level, {"type": "integer", "enum": [1]}), (datetime.datetime, {"type": "string", "format": "date-time"}),
            (datetime.date, {"type": "string", "format": "date"}), (uuid.UUID, {"type": "string", "format": "uuid"}),
            (decimal.Decimal, {"type": "string", "format": "decimal"}), (pathlib.Path, {"type": "string", "format": "path"}),
            (bytes, {"type": "string", "contentEncoding": "base64"}), (typing.NewType("Id", int), {"type": "integer"}),
            (typing.TypeVar("T", bound=int), {"type": "integer"}), (typing.Callable[[int], int], {}), (object, {}),
            (Pair, {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [{"type": "integer"}, string]})):
        check_equal(schema_of(hint), want, str(hint))
    if sys.version_info >= (3, 10):
        check_equal(schema_of(eval("list[int] | None")),
                    {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]}, "X | Y")


@test("classes with members, those that contain themselves too")
def _():
    found, definitions = schema_of(Node)
    check_equal(found, {"$ref": "#/$defs/Node"}, "reference")
    check_equal(definitions["Node"], {
        "type": "object", "properties": {"value": {"type": "integer"},
                                         "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                                         "label": {"type": "string", "default": "x"}},
        "required": ["value"], "additionalProperties": False, "description": "A tree's node."}, "dataclass")
    found, definitions = schema_of(List[Movie])
    check_equal(definitions["Movie"], {
        "type": "object", "properties": {"name": {"type": "string", "description": "Its title."}, "year": {"type": "integer"}},
        "additionalProperties": False, "description": "A film."}, "TypedDict")
    check_equal(found, {"type": "array", "items": {"$ref": "#/$defs/Movie"}}, "reference")


@test("annotations that describe and bound")
def _():
    if sys.version_info < (3, 9):
        skip("typing has no Annotated before 3.9")

    class Mark:
        ge, max_length = 1, 5

    annotated = typing.Annotated[int, "how many", Mark()]
    check_equal(schema_of(annotated), {"type": "integer", "description": "how many", "minimum": 1}, "an integer")
    check_equal(schema_of(typing.Annotated[str, Mark()])["maxLength"], 5, "text")
    check_equal(schema_of(Optional[annotated])["anyOf"][0]["description"], "how many", "within")


@test("pydantic's models")
def _():
    pythons.see_frameworks()
    try:
        import pydantic
    except ImportError:
        skip("pydantic is not installed for this interpreter")

    class Inner(pydantic.BaseModel):
        n: int = pydantic.Field(ge=1)

    class Outer(pydantic.BaseModel):
        inner: Inner
        names: List[str] = []

    found, definitions = schema_of(Outer)
    check_equal(found, {"$ref": "#/$defs/Outer"}, "reference")
    check_equal(definitions["Outer"]["properties"]["inner"], {"$ref": "#/$defs/Inner"}, "within")
    check_equal(definitions["Inner"]["properties"]["n"]["minimum"], 1, "a bound")


def tool(path: str, count: int = 3, *rest: int, mode: "Color" = Color.RED, hidden=print, **more: int) -> str:
    """Reads lines.

    As many as there are.

    Args:
        path (str): Where it is:
            in a folder.
        count: How many.

            At most.
        **more: Others.

    Returns:
        str: text
    """


@test("a function as a whole")
def _():
    name, description, schema = describe_tool(tool)
    check_equal((name, description), ("tool", "Reads lines.\n\nAs many as there are."), "name, description")
    check_equal(schema, {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where it is: in a folder."},
                       "count": {"type": "integer", "description": "How many. At most.", "default": 3},
                       "mode": {"type": "string", "enum": ["red", "blue"], "default": "red"}, "hidden": {}},
        "required": ["path"], "additionalProperties": {"type": "integer"}}, "schema")
    check_equal(describe_tool(tool, "n", "d")[:2], ("n", "d"), "given")
    check_equal(describe_tool(lambda: 1, "f")[2], {"type": "object", "properties": {}, "additionalProperties": False}, "none")


class Box:
    def method(self, a: int):
        """Does."""

    @classmethod
    def make(cls, a: int):
        """Makes."""

    def __call__(self, a: int):
        """Is called."""


def wrapped(a: int, b: "not a type" = 1):  # noqa: F722
    """Is wrapped."""


class Wrapper:
    def __init__(self, fn):
        self.fn = fn


@test("methods, partials, decorators, objects, classes, and what cannot be resolved")
def _():
    integer = {"a": {"type": "integer"}}
    for function, name, text in ((Box().method, "method", "Does."), (Box.make, "make", "Makes."), (Box(), "Box", "Is called.")):
        got = describe_tool(function)
        check_equal((got[0], got[1], got[2]["properties"]), (name, text, integer), name)
    check_equal(describe_tool(functools.partial(tool, "x"))[2].get("required"), None, "a partial has it already")
    check_equal(describe_tool(functools.partial(tool, "x"))[0], "tool", "its name")
    decorated = functools.wraps(wrapped)(lambda *args: None)
    for function in (wrapped, decorated, Wrapper(wrapped)):
        check_equal(describe_tool(function)[2]["properties"], {**integer, "b": {"default": 1}}, "a hint that nobody knows")
    check_equal(describe_tool(Node)[2]["properties"]["value"], {"type": "integer"}, "a class")
    check_equal(describe_tool(math.hypot)[2] if sys.version_info < (3, 9) else {"type": "object"}, {"type": "object"}, "of C")


@test("what cannot be called by keyword, or has no name, is an error")
def _():
    space = {}
    exec("def f(a, /, b): pass\ndef g(a=1, /, b=2): pass", space)
    for function, word in ((space["f"], "'a' can only be given by position"), (5, "want a function, found an int"),
                           (lambda: 1, "name=")):
        try:
            describe_tool(function)
            check(False, word)
        except (TypeError, ValueError) as error:
            check_in(word, str(error), "error")
    check_equal([*describe_tool(space["g"])[2]["properties"]], ["b"], "one with a default is left out")


@test("docstrings in three styles")
def _():
    numpy = """Adds.

    More.

    Parameters
    ----------
    a : int
        The first.
        It is long.
    b, c : int, optional
        Others.
    *args
        Rest.

    Returns
    -------
    x : int
        no parameter
    """
    rest = """Adds.

    :param a: The first.
        It is long.
    :type a: int
    :param int b: The second.
    :returns: x: y
    :raises ValueError: never
    """
    google = """Adds.

    Note:
        a: not this one.

    Args:
        a (Dict[str, int], optional): The first.
          It is long.
        b: The second: good.
    Raises:
        x: no
    """
    check_equal(_docstring.parse(numpy), ("Adds.\n\nMore.", {"a": "The first. It is long.", "b": "Others.", "c": "Others.",
                                                            "args": "Rest."}), "NumPy")
    check_equal(_docstring.parse(rest), ("Adds.", {"a": "The first. It is long.", "b": "The second."}), "reST")
    check_equal(_docstring.parse(google), ("Adds.", {"a": "The first. It is long.", "b": "The second: good."}), "Google")
    for text, want in ((None, ""), ("", ""), ("Just: this.", "Just: this."), ("Args:", "Args:")):
        check_equal(_docstring.parse(text), (want, {}), repr(text))


# ---- commands ---------------------------------------------------------------------------------------


@test("all cases of test/vectors/words.json")
def _():
    def spell(pieces):
        return "".join(text * times for text, times in pieces)

    cases = json.loads((HERE.parent / "vectors" / "words.json").read_text(encoding="utf-8"))
    for case in cases:
        data = bytes.fromhex(spell(case["stderr"]))
        check_equal((last_words(data), last_line(data)), (spell(case["words"]), spell(case["line"])), case["description"])
    check(len(cases) >= 15, "the file lost its cases")


@test("all cases of test/vectors/commands.json")
def _():
    groups = json.loads((HERE.parent / "vectors" / "commands.json").read_text(encoding="utf-8"))
    failed, counts = [], collections.Counter()
    for group in groups:
        try:
            command = Command(group["command"], group.get("schema"))
        except CommandError as error:
            counts["error"] += 1
            if not str(error).startswith(group.get("error", "?") + ":"):
                failed.append(f"{group['description']}: {error}")
            continue
        if "error" in group:
            failed.append(f"{group['description']}: it is accepted")
        for case in group.get("tests", []):
            counts["test"] += 1
            try:
                got, said = command.argv(case["arguments"]), ""
            except ArgumentsError as error:
                got, said = None, str(error)
            if got != case.get("argv") or "where" in case and not said.startswith(case["where"] + ":"):
                failed.append(f"{group['description']}, {case['description']}: {got} {said}")
    check(counts["error"] >= 42 and counts["test"] >= 60, counts)
    check(not failed, lambda: "\n".join(failed))


def wrong(words, schema=None, **options):
    try:
        Command(words, schema, **options)
    except CommandError as error:
        return str(error)
    return "it is accepted"


@test("templates and arguments that are wrong say what to do, as in C")
def _():
    files = {"properties": {"file": {}, "x": {}}, "additionalProperties": False}
    script = "an argument inside a script would be code; "
    for words, want in (
            (["cat", "{fiel}"], "command[1]: the schema has no argument 'fiel'; did you mean 'file'?"),
            (["sh", "-c", "cat {x}"], f"command[2]: {script}write \"$1\" for it there, and add the words 'sh' and the argument"),
            (["/usr/bin/python3.11", "-c", "print({x})"],
             f"command[2]: {script}make it a word of its own, after the script, which takes it from there"),
            (["env", "{x}"], "command[1]: the argument would be the program to run; write a program out before it"),
            (["nice", "./{x}"], "command[1]: the argument would be the program to run; write a program out before it")):
        check_equal(wrong(words, files), want, str(words))
    for words in (["python3", "-c", "{x}"], ["pythonic", "-c", "a{x}"], ["env", "A={x}", "B=1", "cat", "{x}"], ["cat", "env", "{x}"],
                  ["xargs", "-0", "cat", "{x}"]):
        check_equal(wrong(words), "it is accepted", str(words))
    for arguments, want in (({"x": "a\0b"}, "arguments.x: there is a NUL in the text"), ({}, "arguments: \"x\" is missing"),
                            ({"x": "x" * 131072}, "arguments.x: this is too long for a command line"),
                            ({"x": float("nan")}, "arguments.x: this cannot be written as JSON"),
                            ({"x": "-\x1b[2J"}, "arguments.x: this gives a word that begins with '-', \"-\\u001b[2J\"")):
        try:
            check(False, Command(["say", "{x}"]).argv(arguments))
        except ArgumentsError as error:
            check(str(error).startswith(want), str(error))
    check_in("too long", wrong(["a"] * 5000), "a template")
    check_in("list of words", wrong("ls -l"), "a text")


@test("what a command reads, and what its output means")
def _():
    for text, arguments, want in (("{a}", {"a": "-rf\n$(id)"}, "-rf\n$(id)"), ("-{a?}{b?}-", {"b": [1, 0.1]}, "-[1,0.1]-"),
                                  ("{{{a}}}", {"a": 1}, "{1}"), ("", {}, "")):
        check_equal(Command(["x"], input=text).input(arguments).decode(), want, text)
    check_equal(json.loads(Command(["x"]).input({"a": "é"})), {"a": "é"}, "the arguments as JSON")
    check_equal(wrong(["x"], input="{a...}"), "input: {a...} is for words; {a} gives the list as JSON", "a list")
    for output, want in ((b"", ""), (b"hello\n", "hello\n"), (b' {"a": [1.5]} \r\n', {"a": [1.5]}), (b"null", None),
                         (b"{}{}", "{}{}"), (b"007", "007"), (b"NaN", "NaN"), (b"[1,", "[1,"), (b'"\xff"', '"\ufffd"'),
                         (b"[" * 100000, "[" * 100000)):
        check_equal(printed_value(output), want, repr(output[:20]))


if __name__ == "__main__":
    main()
