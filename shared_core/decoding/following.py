"""The schema of one memory as one model says it, followed through its changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

from shared_core.decoding.columns import KeyColumns
from shared_core.decoding.prior import Score
from shared_core.decoding.spoken import SpokenSchema
from shared_core.decoding.voice import KeyVoice
from shared_core.schema import Ints
from shared_core.store import NamespaceState, ScoreColumns, Store


class FollowedSchema:
    """A spoken schema that is kept up to date at a cost in proportion to what changed. Safe for threads.

    It knows what the store knows: what a model has weighed for a recall alone is not in it, so that the same memory
    and query give the same result, whatever was recalled before.

    Args:
        store: The store.
        namespace: Which memory of it.
        voice: Gives the model's knowledge of keys; called only when the schema is asked for.
        score: Which score its prior is for.
    """

    def __init__(self, store: Store, namespace: tuple[str, ...], voice: Callable[[], KeyVoice], score: Score) -> None:
        self._store = store
        self._namespace = namespace
        self._voice = voice
        self._score = score
        self._lock = threading.Lock()
        self._state: NamespaceState | None = None
        self._schema: SpokenSchema | None = None
        self._saved = 0

    def current(self, state: NamespaceState) -> SpokenSchema:
        """The schema of a state; key ``i`` of the schema says concept ``schema.concept[i]`` of it."""
        voice = self._voice()
        with self._lock:
            if self._schema is None or self._state is None or not _continues(self._state, state):
                self._state = self._schema = None  # memory for two is not needed
                columns = self._store.load_scores(self._namespace, voice.decoder.fingerprint, state)
                self._schema = SpokenSchema.from_columns(_spelled(voice, state.concepts, columns), self._score)
                self._saved = columns.saved
            else:
                self._schema = self._follow(voice, self._schema, state)
            self._state = state
            return self._schema

    def drop(self) -> None:
        """Let nothing of what was erased live on in this process."""
        with self._lock:
            self._state = self._schema = None

    def _follow(self, voice: KeyVoice, schema: SpokenSchema, state: NamespaceState) -> SpokenSchema:
        later = self._store.load_scores(
            self._namespace, voice.decoder.fingerprint, state, since=ScoreColumns.empty(self._saved)
        )
        self._saved = later.saved
        known = schema.concepts
        old = later.select(np.flatnonzero(later.known & (later.concept < known)))
        keys = trie_keys(schema, old.concept.astype(np.int64))
        news = np.flatnonzero(~schema.known[keys])
        if len(news):
            schema = schema.learned(keys[news], old.select(news).neutral)
        if len(state.concepts) > known:
            new = later.select(np.flatnonzero(later.concept >= known))
            schema = schema.extended(_spelled(voice, state.concepts[known:], new, first=known))
        return schema


def trie_keys(schema: SpokenSchema, concepts: Ints) -> Ints:
    """Keys of the trie that say the given concepts, ascending; concepts that the model cannot say have none."""
    wanted = np.sort(concepts)
    keys = np.searchsorted(schema.concept, wanted)
    said = keys < len(schema.concept)
    said[said] = schema.concept[keys[said]] == wanted[said]
    found: Ints = keys[said]
    return found


def _continues(before: NamespaceState, after: NamespaceState) -> bool:
    """Whether a later state has all concepts of an earlier one, in their places."""
    # Most are the very same objects, which compare at once.
    return before.generation == after.generation or after.concepts[: len(before.concepts)] == before.concepts


def _spelled(voice: KeyVoice, concepts: Sequence[tuple[str, str]], scores: ScoreColumns, first: int = 0) -> KeyColumns:
    """Columns of all concepts: as stored, and spelled now where nothing is.

    Args:
        voice: The model's knowledge of keys.
        concepts: The concepts.
        scores: What is stored of them.
        first: Index of the first of the concepts in the state, which ``scores`` counts by.
    """
    unknown = np.ones(len(concepts), dtype=bool)
    unknown[scores.concept - first] = False
    missing = np.flatnonzero(unknown)
    if len(missing) == 0:
        return KeyColumns(scores.tokens, scores.starts, scores.neutral, scores.known)
    spelled = KeyColumns.of(
        voice.decoder.encode_keys([concepts[at][0] for at in missing.tolist()]), [None] * len(missing)
    )
    columns = ScoreColumns(0, missing + first, spelled.starts, spelled.tokens, spelled.neutral, spelled.known).after(
        scores
    )
    return KeyColumns(columns.tokens, columns.starts, columns.neutral, columns.known)
