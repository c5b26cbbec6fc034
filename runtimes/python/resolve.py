# SPDX-License-Identifier: Apache-2.0
"""A reference to a function becomes the function, in the cell.

The host (vitro/_reference.py, vitro/_byvalue.py) says which function it means in one of two ways:

    {"module": "m", "name": "Class.method", "unwrap": ["fn"], "file": "/srv/m.py"}
    {"pickle": 0, "oob": 2, "python": "cpython-311", "cloudpickle": false, "label": "m:f"}

The first is imported here. The second is a pickle in buffer 0, whose own buffers follow it: what has no
module that a cell could import, first of all what a script defines itself, is made anew from its code by
the functions below. They are part of the host's pickles, under the name `_vitro_resolve`, so that the
pickle of a call's arguments can use them too, and what both have in common is made once.

The zygote imports this file before it joins its cell, and the host imports it to name its functions; it
imports next to nothing itself. It is used once in a process: what it remembers is one call's.
"""

from __future__ import annotations

import marshal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from types import CodeType, FunctionType, ModuleType
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

NAME = "_vitro_resolve"
INITIALIZER_FAILED = "InitializerFailed"
# Folders of the caller's of which a cell has its own, as /tmp, are shown below this one (vitro/_paths.py).
ELSEWHERE = "/run/vitro/path"


def _remember_name() -> None:
    """Lets pickles find this module, whatever it was imported as."""
    module = sys.modules.get(__name__)
    if module is None:  # executed by hand
        module = type(sys)(NAME)
        module.__dict__.update(globals())
    sys.modules[NAME] = module


class CannotResolve(ImportError):
    """The function of a call cannot be had in its cell; the message says why and what to do."""


# ---- by reference --------------------------------------------------------------------------------


