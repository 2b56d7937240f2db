"""The service: who is let in, what is refused and how, and what it tells of itself."""

import asyncio
import json
import logging
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from shared_core import MemoryEntry, SchemaMemory, models
from shared_core.decoding import ConceptDecoder
from shared_core.errors import InvalidInputError, NotFoundError
from shared_core.serving import KeyFile, listen, make_app
from tests.served import running
from tests.shared_core.serving.conftest import ANNA, BEN, QUICK

SECRET = "the quince jelly is hidden"
ENTRY = {"text": SECRET, "id": "q1", "speaker": "Anna"}


def refused(response, status, kind, *told):
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error", "message"}
    assert body["error"] == kind
    for text in told:
        assert text in body["message"]
    return body["message"]


def test_conditions_do_not_clear_a_namespace(service):
    """They were meant for another call, which erases less."""
    service.ask("remember", {"entries": [ENTRY]})
    refused(service.ask("clear", {"session": "May"}), 422, "InvalidInputError", "session")
    assert service.ask("stats").json()["entries"] == 1
    assert service.ask("clear", {}).json()["entries"] == 1


def test_namespaces_never_see_each_other(service):
    assert service.ask("remember", {"entries": [ENTRY]}).json()["added"] == 1
    as_ben = {"key": service.ben, "namespace": BEN}
    assert service.ask("recall", {"query": "quince jelly"}).json()["entries"][0]["id"] == "q1"
    assert service.ask("recall", {"query": "quince jelly"}, **as_ben).json()["entries"] == []
    assert service.ask("entries", **as_ben).json() == {"entries": [], "next": None}
    assert service.ask("get", {"ids": ["q1"]}, **as_ben).json() == {"entries": []}
    assert service.ask("forget", {"ids": ["q1"]}, **as_ben).json()["entries"] == 0
    assert service.ask("clear", **as_ben).json()["entries"] == 0
    assert service.ask("stats").json()["entries"] == 1
    assert service.ask("get", {"ids": ["q1"]}).json() == {"entries": [ENTRY]}


def test_keys_open_what_they_are_for_and_nothing_else(service):
    service.ask("remember", {"entries": [ENTRY]})
    for key in (None, "", "scg_", service.anna[:-1], f"{service.anna}x", "ä"):
        for name, body in (("recall", {"query": "jelly"}), ("clear", None), ("stats", None), ("nothing", None)):
            headers = {} if key is None else {"Authorization": f"Bearer {key}".strip().encode()}
            method = "GET" if name == "stats" else "POST"
            answer = service.client.request(method, f"/v1/{name}", headers=headers, json=body)
            refused(answer, 401, "AccessError", "missing or wrong")
            assert answer.headers["WWW-Authenticate"] == "Bearer"
    # The same whether there is such a namespace or not, and whatever else is wrong.
    told = {
        refused(service.ask("recall", {"query": ""}, key=service.ben, namespace=name), 403, "AccessError")
        for name in (ANNA, ("users", "nobody"), ("users",), ("users/ben",), ("users", "benno"))
    }
    assert len(told) == 1
    assert service.ask("stats", key=service.ben, namespace=(*BEN, "notes")).json()["entries"] == 0
    service.keys.remove(service.keys.find(service.anna.encode()).id)
    refused(service.ask("stats"), 401, "AccessError")


