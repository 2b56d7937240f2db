"""The conversations that keys and prompts are taken from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.formats import read_entries
from shared_core.samples import sample_path


@dataclass(frozen=True)
class Corpus:
    """Some conversations.

    Attributes:
        conversations: Each as its turns in order.
        fingerprint: Tells one file from another (16 hex digits).
    """

    conversations: Sequence[Sequence[MemoryEntry]]
    fingerprint: str


def read_corpus(locomo: Path | None) -> Corpus:
    """The conversations of a LoCoMo file; without a file the sample conversation.

    Raises:
        OSError, SCGError: if the file cannot be read, or is not a LoCoMo file with several conversations.
    """
    path = locomo or sample_path()
    fingerprint = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    if locomo is None:
        return Corpus([read_entries(path)], fingerprint)
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
        names = [sample["sample_id"] for sample in samples]
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInputError(f"{path} is not a LoCoMo file: a JSON list of conversations was expected") from error
    if not names:
        raise InvalidInputError(f"{path} has no conversation")
    return Corpus([read_entries(path, "locomo", conversation=name) for name in names], fingerprint)
