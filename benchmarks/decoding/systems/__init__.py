"""The systems that are compared, behind one face."""

from benchmarks.decoding.systems.attempt import Attempt, attempt_compilation
from benchmarks.decoding.systems.catalogue import EXACT_KEYS, SYSTEMS, build_system
from benchmarks.decoding.systems.generation import CACHE_ARGUMENT, Beam, beam_search
from benchmarks.decoding.systems.system import Decode, System, Unavailable

__all__ = [
    "CACHE_ARGUMENT",
    "EXACT_KEYS",
    "SYSTEMS",
    "Attempt",
    "Beam",
    "Decode",
    "System",
    "Unavailable",
    "attempt_compilation",
    "beam_search",
    "build_system",
]
