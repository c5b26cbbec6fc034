#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Protected names in pools, where cells are made ahead: what the host does between calls is seen before the next one runs, and
what calls make is set apart while the pool goes on. test/story/protect_test.py has the names and the ways."""

import os
import pathlib
import subprocess
import sys
from concurrent import futures

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "lib")]
import pythons  # which finds the package
from vitrotest import check, check_equal, check_in, folder, main, need_held, test, wait_until

import vitro

GIT = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com",
       "GIT_COMMITTER_NAME": "c", "GIT_COMMITTER_EMAIL": "c@example.com"}
CALLS = 6  # more than there are cells at first
FIRST = "git init -q --template= .; mkdir .git/hooks; echo > a; git add a; git commit -qm 1; git config extensions.worktreeConfig true;"
EVIL = 'evil() { printf \'[core]\\n\\tfsmonitor = "%s #"\\n\' "$PWN"; };'
HOOK = "hook=.git/hooks/post-index-change; (echo '#!/bin/sh'; echo \"$PWN\") > $hook; chmod +x $hook"
STATUS = "touch a; git status"

# What the host does between two calls, what the next calls do, and what the host does then.
BETWEEN = {
    "nothing": ("", "evil >> .git/config", STATUS),
    "git config": ("git config x.y z", "evil >> .git/config", STATUS),
    "git config twice": ("git config x.y z; git config --unset x.y", "evil >> .git/config", STATUS),
    "git config of an include": ("git config include.path ../team; echo '[x]' > team", "evil >> team", STATUS),
    "git config of hooks": ("mkdir h; git config core.hooksPath h", HOOK.replace(".git/hooks", "h"), STATUS),
    "an include of an include": ("git config include.path ../one; git config -f one include.path two; echo '[x]' > two", "evil >> two", STATUS),
    "an include, by an editor": ("printf '[include]\\n\\tpath = ../team\\n' >> .git/config; echo '[x]' > team", "evil >> team", STATUS),
    "other hooks": ("rm -r .git/hooks; mkdir .git/hooks", HOOK, STATUS),
    "no hooks": ("rm -r .git/hooks", "mkdir .git/hooks; " + HOOK, STATUS),
    "another .git": ("cp -a .git x; rm -rf .git; mv x .git", "evil >> .git/config", STATUS),
    "a clone below": ("mkdir lib; git clone -q . lib/new", "evil >> lib/new/.git/config", "cd lib/new; git status"),
    "a worktree": ("git worktree add -q ../tree", "evil >> .git/worktrees/tree/config.worktree", "cd ../tree; git status"),
    "an .envrc": ("echo : > .envrc", 'echo "$PWN" >> .envrc', "sh ./.envrc"),
    "an .envrc that is saved": ("echo : > x; mv x .envrc", 'echo "$PWN" >> .envrc', "sh ./.envrc"),
    "an .envrc that goes": ("echo : > .envrc; rm .envrc", 'echo "$PWN" >> .envrc', "[ ! -e .envrc ] || sh ./.envrc"),
}
# Of what the plan of a pool was not made for, docs/security.md says that it is protected once the pool is made anew.
OPEN = {"git config of an include", "git config of hooks", "an include of an include", "an include, by an editor", "a clone below"}


def on_host(g, text, pwn):
    done = subprocess.run(["sh", "-c", EVIL + text], cwd=g, env={**GIT, "PWN": pwn}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace")


def sandbox(g, **files):
    return vitro.Sandbox({"files": {"write": [g], "cwd": g, **files}, "env": {"set": {**GIT, "PWN": ""}}})


def run(box, g, text, pwn=""):
    return box.run(["/bin/sh", "-c", f"cd {g}; export PWN='{pwn}'; {EVIL} {text}"], result=True)


def has_fired(between, attack, after, **files):
    """Whether the host ran the payload, and what was said on the way."""
    with folder() as place:
        g, mark = place + "/g", place + "/mark"
        os.mkdir(g)
        said = [on_host(g, FIRST, "")]
        with sandbox(g, **files) as box:
            said += [run(box, g, "git status").stdout for _ in range(2)]
            said.append(on_host(g, between, ""))
            said += [run(box, g, attack, "touch " + mark).stderr for _ in range(CALLS)]
            check(not os.path.exists(mark), "a cell made the mark")
            said.append(on_host(g, after, "touch " + mark))
            return os.path.exists(mark), "\n".join(said)


def register(what, row):
    @test("the host does this between calls: " + what, needs=["git"])
    def _():
        need_held({"files": "mountns"})
        fired, said = has_fired(*row, protect=[])
        check(fired, f"without protection nothing was run\n{said}")
        fired, said = has_fired(*row)
        if what in OPEN:
            check(fired, f"it is held, and the documents say that it is not\n{said}")
        else:
            check(not fired, f"the host ran it\n{said}")


for each in BETWEEN.items():
    register(*each)


@test("what a call makes under a protected name is set apart when it ends, told in its result, and the pool goes on", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g:
        on_host(g, FIRST, "")
        with sandbox(g) as box:
            for number in range(CALLS):
                result = run(box, g, f"echo {number} > .envrc; echo {number} > a")
                check_equal(os.path.lexists(g + "/.envrc"), False, f".envrc is there: {result}")
                apart = result.protected["set_apart"]
                check_equal([each["path"] for each in apart], [g + "/.envrc"], "what is set apart")
                check_equal(pathlib.Path(apart[0]["to"]).read_text(), f"{number}\n", "its text")
            check_equal(run(box, g, "cat a").protected, None, "of a call that makes none")


# Leaves a process that makes a name all the while, from so many seconds after the call on.
GOES_ON = """import os, time
if os.fork() == 0:
    time.sleep(%r)
    while True:
        try: os.close(os.open(%r, os.O_CREAT | os.O_WRONLY))
        except OSError: pass
