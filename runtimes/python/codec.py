# SPDX-License-Identifier: Apache-2.0
"""Values: what a cell and its host say to each other, as parts of messages (_message.py).

A value is JSON as far as JSON goes; all else is an object with one member whose name begins with "$":
{"$tuple": [1, 2]}, {"$bytes": 0} (buffer 0). docs/values.md has the table. Only exact types are written, so
that nothing is narrowed on its way: a subclass is an error that names the place.

The host reads what a cell wrote, and a cell may be anybody's. Reading builds plain data and nothing else; what
it costs in time and memory is bounded by the bytes that came; it raises Malformed, and nothing else. It
imports nothing: a module that a cell could ask for might be a file that the cell wrote.

The same files are part of the runtime in a cell and of the package on the host.
"""

from __future__ import annotations

import re
import struct
import sys

from ._collected import DEPTH_MAX, FILES_MAX, FileMatcher, check_file_name, read_files
from ._message import HUGE, NESTING_MAX, PARTS_MAX, Attachments, Malformed, pack, read_json, read_plain, room, unpack, unpack_head
from ._tables import COMPARE_MAX, Tables

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple, Union

    Buffer = Union[bytes, bytearray, memoryview]
    Head = Dict[str, Any]

# Who has values has messages to put them in, and may have files beside them.
__all__ = ("COMPARE_MAX", "DEPTH_MAX", "FILES_MAX", "HUGE", "NDIM_MAX", "NESTING_MAX", "PARTS_MAX", "PLAIN_ADVICE", "RESULT_ADVICE",
           "SAFE_INT", "Attachments", "FileMatcher", "Malformed", "NotImported", "NotPlain", "can_build", "check_file_name", "decode", "encode",
           "is_as_it_is", "name_type", "pack", "read_files", "read_plain", "room", "unpack", "unpack_head", "with_article")
SAFE_INT = (1 << 53) - 1  # what every language's JSON reads exactly
NDIM_MAX = 32

RESULT_ADVICE = "return plain data, or name its class in result_types (a dataclass, pydantic model, enum or named tuple), or use trust_results=True"
PLAIN_ADVICE = "only plain data can be sent"


class NotImported(Malformed):
    """A value that needs a module which the reader has not imported. The message is a sentence of its own."""


class NotPlain(TypeError):
    """A value that cannot be written. The message says where in the value it is, what it is, what to do."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: List[str] = []  # from the inside out

    def complete(self, name: str, advice: str) -> NotPlain:
        """Fills in the message, when the way to the value is known."""
        self.args = (f"{name}{''.join(reversed(self.path))} {self.what}: {advice}",)
        return self


# ---- writing values ------------------------------------------------------------------------------

_AS_IT_IS = frozenset((str, bool, type(None)))
_FLAT = frozenset((str, bool, type(None), int, float))
_TEXT = frozenset((str,))
_NUMBERS = frozenset((int, float))
_ITEMS = frozenset((bool, int, float, complex, str, bytes))  # that scalars of numpy are without it


def is_as_it_is(value: Any) -> bool:
    """Whether a value is one of JSON's own, but no list, no object and no float."""
    kind = type(value)
    return kind in _AS_IT_IS or kind is int and -SAFE_INT <= value <= SAFE_INT


def encode(value: Any, types: Collection[str] = (), buffers: Optional[List[Any]] = None,
           name: str = "result", advice: str = RESULT_ADVICE, lacks: Collection[str] = ()) -> Tuple[Any, List[Any]]:
    """A value as a tree for pack(), and its buffers: appended to `buffers` where that is given. The tree shares what needs
    no change with the value. types: "module:Class" of those that may be sent as their fields. lacks: modules that the reader
    has not: of numpy, a scalar is written as Python's own, and an array not at all."""
    if buffers is None:
        buffers = []
    if is_as_it_is(value):
        return value, buffers
    encoder = _Encoder(types, buffers, "numpy" not in lacks)
    try:
        return encoder.walk(value), buffers
    except NotPlain as error:
        raise error.complete(name, advice) from None
    except RecursionError:
        raise NotPlain("nests too deep, or holds itself").complete(name, f"it may nest {NESTING_MAX} deep") from None


