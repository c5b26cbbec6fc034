# SPDX-License-Identifier: Apache-2.0
"""References to functions: what the host sends, and what a fresh interpreter makes of it."""

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
import random
import sys
import threading
import types
import typing
import xml.dom.minidom
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

import sending  # noqa: E402
from sending import send  # noqa: E402
from vitro._reference import NotSendable, describe, dumps  # noqa: E402
from vitrotest import check, check_equal, check_in, folder, main, run, skip, test, write  # noqa: E402


def refused(function, *args, **kwargs):
    """The sentence with which sending is refused."""
    try:
        sending.pack(function, *args, **kwargs)
    except NotSendable as error:
        return str(error)
    raise AssertionError(f"{function} was sent")


def cell_fails(function, *args, **options):
    """The sentence with which the cell fails."""
    try:
        value = send(function, *args, **options)
    except sending.Failed as error:
        return str(error)
    raise AssertionError(f"the cell gave {value}")


class Module:
    """A module of a test's own, in a folder that is on sys.path, and gone afterwards."""

    def __init__(self, source, name="sent_module"):
        self.source, self.name = source, name

    def __enter__(self):
        self.context = folder()
        self.path = self.context.__enter__()
        write(pathlib.Path(self.path, *self.name.split(".")).with_suffix(".py"), self.source)
        sys.path.insert(0, self.path)
        __import__(self.name)
        return sys.modules[self.name]

    def __exit__(self, *error):
        sys.path.remove(self.path)
        del sys.modules[self.name]
        sys.path_importer_cache.pop(self.path, None)
        self.context.__exit__(*error)


def program(source, *args, stdin=None, path=(), name="script.py", python=sys.executable, cwd=None):
    """Runs a host program that has send(); what it printed, as lines."""
    env = {**os.environ, "PYTHONPATH": f"{HERE}", "SENDING_PATH": " ".join(path), "PYTHONDONTWRITEBYTECODE": "1"}
    with folder() as place:
        args = args or (write(pathlib.Path(place) / name, source),)
        call = run([python, *args], cwd=cwd or place, env=env, **({} if stdin is None else {"stdin": stdin}))
    check_equal(call.code, 0, "exit", call)
    return call.out.splitlines()


# ---- by name ----------------------------------------------------------------------------------------

DECORATED = """
import functools
class Tool:
    def __init__(self, fn): self.fn = fn
class Called:
    def __init__(self, func): self.func = func
    def __call__(self, *args): return "wrapped", self.func(*args)
def traced(function):
    @functools.wraps(function)
    def wrapper(*args): return "traced", function(*args)
    return wrapper
def plain(a, b=2): return a, b
async def later(a): return a
@Tool
def tool(a): return "tool", a
@Called
def called(a): return a
@traced
def seen(a): return a
@functools.lru_cache(maxsize=None)
def cached(a): return a + 1
short = lambda a: -a
class Box:
    def __init__(self, n): self.n = n
    def add(self, m): return self.n + m
    @staticmethod
    def fixed(a): return "static", a
    @classmethod
    def build(cls, n): return cls(n).n
    class Inner:
        @staticmethod
        def deep(): return "deep"
class Sub(Box): pass
"""


@test("a function of a module goes by its name")
def _():
    with Module(DECORATED) as m:
        reference = describe(m.plain)
        check_equal(reference.ref, {"module": "sent_module", "name": "plain", "unwrap": [], "file": m.__file__}, "ref")
        check_equal((reference.buffers, reference.module, reference.label), ([], "sent_module", "sent_module:plain"), "it")
        check_equal(send(m.plain, 1, b=3, path=sys.path[:1]), "(1, 3)", "value")
        check_equal(send(m.later, 5, path=sys.path[:1]), "5", "an async one")


@test("functions under decorators are the ones that are sent")
def _():
    with Module(DECORATED) as m:
        path = sys.path[:1]
        check_equal(send(m.tool.fn, 1, path=path), "('tool', 1)", "the function of an object")
        check_equal(describe(m.tool.fn).ref["unwrap"], ["fn"], "the way")
        check_equal(send(m.tool, 1, path=path), "('tool', 1)", "an object that cannot be called")
        check_equal(send(m.called, 1, path=path), "('wrapped', 1)", "an object that can")
        check_equal(describe(m.called).ref["name"], "called", "which goes by name")
        check_equal(send(m.called.func, 1, path=path), "1", "its function")
        check_equal(send(m.seen, 1, path=path), "('traced', 1)", "a wrapper")
        check_equal(send(m.seen.__wrapped__, 1, path=path), "1", "what it wraps")
        check_equal(send(m.cached, 1, path=path), "2", "lru_cache")
        check_equal(send(m.short, 1, path=path), "-1", "a lambda that the module has")


