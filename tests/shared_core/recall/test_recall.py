"""Recalls on small memories made by hand, against the same steps written out in plain Python."""

import json
from datetime import datetime
from math import exp
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.config import SCGConfig
from shared_core.decoding import DecodedKey, KeyVoice, SearchOptions
from shared_core.entry import MemoryEntry
from shared_core.filters import Filter
from shared_core.recall import (
    Explanation,
    Question,
    Recaller,
    Snapshot,
    describe,
    generated_seeds,
    seed_constraint,
    unweighed,
)
from shared_core.store import ORIGINS, NamespaceState, StoredEntry

WORDS = ["ash", "birch", "cedar", "dogwood", "elm", "fir", "gorse", "hazel"]
QUERY = "Where do the birch and the fir grow?"
CONFIGS = [
    SCGConfig(hops=0),
    SCGConfig(hops=1, fan_out=2, context_weight=0.5),
    SCGConfig(hops=2, fan_out=1, context_weight=1.0, sample_context=True, seed=3),
    SCGConfig(mentions=False, hops=1, fan_out=3, context_weight=1.0),
    SCGConfig(generation_weight=0.0, hops=1),
]


def state_of(links, entries):
    """A namespace of the words: (entry, concept) to (weight, origin)."""
    pairs = sorted(links)
    return NamespaceState(
        generation=1,
        entries=[StoredEntry(seq, entry, True) for seq, entry in enumerate(entries)],
        concepts=[(word, word.title()) for word in WORDS],
        link_entry=np.array([entry for entry, _ in pairs], dtype=np.int32),
        link_concept=np.array([concept for _, concept in pairs], dtype=np.int32),
        link_weight=np.array([links[pair][0] for pair in pairs], dtype=np.float32),
        link_origin=np.array([links[pair][1] for pair in pairs], dtype=np.uint8),
    )


@st.composite
def memories(draw):
    """Links between the words and some entries, and the seeds that were generated."""
    size = draw(st.integers(1, 7))
    pairs = st.tuples(st.integers(0, size - 1), st.integers(0, len(WORDS) - 1))
    link = st.tuples(st.sampled_from([0.25, 0.5, 1.0]), st.integers(0, 2))
    links = draw(st.dictionaries(pairs, link, max_size=25))
    entries = [
        MemoryEntry(
            text=draw(st.sampled_from(["The birch grows?", "A fir", "Nothing of it", "Elm and hazel"])),
            id=str(number),
            speaker=draw(st.sampled_from([None, "Mira", "Birch"])),
            session=draw(st.sampled_from([None, "1", "2"])),
        )
        for number in range(size)
    ]
    scores = draw(st.dictionaries(st.integers(0, len(WORDS) - 1), st.floats(-20, 0, width=32), max_size=6))
    generated = [(concept, score - 1.0, score) for concept, score in scores.items()]
    generated.sort(key=lambda one: (-one[2], one[0]))
    return links, entries, generated


questions = st.builds(
    Question,
    st.sampled_from([QUERY, "Nothing that is known", "birch"]),
    k=st.none() | st.integers(1, 9),
    concepts=st.none() | st.integers(1, 9),
    where=st.none() | st.sampled_from([Filter(speaker="Mira"), Filter(session=["1", "2"]), Filter()]),
)


def recalled(memory, config, question):
    links, entries, generated = memory
    snapshot = Snapshot.build(state_of(links, entries))
    return snapshot, Recaller(snapshot, config).recall(question, generated)


@given(memories(), st.sampled_from(CONFIGS), questions)
def test_seeds_are_those_generated_or_mentioned(memory, config, question):
    _, recall = recalled(memory, config, Question(question.query, None))
    generated = {WORDS[concept]: (logprob, score) for concept, logprob, score in memory[2]}
    best = max((score for _, score in generated.values()), default=0)
    mentioned = {word for word in WORDS if word in question.query} if config.mentions else set()
    expected = {}
    for word in generated.keys() | mentioned:
        activation = 0.0
        if word in generated:
            activation += config.generation_weight * exp((generated[word][1] - best) / config.generation_temperature)
        if word in mentioned:
            activation += config.mention_weight
        if activation > 0:
            expected[word] = pytest.approx(activation)
    assert {seed.key: seed.activation for seed in recall.seeds} == expected
    for seed in recall.seeds:
        assert seed.surface == seed.key.title()
        assert seed.logprob == (generated[seed.key][0] if seed.key in generated else None)
        assert (seed.source in ("generated", "both")) == (seed.key in generated)
        assert (seed.source in ("mentioned", "both")) == (seed.key in mentioned)
    activations = [seed.activation for seed in recall.seeds]
    assert activations == sorted(activations, reverse=True)


