"""Reading entries with the model: pieces of long ones, assimilation into what exists, the gate, accommodation."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.config import SCGConfig
from shared_core.decoding import ConceptDecoder, KeyVoice
from shared_core.entry import MemoryEntry
from shared_core.evolution import Distiller, Vocabulary, extract_phrases
from shared_core.evolution.distillation import read_in_pieces
from shared_core.schema import normalise_key
from shared_core.store import EntryWrite
from tests.conftest import HEAVY

WORD = st.one_of(st.sampled_from(["tulips", "of", "I"]), st.text("abc", min_size=1, max_size=9))
CONCEPTS = ["puppy", "rex", "cello lessons", "music", "tulips", "garden", "北京大学", "may 8, 2023", "may 8", "canoe"]
ENTRIES = [
    MemoryEntry("I adopted a puppy and named him Rex", "1", speaker="Anna"),
    MemoryEntry("My cello lessons start on May 8, 2023", "2"),
    MemoryEntry("我在北京大学读书", "3", caption="a garden with tulips"),
    MemoryEntry("yes!", "4"),
]


@given(
    st.lists(WORD, min_size=1, max_size=700), st.sampled_from([" ", "\n\n", " \t "]), st.sampled_from([None, "Anna"])
)
def test_pieces_hold_every_word_in_order(words, space, speaker):
    pieces = read_in_pieces(MemoryEntry(space.join(words), speaker=speaker))
    lead = f"{speaker}: " if speaker else ""
    assert all(piece.startswith(lead) for piece in pieces)
    read = [piece.removeprefix(lead) for piece in pieces]
    assert [word for piece in read for word in piece.split()] == words
    assert all(0 < len(piece.split()) <= 160 and len(piece) <= 1200 for piece in read)
    # No piece more than needed: two neighbours would not fit into one.
    for one, other in itertools.pairwise(read):
        assert len(f"{one} {other}".split()) > 160 or len(f"{one} {other.split()[0]}") > 1200


@given(st.integers(1, 5000), st.sampled_from(["字", "x", "😀"]), st.booleans())
def test_text_without_spaces_is_cut(length, letter, after_a_word):
    text = ("word " if after_a_word else "") + letter * length
    read = read_in_pieces(MemoryEntry(text))
    assert "".join(read).replace(" ", "") == text.replace(" ", "")
    assert all(len(piece) <= 1200 for piece in read)
    assert len(read) <= length // 1200 + 2


def test_a_short_entry_is_one_piece_with_its_caption():
    assert read_in_pieces(MemoryEntry("look", speaker="Anna", caption="a cake")) == ["Anna: look [image: a cake]"]
    assert read_in_pieces(MemoryEntry("", caption="a cake")) == ["[image: a cake]"]


NOTHING = np.zeros(0, dtype=np.int64)


@pytest.fixture(scope="module")
def voice(tiny) -> KeyVoice:
    """A model that knows nothing, and the neutral scores of all concepts."""
    voice = KeyVoice(ConceptDecoder(tiny("llama")))
    for _ in voice.weigh(CONCEPTS):
        pass
    return voice


@pytest.fixture(scope="module")
def sensible(decoder) -> KeyVoice:
    return KeyVoice(decoder)


def vocabulary(voice: KeyVoice, keys, config: SCGConfig) -> Vocabulary:
    return Vocabulary([(key, key.title()) for key in keys], voice.speak(keys, config.score))


def places(keys, *said: str) -> np.ndarray:
    """Which concepts of a vocabulary the given keys are; unknown ones are none."""
    return np.array([keys.index(key) for key in said if key in keys], dtype=np.int64)


def test_a_vocabulary_knows_what_the_model_can_say(voice):
    keys = ["puppy", "\U00040000", "rex"]
    words = vocabulary(voice, keys, SCGConfig())
    assert words.spoken.concept.tolist() == [0, 2]
    for place, key in enumerate(["puppy", "rex"]):
        link = words.link(SimpleNamespace(key=place), 0.25)
        assert (link.key, link.surface, link.weight, link.origin) == (key, key.title(), 0.25, "inferred")


@HEAVY
@given(
    keys=st.lists(st.sampled_from(CONCEPTS), unique=True),
    said=st.lists(st.sets(st.sampled_from([*CONCEPTS, "unknown to the schema"])), min_size=2, max_size=4),
    count=st.integers(1, 12),
    score=st.sampled_from(["base", "schema"]),
    calibration=st.sampled_from([0.0, 0.6]),
)
def test_assimilation_takes_the_best_existing_concepts_not_said(voice, keys, said, count, score, calibration):
    config = SCGConfig(
        assimilate=count, assimilate_width=12, score=score, calibration=calibration, batch=3, inferred_weight=0.25
    )
    words = vocabulary(voice, keys, config)
    entries = ENTRIES[: len(said)]
    found = Distiller(voice, config).assimilate(entries, [places(keys, *one) for one in said], words)
    assert len(found) == len(entries)
    for entry, own, links in zip(entries, said, (one.links for one in found), strict=True):
        others = [key for key in keys if key not in own]
        assert {link.key for link in links} <= set(others)
        assert len(links) == len({link.key for link in links}) == min(count, len(others))
        assert all((link.origin, link.weight, link.surface) == ("inferred", 0.25, link.key.title()) for link in links)
        if score == "base":  # every key scored alone
            tokens = dict(zip(voice.tokens(others), others, strict=True))
            text = read_in_pieces(entry)[0]
            totals = {
                tokens[key]: one.sum()
                for group in voice.decoder.score(text, list(tokens))
                for key, one in group.items()
            }
            for key, (_, neutral) in voice.known(others).items():
                totals[key] -= calibration * neutral.sum()
            ranked = sorted(totals, key=totals.__getitem__, reverse=True)
            assert [totals[link.key] for link in links] == pytest.approx(
                [totals[key] for key in ranked[:count]], abs=5e-3
            )


def test_each_piece_of_a_long_entry_is_assimilated(voice):
    config = SCGConfig(assimilate=1, assimilate_width=12, calibration=0.0)
    words = vocabulary(voice, CONCEPTS, config)
    texts = ["puppy " * 160, "cello " * 160, "garden " * 90]
    (whole,) = Distiller(voice, config).assimilate([MemoryEntry("".join(texts))], [NOTHING], words)
    best = set()
    for text in texts:
        (one,) = Distiller(voice, config).assimilate([MemoryEntry(text)], [NOTHING], words)
        best |= {link.key for link in one.links}
    assert {link.key for link in whole.links} == best


@HEAVY
@given(
    accommodation=st.sampled_from(["phrases", "spans", "generate"]),
    gate=st.sampled_from(["always", "perplexity", "unknown"]),
    score=st.sampled_from(["base", "schema"]),
    grounded=st.booleans(),
    threshold=st.sampled_from([1.5, 1e4, 1e9]),
    keys=st.lists(st.sampled_from(CONCEPTS), unique=True, max_size=6),
    assimilate=st.integers(0, 3),
)
def test_whatever_the_settings_links_are_what_they_say(
    voice, accommodation, gate, score, grounded, threshold, keys, assimilate
):
    config = SCGConfig(
        accommodation=accommodation,
        gate=gate,
        score=score,
        grounded=grounded,
        perplexity_threshold=threshold,
        assimilate=assimilate,
        new_concepts=3,
        batch=3,
        inferred_weight=0.5,
    )
    found = Distiller(voice, config).evolve(ENTRIES, vocabulary(voice, keys, config))
    assert len(found) == len(ENTRIES)
    for entry, links in zip(ENTRIES, found, strict=True):
        EntryWrite(entry, tuple(links))  # takes them as they are
        own = {phrase.key for phrase in extract_phrases(entry.content, speaker=entry.speaker)}
        grounding = [link for link in links if link.is_grounding]
        for link in links:
            assert link.weight == (1.0 if link.is_grounding else 0.5)
            assert (link.origin == "said") <= (link.key in own)
            if link.origin == "inferred":
                assert link.key in set(keys) - own
            if link.origin == "generated":
                assert accommodation == "generate"
                assert link.key not in own
        # An entry with phrases keeps a concept of its own unless the schema represents it well.
        if own and (gate == "always" or not keys):
            assert grounding
        assert bool(links) or not own
        assert len(grounding) <= 3 + assimilate
        assert len(links) - len(grounding) <= assimilate


@pytest.mark.parametrize("score", ["base", "schema"])
@pytest.mark.parametrize("gate", ["perplexity", "unknown"])
def test_the_gate_opens_for_what_the_schema_does_not_represent(sensible, gate, score):
    """Whatever the score: under the schema's own, the only key there is would represent everything perfectly."""
    config = SCGConfig.paper().replace(accommodation="spans", gate=gate, score=score)
    words = vocabulary(sensible, ["cello lessons"], config)
    new, known = Distiller(sensible, config).evolve(ENTRIES[:2], words)
    assert {"puppy", "rex"} <= {link.key for link in new if link.origin == "said"}
    assert [(link.key, link.origin) for link in known] == [("cello lessons", "said")]


