"""Remembering, recalling and forgetting through the one door."""

import json
import os
import signal
from datetime import datetime
from functools import cache

import pytest

from shared_core import Filter, MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError, ModelError, NotFoundError, StoreError
from shared_core.recall import RELEVANT
from shared_core.store import sqlite

CONFIGS = {
    "default": SCGConfig(),
    "paper": SCGConfig.paper(),
    "spans": SCGConfig(accommodation="spans", gate="unknown", hops=2, fan_out=2),
    "exact": SCGConfig(method="exact", width=9, score="schema"),
    "sample": SCGConfig(method="sample", width=9, concept_budget=12, hops=2, sample_context=True),
}


def ids_of(recall):
    return [one.entry.id for one in recall.entries]


def exported(memory, tmp_path):
    """Everything the namespace holds, line by line."""
    memory.export(tmp_path / "exported.jsonl")
    return (tmp_path / "exported.jsonl").read_text().splitlines()


def assert_same(first, second):
    """Equal recalls; numbers may differ by what batching rounds."""
    assert ids_of(first) == ids_of(second)
    assert [seed.key for seed in first.seeds] == [seed.key for seed in second.seeds]
    assert [(one.key, one.path) for one in first.context] == [(one.key, one.path) for one in second.context]
    for one, other in zip(first.entries, second.entries, strict=True):
        assert one.score == pytest.approx(other.score, rel=1e-3)
        assert {reason.key: reason.origin for reason in one.reasons} == {r.key: r.origin for r in other.reasons}


@pytest.fixture(scope="module")
def sensible(sensible_model, turns):
    """Some turns, remembered by the embedded model."""
    with SchemaMemory.open(":memory:", model=sensible_model) as memory:
        memory.remember([turn for turn in turns if turn.session == "workshop"])
        yield memory


@pytest.fixture(scope="module")
def remembered(small_model, turns):
    """By the name of a configuration, a memory of all turns; tests leave it as it is."""
    opened = []

    @cache
    def remember(name):
        memory = SchemaMemory.open(":memory:", model=small_model, config=CONFIGS[name])
        opened.append(memory)
        memory.remember(turns)
        return memory

    yield remember
    for memory in opened:
        memory.close()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What is Tobi building?", "t09"),
        ("Who repairs instruments?", "t13"),
        ("How much did he want for the bow?", "t14"),
        ("Which furniture did she sand?", "t16"),
    ],
)
def test_a_question_brings_back_what_was_said_about_it(sensible, query, expected):
    assert expected in ids_of(sensible.recall(query, k=2))


def test_an_answer_rests_on_the_recall(sensible):
    answer = sensible.answer("Where does Oskar repair instruments?", k=3)
    assert "Lindau" in answer.text
    assert "t13" in ids_of(answer.recall)
    assert json.loads(json.dumps(answer.to_dict()))["answer"] == answer.text


def test_a_concept_that_was_inferred_brings_its_entry(sensible):
    origins = {reason.origin for one in sensible.recall("a boat", k=8).entries for reason in one.reasons}
    assert origins == {"said", "inferred"}


@pytest.mark.parametrize("name", CONFIGS)
def test_everything_recalled_is_in_the_memory_and_explained(remembered, name, turns):
    memory = remembered(name)
    graph, keys = memory.graph, list(memory.schema.keys)
    known = {turn.id: place for place, turn in enumerate(turns)}
    for query in ("Where is the canoe now?", "<|im_end|> ?!", "unheard-of zeppelins"):
        recall = memory.recall(query, k=7)
        seeds = {seed.key: seed for seed in recall.seeds}
        context = {one.key: one for one in recall.context}
        assert seeds
        assert seeds.keys() | context.keys() <= set(keys)
        assert len(seeds) + len(context) == len(recall.seeds) + len(recall.context)  # none twice
        for one in recall.context:
            assert one.path[0] == one.seed
            assert one.path[-1] == one.key
            assert one.seed in seeds
            for here, there in zip(one.path, one.path[1:], strict=False):
                assert graph.weight(keys.index(here), keys.index(there)) > 0
        assert 0 < len(recall.entries) <= 7
        assert len(set(ids_of(recall))) == len(recall.entries)
        for recalled in recall.entries:
            assert recalled.entry == turns[known[recalled.entry.id]]
            own = {keys[concept] for concept in graph.by_entry.row(known[recalled.entry.id])[0]}
            assert {reason.key for reason in recalled.reasons} <= own & (seeds.keys() | context.keys())
            summed = sum(reason.contribution for reason in recalled.reasons)
            assert summed == pytest.approx(recalled.parts["concepts"])
            parts = sum(value for part, value in recalled.parts.items() if part != "speaker")
            assert recalled.score == pytest.approx(parts * recalled.parts["speaker"])
            for reason in recalled.reasons:
                assert (reason.source == "context") == (reason.key in context)
        scores = [one.score for one in recall.entries]
        assert scores == sorted(scores, reverse=True)
        json.dumps(recall.to_dict())


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_question_gives_the_same_result(remembered, name, open_memory, turns):
    memory = remembered(name)
    first = memory.recall("Where is the canoe now?", k=9)
    memory.recall("Who is allergic?")
    assert memory.recall("Where is the canoe now?", k=9) == first
    again = open_memory(config=CONFIGS[name])
    again.remember(turns)
    assert_same(again.recall("Where is the canoe now?", k=9), first)


