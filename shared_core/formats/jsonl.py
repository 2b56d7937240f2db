"""JSON Lines of memory entries: what an export writes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from shared_core.entry import MemoryEntry
from shared_core.formats.source import Draft, Source


def read_jsonl(source: Source) -> Iterator[Draft]:
    """One :meth:`MemoryEntry.from_dict` object a line; blank lines are skipped.

    Raises:
        FormatError: on the first line that is not an entry.
    """
    for number, body in source.objects():
        yield source.entry(number, partial(MemoryEntry.from_dict, body))
