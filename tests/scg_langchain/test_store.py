"""The LangGraph store: whole values, any names, what is searchable, time to live, and a graph that uses it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from scg_langchain import SCGStore
from scg_langchain import store as store_module
from shared_core import SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError, StoreError

QUICK = SCGConfig(assimilate=0)
WORDS = SCGConfig(assimilate=0, generation_weight=0, hops=0)  # recalls what a query names, and nothing else

texts = st.text(st.characters(), max_size=8)  # surrogates and NUL included
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def modelless():
    return SCGStore(SchemaMemory.open(":memory:", model="/nowhere", config=QUICK))


@pytest.fixture
def memory(open_memory):
    return open_memory()


@pytest.fixture
def kept(open_memory):
    """A memory in a file."""
    return open_memory("memory.db")


@pytest.fixture
def store(memory):
    return SCGStore(memory)


@pytest.fixture
def clock(monkeypatch):
    """Sets the store's clock ahead by minutes."""

    def ahead(minutes):
        monkeypatch.setattr(store_module, "_now", lambda: datetime.now(UTC) + timedelta(minutes=minutes))

    return ahead


def keys_of(items):
    return [item.key for item in items]


@settings(max_examples=50)
@given(st.lists(texts, min_size=1, max_size=3).map(tuple), texts, st.dictionaries(texts, json_values, max_size=4))
def test_any_value_under_any_name_comes_back_whole(namespace, key, value):
    store = modelless()
    other = (*namespace, "other")
    store.batch([PutOp(namespace, key, value), PutOp(other, key, {})])
    [item, searched, listed] = store.batch([GetOp(namespace, key), SearchOp(namespace), ListNamespacesOp(max_depth=9)])
    assert (item.namespace, item.key) == (namespace, key)
    assert json.dumps(item.value) == json.dumps(value)  # 1, 1.0 and true are three values
    assert [one.namespace for one in searched] == [namespace, other]
    assert set(listed) == {namespace, other}


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(texts, min_size=1, max_size=3).map(tuple), texts), unique=True, max_size=8))
def test_different_names_are_different_items(names):
    store = modelless()
    store.batch([PutOp(namespace, key, {"n": place}) for place, (namespace, key) in enumerate(names)])
    got = store.batch([GetOp(namespace, key) for namespace, key in names])
    assert [item.value["n"] for item in got] == list(range(len(names)))


def test_a_deep_value_comes_back_whole(store):
    deep = {"n": 0}
    for _ in range(150):
        deep = {"deeper": [deep]}
    store.put(("a",), "1", deep)
    assert store.get(("a",), "1").value == deep


@pytest.mark.parametrize(
    "value", [{"a": {1, 2}}, {"a": float("nan")}, {"a": {1: 2}}, {1: 2}, ["a"], {"a": datetime.now(UTC)}, "text"]
)
def test_what_json_cannot_carry_is_refused_and_nothing_is_stored(store, value):
    with pytest.raises(InvalidInputError):
        store.batch([PutOp(("a",), "1", {"fine": 1}), PutOp(("a",), "2", value)])
    assert store.search(()) == []


def test_a_value_that_was_handed_out_is_the_callers(store):
    store.put(("a",), "1", {"list": [1]})
    store.get(("a",), "1").value["list"].append(2)
    assert store.get(("a",), "1").value == {"list": [1]}


def test_items_survive_the_process(open_memory):
    with open_memory("memory.db") as memory:
        SCGStore(memory).put(("users", "anna"), "pet", {"text": "a puppy"})
        SCGStore(memory).put(("users", "anna"), "note", {"text": "tea"}, index=False)
    store = SCGStore(open_memory("memory.db"))
    assert keys_of(store.search(("users",))) == ["pet", "note"]
    assert keys_of(store.search(("users",), query="a puppy and tea")) == ["pet"]


def test_putting_again_keeps_when_an_item_was_made(store):
    store.put(("a",), "1", {"n": 1})
    first = store.get(("a",), "1")
    store.put(("a",), "1", {"n": 2})
    second = store.get(("a",), "1")
    assert second.created_at == first.created_at == first.updated_at < second.updated_at
    store.delete(("a",), "1")
    store.put(("a",), "1", {"n": 3})
    assert store.get(("a",), "1").created_at > second.created_at


