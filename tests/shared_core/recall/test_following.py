"""A snapshot that follows changes equals one that is built from nothing, whoever made them."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.recall import FollowedSnapshot, Snapshot
from shared_core.store import ConceptLink, EntryWrite, KeyScores, Store, export_namespace, import_namespace

NAME, OTHER = ("mira",), ("tobi",)
IDS = "abcdefgh"
KEYS = ["paint", "painted", "paints", "cedar canoe", "canoe", "小狗", "🥕", "bees", "the", "old town garden club"]
QUERIES = [*KEYS, "painting a canoe", "Who keeps bees?", "nothing known"]

texts = st.sampled_from(
    ["I painted it", "The canoe?", "小狗叫了", "🥕🥕", "bees and a canoe", "...", "Bees!", "Mira’s"]
)


def links(origins):
    link = st.builds(
        ConceptLink,
        st.sampled_from(KEYS),
        st.sampled_from(["One", "Other"]),
        st.sampled_from([0.25, 1.0]),
        st.sampled_from(origins),
    )
    return st.lists(link, max_size=7, unique_by=lambda link: link.key)


writes = st.builds(
    EntryWrite,
    st.builds(
        MemoryEntry,
        texts,
        st.sampled_from(IDS),
        st.sampled_from([None, "Mira", "Tobi", ""]),
        st.sampled_from([None, "1", "2"]),
    ),
    links(["said", "said", "generated", "inferred"]).map(tuple),
    st.booleans(),
)
additions = st.one_of(
    st.tuples(st.just("add"), st.lists(writes, min_size=1, max_size=3, unique_by=lambda write: write.id)),
    st.tuples(st.just("assimilate"), st.dictionaries(st.sampled_from(IDS), links(["inferred"]), max_size=3)),
    st.tuples(st.just("scores"), st.lists(st.sampled_from(KEYS), max_size=3)),
    st.tuples(st.just("other"), st.lists(writes, min_size=1, max_size=2)),
)
changes = st.one_of(
    additions,
    additions,
    st.tuples(st.just("write"), st.lists(writes, min_size=1, max_size=4)),
    st.tuples(st.just("forget"), st.lists(st.sampled_from(IDS), max_size=2)),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(st.just("import"), st.none()),
)


def take(store, step, export):
    kind, value = step
    if kind == "write":
        store.write(NAME, value)
    elif kind == "add":  # under ids that are not there yet, so that none is an update
        new = f"{store.generation(NAME)}/"
        store.write(NAME, [EntryWrite(one.entry.with_id(new + one.id), one.links, one.assimilated) for one in value])
    elif kind == "assimilate":
        store.assimilate(NAME, value)
    elif kind == "scores":
        store.save_scores(NAME, "tiny", {key: KeyScores(np.zeros(2, np.int32)) for key in value})
    elif kind == "forget":
        store.forget(NAME, ids=value)
    elif kind == "clear":
        store.clear(NAME)
    elif kind == "import":
        import_namespace(store, NAME, export)
    else:
        store.write(OTHER, value)


@pytest.fixture(scope="module")
def stores():
    """Two stores on one file, as two processes have them, and an export; each example starts with it empty."""
    folder = Path(tempfile.mkdtemp())
    exported = [
        EntryWrite(MemoryEntry("Bees?", id="b"), (ConceptLink("bees", "Bees", 1.0, "said"),)),
        EntryWrite(MemoryEntry("A hive", id="z"), (ConceptLink("bees", "bees", 0.5, "inferred"),)),
    ]
    with Store.open(folder / "memory.db") as one, Store.open(folder / "memory.db") as other:
        one.write(("exported",), exported)
        export_namespace(one, ("exported",), folder / "export.jsonl")
        yield one, other, folder / "export.jsonl"
    shutil.rmtree(folder)


@given(st.lists(st.lists(st.tuples(st.booleans(), changes), min_size=1, max_size=3), max_size=5))
def test_following_equals_building(stores, rounds):
    one, other, export = stores
    one.clear(NAME)
    followed = FollowedSnapshot(one, NAME)
    seen = followed.current()
    before = contents(seen)
    for several in rounds:
        for by_other, step in several:
            take(other if by_other else one, step, export)
        assert_equal(followed.current(), Snapshot.build(one.load(NAME)))
        assert contents(seen) == before  # a recall may still run on it
        seen = followed.current()
        before = contents(seen)


@given(st.lists(writes, max_size=6), st.lists(additions, max_size=4))
def test_without_an_erasure_only_what_was_added_is_read(stores, first, more):
    store, _, export = stores
    store.clear(NAME)
    store.write(NAME, [EntryWrite(MemoryEntry("first", id="first")), *first])
    state = store.load(NAME)
    for step in more:
        take(store, step, export)
    change, now = store.changes(NAME, state), store.load(NAME)
    assert change is not None
    changed = [one for one in now.entries if one not in state.entries]
    assert [one for one in change.entries if one in changed] == changed
    assert len(change.link_entry) == len(now.link_entry) - len(state.link_entry)
    assert list(change.concepts) == now.concepts[len(state.concepts) :]
    after = state.after(change)
    for field in ("entries", "concepts", "generation"):
        assert getattr(after, field) == getattr(now, field)
    for field in ("concept_number", "link_entry", "link_concept", "link_weight", "link_origin"):
        np.testing.assert_array_equal(getattr(after, field), getattr(now, field))
        assert getattr(after, field).dtype == getattr(now, field).dtype


def test_an_update_and_a_forgetting_are_read_anew_and_leave_nothing(stores):
    store, other, _ = stores
    store.clear(NAME)
    followed = FollowedSnapshot(store, NAME)
    said = ConceptLink("bees", "Bees", 1.0, "said")
    store.write(NAME, [EntryWrite(MemoryEntry("A swarm", id="a"), (said,)), EntryWrite(MemoryEntry("A hive", id="b"))])
    state = followed.current().state
    other.write(NAME, [EntryWrite(MemoryEntry("A flood", id="a"))])
    assert store.changes(NAME, state) is None
    assert "bees" not in followed.current().keys
    assert "swarm" not in followed.current().lexical.postings.vocabulary
    state = followed.current().state
    other.forget(NAME, ids=["a"])
    assert store.changes(NAME, state) is None
    assert "flood" not in followed.current().lexical.postings.vocabulary


def test_what_did_not_change_is_not_made_again(stores):
    store, other, _ = stores
    store.clear(NAME)
    followed = FollowedSnapshot(store, NAME)
    other.write(NAME, [EntryWrite(MemoryEntry("A hive", id="b"))])
    snapshot = followed.current()
    other.write(OTHER, [EntryWrite(MemoryEntry("A hive", id="c"))])
    assert followed.current() is snapshot
    followed.drop()
    assert followed.current() is not snapshot


def contents(snapshot):
    """All that a recall may read."""
    return repr(described(snapshot))


def described(snapshot):
    lexical, mentions = (
        {
            stem: [postings.documents[places].tolist(), postings.counts[places].tolist()]
            for stem in sorted(postings.vocabulary)
            if len(places := postings.places(postings.known([stem])))
        }
        for postings in (snapshot.lexical.postings, snapshot.mentions.postings)
    )
    incidences = (snapshot.graph.by_concept, snapshot.graph.by_entry, snapshot.evidence)
    return {
        "generation": snapshot.generation,
        "entries": list(snapshot.entries),
        "keys": list(snapshot.keys),
        "surfaces": list(snapshot.surfaces),
        "speakers": list(snapshot.speakers),
        "incidences": [[one.starts.tolist(), one.members.tolist(), one.weights.tolist()] for one in incidences],
        "graph": [snapshot.graph.frequency.tolist(), snapshot.graph.idf.tolist(), snapshot.graph.entry_count],
        "origin": snapshot.origin.tolist(),
        "commonness": snapshot.commonness.tolist(),
        "rarity": snapshot.rarity.tolist(),
        "families": snapshot.mentions.families.of.tolist(),
        "mentions": [mentions, snapshot.mentions.postings.lengths.tolist()],
        "lexical": [lexical, snapshot.lexical.postings.lengths.tolist()],
        "episodes": [
            getattr(snapshot.episodes, field).tolist() for field in ("sessions", "speakers", "asks", "sequence")
        ],
        "found": [[snapshot.mentions.find(query), snapshot.lexical.scores(query).tolist()] for query in QUERIES],
    }


def assert_equal(one, other):
    assert described(one) == described(other)
    for field in ("origin", "commonness", "rarity"):
        assert getattr(one, field).dtype == getattr(other, field).dtype
    for field in ("starts", "members", "weights"):
        assert getattr(one.graph.by_concept, field).dtype == getattr(other.graph.by_concept, field).dtype
