"""The retriever by itself and in what LlamaIndex builds around retrievers."""

import asyncio

import bm25s
import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload, LlamaDebugHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.postprocessor import LongContextReorder, SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import IndexNode, NodeWithScore, TextNode
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.tools import QueryEngineTool, RetrieverTool
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters

from scg_llamaindex import RecalledNode, SCGIndex, SCGRecallEvent, SCGRetriever, UnsupportedError
from shared_core import Filter, SCGConfig
from shared_core.errors import FormatError, InvalidInputError

QUESTION = "What pet did she get?"


def ids_of(found):
    return [one.node.node_id for one in found]


@pytest.fixture
def retriever(open_memory, nodes):
    return SCGRetriever.from_defaults(nodes=nodes, memory=open_memory())


class BM25(BaseRetriever):
    def __init__(self, nodes):
        super().__init__()
        self._nodes, self._index = nodes, bm25s.BM25()
        self._index.index(bm25s.tokenize([node.text for node in nodes], show_progress=False), show_progress=False)

    def _retrieve(self, query_bundle):
        words = bm25s.tokenize(query_bundle.query_str, show_progress=False)
        places, scores = self._index.retrieve(words, k=len(self._nodes), show_progress=False)
        return [
            NodeWithScore(node=self._nodes[place], score=float(score))
            for place, score in zip(places[0], scores[0], strict=True)
            if score > 0
        ]


def test_it_recalls_what_the_memory_recalls_with_relevance_as_score(retriever, nodes):
    recall = retriever.memory.recall(QUESTION)
    found = retriever.retrieve(QUESTION)
    assert found == asyncio.run(retriever.aretrieve(QUESTION))
    plain = {node.node_id: node for node in nodes}
    assert ids_of(found) == [one.entry.id for one in recall.entries]
    for one, expected in zip(found, recall.entries, strict=True):
        assert isinstance(one, RecalledNode)
        assert one.node == plain[one.node.node_id]  # scores and reasons stand beside it
        assert one.node.hash == plain[one.node.node_id].hash
        assert (one.score, one.recall_score, one.reasons) == (expected.relevance, expected.score, expected.reasons)


def test_top_k_over_the_corpus_size_returns_what_there_is(retriever):
    retriever.similarity_top_k = 100
    assert len(retriever.retrieve(QUESTION)) == 4
    retriever.similarity_top_k = 2
    assert len(retriever.retrieve(QUESTION)) == 2


def test_unusable_settings_are_refused(open_memory):
    memory = open_memory()
    for settings in (
        {"similarity_top_k": 0},
        {"similarity_top_k": "2"},
        {"score_threshold": 1.5},
        {"score_threshold": "a"},
        {"filters": {"a": 1}},
    ):
        with pytest.raises(InvalidInputError):
            SCGRetriever(memory, **settings)
    with pytest.raises(TypeError):
        SCGRetriever(memory, search_kwargs={"k": 1})
    with pytest.raises(InvalidInputError):
        SCGRetriever(memory).retrieve(" ")


def test_every_setting_survives_being_persisted(open_memory, nodes, tmp_path, tiny):
    conditions = [
        Filter(speaker=["Ben", "Anna"], metadata={"channel": "phone"}),
        MetadataFilters(filters=[MetadataFilter(key="stars", value=1, operator=FilterOperator.GTE)]),
        None,
    ]
    for number, condition in enumerate(conditions):
        settings = {"similarity_top_k": 2, "filters": condition, "score_threshold": 0.001, "verbose": True}
        memory = open_memory(config=SCGConfig(width=7), namespace=("users", "anna"))
        retriever = SCGRetriever.from_defaults(nodes=nodes, memory=memory, **settings)
        retriever.persist(tmp_path / str(number))
        again = SCGRetriever.from_persist_dir(tmp_path / str(number), model=tiny("llama"))
        with again.memory:
            assert {name: getattr(again, name) for name in settings if name != "verbose"} == {
                name: getattr(retriever, name) for name in settings if name != "verbose"
            }
            assert again._verbose
            assert (again.memory.config, again.memory.namespace) == (memory.config, memory.namespace)
            expected = retriever.retrieve(QUESTION)
            # An export holds nothing that a model computed: until then the copy ranks without.
            assert again.retrieve(QUESTION)
            assert again.memory.consolidate() == len(nodes)
            found = again.retrieve(QUESTION)
            assert [one.node for one in found] == [one.node for one in expected]
            assert [one.score for one in found] == pytest.approx([one.score for one in expected], rel=1e-4)
    with pytest.raises(FormatError):
        SCGRetriever.from_persist_dir(tmp_path / "nothing")


def test_sources(open_memory, nodes):
    docstore = SimpleDocumentStore()
    docstore.add_documents(nodes)
    index = SCGIndex(nodes, memory=open_memory())
    expected = ids_of(index.as_retriever().retrieve(QUESTION))
    for source in ({"nodes": nodes}, {"docstore": docstore}):
        assert ids_of(SCGRetriever.from_defaults(**source, memory=open_memory()).retrieve(QUESTION)) == expected
    for source in ({"index": index}, {"memory": index.memory}):
        assert ids_of(SCGRetriever.from_defaults(**source).retrieve(QUESTION)) == expected
    for sources in ({}, {"nodes": nodes, "docstore": docstore}):
        with pytest.raises(InvalidInputError):
            SCGRetriever.from_defaults(**sources)


