# SPDX-License-Identifier: Apache-2.0
"""vitro eval: code as in a notebook. INTERPRETER -I -c TEXT CODE | - [FD], where TEXT is this file: a cell need not read it.
FD is a pipe on which it tells the code's value, or what it raised, as JSON.

Nothing that the code could stumble over is left behind: it has a __main__ of its own.
"""
import ast
import os
import sys

FILE = "<eval>"
VALUE = "<value>"  # no code can use this name by itself
CO_COROUTINE = 0x80
DEPTH_MAX = 200
TEXT_MAX = 32 << 10


def compile_cell(code):
    """If the last statement is an expression, its value is kept; `await` works at top level."""
    flags = getattr(ast, "PyCF_ALLOW_TOP_LEVEL_AWAIT", 0)
    tree = compile(code, FILE, "exec", ast.PyCF_ONLY_AST | flags, True)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name(id=VALUE, ctx=ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign(targets=[target], value=last.value), last)
    return compile(tree, FILE, "exec", flags, True)


def execute(code, space):
    """The code's value, or None."""
    compiled = compile_cell(code)
    if compiled.co_flags & CO_COROUTINE:
        import asyncio
        asyncio.run(eval(compiled, space))
    else:
        exec(compiled, space)
    return space.pop(VALUE, None)


class Report:
    """Where it is told what became of the code; nowhere, if there is no descriptor."""

    def __init__(self, fd):
        self.fd, self.pid = fd, os.getpid()
        if fd is not None:
            os.set_inheritable(fd, False)
            self.pipe = self.look()

    def look(self):
        found = os.fstat(self.fd)
        return found.st_dev, found.st_ino

    def tell(self, **what):
        if self.fd is None or self.pid != os.getpid():  # the code forked, and its child came to its end too
            return
        import json
        text = json.dumps(what, separators=(",", ":")).encode()
        try:
            if self.look() != self.pipe:  # the code closed it, and opened something of its own
                return
            while text:
                text = text[os.write(self.fd, text):]
        except OSError:
            pass


def to_json(value, depth=0):
    """The value as JSON has it; of parts that it has no word for, {"$repr": their text}."""
    kind = type(value)
    if kind in (bool, int, type(None)) or kind is float and value - value == 0 or is_text(value):
        return value
    if depth < DEPTH_MAX:
        if kind in (list, tuple):
            return [to_json(item, depth + 1) for item in value]
        if kind is dict and all(map(is_text, value)):
            return {key: to_json(item, depth + 1) for key, item in value.items()}
    return {"$repr": cut(repr(value))}


def is_text(value):
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def cut(text):
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."


def say(error):
    try:
        return cut(str(error))
    except BaseException:  # of the code's own class
        return "(an exception that cannot be shown)"


def complain(error, code):
    """The traceback as Python prints it, from the code's first frame on."""
    import linecache
    import traceback
    # Where the last line has no end, the marks below it are off by one.
    linecache.cache[FILE] = (len(code), None, (code + "\n").splitlines(True), FILE)
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != FILE:
        trace = trace.tb_next
    shown = traceback.TracebackException(type(error), error, trace)
    text = "".join(shown.format())
    sys.stdout.flush()
    sys.stderr.write(text)
    return text


def main():
    report = Report(int(sys.argv[2]) if len(sys.argv) > 2 else None)
    code = sys.stdin.read() if sys.argv[1] == "-" else sys.argv[1]
    sys.stdout.reconfigure(line_buffering=True)  # what was printed is there, however the code ends
    sys.argv, sys.path[:0] = ["-c"], [""]  # as of a script: what lies in the working directory can be imported
    module = type(sys)("__main__")
    module.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = module
    try:
        value = execute(code, vars(module))
        sys.displayhook(value)
        report.tell(value=to_json(value))
    except SystemExit:
        raise
    except BaseException as error:
        text = complain(error, code)
        report.tell(error={"type": cut(type(error).__name__), "message": say(error), "traceback": cut(text)})
        sys.exit(1)


main()
