#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a server answers is of now, and of this client: policies, folders and modules that were changed; what another client
had loaded; and policies that a tool, or a client's call, could have changed."""

import contextlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from serving import Client, call_tool, run_in, serving
from vitrotest import (BINARY, PREFIX, check, check_equal, check_in, folder, is_bare, isolation, main, run, sanitized, skip, test,
                       vitro_command, wait_until, write)

# An interpreter that every cell can have, whatever prefix this one is of.
PYTHON = "/usr/bin/python3"
LOOSE = {"require": "best-effort"} if isolation().refused else {}


def shell(name, script, **policy):
    return {"name": name, "command": ["sh", "-c", script], "policy": policy["policy"] if "policy" in policy else {**LOOSE, **policy}}


def put(path, what):
    """As an editor does it."""
    write(f"{path}.tmp", what if isinstance(what, str) else json.dumps(what))
    os.rename(f"{path}.tmp", path)


# ---- whose word a policy is ----------------------------------------------------------------------


@contextlib.contextmanager
def secrets():
    """A place with a secret, a folder that is open to calls, and a policy in there."""
    with folder(writable=True) as place:
        write(f"{place}/secret", "tea")
        os.makedirs(f"{place}/open")
        os.chmod(f"{place}/open", 0o777 if is_bare() else 0o755)
        write(f"{place}/open/a.json", json.dumps(LOOSE))
        yield place


def manifest_of(place, *tools):
    put(f"{place}/tools.json", {"tools": tools})
    return f"{place}/tools.json"


def writer(place, **more):
    wider = json.dumps({"files": {"read": [f"{place}/secret"]}, **LOOSE}).replace("{", "{{").replace("}", "}}")
    return shell("w", f"echo '{wider}' >{place}/open/a.json", files={"write": ["open"], **more})


def reader(place, policy="open/a.json"):
    return shell("a", f"cat {place}/secret", policy=policy)


@test("a tool that could rewrite another tool's policy is refused, with all others: vitro call, and vitro serve")
def _():
    if isolation().refused:
        skip("under require=best-effort for all it is nobody's concern")
    with secrets() as place:
        # The control: that policy is what keeps the secret, and the writer can write there.
        path = manifest_of(place, reader(place))
        check_equal(run(vitro_command("call", path, "a")).out, "", "what is denied")
        path = manifest_of(place, writer(place))
        check_equal(run(vitro_command("call", path, "w")).code, 0, "the control")
        path = manifest_of(place, reader(place))
        check_equal(run(vitro_command("call", path, "a")).out, "tea", "the control's effect")
        write(f"{place}/open/a.json", "{}")

        path = manifest_of(place, writer(place), reader(place))
        done = run(vitro_command("call", path, "w"))
        check_equal(done.code, 125, "vitro call", done)
        check_in("tools[0].policy: files.write: with '", done.err, "message", done)
        done = run([*PREFIX, BINARY, "serve", "--socket", f"{place}/socket", "--tools", path])
        check_equal(done.code, 125, "vitro serve", done)
        check_in("could change '", done.err, "message", done)
        # A policy that is a link, which the writer could turn.
        os.symlink(f"{place}/apart.json", f"{place}/open/turned.json")
        write(f"{place}/apart.json", "{}")
        path = manifest_of(place, writer(place), reader(place, "open/turned.json"))
        check_equal(run(vitro_command("call", path, "a")).code, 125, "a link")
        if not is_bare():
            path = manifest_of(place, writer(place, deny=["open/a.json"]), reader(place))
            check_equal(run(vitro_command("call", path, "w")).code in (1, 2), True, "what is denied cannot be written")
            check_equal(run(vitro_command("call", path, "a")).out, "", "and says what it said")


