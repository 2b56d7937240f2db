"""What of a recall is relevant enough to be used."""

from __future__ import annotations

from dataclasses import replace

from shared_core.errors import InvalidInputError
from shared_core.recall import Recall, check_threshold


def at_least(recall: Recall, least: float) -> Recall:
    """The recall without entries of lower relevance."""
    return replace(recall, entries=tuple(one for one in recall.entries if one.relevance >= least))


def check_least(least: object) -> None:
    """Refuse what is no least relevance, or none at all.

    Raises:
        InvalidInputError: if it is no number in [0, 1].
    """
    if least is None:
        raise InvalidInputError("score_threshold must be a number from 0 to 1, not None: 0.0 takes everything")
    check_threshold(least)
