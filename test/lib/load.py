# SPDX-License-Identifier: Apache-2.0
"""Imports a program whose file has no ending."""

import importlib.machinery
import importlib.util
import sys


def load(name, path):
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module
