"""The run: every system is asked every question that is not finished, and answers in every way."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from rich.progress import Progress

from benchmarks.locomo.answers.answering import MODES, Answerer, Reply
from benchmarks.locomo.answers.scores import Scores
from benchmarks.locomo.answers.systems import AnswerSystem, Competitor, Context, Shared
from benchmarks.locomo.answers.writer import Spent
from benchmarks.locomo.dataset import Conversation, Question, drawn_of_each
from benchmarks.locomo.results import Journal
from benchmarks.locomo.systems.replay import digest
from shared_core import __version__

_BATCH = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        conversations: The conversations.
        competitors: The systems.
        per_category: Questions of each category of each conversation at most; ``None``: all.
        seed: Of the questions drawn.
        out: Where finished questions are kept.
    """

    conversations: Sequence[Conversation]
    competitors: Sequence[Competitor]
    per_category: int | None
    seed: int
    out: Path

    def questions(self, conversation: Conversation) -> list[Question]:
        """Those that are asked: with evidence, and drawn."""
        usable = [question for question in conversation.questions if question.evidence]
        return drawn_of_each(usable, self.per_category, self.seed)

    @property
    def count(self) -> int:
        """How many questions each system is asked."""
        return sum(len(self.questions(conversation)) for conversation in self.conversations)


@dataclass(frozen=True, slots=True)
class Answered:
    """One question answered from one system's memory in one way.

    Attributes:
        system: The system's name.
        mode: The way, see :data:`MODES`.
        question: The question's id.
        category: Its category.
        scores: How right the answer is.
        coverage: The share of the gold answer in the context, by token budget.
        context: Tokens of the context that were read.
        left_out: Tokens of the context for which there was no room.
        reading: What finding the context took.
        answering: What answering took.
        fingerprint: Of all that it depends on.
    """

    system: str
    mode: str
    question: str
    category: int
    scores: Scores
    coverage: Mapping[str, float | None]
    context: int
    left_out: int
    reading: Spent
    answering: Spent
    fingerprint: str

    @property
    def key(self) -> tuple[str, str]:
        return f"{self.system} {self.mode}", self.question

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        parts = {"scores": Scores(**fields["scores"])}
        parts |= {name: Spent(**fields[name]) for name in ("reading", "answering")}
        return cls(**{**fields, **parts})


