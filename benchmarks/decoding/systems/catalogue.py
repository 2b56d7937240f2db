"""The systems by name, and how each is made ready for a key set."""

from __future__ import annotations

import time

from benchmarks.decoding.spoken import Schema
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems.attempt import attempt_compilation
from benchmarks.decoding.systems.engines import ENGINES
from benchmarks.decoding.systems.grammar import Grammar
from benchmarks.decoding.systems.naive import Naive
from benchmarks.decoding.systems.ours import Ours
from benchmarks.decoding.systems.processor import Processor
from benchmarks.decoding.systems.system import System, Unavailable
from shared_core.decoding import DEFAULT_PROMPT

SYSTEMS = (
    *("ours-beam", "ours-recall", "ours-exact"),
    *("hf-naive", "hf-processor", "hf-cached", "hf-cached-optimized"),
    *ENGINES,
)
"""Every system, in the order of the tables."""

EXACT_KEYS = 10_000
"""Largest key set for what looks at nearly every key: the exact search, and exhaustive scoring."""


def build_system(name: str, subject: Subject, schema: Schema, compile_limit: float) -> tuple[System, float]:
    """Make a system ready for a key set.

    Args:
        name: One of :data:`SYSTEMS`.
        subject: The model.
        schema: The keys.
        compile_limit: Seconds that a grammar engine may compile.

    Returns:
        The system, and the seconds that its structure over the keys took to make.

    Raises:
        Unavailable: if it cannot be; the message says why.
    """
    if name == "ours-beam":
        return Ours(subject, schema, "beam"), schema.seconds
    if name == "ours-recall":
        kept = [*subject.engine.start, *subject.engine.encode(DEFAULT_PROMPT.examples)]
        return Ours(subject, schema, "beam", kept=kept), schema.seconds
    if name == "ours-exact":
        if len(schema.keys) > EXACT_KEYS:
            raise Unavailable(f"run up to {EXACT_KEYS:,} keys only")
        return Ours(subject, schema, "exact"), schema.seconds
    if name == "hf-naive":
        start = time.perf_counter()
        return Naive(subject, schema), time.perf_counter() - start
    if name in ENGINES:
        attempt = attempt_compilation(
            name,
            subject.folder,
            subject.vocabulary,
            schema.keys.texts,
            threads=subject.threads,
            limit=compile_limit,
        )
        if attempt.failure is not None:
            raise Unavailable(f"{attempt.failure} (tried for {attempt.seconds:.1f} s)")
        return Grammar(subject, schema, name), attempt.seconds
    cached = name != "hf-processor"
    return Processor(subject, schema, cached=cached, optimized=name == "hf-cached-optimized"), schema.seconds
