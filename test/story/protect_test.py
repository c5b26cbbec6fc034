#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Protected names: what a cell writes into a folder that it was granted for writing, and what the host runs of it later.

Each way from a write grant to code that runs on the host is a row of WAYS: what the host has there before, what the cell does,
what the host does afterwards. Each is gone without protection, where the payload must run on the host, and with it, where it
must not, unless the row is of what docs/security.md says is not held. The cells' parts of all ways are one call."""

import atexit
import contextlib
import functools
import itertools
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent import futures
from dataclasses import dataclass

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import Failed, check, check_equal, check_in, folder, main, need_held, run, test, vitro, vitro_started, wait_until, write

OPENS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "opens.py")
# One tree committed with these makes the same commit, whoever does it.
GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "1700000000 +0000",
       "GIT_COMMITTER_NAME": "c", "GIT_COMMITTER_EMAIL": "c@example.com", "GIT_COMMITTER_DATE": "1700000000 +0000",
       "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0", "GIT_EDITOR": "true", "LC_ALL": "C"}

# What all scripts have. $PWN is the payload: it leaves a mark that no cell can leave. $G is the granted folder.
PRELUDE = r"""
# Configuration by which git runs the payload when it looks at the work tree.
evil() { printf '[core]\n\tfsmonitor = "%s #"\n' "$PWN"; }
# Makes a program that is the payload.
program() { mkdir -p "$(dirname "$1")"; printf '#!/bin/sh\n%s\n' "$PWN" > "$1"; chmod +x "$1"; }
# Makes a copy of a git folder whose configuration runs the payload.
evil_copy() { cp -a "$1" "$2"; (cat "$1/config"; evil) > "$2/config.new"; rm -f "$2/config"; mv "$2/config.new" "$2/config"; }
exchange() { python3 -c 'import ctypes, os, sys
sys.exit(ctypes.CDLL(None).renameat2(-100, os.fsencode(sys.argv[1]), -100, os.fsencode(sys.argv[2]), 2))' "$1" "$2"; }
# Makes this folder a bare repository, with the objects of a git folder, whose configuration runs the payload.
bare() { cp -a "$1/objects" "$1/refs" .; echo ref: refs/heads/main > HEAD
	(printf '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n' "$PWD"; evil) > config; }
tasks() { printf '{"tasks": [{"command": "%s", "runOptions": {"runOn": "folderOpen"}}]}' "$PWN"; }
mcp() { printf '{"mcpServers": {"x": {"command": "sh", "args": ["-c", "%s"]}}}' "$PWN"; }
# Opens this folder with a stand-in for a program. With a terminal: runs a command in one.
opens() { $OPENS "$1"; }
terminal() { script -qec "$1" /dev/null; }
"""


@dataclass(frozen=True)
class Way:
    """All three are scripts for sh, in the folder "g", which is a copy of what on says."""

    name: str
    cell: str
    host: str
    before: str = ""
    on: str = "repository"
    grants: tuple = (".",)
    open: str = ""  # what docs/security.md says of it, as not held
    needs: str = "git"


def by_configuration(key, value, host, before="", cell=""):
    return Way(key, f'git config {key} "{value}"; {cell}', host, before)


# By what the repository's configuration can name.
KEYS = [
    by_configuration("core.fsmonitor", "$PWN #", "git status"),
    by_configuration("core.hooksPath", "$G/h", "git commit --allow-empty -m x", cell="program h/pre-commit"),
    by_configuration("core.sshCommand", "$PWN #", "git fetch ssh://127.0.0.1/x"),
    by_configuration("core.pager", "$PWN #", "terminal 'git log'"),
    by_configuration("core.editor", "$PWN #", "unset GIT_EDITOR; git commit --amend"),
    by_configuration("core.askPass", "$G/p", "echo url=https://example.com | git credential fill", cell="program p"),
    by_configuration("core.gitProxy", "$G/p", "git fetch git://127.0.0.1/x", cell="program p"),
    by_configuration("sequence.editor", "$PWN #", "unset GIT_EDITOR; git rebase -i HEAD~1"),
    by_configuration("alias.st", "!$PWN #", "git st"),
    by_configuration("diff.external", "$PWN #", "git diff", cell="echo >> a"),
    by_configuration("diff.x.textconv", "$PWN #", "git diff", cell="echo >> a; echo 'a diff=x' > .gitattributes"),
    by_configuration("diff.x.command", "$PWN #", "git diff", cell="echo >> a; echo 'a diff=x' > .gitattributes"),
    by_configuration("filter.x.clean", "$PWN; cat", "git status", cell="echo 'a filter=x' > .git/info/attributes; touch a"),
    by_configuration("filter.x.smudge", "$PWN; cat", "git checkout other", cell="echo 'a filter=x' > .git/info/attributes"),
    by_configuration("filter.x.process", "$PWN #", "git status", cell="echo 'a filter=x' > .gitattributes; touch a"),
    by_configuration("merge.x.driver", "$PWN #", "git merge other", cell="echo 'a merge=x' > .git/info/attributes"),
    by_configuration("gpg.program", "$G/p", "git commit --allow-empty -S -m x", cell="program p"),
    by_configuration("credential.helper", "!$PWN #", "echo url=https://example.com | git credential fill"),
    by_configuration("remote.origin.uploadpack", "$PWN #", "git fetch origin"),
    by_configuration("remote.origin.url", "ext::$G/p", "git fetch origin", cell="git config protocol.ext.allow always; program p",
                     before="git config remote.origin.url /nowhere"),
    by_configuration("include.path", "$G/more", "git status", cell="evil > more"),
    by_configuration("includeIf.onbranch:main.path", "$G/more", "git status", cell="evil > more"),
    by_configuration("trailer.x.command", "$PWN #", "git commit --allow-empty -m x --trailer x=y"),
    by_configuration("interactive.diffFilter", "$PWN; cat", "TERM=xterm terminal 'git add -p'", cell="echo >> a"),
    by_configuration("tar.x.command", "$PWN #", "git archive --format=x HEAD"),
]

