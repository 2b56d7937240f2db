"""Filters: a dict means what it says, or it is refused."""

from datetime import datetime

import pytest
from langchain_core.documents import Document

from scg_langchain import UnsupportedError
from scg_langchain.documents import entry_of
from scg_langchain.filters import as_filter
from shared_core import Filter
from shared_core.errors import InvalidInputError

MAY, JUNE = datetime(2024, 5, 1), datetime(2024, 6, 1)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, None),
        ({}, Filter()),
        (Filter(speaker="Anna"), Filter(speaker="Anna")),
        ({"a": 1, "b": None}, Filter(metadata={"a": 1, "b": None})),
        ({"a": {"$eq": [1, 2]}}, Filter(metadata={"a": [1, 2]})),
        ({"a": {"b": {"c": 1}}}, Filter(metadata={"a": {"b": {"c": 1}}})),
        ({"speaker": "Anna"}, Filter(speaker="Anna")),
        ({"speaker": {"$eq": "Anna"}, "session": 7}, Filter(speaker="Anna", session="7")),
        ({"speaker": ["Anna", "Ben"]}, Filter(speaker={"Anna", "Ben"})),
        ({"session": {"$in": (7, "8")}}, Filter(session={"7", "8"})),
        ({"session": {"$in": []}}, Filter(session=[])),
        ({"occurred_at": {"$gte": "2024-05-01", "$lt": JUNE}}, Filter(after=MAY, before=JUNE)),
        (
            {"$and": [{"a": 1}, {"$and": [{"b": 2}, {"speaker": "Anna"}]}]},
            Filter(speaker="Anna", metadata={"a": 1, "b": 2}),
        ),
    ],
)
def test_a_dict_means_what_it_says(condition, expected):
    assert as_filter(condition) == expected


@pytest.mark.parametrize(
    "condition",
    [
        {"a": {"$ne": 1}},
        {"a": {"$gt": 1}},
        {"a": {"$in": [1]}},
        {"a": {"$eq": 1, "b": 2}},
        {"a": [1]},
        {"$or": [{"a": 1}]},
        {"$and": {"a": 1}},
        {"$and": [{"a": 1}, {"a": 2}]},
        {"speaker": {"$eq": "Anna", "$in": ["Ben"]}},
        {"speaker": None},
        {"speaker": ["Anna", None]},
        {"speaker": {"$ne": "Anna"}},
        {"session": True},
        {"occurred_at": "2024-05-01"},
        {"occurred_at": {"$gt": "2024-05-01"}},
        lambda document: True,
        "speaker = 'Anna'",
        [{"a": 1}],
    ],
)
def test_what_cannot_be_checked_is_refused(condition):
    with pytest.raises(UnsupportedError) as caught:
        as_filter(condition)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, NotImplementedError)


def test_values_are_checked():
    with pytest.raises(InvalidInputError, match="ISO 8601"):
        as_filter({"occurred_at": {"$gte": "last May"}})
    with pytest.raises(InvalidInputError, match="JSON cannot carry"):
        as_filter({"a": MAY})


def test_what_a_document_was_written_with_finds_it():
    document = Document("x", metadata={"session": 7, "speaker": "Anna", "occurred_at": "2024-05-08", "tags": ["a"]})
    entry = entry_of(document)
    for condition in (
        {"session": 7},
        {"session": "7"},
        {"speaker": "Anna"},
        {"tags": {"$eq": ["a"]}},
        {"occurred_at": {"$gte": MAY, "$lt": JUNE}},
    ):
        assert as_filter(condition).matches(entry), condition
    assert not as_filter({"session": 8}).matches(entry)