class _Encoder:
    """One walk through a value. Whatever needs no change is returned as the very same object."""

    __slots__ = ("types", "buffers", "has_numpy")

    def __init__(self, types: Collection[str], buffers: List[Any], has_numpy: bool) -> None:
        self.types = types
        self.buffers = buffers
        self.has_numpy = has_numpy

    def walk(self, value: Any) -> Any:
        kind = type(value)
        if kind in _AS_IT_IS:
            return value
        write = _writers.get(kind)
        if write is None:
            write = _find_writer(kind, self.types)
        return write(self, value)

    def attach(self, buffer: Any) -> int:
        self.buffers.append(buffer)
        return len(self.buffers) - 1

    def put_int(self, value: int) -> Any:
        return value if -SAFE_INT <= value <= SAFE_INT else {"$int": hex(value)}

    def put_float(self, value: float) -> Any:
        return value if value - value == 0 else {"$float": repr(value)}

    def put_list(self, value: List[Any]) -> Any:
        if len(value) > 8:
            kinds = set(map(type, value))
            if (kinds <= _AS_IT_IS
                    or kinds == {int} and -SAFE_INT <= min(value) and max(value) <= SAFE_INT
                    or kinds == {float} and (total := sum(value)) - total == 0):  # none is NaN or infinite
                return value
        changed = None
        at = 0
        try:
            for at, item in enumerate(value):
                kind = type(item)
                if kind in _AS_IT_IS or kind is int and -SAFE_INT <= item <= SAFE_INT:
                    continue
                new = self.walk(item)
                if new is not item:
                    if changed is None:
                        changed = list(value)
                    changed[at] = new
        except NotPlain as error:
            error.path.append(f"[{at}]")
            raise
        return value if changed is None else changed

    def put_dict(self, value: Dict[Any, Any]) -> Any:
        if not _TEXT.issuperset(map(type, value)) or len(value) == 1 and next(iter(value))[:1] == "$":
            return {"$dict": self.put_pairs(value)}
        changed = None
        key = ""
        try:
            for key, item in value.items():
                kind = type(item)
                if kind in _AS_IT_IS or kind is int and -SAFE_INT <= item <= SAFE_INT:
                    continue
                new = self.walk(item)
                if new is not item:
                    if changed is None:
                        changed = dict(value)
                    changed[key] = new
        except NotPlain as error:
            error.path.append(f"[{key!r:.60}]")
            raise
        return value if changed is None else changed

    def put_pairs(self, value: Dict[Any, Any]) -> List[List[Any]]:
        pairs: List[List[Any]] = []
        for key, item in value.items():
            try:
                written = self.walk(key)
            except NotPlain as error:
                error.path.append(f".keys()[{len(pairs)}]")
                raise
            try:
                pairs.append([written, self.walk(item)])
            except NotPlain as error:
                error.path.append(f"[{key!r:.60}]")
                raise
        return pairs

    def put_object(self, value: Any) -> Any:
        kind = type(value)
        state = {}
        name = ""
        try:
            for name, item in _get_state(value).items():
                state[name] = self.walk(item)
        except NotPlain as error:
            if name:
                error.path.append(f".{name}")
            raise
        return {"$object": {"type": name_type(kind), "state": state}}

    def put_ndarray(self, value: Any) -> Any:
        if not self.has_numpy:
            raise NotPlain("is a numpy array, and the program that called has not imported numpy")
        text = value.dtype.str
        if not _DTYPE.match(text):
            raise NotPlain(f"is an array of dtype {value.dtype!s:.60}")
        order, flat = "C", value
        if not value.flags.c_contiguous:
            if value.flags.f_contiguous:
                order, flat = "F", value.T
            else:
                flat = value.copy(order="C")
        # As bytes, since buffers of dates and of long doubles have no format that Python knows.
        data = flat.reshape(-1).view("u1") if value.size else b""
        return {"$ndarray": {"dtype": text, "shape": list(value.shape), "order": order, "buffer": self.attach(data)}}

    def put_numpy_scalar(self, value: Any) -> Any:
        if not self.has_numpy:
            return self.put_item(value)
        text, data = value.dtype.str, value.tobytes()
        if text[1:] in ("U0", "S0"):  # an empty text, which numpy has no array of
            text, data = text[:2] + "1", bytes(4 if text[1] == "U" else 1)
        if not _DTYPE.match(text) or value.dtype.type is not type(value):
            raise NotPlain(f"is {with_article(name_type(type(value)))}")
        return {"$npscalar": {"dtype": text, "buffer": self.attach(data)}}

    def put_item(self, value: Any) -> Any:
        """A scalar of numpy as Python's own, if there is one that says the same: no count of nanoseconds for a time."""
        item = value.item() if value.dtype.type is type(value) else value
        kind = type(item)
        if kind not in _ITEMS if value.dtype.kind not in "Mm" else kind.__module__ != "datetime":
            raise NotPlain(f"is {with_article(name_type(type(value)))}")
        return self.walk(item)

    def put_moment(self, value: Any) -> Any:
        """A datetime keeps its offset, not the name of its zone."""
        return {"$datetime": value.isoformat()}

    def put_time(self, value: Any) -> Any:
        if value.tzinfo is not None and value.utcoffset() is None:
            raise NotPlain("is a time of a zone without a fixed offset")
        return {"$time": value.isoformat()}