# By how that configuration is changed, or another one put in its place.
STATUS = "git status"
PLACES = [
    Way("the configuration, in place", "evil >> .git/config", STATUS),
    Way("another renamed over it", "(cat .git/config; evil) > x; mv -f x .git/config", STATUS),
    Way("it is removed and made anew", "c=$(cat .git/config); rm -f .git/config; (echo \"$c\"; evil) > .git/config", STATUS),
    Way("a symbolic link in its place", "(cat .git/config; evil) > x; ln -sf ../x .git/config", STATUS),
    Way("a hard link in its place", "(cat .git/config; evil) > x; ln -f x .git/config", STATUS),
    Way("by a hard link to it", "ln .git/config x && evil >> x", STATUS),
    Way("exchanged with another", "(cat .git/config; evil) > x; exchange x .git/config", STATUS),
    Way("by /proc/self/root", "evil >> /proc/self/root$G/.git/config", STATUS),
    Way("by /proc/self/cwd, and the folder's descriptor", "cd .git; exec 3< .; evil >> /proc/self/fd/3/config", STATUS),
    Way("by a descriptor of it that reads", "exec 3< .git/config; evil >> /proc/self/fd/3", STATUS),
    Way("by a map of its memory", """(cat .git/config; evil) | python3 -c 'import mmap, sys
text = sys.stdin.buffer.read()
with open(".git/config", "r+b") as file:
    file.truncate(len(text))
    mmap.mmap(file.fileno(), 0)[:] = text'""", STATUS),
    Way("after its mode was changed", "chmod 666 .git/config; chmod 777 .git; evil | tee -a .git/config", STATUS,
        before="chmod 444 .git/config; chmod 555 .git"),
    Way(".git renamed, and a copy in its place", "evil_copy .git x; mv .git y; mv x .git", STATUS),
    Way(".git removed, and a copy in its place", "evil_copy .git x; rm -rf .git; mv x .git", STATUS),
    Way(".git exchanged with a copy", "evil_copy .git x; exchange x .git", STATUS),
    Way("a file in place of .git", "evil_copy .git x; mv .git y; echo 'gitdir: x' > .git", STATUS),
    Way("a link in place of .git", "evil_copy .git x; mv .git y; ln -s x .git", STATUS),
    Way("commondir", "evil_copy .git x; echo ../x > .git/commondir", STATUS),
    Way("config.worktree that is there", "evil >> .git/config.worktree", STATUS,
        before="git config extensions.worktreeConfig true; git config --worktree x.y z"),
    Way("config.worktree that is missing", "evil >> .git/config.worktree", STATUS,
        before="git config extensions.worktreeConfig true"),
    Way("what include.path leads to", "evil >> team.gitconfig", STATUS,
        before="git config include.path ../team.gitconfig; echo '[x]' > team.gitconfig"),
    Way("what include.path leads to, missing", "evil >> team.gitconfig", STATUS,
        before="git config include.path ../team.gitconfig"),
    Way("what an included file includes", "evil >> etc/two", STATUS, before="""git config include.path ../etc/one
        mkdir etc; echo '[x]' > etc/two; git config -f etc/one include.path two"""),
    Way("what includeIf leads to", "evil >> etc/team", STATUS,
        before="mkdir etc; echo '[x]' > etc/team; git config 'includeIf.gitdir:**/.path' $G/etc/team"),
    Way("the folder of what include.path leads to", "mv etc x; mkdir etc; evil > etc/team", STATUS,
        before="mkdir etc; echo '[x]' > etc/team; git config include.path ../etc/team"),
    Way("the configuration that is a link, and another in its place", "c=$(cat .git/config); rm -f .git/config; (echo \"$c\"; evil) > .git/config",
        STATUS, before="mkdir etc; mv .git/config etc; ln -s ../etc/config .git/config"),
    Way(".git that is a link, and another in its place", "evil_copy g x; rm -f .git; mv x .git", STATUS, before="mv .git g; ln -s g .git"),
    Way("a folder of what include.path leads to, missing", "mkdir etc; evil > etc/team", STATUS, before="git config include.path ../etc/team"),
    Way("a folder of what include.path leads to, missing, as a link", "mkdir x; evil > x/team; ln -s x etc", STATUS,
        before="git config include.path ../etc/team"),
    Way("a link on the way to what include.path leads to", "rm -f link; mkdir link; evil > link/team", STATUS,
        before="mkdir etc; echo '[x]' > etc/team; ln -s etc link; git config include.path ../link/team"),
    Way("the work tree made a bare repository, and .git none", "bare .git; rm .git/HEAD", STATUS),
    Way("the configuration that is a link", "evil >> etc/config", STATUS, before="mkdir etc; mv .git/config etc; ln -s ../etc/config .git/config"),
]

COMMIT = "git commit --allow-empty -m x"
HOOKS = [
    Way("a hook: post-index-change", "program .git/hooks/post-index-change", "touch a; git status"),
    Way("a hook: pre-commit", "program .git/hooks/pre-commit", COMMIT),
    Way("a hook: post-checkout", "program .git/hooks/post-checkout", "git checkout other"),
    Way("a hook: reference-transaction", "program .git/hooks/reference-transaction", "git branch x"),
    Way("a hook that is there", "echo \"$PWN\" >> .git/hooks/pre-commit", COMMIT,
        before="echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit"),
    Way("the mode of a hook that is there", "chmod +x .git/hooks/pre-commit", COMMIT,
        before="program .git/hooks/pre-commit; chmod -x .git/hooks/pre-commit"),
    Way("a sample renamed", "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit", COMMIT,
        before="program .git/hooks/pre-commit.sample"),
    Way("a link as a hook", "program x; ln -s ../../x .git/hooks/pre-commit", COMMIT),
    Way("hooks, missing", "program .git/hooks/pre-commit", COMMIT, before="rm -rf .git/hooks"),
    Way("hooks renamed, and others in their place", "mv .git/hooks x; program .git/hooks/pre-commit", COMMIT),
    Way("what a hook that is a link leads to", "echo \"$PWN\" >> tools/pre-commit", COMMIT,
        before="""mkdir tools; echo '#!/bin/sh' > tools/pre-commit; chmod +x tools/pre-commit
        ln -s ../../tools/pre-commit .git/hooks/pre-commit"""),
    Way("hooks that are a link, and others in its place", "rm -f .git/hooks; program .git/hooks/pre-commit", COMMIT,
        before="mkdir tools; rm -r .git/hooks; ln -s ../tools .git/hooks"),
    Way("hooks that are a link to a link", "rm -f link; program link/pre-commit", COMMIT,
        before="mkdir tools; ln -s tools link; rm -r .git/hooks; ln -s ../link .git/hooks"),
    Way("hooks that are a link", "program tools/pre-commit", COMMIT, before="mkdir tools; rm -r .git/hooks; ln -s ../tools .git/hooks"),
    Way("hooks that are a link to what is missing", "program tools/pre-commit", COMMIT, before="rm -r .git/hooks; ln -s ../tools .git/hooks"),
    Way("the folder of core.hooksPath", "program .githooks/pre-commit", COMMIT,
        before="mkdir .githooks; git config core.hooksPath .githooks"),
    Way("the folder of core.hooksPath, missing", "program .githooks/pre-commit", COMMIT, before="git config core.hooksPath .githooks"),
    Way("the folder around that of core.hooksPath", "mv tools x; program tools/hooks/pre-commit", COMMIT,
        before="mkdir -p tools/hooks; git config core.hooksPath tools/hooks"),
    Way("a hook of husky's", "program .husky/_/pre-commit", COMMIT, before="mkdir -p .husky/_; git config core.hooksPath .husky/_"),
    Way("what a hook of husky's runs", "echo \"$PWN\" >> .husky/pre-commit", COMMIT, before="""mkdir -p .husky/_; git config core.hooksPath .husky/_
        echo '. "$0/../../pre-commit"' | sed 's,$0/../..,$(dirname "$0")/..,' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit
        touch .husky/pre-commit"""),
]

