# SPDX-License-Identifier: Apache-2.0
"""Pickles that a cell can load, of what it could not import.

An ordinary pickle names classes and functions by their module. A cell can import a module of the
caller's, but not what a script defines itself: importing the script would run it. So what lives in
`__main__`, or in a module that exists in memory only, is sent by value: the code of a function with the
globals that it really uses, the attributes of a class. runtimes/python/resolve.py makes them anew.

The cell is handed these pickles and trusts them, as it trusts the caller's code. Nothing pickled ever
comes back.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import enum
import functools
import importlib
import importlib.machinery
import io
import linecache
import marshal
import os
import pickle
import re
import sys
import types
import typing
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import _resolve

TAG = sys.implementation.cache_tag
WRAPPERS = ("fn", "func", "__wrapped__")  # where decorators keep the function
_WRAPPED_DEEPEST = 8
_SOURCE_MOST = 256 << 10

Located = Tuple[str, str, Tuple[str, ...]]  # module, qualified name, attributes of wrappers


class Nameless(TypeError):
    """A lambda, a closure or a local class, met where nothing says what it belongs to."""

    def __init__(self, thing: Any) -> None:
        super().__init__(f"{getattr(thing, '__qualname__', thing)!r} has no name in a module")
        self.thing = thing


# ---- what a cell can import ----------------------------------------------------------------------

_importable: Dict[str, Tuple[types.ModuleType, bool]] = {}


def is_importable(name: Optional[str]) -> bool:
    """Whether an `import` of this name in a cell would give the module that the name has here."""
    module = sys.modules.get(name) if name else None
    if module is None or name is None or name in ("__main__", "__mp_main__"):
        return False
    known = _importable.get(name)
    if known is None or known[0] is not module:
        known = _importable[name] = (module, _finds(name, module))
    return known[1]


def _finds(name: str, module: types.ModuleType) -> bool:
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return False
    if spec.origin in ("built-in", "frozen") or name in sys.builtin_module_names:
        return True
    parent = name.rpartition(".")[0]
    path = getattr(sys.modules.get(parent), "__path__", None) if parent else None
    if parent and (path is None or not is_importable(parent)):
        return False
    for finder in sys.meta_path:
        if not _is_everywhere(finder):
            continue
        try:
            found = finder.find_spec(name, path, None)
        except Exception:  # a finder of others
            continue
        if found is not None:
            return found.origin == spec.origin or _has_same_file(found.origin, spec.origin)
    return False


def _is_everywhere(finder: Any) -> bool:
    """Whether a cell has this finder too: the interpreter's own, and those of editable installs."""
    module = getattr(finder, "__module__", None) or type(finder).__module__
    return (finder in (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter,
                       importlib.machinery.PathFinder)
            or module.startswith("__editable__"))


def _has_same_file(one: Optional[str], other: Optional[str]) -> bool:
    return bool(one and other) and os.path.realpath(str(one)) == os.path.realpath(str(other))


# ---- names ---------------------------------------------------------------------------------------


def _same(found: Any, wanted: Any) -> bool:
    if found is wanted:
        return True
    kinds = (types.MethodType, types.BuiltinMethodType)  # made anew each time they are looked up
    return (type(found) is type(wanted) and isinstance(found, kinds)
            and found.__self__ is wanted.__self__ and bool(found == wanted))


def _leads_to(found: Any, wanted: Any, deepest: int = _WRAPPED_DEEPEST) -> Optional[Tuple[str, ...]]:
    """The attributes that lead from an object to the one that it wraps; () where it is that itself."""
    if _same(found, wanted):
        return ()
    if isinstance(found, types.ModuleType) or deepest == 0:
        return None
    for name in WRAPPERS:
        try:
            inner = getattr(found, name, None)
        except Exception:
            continue
        if inner is None or inner is found:
            continue
        rest = _leads_to(inner, wanted, deepest - 1)
        if rest is not None:
            return (name, *rest)
    return None


def _look_up(space: Dict[str, Any], qualname: str) -> Any:
    first, *rest = qualname.split(".")
    found = space.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return found


