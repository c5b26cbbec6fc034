#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How a call ended: one cause, one status; and what vitro run exits with."""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import vitrotest
from vitrotest import (ACTOR, BIN, SIGNALS, check, check_equal, check_in, children, folder, main,
                       need_alone, need_file_size, skip, test, vitro_json, vitro_started, wait_until, write)

ANY = object()
ERROR_TYPES = {}  # status → error.type, to see that no two statuses share one


def ends(flags, command, status, code, exit_code=None, signal_number=None, **options):
    """Runs the command with --json and checks every field that says how it ended."""
    result = vitro_json("run", *flags, "--", *command, **options)
    call = result["call"]
    check_equal(result["status"], status, "status", call)
    check_equal(result["ok"], status == "ok", "ok", call)
    check_equal(call.code, code, "exit code of vitro", call)
    for field, want in (("exit_code", exit_code), ("signal", signal_number)):
        if want is not ANY:
            check_equal(result[field], want, field, call)
    if status == "ok":
        check_equal(result["error"], None, "error", call)
    else:
        check(result["error"]["message"], f"an error has a message\n{call}")
        ERROR_TYPES.setdefault(status, result["error"]["type"])
    return result


@test("status ok: a command that exits with 0")
def _():
    ends([], ["/bin/true"], "ok", 0, exit_code=0)


@test("status error: a command's own exit code is vitro's")
def _():
    for code in (1, 2, 42, 124, 125, 126, 127, 137, 255):
        ends([], [ACTOR, "exit", str(code)], "error", code, exit_code=code)


@test("status error, exit 127: a command that is not found")
def _():
    result = ends([], ["no-such-command-anywhere"], "error", 127, exit_code=127)
    check("no-such-command-anywhere" in result["error"]["message"], "the message names it")


@test("status error, exit 126: a file that is not executable")
def _():
    with folder() as place:
        script = write(place + "/plain", "#!/bin/sh\ntrue\n")
        result = ends([], [script], "error", 126, exit_code=126)
        check("plain" in result["error"]["message"], "the message names it")


@test("status crashed: a segmentation fault, with its signal")
def _():
    ends([], [ACTOR, "segv"], "crashed", 128 + 11, signal_number=11)


@test("status crashed: each deadly signal is told as itself", holds=SIGNALS)
def _():
    for number in (signal.SIGABRT, signal.SIGKILL, signal.SIGTERM, signal.SIGXCPU, signal.SIGPIPE,
                   signal.SIGSYS, signal.SIGHUP, signal.SIGINT):
        ends([], [ACTOR, "kill_self", str(int(number))], "crashed", 128 + number,
             signal_number=int(number))


@test("status timeout: the deadline, while sleeping, spinning and stopped")
def _():
    for part in ("sleep_ms 60000", "burn_cpu", "stop_self", "ignore_term", "vfork_spin"):
        result = ends(["--timeout", "300ms"], [ACTOR, *part.split()], "timeout", 124,
                      signal_number=9)
        check(250 <= result["usage"]["wall_ms"] < 1500, f"wall_ms of {part}: {result['usage']}")
        check(result["call"].seconds < 2, f"{part} took {result['call'].seconds:.2f} s")


@test("status timeout with grace: SIGTERM first, and the command's last words are kept")
def _():
    result = ends(["--timeout", "300ms", "--grace", "5s"], [ACTOR, "end_on_term"], "timeout", 124,
                  exit_code=0)
    check_equal(result["stdout"], "ready\nasked to end\n", "stdout", result["call"])
    check(result["call"].seconds < 2, "the grace period is not waited out")


@test("status timeout with grace: who ignores SIGTERM is killed after it")
def _():
    result = ends(["--timeout", "200ms", "--grace", "300ms"], [ACTOR, "ignore_term"], "timeout",
                  124, signal_number=9)
    check(0.45 <= result["call"].seconds < 2, f"took {result['call'].seconds:.2f} s")


@test("status cpu_limit: one process that burns", holds={"cpu_time": "*"})
def _():
    result = ends(["--cpu-time", "300ms"], [ACTOR, "burn_cpu"], "cpu_limit", 124, signal_number=9)
    check(200 <= result["usage"]["cpu_ms"] < 1500, f"cpu_ms: {result['usage']}")


@test("status cpu_limit: two threads together", holds={"cpu_time": "*"})
def _():
    ends(["--cpu-time", "500ms"], [ACTOR, "burn_cpu", "2"], "cpu_limit", 124, signal_number=9)


@test("status cpu_limit: many short children together", holds={"cpu_time": "*"})
def _():
    ends(["--cpu-time", "300ms"], [ACTOR, "burn_children"], "cpu_limit", 124, signal_number=9)


