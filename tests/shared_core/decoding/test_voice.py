"""What a model knows of keys: computed once, kept, and laid out as a schema it can say."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import ConceptDecoder, KeyVoice, build_prior, gather_scores
from shared_core.decoding import decoder as decoder_module
from shared_core.decoding import spoken as spoken_module
from shared_core.schema import build_trie
from tests.conftest import HEAVY

KEYS = ["puppy", "puppy named rex", "rex", "cello lessons", "music", "北京大学", "may 8, 2023", "may 8", "canoe"]
UNSPEAKABLE = "\U00040000"


@pytest.fixture(scope="module")
def decoder(tiny) -> ConceptDecoder:
    return ConceptDecoder(tiny("llama"))


@pytest.fixture
def voice(decoder) -> KeyVoice:
    return KeyVoice(decoder)


@pytest.fixture(scope="module")
def neutral(decoder) -> dict[str, np.ndarray]:
    """Neutral log-probabilities of each key."""
    scores = {}
    for group in decoder.neutral_scores(decoder.encode_keys(KEYS)):
        scores |= group
    return {key: scores[tokens] for key, tokens in zip(KEYS, decoder.encode_keys(KEYS), strict=True)}


def missing(voice, keys):
    """How many of the keys that can be said are not weighed."""
    distinct = list(dict.fromkeys(keys))
    return sum(tokens is not None for tokens in voice.tokens(distinct)) - len(voice.known(distinct))


def computed(voice: KeyVoice, keys) -> dict[str, tuple[tuple[int, ...], np.ndarray]]:
    """What weighing has to compute: all but what is known, which comes first."""
    known = set(voice.known(keys))
    groups = list(voice.weigh(keys))
    assert not known or set(groups[0]) == known
    found = {}
    for group in groups[bool(known) :]:
        assert not set(found) & set(group)
        found |= group
    return found


def test_tokens_are_the_decoders_and_asked_for_once(decoder, voice, monkeypatch):
    asked = []
    encode_keys = decoder.encode_keys

    def spy(keys):
        asked.extend(keys)
        return encode_keys(keys)

    monkeypatch.setattr(decoder, "encode_keys", spy)
    keys = ["rex", UNSPEAKABLE, "music", "rex"]
    assert voice.tokens(keys) == encode_keys(keys)
    assert voice.tokens([*keys, "canoe"]) == encode_keys([*keys, "canoe"])
    assert asked == ["rex", UNSPEAKABLE, "music", "canoe"]


@HEAVY
@given(first=st.lists(st.sampled_from(KEYS)), second=st.lists(st.sampled_from(KEYS)))
def test_only_what_is_missing_is_computed(decoder, neutral, first, second):
    voice = KeyVoice(decoder)
    assert set(computed(voice, [*first, UNSPEAKABLE])) == set(first)
    assert missing(voice, [*KEYS, UNSPEAKABLE]) == len(set(KEYS) - set(first))
    found = computed(voice, second)
    assert set(found) == set(second) - set(first)
    for key, (tokens, scores) in found.items():
        assert (tokens,) == tuple(voice.tokens([key]))
        np.testing.assert_allclose(scores, neutral[key], atol=1e-4)
    assert missing(voice, [*first, *second]) == 0
    assert computed(voice, [*first, *second]) == {}


def test_what_was_computed_before_an_interruption_is_kept(decoder, voice, monkeypatch):
    monkeypatch.setattr(decoder_module, "SCORED_TOGETHER", 2)
    groups = voice.weigh(KEYS)
    done = [*next(groups), *next(groups)]
    groups.close()
    assert len(done) == 4
    assert missing(voice, KEYS) == len(KEYS) - 4
    assert set(computed(voice, KEYS)) == set(KEYS) - set(done)


def test_what_was_stored_is_not_computed_again(decoder, neutral, monkeypatch):
    voice = KeyVoice(decoder)
    tokens = dict(zip(KEYS, decoder.encode_keys(KEYS), strict=True))
    voice.learn({key: ([*map(np.int32, tokens[key])], neutral[key]) for key in KEYS[:3]})
    voice.learn({KEYS[3]: (list(tokens[KEYS[3]]), None)})
    assert missing(voice, KEYS[:4]) == 1

    def never(keys):
        assert list(keys) == []
        return []

    monkeypatch.setattr(decoder, "encode_keys", never)
    spoken = voice.speak(KEYS[:4], "base")
    known = voice.known(KEYS[:4])
    assert {key: found for key, (found, _) in known.items()} == {key: tokens[key] for key in KEYS[:3]}
    assert all(scores is neutral[key] for key, (_, scores) in known.items())
    assert spoken.known.tolist() == [True, True, True, False]
    assert spoken.prior.total[:3] == pytest.approx([neutral[key].sum() for key in KEYS[:3]], abs=1e-4)


@pytest.mark.parametrize("score", ["base", "schema"])
@HEAVY
@given(keys=st.lists(st.sampled_from([*KEYS, UNSPEAKABLE]), unique=True), known=st.sets(st.sampled_from(KEYS)))
def test_a_spoken_schema_holds_every_key_that_can_be_said(decoder, neutral, score, keys, known):
    voice = KeyVoice(decoder)
    voice.learn({key: (decoder.encode_keys([key])[0], neutral[key]) for key in known})
    spoken = voice.speak(keys, score)
    sayable = [key for key in keys if key != UNSPEAKABLE]
    assert [keys[concept] for concept in spoken.concept] == sayable
    assert [decoder.model.decode(tokens).strip() for tokens in spoken.trie] == sayable
    assert spoken.known.tolist() == [key in known for key in sayable]
    if known.issuperset(sayable):
        trie = build_trie([decoder.encode_keys([key])[0] for key in sayable])
        expected = build_prior(trie, *gather_scores(trie, [neutral[key] for key in sayable]), score)
        np.testing.assert_allclose(spoken.prior.total, expected.total, atol=1e-4)
        np.testing.assert_allclose(spoken.prior.best, expected.best, atol=1e-4)


def test_unknown_scores_have_stand_ins_by_length(voice):
    first, later, end = spoken_module.UNKNOWN_FIRST, spoken_module.UNKNOWN_LATER, spoken_module.UNKNOWN_END
    keys = ["music", "cello lessons", "canoe"]
    spoken = voice.speak(keys, "base")
    assert not spoken.known.any()
    lengths = [len(tokens) for tokens in voice.tokens(keys)]
    assert spoken.prior.total == pytest.approx([first + (length - 1) * later + end for length in lengths])
    assert first < end < 0 > later


def test_a_spoken_schema_stays_as_it_was(voice, neutral):
    before = voice.speak(KEYS, "base")
    totals = before.prior.total.copy()
    computed(voice, KEYS)
    assert not before.known.any()
    np.testing.assert_array_equal(before.prior.total, totals)
    after = voice.speak(KEYS, "base")
    assert after.known.all()
    assert after.prior.total == pytest.approx([neutral[key].sum() for key in KEYS], abs=1e-3)


def test_an_empty_schema_can_be_spoken(voice):
    for keys in ([], [UNSPEAKABLE]):
        spoken = voice.speak(keys, "schema")
        assert spoken.trie.key_count == len(spoken.concept) == len(spoken.known) == 0
    assert computed(voice, []) == {}


def test_threads_share_a_voice(decoder, neutral, monkeypatch):
    monkeypatch.setattr(decoder_module, "SCORED_TOGETHER", 2)
    voice = KeyVoice(decoder)
    faults = []
    together = threading.Barrier(4)

    def work(number: int) -> None:
        keys = KEYS[number:] + KEYS[:number]
        try:
            together.wait()
            for group in voice.weigh(keys):
                spoken = voice.speak(keys, "base")
                assert [keys[concept] for concept in spoken.concept] == keys
                for key, (tokens, scores) in group.items():
                    assert voice.tokens([key]) == [tokens]
                    np.testing.assert_allclose(scores, neutral[key], atol=1e-4)
            assert missing(voice, keys) == 0
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(2 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert voice.speak(KEYS, "base").prior.total == pytest.approx([neutral[key].sum() for key in KEYS], abs=1e-3)


def test_weighing_gives_what_is_known_as_well(voice, neutral):
    first = KEYS[:3]
    before = {key: scores for group in voice.weigh(first) for key, (_, scores) in group.items()}
    groups = list(voice.weigh([*KEYS, UNSPEAKABLE]))
    assert set(groups[0]) == set(first)
    every = {key: scores for group in groups for key, (_, scores) in group.items()}
    assert set(every) == set(KEYS)
    for key in first:
        np.testing.assert_array_equal(every[key], before[key])


def test_what_is_forgotten_meanwhile_is_still_given(voice):
    groups = voice.weigh(KEYS)
    every = dict(next(groups))
    voice.forget()
    for group in groups:
        every |= group
        voice.forget()
    assert set(every) == set(KEYS)
    assert voice.known(KEYS) == {}
