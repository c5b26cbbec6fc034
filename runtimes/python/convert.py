# SPDX-License-Identifier: Apache-2.0
"""Arguments as JSON has them become what a function's annotations say: a dataclass from an object, a date from a text.

The schema that vitro/_describe.py makes of a function says what JSON there is for each type; here is the way back. It runs
in the cell, by whatever a class of the function's own does in its constructor. What an annotation does not speak of, or
what has another shape than it wants, stays as it is.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Dict, List, Optional, Tuple

# What JSON's own values are, as annotations and as their texts.
_AS_IT_IS = frozenset((str, int, bool, dict, list, object, type(None), None))
_AS_IT_IS_TEXT = frozenset(("str", "int", "bool", "dict", "list", "object", "None"))
_STRIPPED = ("ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar")
_ATTRIBUTES = ("__supertype__", "__value__", "__bound__")  # of a NewType, an alias, a TypeVar: what stands for it


class InvalidArguments(ValueError):
    """An argument cannot be made what its annotation says."""


InvalidArguments.__module__ = "vitro"


def convert_arguments(function: Any, arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of a call by keyword."""
    target = _annotated_part(function)
    annotations = getattr(target, "__annotations__", None)
    if not annotations or all(_is_plain(annotations.get(name)) for name in arguments):
        return arguments
    hints = _hints_of(target)
    made = {}
    for name, value in arguments.items():
        try:
            made[name] = convert(value, hints.get(name))
        except Exception as error:
            raise InvalidArguments(f"arguments.{name}: {type(error).__name__}: {error}") from error
    return made


def _is_plain(hint: Any) -> bool:
    return hint in _AS_IT_IS_TEXT if type(hint) is str else type(hint) is type and hint in _AS_IT_IS or hint is None


def _annotated_part(function: Any) -> Any:
    """What has the annotations: of a partial, a method, a class, an object that can be called, a decorated function."""
    for _ in range(100):
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif type(function).__module__ == "functools" and hasattr(function, "func"):
            function = function.func
        else:
            break
    if isinstance(function, type):
        return function.__init__  # type: ignore[misc]
    return function if hasattr(function, "__annotations__") else getattr(type(function), "__call__", function)


def _hints_of(target: Any) -> Dict[str, Any]:
    """Type hints, but for those that cannot be told here."""
    import typing
    try:
        return typing.get_type_hints(target)
    except Exception:  # names of what is imported for type checkers only, syntax of later versions
        return {name: hint for name, hint in target.__annotations__.items() if not isinstance(hint, str)}


def convert(value: Any, hint: Any) -> Any:
    """A value of JSON as what the hint says."""
    try:
        if hint in _AS_IT_IS:
            return value
    except TypeError:  # it cannot be hashed
        return value
    if hint is float:
        return float(value) if type(value) is int else value
    import typing
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hasattr(hint, "__metadata__"):
        return convert(value, hint.__origin__)
    if origin is typing.Union or type(hint).__name__ == "UnionType":
        return _convert_union(value, args)
    if origin is typing.Literal:
        return next((arg for arg in args if getattr(arg, "value", arg) == value), value)
    for attribute in _ATTRIBUTES if not isinstance(hint, type) else ():
        if getattr(hint, attribute, None) is not None:
            return convert(value, getattr(hint, attribute))
    if getattr(origin, "_name", None) in _STRIPPED or getattr(hint, "_name", None) in _STRIPPED:
        return convert(value, (*args, None)[0])
    kind = origin or hint
    if not isinstance(kind, type):
        return value
    if type(value) is list:
        return _convert_list(value, kind, args)
    if type(value) is dict:
        return _convert_object(value, kind, args)
    return _convert_one(value, kind)


def _convert_union(value: Any, args: Tuple[Any, ...]) -> Any:
    """What is of one of the types already stays; else it is the first one that it can be."""
    if type(value) in args:
        return value
    failure: Optional[Exception] = None
    for arg in args:
        try:
            made = convert(value, arg)
        except Exception as error:
            failure = failure or error
            continue
        if made is not value:
            return made
    if failure is not None:
        raise failure
    return value