def test_any_legal_namespace_is_one_of_its_own(tmp_path, small_model):
    names = [
        ("a/b",), ("a", "b"), ("a b",), ("..",), (".", ".."), ("%2F",), ("\u200b",), ("\u200b", "\u200b"), ("ü",),
        ("u\u0308",), ("🐝", "日本"), ('"', "\\"), ("a\r\nb",), ("a,b",), ('["a"]',), ("x" * 1024,), ("🐝" * 1024,),
    ]  # fmt: skip
    app = make_app(tmp_path / "memory.db", model=small_model, config=QUICK)
    with running(app) as address, httpx.Client(base_url=address) as client:
        from tests.shared_core.serving.conftest import asker

        ask = asker(client, "")
        for place, name in enumerate(names):
            body = {"entries": [{"text": f"bee {place}", "id": "1"}], "use_model": False}
            stored = ask("remember", body, None, name)
            assert (stored.status_code, stored.json().get("added")) == (200, 1), (name, stored.text)
        for place, name in enumerate(names):
            assert ask("entries", None, None, name).json()["entries"] == [{"text": f"bee {place}", "id": "1"}]
        for name in ((), ("",), (" ", "a"), ("a" * 1025,), ("\ud800",), ("\x00",)):
            refused(ask("stats", None, None, name), 422, "InvalidInputError", "namespace")
        for header in ("users/anna", '"anna"', "{}", "[1]", "[" * 3000, "[null]", ""):
            answer = client.get("/v1/stats", headers={"X-SCG-Namespace": header})
            refused(answer, 422, "InvalidInputError")
        twice = client.get("/v1/stats", headers=[("X-SCG-Namespace", '["a"]'), ("X-SCG-Namespace", '["b"]')])
        refused(twice, 422, "InvalidInputError", "X-SCG-Namespace")
        # A page of somebody else's reaches this machine by a name of its own.
        host = {"Host": "evil.example:8321", "X-SCG-Namespace": '["a"]'}
        refused(client.get("/v1/stats", headers=host), 403, "AccessError", "loopback")
    with SchemaMemory.open(tmp_path / "memory.db", model=small_model) as memory:
        assert {info.name for info in memory.store.namespaces()} == set(names)


def test_what_cannot_be_used_is_refused_and_nothing_is_stored(service):
    refused(service.ask("remember", {"entries": [ENTRY, {"text": ""}]}), 422, "InvalidInputError", "empty")
    refused(service.ask("remember", {"entries": [ENTRY, {"text": 3}]}), 422, "InvalidInputError", "entries.1.text")
    refused(service.ask("remember", {"entries": [{"text": "a", "colour": "b"}]}), 422, "InvalidInputError", "colour")
    refused(service.ask("remember", {"entries": [{"text": "a", "occurred_at": "soon"}]}), 422, "InvalidInputError")
    deep = {"text": "a", "metadata": {}}
    for _ in range(40):
        deep["metadata"] = {"a": deep["metadata"]}
    refused(service.ask("remember", {"entries": [deep]}), 422, "InvalidInputError", "deeper")
    for body in (b"{", b"[" * 50_000, b'{"entries": [{"text": "\\ud800"}]}', b'{"entries": [{"text": "\\u0000"}]}',
                 b'{"query": NaN}', b'{"k": 1' + b"0" * 5000 + b"}"):  # fmt: skip
        options = {"content": body}
        refused(service.ask("remember", None, **options), 422, "InvalidInputError")
    refused(service.ask("recall", {"query": " "}), 422, "InvalidInputError", "empty")
    refused(service.ask("recall", {"query": "a", "k": 0}), 422, "InvalidInputError", "body.k")
    refused(service.ask("recall", {"query": "a", "where": {"after": "2", "before": "1"}}), 422, "InvalidInputError")
    refused(service.ask("forget", {}), 422, "InvalidInputError", "say what to forget")
    refused(service.ask("explain", {"query": "a", "entry_id": "none"}), 404, "NotFoundError", "'none'")
    refused(service.client.get("/v1/remember", headers={"X-SCG-Namespace": '["users", "anna"]',
            "Authorization": f"Bearer {service.anna}"}), 405, "InvalidInputError")  # fmt: skip
    refused(service.ask("nothing", {}), 404, "NotFoundError", "endpoint")
    assert service.ask("stats").json()["entries"] == 0


def test_a_long_body_is_not_read(service):
    long = {"entries": [{"text": "a" * 100_000}]}
    refused(service.ask("remember", long), 413, "InvalidInputError", "100000")
    pieces = (b'{"entries": [{"text": "' if not place else b"a" * 1000 for place in range(200))
    refused(service.ask("remember", None, content=pieces), 413, "InvalidInputError")  # of a length that is not told
    assert service.ask("stats").json()["entries"] == 0


