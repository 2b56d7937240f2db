"""Our memory as a system: what is shared between variations, and that replays change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.locomo.dataset import Conversation
from benchmarks.locomo.systems import Cost, Ranked, Workplace, choose
from benchmarks.locomo.systems import memory as module
from benchmarks.locomo.systems.memory import Memory
from benchmarks.locomo.systems.replay import ReadingFile, WrittenMemory
from benchmarks.locomo.systems.settings import parse_config
from shared_core import MemoryEntry, SchemaMemory
from shared_core.decoding import ConceptDecoder, DecodedKey, Reading
from shared_core.models import TransformersModel
from shared_core.store import Anticipation

QUERIES = ["What leaks at the stern?", "Where was Bram with Odile?"]


@pytest.fixture
def model(tiny: Callable[[str], TransformersModel]) -> TransformersModel:
    return tiny("llama")


@pytest.fixture
def turns(conversations: list[Conversation]) -> Sequence[MemoryEntry]:
    return conversations[0].turns


def ignore(done: int) -> None:
    pass


def answers(
    name: str, model: TransformersModel, cache: Path, turns: Sequence[MemoryEntry]
) -> tuple[Cost, list[Ranked]]:
    system = Memory(parse_config(name), model, cache)
    try:
        return system.write(turns, ignore), [system.read(query, 35) for query in QUERIES]
    finally:
        system.close()


def counts(found: list[Ranked]) -> list[tuple[int, int]]:
    return [(one.cost.passes, one.cost.tokens) for one in found]


def test_it_answers_as_the_memory_does(model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry]):
    config = parse_config("scg:width=4")
    cost, found = answers("scg:width=4", model, tmp_path / "cache", turns)
    with SchemaMemory.open(tmp_path / "plain.db", model=model, config=config) as plain:
        plain.remember(turns)
        expected = [[one.entry.id for one in plain.recall(query, k=35).entries] for query in QUERIES]
    assert [one.ids for one in found] == expected
    assert all(expected)
    assert cost.passes > 0
    assert all(one.cost.passes > 0 for one in found)


def test_a_replay_gives_the_same_at_the_cost_of_the_original(
    model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry], monkeypatch: pytest.MonkeyPatch
):
    wrote, first = answers("scg:width=4", model, tmp_path, turns)
    files = sorted(one.name for one in tmp_path.iterdir())
    monkeypatch.setattr(model, "tree", None)  # nothing may be run any more
    again, second = answers("scg:width=4", model, tmp_path, turns)
    assert again == wrote
    assert [one.ids for one in second] == [one.ids for one in first]
    assert counts(second) == counts(first)
    readings = ReadingFile(next(tmp_path.glob("*.jsonl")))
    for query, one in zip(QUERIES, second, strict=True):
        kept = readings.get(query)
        assert kept is not None
        assert one.cost.seconds > kept[1].seconds > 0  # the ranking of this time comes on top
    assert sorted(one.name for one in tmp_path.iterdir()) == files
    # A variation of the ranking needs the model no more than that.
    _, third = answers(
        "scg:width=4,generation_weight=0,anticipation_weight=0,hops=0,mentions=off", model, tmp_path, turns
    )
    assert counts(third) == counts(first)


def test_variations_part_where_they_differ(model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry]):
    def made() -> tuple[int, int]:
        return len(list(tmp_path.glob("*.db"))), len(list(tmp_path.glob("*-*.jsonl")))

    answers("scg:width=4", model, tmp_path, turns)
    assert made() == (1, 1)
    answers("scg:width=4,speaker_weight=0", model, tmp_path, turns)
    assert made() == (1, 1)
    answers("scg:width=5", model, tmp_path, turns)
    assert made() == (1, 2)
    answers("scg:width=4,assimilate=0", model, tmp_path, turns)
    assert made() == (2, 3)
    answers("scg:width=4", model, tmp_path, turns[:5])
    assert made() == (3, 4)


def test_a_memory_half_written_is_written_anew(
    model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry], monkeypatch: pytest.MonkeyPatch
):
    def killed(self: SchemaMemory, what: Sequence[MemoryEntry], **options: object) -> None:
        remember(self, what[:2])
        raise KeyboardInterrupt

    remember = SchemaMemory.remember
    monkeypatch.setattr(SchemaMemory, "remember", killed)
    with pytest.raises(KeyboardInterrupt):
        answers("scg:width=4", model, tmp_path, turns)
    assert not list(tmp_path.glob("*.db"))
    monkeypatch.setattr(SchemaMemory, "remember", remember)
    _, found = answers("scg:width=4", model, tmp_path, turns)
    _, undisturbed = answers("scg:width=4", model, tmp_path / "other", turns)
    assert [one.ids for one in found] == [one.ids for one in undisturbed]
    assert not [one.name for one in tmp_path.iterdir() if "partial" in one.name]


def test_what_another_process_is_writing_is_left_alone(tmp_path: Path):
    lives, died = tmp_path / "m.1.partial", tmp_path / "m.999999999.partial-wal"
    for left in (lives, died):
        left.write_text("half")

    def write(path: Path) -> Cost:
        path.write_text("whole")
        return Cost(1.5, 2, 3)

    memory = WrittenMemory(tmp_path, "m")
    assert memory.write(write) == Cost(1.5, 2, 3)
    assert memory.path.read_text() == "whole"
    assert (lives.exists(), died.exists()) == (True, False)
    assert WrittenMemory(tmp_path, "m").write(lambda _: pytest.fail("it is there")) == Cost(1.5, 2, 3)


def contents(reading: Reading) -> tuple[list[list[DecodedKey]], list[int], list[float]]:
    return reading.keys, reading.anticipation.tokens.tolist(), reading.anticipation.logprobs.tolist()


def test_readings_come_back_to_the_last_bit(tmp_path: Path):
    readings = ReadingFile(tmp_path / "readings.jsonl")
    expected = Anticipation(np.array([7, 2], dtype=np.int32), np.array([-1 / 3, -20.1], dtype=np.float32))
    full = Reading([[DecodedKey(3, -1 / 3, -0.1), DecodedKey(1, -7.25, -2e-17)]], expected)
    empty = Reading([[]], Anticipation(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)))
    assert contents(readings.keep("What is it?", full, Cost(0.25, 1, 2))) == contents(full)
    readings.keep("Nothing?", empty, Cost(0.5))
    with (tmp_path / "readings.jsonl").open("a") as file:
        file.write('{"query": "torn')
    again = ReadingFile(tmp_path / "readings.jsonl")
    for query, reading, cost in [("What is it?", full, Cost(0.25, 1, 2)), ("Nothing?", empty, Cost(0.5))]:
        kept = again.get(query)
        assert kept is not None
        assert (contents(kept[0]), kept[1]) == (contents(reading), cost)
    assert again.get("Else?") is None
    assert "What" not in (tmp_path / "readings.jsonl").read_text()


def test_the_catalogue_opens_it_on_the_shared_model(
    model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry], monkeypatch: pytest.MonkeyPatch
):
    loads: list[str] = []
    workplace = Workplace(tmp_path, lambda: loads.append("model") or model, "tiny")
    for entrant in choose(["scg:width=3", "scg:width=3,hops=0"]):
        assert entrant.settings(workplace)["model"] == "tiny"
        assert loads in ([], ["model"])
        system = entrant.open(workplace)
        assert isinstance(system, module.Memory)
        system.write(turns, ignore)
        assert system.read(QUERIES[0], 35).ids[0] == "D1:1"
        system.close()
    assert loads == ["model"]


def test_without_its_constraint_it_takes_the_concepts_nearest_to_what_the_model_writes(
    model: TransformersModel, tmp_path: Path, turns: Sequence[MemoryEntry], monkeypatch: pytest.MonkeyPatch
):
    written = "kayaks, the stern, museums, kayaks,, "
    monkeypatch.setattr(ConceptDecoder, "generate", lambda self, texts, max_tokens: [written])
    letters = "abcdefghijklmnopqrstuvwxyz"

    def embed(texts: Sequence[str]) -> np.ndarray:
        counts = np.array([[text.lower().count(letter) + 1e-3 for letter in letters] for text in texts], np.float32)
        found: np.ndarray = counts / np.linalg.norm(counts, axis=1, keepdims=True)
        return found

    system = Memory(parse_config("scg-paper:width=4,gate=always,accommodation=phrases"), model, tmp_path, embed)
    system.write(turns, ignore)
    recall = system._memory.recall(QUERIES[0])
    surfaces = list(system._memory._current().surfaces)
    alike = embed(["kayaks", "the stern", "museums"]) @ embed(surfaces).T
    assert {seed.surface for seed in recall.seeds} == {surfaces[place] for place in alike.argmax(axis=1)}
    assert max(seed.logprob for seed in recall.seeds) == pytest.approx(float(np.log(alike.max())), abs=1e-5)
    # What is read so is kept apart from what is decoded.
    system.close()
    constrained = Memory(parse_config("scg-paper:width=4,gate=always,accommodation=phrases"), model, tmp_path)
    constrained.write(turns, ignore)
    constrained.read(QUERIES[0], 5)
    constrained.close()
    assert len(list(tmp_path.glob("*-*.jsonl"))) == 2