OTHERS = [  # git folders that are not the grant's own
    Way("a submodule's configuration", "evil >> .git/modules/sub/config", STATUS, on="super"),
    Way("a submodule's hook", "program .git/modules/sub/hooks/post-index-change", "touch sub/s; git status", on="super"),
    Way("a submodule's hooks, missing", "program .git/modules/sub/hooks/post-index-change", "touch sub/s; git status",
        before="rm -rf .git/modules/sub/hooks", on="super"),
    Way("a submodule's commondir", "evil_copy .git/modules/sub x; echo $G/x > .git/modules/sub/commondir", STATUS, on="super"),
    Way("a submodule's core.hooksPath", "program sub/.githooks/pre-commit", "cd sub; " + COMMIT, on="super",
        before="mkdir sub/.githooks; git -C sub config core.hooksPath .githooks"),
    Way("a submodule's .git", """evil_copy .git/modules/sub x; git config -f x/config core.worktree $G/sub
        echo 'gitdir: ../x' > sub/.git""", STATUS, on="super"),
    Way("the folder of a submodule", """cp -a sub x; mv sub y; evil_copy .git/modules/sub z; git config -f z/config core.worktree $G/sub
        echo "gitdir: $G/z" > x/.git; mv x sub""", STATUS, on="super"),
    Way("the folder of all submodules", "cp -a .git/modules x; evil >> x/sub/config; mv .git/modules y; mv x .git/modules", STATUS,
        on="super"),
    Way("a submodule with a / in its name", "evil >> .git/modules/lib/deep/config", STATUS, on="super",
        before="""mkdir .git/modules/lib; mv .git/modules/sub .git/modules/lib/deep; echo 'gitdir: ../.git/modules/lib/deep' > sub/.git
        git config -f .git/modules/lib/deep/config core.worktree ../../../../sub"""),
    Way("a submodule that is not there yet", "git init -q sub; evil >> sub/.git/config", STATUS, on="super",
        before="git submodule -q deinit -f sub; rm -rf .git/modules", open="modules that was not checked out yet"),
    Way("a repository whose .git leads to it: its configuration", "evil >> .bare/config", STATUS,
        before="mv .git .bare; echo 'gitdir: .bare' > .git"),
    Way("a worktree's .git", "evil_copy .git x; rm wt/.git; echo 'gitdir: ../x' > wt/.git", "cd wt; git status",
        before="git worktree add -q wt"),
    Way("a worktree's core.hooksPath, which is its repository's", "program wt/.githooks/pre-commit", "cd wt; " + COMMIT,
        before="git worktree add -q wt; mkdir wt/.githooks; git config core.hooksPath .githooks"),
    Way("a worktree's commondir", "evil_copy .git x; echo $G/x > .git/worktrees/tree/commondir", "cd ../tree; git status",
        before="git worktree add -q ../tree"),
    Way("a worktree's configuration", "evil >> .git/worktrees/tree/config.worktree", "cd ../tree; git status",
        before="git config extensions.worktreeConfig true; git worktree add -q ../tree"),
    Way("a new worktree's configuration", "git worktree add -q wt; evil >> .git/worktrees/wt/config.worktree", "cd wt; git status",
        before="git config extensions.worktreeConfig true"),
    Way("a new worktree's commondir", "git worktree add -q wt; evil_copy .git x; echo $G/x > .git/worktrees/wt/commondir", "cd wt; git status"),
    Way("a new worktree's .git", "git worktree add -q wt; evil_copy .git x; echo 'gitdir: ../x' > wt/.git", "cd wt; git status", open="the `.git` of a work tree that a call makes"),
    Way("a worktree that is the grant: its .git", "evil_copy copy x; rm .git; echo 'gitdir: x' > .git", "cd ../tree; git status",
        before="git worktree add -q ../tree; cp -a .git/. ../tree/copy", grants=("../tree",)),
    Way("a worktree that is the grant: core.hooksPath of its repository", "program .githooks/pre-commit", "cd ../tree; " + COMMIT,
        before="git worktree add -q ../tree; git config core.hooksPath .githooks; mkdir ../tree/.githooks", grants=("../tree",)),
    Way("a folder of the repository: its core.hooksPath", "program hooks/pre-commit", COMMIT,
        before="mkdir -p dir/hooks; git config core.hooksPath dir/hooks", grants=("dir",)),
    Way("a folder of the repository: a .git of its own", "git init -q . && evil >> .git/config", "cd dir; git status",
        before="mkdir dir", grants=("dir",)),
    Way("a folder of the repository: itself made a bare one", "git init -q x; bare x/.git", "cd dir; git status",
        before="mkdir dir", grants=("dir",)),
    Way("a repository below: its work tree made a bare one", "cd lib/r; bare .git; rm .git/HEAD", "cd lib/r; git status", on="nested"),
    Way("a repository below: its configuration", "evil >> lib/r/.git/config", "cd lib/r; git status", on="nested"),
    Way("a repository below: the folder around it renamed", "mv lib x; mkdir lib; cp -a x/r lib/r; evil >> lib/r/.git/config",
        "cd lib/r; git status", on="nested"),
    Way("a repository below: the folder around it exchanged", "cp -a lib x; evil >> x/r/.git/config; exchange x lib",
        "cd lib/r; git status", on="nested"),
    Way("a repository below: a folder around it removed", "cp -a lib x; evil >> x/r/.git/config; rm -rf lib; mv x lib",
        "cd lib/r; git status", on="nested"),
    Way("a bare repository that is a remote: its hooks", "program remote.git/hooks/pre-receive",
        "git push $G/remote.git HEAD:refs/heads/x", before="git init -q --bare remote.git"),
    Way("the folder at another place", "evil >> /w/.git/config", STATUS, grants=('{"from": "%s", "to": "/w"}',)),
    Way("the folder twice, once at another place", "evil >> /w/.git/config; evil >> .git/config", STATUS,
        grants=(".", '{"from": "%s", "to": "/w"}')),
    Way("the folder and one inside of it", "evil >> dir/.git/config", "cd dir; git status",
        before="mkdir dir; git init -q dir", grants=(".", "dir")),
]

PROJECT = [  # what editors and agents run when they open the folder
    Way(".envrc", "echo \"$PWN\" >> .envrc", "opens direnv", before="echo : > .envrc"),
    Way(".envrc, missing", "echo \"$PWN\" >> .envrc", "opens direnv"),
    Way(".envrc, missing, as a link", "echo \"$PWN\" >> x; ln -s x .envrc", "opens direnv"),
    Way(".envrc in a folder below", "echo \"$PWN\" >> dir/.envrc", "cd dir; opens direnv", before="mkdir dir; echo : > dir/.envrc"),
    Way(".vscode", "tasks > .vscode/tasks.json", "opens vscode", before="mkdir .vscode; echo '{}' > .vscode/settings.json"),
    Way(".vscode, missing", "mkdir .vscode; tasks > .vscode/tasks.json", "opens vscode"),
    Way(".vscode, missing, as a link", "mkdir x; tasks > x/tasks.json; ln -s x .vscode", "opens vscode"),
    Way(".vscode, missing, by a rename", "mkdir x; tasks > x/tasks.json; mv x .vscode", "opens vscode"),
    Way(".vscode renamed, and another in its place", "mv .vscode x; mkdir .vscode; tasks > .vscode/tasks.json", "opens vscode",
        before="mkdir .vscode"),
    Way(".vscode/tasks.json by another renamed over it", "tasks > x; mv -f x .vscode/tasks.json", "opens vscode",
        before="mkdir .vscode; tasks > .vscode/tasks.json; sed -i 's/touch/true/' .vscode/tasks.json"),
    Way(".idea", """mkdir -p .idea/runConfigurations
        echo "<c><option name='SCRIPT_TEXT' value='$PWN'/></c>" > .idea/runConfigurations/x.xml""", "opens idea", before="mkdir .idea"),
    Way(".claude", """printf '{"hooks": {"SessionStart": [{"hooks": [{"command": "%s"}]}]}}' "$PWN" > .claude/settings.json""",
        "opens claude", before="mkdir .claude; echo '{}' > .claude/settings.json"),
    Way(".claude, missing", """mkdir .claude
        printf '{"hooks": {"SessionStart": [{"hooks": [{"command": "%s"}]}]}}' "$PWN" > .claude/settings.json""", "opens claude"),
    Way(".cursor", "mcp > .cursor/mcp.json", "opens cursor", before="mkdir .cursor"),
    Way(".mcp.json", "mcp > .mcp.json", "opens mcp", before="echo '{\"mcpServers\": {}}' > .mcp.json"),
    Way(".mcp.json, missing", "mcp > .mcp.json", "opens mcp"),
    Way(".codex", "printf '[mcp_servers.x]\\ncommand = \"%s\"\\n' \"$PWN\" > .codex/config.toml", "opens codex", before="mkdir .codex"),
    Way(".devcontainer", "printf '{\"initializeCommand\": \"%s\"}' \"$PWN\" > .devcontainer/devcontainer.json", "opens devcontainer",
        before="mkdir .devcontainer"),
]


