#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Values and messages: what a hostile cell can make its host pay."""

import collections
import decimal
import enum
import itertools
import json
import os
import random
import resource
import struct
import sys
import time
import types
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "lib"))
from coding import codec, join, numpy, random_value, refused
from vitrotest import check, check_equal, check_in, main, test


def bounded(what, seconds, megabytes, function):
    """Runs it in a process of its own, and checks what that cost. function: returns a text."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            began = time.process_time()
            text = function()
            took = time.process_time() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            os.write(write, json.dumps([text, took, (peak - before) / 1024]).encode())
        except BaseException as error:
            os.write(write, json.dumps([f"{type(error).__name__}: {error!s:.200}", -1, 0]).encode())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    check(said, f"{what}: it died")
    text, took, grown = json.loads(said)
    check(took >= 0, f"{what}: {text}")
    check(took < seconds, f"{what}: took {took:.1f} s")
    check(grown < megabytes, f"{what}: took {grown:.0f} MB")
    return text


def read_message(text, buffers=(), classes=None):
    """Reads a message with this text as its value; says what became of it."""
    head = b'{"value":' + text + b"}"
    lengths = b"".join(struct.pack("<Q", len(data)) for data in buffers)
    data = b"".join([struct.pack("<I", len(head)), head, struct.pack("<I", len(buffers)), lengths, *buffers])
    try:
        tree, views = codec.unpack(data)
        codec.decode(tree["value"], views, classes)
        return "read"
    except codec.Malformed as error:
        return str(error)


def same_hashes(count):
    """Different numbers that all have one hash."""
    prime = sys.hash_info.modulus
    return [5 + number * prime for number in range(count)]


@test("codec: bombs are refused within bounds of time and memory")
def _():
    many = 20_000_000
    colliding = same_hashes(100_000)
    hexed = ",".join('{"$int":"%s"}' % hex(number) for number in colliding).encode()
    cases = [
        ("lists in a list", lambda: b"[" + b"[]," * (many // 3) + b"[]]", "too many parts"),
        ("objects in a list", lambda: b"[" + b'{"":0},' * (many // 7) + b"0]", "too many parts"),
        ("zeros", lambda: b"[" + b"0," * (many // 2) + b"0]", "too many parts"),
        ("lists without an end", lambda: b"[" * 9_000_000, "nests too deep"),
        ("nested lists", lambda: b"[" * 900_000 + b"]" * 900_000, "nests too deep"),
        ("nested objects", lambda: b'{"a":' * 900_000 + b"0" + b"}" * 900_000, "nests too deep"),
        ("nested tuples", lambda: b'{"$tuple":[' * 300_000 + b"]}" * 300_000, "nests too deep"),
        ("an integer of digits", lambda: b"9" * 5_000_000, "too long"),
        ("many of them", lambda: b"[" + b",".join([b"9" * 4000] * 2000) + b"]", "too long"),
        ("a negative one", lambda: b"-" + b"1" * 5_000_000, "too long"),
        ("a text of digits", lambda: b'"' + b"9" * 20_000_000 + b'"', "read"),
        ("a fraction of digits", lambda: b"0." + b"9" * 5_000_000, "read"),
        ("an exponent of digits", lambda: b"1e-" + b"9" * 5_000_000, "read"),
        ("a large integer", lambda: b'{"$int":"0x' + b"f" * 20_000_000 + b'"}', "read"),
        ("a large decimal", lambda: b'{"$decimal":"' + b"9" * 5_000_000 + b'"}', "read"),
        ("a decimal's exponent", lambda: b'{"$set":[{"$decimal":"1E+999999999999999999"},1,{"$decimal":"1E+99999999999999999999"}]}', None),
        ("keys that collide", lambda: b'{"$set":[' + hexed + b"]}", "collide"),
        ("tuples that collide", lambda: b'{"$set":[' + b",".join(b'{"$tuple":[{"$int":"%s"}]}' % hex(n).encode() for n in colliding) + b"]}", "collide"),
        ("keys of a dict that collide", lambda: b'{"$dict":[' + b",".join(b'[{"$int":"%s"},0]' % hex(n).encode() for n in colliding) + b"]}", "collide"),
        ("UUIDs that collide", lambda: b'{"$set":[' + b",".join(b'{"$uuid":"%s"}' % str(uuid.UUID(int=n)).encode() for n in colliding) + b"]}", "collide"),
        ("many small sets that collide", lambda: b"[" + b",".join([b'{"$set":[' + b",".join(b'{"$int":"%s"}' % hex(n).encode() for n in colliding[:64]) + b"]}"] * 2000) + b"]", "read"),
        ("numbers that share their last bits", lambda: b'{"$set":[' + b",".join(b'{"$int":"%s"}' % hex(n << 40).encode() for n in range(200_000)) + b"]}", "read"),
        ("a decimal beside a huge integer", lambda: b'{"$set":[{"$decimal":"5"},{"$int":"0x' + b"f" * 1_000_000 + b'"}]}', "too large to be keys"),
        ("sets in sets", lambda: b'{"$set":[' + b'{"$frozenset":[' * 98 + b"]}" * 98 + b"]}", "read"),
        ("too many sets in sets", lambda: b'{"$set":[' + b'{"$frozenset":[' * 100 + b"]}" * 100 + b"]}", "nests too deep"),
        ("an unknown name, long", lambda: b'{"$' + b"x" * 20_000_000 + b'":1}', "is not the name of a type"),
    ]
    for what, make, says in cases:
        text = make()
        said = bounded(what, 8, 700, lambda: read_message(text))
        if says:
            check_in(says, said, what)


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


Many = enum.IntFlag("Many", {f"BIT{number}": 1 << number for number in range(20)})


@test("codec: flags are of bits that their class has, and each that is new counts")
def _():
    def read(kind, *values):
        tree = [{"$object": {"type": "a:Kind", "state": {"value": value}}} for value in values]
        try:
            return codec.decode(tree, codec.Attachments.of(()), {"a:Kind": kind})
        except codec.Malformed as error:
            return str(error)

    check_equal(read(Rights, 3, 0), [Rights(3), Rights(0)], "what its members make")
    for what, values in (("a bit more", [4]), ("20000 bits", [{"$int": hex((1 << 20000) - 1)}]), ("a text", ["1"]), ("true", [True]), ("nothing", [None])):
        check_in("a flag", bounded(what, 8, 700, lambda: read(Rights, *values)), what)
    check(4 not in Rights._value2member_map_, "it was kept")
    check_equal(read(Rights, -1), [Rights(-1)], "as old versions of Python have all of them")
    check_equal(read(Many, *range(0, 300, 3)), [Many(value) for value in range(0, 300, 3)], "a hundred of them")
    check_equal(bounded("all of them", 8, 700, lambda: read(Many, *range(1 << 16))), "keys collide", "too many")


@test("codec: brackets that close, and were never opened, are counted and no more")
def _():
    text = b"[" * 201 + b"]" * 60_000_000
    check_in("more brackets that close", bounded("brackets", 3, 700, lambda: read_message(text)), "what was said")


@test("codec: buffers cannot be multiplied")
def _():
    check_in("used twice", bounded("one buffer, often", 5, 200, lambda: read_message(
        b"[" + b",".join([b'{"$bytes":0}'] * 1000) + b"]", [bytes(10 << 20)])), "why")
    empty = b"".join([struct.pack("<I", 2), b"{}", struct.pack("<I", 5_000_000), bytes(40_000_000)])
    check_in("too many buffers", bounded("empty buffers", 5, 200, lambda: refused(lambda: codec.unpack(empty), "they")), "why")
    head, views = codec.unpack(join({"files": {"a": 0, "b": 0}}, [b"x"]))
    check_in("used twice", refused(lambda: codec.read_files(head["files"], views, ["*"]), "one buffer for two files"), "why")


@test("codec: a program that raised its recursion limit is not brought down")
def _():
    def read():
        sys.setrecursionlimit(1_000_000)
        return [read_message(b"[" * 2_000_000 + b"]" * 2_000_000), read_message(b'["]"' + b',["["' * 150 + b"]" * 151),
                read_message(b'["]"' + b',["["' * 300 + b"]" * 301)]

    said = bounded("nested", 20, 1000, read)
    check_equal((said[0], said[1], said[2]), ("the message nests too deep", "read", "the message nests too deep"), "what was said")


@test("codec: nesting is counted as JSON has it, in time that grows with the text")
def _():
    deepest = codec.NESTING_MAX - 1  # the message is an object itself
    for what, begin, end in (("lists", b"[", b"]"), ("objects", b'{"a":', b"}"), ("texts of brackets", b'["]]]",', b"]"),
                             ("escaped quotes", rb'["\"]",', b"]"), ("escaped backslashes", rb'["\\","]\\\"]",', b"]"),
                             ("escapes", rb'["\n]\u0022]",', b"]"), ("siblings", b"[[],[[]],", b"]")):
        for depth, says in ((deepest - 2, "read"), (deepest + 1, "nests too deep")):
            check_in(says, read_message(begin * depth + b"0" + end * depth), f"{what}, {depth} deep")
    for what, text in (("an unterminated text of quotes", b"[" * 300 + b'"' + rb'\"' * 2_000_000), ("many texts", b"[[" * 150 + b'"",' * 1_000_000),
                       ("backslashes", b"[" * 300 + b'"' + b"\\" * 4_000_001), ("quotes", b"[" * 300 + b'"' * 4_000_001)):
        sys.setrecursionlimit(6000)
        try:
            bounded(what, 3, 300, lambda: read_message(text))
        finally:
            sys.setrecursionlimit(1000)
    flat = b"[" + b",".join([b"[[[[[[[[[[0]]]]]]]]]]"] * 100_000) + b"]"
    check_equal(bounded("lists, ten deep", 4, 300, lambda: read_message(flat)), "read", "it")


def colliding_tuples(count, length=13):
    """Tuples that all have one hash, as text: that of -1 is that of -2."""
    return ['{"$tuple":[%s]}' % ",".join(map(str, item)) for item in itertools.islice(itertools.product((-1, -2), repeat=length), count)]


def frozensets(items, twins, count):
    """So many that have all but one item in common."""
    return ['{"$frozenset":[%s]}' % ",".join(items[:twins - 1] + [items[twins - 1 + number]]) for number in range(count)]


@test("codec: keys that collide cost a message little, however they are nested")
def _():
    def nest(twins, levels):
        items = colliding_tuples(twins * (levels + 1))
        for level in range(levels - 1, 0, -1):
            items = frozensets(items, twins, twins * (level + 1) - twins + 1 if level > 1 else twins)
        return items[:twins]

    made = [(f"{twins} twins, {levels} levels", '{"$set":[%s]}' % ",".join(nest(twins, levels)))
            for twins, levels in ((2, 8), (4, 5), (8, 3), (12, 3), (16, 3), (20, 3), (28, 3), (64, 2), (64, 3), (100, 1), (1000, 1))]
    made.append(("long tuples", '{"$set":[%s]}' % ",".join('{"$tuple":[%s%s]}' % ("0," * 10_000, item[11:-2]) for item in colliding_tuples(64))))
    text = '"' + "x" * 100_000 + '",'
    made.append(("long texts", '{"$set":[%s]}' % ",".join('{"$tuple":[%s%s]}' % (text, item[11:-2]) for item in colliding_tuples(64))))
    made.append(("many sets", "[%s]" % ",".join(['{"$set":[%s]}' % ",".join(colliding_tuples(64))] * 2000)))
    made.append(("a dict", '{"$dict":[%s]}' % ",".join(f"[{item},0]" for item in colliding_tuples(4000))))
    made.append(("values of a dict", '{"a":[%s]}' % ",".join('{"$set":[%s]}' % ",".join(colliding_tuples(60, 7)) for _ in range(1000))))
    refusals = 0
    for what, text in made:
        said = bounded(what, 1.5, 300, lambda: read_message(text.encode()))
        check(said in ("read", "keys collide"), f"{what}: {said}")
        refusals += said != "read"
    check(refusals >= 8, f"{refusals} were refused")
    for what in ("28 twins, 3 levels", "1000 twins, 1 levels", "many sets"):
        check_equal(read_message(dict(made)[what].encode()), "keys collide", what)


def row_of_places(bits):
    """Numbers that take the places of a table of 2^bits which one more goes through, and that one; no two of them share a
    hash. It looks at ten places, as a set does, then goes on as CPython's sets and dicts do once a hash is used up."""
    mask = (1 << bits) - 1
    taken, at = {}, 12345
    rows = {}
    while len(taken) < 0.59 * mask:
        rows[at] = len(rows)
        taken.update(dict.fromkeys(range(at, at + 10 if at + 9 <= mask else at + 1)))
        at = (at * 5 + 1) & mask
    rng = random.Random(1)
    while True:
        number = rest = rng.randrange(1 << bits, 1 << 25)
        at = number & mask
        while at in rows and rest:
            rest >>= 5
            at = (at * 5 + 1 + rest) & mask
        if rows.get(at, len(rows)) < len(rows) // 10:
            return list(taken), number


