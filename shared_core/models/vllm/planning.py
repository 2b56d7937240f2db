"""Which prompts are asked about which tokens in one request.

A request names tokens once for all its prompts, and at most 128 of them. Prompts that want other tokens can share a
request nevertheless, if they take the union: what nobody wanted is computed and sent in vain, but a request by itself
costs more than some of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_TOKENS = 128
"""Tokens that one request may name (``MAX_LOGPROB_TOKEN_IDS`` of vLLM)."""

MOST_PROMPTS = 64
"""Prompts of one request at most: several requests in flight keep server and client busy at the same time."""

# Log-probabilities that may be sent in vain to save a request.
_WASTE = 512


@dataclass(slots=True)
class Request:
    """Prompts, and the tokens that are asked about after each.

    Attributes:
        rows: Which prompts, by their places.
        tokens: The union of the tokens that they want, at most :data:`MOST_TOKENS`.
        wanted: How many log-probabilities of the answer somebody wants.
    """

    rows: list[int]
    tokens: set[int]
    wanted: int

    def takes(self, rows: Sequence[int], tokens: set[int]) -> bool:
        """Whether further prompts may come along."""
        union, count = len(self.tokens | tokens), len(self.rows) + len(rows)
        vain = union * count - self.wanted - len(tokens) * len(rows)
        return union <= MOST_TOKENS and count <= MOST_PROMPTS and vain <= _WASTE

    def add(self, rows: Sequence[int], tokens: set[int]) -> None:
        """Take further prompts along."""
        self.rows.extend(rows)
        self.wanted += len(tokens) * len(rows)
        self.tokens |= tokens


def plan(wanted: Sequence[NDArray[np.integer]]) -> list[Request]:
    """Few requests that give each prompt its tokens.

    Args:
        wanted: For each prompt the distinct tokens that it wants, ascending, shape (n,) each.
    """
    groups: dict[tuple[int, ...], list[int]] = {}
    for row, tokens in enumerate(wanted):
        for start in range(0, len(tokens), MOST_TOKENS):
            groups.setdefault(tuple(tokens[start : start + MOST_TOKENS].tolist()), []).append(row)
    requests: list[Request] = []
    # The largest sets first: small ones then find room beside each other, and a token that most want is in them anyway.
    for chunk, rows in sorted(groups.items(), key=lambda group: (-len(group[0]), group[0])):
        tokens_of = set(chunk)
        for start in range(0, len(rows), MOST_PROMPTS):
            part = rows[start : start + MOST_PROMPTS]
            if requests and requests[-1].takes(part, tokens_of):
                requests[-1].add(part, tokens_of)
            else:
                requests.append(Request(part, tokens_of.copy(), len(tokens_of) * len(part)))
    return requests
