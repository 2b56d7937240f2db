"""The memory as an index. It embeds nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.callbacks.base import CallbackManager
from llama_index.core.chat_engine.types import BaseChatEngine, ChatMode
from llama_index.core.indices.base import BaseIndex
from llama_index.core.indices.registry import INDEX_STRUCT_TYPE_TO_INDEX_CLASS
from llama_index.core.ingestion import arun_transformations, run_transformations
from llama_index.core.llms.llm import LLM
from llama_index.core.llms.utils import LLMType, resolve_llm
from llama_index.core.schema import BaseNode, Document, IndexNode, TransformComponent
from llama_index.core.settings import Settings
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo
from llama_index.core.storage.storage_context import StorageContext

from scg_llamaindex.engines import chat_engine, check_retriever_arguments, query_engine
from scg_llamaindex.index_struct import STRUCT_TYPE, SCGIndexStruct
from scg_llamaindex.nodes import entries_of, node_of
from scg_llamaindex.retriever import SCGRetriever
from shared_core import Memory, SchemaMemory
from shared_core.adapting import Namespace, as_memory, memory_in
from shared_core.errors import NotFoundError, refuse

_UNFINISHED: Final = "unfinished"


class SCGIndex(BaseIndex[SCGIndexStruct]):
    """An index whose nodes are entries of a schema-constrained memory.

    The memory is the truth. What it already holds when the index is made belongs to the index, so that an index is
    opened again by naming the memory: ``SCGIndex(memory="memory.db")``. One that was persisted with its storage context
    is opened by ``load_index_from_storage`` as well, which finds file and namespace; where another model than the
    embedded one recalls, pass it the memory, ``memory=memory``.

    Args:
        nodes: Nodes to add; an id that exists is an update.
        memory: The memory, or the path of one; by default one that is kept nowhere.
        namespace: Another namespace of the memory's file.
        use_model: See :meth:`shared_core.SchemaMemory.remember`; holds for all that is inserted. By default it is, in
            an index that is loaded as it was set before.
        objects: Index nodes, with the objects that they stand for.
        index_struct: What a storage context kept of the index.
        storage_context: Whose document store is filled as well.
        callback_manager: Told of what is done.
        transformations: What makes nodes of documents.
        show_progress: Show the progress of transformations.
        embed_model: Not used, since recall embeds nothing: it stands here because code that was written for another
            index passes it.

    Raises:
        NotFoundError: if an index is loaded whose memory was kept nowhere, or is no longer where it was.
    """

    index_struct_cls = SCGIndexStruct

    def __init__(
        self,
        nodes: Sequence[BaseNode] | None = None,
        *,
        memory: Memory | str | Path | None = None,
        namespace: Namespace | None = None,
        use_model: bool | None = None,
        objects: Sequence[IndexNode] | None = None,
        index_struct: SCGIndexStruct | None = None,
        storage_context: StorageContext | None = None,
        callback_manager: CallbackManager | None = None,
        transformations: list[TransformComponent] | None = None,
        show_progress: bool = False,
        embed_model: object = None,
    ) -> None:
        if index_struct is not None and use_model is None:
            use_model = index_struct.use_model
        self._use_model = use_model is not False
        self._memory = _memory_of(index_struct, memory, namespace)
        storage_context = storage_context or StorageContext.from_defaults()
        held = [node_of(entry) for entry in self._memory.entries]
        _register(storage_context.docstore, held)
        super().__init__(
            nodes=list(nodes or ()),
            objects=list(objects or ()),
            index_struct=None if index_struct is None else replace(index_struct, **self._place()),
            storage_context=storage_context,
            callback_manager=callback_manager,
            transformations=transformations,
            show_progress=show_progress,
        )

    @property
    def memory(self) -> Memory:
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
        **settings: Any,
    ) -> Self:
        """An index of documents.

        Args:
            documents: The documents.
            storage_context: See the class.
            show_progress: See the class.
            callback_manager: See the class.
            transformations: See the class.
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
        check_retriever_arguments(kwargs)
        kwargs.setdefault("callback_manager", self._callback_manager)
        return SCGRetriever(self._memory, object_map=self._object_map, **kwargs)

    def as_query_engine(self, llm: LLMType | None = None, **kwargs: Any) -> BaseQueryEngine:
        """A query engine; ``kwargs`` are settings of the retriever and of ``RetrieverQueryEngine.from_args``."""
        return query_engine(self._retrieving, self._answering(llm), kwargs)

    def as_chat_engine(
        self, chat_mode: ChatMode = ChatMode.BEST, llm: LLMType | None = None, **kwargs: Any
    ) -> BaseChatEngine:
        """A chat engine; ``kwargs`` are settings of the retriever, the query engine, and the chat engine."""
        return chat_engine(chat_mode, self._retrieving, self._answering(llm), kwargs)

    def _retrieving(self, settings: Mapping[str, Any]) -> SCGRetriever:
        return self.as_retriever(**settings)

    def _answering(self, llm: LLMType | None) -> LLM:
        return resolve_llm(llm, callback_manager=self._callback_manager) if llm else Settings.llm

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

    def update_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """Put a document in the place of the one with its id, which stays if the new one cannot be stored."""
        refuse(update_kwargs, "none")
        with self._callback_manager.as_trace("update_ref_doc"):
            nodes = run_transformations([document], self._transformations, show_progress=self._show_progress)
            self._insert(nodes)
            self.delete_ref_doc(document.id_)
            self.insert_nodes(nodes)  # in the document store, and what had the id of an old one in the memory
            self.docstore.set_document_hash(document.id_, document.hash)

    async def aupdate_ref_doc(self, document: Document, **update_kwargs: Any) -> None:
        """:meth:`update_ref_doc`, without blocking the event loop."""
        refuse(update_kwargs, "none")
        with self._callback_manager.as_trace("aupdate_ref_doc"):
            nodes = await arun_transformations([document], self._transformations, show_progress=self._show_progress)
            await self._ainsert(nodes)
            await self.adelete_ref_doc(document.id_)
            await self.ainsert_nodes(nodes)
            await self.docstore.aset_document_hash(document.id_, document.hash)

    async def ainsert_nodes(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        """:meth:`insert_nodes`, without blocking the event loop."""
        refuse(insert_kwargs, "none; use_model is a setting of the index")
        await self._ainsert(nodes)
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

    def _build_index_from_nodes(self, nodes: Sequence[BaseNode], **build_kwargs: Any) -> SCGIndexStruct:
        self._insert(nodes)
        self._keep_objects(nodes)
        return SCGIndexStruct(**self._place())

    def _place(self) -> dict[str, Any]:
        """Where the memory is, for the index store."""
        return {
            "path": self._memory.location,
            "namespace": list(self._memory.namespace),
            "use_model": self._use_model,
        }

    def _insert(self, nodes: Sequence[BaseNode], **insert_kwargs: Any) -> None:
        if entries := entries_of(nodes):
            self._memory.remember(entries, use_model=self._use_model)

    async def _ainsert(self, nodes: Sequence[BaseNode]) -> None:
        if entries := entries_of(nodes):
            await self._memory.aremember(entries, use_model=self._use_model)

    def _delete_node(self, node_id: str, **delete_kwargs: Any) -> None:
        self.delete_nodes([node_id])

    def _keep_objects(self, nodes: Sequence[BaseNode]) -> None:
        """What index nodes stand for stays in this process: it cannot be stored."""
        for node in nodes:
            if isinstance(node, IndexNode) and node.obj is not None:
                self._object_map[node.index_id] = node.obj
                node.obj = None


# Where `load_index_from_storage` looks.
INDEX_STRUCT_TYPE_TO_INDEX_CLASS[STRUCT_TYPE] = SCGIndex  # type: ignore[index]  # see STRUCT_TYPE


def _memory_of(
    struct: SCGIndexStruct | None, memory: Memory | str | Path | None, namespace: Namespace | None
) -> Memory:
    """The memory that is named, or else the one that an index store names, or else a new one."""
    if memory is not None or struct is None:
        return memory_in(as_memory(":memory:" if memory is None else memory), namespace)
    if struct.path is None:
        raise NotFoundError(
            "the memory of this index was kept nowhere, and only the nodes are left: make an index of them in a file,"
            ' SCGIndex([*storage_context.docstore.docs.values()], memory="memory.db"), and load that from then on'
        )
    if "://" in struct.path:  # to which a password or a key may belong, which is kept nowhere
        raise NotFoundError(
            f"the memory of this index is at {struct.path}: open it there and pass it,"
            " load_index_from_storage(storage_context, memory=memory)"
        )
    return SchemaMemory.open(struct.path, namespace=struct.namespace if namespace is None else namespace, create=False)


def _register(docstore: BaseDocumentStore, nodes: Sequence[BaseNode]) -> None:
    """Fill a document store with nodes that a memory holds, and with the hashes of the documents they come from.

    Of a document that was being written when its process died there may be a beginning, or a new version beside the
    old one. No hash is that of such a document, so that a refresh writes it anew.
    """
    docstore.add_documents(nodes, allow_update=True)
    held = {node.node_id for node in nodes}
    hashes: dict[str, str] = {}
    for node in nodes:
        if node.source_node is None or not node.source_node.hash:
            continue
        id, hash = node.source_node.node_id, node.source_node.hash
        is_whole = node.next_node is None or node.next_node.node_id in held
        if not is_whole or hashes.setdefault(id, hash) != hash:
            hashes[id] = _UNFINISHED
    for id, hash in hashes.items():
        docstore.set_document_hash(id, hash)
