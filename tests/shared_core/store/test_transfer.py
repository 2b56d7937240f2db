"""Export and import: what goes out comes back, whole or not at all, and a wrong line is named."""

import json
import os
import tracemalloc
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core import SchemaMemory
from shared_core.entry import MAX_ENTRY_BYTES, MemoryEntry
from shared_core.errors import FormatError, InvalidInputError, StoreError, StoreUnavailableError
from shared_core.store import (
    ORIGINS,
    ConceptLink,
    EntryWrite,
    KeyScores,
    export_namespace,
    exported_namespace,
    import_namespace,
    transfer,
)
from tests.shared_core.store.conftest import FEW

ANNA, BEN = ("anna",), ("ben", "work")


@pytest.fixture
def store(filed):
    """What is read and written here is the same on both engines but for the round trip."""
    return filed


HEADER = {"format": "scg-memory", "version": 1, "namespace": ["anna"]}


def said(key):
    return ConceptLink(key, key.title(), 1.0, "said")


def inferred(key):
    return ConceptLink(key, key.title(), 0.25, "inferred")


def content(store, namespace):
    """What an export must carry, without the numbers that are the store's own."""
    state = store.load(namespace)
    links = {
        (state.entries[entry].entry.id, state.concepts[concept][0], weight, ORIGINS[origin])
        for entry, concept, weight, origin in zip(
            state.link_entry.tolist(),
            state.link_concept.tolist(),
            state.link_weight.tolist(),
            state.link_origin.tolist(),
            strict=True,
        )
    }
    return [(stored.entry, stored.assimilated) for stored in state.entries], set(state.concepts), links


def write_lines(path, *lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=20)
KEYS = st.sampled_from(["puppy", "red car", "\u00e9t\u00e9", "\u4e2d\u6587", "a\u2028b", 'q"\\'])
SURFACES = TEXTS.filter(str.strip)
LINKS = st.lists(
    st.builds(ConceptLink, KEYS, SURFACES, st.floats(0, 1e6), st.sampled_from(["said", "generated"]))
    | st.builds(ConceptLink, KEYS, SURFACES, st.floats(0, 1, exclude_min=True), st.just("inferred")),
    max_size=4,
    unique_by=lambda link: link.key,
).map(tuple)
ENTRIES = st.builds(
    MemoryEntry,
    TEXTS.filter(str.strip),
    id=st.sampled_from(["1", "2", "3", "\n", "\u2028"]).filter(str.strip),
    speaker=st.none() | TEXTS,
    session=st.none() | TEXTS,
    occurred_at=st.none() | st.datetimes(timezones=st.none() | st.just(UTC)),
    caption=st.none() | TEXTS,
    metadata=st.dictionaries(TEXTS, st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)),
)


WRITES = st.lists(st.builds(EntryWrite, ENTRIES, LINKS, st.booleans()), max_size=4)
BATCHES = given(batches=st.lists(WRITES, max_size=4))


@BATCHES
def test_a_round_trip_changes_nothing(memory_store, tmp_path_factory, batches):
    check_round_trip(memory_store, tmp_path_factory, batches)


@FEW
@BATCHES
def test_a_round_trip_over_a_server_changes_nothing(server_store, tmp_path_factory, batches):
    check_round_trip(server_store, tmp_path_factory, batches)


def check_round_trip(store, tmp_path_factory, batches):
    path = tmp_path_factory.mktemp("export") / "anna.jsonl"
    store.clear(ANNA)
    store.clear(BEN)
    for batch in batches:
        store.write(ANNA, batch)
    exported = content(store, ANNA)
    count = export_namespace(store, ANNA, path)
    assert count == len(exported[0])
    assert import_namespace(store, BEN, path).added == count
    assert content(store, BEN) == content(store, ANNA) == exported
    again = path.with_name("ben.jsonl")
    export_namespace(store, BEN, again)
    assert sorted_lines(again) == sorted_lines(path)


def sorted_lines(path):
    _, *lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line["concepts"].sort(key=lambda concept: concept["key"])
    return lines


def test_the_file_is_as_documented(store, tmp_path):
    entry = MemoryEntry("I adopted a puppy", id="1", speaker="Anna", occurred_at=datetime(2023, 5, 8, 13, 56))
    store.write(ANNA, [EntryWrite(entry, (said("puppy"),), assimilated=False)])
    store.save_scores(ANNA, "tiny", {"puppy": KeyScores(np.array([1], dtype=np.int32))})
    export_namespace(store, ANNA, tmp_path / "anna.jsonl")
    header, line = [json.loads(line) for line in (tmp_path / "anna.jsonl").read_text().splitlines()]
    assert header == HEADER | {"entries": 1}
    assert line == {
        "text": "I adopted a puppy",
        "id": "1",
        "speaker": "Anna",
        "occurred_at": "2023-05-08T13:56:00",
        "assimilated": False,
        "concepts": [{"key": "puppy", "surface": "Puppy", "weight": 1.0, "origin": "said"}],
    }