@test("methods, static and class methods, nested classes, partials")
def _():
    with Module(DECORATED) as m:
        path = sys.path[:1]
        check_equal(send(m.Box(4).add, 3, path=path), "7", "a bound method takes its object along")
        check_equal(describe(m.Box(4).add).module, "sent_module", "the module to learn")
        check_equal(send(m.Box.fixed, 3, path=path), "('static', 3)", "static")
        check_equal(send(m.Box.build, 3, path=path), "3", "class")
        check_equal(send(m.Sub.build, 3, path=path), "3", "an inherited one")
        check_equal(send(m.Box.Inner.deep, path=path), "'deep'", "nested")
        check_equal(send(functools.partial(m.plain, 1, b=5), path=path), "(1, 5)", "partial")
        nested = functools.partial(functools.partial(m.Box(1).add), 9)
        check_equal(send(nested, path=path), "10", "partial of a partial of a method")
        check_equal(send(functools.partial(m.tool.fn, 1), path=path), "('tool', 1)", "of one under a decorator")


@test("what the interpreter has itself is sent by name")
def _():
    for function, args, want in ((math.sqrt, (4,), "2.0"), (len, ([1],), "1"), (str.upper, ("a",), "'A'"),
                                 ("abc".upper, (), "'ABC'"), (os.path.join, ("a", "b"), "'a/b'"),
                                 (random.randint, (3, 3), "3"), (collections.Counter, ("aa",), "Counter({'a': 2})"),
                                 (dict, ([(1, 2)],), "{1: 2}"), (json.loads, ("[1]",), "[1]")):
        check_equal(send(function, *args), want, repr(function))
    check_equal(describe(random.random).ref["name"], "random", "not with the state of the caller's generator")


@test("a reference is to this very function, or by value, also after it was remembered")
def _():
    with Module("def f(): return 'old'\n") as m:
        old = m.f
        check("module" in describe(old).ref, "by name")
        exec("def f(): return 'new'", vars(m))
        check("module" not in describe(old).ref, "the module has another one now")
        check_equal(send(old, path=sys.path[:1]), "'old'", "value")


# ---- errors of the cell -----------------------------------------------------------------------------


@test("a module that the cell does not have is named, with what to do")
def _():
    with Module("def f(): pass\n") as m:
        said = cell_fails(m.f, path=["/nowhere"])
    check_in("no module 'sent_module'", said, "error")
    for word in ("sys.path", "files.read", m.__file__):
        check_in(word, said, "error")


@test("a module that needs an environment variable names env.pass")
def _():
    for line in ("KEY = os.environ['SENT_KEY']", "KEY = os.getenv('SENT_KEY') or exec('raise ValueError(\"no SENT_KEY\")')"):
        os.environ["SENT_KEY"] = "1"
        with Module(f"import os\nos.environ.get('UNUSED')\n{line}\ndef f(): return KEY\n") as m:
            said = cell_fails(m.f, path=sys.path[:1])
            check_in('"env.pass": ["SENT_KEY"]', said, "error")
            check_equal(send(m.f, path=sys.path[:1], env={"SENT_KEY": "2"}), "'2'", "passed")


@test("a module that fails in the cell says how")
def _():
    with folder() as place:
        hint = pathlib.Path(place) / "there"
        hint.touch()
        with Module(f"import os\nopen({str(hint)!r})\ndef f(): pass\n") as m:
            hint.unlink()
            check_in(f'"files.read": ["{hint}"]', cell_fails(m.f, path=sys.path[:1]), "a file")
    with Module("import sys\nif sys.flags.no_site: sys.exit(3)\ndef f(): pass\n") as m:
        check_in("SystemExit: 3", cell_fails(m.f, path=sys.path[:1]), "an exit")
    with Module("import sys\nif not sys.flags.no_site:\n    def f(): pass\n") as m:
        check_in("has no 'f' in the cell", cell_fails(m.f, path=sys.path[:1]), "a name that is missing")


@test("another module of the same name is not taken for it")
def _():
    with Module("def f(): return 'mine'\n") as m, folder() as place:
        write(pathlib.Path(place) / "sent_module.py", "def f(): return 'another'\n")
        check_in("is another one in the cell", cell_fails(m.f, path=[place]), "error")


@test("a module in a zip that sys.path has by a relative name is the same one")
def _():
    with folder() as place:
        with zipfile.ZipFile(os.path.join(place, "all.zip"), "w") as file:
            file.writestr("sent_near.py", "def f(): return 'near'\n")
        source = "import sys\nsys.path.insert(0, 'all.zip')\nimport sent_near, sending\nprint(sending.send(sent_near.f))\n"
        check_equal(program(source, path=[f"{place}/all.zip"], cwd=place), ["'near'"], "value")


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