@test("cells that could change a policy which the tools name later are ended, and no more of them are made")
def _():
    with secrets() as place:
        path = manifest_of(place, shell("a", "true"))
        with serving("--tools", path) as server:
            client, other = server.join(b"PATH=/usr/bin:/bin\0"), server.join(b"PATH=/usr/bin:/bin\0")
            sources = [{"json": json.dumps({"files": {"write": [f"{place}/open"]}, **LOOSE})}]
            client.pool(1, sources, command="sh")
            other.pool(1, [{"json": json.dumps({"files": {"read": [f"{place}/open"]}, **LOOSE})}], command="sh")
            check_equal(run_in(client, 1, 1, "sh", "-c", f"echo >>{place}/open/a.json")["status"], "ok", "the control")
            write(f"{place}/open/a.json", json.dumps(LOOSE))
            client.call(2, 1, words=["sh", "-c", f"sleep 20; echo x >{place}/open/a.json"])
            time.sleep(0.3)
            manifest_of(place, reader(place))
            wait_until(lambda: "cells are ended, whose calls could change" in server.said(), 10, "the end of the cells")
            check_equal(client.wait(2)["status"], "cancelled", "what ran")
            result = run_in(client, 3, 1, "sh", "-c", "true")
            check_equal(result["status"], "refused", "what comes later")
            check_in("could change what is the server's own", result["error"]["message"], "why")
            with contextlib.suppress(PermissionError):
                client.pool(2, sources, command="sh")
                check(False, "a pool that could change it is made")
            check_equal(run_in(other, 1, 1, "sh", "-c", "true")["status"], "ok", "cells that could not")
            check_equal(call_tool(client, 4, "a")["stdout"], "", "the tool")
            # It is nobody's policy any more.
            manifest_of(place, shell("a", "true"))
            wait_until(lambda: call_tool(client, 5, "a")["status"] == "ok", 10, "the tools of before")
            client.pool(3, sources, command="sh")


@test("a policy that is tightened holds for the next call: the manifest need not be written anew")
def _():
    with secrets() as place:
        policy = f"{place}/p.json"
        wide, narrow = ({"files": {"read": [f"{place}/secret"] * on}, **LOOSE} for on in (1, 0))
        put(policy, wide)
        with serving("--tools", manifest_of(place, reader(place, "p.json"))) as server:
            client = server.join()
            check_equal(call_tool(client, 1, "a")["stdout"], "tea", "the control")
            for number, now in enumerate([narrow, wide, narrow], 2):
                put(policy, now)
                want = "tea" if now is wide else ""
                wait_until(lambda: call_tool(client, number, "a")["stdout"] == want, 5, f"change {number}")
            # In place, and one that is wrong changes nothing.
            write(policy, json.dumps(wide))
            wait_until(lambda: call_tool(client, 9, "a")["stdout"] == "tea", 5, "written in place")
            put(policy, {"files": 1})
            wait_until(lambda: "the tools stay as they were" in server.said(), 5, "a word about what is wrong")
            check_equal(call_tool(client, 10, "a")["stdout"], "tea", "what is wrong")


# ---- pools that are asked for again ---------------------------------------------------------------


def try_again(client):
    with secrets() as place:
        put(f"{place}/p.json", {"files": {"read": [f"{place}/secret", f"{place}/data"]}, **LOOSE})
        write(f"{place}/data/one", "old")
        words = "sh", "-c", f"cat {place}/secret; cat {place}/data/one"
        client.pool(1, [{"load": f"{place}/p.json"}], command="sh")
        check_equal(run_in(client, 1, 1, *words)["stdout"], "teaold", "the control")
        os.rename(f"{place}/data", f"{place}/before")
        write(f"{place}/data/one", "new")
        client.pool(2, [{"load": f"{place}/p.json"}], command="sh")
        check_equal(run_in(client, 2, 2, *words)["stdout"], "teanew", "a folder that is another")
        old = os.stat(f"{place}/p.json")
        put(f"{place}/p.json", {"files": {"read": [f"{place}/data"]}, **LOOSE})
        os.utime(f"{place}/p.json", ns=(old.st_atime_ns, old.st_mtime_ns))
        client.pool(3, [{"load": f"{place}/p.json"}], command="sh")
        check_equal(run_in(client, 3, 3, *words)["stdout"], "new", "a policy that is another")
        made = client.count()["cells_made"]
        client.pool(4, [{"load": f"{place}/p.json"}], command="cat")
        check_equal(run_in(client, 4, 4, "cat", f"{place}/data/one")["stdout"], "new", "another command")
        check(client.count()["cells_made"] <= made + 8, "cells are not shared where all is the same")


@test("a pool that is asked for again has the policy and the folders of now: of a server")
def _():
    with serving() as server:
        try_again(server.join(b"PATH=/usr/bin:/bin\0"))


@test("and of a supervisor of one's own")
def _():
    with Client.start(BINARY) as client:
        try_again(client)


# ---- modules -------------------------------------------------------------------------------------


def setup_of(place, *preload):
    return json.dumps({"version": 1, "mode": "json", "path": [place], "preload": preload})


def join_python(server, place, *preload, number=1):
    client = server.join(b"PATH=/usr/bin:/bin\0")
    client.pool(number, [{"json": json.dumps({"files": {"read": [place]}, "limits": {"wall_ms": 120000}, **LOOSE})}], python=PYTHON, setup=setup_of(place, *preload))
    return client


