"""A conversation to try the memory on: two neighbours of a garden club, over nine months.

It is our own and invented, so it may be shared like the rest of the project.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DEMO_QUESTIONS", "SAMPLE_QUESTIONS", "sample_path"]

DEMO_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("How did Ines break her ankle?", ("s3:01",)),
    ("What happened to the hen called Duchess?", ("s4:01",)),
    ("Who takes Pixel for a walk?", ("s3:07",)),
    ("When did Kofi get the job at the museum?", ("s5:03",)),
    ("Which language has Kofi been learning?", ("s6:06", "s6:08")),
)
"""What a visitor would ask, each with the ids of the entries that answer it."""

SAMPLE_QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # One of each kind first: single-hop, multi-hop, temporal.
    ("Which language did Kofi learn without telling anyone?", ("s6:06", "s6:08")),
    ("Who is joining Ines in her new business, and how did she help during the injury?", ("s3:07", "s7:07")),
    ("When was Kofi told that he would be hired by the museum?", ("s5:03",)),
    # Single-hop.
    ("What made Ines call off her spring holiday?", ("s3:01",)),
    ("How did a predator get at the chickens?", ("s4:01", "s4:03")),
    ("What does Ines make while she is unable to walk much?", ("s4:10",)),
    # Multi-hop.
    ("Where do the newcomers in the hen house come from, and what are they called?", ("s4:06", "s5:09")),
    (
        "What used to be in the building of the piano workshop, and what did Ines salvage there?",
        ("s2:04", "s8:02"),
    ),
    ("What did Kofi do about his blood pressure, and did it work?", ("s2:09", "s6:10")),
    # Temporal.
    ("How long did Ines have to wait for her allotment?", ("s1:01",)),
    ("When did the cast come off Ines's leg?", ("s4:08",)),
    ("When will the sisters try the coastal walk again?", ("s8:08",)),
)
"""Harder ones, which hardly share a word with the entries that answer them."""


def sample_path() -> Path:
    """The sample conversation, as JSON Lines of memory entries."""
    return Path(__file__).with_name("garden_club.jsonl")
