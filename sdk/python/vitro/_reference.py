# SPDX-License-Identifier: Apache-2.0
"""A function becomes a reference, which runtimes/python/resolve.py turns into the function in a cell.

What a module has goes by its name, if a cell can import that module: the reference is checked here to lead
to this very function, directly or through the wrapper objects of decorators. All else is a pickle:
methods and callable objects with their state, partials, and by value what a script defines itself.

What cannot be sent raises NotSendable, whose message says whether it is the function or an argument, which
part of it, and what to do.
"""

from __future__ import annotations

import functools
import os
import sys
import types
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import _byvalue
from ._byvalue import Located, Nameless
from ._codec import with_article


class NotSendable(TypeError):
    """A function or an argument that cannot be sent to a cell."""


class Reference(NamedTuple):
    """What stands for a function in a call's message.

    ref: for the message's head. Indices in it count from the first of `buffers`, so those come first.
    buffers: bytes-like, for the message.
    modules: what the cell will import, the function's own module first; learning them makes calls fast.
    label: "module:qualname", for messages.
    """

    ref: Dict[str, Any]
    buffers: List[Any]
    modules: Tuple[str, ...]
    label: str


def describe(func: Callable[..., Any]) -> Reference:
    """A reference to a function, a method, a partial, or any object that can be called. Raises NotSendable."""
    known = _remembered(func)
    if known is not None:
        return known
    if not callable(func):
        func = _unwrapped(func)
    located = _byvalue.locate(func)
    return _by_name(func, located) if located is not None else _by_pickle(func)


def dumps(args: Tuple[Any, ...], kwargs: Dict[str, Any], reference: Optional[Reference] = None,
          buffer_callback: Optional[Callable[[Any], Any]] = None) -> bytes:
    """The pickle of (args, kwargs), for the function of `reference`; the cell reads it by pickle.loads().
    buffer_callback as in pickle.dumps(). Raises NotSendable, which names the argument."""
    if reference is not None and reference.ref.get("cloudpickle"):
        return _by_cloudpickle((args, kwargs), buffer_callback, "the arguments")
    try:
        data, buffers, _ = _dumps((args, kwargs), buffer_callback is not None)
    except Nameless as error:
        return _by_cloudpickle((args, kwargs), buffer_callback, "the arguments", error)
    except Exception as error:
        raise NotSendable(_explain_arguments(args, kwargs, error)) from error
    for buffer in buffers:
        buffer_callback(buffer)  # type: ignore[misc]
    return data


# ---- by name -------------------------------------------------------------------------------------


class _Known(NamedTuple):
    located: Located
    reference: Reference


_known: weakref.WeakKeyDictionary[Any, _Known] = weakref.WeakKeyDictionary()


def _remembered(func: Any) -> Optional[Reference]:
    """The reference from an earlier call, if it leads to the function still."""
    try:
        known = _known.get(func)
    except TypeError:  # neither hashed nor weakly held
        return None
    if known is None:
        return None
    module, name, way = known.located
    found: Any = sys.modules.get(module)
    for word in (*name.split("."), *way):
        found = getattr(found, word, None)
    return known.reference if found is func else None


def _by_name(func: Any, located: Located) -> Reference:
    module, name, way = located
    ref: Dict[str, Any] = {"module": module, "name": name, "unwrap": list(way)}
    file = getattr(sys.modules[module], "__file__", None)
    if isinstance(file, str) and _is_own(file):
        ref["file"] = os.path.abspath(file)
    reference = Reference(ref, [], (module,), f"{module}:{name}")
    if isinstance(func, (types.FunctionType, types.BuiltinFunctionType)):
        try:
            _known[func] = _Known(located, reference)
        except TypeError:
            pass
    return reference


