"""How right an answer is: the two families of metrics in use, and how much of the answer a context holds.

LoCoMo's (Maharana et al., 2024): F1 over multisets of Porter stems. A-MEM's (Xu et al., 2025): F1 over sets of words,
and BLEU-1. They part at category 5, whose questions have no answer: LoCoMo counts an answer right that says so; A-MEM
compares with the answer that is wrong to give, so that always being fooled scores 1.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from nltk.stem import PorterStemmer  # type: ignore[import-untyped]
from nltk.tokenize import NLTKWordTokenizer  # type: ignore[import-untyped]
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu  # type: ignore[import-untyped]

from benchmarks.locomo.dataset import Question

REFUSAL = "Not mentioned in the conversation"
"""What a system says when it knows no answer."""

ADVERSARIAL = 5
_MULTI_HOP = 1
_OPEN_DOMAIN = 3

_REFUSED = ("no information available", "not mentioned")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_DROPPED = re.compile(r"\b(?:a|an|the|and)\b")
_SEPARATED = str.maketrans(".,!?", "    ")
_STEMMER = PorterStemmer()
_WORDS = NLTKWordTokenizer()
_SMOOTHING = SmoothingFunction().method1


@dataclass(frozen=True, slots=True)
class Scores:
    """How right one answer is, each in [0, 1]; ``None`` where the question has nothing to compare with.

    Attributes:
        locomo_f1: LoCoMo's F1; in category 5 whether the answer is a refusal.
        amem_f1: A-MEM's F1; in category 5 against the answer that is wrong to give.
        amem_bleu1: A-MEM's BLEU-1, likewise.
    """

    locomo_f1: float | None
    amem_f1: float | None
    amem_bleu1: float | None


def score(answer: str, question: Question) -> Scores:
    """Score one answer."""
    if question.category == ADVERSARIAL:
        wrong = question.adversarial_answer or question.answer
        return Scores(float(is_refusal(answer)), *_amem(answer, wrong))
    if not question.answer:
        return Scores(None, None, None)
    return Scores(_locomo(answer, question.answer, question.category), *_amem(answer, question.answer))


def is_refusal(answer: str) -> bool:
    """Whether an answer says that there is none, as LoCoMo recognises it."""
    return any(said in answer.lower() for said in _REFUSED)


def _locomo(answer: str, gold: str, category: int) -> float:
    if category == _MULTI_HOP:  # a list: each of its parts against the best part of the answer
        parts = answer.split(",")
        return fmean(max(multiset_f1(part, wanted) for part in parts) for wanted in gold.split(","))
    if category == _OPEN_DOMAIN:  # what follows is an explanation
        gold = gold.split(";")[0]
    return multiset_f1(answer, gold)


def _amem(answer: str, gold: str | None) -> tuple[float | None, float | None]:
    return (set_f1(answer, gold), bleu1(answer, gold)) if gold else (None, None)


def multiset_f1(answer: str, gold: str) -> float:
    """LoCoMo's F1: stems with their numbers of occurrence, without articles, "and" and punctuation."""
    said, wanted = stems(answer), stems(gold)
    return _f1((Counter(said) & Counter(wanted)).total(), len(said), len(wanted))


def stems(text: str) -> list[str]:
    """What LoCoMo compares: lower case, no punctuation, no articles, no "and", Porter stems."""
    bare = text.lower().translate(_PUNCTUATION)
    return [_stem(word) for word in _DROPPED.sub(" ", bare).split()]


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    return str(_STEMMER.stem(word))


def set_f1(answer: str, gold: str) -> float:
    """A-MEM's F1: distinct words in lower case, parted at blanks and at . , ! ? alone."""
    said, wanted = (set(text.lower().translate(_SEPARATED).split()) for text in (answer, gold))
    return _f1(len(said & wanted), len(said), len(wanted))


def _f1(common: int, said: int, wanted: int) -> float:
    return 2 * common / (said + wanted) if common else 0.0


def bleu1(answer: str, gold: str) -> float:
    """A-MEM's BLEU-1: weights (1, 0, 0, 0), smoothed by nltk's method 1 (which never acts on single words).

    Words are nltk's, without its division into sentences first, which needs a download and matters only where a full
    stop lies inside an answer.
    """
    said, wanted = (_WORDS.tokenize(text.lower()) for text in (answer, gold))
    if not said:
        return 0.0
    return float(sentence_bleu([wanted], said, weights=(1, 0, 0, 0), smoothing_function=_SMOOTHING))


def coverage(context: str, question: Question) -> float | None:
    """The share of the gold answer's distinct stems that a context holds; ``None`` where there is no gold answer.

    Needs no model that answers: what is not in the context, no reader can read there.
    """
    if question.category == ADVERSARIAL or not question.answer:
        return None
    gold = question.answer.split(";")[0] if question.category == _OPEN_DOMAIN else question.answer
    wanted = set(stems(gold))
    return len(wanted & set(stems(context))) / len(wanted) if wanted else None
