#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What pages point to is there: files, headings, man pages, commands. And what --help says, the man page says."""

import os
import pathlib
import re
import shlex
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pages
from commands import FLAG, check_command, flags, verbs
from vitrotest import BINARY, ROOT, check, check_equal, check_in, main, run, skip, test

MANUAL = ROOT / "docs" / "man"
BUILT = pathlib.Path(BINARY).parent / "docs"
# Written by `make bench`; it is not there before.
WRITTEN = {"docs/benchmarks.md"}


def anchors(page):
    """The names that GitHub gives to a page's headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", pages.prose(page), re.M):
        text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
    return found


def links(page):
    text = re.sub(r"`[^`\n]*`", "", pages.prose(page))
    return re.findall(r"(?<!\\)\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|href)="([^"]+)"', text)


@test("each link leads to a file that is there, and to a heading in it")
def _():
    seen = 0
    for page in pages.names():
        for link in links(page):
            if re.match(r"https?://", link):
                continue
            seen += 1
            name, _, heading = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            check((ROOT / target).exists() or target in WRITTEN, f"{page}: there is no {target}")
            check(not heading or heading in anchors(target), f"{page}: {target} has no heading #{heading}")
    check(seen > 40, f"only {seen} links were found")


@test("each page can be reached from README.md")
def _():
    seen, todo = set(), ["README.md"]
    while todo:
        page = todo.pop()
        if page in seen or page not in pages.names():
            continue
        seen.add(page)
        todo += [os.path.normpath(os.path.join(os.path.dirname(page), link.partition("#")[0])) for link in links(page)]
    lost = {page for page in pages.names() if page.startswith("docs/")} - seen
    check(not lost, f"nothing leads to {sorted(lost)}")


@test("each file of the source that a page names is there")
def _():
    for page in pages.names():
        for name in re.findall(r"(?<![\w./~-])((?:docs|test|examples|bench|tools|sdk|runtimes|systemd|src|include)/[\w./-]*\.\w+)", pages.prose(page)):
            here = (ROOT / name.split("/")[0]).exists()  # of a copy of the source, only parts
            check(not here or name in WRITTEN or (ROOT / name).exists(), f"{page}: there is no {name}")


def manual():
    """name(section) of each page, and of each function that one is about."""
    found = set()
    for path in MANUAL.glob("*.scd*"):
        name, section = re.match(r"(.+)\.(\d)\.scd", path.name).groups()
        heading = re.search(r"^# NAME\n\n(.*?) - ", path.read_text(encoding="utf-8"), re.M | re.S)[1]
        found |= {f"{one.strip()}({section})" for one in (name, *heading.split(","))}
    return found


@test("each man page of vitro's that is named exists")
def _():
    known = manual()
    check(len(known) > 20, f"the manual has only {sorted(known)}")
    texts = {page: pages.read(page) for page in pages.names()}
    texts.update((path.name, path.read_text(encoding="utf-8").replace("*", "").replace("\\", "")) for path in MANUAL.glob("*.scd*"))
    for verb in verbs():
        texts[f"vitro {verb} --help"] = run([BINARY, verb, "--help"]).out
    for name, text in texts.items():
        for named in re.findall(r"\bvitro[\w-]*\(\d\)", text):
            check(named in known, f"{name}: there is no {named}")


def built(verb):
    path = BUILT / f"vitro-{verb}.1"
    if not path.exists():
        skip("the man pages are not built")
    return re.sub(r"\\f.|\\&", "", path.read_text(encoding="utf-8")).replace("\\-", "-").replace("\\(aq", "'")


def without_examples(page):
    """A page without what is shown as it is: there are commands of others in it."""
    return re.sub(r"^\.nf$.*?^\.fi$", "", page, flags=re.M | re.S)


def declared(page):
    """The flags that a page gives to its verb: those of its synopsis, and those that are the head of a paragraph."""
    synopsis = page[page.index("SYNOPSIS"):page.index("DESCRIPTION")]
    heads = re.findall(r"^(?:-\w, )?--[a-z].*$", page, re.M)
    return {flag for text in (synopsis, *heads) for flag in FLAG.findall(text)}


@test("what --help says that a verb takes, its man page says, and the other way round")
def _():
    check_equal(len(verbs()), 8, "verbs")
    for verb in sorted(verbs()):
        page = without_examples(built(verb))
        missing = flags(verb) - {"-h"} - set(FLAG.findall(page))
        check(not missing, f"vitro-{verb}(1) lacks what vitro {verb} --help has: {sorted(missing)}")
        check("--help" in declared(page), f"vitro-{verb}(1): no flags were found in {page[:500]}")
        unknown = declared(page) - flags(verb)
        check(not unknown, f"vitro {verb} --help lacks what vitro-{verb}(1) has: {sorted(unknown)}")


def sentences(verb):
    """What a verb's --help says of each flag."""
    found = []
    for line in run([BINARY, verb, "--help"]).out.splitlines():
        if line.startswith("  -"):
            found.append("")
        if found and re.match(r"  .{24}  ?\S", line):
            found[-1] += " " + line[28:]
    return [sentence.strip() for sentence in found]


@test("what --help says of a flag is in the pages that are filled with it, each letter of it")
def _():
    for verb in ("run", "eval", "explain"):
        page = " ".join(line.strip() for line in built(verb).splitlines() if not line.startswith("."))
        check(len(sentences(verb)) > 20, f"only {sentences(verb)} were found")
        for sentence in sentences(verb):
            check_in(sentence, page, f"vitro-{verb}(1)")


@test("the overview has each verb, and so does vitro(1)")
def _():
    page = (MANUAL / "vitro.1.scd").read_text(encoding="utf-8")
    for verb in verbs():
        check(len(re.findall(rf"\*vitro {verb}\b", page)) > 1, f"vitro(1) lacks {verb} in its synopsis or below it")
        check((MANUAL / f"vitro-{verb}.1.scd").exists() or (MANUAL / f"vitro-{verb}.1.scd.in").exists(), f"no page for {verb}")


@test("commands in the manual's examples have verbs and flags that there are")
def _():
    seen = 0
    for path in MANUAL.glob("*.scd*"):
        for block in re.findall(r"^```\w*\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S):
            for line in block.splitlines():
                command = line.removeprefix("$ ").strip()
                if command.startswith("vitro ") and "\\" not in command:
                    check_command(shlex.split(re.split(r" [|<>]", command)[0], comments=True), path.name)
                    seen += 1
    check(seen > 20, f"only {seen} commands were found")


def structs(text):
    """name → members as they are declared, without comments and in one form of white space."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return {name: [" ".join(member.split()) for member in body.split(";") if member.strip()]
            for name, body in re.findall(r"^struct (\w+) \{\n(.*?)^\};", text, re.M | re.S)}


@test("structs in man pages have the members of vitro.h, and each is spoken of")
def _():
    header = structs((ROOT / "include" / "vitro.h").read_text(encoding="utf-8"))
    seen = set()
    for path in sorted(MANUAL.glob("*.3.scd")):
        page = path.read_text(encoding="utf-8")
        for name, members in structs(page).items():
            seen.add(name)
            check_equal(members, header.get(name), f"{path.name}: struct {name}")
            for member in members:
                word = re.search(r"\(\*(\w+)\)|(\w+)(?:\[\w+\])?$", member)
                word = word[1] or word[2]
                check(word == "reserved" or f"_{word}_" in page.replace("\\_", "_"), f"{path.name}: nothing is said of {name}.{word}")
    check({"vitro_tool", "vitro_options", "vitro_counts", "vitro_request", "vitro_usage"} <= seen, f"only {seen} were found")


main()