def name_in(space: Dict[str, Any], thing: Any) -> Optional[Tuple[str, Tuple[str, ...]]]:
    """The name under which a module has an object, and the way from there through wrappers."""
    names = [getattr(inner, "__qualname__", None) or getattr(inner, "__name__", None)
             for inner in _wrapped_by(thing)]
    for name in names:
        if isinstance(name, str) and "<" not in name:
            found = _look_up(space, name)
            way = None if found is None else _leads_to(found, thing)
            if way is not None:
                return name, way
    for name, found in list(space.items()):
        if _same(found, thing) and isinstance(name, str):
            return name, ()
    return None


def _wrapped_by(thing: Any) -> Iterator[Any]:
    """The object, and what it wraps: one of them has the name."""
    for _ in range(_WRAPPED_DEEPEST):
        yield thing
        for name in WRAPPERS:
            inner = getattr(thing, name, None)
            if callable(inner) and inner is not thing:
                thing = inner
                break
        else:
            return


def locate(thing: Any) -> Optional[Located]:
    """Where a cell can import an object from; None: nowhere."""
    modules = [getattr(inner, "__module__", None) for inner in _wrapped_by(thing)]
    kinds = type(getattr(thing, "__self__", None)), type(thing)  # random.random is a method of an object there
    modules += [kind.__module__ for kind in kinds if kind.__module__ != "builtins"]
    for module in dict.fromkeys(name for name in modules if isinstance(name, str)):
        if is_importable(module):
            found = name_in(vars(sys.modules[module]), thing)
            if found is not None:
                return (module, *found)
    return None


def is_named(function: types.FunctionType) -> bool:
    """Whether some global of its module, or of the script, has this function, and it is no lambda, whose name
    in a script may be but a loop's variable."""
    main = sys.modules.get("__main__")
    return function.__name__ != "<lambda>" and (
            name_in(function.__globals__, function) is not None
            or main is not None and name_in(vars(main), function) is not None)


def is_anonymous(thing: Any) -> bool:
    """Whether an object's own name says that no module has it."""
    return "<" in str(getattr(thing, "__qualname__", ""))


# ---- code ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class _Code:
    code: types.CodeType  # so that its id is not used again
    data: bytes
    names: Tuple[str, ...]  # of globals
    attributes: Set[str]


