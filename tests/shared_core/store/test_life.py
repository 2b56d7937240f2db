"""The store against a model in plain Python, over random histories of two namespaces."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shared_core.entry import MemoryEntry
from shared_core.store import ORIGINS, ConceptLink, EntryWrite, Erased, KeyScores, Store

NAMESPACES = st.sampled_from([("anna",), ("anna", "work")])
IDS = st.sampled_from("abcde")
KEYS = ("puppy", "kitchen", "red car", "lake")
LINKS = st.lists(
    st.builds(
        lambda key, shape, weight, origin: ConceptLink(key, shape(key), weight, origin),
        st.sampled_from(KEYS),
        st.sampled_from([str, str.upper, str.title]),
        st.sampled_from([0.25, 1.0]),
        st.sampled_from(ORIGINS),
    ),
    max_size=4,
    unique_by=lambda link: link.key,
).map(tuple)
WRITES = st.lists(
    st.builds(
        lambda id, text, links, assimilated: EntryWrite(MemoryEntry(text, id=id), links, assimilated),
        IDS,
        st.sampled_from(["one", "two", "three"]),
        LINKS,
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


def counts(erased):
    return erased.entries, erased.concepts, erased.links


@dataclass
class Held:
    seq: int
    entry: MemoryEntry
    links: dict[str, ConceptLink]
    assimilated: bool


@dataclass
class Model:
    """One namespace, by the rules and nothing else."""

    held: dict[str, Held] = field(default_factory=dict)
    scores: dict[str, list[int]] = field(default_factory=dict)
    next_seq: int = 0

    def write(self, writes):
        added = updated = unchanged = 0
        for write in writes:
            old = self.held.get(write.id)
            links = {link.key: link for link in write.links}
            if old is None:
                added += 1
                self.held[write.id] = Held(self.next_seq, write.entry, links, write.assimilated)
                self.next_seq += 1
            elif old.entry == write.entry:
                unchanged += 1
            else:
                updated += 1
                self.held[write.id] = Held(old.seq, write.entry, links, write.assimilated)
        self.prune()
        return added, updated, unchanged

    def surfaces(self):
        found = {}
        for held in sorted(self.held.values(), key=lambda held: held.seq):
            for key, link in held.links.items():
                if link.origin != "inferred":
                    found.setdefault(key, link.surface)
        return found

    def prune(self):
        alive = self.surfaces()
        for held in self.held.values():
            held.links = {key: link for key, link in held.links.items() if key in alive}
        self.scores = {key: ids for key, ids in self.scores.items() if key in alive}

    def size(self):
        return len(self.held), len(self.surfaces()), sum(len(held.links) for held in self.held.values())


class Histories(RuleBasedStateMachine):
    location = ":memory:"
    wiped = True

    def __init__(self):
        super().__init__()
        self.store = Store.open(self.location)
        self.models = {}
        self.generations = {}
        self.seen = {0}

    def model(self, namespace):
        return self.models.setdefault(namespace, Model())

    def changed(self, namespace):
        """Every change shows a generation that was never shown before."""
        generation = self.store.generation(namespace)
        assert generation not in self.seen
        self.seen.add(generation)
        self.generations[namespace] = generation

    @rule(namespace=NAMESPACES, writes=WRITES)
    def write(self, namespace, writes):
        outcome = self.store.write(namespace, writes)
        added, updated, unchanged = self.model(namespace).write(writes)
        assert (outcome.added, outcome.updated, outcome.unchanged) == (added, updated, unchanged)
        assert outcome.ids == tuple(dict.fromkeys(write.id for write in writes))
        assert outcome.wiped == (self.wiped or not updated)
        if added or updated:
            self.changed(namespace)

    @rule(namespace=NAMESPACES, found=st.dictionaries(IDS, st.lists(st.sampled_from(KEYS)), max_size=3))
    def assimilate(self, namespace, found):
        links = {id: [ConceptLink(key, key, 0.5, "inferred") for key in keys] for id, keys in found.items()}
        self.store.assimilate(namespace, links)
        model = self.model(namespace)
        for id in found.keys() & model.held.keys():
            model.held[id].assimilated = True
            for link in links[id]:
                model.held[id].links.setdefault(link.key, link)
        model.prune()
        if found.keys() & model.held.keys():
            self.changed(namespace)

    @rule(namespace=NAMESPACES, ids=st.lists(IDS, max_size=3))
    def forget(self, namespace, ids):
        model = self.model(namespace)
        before = model.size()
        gone = sorted((model.held.pop(id) for id in set(ids) if id in model.held), key=lambda held: held.seq)
        model.prune()
        lost = (old - new for old, new in zip(before, model.size(), strict=True))
        erased = self.store.forget(namespace, ids=ids)
        named = tuple(held.entry.id for held in gone)
        if gone:
            self.changed(namespace)
            assert erased == Erased(*lost, self.wiped, named, namespace, self.generations[namespace])
        else:
            assert counts(erased) == (0, 0, 0)

    @rule(namespace=NAMESPACES)
    def clear(self, namespace):
        erased = self.store.clear(namespace)
        assert counts(erased) == self.model(namespace).size()
        assert set(erased.ids) == self.model(namespace).held.keys()
        self.models[namespace] = Model()
        self.generations[namespace] = 0

    @rule(namespace=NAMESPACES, scores=st.dictionaries(st.sampled_from(KEYS), st.lists(st.integers(0, 9))))
    def save_scores(self, namespace, scores):
        arrays = {
            key: KeyScores(np.array(ids, dtype=np.int32), np.arange(len(ids) + 1, dtype=np.float32))
            for key, ids in scores.items()
        }
        self.store.save_scores(namespace, "tiny", arrays)
        self.model(namespace).scores.update(scores)
        self.model(namespace).prune()

    @invariant()
    def agree(self):
        for namespace, model in self.models.items():
            state = self.store.load(namespace, "tiny")
            assert state.generation == self.generations.get(namespace, 0)
            assert self.store.generation(namespace) == state.generation
            expected = sorted(model.held.values(), key=lambda held: held.seq)
            found = [(stored.seq, stored.entry, stored.assimilated) for stored in state.entries]
            assert found == [(held.seq, held.entry, held.assimilated) for held in expected]
            assert dict(state.concepts) == model.surfaces()
            assert links_of(state) == {
                (held.entry.id, link.key, link.weight, link.origin) for held in expected for link in held.links.values()
            }
            assert {key: scores.token_ids.tolist() for key, scores in state.scores.items()} == model.scores
            assert all(len(s.neutral) == len(s.token_ids) + 1 for s in state.scores.values())
        sizes = {info.name: (info.entries, info.concepts) for info in self.store.namespaces()}
        for namespace, model in self.models.items():
            assert sizes.pop(namespace, (0, 0)) == model.size()[:2]
        assert not sizes
        assert self.store.check() == []

    def teardown(self):
        self.store.close()


def links_of(state):
    arrays = (state.link_entry, state.link_concept, state.link_weight, state.link_origin)
    links = [
        (state.entries[entry].entry.id, state.concepts[concept][0], weight, ORIGINS[origin])
        for entry, concept, weight, origin in zip(*(array.tolist() for array in arrays), strict=True)
    ]
    assert len(links) == len(set(links))
    return set(links)


class FileHistories(Histories):
    """The same on disk, where every erasure also rewrites the file, and with the store reopened at times."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.location = str(Path(self.folder.name) / "memory.db")
        super().__init__()

    @rule()
    def reopen(self):
        self.store.close()
        self.store = Store.open(self.location, create=False)

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


class ServerHistories(Histories):
    """The same on a server, whose files are its own."""

    database: Callable[[], str]
    wiped = False

    def __init__(self):
        self.location = self.database()
        super().__init__()


@pytest.fixture(scope="class", autouse=True)
def database(request):
    if request.cls is TestServerHistories:
        ServerHistories.database = staticmethod(request.getfixturevalue("empty_database"))


TestServerHistories = ServerHistories.TestCase
TestServerHistories.settings = settings(max_examples=3, stateful_step_count=15)
TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=30, stateful_step_count=15)
TestFileHistories = FileHistories.TestCase
TestFileHistories.settings = settings(max_examples=6, stateful_step_count=15)