def at_home(name, cell, host, **options):
    return Way("a home: " + name, cell, f"export HOME=$G; unset GIT_CONFIG_GLOBAL; {host}", on="home", **options)


HOMES = [
    at_home(".bashrc", "echo \"$PWN\" >> .bashrc", "bash -ic true"),
    at_home(".bashrc that is a link", "echo \"$PWN\" >> dotfiles/bashrc", "bash -ic true",
            before="mkdir dotfiles; mv .bashrc dotfiles/bashrc; ln -s dotfiles/bashrc .bashrc"),
    at_home(".bashrc that is a link, and another in its place", "rm -f .bashrc; echo \"$PWN\" > .bashrc", "bash -ic true",
            before="mkdir dotfiles; mv .bashrc dotfiles/bashrc; ln -s dotfiles/bashrc .bashrc"),
    at_home(".bashrc that is a link to what lies elsewhere, and another in its place", "rm -f .bashrc; echo \"$PWN\" > .bashrc", "bash -ic true",
            before="mv .bashrc ../bashrc; ln -s ../bashrc .bashrc"),
    at_home(".local, missing, as a link", "program x/bin/tool; ln -s x .local", "bash -lc tool", before="rm -r .local"),
    at_home("by another name of it", "echo \"$PWN\" >> .bashrc", "bash -ic true", before="ln -s g ../h"),
    at_home(".bash_aliases, missing", "echo \"$PWN\" > .bash_aliases", "bash -ic true"),
    at_home(".bash_profile, missing", "echo \"$PWN\" > .bash_profile", "bash -lc true"),
    at_home(".profile", "echo \"$PWN\" >> .profile", "sh -lc true"),
    at_home(".zshrc", "echo \"$PWN\" >> .zshrc", "zsh -ic true", needs="zsh"),
    at_home(".zshenv, missing", "echo \"$PWN\" >> .zshenv", "zsh -c true", needs="zsh"),
    at_home(".config/fish/config.fish", "mkdir -p .config/fish; echo \"$PWN\" > .config/fish/config.fish", "fish -ic true", needs="fish"),
    at_home(".gitconfig", "evil >> .gitconfig", "cd ../repository; git status"),
    at_home(".config/git/config", "mkdir -p .config/git; evil >> .config/git/config", "cd ../repository; git status"),
    at_home(".ssh/config", "printf 'Match exec \"%s\"\\nUser x\\n' \"$PWN\" >> .ssh/config", 
            'as=; id -un > /dev/null 2>&1 || as="unshare -r"; $as ssh -F .ssh/config -G x', needs="ssh"),  # ssh wants its user to have a name
    at_home(".local/bin", "program .local/bin/tool", "bash -lc tool"),
    at_home(".local/bin, in a .local that is a link", "program .local/bin/tool", "bash -lc tool",
            before="mkdir dotfiles; mv .local dotfiles/local; ln -s dotfiles/local .local"),
    at_home(".local/bin, in a .local that is a link, and another in its place", "rm -f .local; program .local/bin/tool", "bash -lc tool",
            before="mkdir dotfiles; mv .local dotfiles/local; ln -s dotfiles/local .local"),
    at_home(".selected_editor, missing", "echo \"$PWN\" > .selected_editor", "sensible-editor x", needs="sensible-editor"),
    at_home(".lessfilter, missing", "program .lessfilter", "lesspipe .bashrc", needs="lesspipe"),
    at_home("bin, missing", "program bin/tool", "bash -lc tool"),
    at_home(".local/lib", """v=$(python3 -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
        mkdir -p .local/lib/$v/site-packages; printf 'import os; os.system("%s")\\n' "$PWN" > .local/lib/$v/site-packages/x.pth""",
            "python3 -c pass"),
]

NOT_HELD = [  # with what docs/security.md says of each
    Way("a new repository that the outer one takes as a gitlink", "git init -q n; (cd n; git commit -q --allow-empty -m x); git add n; evil >> n/.git/config",
        STATUS, open="takes it for a module"),
    Way("a new repository into which somebody changes", "git init -q n; evil >> n/.git/config", "cd n; git status", open="if somebody changes into it, with a work tree"),
    Way("a new bare repository into which somebody changes", "mkdir n; cd n; bare ../.git", "cd n; git status", open="or without"),
    Way("a name that is missing in a folder below", "echo \"$PWN\" > dir/.envrc", "cd dir; opens direnv", before="mkdir dir", open="names that are missing in other folders below"),
    Way("what an allowed .envrc sources", "echo \"$PWN\" >> env.sh", "opens direnv", before="echo 'source ./env.sh' > .envrc; touch env.sh", open="what an allowed `.envrc` sources"),
    Way("what a hook that is there runs", "echo \"$PWN\" >> check.sh", COMMIT, open="what a hook that is there runs",
        before="printf '#!/bin/sh\\n. ./check.sh\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; touch check.sh"),
    Way("a filter of the user's own configuration", "echo 'a filter=own' > .gitattributes; echo \"$PWN; cat\" > clean; touch a", STATUS,
        before="git config -f ../gitconfig filter.own.clean 'sh ./clean'; echo cat > clean", open="or the user's own, names"),
    Way("a program of the work tree that the repository's configuration names", "echo \"$PWN\" >> tool", STATUS, open="programs of the work tree that a repository's configuration",
        before="git config core.fsmonitor 'sh ./tool #'; touch tool"),
    Way("a file of the work tree that the user's own configuration includes", "evil >> team", STATUS, open="files of the work tree that the user's own configuration includes",
        before="git config -f ../gitconfig include.path $G/team; echo '[x]' > team"),
    Way("another name of the configuration that the host gave it", "evil >> x", STATUS, before="ln .git/config x", open="another name (a hard link) of a protected file"),
    Way("a rebase that goes on", "echo \"exec $PWN\" >> .git/rebase-merge/git-rebase-todo", "git rebase --continue",
        before="GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -i HEAD~1", open="`git rebase --continue`"),
    Way("a name that no git would put into an index", """program x; python3 -c 'import hashlib, struct, subprocess
index = open(".git/index", "rb").read()[:-20]
name, blob = b".git/hooks/post-checkout", subprocess.run(["git", "hash-object", "-w", "x"], stdout=subprocess.PIPE).stdout.decode()
entry = struct.pack(">10I", *6 * [0], 0o100755, 0, 0, 0) + bytes.fromhex(blob) + struct.pack(">H", len(name)) + name
entry += bytes(8 - len(entry) % 8)
index = struct.pack(">4sII", b"DIRC", 2, struct.unpack(">I", index[8:12])[0] + 1) + entry + index[12:]
open(".git/index", "wb").write(index + hashlib.sha1(index).digest())'""", "git checkout -- .", open="`git checkout -- .`"),
]

WAYS = [*KEYS, *PLACES, *HOOKS, *OTHERS, *PROJECT, *HOMES, *NOT_HELD]


