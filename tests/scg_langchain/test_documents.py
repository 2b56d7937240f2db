"""Documents and entries: nothing is lost either way."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document

from scg_langchain.documents import RECALL, document_of, documents_from, entries_of, entry_of, found_document
from shared_core import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.recall import RecalledEntry

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
SAID = TEXT.filter(str.strip)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
TIMES = st.sampled_from(["2023-05-08T13:56:00", "2023-05-08T13:56", "2023-05-08", "2023-05-08T13:56:00+02:00", "May"])
METADATA = st.dictionaries(
    st.sampled_from(["speaker", "session", "occurred_at", "caption", "a"]) | TEXT, VALUES | TIMES
)
ENTRIES = st.builds(
    MemoryEntry,
    SAID,
    st.just("1"),
    st.none() | TEXT,
    st.none() | TEXT,
    st.none() | st.datetimes(timezones=st.none() | st.just(UTC)),
    st.none(),
    st.dictionaries(st.sampled_from(["a", "b"]), VALUES),
)


@given(text=SAID, metadata=METADATA.map(lambda fields: {**fields}))
def test_a_document_comes_back_as_it_was(text, metadata):
    metadata.pop(RECALL, None)
    document = Document(text, id="1", metadata=metadata)
    before = document.model_copy(deep=True)
    assert document_of(entry_of(document, "1")) == before == document


@given(ENTRIES)
def test_an_entry_comes_back_as_it_was(entry):
    assert entry_of(document_of(entry), entry.id) == entry


@pytest.mark.parametrize("text", ["", "Look at this!", "Look "])
def test_a_caption_is_read_and_comes_back(text):
    entry = MemoryEntry(text, "1", caption="eleven clay bowls")
    document = document_of(entry)
    assert "eleven clay bowls" in document.page_content
    assert entry_of(document, "1") == entry


@pytest.mark.parametrize("content", ["bowls", "See [image: bowls] here", "See[image: bowls]", "See \n [image: bowls]"])
def test_content_that_only_resembles_a_captioned_one_is_kept(content):
    document = Document(content, id="1", metadata={"caption": "bowls"})
    assert document_of(entry_of(document, "1")) == document


def test_source_is_recognised():
    entry = entry_of(Document("x", metadata={"speaker": "Anna", "session": 3, "occurred_at": "2023-05-08T13:56"}))
    assert (entry.speaker, entry.session, entry.occurred_at) == ("Anna", "3", datetime(2023, 5, 8, 13, 56))
    time = datetime(2023, 5, 8, tzinfo=UTC)
    dated = entry_of(Document("x", metadata={"occurred_at": time}))
    assert dated.occurred_at == time
    assert document_of(dated).metadata == {"occurred_at": "2023-05-08T00:00:00+00:00"}


def test_what_is_no_source_stays_metadata():
    metadata = {"speaker": ["Anna"], "session": True, "occurred_at": "last May", "caption": 3}
    entry = entry_of(Document("x", metadata=metadata))
    assert (entry.speaker, entry.session, entry.occurred_at, entry.caption) == (None, None, None, None)
    assert document_of(entry).metadata == metadata


def test_what_cannot_be_stored_is_refused():
    with pytest.raises(InvalidInputError, match="JSON cannot carry"):
        entry_of(Document("x", metadata={"a": datetime(2023, 5, 8)}))
    with pytest.raises(InvalidInputError, match="the text is empty"):
        entry_of(Document(" "))
    with pytest.raises(InvalidInputError, match="3 texts and 2 ids"):
        documents_from(["a", "b", "c"], None, ["1", "2"])
    with pytest.raises(InvalidInputError, match="3 texts and 1 metadatas"):
        documents_from(["a", "b", "c"], [{}], None)
    with pytest.raises(InvalidInputError, match="1 documents and 2 ids"):
        entries_of([Document("a")], ["1", "2"])


def test_own_ids_are_kept_where_none_is_given():
    documents = [Document("a", id="1"), Document("b", id="2"), Document("c")]
    assert [entry.id for entry in entries_of(documents)] == ["1", "2", None]
    assert [entry.id for entry in entries_of(documents, ["x", None, "z"])] == ["x", "2", "z"]


def test_how_it_was_found_is_told_and_not_stored():
    entry = MemoryEntry("x", "1", metadata={"tags": ["a"]})
    document = found_document(RecalledEntry(entry, 2.0, (), {}, 0.5))
    assert dict(document.metadata[RECALL]) == {"score": 2.0, "relevance": 0.5, "reasons": []}
    assert entry_of(document, "1") == entry
    document.metadata["tags"].append("b")
    assert entry.metadata == {"tags": ["a"]}


@pytest.mark.parametrize("own", [0.8, "recall", {"score": 1}, [], False, None])
def test_a_field_of_that_name_is_not_lost_in_silence(own):
    with pytest.raises(InvalidInputError, match="rename"):
        entry_of(Document("x", metadata={"recall": own}))


def test_what_was_found_may_go_through_json():
    found = found_document(RecalledEntry(MemoryEntry("x", "1"), 2.0, (), {}, 0.5))
    assert entry_of(Document.model_validate_json(found.model_dump_json()), "1") == MemoryEntry("x", "1")


def test_a_document_is_the_same_whichever_query_found_it():
    entry = MemoryEntry("x", "1")
    once, again = (found_document(RecalledEntry(entry, score, (), {}, 0.5)) for score in (1.0, 2.0))
    assert once == again
    assert once != document_of(entry)
