"""A conversation that is remembered in a file and on a server is recalled the same; and processes follow each other."""

import pytest

from shared_core import Filter, SCGConfig
from shared_core.entry import MemoryEntry
from shared_core.errors import StoreUnavailableError

QUESTIONS = [
    "Who is allergic to walnuts?",
    "What did Tobi build out of cedar?",
    "When does Petra move to Lindau?",
]
TWO = ("users", "\u00e9ve \U0001f600")


def live(memory, turns):
    """A memory's life: turns, updates, an erasure, another namespace, and the model catching up."""
    memory.remember(turns[:6])
    memory.remember(turns[8:20], use_model=False)
    memory.remember("The slugs have eaten every single cabbage", id="t05", speaker="Mira", session="allotment")
    memory.in_namespace(TWO).remember(turns[2:6])
    memory.forget(ids=["t03", "t20"])
    memory.forget(where=Filter(metadata={"minute": 5}))
    memory.consolidate()


def recalled(memory, question, **options):
    recall = memory.recall(question, k=8, **options)
    entries = [(one.entry, [(reason.key, reason.source) for reason in one.reasons]) for one in recall.entries]
    numbers = [one.score for one in recall.entries] + [seed.logprob or 0.0 for seed in recall.seeds]
    return entries, [seed.key for seed in recall.seeds], [one.key for one in recall.context], numbers


def test_what_is_recalled_does_not_depend_on_the_engine(open_memory, postgres, turns):
    config = SCGConfig(hops=1)  # so that the graph matters as well
    url = postgres.url(postgres.database())
    memories = [open_memory(place, config=config) for place in ("memory.db", url)]
    for memory in memories:
        live(memory, turns)
    file, server = memories
    # Once more as another process sees them, which reads all of it anew.
    again = open_memory(url, config=config)
    asked = [(file.namespace, question, {}) for question in QUESTIONS]
    asked += [(name, QUESTIONS[1], {"where": Filter(speaker="Mira")}) for name in (file.namespace, TWO)]
    for namespace, question, options in asked:
        *expected, numbers = recalled(file.in_namespace(namespace), question, **options)
        assert expected[0]
        for other in (server, again):
            *found, others = recalled(other.in_namespace(namespace), question, **options)
            assert found == expected
            assert others == pytest.approx(numbers, rel=0, abs=1e-6)
    for namespace in (file.namespace, TWO):
        there, here = server.in_namespace(namespace), file.in_namespace(namespace)
        assert (there.stats(), there.entries) == (here.stats(), here.entries)
    assert file.explain(QUESTIONS[0], "t19").to_dict() == server.explain(QUESTIONS[0], "t19").to_dict()


def test_a_recall_sees_what_another_process_has_been_told_is_stored(open_memory, postgres):
    url = postgres.url(postgres.database())
    one, other = open_memory(url), open_memory(url)
    for number in range(3):
        one.remember(f"There are {number} pears in the bowl", id=str(number), use_model=False)
        assert [entry.id for entry in other.entries] == [str(at) for at in range(number + 1)]
    assert one.forget(ids=["1"]).entries == 1
    assert [entry.id for entry in other.entries] == ["0", "2"]
    assert other.recall("pears").entries
    other.clear()
    assert not one.recall("pears").entries


def test_a_memory_goes_on_when_its_server_comes_back(open_memory, postgres):
    memory = open_memory(postgres.url(postgres.database()))
    memory.remember([MemoryEntry("The pears are ripe", "1")], use_model=False)
    before = recalled(memory, "pears")
    postgres.stop()
    try:
        for call in (lambda: memory.recall("pears"), lambda: memory.remember("Plums", id="2", use_model=False)):
            with pytest.raises(StoreUnavailableError, match="gone or refuses"):
                call()
    finally:
        postgres.start()
    assert recalled(memory, "pears") == before
    assert memory.remember("Plums", id="2", use_model=False).added == 1
