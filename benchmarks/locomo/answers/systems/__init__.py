"""The systems whose memories answers are given from."""

from benchmarks.locomo.answers.systems.catalogue import ABLATION, DEFAULT, SWEEPS, Competitor, Shared, choose
from benchmarks.locomo.answers.systems.system import AnswerSystem, Context

__all__ = ["ABLATION", "DEFAULT", "SWEEPS", "AnswerSystem", "Competitor", "Context", "Shared", "choose"]