"""


@test("what a process makes that a call left, beside another call or before the next one, is set apart, and not taken for the host's", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g, sandbox(g) as box, futures.ThreadPoolExecutor(2) as threads:
        for number in range(int(os.environ.get("VITRO_ROUNDS", "24"))):
            first = threads.submit(box.eval, GOES_ON % (number % 4 / 1000, g + "/.envrc"))
            if number % 2:
                first.result()
            box.eval(f"import time; time.sleep({number % 3 / 500})"), first.result()
            box.eval("1")
            wait_until(lambda: not os.path.lexists(g + "/.envrc"), 5, f"round {number}: .envrc goes")


@test("what a call of a pool closes is opened, at the root of the grant too, and the pool goes on", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g:
        on_host(g, FIRST, "")
        with sandbox(g) as box:
            for number, close in enumerate(("chmod 000 .", "chmod 555 .", "chmod 000 .git", "chmod 000 .git .")):
                name = ".git/commondir" if ".git" in close else ".envrc"
                result = run(box, g, f"echo {number} > {name}; {close}")
                os.chmod(g, 0o755), os.chmod(g + "/.git", 0o755)
                check_equal(os.path.lexists(f"{g}/{name}"), False, f"{close}: {name} is there: {result}")
                check_equal([each["path"] for each in result.protected["set_apart"]], [f"{g}/{name}"], "what is set apart")
            check_equal(run(box, g, "cat a").protected, None, "of a call that makes none")


@test("an error about a protected name has the key's name", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g:
        on_host(g, FIRST, "")
        with sandbox(g) as box:
            for code, keys in (("open('.git/config', 'w')", "keys are files.write and files.protect"), ("import os; os.mkdir('.git/hooks/x')", "keys are files.write and files.protect"),
                               ("import os; os.rename('.git', 'x')", "key is files.protect"), ("import os; os.unlink('.git/config')", "key is files.protect"),
                               ("open('/usr/x', 'w')", "key is files.write")):
                said = box.eval(code, result=True).error.message
                check(said.endswith(f"if the cell was denied it, the policy's {keys}"), f"{code}: {said}")


@test("names like those that it could get are no way to keep it", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g:
        on_host(g, FIRST, "")
        with sandbox(g) as box:
            first = int(run(box, g, "true").call_id.strip("c"))
            result = run(box, g, f"""python3 -c 'for i in range({first}, {first} + 9):
    for end in ("", *("-%d" % number for number in range(64))): open(f".envrc.vitro-c{{i}}{{end}}", "w").close()'; echo > .envrc""")
            check_equal(os.path.lexists(g + "/.envrc"), False, f".envrc is there: {result}")


@test("a name that is made while another call of the pool still runs is set apart when that ends, at the latest", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as g, futures.ThreadPoolExecutor(2) as threads:
        on_host(g, FIRST, "")
        with sandbox(g) as box:
            run(box, g, "true")
            long = threads.submit(run, box, g, "touch there; while [ ! -e go ]; do sleep 0.02; done; echo late > .mcp.json")
            wait_until(lambda: os.path.exists(g + "/there"), 10, "the other call runs")
            results = [run(box, g, "echo > .envrc")]
            pathlib.Path(g, "go").touch()
            results.append(long.result())
            check_equal([name for name in (".envrc", ".mcp.json") if os.path.lexists(f"{g}/{name}")], [], f"left: {results}")
            told = [each["path"] for result in results if result.protected for each in result.protected.get("set_apart", [])]
            check_equal(sorted(told), [g + "/.envrc", g + "/.mcp.json"], "what the two were told")
            check_in("cat: .git/config", run(box, g, "cat .git/config/").stderr, "the pool goes on")


if __name__ == "__main__":
    main()
