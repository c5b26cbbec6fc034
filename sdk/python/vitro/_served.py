# SPDX-License-Identifier: Apache-2.0
"""Tools that a server offers (vitro serve --tools)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional

from ._session import Reply
from .errors import Lost, Refused

_CallTool = Callable[[str, Dict[str, Any]], Any]


class ServerTool:
    """A tool of a server. Called with keyword arguments it has the server call it, so that `tools` of eval() takes it.

    name, description, input_schema
                what the server says of it; `definition` has the three, for a model
    """

    def __init__(self, definition: Dict[str, Any], call_tool: _CallTool) -> None:
        self.name: str = definition["name"]
        self.description: str = definition.get("description", "")
        self.input_schema: Dict[str, Any] = definition.get("input_schema", {})
        self._call_tool = call_tool

    @property
    def definition(self) -> Dict[str, Any]:
        """What a model is told: name, description and input_schema."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def __call__(self, /, *unnamed: Any, **arguments: Any) -> Any:
        if unnamed:
            raise TypeError(f"{self.name}: its arguments go by their names")
        return self._call_tool(self.name, arguments)

    def __repr__(self) -> str:
        return f"<vitro.ServerTool {self.name!r}>"


def need_server(socket: Optional[str]) -> None:
    """Raises Refused where the sandbox has a supervisor of its own."""
    if socket is None:
        raise Refused("only a server has tools of its own: give its socket, as in vitro.Sandbox(socket=PATH)")


def read_tools(reply: Reply, lost: Optional[str], call_tool: _CallTool) -> Dict[str, ServerTool]:
    """The tools of a server's answer, by their names. Raises Refused where it has none."""
    if reply.head is None:
        raise Lost(lost or "the supervisor is gone")
    if not reply.head["ok"]:
        raise Refused(reply.head.get("error", "no reason was given"))
    return {one["name"]: ServerTool(one, call_tool) for one in reply.listed}
