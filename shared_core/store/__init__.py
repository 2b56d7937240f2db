"""The durable truth: entries, concepts and links of every namespace, in one SQLite file or database."""

from shared_core.store.checking import Fault, FaultKind
from shared_core.store.collector import collector_paused
from shared_core.store.copying import CopiedNamespace
from shared_core.store.location import check_path, parse_location, shown_location
from shared_core.store.migrating import migrate_memory
from shared_core.store.placing import draft
from shared_core.store.repairing import Repaired
from shared_core.store.salvaging import Lost, read_salvageable
from shared_core.store.state import Anticipations, NamespaceChange, NamespaceState, ScoreColumns, StoredEntry
from shared_core.store.store import Store
from shared_core.store.transfer import export_namespace, exported_namespace, import_namespace
from shared_core.store.values import (
    INFERRED,
    ORIGINS,
    Anticipated,
    Anticipation,
    ConceptLink,
    EntryWrite,
    Erased,
    HeldEntry,
    KeyScores,
    Known,
    NamespaceInfo,
    Origin,
    WriteOutcome,
)

__all__ = [
    "INFERRED",
    "ORIGINS",
    "Anticipated",
    "Anticipation",
    "Anticipations",
    "ConceptLink",
    "CopiedNamespace",
    "EntryWrite",
    "Erased",
    "Fault",
    "FaultKind",
    "HeldEntry",
    "KeyScores",
    "Known",
    "Lost",
    "NamespaceChange",
    "NamespaceInfo",
    "NamespaceState",
    "Origin",
    "Repaired",
    "ScoreColumns",
    "Store",
    "StoredEntry",
    "WriteOutcome",
    "check_path",
    "collector_paused",
    "draft",
    "export_namespace",
    "exported_namespace",
    "import_namespace",
    "migrate_memory",
    "parse_location",
    "read_salvageable",
    "shown_location",
]
