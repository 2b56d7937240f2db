"""Ranking equals the same sums written out in plain Python."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.graph import Incidence
from shared_core.recall.ranking import Episodes, RankingWeights, rank_entries

WEIGHTS = RankingWeights(
    lexical=1.5, anticipation=2.5, answer=0.4, passage=0.3, passage_radius=2, session=0.7, speaker=0.9
)
amounts = st.floats(0, 4, width=32)


@st.composite
def memories(draw):
    size = draw(st.integers(0, 9))
    concepts = draw(st.integers(0, 5))

    def one_per_entry(values):
        return draw(st.lists(values, min_size=size, max_size=size))

    pairs = st.tuples(st.integers(0, max(concepts - 1, 0)), st.integers(0, max(size - 1, 0)))
    links = draw(st.dictionaries(pairs, amounts, max_size=20 if concepts and size else 0))
    return {
        "links": links,
        "size": size,
        "idf": draw(st.lists(amounts, min_size=concepts, max_size=concepts)),
        "activations": draw(st.lists(amounts, min_size=concepts, max_size=concepts)),
        "sessions": one_per_entry(st.integers(-1, 2)),
        "speakers": one_per_entry(st.integers(-1, 2)),
        "asks": one_per_entry(st.booleans()),
        "order": draw(st.permutations(range(size))),
        "lexical": one_per_entry(amounts),
        "anticipation": draw(st.sampled_from([None, one_per_entry(st.floats(0, 1))])),
        "named": draw(st.lists(st.integers(0, 2), unique=True)),
        "coverage": draw(st.lists(amounts, min_size=size, max_size=size)),
    }


def arrays(memory):
    links = memory["links"]
    incidence = Incidence.from_links(
        np.array([concept for concept, _ in links], dtype=np.int64),
        np.array([entry for _, entry in links], dtype=np.int64),
        np.array(list(links.values()), dtype=np.float32),
        len(memory["idf"]),
    )
    episodes = Episodes.arrange(
        np.array(memory["sessions"], dtype=np.int64),
        np.array(memory["speakers"], dtype=np.int64),
        np.array(memory["asks"], dtype=bool),
        np.array(memory["order"], dtype=np.int64),
    )
    return incidence, episodes


def ranked(memory, weights):
    incidence, episodes = arrays(memory)
    sessions = int(episodes.sessions.max(initial=-1)) + 1
    return rank_entries(
        incidence,
        np.array(memory["idf"]),
        np.array(memory["activations"]),
        episodes,
        np.array(memory["lexical"], dtype=np.float32),
        np.array(memory["coverage"][:sessions], dtype=np.float32),
        np.array(memory["anticipation"]) if memory["anticipation"] else None,
        memory["named"],
        weights,
    )


def by_the_book(memory, weights):
    """Entry scores, entry by entry."""
    entries = range(memory["size"])
    labels = [label if label >= 0 else f"alone {entry}" for entry, label in enumerate(memory["sessions"])]
    # Sessions are numbered by label, and those of lone entries follow in the order of the entries.
    numbered = sorted({label for label in labels if isinstance(label, int)})
    numbered += [label for label in labels if isinstance(label, str)]

    def evidence(concept, entry):
        weight = memory["links"].get((concept, entry), 0)
        return memory["activations"][concept] * memory["idf"][concept] * weight

    concepts = range(len(memory["idf"]))
    own = [sum(evidence(concept, entry) for concept in concepts) for entry in entries]
    best_own = max(own, default=0)

    def scaled(value):
        return value / best_own if best_own > 0 else 0

    expected = memory["anticipation"] or [0] * memory["size"]
    turn = [
        scaled(own[entry]) + weights.lexical * memory["lexical"][entry] + weights.anticipation * expected[entry]
        for entry in entries
    ]
    scores = []
    for entry in entries:
        session = sorted((e for e in entries if labels[e] == labels[entry]), key=lambda e: memory["order"][e])
        place = session.index(entry)
        covered = sum(max(evidence(concept, e) for e in session) for concept in concepts)
        words = memory["coverage"][numbered.index(labels[entry])]
        whole = scaled(covered) + weights.lexical * words
        near = session[max(0, place - weights.passage_radius) : place + weights.passage_radius + 1]
        total = turn[entry] + weights.passage * max(turn[e] for e in near) + weights.session * whole
        if place and memory["asks"][session[place - 1]]:
            total += weights.answer * turn[session[place - 1]]
        if memory["speakers"][entry] in memory["named"]:
            total *= 1 + weights.speaker
        scores.append(total)
    return scores


@given(memories(), st.integers(0, 3))
def test_scores_equal_the_sums_written_out(memory, radius):
    weights = replace(WEIGHTS, passage_radius=radius)
    scores = ranked(memory, weights).total
    np.testing.assert_allclose(scores, by_the_book(memory, weights), rtol=1e-5, atol=1e-6)


@given(memories())
def test_the_parts_add_up_to_the_total(memory):
    scores = ranked(memory, WEIGHTS)
    parts = scores.concepts + scores.lexical + scores.anticipation + scores.answer + scores.passage + scores.session
    np.testing.assert_allclose(parts * scores.speaker, scores.total)


@given(memories())
def test_nothing_active_and_nothing_matching_scores_zero(memory):
    silent = memory | {
        "activations": [0.0] * len(memory["activations"]),
        "lexical": [0.0] * memory["size"],
        "anticipation": None,
        "coverage": [0.0] * memory["size"],
    }
    assert not ranked(silent, WEIGHTS).total.any()


@given(memories(), st.floats(0.25, 8))
def test_the_scale_of_activations_makes_no_difference(memory, factor):
    louder = memory | {"activations": [value * factor for value in memory["activations"]]}
    np.testing.assert_allclose(ranked(louder, WEIGHTS).total, ranked(memory, WEIGHTS).total, rtol=1e-4, atol=1e-6)


def test_the_defaults_are_the_measured_weights():
    memory = {
        "links": {(0, 0): 1.0},
        "size": 2,
        "idf": [1.0],
        "activations": [2.0],
        "sessions": [5, 5],
        "speakers": [0, 1],
        "asks": [True, False],
        "order": [0, 1],
        "lexical": [0.0, 0.0],
        "anticipation": None,
        "coverage": [0.0, 0.0],
        "named": [1],
    }
    question, answer = ranked(memory, None).total
    assert question == pytest.approx(1 + 0.7 + 0.2)
    assert answer == pytest.approx((0.6 + 0.7 + 0.2) * 1.7)
