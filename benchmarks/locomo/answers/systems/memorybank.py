"""MemoryBank (Zhong et al., 2023, arXiv 2305.10250).

After summaries of the paper: turns are stored by day; the model summarises the events of each day, and those into one
global summary; it infers what each day says of the users' personality, and from that an overall portrait; turns and
summaries are embedded and the closest to the question are retrieved; a memory's retention is ``R = exp(-t / S)`` with
``t`` the days since it was learned or last recalled and ``S`` its strength, which begins at 1, and grows by 1 at each
recall, which also puts ``t`` back to 0; what is forgotten is not retrieved.

Simplified: a day is a session. A memory is forgotten with probability ``1 - R``, drawn once with a fixed seed, on the
day of the last session. Recalls that reinforce are those that the conversation itself brings: each turn recalls the
three closest earlier memories. Questions are independent of each other, so they reinforce nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.locomo.answers.systems.sessions import Embed, day_of, derived, line, nearest, said, sessions
from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import Question
from benchmarks.locomo.metrics import DEPTH
from shared_core import MemoryEntry

_SUMMARY_TOKENS, _PORTRAIT_TOKENS = 64, 40
_REINFORCED = 3
_SEED = 0
_SUMMARY = """\
Summarise the events of each day in one sentence.

Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
Tomas: How nice! I was at the farmers market and bought tomatoes.
Summary: Nadia signed up for cello lessons and Tomas bought tomatoes at the farmers market.

"""
_PORTRAIT = """\
Say in a few words what the conversation shows of each speaker's personality.

Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
Tomas: How nice! I was at the farmers market and bought tomatoes.
Portrait: Nadia is curious and musical; Tomas is friendly and likes to cook.

"""

SETTINGS: dict[str, object] = {
    "prompts": [_SUMMARY, _PORTRAIT],
    "bounds": [_SUMMARY_TOKENS, _PORTRAIT_TOKENS, _REINFORCED, _SEED],
}
"""What contexts depend on."""


class MemoryBank:
    """What was not forgotten and is closest to the question, after the global summary and the portrait.

    Args:
        writer: The model.
        embed: Embeds texts.
        k: Memories that are retrieved.
    """

    def __init__(self, writer: Writer, embed: Embed, k: int) -> None:
        self._writer = writer
        self._embed = embed
        self._k = k

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        days = sessions(turns)
        texts = [self._fitting("\n".join(said(turn) for turn in day)) for day in days]
        summaries = self._writer.complete(_SUMMARY, [f"{text}\nSummary:" for text in texts], _SUMMARY_TOKENS)
        portraits = self._writer.complete(_PORTRAIT, [f"{text}\nPortrait:" for text in texts], _PORTRAIT_TOKENS)
        [whole] = self._writer.complete(_SUMMARY, [self._fitting("\n".join(summaries)) + "\nSummary:"], _SUMMARY_TOKENS)
        [portrait] = self._writer.complete(
            _PORTRAIT, [self._fitting("\n".join(portraits)) + "\nPortrait:"], _PORTRAIT_TOKENS
        )
        self._always = [derived("summary", whole, turns[-1]), derived("portrait", portrait, turns[-1])]
        daily = [
            derived(f"day-{place}", text, day[0]) for place, (text, day) in enumerate(zip(summaries, days, strict=True))
        ]
        self._remember([*turns, *daily])

    def _fitting(self, text: str) -> str:
        """A text cut at its beginning to half the window."""
        tokens = self._writer.tokens(text)
        room = self._writer.room(_SUMMARY, _SUMMARY_TOKENS) - 8
        self._writer.trim(max(0, len(tokens) - room))
        return text if len(tokens) <= room else self._writer.model.decode(tokens[-room:])

    def _remember(self, memories: Sequence[MemoryEntry]) -> None:
        """Store memories with the retention that they have on the last day."""
        vectors = self._embed([line(memory) for memory in memories])
        days = np.array([day_of(memory) for memory in memories], dtype=np.float64)
        strength, learned = np.ones(len(memories)), days.copy()
        for place, day in enumerate(days):
            earlier = np.flatnonzero(days < day)
            if len(earlier):
                recalled = earlier[nearest(vectors[earlier], vectors[place], _REINFORCED)]
                strength[recalled] += 1
                learned[recalled] = np.maximum(learned[recalled], day)
        retention = np.exp(-(days.max() - learned) / strength)
        kept = np.flatnonzero(np.random.default_rng(_SEED).random(len(memories)) < retention)
        self._memories = [memories[place] for place in kept]
        self._vectors = vectors[kept]

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        wanted = self._embed([question.text for question in questions])
        found = [nearest(self._vectors, vector, max(self._k, DEPTH)) for vector in wanted]
        return [self._context([self._memories[place] for place in own]) for own in found]

    def _context(self, found: Sequence[MemoryEntry]) -> Context:
        return Context([*found[: self._k], *self._always], found[self._k :])

    def close(self) -> None:
        """Nothing is held but text and arrays."""
