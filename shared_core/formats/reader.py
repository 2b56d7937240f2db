"""The one door to files: detect the format, read it, and give every entry an id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal, get_args

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.formats.chat import is_chat, read_chat
from shared_core.formats.jsonl import read_jsonl
from shared_core.formats.locomo import is_locomo, read_locomo
from shared_core.formats.source import Draft, Source
from shared_core.formats.transcript import read_transcript

Format = Literal["auto", "jsonl", "chat", "text", "locomo"]
FORMATS: tuple[Format, ...] = get_args(Format)

_ID_DIGITS = 16
_JSON_LINES_SUFFIXES = {".jsonl", ".ndjson"}
_PROSE_SUFFIXES = {".txt", ".md"}

_READERS: Mapping[Format, Callable[[Source], Iterator[Draft]]] = {
    "jsonl": read_jsonl,
    "chat": read_chat,
    "text": read_transcript,
}


def read_entries(path: str | Path, format: Format = "auto", conversation: str | None = None) -> list[MemoryEntry]:
    """Read the memory entries of a file; all of them, or none.

    An entry that has no id in the file gets one derived from its content: the first 16 hex digits of its
    digest, and "-2", "-3", … when the same content occurs again. Reading the same file again, or the file
    with more appended, therefore gives the same ids.

    Args:
        path: The file, in UTF-8.
        format: ``"jsonl"`` (one ``MemoryEntry.to_dict`` object a line), ``"chat"`` (messages with role and
            content), ``"text"`` (lines of "Name: text"), ``"locomo"``, or ``"auto"`` to go by the content
            and, where that leaves a choice, by the file's suffix.
        conversation: Which conversation of a LoCoMo file, by its sample id; needed when there are several.

    Returns:
        The entries in the order of the file, each with an id, no id twice.

    Raises:
        FormatError: if the file is missing, unreadable, of another format, or broken anywhere; the message
            names the line. Also if it holds several conversations and none was chosen.
        NotFoundError: if the chosen conversation is not in the file.
        InvalidInputError: if the format is unknown, or a conversation is chosen in a format without any.
    """
    if format not in FORMATS:
        raise InvalidInputError(f"unknown format {format!r:.80}: use one of {', '.join(FORMATS)}")
    source = Source.read(path)
    actual = _detect(source) if format == "auto" else format
    if actual == "locomo":
        drafts = read_locomo(source, conversation)
    elif conversation is not None:
        raise InvalidInputError(
            f"a conversation can be chosen in LoCoMo files only, and {source.path} is read as {actual!r}"
        )
    else:
        drafts = _READERS[actual](source)
    entries = _with_ids(source, list(drafts))
    if not entries:
        raise source.error(f"read as {actual!r}, the file holds nothing to remember")
    return entries


def _detect(source: Source) -> Format:
    suffix = source.path.suffix.lower()
    if source.first_object is not None:
        return _format_of(source.first_object) or "jsonl"
    if suffix in _JSON_LINES_SUFFIXES:
        return "jsonl"
    if suffix != ".json" and (suffix in _PROSE_SUFFIXES or not source.text.lstrip().startswith(("{", "["))):
        return "text"
    found = _format_of(source.document)
    if found is None:
        raise source.error(
            "this JSON is neither chat messages (a list of objects with 'role' and 'content') nor LoCoMo "
            "(objects with 'session_1', …); entries are read from JSON Lines, one object a line"
        )
    return found


def _format_of(document: object) -> Format | None:
    if is_chat(document):
        return "chat"
    if is_locomo(document):
        return "locomo"
    return None


def _with_ids(source: Source, drafts: list[Draft]) -> list[MemoryEntry]:
    """The entries, those without an id under one derived from their content."""
    given: set[str] = set()
    for place, entry in drafts:
        if entry.id is None:
            continue
        if entry.id in given:
            raise source.error(f"the id {entry.id!r:.80} occurs a second time; an id names one entry", place)
        given.add(entry.id)
    occurrences: Counter[str] = Counter()
    return [entry if entry.id is not None else _with_derived_id(entry, occurrences, given) for _, entry in drafts]


def _with_derived_id(entry: MemoryEntry, occurrences: Counter[str], given: set[str]) -> MemoryEntry:
    stem = entry.digest[:_ID_DIGITS]
    while True:
        occurrences[stem] += 1
        number = occurrences[stem]
        derived = stem if number == 1 else f"{stem}-{number}"
        if derived not in given:
            return entry.with_id(derived)
