"""A-MEM (Xu et al., 2025, arXiv 2502.12110).

After summaries of the paper: for each turn the model writes a note with keywords, tags and a sentence of context; the
note is embedded with all of them; the model sees the notes nearest to it and decides which to link it to (link
generation), and how the context of a neighbour changes with what is new (memory evolution), after which the neighbour
is embedded anew; asked a question, the model names keywords, and the notes nearest to them come back together with
those linked to them.

Simplified: the model writes lines instead of JSON. Notes of one batch of turns are made together, and linked to each
other and to all earlier ones; of several linked neighbours the nearest evolves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.locomo.answers.systems.sessions import Embed, line, nearest
from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import Question
from benchmarks.locomo.metrics import DEPTH
from shared_core import MemoryEntry

_NEIGHBOURS = 3
_BATCH = 32
_NOTE_TOKENS = 48
_LINK_TOKENS = 32
_QUERY_TOKENS = 16
_NUMBER = re.compile(r"\d+")

_NOTE = """\
Make a note of each message: keywords; tags; one sentence of context.

Message: 4 March 2021, Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
Note: cello lessons, teacher, orchestra; music, learning; Nadia begins to learn the cello.

Message: 9 May 2022, Ines: My sister Clara moved to Porto, she found a job as a nurse there.
Note: sister Clara, Porto, nurse; family, work; Ines's sister moved for a job.

"""
_LINK = """\
Which of the notes belong to the new one, and what is the context of the first of them now?

New: Nadia played in the school concert.
[1] Nadia begins to learn the cello.
[2] Ines's sister moved for a job.
Links: [1] Nadia learns the cello and played in a concert.

New: Tomas bought tomatoes.
[1] Ines's sister moved for a job.
Links: none

"""
_QUERY = """\
Name keywords to search a memory for what answers the question.

Question: When did Nadia sign up for cello lessons?
Keywords: Nadia, cello lessons, signed up

"""

SETTINGS: dict[str, object] = {
    "prompts": [_NOTE, _LINK, _QUERY],
    "bounds": [_NEIGHBOURS, _BATCH, _NOTE_TOKENS, _LINK_TOKENS, _QUERY_TOKENS],
}
"""What contexts depend on."""


@dataclass
class _Note:
    turn: MemoryEntry
    labels: str
    context: str
    links: list[int] = field(default_factory=list)

    @property
    def text(self) -> str:
        return f"{line(self.turn)} {self.labels} {self.context}"


class AMem:
    """Notes that are linked and evolve.

    Args:
        writer: The model.
        embed: Embeds texts.
        k: Notes nearest to a question.
    """

    def __init__(self, writer: Writer, embed: Embed, k: int) -> None:
        self._writer = writer
        self._embed = embed
        self._k = k

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        notes = self._writer.complete(_NOTE, [f"Message: {line(turn)}\nNote:" for turn in turns], _NOTE_TOKENS)
        self._notes = [_parse(turn, note) for turn, note in zip(turns, notes, strict=True)]
        self._vectors = self._embed([note.text for note in self._notes])
        for start in range(0, len(self._notes), _BATCH):
            self._link(range(start, min(start + _BATCH, len(self._notes))))

    def _link(self, batch: range) -> None:
        """Link notes to the nearest of those before them, and let these evolve."""
        near = {place: nearest(self._vectors[:place], self._vectors[place], _NEIGHBOURS) for place in batch if place}
        prompts = [self._question(place, own) for place, own in near.items()]
        changed: set[int] = set()
        for (place, own), said in zip(near.items(), self._writer.complete(_LINK, prompts, _LINK_TOKENS), strict=True):
            numbers = [int(number) - 1 for number in _NUMBER.findall(said.rpartition("]")[0])]
            linked = [own[number] for number in dict.fromkeys(numbers) if 0 <= number < len(own)]
            self._notes[place].links += linked
            for other in linked:
                self._notes[other].links.append(place)
            context = said.rpartition("]")[2].strip()
            if linked and context:
                self._notes[linked[0]].context = context
                changed.add(linked[0])
        if changed:
            again = sorted(changed)
            self._vectors[again] = self._embed([self._notes[place].text for place in again])

    def _question(self, place: int, near: Sequence[int]) -> str:
        listed = "".join(f"[{number}] {self._notes[other].context}\n" for number, other in enumerate(near, start=1))
        return f"New: {self._notes[place].context}\n{listed}Links:"

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        prompts = [f"Question: {question.text}\nKeywords:" for question in questions]
        keywords = self._writer.complete(_QUERY, prompts, _QUERY_TOKENS)
        wanted: NDArray[np.float32] = self._embed(
            [f"{question.text} {words}" for question, words in zip(questions, keywords, strict=True)]
        )
        return [self._context(nearest(self._vectors, vector, max(self._k, DEPTH))) for vector in wanted]

    def _context(self, found: Sequence[int]) -> Context:
        linked = [other for place in found[: self._k] for other in self._notes[place].links]
        chosen = list(dict.fromkeys([*found[: self._k], *linked[: self._k]]))
        further = [place for place in found if place not in chosen]
        return Context(*([self._shown(self._notes[place]) for place in own] for own in (chosen, further)))

    def _shown(self, note: _Note) -> MemoryEntry:
        turn = note.turn
        text = f"{turn.content} ({note.context})" if note.context else turn.content
        return MemoryEntry(text, turn.id, turn.speaker, turn.session, turn.occurred_at)

    def close(self) -> None:
        """Nothing is held but text and arrays."""


def _parse(turn: MemoryEntry, note: str) -> _Note:
    labels, _, context = note.rpartition(";")
    return _Note(turn, labels.strip(), context.strip())