def test_the_memory_of_the_file_itself_stays_apart(memory, store):
    memory.remember("I adopted a puppy", id="1")
    store.put(("default",), "1", {"text": "a canoe"})
    assert [one.entry.id for one in memory.recall("puppy or canoe").entries] == ["1"]
    assert [item.value for item in store.search((), query="puppy or canoe")] == [{"text": "a canoe"}]
    assert store.list_namespaces() == [("default",)]
    memory.clear()
    assert keys_of(store.search(())) == ["1"]


def test_two_stores_of_one_file_see_the_same_unless_their_memories_differ(memory):
    store, twin, other = SCGStore(memory), SCGStore(memory), SCGStore(memory.in_namespace("other"))
    store.put(("a",), "1", {"text": "a puppy"})
    assert keys_of(twin.search((), query="puppy")) == ["1"]
    assert other.search(()) == []


def test_a_query_finds_what_belongs_to_it_under_the_prefix(open_memory, model):
    store = SCGStore(open_memory(model=model))
    store.put(("users", "anna"), "pet", {"text": "I adopted a puppy named Rex from the shelter!", "kind": "fact"})
    store.put(("users", "anna"), "train", {"text": "My train to Lyon leaves at seven on Monday.", "kind": "plan"})
    store.put(("users", "ben"), "pet", {"text": "My dog is called Rex, too", "kind": "fact"})
    found = store.search(("users", "anna"), query="What pet did she get?", limit=1)
    assert keys_of(found) == ["pet"]
    assert found[0].score > 0
    assert "Rex" in found[0].value["text"]
    both = store.search(("users",), query="Whose puppy or dog is Rex?", limit=5)
    assert {item.namespace for item in both[:2]} == {("users", "anna"), ("users", "ben")}
    assert [item.score for item in both] == sorted((item.score for item in both), reverse=True)


def test_a_query_obeys_filter_limit_and_offset(store):
    for number in range(12):
        store.put(("a", str(number % 2)), str(number), {"text": f"the puppy number {number}", "n": number})
    whole = store.search(("a",), query="puppy", limit=99)
    assert sorted(keys_of(whole), key=int) == [str(number) for number in range(12)]
    pages = [store.search(("a",), query="puppy", limit=5, offset=start) for start in (0, 5, 10, 15)]
    assert [item for page in pages for item in page] == whole
    assert store.search(("a",), query="puppy", limit=0) == []
    small = store.search(("a",), query="puppy", filter={"n": {"$lt": 3}}, limit=2)
    assert small == [item for item in whole if item.value["n"] < 3][:2]


def test_a_query_returns_a_part_of_what_the_reference_returns(store):
    reference = InMemoryStore(index={"dims": 1, "embed": lambda texts: [[1.0] for _ in texts], "fields": ["text"]})
    for one in (store, reference):
        one.put(("a",), "1", {"text": "a puppy", "n": 1})
        one.put(("a",), "2", {"text": "two puppies", "n": 2})
        one.put(("a",), "3", {"text": "a canoe", "n": 1})
        one.put(("b",), "1", {"text": "a puppy", "n": 1})
    for options in ({}, {"filter": {"n": 1}}, {"filter": {"n": {"$ne": 1}}}):
        found = {item.value["text"] for item in store.search(("a",), query="puppy", **options)}
        assert found <= {item.value["text"] for item in reference.search(("a",), query="puppy", **options)}
        assert found


def test_only_the_named_fields_are_searchable(open_memory):
    store = SCGStore(open_memory("memory.db", config=WORDS), index={"fields": ["title", "notes[*].text"]})
    value = {"title": "puppy", "notes": [{"text": "kite"}, {"text": "boat", "by": "Oskar"}], "body": "violin"}
    store.put(("a",), "1", value)
    store.put(("a",), "2", value, index=["body"])
    store.put(("a",), "3", value, index=False)
    store.put(("a",), "4", {"body": "kite"})
    assert keys_of(store.search(("a",))) == ["1", "2", "3", "4"]
    for query, found in {"puppy": ["1"], "kite": ["1"], "boat": ["1"], "Oskar": [], "violin": ["2"]}.items():
        assert keys_of(store.search(("a",), query=query)) == found, query


