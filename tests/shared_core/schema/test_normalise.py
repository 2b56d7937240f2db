"""Keys: one written form for one concept, in any script, however it was typed."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared_core.schema.normalise import MAX_KEY_CHARACTERS, MAX_KEY_WORDS, fits_bounds, normalise_key

# Characters that rules are about, which uniform sampling of Unicode would hardly ever put side by side.
DELICATE = list(
    " \t\n.,!-+#@%()[]'\"_*1aAßΣςİ"
    "\u2019\u201c\u2026\u00ad\u0301\u200b\u200c\u200d\u200e\u202e\u2066\ufe0f\ufeff\u3000\u3164"
    "\U000e0041\U000e007f\U000e0100\u180b\u1820کकि्ั日ン한"
    "\U0001f469\U0001f4bb\U0001f3fd\U0001f3f4\U0001f1e9\u2764\ud800\x00\x85"
)
texts = st.text(st.one_of(st.characters(), st.sampled_from(DELICATE)), max_size=14)


@given(texts)
@example("\u29fd\ufe0frose")
@example("\u0323\u093c\u200d\u0915\ufffc-")
def test_a_normalised_key_stays_as_it_is(text):
    key = normalise_key(text)
    assert normalise_key(key) == key


@given(texts)
def test_a_key_is_composed_lower_case_text_with_single_spaces(text):
    key = normalise_key(text)
    assert unicodedata.normalize("NFC", key) == key
    assert key.lower() == key
    assert " ".join(key.split()) == key


@given(texts)
def test_a_key_holds_no_controls_and_can_be_encoded(text):
    key = normalise_key(text)
    key.encode()
    assert not [letter for letter in key if unicodedata.category(letter) == "Cc"]
    assert not set(key) & set("\u00ad\u200b\u200e\u200f\u202a\u202e\u2060\u2066\ufeff\u3164\ufffd")


@given(texts, st.text(" \t\n\u00a0\u3000\u200b\u202e.,;!?\u2026\u201c\u201d\u00bf", max_size=4))
def test_what_surrounds_a_word_makes_no_other_key(text, around):
    word = f"k{text}k"
    assert normalise_key(around + word + around) == normalise_key(word)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("  The  Garden\tClub ", "the garden club"),
        ("“Quoted”", "quoted"),
        ("¿Qué?", "qué"),
        ("Cafe\u0301", "café"),
        ("it’s", "it's"),
        ("rock\u2010and\u2011roll", "rock-and-roll"),
        ("Maße", "maße"),
        ("ΟΔΟΣ", "οδος"),
        ("C++", "c++"),
        ("C#,", "c#"),
        (".NET", "net"),
        ("...and", "and"),
        ("#Tag!", "tag"),
        ("@rosa:", "rosa"),
        ("(50%)", "50%"),
        ("-5", "-5"),
        ("- five", "five"),
        ("$5", "$5"),
        ("LGBTQ+", "lgbtq+"),
        ("f(x)", "f(x)"),
        ("(f(x))", "f(x)"),
        ("「東京」、", "東京"),
        ("नमस्ते।", "नमस्ते"),
        ("\u202eevil\u202c", "evil"),
        ("pass\u200bword", "password"),
        ("a\u200db", "ab"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("x\U000e0068\U000e0069", "x"),
        ("\u845b\U000e0100", "\u845b\U000e0100"),
        ("x\U000e0100", "x"),
    ],
)
def test_examples(text, key):
    assert normalise_key(text) == key


@pytest.mark.parametrize(
    "emoji",
    [
        "\U0001f469\u200d\U0001f4bb",  # a person and a computer, joined
        "\U0001f44d\U0001f3fd",  # with a skin tone
        "\u2764\ufe0f",
        "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468",
        "1\ufe0f\u20e3",
        "\U0001f1ef\U0001f1f5",
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",  # a flag spelled in tags
    ],
)
def test_emoji_sequences_survive(emoji):
    assert normalise_key(f"({emoji}!)") == emoji
    assert normalise_key(f"party {emoji}") == f"party {emoji}"


@pytest.mark.parametrize("text", ["", " ", "...", "---", "“”", "\u200b\u202e", "+++", "\u3164", "\ufffd", "`~^"])
def test_what_says_nothing_is_no_key(text):
    assert normalise_key(text) == ""
    assert not fits_bounds(normalise_key(text))


def test_bounds_count_words_and_characters():
    assert fits_bounds(" ".join("w" * MAX_KEY_WORDS))
    assert not fits_bounds(" ".join("w" * (MAX_KEY_WORDS + 1)))
    assert fits_bounds("x" * MAX_KEY_CHARACTERS)
    assert not fits_bounds("x" * (MAX_KEY_CHARACTERS + 1))
    assert normalise_key("X" * 500) == "x" * 500
