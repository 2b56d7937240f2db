"""The write path: entries become concepts, links and a transaction.

With phrases as accommodation a write has two steps, each durable on its own. First the entries are stored with the
concepts they say, and can be recalled at once. Then they are assimilated, batch by batch, into a schema that already
knows all of them; an entry remembers that it still waits, so that a crash in between loses nothing and a second run
ends where the first would have. With the model in accommodation a batch is read, distilled and stored in one
transaction, and the next batch sees what it added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared_core.config import SCGConfig
from shared_core.decoding import FloatArray, KeyVoice, SpokenSchema
from shared_core.entry import MemoryEntry
from shared_core.errors import SCGError
from shared_core.evolution.accommodation import said_concepts
from shared_core.evolution.distillation import Distiller, Vocabulary
from shared_core.store import (
    INFERRED,
    Anticipated,
    ConceptLink,
    EntryWrite,
    KeyScores,
    Known,
    NamespaceState,
    Store,
    WriteOutcome,
)

# Entries stored in one transaction when the model is not needed for them.
_STORED_TOGETHER = 500


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long call is.

    Attributes:
        stage: What is being done, for people.
        done: Units finished in this stage.
        total: Units of this stage.
    """

    stage: str
    done: int
    total: int


Report = Callable[[Progress], None]


class Evolution:
    """Writes entries into one namespace.

    Args:
        store: The store.
        namespace: The namespace.
        config: The memory's settings.
        voice: Gives the model's knowledge of keys; called only when the model is needed.
        state: Gives the namespace as it is now.
        schema: Gives the schema of a state as the model says it; called only when the model is needed.
    """

    def __init__(
        self,
        store: Store,
        namespace: tuple[str, ...],
        config: SCGConfig,
        voice: Callable[[], KeyVoice],
        state: Callable[[], NamespaceState],
        schema: Callable[[NamespaceState], SpokenSchema],
    ) -> None:
        self._store = store
        self._namespace = namespace
        self._config = config
        self._voice = voice
        self._state = state
        self._schema = schema

    def remember(self, entries: Sequence[MemoryEntry], *, use_model: bool, report: Report) -> WriteOutcome:
        """Store entries, which have ids, and distil them.

        Args:
            entries: What to store; the last of several with the same id counts.
            use_model: Whether the model may be used now; without it entries keep waiting for assimilation.
            report: Told of progress.

        Raises:
            SCGError: if the store or the model fails; its ``stored`` and its message tell what is stored nevertheless.
        """
        entries = list({entry.id: entry for entry in entries}.values())
        speaks = any(not entry.is_silent for entry in entries)
        evolves = use_model and speaks and self._config.accommodation != "phrases"
        outcomes: list[WriteOutcome] = []
        try:
            # What was written before a failure is in the list by then.
            outcomes.extend(self._evolve(entries, report) if evolves else self._store_said(entries, report))
            outcome = _sum(outcomes)
            if use_model and self._config.assimilate:
                self.assimilate(report, set(outcome.ids))
                if evolves and self._config.anticipation_weight:
                    self.anticipate(report, set(outcome.ids))
        except SCGError as error:
            if not outcomes:
                raise
            raise _told(error, _sum(outcomes).ids, len(entries)) from error
        return outcome

    def assimilate(self, report: Report, only: set[str] | None = None) -> int:
        """Assimilate the entries that wait for it (all, or those named); returns how many.

        Concepts that no entry waits with, such as an import brings, are weighed as well where all are meant.
        """
        if only is not None and not self._wait(only):
            return 0
        state = self._state()
        waiting = [
            place
            for place, stored in enumerate(state.entries)
            if not stored.assimilated and (only is None or stored.entry.id in only)
        ]
        if waiting:
            self._assimilate(state, waiting, report)
        return len(waiting)

    def consolidate(self, report: Report) -> int:
        """Let the model catch up: assimilate, weigh every concept, read every entry; returns how many were not read."""
        waited = self.assimilate(report)
        state = self._state()
        if state.concepts:
            self._weighed(state, report)
        anticipates = self._config.assimilate and self._config.anticipation_weight
        return waited + (self.anticipate(report) if anticipates else 0)

    def anticipate(self, report: Report, only: set[str] | None = None) -> int:
        """Let the model read entries (all, or those named) of which it is not stored what it expects; returns how many.

        Entries that say nothing are not read.
        """
        state = self._state()
        speaking = [
            place
            for place, one in enumerate(state.entries)
            if not one.entry.is_silent and (only is None or one.entry.id in only)
        ]
        if not speaking:
            return 0
        fingerprint = self._voice().decoder.fingerprint
        known = self._store.load_anticipations(self._namespace, fingerprint, state).entry
        unread = [state.entries[place].entry for place in np.setdiff1d(speaking, known).tolist()]
        distiller = Distiller(self._voice(), self._config)
        for start in range(0, len(unread), self._config.batch):
            report(Progress("reading", start, len(unread)))
            batch = unread[start : start + self._config.batch]
            expected = dict(zip(map(_id, batch), distiller.anticipate(batch), strict=True))
            self._store.save_anticipations(self._namespace, Anticipated(fingerprint, expected))
        report(Progress("reading", len(unread), len(unread)))
        return len(unread)

    def _assimilate(self, state: NamespaceState, waiting: Sequence[int], report: Report) -> None:
        vocabulary = Vocabulary(state.concepts, self._weighed(state, report))
        distiller = Distiller(self._voice(), self._config)
        fingerprint = self._voice().decoder.fingerprint
        for start in range(0, len(waiting), self._config.batch):
            report(Progress("assimilating", start, len(waiting)))
            batch = waiting[start : start + self._config.batch]
            entries = [state.entries[place].entry for place in batch]
            found = distiller.assimilate(entries, [_said(state, place) for place in batch], vocabulary)
            by_id = dict(zip(map(_id, entries), found, strict=True))
            self._store.assimilate(
                self._namespace,
                {id: one.links for id, one in by_id.items()},
                Anticipated(fingerprint, {id: one.anticipation for id, one in by_id.items()}),
            )
        report(Progress("assimilating", len(waiting), len(waiting)))

    def _wait(self, ids: set[str]) -> bool:
        return any(not known.assimilated for known in self._store.known(self._namespace, ids).values())

    def _store_said(self, entries: Sequence[MemoryEntry], report: Report) -> Iterator[WriteOutcome]:
        for start in range(0, len(entries), _STORED_TOGETHER):
            report(Progress("storing", start, len(entries)))
            group = entries[start : start + _STORED_TOGETHER]
            yield self._store.write(
                self._namespace,
                [
                    EntryWrite(
                        entry,
                        tuple(said_concepts(entry)),
                        assimilated=entry.is_silent or not self._config.assimilate,
                    )
                    for entry in group
                ],
            )
        report(Progress("storing", len(entries), len(entries)))

    def _evolve(self, entries: Sequence[MemoryEntry], report: Report) -> Iterator[WriteOutcome]:
        voice = self._voice()
        distiller = Distiller(voice, self._config)
        # Batches are cut before known entries are left out, so that a resumed run sees the same batches.
        for start in range(0, len(entries), self._config.batch):
            report(Progress("distilling", start, len(entries)))
            batch = entries[start : start + self._config.batch]
            known = self._store.known(self._namespace, [_id(entry) for entry in batch])
            new = [entry for entry in batch if _is_new(entry, known.get(_id(entry))) and not entry.is_silent]
            links: dict[str, list[ConceptLink]] = {}
            if new:
                state = self._state()
                vocabulary = Vocabulary(state.concepts, self._weighed(state, lambda _: None))
                links = {_id(entry): found for entry, found in zip(new, distiller.evolve(new, vocabulary), strict=True)}
            yield self._store.write(
                self._namespace, [EntryWrite(entry, tuple(links.get(_id(entry), ()))) for entry in batch]
            )
        report(Progress("distilling", len(entries), len(entries)))

    def _weighed(self, state: NamespaceState, report: Report) -> SpokenSchema:
        """The schema with all neutral log-probabilities if a decode needs them; computes and stores missing ones."""
        schema = self._schema(state)
        keys = np.flatnonzero(~schema.known)
        if not len(keys) or not (self._config.calibration or self._config.lookahead):
            return schema
        voice = self._voice()
        missing = [state.concepts[concept][0] for concept in schema.concept[keys].tolist()]
        neutral: dict[str, FloatArray] = {}
        # Recalls weigh what comes up and store nothing: that is caught up on here.
        for group in voice.weigh(missing):
            report(Progress("weighing new concepts", len(neutral), len(missing)))
            self._save(voice, group)
            neutral |= {key: scores for key, (_, scores) in group.items()}
        report(Progress("weighing new concepts", len(neutral), len(missing)))
        voice.forget(missing)
        return schema.learned(keys, np.concatenate([neutral[key] for key in missing]))

    def _save(self, voice: KeyVoice, group: Mapping[str, tuple[Sequence[int], FloatArray]]) -> None:
        scores = {key: KeyScores(np.array(tokens, dtype=np.int32), neutral) for key, (tokens, neutral) in group.items()}
        self._store.save_scores(self._namespace, voice.decoder.fingerprint, scores)