def test_without_settings_the_whole_value_is_searchable(open_memory):
    store = SCGStore(open_memory("memory.db", config=WORDS))
    store.put(("a",), "1", {"profile": {"favourite colour": "teal", "ages": [41, None, True]}})
    for query in ("teal", "Which favourite colour?", "profile"):
        assert keys_of(store.search(("a",), query=query)) == ["1"], query


def test_an_item_that_is_no_longer_searchable_is_not_found(open_memory):
    store = SCGStore(open_memory("memory.db", config=WORDS))
    store.put(("a",), "1", {"text": "a puppy"})
    store.put(("a",), "1", {"text": "a puppy"}, index=False)
    assert store.search(("a",), query="puppy") == []
    assert keys_of(store.search(("a",))) == ["1"]
    store.put(("a",), "1", {"text": "a canoe"})
    assert store.search(("a",), query="puppy") == []
    assert keys_of(store.search(("a",), query="canoe")) == ["1"]


def test_no_item_without_searchable_text_needs_the_model():
    store = SCGStore(SchemaMemory.open(":memory:", model="/nowhere"))
    store.put(("a",), "1", {"text": "a puppy"}, index=False)
    store.put(("a",), "2", {})
    assert keys_of(store.search(())) == ["1", "2"]
    store.delete(("a",), "1")
    assert store.list_namespaces() == [("a",)]


def test_deleted_text_is_gone_from_the_file(kept):
    store = SCGStore(kept)
    store.put(("a",), "1", {"text": "the pelican's secret"}, index=["text"])
    store.put(("a",), "2", {"text": "the pangolin's secret"}, index=False)
    assert b"pelican" in written(kept)
    store.delete(("a",), "1")
    store.put(("a",), "2", {"text": "nothing"})
    assert b"pelican" not in written(kept)
    assert b"pangolin" not in written(kept)


def written(memory):
    path = memory.store.path
    return b"".join(part.read_bytes() for part in path.parent.iterdir() if part.name.startswith(path.name))


def test_items_expire_after_they_were_last_put_or_read(memory, clock):
    store = SCGStore(memory, ttl={"default_ttl": 10, "omit_expired": True})
    store.put(("a",), "default", {"text": "a puppy"})
    store.put(("b",), "for ever", {"text": "a puppy"}, ttl=None)
    store.put(("a",), "longer", {"text": "a puppy"}, ttl=20)
    clock(9)
    assert store.get(("a",), "default", refresh_ttl=False) is not None
    clock(11)
    assert store.get(("a",), "default") is None
    assert keys_of(store.search((), refresh_ttl=False)) == ["longer", "for ever"]
    assert sorted(keys_of(store.search((), query="puppy"))) == ["for ever", "longer"]  # refreshes
    clock(30)
    assert keys_of(store.search((), filter={"text": "a puppy"}, refresh_ttl=False)) == ["longer", "for ever"]
    clock(32)
    assert keys_of(store.search((), query="puppy")) == ["for ever"]
    assert store.list_namespaces() == [("b",)]


@pytest.mark.parametrize("read", ["get", "search", "query"])
@pytest.mark.parametrize("refresh", [True, False])
def test_a_read_makes_an_item_live_longer_if_it_shall(memory, clock, read, refresh):
    store = SCGStore(memory, ttl={"refresh_on_read": refresh, "omit_expired": True})
    store.put(("a",), "1", {"text": "a puppy"}, ttl=10)
    clock(6)
    if read == "get":
        store.get(("a",), "1")
    else:
        store.search(("a",), query="puppy" if read == "query" else None)
    clock(12)
    assert (store.get(("a",), "1", refresh_ttl=False) is not None) == refresh


async def test_a_sweep_erases_what_expired_and_nothing_else(kept, clock):
    store = SCGStore(kept)
    for name, ttl in (("a", 10), ("b", 10), ("c", 30), ("d", None)):
        store.put(("x", name), "1", {"text": f"the puppy of {name}"}, ttl=ttl)
    clock(8)
    store.get(("x", "b"), "1")
    clock(12)
    assert keys_of(store.search(())) == ["1"] * 4  # expired items are served until they are swept
    clock(12)
    store.put(("x", "a"), "1", {"text": "the puppy of a"}, ttl=0.001)
    clock(60)
    assert await store.asweep_ttl() == 3
    assert store.list_namespaces() == [("x", "d")]
    assert store.sweep_ttl() == 0
    assert b"puppy of b" not in written(kept)