@test("status memory_limit: by the heap", holds={"memory": "*"})
def _():
    ends(["--memory", "64M"], [ACTOR, "eat_heap", "400"], "memory_limit", 137, signal_number=9)


@test("status memory_limit: by many processes together, none of them large", holds={"memory": "*"})
def _():
    ends(["--memory", "96M"], [ACTOR, "eat_many", "30", "8"], "memory_limit", 137,
         exit_code=ANY, signal_number=ANY)


@test("status memory_limit: by the private /tmp", holds={"files": "mountns", "memory": "*"})
def _():
    ends(["--memory", "64M", "--set", "limits.tmp_mb=512", "--set", "limits.file_mb=1024"],
         [ACTOR, "eat_tmpfs", "400"], "memory_limit", 137, signal_number=9)


@test("status memory_limit: by memory files", holds={"memory": "*"})
def _():
    need_file_size(400 << 20)
    ends(["--memory", "64M", "--set", "limits.file_mb=1024"], [ACTOR, "eat_memfd", "400"],
         "memory_limit", 137, signal_number=9)


@test("status memory_limit: also where the shell around it lives on, and exits with 0",
      holds={"memory": "*"})
def _():
    ends(["--memory", "64M", "--read", BIN],
         ["/bin/sh", "-c", f"{ACTOR} eat_heap 400; exit 0"], "memory_limit", 137,
         exit_code=ANY, signal_number=ANY)


@test("a full /tmp is the command's own error, not memory_limit", holds={"files": "mountns"})
def _():
    result = ends(["--set", "limits.tmp_mb=4", "--set", "limits.file_mb=1024"],
                  [ACTOR, "eat_tmpfs", "64"], "error", 1, exit_code=1)
    check("No space left" in result["stdout"], f"{result['call']}")


@test("memory below the limit is left alone")
def _():
    ends(["--memory", "256M"], [ACTOR, "eat_heap", "100", "200"], "ok", 0, exit_code=0)


@test("address space that is only reserved does not count as memory", needs=["python3"])
def _():
    code = "import mmap; m = mmap.mmap(-1, 64 << 30, flags=0x4022); print('reserved')"
    result = ends(["--memory", "128M"], ["/usr/bin/python3", "-c", code], "ok", 0, exit_code=0)
    check_equal(result["stdout"], "reserved\n", "stdout", result["call"])


# One memory file, mapped so often that adding up the mappings takes seconds.
MAPPING = """if 1:
    import ctypes, os, time
    libc = ctypes.CDLL(None)
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    file = os.memfd_create("m")
    os.ftruncate(file, 16 << 20)
    for _ in range(8):
        if os.fork() == 0:
            for _ in range(1500):
                libc.mmap(None, 16 << 20, 3, 0x8001, file, 0)  # MAP_SHARED | MAP_POPULATE
            time.sleep(60)
    time.sleep(60)
"""


@test("a cell that is slow to measure is never lost", needs=["python3"],
      holds={"memory": "watchdog"})
def _():
    need_alone()
    before = vitrotest.Before()
    result = vitro_json("run", "--timeout", "15s", "--memory", "512M", "--", "/usr/bin/python3",
                        "-c", MAPPING, leaks=False)
    call = result["call"]
    before.check_nothing_left(call.pid, seconds=20)  # so many mappings take long to go
    # A fast machine measures it in time, and then the deadline comes.
    check(result["status"] in ("memory_limit", "timeout"), f"status\n{call}")
    if result["status"] == "memory_limit" and result["usage"]["wall_ms"] > 3000:
        check_in("measured in time", result["error"]["message"], "the message", call)


def looker_of(supervisor):
    """Vitro's children are init, which has a child, and the looker."""
    found = {bool(children(pid)): pid for pid in children(supervisor)}
    return found.get(False) if len(found) == 2 else None


def without_looker(number, *flags):
    """The result of a call whose looker gets a signal while it runs."""
    with vitro_started("run", "--json", *flags, "--", "/bin/sleep", "20",
                       stdout=subprocess.PIPE) as (process, before):
        os.kill(wait_until(lambda: looker_of(process.pid), 5, "there is a looker"), number)
        out, _ = process.communicate(timeout=15)
        before.check_nothing_left(process.pid)
        return json.loads(out), process.returncode


@test("a looker that is silent is a limit that cannot be held, one that died is vitro's own failure",
      holds={"processes": "pidns", "memory": "watchdog"})
def _():
    result, code = without_looker(signal.SIGSTOP)
    check_equal((result["status"], code), ("memory_limit", 137), f"silent: {result}")
    check_in("measured in time", result["error"]["message"], "the message")
    result, code = without_looker(signal.SIGKILL)
    check_equal((result["status"], code), ("lost", 125), f"dead: {result}")


