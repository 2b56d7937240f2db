"""A schema that follows its memory is the schema made anew, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import ConceptDecoder, FollowedSchema, KeyVoice, SpokenSchema, trie_keys
from shared_core.entry import MemoryEntry
from shared_core.store import ConceptLink, EntryWrite, KeyScores, NamespaceState, Store
from tests.conftest import HEAVY

WORDS = ["canoe", "cedar", "cedar canoe", "mill", "old mill", "plum jam", "violin", "violin strings", "\U00040000 odd"]
ANNA = ("anna",)


@pytest.fixture(scope="module")
def decoder(tiny) -> ConceptDecoder:
    return ConceptDecoder(tiny("llama"))


def write(store: Store, id: str, keys: list[str]) -> None:
    links = tuple(ConceptLink(key, key.title(), 1.0, "said") for key in dict.fromkeys(keys))
    store.write(ANNA, [EntryWrite(MemoryEntry(f"entry {id}", id), links)])


def weigh(store: Store, voice: KeyVoice, keys: list[str]) -> None:
    # By the one voice of a process: another could weigh a key again, in other company, which rounds differently.
    for group in voice.weigh(keys):
        store.save_scores(
            ANNA,
            voice.decoder.fingerprint,
            {key: KeyScores(np.array(tokens, dtype=np.int32), scores) for key, (tokens, scores) in group.items()},
        )


def assert_same(one: SpokenSchema, other: SpokenSchema) -> None:
    assert list(one.trie) == list(other.trie)
    np.testing.assert_array_equal(one.concept, other.concept)
    np.testing.assert_array_equal(one.known, other.known)
    np.testing.assert_array_equal(one.prior.total, other.prior.total)
    for nodes, *_ in one.trie.levels():
        there = [other.trie.walk(one.trie.path(node)) for node in nodes.tolist()]
        np.testing.assert_array_equal(one.prior.prefix[nodes], other.prior.prefix[there])
        np.testing.assert_array_equal(one.prior.best[nodes], other.prior.best[there])


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["write", "write", "weigh", "forget", "clear"]),
        st.integers(0, 5),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)


@pytest.mark.parametrize("score", ["base", "schema"])
@HEAVY
@given(changes=CHANGES)
def test_following_equals_starting_anew(decoder, score, changes):
    voice = KeyVoice(decoder)
    with Store.open(":memory:") as store:
        followed = FollowedSchema(store, ANNA, lambda: voice, score)
        state = store.load(ANNA)
        for what, number, keys, look in changes:
            if what == "write":
                write(store, f"e{number}", keys)
            elif what == "weigh":
                weigh(store, voice, keys)
            elif what == "forget":
                store.forget(ANNA, ids=[f"e{number}"])
            else:
                store.clear(ANNA)
            if not look:
                continue
            state = later(store, state)
            assert_same(followed.current(state), FollowedSchema(store, ANNA, lambda: voice, score).current(state))


def later(store: Store, state: NamespaceState) -> NamespaceState:
    change = store.changes(ANNA, state)
    return store.load(ANNA) if change is None else state.after(change)


def test_what_is_stored_is_not_spelled_again(decoder, monkeypatch):
    with Store.open(":memory:") as store:
        write(store, "one", WORDS[:4])
        weigh(store, KeyVoice(decoder), WORDS[:4])
        state = store.load(ANNA)
        asked: list[str] = []
        encode = decoder.encode_keys
        monkeypatch.setattr(decoder, "encode_keys", lambda keys: asked.extend(keys) or encode(keys))
        voice = KeyVoice(decoder)
        followed = FollowedSchema(store, ANNA, lambda: voice, "base")
        assert followed.current(state).known.all()
        assert asked == []
        write(store, "two", [*WORDS[:4], "gate"])
        schema = followed.current(later(store, state))
        assert asked == ["gate"]
        assert schema.known.tolist() == [True] * 4 + [False]


def test_an_erased_key_is_gone(decoder):
    voice = KeyVoice(decoder)
    with Store.open(":memory:") as store:
        write(store, "one", ["canoe"])
        write(store, "two", ["cedar"])
        followed = FollowedSchema(store, ANNA, lambda: voice, "base")
        assert followed.current(store.load(ANNA)).trie.key_count == 2
        store.forget(ANNA, ids=["one"])
        schema = followed.current(store.load(ANNA))
        assert schema.trie.key_count == 1
        assert schema.concept.tolist() == [0]
        followed.drop()
        assert followed.current(store.load(ANNA)).trie.key_count == 1


def test_keys_of_concepts_leave_out_what_cannot_be_said(decoder):
    schema = KeyVoice(decoder).speak(["canoe", "\U00040000 odd", "cedar"], "base")
    assert schema.concept.tolist() == [0, 2]
    assert trie_keys(schema, np.array([2, 1, 0])).tolist() == [0, 1]
    assert trie_keys(schema, np.array([1])).tolist() == []
    assert trie_keys(schema, np.array([7])).tolist() == []
