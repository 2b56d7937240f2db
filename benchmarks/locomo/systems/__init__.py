"""What is compared: this project's memory in its variations, BM25, embeddings, and their fusion."""

from benchmarks.locomo.systems.catalogue import DEFAULT, Entrant, Workplace, choose
from benchmarks.locomo.systems.system import Cost, Ranked, Report, System, UnavailableError

__all__ = ["DEFAULT", "Cost", "Entrant", "Ranked", "Report", "System", "UnavailableError", "Workplace", "choose"]
