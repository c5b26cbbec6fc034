#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every block of code in the documentation does what it shows. Those of Python and JavaScript are run by python/guide
and node/guide; this runs all others: test/lib/pages.py says how they are marked.

A page has a folder, where its blocks run one after the other. In a block `console`, what follows a line with "$ " is
what the command prints, where "..." stands for anything, on a line of its own for any lines. A policy is one that
`vitro explain` takes, a manifest one that `vitro tools` takes. Of what cannot run, the commands and flags exist."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import pages
from commands import check_command
from vitrotest import (BINARY, PREFIX, ROOT, WITHIN, check, check_equal, check_in, folder, is_bare, isolation, main, run,
                       sanitized, skip, test, vitro, write)

BUILD = pathlib.Path(BINARY).parent
LIBRARY = BUILD / "src" / "libvitro.so.0"
SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ELSEWHERE = {"python", "js"}  # who runs them is said above
NO_CODE = {"", "text", "diff"}
NOT_RUN = 11  # more of them are to be thought about


def need_cells():
    if isolation().refused or is_bare() or PREFIX:
        skip("the pages show cells with namespaces")


class Place:
    """A folder for the blocks of a page, and what they find on PATH."""

    def __init__(self, path, within=None):
        self.path, self.bin = path + "/here", path + "/bin"
        os.mkdir(self.path)
        start = [WITHIN, *shlex.split(within), "--", BINARY] if within else [BINARY]
        write(self.bin + "/vitro", f'#!/bin/sh\nexec {shlex.join(start)} "$@"\n', 0o755)
        paths = [self.bin, SYSTEM]
        if node := shutil.which("node"):
            paths.append(os.path.dirname(node))
        self.env = {"PATH": ":".join(paths), "HOME": self.path, "LC_ALL": "C.UTF-8", "VITRO_BINARY": BINARY}

    def put(self, block):
        for name, text in block.given.items():
            write(f"{self.path}/{name}", text)
        if name := block.note("file "):
            write(f"{self.path}/{name}", block.text)

    def make_source(self):
        for name in ("include", "examples"):
            os.symlink(ROOT / name, f"{self.path}/{name}")
        os.makedirs(self.path + "/build/src")
        os.symlink(BINARY, self.path + "/build/vitro")
        for name in ("libvitro.so", "libvitro.so.0"):
            os.symlink(LIBRARY, f"{self.path}/build/src/{name}")

    def bash(self, script):
        return run(["bash", "--noprofile", "--norc", "-c", script], cwd=self.path, env=self.env, timeout=50)


@contextlib.contextmanager
def place(within=None):
    with folder() as path:
        yield Place(path, within)


def commands(block):
    """[command, what it prints] of a block of a terminal."""
    found = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], ""])
        elif line.startswith("> ") and not found[-1][1]:
            found[-1][0] += "\n" + line[2:]
        else:
            found[-1][1] += line + "\n"
    return found


def as_pattern(shown):
    """A pattern for what is shown: "..." is anything, alone in its line any number of lines."""
    lines = ""
    for line in shown.splitlines():
        lines += r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n"
    return lines


def run_console(block, where):
    wanted = commands(block)
    mark = "=== the next command ==="
    script = "exec 2>&1\n" + "".join(f"{command}\necho '{mark}'\n" for command, _ in wanted)
    done = where.bash(script)
    parts = done.out.split(mark + "\n")
    check_equal(len(parts), len(wanted) + 1, f"{block}: commands that ended", done)
    for (command, shown), printed in zip(wanted, parts):
        check(re.fullmatch(as_pattern(shown), printed.rstrip("\n") + "\n" if printed.strip() else ""),
              f"{block}: $ {command}\nprints:\n{printed}\nand the page shows:\n{shown}")


def run_shell(block, where):
    done = where.bash("set -eu\n" + block.text)
    check_equal(done.code, 0, f"{block}: exit code", done)


def run_c(block, where):
    check_in("int main(", block.text, f"{block}: a whole program")
    if sanitized():
        return
    path = write(f"{where.path}/program.c", block.text)
    program = f"{where.path}/program"
    done = run(["cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers", f"-I{ROOT}/include", path,
                "-o", program, str(LIBRARY), f"-Wl,-rpath,{LIBRARY.parent}"], timeout=50)
    check_equal(done.code, 0, f"{block}: it compiles", done)
    done = run([program], cwd=where.path, env=where.env)
    check_equal((done.code, done.err), (0, ""), f"{block}: it runs", done)
    check(done.out, f"{block}: it prints nothing")


