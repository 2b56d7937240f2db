"""Measuring one cell: every system decodes every query in turn, run after run, so that noise hits all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.decoding.cells import Cell, Row
from benchmarks.decoding.floor import Floor, unavoidable_rounds
from benchmarks.decoding.meter import counted, peak_memory
from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems import System
from benchmarks.decoding.truth import Floats, recall, score_gap

BASE = "ours-beam"
"""The system that the others are compared with, and whose keys the floor is for."""

_SEED = 20119


@dataclass(frozen=True, eq=False)
class Ready:
    """A system made ready for a key set, or why it is not.

    Attributes:
        name: Its name.
        system: ``None`` where it cannot be run.
        setup: Seconds that its structure over the keys took to make.
        reason: Why it cannot be run.
    """

    name: str
    system: System | None
    setup: float | None = None
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class Question:
    """One prompt to decode after.

    Attributes:
        prompt: Its tokens.
        truth: Score of every key after it, shape (keys,); ``None`` where there are too many.
    """

    prompt: Sequence[int]
    truth: Floats | None


@dataclass(frozen=True)
class _Tried:
    """One decode that was not timed."""

    keys: list[int]
    passes: int
    tokens: int
    memory: float


def measure(
    subject: Subject,
    schema: Schema,
    systems: Sequence[Ready],
    anchor: tuple[int, System],
    questions: Sequence[Question],
    *,
    width: int,
    runs: int,
    settings: str,
    progress: Callable[[], None],
) -> Cell:
    """Measure a cell.

    Args:
        subject: The model.
        schema: The keys.
        systems: The systems; ``ours-beam`` must be among them.
        anchor: The smallest key set's number of keys, and ``ours-beam`` over it.
        questions: What to decode after, prompts of one length.
        width: Keys wanted.
        runs: How often each question is decoded by each system.
        settings: See :class:`Cell`.
        progress: Called before each decode.
    """
    running = {one.name: one.system for one in systems if one.system is not None}
    tried: dict[str, list[_Tried]] = {name: [] for name in running}
    for question in questions:
        for name, system in running.items():
            progress()
            tried[name].append(_try(subject, system, question.prompt, width))
    floors = [
        Floor(
            subject,
            question.prompt,
            unavoidable_rounds(schema.spoken.trie, [schema.keys.tokens[key] for key in found.keys]),
        )
        for question, found in zip(questions, tried[BASE], strict=True)
    ]
    times = _time(running, anchor[1], questions, floors, width, runs, progress)
    return Cell(
        settings=settings,
        keys=len(schema.keys),
        real=schema.keys.real,
        known=schema.known,
        prompt=len(questions[0].prompt),
        width=width,
        rows=[_row(one, tried.get(one.name, []), times, questions, width) for one in systems],
        anchor_keys=anchor[0],
        anchor=[sum(pair) for pair in times["anchor"]],
        floor_prompt=[read for read, _ in times["floor"]],
        floor_rounds=[rest for _, rest in times["floor"]],
        rounds=statistics.mean(floor.rounds for floor in floors),
    )


def _try(subject: Subject, system: System, prompt: Sequence[int], width: int) -> _Tried:
    with counted(subject.model, subject.optimized) as passes:
        keys, memory = peak_memory(lambda: system.read(prompt)(width))
    return _Tried(keys, passes.count, passes.tokens, memory)


def _time(
    systems: Mapping[str, System],
    anchor: System,
    questions: Sequence[Question],
    floors: Sequence[Floor],
    width: int,
    runs: int,
    progress: Callable[[], None],
) -> dict[str, list[tuple[float, float]]]:
    """Seconds of reading and of decoding, by run and question, for each system, the anchor and the floor."""

    def of(system: System) -> Callable[[int], tuple[float, float]]:
        def timed(place: int) -> tuple[float, float]:
            start = time.perf_counter()
            decode = system.read(questions[place].prompt)
            read = time.perf_counter()
            decode(width)
            return read - start, time.perf_counter() - read

        return timed

    calls = {name: of(system) for name, system in systems.items()}
    calls |= {"anchor": of(anchor), "floor": lambda place: floors[place].run()}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in calls}
    random = np.random.default_rng(_SEED)
    names = list(calls)
    for _ in range(runs):
        for place in range(len(questions)):
            # In another order each time: what runs after a large decode finds colder caches.
            for at in random.permutation(len(names)):
                progress()
                times[names[at]].append(calls[names[at]](place))
    return times


def _row(
    one: Ready,
    tried: Sequence[_Tried],
    times: Mapping[str, Sequence[tuple[float, float]]],
    questions: Sequence[Question],
    width: int,
) -> Row:
    if one.system is None:
        return Row(one.name, reason=one.reason)
    judged = [
        (recall(found.keys, question.truth, width), score_gap(found.keys, question.truth))
        for found, question in zip(tried, questions, strict=True)
        if question.truth is not None
    ]
    gaps = [gap for _, gap in judged if gap is not None]
    return Row(
        one.name,
        setup=one.setup,
        cold=[sum(pair) for pair in times[one.name]],
        warm=[decoded for _, decoded in times[one.name]] if one.system.reads_apart else [],
        passes=statistics.median(found.passes for found in tried),
        tokens=statistics.median(found.tokens for found in tried),
        memory=max(found.memory for found in tried),
        found=statistics.mean(len(found.keys) for found in tried),
        recall=statistics.mean(share for share, _ in judged) if judged else None,
        gap=statistics.mean(gaps) if gaps else None,
    )
