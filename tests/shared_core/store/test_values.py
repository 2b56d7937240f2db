"""Values that cannot be stored are refused before they reach the store."""

import numpy as np
import pytest

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError
from shared_core.store import ORIGINS, ConceptLink, EntryWrite, KeyScores

PUPPY = ConceptLink("puppy", "Puppy", 1.0, "said")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", ""),
        ("key", " \t"),
        ("key", 3),
        ("key", "a\x00b"),
        ("key", "\ud800"),
        ("surface", ""),
        ("surface", None),
        ("surface", "\udfff"),
        ("weight", float("nan")),
        ("weight", float("inf")),
        ("weight", -0.1),
        ("weight", 1e39),
        ("weight", 10**400),
        ("weight", "1"),
        ("weight", True),
        ("weight", None),
        ("origin", "heard"),
        ("origin", 0),
        ("origin", None),
    ],
)
def test_a_link_that_cannot_be_stored_is_refused(field, value):
    fields = {"key": "puppy", "surface": "Puppy", "weight": 1.0, "origin": "said"}
    ConceptLink(**fields)
    with pytest.raises(InvalidInputError):
        ConceptLink(**fields | {field: value})


def test_an_entry_needs_an_id():
    with pytest.raises(InvalidInputError, match="no id"):
        EntryWrite(MemoryEntry("I adopted a puppy"))


def test_an_entry_links_a_concept_once():
    twice = (PUPPY, ConceptLink("puppy", "a puppy", 0.3, "inferred"))
    with pytest.raises(InvalidInputError, match="twice"):
        EntryWrite(MemoryEntry("I adopted a puppy", id="1"), twice)


def test_scores_need_one_value_for_each_token_and_the_end():
    ids = np.array([3, 5], dtype=np.int32)
    KeyScores(ids, np.zeros(3, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="3 neutral"):
        KeyScores(ids, np.zeros(2, dtype=np.float32))
    with pytest.raises(InvalidInputError, match="one axis"):
        KeyScores(ids.reshape(1, 2))


def test_origins_keep_their_numbers():
    # The numbers are on disk.
    assert ORIGINS == ("said", "inferred", "generated")
    assert [ConceptLink("a", "a", 1.0, origin).is_grounding for origin in ORIGINS] == [True, False, True]
