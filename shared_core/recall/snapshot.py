"""What a recall runs on: one namespace as of one moment, indexed, immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shared_core.graph import AssociativeGraph, Incidence, inverse_document_frequency
from shared_core.recall.lexical import LexicalIndex, asks, searchable_text
from shared_core.recall.mentions import MentionIndex
from shared_core.recall.ranking import Episodes
from shared_core.store import NamespaceState, StoredEntry

# Concepts, as a multiple of the mean, up to which an entry counts in full. Turns of a conversation stay below.
_LONG = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An immutable view of one namespace; any number of recalls may share it.

    Attributes:
        generation: The store's generation it was made from.
        entries: The entries, in their order.
        keys: Key of each concept.
        surfaces: Display form of each concept.
        graph: Which concept occurs in which entry, and what follows from that.
        evidence: The entries of each concept as ranking counts them: what a long entry says weighs less.
        origin: Index into :data:`shared_core.store.ORIGINS` of each link, in the order of
            ``graph.by_concept``, shape (links,).
        rarity: Inverse document frequency that entries are ranked with, shape (concepts,). Spellings of one
            word ("paint", "painted") share it.
        mentions: Finds the concepts that a query names.
        lexical: Full-text scores.
        episodes: Where each entry stands in its conversation.
        speakers: The speakers, in the numbering of ``episodes``.
    """

    generation: int
    entries: Sequence[StoredEntry]
    keys: Sequence[str]
    surfaces: Sequence[str]
    graph: AssociativeGraph
    evidence: Incidence
    origin: NDArray[np.uint8]
    rarity: NDArray[np.float64]
    mentions: MentionIndex
    lexical: LexicalIndex
    episodes: Episodes
    speakers: Sequence[str]

    @classmethod
    def build(cls, state: NamespaceState, previous: Snapshot | None = None) -> Snapshot:
        """Index a namespace; texts that ``previous`` indexed already, in the same places, are not read again."""
        keys = [key for key, _ in state.concepts]
        graph = AssociativeGraph(keys, state.link_concept, state.link_entry, state.link_weight, len(state.entries))
        mentions = _mentions(keys, previous)
        speakers = sorted({one.entry.speaker for one in state.entries if one.entry.speaker})
        return cls(
            generation=state.generation,
            entries=state.entries,
            keys=keys,
            surfaces=[surface for _, surface in state.concepts],
            graph=graph,
            evidence=_evidence(graph),
            origin=state.link_origin[np.argsort(state.link_concept, kind="stable")],
            rarity=inverse_document_frequency(graph.by_concept, len(state.entries), mentions.families()),
            mentions=mentions,
            lexical=_lexical(state.entries, previous),
            episodes=_episodes(state.entries, speakers),
            speakers=speakers,
        )


def _evidence(graph: AssociativeGraph) -> Incidence:
    """Links damped in entries with many concepts, which would otherwise come back whatever is asked."""
    sizes = np.diff(graph.by_entry.starts)
    usual = _LONG * max(float(sizes.mean()), 1.0) if len(sizes) else 1.0
    damping = np.sqrt(usual / np.maximum(sizes, usual)).astype(np.float32)
    links = graph.by_concept
    return replace(links, weights=links.weights * damping[links.members])


def _mentions(keys: Sequence[str], previous: Snapshot | None) -> MentionIndex:
    if previous is not None and list(previous.keys) == keys[: len(previous.keys)]:
        return previous.mentions.extend(keys[len(previous.keys) :])
    return MentionIndex.build(keys)


def _lexical(entries: Sequence[StoredEntry], previous: Snapshot | None) -> LexicalIndex:
    known = len(previous.entries) if previous is not None else 0
    if previous is not None and [(one.seq, one.entry) for one in previous.entries] == [
        (one.seq, one.entry) for one in entries[:known]
    ]:
        return previous.lexical.extend(searchable_text(one.entry) for one in entries[known:])
    return LexicalIndex.build(searchable_text(one.entry) for one in entries)


def _episodes(entries: Sequence[StoredEntry], speakers: Sequence[str]) -> Episodes:
    sessions: dict[str, int] = {}
    speaker_number = {speaker: number for number, speaker in enumerate(speakers)}
    session = [
        -1 if one.entry.session is None else sessions.setdefault(one.entry.session, len(sessions)) for one in entries
    ]
    return Episodes.arrange(
        np.array(session, dtype=np.int64),
        np.array([speaker_number.get(one.entry.speaker or "", -1) for one in entries], dtype=np.int64),
        np.array([asks(one.entry.text) for one in entries], dtype=bool),
        np.arange(len(entries)),
    )
