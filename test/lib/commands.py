# SPDX-License-Identifier: Apache-2.0
"""What the command line really has, for tests of what pages say of it."""

import functools
import re

from vitrotest import BINARY, ROOT, check, run

FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")


@functools.lru_cache(maxsize=None)
def verbs():
    return set(re.findall(r"^  vitro (\w+)", run([BINARY, "--help"]).out, re.M))


@functools.lru_cache(maxsize=None)
def flags(verb):
    """The flags that a verb's --help has."""
    return {"-h", "--help", *FLAG.findall(run([BINARY, verb, "--help"]).out)}


@functools.lru_cache(maxsize=None)
def targets():
    makefile = ROOT / "Makefile"
    return set(re.findall(r"^([a-z][\w-]*):", makefile.read_text(), re.M)) if makefile.exists() else None


def check_command(words, where):
    """A command of vitro has a verb and flags that there are, one of make a target; others are not looked at."""
    if words[:1] == ["make"] and targets() is not None:
        for word in words[1:]:
            check(word in targets() or "=" in word, f"{where}: there is no make {word}")
    if not words or words[0].rsplit("/", 1)[-1] != "vitro":
        return
    if words[1:] in (["--help"], ["--version"]) or words[1:2] == ["help"]:
        return
    check(words[1:] and words[1] in verbs(), f"{where}: no verb: {' '.join(words)}")
    for word in words[2:]:
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            check(word.split("=")[0] in flags(words[1]), f"{where}: vitro {words[1]} has no flag {word}")
