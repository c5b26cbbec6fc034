# SPDX-License-Identifier: Apache-2.0
"""Tools that are commands: words, in which a call's arguments are put. No shell reads them, and no argument is
ever split.

    {name}     the argument of that name: a string as it is, anything else as compact JSON. It must be there
    {name?}    the same; where it is missing or null, its word is left out, with the text around it
    {name...}  alone in its word: one word for each item of a list; none if it is missing
    {-name}    (and {-name?}, {-name...}) the same, and it may begin with '-'
    {{ and }}  a brace

No argument becomes an option, whatever a model puts in it: one that begins with '-' is refused where the
template does not allow it, by {-name} or by "--" right before it. Nor does one become the program, or part of
the script of a shell or an interpreter. src/tool/command.h argues the rules; test/vectors/commands.json has the
cases that both pass.
"""

from __future__ import annotations

import json
import re
from typing import Any, List, NamedTuple, Optional, Sequence

from ._message import PARTS_MAX, read_json
from ._say import Place, closest, show, show_place, show_text

TEMPLATE_MOST = 64 << 10  # bytes of all its words, each with its NUL
WORDS_MOST = 4096
WORD_MOST = 131071  # bytes of one filled in: the kernel takes no longer one
BYTES_MOST = 1 << 20
INPUT_MOST = 16 << 20
_NAME = re.compile(r"(-?)([A-Za-z_][A-Za-z0-9_.-]{0,127}?)(\.\.\.|\?)?\Z")
_SHELLS = {"sh", "bash", "dash", "ash", "ksh", "zsh", "fish", "csh", "tcsh"}
_INTERPRETERS = re.compile(r"(python|pypy|perl|ruby|node|lua|php)[0-9.]*\Z")
_CODES = {"python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "node": "ep", "lua": "e", "php": "r"}
_LAUNCHERS = {"env", "xargs", "nohup", "setsid", "nice"}


class CommandError(ValueError):
    """A template that is wrong. The message begins with the place: "command[2]: ..."."""


class ArgumentsError(ValueError):
    """Arguments that cannot be put in the words. The message begins with the place: "arguments.path: ..."."""


class _Piece(NamedTuple):
    text: str  # or a name
    is_name: bool = False
    may_dash: bool = False
    mark: str = ""  # "?" or "..."


class _Word:
    """Text and names by turns."""

    def __init__(self, pieces: List[_Piece]) -> None:
        self.pieces = pieces
        self.may_dash = False

    @property
    def text(self) -> Optional[str]:
        """All of it, if there is no argument in it."""
        if any(piece.is_name for piece in self.pieces):
            return None
        return self.pieces[0].text if self.pieces else ""

    @property
    def begins_with_dash(self) -> bool:
        return bool(self.pieces) and not self.pieces[0].is_name and self.pieces[0].text.startswith("-")


class _Reader:
    """Reads words, and knows the schema that their names must be in."""

    def __init__(self, schema: Any, name: str) -> None:
        self.schema, self.name = schema, name
        self.place: Optional[Place] = None

    def fail(self, what: str) -> CommandError:
        return CommandError(f"{show_place(self.name, self.place)}: {what}")

    def word(self, text: str) -> _Word:
        pieces: List[_Piece] = []
        at = 0
        while at < len(text):
            plain = re.compile(r"(?:[^{}]|\{\{|\}\})+").match(text, at)
            if plain:
                pieces.append(_Piece(plain[0].replace("{{", "{").replace("}}", "}")))
                at = plain.end()
                continue
            if text[at] == "}":
                raise self.fail("there is a '}' without a '{'; write '}}' for a brace")
            braces = re.compile(r"\{([^{}]*)\}").match(text, at)
            if not braces:
                raise self.fail("there is a '{' without a '}'; write '{{' for a brace")
            pieces.append(self.argument(braces[1]))
            at = braces.end()
        return _Word(pieces)

    def argument(self, text: str) -> _Piece:
        found = _NAME.match(text)
        if not found or found[2].endswith("."):
            raise self.fail(f"there is no form '{{{show_text(text, 64)}}}'; want {{name}}, {{name?}}, {{name...}} or "
                            "{-name}, or {{ and }} for braces")
        self.look_up(found[2])
        return _Piece(found[2], True, bool(found[1]), found[3] or "")

    def look_up(self, name: str) -> None:
        """Whether a call can have such an argument at all."""
        if not isinstance(self.schema, dict) or self.schema.get("additionalProperties") is not False:
            return
        properties = self.schema.get("properties") or {}
        if name in properties or self.schema.get("patternProperties"):
            return
        near = closest(name, properties)
        guess = f"; did you mean '{show_text(near, 64)}'?" if near is not None else ""
        raise self.fail(f"the schema has no argument '{show_text(name, 64)}'{guess}")


class _Compiler(_Reader):
    """The rules about words that arguments are in."""

    def __init__(self, schema: Any, name: str) -> None:
        super().__init__(schema, name)
        self.words: List[_Word] = []
        self.covered = False  # by a "--"
        self.option = False  # a word before began with '-'
        self.shell = False  # a word before is the name of one
        self.codes = ""  # of an interpreter before: last letters of options before code
        self.launches = False  # what comes next that is no option is a program to run

    def add(self, source: str) -> None:
        self.place = Place(None, len(self.words))
        word = self.word(source)
        text = word.text
        if text is None:
            self.check(word)
        elif not text and not self.words:
            raise self.fail("the program has no name")
        else:
            self.read(text)
        word.may_dash = word.begins_with_dash or self.covered
        self.option = self.option or word.begins_with_dash and not self.covered
        self.words.append(word)

    def read(self, text: str) -> None:
        program = text.rpartition("/")[2]
        interpreter = _INTERPRETERS.match(program)
        self.covered = text == "--"
        self.shell = self.shell or program in _SHELLS
        self.codes = _CODES[interpreter[1]] if interpreter else self.codes
        self.launches = (not self.words and program in _LAUNCHERS
                         or self.launches and (text.startswith("-") or "=" in text))

    def is_script(self) -> bool:
        """Whether the word is one that an interpreter before it takes for code: after -c, -ec, ..."""
        before = self.words[-1].text if self.words else None
        if not before or not re.match(r"-[^-]", before):
            return False
        return self.shell and before[-1] == "c" or before[-1] in self.codes

    def check(self, word: _Word) -> None:
        first = word.pieces[0]
        if not self.words:
            raise self.fail("the program must not depend on an argument")
        for piece in word.pieces:
            if piece.mark == "..." and len(word.pieces) > 1:
                raise self.fail(f"{{{piece.text}...}} must be a word by itself")
        if len(word.pieces) > 1 and self.is_script():
            raise self.fail("an argument inside a script would be code; " + (
                "write \"$1\" for it there, and add the words 'sh' and the argument" if self.shell else
                "make it a word of its own, after the script, which takes it from there"))
        if self.launches and not word.begins_with_dash and (first.is_name or "=" not in first.text):
            raise self.fail("the argument would be the program to run; write a program out before it")
        if self.covered:
            return
        if word.begins_with_dash and not first.text.strip("-"):
            raise self.fail("the argument could be any option; write the option out, or put '--' right before this word")
        if any(piece.mark for piece in word.pieces) and not word.begins_with_dash and self.option:
            raise self.fail("this word can be left out, and an option before it would then take the next one; put '--' "
                            "right before it, or make it one word with its option")


def _fail(at: Optional[Place], what: str) -> ArgumentsError:
    return ArgumentsError(f"{show_place('arguments', at)}: {what}")


def _text_of(value: Any, at: Place) -> str:
    """A string as it is, anything else as JSON."""
    if isinstance(value, str):
        if "\0" in value:
            raise _fail(at, "there is a NUL in the text")
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except RecursionError:
        raise _fail(at, "this is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise _fail(at, f"this cannot be written as JSON: {error}") from None


def _missing(piece: _Piece, arguments: Any) -> ArgumentsError:
    if piece.text in arguments:
        return _fail(Place(None, piece.text), "want a value, found null")
    return _fail(None, f'"{piece.text}" is missing')


class Command:
    """A compiled template. Raises CommandError.

    schema: of the arguments, as it was written; names that it has no room for are an error.
    input: a text for standard input, with {name} and {name?} in it; None: the arguments as JSON.
    """

    def __init__(self, words: Sequence[str], schema: Any = None, name: str = "command",
                 input: Optional[str] = None) -> None:  # noqa: A002
        compiler = _Compiler(schema, name)
        compiler.place = Place(None, 0)
        if isinstance(words, (str, bytes)) or not all(isinstance(word, str) for word in words):
            raise compiler.fail("want a list of words")
        if not words:
            raise compiler.fail("there must be a program")
        if sum(len(word.encode("utf-8", "replace")) + 1 for word in words) > TEMPLATE_MOST or len(words) > WORDS_MOST:
            raise compiler.fail("the command is too long")
        for word in words:
            compiler.add(word)
        self._words = compiler.words
        self._input = None if input is None else self._read_input(input, schema)

    @staticmethod
    def _read_input(text: str, schema: Any) -> List[_Piece]:
        reader = _Reader(schema, "input")
        pieces = reader.word(text).pieces
        for piece in pieces:
            if piece.mark == "...":
                raise reader.fail(f"{{{piece.text}...}} is for words; {{{piece.text}}} gives the list as JSON")
        return pieces

    def argv(self, arguments: Any) -> List[str]:
        """The words with the arguments, a dict, filled in. Raises ArgumentsError."""
        argv: List[str] = []
        size = 0
        for word in self._words:
            for filled, at in self._fill(word, arguments):
                length = len(filled.encode("utf-8", "surrogatepass"))
                size += length + 1
                if length > WORD_MOST or size > BYTES_MOST or len(argv) == WORDS_MOST:
                    raise _fail(at, "this is too long for a command line")
                argv.append(filled)
        return argv

    def _fill(self, word: _Word, arguments: Any) -> Any:
        missing = None
        for piece in word.pieces:
            if piece.is_name and arguments.get(piece.text) is None:
                if piece.mark:
                    return
                missing = missing or piece
        if missing:
            raise _missing(missing, arguments)
        if word.pieces and word.pieces[0].mark == "...":
            yield from self._items(word, arguments[word.pieces[0].text])
            return
        text, at = "", None
        for piece in word.pieces:
            is_first = not text
            if piece.is_name:
                at = Place(None, piece.text)
                text += _text_of(arguments[piece.text], at)
            else:
                text += piece.text
            # An empty argument can uncover a '-' of the text, and what comes after it.
            if is_first:
                self._check_dash(text, word.may_dash or piece.may_dash, at)
        yield text, at

    def _items(self, word: _Word, value: Any) -> Any:
        up = Place(None, word.pieces[0].text)
        if not isinstance(value, (list, tuple)):
            raise _fail(up, f"want an array, found {show(value)}")
        for index, item in enumerate(value):
            at = Place(up, index)
            text = _text_of(item, at)
            self._check_dash(text, word.may_dash or word.pieces[0].may_dash, at)
            yield text, at

    @staticmethod
    def _check_dash(text: str, may: bool, at: Optional[Place]) -> None:
        if text.startswith("-") and not may:
            raise _fail(at, f"this gives a word that begins with '-', \"{show_text(text, 68)}\", which could be taken for "
                            "an option")

    def input(self, arguments: Any) -> bytes:
        """What the command reads. Raises ArgumentsError."""
        if self._input is None:
            text = _text_of(dict(arguments), Place(None, "input")) if arguments else "{}"
        else:
            parts = []
            for piece in self._input:
                value = arguments.get(piece.text) if piece.is_name else None
                if not piece.is_name:
                    parts.append(piece.text)
                elif value is not None:
                    parts.append(_text_of(value, Place(None, piece.text)))
                elif not piece.mark:
                    raise _missing(piece, arguments)
            text = "".join(parts)
        data = text.encode("utf-8", "surrogatepass")
        if len(data) > INPUT_MOST:
            raise _fail(None, "this is too long for a command to read")
        return data


def printed_value(output: bytes) -> Any:
    """The value of what a command printed: what it says as JSON, else its text. json.loads() would do, but what a cell printed can
    nest deeper than this program's stack, where the limit of recursion was raised."""
    try:
        return read_json(output, PARTS_MAX)[0]
    except (ValueError, RecursionError):
        return output.decode("utf-8", "replace")
