"""The benchmark of scale runs from end to end, at tiny sizes, and its figures are what they say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks.scale import __main__ as program
from benchmarks.scale import experiment
from benchmarks.scale.content import Sentences, Template, common_words, fill_at_random, large_namespace, name_of
from benchmarks.scale.crew import Crew
from benchmarks.scale.experiment import Plan
from benchmarks.scale.places import open_places
from benchmarks.scale.report import markdown, slope
from benchmarks.scale.worker import Worker
from shared_core import MemoryEntry, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.models import load_model
from shared_core.store import Store
from shared_core.upkeep import check_store

ENGINES = ("sqlite", "postgresql")


class CrewHere:
    """Workers in this process, which answer one after the other."""

    def __init__(self, count: int, model: str, words: Path) -> None:
        known = json.loads(words.read_text())
        self._workers = [Worker(model, known) for _ in range(count)]
        self.resident_bytes = [worker.begin()["resident_bytes"] for worker in self._workers]

    def __enter__(self) -> CrewHere:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.close()

    def ask(self, commands: list[dict[str, object]]) -> list[dict[str, object]]:
        pairs = zip(self._workers, commands, strict=False)
        return [json.loads(json.dumps(worker.answer(command))) for worker, command in pairs]


@pytest.fixture
def here(embedded, monkeypatch):
    """No process is started, and the embedded model is loaded already."""
    monkeypatch.setattr(experiment, "Crew", CrewHere)
    monkeypatch.setattr(
        experiment, "load_model", lambda source=None, **rest: load_model(source, **rest) if source else embedded
    )


@pytest.fixture
def small(monkeypatch):
    """As little as can be measured."""
    plan = lambda engines, models: Plan(  # noqa: E731
        engines,
        models,
        workers=(1, 2),
        namespaces=(3,),
        entries=3,
        seconds={"embedded": 0.05, "tiny": 0.05},
        repeats={"embedded": 1, "tiny": 2},
        sizes=(8, 40),
        held=(0, 1, 3),
    )
    monkeypatch.setattr(program.Plan, "quick", plan)


@pytest.mark.timeout(600)
def test_a_run_measures_what_it_says_once(here, small, postgres, tmp_path, monkeypatch):
    asked = ["--quick", "--models", "tiny", "--database", postgres.url("postgres"), "--out", str(tmp_path)]
    program.main(asked)
    kept = json.loads((tmp_path / "summary.json").read_text())
    found = {tuple(row["step"]): row for row in kept["steps"]}
    assert set(found) == {
        *(("growth", engine, size) for engine in ENGINES for size in (8, 40)),
        *(("idle", engine) for engine in ENGINES),
        *(("operations", engine, "tiny") for engine in ENGINES),
        *(("load", engine, "tiny", workers, 3) for engine in ENGINES for workers in (1, 2)),
    }
    for step, one in found.items():
        if step[0] == "load":
            assert one["entries_before"] == 3 * 3
            assert one["entries_after"] == one["entries_before"] + one["write_entries"]
            assert one["write_entries"] == one["write_operations"] == sum(one["write_by_worker"]) > 0
            assert len(one["recall_by_worker"]) == len(one["write_by_worker"]) == step[3]
            assert 0 < one["recall_model_seconds"] <= one["recall_cpu_seconds"]
            # In this process one worker after another: each has its time for itself.
            assert one["recall_per_second"] == pytest.approx(step[3] / one["recall_seconds"], rel=0.9)
        if step[0] == "operations":
            assert one["remember_8_entries"] == 8 * one["remember_8_operations"]
            assert one["store_100_entries"] == 100 * one["store_100_operations"]
            assert one["store_100_model_seconds"] < one["remember_model_seconds"]
            # A server somewhere else is not looked into.
            assert one["recall_server_seconds"] == (0 if step[1] == "sqlite" else None)
        if step[0] == "growth":
            assert one["rows"]["entries"] == one["rows"]["anticipations"] == one["entries"] == step[2]
            assert (one["rows"]["concepts"], one["rows"]["links"]) == (one["concepts"], one["links"])
            assert sum(one["table_bytes"].values()) <= one["disk_bytes"]
    assert found["growth", "sqlite", 40]["disk_bytes"] > found["growth", "sqlite", 8]["disk_bytes"]
    text = (tmp_path / "table.md").read_text()
    assert text == markdown(kept)
    assert "A quick run" in text
    assert kept["projection"] == {}  # which rests on the embedded model
    for name in ("throughput_tiny", "growth", "idle"):
        assert (tmp_path / f"{name}.png").exists()
        assert (tmp_path / f"{name}.svg").exists()
    with postgres.connect() as connection:
        left = connection.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'scg_scale%'").fetchone()
    assert left == (0,)

    # What is finished is not measured anew, and what is torn off is.
    monkeypatch.setattr(experiment, "Bench", None)
    before = (tmp_path / "steps.jsonl").read_bytes()
    program.main(asked)
    assert (tmp_path / "steps.jsonl").read_bytes() == before
    again = json.loads((tmp_path / "summary.json").read_text())
    assert again == kept
    torn = before[: len(before) - 30]
    (tmp_path / "steps.jsonl").write_bytes(torn)
    with pytest.raises(TypeError):  # there is something to measure
        program.main(asked)


@pytest.mark.timeout(600)
def test_workers_are_processes_that_answer_at_once(embedded, here, tmp_path):
    bench = experiment.Bench(Plan(("sqlite",), ("tiny",), entries=2), tmp_path, None)
    place = str(tmp_path / "memory.db")
    Template.make(place, bench._words, [bench._tiny], 2)
    with Crew(1, str(bench._tiny_folder), bench._word_file) as crew:
        assert crew.resident_bytes[0] > 5e7
        crew.ask([{"do": "open", "place": place, "namespaces": 1}])
        [told] = crew.ask([{"do": "load", "what": "remember", "mark": "w", "seed": 0, "times": 3}])
        crew.ask([{"do": "close"}])
        assert (told["operations"], told["entries"]) == (3, 3)
        assert told["model_seconds"] <= told["cpu_seconds"] <= told["seconds"] + 0.1
    with Store.open(place) as store:
        assert [one.entries for one in store.namespaces()] == [5]
        assert check_store(store).faults == ()


def test_copied_and_drawn_namespaces_are_sound_and_can_be_recalled_from(embedded, here, tmp_path):
    bench = experiment.Bench(Plan(("sqlite",), ("tiny",)), tmp_path, None)
    model, words = bench._tiny, bench._words
    place = str(tmp_path / "first.db")
    template = Template.make(place, words, [model], 4)
    other = str(tmp_path / "other.db")
    with Store.open(other) as store:
        template.store_in(store, 5)
        fill_at_random(store, 6, large_namespace(words, 30), model)
        assert check_store(store).faults == ()
    question = Sentences(words, "q", 0).question()
    recalls = []
    for at, number in ((place, 0), (other, 5)):
        with SchemaMemory.open(at, model=model, namespace=name_of(number)) as memory:
            assert memory.stats().waiting == 0
            recall = memory.recall(question)
            recalls.append([(one.entry, one.score) for one in recall.entries])
            assert any(one.parts["anticipation"] for one in recall.entries)
    assert recalls[0] == recalls[1]
    with SchemaMemory.open(other, model=model, namespace=name_of(6)) as memory:
        assert any(one.parts["anticipation"] for one in memory.recall(question).entries)
    with Store.open(other) as store:
        state = store.load(name_of(6))
        scores = store.load_scores(name_of(6), ConceptDecoder(model).fingerprint, state)
        assert scores.known.all()
        assert len(scores.known) == len(state.concepts)


def test_sentences_say_about_as_many_concepts_as_people_do(embedded):
    words = common_words(embedded)
    writes = large_namespace(words, 1_000)
    grounding = [{link.key for link in write.links if link.is_grounding} for write in writes]
    assert 13 < sum(map(len, grounding)) / 1_000 < 17
    assert 4 < len(set().union(*grounding)) / 1_000 < 5.5
    assert all(len(write.links) > len(said) for write, said in zip(writes[1:], grounding[1:], strict=True))
    assert writes == large_namespace(words, 1_000)


@pytest.mark.parametrize("engine", ENGINES)
def test_places_copy_measure_and_leave_nothing(engine, postgres, tmp_path):
    places = open_places(engine, tmp_path, postgres.url("postgres"))
    first = places.new()
    with SchemaMemory.open(first) as memory:
        memory.remember(list(map(MemoryEntry, ("The kettle whistles.", "The train leaves."))), use_model=False)
    size = places.size(first)
    copy = places.copy(first)
    with SchemaMemory.open(copy) as memory:
        assert len(memory.entries) == 2
        memory.remember("The bread burns.", use_model=False)
    assert (size.rows["entries"], places.size(first).rows["entries"], places.size(copy).rows["entries"]) == (2, 2, 3)
    assert size.rows["links"] == places.size(first).rows["links"] > 0
    assert 0 < sum(size.table_bytes.values()) <= size.bytes
    places.drop(copy)
    places.close()
    if engine == "postgresql":
        with postgres.connect() as connection:
            rows = connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'scg_scale%'").fetchall()
        assert rows == []
    else:
        assert not Path(copy).exists()
        shutil.rmtree(tmp_path)


def test_memory_of_idle_namespaces_is_the_slope():
    assert slope({"held": [0, 10, 20], "resident_bytes": [500, 530, 560]}) == pytest.approx(3)