_codes: Dict[int, _Code] = {}
_CODES_MOST = 1024
_GLOBAL = {"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_ATTRIBUTE = {"LOAD_ATTR", "LOAD_METHOD"}


def _walk(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _walk(const)


def read_code(code: types.CodeType) -> _Code:
    """What a code object, and those within it, take from their globals."""
    known = _codes.get(id(code))
    if known is not None and known.code is code:
        return known
    names: Dict[str, None] = {}
    attributes: Set[str] = set()
    for part in _walk(code):
        for step in dis.get_instructions(part):
            if step.opname in _GLOBAL:
                names[step.argval] = None
            elif step.opname in _ATTRIBUTE:
                attributes.add(step.argval)
    if len(_codes) >= _CODES_MOST:
        _codes.clear()
    known = _codes[id(code)] = _Code(code, marshal.dumps(code), tuple(names), attributes)
    return known


def _submodules(module: types.ModuleType, attributes: Set[str]) -> List[str]:
    """Modules of a package that the code uses by attribute: `import xml.dom.minidom` binds only `xml`."""
    if not hasattr(module, "__path__"):
        return []
    start = module.__name__ + "."
    return [name for name in list(sys.modules)
            if name.startswith(start) and set(name[len(start):].split(".")) <= attributes]


def _source(filename: str) -> Optional[str]:
    """Source that a cell does not find by its name: of a notebook's cell, of a prompt, of a relative path."""
    if os.path.isabs(filename) and os.path.exists(filename):
        return None
    lines = linecache.getlines(filename)
    return "".join(lines) if lines and sum(map(len, lines)) <= _SOURCE_MOST else None


# ---- the pickler ---------------------------------------------------------------------------------

_DATACLASS_MARKS = {id(value): name for name, value in vars(dataclasses).items()
                    if type(value).__module__ == "dataclasses" and not isinstance(value, type)
                    and not callable(value)}
_ENUM_OWN = {"_generate_next_value_", "_member_names_", "_member_map_", "_member_type_", "_value2member_map_",
             "_unhashable_values_", "_hashable_values_", "_unhashable_values_map_", "_new_member_", "__new__",
             "__new_member__", "_use_args_", "_value_repr_", "_singles_mask_", "_all_bits_", "_flag_mask_",
             "_inverted_", "_boundary_", "_order_", "_ignore_"}
_MEMBER_OWN = {"_value_", "_name_", "__objclass__", "_sort_order_"}
_CLASS_OWN = {"__dict__", "__weakref__", "__module__", "__qualname__", "__doc__", "__slots__", "__orig_bases__",
              "_abc_impl", "__classcell__", "__annotate_func__", "__annotations_cache__"}


# Classes of the interpreter that only this module has a name for.
_TYPES = {value: name for name, value in vars(types).items()
          if isinstance(value, type) and not hasattr(builtins, value.__name__)
          and value.__module__ == "builtins" and name not in ("NoneType", "NotImplementedType", "EllipsisType")}


class Pickler(pickle.Pickler):
    """Pickles for a cell. What it can import goes by name, the rest by value.

    nameless: lambdas, closures and local classes are sent wherever they are. Otherwise only as parts of
    what is sent by value: by themselves they raise Nameless.
    """

    def __init__(self, file: typing.BinaryIO, buffer_callback: Optional[Callable[[Any], Any]] = None, *,
                 nameless: bool = False, annotations: bool = True) -> None:
        super().__init__(file, 5, buffer_callback=buffer_callback)
        self.modules: Dict[str, None] = {}  # that the cell will import for it
        self.by_value = False  # whether anything was
        self._nameless = nameless
        self._annotations = annotations
        self._sources: Set[str] = set()  # names of files that were looked at

    def reducer_override(self, thing: Any) -> Any:
        """Called for all but the simplest types."""
        kind = type(thing)
        if kind is types.FunctionType:
            return NotImplemented if thing.__module__ == _resolve.NAME else self._function(thing)
        if issubclass(kind, type):
            return self._class(thing)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(self, thing)
        if kind.__module__ == "dataclasses" and id(thing) in _DATACLASS_MARKS:
            return _DATACLASS_MARKS[id(thing)]
        return NotImplemented

    def _named(self, thing: Any) -> Any:
        """An object by name, or None."""
        located = locate(thing)
        if located is None:
            return None
        module, name, way = located
        self.modules[module] = None
        if not way and getattr(thing, "__module__", None) == module and getattr(thing, "__qualname__", None) == name:
            return NotImplemented  # as pickle does it
        return _resolve.find, (module, name, way)

    def _enter(self, thing: Any) -> None:
        if not self._nameless and not self.by_value and is_anonymous(thing):
            if not isinstance(thing, types.FunctionType) or not is_named(thing):
                raise Nameless(thing)
        self.by_value = True

    # ---- functions

    def _function(self, function: types.FunctionType) -> Any:
        named = self._named(function)
        if named is not None:
            return named
        self._enter(function)
        code = read_code(function.__code__)
        make, space = (_resolve.make_code, (TAG, code.data)), self._space(function)
        used: Dict[str, Any] = {}
        if space[0] is _resolve.make_space:
            used = {name: function.__globals__[name] for name in code.names if name in function.__globals__}
            if self._annotations:
                _add_annotated(_annotations_of(function), function.__globals__, used)
        cells = [_Reduced(_cell(cell)[:2]) for cell in function.__closure__ or ()]
        args = (id(function), _Reduced(make), _Reduced(space), function.__name__, tuple(cells) or None)
        state = self._state(function, code, used)
        return _resolve.make_function, args, state, None, None, _resolve.set_function

    def _space(self, function: types.FunctionType) -> Any:
        space = function.__globals__
        name = space.get("__name__")
        if isinstance(name, str) and is_importable(name) and vars(sys.modules[name]) is space:
            self.modules[name] = None
            return _resolve.module_space, (name,)
        kept = {key: space[key] for key in ("__name__", "__file__", "__package__", "__doc__")
                if isinstance(space.get(key), str)}
        return _resolve.make_space, (id(space), name if isinstance(name, str) else "__main__", kept)

    def _state(self, function: types.FunctionType, code: _Code, used: Dict[str, Any]) -> Dict[str, Any]:
        modules = [name for value in used.values() if isinstance(value, types.ModuleType)
                   for name in _submodules(value, code.attributes)]
        self.modules.update(dict.fromkeys(modules))
        closure = [_contents(cell) for cell in function.__closure__ or ()]
        state = {"globals": used, "closure": closure, "modules": modules, "dict": dict(function.__dict__),
                 "__defaults__": function.__defaults__, "__kwdefaults__": function.__kwdefaults__,
                 "__qualname__": function.__qualname__, "__module__": function.__module__,
                 "__doc__": function.__doc__}
        if self._annotations:
            state["__annotations__"] = _annotations_of(function)
        filename = function.__code__.co_filename
        if filename not in self._sources:
            self._sources.add(filename)
            source = _source(filename)
            if source is not None:
                state["source"] = (filename, source)
        return state

    # ---- classes

    def _class(self, made: Any) -> Any:
        module = getattr(made, "__module__", None)
        if module == "builtins" and made in _TYPES:
            return _resolve.find, ("types", _TYPES[made], ())
        if module == "builtins" or not isinstance(module, str):
            return NotImplemented
        named = self._named(made)
        if named is not None:
            return named
        if is_importable(module) and not made.__flags__ & 0x200:  # not a class of Python's: not on the heap
            return NotImplemented
        self._enter(made)
        if type(made).__name__ == "_TypedDictMeta":
            return self._typed_dict(made)
        return self._enum(made) if isinstance(made, enum.EnumMeta) else self._plain_class(made)

    def _typed_dict(self, made: Any) -> Any:
        """Nobody can make one of the bases that it has."""
        own = ("__module__", "__qualname__", "__doc__", "__required_keys__", "__optional_keys__")
        state = {key: getattr(made, key) for key in own if hasattr(made, key)}
        args = (id(made), made.__name__, dict(made.__annotations__) if self._annotations else {}, made.__total__)
        return _resolve.make_typed_dict, args, state, None, None, _resolve.set_class

    def _plain_class(self, made: Any) -> Any:
        names = {key: vars(made)[key] for key in ("__slots__", "__orig_bases__") if key in vars(made)}
        names.update(__module__=made.__module__, __qualname__=made.__qualname__, __doc__=made.__doc__)
        state = {key: value for key, value in vars(made).items()
                 if key not in _CLASS_OWN and not _is_slot(value, made) and self._is_kept(key)}
        args = (id(made), type(made), made.__name__, made.__bases__, names)
        return _resolve.make_class, args, state, None, None, _resolve.set_class

    def _enum(self, made: Any) -> Any:
        names = {"__module__": made.__module__, "__qualname__": made.__qualname__, "__doc__": made.__doc__}
        members = [(key, member._value_) for key, member in made.__members__.items()]
        inherited = {id(value) for base in made.__mro__[1:] for value in vars(base).values()}
        state = {key: value for key, value in vars(made).items()
                 if key not in _CLASS_OWN | _ENUM_OWN and key not in made.__members__ and self._is_kept(key)
                 and id(value) not in inherited}
        own = {key: {name: value for name, value in vars(member).items() if name not in _MEMBER_OWN}
               for key, member in made.__members__.items()}
        args = (id(made), type(made), made.__name__, made.__bases__, names, members)
        return _resolve.make_enum, args, (state, own), None, None, _resolve.set_enum

    def _is_kept(self, key: str) -> bool:
        return self._annotations or key not in ("__annotations__", "__annotate__")

    # ---- what pickle cannot do, or would do by a name in __main__

    def _module(self, module: types.ModuleType) -> Any:
        name = module.__name__
        if name in ("__main__", "__mp_main__"):
            raise TypeError("the script's own module cannot be sent as a whole; use what it defines by name")
        if not is_importable(name) and getattr(module, "__file__", None) is None:
            raise TypeError(f"module {name!r} exists in memory only, and a cell cannot import it")
        self.modules[name] = None
        return _resolve.import_module, (name,)

    def _method(self, method: types.MethodType) -> Any:
        named = self._named(method)
        if named is not None:
            return named
        owner, name = method.__self__, method.__func__.__name__
        if _same(getattr(owner, name, None), method):
            return getattr, (owner, name)
        return types.MethodType, (method.__func__, owner)

    def _property(self, thing: property) -> Any:
        return property, (thing.fget, thing.fset, thing.fdel, thing.__doc__)

    def _wrapping(self, thing: Any) -> Any:  # staticmethod, classmethod
        return type(thing), (thing.__func__,)

    def _cached_property(self, thing: Any) -> Any:
        state = {key: value for key, value in vars(thing).items() if key != "lock"}
        return type(thing), (thing.func,), state

    def _mapping(self, thing: Any) -> Any:  # a proxy, or one that refers weakly
        return type(thing), (dict(thing),)

    def _forward(self, thing: Any) -> Any:  # a name in an annotation
        return typing.ForwardRef, (thing.__forward_arg__,)

    def _lru_cache(self, thing: Any) -> Any:
        named = self._named(thing)
        if named is not None:
            return named
        settings = getattr(thing, "cache_parameters", lambda: {"typed": False})()  # there since 3.9
        self.by_value = True
        return _resolve.make_lru_cache, (thing.__wrapped__, thing.cache_info().maxsize, settings["typed"])

    def _typevar(self, thing: Any) -> Any:
        named = self._named(thing)
        if named is not None:
            return named
        options = {"bound": thing.__bound__, "covariant": thing.__covariant__, "contravariant": thing.__contravariant__}
        return _resolve.make_typevar, (id(thing), thing.__name__, thing.__constraints__, options)

    def _reduced(self, thing: _Reduced) -> Any:
        return thing.reduced


class _Reduced:
    """Stands for what a call of a function in the cell will give."""

    def __init__(self, reduced: Any) -> None:
        self.reduced = reduced


def _contents(cell: Any) -> Tuple[Any, ...]:
    """Of a closure's cell: one object, or none."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _cell(cell: Any) -> Any:
    return _resolve.make_cell, (id(cell),), _contents(cell), None, None, _resolve.set_cell


def _is_slot(value: Any, owner: Any) -> bool:
    return isinstance(value, types.MemberDescriptorType) and value.__objclass__ is owner


def _annotations_of(function: types.FunctionType) -> Dict[str, Any]:
    try:
        return dict(function.__annotations__)
    except Exception:  # they are evaluated now, where Python does so late
        return {}


def _add_annotated(annotations: Dict[str, Any], space: Dict[str, Any], used: Dict[str, Any]) -> None:
    """Adds the globals that annotations speak of as text, which tools need to make of JSON what they say; and those of the
    module's own classes among them, which have annotations, too."""
    for hint in annotations.values():
        for name in re.findall(r"[^\W\d]\w*", hint) if isinstance(hint, str) else [getattr(hint, "__name__", "")]:
            value = space.get(name)
            is_own = isinstance(value, type) and value.__module__ == space.get("__name__")
            if name in used or name not in space or not isinstance(hint, str) and not is_own:
                continue
            used[name] = value
            if is_own:
                _add_annotated(getattr(value, "__annotations__", {}), space, used)


_REDUCERS: Dict[type, Callable[[Pickler, Any], Any]] = {
    types.ModuleType: Pickler._module,
    types.MethodType: Pickler._method,
    types.CellType: lambda _, cell: _cell(cell),
    types.MappingProxyType: Pickler._mapping,
    weakref.WeakKeyDictionary: Pickler._mapping,
    weakref.WeakValueDictionary: Pickler._mapping,
    typing.ForwardRef: Pickler._forward,
    property: Pickler._property,
    staticmethod: Pickler._wrapping,
    classmethod: Pickler._wrapping,
    functools.cached_property: Pickler._cached_property,
    functools._lru_cache_wrapper: Pickler._lru_cache,
    typing.TypeVar: Pickler._typevar,
    _Reduced: Pickler._reduced,
}


def dumps(thing: Any, buffer_callback: Optional[Callable[[Any], Any]] = None, *,
          annotations: bool = True) -> Tuple[bytes, Pickler]:
    """The pickle of an object, and the pickler, which knows what it met."""
    file = io.BytesIO()
    pickler = Pickler(file, buffer_callback, annotations=annotations)
    pickler.dump(thing)
    return file.getvalue(), pickler
