#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""vitro doctor --self-test: what it finds is what vitro claims, and a hole is called one."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from vitrotest import (BIN, BINARY, ESCAPE, IS_ROOT, check, check_equal, check_in, folder, is_bare,
                       is_confined, main, read_holdings, run, sanitized, skip, test, vitro, vitro_started,
                       wait_until, write)

PROPERTIES = ["processes", "files", "network", "syscalls", "memory", "tmp", "file_size", "open_files",
              "pids", "cpu_time", "cpus"]


def report(*flags, code=0, **options):
    """The report as data; by_name has its properties, acts its acts by their names."""
    call = vitro("doctor", "--self-test", "--json", *flags, timeout=60, **options)
    check_equal(call.code, code, "exit code", call)
    found = call.json
    found["by_name"] = {item["name"]: item for item in found["properties"]}
    found["by_act"] = {item["act"]: item for item in found["acts"] if not item["label"]}
    return found


@functools.cache
def usual():
    """The report about the default policy."""
    return report()


def check_honest(found):
    """Nothing is unclear, and each property is as it is claimed."""
    check(found["ok"], lambda: f"not ok: {json.dumps(found, indent=1)}")
    check_equal((found["mismatches"], found["unclear"]), (0, 0), "mismatches, unclear")
    check_equal([item["name"] for item in found["properties"]], PROPERTIES, "properties")
    for item in found["properties"]:
        grade = item["claimed"] and item["claimed"]["grade"]
        kernel = ("enforced", "weaker") if item["claimed"] and item["claimed"]["note"] else ("enforced",)
        wanted = {"kernel": kernel, "watched": ("enforced", "weaker"),
                  "none": ("absent", "weaker"), None: ("enforced", "absent", "not judged")}[grade]
        check(item["found"] in (*wanted, "not judged"), f"{grade}: {item}")


def once():
    """A hundred acts take ten seconds: more than one policy is for one build, on the machine as it is."""
    if sanitized() or os.environ.get("VITRO_TEST_PROTECTED"):
        skip("tried by make test, with the plain build")


@test("self-test: all is as claimed under the default policy, and most acts are judged",
      holds={"files": "*"})
def _():
    found = usual()
    check_honest(found)
    # What the tests' own place denies, or has no folder for, has no control.
    poor = is_confined() or not any(os.access(path, os.W_OK) for path in ("/tmp", "/var/tmp", "/dev/shm"))
    check(found["judged"] >= (50 if poor else 80), f"only {found['judged']} acts were judged")
    held = {name: item["claimed"]["grade"] != "none" for name, item in found["by_name"].items() if item["claimed"]}
    for name in PROPERTIES[:-1]:
        tried = found["by_name"][name]["judged"] if poor else True
        check(found["by_name"][name]["denied"] or not (tried and held.get(name, True)),
              f"no act of {name} was denied")
    for act, name in (("read_absolute", "files"), ("send_signal", "processes"), ("tcp4", "network"),
                      ("use_vmsplice", "syscalls"), ("stay_behind", "processes"), ("outstay", "processes"),
                      ("take_heap", "memory"), ("take_processes", "pids"), ("take_descriptors", "open_files"),
                      ("kill_parent", "processes")):
        wanted = ("denied", "denied late") if held.get(name, True) else ("reached",)
        check_in(found["by_act"][act]["outcome"], (*wanted, "unjudged") if poor else wanted, act)
    for act in found["acts"]:
        check(act["outcome"] != "unjudged" or act["why"], f"not judged for no reason: {act}")


@test("self-test: a person gets a table and one last line, here for the strict policy")
def _():
    once()
    call = vitro("doctor", "--self-test", "-p", "strict", "--set", "require=best-effort", timeout=60)
    check_equal(call.code, 0, "exit code", call)
    lines = call.out.splitlines()
    check(any(line.split() == ["PROPERTY", "CLAIMED", "FOUND", "ACTS"] for line in lines), call)
    for name in PROPERTIES:
        check(any(line.startswith(name + " ") for line in lines), f"no line for {name}\n{call}")
    check(lines[-1].startswith("self-test: ") and lines[-1].endswith(" acts, 0 mismatches"), call)
    check(max(map(len, lines)) <= 100, f"a line is too long\n{call}")
    check_equal(call.err, "", "standard error without a terminal", call)