@dataclass(frozen=True, slots=True)
class Written:
    """One conversation written by one system.

    Attributes:
        system: The system's name.
        conversation: The conversation's name.
        turns: Its number of turns.
        spent: What it took.
        fingerprint: Of all that it depends on.
    """

    system: str
    conversation: str
    turns: int
    spent: Spent
    fingerprint: str

    @property
    def key(self) -> tuple[str, str]:
        return self.system, self.conversation

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        return cls(**{**fields, "spent": Spent(**fields["spent"])})


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run gives: by system all answers, in one order for all, and how each conversation was written."""

    answered: Mapping[str, Sequence[Answered]]
    written: Mapping[str, Sequence[Written]]


def run(plan: Plan, shared: Shared, answerer: Answerer, progress: Progress) -> Finished:
    """Answer what is not finished; what is, is taken as it is."""
    plan.out.mkdir(parents=True, exist_ok=True)
    answers = Journal(plan.out / "answers.jsonl", Answered)
    writings = Journal(plan.out / "writings.jsonl", Written)
    answered: dict[str, list[Answered]] = {one.name: [] for one in plan.competitors}
    written: dict[str, list[Written]] = {one.name: [] for one in plan.competitors}
    tell = _Tell(progress, plan.count * len(plan.competitors))
    for competitor in plan.competitors:
        for conversation in plan.conversations:
            one = _One(plan, competitor, conversation, shared, answerer)
            rows, writing = one.run(answers, writings, tell)
            answered[competitor.name] += rows
            written[competitor.name].append(writing)
    answers.settle([row for rows in answered.values() for row in rows])
    writings.settle([row for rows in written.values() for row in rows])
    return Finished(answered, written)


class _Tell:
    """Says how far a run is: one bar of all questions; where nobody watches, a line for each step that took work."""

    def __init__(self, progress: Progress, questions: int) -> None:
        self._progress = progress
        self._bar = progress.add_task("", total=questions)

    def doing(self, what: str) -> None:
        if self._progress.console.is_terminal:
            self._progress.update(self._bar, description=what)
        else:
            self._progress.console.print(f"{time.strftime('%H:%M:%S')} {what}", markup=False, highlight=False)

    def answered(self, questions: int) -> None:
        self._progress.advance(self._bar, questions)


class _One:
    """One system on one conversation."""

    def __init__(
        self, plan: Plan, competitor: Competitor, conversation: Conversation, shared: Shared, answerer: Answerer
    ) -> None:
        self._competitor = competitor
        self._conversation = conversation
        self._shared = shared
        self._answerer = answerer
        self._questions = plan.questions(conversation)
        turns = [(turn.id, turn.digest) for turn in conversation.turns]
        settings = [competitor.settings(shared), shared.k, shared.writer.model.fingerprint]
        self._fingerprint = digest(turns, settings, __version__)

    def run(
        self, answers: Journal[Answered], writings: Journal[Written], tell: _Tell
    ) -> tuple[list[Answered], Written]:
        names = self._competitor.name, self._conversation.name
        kept = {question.id: self._kept(question, answers) for question in self._questions}
        missing = [question for question in self._questions if kept[question.id] is None]
        writing = writings.get(names, self._fingerprint)
        tell.answered(len(self._questions) - len(missing))
        if missing or writing is None:
            tell.doing(f"{', '.join(names)}: writing {len(self._conversation.turns)} turns")
            with closing(self._competitor.open(self._shared)) as system:
                before = self._shared.writer.spent
                system.write(self._conversation.turns)
                spent = self._shared.writer.spent - before
                if writing is None:
                    writing = Written(*names, len(self._conversation.turns), spent, self._fingerprint)
                    writings.append(writing)
                if missing:
                    tell.doing(f"{', '.join(names)}: answering {len(missing)} questions")
                for rows in self._ask(system, missing):
                    for row in rows:
                        answers.append(row)
                    kept[rows[0].question] = rows
                    tell.answered(1)
        return [row for rows in kept.values() for row in rows or ()], writing

    def _kept(self, question: Question, answers: Journal[Answered]) -> list[Answered] | None:
        names = [(f"{self._competitor.name} {mode}", question.id) for mode in MODES]
        rows = [answers.get(name, self._print(question)) for name in names]
        found = [row for row in rows if row is not None]
        return found if len(found) == len(MODES) else None

    def _print(self, question: Question) -> str:
        return digest(self._fingerprint, self._answerer.settings, asdict(question))

    def _ask(self, system: AnswerSystem, missing: Sequence[Question]) -> Iterator[list[Answered]]:
        if not missing:
            return
        writer = self._shared.writer
        before = writer.spent
        # Those of all questions, so that what they share counts as in a run that was not interrupted.
        contexts = dict(zip(self._questions, system.contexts(self._questions), strict=True))
        spent = (writer.spent - before).share(len(self._questions))
        for batch in _batches(missing, contexts):
            said = self._answerer.answer(batch, [contexts[question] for question in batch])
            for question, replies in zip(batch, said, strict=True):
                yield [self._answered(question, mode, reply, spent) for mode, reply in replies.items()]

    def _answered(self, question: Question, mode: str, reply: Reply, reading: Spent) -> Answered:
        return Answered(
            self._competitor.name,
            mode,
            question.id,
            question.category,
            reply.scores,
            reply.coverage,
            reply.context,
            reply.left_out,
            reading,
            reply.spent,
            self._print(question),
        )


def _batches(questions: Sequence[Question], contexts: Mapping[Question, Context]) -> Iterator[list[Question]]:
    """Questions that are answered together: all those of one context, which is read once, and several of others."""
    by_context: dict[tuple[object, ...], list[Question]] = {}
    for question in questions:
        read = tuple((entry.id, entry.digest) for entry in contexts[question].entries)
        by_context.setdefault(read, []).append(question)
    batch: list[Question] = []
    for same in by_context.values():
        if batch and len(batch) + len(same) > _BATCH:
            yield batch
            batch = []
        batch = batch + same
    if batch:
        yield batch
