# SPDX-License-Identifier: Apache-2.0
"""Tools inside a cell: functions of the host's that the code in it can call.

A call is a question on the call socket; its answer carries the number of the question, so many can be under way
at once, from many threads and event loops. Whoever waits reads the socket, and hands what is not his own to
those it is for: no thread exists for it.
"""

from __future__ import annotations

import asyncio
import builtins
import itertools
import json
import os
from _thread import allocate_lock

from . import codec
from . import talk as talking

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Coroutine, Dict, Iterator, List, Optional, Sequence, Set, Tuple


class ToolError(Exception):
    """A tool failed with an exception that this process has no class for."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(type, message)
        self.type = type
        self.message = message

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


ToolError.__module__ = "vitro"


class Tool:
    """One tool: call it, and it waits for the value."""

    def __init__(self, desk: Desk, name: str) -> None:
        self.__name__ = self.__qualname__ = name
        self._desk = desk

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._desk.ask(self.__name__, args, kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.__name__!r}>"


class Tools:
    """All tools by their exact names: tools["name"]."""

    ToolError = ToolError

    def __init__(self, desk: Desk, names: Sequence[str]) -> None:
        self._tools = {name: Tool(desk, name) for name in names}

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __getattr__(self, name: str) -> Tool:
        try:
            return self.__dict__["_tools"][name]  # type: ignore[no-any-return]
        except KeyError:
            raise AttributeError(f"there is no tool {name!r}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<tools {', '.join(self._tools)}>"


def later(function: Any) -> Any:
    """What is called where an awaitable is wanted (awaited.py)."""
    if type(function) is not Tool:
        return function
    desk, name = function._desk, function.__name__
    return lambda *args, **kwargs: desk.ask_later(name, args, kwargs)


class _Question:
    """One that has no answer yet."""

    __slots__ = ("answer", "wake", "loop", "future")

    def __init__(self) -> None:
        self.answer: Optional[talking.Message] = None
        self.wake: Any = None  # of a thread that waits while another one reads
        self.loop: Any = None
        self.future: Any = None


class Desk:
    """Asks, and sorts what is answered."""

    def __init__(self, talk: talking.Talk, body_max: Optional[int] = None) -> None:
        self._talk = talk
        self._body_max = body_max
        self._numbers = itertools.count(1)
        self._lock = allocate_lock()  # of what follows
        self._is_reading = False
        self._open: Dict[int, _Question] = {}
        self._loops: Set[Any] = set()

    def ask(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        """The tool's value, or its exception."""
        question = _Question()
        number = self._send(question, name, args, kwargs)
        try:
            body = self._hear_at_once(number)
            while body is None and question.answer is None:
                self._wait(question)
        finally:
            with self._lock:
                self._open.pop(number, None)
                if self._open:
                    self._wake_reader()
        if body is not None:
            return _read_value(body)
        assert question.answer is not None
        return _take_value(question.answer)

    def _hear_at_once(self, number: int) -> Optional[bytes]:
        """The answer, if nobody else reads, and the next that comes is nothing else."""
        with self._lock:
            if self._is_reading or number not in self._open:
                return None
            self._is_reading = True
        try:
            return self._talk.hear_answer(number)
        except talking.Gone:
            os._exit(0)  # nobody is there for whom to go on
        finally:
            self._is_reading = False

    def ask_later(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Coroutine[Any, Any, Any]:
        """A coroutine for the tool's value. The question is on its way at once if a loop is running."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._begin(name, args, kwargs)
        return self._finish(name, self._ask_in(loop, name, args, kwargs))

    async def _begin(self, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        return await self._finish(name, self._ask_in(asyncio.get_running_loop(), name, args, kwargs))

    async def _finish(self, name: str, future: Any) -> Any:
        return _take_value(await future)

    def _ask_in(self, loop: Any, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Any:
        question = _Question()
        question.loop, question.future = loop, loop.create_future()
        self._send(question, name, args, kwargs)
        if loop not in self._loops:
            self._loops.add(loop)
            loop.add_reader(self._talk.fileno(), self._on_readable)
        return question.future

    def _send(self, question: _Question, name: str, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> int:
        buffers: List[Any] = []
        where = f"{name}() arguments"
        words = {}
        tree: Any = [*args]
        if not all(map(codec.is_as_it_is, args)):
            tree, _ = codec.encode(tree, (), buffers, where, codec.PLAIN_ADVICE)
        for word, value in kwargs.items():
            words[word], _ = codec.encode(value, (), buffers, f"{name}() argument {word}", codec.PLAIN_ADVICE)
        pieces = codec.pack({"args": tree, "kwargs": words}, buffers)
        size = sum(map(len, pieces))
        if self._body_max is not None and size > self._body_max:
            raise ValueError(f"{where} take {size} bytes, and {self._body_max} are allowed: limits.result_mb")
        number = next(self._numbers)
        with self._lock:
            self._open[number] = question
        self._talk.send(talking.ASK, name.encode("utf-8", "surrogatepass"), pieces, number)
        return number

    # ---- one reads, for all

    def _wait(self, question: _Question) -> None:
        """Reads one message, or sleeps until there is an answer or nobody else reads."""
        with self._lock:
            if question.answer is not None:
                return
            leads, self._is_reading = not self._is_reading, True
            if not leads and question.wake is None:
                question.wake = allocate_lock()
                question.wake.acquire()
        if leads:
            self._read(True)
        else:
            question.wake.acquire()

    def _on_readable(self) -> None:
        """In an event loop. If another thread is reading it will see to the message."""
        with self._lock:
            if self._is_reading:
                return
            self._is_reading = True
        self._read(False)

    def _read(self, wait: bool) -> None:
        messages = []
        try:
            messages.append(self._talk.hear(wait))
            while self._talk.has_ahead:
                messages.append(self._talk.hear())
        except talking.Gone:
            os._exit(0)  # nobody is there for whom to go on
        finally:
            with self._lock:
                self._is_reading = False
                for message in messages:
                    if message is not None and message.kind == talking.ANSWER:
                        self._deliver(message)
                self._wake_reader()

    def _deliver(self, message: talking.Message) -> None:
        question = self._open.pop(message.id, None)
        if question is None:  # who asked has given up
            return
        question.answer = message
        if question.wake is not None and question.wake.locked():
            question.wake.release()
        if question.future is not None:
            try:
                question.loop.call_soon_threadsafe(_set_answer, question.future, message)
            except RuntimeError:  # the loop was closed meanwhile
                pass

    def _wake_reader(self) -> None:
        """If nobody reads, one of those that sleep should. The lock is held."""
        if self._is_reading:
            return
        for question in self._open.values():
            if question.wake is not None and question.wake.locked():
                question.wake.release()
                return


def _set_answer(future: Any, message: talking.Message) -> None:
    if not future.done():
        future.set_result(message)


def _load(name: str) -> Any:
    """A cell may import whatever its answers need."""
    try:
        return __import__(name)
    except ImportError:
        return None


def _take_value(message: talking.Message) -> Any:
    if message.flags & talking.FAILED:
        raise _make_error(bytes(message.body)) from None
    return _read_value(message.body)


def _read_value(body: Any) -> Any:
    if type(body) is bytes:
        plain = codec.read_plain(body)
        if plain is not None:
            return plain.get("value")
        body = bytearray(body)  # so that what is made of buffers can be written to
    head, buffers = codec.unpack(body)
    return codec.decode(head.get("value"), buffers, load=_load)


def _make_error(text: bytes) -> Exception:
    """The built-in exception of that name, if it is one that is made of a text; else ToolError."""
    try:
        told = json.loads(text)
        type_name, message = str(told["type"]), str(told["message"])
    except (ValueError, KeyError, TypeError):  # a host of another kind: a plain sentence
        return ToolError("ToolError", text.decode("utf-8", "replace"))
    kind = getattr(builtins, type_name, None)
    if isinstance(kind, type) and issubclass(kind, Exception) and "Iteration" not in type_name:
        try:
            return kind(message)
        except TypeError:
            pass
    return ToolError(type_name, message)
