# SPDX-License-Identifier: Apache-2.0
"""References to functions of modules: what the host sends, and what a fresh interpreter makes of it."""

import collections
import functools
import json
import math
import os
import pathlib
import random
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]

from referring import Module, cell_fails, program  # noqa: E402
from sending import send  # noqa: E402
from vitro._reference import describe  # noqa: E402
from vitrotest import check, check_equal, check_in, folder, main, test, write  # noqa: E402

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
        check_equal((reference.buffers, reference.modules, reference.label), ([], ("sent_module",), "sent_module:plain"), "it")
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
        check_equal(describe(m.Box(4).add).modules[0], "sent_module", "the module to learn")
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


if __name__ == "__main__":
    main()
