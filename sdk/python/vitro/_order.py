# SPDX-License-Identifier: Apache-2.0
"""A call before it is made: which pool it wants, and what it says. The same for threads and for asyncio."""

from __future__ import annotations

import base64
import inspect
import json
import os
import pickle
import re
import struct
import sys
from collections import deque
from contextvars import ContextVar
from typing import Any, Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence, Tuple, Union

from . import _check, _codec as codec
from ._binary import find_binary
from ._paths import Folders
from ._policy import Policy, deadline, file_mb_of, sources_of
from ._reference import NotSendable, Reference, describe, dumps
from .errors import Refused

Buffer = Union[bytes, bytearray, memoryview]
Word = Union[str, bytes, "os.PathLike[str]"]
OnOutput = Callable[[str, str], Any]
OnLog = Callable[[str, str], Any]
Tools = Mapping[str, Callable[..., Any]]
Content = Union[str, bytes, bytearray, memoryview]
Request = Union[memoryview, Dict[str, Any]]  # of a cell, for a tool; or its head, where that is plain JSON and all there is

# True while a tool that a cell asked for runs: calls that it makes are made on behalf of another.
answering: "ContextVar[bool]" = ContextVar("vitro_answering", default=False)

SIMPLE = frozenset((int, str, float, bool, bytes, type(None)))  # what any pickler writes alike
_FIRST_BYTES = 32 << 10  # of an initializer; a setup has 48 KiB
_APART_BYTES = 1 << 16  # of bytes that are worth a buffer of their own
_HEAD_BYTES = 1 << 16  # of a frame, at the most
_NAME_BYTES = 250  # of a tool's name and of a call's id each; the wire has room for 511 together
_RAISED_MAX = 8  # exceptions of its tools that a call keeps, with all that their frames hold
_NOTHING: Deque[Exception] = deque(maxlen=0)


class PoolSpec(NamedTuple):
    """What a pool is for. Pools that are the same are one."""

    kind: str  # "command", "python" or "tool"
    program: str
    sources: str  # of its policy, as JSON
    setup: Optional[str]
    ready_min: int
    ready_max: int


SERVER_TOOL = PoolSpec("tool", "", "", None, 0, 0)  # the server has their pools


class Order:
    """What is to be done. `fields` are members of the call's head, as JSON."""

    __slots__ = ("spec", "tool", "pieces", "fields", "call_id", "on_output", "on_log", "tools", "types", "trust", "collect",
                 "raised", "wants_result", "modules", "size", "usual")

    def __init__(self, spec: PoolSpec, tool: str, pieces: Sequence[Buffer], wall_ms: int, options: "Options") -> None:
        self.spec, self.tool, self.pieces = spec, tool, pieces
        size = 0
        for piece in pieces:
            size += piece.nbytes if isinstance(piece, memoryview) else len(piece)
        self.size = size
        self.call_id, self.on_output, self.on_log = options.call_id, options.on_output, options.on_log
        self.wants_result = options.result
        self.tools: Tools = {}
        self.raised: Deque[Exception] = _NOTHING  # by tools, the last few
        self.types: Dict[str, type] = {}
        self.trust = False
        self.collect: Sequence[str] = ()  # patterns of files
        self.modules: Tuple[str, ...] = ()  # that the pool may learn when the call was well
        self.usual: Optional[Dict[str, Any]] = None  # where nothing is special but the arguments: which function it is of
        fields = f',"wall_ms":{wall_ms}' if wall_ms else ""
        if options.on_output is not None:
            fields += ',"stream":true'
        if answering.get():
            fields += ',"within":true'
        self.fields = fields

    def check_size(self, frame_max: int) -> None:
        """Raises Refused where it is more than a supervisor takes."""
        if self.size > frame_max - _HEAD_BYTES:
            raise Refused(f"the call's arguments have {self.size} bytes; a supervisor takes at most {frame_max}")


