"""This project's memory through its own door, with readings that are replayed where they were made before."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.decoding.meter import Passes, counted
from benchmarks.locomo.systems.replay import ReadingFile, WrittenMemory, digest
from benchmarks.locomo.systems.settings import decode_settings, write_settings
from benchmarks.locomo.systems.system import Cost, Ranked, Report
from shared_core import MemoryEntry, SCGConfig, SchemaMemory, __version__
from shared_core.decoding import DecodedKey, Reading, SpokenSchema
from shared_core.evolution import Progress
from shared_core.models import TransformersModel

Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""Embeddings of texts, of length 1, shape (texts, size)."""


class _Meter:
    """What the model does meanwhile."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes

    def start(self) -> None:
        self._count, self._tokens = self._passes.count, self._passes.tokens
        self._start = time.perf_counter()

    def stop(self) -> Cost:
        seconds = time.perf_counter() - self._start
        return Cost(seconds, self._passes.count - self._count, self._passes.tokens - self._tokens)


_FREE_TOKENS = 32
_LEAST_SIMILARITY = 1e-3  # has a logarithm


class ReplayingMemory(SchemaMemory):
    """A memory whose readings of queries are kept.

    Attributes:
        readings: Where.
        meter: Measures a reading.
        original: What reading the last query took when it was done.
        spent: What it took this time.
    """

    readings: ReadingFile
    meter: _Meter
    original: Cost
    spent: Cost

    def prepare(self) -> None:
        """What is loaded for the first recall and serves all."""
        self._known()

    def decode(self, query: str, schema: SpokenSchema) -> Reading:
        """Read a query anew."""
        return super()._read(query, schema)

    def _read(self, query: str, schema: SpokenSchema) -> Reading:
        start = time.perf_counter()
        kept = self.readings.get(query)
        if kept is not None:
            reading, self.original = kept
            self.spent = Cost(time.perf_counter() - start)
            return reading
        self.meter.start()
        found = self.decode(query, schema)
        self.original = self.meter.stop()
        reading = self.readings.keep(query, found, self.original)
        self.spent = Cost(time.perf_counter() - start, self.original.passes, self.original.tokens)
        return reading


class UnconstrainedMemory(ReplayingMemory):
    """The memory without its constraint, as the paper's Table 2 has it: keywords written freely, each replaced by the
    concept whose embedding is nearest.

    Attributes:
        embed: Gives embeddings of length 1, shape (texts, size).
    """

    embed: Embed
    _concepts: NDArray[np.float32] | None = None

    def decode(self, query: str, schema: SpokenSchema) -> Reading:
        """A keyword's concept gets the logarithm of their similarity for its log-probability."""
        [line] = self._engine.voice().decoder.generate([query], max_tokens=_FREE_TOKENS)
        words = list(dict.fromkeys(word.strip() for word in line.split(",") if word.strip()))
        expected = super().decode(query, schema).anticipation
        if not words:
            return Reading([[]], expected)
        if self._concepts is None:
            surfaces = self._current().surfaces
            self._concepts = self.embed([surfaces[concept] for concept in schema.concept.tolist()])
        alike = self.embed(words) @ self._concepts.T
        nearest: dict[int, float] = {}
        for key, similarity in zip(alike.argmax(axis=1).tolist(), alike.max(axis=1).tolist(), strict=True):
            nearest[key] = max(similarity, nearest.get(key, _LEAST_SIMILARITY))
        scored = sorted(nearest.items(), key=lambda pair: -pair[1])
        return Reading([[DecodedKey(key, math.log(one), math.log(one)) for key, one in scored]], expected)


class Memory:
    """This project's memory.

    What it reports is what writing, decoding and ranking take, also where the first two were done before.

    Args:
        config: Its settings.
        model: The model.
        cache: The folder of written memories and decodes.
        embed: Embeds keywords and concepts, for the memory without its constraint; ``None`` for the memory as it is.
    """

    def __init__(self, config: SCGConfig, model: TransformersModel, cache: Path, embed: Embed | None = None) -> None:
        self._config = config
        self._embed = embed
        self._model = model
        self._cache = cache
        self._open = ExitStack()
        self._passes = self._open.enter_context(counted(model.network))

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        name = digest(
            [(turn.id, turn.digest) for turn in turns],
            write_settings(self._config),
            self._model.fingerprint,
            __version__,
        )
        written = WrittenMemory(self._cache, name)
        cost = written.write(lambda path: self._write(path, turns, report))
        report(len(turns))
        kind = ReplayingMemory if self._embed is None else UnconstrainedMemory
        memory = kind.open(written.path, model=self._model, config=self._config, create=False)
        self._memory = self._open.enter_context(memory)
        decoding: list[object] = [decode_settings(self._config)]
        if isinstance(memory, UnconstrainedMemory) and self._embed is not None:
            memory.embed = self._embed
            decoding.append("unconstrained")
        memory.readings = ReadingFile(self._cache / f"{name}-{digest(*decoding)}.jsonl")
        memory.meter = _Meter(self._passes)
        memory.prepare()
        return cost

    def _write(self, path: Path, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        def tell(progress: Progress) -> None:
            if progress.stage in ("assimilating", "distilling"):
                report(progress.done)

        meter = _Meter(self._passes)
        with SchemaMemory.open(path, model=self._model, config=self._config) as memory:
            meter.start()
            memory.remember(turns, progress=tell)
            return meter.stop()

    def read(self, query: str, k: int) -> Ranked:
        memory = self._memory
        memory.original = memory.spent = Cost(0.0)  # of a query that nothing is decoded for
        meter = _Meter(self._passes)
        meter.start()
        ids = [str(one.entry.id) for one in memory.recall(query, k=k).entries]
        whole, spent, original = meter.stop(), memory.spent, memory.original
        ranking = Cost(
            whole.seconds - spent.seconds,
            whole.passes - spent.passes,
            whole.tokens - spent.tokens,
        )
        return Ranked(ids, original + ranking)

    def close(self) -> None:
        self._open.close()
