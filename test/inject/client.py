# SPDX-License-Identifier: Apache-2.0
"""Runs the probe in a cell of a Python pool: client.py PROBE [FOLDER], which calls may write. Prints what came of it as JSON."""

import json
import sys

import vitro

# The mark is a descriptor that nobody has: MARK of vitro-inject.
CODE = """
import os

def mark():
    try:
        os.close(1986622064)
    except OSError:
        pass

mark()
import subprocess
print(subprocess.run([%r], capture_output=True, text=True).stdout, flush=True)
mark()
""" % sys.argv[1]

try:
    with vitro.Sandbox(policy={"files": {"read": [sys.argv[1]], "write": sys.argv[2:]}}, ready_min=1, ready_max=1) as sandbox:
        result = sandbox.eval(CODE, result=True)
    told = {"status": result.status, "stdout": result.stdout, "isolation": result.isolation,
            "error": result.error and {"message": result.error.message}}
except (vitro.VitroError, OSError) as error:
    told = {"status": "refused", "stdout": "", "isolation": None, "error": {"message": str(error)}}
print(json.dumps(told))