class Options:
    """The keyword arguments that all kinds of calls share."""

    __slots__ = ("timeout", "policy", "on_output", "on_log", "result", "call_id")

    def __init__(self, timeout: Optional[float], policy: Policy, on_output: Optional[OnOutput],
                 on_log: Optional[OnLog], result: bool, call_id: str) -> None:
        self.timeout, self.policy = timeout, policy
        self.on_output, self.on_log, self.result = on_output, on_log, result
        self.call_id = call_id
        for name, hook in (("on_output", on_output), ("on_log", on_log)):
            if hook is not None and (not callable(hook) or inspect.iscoroutinefunction(hook)):
                raise TypeError(f"{name} is a plain function, not {hook!r:.100}")
        if call_id != "" and _check.text("call_id", call_id) and (len(call_id.encode("utf-8", "surrogatepass")) > _NAME_BYTES or not call_id.isprintable()):
            raise ValueError(f"call_id is a printable text of at most {_NAME_BYTES} bytes")


class Orders:
    """Makes orders for one sandbox."""

    def __init__(self, policy: Policy, python: Union[None, str, "os.PathLike[str]"], preload: Iterable[str],
                 ready_min: int, ready_max: int) -> None:
        self._policy = policy
        self._preload = _check.texts("preload", "modules' names", preload)
        self._ready = _count("ready_min", ready_min), _count("ready_max", ready_max)
        if 0 < ready_max < ready_min:
            raise ValueError(f"ready_min, {ready_min}, is more than ready_max, {ready_max}")
        self._python = _interpreter(python)
        self._sources = sources_of(policy)
        # Of the sandbox's own policy, until sys.path changes. It is replaced as a whole: many threads may read it.
        self._known: Optional[Tuple[Folders, Dict[Any, PoolSpec]]] = None
        self._heads: Dict[str, Tuple[Dict[str, Any], bytes]] = {}
        self._first: Optional[Tuple[Dict[str, Any], Tuple[Any, ...]]] = None  # an initializer, and what it is made of

    def begin_with(self, initializer: Callable[..., Any], args: Tuple[Any, ...]) -> None:
        """Interpreters of calls of functions begin with calling this one. Raises NotSendable."""
        reference = describe(initializer)
        buffers: List[Buffer] = [*reference.buffers, dumps(args, {}, reference)]
        texts = [base64.b64encode(buffer).decode("ascii") for buffer in buffers]
        if sum(map(len, texts)) > _FIRST_BYTES:
            raise NotSendable(f"the initializer and its arguments are too large to be sent ahead of calls, by more than "
                              f"{_FIRST_BYTES >> 10} KiB: have it read them from a file that the policy lets calls read")
        # Both are kept: what is sent by value is told apart by where it lies in memory.
        self._first = {"function": reference.ref, "buffers": texts, "modules": reference.modules}, (initializer, *args)

    # -- pools

    def _spec(self, kind: str, program: str, options: Options) -> Tuple[PoolSpec, int]:
        """The pool for a call, and its own deadline."""
        if sys.platform != "linux":
            find_binary()  # says so
        own = options.policy is None
        if own and options.timeout is None:
            more, wall_ms = (), 0  # type: Tuple[Dict[str, str], ...], int
        else:
            found, wall_ms = deadline(self._policy if own else options.policy, options.timeout)
            more = tuple(found)
        key = (kind, program, more[0]["value"] if more else None)
        known = self._known
        if known is None or kind == "call" and not known[0].is_current():
            known = self._known = Folders(self._python == sys.executable), {}
        folders, specs = known
        spec = specs.get(key) if own else None
        if spec is None:
            sources = [*(self._sources if own else sources_of(options.policy)), *more]
            spec = self._make_spec(kind, program, sources, folders)
            if own:
                specs[key] = spec
        return spec, wall_ms

    def _make_spec(self, kind: str, program: str, sources: List[Dict[str, str]], folders: Folders) -> PoolSpec:
        if kind == "command":
            return PoolSpec("command", program, json.dumps(sources), None, *self._ready)
        path: List[str] = []
        if kind == "call":
            path = folders.path
            sources = [*sources, {"json": json.dumps({"files": {"read": folders.grants}})}]
        # What an occupant does once before it waits, so that the first call in it is as fast as a second one.
        rehearse = ["call", "usual"] if kind == "call" else ["eval"]
        setup: Dict[str, Any] = {"version": 1, "mode": "message", "path": path, "preload": self._preload,
                                 "rehearse": rehearse}
        if kind == "call" and self._first is not None:
            setup["initializer"] = self._first[0]
        return PoolSpec("python", program, json.dumps(sources), json.dumps(setup), *self._ready)

    def policy_alone(self, policy: Policy) -> PoolSpec:
        """A pool without cells, that only says what a policy comes to."""
        return PoolSpec("", "", json.dumps(self._sources if policy is None else sources_of(policy)), None, 0, 0)

    # -- calls

    def call(self, func: Callable[..., Any], args: Tuple[Any, ...], kwargs: Dict[str, Any], options: Options,
             result_types: Iterable[type], trust: bool, convert: bool = False) -> Order:
        """Of a function of this program. convert: its arguments are as JSON has them, and become what it says they are."""
        spec, wall_ms = self._spec("call", self._python, options)
        reference = describe(func)
        buffers: List[Buffer] = [*reference.buffers]
        first = len(buffers)
        buffers.append(b"")
        buffers[first] = _pickled(args, kwargs, reference, buffers)
        types = _types(result_types) if result_types else {}
        _check.flag("trust_results", trust)
        is_plain = not (types or trust or convert or reference.buffers)
        is_usual = is_plain and len(buffers) == 1
        head = (self._usual_head(reference) if is_usual
                else _call_head(reference, first, buffers, types, trust, convert))
        order = Order(spec, _short(reference.label), pack(head, buffers), wall_ms, options)
        order.modules, order.types, order.trust = reference.modules, types, trust
        if not is_usual:
            order.modules += _modules_of([*args, *kwargs.values()])
        if is_plain:
            order.usual = reference.ref
        return order

    def _usual_head(self, reference: Reference) -> bytes:
        """The head of a call with nothing special about it, which is the same each time."""
        known = self._heads.get(reference.label)
        if known is not None and known[0] is reference.ref:
            return known[1]
        if len(self._heads) > 1024:
            self._heads.clear()
        head = _call_head(reference, 0, [b""], {}, False)
        self._heads[reference.label] = reference.ref, head
        return head

    def eval(self, code: str, tools: Optional[Tools], files: Optional[Mapping[str, Content]],
             collect: Iterable[str], stdin: Optional[Content], options: Options, result_types: Iterable[type],
             trust: bool) -> Order:
        """Of code, which may call tools."""
        if not isinstance(code, str):
            raise TypeError(f"code is a text, not {type(code).__name__}")
        patterns = _check.texts("collect", "patterns", collect)
        _check_patterns(patterns)
        if patterns and not options.result:
            raise TypeError("collect gives files in the result: add result=True")
        tools = _check_tools(tools) if tools else {}
        spec, wall_ms = self._spec("eval", self._python, options)
        buffers: List[Buffer] = []
        file_mb = file_mb_of(self._policy if options.policy is None else options.policy) if files else None
        placed = _place(files, buffers, file_mb) if files else {}
        head: Dict[str, Any] = {"op": "eval", "code": code, "filename": "<eval>", "tools": [*tools],
                                "files": placed, "collect": patterns, "stdin": None,
                                "result": "pickle" if trust else "plain"}
        if stdin is not None:
            head["stdin"] = len(buffers)
            buffers.append(_content("stdin", stdin))
        types = _types(result_types) if result_types else {}
        _check.flag("trust_results", trust)
        if types:
            head["types"] = [*types]
        if sys.modules.get("numpy") is None:
            head["lacks"] = ["numpy"]  # whose values this program could not read, and never imports it for one
        order = Order(spec, "eval", pack(_json(head), buffers), wall_ms, options)
        order.tools, order.types, order.trust, order.collect = tools, types, trust, patterns
        if tools:
            order.raised = deque(maxlen=_RAISED_MAX)
        return order

    def run(self, argv: Sequence[Word], stdin: Optional[Content],
            options: Options) -> Order:
        """Of a command."""
        if isinstance(argv, (str, bytes)):
            raise TypeError("argv is a list of words, the program's first, not a text: no shell reads it; ['sh', '-c', command] has one")
        given_words = _check.items("argv", "words, the program's first", argv)
        if not given_words:
            raise TypeError("argv is a list of words, the program's first, and has none")
        for at, word in enumerate(given_words):
            if not isinstance(word, (str, bytes, os.PathLike)):
                raise TypeError(f"argv[{at}] is a text, not {type(word).__name__} ({word!r:.60})")
        words = [os.fsencode(word) for word in given_words]
        if any(b"\0" in word for word in words):
            raise ValueError("a word of argv has a NUL in it")
        program = os.fsdecode(words[0])
        if "/" in program:
            program = os.path.abspath(program)
        spec, wall_ms = self._spec("command", program, options)
        given = b"" if stdin is None else _content("stdin", stdin)
        order = Order(spec, _short(program), [b"\0".join(words) + b"\0", given], wall_ms, options)
        if given:
            order.fields += f',"stdin":{memoryview(given).nbytes}'
        return order

    def call_tool(self, name: str, arguments: Optional[Mapping[str, Any]], options: Options) -> Order:
        """Of a tool of the server's own: its policy is the server's."""
        if not isinstance(name, str) or not 0 < len(name.encode("utf-8")) <= _NAME_BYTES or "\0" in name:
            raise TypeError(f"a tool's name is a text of 1 to {_NAME_BYTES} bytes, not {name!r:.60}")
        if arguments is not None and not isinstance(arguments, Mapping):
            raise TypeError(f"the arguments of a tool are a dict, not {type(arguments).__name__}")
        try:
            body = json.dumps(dict(arguments or {}), allow_nan=False).encode("ascii")
        except RecursionError:
            raise ValueError(f"the arguments of {name!r} are nested too deeply") from None
        return Order(SERVER_TOOL, name, [body], deadline("default", options.timeout)[1], options)