_writers: Dict[type, Callable[[_Encoder, Any], Any]] = {
    int: _Encoder.put_int,
    float: _Encoder.put_float,
    list: _Encoder.put_list,
    dict: _Encoder.put_dict,
    tuple: lambda encoder, value: {"$tuple": encoder.put_list(list(value))},
    set: lambda encoder, value: {"$set": encoder.put_list(list(value))},
    frozenset: lambda encoder, value: {"$frozenset": encoder.put_list(list(value))},
    bytes: lambda encoder, value: {"$bytes": encoder.attach(value)},
    bytearray: lambda encoder, value: {"$bytearray": encoder.attach(value)},
    complex: lambda encoder, value: {"$complex": [encoder.put_float(value.real), encoder.put_float(value.imag)]},
}

# Types of modules that may never be imported: a value of one exists only where its module does.
_foreign: Dict[str, Dict[str, Callable[[_Encoder, Any], Any]]] = {
    "datetime": {
        "datetime": _Encoder.put_moment,
        "date": lambda _, value: {"$date": value.isoformat()},
        "time": _Encoder.put_time,
        "timedelta": lambda _, value: {"$timedelta": [value.days, value.seconds, value.microseconds]},
    },
    "decimal": {"Decimal": lambda _, value: {"$decimal": str(value)}},
    "uuid": {"UUID": lambda _, value: {"$uuid": str(value)}},
    "numpy": {"ndarray": _Encoder.put_ndarray},
}


def name_type(kind: type) -> str:
    """A class as `types` name it."""
    return f"{kind.__module__}:{kind.__qualname__}"


def with_article(noun: str) -> str:
    """A noun in a sentence."""
    return f"{'an' if noun[:1] in 'aeiouAEIO' else 'a'} {noun}"


def _find_writer(kind: type, types: Collection[str]) -> Callable[[_Encoder, Any], Any]:
    for module_name, names in _foreign.items():
        module = sys.modules.get(module_name)
        for name, write in names.items() if module else ():
            if getattr(module, name, None) is kind:
                _writers[kind] = write
                return write
    generic = getattr(sys.modules.get("numpy"), "generic", None)
    if generic is not None and issubclass(kind, generic):
        return _Encoder.put_numpy_scalar
    if name_type(kind) in types:
        return _Encoder.put_object
    raise NotPlain(f"is {with_article(name_type(kind).replace('builtins:', ''))}")


def can_build(kind: type) -> bool:
    """Whether it is of the classes that can be sent where they are named, or anyway."""
    return (kind.__module__.partition(".")[0] in ("builtins", *_foreign) or hasattr(kind, "model_dump")
            or hasattr(kind, "__dataclass_fields__") or _is_enum(kind) or issubclass(kind, tuple) and hasattr(kind, "_fields"))


def _get_state(value: Any) -> Dict[str, Any]:
    """What an object of a named class is made of, for _build()."""
    kind = type(value)
    if hasattr(kind, "model_dump"):
        return value.model_dump()  # type: ignore[no-any-return]
    if hasattr(kind, "__dataclass_fields__"):
        return {field.name: getattr(value, field.name) for field in sys.modules["dataclasses"].fields(value)}
    if _is_enum(kind):
        return {"value": value.value} if hasattr(kind, "__or__") else {"name": value.name}
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return value._asdict()  # type: ignore[no-any-return]
    raise NotPlain(f"is {with_article(name_type(kind))}, which is not a dataclass, pydantic model, enum or named tuple")


def _is_enum(kind: type) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and issubclass(kind, enum.Enum)


def _is_flag(kind: type) -> bool:
    enum = sys.modules.get("enum")
    return enum is not None and issubclass(kind, enum.Flag)


