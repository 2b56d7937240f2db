"""Options that several commands share, and the filter they add up to."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from shared_core.entry import JSON, parse_time
from shared_core.errors import InvalidInputError
from shared_core.filters import Filter
from shared_core.retention import Retention

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}

DEFAULT_MEMORY = "scg-memory.db"

MemoryPath = Annotated[
    str,
    typer.Option("--memory", envvar="SCG_MEMORY", metavar="PATH", help="The memory: a file, or a database's URL."),
]
Namespace = Annotated[
    list[str] | None,
    typer.Option("--namespace", metavar="NAME", help="The namespace; repeat it for one of several parts."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="A Hugging Face model by name or folder, or vllm+http://…; else the embedded one.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

Query = Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in plain words.")]
InputFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file to read.")]
Place = Annotated[str, typer.Argument(metavar="PLACE", help="A file, or the URL of a database.")]
OutputFile = Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")]

Sessions = Annotated[
    list[str] | None,
    typer.Option("--session", metavar="NAME", help="Only this session; repeat it for several."),
]
Speakers = Annotated[
    list[str] | None,
    typer.Option("--speaker", metavar="NAME", help="Only this speaker; repeat it for several."),
]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="TIME", help="Only from then on: 2025-05-08 or 2025-05-08T13:56."),
]
Before = Annotated[str | None, typer.Option("--before", metavar="TIME", help="Only before then.")]
Meta = Annotated[
    list[str] | None,
    typer.Option("--meta", metavar="KEY=VALUE", help="Only with this metadata: a JSON value, else text; repeatable."),
]


def read_filter(
    sessions: Sequence[str] | None,
    speakers: Sequence[str] | None,
    after: str | None,
    before: str | None,
    meta: Sequence[str] | None,
) -> Filter | None:
    """The filter that the options describe; ``None`` if none of them is given.

    Raises:
        InvalidInputError: on a time that is not ISO 8601 or metadata that is not ``KEY=VALUE``.
    """
    if not (sessions or speakers or after or before or meta):
        return None
    return Filter(
        session=tuple(sessions) if sessions else None,
        speaker=tuple(speakers) if speakers else None,
        after=parse_time(after) if after else None,
        before=parse_time(before) if before else None,
        metadata=_read_metadata(meta or ()),
    )


def read_retention(older_than: str | None, keep_newest: int | None) -> Retention | None:
    """What is to be kept; ``None`` if neither option is given.

    Raises:
        InvalidInputError: on an age that is not of the form ``90d``, or bounds that are not positive.
    """
    if older_than is None and keep_newest is None:
        return None
    if keep_newest is not None and keep_newest < 1:
        raise InvalidInputError(f"--keep-newest must be at least 1, not {keep_newest}: to keep nothing, pass --all")
    return Retention(None if older_than is None else _read_age(older_than), keep_newest)


def _read_age(text: str) -> timedelta:
    found = re.fullmatch(r"(\d+)([hdw])", text.strip(), re.ASCII)
    try:
        if found and int(found[1]) > 0:
            return timedelta(**{_UNITS[found[2]]: int(found[1])})
    except (OverflowError, ValueError):  # more than the calendar, or than Python reads as a number
        pass
    raise InvalidInputError(
        f"--older-than {text!r:.80} is not an age: write a number of hours, days or weeks above 0, as 90d"
    )


def _read_metadata(pairs: Sequence[str]) -> dict[str, JSON]:
    metadata: dict[str, JSON] = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not separator or not key:
            raise InvalidInputError(f"--meta {pair!r:.200} is not of the form KEY=VALUE")
        if key in metadata:
            raise InvalidInputError(f"--meta gives {key!r:.200} twice, and no entry has two values for it")
        metadata[key] = _read_json_or_text(value)
    return metadata


def _read_json_or_text(value: str) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return json.loads(value)
    except (RecursionError, ValueError):
        return value