def ask(client, number, function, pool=1):
    client.call(number, pool, tool=function)
    result = client.wait(number)
    check_equal(result["status"], "ok", function, result)
    return result["value"]


def need_ahead():
    """Where clients share cells, and modules are loaded ahead."""
    if is_bare():
        skip("clients do not share bare cells")


@test("what one client has its cells learn is not in another client's calls")
def _():
    need_ahead()
    with folder() as place, serving() as server:
        write(f"{place}/poison.py", "import builtins\nbuiltins.poison = 'of another client'\n")
        write(f"{place}/tool.py", "import builtins, sys\ndef look():\n    return getattr(builtins, 'poison', None)\n"
              "def knows():\n    return 'poison' in sys.modules\n")
        first, second = join_python(server, place), join_python(server, place)
        check_equal([ask(client, 1, "tool:look") for client in (first, second)], [None, None], "before")
        made = server.join().count()
        check(made["ready"] + made["refilling"] < 12, made)  # of one set
        first.say({"do": "learn", "pool": 1, "module": "poison"})
        numbers = iter(range(2, 1000))
        wait_until(lambda: ask(first, next(numbers), "tool:look"), 10, "the control: the first client's own calls")
        for _ in range(20):
            check_equal(ask(second, next(numbers), "tool:look"), None, "a client that was there")
        third = join_python(server, place)
        for _ in range(8):
            check_equal(ask(third, next(numbers), "tool:look"), None, "a client that comes later")
        # Who asks for the same shares what there is.
        third.say({"do": "learn", "pool": 1, "module": "poison"})
        check_equal(ask(third, next(numbers), "tool:look"), "of another client", "one that learned it, too")
        first.say({"do": "learn", "pool": 1, "module": "json.tool"})
        check_equal(ask(third, next(numbers), "tool:knows"), True, "what it knew")


@test("a client that alone has its cells keeps them when they learn, and the next to learn has them ready")
def _():
    need_ahead()
    with folder() as place, serving() as server:
        write(f"{place}/lesson.py", "import os\n")
        write(f"{place}/tool.py", "import sys\ndef knows():\n    return 'lesson' in sys.modules\n")
        client = join_python(server, place)
        check_equal(ask(client, 1, "tool:knows"), False, "before")
        client.say({"do": "learn", "pool": 1, "module": "lesson"})
        numbers = iter(range(2, 1000))
        wait_until(lambda: ask(client, next(numbers), "tool:knows"), 10, "what it learned")
        client.sock.close()
        time.sleep(0.2)
        client = join_python(server, place)
        check_equal(ask(client, 1, "tool:knows"), False, "the next one")
        client.say({"do": "learn", "pool": 1, "module": "lesson"})
        check_equal(ask(client, 2, "tool:knows"), True, "when it has learned it")


@test("who comes when a module was changed has it as it is now, however it was changed")
def _():
    need_ahead()
    with folder() as place, serving() as server:
        write(f"{place}/pack/__init__.py", "")
        write(f"{place}/pack/deep.py", "VALUE = 'one'\n")
        write(f"{place}/tool.py", "import pack.deep\ndef look():\n    return pack.deep.VALUE\n")
        client = join_python(server, place, "tool")
        check_equal(ask(client, 1, "tool:look"), "one", "the control")
        made = client.count()["cells_made"]
        other = join_python(server, place, "tool")
        check_equal(ask(other, 1, "tool:look"), "one", "the same cells")
        check(other.count()["cells_made"] <= made + 8, "cells are not shared where all is the same")
        old = os.stat(f"{place}/pack/deep.py")
        with open(f"{place}/pack/deep.py", "r+", encoding="utf-8") as file:  # in place, in as many bytes, at the same time
            file.write("VALUE = 'two'\n")
        os.utime(f"{place}/pack/deep.py", ns=(old.st_atime_ns, old.st_mtime_ns))
        for _ in range(3):
            check_equal(ask(join_python(server, place, "tool"), 1, "tool:look"), "two", "a module of a package")
        client.pool(2, [{"json": json.dumps({"files": {"read": [place]}, **LOOSE})}], python=PYTHON, setup=setup_of(place, "tool"))
        check_equal(ask(client, 2, "tool:look", pool=2), "two", "the same client, who asks again")


# ---- memory --------------------------------------------------------------------------------------


def check_growth(server, what, most_mb):
    """By how much it is larger afterwards. A sanitizer keeps what was freed."""
    before = server.rss_mb()
    what()
    grown = server.rss_mb() - before
    check(grown < most_mb or sanitized(), f"{grown} MB")


