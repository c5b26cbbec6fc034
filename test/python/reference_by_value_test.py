# SPDX-License-Identifier: Apache-2.0
"""References to functions of a script, which go by value, with what they use: this file is one, and its functions are __main__'s."""

import abc
import collections
import contextlib
import dataclasses
import enum
import functools
import json
import logging
import math
import os
import pathlib
import sys
import threading
import types
import typing
import xml.dom.minidom
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import sending  # noqa: E402
from referring import program, refused  # noqa: E402
from sending import send  # noqa: E402
from vitro._reference import describe  # noqa: E402
from vitrotest import check, check_equal, check_in, folder, main, test, write  # noqa: E402

LIMIT = {"most": 5}
HANDLERS = {"add": lambda a: a + 1}
T = typing.TypeVar("T")


class Base:
    def hello(self):
        return "hello"


@dataclasses.dataclass
class Point(Base):
    x: int
    rest: typing.List[int] = dataclasses.field(default_factory=list)

    def hello(self):
        return super().hello() + str(self.x)

    @property
    def twice(self):
        return self.x * 2

    @classmethod
    def origin(cls):
        return cls(0)

    @staticmethod
    def name():
        return "point"


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a

    def __call__(self, b):
        return self.a, b


class Color(enum.Enum):
    RED = 1
    GREEN = 2

    def low(self):
        return self.name.lower()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


Pair = collections.namedtuple("Pair", "a b")


class Row(typing.NamedTuple):
    key: int
    text: str = "t"


class Stack(typing.Generic[T]):
    def __init__(self):
        self.items: typing.List[T] = []


class Lazy:
    @functools.cached_property
    def value(self):
        return 42


