"""This project's memory through its own door, with readings that are replayed where they were made before."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.decoding.meter import Passes, counted
from benchmarks.locomo.systems.replay import ReadingFile, WrittenMemory, digest
from benchmarks.locomo.systems.settings import decode_settings, write_settings
from benchmarks.locomo.systems.system import Cost, Ranked, Report
from shared_core import MemoryEntry, SCGConfig, SchemaMemory, __version__
from shared_core.decoding import Reading, SpokenSchema
from shared_core.evolution import Progress
from shared_core.models import TransformersModel


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


class _ReplayingMemory(SchemaMemory):
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

    def _read(self, query: str, schema: SpokenSchema) -> Reading:
        start = time.perf_counter()
        kept = self.readings.get(query)
        if kept is not None:
            reading, self.original = kept
            self.spent = Cost(time.perf_counter() - start)
            return reading
        self.meter.start()
        found = super()._read(query, schema)
        self.original = self.meter.stop()
        reading = self.readings.keep(query, found, self.original)
        self.spent = Cost(time.perf_counter() - start, self.original.passes, self.original.tokens)
        return reading


class Memory:
    """This project's memory.

    What it reports is what writing, decoding and ranking take, also where the first two were done before.

    Args:
        config: Its settings.
        model: The model.
        cache: The folder of written memories and decodes.
    """

    def __init__(self, config: SCGConfig, model: TransformersModel, cache: Path) -> None:
        self._config = config
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
        memory = _ReplayingMemory.open(written.path, model=self._model, config=self._config, create=False)
        self._memory = self._open.enter_context(memory)
        memory.readings = ReadingFile(self._cache / f"{name}-{digest(decode_settings(self._config))}.jsonl")
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
