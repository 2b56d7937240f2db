"""A namespace as a text file: JSON Lines that can be read, kept, and imported anywhere.

    {"format": "scg-memory", "version": 1, "namespace": ["anna"], "entries": 2}
    {"id": "1", "text": "I adopted a puppy", "speaker": "Anna", "assimilated": true, "concepts": [
        {"key": "puppy", "surface": "puppy", "weight": 1.0, "origin": "said"}]}          (on one line)

``entries`` may be missing; when it is there, a file that was cut short is noticed. What models computed
(token scores) is not exported, and neither are the generation and the places in the order: an import appends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from shared_core.entry import MAX_ENTRY_BYTES, MemoryEntry, check_namespace
from shared_core.errors import FormatError, InvalidInputError, StoreError
from shared_core.store.location import check_path
from shared_core.store.placing import draft
from shared_core.store.store import Store
from shared_core.store.values import ConceptLink, EntryWrite, WriteOutcome

_FORMAT: Final = "scg-memory"
_VERSION: Final = 1
_MAX_LINE_BYTES = 4 * MAX_ENTRY_BYTES
_BOM: Final = b"\xef\xbb\xbf"
_UTF16_MARKS: Final = (b"\xff\xfe", b"\xfe\xff")


def export_namespace(store: Store, namespace: tuple[str, ...], path: str | Path) -> int:
    """Write the namespace to a file, which appears whole or not at all, and which only its owner may read.

    Returns:
        How many entries were written.

    Raises:
        InvalidInputError: if ``path`` is the memory itself or a file beside it, or not a file.
        StoreUnavailableError: if the file cannot be written, or is a memory that somebody has open; an older one is
            kept.
        StoreError: if an entry that an earlier version stored is too large; an older file is kept.
    """
    name = check_namespace(namespace)
    target = check_path(path)
    with (
        draft(target, "the export", source=store.path, database=False) as written,
        written.open("xb") as file,
    ):
        return _write_lines(store, name, file)


def import_namespace(
    store: Store,
    namespace: tuple[str, ...],
    path: str | Path,
    *,
    progress: Callable[[int, int | None], None] | None = None,
) -> WriteOutcome:
    """Merge an exported file into a namespace: all of it, or nothing if a line is wrong.

    An entry whose id is there already is updated. The namespace in the file is only a remark; ``namespace``
    decides where the entries go.

    Args:
        store: Where to import.
        namespace: Where in the store.
        path: The file.
        progress: Called with the number of entries read so far, and how many the file announces.

    Raises:
        InvalidInputError: if ``path`` is none.
        FormatError: if the file is missing, of an unknown version, cut short, or a line is wrong; nothing of
            it was stored.
    """
    source = check_path(path)
    with _readable(source):
        file = source.open("rb")
    with file:
        entries = _read_entries(file, source, progress)
        # A memory that is kept nowhere has one connection: what is told of the progress could not read from it.
        return store.write(namespace, list(entries) if store.location is None else entries)


def exported_namespace(path: str | Path) -> tuple[str, ...] | None:
    """The namespace that an exported file says its entries are from; ``None`` if it does not say.

    Raises:
        FormatError: if the file cannot be read or is no export.
    """
    source = check_path(path)
    with _readable(source), source.open("rb") as file:
        line = file.readline(_MAX_LINE_BYTES + 1)
    try:
        header = _parse(line.removeprefix(_BOM))
        _check_header(header)
        named = header.get("namespace")
        return None if named is None else check_namespace(named)
    except InvalidInputError as error:
        raise FormatError(f"{source}, line 1: {error}; nothing of the file was stored") from error


def _write_lines(store: Store, name: tuple[str, ...], file: IO[bytes]) -> int:
    with store.scan(name) as (count, writes):
        header = {"format": _FORMAT, "version": _VERSION, "namespace": name, "entries": count}
        file.write(_encode(header))
        for write in writes:
            file.write(_line(write))
    return count


def _line(write: EntryWrite) -> bytes:
    """The line of an entry, which is never longer than is read.

    Of a text of many megabytes a model may infer so many concepts that they do not fit in: it can infer them again.
    """
    line = _encode(_to_dict(write))
    if len(line) > _MAX_LINE_BYTES:
        grounding = tuple(link for link in write.links if link.is_grounding)
        line = _encode(_to_dict(EntryWrite(write.entry, grounding, assimilated=False)))
    if len(line) > _MAX_LINE_BYTES:
        raise StoreError(
            f"the entry {write.id!r:.80} makes a line of {len(line):,} bytes, and no import reads more than "
            f"{_MAX_LINE_BYTES:,}: nothing was exported; back the memory up instead"
        )
    return line


def _encode(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode() + b"\n"


def _to_dict(write: EntryWrite) -> dict[str, Any]:
    links = [
        {"key": link.key, "surface": link.surface, "weight": link.weight, "origin": link.origin} for link in write.links
    ]
    return {**write.entry.to_dict(), "assimilated": write.assimilated, "concepts": links}


def _read_entries(
    file: IO[bytes], path: Path, progress: Callable[[int, int | None], None] | None
) -> Iterator[EntryWrite]:
    count = 0
    announced: int | None = None
    for number, line in enumerate(_read_lines(file, path), start=1):
        try:
            if number == 1:
                announced = _check_header(_parse(line.removeprefix(_BOM)))
                continue
            if not line.strip():
                continue
            write = _from_dict(_parse(line))
        except InvalidInputError as error:
            raise FormatError(f"{path}, line {number}: {error}; nothing of the file was stored") from error
        yield write
        count += 1
        if progress is not None:
            progress(count, announced)
    if announced is not None and count != announced:
        raise FormatError(
            f"{path} announces {announced} entries and holds {count}: nothing of it was stored; get the "
            'whole file, or remove "entries" from its first line to import what is there'
        )


def _read_lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The lines, of which there is at least one; a line that is too long is cut, just long enough to tell."""
    with _readable(path):
        yield file.readline(_MAX_LINE_BYTES + 1)
        while line := file.readline(_MAX_LINE_BYTES + 1):
            yield line


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise FormatError(f"{path} cannot be read ({error.strerror}): nothing of it was stored") from error


