"""A remote memory against a local one: the same results, the same errors, and nothing twice when answers are lost."""

import asyncio
import inspect
import json
import socket
from types import SimpleNamespace

import pytest
from starlette.responses import Response

from shared_core import Filter, Memory, MemoryEntry, RemoteMemory, SCGConfig, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.errors import (
    AccessError,
    InvalidInputError,
    ModelError,
    SCGError,
    StoreError,
    StoreUnavailableError,
    UnsupportedError,
)
from shared_core.serving import KeyFile, make_app
from tests.served import running

CONFIG = SCGConfig(k=4, hops=1)
USER = ("users", "anna/ü")


@pytest.fixture
def served(tmp_path, small_model):
    """A service, its key, and a local memory on the same model with the same settings."""
    keys = KeyFile(tmp_path / "keys.json")
    key, _ = keys.add(USER)
    app = make_app(tmp_path / "served.db", keys=keys, model=small_model, config=CONFIG)
    with (
        running(app) as address,
        SchemaMemory.open(tmp_path / "local.db", model=small_model, config=CONFIG, namespace=USER) as local,
        RemoteMemory(address, api_key=key, namespace=USER) as remote,
    ):
        yield SimpleNamespace(address=address, key=key, local=local, remote=remote, path=tmp_path / "served.db")


def test_it_gives_what_a_local_memory_gives(served, turns):
    local, remote = served.local, served.remote
    reports = []
    assert remote.config == CONFIG
    assert (remote.namespace, remote.location) == (USER, served.address)
    outcome = remote.remember(turns[:12], progress=reports.append)  # sent eight at a time
    assert (outcome.added, outcome.updated, outcome.unchanged) == (12, 0, 0)
    assert outcome.ids == local.remember(turns[:8]).ids + local.remember(turns[8:12]).ids
    assert [one.done for one in reports] == [8, 12]
    for memory in (local, remote):
        memory.remember("The rhubarb came up", id="r", speaker="Mira", metadata={"n": [1, None, 1.5, {"ü": True}]})
        assert memory.remember([turns[0], MemoryEntry(turns[1].text)], dedupe=True, use_model=False).unchanged == 1
    assert [one.to_dict() | {"id": ""} for one in remote.entries] == [
        one.to_dict() | {"id": ""} for one in local.entries
    ]
    assert remote.stats() == local.stats()
    assert remote.consolidate() == local.consolidate() == 1
    where = Filter(speaker=["Tobi", "Mira"], session="allotment", after=turns[1].occurred_at, metadata={"minute": 2})
    for arguments in ({"k": 3}, {"unit": "concepts", "k": 2}, {"where": where}, {"where": Filter()}, {}):
        for query in ("Where is the pear tree?", "bees", "ü"):
            theirs, ours = remote.recall(query, **arguments), local.recall(query, **arguments)
            assert without_chance(theirs) == without_chance(ours)
            assert theirs.as_text(ids=False) == ours.as_text(ids=False)
    assert remote.recall("bees", k=1) == local.recall("bees", k=1)
    for free in (False, True):
        asked = {"query": "Where are the bees?", "k": 2, "free": free}
        assert remote.answer(**asked) == local.answer(**asked)
    for id in ("t02", "t11"):
        theirs, ours = remote.explain("bees", id, where=where), local.explain("bees", id, where=where)
        assert theirs.as_text() == ours.as_text()
    assert remote.get("r") == local.get("r")
    assert remote.find(["t03", "none", "t01"]) == [turns[2], turns[0]]
    assert remote.forget(ids=["t01", "none"]).ids == ("t01",)
    local.forget(ids=["t01"])
    theirs, ours = remote.forget(session="allotment", where=where), local.forget(session="allotment", where=where)
    assert (theirs.ids, theirs.concepts, theirs.namespace) == (ours.ids, ours.concepts, ours.namespace)
    assert remote.clear().entries == local.clear().entries
    assert remote.entries == []


def without_chance(recall):
    """A recall without ids, some of which were made at random."""
    entries = [(one.entry.text, one.score, one.relevance, one.parts, one.reasons) for one in recall.entries]
    return entries, recall.seeds, recall.context