@test("self-test: what the policy allows is not held against it")
def _():
    once()
    with folder() as place:
        found = report("--net", "host", "--read", place, env={**os.environ, "TMPDIR": place})
        check_equal(os.listdir(place), [], "what is left in TMPDIR")
    check_honest(found)
    check_equal(found["by_name"]["network"]["claimed"], None, "the claim on the host's network")
    for act in ("tcp4", "udp4", "bind_any", "read_absolute", "see_file"):
        check_equal(found["by_act"][act]["outcome"], "allowed", act)
    # Where namespaces cannot be had, there is no control for the first.
    check_equal(found["by_act"]["raw4"]["outcome"], "unjudged" if is_bare() else "denied", "raw4")
    check_equal(found["by_act"]["unix_path"]["outcome"], "denied", "unix_path")
    check_equal(found["by_act"]["write_new"]["outcome"], "denied", "writing to what may be read")


def profile(place, *denied):
    """A seccomp profile that allows all calls but these."""
    rules = [{"names": denied, "action": "SCMP_ACT_ERRNO"}] if denied else []
    return write(place + "/p.json", json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules}))


@test("self-test: a profile of the user's decides, but about what vitro's other promises stand on")
def _():
    once()
    with folder() as place:
        found = report("--set", "syscalls=" + profile(place, "modify_ldt"))
        check_honest(found)
        # The control: under vitro's own filter, this one is judged.
        own = usual()["by_act"]["change_personality"]
        check_equal(own["outcome"], "denied", "change_personality without the profile")
    acts = {name: act["outcome"] for name, act in found["by_act"].items()}
    check_equal(acts["change_personality"], "allowed", "what the profile allows")
    check_in(acts["change_ldt"], ("denied", "unjudged"), "what it denies")
    for act in ("use_vmsplice", "unshare_user", "setuid_chmod", "use_io_uring", "add_key"):
        check_in(acts[act], ("denied", "unjudged"), f"{act}, which it allows and vitro never does")
    check_equal(acts["use_vmsplice"], "denied", "use_vmsplice, which works outside")


@test("self-test: a network of the cell's own is held as none is", holds={"network": "netns"})
def _():
    once()
    found = report("--net", "loopback")
    check_honest(found)
    for act in ("tcp4", "udp4", "abstract"):
        check_equal(found["by_act"][act]["outcome"], "denied", act)


@test("self-test: a policy that is refused is named, and tried with best effort")
def _():
    if IS_ROOT:
        skip("root may make cgroups here: nothing is refused")
    found = report("--set", "require=strict", "--cpus", "1")
    check_in("refused: ", found["refused"], "the refusal")
    check_honest(found)
    burn = next(act for act in found["acts"] if act["property"] == "cpus")
    if burn["outcome"] == "unjudged" and burn["why"].startswith("outside: "):
        skip(f"the machine is too busy for it: {burn['why']}")
    check_equal(found["by_name"]["cpus"]["found"], "absent", "cpus without a cgroup")


@test("self-test: ended by a signal in its middle, it leaves nothing")
def _():
    with folder() as place:
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            with vitro_started("doctor", "--self-test", mark=False, stdout=subprocess.DEVNULL,
                               env={**os.environ, "TMPDIR": place}) as (process, before):
                wait_until(lambda: os.listdir(place), 10, "its folder is made")
                time.sleep(0.5)
                os.kill(process.pid, number)
                check_equal(process.wait(20), code, f"exit code after {number!r}")
                # What the control of an act left behind lives for five seconds, if nobody ends it.
                before.check_nothing_left(process.pid, cgroups=number != signal.SIGKILL, seconds=8)
                wait_until(lambda: not os.listdir(place), 5, f"the folder goes after {number!r}")


@test("self-test: without a place for its folder, what needs one is not judged", root=True,
      needs=["unshare", "mount"], holds={"processes": "pidns"})
def _():
    closed = ("for place in /var/tmp /tmp /dev/shm; do mount --bind $place $place && "
              "mount -o remount,bind,ro $place || exit 99; done; exec \"$@\"")
    found = report(prefix=["unshare", "-m", "sh", "-c", closed, "sh"],
                   env={**os.environ, "TMPDIR": "/nowhere"})
    check_honest(found)
    check_equal(found["by_act"]["read_absolute"]["outcome"], "unjudged", "reading a secret")
    check_in("no folder can be made", found["by_act"]["read_absolute"]["why"], "the reason")
    check_equal(found["by_act"]["tcp4"]["outcome"], "denied", "what needs no folder")


@test("self-test: pipes that nothing keeps apart are weaker, as the calls that show them say",
      root=True, needs=["unshare", "mount"], holds={"files": "landlock", "processes": "pidns"})
