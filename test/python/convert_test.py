# SPDX-License-Identifier: Apache-2.0
"""Arguments that JSON has no types for, as the annotations of a function have them."""

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib.util
import ipaddress
import pathlib
import re
import sys
import typing
import uuid
from typing import Any, Dict, FrozenSet, Iterable, List, Optional, Set, Tuple, Union

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "lib"), str(HERE.parents[1] / "sdk" / "python")]

from vitro._describe import describe_tool  # noqa: E402
from vitro._schema import Schema  # noqa: E402
from vitrotest import check, check_equal, check_in, main, test  # noqa: E402

_spec = importlib.util.spec_from_file_location("convert", HERE.parents[1] / "runtimes" / "python" / "convert.py")
convert = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(convert)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


class Movie(typing.TypedDict):
    name: str
    day: datetime.date


class Pair(typing.NamedTuple):
    a: float
    b: Color


class Word(str):
    pass


@dataclasses.dataclass
class Node:
    name: str
    weight: float = 0.0
    next: "Optional[Node]" = None
    tags: Set[Color] = dataclasses.field(default_factory=set)

    def __post_init__(self):
        if not self.name:
            raise ValueError("a node has a name")


class Model:
    """As pydantic's: what makes it checks it."""

    def __init__(self, data):
        self.data = data

    @classmethod
    def model_json_schema(cls, ref_template=""):
        return {"type": "object"}

    @classmethod
    def model_validate(cls, data):
        return cls(data)

    def __eq__(self, other):
        return self.data == other.data


Id = typing.NewType("Id", uuid.UUID)
DAY = datetime.date(2024, 2, 29)

CASES = [
    (float, 1, 1.0), (int, 1, 1), (str, "a", "a"), (Any, {"a": [1]}, {"a": [1]}), (bool, True, True),
    (Color, "red", Color.RED), (Level, 1, Level.LOW), (Word, "w", Word("w")),
    (datetime.date, "2024-02-29", DAY), (datetime.time, "12:30:00", datetime.time(12, 30)),
    (datetime.datetime, "2024-02-29T01:02:03Z", datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.timezone.utc)),
    (datetime.timedelta, "P1DT1H30M0.5S", datetime.timedelta(days=1, hours=1, minutes=30, seconds=0.5)),
    (datetime.timedelta, "-PT5S", datetime.timedelta(seconds=-5)),
    (decimal.Decimal, "1.50", decimal.Decimal("1.50")), (uuid.UUID, str(uuid.UUID(int=5)), uuid.UUID(int=5)),
    (Id, str(uuid.UUID(int=5)), uuid.UUID(int=5)), (bytes, "aGk=", b"hi"), (bytearray, "aGk=", bytearray(b"hi")),
    (ipaddress.IPv4Address, "10.0.0.1", ipaddress.IPv4Address("10.0.0.1")), (re.Pattern, "a+", re.compile("a+")),
    (pathlib.Path, "/a/b", pathlib.Path("/a/b")), (pathlib.PurePosixPath, "a", pathlib.PurePosixPath("a")),
    (List[float], [1, 2.5], [1.0, 2.5]), (Iterable[Color], ["red"], [Color.RED]), (list, [1], [1]),
    (Set[int], [1, 2], {1, 2}), (FrozenSet[Color], ["red"], frozenset([Color.RED])), (collections.abc.Set, [1], {1}),
    (Tuple[int, Color], [1, "blue"], (1, Color.BLUE)), (Tuple[float, ...], [1, 2], (1.0, 2.0)), (tuple, [1], (1,)),
    (Pair, [1, "red"], Pair(1.0, Color.RED)), (Dict[str, datetime.date], {"a": "2024-02-29"}, {"a": DAY}),
    (Dict[int, float], {"3": 1}, {3: 1.0}), (Movie, {"name": "x", "day": "2024-02-29"}, {"name": "x", "day": DAY}),
    (Model, {"a": 1}, Model({"a": 1})), (List[Model], [{"a": 1}], [Model({"a": 1})]),
    (Node, {"name": "a", "weight": 1, "next": {"name": "b"}, "tags": ["red"]}, Node("a", 1.0, Node("b"), {Color.RED})),
    (Optional[Node], None, None), (Optional[Node], {"name": "a"}, Node("a")), (Optional[float], 1, 1.0),
    (Union[int, float], 1, 1), (Union[datetime.date, str], "2024-02-29", "2024-02-29"),
    (Union[datetime.date, int], "2024-02-29", DAY), (Union[datetime.date, Color], "red", Color.RED),
    (typing.Literal["a", 1], 1, 1),
]


@test("convert: every type that a schema speaks of comes back from what the schema takes")
def _():
    for hint, given, want in CASES:
        def function(x):
            pass

        function.__annotations__ = {"x": hint}
        schema = describe_tool(function)[2]
        check_equal(Schema(schema, "schema").check({"x": given}, "arguments"), None, f"{hint}: the schema takes it")
        got = convert.convert_arguments(function, {"x": given})["x"]
        check_equal((type(got), got), (type(want), want), str(hint))


@test("convert: annotations of methods, classes, partials and decorated functions, and such as are texts")
def _():
    class Holder:
        def method(self, day: datetime.date):
            pass

        def __call__(self, day: datetime.date):
            pass

    class Made:
        def __init__(self, day: datetime.date):
            pass

    def plain(day: "datetime.date", other: "Missing" = None):  # noqa: F821
        pass

    @functools.wraps(Holder.method)
    def wrapped(*args, **kwargs):
        pass

    for function in (Holder().method, Holder(), Made, functools.partial(Holder.method, 3), wrapped):
        check_equal(convert.convert_arguments(function, {"day": "2024-02-29"}), {"day": DAY}, repr(function))
    given = {"day": "2024-02-29", "other": 3}
    check_equal(convert.convert_arguments(plain, given), given, "what cannot be told stays")
    check(convert.convert_arguments(len, given) is given, "what has no annotations")


@test("convert: what cannot be made says which argument and why; what has another shape stays")
def _():
    def function(node: Node, day: datetime.date = DAY, time: datetime.timedelta = None, data: bytes = b""):
        pass

    for given, says in (({"node": {"name": ""}}, "arguments.node: ValueError: a node has a name"),
                        ({"node": {"nme": "x"}}, "arguments.node: TypeError"),
                        ({"day": "yesterday"}, "arguments.day: ValueError"), ({"time": "PT"}, "no duration"),
                        ({"time": "P1Y"}, "no duration"), ({"data": "???"}, "arguments.data: ValueError: this is not base64")):
        try:
            convert.convert_arguments(function, given)
        except convert.InvalidArguments as error:
            check_in(says, str(error), str(given))
        else:
            raise AssertionError(f"{given} was taken")
    def either(x: Union[datetime.date, Color, None]):
        pass

    try:
        convert.convert_arguments(either, {"x": "green"})
    except convert.InvalidArguments as error:
        check_in("arguments.x: ValueError", str(error), "neither")
    else:
        raise AssertionError("it was taken")
    for value in (3, None, ["a"]):
        check_equal(convert.convert_arguments(function, {"node": value}), {"node": value}, "no object")


if __name__ == "__main__":
    main()
