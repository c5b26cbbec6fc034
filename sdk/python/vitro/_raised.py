# SPDX-License-Identifier: Apache-2.0
"""What a call raised, as callers who know nothing of vitro expect it: an exception of the class that the function raised.

A cell's word is data. So nothing of a cell is unpickled or constructed for it: the exception is the VitroError that it
would be anyhow, whose class is also a class of this program's that the caller agreed to, chosen by its name. Its __init__
does not run. What does, once, is what Python runs when a class is derived from it (its metaclass, __init_subclass__), and for
each exception its __new__, with a text that the cell chose; where one of them raises, the error is a ToolError alone.
"""

from __future__ import annotations

import builtins
from typing import Any, Callable, Dict, Iterable, Mapping, NoReturn, Tuple, Type

from . import _check
from ._result import Result
from .errors import ToolError, VitroError

Kinds = Mapping[str, Type[BaseException]]

# Iterators and generators take these two for their own end.
_LEFT_OUT = (StopIteration, StopAsyncIteration)
_BUILT_IN: Dict[str, Type[BaseException]] = {
    name: kind for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, _LEFT_OUT)}
_made: Dict[Tuple[type, type], Type[VitroError]] = {}


def throw(error: BaseException) -> NoReturn:
    """Raises it, as an expression."""
    raise error


def kinds_of(error_types: Iterable[type]) -> Kinds:
    """The classes that errors may have: the built-in ones, and these, by their names."""
    kinds = dict(_BUILT_IN)
    for kind in _check.items("error_types", "classes", error_types):
        if not isinstance(kind, type) or not issubclass(kind, Exception):
            raise TypeError(f"error_types are classes of exceptions, not {kind!r}")
        kinds[kind.__name__] = kind
    return kinds


def raising(outcome: Callable[[], Any], kinds: Kinds) -> Any:
    """What the outcome gives, or raises."""
    try:
        return outcome()
    except ToolError as error:
        kind = kinds.get(error.type)
        again, cause = error if kind is None else both(error, kind), error.__cause__
    raise again from cause


def both(error: VitroError, kind: Type[BaseException]) -> VitroError:
    """The same error, whose class is also `kind`; the error itself where there can be no such class."""
    known = _made.get((type(error), kind))
    try:
        if known is None:
            known = _made[type(error), kind] = _join(type(error), kind)
        return known(str(error.args[0]) if error.args else "", error.result)
    except Exception:  # a class that cannot be inherited from, or whose instances need more than a text
        return error


def _join(first: Type[VitroError], kind: Type[BaseException]) -> Type[VitroError]:
    def init(self: VitroError, message: str = "", result: Any = None) -> None:
        BaseException.__init__(self, message)
        self.result = result

    def text(self: VitroError) -> str:
        return VitroError.__str__(self)

    def reduce(self: VitroError) -> Tuple[Any, ...]:
        return _again, (first, kind, str(self.args[0]), self.result)

    members = {"__init__": init, "__str__": text, "__reduce__": reduce, "__module__": "vitro", "__doc__": kind.__doc__}
    return type(kind.__name__, (first, kind), members)


def _again(first: Type[VitroError], kind: Type[BaseException], message: str, result: "Result | None") -> VitroError:
    return both(first(message, result), kind)