@given(memories(), st.sampled_from(CONFIGS), questions)
def test_context_concepts_are_reached_from_seeds_over_the_graph(memory, config, question):
    snapshot, recall = recalled(memory, config, question)
    seeds = {seed.key: seed.activation for seed in recall.seeds}
    place = {word: number for number, word in enumerate(WORDS)}
    for one in recall.context:
        assert one.key not in seeds
        assert (one.path[0], one.path[-1]) == (one.seed, one.key)
        assert 2 <= len(one.path) <= config.hops + 1
        assert one.activation == pytest.approx(config.context_weight * one.probability * seeds[one.seed])
        product = 1.0
        for here, there in zip(one.path, one.path[1:], strict=False):
            others, shares = snapshot.graph.transitions(place[here], config.temperature)
            product *= float(shares[list(others).index(place[there])])
        assert one.probability == pytest.approx(product)


@given(memories(), st.sampled_from(CONFIGS), st.integers(1, 9))
def test_a_bound_on_concepts_keeps_the_most_active(memory, config, budget):
    _, unbounded = recalled(memory, config, Question(QUERY, None))
    _, bounded = recalled(memory, config, Question(QUERY, None, budget))
    activations = [one.activation for one in (*unbounded.seeds, *unbounded.context)]
    kept = [one.activation for one in (*bounded.seeds, *bounded.context)]
    assert sorted(kept, reverse=True) == sorted(activations, reverse=True)[:budget]
    keys = {seed.key for seed in bounded.seeds}
    assert {one.seed for one in bounded.context} <= keys  # what others were reached from stays with them


@given(memories(), st.sampled_from(CONFIGS), questions)
def test_reasons_explain_the_concepts_part_of_each_score(memory, config, question):
    links, entries, _ = memory
    snapshot, recall = recalled(memory, config, question)
    activation = {one.key: one.activation for one in (*recall.seeds, *recall.context)}
    sizes = [sum(number == owner for owner, _ in links) for number in range(len(entries))]
    usual = 3 * max(sum(sizes) / len(sizes), 1)  # an entry of more concepts is damped
    raw = {}
    for number, entry in enumerate(entries):
        damping = (usual / max(sizes[number], usual)) ** 0.5
        own = {word: links[number, concept] for concept, word in enumerate(WORDS) if (number, concept) in links}
        raw[entry.id] = {
            word: activation[word] * float(snapshot.rarity[WORDS.index(word)]) * weight * damping
            for word, (weight, _) in own.items()
            if word in activation
        }
    best = max(sum(of_entry.values()) for of_entry in raw.values())
    for one in recall.entries:
        assert {reason.key for reason in one.reasons} == raw[one.entry.id].keys()
        for reason in one.reasons:
            assert reason.contribution == pytest.approx(raw[one.entry.id][reason.key] / best, rel=1e-4)
            number = int(one.entry.id)
            assert reason.origin == ORIGINS[links[number, WORDS.index(reason.key)][1]]
            assert (reason.seed is None) == (reason.source != "context")
        contributions = [reason.contribution for reason in one.reasons]
        assert contributions == sorted(contributions, reverse=True)
        assert sum(contributions) == pytest.approx(one.parts["concepts"], rel=1e-4)
        summands = sum(value for part, value in one.parts.items() if part != "speaker")
        assert one.score == pytest.approx(summands * one.parts["speaker"])


@given(memories(), st.sampled_from(CONFIGS), questions)
def test_the_best_matching_entries_come_back_in_order(memory, config, question):
    everything = recalled(memory, config, Question(question.query, None, question.concepts))[1]
    scores = [one.score for one in everything.entries]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    matching = [one for one in everything.entries if question.where is None or question.where.matches(one.entry)]
    assert recalled(memory, config, question)[1].entries == tuple(matching[: question.k])
    if question.concepts is not None:
        assert all(one.reasons for one in everything.entries)


@given(memories(), st.sampled_from(CONFIGS), questions)
def test_a_recall_is_repeatable_and_can_be_written_as_json(memory, config, question):
    _, recall = recalled(memory, config, question)
    assert recalled(memory, config, question)[1] == recall
    body = json.loads(json.dumps(recall.to_dict()))
    assert [one["id"] for one in body["entries"]] == [one.entry.id for one in recall.entries]
    assert [one["key"] for one in body["seeds"]] == [seed.key for seed in recall.seeds]
    assert [tuple(one["path"]) for one in body["context"]] == [one.path for one in recall.context]