def test_the_sweeper_runs_until_it_is_stopped(memory, clock):
    store = SCGStore(memory, ttl={"sweep_interval_minutes": 60, "default_ttl": 1})
    store.put(("a",), "1", {})
    clock(2)
    store.start_ttl_sweeper()
    store.start_ttl_sweeper(0.0005)
    while store.search((), refresh_ttl=False):
        pass
    store.stop_ttl_sweeper()
    store.stop_ttl_sweeper()
    with pytest.raises(InvalidInputError, match="how often"):
        SCGStore(memory).start_ttl_sweeper()


@pytest.mark.parametrize(
    "options",
    [
        {"index": {"dims": 3, "embed": None}},
        {"index": {"fields": []}},
        {"index": {"fields": "text"}},
        {"index": {"fields": [1]}},
        {"ttl": {"default": 3}},
        {"ttl": {"default_ttl": -1}},
        {"ttl": {"sweep_interval_minutes": 0}},
    ],
)
def test_settings_that_mean_nothing_are_refused(memory, options):
    with pytest.raises(InvalidInputError):
        SCGStore(memory, **options)


@pytest.mark.parametrize(
    "op",
    [
        PutOp((), "1", {}),
        PutOp(("a", 1), "1", {}),
        PutOp("a", "1", {}),
        PutOp(("a",), 1, {}),
        PutOp(("a",), "1", {}, index="text"),
        PutOp(("a",), "1", {}, index=True),
        PutOp(("a",), "1", {}, ttl=0),
        GetOp(("a",), None),
        SearchOp(("a",), limit=-1),
        SearchOp(("a",), offset=True),
        SearchOp(("a",), query=3),
        SearchOp(("a",), filter=["text"]),
        SearchOp(("a",), filter={"n": {"$in": [1]}}),
        SearchOp(("a",), filter={"n": {"$gt": "much"}}),
        SearchOp(("a",), filter={"n": {"$gt": 1, "m": 2}}),
        SearchOp(("a",), filter={"n": [{"$regex": "x"}]}),
        SearchOp(("a",), filter={1: 2}),
        SearchOp(("a",), filter={"$or": [{"n": 1}, {"n": 2}]}),
        SearchOp(("a",), filter={"$gt": 1}),
        ListNamespacesOp(limit=-1),
        ListNamespacesOp(max_depth=-1),
        ListNamespacesOp((MatchCondition("infix", ("a",)),)),
        "get",
    ],
)
def test_operations_that_cannot_be_carried_out_are_refused_and_none_is(store, op):
    with pytest.raises(InvalidInputError):
        store.batch([PutOp(("a",), "0", {}), op])
    assert store.search(()) == []


def test_a_closed_memory_is_said_to_be_closed(memory, store):
    memory.close()
    with pytest.raises(StoreError, match="closed"):
        store.get(("a",), "1")


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_graph_remembers_in_the_store_with_the_embedded_model(open_memory, model, asynchronous):
    def node(state: MessagesState, runtime: Runtime):
        text = str(state["messages"][-1].text)
        found = runtime.store.search(("notes", "anna"), query=text, limit=1)
        runtime.store.put(("notes", "anna"), state["messages"][-1].id, {"text": text})
        return {"messages": [("assistant", found[0].value["text"] if found else "nothing")]}

    async def anode(state: MessagesState, runtime: Runtime):
        text = str(state["messages"][-1].text)
        found = await runtime.store.asearch(("notes", "anna"), query=text, limit=1)
        await runtime.store.aput(("notes", "anna"), state["messages"][-1].id, {"text": text})
        return {"messages": [("assistant", found[0].value["text"] if found else "nothing")]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", anode if asynchronous else node)
    graph.add_edge(START, "node")
    compiled = graph.compile(store=SCGStore(open_memory(model=model)))
    said = [
        "I adopted a puppy named Rex from the shelter!",
        "My train to Lyon leaves at seven on Monday.",
        "What pet did she get?",
    ]
    answers = []
    for text in said:
        question = {"messages": [("user", text)]}
        result = await compiled.ainvoke(question) if asynchronous else compiled.invoke(question)
        answers.append(str(result["messages"][-1].text))
    assert answers[0] == "nothing"
    assert answers[2] == said[0]
