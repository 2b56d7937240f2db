"""What a recall runs on: one namespace as of one moment, indexed, immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shared_core.graph import AssociativeGraph, Incidence, inverse_document_frequency, stable_order
from shared_core.recall.lexical import LexicalIndex, searchable_text
from shared_core.recall.mentions import MentionIndex
from shared_core.recall.ranking import Episodes
from shared_core.recall.turns import Turns
from shared_core.store import NamespaceChange, NamespaceState, StoredEntry

# Concepts, as a multiple of the mean, up to which an entry counts in full. Turns of a conversation stay below.
_LONG = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """An immutable view of one namespace; any number of recalls may share it.

    Attributes:
        state: What it was made from.
        keys: Key of each concept.
        surfaces: Display form of each concept.
        graph: Which concept occurs in which entry, and what follows from that.
        evidence: The entries of each concept as ranking counts them: what a long entry says weighs less.
        origin: Index into :data:`shared_core.store.ORIGINS` of each link, in the order of
            ``graph.by_concept``, shape (links,).
        commonness: Entries with any concept of a family, by the family's name, shape (concepts,).
        rarity: Inverse document frequency that entries are ranked with, shape (concepts,). Spellings of one
            word ("paint", "painted") share it.
        mentions: Finds the concepts that a query names.
        lexical: Full-text scores.
        turns: Session and speaker of each entry.
        episodes: Where each entry stands in its conversation.
        speakers: The speakers, in the numbering of ``episodes``.
    """

    state: NamespaceState
    keys: Sequence[str]
    surfaces: Sequence[str]
    graph: AssociativeGraph
    evidence: Incidence
    origin: NDArray[np.uint8]
    commonness: NDArray[np.int64]
    rarity: NDArray[np.float64]
    mentions: MentionIndex
    lexical: LexicalIndex
    turns: Turns
    episodes: Episodes
    speakers: Sequence[str]

    @property
    def generation(self) -> int:
        """The store's generation it was made from."""
        return self.state.generation

    @property
    def entries(self) -> Sequence[StoredEntry]:
        """The entries, in their order."""
        return self.state.entries

    @classmethod
    def build(cls, state: NamespaceState) -> Snapshot:
        """Index a namespace."""
        keys = [key for key, _ in state.concepts]
        links = (state.link_concept, state.link_entry, state.link_weight)
        graph = AssociativeGraph.from_links(keys, *links, len(state.entries))
        mentions = MentionIndex.build(keys)
        return _finish(
            state,
            keys,
            [surface for _, surface in state.concepts],
            graph,
            state.link_origin[stable_order(state.link_concept)],
            _count_families(graph.by_entry, mentions.families.of, np.arange(len(state.entries))),
            mentions,
            LexicalIndex.build([searchable_text(one.entry) for one in state.entries]),
            Turns.empty().extend(one.entry for one in state.entries),
        )

    def after(self, change: NamespaceChange) -> Snapshot:
        """The snapshot of a later moment, at the cost of what was added and of copying arrays."""
        state = self.state.after(change)
        added = [one.entry for one in state.entries[len(self.entries) :]]
        keys = [*self.keys, *(key for key, _ in change.concepts)]
        graph, origin = self._linked(keys, state, change)
        mentions = self.mentions.extend(keys[len(self.keys) :])
        families, touched = mentions.families.of, change.entry_place
        commonness = _count_families(graph.by_entry, families, touched)
        commonness[: len(self.commonness)] += self.commonness
        # Entries that got further concepts were counted before.
        commonness -= _count_families(self.graph.by_entry, families, touched[touched < len(self.entries)])
        return _finish(
            state,
            keys,
            [*self.surfaces, *(surface for _, surface in change.concepts)],
            graph,
            origin,
            commonness,
            mentions,
            self.lexical.extend([searchable_text(entry) for entry in added]),
            self.turns.extend(added),
        )

    def _linked(
        self, keys: Sequence[str], state: NamespaceState, change: NamespaceChange
    ) -> tuple[AssociativeGraph, NDArray[np.uint8]]:
        """The graph with the added links, and the origins of all."""
        order = np.lexsort((change.link_entry, change.link_concept))
        concepts, entries, weights = change.link_concept[order], change.link_entry[order], change.link_weight[order]
        before = self.graph.by_concept
        places = before.places(concepts, entries)
        by_concept = before.insert(places, concepts, entries, weights, len(keys))
        by_entry = Incidence.from_links(state.link_entry, state.link_concept, state.link_weight, len(state.entries))
        origin = np.insert(self.origin, places, change.link_origin[order])
        return AssociativeGraph(keys, by_concept, by_entry), origin


def _finish(
    state: NamespaceState,
    keys: Sequence[str],
    surfaces: Sequence[str],
    graph: AssociativeGraph,
    origin: NDArray[np.uint8],
    commonness: NDArray[np.int64],
    mentions: MentionIndex,
    lexical: LexicalIndex,
    turns: Turns,
) -> Snapshot:
    """What depends on the whole namespace, such as the number of its entries, is computed for each snapshot."""
    rarity = inverse_document_frequency(commonness, len(state.entries))[mentions.families.of]
    return Snapshot(
        state,
        keys,
        surfaces,
        graph,
        _evidence(graph),
        origin,
        commonness,
        rarity,
        mentions,
        lexical,
        turns,
        *turns.arrange(),
    )


def _count_families(by_entry: Incidence, families: NDArray[np.int32], entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of some entries have any concept of each family, shape (concepts,)."""
    links, sizes = by_entry.rows(entries)
    owners = np.repeat(np.arange(len(entries)), sizes)
    pairs = np.sort(owners * max(len(families), 1) + families[by_entry.members[links]])
    pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    return np.bincount(pairs % max(len(families), 1), minlength=len(families))


def _evidence(graph: AssociativeGraph) -> Incidence:
    """Links damped in entries with many concepts, which would otherwise come back whatever is asked."""
    sizes = np.diff(graph.by_entry.starts)
    usual = _LONG * max(float(sizes.mean()), 1.0) if len(sizes) else 1.0
    damping = np.sqrt(usual / np.maximum(sizes, usual)).astype(np.float32)
    links = graph.by_concept
    return replace(links, weights=links.weights * damping[links.members])