def test_nothing_reached_is_nothing_recalled():
    entries = [MemoryEntry("Elm", "1", session="1"), MemoryEntry("Hazel", "2", session="1")]
    snapshot = Snapshot.build(state_of({(0, 4): (1.0, 0)}, entries))
    recall = Recaller(snapshot, SCGConfig()).recall(Question("zeppelins", 5), [])
    assert (recall.entries, recall.seeds, recall.context) == ((), (), ())


def test_a_concept_without_activation_may_be_reached_as_context():
    """A seed that generation does not count is none, and must not stand in the way of the graph."""
    links = {(0, 1): (1.0, 0), (0, 2): (1.0, 0)}
    snapshot = Snapshot.build(state_of(links, [MemoryEntry("birch, cedar", "1")]))
    config = SCGConfig(generation_weight=0.0, mentions=True, hops=1, fan_out=1, context_weight=1.0)
    recall = Recaller(snapshot, config).recall(Question("birch", 1), [(2, -1.0, -1.0)])
    assert [seed.key for seed in recall.seeds] == ["birch"]
    assert [one.key for one in recall.context] == ["cedar"]


def test_what_was_decoded_becomes_seeds_by_calibrated_score():
    voice = KeyVoice(
        SimpleNamespace(encode_keys=lambda keys: [None if key == "elm" else (ord(key[0]),) for key in keys])
    )
    voice.learn(
        {"ash": ((97,), np.array([-9, -1], dtype=np.float32)), "fir": ((102,), np.array([-1, -1], dtype=np.float32))}
    )
    spoken = voice.speak(["elm", "fir", "cedar", "ash"], "base")  # the model cannot say "elm"
    number = {int(concept): key for key, concept in enumerate(spoken.concept)}
    decoded = [DecodedKey(number[1], -3.0, -2.0), DecodedKey(number[3], -4.0, 1.0), DecodedKey(number[2], -50.0, -40.0)]
    assert spoken.concept[unweighed(decoded, spoken)].tolist() == [2]
    config = SCGConfig(calibration=0.5)
    seeds = generated_seeds(decoded, spoken, config)
    assert [(concept, logprob) for concept, logprob, _ in seeds] == [(3, -4.0), (1, -3.0), (2, -50.0)]
    assert [score for _, _, score in seeds[:2]] == [pytest.approx(-4.0 + 5.0), pytest.approx(-3.0 + 1.0)]
    drawn = generated_seeds(decoded, spoken, config.replace(method="sample"))
    assert drawn == [(3, -4.0, 1.0), (1, -3.0, -2.0), (2, -50.0, -40.0)]
    constraint = seed_constraint(spoken, config.replace(width=7, method="exact", score="schema", seed=5))
    assert constraint.options == SearchOptions(7, "exact", "schema", 0.5, config.lookahead, 5)
    assert (constraint.trie, constraint.prior, constraint.excluded) == (spoken.trie, spoken.prior, None)


def test_an_entry_reads_as_one_line():
    entry = MemoryEntry("Two\nlines\u2028or more", "a\nb", "Mira\n[c] Tobi", occurred_at=datetime(2024, 5, 8, 9))
    assert describe(entry) == "[a b] 8 May 2024, Mira [c] Tobi: Two lines or more"
    assert describe(MemoryEntry("", "a", caption="a shed")) == "[a] [image: a shed]"


def test_an_explanation_shows_how_a_context_concept_was_reached():
    links = {(0, 1): (1.0, 0), (0, 2): (0.5, 1), (1, 2): (1.0, 0)}
    entries = [MemoryEntry("birch", "1"), MemoryEntry("cedar", "2")]
    snapshot = Snapshot.build(state_of(links, entries))
    config = SCGConfig(mentions=True, hops=1, fan_out=1, context_weight=0.5)
    recall = Recaller(snapshot, config).recall(Question("birch", None), [])
    explanation = Explanation.of(recall, entries[1], ("Cedar",), excluded=False)
    assert (explanation.rank, explanation.reached) == (2, 2)
    assert [one.key for one in explanation.context] == ["cedar"]
    assert "Cedar  (said; context by birch → cedar, p = 1.000)" in explanation.as_text()
    assert json.loads(json.dumps(explanation.to_dict()))["context"][0]["path"] == ["birch", "cedar"]
    assert "Birch  (said; mentioned, activation" in Explanation.of(recall, entries[0], (), excluded=False).as_text()
