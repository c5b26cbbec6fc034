#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Pools of Python interpreters: modules that do harm while they are loaded or learned."""

import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "wire"), str(HERE.parent / "lib")]
from interpreters import MOMENT, PATIENCE, TRIAL, Pool, family, kinds, living
from vitrotest import check, check_equal, folder, main, proc, test, wait_until, write

HARM = {
    "starts_thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
    "crashes": "import os\nos.kill(os.getpid(), 11)\n",
    "leaves": "import os\nos._exit(3)\n",
    "raises": "raise SystemExit(4)\n",
    "shares": "import mmap\nmemory = mmap.mmap(-1, 4096)\n",
}
SAYS = {"starts_thread": "starts a thread", "crashes": "ends the interpreter", "leaves": "ends the interpreter",
        "raises": "SystemExit", "shares": "memory that all calls would share"}


def write_harm(place):
    for name, text in HARM.items():
        write(f"{place}/{name}.py", text)
    write(f"{place}/good.py", MOMENT)


@test("learning what starts a thread, shares memory, crashes, leaves or raises does no harm")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write_harm(place)
            with Pool(prefix=prefix, paths=[place]) as pool:
                check(pool.run("value = True"), "a first call")
                before = pool.zygote
                for name in HARM:
                    pool.learn(name)
                pool.learn("good")
                pool.until_ahead("good")
                for name, said in SAYS.items():
                    check(any(f"'{name}'" in line and said in line for line in pool.lines),
                          f"cells {kind}: {name}: {pool.lines}")
                    check(not pool.has(name), f"cells {kind}: {name} is there")
                check_equal(pool.zygote, before, f"cells {kind}: the zygote is the same")


@test("what starts a thread, shares memory, crashes or leaves while it is loaded is left out by name, and the pool lives")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write_harm(place)
            with Pool(prefix=prefix, paths=[place], preload=[*HARM, "good"]) as pool:
                check(pool.is_ahead("good"), f"cells {kind}: the good one is there: {pool.lines}")
                for name in HARM:
                    check(not pool.has(name), f"cells {kind}: {name} is there")
                    check(any(f"'{name}'" in line for line in pool.lines), f"cells {kind}: {name}: {pool.lines}")


# As numpy's does.
NATIVE = "import sys\n__file__ = '/nowhere/native.so'\nif __name__ in vars(sys):\n    raise ImportError('cannot load it twice')\nvars(sys)[__name__] = 1\n"


@test("what fails when it has loaded native code keeps no call from loading that; there may be many")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            names = [f"fails{number}" for number in range(17)]
            for name in names:
                write(f"{place}/native_of_{name}.py", NATIVE)
                write(f"{place}/{name}.py", f"import native_of_{name}\nraise ValueError('now')\n")
            write(f"{place}/good.py", MOMENT)
            with Pool(prefix=prefix, paths=[place], preload=[names[0], "good"]) as pool:
                check(pool.is_ahead("good"), f"cells {kind}: the good one is there: {pool.lines}")
                check(pool.run("import native_of_fails0; value = True"), f"cells {kind}: {pool.lines}")
                pool.until_told("'fails0' is not imported ahead of calls from now on: ValueError: now")
            with Pool(prefix=prefix, paths=[place], preload=[*names, "good"]) as pool:
                check(pool.is_ahead("good"), f"cells {kind}: the good one is there: {pool.lines}")


@test("memory that is shared later than a module was imported ends the pool, by its name")
def _():
    for kind, prefix in kinds():
        for flags, says in (("MAP_PRIVATE", None), ("MAP_SHARED", "'/dev/zero (deleted)'")):
            with folder() as place:
                write(f"{place}/later.py", "import gc, mmap\nkept = []\ndef take(*_):\n"
                      f"    kept or kept.append(mmap.mmap(-1, 4096, mmap.{flags} | mmap.MAP_ANONYMOUS, mmap.PROT_READ))\ngc.callbacks.append(take)\n")
                with Pool(prefix=prefix, paths=[place], preload=["later"]) as pool:
                    result = pool.result("import later; value = len(later.kept)")
                    if says is None:
                        check_equal((result["ok"], result["value"]), (True, 1), f"cells {kind}: the control")
                    else:
                        check(not result["ok"] and says in result["error"]["message"], f"cells {kind}: {result} {pool.lines}")


@test("what shares memory and then fails, where its trial did not, is in no call")
def _():
    with folder() as place:
        # A trial has an alarm.
        write(f"{place}/turns.py", "import mmap, signal, sys\nif not signal.getitimer(signal.ITIMER_REAL)[0]:\n"
              "    sys.kept = mmap.mmap(-1, 4096)\n    raise ValueError('now')\n")
        with Pool(paths=[place]) as pool:
            pool.run("value = 1")
            before = pool.zygote
            pool.learn("turns")
            wait_until(lambda: pool.zygote not in (None, before), PATIENCE, f"the zygote is the same: {pool.lines}")
            check(any("'turns'" in line for line in pool.lines), f"{pool.lines}")
            for _ in range(5):
                check_equal(pool.run("import sys; value = hasattr(sys, 'kept')"), False, "what a call has")


@test("learning what never ends keeps nobody waiting, and is given up")
def _():
    with folder() as place:
        write(f"{place}/hangs.py", "import time\ntime.sleep(600)\n")
        write(f"{place}/good.py", MOMENT)
        with Pool(paths=[place]) as pool:
            pool.run("value = 1")
            before = pool.zygote
            pool.learn("hangs")
            pool.learn("good")
            begin = time.monotonic()
            for _ in range(40):  # more than were ready
                pool.run("value = 1")
            check(time.monotonic() - begin < TRIAL / 2, "calls waited for it")
            wait_until(lambda: any("longer than" in line for line in pool.lines), TRIAL + PATIENCE, f"{pool.lines}")
            pool.until_ahead("good")
            check_equal(pool.zygote, before, "the zygote is the same")


@test("nothing survives a session, not even what is being tried")
def _():
    for kind, prefix in kinds():
        with folder() as place:
            write(f"{place}/hangs.py", "import time\ntime.sleep(600)\n")
            with Pool(prefix=prefix, paths=[place]) as pool:
                pool.run("value = 1")
                pool.learn("hangs")
                time.sleep(0.3)
                check(not any("hangs" in line for line in pool.lines), f"it is still tried: {pool.lines}")
                pids = {pid: proc(f"{pid}/stat").split()[21:22] for pid in family(pool.client.process.pid)
                        if proc(f"{pid}/stat")}
            check(len(pids) > 3, f"cells {kind}: there were some: {pids}")
            wait_until(lambda: not living(pids), PATIENCE, f"all have ended: {living(pids)}")


if __name__ == "__main__":
    main()
