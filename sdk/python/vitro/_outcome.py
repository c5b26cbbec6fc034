# SPDX-License-Identifier: Apache-2.0
"""What becomes of a call that is over: a value, a Result, or an exception."""

from __future__ import annotations

import dataclasses
import datetime  # noqa: F401  these three for the codec, which imports nothing that a cell asks for
import decimal  # noqa: F401
import pickle
import re
import uuid  # noqa: F401
from typing import Any, Dict, Optional, Tuple, Union

from . import _codec as codec
from ._asks import take_raised
from ._command import printed_value
from ._message import PARTS_MAX, read_json
from ._order import Buffer, Order
from ._result import STATUSES, Error, Result, Shown, Usage, last_words
from ._session import Call, Session
from ._wire import Head, Parted
from .errors import Lost, Refused, VitroError, error_of

Value = Tuple[Any, Dict[str, bytes]]  # and files
NOT_BEGUN = (VitroError, TypeError, ValueError, OSError)  # what is raised where a call is not begun


def begin_learning(session: Session, order: Order, call: Call) -> None:
    """Where a function's module could be imported in a cell, its pool may have it imported before the next call."""
    if order.modules and call.is_ok:
        known = call.pool.known
        for module in order.modules:
            if module not in known and 0 < len(module.encode()) < 256:
                session.learn(call.pool, module)


def conclude(order: Order, call: Call) -> Any:
    """What the caller gets."""
    head, kind = call.head, order.spec.kind
    raised = take_raised(order.raised, head) if order.raised else None
    if head["status"] == "ok" and (kind == "python" or kind == "tool" and call.value_size):
        try:
            value, files = read_value(call.body, call.value_size, order)
        except codec.Malformed as error:
            said = str(error) if isinstance(error, codec.NotImported) else f"its value is malformed: {error}"
            result = build(call, {**head, "status": "no_result", "error": said})
        else:
            if not order.wants_result:
                return value
            result = build(call, head)
            result.value, result.files = value, files
    else:
        result = command_result(build(call, head)) if kind == "tool" else build(call, head)
    if order.wants_result:
        return result
    if not result.ok:
        raise error_of(result, raised)
    return result if kind == "command" else result.value


def read_value(body: Union[Buffer, Parted], size: int, order: Order) -> Value:
    """The value of a call and the files that it collected, from a cell: all of it may be anything. Raises
    codec.Malformed."""
    if order.spec.kind == "tool":
        return _read_json(body, size), {}
    head, buffers = body.unpack() if isinstance(body, Parted) else codec.unpack(body[:size])
    files = codec.read_files(head.get("files"), buffers, order.collect)
    if order.trust and "pickle" in head:
        data, first, count = buffers.take(head["pickle"]), head["pickle"] + 1, head.get("oob", 0)
        try:
            # Only here, and only by the caller's explicit word (trust_results).
            return pickle.loads(data, buffers=buffers[first:first + count]), files
        except Exception as error:
            raise codec.Malformed(f"its pickle cannot be read: {type(error).__name__}: {error}") from error
    if order.tool == "eval" and "shown" in head:
        return _read_shown(head["shown"]), files
    return codec.decode(head.get("value"), buffers, order.types), files


def _read_shown(shown: Any) -> Shown:
    if type(shown) is not dict or shown.keys() != {"type", "text"} or any(type(text) is not str for text in shown.values()):
        raise codec.Malformed("what it shows is no text with a type")
    return Shown(**shown)


def _read_json(body: Union[Buffer, Parted], size: int) -> Any:
    """The value of a function that is a server's tool."""
    if isinstance(body, Parted):
        raise codec.Malformed("it is no JSON")
    try:
        return read_json(bytes(body[:size]), PARTS_MAX)[0]
    except RecursionError:
        raise codec.Malformed(f"it nests deeper than {codec.NESTING_MAX}") from None
    except ValueError as error:
        raise codec.Malformed(f"it is no JSON: {error}") from None


def build(call: Call, head: Head) -> Result:
    """The result of a call, but for its value."""
    status, middle = head["status"], head.get("stdout", 0)
    printed = call.body.tail.view if isinstance(call.body, Parted) else call.body[head.get("value", 0):]
    error: Optional[Error] = None
    if status != "ok":
        error = Error(head.get("error_type", STATUSES[status]), head.get("error", "no reason was given"), call.traceback)
    code, peak, processes = head.get("exit_code", -1), head.get("peak_kb", -1), head.get("processes", -1)
    dropped = {"stdout": head.get("dropped_stdout", 0), "stderr": head.get("dropped_stderr", 0)}
    if call.dropped_logs:
        dropped["logs"] = call.dropped_logs
    return Result(
        call_id=call.call_id, status=status, error=error, exit_code=None if code < 0 else code,
        signal=head.get("signal") or None, stdout_bytes=bytes(printed[:middle]), stderr_bytes=bytes(printed[middle:]),
        dropped=dropped, logs=[*call.logs],
        usage=Usage(round(head.get("wall_ns", 0) / 1e6, 1), round(head.get("cpu_ns", 0) / 1e6, 1),
                    None if peak < 0 else peak, None if processes < 0 else processes),
        isolation=call.pool.isolation if head.get("cell") else None, unreaped=head.get("unreaped", False),
        protected=head.get("protected"))


def command_result(result: Result) -> Result:
    """The result of a command as that of a tool: its value is what it printed, as JSON if it is that; its error
    has the end of what it said of it."""
    if result.status == "ok" and result.dropped.get("stdout"):
        error = Error("ResultLimit", "the command printed more than limits.stdout_kb, so its value is cut: raise that in the tool's policy")
        return dataclasses.replace(result, status="result_limit", error=error)
    if result.status == "ok":
        return dataclasses.replace(result, value=printed_value(result.stdout_bytes))
    if result.status != "error" or not result.exit_code or result.error is None:
        return result
    words = last_words(result.stderr_bytes)
    if not words:
        return result
    return dataclasses.replace(result, error=result.error._replace(message=f"{result.error.message}: {words}"))


def not_begun(call_id: str, error: Exception) -> Result:
    """The result of a call that could not be begun, for callers who want no exceptions. A wrong option is a mistake in the
    program, and raised: nobody may look at a result for it."""
    if type(error) is TypeError:
        raise error
    if isinstance(error, VitroError) and error.result is not None:
        return error.result
    status = "lost" if isinstance(error, Lost) else "refused"
    return Result(call_id=call_id, status=status, error=Error(type(error).__name__, str(error)))


def refused(call_id: str, message: str) -> Refused:
    """The exception of a call whose pool there is not. The supervisor speaks of flags, which a program has none of."""
    message = re.sub(r"^(?:--policy: |(?=there is no file '))", "policy: ", message)
    message = re.sub(r"--set ([\w.]+)=([\w-]+) would", r'"\1": "\2" in the policy would', message)
    return Refused(message, Result(call_id=call_id, status="refused", error=Error("Refused", message)))
