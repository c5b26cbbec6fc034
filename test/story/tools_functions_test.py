#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Functions of Python and Node as tools from a manifest."""

import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from manifests import RESULT, call, make, shell, tools
from vitrotest import (can_connect, check, check_equal, check_in, folder, main, skip, started, test, vitro_command,
                       wait_until, write)

FUNCTIONS = """
import logging, os

def add(a, b=1):
    print("adding")
    return {"sum": a + b}

async def later(x):
    return [x, (1, None)]

def fail(why="because"):
    raise ValueError(why)

def odd():
    return {1, 2}

def spoil():
    try:
        open(os.path.join(os.path.dirname(__file__), "more"), "w")
    except OSError:
        return "no"

seen = []

def once():
    seen.append(1)
    return len(seen)
"""


def function(name, **more):
    return {"name": name, "python": f"functions:{name}", **more}


def functions(place):
    """A manifest of Python functions."""
    write(f"{place}/functions.py", FUNCTIONS)
    return make(place, [
        function("add", input_schema={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}),
        function("later"), function("fail"), function("odd"), function("spoil"), function("once"),
        shell("echo hi", "say"),
        {"name": "missing", "python": "no_such_module:f"},
        function("nobody", interpreter="no-such-python")])


def needs_python():
    """For pools of Python."""
    if not os.path.exists(os.path.join(os.path.dirname(vitro_command()[0]), "python", "zygote.py")):
        skip("vitro was built without Python")


@test("python: functions are called, and what they return is the value")
def _():
    needs_python()
    with folder() as place:
        manifest = functions(place)
        check_equal(tools(manifest, "--query", "add").out, "add a\n", "listed")
        done = call(manifest, "add", '{"a": 2}')
        check_equal((done.code, done.out), (0, 'adding\n{"sum":3}\n'), "what it prints, and its value", done)
        result = call(manifest, "add", '{"a": 2, "b": 5}', "--json").json
        check_equal(list(result), RESULT, "the shape of results")
        check_equal((result["status"], result["value"], result["stdout"]), ("ok", {"sum": 7}, "adding\n"), "result")
        check_equal(call(manifest, "later", '{"x": "a"}', "--json").json["value"], ["a", [1, None]], "an async one")
        check_equal(call(manifest, "say").out, "hi\n", "a command beside them")
        for _ in range(2):
            check_equal(call(manifest, "once").out, "1\n", "nothing is left of a call")
        check_equal(call(manifest, "spoil").out, '"no"\n', "their folder is read-only")
        check(not os.path.exists(f"{place}/more"), "it was written")


@test("python: what goes wrong says so")
def _():
    needs_python()
    with folder() as place:
        manifest = functions(place)
        done = call(manifest, "fail", '{"why": "no luck"}')
        check_equal((done.code, done.out), (1, ""), "an exception", done)
        check(re.fullmatch(r'Traceback .*\n  File ".*/functions.py", line \d+, in fail\n    raise ValueError\(why\)\n'
                           r"ValueError: no luck\nvitro: fail: failed with ValueError\n", done.err), done)
        error = call(manifest, "fail", "--json").json["error"]
        check_equal((error["type"], error["message"]), ("ValueError", "because"), "as JSON")
        done = call(manifest, "odd")
        check_equal(done.code, 1, "what JSON cannot say", done)
        check_in("result is a set, which JSON cannot say", done.err, "why", done)
        done = call(manifest, "missing")
        check_in("there is no module 'no_such_module' in the cell", done.err, "no such module", done)
        done = call(manifest, "add", '{"a": "x"}')
        check_equal(done.code, 125, "arguments that do not fit", done)
        done = call(manifest, "nobody")
        check_equal(done.code, 127, "no such interpreter", done)
        check_in("tools[8].interpreter: ", done.err, "which", done)


EXPORTS = """
import { writeFileSync } from 'node:fs';

const seen = [];

export function add({ a, b = 1 }) {
	console.log('adding');
	return { sum: a + b };
}

export const later = async ({ x }) => [x, new Date(0), undefined];

export function fail({ why = 'because' }) {
	throw new RangeError(why);
}

export const odd = () => ({ a: new Map([[1, 2]]) });

export function spoil() {
	try {
		writeFileSync(new URL('more', import.meta.url), '');
	} catch {
		return 'no';
	}
}

export const once = () => seen.push(1);
"""


