"""The prompt after which a question is answered: worked examples, the notes, the question."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from shared_core.answering.dates import relative_dates, write_date
from shared_core.answering.spans import WORD
from shared_core.entry import MemoryEntry
from shared_core.models import LanguageModel

_QUESTION_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and what it is to be answered from.

    Attributes:
        query: The question.
        entries: The entries, best first.
        speakers: Who else is known: where the question names one of them, what others say of themselves is no answer.
    """

    query: str
    entries: Sequence[MemoryEntry]
    speakers: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class AnswerPrompt:
    """A few-shot prompt in plain text, whose examples never change and are read once.

    Attributes:
        examples: The fixed part.
        before: Comes before the notes, which are one a line.
        asking: Comes before the question.
        after: Comes after the question; the answer follows, led by a space and ended by a new line.
        neutral: The question that stands for none in particular.
    """

    examples: str
    before: str = "Notes:\n"
    asking: str = "\nQuestion: "
    after: str = "\nAnswer:"
    neutral: str = "?"

    def root(self, model: LanguageModel) -> list[int]:
        """The tokens of the fixed part; its first line alone where the examples would fill the model's window."""
        tokens = [*model.start, *model.encode(self.examples)]
        if 2 * len(tokens) <= model.window:
            return tokens
        return [*model.start, *model.encode(self.examples.split("\n")[0])][: model.window // 4]

    def question(self, model: LanguageModel, query: str) -> list[int]:
        """The tokens of the question; of a long text the end, where it asks, if at all."""
        asked = " ".join(query.split())[-_QUESTION_CHARACTERS:]
        room = max(8, model.window // 4)
        return [*model.encode(self.asking), *model.encode(asked)[-room:], *model.encode(self.after)]

    def notes(
        self, model: LanguageModel, entries: Sequence[MemoryEntry], reserved: int, most: int | None = None
    ) -> tuple[list[int], list[MemoryEntry]]:
        """The tokens of the notes, as many of the first entries as there is room for; the last one may be cut.

        Args:
            model: The model.
            entries: What the notes say, best first; they are read in this order.
            reserved: Tokens to leave for question and answer.
            most: Tokens of lines at most, ``None`` for no bound but the window's.

        Returns:
            The tokens, and the entries that are in them, of one that is cut the part that is.
        """
        tokens = model.encode(self.before)
        room = model.window - len(self.root(model)) - len(tokens) - reserved
        room = room if most is None else min(room, most)
        read: list[MemoryEntry] = []
        for entry in entries:
            part, own = _fitting(model, entry, room)
            if part is None:
                break
            read.append(part)
            tokens += own
            room -= len(own)
            if part is not entry:
                break
        return tokens, read


def _fitting(model: LanguageModel, entry: MemoryEntry, room: int) -> tuple[MemoryEntry | None, list[int]]:
    """An entry, or its first words, whose note there is room for, and the tokens of that; ``None`` if not even one.

    Hardly a word has less than a token, so no more than ``room`` words are looked at, however long the entry is.
    """
    ends = [word.end() for word in itertools.islice(WORD.finditer(entry.content), max(0, room) + 1)]
    if len(ends) <= room and len(whole := model.encode(f"{note(entry)}\n")) <= room:
        return entry, whole

    def first(count: int) -> MemoryEntry:
        return replace(entry, text=entry.content[: ends[count - 1]], caption=None)

    def encoded(count: int) -> list[int]:
        return model.encode(f"{note(first(count))}\n")

    count = bisect_right(range(1, len(ends) + 1), room, key=lambda count: len(encoded(count)))
    return (first(count), encoded(count)) if count else (None, [])


def note(entry: MemoryEntry) -> str:
    """An entry in one line, with what its relative dates mean: ``8 May 2023, Anna: I ran yesterday (7 May 2023)``."""
    said = entry.occurred_at.date() if entry.occurred_at else None
    text = " ".join(entry.content.split())
    if said:
        for dated in reversed(list(relative_dates(text, said))):
            text = f"{text[: dated.end]} ({dated.meaning}){text[dated.end :]}"
    # A name of several lines would go on as a question and an answer of its own.
    speaker = " ".join((entry.speaker or "").split())
    source = ", ".join(part for part in (write_date(said) if said else None, speaker) if part)
    return f"{source}: {text}" if source else text


DEFAULT_PROMPT = AnswerPrompt(
    examples="""\
Answer each question from its notes, in as few words as possible.

Notes:
4 March 2021, Nadia: I finally signed up for cello lessons yesterday (3 March 2021)! The teacher plays in an orchestra.
Question: When did Nadia sign up for cello lessons?
Answer: 3 March 2021

Notes:
12 June 2020, Tomas: We came back from the farmers market with a crate of tomatoes and fresh basil.
Question: What did Tomas buy at the farmers market?
Answer: tomatoes and fresh basil

Notes:
9 May 2022, Ines: My sister Clara moved to Porto last year (2021), she found a job as a nurse there.
Question: Where did Ines's sister move?
Answer: Porto

"""
)
