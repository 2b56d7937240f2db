"""Questions read with what they are to be answered from, once for every way to answer them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from shared_core.answering.prompt import AnswerPrompt, Asked
from shared_core.decoding import generate
from shared_core.models import LanguageModel, TokenTree

_ANSWER_TOKENS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """A tree of tokens that holds the notes of several questions, and below each its question and a neutral one.

    Attributes:
        model: The model.
        tree: The tree.
        asked: The questions, with what there was room for: the first entries, the last of them perhaps cut.
        questions: Node after which each is answered.
        neutral: Node after which the neutral question is answered, from the same notes.
        lengths: Tokens of notes that were read for each.
        terminator: The token that ends an answer.
    """

    model: LanguageModel
    tree: TokenTree
    asked: Sequence[Asked]
    questions: Sequence[int]
    neutral: Sequence[int]
    lengths: Sequence[int]
    terminator: int


def read(model: LanguageModel, prompt: AnswerPrompt, asked: Sequence[Asked], most: int | None = None) -> Reading:
    """Read questions with their notes; notes that several share are read once.

    Args:
        model: The model.
        prompt: The prompt.
        asked: The questions, with entries to answer from, in the order in which they are to be read.
        most: Tokens of one question's notes at most; ``None``: as many as the model's window has room for.
    """
    tails = [prompt.question(model, one.query) for one in asked]
    neutral = prompt.question(model, prompt.neutral)
    reserved = max(map(len, [*tails, neutral])) + _ANSWER_TOKENS
    found = [prompt.notes(model, one.entries, reserved, most) for one in asked]
    notes = [tuple(tokens) for tokens, _ in found]
    seen = [replace(one, entries=entries) for one, (_, entries) in zip(asked, found, strict=True)]
    distinct = list(dict.fromkeys(notes))
    tree = model.tree(prompt.root(model))
    below: dict[tuple[int, ...], tuple[list[int], int]] = {}
    for own, node in zip(distinct, tree.read_many(distinct), strict=True):
        mine = [tail for tail, several in zip(tails, notes, strict=True) if several == own]
        *questions, last = tree.read_many([*mine, neutral], node)
        below[own] = questions, last
    at = [below[own][0].pop(0) for own in notes]
    lengths = [len(own) - len(model.encode(prompt.before)) for own in notes]
    return Reading(model, tree, seen, at, [below[own][1] for own in notes], lengths, model.encode("a\n")[-1])


def answer_freely(reading: Reading, max_tokens: int) -> list[str]:
    """What the model writes as the answer to each question, free of any constraint."""
    texts = generate(reading.model, reading.tree, reading.questions, max_tokens=max_tokens, stop=("\n",))
    return [text.strip() for text in texts]