def check_json(block, where):
    value = json.loads(block.text)
    with folder() as path:
        file = write(path + "/it.json", block.text)
        if "tools" in value:
            done = vitro("tools", file)
        else:
            files = value.get("files", {})
            for name in (*files.get("read", []), *files.get("write", [])):
                os.makedirs(os.path.join(path, name), exist_ok=True)
            done = vitro("explain", "-p", file)
        check_equal((done.code, done.err), (0, ""), f"{block}: vitro takes it", done)


def check_pod(block, pod):
    spec = pod["spec"]
    volumes = {volume["name"] for volume in spec["volumes"] if "emptyDir" in volume}
    for container in spec["containers"]:
        check_command(container["command"], str(block))
        mounted = {mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] in volumes}
        check_in("/tmp", mounted, f"{block}: where private folders of bare cells are made can be written")
        check(container["securityContext"]["readOnlyRootFilesystem"], f"{block}: else /tmp needs no volume")
    check_equal(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, f"{block}: as the page says")


def check_yaml(block, where):
    try:
        import yaml
    except ImportError:
        return  # python3-yaml is in tools/setup
    value = yaml.safe_load(block.text)
    if value.get("kind") == "Pod":
        check_pod(block, value)
        return
    for job in value["jobs"].values():
        for step in job["steps"]:
            for command in step.get("run", "").split("&&"):
                check_command(shlex.split(command), str(block))


def check_dockerfile(block, where):
    """What is copied is there, and needs nothing else; what is started works."""
    for line in block.text.splitlines():
        word, rest = line.split(" ", 1)
        if word == "COPY":
            check_equal(rest, "build/vitro /usr/local/bin/vitro", f"{block}: the one file that it needs")
            if not sanitized():
                done = run(["ldd", BINARY])
                check_in("not a dynamic executable", done.out + done.err, f"{block}: a static program", done)
        elif word == "CMD":
            done = where.bash(shlex.join(json.loads(rest)))
            check_equal((done.code, done.out, done.err), (0, "hello\n", ""), f"{block}: it runs", done)
        else:
            check(word in ("FROM", "RUN", "USER", "WORKDIR"), f"{block}: {word}")


def check_unrun(block, where):
    """Its shell understands it, and what it names exists."""
    lines = [command for command, _ in commands(block)] if block.language == "console" else block.text.splitlines()
    done = run(["bash", "-n", "-c", "\n".join(lines)])
    check_equal(done.code, 0, f"{block}: syntax", done)
    for line in lines:
        for command in re.split(r"&&|\|", line):
            check_command(shlex.split(command, comments=True), str(block))


def check_no_code(block, where):
    for line in block.text.splitlines():
        check(not re.match(r"\$ |#include|(vitro|make|pip|npm|docker|sudo|cc) ", line),
              f"{block}: this looks like code; give its block a language: {line}")


KINDS = {"console": run_console, "sh": run_shell, "c": run_c, "json": check_json, "yaml": check_yaml, "dockerfile": check_dockerfile}


def kind_of(block):
    if block.note("not run") is not None:
        return check_unrun
    return KINDS.get(block.language) or check_no_code


def register(page, blocks):
    @test(f"{page}: {len(blocks)} blocks")
    def _():
        if any(block.language in KINDS for block in blocks):
            need_cells()
        with place() as where:
            for block in blocks:
                where.put(block)
                if within := block.note("within "):
                    with place(within) as poorer:
                        kind_of(block)(block, poorer)
                elif block.note("in the source folder") is not None:
                    if sanitized():
                        continue
                    with place() as source:
                        source.make_source()
                        kind_of(block)(block, source)
                else:
                    kind_of(block)(block, where)


ALL = [block for page in pages.names() for block in pages.blocks(page)]
for name in pages.names():
    if mine := [block for block in ALL if block.page == name and block.language not in ELSEWHERE]:
        register(name, mine)


@test("every block has a language that is known, and a reason where it is not run")
def _():
    for block in ALL:
        check(block.language in {*KINDS, *ELSEWHERE, *NO_CODE}, f"{block}: a block of {block.language!r}")
        check(block.note("not run") != "", f"{block}: why is it not run?")
    unrun = [block for block in ALL if block.note("not run")]
    print(f"# {len(ALL)} blocks; {len(unrun)} are not run: {', '.join(map(str, unrun))}")
    check(len(unrun) <= NOT_RUN, f"{len(unrun)} blocks are not run")
    check(len(ALL) > 60, f"only {len(ALL)} blocks were found")


main()
