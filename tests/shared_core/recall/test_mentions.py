"""Mentions: the concepts whose stems a query has."""

from hypothesis import given
from hypothesis import strategies as st

from shared_core.recall.mentions import MIN_COVERAGE, MentionIndex, named
from shared_core.recall.stems import content_stems

WORDS = [
    "garden",
    "gardens",
    "paint",
    "painted",
    "the",
    "of",
    "rose",
    "10,000",
    "東京",
    "大学",
    "한국",
    "🎂",
    "café",
]
phrases = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)


@given(st.lists(phrases, max_size=12), phrases)
def test_find_equals_comparing_every_key(keys, query):
    asked = set(content_stems(query))
    expected = []
    for index, key in enumerate(keys):
        stems = set(content_stems(key))
        if stems and len(stems & asked) / len(stems) >= MIN_COVERAGE:
            expected.append((index, len(stems & asked) / len(stems)))
    assert MentionIndex.build(keys).find(query) == expected


@given(st.lists(phrases, max_size=8), st.lists(phrases, max_size=8), phrases)
def test_an_extended_index_equals_one_built_at_once(first, second, query):
    extended = MentionIndex.build(first).extend(second)
    built = MentionIndex.build(first + second)
    assert extended.find(query) == built.find(query)
    assert extended.families.of.tolist() == built.families.of.tolist()


def test_extending_leaves_the_old_index_as_it_was():
    index = MentionIndex.build(["rose garden"])
    index.extend(["tulip", "rose"])
    assert index.find("tulip and rose garden") == [(0, 1.0)]
    assert "tulip" not in index.postings.vocabulary


def test_most_of_a_long_key_is_enough():
    index = MentionIndex.build(["old town garden club", "garden club", "town hall"])
    assert index.find("the garden club of the old days") == [(0, 0.75), (1, 1.0)]


def test_spellings_of_one_key_are_a_family():
    families = MentionIndex.build(["paint", "rose garden", "painted", "gardens of roses", "rose"]).families
    assert families.of.tolist() == [0, 1, 0, 1, 4]


@given(st.lists(phrases, max_size=8))
def test_families_are_the_keys_with_equal_stems(keys):
    families = MentionIndex.build(keys).families.of.tolist()
    stems = [frozenset(content_stems(key)) for key in keys]
    assert [[a == b for b in families] for a in families] == [[a == b for b in stems] for a in stems]


def test_named_finds_speakers_by_any_part_of_their_name():
    speakers = ["Rosa Lind", "Pavel", "the assistant", "田中"]
    assert named("What did rosa tell Pavel's friend?", speakers) == [0, 1]
    assert named("What did the assistant say?", speakers) == [2]
    assert named("田中さんは何を買った?", speakers) == [3]
    assert named("Who was there?", speakers) == []


def test_an_empty_index_finds_nothing():
    assert MentionIndex.build([]).find("anything") == []
    assert MentionIndex.build([]).families.of.tolist() == []
    assert MentionIndex.build(["rose"]).find("") == []