def script(cwd, text, env):
    """Runs a script on the host."""
    return subprocess.run(["timeout", "20", "sh", "-c", PRELUDE + text], cwd=cwd, env=env, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode(errors="replace")


@functools.lru_cache(maxsize=None)
def templates():
    """A folder of what ways are gone on, as long as this runs."""
    place = tempfile.mkdtemp(prefix="test-")
    atexit.register(shutil.rmtree, place)
    os.chmod(place, 0o755)
    os.makedirs(place + "/hooks/hooks"), os.mkdir(place + "/hooks/info")
    pathlib.Path(place, "hooks/hooks/update.sample").write_text("#!/bin/sh\n")
    output = script(place, """set -e
        git config --global init.defaultBranch main; git config --global init.templateDir $PWD/hooks
        git config --global protocol.file.allow always
        git init -q repository; cd repository; echo 1 > a; echo 1 > b; git add .; git commit -qm 1; echo 2 >> b; git commit -qam 2
        git checkout -qb other HEAD~1; echo 3 >> a; git commit -qam 3; git checkout -q main; echo 4 > a; git commit -qam 4; cd ..
        git init -q s; (cd s; echo s > s; git add s; git commit -qm s)
        cp -a repository super; (cd super; git submodule -q add ../s sub; git commit -qm sub)
        cp -a repository nested; mkdir nested/lib; cp -a repository nested/lib/r
        mkdir -p home/.ssh home/.config home/.local/bin; cd home; touch .zshrc .gitconfig .ssh/config
        echo '[ ! -f ~/.bash_aliases ] || . ~/.bash_aliases' > .bashrc
        echo 'for d in ~/bin ~/.local/bin; do [ ! -d $d ] || PATH=$d:$PATH; done' > .profile""",
                    {"PATH": os.environ["PATH"], "HOME": place, **GIT})
    check_equal(output, "", "while the templates are made")
    return place


def in_cell(place, ways, flags, **options):
    """The cell's parts of the ways with these numbers, and what each said."""
    text, grants = PRELUDE, []
    for number, way in ways.items():
        path, other = f"{place}/{number}/g", f"/w{number}"
        for grant in way.grants:
            grants += ["--write", grant.replace("%s", path).replace("/w", other) if grant[0] == "{" else os.path.normpath(f"{path}/{grant}")]
        cwd = next((f"{path}/{grant}" for grant in way.grants if grant[0] != "{"), "/")
        text += (f"echo; echo == {number}; (G={path}; PWN='touch {place}/marks/{number}'; export G PWN; cd {cwd}\n"
                 f"{way.cell.replace('/w/', other + '/')}\n) </dev/null 2>&1\n")
    call = vitro("run", "--json", *flags, *grants, *itertools.chain(*(("--env", f"{k}={v}") for k, v in GIT.items())),
                 "--", "/bin/sh", "-c", text + "exit 0", **options)
    check_equal(call.json["exit_code"], 0, "the call", call)
    check_equal(os.listdir(place + "/marks"), [], "marks that the cell made")
    return dict(zip(ways, call.json["stdout"].split("\n== ")[1:]))


class Gone:
    """What came of all ways, each gone once."""

    def __init__(self, flags):
        self.fired, self.said = set(), {}
        ways = {number: way for number, way in enumerate(WAYS) if shutil.which(way.needs)}
        with folder() as place, futures.ThreadPoolExecutor(4) as pool:
            os.mkdir(place + "/marks")
            for number, way in ways.items():
                os.mkdir(f"{place}/{number}")
                for name in {way.on, "repository"}:
                    shutil.copytree(f"{templates()}/{name}", f"{place}/{number}/{'g' if name == way.on else name}", symlinks=True)
                shutil.copy(templates() + "/.gitconfig", f"{place}/{number}/gitconfig")

            def on_host(part):
                def go(number):
                    env = {"PATH": os.environ["PATH"], "HOME": templates(), "GIT_CONFIG_GLOBAL": f"{place}/{number}/gitconfig", **GIT,
                           "G": f"{place}/{number}/g", "PWN": f"touch {place}/marks/{number}", "OPENS": f"{sys.executable} {OPENS}", "TERM": "dumb"}
                    return script(env["G"], getattr(ways[number], part), env)

                return dict(zip(ways, pool.map(go, ways)))

            befores = on_host("before")
            cells = in_cell(place, {n: way for n, way in ways.items() if way.on != "home"}, flags)
            for said in pool.map(lambda n: in_cell(place, {n: ways[n]}, flags, leaks=False, env={**os.environ, "HOME": next(
                f"{place}/{n}/{name}" for name in "hg" if os.path.exists(f"{place}/{n}/{name}"))}),
                                 [n for n, way in ways.items() if way.on == "home"]):  # a home is its caller's
                cells.update(said)
            hosts = on_host("host")
            for number, way in ways.items():
                self.said[way.name] = f"before: {befores[number]}\ncell: {cells[number]}\nhost: {hosts[number]}"
                if os.path.exists(f"{place}/marks/{number}"):
                    self.fired.add(way.name)


@functools.lru_cache(maxsize=None)
def try_all(*flags):
    try:
        return Gone(flags)
    except Failed as failure:  # once is enough, for each way to fail by it
        return failure


def gone(*flags):
    need_held({"files": "mountns"})
    tried = try_all(*flags)
    if isinstance(tried, Failed):
        raise tried
    return tried


@test("all ways are gone without protection", needs=["git", "script"])
def _():
    check(gone("--protect", "none").fired, "not one leads to the host")


@test("all ways are gone with protection", needs=["git", "script"])
def _():
    check(gone().said, "not one was gone")


def register(way):
    @test(("not held: " if way.open else "held: ") + way.name, needs=[way.needs, "script"])
    def _():
        bare = gone("--protect", "none")
        check(way.name in bare.fired, f"without protection nothing was run\n{bare.said[way.name]}")
        held = gone()
        if way.open:
            check(way.name in held.fired, f"it is held, and the documents say that it is not\n{held.said[way.name]}")
        else:
            check(way.name not in held.fired, f"the host ran it\n{held.said[way.name]}")


# Of what else docs/security.md names as not held: python/protect has pools; other tests here, and none, the rest.
BESIDES = ["in a pool, what the host adds", "a name that the host replaces during a call", "two calls at once", "what the host itself makes"]


@test("what is not held is what docs/security.md says, no more and no less")
def _():
    text = pathlib.Path(__file__).parents[2].joinpath("docs", "security.md").read_text()
    text = text.split("### Names that programs of the host run")[1].split("\nNot held:\n")[1].split("\n\n")[0]
    items, said = [" ".join(item.split()) for item in ("\n" + text).split("\n- ")[1:]], [*(way.open for way in WAYS if way.open), *BESIDES]
    check_equal([each for each in said if not any(each in item for item in items)], [], "not in the page")
    check_equal([item for item in items if not any(each in item for each in said)], [], "not in the tests")


# ---- git's daily work ---------------------------------------------------------------------------------------------------

# In a repository "g" with a submodule, whose remote lies beside it. Each line is a step, and fails where it fails on the host.
DAILY = r"""
git status -s; echo n > n; git add n; git commit -qm n
git checkout -q -b topic; echo t >> b; git commit -qam t; git checkout -q main; git branch copy; git branch -D copy
echo m > m; git add m; git commit -qm m; git merge -q -m merge topic
git checkout -q -b rebased HEAD~1; echo r > r; git add r; git commit -qm r; git rebase -q main; git checkout -q main
git rebase -q -i --exec true HEAD~2
git checkout -q other; git rebase main || { echo 5 > a; git add a; git rebase --continue; }
git checkout -q main; git cherry-pick rebased; git revert --no-edit HEAD; git commit -q --amend -m amended
echo s >> a; git stash -q; git stash apply -q; git stash -q; git stash drop -q
git mv m moved; git rm -q r || git status -s; git commit -qm moved; echo x > x; git clean -qf; git restore a
git tag light; git tag -a -m heavy heavy; git tag -d light; git notes add -m note
git format-patch -q -1 -o ../p; git reset -q --hard HEAD~1; git am -q ../p/*
git bisect start HEAD HEAD~3; git bisect run true; git bisect reset
git worktree add -q -b w wt; cd wt; echo w > w; git add w; git commit -qm w; cd ..
git worktree add -q --detach gone; git worktree remove gone; git worktree prune; git worktree list | wc -l
git fetch -q origin; git push -q origin main topic; git push -q origin :topic; git pull -q --no-rebase origin main
cd sub; echo s >> s; git commit -qam s2; git push -q origin HEAD:refs/heads/mine; cd ..; git add sub; git commit -qm sub
git submodule status --cached; cd sub; git checkout -q HEAD~1; git switch -q -; cd ..; git submodule foreach git status
git init -q -b main elsewhere; cd elsewhere; echo e > e; git add e; git commit -qm e; git config x.y z; cd ..
git clone -q ../remote.git cloned; cd cloned; git checkout -q -b c; git remote add second ../../remote.git; git fetch -q second; cd ..
git pack-refs --all; git repack -adq; git gc -q --prune=now; git fsck --strict; git reflog expire --all; git update-index --refresh
"""
# What is left of it: every ref, what is staged, and what is in the work tree.
LEFT = """for d in g g/wt g/sub g/elsewhere g/cloned remote.git; do cd $W/$d; echo $d; git for-each-ref; git rev-parse HEAD
git ls-files -s; git status -s; git stash list; git fsck; done; cat $W/g/.git/config $W/g/.git/modules/sub/config"""


def work_place(place, name):
    """A repository for such work, and its remote."""
    path = f"{place}/{name}"
    os.mkdir(path)
    env = {"PATH": os.environ["PATH"], "HOME": templates(), "W": path, **GIT}
    output = script(path, f"""set -e; git init -q --bare remote.git; git init -q --bare s.git
        cp -a {templates()}/super g; cd g; git remote add origin ../remote.git; git push -q origin main other
        cd sub; git push -q ../../s.git HEAD:refs/heads/main; git config remote.origin.url $W/s.git""", env)
    check_equal(output, "", "while the repository is made")
    return path, env


@test("git's daily work in a granted folder: the same commits, refs and files as without a cell", needs=["git"])
def _():
    need_held({"files": "mountns"})
    with folder() as place:
        steps = "".join(f"said=$(sh -exc {shlex.quote(step)} 2>&1 </dev/null) || echo \"$said\"\n" for step in DAILY.strip().splitlines())
        (bare, env), (mine, cell_env) = work_place(place, "bare"), work_place(place, "mine")
        said = script(bare + "/g", steps, env)
        check_equal(said, "", "the control")
        call = vitro("run", "--write", mine, "--cwd", mine + "/g", *itertools.chain(*(("--env", f"{k}={v}") for k, v in GIT.items())),
                     "--env", "W=" + mine, "--", "/bin/sh", "-c", steps)
        check_equal((call.code, call.out, call.err), (0, "", ""), "in a cell", call)
        want, got = script(bare, LEFT, env), script(mine, LEFT, cell_env)
        check_in("refs/heads/rebased", want, "refs of the control")
        check_equal(got.replace(mine, bare), want, "what is left")


# ---- what is set apart, and what is told ----------------------------------------------------------------------------------


@contextlib.contextmanager
def granted():
    """A repository to grant, with a .vscode and without what else is protected."""
    need_held({"files": "mountns"})
    with folder() as place:
        shutil.copytree(templates() + "/repository", place + "/g", symlinks=True)
        write(place + "/g/.vscode/settings.json", "{}")
        yield place + "/g"


def in_grant(grant, text, *flags, **options):
    return vitro("run", "--json", "--write", grant, "--cwd", grant, *flags, "--", "/bin/sh", "-c", text, **options)


def set_apart(call):
    """What the result says of it: the name at the grant's root → what it is called now."""
    return {os.path.basename(each["path"]): each["to"] for each in call.json.get("protected", {}).get("set_apart", [])}


@test("what is made anew under a protected name is set apart: whole, told in the result and on the terminal, and so once")
def _():
    with granted() as g:
        text = "echo one > .envrc; mkdir .claude; echo two > .claude/settings.json; ln -s a .mcp.json; echo >> a; mkdir dir; echo > dir/x"
        call = in_grant(g, text)
        moved = set_apart(call)
        check_equal(sorted(moved), [".claude", ".envrc", ".mcp.json"], "what is set apart", call)
        for name, to in moved.items():
            check_equal((os.path.lexists(f"{g}/{name}"), os.path.lexists(to), os.path.dirname(to)), (False, True, g), name, call)
            check_in(name + ".vitro-", to, "the name", call)
        check_equal(pathlib.Path(moved[".envrc"]).read_text(), "one\n", "its text")
        check_equal(pathlib.Path(moved[".claude"], "settings.json").read_text(), "two\n", "a folder's")
        check_equal(os.readlink(moved[".mcp.json"]), "a", "a link's")
        lines = [line for line in call.err.splitlines() if ".vitro-" in line]
        check_equal([sum(f"/{name}" in line for line in lines) for name in sorted(moved)], [1, 1, 1], "lines that tell of each", call)
        call = in_grant(g, "echo >> a; echo new > file")
        check_equal(("protected" in call.json, call.err), (False, ""), "of a call that makes none", call)


@test("what is made under a protected name does not stay by being hard to move", needs=["mkfifo"])
def _():
    hard = {
        "its folder may not be written to": "echo > .envrc; chmod 555 .",
        "its folder may not even be searched": "echo > .envrc; chmod 000 .",
        "it is a folder that may not": "mkdir -p .claude/x; echo > .claude/settings.json; chmod 000 .claude/x .claude",
        "it is a pipe": "mkfifo .envrc",
        "it has a second name": "echo > .envrc; ln .envrc x",
        "it is made last, by a process that goes on": "(sleep 0.3; echo > .envrc) & sleep 0.2",
        "it is made in a storm": "i=0; while [ $i -lt 200 ]; do echo > .envrc; mv .envrc x; i=$((i+1)); done; echo > .envrc",
        "names like those it could get are taken": "i=0; while [ $i -lt 300 ]; do mkdir .envrc.vitro-$i; i=$((i+1)); done; echo > .envrc",
    }
    for what, text in hard.items():
        with granted() as g:
            call = in_grant(g, text)
            os.chmod(g, 0o755)
            check(not os.path.lexists(g + "/.envrc"), f"{what}: .envrc is still there\n{call}")
            check(not os.path.lexists(g + "/.claude"), f"{what}: .claude is still there\n{call}")
            if "sleep" not in text:
                check_equal(len(set_apart(call)), 1, what, call)


@test("what is made is set apart whatever ends the call")
def _():
    ends = {"sleep 9": ["--timeout", "300ms"], "python3 -c \"x = 'x' * 10 ** 9\"": ["--memory", "64M"], "kill -9 $$": [], "kill -9 -1": [], "exit 7": []}
    for end, flags in ends.items():
        with granted() as g:
            call = in_grant(g, "echo > .envrc; " + end, *flags)
            check_equal((os.path.lexists(g + "/.envrc"), sorted(set_apart(call))), (False, [".envrc"]), end, call)
    with granted() as g:  # the caller's end
        with vitro_started("run", "--write", g, "--cwd", g, "--", "/bin/sh", "-c", "echo > .envrc; echo > made; sleep 20") as (process, _):
            wait_until(lambda: os.path.exists(g + "/made"), 10, "the cell has made it")
            process.send_signal(signal.SIGTERM)
            process.wait()
        check(not os.path.lexists(g + "/.envrc"), "it is there after a SIGTERM")


@test("two calls at once in one folder: when both have ended, nothing that either made is live")
def _():
    for first, second in (("echo > .envrc", "sleep 0.6; echo > .envrc; echo > .mcp.json"),
                          ("echo > .envrc; sleep 0.6; echo > .claude", "echo > .mcp.json"),
                          ("while :; do echo > .envrc; done", "i=0; while [ $i -lt 500 ]; do mv .envrc x; mkdir .claude; mv .claude x$i; i=$((i+1)); done")):
        with granted() as g, futures.ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(in_grant, g, text, "--timeout", "2s", leaks=False) for text in (first, second)]
            calls = [call.result() for call in calls]
            left = [name for name in (".envrc", ".mcp.json", ".claude") if os.path.lexists(f"{g}/{name}")]
            check_equal(left, [], f"{first} | {second}: left\n{calls[0]}\n{calls[1]}")