def resolve(ref: Dict[str, Any], buffers: Sequence[Any]) -> Callable[..., Any]:
    """The function that `ref` means; `buffers` are those of the message that it came in."""
    if "module" in ref:
        found = find(ref["module"], ref["name"], ref.get("unwrap") or (), ref.get("file"))
    else:
        found = _load(ref, buffers)
    if not callable(found):
        raise CannotResolve(f"{_label(ref)} is not callable in the cell: it is a {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def find(module: str, name: str, unwrap: Sequence[str] = (), file: Optional[str] = None) -> Any:
    """An object by the names that lead to it, from a module that is imported for it."""
    found: Any = import_module(module, file)
    for word in [*name.split("."), *unwrap]:
        try:
            found = getattr(found, word)
        except AttributeError:
            raise CannotResolve(
                f"module {module!r} has no {name!r} in the cell{_other_file(module, file)}; the caller's has it: "
                "is it defined only under a condition, or was it added after the import?") from None
    return found


def find_tool(module: str, name: str) -> Callable[..., Any]:
    """The function that a manifest means by "module:name"; nobody has seen it yet."""
    found: Any = import_module(module, None, _OF_A_MANIFEST)
    for word in name.split("."):
        if not hasattr(found, word):
            file = getattr(sys.modules[module], "__file__", None)
            raise CannotResolve(f"module {module!r} has no {name!r}" + (f" ({file})" if file else ""))
        found = getattr(found, word)
    # A decorator may leave an object that is no function but has one, as describe_tool() knows.
    for attribute in () if callable(found) else ("fn", "func", "__wrapped__"):
        if callable(getattr(found, attribute, None)):
            found = getattr(found, attribute)
            break
    if not callable(found):
        raise CannotResolve(f"{module}:{name} is no function: it is of the type {type(found).__name__}")
    return found  # type: ignore[no-any-return]


def _other_file(module: str, file: Optional[str]) -> str:
    here = getattr(sys.modules.get(module), "__file__", None)
    return f" ({here}; the caller's is {file})" if file and here and here != file else ""


# Where modules are looked for, beside what is installed, and how one comes there.
_OF_THE_CALLER = ("the folders of the caller's sys.path", "add its folder to sys.path, and, if the policy does not let the "
                  "cell read it, to files.read")
_OF_A_MANIFEST = ("the folder of the manifest", "put it there")


def import_module(name: str, file: Optional[str] = None, home: Tuple[str, str] = _OF_THE_CALLER) -> ModuleType:
    """Imports a module; what goes wrong is said in terms of policies. file: where the caller has it, if it
    must be that one."""
    module = sys.modules.get(name)
    if module is None:
        with _Environment() as environment:
            try:
                module = _import(name)
            except (Exception, SystemExit) as error:
                raise _import_failed(name, file, error, environment.missed, home) from error
    found = getattr(module, "__file__", None)
    if file and found and not _is_same_file(found, file):
        raise CannotResolve(f"module {name!r} is another one in the cell: {found}, not the caller's {file}; "
                            "rename yours, so that it hides behind no other")
    return module


def _import(name: str) -> ModuleType:
    __import__(name)
    return sys.modules[name]


def _is_same_file(one: str, other: str) -> bool:
    """Whether a file of the cell is that file of the caller's."""
    if _source_of(one) in (_source_of(other), ELSEWHERE + _source_of(other)):
        return True
    import os.path
    return os.path.realpath(_source_of(one)) == os.path.realpath(_source_of(other))


def _source_of(file: str) -> str:
    return file[:-1] if file.endswith(".pyc") else file


class _Environment:
    """Notes which environment variables are looked for in vain while a module is imported."""

    def __init__(self) -> None:
        self.missed: List[str] = []

    def __enter__(self) -> _Environment:
        import os
        kind, missed = type(os.environ), self.missed
        original = kind.__getitem__
        self._kind, self._original = kind, original

        def getitem(environ: Any, key: Any) -> Any:
            try:
                return original(environ, key)
            except KeyError:
                if isinstance(key, str) and len(missed) < 1000:
                    missed.append(key)
                raise

        setattr(kind, "__getitem__", getitem)
        return self

    def __exit__(self, *error: object) -> None:
        setattr(self._kind, "__getitem__", self._original)


def _import_failed(name: str, file: Optional[str], error: BaseException, missed: List[str],
                   home: Tuple[str, str]) -> ImportError:
    if isinstance(error, ModuleNotFoundError) and error.name and (name + ".").startswith(error.name + "."):
        where = f" The caller's is {file}." if file else ""
        if name.endswith(".py") and home is _OF_A_MANIFEST:
            return CannotResolve(f"there is no module {name!r} in the cell: leave off the .py")
        return CannotResolve(
            f"there is no module {error.name!r} in the cell.{where} Modules are looked for in {home[0]} and in what is "
            f"installed for {sys.executable or 'its interpreter'}: {home[1]}")
    said = f"{type(error).__name__}: {error}"
    text = f"module {name!r} cannot be imported in the cell: {said}"
    lacking = [key for key in dict.fromkeys(missed) if key in said.replace("'", " ").replace('"', " ")]
    if lacking:
        listed = ", ".join(f'"{key}"' for key in lacking)
        text += f"; a cell has none of the caller's environment but what the policy passes: \"env.pass\": [{listed}]"
    elif isinstance(error, ModuleNotFoundError):
        text += f"; install it for {sys.executable or 'the interpreter of the cell'}, or {home[1]}"
    elif isinstance(error, (PermissionError, FileNotFoundError)) and error.filename:
        text += f'; if the caller has it, let the cell read it: "files.read": ["{error.filename}"]'
    return CannotResolve(text)


# ---- by value ------------------------------------------------------------------------------------

# What was made for this call, by the host's number of it.
_made: Dict[int, Any] = {}
_spaces: Dict[int, Dict[str, Any]] = {}
_kept: Dict[int, Any] = {}  # frozensets of names of globals, by the dict that has them


def _label(ref: Dict[str, Any]) -> str:
    return ref.get("label") or f"{ref.get('module')}:{ref.get('name')}"


def _load(ref: Dict[str, Any], buffers: Sequence[Any]) -> Any:
    import pickle
    need_version(ref.get("python"), _label(ref))
    if ref.get("cloudpickle"):
        try:
            _import("cloudpickle")
        except ImportError as error:
            raise CannotResolve(
                f"{_label(ref)} was sent by cloudpickle, which cannot be imported in the cell ({error}): install it "
                f"for {sys.executable}, too, or define the function in a module") from None
    first, count = ref["pickle"], ref.get("oob", 0)
    return pickle.loads(buffers[first], buffers=buffers[first + 1:first + 1 + count])


def need_version(tag: Optional[str], what: str = "a function") -> None:
    """Raises CannotResolve where bytecode of another interpreter was sent."""
    own = sys.implementation.cache_tag
    if tag is not None and tag != own:
        raise CannotResolve(
            f"{what} is sent as bytecode of {tag}, but the interpreter of the cell is {own} ({sys.executable}): use the "
            "same interpreter in both, or define the function in a module that both can import")


def make_code(tag: str, data: bytes) -> CodeType:
    """A code object as the host has it."""
    need_version(tag)
    return marshal.loads(data)  # type: ignore[no-any-return]


def make_space(number: int, name: str, values: Dict[str, Any]) -> Dict[str, Any]:
    """The globals of functions that are sent by value: one dict for each module of theirs, which is that
    module here. A script's own is `__main__`."""
    space = _spaces.get(number)
    if space is None:
        module = type(sys)(name)
        if name == "__main__":
            _spaces[-1] = vars(sys.modules[name])  # what runs the cell lives on
        if name == "__main__" or name not in sys.modules:
            sys.modules[name] = module
        space = _spaces[number] = vars(module)
        space["__builtins__"] = sys.modules["builtins"]
        space.update(values)
    return space


def module_space(name: str) -> Dict[str, Any]:
    """The globals of a module that can be imported."""
    return vars(import_module(name))


def make_cell(number: int) -> Any:
    """An empty cell of a closure."""
    value = None

    def closure() -> Any:
        return value

    made = _made.get(number)
    if made is None:
        made = _made[number] = closure.__closure__[0]  # type: ignore[index]
        del made.cell_contents
    return made


def set_cell(cell: Any, contents: Tuple[Any, ...]) -> None:
    """Fills a cell with the one object of `contents`, or with none."""
    for value in contents:
        cell.cell_contents = value


def make_function(number: int, code: CodeType, space: Dict[str, Any], name: str,
                  closure: Optional[Tuple[Any, ...]]) -> Any:
    """A function without all that could lead back to it: set_function() adds that."""
    made = _made.get(number)
    if made is None:
        kind: Any = type(make_function)
        made = _made[number] = kind(code, space, name, None, closure)
    return made


def call_each(function: Callable[..., Any], rows: Sequence[Tuple[Any, ...]]) -> Any:
    """What a function gives for each of some arguments."""
    values = [function(*row) for row in rows]
    return _wait_for_each(values) if any(hasattr(type(value), "__await__") for value in values) else values


async def _wait_for_each(values: List[Any]) -> List[Any]:
    return [await value for value in values]


def keep() -> None:
    """An initializer has run: what it made of a script's globals is not replaced by what the script has. All else is
    forgotten: the host may give the number of a thing that it no longer has to another."""
    main = {number: space for number, space in _spaces.items() if number == -1 or space.get("__name__") == "__main__"}
    _made.clear()
    _spaces.clear()
    _spaces.update(main)
    for space in main.values():
        _kept[id(space)] = frozenset(space)


def set_function(function: FunctionType, state: Dict[str, Any]) -> None:
    """What a function refers to: the globals that it uses, its defaults and attributes."""
    for name in state.pop("modules", ()):
        import_module(name)
    if "source" in state:
        _add_source(*state.pop("source"))
    for cell, contents in zip(function.__closure__ or (), state.pop("closure")):
        set_cell(cell, contents)
    names, kept = state.pop("globals"), _kept.get(id(function.__globals__), ())
    function.__globals__.update((name, names[name]) for name in names if name not in kept)
    function.__dict__.update(state.pop("dict"))
    for name, value in state.items():
        setattr(function, name, value)


def _add_source(filename: str, text: str) -> None:
    """Lines for tracebacks, where there is no file that has them."""
    import linecache
    lines = text.splitlines(True)
    linecache.cache[filename] = (len(text), None, lines, filename)


def make_class(number: int, meta: Any, name: str, bases: Tuple[type, ...], names: Dict[str, Any]) -> Any:
    """A class without its attributes, which may lead back to it: set_class() adds them."""
    made = _made.get(number)
    if made is None:
        space = meta.__prepare__(name, bases) if hasattr(meta, "__prepare__") else {}
        space.update(names)
        made = _made[number] = meta(name, bases, space)
    return made


def make_enum(number: int, meta: Any, name: str, bases: Tuple[type, ...], names: Dict[str, Any],
              members: List[Tuple[str, Any]]) -> Any:
    """An enum with its members, which no later step could add."""
    made = _made.get(number)
    if made is None:
        space = meta.__prepare__(name, bases)
        for key, value in [*names.items(), *members]:
            space[key] = value
        made = _made[number] = meta(name, bases, space)
    return made


def make_typed_dict(number: int, name: str, annotations: Dict[str, Any], total: bool) -> Any:
    """A TypedDict of a script."""
    made = _made.get(number)
    if made is None:
        from typing import TypedDict
        make: Any = TypedDict
        made = _made[number] = make(name, annotations, total=total)
    return made


def set_class(made: Any, state: Dict[str, Any]) -> None:
    """The attributes of a class."""
    for name, value in state.items():
        type.__setattr__(made, name, value)


def set_enum(made: Any, state: Tuple[Dict[str, Any], Dict[str, Dict[str, Any]]]) -> None:
    """The same of an enum; its members have what their __init__ gave them."""
    set_class(made, state[0])
    for name, attributes in state[1].items():
        vars(made.__members__[name]).update(attributes)


def make_typevar(number: int, name: str, constraints: Tuple[Any, ...], options: Dict[str, Any]) -> Any:
    """A type variable of a script."""
    made = _made.get(number)
    if made is None:
        from typing import TypeVar
        made = _made[number] = TypeVar(name, *constraints, **options)
    return made


def make_lru_cache(function: Any, maxsize: Optional[int], typed: bool) -> Any:
    """A function under functools.lru_cache, whose cache is empty."""
    from functools import lru_cache
    return lru_cache(maxsize, typed)(function)


for _function in (find, import_module, make_code, make_space, module_space, make_cell, set_cell, make_function,
                  call_each, set_function, make_class, make_enum, set_class, set_enum,
                  make_typevar, make_typed_dict, make_lru_cache):
    _function.__module__ = NAME
_remember_name()
