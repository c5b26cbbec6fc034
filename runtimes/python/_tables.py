# SPDX-License-Identifier: Apache-2.0
"""Sets and dicts of keys that may be anybody's, at a cost in proportion to their number.

How Python hashes numbers and tuples, and where in a table it looks for a hash, is no secret. So keys can be chosen that share a
hash, and are compared with one another; or that share none, but go through one long row of taken places. The first is
estimated beforehand, since one comparison can take long. The second is measured, a few keys at a time.

The same file is part of the runtime in a cell and of the package on the host, by this name.
"""

from __future__ import annotations

import sys
from collections import Counter
from time import perf_counter, thread_time

from ._message import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Collection, Dict, List, Optional, Tuple

    from ._message import Attachments

COMPARE_MAX = 5_000_000  # what comparing a message's keys may cost, in units of Tables: up to 0.3 s
SECONDS_PER_KEY = 3e-6  # twice what the worst of honest keys take, which are multiples of 2^32

_FREE = 64  # keys of a table that are not worth a look at the clock
_BATCH = 64  # keys between two looks; as many go through a whole table at the most
_LARGE = 40_000  # keys from which on it matters in what order a set takes them when it grows
_SECRET = frozenset((str, bytes, bool, type(None)))  # whose hashes are drawn anew for each process, or are few
_PLAIN_COST = frozenset((int, str, bool, type(None), bytes))
_VISIT = 6  # units that it takes to find what one part costs
_WEIGHTS = {"float": 4, "complex": 4, "UUID": 10, "datetime": 20, "date": 4, "time": 20, "timedelta": 4, "Decimal": 60}


class _Clock:
    """CPU time of this thread that a table takes. What it takes beyond its due is taken from what its message may."""

    __slots__ = ("buffers", "due", "wall", "cpu")

    def __init__(self, buffers: Attachments, count: int, hashing: float = 0) -> None:
        self.buffers = buffers
        self.due = count * SECONDS_PER_KEY + 5 * hashing  # tuples are hashed each time
        self.wall, self.cpu = perf_counter(), thread_time()

    def check(self) -> None:
        limit = self.due + self.buffers.table_seconds
        # The first is never behind the other, and takes a fifth of the time to read.
        if perf_counter() - self.wall > limit and thread_time() - self.cpu > limit:
            raise Malformed("keys collide")

    def stop(self) -> None:
        self.check()
        self.buffers.table_seconds -= max(0.0, thread_time() - self.cpu - self.due)


