"""The run: every system is asked every question that is not finished yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.progress import Progress

from benchmarks.locomo.dataset import Conversation, Question, drawn
from benchmarks.locomo.metrics import DEPTH
from benchmarks.locomo.results import Journal, Outcome, Writing
from benchmarks.locomo.systems import Entrant, System, Workplace
from benchmarks.locomo.systems.replay import digest
from shared_core import __version__


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run.

    Attributes:
        conversations: The conversations.
        entrants: The systems.
        limit: Questions of each conversation at most; ``None``: all.
        seed: Of what is drawn at random.
        out: Where finished questions are kept.
    """

    conversations: Sequence[Conversation]
    entrants: Sequence[Entrant]
    limit: int | None
    seed: int
    out: Path

    def questions(self, conversation: Conversation) -> list[Question]:
        """Those that are asked: with evidence, and drawn."""
        usable = [question for question in conversation.questions if question.evidence]
        return usable if self.limit is None else drawn(usable, self.limit, self.seed)

    @property
    def counts(self) -> dict[str, int]:
        """Questions asked, by category too, and left out for each reason; and how often each defect was met."""
        counts: Counter[str] = Counter()
        for conversation in self.conversations:
            counts.update(conversation.defects)
            asked = self.questions(conversation)
            counts["questions_asked"] += len(asked)
            counts.update(f"questions_asked_of_category_{question.category}" for question in asked)
        usable = counts["questions"] - counts["questions_without_evidence"]
        return {**counts, "questions_not_drawn": usable - counts["questions_asked"]}


@dataclass(frozen=True, slots=True)
class Finished:
    """What a run gives.

    Attributes:
        outcomes: For each system, by name, its outcome on each question, in one order for all.
        writings: For each system how it wrote each conversation.
    """

    outcomes: Mapping[str, Sequence[Outcome]]
    writings: Mapping[str, Sequence[Writing]]


def run(plan: Plan, workplace: Workplace, progress: Progress) -> Finished:
    """Ask what is not finished; what is, is taken as it is.

    Raises:
        UnavailableError: if a system lacks something; what is finished is kept.
    """
    plan.out.mkdir(parents=True, exist_ok=True)
    outcomes = Journal(plan.out / "questions.jsonl", Outcome)
    writings = Journal(plan.out / "writings.jsonl", Writing)
    asked: dict[str, list[Outcome]] = {entrant.name: [] for entrant in plan.entrants}
    wrote: dict[str, list[Writing]] = {entrant.name: [] for entrant in plan.entrants}
    for entrant in plan.entrants:
        for conversation in plan.conversations:
            rows, writing = _run_one(plan, entrant, conversation, workplace, outcomes, writings, progress)
            asked[entrant.name] += rows
            wrote[entrant.name].append(writing)
    outcomes.settle([row for rows in asked.values() for row in rows])
    writings.settle([row for rows in wrote.values() for row in rows])
    return Finished(asked, wrote)


def _run_one(
    plan: Plan,
    entrant: Entrant,
    conversation: Conversation,
    workplace: Workplace,
    outcomes: Journal[Outcome],
    writings: Journal[Writing],
    progress: Progress,
) -> tuple[list[Outcome], Writing]:
    """One system on one conversation."""
    settings = entrant.settings(workplace)
    written = digest([(turn.id, turn.digest) for turn in conversation.turns], settings, __version__)
    questions = plan.questions(conversation)
    prints = [digest(written, DEPTH, asdict(question)) for question in questions]
    kept = [
        outcomes.get((entrant.name, question.id), print_) for question, print_ in zip(questions, prints, strict=True)
    ]
    writing = writings.get((entrant.name, conversation.name), written)
    if writing is not None and all(row is not None for row in kept):
        return [row for row in kept if row is not None], writing
    with closing(entrant.open(workplace)) as system:
        with _step(progress, f"{entrant.name}: writing {conversation.name}", len(conversation.turns)) as report:
            cost = system.write(conversation.turns, report)
        if writing is None:
            writing = Writing(entrant.name, conversation.name, len(conversation.turns), cost, written)
            writings.append(writing)
        rows: list[Outcome] = []
        with _step(progress, f"{entrant.name}: asking {conversation.name}", len(questions)) as report:
            for question, print_, row in zip(questions, prints, kept, strict=True):
                if row is None:
                    row = _ask(entrant.name, system, question, print_)
                    outcomes.append(row)
                rows.append(row)
                report(len(rows))
    return rows, writing


def _ask(name: str, system: System, question: Question, fingerprint: str) -> Outcome:
    ranked = system.read(question.text, DEPTH)
    places = {id: rank for rank, id in enumerate(ranked.ids, start=1)}
    ranks = {id: places.get(id) for id in question.evidence}
    return Outcome(name, question.id, question.category, ranks, ranked.ids, ranked.cost, fingerprint)


@contextmanager
def _step(progress: Progress, name: str, total: int) -> Iterator[Callable[[int], None]]:
    """A line of the progress display, there while it lasts; gives what moves it."""
    task = progress.add_task(name, total=total)
    try:
        yield lambda done: progress.update(task, completed=done)
    finally:
        progress.remove_task(task)
