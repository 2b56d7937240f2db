"""Relevance: how likely it is that an entry has to do with the query at all, in [0, 1].

Ranking says which entries are best, however poor they are: scores are comparable within one recall. Relevance is
comparable across queries. It weighs what speaks for the query as a whole, in log-odds, and hands each entry its share:

1. *What the model says.* The best key's lift, the nats by which the query makes it likelier than the neutral prompt
   does, less ``ln |S|``: of so many keys, one is lifted that much by chance. This is comparable from small to large
   memories.
2. *What the memory holds.* The best entry's score, anticipations left aside, as a share of what an entry would get
   whose concepts are the best, whose words cover the whole query, and whose episode does so too. Its square: a little
   overlap is no evidence. (Anticipations are relative to the memory's average, which says little of few entries.)
3. An entry's relevance is the best one's, times its score as a share of the best score.

The weights are rounded from a logistic regression on two conversations of LoCoMo. On one of these and another, by the
relevance of the best entry, a conversation's questions (80) are told from those of others (80) with an area under the
curve of 0.97.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np

from shared_core.decoding import DecodedKey, SpokenSchema
from shared_core.recall.ranking import EntryScores, Floats, RankingWeights

RELEVANT = 0.1
"""The relevance below which an entry is better not shown to a model that answers.

There, 94 % of the right turns among the ten that were recalled are above it, and for 85 % of the questions from
elsewhere nothing is.
"""

_BEFORE, _LIFT_WEIGHT, _SHARE_WEIGHT = -4.0, 0.5, 3.0


def generated_evidence(decoded: Sequence[DecodedKey], spoken: SpokenSchema) -> float:
    """The best key's lift over the neutral prompt, less what chance explains (nats); 0 if nothing was decoded."""
    if not decoded:
        return 0.0
    lift = max(one.logprob - float(spoken.prior.total[one.key]) for one in decoded)
    return lift - log(spoken.trie.key_count)


def relevances(scores: EntryScores, held: EntryScores, weights: RankingWeights, evidence: float) -> Floats:
    """The relevance of every entry, shape (entries,); it rises with the entry's score.

    Args:
        scores: What the entries were ranked by.
        held: The same without anticipations.
        weights: The weights of that ranking.
        evidence: See :func:`generated_evidence`.
    """
    best = float(scores.total.max(initial=0.0))
    if not best:
        return np.zeros_like(scores.total)
    whole = (1 + weights.lexical) * (1 + weights.passage + weights.session)
    # At 700 the odds are certainty, and a little more would overflow.
    share = float(held.total.max(initial=0.0)) / whole
    odds = np.exp(min(_BEFORE + _LIFT_WEIGHT * evidence + _SHARE_WEIGHT * share**2, 700.0))
    relevance: Floats = odds / (1 + odds) * (scores.total / best)
    return relevance