def test_the_twins_do_the_same(served, turns):
    remote = served.remote

    async def use():
        written = await remote.aremember(turns[:3], use_model=False)
        anna = remote.in_namespace((*USER, "notes"))
        assert (await anna.aremember("The rhubarb came up", id="r", use_model=False)).ids == ("r",)
        read = [
            await remote.arecall("bees", k=2) == remote.recall("bees", k=2),
            await remote.aanswer("bees", k=2) == remote.answer("bees", k=2),
            (await remote.aexplain("bees", "t02")).to_dict() == remote.explain("bees", "t02").to_dict(),
            await remote.aget("t01") == remote.get("t01"),
            await remote.afind(["t01"]) == remote.find(["t01"]),
            await remote.astats() == remote.stats(),
        ]
        erased = (await remote.aforget(ids=["t01"])).ids, await remote.aconsolidate(), (await remote.aclear()).ids
        return written.ids, read, erased

    for _ in range(2):  # each in an event loop of its own
        ids, read, erased = asyncio.run(use())
        assert ids == ("t01", "t02", "t03")
        assert all(read)
        assert erased == (("t01",), 2, ("t02", "t03"))
    assert remote.in_namespace((*USER, "notes")).get("r").text == "The rhubarb came up"
    assert remote.entries == []


def test_both_take_the_same_arguments():
    for name in Memory.__abstractmethods__:
        expected = getattr(Memory, name)
        if not callable(expected):
            continue
        for kind in (SchemaMemory, RemoteMemory):
            given = inspect.signature(getattr(kind, name)).parameters
            for parameter, one in inspect.signature(expected).parameters.items():
                assert (given[parameter].kind, given[parameter].default) == (one.kind, one.default), (kind, name)


def test_errors_are_those_of_a_local_memory(served, turns):
    for call in (
        lambda memory: memory.recall(" "),
        lambda memory: memory.recall("bees", k=0),
        lambda memory: memory.recall("bees", k=float("nan")),
        lambda memory: memory.answer(b"bees"),
        lambda memory: memory.answer("bees \ud800"),
        lambda memory: memory.recall("bees", where={"speaker": "Mira"}),
        lambda memory: memory.remember(""),
        lambda memory: memory.remember(turns[0], speaker="Mira"),
        lambda memory: memory.forget(),
        lambda memory: memory.get("none"),
        lambda memory: memory.explain("bees", "none"),
        lambda memory: memory.find("t01"),
        lambda memory: memory.in_namespace(""),
    ):
        with pytest.raises(SCGError) as ours:
            call(served.local)
        with pytest.raises(SCGError) as theirs:
            call(served.remote)
        assert type(theirs.value) is type(ours.value)


def test_what_a_failed_call_has_stored_is_told(served, monkeypatch):
    def gone(*_):
        raise ModelError("the server is gone")

    monkeypatch.setattr(ConceptDecoder, "decode", gone)
    with pytest.raises(ModelError, match=r"^the entry is stored, .* the server is gone$") as raised:
        served.remote.remember("Nothing but a plum", id="plum")
    assert raised.value.stored == ("plum",)
    assert served.remote.get("plum").text == "Nothing but a plum"


def test_what_it_cannot_do_it_says(served):
    class Odd(Filter):
        pass

    for call in (
        lambda: served.remote.store,
        lambda: served.remote.schema,
        lambda: served.remote.graph,
        lambda: served.remote.export("memory.jsonl"),
        lambda: served.remote.import_file("memory.jsonl"),
        lambda: served.remote.recall("bees", where=Odd(speaker="Mira")),
    ):
        with pytest.raises(UnsupportedError):
            call()
    with pytest.raises(InvalidInputError, match="RemoteMemory"):
        SchemaMemory.open(served.address)
    for address in (
        "memory.db",
        None,
        b"http://a",
        "http://",
        "http://a?b=c",
        "http://a\nb",
        "http://[::1",
        "anna:secret@a",
    ):
        with pytest.raises(InvalidInputError, match="http://") as caught:
            RemoteMemory(address)
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInputError, match="api_key") as caught:
        RemoteMemory(served.address.replace("//", "//anna:secret@"))
    assert "secret" not in str(caught.value)
    for timeout in ("x", 0, -1, None, True, float("nan")):
        with pytest.raises(InvalidInputError, match="timeout"):
            RemoteMemory(served.address, timeout=timeout)
    for key in (5, "", " a", "a\n", "ü"):
        with pytest.raises(InvalidInputError, match="scg key add"):
            RemoteMemory(served.address, api_key=key)


class Answering:
    """Answers everything with one JSON value."""

    def __init__(self, value):
        self.value = value

    async def __call__(self, scope, receive, send):
        if scope["type"] == "http":
            await Response(json.dumps(self.value), media_type="application/json")(scope, receive, send)


@pytest.mark.parametrize("value", [{}, [], None, {"settings": 3}, {"settings": {"k": "many"}}, {"error": "SCGError"}])
def test_what_is_no_memory_is_named(value):
    with running(Answering(value)) as address, pytest.raises(StoreError, match=f"{address} is no memory"):
        RemoteMemory(address)


