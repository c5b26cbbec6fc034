# SPDX-License-Identifier: Apache-2.0
"""Messages: what a cell and its host say to each other, as bytes.

A message is JSON with buffers behind it, so that large data is never copied into text:

    u32 n, n bytes of JSON, u32 count, count × u64 lengths, the buffers        (least significant byte first)

The host reads what a cell wrote, and a cell may be anybody's: what that costs in time and memory is bounded by the bytes that
came, and it raises Malformed, and nothing else.

The same file is part of the runtime in a cell and of the package on the host, by this name.
"""

from __future__ import annotations

import json
import mmap
import struct
from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:  # not at run time: typing takes 5 ms to import
    from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

    Buffer = Union[bytes, bytearray, memoryview]
    Head = Dict[str, Any]

PARTS_MAX = 10_000_000  # of a message's JSON; a part takes up to 64 bytes of memory
BUFFERS_MAX = 1 << 20
NESTING_MAX = 200  # lists and objects of JSON; what json and repr() can print without running out of stack
HUGE = 4 << 20  # bytes from which on huge pages are worth it


class Malformed(ValueError):
    """The bytes are not a message, or a value in it is none."""


class Attachments(list):  # type: ignore[type-arg]
    """The buffers of a message, as memoryviews. Each can be taken once: else a few bytes that name the same
    buffer again and again would fill the reader's memory."""

    is_plain = False  # no name in the JSON begins with "$": its values are as they stand
    taken = bytearray()
    nbytes = 0
    compared = 0  # units that comparing keys has cost
    table_seconds = 0.3  # that putting keys into tables may still take, beyond what is due for their number

    @classmethod
    def of(cls, views: Sequence[Buffer], is_plain: bool = False) -> Attachments:
        made = cls(views)
        if views:
            made.taken = bytearray(len(views))
            made.nbytes = sum(map(len, views))
        made.is_plain = is_plain
        return made

    def take(self, index: Any) -> Buffer:
        if type(index) is not int or not 0 <= index < len(self):
            raise Malformed(f"there is no buffer {index!r:.50}")
        if self.taken[index]:
            raise Malformed(f"buffer {index} is used twice")
        self.taken[index] = 1
        view: Buffer = self[index]
        return view


def room(size: int) -> Union[bytearray, mmap.mmap]:
    """Memory for a message of so many bytes. A large one is of huge pages where the kernel has them, which takes a third
    off the time of receiving, and is taken as the bytes come, not when they are promised."""
    if size < HUGE:
        return bytearray(size)
    memory = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        memory.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):  # a kernel without them
        pass
    return memory


_U32 = struct.Struct("<I")
_SMALL = 2 * NESTING_MAX  # bytes of a message in which nothing nests too deep, and no number is too long
_SPACE = " \t\n\r"
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 25  # longer than any that is written here, but in a text
_ALL_BUT_NESTING = bytes(set(range(256)) - set(b'[]{}"\\'))
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_STEPS = {ord("["): 1, ord("]"): -1, ord('"'): 0, ord("\\"): 0}


def _make_writer(is_ascii: bool) -> Callable[[Any], str]:
    """What writes JSON. Python's own encoder makes one anew for each text; kept, it takes half the time."""
    options = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":"), ensure_ascii=is_ascii)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    text = getattr(json.encoder, "encode_basestring_ascii" if is_ascii else "encode_basestring", None)
    if make is None or text is None:
        return options.encode
    write = make(None, options.default, text, None, ":", ",", False, False, False)
    return lambda tree: "".join(write(tree, 0))


_write_text = _make_writer(False)
_write_ascii = _make_writer(True)


def pack(head: Head, buffers: Sequence[Any] = ()) -> List[Buffer]:
    """A message, in pieces: the buffers themselves are not copied."""
    try:
        text = _write_text(head).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which UTF-8 cannot say
        text = _write_ascii(head).encode()
    if not buffers:
        return [b"%b%b\0\0\0\0" % (_U32.pack(len(text)), text)]
    views = [memoryview(buffer).cast("B") for buffer in buffers]
    # JSON may end in spaces: the first buffer then lies where its numbers can be used in place.
    text += b" " * (-(8 + len(text) + 8 * len(views)) % 16)
    lengths = struct.pack("<I%dQ" % len(views), len(views), *map(len, views))
    return [_U32.pack(len(text)) + text + lengths, *views]


def unpack(data: Any, parts_max: int = PARTS_MAX) -> Tuple[Head, Attachments]:
    """A message's head and its buffers, which are views of `data`."""
    view = memoryview(data).cast("B") if type(data) is not memoryview else data
    if len(view) <= _SMALL:
        found = _unpack_small(view)
        if found is not None:
            return found
    head, is_plain, lengths, at = unpack_head(view, len(view), parts_max)
    views = []
    for length in lengths:
        views.append(view[at:at + length])
        at += length
    return head, Attachments.of(views, is_plain)


