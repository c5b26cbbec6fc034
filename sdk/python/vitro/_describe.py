# SPDX-License-Identifier: Apache-2.0
"""What a model is told of a function: its name, what it does, and a JSON schema of its arguments, from its
type hints and its docstring.

Arguments are given by keyword. So a parameter that can only be given by position is an error, *args is left
out, and **kwargs lets any other name in, of the type that it is annotated with; without it there are no others.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import functools
import inspect
import ipaddress
import json
import pathlib
import re
import sys
import types
import typing
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _docstring
from ._codec import with_article

JSON = Dict[str, Any]

_SIMPLE: Dict[Any, JSON] = {
    bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}, str: {"type": "string"},
    type(None): {"type": "null"}, None: {"type": "null"}, Any: {}, object: {},
    bytes: {"type": "string", "contentEncoding": "base64"}, bytearray: {"type": "string", "contentEncoding": "base64"},
    datetime.datetime: {"type": "string", "format": "date-time"}, datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"}, datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"}, decimal.Decimal: {"type": "string", "format": "decimal"},
    ipaddress.IPv4Address: {"type": "string", "format": "ipv4"}, ipaddress.IPv6Address: {"type": "string", "format": "ipv6"},
    re.Pattern: {"type": "string", "format": "regex"},
}
_ARRAYS = (list, collections.abc.Sequence, collections.abc.MutableSequence, collections.abc.Iterable,
           collections.abc.Collection, collections.abc.Iterator)
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_STRIPPED = ("ClassVar", "Final", "Required", "NotRequired", "ReadOnly", "InitVar")
_UNIONS = (typing.Union, getattr(types, "UnionType", typing.Union))
_CONSTRAINTS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
                "multiple_of": "multipleOf"}


def describe_tool(func: Callable[..., Any], name: Optional[str] = None,
                  description: Optional[str] = None) -> Tuple[str, str, JSON]:
    """(name, description, input_schema) of a function. What is given is not looked for. Raises TypeError for a
    function that cannot be called by keywords, and ValueError for one without a name."""
    plain = _plain(func)
    if name is None:
        name = getattr(plain, "__name__", None) or type(plain).__name__
        if name == "<lambda>":
            raise ValueError("a lambda has no name; give one by name=")
    text, said = _docstring.parse(_doc_of(plain))
    schema = _arguments(func, plain, said)
    return name, text if description is None else description, schema


def _plain(func: Any) -> Any:
    """The function in a partial, or in the object of a decorator that cannot itself be called."""
    while isinstance(func, functools.partial):
        func = func.func
    if not callable(func):
        for attribute in ("fn", "func", "__wrapped__"):
            if callable(getattr(func, attribute, None)):
                return getattr(func, attribute)
        raise TypeError(f"want a function, found {with_article(type(func).__name__)}")
    return func


def _doc_of(plain: Any) -> Optional[str]:
    is_object = not isinstance(plain, type) and not hasattr(plain, "__name__")
    doc = getattr(type(plain).__call__ if is_object else plain, "__doc__", None)
    return doc if isinstance(doc, str) else None


def _arguments(func: Any, plain: Any, said: Dict[str, str]) -> JSON:
    try:
        signature = inspect.signature(func if callable(func) else plain)
    except (ValueError, TypeError):  # of C functions: nobody knows
        return {"type": "object"}
    schemas = _Schemas()
    properties: JSON = {}
    required: List[str] = []
    others: Any = False
    hints = _hints_of(plain)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.default is parameter.empty:
            raise TypeError(f"parameter {name!r} can only be given by position, but tools are called by keyword")
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            continue
        hint = hints.get(name, Any if parameter.annotation is parameter.empty else parameter.annotation)
        if parameter.kind is parameter.VAR_KEYWORD:
            others = schemas.of(hint) or True
            continue
        properties[name] = _described(schemas.of(hint), said.get(name))
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            _set_default(properties[name], parameter.default)
    return schemas.whole(properties, required, others)


def _described(schema: JSON, text: Optional[str]) -> JSON:
    """An own word of the annotation stands before the docstring's."""
    return schema if not text or "description" in schema else {**schema, "description": text}


def _set_default(schema: JSON, value: Any) -> None:
    if isinstance(value, enum.Enum):
        value = value.value
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return
    if len(text) <= 4096:
        schema["default"] = json.loads(text)


