# SPDX-License-Identifier: Apache-2.0

import datetime
from dataclasses import dataclass, field
from typing import Any, Dict, Optional


@dataclass(frozen=True)
class ToolDef:
    name: str
    description: str
    input_schema: Dict[str, Any] = field(default_factory=dict)


@dataclass
class ToolEvent:
    kind: str
    tool: str


@dataclass
class ToolResult:
    call_id: str
    ok: bool
    output: Any = None
    error: Optional[str] = None
    denied: bool = False
    reason: Optional[str] = None
    duration_ms: Optional[float] = None
    started_at: Any = field(default_factory=lambda: datetime.datetime.now(datetime.timezone.utc))

    @classmethod
    def success(cls, *, call_id, output):
        return cls(call_id, True, output)

    @classmethod
    def error_(cls, *, call_id, message):
        return cls(call_id, False, error=message)