# ---- reading values ------------------------------------------------------------------------------

_CONTAINERS = frozenset((list, dict))
_DTYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|[SU][1-9][0-9]{0,8}"
                    r"|[Mm]8(?:\[(?:[1-9][0-9]{0,5})?(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)\Z")
_HEX = re.compile(r"-?0x[0-9a-f]+\Z")
_DECIMAL = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]{1,20})?|Infinity|s?NaN[0-9]*)\Z")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_FLOAT_FORMATS = {"f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd"}
_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
_WHOLE_FLOAT = re.compile(r"-?[0-9]{1,21}\.0\Z")  # of languages whose JSON would make an integer of it


def decode(tree: Any, buffers: Sequence[Buffer] = (), types: Optional[Mapping[str, type]] = None,
           load: Callable[[str], Any] = sys.modules.get) -> Any:
    """The value that a tree says, which is used up. Raises Malformed.

    buffers: as unpack() gave them; one set of Attachments for all that is read from a message. types: "module:Class" → the
    class; each is made by its own constructor, so that its own checks hold. load: gives a module or None; the
    host must not import one because a cell says so.
    """
    if isinstance(tree, (bytes, bytearray, memoryview)):
        buffers = Attachments.of(buffers)
        try:
            tree, buffers.is_plain = read_json(bytes(tree), PARTS_MAX)
        except RecursionError:
            raise Malformed("the value nests too deep") from None
        except ValueError as error:
            raise Malformed(f"the value is not JSON: {error!s:.200}") from None
    if type(tree) not in _CONTAINERS:
        return tree
    if not isinstance(buffers, Attachments):
        buffers = Attachments.of(buffers)
    if buffers.is_plain:
        return tree
    try:
        return _Decoder(buffers, types or {}, load).walk(tree)
    except Malformed:
        raise
    except RecursionError:
        raise Malformed("the value nests too deep") from None
    except Exception as error:  # of what makes a value from text; whichever it is, the text is to blame
        raise Malformed(f"the value cannot be made: {_say(error)}") from None


