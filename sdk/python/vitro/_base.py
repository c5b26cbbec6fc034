# SPDX-License-Identifier: Apache-2.0
"""What Sandbox and AsyncSandbox have in common."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, NoReturn, Optional, Union

from . import _check
from ._hooks import Hooks
from ._order import SERVER_TOOL, OnLog, OnOutput, Options, Order, Orders, answering
from ._policy import Policy, seconds_of
from ._quick import Route, find_route
from ._served import need_server
from ._session import Call, Session

Path = Union[str, "os.PathLike[str]"]
_ROUTES_MAX = 1024


def is_alone(timeout: Optional[float], policy: Policy, on_output: Optional[OnOutput], on_log: Optional[OnLog], result: bool,
             call_id: str, result_types: Iterable[type], trust_results: bool) -> bool:
    """Whether a function is called with nothing but its arguments: the next call of it may go by a shorter way."""
    return (timeout is None and policy is None and on_output is None and on_log is None and not result
            and not call_id and not result_types and not trust_results and not answering.get())


class Base:
    """See Sandbox."""

    _session: Optional[Session]

    def __init__(self, policy: Policy = None, *, python: Optional[Path] = None, preload: Iterable[str] = (),
                 socket: Optional[Path] = None, ready_min: int = 0, ready_max: int = 0) -> None:
        self._orders = Orders(policy, python, preload, ready_min, ready_max)
        self._socket = None if socket is None else os.path.abspath(_check.path("socket", socket))
        self._is_closed = False
        self._routes: Dict[Callable[..., Any], Route] = {}  # of functions that were called before

    def __repr__(self) -> str:
        return f"<vitro.{type(self).__name__} {'closed' if self._is_closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a vitro.{type(self).__name__} cannot be sent to another process: make one there")

    def cancel(self, call_id: str) -> bool:
        """Ends the calls with that id, which become `cancelled`. Returns whether there were any."""
        found = [call for call in self._under_way() if call.call_id == call_id]
        for call in found:
            self._session.cancel(call)  # type: ignore[union-attr]
        return bool(found)

    def terminate(self) -> int:
        """Ends all calls that are under way, which become `cancelled`. Returns how many there were."""
        found = self._under_way()
        for call in found:
            self._session.cancel(call)  # type: ignore[union-attr]
        return len(found)

    def is_running(self) -> bool:
        """Whether calls are under way."""
        return bool(self._under_way())

    def _hooks(self, order: Order, options: Options) -> Hooks:
        if order.spec is SERVER_TOOL:
            return Hooks(order, options.timeout)
        policy = self._orders._policy if options.policy is None else options.policy
        return Hooks(order, seconds_of(policy, options.timeout))

    def _order_tool(self, name: str, arguments: Optional[Mapping[str, Any]], options: Options) -> Order:
        need_server(self._socket)
        return self._orders.call_tool(name, arguments, options)

    def _remember(self, session: Session, call: Call, func: Callable[..., Any], order: Order) -> None:
        """The next call of the same function goes by a shorter way, where this one went well."""
        route = find_route(session, call.pool, func, order) if call.is_ok else None
        if route is not None:
            if len(self._routes) >= _ROUTES_MAX:
                self._routes.clear()
            self._routes[func] = route

    def _under_way(self) -> List[Call]:
        session = self._session
        if session is None or session.pid != os.getpid():
            return []
        return [call for call in [*session.calls.values()] if not call.is_abandoned]