# What a call leaves so that fewer names are looked for, or kept, in the next.
CROWDS = {
    "folders": "import os\nfor i in range(3000): os.mkdir(f'n{i}')",
    "folders in each other": "import os\nfor i in range(300):\n    os.mkdir('n')\n    os.chdir('n')",
    "repositories": "import os\nfor i in range(300): os.makedirs(f'n{i}/.git/hooks')",
    "folders of editors": "import os\nfor i in range(2000): os.makedirs(f'n{i}/.vscode')",
    "closed folders": "import os\nfor name in ('etc', 'lib', '.git', '.'): os.chmod(name, 0)",
    "a large configuration": "import os\nos.makedirs('n/.git')\nwith open('n/.git/config', 'w') as file: file.write('[x]\\n' * 200000)",
    "configurations that include what takes long to find": """import os
os.mkdir('n')
for i in range(30): os.symlink(f'l{i + 1}', f'n/l{i}')
for i in range(20):
    os.makedirs(f'n{i}/.git')
    with open(f'n{i}/.git/config', 'w') as file: file.write('[include]\\n' + 'path=../../n/l0\\n' * 4000)""",
    "configurations that include each other": """import os
for i in range(40):
    os.makedirs(f'n{i}/.git')
    with open(f'n{i}/.git/config', 'w') as file: file.write(''.join(f'[include]\\npath = ../../n{j}/.git/config\\n' for j in range(40)))""",
}


