"""Phrases: everything informative in a text, in any script, bounded and in a fixed order."""

import re
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shared_core.evolution.phrases import MAX_PHRASES, Phrase, extract_phrases
from shared_core.evolution.runs import run_phrases
from shared_core.evolution.tokens import Kind, scan
from shared_core.schema.normalise import fits_bounds, normalise_key
from shared_core.schema.words import SPACELESS

PIECES = [
    *[
        "the ",
        "Garden ",
        "club ",
        "of ",
        "May ",
        "8, ",
        "2023 ",
        "Dr. ",
        "isn't ",
        "it’s ",
        "Rosa's ",
        "a.b@c.org ",
    ],
    *[
        "#OldTown ",
        "@rosa_b ",
        "https://a.org/how-to?x=1 ",
        "x_y() ",
        "C++ ",
        "/usr/bin/x ",
        "$5.50 ",
        "10 km ",
        "\n",
    ],
    *[
        "“To Be”",
        '"',
        "...",
        "!",
        "(",
        "-",
        "👩\u200d💻",
        "❤️",
        "東京大学で",
        "りんごを",
        "我的图书馆",
        "도서관에서 ",
    ],
    *["ไปเที่ยว", "किताबें ", "القهوة ", "İstanbul ", "e\u0301", "\u200b", "\u202e", "'s", "_", "1", "é "],
]
texts = st.one_of(st.text(max_size=40), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))


def keys(text, **options):
    return [phrase.key for phrase in extract_phrases(text, **options)]


@given(texts)
def test_every_phrase_is_a_valid_key_of_its_surface(text):
    for phrase in extract_phrases(text):
        assert normalise_key(phrase.surface) == phrase.key
        assert fits_bounds(phrase.key)


@given(texts)
def test_keys_are_distinct_and_the_same_each_time(text):
    phrases = extract_phrases(text)
    assert len({phrase.key for phrase in phrases}) == len(phrases)
    assert extract_phrases(text) == phrases


@given(texts)
def test_tokens_are_in_order_and_do_not_overlap(text):
    end = 0
    for token in scan(text):
        assert end <= token.start < token.end <= len(text)
        end = token.end


@given(st.lists(st.sampled_from(["garden", "roses", "water", "seeds"]), min_size=1, max_size=9))
def test_a_segment_gives_its_groups_of_up_to_three_words(words):
    expected = {" ".join(words[a:b]) for a in range(len(words)) for b in range(a + 1, min(len(words), a + 3) + 1)}
    if len(words) <= 5:
        expected.add(" ".join(words))
    assert set(keys(" ".join(words))) == expected


@given(
    st.lists(st.sampled_from(["garden", "roses", "water"]), min_size=2, max_size=6),
    st.sampled_from([", ", ". ", " the ", " and ", "\n", "; "]),
)
def test_no_phrase_reaches_over_stop_words_and_punctuation(words, between):
    assert set(keys(between.join(words))) == set(words)


@given(st.text(st.characters(categories=["Lu", "Ll", "Lo"]), min_size=2, max_size=8))
def test_a_word_is_a_phrase_or_a_stop_word(word):
    assume(not re.search(f"[{SPACELESS}]", word))
    text = f"plants: {word}"
    stop_words = {text[token.start : token.end] for token in scan(text) if token.kind is Kind.STOP}
    assert word in stop_words or normalise_key(word) in keys(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We moved to New York in March", ["moved", "new", "new york", "york", "march"]),
        ("I didn't see it, thanks!", ["see"]),
        (
            "Rosa's birthday cake at Rosa’s",
            ["rosa", "rosa's birthday", "rosa's birthday cake", "birthday", "birthday cake", "cake"],
        ),
        ("ask Dr. Ito", ["ask", "ask dr", "ask dr. ito", "dr", "dr. ito", "ito"]),
        ("Stop. Go", ["stop", "go"]),
        ("3 kids, 10km and 50%", ["3 kids", "kids", "10km", "50%"]),
        ("It may rain", ["rain"]),
        ("since 8 May", ["8 may", "may"]),
        ("#OldTownRoad and #sunset", ["old town road", "sunset"]),
        (
            "call foo_bar() in os.path.join, C++ or C#",
            ["call", "call foo_bar()", "foo_bar()", "os.path.join", "c++", "c#"],
        ),
        ("~/src/main.py", ["src/main.py"]),
        ("mail rosa.b@example.org.", ["mail", "rosa.b@example.org"]),
        (
            "see https://www.example.org/a/how-to-bake.",
            ["see", "example.org", "example.org/a/how-to-bake", "how to bake"],
        ),
        ("👩\u200d💻!!", ["👩\u200d💻"]),
        ("cake 🎂", ["cake", "🎂"]),
    ],
)
def test_examples(text, expected):
    assert keys(text) == expected


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("she works at the Bank of America now", "bank of america"),
        ("he reads “To the Old Lighthouse” again", "to the old lighthouse"),
        ('they saw "The Way We Were" twice', "the way we were"),
        ("on May 8, 2023 we met", "may 8, 2023"),
        ("at 5:30 pm", "5:30 pm"),
        ("it cost $5.50", "$5.50"),
        ("rock\u2011and\u2011roll", "rock-and-roll"),
        ("Fui a la playa con mi hermana y los niños", "hermana"),
        ("我昨天去了北京大学的图书馆", "北京大学"),
        ("我昨天去了北京大学的图书馆", "图书馆"),
        ("我的猫", "猫"),
        ("昨日、東京大学でサッカー選手とりんごを食べました。", "東京大学"),
        ("昨日、東京大学でサッカー選手とりんごを食べました。", "サッカー選手"),
        ("昨日、東京大学でサッカー選手とりんごを食べました。", "りんご"),
        ("서울 대학교 도서관에서 책을 읽었어요", "도서관"),
        ("서울 대학교 도서관에서 책을 읽었어요", "서울 대학교"),
        ("ฉันไปเที่ยวที่เชียงใหม่กับเพื่อน", "เชียงใหม่"),
        ("أحب القهوة العربية كثيرا", "القهوة العربية"),
        ("मुझे हिन्दी किताबें पढ़ना पसंद है", "हिन्दी किताबें"),
        ("Ünlü İstanbul güzel", "i̇stanbul"),
    ],
)
def test_a_text_gives_the_phrase_it_is_about(text, key):
    assert key in keys(text)