def _said(state: NamespaceState, entry: int) -> NDArray[np.int64]:
    """Concepts that an entry is linked to other than by inference."""
    links = state.links_of(np.array([entry]))
    said: NDArray[np.int64] = state.link_concept[links][state.link_origin[links] != INFERRED].astype(np.int64)
    return said


def _is_new(entry: MemoryEntry, known: Known | None) -> bool:
    return known is None or known.digest != entry.digest


def _id(entry: MemoryEntry) -> str:
    assert entry.id is not None
    return entry.id


def _told(error: SCGError, stored: tuple[str, ...], count: int) -> SCGError:
    """The error of a call that had stored something: a caller who took it for nothing would store it twice."""
    if len(stored) < count:
        what = f"{len(stored)} of {count} entries are stored, the call with the same ids goes on from there"
    else:
        what = f"{'the entry is' if count == 1 else f'all {count} entries are'} stored, consolidate() does what is left"
    told = type(error)(f"{what}. It stopped since {error}")
    told.stored, told.quoted = stored, error.quoted
    return told


def _sum(outcomes: Sequence[WriteOutcome]) -> WriteOutcome:
    return WriteOutcome(
        added=sum(outcome.added for outcome in outcomes),
        updated=sum(outcome.updated for outcome in outcomes),
        unchanged=sum(outcome.unchanged for outcome in outcomes),
        ids=tuple(id for outcome in outcomes for id in outcome.ids),
        wiped=all(outcome.wiped for outcome in outcomes),
    )
