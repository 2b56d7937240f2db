"""The systems whose memories answers are given from."""

from benchmarks.locomo.answers.systems.catalogue import DEFAULT, Competitor, Shared, choose
from benchmarks.locomo.answers.systems.system import AnswerSystem, Context

__all__ = ["DEFAULT", "AnswerSystem", "Competitor", "Context", "Shared", "choose"]