class _Decoder:
    """One walk through a tree, in place: lists and dicts of JSON become those of the value."""

    __slots__ = ("buffers", "types", "load", "tables")

    def __init__(self, buffers: Attachments, types: Mapping[str, type], load: Callable[[str], Any]) -> None:
        self.buffers = buffers
        self.types = types
        self.load = load
        self.tables = Tables(buffers)

    def walk(self, tree: Any) -> Any:
        kind = type(tree)
        if kind is list:
            if len(tree) > 8 and _FLAT.issuperset(map(type, tree)):
                return tree
            for at, item in enumerate(tree):
                if type(item) in _CONTAINERS:
                    tree[at] = self.walk(item)
        elif kind is dict:
            if len(tree) == 1:
                (tag, body), = tree.items()
                if tag[:1] == "$":
                    read = _readers.get(tag)
                    if read is None:
                        raise Malformed(f"{tag!r:.60} is not the name of a type")
                    return read(self, body)
            for key, item in tree.items():
                if type(item) in _CONTAINERS:
                    tree[key] = self.walk(item)
        return tree

    def items(self, body: Any) -> List[Any]:
        if type(body) is not list:
            raise Malformed("a list is wanted")
        return self.walk(body)  # type: ignore[no-any-return]

    def get_dict(self, body: Any) -> Dict[Any, Any]:
        pairs = self.items(body)
        if not all(type(pair) is list and len(pair) == 2 for pair in pairs):
            raise Malformed("a list of pairs is wanted")
        return self.tables.make_dict(pairs)

    def get_int(self, body: Any) -> int:
        value = int(_match(_HEX, body), 16)  # takes time in proportion, and is not bounded by Python
        if len(body) > 300:
            self.tables.has_huge_int = True
        return value

    def get_float(self, body: Any) -> float:
        if type(body) is str and body in _FLOATS:
            return _FLOATS[body]
        return float(_match(_WHOLE_FLOAT, body))

    def get_complex(self, body: Any) -> complex:
        real, imag = self.items(body)
        if type(real) not in _NUMBERS or type(imag) not in _NUMBERS:
            raise Malformed("two numbers are wanted")
        return complex(real, imag)

    def get_undefined(self, body: Any) -> None:
        if body is not True:
            raise Malformed("undefined is wanted")

    def load_module(self, name: str, what: str = "", advice: str = "plain data") -> Any:
        module = self.load(name)
        if module is None:
            raise NotImported(f"{what or 'the value is of ' + name}, and this program has not imported {name}: import it, or return {advice}")
        return module

    def get_decimal(self, body: Any) -> Any:
        self.tables.has_decimal = True
        return self.load_module("decimal").Decimal(_match(_DECIMAL, body))

    def get_uuid(self, body: Any) -> Any:
        return self.load_module("uuid").UUID(_match(_UUID, body))

    def get_moment(self, body: Any) -> Any:
        text = _text(body)
        if text[-1:] == "Z":  # as JavaScript has it, and Python from 3.11 on
            text = text[:-1] + "+00:00"
        return self.load_module("datetime").datetime.fromisoformat(text)

    def get_date(self, body: Any) -> Any:
        return self.load_module("datetime").date.fromisoformat(_text(body))

    def get_time(self, body: Any) -> Any:
        return self.load_module("datetime").time.fromisoformat(_text(body))

    def get_timedelta(self, body: Any) -> Any:
        days, seconds, microseconds = self.items(body)
        if not (type(days) is type(seconds) is type(microseconds) is int):
            raise Malformed("three integers are wanted")
        return self.load_module("datetime").timedelta(days, seconds, microseconds)

    def get_ndarray(self, body: Any) -> Any:
        numpy, dtype, data = self.take_array(body, {"dtype", "shape", "order", "buffer"})
        shape, order = body["shape"], body["order"]
        if (type(shape) is not list or len(shape) > NDIM_MAX or order not in ("C", "F")
                or not all(type(size) is int and size >= 0 for size in shape)):
            raise Malformed("an array's shape is a list of sizes")
        count = 1
        for size in shape:
            count *= size
        if count * dtype.itemsize != len(data):
            raise Malformed("an array's shape and its buffer do not agree")
        array = numpy.frombuffer(data, dtype) if count else numpy.empty(0, dtype)
        # In place, unless it would keep much more than itself in memory, or is slow to use.
        if len(data) * 2 < self.buffers.nbytes or not array.flags.aligned or not array.flags.writeable:
            array = array.copy()
        return array.reshape(shape, order=order)

    def get_numpy_scalar(self, body: Any) -> Any:
        if self.load("numpy") is None:
            return self.get_item(body)
        numpy, dtype, data = self.take_array(body, {"dtype", "buffer"})
        if len(data) != dtype.itemsize:
            raise Malformed("a scalar's type and its buffer do not agree")
        self.tables.has_scalars_of_numpy = True
        return numpy.frombuffer(data, dtype)[0]

    def get_item(self, body: Any) -> Any:
        """A scalar of numpy for who has not imported that: what its item() is."""
        if type(body) is not dict or body.keys() != {"dtype", "buffer"}:
            raise Malformed("an array is wanted")
        dtype = _match(_DTYPE, body["dtype"])
        kind, size, order = dtype[1], dtype[2:], ">" if dtype[0] == ">" else "<"
        if kind in "Mm" or kind in "fc" and kind + size not in _FLOAT_FORMATS:
            self.load_module("numpy", f"the value is a scalar of numpy's, of the type {dtype}", ".item()")
        data = bytes(self.buffers.take(body["buffer"]))
        if len(data) != int(size) * (4 if kind == "U" else 1):
            raise Malformed("a scalar's type and its buffer do not agree")
        if kind == "S":
            return data.rstrip(b"\0")
        if kind == "U":
            try:  # strict: whatever is no text ends it at once, where each half of a pair would take long
                return data.decode(f"utf-32-{'be' if order == '>' else 'le'}").rstrip("\0")
            except UnicodeDecodeError:
                raise Malformed("a scalar's text is none") from None
        if kind == "b":
            if data not in (b"\0", b"\1"):
                raise Malformed("a bool is neither true nor false")
            return data == b"\1"
        if kind in "iu":
            return int.from_bytes(data, "big" if order == ">" else "little", signed=kind == "i")
        parts = struct.unpack(order + _FLOAT_FORMATS[kind + size], data)
        return parts[0] if kind == "f" else complex(*parts)

    def take_array(self, body: Any, names: Any) -> Tuple[Any, Any, Any]:
        if type(body) is not dict or body.keys() != names:
            raise Malformed("an array is wanted")
        numpy = self.load_module("numpy", "the value is a numpy array", ".tolist()")
        dtype = numpy.dtype(_match(_DTYPE, body["dtype"]))
        data = self.buffers.take(body["buffer"])
        # numpy counts on it, and writes behind an array that a mask with other bytes selects from.
        if dtype.kind == "b" and len(data) and numpy.frombuffer(data, "u1").max() > 1:
            raise Malformed("a bool is neither true nor false")
        if dtype.kind == "U" and len(data) and len(data) % 4 == 0:
            if numpy.frombuffer(data, dtype.byteorder + "u4").max() > sys.maxunicode:
                raise Malformed("a character is none")
        return numpy, dtype, data

    def get_object(self, body: Any) -> Any:
        if type(body) is not dict or body.keys() != {"type", "state"} or type(body["state"]) is not dict:
            raise Malformed("an object's type and state are wanted")
        kind = self.types.get(body["type"]) if type(body["type"]) is str else None
        if kind is None:
            raise Malformed(f"{body['type']!r:.200} is not among the result_types")
        state = {name: self.walk(item) for name, item in body["state"].items()}
        if _is_flag(kind):
            self.check_flag(kind, state.get("value"))
        return _build(kind, state)

    def check_flag(self, kind: Any, value: Any) -> None:
        """A class of flags keeps each combination that it once had, with bits of anybody's, for good. To make one, some versions of
        Python go through all that are kept, and through each set of bits that nothing has."""
        known = getattr(kind, "_value2member_map_")
        if type(value) is not int:
            raise Malformed("a flag is a number")
        if value in known:
            return
        bits = 0
        for member in kind.__members__.values():
            bits |= member.value
        if (~value if value < 0 else value) & ~bits:
            raise Malformed(f"a flag has bits that {name_type(kind)} has not")
        self.tables.charge(20 * len(known))