@functools.lru_cache(maxsize=1024)
def _is_own(file: str) -> bool:
    """Whether a module is the caller's own, and no part of an installation that another interpreter has, too."""
    path = os.path.realpath(file)
    if {"site-packages", "dist-packages"} & set(path.split(os.sep)):
        return False
    prefixes = {os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    library = os.path.realpath(os.path.dirname(os.__file__))
    return not any(path.startswith(os.path.join(p, "lib") + os.sep) for p in prefixes) \
        and not path.startswith(library + os.sep)


# ---- by value ------------------------------------------------------------------------------------


def _by_pickle(func: Any) -> Reference:
    label = label_of(func)
    try:
        data, buffers, pickler = _dumps(func, True)
    except Nameless as error:
        return _cloudpickled(func, label, error)
    except Exception as error:
        raise NotSendable(_explain_function(func, label, error)) from error
    ref = {"pickle": 0, "oob": len(buffers), "label": label}
    if pickler.by_value:
        ref["python"] = _byvalue.TAG
    return Reference(ref, [data, *(buffer.raw() for buffer in buffers)], _own_first(func, pickler.modules), label)


def _own_first(func: Any, modules: Dict[str, None]) -> Tuple[str, ...]:
    own = [name for name in modules if name == getattr(func, "__module__", None)]
    return (*own, *(name for name in modules if name not in own))


def _dumps(thing: Any, out_of_band: bool) -> Tuple[bytes, List[Any], _byvalue.Pickler]:
    buffers: List[Any] = []
    collect = buffers.append if out_of_band else None
    try:
        data, pickler = _byvalue.dumps(thing, collect)
        return data, buffers, pickler
    except Nameless:
        raise
    except Exception:
        # Annotations may hold what cannot be sent, and are seldom missed.
        buffers.clear()
        try:
            data, pickler = _byvalue.dumps(thing, collect, annotations=False)
        except Exception:
            pass
        else:
            return data, buffers, pickler
        raise


def _cloudpickled(func: Any, label: str, nameless: Nameless) -> Reference:
    buffers: List[Any] = []
    data = _by_cloudpickle(func, buffers.append, f"the function {label}", nameless)
    ref = {"pickle": 0, "oob": len(buffers), "label": label, "python": _byvalue.TAG, "cloudpickle": True}
    return Reference(ref, [data, *(buffer.raw() for buffer in buffers)], ("cloudpickle",), label)


def _by_cloudpickle(thing: Any, buffer_callback: Optional[Callable[[Any], Any]], what: str,
                    nameless: Optional[Nameless] = None) -> bytes:
    try:
        import cloudpickle  # type: ignore[import-not-found,import-untyped,unused-ignore]
    except ImportError:
        culprit = getattr(nameless, "thing", thing)
        raise NotSendable(
            f"{what} cannot be sent to a cell: {_kind_of(culprit)} has no name in a module by which a cell could find "
            "it. Define it at the top level of a module, or install cloudpickle, which sends such things by value"
        ) from None
    try:
        return cloudpickle.dumps(thing, 5, buffer_callback=buffer_callback)  # type: ignore[no-any-return,unused-ignore]
    except Exception as error:
        raise NotSendable(f"{what} cannot be sent to a cell by cloudpickle: {_said(error)}") from error


# ---- words ---------------------------------------------------------------------------------------


def label_of(func: Any) -> str:
    """What messages call a function: "module:qualname"."""
    while isinstance(func, functools.partial):
        func = func.func
    name = getattr(func, "__qualname__", None) or getattr(func, "__name__", None)
    named = func if isinstance(name, str) else type(func)
    name = name if isinstance(name, str) else type(func).__qualname__
    return f"{getattr(named, '__module__', None) or 'builtins'}:{name}"


def _kind_of(thing: Any) -> str:
    name = getattr(thing, "__qualname__", None)
    if not isinstance(name, str):
        return with_article(type(thing).__qualname__)
    if name.endswith("<lambda>"):
        return "a lambda"
    noun = "class" if isinstance(thing, type) else "function"
    return f"the local {noun} {name!r}" if "<locals>" in name else f"the {noun} {name!r}"


def _unwrapped(func: Any) -> Any:
    for inner in _byvalue._wrapped_by(func):
        if callable(inner):
            return inner
    raise NotSendable(f"want a function, found {_kind_of(func)}, which cannot be called")


def _said(error: BaseException) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    text = str(error)
    return text if text else type(error).__name__


def _fails(thing: Any) -> Optional[BaseException]:
    try:
        _byvalue.dumps(("", thing), None)
    except Nameless:
        return None
    except Exception as error:
        return error
    return None


def _explain_function(func: Any, label: str, error: BaseException) -> str:
    start = f"the function {label} cannot be sent to a cell: "
    while isinstance(func, functools.partial):
        for number, value in enumerate(func.args, 1):
            if _fails(value):
                return f"{start}argument {number} of its partial, {_kind_of(value)}: {_said(error)}"
        for name, value in func.keywords.items():
            if _fails(value):
                return f"{start}argument {name!r} of its partial, {_kind_of(value)}: {_said(error)}"
        func = func.func
    owner = getattr(func, "__self__", None)
    if isinstance(func, types.MethodType) and _fails(owner):
        return (f"{start}its object, {_kind_of(owner)}, cannot be pickled: {_said(error)}. Give that class a "
                "__getstate__ that leaves out what cannot be sent, or use a plain function")
    if isinstance(func, types.FunctionType):
        part = _find_part(func, set())
        if part:
            return (f"{start}it uses {part}. It is sent by value, since cells do not import {func.__module__!r}: make that in "
                    "the function, pass it as an argument, or define the function in a module")
    return f"{start}{_said(error)}. Define it at the top level of a module"


def _find_part(func: types.FunctionType, seen: Set[int]) -> Optional[str]:
    """Which global, default or closure of a function by value it is that cannot be sent."""
    seen.add(id(func))
    space = func.__globals__
    parts = [(f"the global {name!r}", space[name]) for name in _byvalue.read_code(func.__code__).names if name in space]
    parts += [(f"the default {value!r:.60}", value) for value in func.__defaults__ or ()]
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            parts.append((f"the variable {name!r}", cell.cell_contents))
        except ValueError:  # empty
            pass
    for what, value in parts:
        error = None if id(value) in seen else _fails(value)
        if error is None:
            continue
        inner = _find_part(value, seen) if isinstance(value, types.FunctionType) else None
        if inner:
            return f"{what}, which uses {inner}"
        return f"{what}, {_kind_of(value)} ({_said(error)})"
    return None


def _explain_arguments(args: Tuple[Any, ...], kwargs: Dict[str, Any], error: BaseException) -> str:
    advice = "Pass plain data, or what it can be made from in the cell"
    named = [(f"argument {number}", value) for number, value in enumerate(args, 1)]
    named += [(f"argument {name!r}", value) for name, value in kwargs.items()]
    for what, value in named:
        found = _fails(value)
        if found is not None:
            return f"{what}, {_kind_of(value)}, cannot be sent to a cell: {_said(found)}. {advice}"
    return f"the arguments cannot be sent to a cell: {_said(error)}. {advice}"