@test("codec: keys that go through one long row of places, with hashes of their own, cost what their number may")
def _():
    numbers, last = row_of_places(17)
    repeated = numbers + [last] * 60_000
    large = [{"$int": hex(key + sys.hash_info.modulus)} for key in repeated]
    for what, tree in (("a set", {"$set": repeated}), ("a frozenset", {"$frozenset": repeated}), ("a set of large integers", {"$set": large}),
                       ("keys of a dict", {"$dict": [[key, 0] for key in large]})):
        text = json.dumps(tree).encode()
        said = bounded(what, 2.5, 300, lambda: read_message(text))
        check(said in ("read", "keys collide"), f"{what}: {said}")
    dense = {"$dict": [[key, 0] for key in repeated]}
    views = codec.Attachments.of(())
    views.table_seconds = -1.0
    check_in("collide", refused(lambda: codec.decode(dense, views), "a message that has used up its time"), "why")


@test("codec: a set of any size is read as it was, whatever its keys have in common")
def _():
    for count in (1, 64, 65, 129, 40_000, 40_001, 80_000):
        for what, make in (("consecutive", lambda n: n), ("of a power of two", lambda n: n << 32), ("fractions", lambda n: n / 1024), ("pairs", lambda n: (n, -n))):
            keys = [make(number) for number in range(count)]
            tree, _ = codec.encode(keys)
            text = json.dumps(tree)
            for tag, value in (("$set", set(keys)), ("$frozenset", frozenset(keys))):
                got = codec.decode({tag: json.loads(text)}, codec.Attachments.of(()))
                check(type(got) is type(value) and got == value, f"{count} {what}, {tag}")
            made = codec.decode({"$dict": [[key, at] for at, key in enumerate(json.loads(text))]}, codec.Attachments.of(()))
            check(list(made.items()) == list(zip(keys, range(count))), f"{count} {what}, $dict")
    for tag, value in (("$set", [1, 2, 1] * 30_000), ("$frozenset", [1, 2, 1] * 300)):
        check_equal(sorted(codec.decode({tag: list(value)}, codec.Attachments.of(()))), sorted(set(value)), f"{tag} of equal keys")


