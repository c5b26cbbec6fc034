# SPDX-License-Identifier: Apache-2.0
"""What tests of manifests share: how one is written, and vitro tools and vitro call with it."""

import contextlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import MARK, ROOT, Before, check_equal, folder, isolation, run, vitro_command, write

EXAMPLE = ROOT / "examples" / "tools.json"
RESULT = ["call_id", "ok", "status", "value", "error", "exit_code", "signal", "stdout", "stderr", "dropped", "logs",
          "usage", "isolation", "files", "denials"]


def make(place, tools, policy=None, name="tools.json"):
    """Writes a manifest whose policies this machine can hold."""
    policies = [tool["policy"] for tool in tools if isinstance(tool.get("policy"), dict)]
    manifest = {"tools": tools}
    if policy is not None or isolation().refused:
        manifest["policy"] = policy or {}
        policies.append(manifest["policy"])
    for one in policies:
        if isolation().refused and isinstance(one, dict):
            one.setdefault("require", "best-effort")
    return write(f"{place}/{name}", json.dumps(manifest, indent=1))


def shell(script, name="t", **more):
    return {"name": name, "command": ["sh", "-c", script, "sh"], **more}


def call(*args, **options):
    """vitro call to its end, and a look at what it left."""
    before = Before()
    done = run(vitro_command("call", *args), env={**os.environ, MARK: before.token}, **options)
    before.check_nothing_left(done.pid)
    return done


def tools(*args, **options):
    return run(vitro_command("tools", *args), **options)


@contextlib.contextmanager
def example():
    """The example, in a folder with something to work on."""
    with folder() as place:
        manifest = json.loads(EXAMPLE.read_text(encoding="utf-8"))
        if isolation().refused:
            for policy in [manifest["policy"], *(tool.get("policy") for tool in manifest["tools"])]:
                if isinstance(policy, dict):
                    policy["require"] = "best-effort"
            manifest["tools"][-1]["policy"] = {"extends": "compute", "require": "best-effort"}
        write(f"{place}/tools.json", json.dumps(manifest))
        yield place


def value_of(place, name, **arguments):
    done = call(f"{place}/tools.json", name, json.dumps(arguments), "--json")
    check_equal(done.code, 0, name, done)
    return done.json["value"]
