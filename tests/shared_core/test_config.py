"""Settings are checked when they are made, and say what is wrong."""

from dataclasses import fields

import pytest

from shared_core import SCGConfig
from shared_core.errors import InvalidInputError

# A usable and an unusable value of every setting.
VALUES = {
    "k": (3, 0),
    "width": (7, 0),
    "method": ("exact", "greedy"),
    "score": ("schema", "log"),
    "calibration": (0.2, -0.1),
    "lookahead": (False, 1),
    "generation_weight": (0.7, -1.0),
    "generation_temperature": (2.0, 0.0),
    "mentions": (True, "yes"),
    "mention_weight": (2.5, float("nan")),
    "lexical_weight": (0.0, float("inf")),
    "passage_weight": (0.1, "much"),
    "passage_radius": (1, 1.5),
    "answer_weight": (0.1, None),
    "session_weight": (0.1, -2),
    "speaker_weight": (0.1, True),
    "anticipation_weight": (0.0, -1),
    "hops": (2, -1),
    "fan_out": (5, True),
    "temperature": (0.5, 0),
    "sample_context": (True, 0),
    "context_weight": (0.9, [1.0]),
    "concept_budget": (35, -1),
    "accommodation": ("spans", "words"),
    "gate": ("unknown", None),
    "perplexity_threshold": (3.0, 0.0),
    "new_concepts": (2, 0),
    "grounded": (False, "no"),
    "assimilate": (0, -1),
    "assimilate_width": (2, 0),
    "inferred_weight": (1.0, 1.5),
    "batch": (3, 0),
    "answer_tokens": (5, 0),
    "seed": (9, -9),
}


def test_every_setting_is_tried():
    assert set(VALUES) == {field.name for field in fields(SCGConfig)}


@pytest.mark.parametrize("name", VALUES)
def test_a_setting_takes_what_is_usable_and_refuses_the_rest(name):
    usable, unusable = VALUES[name]
    changed = SCGConfig().replace(**{name: usable})
    assert getattr(changed, name) == usable
    assert SCGConfig(**{name: usable}) == changed
    for make in (SCGConfig, SCGConfig().replace, SCGConfig.paper().replace):
        with pytest.raises(InvalidInputError, match=name):
            make(**{name: unusable})


def test_nothing_inferred_weighs_nothing_is_refused():
    with pytest.raises(InvalidInputError, match="inferred_weight"):
        SCGConfig(inferred_weight=0.0)


def test_an_unknown_setting_is_named():
    with pytest.raises(InvalidInputError, match=r"beam, top_k$"):
        SCGConfig().replace(top_k=3, beam=2, k=4)


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        SCGConfig().k = 3


def test_the_paper_s_settings_are_those_it_states():
    paper = SCGConfig.paper()
    assert (paper.concept_budget, paper.hops, paper.sample_context) == (35, 1, True)
    assert (paper.score, paper.calibration, paper.lookahead) == ("schema", 0, False)
    # Accommodation relaxes the constraint: what the model writes is kept, whether the entry says it or not.
    assert (paper.accommodation, paper.gate, paper.grounded) == ("generate", "perplexity", False)
    # Nothing but seeds and graph has a part in the ranking.
    assert not paper.mentions
    others = ("lexical_weight", "passage_weight", "answer_weight", "session_weight", "speaker_weight")
    assert [getattr(paper, name) for name in others] == [0] * 5