def test_the_first_entry_of_a_memory_is_always_novel(voice):
    for gate in ("perplexity", "unknown"):
        config = SCGConfig(accommodation="spans", gate=gate, perplexity_threshold=1e30)
        (links,) = Distiller(voice, config).evolve(ENTRIES[:1], vocabulary(voice, [], config))
        assert {link.key for link in links} <= {phrase.key for phrase in extract_phrases(ENTRIES[0].content)}
        assert links


def test_the_threshold_decides_what_is_novel(voice):
    entry = MemoryEntry("a canoe of cedar strips", "1")
    novel = []
    for threshold in (1e-9, 1e30):
        config = SCGConfig(accommodation="spans", gate="perplexity", perplexity_threshold=threshold)
        (links,) = Distiller(voice, config).evolve([entry], vocabulary(voice, ["puppy"], config))
        novel.append(any(link.is_grounding for link in links))
    assert novel == [True, False]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_is_novel_is_judged_by_all_keys_it_is_grounded_in(voice, count):
    """Every key scored alone: the perplexity of the best ones is where the gate opens."""
    entry = MemoryEntry("quartz from a quarry", "1")
    tokens = voice.tokens(CONCEPTS)
    scored = [one for group in voice.decoder.score(read_in_pieces(entry)[0], tokens) for one in group.values()]
    best = sorted(scored, key=lambda one: -one.sum())[: max(1, count)]
    perplexity = float(np.exp(-np.concatenate(best).mean()))
    novel = []
    for threshold in (0.99 * perplexity, 1.01 * perplexity):
        config = SCGConfig(
            accommodation="spans",
            gate="perplexity",
            perplexity_threshold=threshold,
            assimilate=count,
            assimilate_width=12,
        )
        (links,) = Distiller(voice, config).evolve([entry], vocabulary(voice, CONCEPTS, config))
        novel.append(any(link.origin == "said" for link in links))
    assert novel[0]
    assert not novel[1] or not count  # grounded in nothing it keeps its own words