def exports(place):
    """A manifest of JavaScript functions."""
    if not os.path.exists(os.path.join(os.path.dirname(vitro_command()[0]), "node", "zygote.cjs")):
        skip("vitro was built without Node")
    if not shutil.which("node"):
        skip("there is no node here")
    write(f"{place}/exports.mjs", EXPORTS)
    return make(place, [
        {"name": "add", "node": "exports.mjs#add",
         "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
        *({"name": name, "node": f"exports.mjs#{name}"} for name in ("later", "fail", "odd", "spoil", "once", "none")),
        {"name": "missing", "node": "no-such-file.mjs#f"},
        {"name": "nobody", "node": "exports.mjs#add", "interpreter": "no-such-node"}])


@test("node: functions are called, and what they return is the value")
def _():
    with folder() as place:
        manifest = exports(place)
        done = call(manifest, "add", '{"a": 2}')
        check_equal((done.code, done.out), (0, 'adding\n{"sum":3}\n'), "what it prints, and its value", done)
        result = call(manifest, "add", '{"a": 2, "b": 5}', "--json").json
        check_equal((result["status"], result["value"], result["stdout"]), ("ok", {"sum": 7}, "adding\n"), "result")
        check_equal(call(manifest, "later", '{"x": "a"}', "--json").json["value"], ["a", "1970-01-01T00:00:00.000Z", None],
                    "an async one")
        for _ in range(2):
            check_equal(call(manifest, "once").out, "1\n", "nothing is left of a call")
        check_equal(call(manifest, "spoil").out, '"no"\n', "their folder is read-only")
        check(not os.path.exists(f"{place}/more"), "it was written")


@test("node: what goes wrong says so")
def _():
    with folder() as place:
        manifest = exports(place)
        done = call(manifest, "fail", '{"why": "no luck"}')
        check_equal((done.code, done.out), (1, ""), "an error", done)
        check(re.fullmatch(r"RangeError: no luck\n    at fail \(file://.*/exports.mjs:14:\d+\)\nvitro: fail: failed with RangeError\n",
                           done.err), done)
        check_in("result.a is Map(1)", call(manifest, "odd").err, "what JSON cannot say")
        check_in("has no function 'none'", call(manifest, "none").err, "no such export")
        check_in("no-such-file.mjs", call(manifest, "missing").err, "no such file")
        check_equal(call(manifest, "add", '{"a": "x"}').code, 125, "arguments that do not fit")
        done = call(manifest, "nobody")
        check_equal(done.code, 127, "no such interpreter", done)
        write(manifest, json.dumps({"tools": [{"name": "a", "node": "../up.mjs#f"}]}))
        done = call(manifest, "a")
        check_equal(done.code, 125, "a file that is not beside it", done)
        check_in('node: want a file and its export, "file.mjs#export"', done.err, "why", done)


@test("python: a function of a server's")
def _():
    needs_python()
    with folder() as place, folder() as log:
        manifest, socket = functions(place), f"{place}/s"
        kept = json.loads(open(manifest, encoding="utf-8").read())
        kept["tools"] = kept["tools"][:-1]
        write(manifest, json.dumps(kept))
        audit = f"{log}/audit"
        with started(vitro_command("serve", "--socket", socket, "--tools", manifest, "--audit", audit)) as server:
            wait_until(lambda: server.poll() is not None or can_connect(socket), 10, "it serves")
            done = call("--socket", socket, "add", '{"a": 2}')
            check_equal((done.code, done.out), (0, 'adding\n{"sum":3}\n'), "what it prints, and its value", done)
            check_equal(call("--socket", socket, "later", '{"x": 1}', "--json").json["value"], [1, [1, None]], "value")
            check_equal(call("--socket", socket, "say").out, "hi\n", "a command beside it")
            done = call("--socket", socket, "fail")
            check_equal(done.code, 1, "an exception", done)
            check_in("ValueError: because\nvitro: fail: failed with ValueError\n", done.err, "its traceback", done)
            result = call("--socket", socket, "fail", "--json").json
            check_in("\nValueError: because\n", result["error"]["traceback"], "in the result")
            check_equal(result["logs"], [], "and nowhere else in it")
            done = call("--socket", socket, "add", '{"a": "x"}')
            check_equal(done.code, 125, "arguments that do not fit", done)
            check_in("want an integer", done.err, "why", done)
            done = tools("--socket", socket, "--query", 1025 * "x")
            check_equal((done.code, done.err), (125, "vitro: the query is longer than 1024 bytes\n"), "query", done)
            many = json.dumps({"x": [1] * (16 << 10)})  # which the server alone does not take
            check_in("more than 16384 values", call("--socket", socket, "later", many).err, "refused by the server")
            recorded = [json.loads(line) for line in open(audit, encoding="utf-8")]
            check_equal([(line["tool"], line["status"]) for line in recorded],
                        [("add", "ok"), ("later", "ok"), ("say", "ok"), ("fail", "error"), ("fail", "error"),
                         ("later", "refused")], "by their names in the manifest, also what came to no call")


@test("python: mistakes of a manifest have a line and a key")
def _():
    with folder() as place:
        for tool, says in (
                ({"python": "m"}, 'tools[0].python: want a module and its function, "module:function", found \'m\''),
                ({"python": 5}, "tools[0].python: want a string"),
                ({"python": "m:f", "stdin": "x"}, 'tools[0].stdin: does not go with "python"'),
                ({"python": "m:f", "command": ["x"]}, 'tools[0].command: does not go with "python"'),
                ({"command": ["x"], "interpreter": "y"}, 'tools[0].interpreter: there is no "python" or "node" that it could run'),
                ({"python": "m:f", "interpreter": ""}, "tools[0].interpreter: it is empty"),
                ({"pyton": "m:f"}, "unknown key 'pyton'; did you mean 'python'?"),
                ({}, 'there is no "command", no "python", and no "node"')):
            done = tools(write(f"{place}/t.json", json.dumps({"tools": [{"name": "t", **tool}]}, indent=1)))
            check_equal(done.code, 125, "exit", done)
            check_in(says, done.err, "what it says", done)
            check(re.search(r"t\.json:\d+: tools\[0\]", done.err), done)


if __name__ == "__main__":
    main()
