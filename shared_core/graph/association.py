"""The associative graph: which concepts belong together (Eq. 10), and where activation goes (Eq. 12 and 13).

The graph is kept as what it is derived from: which concept occurs in which entry. An edge's weight is computed
when it is read, so that it follows the growing memory, and removing an entry is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import InvalidInputError
from shared_core.graph.idf import inverse_document_frequency
from shared_core.graph.incidence import Incidence

if TYPE_CHECKING:
    import networkx

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Hop:
    """A context concept: reached from a seed over the graph.

    Attributes:
        concept: Index of the concept.
        source: Concept it was reached from.
        seed: Seed at which its path began.
        probability: Product of the transition probabilities along the path (Eq. 12).
        hops: Length of the path, from 1.
    """

    concept: int
    source: int
    seed: int
    probability: float
    hops: int


@dataclass(frozen=True, slots=True)
class Propagation:
    """How activation spreads.

    Attributes:
        hops: Length of paths; 0 keeps to the seeds.
        fan_out: Context concepts drawn from each concept, without replacement.
        temperature: ``T`` of Eq. 12; lower is more decided.
        sample: Draw at random (Eq. 13) instead of taking the ``fan_out`` most probable.
        seed: Of the random numbers.
    """

    hops: int = 1
    fan_out: int = 2
    temperature: float = 1.0
    sample: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.hops < 0 or self.fan_out < 0:
            raise InvalidInputError("hops and fan_out must not be negative")
        if not self.temperature > 0:
            raise InvalidInputError(f"the temperature must be above 0, not {self.temperature}")


class AssociativeGraph:
    """An immutable weighted undirected graph over the concepts of one namespace.

    Args:
        keys: The concepts' keys; position is the concept's index.
        by_concept: The entries of each concept.
        by_entry: The concepts of each entry: the same links. Their weights are in (0, 1]; a co-occurrence counts as
            the product of its two links' weights: 1 when both were said, less when one was inferred.
    """

    def __init__(self, keys: Sequence[str], by_concept: Incidence, by_entry: Incidence) -> None:
        self.keys = keys
        self.by_concept = by_concept
        self.by_entry = by_entry
        self.entry_count = by_entry.row_count
        """Number of entries, ``N``."""
        self.frequency: Ints = np.diff(by_concept.starts)
        """Entries that each concept occurs in (``df``), shape (concepts,)."""
        self.idf: Floats = inverse_document_frequency(self.frequency, self.entry_count)
        """Inverse document frequency, shape (concepts,); see :func:`inverse_document_frequency`."""

    @classmethod
    def from_links(
        cls,
        keys: Sequence[str],
        concepts: NDArray[np.integer],
        entries: NDArray[np.integer],
        weights: NDArray[np.floating],
        entry_count: int,
    ) -> AssociativeGraph:
        """The graph of links given as three arrays, each of shape (links,): concept, entry, weight."""
        return cls(
            keys,
            Incidence.from_links(concepts, entries, weights, len(keys)),
            Incidence.from_links(entries, concepts, weights, entry_count),
        )

    def neighbours(self, concept: int) -> tuple[Ints, Floats]:
        """Concepts that co-occur with one, ascending, and their edge weights (Eq. 10), each shape (n,)."""
        others, counts = self._co_occurrences(concept)
        return others, counts * self.idf[concept] * self.idf[others]

    def weight(self, first: int, second: int) -> float:
        """``w_uv = Σ IDF(u) · IDF(v)`` over the co-occurrences of two concepts (Eq. 10); 0 without any."""
        others, weights = self.neighbours(first)
        at = int(np.searchsorted(others, second))
        return float(weights[at]) if at < len(others) and others[at] == second else 0.0

    def transitions(self, concept: int, temperature: float = 1.0) -> tuple[Ints, Floats]:
        """Neighbours and the probability of going to each: softmax of ``w / T`` (Eq. 12), each shape (n,)."""
        others, weights = self.neighbours(concept)
        if not len(others):
            return others, weights
        scaled = (weights - weights.max()) / temperature
        mass = np.exp(scaled)
        return others, mass / mass.sum()

    def propagate(self, seeds: Sequence[int], options: Propagation) -> list[Hop]:
        """Carry activation from seeds to context concepts.

        A concept is reached once, by the shortest path, and among those the most probable; seeds are never context.

        Returns:
            Context concepts in the order of their seeds, most probable first within each.
        """
        random = np.random.default_rng(options.seed)
        reached = set(seeds)
        found: list[Hop] = []
        order = {seed: place for place, seed in enumerate(dict.fromkeys(seeds))}
        frontier = [Hop(seed, seed, seed, 1.0, 0) for seed in order]
        for length in range(1, options.hops + 1):
            candidates = [
                Hop(int(other), at.concept, at.seed, at.probability * float(share), length)
                for at in frontier
                for other, share in self._draw(at.concept, options, reached, random)
            ]
            best: dict[int, Hop] = {}
            for hop in candidates:
                if hop.concept not in best or hop.probability > best[hop.concept].probability:
                    best[hop.concept] = hop
            frontier = list(best.values())
            reached.update(best)
            found += frontier
        return sorted(found, key=lambda hop: (order[hop.seed], -hop.probability))

    def _draw(
        self, concept: int, options: Propagation, reached: set[int], random: np.random.Generator
    ) -> list[tuple[int, float]]:
        others, shares = self.transitions(concept, options.temperature)
        fresh = np.fromiter((int(other) not in reached for other in others), dtype=bool, count=len(others))
        others, shares = others[fresh], shares[fresh]
        count = min(options.fan_out, len(others))
        if options.sample:
            # The Gumbel trick: the largest perturbed log-probabilities are a draw without replacement.
            with np.errstate(divide="ignore"):
                order = np.argsort(-(np.log(shares) + random.gumbel(size=len(shares))), kind="stable")
        else:
            order = np.lexsort((others, -shares))
        return [(int(others[at]), float(shares[at])) for at in order[:count]]

    def _co_occurrences(self, concept: int) -> tuple[Ints, Floats]:
        entries, here = self.by_concept.row(concept)
        links, sizes = self.by_entry.rows(entries)
        concepts = self.by_entry.members[links].astype(np.int64)
        counts = self.by_entry.weights[links] * np.repeat(here, sizes)
        others, position = np.unique(concepts, return_inverse=True)
        summed = np.bincount(position, weights=counts, minlength=len(others))
        apart = others != concept
        return others[apart], summed[apart]

    def to_networkx(self) -> networkx.Graph[str]:
        """The whole graph, for analysis and drawing.

        Nodes are keys with ``frequency`` and ``idf``; edges have ``weight`` (Eq. 10) and ``count``. Its size grows
        with the square of the concepts per entry.
        """
        import networkx

        graph: networkx.Graph[str] = networkx.Graph()
        for concept, key in enumerate(self.keys):
            graph.add_node(key, frequency=int(self.frequency[concept]), idf=float(self.idf[concept]))
        for concept, key in enumerate(self.keys):
            others, counts = self._co_occurrences(concept)
            later = others > concept
            weights = counts * self.idf[concept] * self.idf[others]
            graph.add_edges_from(
                (key, self.keys[other], {"weight": float(weight), "count": float(count)})
                for other, weight, count in zip(others[later], weights[later], counts[later], strict=True)
            )
        return graph
