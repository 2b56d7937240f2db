"""Everything that makes decoding faster, switched on together, gives what plain decoding gives."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import ConceptDecoder, Constraint, SearchOptions, build_prior, gather_scores
from shared_core.models import TransformersModel
from shared_core.schema import build_trie
from tests.conftest import REPEATED

TEXTS = [
    "Where did Oskar buy the cedar canoe?",
    "We paddled to the mill.",
    "plum jam",
    "Who plays the violin at the wedding?",
]
WORDS = ["cedar", "canoe", "mill", "plum jam", "violin", "wedding", "old mill", "cedar strips", "violin strings", "jam"]


@pytest.fixture(scope="module")
def pair(tiny) -> Callable[[str], tuple[ConceptDecoder, ConceptDecoder]]:
    """A model with every speed-up, and the same model with none."""
    made: dict[str, tuple[ConceptDecoder, ConceptDecoder]] = {}

    def make(name: str) -> tuple[ConceptDecoder, ConceptDecoder]:
        if name not in made:
            plain = tiny(name)
            fast = TransformersModel(copy.deepcopy(plain._model), plain._tokenizer, threads=1, optimize=True)
            slow = TransformersModel(plain._model, plain._tokenizer, threads=1, mode="recompute")
            made[name] = ConceptDecoder(fast), ConceptDecoder(slow)
        return made[name]

    return make


@pytest.mark.parametrize("name", ["llama", "qwen2", "gemma3", "gpt2"])
@REPEATED
@given(
    chosen=st.lists(st.sampled_from(WORDS), min_size=2, unique=True),
    texts=st.lists(st.sampled_from(TEXTS), min_size=1, unique=True),
    score=st.sampled_from(["base", "schema"]),
    calibration=st.sampled_from([0.0, 0.6]),
)
def test_all_speedups_change_nothing(pair, name, chosen, texts, score, calibration):
    fast, slow = pair(name)
    keys = [tokens for tokens in fast.encode_keys(chosen) if tokens is not None]
    trie = build_trie(keys)
    neutral: dict = {}
    for group in slow.neutral_scores(keys):
        neutral |= group
    prior = build_prior(trie, *gather_scores(trie, [neutral[key] for key in keys]), score)
    quick = Constraint(trie, SearchOptions(len(keys), "beam", score, calibration, lookahead=True), prior)
    plain = Constraint(trie, SearchOptions(len(keys), "beam", score, calibration, lookahead=False), prior)
    together = fast.decode(texts, [[quick]] * len(texts))
    for text, reading in zip(texts, together, strict=True):
        (got,), (expected,) = reading.keys, slow.decode([text], [[plain]])[0].keys
        assert {one.key for one in got} == {one.key for one in expected} == set(range(len(keys)))
        scores = {one.key: one.score for one in expected}
        np.testing.assert_allclose([one.score for one in got], [scores[one.key] for one in got], atol=3e-3)


def test_the_embedded_model_finds_the_same_keys_without_its_speedups(decoder, plain_embedded):
    plain = ConceptDecoder(plain_embedded)
    keys = [tokens for tokens in decoder.encode_keys(WORDS) if tokens is not None]
    trie = build_trie(keys)
    constraint = Constraint(trie, SearchOptions(5, "exact"))
    for text in TEXTS:
        (got,), (expected,) = (one.decode([text], [[constraint]])[0].keys for one in (decoder, plain))
        assert [one.key for one in got] == [one.key for one in expected]
        np.testing.assert_allclose([one.score for one in got], [one.score for one in expected], atol=1e-3)
