"""The conversations of LoCoMo with their questions, in both published forms and with all their known defects."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.locomo.evidence import TurnIds
from shared_core import MemoryEntry
from shared_core.errors import FormatError, NotFoundError
from shared_core.formats import read_entries

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}

_DATE = re.compile(r"(session_\d+)_date_time", re.ASCII)


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        id: The conversation's name and the question's place in it, from 0: "conv-30/17".
        text: What is asked.
        category: See :data:`CATEGORIES`.
        evidence: Ids of the turns that hold the answer, repaired; empty if none is known.
        answer: The right answer.
        adversarial_answer: Of category 5: the answer that it is wrong to give.
    """

    id: str
    text: str
    category: int
    evidence: tuple[str, ...]
    answer: str | None
    adversarial_answer: str | None


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation.

    Attributes:
        name: Its name.
        turns: Its turns, in order.
        questions: Its questions, all of them, those that are repeated as well.
        defects: How often each defect was met.
    """

    name: str
    turns: tuple[MemoryEntry, ...]
    questions: tuple[Question, ...]
    defects: Mapping[str, int]


def load(files: Sequence[Path], names: Sequence[str] = ()) -> list[Conversation]:
    """Read conversations: ``locomo10.json`` (a list), or files of one conversation with the sessions at top level.

    Args:
        files: The files.
        names: Which conversations; all if none is named.

    Raises:
        FormatError: if a file cannot be read, or two conversations have one name.
        NotFoundError: if a conversation is in none of the files.
    """
    samples: dict[str, tuple[Path, Mapping[str, Any]]] = {}
    for file in files:
        for name, sample in _samples(file):
            if name in samples:
                raise FormatError(f"{file}: there is another conversation {name!r}; nothing was read")
            samples[name] = file, sample
    missing = [name for name in names if name not in samples]
    if missing:
        raise NotFoundError(f"there is no conversation {missing[0]!r}; there are: {', '.join(samples)}")
    return [_conversation(name, *samples[name]) for name in samples if not names or name in names]


def _samples(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The conversations of a file, each under the name that the project's reader knows it by."""
    try:
        document = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise FormatError(f"{file}: this is no readable JSON file ({error}); nothing was read") from None
    whole = [document] if isinstance(document, Mapping) else document
    if not isinstance(whole, list) or not whole or not all(isinstance(sample, Mapping) for sample in whole):
        raise FormatError(f"{file}: expected a LoCoMo conversation or a list of them; nothing was read")
    for place, sample in enumerate(whole, start=1):
        name = sample.get("sample_id")
        unnamed = file.stem if isinstance(document, Mapping) else str(place)
        yield (str(name) if isinstance(name, str | int) else unnamed), sample


def _conversation(name: str, file: Path, sample: Mapping[str, Any]) -> Conversation:
    turns = tuple(read_entries(file, "locomo", conversation=name))
    asked_of = sample.get("qa") or []
    if not isinstance(asked_of, list):
        raise FormatError(f"{file}: {name} has no list of questions under 'qa'; nothing was read")
    defects: Counter[str] = Counter()
    body = sample.get("conversation", sample)
    defects["dates_without_session"] += sum(
        not body.get(match[1]) for key in body if (match := _DATE.fullmatch(key)) is not None
    )
    ids = TurnIds(turn.id for turn in turns if turn.id is not None)
    questions = tuple(_question(f"{name}/{place}", file, asked, ids, defects) for place, asked in enumerate(asked_of))
    defects["questions"] = len(questions)
    defects["questions_without_evidence"] = sum(not question.evidence for question in questions)
    # They are asked all the same: published figures count them.
    defects["questions_repeated"] = len(questions) - len({question.text for question in questions})
    return Conversation(name, turns, questions, dict(defects))


def _question(id: str, file: Path, asked: object, ids: TurnIds, defects: Counter[str]) -> Question:
    text = asked.get("question") if isinstance(asked, Mapping) else None
    if not isinstance(asked, Mapping) or not isinstance(text, str) or not text.strip():
        raise FormatError(f"{file}: question {id} has no text; nothing was read")
    category = asked.get("category")
    if not isinstance(category, int | float) or category not in CATEGORIES:
        raise FormatError(f"{file}: question {id} is of the unknown category {category!r}; nothing was read")
    return Question(
        id,
        text,
        int(category),
        tuple(ids.repair(asked.get("evidence"), defects)),
        _text(asked.get("answer"), defects),
        _text(asked.get("adversarial_answer"), defects),
    )


def _text(answer: object, defects: Counter[str]) -> str | None:
    if answer is None or isinstance(answer, str):
        return answer
    defects["answers_not_text"] += 1
    return str(answer)


def drawn(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    """At most so many questions, as many of each category as the others allow, in their order.

    Args:
        questions: The questions of one conversation.
        limit: How many at most.
        seed: Decides which; a smaller limit draws some of those that a larger one draws.
    """
    first = sorted(_turns(questions, seed))[:limit]
    return [questions[place] for place in sorted(place for _, _, place in first)]


def drawn_of_each(questions: Sequence[Question], most: int | None, seed: int) -> list[Question]:
    """At most so many questions of each category, in their order; ``None``: all.

    Args:
        questions: The questions of one conversation.
        most: How many of each category at most.
        seed: Decides which; a smaller number draws some of those that a larger one draws.
    """
    if most is None:
        return list(questions)
    return [questions[place] for place in sorted(place for turn, _, place in _turns(questions, seed) if turn < most)]


def _turns(questions: Sequence[Question], seed: int) -> Iterator[tuple[int, int, int]]:
    """Questions in an order drawn at random: the how-manieth of its category each is, its category, its place."""
    seen: Counter[int] = Counter()
    for place in np.random.default_rng(seed).permutation(len(questions)).tolist():
        category = questions[place].category
        yield seen[category], category, place
        seen[category] += 1