# ---- parts of a message -------------------------------------------------------------------------------------------


def pack(head: bytes, buffers: Sequence[Buffer]) -> List[Buffer]:
    """A message, of a head that is JSON already."""
    sizes = [piece.nbytes if isinstance(piece, memoryview) else len(piece) for piece in buffers]
    start = struct.pack("<I", len(head)) + head + struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return [start, *buffers]


def _json(head: Any) -> bytes:
    return json.dumps(head, separators=(",", ":")).encode("ascii")


def _call_head(reference: Reference, args: int, buffers: Sequence[Buffer], types: Mapping[str, type], trust: bool,
               convert: bool = False) -> bytes:
    """The arguments are the buffer of that number, and those behind it. `bytes`: what becomes bytes there, uncopied."""
    fixed = [at for at in range(args + 1, len(buffers)) if memoryview(buffers[at]).readonly]
    head = {"op": "call", "function": reference.ref, "args": args, "oob": len(buffers) - args - 1,
            "result": "pickle" if trust else "plain", "types": [*types]}
    if fixed:
        head["bytes"] = fixed
    if convert:
        head["convert"] = True
    return _json(head)


def _pickled(args: Tuple[Any, ...], kwargs: Dict[str, Any], reference: Reference, buffers: List[Buffer]) -> bytes:
    """The arguments' pickle; what goes beside it is added to the buffers."""
    is_simple = not kwargs
    is_large = False
    for value in args:
        if type(value) not in SIMPLE:
            is_simple = False
        elif type(value) is bytes and len(value) > _APART_BYTES:
            is_large = True
    if is_large:
        args = tuple(Apart(value) if type(value) is bytes and len(value) > _APART_BYTES else value for value in args)
    if is_simple:
        return pickle.dumps((args, kwargs), 5, buffer_callback=lambda buffer: buffers.append(buffer.raw()))
    return dumps(args, kwargs, reference, lambda buffer: buffers.append(buffer.raw()))


