# SPDX-License-Identifier: Apache-2.0
"""vitro eval: code as in a notebook. INTERPRETER -I -c TEXT CODE | -, where TEXT is this file: a cell need not read it.

Nothing that the code could stumble over is left behind: it has a __main__ of its own.
"""
import ast
import sys

FILE = "<eval>"
VALUE = "<value>"  # no code can use this name by itself
CO_COROUTINE = 0x80


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
    sys.stdout.flush()
    sys.stderr.write("".join(shown.format()))


def main():
    code = sys.stdin.read() if sys.argv[1] == "-" else sys.argv[1]
    sys.argv, sys.path[:0] = ["-c"], [""]  # as of a script: what lies in the working directory can be imported
    module = type(sys)("__main__")
    module.__builtins__ = sys.modules["builtins"]
    sys.modules["__main__"] = module
    try:
        value = execute(code, vars(module))
        sys.displayhook(value)
    except SystemExit:
        raise
    except BaseException as error:
        complain(error, code)
        sys.exit(1)


main()
