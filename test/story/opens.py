# SPDX-License-Identifier: Apache-2.0
"""A stand-in for what opens a folder: opens.py PROGRAM, in the folder. It finds the program's files as the real one does,
and runs what the real one would run by itself, without a question, in a folder that its user trusts."""

import json
import os
import pathlib
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as tree

HERE = pathlib.Path.cwd()


def run(command, args=()):
    subprocess.run([command, *args] if args else ["sh", "-c", command], check=False, timeout=10)


def direnv():
    """Sources the .envrc of this folder, or of the nearest one around it."""
    for folder in (HERE, *HERE.parents):
        if (folder / ".envrc").is_file():
            subprocess.run(["bash", "-c", 'source "$0"', folder / ".envrc"], check=False, timeout=10, cwd=folder)
            return


def vscode():
    """Starts the tasks that say runOn: folderOpen, and git where the settings say it is."""
    for task in json.loads(pathlib.Path(".vscode/tasks.json").read_text())["tasks"]:
        if task.get("runOptions", {}).get("runOn") == "folderOpen":
            run(task["command"], task.get("args", ()))


def claude():
    """Runs the hooks of the start of a session."""
    for entry in json.loads(pathlib.Path(".claude/settings.json").read_text())["hooks"]["SessionStart"]:
        for hook in entry["hooks"]:
            run(hook["command"])


def servers(path):
    """Starts the servers of a list of MCP servers."""
    for server in json.loads(pathlib.Path(path).read_text())["mcpServers"].values():
        run(server["command"], server.get("args", ()))


def codex():
    for server in tomllib.loads(pathlib.Path(".codex/config.toml").read_text())["mcp_servers"].values():
        run(server["command"], server.get("args", ()))


def devcontainer():
    """initializeCommand runs on the host."""
    run(json.loads(pathlib.Path(".devcontainer/devcontainer.json").read_text())["initializeCommand"])


def idea():
    """Runs the configurations that are for the start of the project."""
    for path in pathlib.Path(".idea/runConfigurations").glob("*.xml"):
        for option in tree.parse(path).iter("option"):
            if option.get("name") == "SCRIPT_TEXT":
                run(option.get("value"))


if __name__ == "__main__":
    {"direnv": direnv, "vscode": vscode, "claude": claude, "mcp": lambda: servers(".mcp.json"), "codex": codex,
     "cursor": lambda: servers(".cursor/mcp.json"), "devcontainer": devcontainer, "idea": idea}[sys.argv[1]]()