def test_an_answer_of_another_kind_is_refused(turns):
    with running(Answering({"settings": {}})) as address, RemoteMemory(address) as remote:
        for call in (
            remote.stats,
            remote.consolidate,
            remote.clear,
            lambda: remote.remember(turns[:1]),
            lambda: remote.recall("bees"),
            lambda: remote.answer("bees"),
            lambda: remote.explain("bees", "1"),
            lambda: remote.find(["1"]),
            lambda: remote.forget(ids=["1"]),
            lambda: remote.entries,
            lambda: asyncio.run(remote.arecall("bees")),
        ):
            with pytest.raises(StoreError, match=f"{address} is no memory"):
                call()


def test_a_key_opens_only_its_own(served):
    for key in (None, "scg_wrong"):
        with pytest.raises(AccessError, match=f"{served.address}.*missing or wrong"):
            RemoteMemory(served.address, api_key=key, namespace=USER)
    with pytest.raises(AccessError, match="not for this namespace"):
        RemoteMemory(served.address, api_key=served.key, namespace="users")
    with pytest.raises(AccessError, match="not for this namespace"):
        served.remote.in_namespace(("users", "ben")).recall("bees")


def test_a_service_that_is_gone_is_named(tmp_path, small_model, monkeypatch):
    pauses = []
    monkeypatch.setattr("shared_core.remote.connection.time.sleep", pauses.append)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(StoreUnavailableError, match=f"{address} cannot be reached"):
            RemoteMemory(address)
    assert len(pauses) == 3
    assert pauses[0] < pauses[1] < pauses[2] < 2
    with running(make_app(tmp_path / "memory.db", model=small_model)) as address:
        remote = RemoteMemory(address)
    with pytest.raises(StoreUnavailableError, match=address):
        remote.entries  # noqa: B018
    with pytest.raises(StoreUnavailableError, match=address):
        asyncio.run(remote.arecall("bees"))
    remote.close()
    for call in (remote.stats, lambda: asyncio.run(remote.astats())):
        with pytest.raises(StoreError, match="closed"):
            call()


class LosingAnswers:
    """Carries out every request; of each kind the first answers are lost on the way back."""

    def __init__(self, app, lost):
        self.app, self.lost, self.seen = app, lost, {}

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["path"] == "/v1/config":
            return await self.app(scope, receive, send)
        count = self.seen[scope["path"]] = self.seen.get(scope["path"], 0) + 1
        if count > self.lost:
            return await self.app(scope, receive, send)

        async def drop(message):
            """Say nothing."""

        await self.app(scope, receive, drop)
        return await Response("Bad Gateway", 502)(scope, receive, send)


@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_sent_again_is_stored_once(tmp_path, small_model, turns, is_async):
    app = LosingAnswers(make_app(tmp_path / "memory.db", model=small_model), lost=2)

    def run(name, *args, **kwargs):
        if is_async:
            return asyncio.run(getattr(remote, f"a{name}")(*args, **kwargs))
        return getattr(remote, name)(*args, **kwargs)

    with running(app) as address, RemoteMemory(address) as remote:
        stored = run("remember", [MemoryEntry(turn.text) for turn in turns[:5]], use_model=False)
        assert (stored.added, stored.unchanged) == (0, 5)
        again = run("remember", [MemoryEntry(turn.text) for turn in turns[:5]], use_model=False, dedupe=True)
        assert again.ids == stored.ids
        assert [entry.id for entry in remote.entries] == list(stored.ids)
        assert run("recall", "bees").entries
        # An erasure might erase what came meanwhile: it is not sent again, and whoever asked for it is told.
        before = app.seen.get("/v1/forget", 0)
        with pytest.raises(StoreUnavailableError, match="502"):
            run("forget", ids=stored.ids[:1])
        assert app.seen["/v1/forget"] == before + 1
        assert len(remote.entries) == 4
    assert app.seen["/v1/remember"] == 4
    assert app.seen["/v1/recall"] == 3


def test_it_needs_neither_model_nor_server_to_be_named():
    from tests.conftest import run_program

    [loaded] = run_program(
        "import sys, shared_core\n"
        "shared_core.SchemaMemory, shared_core.Memory\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert not {"httpx", "fastapi", "uvicorn", "prometheus_client", "pydantic"} & set(loaded.split())
    said = run_program(
        "import sys, shared_core\n"
        "sys.modules['httpx'] = None\n"
        "try:\n    shared_core.RemoteMemory\n"
        "except ImportError as error:\n    print(error)"
    )
    assert said == ["RemoteMemory needs httpx, which is not installed: pip install 'scg-mem[client]'"]
