"""The whole experiment: every cell that is not measured yet, the small key sets first."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.progress import Progress

from benchmarks.decoding.cells import Cell, CellFile
from benchmarks.decoding.corpus import Corpus
from benchmarks.decoding.keys import KeySet, build_keys
from benchmarks.decoding.measurement import BASE, Question, Ready, measure
from benchmarks.decoding.prompts import build_prompts
from benchmarks.decoding.spoken import NeutralScores, Schema, speak
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems import EXACT_KEYS, System, Unavailable, build_system
from benchmarks.decoding.truth import Floats, true_scores


@dataclass(frozen=True)
class Plan:
    """What to measure.

    Attributes:
        sizes: Numbers of keys, ascending.
        lengths: Tokens of the prompts, ascending.
        widths: Keys wanted, ascending.
        systems: Names of the systems.
        queries: Prompts of each length.
        runs: How often each is decoded by each system.
        corpus: The conversations that keys and prompts are from.
        compile_limit: Seconds that a grammar engine may compile.
        prior_keys: Keys whose neutral log-probabilities are computed where they were not before.
        cache: Where scores are kept.
        out: Where finished cells are kept.
    """

    sizes: Sequence[int]
    lengths: Sequence[int]
    widths: Sequence[int]
    systems: Sequence[str]
    queries: int
    runs: int
    corpus: Corpus
    compile_limit: float
    prior_keys: int
    cache: Path
    out: Path

    def settings(self, subject: Subject) -> str:
        """What a cell's figures depend on beside its place."""
        return json.dumps(
            {
                "model": subject.engine.fingerprint,
                "threads": subject.threads,
                "systems": list(self.systems),
                "queries": self.queries,
                "runs": self.runs,
                "corpus": self.corpus.fingerprint,
                "anchor": self.sizes[0],
                "compile_limit": self.compile_limit,
                "prior_keys": self.prior_keys,
            }
        )


def run(plan: Plan, subject: Subject, progress: Progress) -> tuple[list[Cell], float | None]:
    """Measure what the plan asks for; cells that are finished already are taken as they are.

    Returns:
        All cells of these settings in the folder, those of earlier calls too; and what a key's neutral
        log-probabilities cost to compute, in milliseconds, if any were.
    """
    conversations = plan.corpus.conversations
    prompts = {length: build_prompts(conversations, subject.decoder, length, plan.queries) for length in plan.lengths}
    with _step(progress, "keys", plan.sizes[-1]) as done:
        keys = build_keys(conversations, subject.decoder, plan.sizes[-1])
        done(len(keys))
    neutral = NeutralScores(subject.decoder, plan.cache)
    first = keys.first(plan.prior_keys).tokens
    with _step(progress, "neutral log-probabilities", len(first)) as done:
        neutral.compute(first, done)
    file = CellFile(plan.out / "cells.jsonl", plan.settings(subject))
    truths: dict[int, list[Floats]] = {}
    anchor: tuple[int, System] | None = None
    for size in plan.sizes:
        missing = [place for place in itertools.product([size], plan.lengths, plan.widths) if place not in file.cells]
        if anchor is not None and not missing:
            continue
        with _step(progress, f"{size:,} keys: making the systems ready", len(plan.systems)) as done:
            schema = speak(keys.first(size), neutral, subject.decoder)
            if anchor is None:
                anchor = size, build_system(BASE, subject, schema, plan.compile_limit)[0]
            systems = (
                [_ready(name, subject, schema, plan.compile_limit, done) for name in plan.systems] if missing else []
            )
        for _, length, width in missing:
            if size <= EXACT_KEYS and length not in truths:
                truths[length] = _truths(plan, subject, keys, prompts[length], progress)
            questions = [
                Question(prompt, truths[length][at][:size] if size <= EXACT_KEYS else None)
                for at, prompt in enumerate(prompts[length])
            ]
            decodes = plan.queries * (sum(one.system is not None for one in systems) * (plan.runs + 1) + 2 * plan.runs)
            with _step(progress, f"{size:,} keys, prompt {length}, width {width}", decodes) as done:
                cell = measure(
                    subject,
                    schema,
                    systems,
                    anchor,
                    questions,
                    width=width,
                    runs=plan.runs,
                    settings=plan.settings(subject),
                    progress=lambda: done(1),
                )
            file.append(cell)
    cost = 1e3 * neutral.seconds / neutral.count if neutral.count else None
    return [file.cells[place] for place in sorted(file.cells)], cost


def _ready(name: str, subject: Subject, schema: Schema, compile_limit: float, progress: Callable[[int], None]) -> Ready:
    try:
        system, seconds = build_system(name, subject, schema, compile_limit)
    except Unavailable as reason:
        return Ready(name, None, reason=str(reason))
    finally:
        progress(1)
    return Ready(name, system, seconds)


def _truths(
    plan: Plan, subject: Subject, keys: KeySet, prompts: Sequence[Sequence[int]], progress: Progress
) -> list[Floats]:
    """Scores of every key of the largest set that is scored exhaustively, for each prompt."""
    scored = keys.first(max(size for size in plan.sizes if size <= EXACT_KEYS)).tokens
    with _step(progress, f"exhaustive scores, prompt {len(prompts[0])}", len(scored) * len(prompts)) as done:
        return [true_scores(subject, prompt, scored, plan.cache, done) for prompt in prompts]


@contextmanager
def _step(progress: Progress, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A line of the progress display; gives what advances it."""
    task = progress.add_task(name, total=total)
    yield lambda count: progress.advance(task, count)
