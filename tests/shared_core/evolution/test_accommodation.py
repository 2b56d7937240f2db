"""What may become a concept of an entry."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.evolution import extract_phrases
from shared_core.evolution.accommodation import said_concepts, validated
from shared_core.schema import fits_bounds, normalise_key

ENTRY = MemoryEntry("Rosa planted purple tulips at the Bank of America, 3.5 km from home", speaker="Anna")
WORDS = ["tulips", "Purple", "rosa", "planted", "the", "garden", "3.5", "km", "of", "Bank", "–", "🌷", "花"]
SURFACES = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.lists(st.sampled_from(WORDS), max_size=10).map(" ".join),
        st.lists(st.sampled_from(WORDS), max_size=3).map(" - ".join),
    ),
    max_size=12,
)


@given(SURFACES, st.integers(1, 6), st.booleans())
def test_what_is_kept_is_a_key_of_the_schema(surfaces, limit, grounded):
    links = validated(surfaces, ENTRY, limit=limit, grounded=grounded)
    assert len(links) <= limit
    assert len({link.key for link in links}) == len(links)
    own = {phrase.key for phrase in extract_phrases(ENTRY.content)}
    words = {normalise_key(word) for word in ENTRY.content.split()} | {word for key in own for word in key.split()}
    for link in links:
        assert link.key == normalise_key(link.key) == normalise_key(link.surface)
        assert fits_bounds(link.key)
        assert link.weight == 1.0
        assert link.origin == ("said" if link.key in own else "generated")
        assert not grounded or link.key in own or words.issuperset(link.key.split())


@given(SURFACES)
def test_the_first_ones_count(surfaces):
    everything = validated(surfaces, ENTRY, limit=100, grounded=False)
    for limit in (1, 2, 5):
        assert validated(surfaces, ENTRY, limit=limit, grounded=False) == everything[:limit]
    assert validated([*surfaces, *surfaces], ENTRY, limit=100, grounded=False) == everything


@given(SURFACES)
def test_grounding_only_leaves_out(surfaces):
    free = validated(surfaces, ENTRY, limit=100, grounded=False)
    grounded = validated(surfaces, ENTRY, limit=100, grounded=True)
    assert [link for link in free if link in grounded] == grounded


@pytest.mark.parametrize(
    ("surface", "key", "display"),
    [
        (" purple  tulips ", "purple tulips", "purple tulips"),
        ("Purple Tulips!", "purple tulips", "Purple Tulips!"),
        ("1. tulips", "tulips", "tulips"),
        ("12) tulips", "tulips", "tulips"),
        ("- tulips", "tulips", "tulips"),
        ("* Rosa", "rosa", "Rosa"),
        ("\n• Rosa", "rosa", "Rosa"),
        ("tulips purple", "tulips purple", "tulips purple"),
        ("3.5 km", "3.5 km", "3.5 km"),
        ("bank of america", "bank of america", "bank of america"),
        ("tulips\x00", "tulips", "tulips"),
    ],
)
def test_marks_of_a_list_are_no_part_of_a_concept(surface, key, display):
    (link,) = validated([surface], ENTRY, limit=5, grounded=True)
    assert (link.key, link.surface) == (key, display)


@pytest.mark.parametrize("surface", ["-5 degrees", "1.5 km", "1984)", "-40", "2) 3 eggs"])
def test_numbers_keep_their_meaning(surface):
    (link,) = validated([surface], ENTRY, limit=5, grounded=False)
    assert link.key == normalise_key(surface.removeprefix("2) "))


@pytest.mark.parametrize("surface", ["", "  ", "...", "-", "1.", "\x00", "garden", "purple garden", "red tulips"])
def test_nothing_and_what_the_entry_does_not_say_is_left_out(surface):
    assert validated([surface], ENTRY, limit=5, grounded=True) == []


@pytest.mark.parametrize("surface", ["a b c d e f g h i", "x" * 81, "", "?!"])
def test_what_is_beyond_the_bounds_of_a_key_is_left_out_even_if_free(surface):
    assert validated([surface], ENTRY, limit=5, grounded=False) == []


@given(st.text(min_size=1, max_size=60).filter(str.strip), st.sampled_from([None, "Rosa", "tulips"]))
def test_an_entry_says_its_phrases(text, speaker):
    try:
        entry = MemoryEntry(text, caption="purple tulips", speaker=speaker)
    except ValueError:  # a NUL or a surrogate
        return
    links = said_concepts(entry)
    assert [(link.key, link.surface) for link in links] == extract_phrases(entry.content, speaker=speaker)
    assert all(link.weight == 1.0 and link.origin == "said" for link in links)
    keys = {link.key for link in links}
    assert "purple tulips" in keys
    assert speaker is None or normalise_key(speaker) not in keys
