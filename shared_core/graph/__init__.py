"""Association: what belongs together, and where activation spreads."""

from shared_core.graph.association import AssociativeGraph, Hop, Propagation
from shared_core.graph.idf import inverse_document_frequency
from shared_core.graph.incidence import Incidence
from shared_core.graph.ordering import ranges, stable_order

__all__ = [
    "AssociativeGraph",
    "Hop",
    "Incidence",
    "Propagation",
    "inverse_document_frequency",
    "ranges",
    "stable_order",
]