def test_a_body_that_does_not_arrive_is_not_waited_for(tmp_path, small_model):
    app = make_app(tmp_path / "memory.db", model=small_model, config=QUICK, body_seconds=0.2)
    with running(app) as address:
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as stalled:
            stalled.sendall(
                b"POST /v1/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
                b'X-SCG-Namespace: ["users"]\r\n\r\n{"entries": ['
            )
            told = b"".join(iter(lambda: stalled.recv(4096), b""))  # and the connection is closed
        assert told.startswith(b"HTTP/1.1 408 ")
        assert b'"InvalidInputError"' in told
        assert b"within 0.2 s" in told


def test_a_long_call_stops_between_two_steps_when_the_service_ends(tmp_path, small_model, monkeypatch):
    begun, go, decode = threading.Event(), threading.Event(), ConceptDecoder.decode

    def wait(decoder, texts, constraints):
        begun.set()
        assert go.wait(60)
        return decode(decoder, texts, constraints)

    with SchemaMemory.open(tmp_path / "memory.db", model=small_model, namespace=ANNA) as memory:
        memory.remember([MemoryEntry(f"bee {n}", f"{n:03}") for n in range(100)], use_model=False)
    monkeypatch.setattr(ConceptDecoder, "decode", wait)

    async def use():
        app = make_app(tmp_path / "memory.db", model=small_model)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
            async with app.router.lifespan_context(app):
                headers = {"X-SCG-Namespace": json.dumps(ANNA)}
                waiting = asyncio.create_task(client.post("/v1/consolidate", headers=headers))
                await asyncio.to_thread(begun.wait, 60)
                asyncio.get_running_loop().call_later(0.1, go.set)
            return await waiting

    refused(asyncio.run(use()), 503, "StoreUnavailableError", "told to end", "goes on")
    with SchemaMemory.open(tmp_path / "memory.db", model=small_model, namespace=ANNA) as memory:
        assert 0 < memory.consolidate() < 100  # what was read before is kept


def test_pages_follow_each_other(service):
    entries = [{"text": f"bee {number}", "id": f"{number:04}"} for number in range(1203)]
    for start in range(0, 1203, 401):
        service.ask("remember", {"entries": entries[start : start + 401], "use_model": False})
    for limit in (1, 401, 500):
        listed, after = [], -1
        while after is not None:
            page = service.ask("entries", params={"after": after, "limit": limit}).json()
            assert len(page["entries"]) <= limit
            listed += page["entries"]
            after = page["next"]
            if limit == 1 and len(listed) == 3:
                break
        assert listed == entries[: len(listed)]
        assert len(listed) == (3 if limit == 1 else 1203)


def test_it_says_how_it_is_and_nothing_of_any_memory(service, tmp_path):
    service.ask("remember", {"entries": [ENTRY]})
    service.ask("recall", {"query": "quince"})
    service.ask("recall", {"query": ""})
    service.ask(f"x{SECRET}", {})
    service.client.request("BREW", "/health")
    assert service.client.get("/health").json() == {"status": "ok"}
    assert service.client.get("/ready").json() == {"status": "ok"}
    text = service.client.get("/metrics").text
    assert 'scg_requests_total{method="POST",route="/v1/recall",status="200"} 1.0' in text
    assert 'scg_requests_total{method="POST",route="/v1/recall",status="422"} 1.0' in text
    assert 'scg_requests_total{method="POST",route="other",status="404"} 1.0' in text
    assert 'scg_requests_total{method="other",route="/health",status="405"} 1.0' in text
    assert 'scg_request_seconds_count{route="/v1/remember"} 1.0' in text
    assert 'scg_entries_total{change="added"} 1.0' in text
    assert "scg_recalls_total 1.0" in text
    assert "scg_recalls_waiting 0.0" in text
    assert 'scg_requests_running{route="/metrics"} 1.0' in text
    for secret in ("quince", "anna", "users", "q1", service.anna):
        assert secret not in text
    service.path.replace(tmp_path / "elsewhere.db")
    assert service.client.get("/health").status_code == 200
    for response in (service.client.get("/ready"), service.ask("stats")):
        told = refused(response, 503, "StoreUnavailableError", "deleted")
        assert "memory.db" not in told
        assert "of this service" in told


