# SPDX-License-Identifier: Apache-2.0
"""Which calls in a piece of code want an awaitable.

A tool is a plain name in the code of a model, which writes `x = search("a")` as well as `await search("a")`, and
`await gather(*[search(q) for q in queries])`. Only the code around a call says which of them it wants, so it is
decided on the syntax tree: a call whose value is awaited, by itself, through a name, a list, or one of asyncio's
functions, is rewritten from `f(x)` to `later(f)(x)`. later() is the identity for all that is no tool, so to mark
one call too many does no harm; nothing that the code names itself is touched.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

    Scope = Optional[ast.AST]
    Key = Tuple[Scope, str]  # where a name is bound, and the name; attributes have a "." in front, and no scope

# Functions that take awaitables: in all of their arguments, or the first.
_OF_ALL = {"gather"}
_OF_FIRST = {"wait", "wait_for", "shield", "as_completed", "create_task", "ensure_future", "run", "run_until_complete",
             "run_coroutine_threadsafe", "timeout", "staggered_race"}
_OF_KEYWORD = {"coro", "fut", "fs", "aws", "future", "coro_or_future"}
# Functions and methods whose value has the items of their arguments, or of their object.
_PASS_ON = {"list", "tuple", "set", "dict", "map", "filter", "zip", "enumerate", "iter", "next", "reversed", "sorted",
            "chain", "from_iterable", "partial", "starmap", "deque", "islice"}
_OF_OBJECT = {"values", "items", "copy", "pop", "popleft", "popitem", "get", "get_nowait", "setdefault"}
_ADD_ITEM = {"append", "appendleft", "add", "insert", "extend", "update", "put_nowait", "setdefault"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def mark(tree: ast.Module, later: str) -> None:
    """Rewrites the calls in `tree` that want an awaitable; `later` is the name of the function around theirs."""
    uses = _Uses(tree)
    _Wants(uses).rewrite(later)


def _name_of(function: ast.expr) -> str:
    """The last name of what is called."""
    return function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""


class _Uses(ast.NodeVisitor):
    """Reads the code once: who binds which name to what, who calls whom."""

    def __init__(self, tree: ast.Module) -> None:
        self.scope: Scope = None
        self.outer: Dict[Scope, Scope] = {}
        self.bound: Set[Key] = set()
        self.scope_of: Dict[ast.AST, Scope] = {}
        self.sources: Dict[Key, List[ast.expr]] = {}  # what a name, or its items, may be
        self.functions: Dict[str, List[Any]] = {}
        self.returns: Dict[ast.AST, List[ast.expr]] = {}
        self.calls: Dict[str, List[ast.Call]] = {}
        self.roots: List[ast.expr] = []  # what is awaited
        self.pending: List[Tuple[Scope, ast.expr, ast.expr]] = []
        self.visit(tree)
        for scope, target, value in self.pending:  # when all names are known
            key = self.find_key(target, scope)
            if key:
                self.sources.setdefault(key, []).append(value)

    def find_key(self, target: ast.expr, scope: Scope) -> Optional[Key]:
        while isinstance(target, (ast.Subscript, ast.Starred)):
            target = target.value
        if isinstance(target, ast.Attribute):
            return None, "." + target.attr
        if not isinstance(target, ast.Name):
            return None
        while scope is not None and (scope, target.id) not in self.bound:
            scope = self.outer[scope]
        return scope, target.id

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            values: List[ast.expr] = [value] * len(target.elts)
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                values = value.elts
            for part, its in zip(target.elts, values):
                self.bind(part, its)
            return
        if isinstance(target, ast.Name):
            self.bound.add((self.scope, target.id))
        self.pending.append((self.scope, target, value))

    def visit(self, node: ast.AST) -> None:
        self.scope_of[node] = self.scope
        super().visit(node)

    def visit_function(self, node: Any) -> None:
        name = getattr(node, "name", None)
        if name:
            self.functions.setdefault(name, []).append(node)
            self.bound.add((self.scope, name))
        self.outer[node], self.scope = self.scope, node
        for argument in [*getattr(node.args, "posonlyargs", ()), *node.args.args, *node.args.kwonlyargs,
                         node.args.vararg, node.args.kwarg]:
            if argument:
                self.bound.add((node, argument.arg))
        if isinstance(node, ast.Lambda):
            self.returns[node] = [node.body]
        self.generic_visit(node)
        self.scope = self.outer[node]

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_function

    def visit_Return(self, node: ast.Return) -> None:
        if node.value and self.scope:
            self.returns.setdefault(self.scope, []).append(node.value)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.bind(target, node.value)
            if isinstance(target, ast.Name) and isinstance(node.value, ast.Lambda):
                self.functions.setdefault(target.id, []).append(node.value)
        self.generic_visit(node)

    def visit_bound(self, node: Any) -> None:
        if node.value:
            self.bind(node.target, node.value)
        self.generic_visit(node)

    visit_AnnAssign = visit_AugAssign = visit_NamedExpr = visit_bound

    def visit_loop(self, node: Any) -> None:
        self.bind(node.target, node.iter)
        self.generic_visit(node)

    visit_For = visit_AsyncFor = visit_comprehension = visit_loop

    def visit_Await(self, node: ast.Await) -> None:
        self.roots.append(node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _name_of(node.func)
        self.calls.setdefault(name, []).append(node)
        if name in _OF_ALL:
            self.roots.extend(node.args)
        elif name in _OF_FIRST:
            self.roots.extend(node.args[:1])
        if name in _OF_ALL or name in _OF_FIRST:
            self.roots.extend(word.value for word in node.keywords if word.arg in _OF_KEYWORD)
        if name in _ADD_ITEM and isinstance(node.func, ast.Attribute):
            for argument in node.args:
                self.pending.append((self.scope, node.func.value, argument))
        self.generic_visit(node)


class _Wants:
    """Follows what is awaited back to the calls that it comes from."""

    def __init__(self, uses: _Uses) -> None:
        self.uses = uses
        self.calls: List[ast.Call] = []
        self.names: List[Tuple[Any, ast.Name]] = []  # functions that map() and its like will call
        self.seen: Set[Any] = set()
        self.todo: List[ast.expr] = list(uses.roots)
        while self.todo:
            node = self.todo.pop()
            if node not in self.seen:
                self.seen.add(node)
                self.todo.extend(self.follow(node))

    def follow(self, node: Any) -> Iterator[Any]:
        if isinstance(node, ast.Call):
            yield from self.follow_call(node)
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield from self.follow_name(node)
        elif isinstance(node, (ast.Starred, ast.Subscript, ast.NamedExpr, ast.DictComp)):
            yield node.value
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            yield from node.elts
        elif isinstance(node, ast.Dict):
            yield from node.values
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
            yield node.elt
        elif isinstance(node, ast.IfExp):
            yield from (node.body, node.orelse)
        elif isinstance(node, ast.BoolOp):
            yield from node.values
        elif isinstance(node, ast.BinOp):
            yield from (node.left, node.right)

    def follow_call(self, node: ast.Call) -> Iterator[Any]:
        self.calls.append(node)
        name = _name_of(node.func)
        if name in _PASS_ON:
            yield from node.args
            if name in ("map", "partial", "starmap") and node.args:
                first = node.args[0]
                if isinstance(first, ast.Name):
                    self.names.append((node, first))
                yield from self.uses.returns.get(first, ())
        elif name in _OF_OBJECT and isinstance(node.func, ast.Attribute):
            yield node.func.value
        for function in self.uses.functions.get(name, ()):
            if not isinstance(function, ast.AsyncFunctionDef):
                yield from self.uses.returns.get(function, ())

    def follow_name(self, node: Any) -> Iterator[Any]:
        key = self.uses.find_key(node, self.uses.scope_of[node])
        if key is None or key in self.seen:
            return
        self.seen.add(key)
        yield from self.uses.sources.get(key, ())
        scope, name = key
        if isinstance(scope, _FUNCTIONS):
            yield from self.follow_parameter(scope, name)

    def follow_parameter(self, function: Any, name: str) -> Iterator[Any]:
        """What callers give for a parameter that its function awaits."""
        names = [argument.arg for argument in [*getattr(function.args, "posonlyargs", ()), *function.args.args]]
        many = function.args.vararg
        for call in self.uses.calls.get(getattr(function, "name", ""), ()):
            yield from (word.value for word in call.keywords if word.arg == name)
            skipped = 1 if names[:1] == ["self"] and isinstance(call.func, ast.Attribute) else 0
            if name in names:
                at = names.index(name) - skipped
                yield from call.args[at:at + 1] if at >= 0 else ()
            elif many and many.arg == name:
                yield from call.args[len(names) - skipped:]

    def rewrite(self, later: str) -> None:
        def wrap(function: ast.expr) -> ast.expr:
            call = ast.Call(func=ast.Name(id=later, ctx=ast.Load()), args=[function], keywords=[])
            return ast.fix_missing_locations(ast.copy_location(call, function))

        for outer, name in self.names:
            outer.args[0] = wrap(name)
        for call in self.calls:
            if isinstance(call.func, (ast.Name, ast.Subscript)):
                call.func = wrap(call.func)
