"""ReadAgent (Lee et al., 2024, arXiv 2402.09727), the variant that looks pages up in one go (ReadAgent-P).

After summaries of the paper: the model is shown a stretch of the conversation with numbered places and chooses where a
page ends (episode pagination); it shortens each page to a gist (memory gisting); asked a question, it reads all gists
in their order and names pages to read again (interactive look-up); the answer is given from the gists, with the text of
those pages in their place.

Simplified: a place is between two turns; an unusable choice ends the page at its longest. Pages are bounded by words,
more tightly than the method has it, since the model's window is short. Pages that were looked up stand before the
gists, so that gists are what does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.locomo.answers.systems.sessions import derived, said
from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import Question
from shared_core import MemoryEntry

_LEAST, _MOST = 140, 300  # words of a page
_LOOKED_UP = 3
_GIST_TOKENS = 64
_BREAK_TOKENS = 4
_LIST_TOKENS = 12
_NUMBER = re.compile(r"\d+")

_PAGINATE = """\
A conversation is divided into pages. Numbers in angle brackets are places where a page may end. Name the place where \
it is most natural to break: where the topic changes.

Nadia: My cello teacher is strict.
Tomas: Mine was too!
<1>
Nadia: Anyway, how was the farmers market?
<2>
Tomas: Lovely, I bought basil.
Break: <1>

"""
_GIST = """\
Shorten each passage. Keep who did what and when, in a few words.

Passage (4 March 2021):
Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
Tomas: How nice! I was at the farmers market and bought tomatoes.
Short: Nadia signed up for cello lessons with an orchestra player; Tomas bought tomatoes at the farmers market.

"""
_LOOK_UP = """\
You remember only the gist of each page of a conversation. Name the pages to read again to answer the question.

[1] Nadia signed up for cello lessons; Tomas bought tomatoes.
[2] Nadia's sister moved to Porto; Tomas adopted a cat.
[3] They talk about a play in the park.
Question: Where did Nadia's sister move?
Pages: [2]

"""

SETTINGS: dict[str, object] = {
    "prompts": [_PAGINATE, _GIST, _LOOK_UP],
    "bounds": [_LEAST, _MOST, _LOOKED_UP, _GIST_TOKENS, _BREAK_TOKENS, _LIST_TOKENS],
}
"""What contexts depend on."""


class ReadAgent:
    """Gists of pages, and the pages that the model asks for.

    Args:
        writer: The model.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        self._pages = self._paginate(turns)
        passages = [
            f"Passage ({page[0].occurred_at:%-d %B %Y}):\n" if page[0].occurred_at else "Passage:\n"
            for page in self._pages
        ]
        bodies = ["\n".join(said(turn) for turn in page) for page in self._pages]
        prompts = [f"{passage}{body}\nShort:" for passage, body in zip(passages, bodies, strict=True)]
        self._gists = self._writer.complete(_GIST, prompts, _GIST_TOKENS)

    def _paginate(self, turns: Sequence[MemoryEntry]) -> list[list[MemoryEntry]]:
        pages, start = [], 0
        while start < len(turns):
            end, places, words = start, [], 0
            while end < len(turns) and (words < _MOST or end == start):
                words += len(turns[end].content.split())
                end += 1
                if words >= _LEAST and words < _MOST:
                    places.append(end)
            if end < len(turns) and len(places) > 1:
                end = self._break(turns[start:end], [place - start for place in places]) + start
            pages.append(list(turns[start:end]))
            start = end
        return pages

    def _break(self, turns: Sequence[MemoryEntry], places: Sequence[int]) -> int:
        """The place that the model chooses, or the last."""
        marks = {place: f"\n<{number}>" for number, place in enumerate(places, start=1)}
        text = "\n".join(said(turn) + marks.get(place, "") for place, turn in enumerate(turns, start=1))
        [chosen] = self._writer.complete(_PAGINATE, [f"{text}\nBreak: <"], _BREAK_TOKENS)
        number = _NUMBER.match(chosen)
        return places[int(number[0]) - 1] if number and 0 < int(number[0]) <= len(places) else places[-1]

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        listed = [f"[{number}] {gist}\n" for number, gist in enumerate(self._gists, start=1)]
        tails = [f"Question: {question.text}\nPages: [" for question in questions]
        kept = self._fitting(listed, tails)
        choices = self._writer.complete(_LOOK_UP, [kept + tail for tail in tails], _LIST_TOKENS)
        return [Context(self._context(choice)) for choice in choices]

    def _fitting(self, listed: list[str], tails: Sequence[str]) -> str:
        """The gists, of which the oldest are left out where the window is too small."""
        room = self._writer.room(_LOOK_UP, _LIST_TOKENS) - max(len(self._writer.tokens(tail)) for tail in tails)
        sizes = [len(self._writer.tokens(gist)) for gist in listed]
        first = 0
        while first < len(listed) and sum(sizes[first:]) > room:
            first += 1
        self._writer.trim(sum(sizes[:first]))
        return "".join(listed[first:])

    def _context(self, choice: str) -> list[MemoryEntry]:
        numbers = [int(number) - 1 for number in _NUMBER.findall(choice)]
        chosen = [page for page in dict.fromkeys(numbers) if 0 <= page < len(self._pages)][:_LOOKED_UP]
        gists = [
            derived(f"gist-{place}", gist, self._pages[place][0])
            for place, gist in enumerate(self._gists)
            if place not in chosen
        ]
        return [turn for page in chosen for turn in self._pages[page]] + gists

    def close(self) -> None:
        """Nothing is held but text."""
