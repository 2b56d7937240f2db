"""What an index store keeps of an index: not its entries, but where they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from llama_index.core.data_structs.data_structs import IndexStruct
from llama_index.core.data_structs.registry import INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS
from llama_index.core.data_structs.struct_type import IndexStructType

STRUCT_TYPE: Final = "scg"
"""Names the kind of index in an index store."""


@dataclass
class SCGIndexStruct(IndexStruct):
    """Where the memory of an index is.

    Attributes:
        path: Its file; ``None`` for one that is kept nowhere.
        namespace: Its namespace in the file.
        use_model: See :class:`scg_llamaindex.SCGIndex`.
    """

    path: str | None = None
    namespace: list[str] = field(default_factory=list)
    use_model: bool = True

    @classmethod
    def get_type(cls) -> IndexStructType:
        """The kind of index."""
        return STRUCT_TYPE  # type: ignore[return-value]  # LlamaIndex's list of kinds is closed, its registries are not


INDEX_STRUCT_TYPE_TO_INDEX_STRUCT_CLASS[STRUCT_TYPE] = SCGIndexStruct  # type: ignore[index]