@test("an environment of nothing but NULs is counted with its pointers, and so are those of all connections")
def _():
    with serving() as server:
        def join():
            for _ in range(60):
                with contextlib.suppress(Exception):
                    server.join(b"\0" * (2 << 20))

        check_growth(server, join, 100)
        # Honest ones, as large as a program can have, until that is too much.
        joined = 0

        def join_many():
            nonlocal joined
            for _ in range(60):
                with contextlib.suppress(Exception):
                    server.join(b"".join(b"V%d=" % i + b"x" * 4000 + b"\0" for i in range(500)))
                    joined += 1

        check_growth(server, join_many, 150)
        check(8 <= joined < 60, f"{joined} were let in")
        for client in server.clients:
            client.sock.close()
        time.sleep(0.3)
        server.join(b"PATH=/bin\0")  # and it is as before


@test("answers that calls do not hear are counted, asked for or not")
def _():
    with folder() as place, serving() as server:
        write(f"{place}/tool.py", "import time\ndef sleep():\n    time.sleep(100)\ndef one():\n    return 1\n")
        client = join_python(server, place)
        check_equal(ask(client, 1, "tool:one"), 1, "the control")
        for number in range(10, 14):
            client.call(number, 1, tool="tool:sleep")
        client.count()
        answer = b"[" + b" " * (30 << 20) + b"]"

        def answer_all():
            for number in [*range(10, 14)] * 6:
                client.say({"do": "answer", "call": number, "ask": 0, "ok": True}, answer)
            client.count()

        check_growth(server, answer_all, 450)
        check_in("answers that calls of this client do not hear", str(client.lines), "what it is told")
        for number in range(10, 14):
            client.cancel(number)
            client.wait(number)
        check_equal(ask(client, 2, "tool:one"), 1, "afterwards")


@test("modules that a client's pools learn bring it no more cells than it can have")
def _():
    need_ahead()
    with folder() as place, serving(prefix=("prlimit", "--nofile=1500:1500")) as server:
        client, most = server.join(b"PATH=/usr/bin:/bin\0"), 0
        with contextlib.suppress(PermissionError):
            for most in range(64):
                client.pool(most, [{"json": json.dumps({"limits": {"wall_ms": 1000 + most}, **LOOSE})}], python=PYTHON, setup=setup_of(place))
        check(2 <= most < 64, f"{most} sets of cells")
        for number in range(most):
            client.say({"do": "drop", "pool": number})
        for number in range(most + 6):
            client.pool(number, [{"json": json.dumps(LOOSE)}], python=PYTHON, setup=setup_of(place))
        for number in range(most + 6):
            client.say({"do": "learn", "pool": number, "module": f"nothing{number}"})
        client.count()
        check_in("is not imported ahead of calls: refused: this client has cells of", str(client.lines), "what it is told")
        check_equal(ask(client, 1, "os:getpid", pool=most + 5) > 0, True, "a pool that did not learn")


@test("modules that pools do not learn any more are not kept")
def _():
    need_ahead()
    with folder() as place, serving() as server:
        client = server.join(b"PATH=/usr/bin:/bin\0")
        client.pool(1, [{"json": json.dumps(LOOSE)}], python=PYTHON, setup=setup_of(place))

        def learn_many():
            for number in range(20000):
                client.say({"do": "learn", "pool": 1, "module": f"m{number:05}" + "x" * 240})
                if number % 1000 == 0:
                    client.count()
            client.count()

        begun = time.monotonic()
        check_growth(server, learn_many, 3)
        check(time.monotonic() - begun < 20 or sanitized(), "each takes longer than the one before")


@test("pools that have no program keep nothing, and what others stand on is counted")
def _():
    with serving() as server:
        large = b"".join(b"V%d=" % i + b"x" * 4000 + b"\0" for i in range(400))
        client = server.join(large)
        sources = [{"json": json.dumps({"env": {"pass": ["*"]}, **LOOSE})}]

        def ask_for_many():
            for number in range(120):
                client.pool(number, sources)

        check_growth(server, ask_for_many, 40)
        refused = 0
        for number in range(60):
            more = [*sources, {"key": "limits.wall_ms", "value": f"{number + 1}s"}]
            try:
                client.pool(1000 + number, more, command="true", ready_min=1, ready_max=1)
            except PermissionError as why:
                check_in("come to too much", str(why), "why")
                refused += 1
        check(refused, "nothing was refused")
        client.sock.close()
        time.sleep(0.3)
        other = server.join(b"PATH=/usr/bin:/bin\0")
        other.pool(1, command="true")
        check_equal(run_in(other, 1, 1, "true")["status"], "ok", "the next client")


main()