def _hints_of(thing: Any) -> Dict[str, Any]:
    """Type hints with their extras. One that cannot be resolved here is left out, and so is not checked."""
    target = thing
    if isinstance(thing, type) and not dataclasses.is_dataclass(thing) and not hasattr(thing, "__total__"):
        target = thing.__init__  # type: ignore[misc]
    elif not isinstance(thing, type) and not hasattr(thing, "__annotations__"):
        target = getattr(type(thing), "__call__", thing)
    target = inspect.unwrap(target) if callable(target) and not isinstance(target, type) else target
    try:
        return _get_type_hints(target)
    except Exception:  # names of what is imported for type checkers only, syntax of later versions
        pass
    return {name: hint for name, hint in getattr(target, "__annotations__", {}).items()
            for hint in [_resolved(target, hint)] if hint is not None}


def _get_type_hints(target: Any) -> Dict[str, Any]:
    if sys.version_info >= (3, 9):
        return typing.get_type_hints(target, include_extras=True)
    try:
        from typing_extensions import get_type_hints
    except ImportError:
        return typing.get_type_hints(target)
    return get_type_hints(target, include_extras=True)


def _resolved(target: Any, hint: Any) -> Any:
    if not isinstance(hint, str):
        return hint
    space = getattr(target, "__globals__", None) or vars(sys.modules.get(getattr(target, "__module__", ""), typing))
    try:
        return eval(hint, dict(space))  # the caller's own annotation, as typing does it
    except Exception:
        return None


class _Schemas:
    """Schemas of types; those of classes are kept apart, so that they may contain themselves."""

    def __init__(self) -> None:
        self.definitions: JSON = {}
        self._names: Dict[Any, str] = {}

    def whole(self, properties: JSON, required: List[str], others: Any) -> JSON:
        schema = _object(properties, required, others)
        if self.definitions:
            schema["$defs"] = self.definitions
        return schema

    def of(self, hint: Any) -> JSON:
        """The schema of a type; {} where there is nothing to say."""
        try:
            if hint in _SIMPLE:
                return dict(_SIMPLE[hint])
        except TypeError:  # it cannot be hashed
            return {}
        origin = typing.get_origin(hint)
        if hasattr(hint, "__metadata__"):
            return self._annotated(hint)
        if origin in _UNIONS and origin is not None:
            return self._union(typing.get_args(hint))
        if _is_literal(origin):
            return _values(list(typing.get_args(hint)))
        for attribute in ("__supertype__", "__value__", "__bound__"):  # NewType, an alias, a TypeVar
            if not isinstance(hint, type) and getattr(hint, attribute, None) is not None:
                return self.of(getattr(hint, attribute))
        if getattr(origin, "_name", None) in _STRIPPED or getattr(hint, "_name", None) in _STRIPPED:
            return self.of((*typing.get_args(hint), Any)[0])
        if isinstance(hint, dataclasses.InitVar):
            return self.of(hint.type)
        return self._container(hint, origin or hint, typing.get_args(hint))

    def _container(self, hint: Any, kind: Any, args: Tuple[Any, ...]) -> JSON:
        if not isinstance(kind, type):
            return {}
        if kind is tuple:
            return self._tuple(args)
        if kind in _ARRAYS or kind in _SETS:
            schema: JSON = {"type": "array", "uniqueItems": True} if kind in _SETS else {"type": "array"}
            items = self.of(args[0]) if args else {}
            return {**schema, "items": items} if items else schema
        if kind in _OBJECTS:
            values = self.of(args[1]) if len(args) == 2 else {}
            return {"type": "object", "additionalProperties": values} if values else {"type": "object"}
        return self._class(hint, kind)

    def _class(self, hint: Any, kind: Any) -> JSON:
        if issubclass(kind, enum.Enum):
            return _values([member.value for member in kind])
        if hasattr(kind, "model_json_schema"):
            return self._refer(hint, kind, self._pydantic)
        if dataclasses.is_dataclass(kind):
            return self._refer(hint, kind, self._dataclass)
        if hasattr(kind, "__total__") and hasattr(kind, "__annotations__"):
            return self._refer(hint, kind, self._typed_dict)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            hints = _hints_of_class(kind)
            return self._tuple(tuple(hints.get(name, Any) for name in kind._fields))
        if issubclass(kind, pathlib.PurePath):
            return {"type": "string", "format": "path"}
        for base in (bool, int, float, str, bytes):
            if issubclass(kind, base):
                return dict(_SIMPLE[base])
        return {}

    def _tuple(self, args: Tuple[Any, ...]) -> JSON:
        if not args:
            return {"type": "array"}
        if len(args) == 2 and args[1] is Ellipsis:
            return {"type": "array", "items": self.of(args[0])}
        if args == ((),):
            args = ()
        schema: JSON = {"type": "array", "minItems": len(args), "maxItems": len(args)}
        return {**schema, "prefixItems": [self.of(arg) for arg in args]} if args else schema

    def _union(self, args: Tuple[Any, ...]) -> JSON:
        parts: List[JSON] = []
        for arg in args:
            part = self.of(arg)
            if not part:
                return {}
            if part not in parts:
                parts.append(part)
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _annotated(self, hint: Any) -> JSON:
        schema = self.of(hint.__origin__)
        for extra in hint.__metadata__:
            if isinstance(extra, str):
                schema["description"] = extra
            elif isinstance(getattr(extra, "description", None), str):
                schema["description"] = extra.description
            elif isinstance(getattr(extra, "documentation", None), str):  # typing_extensions.Doc
                schema["description"] = extra.documentation
            for part in (extra, *getattr(extra, "metadata", ())):
                _constrain(schema, part)
        return schema

    # ---- classes with members

    def _refer(self, hint: Any, kind: Any, make: Callable[[Any], JSON]) -> JSON:
        name = self._names.get(hint)
        if name is None:
            name, number = kind.__name__, 2
            while name in self.definitions:
                name, number = f"{kind.__name__}{number}", number + 1
            self._names[hint] = name
            self.definitions[name] = {}  # taken, while its members are looked at
            self.definitions[name] = make(kind)
        return {"$ref": f"#/$defs/{name}"}

    def _dataclass(self, kind: Any) -> JSON:
        hints = _hints_of_class(kind)
        said = _docstring.parse(_own_doc(kind))
        properties, required = {}, []
        for field in dataclasses.fields(kind):
            if not field.init:
                continue
            text = field.metadata.get("description") or said[1].get(field.name)
            properties[field.name] = _described(self.of(hints.get(field.name, Any)), text)
            if field.default is not dataclasses.MISSING:
                _set_default(properties[field.name], field.default)
            elif field.default_factory is dataclasses.MISSING:
                required.append(field.name)
        return _described(_object(properties, required, False), said[0])

    def _typed_dict(self, kind: Any) -> JSON:
        said = _docstring.parse(_own_doc(kind))
        hints = _hints_of_class(kind)
        properties = {name: _described(self.of(hint), said[1].get(name)) for name, hint in hints.items()}
        names = getattr(kind, "__required_keys__", hints if kind.__total__ else ())
        required = [name for name, hint in hints.items()
                    if _wrapper(hint) == "Required" or name in names and _wrapper(hint) != "NotRequired"]
        return _described(_object(properties, required, False), said[0])

    def _pydantic(self, kind: Any) -> JSON:
        schema: JSON = kind.model_json_schema(ref_template="#/$defs/{model}")
        for name, part in schema.pop("$defs", {}).items():
            self.definitions.setdefault(name, part)
        return schema


