# SPDX-License-Identifier: Apache-2.0
"""Decorated functions, as a program's module has them."""

import asyncio
import dataclasses
import os
import sys
import time

import vitro

BEST = {"require": "best-effort"}


class Odd(Exception):
    pass


@dataclasses.dataclass
class Point:
    x: int


@vitro.isolated(policy=BEST)
def add(a, b=1, *, timeout=0):
    """Adds."""
    return a + b + timeout


@vitro.isolated(policy=BEST, timeout=0.5)
def spin():
    while True:
        pass


@vitro.isolated(policy=BEST, memory=64)
def fill():
    return len(bytearray(200 << 20))


@vitro.isolated(policy=BEST)
def where():
    return "_vitro_runtime" in sys.modules, os.getpid()


@vitro.isolated(policy=BEST)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@vitro.isolated(policy=BEST)
def outer(n):
    return [add(n, 1), where()[0], is_wrapped()]


def is_wrapped():
    return hasattr(add, "__wrapped__")


@vitro.isolated(policy=BEST, error_types=[Odd])
def fail(kind):
    raise {"value": ValueError, "odd": Odd, "key": KeyError}[kind](kind)


@vitro.isolated(policy=BEST)
async def later(n, seconds=0):
    await asyncio.sleep(seconds)
    return n * 2, "_vitro_runtime" in sys.modules


@vitro.isolated(policy=BEST)
async def later_fails():
    raise LookupError("no")


@vitro.isolated(policy=BEST)
async def later_nested(n):
    return (await later(n))[0] + add(1)


@vitro.isolated(policy=BEST, timeout=20)
async def later_sleeps(path):
    time.sleep(15)


@vitro.isolated(policy=BEST, result_types=[Point])
def point():
    return Point(3)


class Counter:
    def __init__(self, start):
        self.count = start

    @vitro.isolated(policy=BEST)
    def grow(self, by):
        self.count += by
        return self.count

    @staticmethod
    @vitro.isolated(policy=BEST)
    def double(n):
        return n * 2

    @classmethod
    @vitro.isolated(policy=BEST)
    def name(cls):
        return cls.__name__


def count_words(text: str, least: int = 1) -> int:
    """Counts the words of a text.

    Args:
        text: the text
        least: letters of a word, at the least
    """
    if not text:
        raise ValueError("there is no text")
    return sum(len(word) >= least for word in text.split()) + (0 if "_vitro_runtime" in sys.modules else 1000)


async def count_later(text: str) -> int:
    """Counts words, later."""
    await asyncio.sleep(0)
    return len(text.split()) + (0 if "_vitro_runtime" in sys.modules else 1000)
