#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What vitro says of a machine, whatever machine it is: its words agree with each other and with
what it does."""

import os
import re
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (ACTOR, BINARY, PREFIX, ROOT, check, check_equal, check_in, folder, main,
                       read_holdings, run, skip, test, vitro, vitro_command)


def doctor():
    call = run(vitro_command("doctor", "--json"))
    check(call.code in (0, 1), f"exit code of doctor\n{call}")
    return call.json, call


def plainly(*args):
    """vitro run without the flags that an environment asks for."""
    return run([*PREFIX, BINARY, "run", *args])


@test("truth: a call gets what doctor says, or is refused where doctor says so")
def _():
    report, said = doctor()
    call = plainly("--json", "--", ACTOR, "exit", "7")
    result = call.json
    if report["ok"]:
        check_equal((call.code, result["status"]), (7, "error"), "the call", f"{call}\n{said}")
        for name, holding in report["isolation"].items():
            mechanism = holding["mechanism"] if isinstance(holding, dict) else holding
            check_equal(result["isolation"][name], mechanism, name, call)
    else:
        check_equal((call.code, result["status"]), (125, "refused"), "the call", f"{call}\n{said}")
        if report["refused"]:
            # What is found only in a cell that is being made, doctor says of cells in general.
            reason = report["refused"].removeprefix("refused: no cell can be made here: ")
            check_in(reason, result["error"]["message"], "the reason", call)
    check_equal(said.code, 0 if report["ok"] else 1, "doctor's exit code", said)


@test("truth: doctor's words say what its data say")
def _():
    report, _ = doctor()
    words = run(vitro_command("doctor"))
    check_equal(words.code, 0 if report["ok"] else 1, "exit code", words)
    for finding in report["findings"]:
        check_in(finding["name"], words.out, "a finding", words)
        if finding["state"] == "not" and finding["needed"]:
            check(finding["why"], f"no reason for {finding['name']}\n{words}")
    said = " ".join(words.out.split())
    check_equal("vitro run enforces here" in said, report["ok"], "the sum", words)


@test("truth: explain says what doctor says")
def _():
    report, said = doctor()
    call = run(vitro_command("explain"))
    check_equal(call.code, 0 if report["ok"] else 125, "exit code", f"{call}\n{said}")
    held = read_holdings(call.out)
    for name, holding in (report["isolation"] or {}).items():
        if report["ok"] and isinstance(holding, dict):
            check_equal(held.get(name), (holding["mechanism"], holding["grade"]), name, call)


@test("truth: what explain has to say fits on a screen, reasons of a refusal included")
def _():
    for flags in ([], ["--cpu-time", "60s"], ["--set", "require=strict", "--cpus", "0.5"]):
        call = run(vitro_command("explain", *flags))
        # Paths and values are as long as they are.
        said = re.sub(r"^(FILES|DENIED|ENVIRONMENT).*\n(?:  .*\n)*", "", call.out, flags=re.MULTILINE)
        long = [line for line in said.splitlines() if len(line) > 100]
        check_equal(long, [], "long lines", call)


@test("truth: the manual knows each kind of file and each section that explain prints")
def _():
    try:
        manual = (ROOT / "docs/man/vitro-explain.1.scd.in").read_text()
    except OSError:
        skip("the manual is not beside the tests")
    with folder() as place, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place + "/socket")
        listener.listen()
        flags = ["--set", "require=best-effort", "--read", place, "--write", place]
        for more in ([], ["--socket", place + "/socket"], ["--deny", place + "/file"]):
            call = run(vitro_command("explain", *flags, *more))
            if call.code == 125:  # no plan: then there is a reason, and nothing else
                check_equal((call.out, call.err[:15]), ("", "vitro: refused:"), "a refusal", call)
                continue
            words = set(re.findall(r"^  ([a-z]+) +/", call.out, re.MULTILINE))
            words |= set(re.findall(r"^([A-Z]+)\b", call.out, re.MULTILINE))
            check("socket" in words or "--socket" not in more, f"no socket is named\n{call}")
            check("DENIED" in words or "--deny" not in more, f"nothing is denied\n{call}")
            unknown = {word for word in words if f"*{word}*" not in manual}
            check_equal(unknown, set(), "words that the manual does not explain", call)


@test("truth: a call runs, or is refused with a reason before anything ran")
def _():
    call = vitro("run", "--", "/bin/sh", "-c", "echo it ran")
    if call.code == 0:
        check_equal(call.out, "it ran\n", "stdout", call)
        return
    check_equal((call.code, call.out), (125, ""), "the call", call)
    check_in("vitro: ", call.err, "the reason", call)
    again = vitro("run", "--json", "--", "/bin/sh", "-c", "echo it ran")
    check_equal((again.json["status"], again.json["stdout"]), ("refused", ""), "the result", again)


if __name__ == "__main__":
    main()
