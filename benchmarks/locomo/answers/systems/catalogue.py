"""Systems by name, and what they share: the model that writes and answers, embeddings, the cache."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from benchmarks.locomo.answers.systems import amem, memgpt, memorybank, readagent
from benchmarks.locomo.answers.systems.bounds import FullContext, Nothing, Oracle
from benchmarks.locomo.answers.systems.retrieving import Retrieving
from benchmarks.locomo.answers.systems.sessions import Embed
from benchmarks.locomo.answers.systems.system import AnswerSystem
from benchmarks.locomo.answers.writer import Spent, Writer
from benchmarks.locomo.systems import Entrant, Workplace
from benchmarks.locomo.systems import choose as choose_entrants
from benchmarks.locomo.systems.dense import embeddings
from benchmarks.locomo.systems.settings import is_memory
from shared_core.errors import InvalidInputError

DEFAULT = (
    *("nothing", "full", "readagent", "memorybank", "memgpt", "amem"),
    *("bm25", "dense", "scg", "oracle"),
)

# Without assimilation nothing says how novel an entry is: all that it says is new.
_ACCOMMODATION_ONLY = {"scg": "scg:assimilate=0", "scg-paper": "scg-paper:assimilate=0,gate=always"}
ABLATION = (
    *(name for memory, only in _ACCOMMODATION_ONLY.items() for name in (memory, f"unconstrained:{memory}", only)),
    *("nothing", "oracle"),
)
"""The rows of the paper's Table 2, for the default and for the memory as published."""

SWEEPS: Mapping[str, Mapping[int, str]] = {
    "turns": {k: f"scg:k={k}" for k in (5, 10, 20, 35, 60)},
    "concepts": {k: f"scg-paper:concept_budget={k}" for k in (5, 10, 20)}
    | {35: "scg-paper", 60: "scg-paper:concept_budget=60"},
    "hops": {0: "scg", 1: "scg:hops=1", 2: "scg:hops=2"},
    "hops, as published": {0: "scg-paper:hops=0", 1: "scg-paper", 2: "scg-paper:hops=2"},
}
"""The points of the paper's Figures 3 (turns, concepts) and 4 (hops): by plot and by place on it, the system."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What the systems of one run share.

    Attributes:
        writer: The model that writes memories and answers.
        workplace: Models and cache of the retrieval benchmark's systems.
        k: Turns, notes or memories that a system retrieves.
    """

    writer: Writer
    workplace: Workplace
    k: int

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings by the encoder that all systems share; the time counts as the system's."""
        start = time.perf_counter()
        found = embeddings(self.workplace.encoder(None), texts)
        self.writer.spent += Spent(seconds=time.perf_counter() - start)
        return found


@dataclass(frozen=True, slots=True)
class Competitor:
    """A system that takes part.

    Attributes:
        name: Its name.
        open: Makes one, for one conversation.
        settings: What its contexts depend on, apart from the model and ``k``.
    """

    name: str
    open: Callable[[Shared], AnswerSystem]
    settings: Callable[[Shared], dict[str, object]]


def choose(names: Sequence[str]) -> list[Competitor]:
    """The systems of some names, each once.

    Raises:
        InvalidInputError: if a name is unknown.
    """
    return [_competitor(name) for name in dict.fromkeys(names)]


_BOUNDS: dict[str, Callable[[], AnswerSystem]] = {"nothing": Nothing, "oracle": Oracle, "full": FullContext}
_EMBEDDING: dict[str, tuple[Callable[[Writer, Embed, int], AnswerSystem], dict[str, object]]] = {
    "memorybank": (memorybank.MemoryBank, memorybank.SETTINGS),
    "memgpt": (memgpt.MemGPT, memgpt.SETTINGS),
    "amem": (amem.AMem, amem.SETTINGS),
}


def _competitor(name: str) -> Competitor:
    if name in _BOUNDS:
        return Competitor(name, lambda _: _BOUNDS[name](), lambda _: {})
    if name == "readagent":
        return Competitor(name, lambda shared: readagent.ReadAgent(shared.writer), lambda _: readagent.SETTINGS)
    if name in _EMBEDDING:
        make, settings = _EMBEDDING[name]
        return Competitor(name, lambda shared: make(shared.writer, shared.embed, shared.k), lambda _: settings)
    try:
        [entrant] = choose_entrants([name])
    except InvalidInputError as error:
        if is_memory(name.removeprefix("unconstrained:")):  # its settings are wrong, not its name
            raise
        raise InvalidInputError(f"{error}, {', '.join([*_BOUNDS, 'readagent', *_EMBEDDING])}") from None
    except ValueError:
        raise InvalidInputError(f"{name!r} is a group: name its systems") from None
    return Competitor(name, partial(_retrieving, entrant), lambda shared: entrant.settings(shared.workplace))


def _retrieving(entrant: Entrant, shared: Shared) -> AnswerSystem:
    k = shared.k if entrant.k is None else entrant.k
    return Retrieving(entrant.open(shared.workplace), shared.writer, k)