@test("a looker of CPU time alone that is silent: cpu_limit", holds={"processes": "pidns"})
def _():
    if vitrotest.isolation()["memory"][0] == "watchdog":
        skip("memory is sampled here")
    result, code = without_looker(signal.SIGSTOP, "--cpu-time", "10s")
    check_equal((result["status"], code), ("cpu_limit", 124), f"silent: {result}")
    check_in("measured in time", result["error"]["message"], "the message")
    result, code = without_looker(signal.SIGKILL, "--cpu-time", "10s")
    check_equal((result["status"], code), ("lost", 125), f"dead: {result}")


@test("a supervisor that was starved until the deadline says so, and not that it could not measure",
      holds={"processes": "pidns"})
def _():
    with vitro_started("run", "--json", "--timeout", "4s", "--cpu-time", "10s", "--", "/bin/sleep", "20",
                       stdout=subprocess.PIPE) as (process, before):
        os.kill(wait_until(lambda: looker_of(process.pid), 5, "there is a looker"), signal.SIGSTOP)
        process.send_signal(signal.SIGSTOP)
        time.sleep(4.5)  # past the deadline, and before that past the time for a look
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=15)
        before.check_nothing_left(process.pid)
    check_equal((json.loads(out)["status"], process.returncode), ("timeout", 124), f"{out}")


@test("status refused, exit 125: a policy that this machine cannot enforce says what and how")
def _():
    # Weaker memory limits are what a plain user has; strict must then refuse, naming the key.
    result = vitro_json("run", "--set", "require=strict", "--", "/bin/true")
    call = result["call"]
    if result["status"] == "ok":
        check_equal(result["isolation"]["level"], "strict", "level", call)
    else:
        check_equal(result["status"], "refused", "status", call)
        check_equal(call.code, 125, "exit code", call)
        named = "limits." in result["error"]["message"] or vitrotest.isolation().refused
        check(named, f"the key is named\n{call}")
        check("require" in result["error"]["message"], f"what would run it is named\n{call}")


@test("status refused: what is not valid, as a result too")
def _():
    result = vitro_json("run", "--read", "/no/such/place", "--", "/bin/true")
    check_equal(result["status"], "refused", "status", result["call"])
    check_equal(result["call"].code, 125, "exit code", result["call"])


@test("no two statuses share an error type")
def _():
    held = [name for name in ("memory", "cpu_time")
            if vitrotest.isolation().get(name, ("none", "none"))[1] != "none"]
    check(len(ERROR_TYPES) >= 3 + len(held), f"the other tests ran: {ERROR_TYPES}")
    check_equal(len(set(ERROR_TYPES.values())), len(ERROR_TYPES), f"types {ERROR_TYPES}")


@test("a result has the fields of the contract", holds={"files": "*"})
def _():
    result = vitro_json("run", "--", "/bin/sh", "-c", "sleep 0.2; echo hello")
    call = result.pop("call")
    check(set(result) >= {"call_id", "ok", "status", "value", "error", "exit_code", "signal",
                          "stdout", "stderr", "dropped", "logs", "usage", "isolation", "files",
                          "denials"}, lambda: f"fields: {sorted(result)}\n{call}")
    check_equal(result["stdout"], "hello\n", "stdout", call)
    check_equal(result["stderr"], "", "stderr", call)
    check_equal(result["dropped"], {"stdout": 0, "stderr": 0}, "dropped", call)
    check_equal(result["value"], None, "value", call)
    check(set(result["usage"]) >= {"wall_ms", "cpu_ms", "peak_memory_kb", "processes"},
          f"usage: {result['usage']}")
    check(100 < result["usage"]["wall_ms"] < 5000, f"wall_ms: {result['usage']}")
    isolation = result["isolation"]
    levels = ("partial",) if vitrotest.isolation().refused else ("strict", "full")
    check_in(isolation["level"], levels, f"level of {isolation}", call)
    for name in ("processes", "files", "network", "syscalls", "memory", "pids"):
        claimed = vitrotest.isolation().get(name, ("none",))[0]
        check_equal(isolation[name], claimed, f"isolation.{name}", call)
        check(claimed != "none" or vitrotest.isolation().refused, f"isolation.{name}: {isolation}")


@test("usage counts what the cell used")
def _():
    result = vitro_json("run", "--", ACTOR, "burn_for", "300")
    used = int(result["stdout"])  # of the 300 ms, as the command itself sees it
    check(used - 20 <= result["usage"]["cpu_ms"] <= used + 100, f"cpu_ms: {result['usage']}, it says {used}")
    result = vitro_json("run", "--", ACTOR, "eat_heap", "60", "300")
    check(result["usage"]["peak_memory_kb"] > 50000, f"peak_memory_kb: {result['usage']}")


if __name__ == "__main__":
    main()
