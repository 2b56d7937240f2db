"""A snapshot is the namespace as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.recall import Snapshot
from shared_core.store import ORIGINS, ConceptLink, EntryWrite, Store

NAME = ("mira",)
KEYS = ["paint", "painted", "paints", "cedar canoe", "canoe", "小狗", "🥕", "bees"]
texts = st.sampled_from(["I painted it", "The canoe?", "小狗叫了", "🥕🥕", "bees and a canoe", "...", "Bees!"])
links = st.lists(
    st.builds(
        ConceptLink,
        st.sampled_from(KEYS),
        st.sampled_from(["One", "Other"]),
        st.sampled_from([0.25, 1.0]),
        st.sampled_from(["said", "generated", "inferred"]),
    ),
    max_size=5,
    unique_by=lambda link: link.key,
)
writes = st.builds(
    EntryWrite,
    st.builds(
        MemoryEntry,
        texts,
        st.sampled_from("abcdefgh"),
        st.sampled_from([None, "Mira", "Tobi", ""]),
        st.sampled_from([None, "1", "2"]),
    ),
    links.map(tuple),
)
steps = st.one_of(
    st.tuples(st.just("write"), st.lists(writes, min_size=1, max_size=4)),
    st.tuples(st.just("forget"), st.lists(st.sampled_from("abcdefgh"), max_size=3)),
)


@pytest.fixture(scope="module")
def shared_store():
    """For the many examples of one property; each starts by emptying it."""
    with Store.open(":memory:") as store:
        yield store


@given(st.lists(steps, max_size=6))
def test_it_holds_what_the_store_holds(shared_store, history):
    shared_store.clear(NAME)
    for kind, value in history:
        shared_store.write(NAME, value) if kind == "write" else shared_store.forget(NAME, ids=value)
    snapshot = Snapshot.build(shared_store.load(NAME))
    with shared_store.scan(NAME) as (count, scanned):
        stored = list(scanned)
    assert [one.entry for one in snapshot.entries] == [write.entry for write in stored]
    assert snapshot.graph.entry_count == len(snapshot.episodes.sessions) == count
    expected = {(write.id, link.key): (link.weight, link.origin) for write in stored for link in write.links}
    found = {}
    for concept, key in enumerate(snapshot.keys):
        members, weights = snapshot.graph.by_concept.row(concept)
        origins = snapshot.origin[snapshot.graph.by_concept.starts[concept] :][: len(members)]
        for member, weight, origin in zip(members, weights, origins, strict=True):
            found[snapshot.entries[member].entry.id, key] = (float(weight), ORIGINS[origin])
    assert found == expected
    assert set(snapshot.keys) == {key for _, key in expected}
    assert set(snapshot.speakers) == {write.entry.speaker for write in stored} - {None, ""}


def test_spellings_of_one_word_are_as_rare_as_the_word():
    with Store.open(":memory:") as store:
        for number, key in enumerate(("paint", "painted", "paints", "canoe")):
            said = ConceptLink(key, key, 1.0, "said")
            store.write(NAME, [EntryWrite(MemoryEntry(key, str(number)), (said,))])
        snapshot = Snapshot.build(store.load(NAME))
    rarity = dict(zip(snapshot.keys, snapshot.rarity.tolist(), strict=True))
    assert rarity["paint"] == rarity["painted"] == rarity["paints"] < rarity["canoe"]
    # The graph keeps the paper's weights, where every spelling counts for itself (Eq. 10).
    assert len(set(snapshot.graph.idf.tolist())) == 1


def test_an_empty_namespace_has_an_empty_snapshot():
    with Store.open(":memory:") as store:
        snapshot = Snapshot.build(store.load(NAME))
    assert (list(snapshot.entries), list(snapshot.keys), list(snapshot.speakers)) == ([], [], [])
    assert snapshot.mentions.find("bees") == []
    assert snapshot.lexical.scores("bees").shape == (0,)


def test_turns_without_a_session_stand_alone_and_the_others_in_order():
    turns = [("Bees?", "2"), ("Yes", None), ("In the shed", "2"), ("No", None), ("Where?", "1")]
    with Store.open(":memory:") as store:
        store.write(NAME, [EntryWrite(MemoryEntry(text, text, session=session)) for text, session in turns])
        episodes = Snapshot.build(store.load(NAME)).episodes
    assert len(set(episodes.sessions.tolist())) == 4
    assert episodes.sessions[0] == episodes.sessions[2]
    places = episodes.sequence.tolist()
    assert places.index(2) == places.index(0) + 1
    assert episodes.asks.tolist() == [True, False, False, False, True]
