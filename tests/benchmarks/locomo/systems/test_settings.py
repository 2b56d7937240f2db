"""Names of variations, and which settings decide what is written, decoded and ranked."""

from __future__ import annotations

import pytest

from benchmarks.locomo.systems import DEFAULT, Workplace, choose
from benchmarks.locomo.systems.settings import ABLATIONS, decode_settings, parse_config, write_settings
from shared_core import SCGConfig
from shared_core.errors import InvalidInputError

PLAIN = SCGConfig()


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("scg", PLAIN),
        ("scg-paper", SCGConfig.paper()),
        ("scg:calibration=0", PLAIN.replace(calibration=0.0)),
        ("scg: hops = 2 , lookahead=off", PLAIN.replace(hops=2, lookahead=False)),
        ("scg:mentions=True,score=schema", PLAIN.replace(mentions=True, score="schema")),
        ("scg-paper:width=20,calibration=0.6", SCGConfig.paper().replace(width=20, calibration=0.6)),
    ],
)
def test_a_name_stands_for_a_configuration(name: str, config: SCGConfig):
    assert parse_config(name) == config


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("scg:widht=3", "there is no setting 'widht'.*width"),
        ("scg:width=wide", "width must be a whole number"),
        ("scg:calibration=x", "calibration must be a number"),
        ("scg:mentions=perhaps", "mentions must be on or off"),
        ("scg:score=best", "score must be one of"),
        ("scg:width=0", "width must be at least 1"),
        ("scg:width", "setting=value"),
        ("scg:", "setting=value"),
        ("scg:hops=1,hops=2", "twice"),
        ("scgg", "there is no system 'scgg'"),
        ("dense:", "there is no system 'dense:'"),
        ("bm25:k1=2", "there is no system"),
    ],
)
def test_a_wrong_name_says_what_is_wrong(name: str, message: str):
    with pytest.raises(InvalidInputError, match=message):
        choose([name])


def test_groups_are_spread_out_and_nothing_is_run_twice():
    names = [one.name for one in choose(["bm25", "ablations", "scg", "bm25"])]
    assert names == ["bm25", *ABLATIONS]
    assert [one.name for one in choose(DEFAULT)] == list(DEFAULT)
    configs = [parse_config(name) for name in ABLATIONS]
    assert all(one != other for place, one in enumerate(configs) for other in configs[:place])


def test_only_what_may_change_a_written_memory_makes_another_one():
    plain = write_settings(PLAIN)
    for name in ("width=50", "hops=0", "hops=2", "mentions=off", "generation_weight=0", "lexical_weight=0", "k=3"):
        assert write_settings(parse_config(f"scg:{name}")) == plain, name
    for name in ("calibration=0", "lookahead=off", "score=schema", "assimilate=0", "assimilate_width=4", "batch=2"):
        assert write_settings(parse_config(f"scg:{name}")) != plain, name
    # What is not looked at makes no difference.
    assert write_settings(parse_config("scg:new_concepts=4")) == plain
    assert write_settings(parse_config("scg:assimilate=0,calibration=0")) == write_settings(
        parse_config("scg:assimilate=0")
    )
    spans = [write_settings(parse_config(f"scg:accommodation=spans,new_concepts={count}")) for count in (4, 8)]
    assert spans[0] != spans[1]


def test_only_what_may_change_a_decode_makes_another_one():
    plain = decode_settings(PLAIN)
    for name in ("hops=0", "generation_weight=0", "passage_weight=0", "context_weight=1", "seed=3"):
        assert decode_settings(parse_config(f"scg:{name}")) == plain, name
    for name in ("width=50", "calibration=0", "lookahead=off", "score=schema", "method=exact"):
        assert decode_settings(parse_config(f"scg:{name}")) != plain, name
    drawn = [decode_settings(parse_config(f"scg:method=sample,seed={seed}")) for seed in (1, 2)]
    assert drawn[0] != drawn[1]


def test_systems_that_differ_say_so_in_their_settings(tmp_path):
    workplace = Workplace(tmp_path)
    entrants = choose(["bm25", "bm25-episode", "dense", "dense:other", "rrf", *ABLATIONS])
    settings = [repr(sorted(one.settings(workplace).items())) for one in entrants]
    assert len(set(settings)) == len(entrants)
