"""The conversations that keys and prompts are taken from."""

from __future__ import annotations

import json
from pathlib import Path

from shared_core import MemoryEntry
from shared_core.formats import read_entries
from shared_core.samples import sample_path


def read_conversations(locomo: Path | None) -> list[list[MemoryEntry]]:
    """The conversations of a LoCoMo file, each as its turns in order; without a file the sample conversation."""
    if locomo is None:
        return [read_entries(sample_path())]
    names = [sample["sample_id"] for sample in json.loads(locomo.read_text(encoding="utf-8"))]
    return [read_entries(locomo, conversation=name) for name in names]