def _():
    once()
    # Of an overlay over an overlay no third can be made.
    with folder("/tmp") as place:
        stacked = f"""set -e; mount -t tmpfs -o mode=755 none {place}; cd {place}
            mkdir lower up1 work1 one up2 work2 two
            mount -t overlay -o lowerdir=lower,upperdir=up1,workdir=work1 none one
            mount -t overlay -o lowerdir=one,upperdir=up2,workdir=work2 none two
            cd /; TMPDIR={place}/two exec "$@" """
        found = report(prefix=["unshare", "-m", "sh", "-c", stacked, "sh"])
    check_honest(found)
    check_equal(found["by_act"]["write_fifo"]["outcome"], "reached", "write_fifo")
    files = found["by_name"]["files"]
    check_equal(files["found"], "weaker", "files")
    check_in("named pipes in folders for reading", files["claimed"]["note"], "the note")


def copy_vitro(place, escape=ESCAPE):
    """A vitro with a program of acts beside it, which may be another one."""
    os.mkdir(place + "/test")
    shutil.copy(escape, place + "/test/vitro-escape")
    return shutil.copy(BINARY, place + "/vitro")


def within(place, *options, prefix=()):
    """A self-test of a copy of vitro, in a folder of the test's own, with less than this machine has."""
    command = BIN + "/matrix/vitro-within"
    if not os.access(command, os.X_OK):
        skip(f"there is no {command}")
    if (tried := run([command, *options, "--", "true"])).code:
        skip(tried.err.strip())
    if prefix:  # which may hide where it is
        command = shutil.copy(command, place)
    return run([*prefix, command, *options, "--", copy_vitro(place), "doctor", "--self-test"], timeout=60)


@test("self-test: a root that lacks some capabilities is not called an ordinary user", root=True)
def _():
    once()
    with folder() as place:
        call = within(place, "--deny-userns", "--caps", "CAP_CHOWN,CAP_KILL,CAP_SETGID,CAP_SETUID")
    check_in("as root without some of its capabilities\n", call.out, "the first line", call)


@test("self-test: another that runs, or left its folder, is not in its way without namespaces",
      root=True, needs=["unshare", "mount"])
def _():
    once()
    taken = "mount -t tmpfs -o mode=1777 own /tmp && mkdir /tmp/vitro-CALL || exit 99; exec \"$@\""
    with folder("/var/tmp") as place:
        call = within(place, "--deny-userns", prefix=["unshare", "-m", "sh", "-c", taken, "sh"])
    check_equal(call.code, 0, "exit code", call)
    check(call.out.endswith(" acts, 0 mismatches\n"), call)


@test("self-test: a program that the cell's user cannot reach is named once", root=True)
def _():
    with folder() as place:
        os.chmod(place, 0o700)
        call = within(place, "--deny-userns")
    check_equal((call.code, call.out), (125, ""), "exit code and output", call)
    check_in(f"the cell's user cannot reach '{place}/test/vitro-escape'; install", call.err, "why", call)
    check_equal(len(call.err.splitlines()), 1, "lines on stderr", call)


@test("self-test: a program that others may write is not run")
def _():
    with folder() as place:
        binary = copy_vitro(place)
        os.chmod(place + "/test", 0o777)
        call = run([binary, "doctor", "--self-test"])
        check_equal(call.code, 125, "exit code", call)
        check_in("others may write", call.err, "the reason", call)


@test("self-test: without its program, and with another version's, it says so")
def _():
    with folder() as place:
        binary = copy_vitro(place, "/bin/true")
        call = run([binary, "doctor", "--self-test"])
        check_equal(call.code, 125, "exit code", call)
        check_in("is not this vitro's", call.err, "the reason", call)
        os.unlink(place + "/test/vitro-escape")
        call = run([binary, "doctor", "--self-test"])
        check_equal(call.code, 125, "exit code", call)
        check_in("vitro-escape is not in", call.err, "the reason", call)
    for flags in (["--", "true"], ["--json=file"], ["--audit", "file"], ["--nonsense"]):
        call = vitro("doctor", "--self-test", *flags)
        check_equal(call.code, 125, f"exit code with {flags}", call)


# Acts that always succeed outside, and inside are denied but for those that a test chooses. Inside
# the file beside the program cannot be opened.
PRETENDER = """#!/bin/sh
case $1 in
--list) cat <<'END'
@LIST@
END
	exit ;;
idle) exec sleep 60 ;;
esac
{ true < "@BESIDE@"; } 2>/dev/null && { echo "reached: outside"; exit; }
case "$*" in
@CASES@
*) echo "denied: EPERM inside" ;;
esac
"""
HOLE = 'echo "reached: a hole"'