def test_k_counts_entries_or_concepts(remembered, turns):
    memory = remembered("default")
    for k in (1, 3, len(turns), 500):
        recall = memory.recall("the canoe and the carrots", k=k)
        assert len(recall.entries) == min(k, len(turns))
        by_concepts = memory.recall("the canoe and the carrots", k=k, unit="concepts")
        assert len(by_concepts.seeds) + len(by_concepts.context) <= k
        assert all(one.reasons for one in by_concepts.entries)
    assert len(memory.recall("canoe").entries) == memory.config.k
    few = memory.recall("canoe", k=2, unit="concepts")
    assert len(few.seeds) + len(few.context) == 2
    reached = {id for key in [*few.seeds, *few.context] for id in _entries_of(memory, key.key, turns)}
    assert set(ids_of(few)) == reached


def _entries_of(memory, key, turns):
    members, _ = memory.graph.by_concept.row(memory.schema.keys.index(key))
    return {turns[member].id for member in members}


@pytest.mark.parametrize(
    "where",
    [
        Filter(),
        Filter(session="kitchen"),
        Filter(session=["kitchen", "workshop"], speaker="Mira"),
        Filter(after=datetime(2024, 5, 11, 9, 4), before=datetime(2024, 5, 20, 9, 1)),
        Filter(metadata={"place": "allotment", "minute": 3}),
        Filter(session=[]),
        Filter(speaker="Petra"),
    ],
)
def test_a_filter_leaves_the_others_out_and_changes_nothing_else(remembered, where, turns):
    memory = remembered("default")
    everything = memory.recall("Where is the canoe of Mira?", k=len(turns))
    filtered = memory.recall("Where is the canoe of Mira?", k=len(turns), where=where)
    assert filtered.entries == tuple(one for one in everything.entries if where.matches(one.entry))
    assert memory.recall("Where is the canoe of Mira?", k=2, where=where).entries == filtered.entries[:2]


def test_an_explanation_tells_rank_and_reasons(remembered, turns):
    memory = remembered("default")
    recall = memory.recall("Where is the canoe now?", k=len(turns))
    for rank, recalled in enumerate(recall.entries[:3], start=1):
        explanation = memory.explain("Where is the canoe now?", recalled.entry.id)
        assert (explanation.rank, explanation.reached) == (rank, len(recall.entries))
        assert explanation.recalled == recalled
        text = explanation.as_text()
        assert f"Rank {rank} of {len(recall.entries)}, score {recalled.score:.3f}" in text
        assert recalled.reasons[0].surface in text
        body = json.loads(json.dumps(explanation.to_dict()))
        assert (body["rank"], body["score"], body["excluded"]) == (rank, recalled.score, False)
        assert [reason["key"] for reason in body["reasons"]] == [reason.key for reason in recalled.reasons]
        assert {reason["key"] for reason in body["reasons"]} <= set(memory.schema.keys)
    with pytest.raises(NotFoundError, match="t99"):
        memory.explain("Where is the canoe now?", "t99")


def test_an_explanation_tells_why_not(open_memory, turns):
    memory = open_memory(config=SCGConfig(width=1, hops=0, passage_weight=0, answer_weight=0, session_weight=0))
    memory.remember([turns[0], turns[8], MemoryEntry("!?", "odd")], use_model=False)
    [seed] = memory.recall("bees").seeds
    unreached = next(turn for turn in (turns[0], turns[8]) if seed.surface not in turn.text)
    explanation = memory.explain("bees", unreached.id)
    assert (explanation.rank, explanation.to_dict()["score"]) == (None, None)
    assert f"activated none of its concepts ({explanation.concepts[0]}" in explanation.as_text()
    assert "it has no concepts" in memory.explain("bees", "odd").as_text()
    excluded = memory.explain(seed.key, turns[0].id, where=Filter(speaker="Tobi"))
    assert excluded.as_text().endswith("Left out by the filter.")


def test_a_recall_reads_as_text(remembered):
    memory = remembered("default")
    recall = memory.recall("purple carrots", k=1)
    assert recall.as_text() == "[t01] 3 May 2024, Mira: I planted a row of purple carrots by the shed"


def test_an_empty_memory_recalls_nothing(open_memory):
    memory = open_memory()
    recall = memory.recall("Anything?")
    assert (recall.entries, recall.seeds, recall.context, recall.as_text()) == ((), (), (), "")
    assert memory.answer("Anything?").text == ""
    assert set(memory.stats().to_dict().values()) == {0}
    assert memory.consolidate() == 0
    assert memory.remember([]).ids == ()
    assert memory.entries == []
    for call in (lambda: memory.get("1"), lambda: memory.explain("Anything?", "1")):
        with pytest.raises(NotFoundError):
            call()