def test_an_export_says_where_it_is_from(store, tmp_path):
    export_namespace(store, BEN, tmp_path / "ben.jsonl")
    assert exported_namespace(tmp_path / "ben.jsonl") == BEN
    for header in ("", "{}", '{"format": "scg-memory", "version": 1, "namespace": 7}'):
        (tmp_path / "odd.jsonl").write_text(header)
        with pytest.raises(FormatError, match="line 1"):
            exported_namespace(tmp_path / "odd.jsonl")
    with pytest.raises(FormatError, match=r"absent\.jsonl"):
        exported_namespace(tmp_path / "absent.jsonl")


def test_an_import_merges(store, tmp_path):
    store.write(ANNA, [EntryWrite(MemoryEntry("same", id="same"), (said("same"),))])
    store.write(ANNA, [EntryWrite(MemoryEntry("new", id="changed"), (said("lake"),))])
    store.write(ANNA, [EntryWrite(MemoryEntry("added", id="added"), (inferred("lake"),))])
    export_namespace(store, ANNA, tmp_path / "anna.jsonl")
    store.write(BEN, [EntryWrite(MemoryEntry("old", id="changed"), (said("old"),))])
    store.write(BEN, [EntryWrite(MemoryEntry("same", id="same"), (said("other"),))])
    store.write(BEN, [EntryWrite(MemoryEntry("kept", id="kept"), (said("kept"),))])
    calls = []
    outcome = import_namespace(store, BEN, tmp_path / "anna.jsonl", progress=lambda *call: calls.append(call))
    assert (outcome.added, outcome.updated, outcome.unchanged) == (1, 1, 1)
    assert outcome.ids == ("same", "changed", "added")
    assert calls == [(1, 3), (2, 3), (3, 3)]
    entries, concepts, links = content(store, BEN)
    assert [entry.text for entry, _ in entries] == ["new", "same", "kept", "added"]
    assert {key for key, _ in concepts} == {"lake", "other", "kept"}
    assert ("added", "lake", 0.25, "inferred") in links


def test_an_empty_namespace_goes_out_and_in(store, tmp_path):
    assert export_namespace(store, ANNA, tmp_path / "anna.jsonl") == 0
    assert import_namespace(store, BEN, tmp_path / "anna.jsonl").ids == ()
    assert store.namespaces() == []


def test_a_file_written_by_hand_needs_little(store, tmp_path):
    path = write_lines(tmp_path / "hand.jsonl", HEADER, {"id": "1", "text": "I adopted a puppy"})
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n") + b"\n  \n")
    assert import_namespace(store, ANNA, path).added == 1
    [stored] = store.load(ANNA).entries
    assert not stored.assimilated


GOOD = {"text": "good", "concepts": [{"key": "good", "surface": "good", "weight": 1, "origin": "said"}]}


def concept(**changes):
    fields = {"key": "puppy", "surface": "Puppy", "weight": 1, "origin": "said"} | changes
    return json.dumps({"id": "1", "text": "a", "concepts": [fields]})