def _modules_of(values: Sequence[Any]) -> Tuple[str, ...]:
    """Modules that a cell imports to have these: a numpy array takes longer for that than for all else."""
    return tuple({type(value).__module__ for value in values} - {"builtins", "__main__"})


class Apart:
    """Bytes that go beside the pickle, uncopied, and are bytes again where it is read."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        return bytes, (pickle.PickleBuffer(self.data),)


def _types(classes: Iterable[type]) -> Dict[str, type]:
    """Classes that results may be of, by their names."""
    found = [] if isinstance(classes, type) else _check.items("result_types", "classes", classes)
    if isinstance(classes, type) or not all(isinstance(one, type) for one in found):
        raise TypeError(f"result_types is a list of classes, not {classes!r:.100}")
    for one in found:
        if not codec.can_build(one):
            raise TypeError(f"result_types: {codec.name_type(one)} is not a dataclass, pydantic model, enum or named tuple")
    return {f"{one.__module__}:{one.__qualname__}": one for one in found}


def _check_tools(tools: Tools) -> Tools:
    if not isinstance(tools, Mapping):
        raise TypeError(f'tools is a dict of functions by their names, {{"search": search}}, not {type(tools).__name__}')
    for name, function in tools.items():
        if not isinstance(name, str):
            raise TypeError(f"tools: a name is a text, not {name!r:.60}")
        if not callable(function):
            raise TypeError(f"tools[{name!r:.60}] is a function, not {type(function).__name__}")
    return tools


def _check_patterns(patterns: Sequence[str]) -> None:
    """Before anything runs: the cell would raise it, as if the code had failed."""
    for pattern in patterns:
        try:
            codec.FileMatcher([pattern])
        except codec.Malformed as error:
            raise ValueError(f"{error}, such as 'out/**'") from None
        except re.error as error:
            raise ValueError(f"collect: {pattern!r:.100} is no pattern: {error}") from None


def _place(files: Mapping[str, Content], buffers: List[Buffer], file_mb: Optional[int]) -> Dict[str, int]:
    """Which file is which buffer. Raises Refused for one that a cell could not write: it would die of it."""
    if not isinstance(files, Mapping):
        raise TypeError(f'files is a dict of contents by their names, {{"data.csv": "a,b"}}, not {type(files).__name__}')
    placed = {}
    for name, content in files.items():
        try:
            codec.check_file_name(name)
        except codec.Malformed:
            raise ValueError(f"files: {name!r:.100} is not a name below the working directory, such as 'data/in.csv'") from None
        placed[name] = len(buffers)
        buffers.append(_content(f"files[{name!r:.60}]", content))
        size = memoryview(buffers[-1]).nbytes
        if file_mb and size > file_mb << 20:
            raise Refused(f"files[{name!r:.60}] has {size} bytes, and the policy's limits.file_mb allows {file_mb} MB")
    return placed


def _content(name: str, content: Content) -> Buffer:
    if isinstance(content, str):
        return content.encode("utf-8")
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name} is text or bytes, not {type(content).__name__}")
    return memoryview(content).cast("B") if isinstance(content, memoryview) else bytes(content)


def _short(name: str) -> str:
    """A name for messages, as long as the wire takes it."""
    data = name.replace("\0", "").encode("utf-8", "replace")
    return data[:_NAME_BYTES].decode("utf-8", "ignore")


def _count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 4096:
        raise ValueError(f"{name} is a number of cells, from 0 (the default) to 4096, not {value!r}")
    return value


def _interpreter(python: Union[None, str, "os.PathLike[str]"]) -> str:
    if python is None:
        return sys.executable or "python3"
    name = _check.path("python", python)
    return os.path.abspath(name) if "/" in name else name


# ---- what a cell asks for -----------------------------------------------------------------------------------------


def read_request(body: Request) -> Tuple[List[Any], Dict[str, Any]]:
    """The arguments of a tool, from a cell. Raises codec.Malformed."""
    if type(body) is dict:  # of JSON, where names are text
        args, kwargs = body.get("args", []), body.get("kwargs", {})
        is_fit = type(kwargs) is dict
    else:
        head, buffers = codec.unpack(body)
        args, kwargs = codec.decode([head.get("args", []), head.get("kwargs", {})], buffers)
        is_fit = type(kwargs) is dict and all(type(name) is str for name in kwargs)
    if not is_fit or type(args) is not list:
        raise codec.Malformed("these are no arguments")
    return args, kwargs


def write_answer(name: str, value: Any, frame_max: int) -> List[Buffer]:
    """What a tool of that name gave, for the cell. Raises what says that it is no plain data, or that it is too large: a supervisor
    ends the session of who sends more than it takes."""
    if codec.is_as_it_is(value):
        pieces = codec.pack({"value": value})
    else:
        tree, buffers = codec.encode(value, name=f"what {name} gave", advice=codec.PLAIN_ADVICE)
        pieces = codec.pack({"value": tree}, buffers)
    size = len(pieces[0]) if len(pieces) == 1 else sum(memoryview(piece).nbytes for piece in pieces)
    if size > frame_max - _HEAD_BYTES:
        raise ValueError(f"what {name} gave has {size} bytes; a supervisor takes at most {frame_max}")
    return pieces


def write_failure(error: BaseException) -> List[Buffer]:
    """What a tool raised, for the cell: a name and a text."""
    said = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return [_json({"type": type(error).__name__[:200], "message": said[:8192]})]