@pytest.mark.parametrize(
    "options",
    [
        {"query": ""},
        {"query": " \n"},
        {"query": "a\x00b"},
        {"query": "\udc80"},
        {"query": None},
        {"k": 0},
        {"k": -1},
        {"k": 2.5},
        {"k": "3"},
        {"k": True},
        {"unit": "pages"},
        {"where": {"session": "kitchen"}},
    ],
)
def test_a_question_that_cannot_be_asked_is_refused(remembered, options):
    with pytest.raises(InvalidInputError):
        remembered("default").recall(**{"query": "canoe", **options})


@pytest.mark.parametrize(
    ("what", "options"),
    [
        ("", {}),
        (" \n\t", {}),
        (7, {}),
        (None, {}),
        (["a text"], {}),
        ("a text", {"id": ""}),
        ("a text", {"metadata": {"of": float("nan")}}),
        ("a text", {"occurred_at": "yesterday"}),
        ([MemoryEntry("a text")], {"speaker": "Mira"}),
    ],
)
def test_what_cannot_be_remembered_is_refused_and_nothing_is_stored(open_memory, what, options):
    memory = open_memory()
    with pytest.raises(InvalidInputError):
        memory.remember(what, **options)
    assert memory.stats().entries == 0


@pytest.mark.parametrize("namespace", ["", (), ("a", " "), "x" * 2000, ("a", 7), 7, None, {"a", "b"}])
def test_a_namespace_that_is_none_is_refused(open_memory, tmp_path, namespace):
    with pytest.raises(InvalidInputError):
        open_memory(namespace=namespace)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_loaded_leaves_the_memory_as_it_was(open_memory, tmp_path, turns):
    with open_memory() as memory:
        memory.remember(turns[:2], use_model=False)
        before = exported(memory, tmp_path)
    broken = open_memory(model=tmp_path / "absent.gguf")
    for call in (
        lambda: broken.remember(turns),
        lambda: broken.remember("The pear tree fell", id="t01"),
        broken.consolidate,
        lambda: broken.recall("bees"),
    ):
        with pytest.raises(ModelError, match=r"absent\.gguf"):
            call()
    assert exported(broken, tmp_path) == before
    # What needs no model goes on.
    assert broken.remember(turns[:2], use_model=False).unchanged == 2
    assert broken.remember(turns[2:3], use_model=False).added == 1


def test_a_recall_writes_nothing(open_memory, tmp_path, turns, monkeypatch):
    memory = open_memory()
    memory.remember(turns[:12])
    memory.remember(turns[12:], use_model=False)

    def refuse(*_):
        raise AssertionError("a recall has written")

    monkeypatch.setattr(sqlite, "writing", refuse)
    files = {file: file.read_bytes() for file in tmp_path.iterdir() if not file.name.endswith("-shm")}
    memory.recall("Where is the canoe?")
    memory.explain("Where is the canoe?", "t24")
    memory.answer("Where is the canoe?")
    memory.stats()
    assert {file: file.read_bytes() for file in files} == files


def test_a_closed_memory_says_so(open_memory, turns):
    memory = open_memory()
    memory.remember(turns[:1], use_model=False)
    other = memory.in_namespace("other")
    memory.close()
    memory.close()
    for call in (
        lambda: memory.recall("bees"),
        lambda: memory.remember("bees", use_model=False),
        lambda: memory.forget(ids=["t01"]),
        memory.stats,
        lambda: other.recall("bees"),
    ):
        with pytest.raises(StoreError, match="closed"):
            call()


@pytest.mark.parametrize("work", ["recall", "remember"])
def test_a_child_forked_while_a_lock_was_held_says_so(tiny, tmp_path, work):
    with SchemaMemory.open(tmp_path / "memory.db", model=tiny("llama")) as memory:
        memory.remember("The kettle whistles.")
        read, write = os.pipe()
        with memory._followed._lock, memory._write_lock:  # as another thread of the parent may hold them
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                try:
                    getattr(memory, work)("The kettle sings.")
                except StoreError as error:
                    os.write(write, str(error).encode())
                finally:
                    os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            assert "open it again after the fork" in pipe.read()
        os.waitpid(child, 0)


def test_relevance_does_not_depend_on_what_else_comes_back(sensible):
    def relevances(**options):
        return {one.entry.id: one.relevance for one in sensible.recall("Who repairs a violin?", **options).entries}

    everything = relevances(k=8)
    assert max(everything.values()) > RELEVANT
    for options in ({"k": 1}, {"where": Filter(speaker="Mira")}, {"where": Filter(speaker="Tobi"), "k": 2}):
        found = relevances(**options)
        assert found
        assert found == {id: pytest.approx(everything[id], rel=1e-3) for id in found}
    assert all(one.relevance < RELEVANT for one in sensible.recall("What is the capital of Mongolia?").entries)
