"""What the adapters to frameworks share."""

from shared_core.adapting.documents import document_entry, document_metadata, name_of
from shared_core.adapting.namespaces import Namespace, as_memory, memory_in

__all__ = ["Namespace", "as_memory", "document_entry", "document_metadata", "memory_in", "name_of"]