def test_nothing_is_told_of_the_server_that_keeps_the_memory(postgres, small_model, caplog):
    name = postgres.database()
    with running(make_app(postgres.url(name), model=small_model)) as address, httpx.Client(base_url=address) as client:
        assert client.get("/ready").status_code == 200
        with postgres.connect() as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        for response in (
            client.get("/ready"),
            client.get("/v1/stats", headers={"X-SCG-Namespace": '["a"]'}),
            client.post("/v1/remember", headers={"X-SCG-Namespace": '["a"]'}, json={"entries": [ENTRY]}),
        ):
            told = refused(response, 503, "StoreUnavailableError", "of this service", "gone or refuses")
            for secret in (name, "scg@", "postgresql", "socket", "connections"):
                assert secret not in told
    assert f'database "{name}" is not currently accepting connections' in caplog.text


def test_what_nobody_foresaw_gives_nothing_away(service, monkeypatch, caplog):
    async def fail(memory, *args, **kwargs):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(SchemaMemory, "arecall", fail)
    with caplog.at_level(logging.DEBUG):
        told = refused(service.ask("recall", {"query": "quince"}), 500, "StoreError")
        service.ask("remember", {"entries": [ENTRY]})
    assert "quince" not in told
    assert "RuntimeError" in caplog.text
    assert "/v1/recall" in caplog.text
    for secret in ("quince", "anna", service.anna):
        assert secret not in caplog.text


def test_it_answers_while_the_model_is_busy(service, monkeypatch):
    started, go, decode = threading.Event(), threading.Event(), ConceptDecoder.decode

    def wait(decoder, texts, constraints):
        started.set()
        assert go.wait(60)
        return decode(decoder, texts, constraints)

    service.ask("remember", {"entries": [ENTRY]})
    monkeypatch.setattr(ConceptDecoder, "decode", wait)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.ask, "recall", {"query": "quince"})
        try:
            assert started.wait(60)
            assert service.client.get("/ready").status_code == 200
            assert service.ask("get", {"ids": ["q1"]}).json() == {"entries": [ENTRY]}
            assert 'scg_requests_running{route="/v1/recall"} 1.0' in service.client.get("/metrics").text
            assert not waiting.done()
        finally:
            go.set()
        assert waiting.result().json()["entries"]


def test_it_answers_while_the_model_is_loaded(tmp_path, small_model, monkeypatch):
    with SchemaMemory.open(tmp_path / "memory.db", model=small_model, namespace=ANNA, config=QUICK) as memory:
        memory.remember(MemoryEntry(**ENTRY))
    started, go, load = threading.Event(), threading.Event(), models.load_model

    def wait(source):
        started.set()
        assert go.wait(60)
        return load(source)

    monkeypatch.setattr(models, "load_model", wait)
    headers = {"X-SCG-Namespace": json.dumps(ANNA)}
    with (
        running(make_app(tmp_path / "memory.db", model=small_model, config=QUICK)) as address,
        httpx.Client(base_url=address, timeout=60, headers=headers) as client,
        ThreadPoolExecutor(2) as pool,
    ):
        waiting = [pool.submit(client.post, f"/v1/{name}", json={"query": "quince"}) for name in ("recall", "answer")]
        try:
            assert started.wait(60)
            assert client.post("/v1/get", json={"ids": ["q1"]}).json() == {"entries": [ENTRY]}
            assert client.get("/v1/stats").json()["entries"] == 1
            assert not any(one.done() for one in waiting)
        finally:
            go.set()
        for one in waiting:
            assert one.result().json()["entries"]


def test_without_keys_nobody_else_can_reach_it(tmp_path):
    for host in ("0.0.0.0", "::", "192.0.2.1", ""):
        with pytest.raises(InvalidInputError, match=r"scg key add|no address"):
            listen(host, 0, anywhere=False)
    with pytest.raises(InvalidInputError, match="cannot listen"):
        listen("192.0.2.1", 0, anywhere=True)  # an address that no machine has
    for host in ("127.0.0.1", "localhost"):
        listen(host, 0, anywhere=False).close()
    with pytest.raises(NotFoundError, match="scg key add"):
        make_app(tmp_path / "memory.db", keys=KeyFile(tmp_path / "keys.json"))
    assert not (tmp_path / "memory.db").exists()