@test("codec: numpy is not asked for a type that it does not have")
def _():
    asked = []
    stub = types.SimpleNamespace(dtype=asked.append)
    for dtype in ("<M8[0s]", "<m8[000000ns]", "<M8[05s]", "<M8[1234567s]"):
        refused(lambda: codec.decode({"$npscalar": {"dtype": dtype, "buffer": 0}}, [bytes(8)], load=lambda name: stub), dtype)
    check_equal(asked, [], "what it was asked for")
    for dtype in ("<M8[s]", "<m8[25s]", "<M8[100000ns]", "<M8"):
        refused(lambda: codec.decode({"$npscalar": {"dtype": dtype, "buffer": 0}}, [bytes(8)], load=lambda name: stub), "a stub makes nothing")
    check_equal(asked, ["<M8[s]", "<m8[25s]", "<M8[100000ns]", "<M8"], "of those that it has")


@test("codec: a text of numpy's that is none is refused at once, where the caller has no numpy")
def _():
    size = 4 << 20
    read = lambda unit: codec.decode({"$npscalar": {"dtype": f"<U{size}", "buffer": 0}}, [unit * size], load={}.get)
    check_equal(read(b"a\0\0\0"), "a" * size, "the control")
    began = time.process_time()
    refused(lambda: read(b"\0\xd8\0\0"), "halves of pairs")
    check(time.process_time() - began < 0.5, "each of them was looked at")