def metadata(value):
    return f'{{"id": "1", "text": "a", "metadata": {{"n": {value}}}}}'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"text": "no id"}', "no id"),
        ('{"id": "1"}', "text"),
        ('{"id": 1, "text": "a"}', "id"),
        ('{"id": "1", "text": "a", "mood": "good"}', "mood"),
        ('{"id": "1", "text": "a\\u0000"}', "NUL"),
        ('{"id": "1", "text": "a\\ud800"}', "surrogate"),
        ('{"id": "1", "text": "\udcff"}', "not UTF-8"),
        ('{"id": "1", "text": "a", "occurred_at": "yesterday"}', "ISO 8601"),
        ('{"id": "1", "text": "a", "metadata": [1]}', "metadata"),
        (metadata("NaN"), "NaN"),
        (metadata("1e999"), "inf"),
        (metadata("9" * 5000), "not JSON"),
        (metadata("[" * 40 + "]" * 40), "deep"),
        (metadata("[" * 100_000 + "]" * 100_000), "deep"),
        ("[" * 100_000, "deep"),
        ('{"id": "1", "text": "a", "assimilated": 1}', "assimilated"),
        ('{"id": "1", "text": "a", "concepts": {}}', "concepts"),
        ('{"id": "1", "text": "a", "concepts": ["puppy"]}', "concept"),
        ('{"id": "1", "text": "a", "concepts": [{"key": "puppy"}]}', "concept"),
        (concept(more=1), "concept"),
        (concept(origin="heard"), "origin"),
        (concept(origin=["said"]), "origin"),
        (concept(key=1), "key"),
        (concept(surface=""), "surface"),
        (concept(weight="1"), "weight"),
        (concept(weight=10**400), "weight"),
        (json.dumps({"id": "1", "text": "a", "concepts": GOOD["concepts"] * 2}), "twice"),
        (json.dumps({"id": "1", "text": "x" * (64 * 2**20)}), "longer"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_stored(store, tmp_path, line, message):
    path = write_lines(tmp_path / "wrong.jsonl", HEADER, *[GOOD | {"id": str(n)} for n in range(600)])
    with path.open("a", encoding="utf-8", errors="surrogateescape") as file:
        file.write(line + "\n")
    with pytest.raises(FormatError, match=r"line 602: .*nothing") as caught:
        import_namespace(store, ANNA, path)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert store.namespaces() == []


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "JSON"),
        ("I adopted a puppy", "JSON"),
        ("[]", "object"),
        ('{"id": "1", "text": "a"}', "scg-memory"),
        ('{"format": "other", "version": 1}', "scg-memory"),
        ('{"format": "scg-memory"}', "version None"),
        ('{"format": "scg-memory", "version": 2, "namespace": ["anna"]}', "version 2"),
        ('{"format": "scg-memory", "version": "1", "namespace": ["anna"]}', "version '1'"),
        ('{"format": "scg-memory", "version": true, "namespace": ["anna"]}', "version True"),
        ('{"format": "scg-memory", "version": 1, "entries": "3"}', "entries"),
        ('{"format": "scg-memory", "version": 1, "entries": true}', "entries"),
    ],
)
def test_a_wrong_header_is_refused(store, tmp_path, header, message):
    path = tmp_path / "wrong.jsonl"
    path.write_text(f'{header}\n{{"id": "1", "text": "a"}}\n')
    with pytest.raises(FormatError, match="line 1") as caught:
        import_namespace(store, ANNA, path)
    assert message in str(caught.value)
    assert store.namespaces() == []


def test_a_file_cut_short_is_noticed_wherever_it_ends(store, tmp_path):
    store.write(ANNA, [EntryWrite(MemoryEntry(f"text {n}", id=str(n)), (said(f"key {n}"),)) for n in range(4)])
    export_namespace(store, ANNA, tmp_path / "anna.jsonl")
    whole = (tmp_path / "anna.jsonl").read_bytes()
    path = tmp_path / "cut.jsonl"
    for length in range(len(whole) - 1):  # without its last line feed it is whole
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            import_namespace(store, BEN, path)
    assert store.generation(BEN) == 0
    path.write_bytes(whole[:-1])
    assert import_namespace(store, BEN, path).added == 4


def test_a_file_that_is_not_there_is_named(store, tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(FormatError, match="cannot be read"):
            import_namespace(store, ANNA, path)


def test_what_progress_raises_undoes_the_import(store, tmp_path):
    path = write_lines(tmp_path / "hand.jsonl", HEADER, *[{"id": str(n), "text": "a"} for n in range(700)])

    def stop(done, total):
        assert total is None
        if done == 650:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_namespace(store, ANNA, path, progress=stop)
    assert store.namespaces() == []


def test_an_export_that_fails_leaves_the_older_file(store, tmp_path, monkeypatch):
    store.write(ANNA, [EntryWrite(MemoryEntry("a", id="1"))])
    path = tmp_path / "out" / "anna.jsonl"
    with pytest.raises(StoreUnavailableError, match="cannot be written"):
        export_namespace(store, ANNA, path)
    path.parent.mkdir()
    path.write_text("older")

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailableError, match="No space left"):
        export_namespace(store, ANNA, path)
    assert [file.read_text() for file in path.parent.iterdir()] == ["older"]
    monkeypatch.undo()
    export_namespace(store, ANNA, path)
    assert len(path.read_text().splitlines()) == 2
    assert [file.name for file in path.parent.iterdir()] == ["anna.jsonl"]


