#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays what the fuzzers of the Python package have found so far: test/fuzz."""

import os
import sys

FUZZ = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fuzz")
sys.path.insert(0, FUZZ)
sys.dont_write_bytecode = True

import drive  # noqa: E402
import values_fuzz  # noqa: E402
import wire_fuzz  # noqa: E402

sys.exit(drive.replay({os.path.join(FUZZ, "corpus", "values"): values_fuzz.target, os.path.join(FUZZ, "corpus", "wire"): wire_fuzz.target}))
