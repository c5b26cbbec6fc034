#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Completions, typed into the shells themselves: what the command line becomes, and what is offered."""

import contextlib
import fcntl
import os
import re
import select
import struct
import sys
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BINARY, check, check_equal, folder, main, open_terminal, run, started, test, wait_until,
                       write)

COMPLETIONS = os.path.join(os.path.dirname(os.path.abspath(BINARY)), "completions")
READY = "ready-for-input> "

# What starts a shell with nothing of its user's, its completion, and a vitro that writes its arguments down.
BASH = f"""
PS1='{READY}'
source '{COMPLETIONS}/vitro'
bind 'set completion-query-items 0' 'set page-completions off' 'set enable-bracketed-paste off'
vitro() {{ printf '%s\\0' "$@" >"$ARGUMENTS.part"; mv "$ARGUMENTS.part" "$ARGUMENTS"; }}
"""
ZSH = f"""
PS1='{READY}' LISTMAX=100000
fpath=('{COMPLETIONS}' $fpath)
autoload -Uz compinit
compinit -u -D
unset zle_bracketed_paste
vitro() {{ printf '%s\\0' "$@" >"$ARGUMENTS.part"; mv "$ARGUMENTS.part" "$ARGUMENTS"; }}
"""
FISH = f"""
function fish_prompt; echo -n '{READY}'; end
function fish_right_prompt; end
set fish_greeting
set fish_autosuggestion_enabled 0
source '{COMPLETIONS}/vitro.fish'
function vitro; printf '%s\\0' $argv >"$ARGUMENTS.part"; mv "$ARGUMENTS.part" "$ARGUMENTS"; end
"""
SHELLS = {
    "bash": (".bashrc", BASH, ["bash", "--noprofile", "-i"]),
    "zsh": (".zshrc", ZSH, ["zsh", "-d", "-i"]),
    "fish": (".config/fish/config.fish", FISH, ["fish", "-i"]),
}


