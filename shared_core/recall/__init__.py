"""The read path: activation, ranking, context."""

from shared_core.recall.anticipation import AnticipationIndex, FollowedAnticipations
from shared_core.recall.explanation import Explanation
from shared_core.recall.following import FollowedSnapshot
from shared_core.recall.lexical import LexicalIndex, searchable_text
from shared_core.recall.mentions import MentionIndex, named
from shared_core.recall.ranking import Episodes, RankingWeights, rank_entries
from shared_core.recall.recall import (
    Question,
    Recaller,
    check_count,
    check_threshold,
    generated_seeds,
    seed_constraint,
    unweighed,
)
from shared_core.recall.relevance import RELEVANT, generated_evidence, relevances
from shared_core.recall.results import ContextConcept, Reason, Recall, RecalledEntry, Seed, describe
from shared_core.recall.snapshot import Snapshot
from shared_core.recall.stems import content_stems
from shared_core.recall.turns import Turns
from shared_core.recall.views import SchemaView, Stats

__all__ = [
    "RELEVANT",
    "AnticipationIndex",
    "ContextConcept",
    "Episodes",
    "Explanation",
    "FollowedAnticipations",
    "FollowedSnapshot",
    "LexicalIndex",
    "MentionIndex",
    "Question",
    "RankingWeights",
    "Reason",
    "Recall",
    "RecalledEntry",
    "Recaller",
    "SchemaView",
    "Seed",
    "Snapshot",
    "Stats",
    "Turns",
    "check_count",
    "check_threshold",
    "content_stems",
    "describe",
    "generated_evidence",
    "generated_seeds",
    "named",
    "rank_entries",
    "relevances",
    "searchable_text",
    "seed_constraint",
    "unweighed",
]
