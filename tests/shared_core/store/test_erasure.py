"""Forgotten means gone: no eight bytes in a row of what was removed stay in the store's files.

The files are read while the store is open, because closing it would tidy up. (Reading them drops the locks
this process has on them, which only another process could notice.)
"""

import random
import sqlite3
import string

import numpy as np
import pytest

from shared_core.entry import MemoryEntry
from shared_core.store import Anticipated, Anticipation, ConceptLink, EntryWrite, KeyScores, Store, sqlite

ANNA, BEN = ("anna",), ("ben",)


@pytest.fixture
def store(filed):
    """These tests look at files, which are SQLite's."""
    return filed


class Author:
    """Writes entries of random letters, so that no eight bytes occur twice by chance."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.number = 0

    def word(self, length=16):
        return "".join(self.random.choices(string.ascii_letters, k=length))

    def write(self, id, shared=()):
        """An entry with every field set; some texts are many pages long."""
        length = self.random.choice([20, 60, 200, 200, 1000, 1000, 5000, 12_000])
        entry = MemoryEntry(
            self.word(length),
            id=id,
            speaker=self.word(),
            session=self.word(),
            caption=self.word(self.random.choice([16, 16, 16, 6000])),
            metadata={self.word(): self.word()},
        )
        links = []
        for n in range(6):
            key = self.word(self.random.choice([9, 14, 30, 120, 500]))
            links.append(ConceptLink(key, self.word(40), 1.0, "said" if n % 2 else "generated"))
        links += [ConceptLink(key, self.word(30), 1.0, "said") for key in shared]
        return EntryWrite(entry, tuple(links))


def contents(write, *, with_id=True):
    """Everything of an entry that must not outlive it."""
    entry = write.entry
    texts = [
        entry.text,
        entry.speaker,
        entry.session,
        entry.caption,
        *entry.metadata,
        *entry.metadata.values(),
    ]
    texts += [link.surface for link in write.links]
    texts += [link.key for link in write.links if not link.key.startswith("shared")]
    return [text.encode() for text in [*texts, *([entry.id] if with_id else [])]]


def token_ids(key):
    return np.frombuffer(key[7::-1].encode() * 3, dtype="<i4")


def anticipation(author):
    tokens = np.frombuffer(author.word(32).encode(), dtype="<i4")
    return Anticipation(tokens, np.zeros(len(tokens), dtype=np.float32))


def windows(pieces):
    """All runs of eight bytes, as numbers."""
    arrays = [np.frombuffer(piece, dtype=np.uint8) for piece in pieces if len(piece) >= 8]
    views = [np.lib.stride_tricks.sliding_window_view(array, 8) for array in arrays]
    return np.concatenate([np.ascontiguousarray(view).view(np.uint64).ravel() for view in views])


def on_disk(path):
    files = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-journal")]
    return windows([file.read_bytes() for file in files if file.exists()])


def traces(path, removed):
    wanted, found = np.unique(windows(removed)), on_disk(path)
    places = np.minimum(np.searchsorted(wanted, found), len(wanted) - 1)
    return int((wanted[places] == found).sum())


def test_the_search_finds_what_is_there(store, path):
    author = Author(0)
    write = author.write(author.word())
    store.write(ANNA, [write])
    assert traces(path, [write.entry.text.encode()[:500]]) > 0
    assert traces(path, [write.links[0].key.encode()]) > 0


@pytest.mark.parametrize("seed", range(2))
def test_nothing_removed_stays_in_the_files(store, path, seed):
    author = Author(seed)
    shared = [f"shared {n}" for n in range(20)]
    held = {}
    for _ in range(8):
        batch = [
            author.write(author.word(20), author.random.sample(shared, 2)) for _ in range(author.random.randint(5, 60))
        ]
        store.write(ANNA, batch)
        held |= {write.id: write for write in batch}
    keys = [link.key for write in held.values() for link in write.links if len(link.key) < 50]
    store.save_scores(ANNA, "tiny", {key: KeyScores(token_ids(key)) for key in keys})
    store.assimilate(ANNA, {id: [ConceptLink(key, key, 0.3, "inferred") for key in keys[:5]] for id in held})
    expected = {id: anticipation(author) for id in held}
    store.save_anticipations(ANNA, Anticipated("tiny", expected))
    for turn in range(6):
        ids = author.random.sample(sorted(held), 12)
        removed = [piece for id in ids for piece in contents(held[id], with_id=turn % 2 == 0)]
        links = [link for id in ids for link in held[id].links if link.key not in shared]
        removed += [token_ids(link.key).tobytes() for link in links]
        removed += [expected.pop(id).tokens.tobytes() for id in ids if id in expected]
        if turn % 2 == 0:
            assert store.forget(ANNA, ids=ids).wiped
            for id in ids:
                del held[id]
        else:
            updates = [author.write(id) for id in ids]
            outcome = store.write(ANNA, updates)
            assert (outcome.updated, outcome.wiped) == (len(ids), True)
            held |= {write.id: write for write in updates}
        assert traces(path, removed) == 0
    assert {stored.entry.id: stored.entry for stored in store.load(ANNA).entries} == {
        id: write.entry for id, write in held.items()
    }


def test_nothing_of_a_cleared_namespace_stays(store, path):
    author = Author(3)
    name = (author.word(), author.word(200))
    writes = [author.write(author.word()) for _ in range(60)]
    kept = [author.write(author.word()) for _ in range(20)]
    store.write(name, writes[:30])
    store.write(BEN, kept)
    store.write(name, writes[30:])
    expected = {write.id: anticipation(author) for write in writes}
    store.save_anticipations(name, Anticipated("tiny", expected))
    assert store.clear(name).wiped
    removed = [piece for write in writes for piece in contents(write)] + [part.encode() for part in name]
    removed += [one.tokens.tobytes() for one in expected.values()]
    assert traces(path, removed) == 0
    with store.scan(BEN) as (_, scanned):
        assert list(scanned) == kept


def test_a_reader_delays_the_wiping_and_the_result_says_so(path, monkeypatch):
    monkeypatch.setattr(sqlite, "_WIPE_SECONDS", 0.05)
    author = Author(4)
    first, second, kept = (author.write(author.word()) for _ in range(3))
    with Store.open(path) as store:
        store.write(ANNA, [first, second, kept])
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM entries").fetchone()
        erased = store.forget(ANNA, ids=[first.id])
        assert (erased.entries, erased.wiped) == (1, False)
        assert store.get(ANNA, [first.id]) == []
        assert traces(path, contents(first)) > 0
        # To ask once more forgets nothing more, and makes nothing certain.
        again = store.forget(ANNA, ids=[first.id])
        assert (again.entries, again.wiped) == (0, False)
        reader.close()
        # The next erasure finishes this one, too.
        assert store.forget(ANNA, ids=[second.id]).wiped
        assert traces(path, contents(first) + contents(second)) == 0


def test_a_wiping_that_was_cut_off_is_finished_by_the_next_open(path, monkeypatch):
    author = Author(5)
    writes = [author.write(author.word()) for _ in range(60)]
    gone = writes[::2]
    removed = [piece for write in gone for piece in contents(write)]
    with Store.open(path) as store:
        store.write(ANNA, writes)
        # Another connection keeps the log from being tidied up when the store is closed.
        other = sqlite3.connect(path)
        other.execute("SELECT count(*) FROM entries").fetchone()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "wipe", lambda engine: False)
            assert not store.forget(ANNA, ids=[write.id for write in gone]).wiped
    assert traces(path, removed) > 0
    with Store.open(path) as store:
        assert traces(path, removed) == 0
        assert len(store.load(ANNA).entries) == 30
    other.close()


def test_a_wiping_that_is_done_is_not_repeated(store, path):
    author = Author(6)
    writes = [author.write(author.word()) for _ in range(3)]
    store.write(ANNA, writes)
    assert store.forget(ANNA, ids=[writes[0].id]).wiped
    store.close()
    before = path.read_bytes()
    Store.open(path).close()
    assert path.read_bytes() == before
