"""Accommodation: the novel concepts of an entry (Eq. 8 and 9), validated before they join the schema."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared_core.entry import MemoryEntry
from shared_core.evolution.phrases import extract_phrases
from shared_core.schema import fits_bounds, normalise_key
from shared_core.store import ConceptLink

# A model may number or bullet what it lists. A space must follow: "-5 degrees" and "3.5 km" are no list.
_LIST_MARK = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


def said_concepts(entry: MemoryEntry) -> list[ConceptLink]:
    """Every informative phrase of an entry's own words, caption included."""
    phrases = extract_phrases(entry.content, speaker=entry.speaker)
    return [ConceptLink(phrase.key, phrase.surface, 1.0, "said") for phrase in phrases]


def validated(surfaces: Iterable[str], entry: MemoryEntry, *, limit: int, grounded: bool) -> list[ConceptLink]:
    """Keep what may become a concept of an entry.

    Args:
        surfaces: What was generated.
        entry: The entry it was generated for.
        limit: Most concepts to keep, the first ones.
        grounded: Keep a concept only if its words occur in the entry, whatever their order.

    Returns:
        Normalised, within the bounds of a key, each once.
    """
    own = {phrase.key for phrase in extract_phrases(entry.content)}
    words = {word for key in own for word in key.split()} | {normalise_key(word) for word in entry.content.split()}
    kept: dict[str, ConceptLink] = {}
    for surface in surfaces:
        display = " ".join(_LIST_MARK.sub("", surface.replace("\x00", "")).split())
        key = normalise_key(display)
        if key in kept or not fits_bounds(key) or len(kept) == limit:
            continue
        said = key in own
        if grounded and not said and not words.issuperset(key.split()):
            continue
        kept[key] = ConceptLink(key, display, 1.0, "said" if said else "generated")
    return list(kept.values())
