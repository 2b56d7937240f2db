"""Stems: what lets spellings of one word meet, found one text at a time and in many at once."""

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer

from shared_core.recall import stems
from shared_core.recall.stems import content_stems, number_stems, word_stems

PIECES = [
    "garden",
    "Roses",
    "10,000",
    "1.5",
    "don't",
    "C++",
    "c#",
    "c#x",
    "a+",
    "é",
    "’s",
    "東京",
    "한국",
    "🎂",
    "1\ufe0f\u20e3",
]
PIECES += [" ", ". ", ",", "'", "_", "\n", "\u0301", "\u094d", "किताब"]
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), st.text(max_size=12))


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
    ("text", "expected"),
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
def test_examples(text, expected):
    assert word_stems(text) == expected


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
    monkeypatch.setattr(stems.snowballstemmer, "stemmer", lambda language: EnglishStemmer())
    monkeypatch.setattr(stems, "_own", type(stems._own)())
    words = [f"{prefix}{root}ations" for prefix in "bcdfg" for root in ("rel", "nation", "flow", "organis", "hop")]
    alone = EnglishStemmer()
    expected = [alone.stemWord(word) for word in words]
    stem = stems._stem.__wrapped__
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


@given(st.lists(texts, max_size=12), st.lists(texts, max_size=4), st.sampled_from([1, 2, 1024]))
def test_many_texts_have_the_stems_of_each(first, second, joined):
    # A character that no entry and no key may hold stands between texts that are read together.
    first, second = ([text.replace("\x00", "") for text in some] for some in (first, second))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stems, "_JOINED", joined)
        vocabulary: dict[str, int] = {}
        for some in (first, second):
            numbers, sizes = number_stems(some, vocabulary)
            names = list(vocabulary)
            assert sorted(vocabulary.values()) == list(range(len(names)))
            ends = sizes.cumsum().tolist()
            found = [[names[at] for at in numbers[end - size : end]] for end, size in zip(ends, sizes, strict=True)]
            assert found == [word_stems(text) for text in some]
