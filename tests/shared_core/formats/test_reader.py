"""The door: files in every bad shape, detection, and ids."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.errors import FormatError, InvalidInputError
from shared_core.formats import FORMATS, read_entries
from shared_core.formats import source as source_module

ENTRY = '{"text": "The kettle is broken again"}\n'
CHAT = '[{"role": "user", "content": "The kettle is broken again"}]'
LOCOMO = '{"session_1": [{"speaker": "Ida", "dia_id": "D1:1", "text": "The kettle is broken again"}]}'
TRANSCRIPT = "Ida: The kettle is broken again\n"


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("format", FORMATS)
def test_missing_file_directory_and_empty_file_are_told_apart(tmp_path, format):
    with pytest.raises(FormatError, match=r"absent\.jsonl: there is no such file"):
        read_entries(tmp_path / "absent.jsonl", format)
    with pytest.raises(FormatError, match="this is a directory"):
        read_entries(tmp_path, format)
    for content in ("", " \n\r\n\t\n", "\ufeff"):
        with pytest.raises(FormatError, match="the file is empty"):
            read_entries(put(tmp_path / "empty.jsonl", content), format)


def test_a_name_no_file_can_have_is_an_error_of_ours():
    with pytest.raises(FormatError, match="cannot be read"):
        read_entries("a\x00b")


def test_byte_order_mark_and_windows_line_ends_are_accepted(tmp_path):
    plain = read_entries(put(tmp_path / "a.jsonl", ENTRY * 2))
    marked = read_entries(put(tmp_path / "b.jsonl", "\ufeff" + ENTRY.replace("\n", "\r\n") * 2))
    assert marked == plain
    assert read_entries(put(tmp_path / "c.jsonl", ENTRY.replace("\n", "\r") * 2)) == plain


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (TRANSCRIPT.encode() + b"Ida: caf\xe9\n", r"not UTF-8 \(byte 0xe9 on line 2\)"),
        (TRANSCRIPT.encode("utf-16"), "UTF-16; save it as UTF-8"),
        (TRANSCRIPT.encode("utf-16-be"), "NUL"),
        (b"\x89PNG\r\n\x1a\n\x00", "not UTF-8"),
    ],
)
def test_other_encodings_are_refused(tmp_path, content, reason):
    with pytest.raises(FormatError, match=reason):
        read_entries(put(tmp_path / "notes.txt", content))


def test_too_long_a_line_and_too_large_a_file_are_refused(tmp_path, monkeypatch):
    path = put(tmp_path / "a.jsonl", ENTRY + json.dumps({"text": "x" * 200}) + "\n")
    assert len(read_entries(path)) == 2
    monkeypatch.setattr(source_module, "MAX_LINE_CHARACTERS", 100)
    with pytest.raises(FormatError, match="line 2: the line has more than 100 characters"):
        read_entries(path)
    monkeypatch.setattr(source_module, "MAX_FILE_BYTES", 200)
    with pytest.raises(FormatError, match="larger than"):
        read_entries(path)


@pytest.mark.parametrize(
    ("name", "content", "speaker", "session"),
    [
        ("a.jsonl", ENTRY, None, None),
        ("a.ndjson", ENTRY, None, None),
        ("a.json", ENTRY * 2, None, None),
        ("a", ENTRY, None, None),
        ("a.json", CHAT, "user", "a"),
        ("a", "\n\n" + CHAT, "user", "a"),
        ("a.jsonl", CHAT[1:-1], "user", "a"),
        ("a.json", json.dumps({"messages": json.loads(CHAT)}), "user", "a"),
        ("a.json", json.dumps({"messages": json.loads(CHAT)}, indent=1), "user", "a"),
        ("a.json", LOCOMO, "Ida", "1"),
        ("a.json", f"[{LOCOMO}]", "Ida", "1"),
        ("a.json", json.dumps({"sample_id": "x", "conversation": json.loads(LOCOMO)}, indent=2), "Ida", "1"),
        ("a.txt", TRANSCRIPT, "Ida", "a"),
        ("a", TRANSCRIPT, "Ida", "a"),
        ("a.md", "[2024-05-08] " + TRANSCRIPT, "Ida", "a"),
    ],
)
def test_auto_recognises_every_format(tmp_path, name, content, speaker, session):
    entry = read_entries(put(tmp_path / name, content))[0]
    assert (entry.text, entry.speaker, entry.session) == ("The kettle is broken again", speaker, session)


def test_auto_says_what_unknown_json_lacks(tmp_path):
    with pytest.raises(FormatError, match=r"neither chat messages .* nor LoCoMo"):
        read_entries(put(tmp_path / "a.json", '[{"title": "no turn"}]'))
    with pytest.raises(FormatError, match="line 2: this is not JSON"):
        read_entries(put(tmp_path / "a.json", '[\n{"role": "user",}]'))


def test_format_and_conversation_are_checked(tmp_path):
    path = put(tmp_path / "a.txt", TRANSCRIPT)
    with pytest.raises(InvalidInputError, match="unknown format 'xml'"):
        read_entries(path, "xml")
    with pytest.raises(InvalidInputError, match="LoCoMo files only"):
        read_entries(path, conversation="conv-1")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", "[" * 100_000),
        ("a.jsonl", "[" * 100_000),
        ("a.json", '[{"role": "user", "content": "x", "n": ' + "9" * 5000 + "}]"),
        ("a.jsonl", '{"text": "x", "metadata": {"n": NaN}}'),
        ("a.jsonl", r'{"text": "half a \ud83d"}'),
        ("a.jsonl", r'{"text": "nul \u0000"}'),
    ],
)
def test_hostile_json_is_an_error_of_ours(tmp_path, name, content):
    with pytest.raises(FormatError, match="nothing was read"):
        read_entries(put(tmp_path / name, content))


def test_a_long_reason_is_cut_short(tmp_path):
    path = put(tmp_path / "a.jsonl", json.dumps({"text": "x", "occurred_at": "never" * 10_000}))
    with pytest.raises(FormatError) as caught:
        read_entries(path)
    assert len(str(caught.value)) < 1000


texts = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(str.strip)
entries = st.builds(
    MemoryEntry,
    text=texts,
    speaker=st.none() | texts,
    session=st.none() | st.sampled_from(["1", "2"]),
    occurred_at=st.none() | st.datetimes(),
    metadata=st.dictionaries(texts, st.integers() | texts, max_size=2),
)


@given(st.lists(entries, min_size=1, max_size=8), st.lists(entries, max_size=4))
def test_entries_survive_json_lines_and_keep_their_ids_when_the_file_grows(tmp_path_factory, first, more):
    first = first + first[:2]  # so that repetitions occur
    path = tmp_path_factory.mktemp("jsonl") / "a.jsonl"
    lines = [json.dumps(entry.to_dict(), ensure_ascii=False) + "\n" for entry in first + more]
    before = read_entries(put(path, "".join(lines[: len(first)])))
    after = read_entries(put(path, "".join(lines)))

    assert [entry.to_dict() | {"id": None} for entry in before] == [e.to_dict() | {"id": None} for e in first]
    assert after[: len(first)] == before
    assert len({entry.id for entry in after}) == len(after)
    assert before[0].id == first[0].digest[:16]
    assert before[-1].id.startswith(f"{before[-1].digest[:16]}-")


def test_a_derived_id_gives_way_to_the_same_id_given_in_the_file(tmp_path):
    taken = MemoryEntry("The kettle is broken again").digest[:16]
    path = put(tmp_path / "a.jsonl", ENTRY + json.dumps({"text": "Another", "id": taken}))
    assert [entry.id for entry in read_entries(path)] == [f"{taken}-2", taken]


def test_an_id_given_twice_is_refused(tmp_path):
    path = put(tmp_path / "a.jsonl", '{"text": "a", "id": "1"}\n\n{"text": "b", "id": "1"}\n')
    with pytest.raises(FormatError, match=r"a\.jsonl, line 3: the id '1' occurs a second time"):
        read_entries(path)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def marked(value, path, found):
    """The value with a mark "@n" in place of each scalar; found[n] is the way to it."""
    if isinstance(value, list):
        return [marked(item, (*path, index), found) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: marked(item, (*path, key), found) for key, item in value.items()}
    found.append(path)
    return f"@{len(found) - 1}@"


@given(json_values, st.sampled_from([None, 0, 3]))
def test_the_line_of_any_value_in_a_document_is_found(value, indent):
    found = []
    text = json.dumps(marked(value, (), found), indent=indent)
    for number, path in enumerate(found):
        expected = text.count("\n", 0, text.index(f"@{number}@")) + 1
        assert source_module._line_of(text, path) == expected


def test_of_repeated_names_in_an_object_the_last_counts_for_values_and_lines(tmp_path):
    path = put(tmp_path / "a.json", '{"messages": [{"role": "user"}],\n"messages": [{"role": "user"},\n7]}')
    with pytest.raises(FormatError, match="line 3: message 2 is not an object"):
        read_entries(path)
