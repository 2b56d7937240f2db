"""What of a recall is relevant enough to be used."""

from __future__ import annotations

from dataclasses import replace

from shared_core.errors import InvalidInputError
from shared_core.recall import Recall


def check_threshold(least: object) -> None:
    """Refuse what is no least relevance; ``None`` is none.

    Raises:
        InvalidInputError: if it is no number in [0, 1].
    """
    if least is None:
        return
    if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1:
        raise InvalidInputError(f"score_threshold must be a number from 0 to 1, not {least!r}")


def at_least(recall: Recall, least: float) -> Recall:
    """The recall without entries of lower relevance."""
    return replace(recall, entries=tuple(one for one in recall.entries if one.relevance >= least))