def decorate(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


def naive(function):
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorate
def fact(n):
    return 1 if n < 2 else n * fact(n - 1)


@naive
def negative(n):
    return -n


@functools.lru_cache(maxsize=None)
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


def handled(n):
    return [HANDLERS["add"](i) for i in range(min(n, LIMIT["most"]))]


def classes(point, color, pair):
    return (isinstance(point, Point), point.hello(), point.twice, dataclasses.asdict(point), Point.origin(), Point.name(),
            color is Color.RED, color.low(), Color(2), Level.HIGH > Level.LOW, Access.READ | Access.WRITE == Access(3),
            isinstance(pair, Pair), pair.a, Row(7), Stack().items, Lazy().value, [f.name for f in dataclasses.fields(Point)])


def minidom(text):
    return xml.dom.minidom.parseString(text).documentElement.tagName


async def asynchronous(n):
    return math.sqrt(n)


def fails():
    raise ValueError("on purpose")


def counted(n=[]):  # noqa: B006
    global total
    total = len(n)
    return total


def annotated(a: threading.Lock(), b: "Point" = None):
    return a


def modules():
    main = sys.modules["__main__"]
    return main.__name__, hasattr(main, "Point"), Point.__module__, Point(1) == main.Point(1)


@test("functions of a script go by value, with what they use")
def _():
    check_equal(send(fact, 5), "120", "a recursive one under a decorator")
    check_equal(send(negative, 5), "-5", "a decorator that keeps no name")
    check_equal(send(fib, 20), "6765", "lru_cache")
    check_equal(send(even, 10), "True", "two that need each other")
    check_equal(send(handled, 9), "[1, 2, 3, 4, 5]", "globals, a comprehension")
    check_equal(send(minidom, "<a/>"), "'a'", "a module within a package")
    check_equal(send(asynchronous, 4), "2.0", "async")
    check_equal(send(counted, [1, 2]), "2", "a global that is written")
    check_equal(send(functools.partial(fact, 4)), "24", "partial")
    check_equal(describe(fact).modules, (), "there is nothing to learn")
    check_equal(describe(asynchronous).modules, ("math",), "but what it uses")


@test("globals are sent as they are at the time of the call")
def _():
    LIMIT["most"] = 1
    check_equal(send(handled, 9), "[1]", "value")
    LIMIT["most"] = 5
    check_equal(send(handled, 9), "[1, 2, 3, 4, 5]", "value")


@test("classes of a script go by value, and are the same in a function and in its arguments")
def _():
    want = ("(True, 'hello3', 6, {'x': 3, 'rest': []}, Point(x=0, rest=[]), 'point', True, 'red', <Color.GREEN: 2>, True, "
            "True, True, 1, Row(key=7, text='t'), [], 42, ['x', 'rest'])")
    check_equal(send(classes, Point(3), Color.RED, Pair(1, 2)), want, "value")
    check_equal(send(Point(3).hello), "'hello3'", "a method")
    check_equal(send(Point.origin), "Point(x=0, rest=[])", "a class method")
    check_equal(send(Point, 1), "Point(x=1, rest=[])", "a class")
    check_equal(send(Slotted(1), 2), "(1, 2)", "an object that can be called, with slots")
    check_equal(send(Color.RED.low), "'red'", "a method of an enum's member")


class Film(typing.TypedDict, total=False):
    name: str


@dataclasses.dataclass
class Chain:
    to: "typing.Optional[Chain]"
    color: "Color"


def hinted(film: Film, chain: "Chain", when: "xml.dom.minidom.Document"):
    hints = typing.get_type_hints(hinted)
    return [hint.__name__ for hint in hints.values()], Film(name="x"), Film.__total__, sorted(typing.get_type_hints(Chain))


@test("what annotations of a script speak of goes along, also where they are texts")
def _():
    check_equal(send(hinted, 1, 2, 3), "(['Film', 'Chain', 'Document'], {'name': 'x'}, False, ['color', 'to'])", "hints")


class Shape(abc.ABC):
    made = []

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        Shape.made.append(cls.__name__)

    @abc.abstractmethod
    def area(self):
        pass


class Square(Shape):
    def area(self):
        return 9


class Wrong(ValueError):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


class Planet(enum.Enum):
    EARTH = (1.0, 2.0)

    def __init__(self, mass, radius):
        self.mass = mass


class Kind(type):
    def hello(cls):
        return "hello " + cls.__name__


class Kindly(metaclass=Kind):
    pass


@dataclasses.dataclass(frozen=True, order=True)
class Link:
    a: int
    next: typing.Optional["Link"] = None


@contextlib.contextmanager
def context(x):
    yield x + 1


@functools.singledispatch
def dispatched(x):
    return "any"


@dispatched.register(int)
def _(x):
    return "int"


logger = logging.getLogger("sent")


def unusual():
    try:
        Shape()
    except TypeError:
        abstract = True
    try:
        raise Wrong(3)
    except Wrong as error:
        code = error.code
    with context(1) as two:
        pass
    return (abstract, Square().area(), isinstance(Square(), Shape), code, Planet.EARTH.mass, Kindly.hello(), two,
            Link(1) < Link(2, Link(3)), dispatched(1), dispatched(""), logger.name)


@test("classes of the less usual kinds")
def _():
    check_equal(send(unusual), "(True, 9, True, 3, 1.0, 'hello Kindly', 2, True, 'int', 'any', 'sent')", "value")


@test("a script's names are those of __main__ in the cell, too")
def _():
    check_equal(send(modules), "('__main__', True, '__main__', True)", "value")


@test("annotations that cannot be sent are left out")
def _():
    check_equal(send(annotated, 1), "1", "value")


@test("bytecode of another interpreter is refused, and both are named")
def _():
    message = json.loads(sending.pack(fact, 3))
    message["ref"]["python"] = "cpython-27"
    answer, _ = sending.execute(json.dumps(message))
    check_in("cpython-27", answer["message"], "error")
    check_in(sys.implementation.cache_tag, answer["message"], "error")
    message = json.loads(sending.pack(len, [Point(1)]))
    check("python" not in message["ref"], "the function is by name, the argument by value")
    answer, _ = sending.execute(json.dumps(message))
    check_equal(answer, {"value": "1"}, "control")


@test("a traceback of a script's function shows its lines")
def _():
    _, said = sending.execute(sending.pack(fails))
    check_in('raise ValueError("on purpose")', said, "traceback")


COUNTING = """
import sys
with open("count", "a") as file: file.write("once ")
SCALE = 3
def scaled(x): return x * SCALE + helper(x)
def helper(x): return x
class Thing:
    def __init__(self, x): self.x = x
    def get(self): return self.x
%s
    import sending
    print(sending.send(scaled, 2), sending.send(Thing(5).get))
"""


@test("a script's top level runs once, with a guard and without")
def _():
    for guard in ("if __name__ == '__main__':", "if True:"):
        with folder() as place:
            check_equal(program(COUNTING % guard, cwd=place), ["8 5"], guard)
            check_equal((pathlib.Path(place) / "count").read_text(), "once ", guard)


@test("functions of python -c, of standard input, of a prompt and of python -m")
def _():
    source = COUNTING % "if True:"
    for args, stdin in ((("-c", source), None), (("-",), source), (("-i", "-q"), "def f(x): return x + 1\n\n"
                        "import sending\nprint(sending.send(f, 2), '5')\n")):
        with folder() as place:
            got = program("", *args, stdin=stdin, cwd=place)
            check_equal(got, ["8 5"] if args[0] != "-i" else ["3 5"], args[0])
    with folder() as place:
        write(pathlib.Path(place) / "pack" / "__init__.py", "")
        write(pathlib.Path(place) / "pack" / "run.py", COUNTING % "if True:")
        check_equal(program("", "-m", "pack.run", cwd=place), ["8 5"], "-m")
        check_equal((pathlib.Path(place) / "count").read_text(), "once ", "-m")


@test("source that only the caller has is shown, too: of a notebook's cell")
def _():
    import linecache
    name, source = "/tmp/ipykernel_1/sent.py", "def noted():\n    raise KeyError('noted')  # here\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    space = {"__name__": "__main__"}
    exec(compile(source, name, "exec"), space)
    _, said = sending.execute(sending.pack(space["noted"]))
    check_in("raise KeyError('noted')  # here", said, "traceback")


@test("a module that exists in memory only, or under a name that nobody finds, goes by value")
def _():
    memory = types.ModuleType("sent_memory")
    exec("BASE = 4\ndef f(x): return x + BASE\nclass C:\n    def get(self): return BASE\n", vars(memory))
    sys.modules["sent_memory"] = memory
    try:
        check_equal(send(memory.f, 1), "5", "function")
        check_equal(send(memory.C().get), "4", "method")
    finally:
        del sys.modules["sent_memory"]
    with folder() as place:
        import importlib.util
        path = write(pathlib.Path(place) / "plugin.py", "BASE = 5\ndef f(): return BASE\n")
        spec = importlib.util.spec_from_file_location("sent_plugin", path)
        plugin = sys.modules["sent_plugin"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(plugin)
        try:
            check_equal(send(plugin.f), "5", "a plugin")
        finally:
            del sys.modules["sent_plugin"]


def uses_module():
    return memory_module.f


@test("a module as such can be used only if a cell can import it")
def _():
    global memory_module
    memory_module = types.ModuleType("sent_memory")
    said = refused(uses_module)
    check_in("'memory_module'", said, "error")
    check_in("exists in memory only", said, "error")


@test("a module in a zip goes by name")
def _():
    with folder() as place:
        path = os.path.join(place, "all.zip")
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("sent_zipped.py", "def f(): return 'zipped'\n")
        sys.path.insert(0, path)
        try:
            import sent_zipped
            check("module" in describe(sent_zipped.f).ref, "by name")
            check_equal(send(sent_zipped.f, path=[path]), "'zipped'", "value")
        finally:
            sys.path.remove(path)
            del sys.modules["sent_zipped"]


if __name__ == "__main__":
    main()
