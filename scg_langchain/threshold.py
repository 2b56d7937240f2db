"""What of a recall is relevant enough to be used."""

from __future__ import annotations

from dataclasses import replace

from shared_core.recall import Recall


def at_least(recall: Recall, least: float) -> Recall:
    """The recall without entries of lower relevance."""
    return replace(recall, entries=tuple(one for one in recall.entries if one.relevance >= least))
