"""One namespace never sees another's entries, keys, scores or counts, whatever the names look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.store import ConceptLink, EntryWrite, KeyScores, Store
from tests.shared_core.store.conftest import FEW

ADVERSARIAL = [
    ("a",),
    ("A",),
    ("a", "b"),
    ("b", "a"),
    ("ab",),
    ("a/b",),
    ("a,b",),
    ("a.b",),
    ("a:b",),
    ('a","b',),
    ('["a","b"]',),
    ("a\\", "b"),
    ("a\\", '"b'),
    ("a ",),
    (" a",),
    ("a\n",),
    ("a", "a"),
    ("a", "b", "c"),
    ("a", "b/c"),
    ("a/b", "c"),
    ("%",),
    ("_",),
    ("*",),
    ("1",),
    ("0",),
    ("null",),
    ("'; DELETE FROM entries; --",),
    ("\u00e9",),
    ("e\u0301",),
    ("\uff41",),
    ("\u200ba",),
    ("x" * 1024,),
    ("x" * 1023, "x"),
]


def sizes(erased):
    return erased.entries, erased.concepts, erased.links


def fill(store, name, mark):
    said = ConceptLink("shared key", f"Shared {mark}", 1.0, "said")
    own = ConceptLink(f"key {mark}", f"key {mark}", 1.0, "generated")
    entries = [
        EntryWrite(MemoryEntry(f"text {mark}", id="same id"), (own, said), assimilated=False),
        EntryWrite(MemoryEntry("the same text", id=f"id {mark}"), (said,)),
    ]
    store.write(name, entries)
    scores = KeyScores(np.array([mark], dtype=np.int32))
    store.save_scores(name, "tiny", {"shared key": scores, f"key {mark}": scores})


def check(store, name, mark):
    state = store.load(name, "tiny")
    assert [(stored.seq, stored.entry.id, stored.entry.text) for stored in state.entries] == [
        (0, "same id", f"text {mark}"),
        (1, f"id {mark}", "the same text"),
    ]
    assert state.concepts == [(f"key {mark}", f"key {mark}"), ("shared key", f"Shared {mark}")]
    assert len(state.link_entry) == 3
    scores = {key: scores.token_ids.tolist() for key, scores in state.scores.items()}
    assert scores == {"shared key": [mark], f"key {mark}": [mark]}
    others = [f"id {n}" for n in range(len(ADVERSARIAL)) if n != mark]
    assert store.get(name, others) == []
    assert store.known(name, others) == {}
    same_text = MemoryEntry("the same text").digest
    assert store.find_duplicates(name, [same_text]) == {same_text: f"id {mark}"}


def test_names_that_look_alike_are_apart():
    with Store.open(":memory:") as store:
        for mark, name in enumerate(ADVERSARIAL):
            fill(store, name, mark)
        assert [(info.name, info.entries, info.concepts) for info in store.namespaces()] == [
            (name, 2, 2) for name in ADVERSARIAL
        ]
        for mark, name in enumerate(ADVERSARIAL):
            check(store, name, mark)


def test_removing_one_leaves_every_other():
    with Store.open(":memory:") as store:
        for mark, name in enumerate(ADVERSARIAL):
            fill(store, name, mark)
        left = dict(enumerate(ADVERSARIAL))
        for mark, name in enumerate(ADVERSARIAL):
            generations = {other: store.generation(left[other]) for other in left if other != mark}
            if mark % 3 == 0:
                assert sizes(store.clear(name)) == (2, 2, 3)
            elif mark % 3 == 1:
                assert sizes(store.forget(name, ids=["same id", f"id {mark}", "id 0"])) == (2, 2, 3)
            else:
                store.write(name, [EntryWrite(MemoryEntry("new", id="same id"))])
                store.assimilate(name, {f"id {mark}": [ConceptLink("key 0", "key 0", 1.0, "inferred")]})
            del left[mark]
            assert {other: store.generation(left[other]) for other in left} == generations
        for mark, name in left.items():
            check(store, name, mark)


NAMES = st.lists(
    st.text(st.sampled_from('ab/",\\[] \u00e9'), min_size=1).filter(str.strip), min_size=1, max_size=3
).map(tuple)


@given(names=st.sets(NAMES, min_size=2, max_size=6))
def test_random_names_are_apart(memory_store, names):
    check_apart(memory_store, names)


@FEW
@given(names=st.sets(NAMES, min_size=2, max_size=4))
def test_random_names_on_a_server_are_apart(server_store, names):
    check_apart(server_store, names)


def check_apart(store, names):
    for info in store.namespaces():
        store.clear(info.name)
    for mark, name in enumerate(sorted(names)):
        fill(store, name, mark)
    for mark, name in enumerate(sorted(names)):
        check(store, name, mark)
    assert {info.name for info in store.namespaces()} == names


@pytest.mark.parametrize("name", [(), ("",), ("a", " "), ("a", 1), ("\x00",), ("\ud800",), ("x" * 1025,)])
def test_names_that_are_none_are_refused(store, name):
    for call in (
        lambda: store.write(name, [EntryWrite(MemoryEntry("text", id="1"))]),
        lambda: store.load(name),
        lambda: store.clear(name),
        lambda: store.forget(name, ids=["1"]),
        lambda: store.generation(name),
    ):
        with pytest.raises(InvalidInputError):
            call()
    assert store.namespaces() == []
