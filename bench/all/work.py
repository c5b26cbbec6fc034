# SPDX-License-Identifier: Apache-2.0
"""What is called."""


def add(a, b):
    return a + b


def produce(size):
    return bytes(size)
