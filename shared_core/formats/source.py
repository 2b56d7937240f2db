"""A file as text: decoded, bounded in size, and able to say on which line something is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from shared_core.entry import MemoryEntry
from shared_core.errors import FormatError, InvalidInputError

# Everything is parsed before anything is yielded, so the file has to fit into memory several times over.
MAX_FILE_BYTES = 512 * 1024 * 1024
MAX_LINE_CHARACTERS = 10_000_000

_MAX_REASON_CHARACTERS = 600
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

Place: TypeAlias = "int | tuple[str | int, ...]"
"""Where something stands: a 1-based line, or the keys and indices that lead to it in a JSON document."""

Draft: TypeAlias = "tuple[Place, MemoryEntry]"
"""An entry that may still lack an id, with its place in the file."""


@dataclass(frozen=True)
class Source:
    """The text of one file.

    Attributes:
        path: Where it was read from.
        text: Its content, with every line end as a newline.
    """

    path: Path
    text: str

    @classmethod
    def read(cls, path: str | Path) -> Source:
        """Read and decode a file.

        Raises:
            FormatError: if it is missing, a directory, unreadable, too large, empty, or not UTF-8.
        """
        path = Path(path)
        content = _read_bytes(path)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise cls(path, "").error(_decoding_problem(content, error)) from None
        # JSON strings cannot hold raw line ends, so this changes no JSON value.
        source = cls(path, text.replace("\r\n", "\n").replace("\r", "\n"))
        if not source.text.strip():
            raise FormatError(f"{path}: the file is empty")
        return source

    def error(self, reason: str, place: Place | None = None) -> FormatError:
        """The error to raise about this file; it names the line when a place is given."""
        if len(reason) > _MAX_REASON_CHARACTERS:
            reason = reason[:_MAX_REASON_CHARACTERS] + "…"
        line = _line_of(self.text, place) if isinstance(place, tuple) else place
        where = str(self.path) if line is None else f"{self.path}, line {line}"
        return FormatError(f"{where}: {reason}; nothing was read from the file")

    def entry(self, place: Place, make: Callable[[], MemoryEntry], what: str = "") -> Draft:
        """An entry whose refusal is reported with its place; ``what`` names it within a long line."""
        try:
            return place, make()
        except InvalidInputError as error:
            raise self.error(f"{what}: {error}" if what else str(error), place) from None

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line with its 1-based number.

        Raises:
            FormatError: if a line is longer than ``MAX_LINE_CHARACTERS``.
        """
        # Not str.splitlines, which would also cut at separators that JSON strings may hold (U+2028).
        for number, line in enumerate(self.text.split("\n"), start=1):
            if len(line) > MAX_LINE_CHARACTERS:
                raise self.error(f"the line has more than {MAX_LINE_CHARACTERS:,} characters", number)
            yield number, line

    def objects(self) -> Iterator[tuple[int, dict[str, object]]]:
        """The JSON Lines of the file: every line that is not blank, as an object, with its number.

        Raises:
            FormatError: if a line is too long, not JSON, or not an object.
        """
        for number, line in self.lines():
            if not line.strip():
                continue
            try:
                value = json.loads(line)
            except json.JSONDecodeError as error:
                raise self.error(f"this is not JSON ({error.msg}, column {error.colno})", number) from None
            except (RecursionError, ValueError) as error:
                raise self.error(f"this is not usable JSON ({error})", number) from None
            if not isinstance(value, dict):
                raise self.error(f"expected one JSON object a line, found {_json_kind(value)}", number)
            yield number, value

    @cached_property
    def first_object(self) -> dict[str, object] | None:
        """The first line that is not blank, if it is a whole JSON object; else ``None``."""
        line = self.text.lstrip().partition("\n")[0]
        if not line.startswith("{"):
            return None
        try:
            value = json.loads(line)
        except (RecursionError, ValueError):
            return None
        return value if isinstance(value, dict) else None

    @cached_property
    def document(self) -> object:
        """The whole file as one JSON value.

        Raises:
            FormatError: if it is not JSON; names the line.
        """
        try:
            return json.loads(self.text)
        except json.JSONDecodeError as error:
            raise self.error(f"this is not JSON ({error.msg}, column {error.colno})", error.lineno) from None
        except (RecursionError, ValueError) as error:
            raise self.error(f"this is not usable JSON ({error})") from None


def _read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise FormatError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise FormatError(f"{path}: this is a directory; name a file in it") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise FormatError(f"{path}: the file cannot be read ({error})") from None
    if len(content) > MAX_FILE_BYTES:
        raise FormatError(f"{path}: the file is larger than {MAX_FILE_BYTES // 2**20} MiB; split it")
    return content


def _decoding_problem(content: bytes, error: UnicodeDecodeError) -> str:
    if content.startswith(_UTF16_MARKS):
        return "the file is UTF-16; save it as UTF-8"
    line = content.count(b"\n", 0, error.start) + 1
    return f"the file is not UTF-8 (byte 0x{content[error.start]:02x} on line {line}); save it as UTF-8"


def _json_kind(value: object) -> str:
    if value is None:
        return "null"
    kinds = {bool: "a truth value", str: "a string", list: "a list"}
    return kinds.get(type(value), "a number")


_BLANKS = " \t\n"


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The 1-based line on which the value at ``path`` of a valid JSON document begins.

    Walks only the containers on the way. The parser keeps no positions, and they are needed for errors alone.
    """
    at = _skip_blanks(text, 0)
    for step in path:
        at = _child_start(text, at, step)
    return text.count("\n", 0, at) + 1


def _child_start(text: str, at: int, step: str | int) -> int:
    decoder = json.JSONDecoder()
    is_object = text[at] == "{"
    found = at
    index = 0
    at = _skip_blanks(text, at + 1)
    while text[at] not in "]}":
        name: str | int = index
        if is_object:
            name, at = decoder.raw_decode(text, at)
            at = _skip_blanks(text, _skip_blanks(text, at) + 1)
        if name == step:
            found = at  # no early return: of repeated names the parser keeps the last
            if not is_object:
                break
        at = _skip_blanks(text, decoder.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _skip_blanks(text, at + 1)
        index += 1
    return found