# ---- by value: this file is a script, and its own functions are __main__'s --------------------------

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
    check_equal(describe(fact).module, None, "there is nothing to learn")
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


# ---- what cannot be sent ----------------------------------------------------------------------------

lock = threading.Lock()


def uses_lock():
    return lock


def calls_lock():
    return uses_lock()


class Locked:
    def __init__(self):
        self.lock = lock

    def get(self):
        return 1


def local():
    n = 1

    def inner():
        return n

    class Inner:
        pass

    return inner, Inner


@test("a function that cannot be sent says which part of it, and what to do")
def _():
    said = refused(uses_lock)
    for word in ("the function __main__:uses_lock", "the global 'lock'", "define the function in a module"):
        check_in(word, said, "error")
    check_in("'uses_lock', which uses the global 'lock'", refused(calls_lock), "a part's part")
    said = refused(Locked().get)
    check_in("its object, a Locked", said, "a method")
    check_in("argument 1 of its partial", refused(functools.partial(fact, lock)), "a partial")
    check_in("an int, which cannot be called", refused(5), "no function")
    check(issubclass(NotSendable, TypeError), "its kind")


@test("arguments that cannot be sent are named")
def _():
    check_in("argument 2, a lock, cannot be sent", refused(len, 1, lock), "by position")
    check_in("argument 'key', a dict, cannot be sent", refused(len, key={"a": [lock]}), "by name")
    deep = []
    for _ in range(100000):
        deep = [deep]
    check_in("nested too deeply", refused(len, deep), "depth")


def without_cloudpickle(function):
    """Runs a test as if cloudpickle were not installed."""
    kept = sys.modules.get("cloudpickle")
    sys.modules["cloudpickle"] = None
    try:
        function()
    finally:
        del sys.modules["cloudpickle"]
        if kept:
            sys.modules["cloudpickle"] = kept


@test("lambdas, closures and local classes without cloudpickle: the error says so")
def _():
    def look():
        inner, Inner = local()
        for said, kind in ((refused(lambda: 1), "a lambda"), (refused(inner), "the local function 'local.<locals>.inner'"),
                           (refused(Inner), "the local class"), (refused(len, lambda: 1), "a lambda"),
                           (refused(functools.partial(lambda: 1)), "a lambda"), (refused(len, Inner()), "the local class")):
            check_in(kind, said, "error")
            check_in("module, or install cloudpickle", said, "error")
        check_in("the arguments", refused(len, lambda: 1), "which of both")
        check_in("the function __main__:", refused(lambda: 1), "which of both")
    without_cloudpickle(look)


FAKE = """
import marshal, pickle
def _make(data): return type(_make)(marshal.loads(data), globals())
class _Pickler(pickle.Pickler):
    def reducer_override(self, thing):
        if getattr(thing, "__name__", "") != "<lambda>": return NotImplemented
        return _make, (marshal.dumps(thing.__code__),)
def dumps(thing, protocol, buffer_callback=None):
    import io
    file = io.BytesIO()
    _Pickler(file, protocol, buffer_callback=buffer_callback).dump(thing)
    return file.getvalue()
"""


@test("lambdas go by cloudpickle where it is installed; the cell needs it, too")
def _():
    kept = sys.modules.pop("cloudpickle", None)
    try:
        with Module(FAKE, "cloudpickle"):
            check_equal(send(lambda a: a + 1, 2, path=sys.path[:1]), "3", "value")
            check_equal(describe(lambda: 1).ref["cloudpickle"], True, "ref")
            check_equal(send(map, lambda: 1, [], path=sys.path[:1])[:11], "<map object", "an argument")
            said = cell_fails(lambda: 1, path=["/nowhere"])
            check_in("cloudpickle, which cannot be imported in the cell", said, "error")
    finally:
        if kept:
            sys.modules["cloudpickle"] = kept


@test("lambdas and closures by the real cloudpickle")
def _():
    try:
        import cloudpickle
    except ImportError:
        skip("cloudpickle is not installed for this interpreter")
    path = [os.path.dirname(os.path.dirname(cloudpickle.__file__))]
    inner, Inner = local()
    check_equal(send(lambda p: (isinstance(p, Point), p.x), Point(3), path=path), "(True, 3)", "a class of both sides")
    check_equal(send(inner, path=path), "1", "a closure")
    check_in("Inner object", send(Inner, path=path), "a local class")


@test("large buffers stay out of the pickle")
def _():
    import pickle
    data = bytearray(1 << 20)
    oob = []
    packed = dumps((pickle.PickleBuffer(data),), {}, None, oob.append)
    check(len(packed) < 1000 and len(oob) == 1, (len(packed), len(oob)))
    check_equal(send(len, pickle.PickleBuffer(data)), str(1 << 20), "value")


if __name__ == "__main__":
    main()
