# SPDX-License-Identifier: Apache-2.0

from dataclasses import dataclass, field
from typing import Optional, Set


@dataclass
class SandboxConfig:
    mode: str = "off"
    sandboxed_tools: Set[str] = field(default_factory=set)
    sandbox_timeout: float = 30.0
    sandbox_memory_limit_mb: int = 512
    sandbox_network_access: bool = False
    working_directory: Optional[str] = None
    backend_type: Optional[str] = None


class SandboxRouter:
    """Has a tool run here or by the backend, as the config says."""

    def __init__(self, config, backend=None):
        self.config, self.backend = config, backend

    def execute(self, tool_name, func, arguments):
        if self.config.mode != "strict" or tool_name not in self.config.sandboxed_tools:
            return func(**arguments)
        if self.backend is None or not self.backend.is_available():
            raise RuntimeError(f"{tool_name} is for a sandbox, and there is none")
        return self.backend.execute(tool_name, func, arguments)
