# SPDX-License-Identifier: Apache-2.0
"""What tests of the Python package share: a sandbox, what it raises, what it logs."""

import functools
import logging

from vitrotest import check_equal

import vitro

BEST = {"require": "best-effort"}


@functools.lru_cache(maxsize=None)
def box():
    """One sandbox for most tests, under a policy that works wherever the tests do."""
    return vitro.Sandbox(BEST)


def raises(kind, function, *args, **kwargs):
    """What the function raises, which is of that very kind."""
    try:
        value = function(*args, **kwargs)
    except kind as error:
        check_equal(type(error), kind, "what is raised")
        return error
    raise AssertionError(f"nothing was raised, and the value is {value!r}")


class Heard(logging.Handler):
    """Records of a logger, which is vitro's own by default, for a while."""

    def __init__(self, logger=logging.getLogger("vitro")):
        super().__init__()
        self.logger = logger

    def __enter__(self):
        self.records = []
        self.emit = self.records.append
        self.logger.addHandler(self)
        return self

    def __exit__(self, *_):
        self.logger.removeHandler(self)