def test_index_nodes_lead_to_their_objects(open_memory, nodes):
    other = TextNode(text="The whole story of Rex.", id_="whole")
    summary = IndexNode(text="A summary about a puppy", id_="s", index_id="story", obj=other)
    retriever = SCGRetriever.from_defaults(nodes=[summary], memory=open_memory())
    assert ids_of(retriever.retrieve("puppy")) == ["whole"]
    again = SCGRetriever(retriever.memory, object_map={"story": other})
    assert ids_of(again.retrieve("puppy")) == ["whole"]
    assert ids_of(SCGRetriever(retriever.memory).retrieve("puppy")) == ["s"]


def test_callbacks_and_instrumentation_are_told_why(retriever):
    debug = LlamaDebugHandler(print_trace_on_end=False)
    retriever.callback_manager = CallbackManager([debug])
    heard = []

    class Listener(BaseEventHandler):
        def handle(self, event, **kwargs):
            heard.append(event)

    dispatcher = get_dispatcher("scg_llamaindex.events")
    listener = Listener()
    dispatcher.add_event_handler(listener)
    try:
        found = retriever.retrieve(QUESTION)
    finally:
        dispatcher.event_handlers.remove(listener)
    [(start, end)] = debug.get_event_pairs(CBEventType.RETRIEVE)
    assert start.payload[EventPayload.QUERY_STR] == QUESTION
    assert end.payload[EventPayload.NODES] == found
    [event] = [event for event in heard if isinstance(event, SCGRecallEvent)]
    assert event.recall == retriever.memory.recall(QUESTION).to_dict()
    assert event.recall["entries"][0]["reasons"]


def test_a_query_engine_with_node_postprocessors(sensible, scripted):
    llm = scripted("Rex.")
    retriever = SCGRetriever(sensible, similarity_top_k=3)
    best, second, *_ = (found.score for found in retriever.retrieve(QUESTION))
    assert best > second
    engine = RetrieverQueryEngine.from_args(
        retriever,
        llm=llm,
        node_postprocessors=[
            # Only the best is above it.
            SimilarityPostprocessor(similarity_cutoff=(best + second) / 2),
            LongContextReorder(),
        ],
    )
    response = engine.query(QUESTION)
    assert str(response) == "Rex."
    assert "puppy" in llm.text()
    assert ids_of(response.source_nodes) == ["t1"]
    assert str(asyncio.run(engine.aquery(QUESTION))) == "Rex."


@pytest.mark.parametrize("mode", ["reciprocal_rerank", "relative_score", "dist_based_score", "simple"])
def test_fusion_with_bm25_knows_the_same_node_by_its_hash(sensible, nodes, scripted, mode):
    fusion = QueryFusionRetriever(
        [SCGRetriever(sensible), BM25(nodes)],
        llm=scripted(),
        similarity_top_k=10,
        num_queries=1,
        mode=mode,
        use_async=False,
    )
    found = fusion.retrieve("Where does the train to Lyon leave, and what about the puppy?")
    assert len(set(ids_of(found))) == len(found) == 4
    assert set(ids_of(found)[:2]) == {"t1", "t3"}


def test_a_router_and_a_retriever_tool(sensible, scripted):
    llm = scripted('[{"choice": 1, "reason": "pets"}]', "Rex.")
    engine = RetrieverQueryEngine.from_args(SCGRetriever(sensible, similarity_top_k=1), llm=llm)
    tools = [QueryEngineTool.from_defaults(engine, name="pets", description="About pets.")]
    router = RouterQueryEngine(LLMSingleSelector.from_defaults(llm=llm), tools, llm=llm)
    assert str(router.query(QUESTION)) == "Rex."
    tool = RetrieverTool.from_defaults(SCGRetriever(sensible, similarity_top_k=1), description="Recalls.")
    assert "puppy" in str(tool.call(QUESTION))
    assert "puppy" in str(asyncio.run(tool.acall(QUESTION)))


def test_unsupported_filters_raise_instead_of_being_ignored(retriever):
    text = MetadataFilters(filters=[MetadataFilter(key="a", value="b", operator=FilterOperator.TEXT_MATCH)])
    for condition in (text, MetadataFilters(filters=[text]), {"a": 1}):
        retriever.filters = condition
        with pytest.raises(UnsupportedError):
            retriever.retrieve(QUESTION)
    with pytest.raises(UnsupportedError, match="fetch_k"):
        SCGIndex(memory=retriever.memory).as_retriever(fetch_k=3)


def test_a_filtered_out_node_never_comes_back_not_even_with_score_0(retriever):
    retriever.similarity_top_k = 10
    retriever.filters = MetadataFilters(filters=[MetadataFilter(key="speaker", value="Ben")])
    assert set(ids_of(retriever.retrieve(QUESTION))) == {"t2", "t3"}
    retriever.filters = MetadataFilters(filters=[MetadataFilter(key="speaker", value="Nobody")])
    assert retriever.retrieve(QUESTION) == []
