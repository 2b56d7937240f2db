"""Mentions: stems that let spellings meet, and the concepts whose stems a query has."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from shared_core.recall import mentions
from shared_core.recall.mentions import MIN_COVERAGE, MentionIndex, content_stems, named, word_stems

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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Painting", "painted"),
        ("Rosa’s", "rosa"),
        ("don’t", "don't"),
        ("café", "CAFE\u0301"),
        ("cafe", "café"),
        ("Straße", "STRASSE"),
        ("ｈｅｌｌｏ", "hello"),
        ("10,000", "10000"),
        ("l'école", "école"),
        ("книги", "книга"),
        ("किताब", "किताबें"),
        ("كِتَاب", "كتاب"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        ("ガーデン", "ｶﾞｰﾃﾞﾝ"),
        ("pass\u00adword", "password"),
    ],
)
def test_spellings_of_one_word_meet(one, other):
    assert word_stems(one) == word_stems(other) != []


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("The two gardens", ["the", "two", "garden"]),
        ("snake_case C++ and C#", ["snake", "case", "c++", "and", "c#"]),
        ("हिन्दी भाषा", ["हिन्द", "भाष"]),
        ("猫", ["猫"]),
        ("図書館", ["図書", "書館", "図", "書", "館"]),
        ("りんご", ["りん", "んご"]),
        ("집에", ["집에", "집", "에"]),
        ("👩\u200d💻 ok", ["👩\u200d💻", "ok"]),
        ("... --- !", []),
        ("", []),
    ],
)
def test_examples(text, stems):
    assert word_stems(text) == stems


@given(st.text(max_size=20))
def test_case_makes_no_difference_to_ascii(text):
    ascii_text = text.encode("ascii", "ignore").decode()
    assert word_stems(ascii_text.upper()) == word_stems(ascii_text.lower())


@given(st.text(st.sampled_from("ab1,.'+#_ -C"), max_size=16))
def test_other_scripts_in_a_text_leave_its_ascii_words_alone(text):
    assert word_stems(f"{text} é") == [*word_stems(text), *word_stems("é")]


@given(st.text(max_size=30))
def test_any_text_has_non_empty_stems(text):
    assert all(word_stems(text))


def test_threads_do_not_mix_up_their_words(monkeypatch):
    # The stemmer in pure Python, which holds the word it works on, whatever is installed here.
    monkeypatch.setattr(mentions.snowballstemmer, "stemmer", lambda language: EnglishStemmer())
    monkeypatch.setattr(mentions, "_own", type(mentions._own)())
    words = [f"{prefix}{root}ations" for prefix in "bcdfg" for root in ("rel", "nation", "flow", "organis", "hop")]
    alone = EnglishStemmer()
    expected = [alone.stemWord(word) for word in words]
    stem = mentions._stem.__wrapped__
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda _: [stem(word) for word in words], range(40)))
    finally:
        sys.setswitchinterval(interval)
    assert runs == [expected] * 40


def test_function_words_count_only_when_there_is_nothing_else():
    assert content_stems("What did the gardeners paint?") == ["garden", "paint"]
    assert content_stems("The Who") == ["the", "who"]


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
    assert extended.families().tolist() == built.families().tolist()


@given(st.data(), st.lists(phrases, min_size=1, max_size=8), phrases)
def test_a_selection_equals_an_index_of_the_selected_keys(data, keys, query):
    kept = data.draw(st.lists(st.integers(0, len(keys) - 1), unique=True))
    selected = MentionIndex.build(keys).select(kept)
    assert selected.find(query) == MentionIndex.build([keys[index] for index in kept]).find(query)
    assert selected.extend(keys[:1]).find(query) == MentionIndex.build([*(keys[i] for i in kept), keys[0]]).find(query)


def test_extending_leaves_the_old_index_as_it_was():
    index = MentionIndex.build(["rose garden"])
    index.extend(["tulip", "rose"])
    assert index.find("tulip and rose garden") == [(0, 1.0)]
    assert "tulip" not in index.postings.vocabulary


def test_most_of_a_long_key_is_enough():
    index = MentionIndex.build(["old town garden club", "garden club", "town hall"])
    assert index.find("the garden club of the old days") == [(0, 0.75), (1, 1.0)]


def test_spellings_of_one_key_are_a_family():
    families = MentionIndex.build(["paint", "rose garden", "painted", "gardens of roses", "rose"]).families()
    assert families.tolist() == [0, 1, 0, 1, 2]


@given(st.lists(phrases, max_size=8))
def test_families_are_the_keys_with_equal_stems(keys):
    families = MentionIndex.build(keys).families().tolist()
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
    assert MentionIndex.build([]).families().tolist() == []
    assert MentionIndex.build(["rose"]).find("") == []