def test_spans_are_the_models_choice_of_the_entrys_own_words(sensible):
    config = SCGConfig(accommodation="spans", new_concepts=3, assimilate=0)
    (links,) = Distiller(sensible, config).evolve(ENTRIES[:1], vocabulary(sensible, [], config))
    own = {phrase.key: phrase.surface for phrase in extract_phrases(ENTRIES[0].content)}
    assert len(links) == 3
    assert all(link.origin == "said" and own[link.key] == link.surface for link in links)
    assert "puppy" in {link.key for link in links}


def test_generated_concepts_are_the_models_own_words(sensible, monkeypatch):
    entry = ENTRIES[0]
    (line,) = sensible.decoder.generate(read_in_pieces(entry), max_tokens=12)
    asked = []

    def generate(texts, *, max_tokens, most):
        asked.append((list(texts), max_tokens, most))
        return [line]

    monkeypatch.setattr(sensible.decoder, "generate", generate)
    free = SCGConfig(accommodation="generate", grounded=False, assimilate=0, new_concepts=2)
    words = vocabulary(sensible, [], free)
    (links,) = Distiller(sensible, free).evolve([entry], words)
    # Of ungrounded concepts no more are written than are kept; of grounded ones all, since some will be refused.
    assert asked == [(read_in_pieces(entry), 12, 2)]
    listed = list(dict.fromkeys(filter(None, map(normalise_key, line.split(",")))))
    assert [link.key for link in links] == listed[:2]
    (grounded,) = Distiller(sensible, free.replace(grounded=True)).evolve([entry], words)
    assert asked[1:] == [(read_in_pieces(entry), 12, 0)]
    assert {link.key for link in grounded} <= set(listed)
    assert all(set(link.key.split()) <= set(entry.text.lower().split()) for link in grounded)


def test_where_nothing_is_sought_nothing_is_searched(sensible, monkeypatch):
    """Neither to be grounded in what is known nor to pass a gate, entries are read only to write their concepts."""
    config = SCGConfig(accommodation="generate", grounded=False, gate="always", assimilate=0, new_concepts=2)
    words = vocabulary(sensible, ["cello lessons"], config)
    (before,) = Distiller(sensible, config.replace(assimilate=1)).evolve(ENTRIES[:1], words)

    def decode(texts, constraints):
        raise AssertionError(f"searched for {texts}")

    monkeypatch.setattr(sensible.decoder, "decode", decode)
    (links,) = Distiller(sensible, config).evolve(ENTRIES[:1], words)
    assert links == [link for link in before if link.is_grounding]


def test_an_entry_of_which_nothing_generated_is_kept_says_its_phrases(voice):
    """A model that writes nonsense: nothing of it is in the entry."""
    config = SCGConfig(accommodation="generate", new_concepts=2, assimilate=0)
    (links,) = Distiller(voice, config).evolve(ENTRIES[:1], vocabulary(voice, [], config))
    phrases = extract_phrases(ENTRIES[0].content, speaker="Anna")
    assert [(link.key, link.origin) for link in links] == [(phrase.key, "said") for phrase in phrases[:2]]


def test_entries_together_are_distilled_as_alone(voice):
    config = SCGConfig(accommodation="spans", gate="perplexity", batch=8)
    words = vocabulary(voice, CONCEPTS[:4], config)
    together = Distiller(voice, config).evolve(ENTRIES, words)
    alone = [Distiller(voice, config.replace(batch=1)).evolve([entry], words)[0] for entry in ENTRIES]
    assert together == alone


def test_nothing_to_distil_is_nothing(voice):
    config = SCGConfig(accommodation="generate")
    distiller = Distiller(voice, config)
    words = vocabulary(voice, CONCEPTS, config)
    assert distiller.assimilate([], [], words) == distiller.evolve([], words) == []
    (found,) = distiller.assimilate([ENTRIES[0]], [np.arange(len(CONCEPTS))], words)
    assert found.links == distiller.anticipate([]) == []