def test_an_export_never_replaces_the_memory_or_a_folder(store, tmp_path):
    store.write(ANNA, [EntryWrite(MemoryEntry("a", id="1"))])
    (tmp_path / "link.db").symlink_to(store.path)
    for path in (store.path, tmp_path / "link.db", tmp_path):
        with pytest.raises(InvalidInputError):
            export_namespace(store, ANNA, path)
    assert len(store.load(ANNA).entries) == 1


def test_neither_direction_holds_the_whole_namespace(store, tmp_path):
    text = "a long text " * 150
    store.write(ANNA, (EntryWrite(MemoryEntry(f"{n} {text}", id=str(n))) for n in range(4000)))
    size = 4000 * len(text)
    for move in (export_namespace, import_namespace):
        tracemalloc.start()
        move(store, ANNA if move is export_namespace else BEN, tmp_path / "anna.jsonl")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < size / 2


def test_the_largest_entry_is_exported_and_imported_again(tmp_path):
    """What may be remembered fits in a line with its concepts; a byte more is refused."""
    words = " ".join(f"word{number}" for number in range(3000))
    room = MAX_ENTRY_BYTES - len(json.dumps(MemoryEntry(words, id="a", metadata={"blob": ""}).to_dict()))
    largest = MemoryEntry(words, id="a", metadata={"blob": "x" * room})
    escaped = MemoryEntry("\u4e00", id="b", metadata={"blob": "\x01" * (MAX_ENTRY_BYTES // 6 - 20)})
    with SchemaMemory.open(tmp_path / "memory.db") as memory, SchemaMemory.open(tmp_path / "other.db") as other:
        with pytest.raises(InvalidInputError, match="16,777,217 bytes"):
            memory.remember(MemoryEntry(words + "s", id="a", metadata=largest.metadata), use_model=False)
        assert memory.entries == []
        assert memory.remember([largest, escaped], use_model=False).added == 2
        memory.export(tmp_path / "large.jsonl")
        assert other.import_file(tmp_path / "large.jsonl").added == 2
        assert other.entries == memory.entries == [largest, escaped]


def test_what_an_earlier_version_stored_is_exported_so_that_it_can_be_imported(store, tmp_path, monkeypatch):
    """It may be larger than what may be remembered now, or have more concepts than fit in a line."""
    path = tmp_path / "large.jsonl"
    large = MemoryEntry("jam", id="a", metadata={"blob": "x" * (MAX_ENTRY_BYTES + 2**20)})
    store.write(ANNA, [EntryWrite(large)])
    export_namespace(store, ANNA, path)
    import_namespace(store, BEN, path)
    assert store.get(BEN, ["a"]) == [large]
    store.clear(BEN)
    monkeypatch.setattr(transfer, "_MAX_LINE_BYTES", 20_000)
    with pytest.raises(StoreError, match=r"'a'.*back the memory up"):
        export_namespace(store, ANNA, path)
    store.clear(ANNA)
    keys = [f"more {number}" for number in range(200)]
    grounding = tuple(said(f"key {number}") for number in range(100))
    store.write(ANNA, [EntryWrite(MemoryEntry("b", id="b"), tuple(map(said, keys)))])
    store.write(ANNA, [EntryWrite(MemoryEntry("a", id="a"), (*grounding, *map(inferred, keys)))])
    export_namespace(store, ANNA, path)
    assert max(map(len, path.read_bytes().splitlines())) < 20_000
    import_namespace(store, BEN, path)
    with store.scan(BEN) as (_, writes):
        found = {write.id: write for write in writes}
    assert set(found["a"].links) == set(grounding)
    assert not found["a"].assimilated
    assert len(found["b"].links) == 200


@pytest.mark.parametrize(
    ("encoded", "message"),
    [("utf-8-sig", None), ("utf-16", "UTF-16: save it as UTF-8"), ("latin-1", "not UTF-8 .*: save the file as UTF-8")],
)
def test_an_export_that_was_saved_in_another_encoding(store, tmp_path, encoded, message):
    path = tmp_path / "saved.jsonl"
    header = {"format": "scg-memory", "version": 1, "namespace": ["caf\u00e9"]}
    lines = [json.dumps(line, ensure_ascii=False) for line in (header, {"id": "1", "text": "caf\u00e9"})]
    path.write_text("\n".join(lines), encoding=encoded)
    if message is None:
        assert exported_namespace(path) == ("caf\u00e9",)
        assert import_namespace(store, ANNA, path).added == 1
        return
    for call in (lambda: exported_namespace(path), lambda: import_namespace(store, ANNA, path)):
        with pytest.raises(FormatError, match=message):
            call()
    assert store.namespaces() == []