_readers: Dict[str, Callable[[_Decoder, Any], Any]] = {
    "$int": _Decoder.get_int,
    "$float": _Decoder.get_float,
    "$complex": _Decoder.get_complex,
    "$bytes": lambda decoder, body: bytes(decoder.buffers.take(body)),
    "$bytearray": lambda decoder, body: bytearray(decoder.buffers.take(body)),
    "$tuple": lambda decoder, body: tuple(decoder.items(body)),
    "$set": lambda decoder, body: decoder.tables.make_set(set, decoder.items(body)),
    "$frozenset": lambda decoder, body: decoder.tables.make_set(frozenset, decoder.items(body)),
    "$dict": _Decoder.get_dict,
    "$datetime": _Decoder.get_moment,
    "$date": _Decoder.get_date,
    "$time": _Decoder.get_time,
    "$timedelta": _Decoder.get_timedelta,
    "$decimal": _Decoder.get_decimal,
    "$uuid": _Decoder.get_uuid,
    "$ndarray": _Decoder.get_ndarray,
    "$npscalar": _Decoder.get_numpy_scalar,
    "$undefined": _Decoder.get_undefined,
    "$object": _Decoder.get_object,
}


def _say(error: Exception) -> str:
    """Of an error that may hold what a cell wrote, such as a number that Python refuses to print."""
    try:
        return f"{type(error).__name__}: {error!s:.200}"
    except Exception:
        return type(error).__name__


def _match(pattern: re.Pattern[str], body: Any) -> str:
    if type(body) is not str or not pattern.match(body):
        raise Malformed(f"{body!r:.60} is not written as it should be")
    return body


def _text(body: Any) -> str:
    if type(body) is not str or len(body) > 64:
        raise Malformed(f"{body!r:.60} is not written as it should be")
    return body


def _build(kind: Any, state: Dict[str, Any]) -> Any:
    """An object of a class that the caller named. Its constructor is called, never passed by: a class that checks
    its fields can rely on it."""
    if hasattr(kind, "model_validate"):
        return kind.model_validate(state)
    if hasattr(kind, "__dataclass_fields__"):
        fields = {field.name: field for field in sys.modules["dataclasses"].fields(kind)}
        if fields.keys() != state.keys():
            raise Malformed(f"the fields are not those of {name_type(kind)}")
        # The others are what the class makes of these, not what a cell says.
        return kind(**{name: state[name] for name, field in fields.items() if field.init})
    if _is_enum(kind):
        (key, value), = state.items()
        return kind(value) if key == "value" else kind[value]
    if issubclass(kind, tuple) and set(getattr(kind, "_fields", ())) == state.keys():
        return kind(**state)
    raise Malformed(f"{name_type(kind)} cannot be made of what came")
