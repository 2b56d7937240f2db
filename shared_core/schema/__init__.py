"""Existence: what may be said. Normalised keys and the prefix trie over them."""

from shared_core.schema.construction import build_trie, build_trie_from_arrays
from shared_core.schema.growth import PrefixTrie, extend_trie, node_origins
from shared_core.schema.layout import NO_KEY, NO_NODE, ROOT, IntArray
from shared_core.schema.marks import Ints
from shared_core.schema.normalise import MAX_KEY_CHARACTERS, MAX_KEY_WORDS, fits_bounds, normalise_key
from shared_core.schema.trie import Level, Tokens, Trie
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
    "NO_NODE",
    "ROOT",
    "SOUTHEAST",
    "SPACELESS",
    "IntArray",
    "Ints",
    "Level",
    "PrefixTrie",
    "Tokens",
    "Trie",
    "build_trie",
    "build_trie_from_arrays",
    "extend_trie",
    "fits_bounds",
    "node_origins",
    "normalise_key",
    "word_set",
]