def _object(properties: JSON, required: List[str], others: Any) -> JSON:
    schema: JSON = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if others is not True:
        schema["additionalProperties"] = others
    return schema


def _own_doc(kind: Any) -> Optional[str]:
    """A dataclass without a docstring has its signature for one."""
    doc = vars(kind).get("__doc__")
    return doc if isinstance(doc, str) and not doc.startswith(kind.__name__ + "(") else None


def _hints_of_class(kind: Any) -> Dict[str, Any]:
    try:
        return _get_type_hints(kind)
    except Exception:
        return {name: hint for name, hint in getattr(kind, "__annotations__", {}).items()
                for hint in [_resolved(kind, hint)] if hint is not None}


def _wrapper(hint: Any) -> Optional[str]:
    """Required or NotRequired, around a member's type."""
    return getattr(typing.get_origin(hint), "_name", None)


def _is_literal(origin: Any) -> bool:
    return origin is typing.Literal or getattr(origin, "_name", None) == "Literal"


def _values(values: List[Any]) -> JSON:
    """One of a few values, with their type where they have one in common."""
    values = [value.value if isinstance(value, enum.Enum) else value for value in values]
    try:
        values = json.loads(json.dumps(values, allow_nan=False))
    except (TypeError, ValueError):  # members of an enum that JSON has no values for
        return {}
    kinds = {type(value) for value in values}
    schema: JSON = {"enum": values}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"type": _SIMPLE[kind]["type"], **schema} if kind in (bool, int, float, str) else schema


def _constrain(schema: JSON, extra: Any) -> None:
    """annotated-types' marks, which pydantic's Field makes too."""
    for attribute, keyword in _CONSTRAINTS.items():
        value = getattr(extra, attribute, None)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            schema[keyword] = value
    noun = {"string": "Length", "array": "Items", "object": "Properties"}.get(str(schema.get("type")))
    for attribute, start in (("min_length", "min"), ("max_length", "max")):
        value = getattr(extra, attribute, None)
        if isinstance(value, int) and noun:
            schema[start + noun] = value
    pattern = getattr(extra, "pattern", None)
    if isinstance(pattern, str) and schema.get("type") == "string":
        schema["pattern"] = pattern
