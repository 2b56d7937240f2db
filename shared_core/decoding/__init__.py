"""The constraint: decoding that can only say what the schema holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared_core.decoding.columns import KeyColumns
from shared_core.decoding.constrained_search import DecodedKey, SearchOptions, SearchRequest, search
from shared_core.decoding.decoder import ConceptDecoder, Constraint, Reading, gather_scores, score_trie
from shared_core.decoding.following import FollowedSchema, trie_keys
from shared_core.decoding.generation import generate
from shared_core.decoding.prior import FloatArray, Prior, PriorChange, Score, build_prior, update_prior
from shared_core.decoding.prompts import DEFAULT_PROMPT, ConceptPrompt
from shared_core.decoding.queue import DecodeQueue
from shared_core.decoding.shared import SharedModel
from shared_core.decoding.spoken import SpokenSchema
from shared_core.decoding.voice import KeyVoice

if TYPE_CHECKING:
    from shared_core.decoding.processor import SchemaLogitsProcessor

__all__ = [
    "DEFAULT_PROMPT",
    "ConceptDecoder",
    "ConceptPrompt",
    "Constraint",
    "DecodeQueue",
    "DecodedKey",
    "FloatArray",
    "FollowedSchema",
    "KeyColumns",
    "KeyVoice",
    "Prior",
    "PriorChange",
    "Reading",
    "SchemaLogitsProcessor",
    "Score",
    "SearchOptions",
    "SearchRequest",
    "SharedModel",
    "SpokenSchema",
    "build_prior",
    "gather_scores",
    "generate",
    "score_trie",
    "search",
    "trie_keys",
    "update_prior",
]


def __getattr__(name: str) -> object:
    # Loaded when asked for: it alone needs torch and Transformers.
    if name != "SchemaLogitsProcessor":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from shared_core.decoding.processor import SchemaLogitsProcessor

    return SchemaLogitsProcessor