def _parse(line: bytes) -> dict[str, Any]:
    if len(line) > _MAX_LINE_BYTES:
        raise InvalidInputError(f"the line is longer than {_MAX_LINE_BYTES} bytes")
    if line.startswith(_UTF16_MARKS):
        raise InvalidInputError("the file is UTF-16: save it as UTF-8")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            f"the line is not UTF-8 (byte 0x{line[error.start]:02x}): save the file as UTF-8"
        ) from None
    try:
        body = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise InvalidInputError("the line nests too deep") from None
    except ValueError as error:
        raise InvalidInputError(f"the line is not JSON ({error})") from None
    if not isinstance(body, dict):
        raise InvalidInputError("the line is not a JSON object")
    return body


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _check_header(header: dict[str, Any]) -> int | None:
    """How many entries the header announces, if it does."""
    if header.get("format") != _FORMAT:
        raise InvalidInputError(f'the file is not an export: its first line lacks "format": "{_FORMAT}"')
    version = header.get("version")
    if type(version) is not int or version != _VERSION:
        raise InvalidInputError(
            f"the export has version {version!r:.80}, and this code reads {_VERSION}: upgrade this package"
        )
    announced = header.get("entries")
    if announced is not None and type(announced) is not int:
        raise InvalidInputError('"entries" must be a whole number')
    return announced


def _from_dict(body: dict[str, Any]) -> EntryWrite:
    assimilated = body.pop("assimilated", False)
    concepts = body.pop("concepts", [])
    if type(assimilated) is not bool:
        raise InvalidInputError('"assimilated" must be true or false')
    if not isinstance(concepts, list):
        raise InvalidInputError('"concepts" must be a list')
    return EntryWrite(MemoryEntry.from_dict(body), tuple(map(_to_link, concepts)), assimilated)


def _to_link(body: object) -> ConceptLink:
    if not isinstance(body, dict) or set(body) != {"key", "surface", "weight", "origin"}:
        raise InvalidInputError("a concept has exactly the fields key, surface, weight and origin")
    return ConceptLink(**body)