class Tables:
    """The sets and dicts of a message. Only keys that share their hash with another are looked at, so that honest data pays next
    to nothing for that. A unit is about 40 ns.

    For two things that are compared, the mean of their costs is no less than it takes: tuples end with the shorter
    one; frozensets a and b, with a_h and b_h items of the hash h, take Σ a_h·b_h ≤ ½(Σ a_h² + Σ b_h²).
    """

    __slots__ = ("buffers", "has_scalars_of_numpy", "has_decimal", "has_huge_int")

    def __init__(self, buffers: Attachments) -> None:
        self.buffers = buffers
        self.has_scalars_of_numpy = self.has_decimal = self.has_huge_int = False

    def make_set(self, kind: Any, keys: List[Any]) -> Any:
        """kind: set or frozenset."""
        care = self.look(keys)
        if care is None:
            return kind(keys)
        batch, clock = care
        made = _fill_large(kind, keys, batch, clock) if len(keys) > _LARGE else _fill_small(kind, keys, batch, clock)
        clock.stop()
        return made

    def make_dict(self, pairs: List[Any]) -> Dict[Any, Any]:
        care = self.look([key for key, _ in pairs])
        if care is None:
            return {key: value for key, value in pairs}
        batch, clock = care
        made = {}
        # A dict that grows takes its keys in the order in which they came. Each then goes through no more places than it did in
        # the table before, since a place that is taken is taken there as well: growing costs no more than what was measured.
        for at in range(0, len(pairs), batch):
            for key, value in pairs[at:at + batch]:
                made[key] = value
            clock.check()
        clock.stop()
        return made

    def look(self, keys: List[Any]) -> Optional[Tuple[int, _Clock]]:
        """How many keys may be put into a table at once, and the clock for it; None: all of them. Raises Malformed if comparing them
        takes too long."""
        kinds = set(map(type, keys))
        if kinds <= _SECRET:
            return None
        if kinds == {int} and -1 << 60 < min(keys) and max(keys) < 1 << 60:  # each has a hash of its own, but -1 and -2
            return None if len(keys) <= _FREE else (_BATCH, _Clock(self.buffers, len(keys)))
        if self.has_decimal and self.has_huge_int:  # whose comparison takes the square of their length
            raise Malformed("numbers are too large to be keys")
        if len(keys) > _FREE:
            return self.look_at_many(keys)
        hashes = list(map(hash, keys))
        # What comparing takes is an estimate, which sets in sets can exceed: it is measured as well where it may matter.
        if len(set(hashes)) == len(hashes) or self.charge_table(keys, hashes) <= _FREE:
            return None
        return 1, _Clock(self.buffers, len(keys))

    def look_at_many(self, keys: List[Any]) -> Tuple[int, _Clock]:
        began = thread_time()
        hashes = list(map(hash, keys))
        hashing = thread_time() - began
        costs = self.charge_table(keys, hashes) if self.have_twins(hashes) else 0
        return _BATCH if costs <= len(keys) else 1, _Clock(self.buffers, len(keys), hashing)

    def have_twins(self, hashes: List[int]) -> bool:
        clock = _Clock(self.buffers, len(hashes))
        seen: Dict[int, None] = {}
        for at in range(0, len(hashes), _BATCH):
            seen.update(dict.fromkeys(hashes[at:at + _BATCH]))
            clock.check()
        clock.stop()
        return len(seen) != len(hashes)

    def count(self, hashes: List[int]) -> Dict[int, int]:
        if len(hashes) <= _FREE:
            return Counter(hashes)
        clock = _Clock(self.buffers, len(hashes))
        counts: Dict[int, int] = {}
        for at in range(0, len(hashes), _BATCH):
            for number in hashes[at:at + _BATCH]:
                counts[number] = counts.get(number, 0) + 1
            clock.check()
        clock.stop()
        return counts

    def charge(self, units: int) -> None:
        self.buffers.compared += units
        if self.buffers.compared > COMPARE_MAX:
            raise Malformed("keys collide")

    def charge_table(self, keys: List[Any], hashes: List[int]) -> int:
        """Charges what comparing the keys of a table costs, and returns it."""
        before = self.buffers.compared
        self.charge(20)
        counts = self.count(hashes)
        if self.buffers.compared + sum(count * (count - 1) // 2 for count in counts.values()) > COMPARE_MAX:
            raise Malformed("keys collide")  # before each is looked at
        times = 4 if len(keys) > _LARGE else 1  # that they are put into one
        for key, number in zip(keys, hashes):
            count = counts[number]
            if count > 1:
                self.charge((count - 1) * self.measure(key) * times // 2)
        return self.buffers.compared - before

    def measure(self, value: Any) -> int:
        """Of one comparison with something like it."""
        self.charge(_VISIT)
        kind = type(value)
        if kind in _PLAIN_COST:
            return 1 + (sys.getsizeof(value) >> 7)
        if isinstance(value, (tuple, list)):
            if _PLAIN_COST.issuperset(map(type, value)):
                self.charge(len(value))
                return 2 + len(value) + (sum(map(sys.getsizeof, value)) >> 7)
            return 2 + sum(map(self.measure, value))
        if isinstance(value, (frozenset, set)):
            return self.measure_table(value)
        if isinstance(value, dict):
            return self.measure_table(value) + sum(map(self.measure, value.values()))
        if hasattr(kind, "__dataclass_fields__"):
            return 50 + sum(self.measure(getattr(value, name, None)) for name in kind.__dataclass_fields__)
        if hasattr(kind, "model_validate"):
            return 200 + sum(map(self.measure, vars(value).values()))
        return _WEIGHTS.get(kind.__name__, 100) + (sys.getsizeof(value) >> 5)

    def measure_table(self, keys: Collection[Any]) -> int:
        hashes = list(map(hash, keys))
        self.charge(2 * len(hashes))
        # A scalar of numpy goes through all of a tuple that it is compared with, so that the mean is not enough.
        counts = {} if self.has_scalars_of_numpy else self.count(hashes)
        twins = len(hashes) if self.has_scalars_of_numpy else 0
        return 2 + sum((twins or counts[number]) * self.measure(key) for key, number in zip(keys, hashes))


def _fill_small(kind: Any, keys: List[Any], batch: int, clock: _Clock) -> Any:
    made: Any = set()
    for at in range(0, len(keys), batch):
        made.update(keys[at:at + batch])
        clock.check()
    return made if kind is set else kind(made)


def _fill_large(kind: Any, keys: List[Any], batch: int, clock: _Clock) -> Any:
    """A set that grows takes its keys in the order of their places, for which other keys may go through long rows than when they
    came, all in one step that nothing can stop. Made of a dict, it has twice the room and takes them in the order in which they came,
    for which they go through no more places than before."""
    order: Dict[Any, None] = {}
    made: Any = set()
    full = 0
    for at in range(0, len(keys), batch):
        piece = dict.fromkeys(keys[at:at + batch])
        order.update(piece)
        if len(order) < full:
            made.update(piece)
        else:
            made = set(order)
            full = 3 * ((1 << (2 * len(order)).bit_length()) - 1) // 5  # as CPython has it: it grows at three fifths
        clock.check()
    return made if kind is set else kind(order)
