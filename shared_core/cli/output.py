"""What commands print: results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from shared_core.entry import MemoryEntry
    from shared_core.memory import Recall
    from shared_core.recall import Seed

# Remembered text is data: it must not move the cursor, change colours or set the title of a terminal.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text with its control characters, but for tabs and line ends, replaced."""
    return _CONTROLS.sub("\ufffd", text)


def show(text: str) -> None:
    """Print a result."""
    typer.echo(printable(text))


def show_json(value: Any) -> None:  # noqa: ANN401 - a JSON value
    """Print a result for machines."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json.dumps(value, ensure_ascii=not is_utf8, indent=2))


def note(text: str) -> None:
    """Tell what is going on, in one line on stderr."""
    typer.echo(printable(" ".join(text.split())), err=True)


def entry_heading(entry: MemoryEntry) -> str:
    """An entry's source in one line: id, time, speaker, session."""
    parts = [entry.id or ""]
    if entry.occurred_at is not None:
        parts.append(f"{entry.occurred_at:%Y-%m-%d %H:%M}")
    if entry.speaker is not None:
        parts.append(entry.speaker)
    if entry.session is not None:
        parts.append(f"(session {entry.session})")
    # Line breaks in a name must not look like lines of ours.
    return "  ".join(" ".join(part.split()) for part in parts)


def recall_text(recall: Recall, *, with_concepts: bool) -> str:
    """The recalled entries with their scores and the concepts that brought them, best first."""
    lines = []
    for rank, recalled in enumerate(recall.entries, start=1):
        lines.append(f"{rank}. {entry_heading(recalled.entry)}  [{recalled.score:.3f}]")
        lines.extend(f"   {line}" for line in recalled.entry.content.split("\n"))
        if recalled.reasons:
            lines.append(f"   by: {', '.join(reason.key for reason in recalled.reasons)}")
    if with_concepts:
        lines += ["", "Seeds"]
        lines += [f"  {seed.key}  ({_origin(seed)})" for seed in recall.seeds]
        lines += ["Context concepts"] if recall.context else []
        lines += [f"  {c.key}  (from {c.seed}, probability {c.probability:.2f})" for c in recall.context]
    return "\n".join(lines)


def _origin(seed: Seed) -> str:
    return seed.source if seed.logprob is None else f"{seed.source}, log-probability {seed.logprob:.2f}"
