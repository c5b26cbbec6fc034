# SPDX-License-Identifier: Apache-2.0
"""A step of an agent's, in a cell: code that finds what steps before it left, though these ran in cells that are gone.

The text of this file is sent to the cell, which has no package of the caller's. At a step's end it makes bytes of what the
code's globals are; the next step's cell makes globals of these bytes again. The host carries them, and never looks into
them: only code of the same agent's ever does. What cannot be carried is told by its name.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import linecache
import pickle
import sys
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Dict, List, Mapping, Optional, Tuple

RUNTIME = "_vitro_runtime"
FINAL = "final_answer"
VALUE = "<value>"
CO_COROUTINE = 0x80


class Final(BaseException):
    """The code has its answer. No Exception, so that code which catches these does not stop it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def run(space: Dict[str, Any], order: Mapping[str, Any]) -> Dict[str, Any]:
    """Runs code with the globals `space`, which has the tools in it. What becomes of it, as plain data."""
    own, filename = set(space), f"<step {order['number']}>"
    state, lost = begin(space, order["state"])
    for name, data in order["variables"].items():
        try:
            space[name] = pickle.loads(data)
        except Exception as error:
            lost.append(f"{name}, which the cell cannot make ({type(error).__name__}: {error})")
    if FINAL in order["tools"]:
        space[FINAL] = finish_with(space[FINAL])
    given = {name: space[name] for name in own if name in space}
    told: Dict[str, Any] = {"output": None, "final": False, "error": None}
    try:
        told["output"] = execute(space, order["code"], filename, bool(order["tools"]))
    except Final as final:
        told.update(output=final.value, final=True)
    except BaseException as error:
        told["error"] = explain(error, filename)
    space.pop(VALUE, None)
    definitions = {**state.get("definitions", {}), **find_definitions(order["code"], filename)}
    told["state"], more = save(space, given, definitions)
    told["lost"] = sorted({*lost, *more} - {*order["lost"]})
    told["output"] = make_plain(told["output"])
    return told


def finish_with(answer: Any) -> Any:
    """final_answer() as code calls it: it ends the step."""
    def final_answer(*args: Any, **kwargs: Any) -> Any:
        raise Final(answer(*args, **kwargs))
    return final_answer


def execute(space: Dict[str, Any], code: str, filename: str, has_tools: bool) -> Any:
    compiled = sys.modules[f"{RUNTIME}.harness"].compile_cell(code, filename, has_tools)
    if compiled.co_flags & CO_COROUTINE:
        asyncio.run(eval(compiled, space))
    else:
        exec(compiled, space)
    return space.pop(VALUE, None)


def explain(error: BaseException, filename: str) -> Dict[str, str]:
    """The exception, with the line of the code that it came from."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != filename:
        trace = trace.tb_next
    try:
        text = "".join(traceback.TracebackException(type(error), error, trace).format())
        message = str(error)
    except Exception:  # of the code's own class
        text = message = "(an exception that cannot be shown)"
    line = linecache.getline(filename, trace.tb_lineno).strip() if trace else ""
    return {"type": type(error).__name__, "message": message, "line": line, "traceback": text}


def make_plain(value: Any) -> Any:
    """A value as it can leave a cell: what is no plain data is its text."""
    try:
        sys.modules[f"{RUNTIME}.codec"].encode(value)
        return value
    except Exception:
        return str(value)


# ---- from one step to the next -----------------------------------------------------------------------------------


def find_definitions(code: str, filename: str) -> Dict[str, Tuple[str, str]]:
    """name → source and its place, of functions and classes that code defines at its top level."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError):  # an await at top level counts for one in none of them
        body = []
    found: Dict[str, Tuple[str, str]] = {}
    lines = code.splitlines()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            # As many lines before it as there were: then those of tracebacks are right.
            found[node.name] = "\n" * (first - 1) + "\n".join(lines[first - 1:node.end_lineno]), filename
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found[target.id] = ast.get_source_segment(code, node) or "", filename
    return found


def save(space: Dict[str, Any], given: Mapping[str, Any], definitions: Dict[str, Tuple[str, str]]) -> Tuple[bytes, List[str]]:
    """What is there for the next step, and the names of what cannot be."""
    modules: Dict[str, str] = {}
    values: Dict[str, Any] = {}
    kept: Dict[str, Tuple[str, str]] = {}
    for name, value in space.items():
        if name.startswith("__") or name in given and given[name] is value:
            continue
        if isinstance(value, type(sys)):
            modules[name] = value.__name__
        elif name in definitions and callable(value):
            kept[name] = definitions[name]
        else:
            values[name] = value
    plain, late, lost = split(values)
    ordered = {name: kept[name] for name in definitions if name in kept}
    state = {"modules": modules, "plain": plain, "definitions": ordered, "late": late}
    return pickle.dumps(state, 5), lost


def split(values: Dict[str, Any]) -> Tuple[bytes, bytes, List[str]]:
    """Pickles of what needs no definition of the code's, and of what does; and the names of what has none."""
    data = try_dumps(values)
    if data is not None and b"__main__" not in data:
        return data, pickle.dumps({}, 5), []
    plain: Dict[str, Any] = {}
    late: Dict[str, Any] = {}
    lost = []
    for name, value in values.items():
        data = try_dumps(value)
        if data is None:
            lost.append(name)
        else:
            (late if b"__main__" in data else plain)[name] = value
    return pickle.dumps(plain, 5), pickle.dumps(late, 5), lost


def try_dumps(value: Any) -> Optional[bytes]:
    try:
        return pickle.dumps(value, 5)
    except Exception:
        return None


def begin(space: Dict[str, Any], data: bytes) -> Tuple[Dict[str, Any], List[str]]:
    """What steps left, as globals, and the names of what could not be. Where none of it can be read, a step begins afresh:
    else no step would ever come to its own code again."""
    try:
        state = pickle.loads(data) if data else {}
        return {"definitions": dict(state.get("definitions", {}))}, restore(space, state)
    except BaseException as error:
        return {}, [f"all that the steps before it left, which cannot be read ({type(error).__name__}: {error})"]


def restore(space: Dict[str, Any], state: Mapping[str, Any]) -> List[str]:
    """Makes globals of what a step left. The names of those that could not be."""
    lost = []
    for name, module in state.get("modules", {}).items():
        try:
            space[name] = importlib.import_module(module)
        except Exception:
            lost.append(name)
    if "plain" in state:
        try:
            space.update(pickle.loads(state["plain"]))
        except Exception as error:
            lost.append(f"values that could not be made again ({type(error).__name__}: {error})")
    for name, (source, filename) in state.get("definitions", {}).items():
        # For tracebacks. Without a time of change it is never dropped for a file of that name.
        known = linecache.cache.get(filename)
        old = known[2] if known and len(known) == 4 else []
        new = source.splitlines(True)
        lines = [a if a.strip() else b for a, b in zip(new + ["\n"] * len(old), old + ["\n"] * len(new))]
        linecache.cache[filename] = (0, None, lines, filename)
        try:
            exec(compile(source, filename, "exec"), space)
        except Exception:
            lost.append(name)
    if "late" in state:
        try:
            space.update(pickle.loads(state["late"]))
        except Exception as error:
            lost.append(f"values of classes that could not be made again ({error})")
    return lost