class Typist:
    """A shell on a terminal of its own, in a folder, and what it has shown so far."""

    def __init__(self, terminal, place, home):
        self.terminal, self.place, self.bytes = terminal, place, b""
        self.arguments = home + "/arguments"

    def read(self, seconds):
        if select.select([self.terminal], [], [], seconds)[0]:
            with contextlib.suppress(OSError):
                self.bytes += os.read(self.terminal, 65536)

    @property
    def shown(self):
        """The text, without what moves the cursor or colours it."""
        text = self.bytes.decode(errors="replace")
        return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|\(B|[=>])", "", text)

    def wait_for(self, text, seconds=10):
        end = time.monotonic() + seconds
        while text not in self.shown:
            check(time.monotonic() < end, lambda: f"no {text!r} on the screen: {self.shown!r}")
            self.read(0.1)

    def type(self, keys):
        os.write(self.terminal, keys.encode())

    def complete(self, line):
        """The arguments that vitro gets when TAB is pressed at the end of the line, then return."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.arguments)
        self.bytes = b""
        self.type(line + "\t\r")

        def given():
            self.read(0.01)
            return os.path.exists(self.arguments)

        wait_until(given, 10, f"{line!r} is run; the screen: {self.shown!r}")
        with open(self.arguments, encoding="utf-8") as file:
            arguments = file.read().split("\0")[:-1]
        self.wait_for(READY)
        return arguments


@contextlib.contextmanager
def typing(shell):
    """A shell to type into, in a folder with a few files of awkward names."""
    start, text, command = SHELLS[shell]
    with folder() as home, folder() as place:
        write(f"{home}/{start}", text)
        os.makedirs(f"{place}/a folder/inner")
        write(f"{place}/a folder/a note", "x")
        write(f"{place}/plain.json", "{}")
        write(f"{place}/it's odd", "x")
        main_end, shell_end = open_terminal()
        fcntl.ioctl(shell_end, termios.TIOCSWINSZ, struct.pack("HHHH", 200, 200, 0, 0))
        if shell == "bash":
            command = [*command[:-1], "--rcfile", f"{home}/{start}", "-i"]
        env = {"HOME": home, "ZDOTDIR": home, "XDG_CONFIG_HOME": home + "/.config",
               "PATH": os.environ["PATH"], "TERM": "xterm", "LC_ALL": "C.UTF-8",
               "ARGUMENTS": home + "/arguments", "ONLY_HERE": "1"}
        with started(command, stdin=shell_end, stdout=shell_end, stderr=shell_end, cwd=place, env=env,
                     preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)):
            os.close(shell_end)
            typist = Typist(main_end, place, home)
            try:
                typist.wait_for(READY)
                yield typist
            finally:
                os.close(main_end)


def offers(shell, line, words):
    """Fails unless the words are on the screen after TAB at the end of the line; what is there."""
    with typing(shell) as typist:
        typist.bytes = b""
        typist.type(line + ("\t\t" if shell == "bash" else "\t"))
        for word in words:
            typist.wait_for(word)
        return typist.shown


def flags_of(verb):
    return re.findall(r"^  (?:-\w, )?(--[\w-]+)", run([BINARY, verb, "--help"]).out, re.M)


def in_each_shell(promise):
    """Registers a test for each shell; one that is not installed is a skip."""

    def register(function):
        for shell in SHELLS:
            test(f"{shell}: {promise}", needs=[shell])(lambda shell=shell: function(shell))
        return function

    return register


def check_lines(shell, lines):
    with typing(shell) as typist:
        for line, want in lines.items():
            # A shell may take back the '/' that it put behind a folder's name.
            check_equal([word.rstrip("/") for word in typist.complete(line)], want, line)


@in_each_shell("verbs and flags are completed")
def _(shell):
    check_lines(shell, {
        "vitro exp": ["explain"],
        "vitro doc": ["doctor"],
        "vitro help exp": ["help", "explain"],
        "vitro run --tim": ["run", "--timeout"],
        "vitro run --timeout 5s --mem": ["run", "--timeout", "5s", "--memory"],
        "vitro run -p strict --au": ["run", "-p", "strict", "--audit"],
        "vitro explain --po": ["explain", "--policy"],
        "vitro doctor --js": ["doctor", "--json"],
        "vitro aud": ["audit"],
        "vitro audit ver": ["audit", "verify"],
        "vitro audit verify --ex": ["audit", "verify", "--expect"],
        "vitro audit verify --au": ["audit", "verify", "--au"],
        "vitro explain --js": ["explain", "--json"],
        "vitro doctor --aud": ["doctor", "--aud"],
        "vitro too": ["tools"],
        "vitro tools --qu": ["tools", "--query"],
        "vitro call --tim": ["call", "--timeout"],
        "vitro tools pla": ["tools", "plain.json"],
        "vitro call --timeout 5s pla": ["call", "--timeout", "5s", "plain.json"],
    })


@in_each_shell("everything that --help lists is offered, and nothing that the verb does not take")
def _(shell):
    verbs = re.findall(r"^  vitro (\w+)", run([BINARY, "--help"]).out, re.M)
    check(len(verbs) >= 3, f"verbs: {verbs}")
    offers(shell, "vitro ", verbs)
    for verb in ("run", "explain", "tools", "call"):
        flags = set(flags_of(verb))
        check(len(flags) > (14 if verb in ("run", "explain") else 2), f"flags of {verb}: {flags}")
        shown = offers(shell, f"vitro {verb} --", flags)
        check_equal(set(re.findall(r"(?<![\w-])--[a-z][\w-]*", shown)) - flags, set(),
                    f"offered for {verb}, and not its flag")


@in_each_shell("values are completed by their kind")
def _(shell):
    check_lines(shell, {
        "vitro run --net lo": ["run", "--net", "loopback"],
        "vitro run --net=lo": ["run", "--net=loopback"],
        "vitro run -p comp": ["run", "-p", "compute"],
        "vitro run --policy pla": ["run", "--policy", "plain.json"],
        "vitro run --env ONLY_H": ["run", "--env", "ONLY_HERE"],
        "vitro eval --lang no": ["eval", "--lang", "node"],
        "vitro eval --lang=py": ["eval", "--lang=python"],
        "vitro run --set limits.wa": ["run", "--set", "limits.wall_ms="],
        "vitro run --set network=lo": ["run", "--set", "network=loopback"],
        "vitro run --set require=be": ["run", "--set", "require=best-effort"],
        "vitro run --timeout pla": ["run", "--timeout", "pla"],
    })
    offers(shell, "vitro run --net ", ["none", "loopback", "host"])
    if shell == "fish":
        offers(shell, "vitro run --net ", ["no network", "a loopback of the cell's own"])
    offers(shell, "vitro run --set syscalls=", ["default", "strict"])
    offers(shell, "vitro run --set limits.", ["wall_ms", "open_files", "tmp_mb"])


@in_each_shell("paths are completed, with blanks and quotes in their names")
def _(shell):
    check_lines(shell, {
        "vitro run --read pla": ["run", "--read", "plain.json"],
        "vitro run --write it": ["run", "--write", "it's odd"],
        "vitro run --audit pla": ["run", "--audit", "plain.json"],
        "vitro run --json=pla": ["run", "--json=plain.json"],
        "vitro audit verify pla": ["audit", "verify", "plain.json"],
        "vitro audit verify --expect 0 it": ["audit", "verify", "--expect", "0", "it's odd"],
        "vitro run --read a\\ folder/a": ["run", "--read", "a folder/a note"],
        "vitro run --read 'a folder/a": ["run", "--read", "a folder/a note"],
        "vitro run -p it": ["run", "-p", "it's odd"],
        "vitro run --cwd pla": ["run", "--cwd", "pla"],
        "vitro run --cwd a\\ folder/": ["run", "--cwd", "a folder/inner"],
    })


@in_each_shell("after -- commands are completed, then files, and no flags of vitro")
def _(shell):
    check_lines(shell, {
        "vitro run -- sha512su": ["run", "--", "sha512sum"],
        "vitro run sha512su": ["run", "sha512sum"],
        "vitro run --timeout 5s -- cat pla": ["run", "--timeout", "5s", "--", "cat", "plain.json"],
        "vitro run cat it": ["run", "cat", "it's odd"],
        "vitro run -- cat a\\ folder/a": ["run", "--", "cat", "a folder/a note"],
        "vitro run -- cat --tim": ["run", "--", "cat", "--tim"],
        "vitro run cat --tim": ["run", "cat", "--tim"],
    })


@test("bash: values are completed where '=' does not end a word, too", needs=["bash"])
def _():
    with typing("bash") as typist:
        typist.type("COMP_WORDBREAKS=${COMP_WORDBREAKS//=}\r")
        for line, want in {
            "vitro run --net=lo": ["run", "--net=loopback"],
            "vitro run --net lo": ["run", "--net", "loopback"],
            "vitro run --set network=lo": ["run", "--set", "network=loopback"],
            "vitro run --set=limits.wa": ["run", "--set=limits.wall_ms="],
        }.items():
            check_equal(typist.complete(line), want, line)


if __name__ == "__main__":
    main()