@pytest.mark.parametrize(
    ("text", "stop_words"),
    [
        ("Fui a la playa con mi hermana y los niños", {"a", "la", "con", "mi", "y", "los"}),
        ("Ich habe das Buch von der Insel gelesen", {"ich", "habe", "das", "von", "der"}),
    ],
)
def test_small_words_of_other_languages_are_no_concepts(text, stop_words):
    assert not stop_words & set(keys(text))


def test_short_english_words_stay():
    assert {"tv", "pc", "die"} <= set(keys("We sold the tv and the pc, so that it will not die"))


def test_decomposed_text_gives_composed_phrases():
    assert extract_phrases("cafe\u0301 도서관에서") == extract_phrases("café 도서관에서")


def test_the_speakers_own_name_is_no_concept():
    assert keys("Rosa: planted tulips", speaker="Rosa") == ["planted", "planted tulips", "tulips"]
    assert "rosa" in keys("Rosa: planted tulips")


@pytest.mark.parametrize(
    ("run", "phrases"),
    [
        ("猫", ["猫"]),
        ("我的猫", ["猫"]),
        ("图书馆", ["图书馆", "图书", "书馆"]),
        ("一二三四五六七八九", ["一二", "二三", "三四", "四五", "五六", "六七", "七八", "八九"]),
        ("りんごを食べました", ["りんご", "食"]),
        ("デジタル写真", ["デジタル写真", "デジタル", "写真"]),
        ("ไปเที่ยวที่ทะเล", ["ไปเที่ยว", "ทะเล"]),
    ],
)
def test_runs_without_spaces(run, phrases):
    assert list(run_phrases(run)) == phrases


def test_a_long_run_of_thai_gives_overlapping_pieces():
    run = "กรุงเทพมหานครอมรรัตนโกสินทร์"
    pieces = list(run_phrases(run))
    assert len(pieces) > 1
    assert all(piece in run for piece in pieces)
    assert run.startswith(pieces[0])
    assert run.endswith(pieces[-1])


@pytest.mark.parametrize("text", ["", " \n", "...", "and the", "\u200b", "'s"])
def test_a_text_without_information_has_no_phrases(text):
    assert extract_phrases(text) == []


def test_a_long_text_keeps_what_repeats_and_a_spread_of_the_rest():
    words = [f"word{number}" for number in range(9_000)]
    text = ". ".join(words) + ". refrain" * 3
    phrases = extract_phrases(text)
    assert len(phrases) == MAX_PHRASES
    assert phrases[-1] == Phrase("refrain", "refrain")
    places = [words.index(phrase.key) for phrase in phrases[:-1]]
    assert places == sorted(places)
    assert places[0] == 0
    assert places[-1] >= len(words) - 5
    assert max(after - before for before, after in pairwise(places)) <= 5


def test_a_text_of_many_repetitions_stays_bounded():
    text = ". ".join([f"word{number}" for number in range(3_000)] * 2)
    assert keys(text) == [f"word{number}" for number in range(MAX_PHRASES)]


def test_a_token_beyond_any_key_is_left_out():
    assert keys(f"token {'x' * 5_000} here garden") == ["token", "garden"]