# An act that shows whether the limit is held.
LIMITS = {"cpus": "burn 150 *", "cpu_time": "burn 400 *", "memory": "take_heap *"}


@functools.cache
def claims(name):
    """Whether vitro says that it holds this at all."""
    said = read_holdings(vitro("explain", "--cpus", "0.1", "--cpu-time", "60s", "--set",
                               "require=best-effort").out)
    return said[name][0] != "none"


def pretend(cases, *flags):
    """A self-test of cells that have the holes which cases describe."""
    listing = run([ESCAPE, "--list"]).out
    cases = {**{act: HOLE for name, act in LIMITS.items() if not claims(name)}, **cases}
    lines = (pattern.replace(" ", "\\ ") + f") {act} ;;" for pattern, act in cases.items())
    with folder() as place:
        text = PRETENDER.replace("@LIST@", listing).replace("@BESIDE@", place + "/vitro").replace(
            "@CASES@", "\n".join(lines))
        binary = copy_vitro(place, write(place + "/pretender", text, 0o755))
        return run([binary, "doctor", "--self-test", *flags], timeout=60)


def wrong_in(call):
    """The properties that a report calls mismatches, and how they were found."""
    wrong = {item["name"]: item["found"] for item in call.json["properties"] if item["mismatch"]}
    check_equal(call.json["mismatches"], len(wrong), "mismatches", call)
    return wrong


@test("self-test: cells without a hole pass", holds={"files": "*"})
def _():
    call = pretend({}, "--json")
    check_equal((call.code, wrong_in(call)), (0, {}), "exit code and mismatches", call)


@test("self-test: a hole is a mismatch, in data and in loud words", holds={"files": "*"})
def _():
    holes = {"files": "read_absolute *", "processes": "send_signal *", "network": "udp4 *",
             "syscalls": "add_key", "memory": "take_heap *", "pids": "take_threads *"}
    holes = {name: act for name, act in holes.items() if claims(name)}
    cases = {act: HOLE for act in holes.values()}
    call = pretend(cases, "--json")
    check_equal((call.code, wrong_in(call)), (1, dict.fromkeys(holes, "absent")), "mismatches", call)
    call = pretend(cases)
    check_equal(call.code, 1, "exit code", call)
    for name, act in holes.items():
        check_in(f"MISMATCH: {name}: ", call.out, "the loud line", call)
        check_in(act.split()[0] + " (", call.out, "the act", call)
    check_in(f" acts, {len(holes)} mismatches\n", call.out, "the last line", call)


@test("self-test: a profile that allows all is no excuse for what vitro denies under any",
      holds={"files": "*"})
def _():
    with folder() as place:
        call = pretend({"use_vmsplice": HOLE, "change_personality *": HOLE}, "--json", "--set",
                       "syscalls=" + profile(place))
    check_equal((call.code, wrong_in(call)), (1, {"syscalls": "absent"}), "mismatches", call)
    outcomes = {act["act"]: act["outcome"] for act in call.json["acts"]}
    check_equal((outcomes["use_vmsplice"], outcomes["change_personality"]), ("reached", "allowed"),
                "the two acts", call)


@test("self-test: a watched limit that holds one time of three is late, not absent",
      holds={"files": "*", "memory": "watchdog"})
def _():
    with folder(writable=True) as place:
        third = (f"echo >> {place}/n; test $(wc -l < {place}/n) -lt 3 && " + HOLE +
                 ' || echo "denied: late"')
        call = pretend({"take_heap *": third}, "--json", "--write", place)
        check_equal(open(place + "/n").read(), "\n\n\n", "how often it was tried", call)
    check_equal((call.code, wrong_in(call)), (0, {}), "mismatches", call)
    act = next(act for act in call.json["acts"] if act["act"] == "take_heap")
    check_equal(act["outcome"], "denied late", "the act", call)
    check_in("tried 3 times", act["why"], "why", call)


@test("self-test: weaker than claimed is a mismatch too, and silence is unclear", holds={"files": "*"})
def _():
    call = pretend({"netlink": HOLE, "udp4 *": "exit 3"}, "--json")
    check_equal((call.code, wrong_in(call)), (1, {"network": "weaker"}), "mismatches", call)
    check_equal(call.json["unclear"], 1, "unclear acts", call)
    call = pretend({"udp4 *": "exit 3"})
    check_equal(call.code, 1, "exit code where an act says nothing", call)
    check_in("0 mismatches, 1 unclear", call.out, "the last line", call)


if __name__ == "__main__":
    main()
