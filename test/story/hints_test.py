#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What vitro says beside the result: notes about a policy, and hints about what failed."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import check, check_equal, check_in, folder, is_bare, main, skip, test, vitro, write


def refused(*args, says=(), **options):
    """The call is turned down with exit 125 and one line that says these words, and nothing runs."""
    call = vitro("run", *args, "--", "/bin/echo", "ran", **options)
    check_equal((call.code, call.out), (125, ""), "exit code and stdout", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)
    for word in says:
        check_in(word, call.err, "the message", call)


@test("files.deny: a pattern is refused, and a name with such letters is none")
def _():
    with folder() as place:
        write(place + "/data/.env", "secret\n")
        for pattern in ("*.env", "data/.en?", "data/[.]env", place + "/*/.env"):
            refused("--read", ".", "--deny", pattern, cwd=place,
                    says=["--deny", "there are no patterns", "name the file or its folder"])
        if is_bare():
            skip("no deny inside a grant without namespaces")
        write(place + "/data/[x]*?", "secret\n")
        call = vitro("run", "--read", ".", "--deny", "data/[x]*?", "--", "/bin/cat", place + "/data/[x]*?",
                     cwd=place)
        check_equal((call.code, call.out), (1, ""), "a file of that name is denied", call)


@test("files.deny: one that denies nothing is noted, by explain too")
def _():
    with folder() as place:
        write(place + "/a/note", "note\n")
        write(place + "/b/secret", "secret\n")
        says = f"--deny: '{place}/b/secret' lies in nothing that the cell could see, so it denies nothing"
        flags = ["--read", place + "/a", "--deny", place + "/b/secret"]
        call = vitro("run", *flags, "--", "/bin/true")
        check_equal((call.code, call.err), (0, f"vitro: note: {says}\n"), "exit code and note", call)
        call = vitro("run", "--json", *flags, "--", "/bin/true")
        check_equal((call.code, call.err), (0, f"vitro: note: {says}\n"), "the same beside JSON", call)
        check_equal(call.json["ok"], True, "the result", call)
        check_in(says, vitro("explain", *flags).out, "explain")
        call = vitro("run", "--read", place + "/a", "--deny", place, "--", "/bin/cat", place + "/a/note")
        check_equal(call.out, "", "a deny around a grant", call)
        check("vitro: note:" not in call.err, f"it does deny\n{call}")


if __name__ == "__main__":
    main()