def _convert_list(value: List[Any], kind: Any, args: Tuple[Any, ...]) -> Any:
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = _hints_of(kind)
        return kind(*(convert(part, hints.get(name)) for part, name in zip(value, kind._fields)), *value[len(kind._fields):])
    if kind is tuple:
        each = args if len(args) == len(value) and ... not in args else args[:1] * len(value)
        return tuple(convert(part, hint) for part, hint in zip(value, each)) if each else tuple(value)
    made = [convert(part, args[0]) for part in value] if args else value
    if kind.__name__ in ("set", "Set", "MutableSet") and kind.__module__ in ("builtins", "collections.abc"):
        return set(made)
    return frozenset(made) if kind is frozenset else made


def _convert_object(value: Dict[str, Any], kind: Any, args: Tuple[Any, ...]) -> Any:
    if hasattr(kind, "model_validate"):
        return kind.model_validate(value)
    if hasattr(kind, "__dataclass_fields__"):
        hints = _hints_of(kind)
        return kind(**{name: convert(part, hints.get(name)) for name, part in value.items()})
    if hasattr(kind, "__total__") and hasattr(kind, "__annotations__"):  # a TypedDict
        hints = _hints_of(kind)
        return {name: convert(part, hints.get(name)) for name, part in value.items()}
    if len(args) == 2 and (kind is dict or kind.__module__ == "collections.abc"):
        key, hint = args
        return {int(name) if key is int else convert(name, key): convert(part, hint) for name, part in value.items()}
    return value


def _convert_one(value: Any, kind: Any) -> Any:
    if isinstance(value, kind) or value is None:
        return value
    enum: Any = sys.modules.get("enum")
    if enum is not None and issubclass(kind, enum.Enum):
        return kind(value)
    if type(value) is str:
        for base in kind.__mro__:
            make = _FROM_TEXT.get(f"{base.__module__.partition('.')[0]}:{base.__name__}")
            if make is not None:
                return make(kind, value)
    if issubclass(kind, type(value)) and type(value) in (str, int, float):
        return kind(value)
    return value


# ---- texts ---------------------------------------------------------------------------------------


def _read_time(kind: Any, text: str) -> Any:
    return kind.fromisoformat(text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text)


def _read_duration(kind: Any, text: str) -> Any:
    """Of ISO 8601, without months and years, which have no length."""
    import re
    number = r"(\d+(?:[.,]\d+)?)"
    found = re.fullmatch(rf"([+-]?)P(?:{number}W)?(?:{number}D)?(?:T(?:{number}H)?(?:{number}M)?(?:{number}S)?)?", text)
    if found is None or text[-1:] in ("P", "T"):
        raise ValueError(f"{text!r:.60} is no duration such as PT1H30M")
    parts = [float(part.replace(",", ".")) if part else 0 for part in found.groups()[1:]]
    made = kind(**dict(zip(("weeks", "days", "hours", "minutes", "seconds"), parts)))
    return -made if found[1] == "-" else made


def _read_base64(kind: Any, text: str) -> Any:
    import base64
    try:
        return kind(base64.b64decode(text, validate=True))
    except ValueError as error:
        raise ValueError(f"this is not base64: {error}") from None


def _read_pattern(kind: Any, text: str) -> Any:
    import re
    return re.compile(text)


def _make(kind: Any, text: str) -> Any:
    return kind(text)


_FROM_TEXT: Dict[str, Callable[[Any, str], Any]] = {
    "datetime:datetime": _read_time, "datetime:date": _read_time, "datetime:time": _read_time,
    "datetime:timedelta": _read_duration, "builtins:bytes": _read_base64, "builtins:bytearray": _read_base64,
    "re:Pattern": _read_pattern, "uuid:UUID": _make, "decimal:Decimal": _make, "ipaddress:IPv4Address": _make,
    "ipaddress:IPv6Address": _make, "pathlib:PurePath": _make,
}