def register_crowd(what, text):
    @test("what one call leaves takes nothing from the next one's protection, but of another repository, where it is told: " + what, needs=["git"])
    def _():
        with granted() as g:
            shutil.rmtree(g)
            shutil.copytree(templates() + "/nested", g, symlinks=True)
            run(["git", "-C", g, "config", "include.path", "../etc/team"])
            write(g + "/etc/team", "[x]\n")
            call = vitro("run", "--write", g, "--cwd", g, "--", "/usr/bin/python3", "-c", text)
            check_equal((call.code, call.out), (0, ""), what, call)
            names = [".git/config", "etc/team", "lib/r/.git/config"]
            attack = """chmod 755 . lib .git etc; mv etc x && mkdir etc; mv lib y && mkdir -p lib/r/.git; mv .git z && mkdir .git
                for f in .git/config etc/team lib/r/.git/config; do echo '[evil]' >> $f; done"""
            start = time.monotonic()
            call = in_grant(g, attack)
            check(time.monotonic() - start < 20, f"{what}: the next call takes {time.monotonic() - start:.1f} s")
            run(["chmod", "-R", "u+rwX", g])
            changed = [name for name in names if "evil" in pathlib.Path(g, name).read_text()]
            told = vitro("explain", "--write", g).out if changed else ""
            check(not changed or changed == names[2:] and "looked" in told, f"{what}: {changed} are changed, and what is told is {told}\n{call}")


for each in CROWDS.items():
    register_crowd(*each)

# The same, of the repository at the root: what is made, and where. A control: nothing is.
CROWDS_AT_HOME = {"nothing": (0, "x"), "modules": (700, ".git/modules"), "work trees": (700, ".git/worktrees"), "folders": (3000, ".")}


@test("what one call leaves takes nothing from the next one's protection of the repository at the root, or of where its .git leads", needs=["git"])
def _():
    for what, (count, where) in CROWDS_AT_HOME.items():
        for names in (("etc/two", ".git/modules/sub/config"), (".bare/config", ".bare/hooks/post-checkout")):
            with granted() as g:
                shutil.rmtree(g)
                shutil.copytree(templates() + "/super", g, symlinks=True)
                if names[0] == "etc/two":
                    run(["git", "-C", g, "config", "include.path", "../etc/one"])
                    write(g + "/etc/one", "[include]\npath = two\n"), write(g + "/etc/two", "[x]\n")
                else:
                    os.rename(g + "/.git", g + "/.bare")
                    write(g + "/.git", "gitdir: .bare\n")
                    if not os.path.exists(f"{g}/.bare/hooks/post-checkout"):
                        write(g + "/.bare/hooks/post-checkout", "#!/bin/sh\n")
                before = [pathlib.Path(g, name).read_text() for name in names]
                place = where.replace(".git", ".bare") if ".bare" in names[0] else where
                text = f"import os\nfor i in range({count}): os.makedirs('{place}/0%d' % i)"
                vitro("run", "--write", g, "--cwd", g, "--", "/usr/bin/python3", "-c", text)
                call = in_grant(g, f"for f in {' '.join(names)}; do echo '[evil]' >> $f; done")
                after = [pathlib.Path(g, name).read_text() for name in names]
                check_equal(after, before, f"{what}: {names}", call)


@test("what a call closes while another one is planned stays as it is in that, or that one is refused", needs=["git"])
def _():
    names = [".git/modules/sub/config", "etc/team", "lib/r/.git/config"]
    for closed in ("/", ".git", ".git/modules", ".git/modules/sub", "lib", "lib/r", "etc"):
        with granted() as g:
            shutil.rmtree(g)
            shutil.copytree(templates() + "/super", g, symlinks=True)
            shutil.copytree(templates() + "/repository", g + "/lib/r", symlinks=True)
            run(["git", "-C", g, "config", "include.path", "../etc/team"])
            write(g + "/etc/team", "[x]\n")
            text = f"{'true' if closed == '/' else 'chmod 0 ' + closed}; echo > made; while [ ! -e go ]; do sleep 0.02; done"
            with vitro_started("run", "--write", g, "--cwd", g, "--", "/bin/sh", "-c", text) as (process, _):
                wait_until(lambda: os.path.exists(g + "/made"), 10, "the first call runs")
                call = vitro("run", "--write", g, "--cwd", g, "--", "/bin/sh", "-c", f"""for d in .git .git/modules .git/modules/sub lib lib/r etc; do chmod 755 $d; done
                    for f in {' '.join(names)}; do echo '[evil]' >> $f; done; exit 0""", leaks=False)
                write(g + "/go", ""), process.wait()
            run(["chmod", "-R", "u+rwx", g])
            check_equal([name for name in names if "evil" in pathlib.Path(g, name).read_text()], [], f"{closed} is closed: changed", call)


