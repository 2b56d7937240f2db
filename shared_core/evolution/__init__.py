"""The write path: assimilation, the novelty gate, accommodation."""

from shared_core.evolution.accommodation import said_concepts
from shared_core.evolution.distillation import Distiller, Vocabulary
from shared_core.evolution.evolution import Evolution, Progress, Report
from shared_core.evolution.phrases import Phrase, extract_phrases

__all__ = ["Distiller", "Evolution", "Phrase", "Progress", "Report", "Vocabulary", "extract_phrases", "said_concepts"]