def read_plain(data: bytes) -> Optional[Head]:
    """The head of a message that is short, without buffers, and all plain, so that a value in it is as it stands; None: it is
    none, or something else, which is for unpack() to say."""
    size = len(data)
    if not 8 < size <= _SMALL or data[-4:] != b"\0\0\0\0" or data[:4] != (size - 8).to_bytes(4, "little"):
        return None
    try:
        text = data[4:-4].decode()
        head, end = _scan(text, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    if "$" in text or "\\" in text or end != len(text) or type(head) is not dict:
        return None
    return head


def _unpack_small(view: memoryview) -> Optional[Tuple[Head, Attachments]]:
    """The same of a short message with a buffer at the most, as most are, with nothing in it that has to be looked at twice; None:
    it is none, or wrong."""
    data = bytes(view)
    end = 4 + int.from_bytes(data[:4], "little")
    text, count = data[4:end], data[end:end + 4]
    if count == b"\0\0\0\0" and end + 4 == len(data):
        views: Sequence[Buffer] = ()
    elif count == b"\1\0\0\0" and int.from_bytes(data[end + 4:end + 12], "little") == len(data) - end - 12:
        views = (view[end + 12:],)
    else:
        return None
    if b"$" in text or b"\\" in text:
        return None
    try:
        string = text.decode()
        head, read = _scan(string, 0)
    except (ValueError, StopIteration, RecursionError):
        return None
    if type(head) is not dict or string[read:].strip(_SPACE):
        return None
    return head, Attachments.of(views, True)


def unpack_head(view: memoryview, size: int, parts_max: int = PARTS_MAX) -> Tuple[Head, bool, Sequence[int], int]:
    """Of a message of `size` bytes, whose beginning is in `view`: the head, whether it is plain, the lengths of the
    buffers and where they begin. Who reads a stream can then receive each buffer into an object of its own, and
    give Attachments.of(buffers, is_plain) to decode(): bytes are not copied again. Raises Malformed, also if too
    little of it is there."""
    try:
        return _unpack_head(view, size, parts_max)
    except RecursionError:
        raise Malformed("the message nests too deep") from None
    except (ValueError, struct.error) as error:
        if isinstance(error, Malformed):
            raise
        raise Malformed(f"the message's head is not JSON: {error!s:.200}") from None


def _unpack_head(view: memoryview, size: int, parts_max: int) -> Tuple[Head, bool, Sequence[int], int]:
    here = len(view)
    if here < 8:
        raise Malformed("the message is cut short")
    text_end = 4 + _U32.unpack_from(view)[0]
    if text_end + 4 > here:
        raise Malformed("the message's head is longer than the message")
    count = _U32.unpack_from(view, text_end)[0]
    at = text_end + 4 + 8 * count
    if at > here or count > BUFFERS_MAX:
        raise Malformed("the message has too many buffers")
    lengths: Sequence[int] = struct.unpack_from("<%dQ" % count, view, text_end + 4) if count else ()
    if sum(lengths) != size - at:
        raise Malformed("the sizes of the message's buffers do not add up")
    head, is_plain = read_json(bytes(view[4:text_end]), parts_max)
    if type(head) is not dict:
        raise Malformed("the message's head is not an object")
    return head, is_plain, lengths, at


def _refuse_constant(name: str) -> Any:
    raise Malformed(f"{name} is not JSON")


def _read_int(digits: str) -> int:
    if len(digits) > 400:  # reading decimal digits takes the square of their number
        raise Malformed("an integer is too long")
    return int(digits)


# Without the search for space around the text.
_scan: Any = getattr(json.JSONDecoder(parse_constant=_refuse_constant), "scan_once")
_scan_careful: Any = getattr(json.JSONDecoder(parse_constant=_refuse_constant, parse_int=_read_int), "scan_once")


def read_json(text: bytes, parts_max: int) -> Tuple[Any, bool]:
    """Reads JSON; also tells whether no name in it begins with "$"."""
    scan = _scan
    if len(text) > 4096:
        # An object takes as much memory as four numbers.
        if text.count(b",") + text.count(b"[") + 4 * text.count(b"{") > parts_max:
            raise Malformed("the message has too many parts")
        if _LONG_NUMBER in text.translate(_DIGITS):
            scan = _scan_careful
    is_plain = b'"$' not in text and b'"\\u0024' not in text
    string = text.decode()
    _check_nesting(text)
    if string[:1] in _SPACE:
        string = string.lstrip(_SPACE)
    try:
        tree, end = scan(string, 0)
    except StopIteration as stop:
        raise Malformed(_say_where(string, stop.value)) from None
    if end != len(string) and string[end:].strip(_SPACE):
        raise Malformed("something is behind it")
    return tree, is_plain


def _say_where(string: str, at: Any) -> str:
    """Why a text is no JSON, of which the scan wants a value where there is none."""
    if not string:
        return "it is empty"
    if not isinstance(at, int) or not string[at:].strip(_SPACE):
        return "it ends too early"
    return f"a value is wanted where {string[at:at + 12]!a} is"


def _check_nesting(text: bytes) -> None:
    """Python's own guard is the recursion limit, which a program may have raised, and does not hold for json in each of
    its versions. Raises RecursionError. Takes a few passes over the text, each at the speed of C."""
    if text.count(b"[") + text.count(b"{") <= NESTING_MAX:
        return
    rest = text.translate(None, _ALL_BUT_NESTING)
    if b"\\" in rest:
        # A backslash that is escaped, then a quote that is: in this order what is left is as JSON reads it. What was
        # between them is needed for that.
        rest = text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _ALL_BUT_NESTING)
    # Texts without brackets go first, since there may be millions of them. Of the rest every other piece is a text.
    rest = b"".join(rest.replace(b'""', b"").split(b'"')[::2]).translate(_BRACKETS)
    if rest.count(b"]") > rest.count(b"["):  # of which there may be more than of parts
        raise Malformed("it has more brackets that close than open")
    for _ in range(8):  # layers; most data has no more
        rest = rest.replace(b"[]", b"")
    if len(rest) > NESTING_MAX - 8 and max(accumulate(map(_STEPS.__getitem__, rest))) > NESTING_MAX - 8:
        raise RecursionError