class Colour(enum.Enum):
    RED = 1


@test("codec: an error that cannot be printed is Malformed all the same")
def _():
    for state in ({"name": {"$int": "0x" + "f" * 20_000}}, {"value": {"$int": "0x" + "f" * 20_000}}, {"name": []}):
        why = bounded(str(state)[:20], 2, 100, lambda: read_message(
            json.dumps({"$object": {"type": "a:Colour", "state": state}}).encode(), (), {"a:Colour": Colour}))
        check_in("cannot be made", why, "what was said")


@test("codec: honest keys are none that collide")
def _():
    rng = random.Random(4)
    for what, value in (("tuples", {(n, n + 1) for n in range(30_000)}), ("a grid", {(x, y) for x in range(-100, 100) for y in range(-100, 100)}),
                        ("steps", set(itertools.product((-1, 0, 1), repeat=9))), ("tuples as keys", {(n, str(n)): n for n in range(30_000)}),
                        ("small numbers", {tuple(rng.randrange(-10, 10) for _ in range(5)) for _ in range(20_000)}),
                        ("frozensets", {frozenset((n, -n)) for n in range(20_000)}), ("floats", {n / 7 for n in range(-20_000, 20_000)}),
                        ("decimals", {decimal.Decimal(n) / 8 for n in range(-10_000, 10_000)}), ("powers of two", {1 << n for n in range(2000)}),
                        ("edges", {frozenset(((n, n), (n, -1))) for n in range(10_000)})):
        tree, buffers = codec.encode(value)
        data = join({"value": tree}, buffers)
        got = []

        def read():
            head, views = codec.unpack(data)
            got.append(codec.decode(head["value"], views))
            if views.compared > codec.COMPARE_MAX // 50:  # sets that are fifty times as large are honest as well
                return f"compared at a cost of {views.compared}"
            return "read" if got[0] == value else "another value"

        check_equal(bounded(what, 2, 700, read), "read", what)


