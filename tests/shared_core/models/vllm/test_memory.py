"""A memory whose model is on a server: the same memory, and nothing by half where the server goes away."""

from __future__ import annotations

import math

import pytest
from starlette.responses import JSONResponse, PlainTextResponse

from shared_core import SCGConfig, SchemaMemory
from shared_core.errors import ModelError
from shared_core.upkeep import check_memory

COMPLETIONS = "/v1/completions"
QUERIES = ["Where is the pear tree?", "bees", "What does Tobi build?"]


def contents(memory):
    """All that is stored and recalled, without what only the model's name decides."""
    return memory.stats(), [
        [(one.entry.id, round(one.score, 3)) for one in memory.recall(query, k=6).entries] for query in QUERIES
    ]


def test_it_is_the_same_memory(serve, open_memory, turns):
    window = 320  # of the tiny model; the server generates a token after what it reads
    there = open_memory("there.db", model=serve(length=window + 1).address)
    here = open_memory("here.db")
    for memory in (there, here):
        memory.remember(turns[:5])
        memory.remember(turns[5:8], use_model=False)
        memory.consolidate()
        memory.forget(ids=["t02"])
    assert there.entries == here.entries
    for query in QUERIES:
        theirs, ours = there.recall(query, k=6), here.recall(query, k=6)
        assert [one.entry.id for one in theirs.entries] == [one.entry.id for one in ours.entries]
        for one, other in zip(theirs.entries, ours.entries, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-3)
        assert [one.key for one in theirs.seeds] == [one.key for one in ours.seeds]
    for free in (True, False):
        assert there.answer("bees", free=free).text == here.answer("bees", free=free).text


@pytest.mark.parametrize("accommodation", ["phrases", "spans"])
def test_a_write_that_the_server_does_not_survive(serve, open_memory, turns, accommodation):
    """Whenever it goes: what was stored is whole, the memory is sound, and the write can be finished afterwards."""
    config = SCGConfig(accommodation=accommodation, batch=2)
    undisturbed = serve()
    expected = open_memory("undisturbed.db", model=undisturbed.address, config=config)
    expected.remember(turns[:4])
    total = undisturbed.served.asked[COMPLETIONS]
    server = serve()
    memory = open_memory("memory.db", model=server.address, config=config)
    for share in (0.0, 0.1, 0.4):
        server.served.fault = after(server.served.asked[COMPLETIONS] + int(share * total))
        with pytest.raises(ModelError, match="busy or failing"):
            memory.remember(turns[:4])
        server.served.fault = after(math.inf)
        assert not check_memory(memory.location).faults
        kept = {entry.id for entry in memory.entries}
        assert kept <= {turn.id for turn in turns[:4]}
    memory.remember(turns[:4])
    memory.consolidate()
    assert contents(memory) == contents(expected)
    assert not check_memory(memory.location).faults


def after(requests):
    """A server that goes after so many requests."""
    return lambda path, number: gone() if number > requests else None


def gone():
    return PlainTextResponse("", 503)


def test_a_recall_that_fails_leaves_the_memory_usable(serve, open_memory, turns):
    server = serve()
    memory = open_memory(model=server.address)
    memory.remember(turns[:6])
    expected = memory.recall(QUERIES[0], k=3)
    server.served.fault = lambda path, number: JSONResponse({"error": "Unauthorized"}, 401)
    with pytest.raises(ModelError, match="refuses the key"):
        memory.recall(QUERIES[0], k=3)
    server.served.fault = lambda path, number: None
    assert memory.recall(QUERIES[0], k=3) == expected


def test_a_memory_that_was_opened_before_its_server(serve, open_memory, turns):
    server = serve(fault=lambda path, number: gone())
    memory = open_memory(model=server.address)
    memory.remember(turns[:3], use_model=False)
    with pytest.raises(ModelError, match="busy or failing"):
        memory.recall("bees")
    server.served.fault = lambda path, number: None
    assert memory.recall("bees", k=1).entries


def test_it_opens_from_an_address(tmp_path, serve, turns):
    with SchemaMemory.open(tmp_path / "m.db", model=serve().address) as memory:
        memory.remember(turns[:2])
        assert memory.recall("carrots", k=1).entries
