"""Existence: what may be said. Normalised keys and the prefix trie over them."""

from shared_core.schema.normalise import MAX_KEY_CHARACTERS, MAX_KEY_WORDS, fits_bounds, normalise_key
from shared_core.schema.trie import NO_KEY, ROOT, IntArray, PrefixTrie, Tokens, Trie, build_trie
from shared_core.schema.words import (
    EMOJI,
    FUNCTION_WORDS,
    HAN,
    HANGUL,
    HIRAGANA,
    KATAKANA,
    MARKS,
    SOUTHEAST,
    SPACELESS,
    word_set,
)

__all__ = [
    "EMOJI",
    "FUNCTION_WORDS",
    "HAN",
    "HANGUL",
    "HIRAGANA",
    "KATAKANA",
    "MARKS",
    "MAX_KEY_CHARACTERS",
    "MAX_KEY_WORDS",
    "NO_KEY",
    "ROOT",
    "SOUTHEAST",
    "SPACELESS",
    "IntArray",
    "PrefixTrie",
    "Tokens",
    "Trie",
    "build_trie",
    "fits_bounds",
    "normalise_key",
    "word_set",
]