@test("codec: names of files lead nowhere else")
def _():
    for name in ("", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b", "..", ".", "x" * 5000):
        head, views = codec.unpack(join({"files": {name: 0}}, [b"x"]))
        refused(lambda: codec.read_files(head["files"], views, ["**"]), repr(name))
    head, views = codec.unpack(join({"files": {"out/a b.txt": 0, "...": 1, "é": 2}}, [b"x", b"y", b"z"]))
    check_equal(codec.read_files(head["files"], views, ["**"]), {"out/a b.txt": b"x", "...": b"y", "é": b"z"}, "good names")
    refused(lambda: codec.read_files([1], views, ["**"]), "a list")
    check_equal(codec.read_files(None, views), {}, "none")


@test("codec: files are those that were asked for, and no more than those")
def _():
    for patterns, good, bad in ((["out/**"], ["out/a", "out/b/c"], ["out", "a", "in/out/a"]), (["*.csv", "b"], ["a.csv", ".csv", "b"], ["a/b.csv", "a.csvx", "bb"]),
                                (["**/a"], ["a", "x/a", "x/y/a"], ["x/ab", "a/b"]), (["x/**/y/*.t"], ["x/y/a.t", "x/b/y/.t", "x/y/y/a.t"], ["y/a.t", "x/a.t"]),
                                (["a?c[0-9][!x]"], ["abc1y", "a€c0]"], ["ac1y", "abc1x", "abcdy"]), (["a*b*c"], ["abc", "axbxbc"], ["acb", "abcd", "a/b/c"]),
                                ((), [], ["a"]), (["./a"], ["a"], ["b"]), (["../a"], [], ["a"]), (["a\n*"], ["a\nb\n"], ["a"])):
        for name in good + bad:
            head, views = codec.unpack(join({"files": {name: 0}}, [b"x"]))
            if name in good:
                check_equal(codec.read_files(head["files"], views, patterns), {name: b"x"}, f"{patterns}")
            else:
                refused(lambda: codec.read_files(head["files"], views, patterns), f"{patterns}: {name}")
    many = {str(number): number for number in range(codec.FILES_MAX + 1)}
    refused(lambda: codec.read_files(many, codec.Attachments.of([b""] * len(many)), ["*"]), "too many")
    del many["0"]
    check_equal(len(codec.read_files(many, codec.Attachments.of([b""] * (codec.FILES_MAX + 1)), ["*"])), codec.FILES_MAX, "as many as can be")
    slow = {"a" * 4000: 0}, {"a/" * 2000 + "b": 0}, {"/".join(["a" * 60] * 60): 0}
    for files in slow:
        bounded("names that are slow to match", 0.5, 100, lambda: refused(lambda: codec.read_files(
            files, codec.Attachments.of([b""]), ["*a*a*a*a*a*c", "**/**/**/**/**/c", "**/*a*a*a*b*/**/*a*a*b"]), "it"))


@test("codec: 30000 mutated messages are read, or refused by Malformed alone")
def _():
    rng = random.Random(2)
    seeds = []
    for number in range(60):
        tree, buffers = codec.encode([random_value(rng, 3), b"x", 1 << 60])
        seeds.append(bytes(join({"value": tree}, buffers)))
    if numpy:
        tree, buffers = codec.encode([numpy.arange(6).reshape(2, 3), numpy.float32(1)])
        seeds += [bytes(join({"value": tree}, buffers))] * 10
    words = [b"$int", b"$set", b"$dict", b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"1e999", b"-0", b"\\u0024", b"\xff", b"<M8[0s]", b"|O"]
    counts = collections.Counter()
    for number in range(30000):
        seed = rng.choice(seeds)
        end = 4 + int.from_bytes(seed[:4], "little")
        is_framed = rng.random() < 0.7  # only its JSON is changed, and the length is right again
        data = bytearray(seed[4:end] if is_framed else seed)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            kind = rng.randrange(5)
            if kind == 0 and at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del data[at:at + rng.randrange(1, 9)]
            elif kind == 2:
                data[at:at] = rng.choice(words)
            elif kind == 3:
                other = rng.choice(seeds)
                start = rng.randrange(len(other))
                data[at:at + 4] = other[start:start + rng.randrange(20)]
            elif at < len(data):
                data[at] = rng.choice(b'[]{}",:$0123456789abcdefx')
        if is_framed:
            data = bytearray(struct.pack("<I", len(data)) + data + seed[end:])
        try:
            head, views = codec.unpack(data)
            codec.decode(head.get("value"), views)
            counts["read"] += 1
        except codec.Malformed:
            counts["refused"] += 1
        except BaseException as error:
            check(False, f"message {number} raised {error!r}: {bytes(data)!r}")
    check(counts["read"] > 1000 and counts["refused"] > 1000, f"the mutations are all of one kind: {counts}")


@test("codec: 30000 random trees are read, or refused by Malformed alone")
def _():
    rng = random.Random(3)
    tags = list(codec._readers)
    leaves = [None, True, 0, 1, -1, 1 << 60, 1.5, "", "0x1", "nan", "2024-01-01", "12:00", "1E+5", "<f8", "|b1", "C", "a:B", "sNaN", "M8[ns]",
              "12345678-1234-5678-1234-567812345678"]

    def grow(depth):
        kind = rng.randrange(6) if depth else 0
        if kind <= 1:
            return rng.choice(leaves)
        if kind == 2:
            return [grow(depth - 1) for _ in range(rng.randrange(4))]
        if kind == 3:
            return {rng.choice(["a", "b", "dtype", "shape", "order", "buffer", "type", "state"]): grow(depth - 1) for _ in range(rng.randrange(4))}
        if kind == 4 and rng.random() < 0.3:
            return {"$ndarray": {"dtype": rng.choice(["<f8", "|b1", "<M8[s]", "<U1", grow(0)]), "shape": grow(1), "order": rng.choice("CFK"), "buffer": rng.randrange(3)}}
        return {rng.choice(tags): grow(depth - 1)}

    counts = collections.Counter()
    for number in range(30000):
        tree = grow(4)
        text = json.dumps(tree)
        try:
            codec.decode(tree, [bytes(8), b"\x02", b""])
            counts["read"] += 1
        except codec.Malformed:
            counts["refused"] += 1
        except BaseException as error:
            check(False, f"tree {number} raised {error!r}: {text}")
    check(counts["read"] > 1000 and counts["refused"] > 1000, f"the trees are all of one kind: {counts}")


main()
