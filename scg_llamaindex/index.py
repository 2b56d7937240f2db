"""The memory as an index. It embeds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Self

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.data_structs.data_structs import EmptyIndexStruct
from llama_index.core.indices.base import BaseIndex
from llama_index.core.ingestion import run_transformations
from llama_index.core.llms.utils import LLMType
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo
from llama_index.core.storage.storage_context import StorageContext

from scg_llamaindex.nodes import entries_of, node_of
from scg_llamaindex.retriever import SCGRetriever
from shared_core import SchemaMemory
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.errors import refuse

_SETTINGS = tuple(name for name in signature(SCGRetriever).parameters if name not in ("memory", "object_map"))


class SCGIndex(BaseIndex[EmptyIndexStruct]):
    """An index whose nodes are entries of a schema-constrained memory.

    The memory is the truth. What it already holds when the index is made belongs to the index, so that an index is
    opened again by naming the memory: ``SCGIndex(memory="memory.db")``.

    Args:
        nodes: Nodes to add; an id that exists is an update.
        memory: The memory, or the path of one; by default one that is kept nowhere.
        namespace: Another namespace of the memory's file.
        use_model: See :meth:`shared_core.SchemaMemory.remember`; holds for all that is inserted.
        objects: Index nodes, with the objects that they stand for.
        storage_context: Whose document store is filled as well.
        callback_manager: Told of what is done.
        transformations: What makes nodes of documents.
        show_progress: Show the progress of transformations.
    """

    index_struct_cls = EmptyIndexStruct

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        memory: SchemaMemory | str | Path = ":memory:",
        namespace: Namespace | None = None,
        use_model: bool = True,
        objects: Sequence[IndexNode] | None = None,
        storage_context: StorageContext | None = None,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        show_progress: bool = False,
    ) -> None:
        self._memory = memory_in(as_memory(memory), namespace)
        self._use_model = use_model
        storage_context = storage_context or StorageContext.from_defaults()
        held = [node_of(entry) for entry in self._memory.entries]
        _register(storage_context.docstore, held)
        super().__init__(
            nodes=list(nodes or ()),
            objects=list(objects or ()),
            storage_context=storage_context,
            callback_manager=callback_manager,
            transformations=transformations,
            show_progress=show_progress,
        )

    @property
    def memory(self) -> SchemaMemory:
        """The memory behind it."""
        return self._memory

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        storage_context: StorageContext | None = None,
        show_progress: bool = False,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        *,
        embed_model: object = None,
        **settings: Any,
    ) -> Self:
        """An index of documents.

        Args:
            documents: The documents.
            storage_context: See the class.
            show_progress: See the class.
            callback_manager: See the class.
            transformations: See the class.
            embed_model: Not used, since recall embeds nothing: it stands here because code that was written for
                another index passes it.
            settings: As for the class.
        """
        storage_context = storage_context or StorageContext.from_defaults()
        transformations = transformations or Settings.transformations
        nodes = run_transformations(list(documents), transformations, show_progress=show_progress)
        index = cls(
            nodes,
            storage_context=storage_context,
            callback_manager=callback_manager,
            transformations=transformations,
            show_progress=show_progress,
            **settings,
        )
        for document in documents:
            index.docstore.set_document_hash(document.id_, document.hash)
        return index

    def as_retriever(self, **kwargs: Any) -> SCGRetriever:
        """A retriever on the index; ``kwargs`` are its settings, and unknown ones are refused."""
        refuse({name: kwargs[name] for name in kwargs.keys() - set(_SETTINGS)}, ", ".join(_SETTINGS))
        kwargs.setdefault("callback_manager", self._callback_manager)
        return SCGRetriever(self._memory, object_map=self._object_map, **kwargs)

    def as_query_engine(self, llm: LLMType | None = None, **kwargs: Any) -> BaseQueryEngine:
        """A query engine; ``kwargs`` are settings of the retriever and of ``RetrieverQueryEngine.from_args``."""
        from llama_index.core.query_engine import RetrieverQueryEngine

        known = {name for name in signature(RetrieverQueryEngine.from_args).parameters if name != "kwargs"}
        known = {*known, *_SETTINGS}
        refuse({name: kwargs[name] for name in kwargs.keys() - known}, ", ".join(sorted(known)))
        return _Engines(self, kwargs).as_query_engine(llm, **_without_settings(kwargs))

    def as_chat_engine(
        self, chat_mode: ChatMode = ChatMode.BEST, llm: LLMType | None = None, **kwargs: Any
    ) -> BaseChatEngine:
        """A chat engine; ``kwargs`` are settings of the retriever and of the engine."""
        return _Engines(self, kwargs).as_chat_engine(chat_mode, llm, **_without_settings(kwargs))

    def delete_nodes(self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any) -> None:
        """Erase nodes, from the document store as well, whatever ``delete_from_docstore`` says."""
        refuse(delete_kwargs, "delete_from_docstore")
        self._memory.forget(ids=node_ids)
        for node_id in node_ids:
            self.docstore.delete_document(node_id, raise_error=False)

    async def adelete_nodes(
        self, node_ids: list[str], delete_from_docstore: bool = False, **delete_kwargs: Any
    ) -> None:
        """:meth:`delete_nodes`, without blocking the event loop."""
        refuse(delete_kwargs, "delete_from_docstore")
        await self._memory.aforget(ids=node_ids)
        for node_id in node_ids:
            await self.docstore.adelete_document(node_id, raise_error=False)

    def delete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True, **delete_kwargs: Any) -> None:
        """Erase a document and its nodes, from the document store as well."""
        super().delete_ref_doc(ref_doc_id, delete_from_docstore=True, **delete_kwargs)

    async def adelete_ref_doc(self, ref_doc_id: str, delete_from_docstore: bool = True, **delete_kwargs: Any) -> None:
        """:meth:`delete_ref_doc`, without blocking the event loop."""
        await super().adelete_ref_doc(ref_doc_id, delete_from_docstore=True, **delete_kwargs)

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """:meth:`insert_nodes`, without blocking the event loop."""
        refuse(insert_kwargs, "none; use_model is a setting of the index")
        await self._memory.aremember(entries_of(nodes), use_model=self._use_model)
        self._keep_objects(nodes)
        await self.docstore.async_add_documents(nodes, allow_update=True)

    def insert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """Add nodes; an id that exists is an update."""
        refuse(insert_kwargs, "none; use_model is a setting of the index")
        self._insert(nodes)
        self._keep_objects(nodes)
        self.docstore.add_documents(nodes, allow_update=True)

    @property
    def ref_doc_info(self) -> dict[str, RefDocInfo]:
        """The documents and their nodes."""
        return self.docstore.get_all_ref_doc_info() or {}

    def _build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> EmptyIndexStruct:
        self._insert(nodes)
        return EmptyIndexStruct()

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        if nodes:
            self._memory.remember(entries_of(nodes), use_model=self._use_model)

    def _delete_node(self, node_id: str, **delete_kwargs: Any) -> None:
        self.delete_nodes([node_id])

    def _keep_objects(self, nodes: Sequence[BaseNode]) -> None:
        """What index nodes stand for stays in this process: it cannot be stored."""
        for node in nodes:
            if isinstance(node, IndexNode) and node.obj is not None:
                self._object_map[node.index_id] = node.obj
                node.obj = None


class _Engines(SCGIndex):
    """An index whose retriever has its settings already: LlamaIndex hands an engine's settings to the retriever too."""

    def __init__(self, index: SCGIndex, kwargs: dict[str, Any]) -> None:
        self.__dict__.update(index.__dict__)
        self._chosen = {name: kwargs[name] for name in kwargs if name in _SETTINGS}

    def as_retriever(self, **kwargs: Any) -> SCGRetriever:
        return SCGIndex.as_retriever(self, **self._chosen)

    def as_query_engine(self, llm: LLMType | None = None, **kwargs: Any) -> BaseQueryEngine:
        return BaseIndex.as_query_engine(self, llm, **kwargs)

    def as_chat_engine(
        self, chat_mode: ChatMode = ChatMode.BEST, llm: LLMType | None = None, **kwargs: Any
    ) -> BaseChatEngine:
        return BaseIndex.as_chat_engine(self, chat_mode, llm, **kwargs)


def _without_settings(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if name not in _SETTINGS}


def _register(docstore: BaseDocumentStore, nodes: Sequence[BaseNode]) -> None:
    """Fill a document store with nodes that a memory holds, and with the hashes of the documents they come from."""
    docstore.add_documents(nodes, allow_update=True)
    for node in nodes:
        if node.source_node is not None and node.source_node.hash:
            docstore.set_document_hash(node.source_node.node_id, node.source_node.hash)