@test("where a call's configuration leads is not opened unless it is a file, and takes the next call's plan bounded time", needs=["git", "mkfifo"])
def _():
    with granted() as g:
        pipe = os.path.dirname(g) + "/pipe"
        os.mkfifo(pipe)
        text = f"""import os
os.makedirs('n/.git'), os.makedirs('m/.git/hooks'), os.chdir('n/.git')
open('config', 'w').write('[include]\\npath = {pipe}\\n')
os.chdir('../../m/.git')
for i in range(38): os.symlink('./' * 2030 + f'l{{i + 1}}', f'l{{i}}')
open('l38', 'w').close()
open('config', 'w').write('[include]\\n' + 'path = l0\\n' * 6000)
for i in range(64): os.symlink('../l0', f'hooks/{{i}}')"""
        call = vitro("run", "--write", g, "--cwd", g, "--", "/usr/bin/python3", "-c", text)
        check_equal(call.code, 0, "the call", call)
        with subprocess.Popen(["/bin/sh", "-c", f"echo text > {pipe}"]) as writer, contextlib.ExitStack() as stack:
            stack.callback(writer.kill)
            start = time.monotonic()
            told = vitro("explain", "--write", g, leaks=False).out
            check(time.monotonic() - start < 20, f"the next plan takes {time.monotonic() - start:.1f} s")
            check_in("more links", told, "what explain tells")
            check_equal(writer.poll(), None, "the end of who writes to the pipe")
            check_equal(pathlib.Path(pipe).read_text(), "text\n", "what is in the pipe")


@test("what is there by the host's own hand stays: before a call, and what it says of a name that the host replaced meanwhile")
def _():
    with granted() as g:
        write(g + "/.envrc", "host\n")
        call = in_grant(g, "cat .envrc .vscode/settings.json; echo >> .envrc; rm -f .envrc; mv .envrc x; echo > .vscode/x")
        check_equal((call.json["stdout"], set_apart(call), pathlib.Path(g, ".envrc").read_text()), ("host\n{}", {}, "host\n"), "after the call", call)
        with vitro_started("run", "--json", "--write", g, "--cwd", g, "--", "/bin/sh", "-c",
                           "echo > made; while [ ! -e go ]; do sleep 0.05; done", stdout=subprocess.PIPE) as (process, _):
            wait_until(lambda: os.path.exists(g + "/made"), 10, "the cell runs")
            run(["git", "-C", g, "config", "user.name", "new"])
            write(g + "/go", "")
            result = json.loads(process.communicate(timeout=20)[0])
        check_equal(result.get("protected"), {"replaced": [g + "/.git/config"]}, "what the result says of the host's git config")
        check_in("name = new", pathlib.Path(g, ".git/config").read_text(), "the host's word")


@test("--protect adds a name, --write of a name itself opens it, --protect none and files.protect: [] open all")
def _():
    text = "for f in package.json .vscode/x .envrc .git/config; do echo >> $f; done; echo > ci/run.sh; mkdir -p lib; echo > lib/package.json"
    flags = {  # to what the call leaves changed, at names that are there or missing
        (): ["package.json", "ci/run.sh", "lib/package.json"],
        ("--protect", "package.json"): ["ci/run.sh", "lib/package.json"],
        ("--protect", "package.json", "--protect", "ci/run.sh"): ["lib/package.json"],
        ("--protect", "none"): ["package.json", ".vscode/x", ".envrc", ".git/config", "ci/run.sh", "lib/package.json"],
        ("--set", "files.protect=[]"): ["package.json", ".vscode/x", ".envrc", ".git/config", "ci/run.sh", "lib/package.json"],
        ("--write", "{g}/.vscode"): ["package.json", ".vscode/x", "ci/run.sh", "lib/package.json"],
        ("--read", "{g}/ci"): ["package.json", "lib/package.json"],
    }
    for given, want in flags.items():
        with granted() as g:
            write(g + "/ci/run.sh", "host\n")
            write(g + "/package.json", "{}\n")
            names = ["package.json", ".vscode/x", ".envrc", ".git/config", "ci/run.sh", "lib/package.json"]

            def texts():
                return {name: pathlib.Path(g, name).read_text() if os.path.exists(f"{g}/{name}") else None for name in names}

            before = texts()
            call = in_grant(g, text, *(flag.replace("{g}", g) for flag in given))
            after = texts()
            check_equal([name for name in names if before[name] != after[name]], want, f"{given}: changed", call)


@test("what lies outside of the grant is not moved, though a call puts a link in place of a folder of names", needs=["git"])
def _():
    with granted() as g:
        outside = write(os.path.dirname(g) + "/outside/.envrc", "host\n")
        os.mkdir(g + "/sub")

        def waiting(text, name):
            return vitro_started("run", "--write", g, "--cwd", g, "--", "/bin/sh", "-c", f"echo > {name}; while [ ! -e go-{name} ]; do sleep 0.02; done; {text}")

        with waiting(f"mv sub x; ln -s {os.path.dirname(outside)} sub", "one") as (one, _):
            wait_until(lambda: os.path.exists(g + "/one"), 10, "the first call runs")
            run(["git", "init", "-q", g + "/sub"])  # from here on it is a folder of names
            with waiting("", "two") as (two, _):
                wait_until(lambda: os.path.exists(g + "/two"), 10, "the second call runs")
                write(g + "/go-one", ""), one.wait()
                check(os.path.islink(g + "/sub"), "there is no link in its place")
                write(g + "/go-two", ""), two.wait()
        check_equal(os.listdir(os.path.dirname(outside)), [".envrc"], "what lies outside")


# What git cannot do, in a repository with a submodule, and another one below lib/: the command, and the name that the hint has.
REFUSED = {
    "git config x.y z": ".git/config",
    "git remote add more ../more.git": ".git/config",
    "git branch -m other renamed": ".git/config",
    "git submodule update --init": ".git/config",
    "cd sub; git checkout -q HEAD~1; cd ..; git submodule update": ".git/modules/sub/config",
    "mv lib moved": "lib",
    "mkdir d; mv lib/r d": "lib/r",
    "ln lib/r/a here": "lib/r",
    "echo '#!/bin/sh' > .git/hooks/pre-commit": ".git/hooks",
    "echo >> .vscode/settings.json": ".vscode",
}


@test("a call that leaves more names than can be kept does not have the next one refused")
def _():
    make = "import os\nfor i in range(900):\n    os.makedirs(f'p/a/b/c/d/e/f/g/h/i/j/k/l/m/n/{i}/.vscode')"
    with folder(writable=True) as place:
        check_equal(vitro("run", "--write", place, "--cwd", place, "--", "/usr/bin/python3", "-c", make).code, 0, "the call")
        done = vitro("run", "--write", place, "--", "/bin/sh", "-c", f"echo > {place}/p/a/b/c/d/e/f/g/h/i/j/k/l/m/n/7/.vscode/x")
        check_in("Read-only file system", done.err, "the next call runs, and these names are kept", done)


@test("what git cannot do in such a folder fails with an error, and the hint names the key", needs=["git"])
def _():
    with granted() as g:
        for text, name in REFUSED.items():
            shutil.rmtree(g)
            shutil.copytree(templates() + "/super", g, symlinks=True)
            shutil.copytree(templates() + "/repository", g + "/lib/r", symlinks=True)
            if "--init" in text:
                run(["git", "-C", g, "submodule", "deinit", "-f", "sub"])
            write(g + "/.vscode/settings.json", "{}")
            call = vitro("run", "--write", g, "--cwd", g, "--env", "GIT_CONFIG_COUNT=1", "--env", "GIT_CONFIG_KEY_0=protocol.file.allow",
                         "--env", "GIT_CONFIG_VALUE_0=always", "--", "/bin/sh", "-c", text)
            check(call.code not in (0, 125), f"{text}: it is done\n{call}")
            check_in("files.protect", call.err, f"{text}: the hint", call)
            check_in(name, call.err, f"{text}: the name", call)


for each in WAYS:
    register(each)

if __name__ == "__main__":
    main()
