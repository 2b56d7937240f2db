"""Answering a question from entries: freely, or grounded in what they say."""

from shared_core.answering.candidates import Candidate, find_candidates
from shared_core.answering.choosing import DEFAULT_WEIGHTS, ChoosingWeights, Judged, choose, judge
from shared_core.answering.composing import Answer, Grounded, answer_grounded, compose_answer
from shared_core.answering.dates import relative_dates, write_date
from shared_core.answering.prompt import DEFAULT_PROMPT, AnswerPrompt, Asked, note
from shared_core.answering.reading import Reading, answer_freely, read

__all__ = [
    "DEFAULT_PROMPT",
    "DEFAULT_WEIGHTS",
    "Answer",
    "AnswerPrompt",
    "Asked",
    "Candidate",
    "ChoosingWeights",
    "Grounded",
    "Judged",
    "Reading",
    "answer_freely",
    "answer_grounded",
    "choose",
    "compose_answer",
    "find_candidates",
    "judge",
    "note",
    "read",
    "relative_dates",
    "write_date",
]
