"""Servers that are gone, slow, busy, broken, old, or not the right one: tried again, then told what to do."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from shared_core.errors import ModelError
from shared_core.models import PROMPT, load_model
from tests.vllm_server import error

ROOT = [5, 9, 40, 17, 33]
COMPLETIONS = "/v1/completions"


def failing(answers, path=COMPLETIONS):
    """A fault: these answers to the first requests, ``None`` for a proper one."""
    waiting = list(answers)
    return lambda asked, number: waiting.pop(0) if asked == path and waiting else None


def scored(model):
    return model.tree(ROOT).logprobs([PROMPT] * 3, [4, 50, 300])


def truncated():
    return Response(b'{"id": "cmpl-0", "choices": [{"index": 0, "logp', media_type="application/json")


PASSING = {
    "busy": lambda: error(429, "too many requests", "TooManyRequests", None),
    "failing": lambda: error(500, "EngineCore encountered an issue", "InternalServerError", None),
    "a proxy without a server": lambda: PlainTextResponse("Bad Gateway", 502),
    "starting": lambda: PlainTextResponse("", 503),
    "cut short": truncated,
}


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes_is_not_noticed(serve, small_model, kind):
    server = serve()
    model = server.load()
    expected = scored(small_model)
    server.served.fault = failing([PASSING[kind]() for _ in range(3)])
    np.testing.assert_allclose(scored(model), expected, atol=1e-4)
    server.served.fault = failing([PASSING[kind](), None, PASSING[kind]()])
    np.testing.assert_allclose(scored(model), expected, atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("busy", "busy or failing (status 429: too many requests): look at its log, and try again"),
        ("failing", "busy or failing (status 500: EngineCore encountered an issue)"),
        ("a proxy without a server", "busy or failing (status 502)"),
        ("starting", "busy or failing (status 503)"),
        ("cut short", "cut short or not as a vLLM server writes it"),
    ],
)
def test_what_stays_is_told(serve, kind, said):
    server = serve()
    model = server.load()
    before = server.served.asked[COMPLETIONS]
    server.served.fault = lambda path, number: PASSING[kind]()
    with pytest.raises(ModelError) as told:
        scored(model)
    assert said in str(told.value)
    assert server.served.asked[COMPLETIONS] == before + 5
    server.served.fault = lambda path, number: None
    assert len(scored(model)) == 3


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error(400, "prompt is empty", "BadRequestError", "prompt"), "refused a request (status 400): prompt is empty"),
        (PlainTextResponse("nothing here", 418), "status 418): no reason given"),
        (Response(status_code=307, headers={"location": "/elsewhere"}), "status 307"),
        (error(404, "The model `tiny` does not exist.", "NotFoundError", "model"), "does not know 'tiny'"),
        (JSONResponse({"error": "Unauthorized"}, 401), "set VLLM_API_KEY"),
    ],
)
def test_what_will_not_pass_is_not_sent_again(serve, answer, said):
    server = serve()
    model = server.load()
    before = server.served.asked[COMPLETIONS]
    server.served.fault = failing([answer])
    with pytest.raises(ModelError) as told:
        scored(model)
    assert said in str(told.value)
    assert server.served.asked[COMPLETIONS] == before + 1


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"choices": None},
        {"choices": []},
        {"choices": [{"index": 0, "logprobs": None}]},
        {"choices": [{"index": 0, "logprobs": {"top_logprobs": []}}]},
        {"choices": [{"index": 0, "logprobs": {"top_logprobs": [{" the": -1.0}]}}]},
        {"choices": [{"index": 0, "logprobs": {"top_logprobs": [None]}}]},
    ],
)
def test_what_no_vllm_writes_is_refused(serve, answer):
    server = serve()
    model = server.load()
    server.served.fault = failing([JSONResponse({"system_fingerprint": server.served.fingerprint} | answer)])
    with pytest.raises(ModelError, match="not as a vLLM server writes it"):
        scored(model)


def test_a_server_that_does_not_heed_named_tokens(serve):
    """As older ones: a field that they do not know is passed over, and the likeliest tokens come back."""
    answer = {"top_logprobs": [{"token_id:9": -0.1, "token_id:7": -2.0}]}
    old = JSONResponse({"choices": [{"index": 0, "logprobs": answer}], "system_fingerprint": None})
    with pytest.raises(ModelError, match=r"\(logprob_token_ids\): it is too old, or no vLLM server. vLLM 0.32 does"):
        serve(fault=failing([old])).load()


def test_a_server_that_gives_logits(serve):
    answer = {"top_logprobs": [{"token_id:1": 11.5, "token_id:2": -2.0}]}
    wrong = JSONResponse({"choices": [{"index": 0, "logprobs": answer}], "system_fingerprint": None})
    with pytest.raises(ModelError, match="--logprobs-mode raw_logprobs"):
        serve(fault=failing([wrong])).load()
    server = serve()
    model = server.load()
    for best in (-0.01, 900.0):
        answer = {"top_logprobs": [{"token_id:1": best, "token_id:2": -0.02}]}
        wrong = {"choices": [{"index": 0, "logprobs": answer}], "system_fingerprint": server.served.fingerprint}
        server.served.fault = failing([JSONResponse(wrong)])
        with pytest.raises(ModelError, match="--logprobs-mode raw_logprobs"):
            model.tree(ROOT).likeliest([PROMPT], 2)


def test_a_server_that_gives_too_few_of_the_likeliest(serve):
    model = serve(max_logprobs=20).load()
    assert model.tree(ROOT).likeliest([PROMPT], 20)[0].shape == (1, 20)
    with pytest.raises(ModelError, match="start it with --max-logprobs 128"):
        model.tree(ROOT).likeliest([PROMPT], 128)


def mixed(server, count=1):
    """What the older model runner makes of the likeliest tokens beside a request that names some."""
    answer = {"top_logprobs": [{"token_id:9": -0.1, "token_id:0": -9999.0}]}
    return [
        JSONResponse(
            {
                "choices": [{"index": 0, "logprobs": answer}],
                "system_fingerprint": server.served.fingerprint,
            }
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("count", [2, 5])
def test_the_likeliest_beside_a_request_that_names_tokens(serve, small_model, count):
    server = serve()
    model = server.load()
    server.served.fault = failing(mixed(server, 3))
    tokens, scores = model.tree(ROOT).likeliest([PROMPT], count)
    expected = small_model.tree(ROOT).likeliest([PROMPT], count)
    np.testing.assert_array_equal(tokens, expected[0])
    np.testing.assert_allclose(scores, expected[1], atol=1e-4)
    server.served.fault = lambda path, number: mixed(server)[0]
    with pytest.raises(ModelError, match="try again, or use a vLLM whose model runner"):
        model.tree(ROOT).likeliest([PROMPT], count)


def test_another_model(serve):
    server = serve(name="other")
    with pytest.raises(ModelError, match=r"serves no model 'tiny' \(it serves: other\)"):
        load_model(server.address.replace("other", "tiny"))


def test_a_server_that_was_started_anew(serve):
    server = serve()
    model = server.load()
    scored(model)
    server.served.fingerprint = "vllm-0.33.0-00000000"
    with pytest.raises(ModelError, match=r"started anew .*'vllm-0.33.0-00000000', before .*: open the memory again"):
        scored(model)
    assert len(scored(server.load())) == 3


def test_the_key(serve, monkeypatch):
    server = serve(key="sésame".encode("ascii", "ignore").decode())
    with pytest.raises(ModelError, match="refuses the key, or the lack of one: set VLLM_API_KEY"):
        server.load()
    monkeypatch.setenv("VLLM_API_KEY", "wrong")
    with pytest.raises(ModelError, match="refuses the key") as told:
        server.load()
    assert "wrong" not in str(told.value)
    monkeypatch.setenv("VLLM_API_KEY", "ssame")
    assert len(scored(server.load())) == 3
    monkeypatch.delenv("VLLM_API_KEY")
    assert len(scored(load_model(server.address.replace("http://", "http://:ssame@")))) == 3


def test_the_tokenizer_must_be_here(serve, tmp_path):
    server = serve(root="/models/elsewhere")
    with pytest.raises(ModelError, match=r"could not be read from '/models/elsewhere' here .*\?tokenizer=FOLDER"):
        server.load()


def test_the_tokenizer_must_be_the_model_s(serve, tokenizer_folder, embedded):
    server = serve(root="/models/elsewhere")
    assert len(scored(server.load(f"?tokenizer={tokenizer_folder}"))) == 3
    with pytest.raises(ModelError, match=r"is not that of 'tiny' at http.* name the right one"):
        server.load(f"?tokenizer={embedded._tokenizer.name_or_path}")


def test_a_proxy_may_keep_the_tokens_to_itself(serve):
    server = serve(fault=lambda path, number: PlainTextResponse("", 404) if path == "/tokenize" else None)
    assert len(scored(server.load())) == 3


def test_what_is_no_vllm_server(serve):
    cards = {"object": "list", "data": [{"id": "tiny", "object": "model"}]}
    with pytest.raises(ModelError, match="does not say how much its model can read: it is no vLLM server"):
        serve(fault=failing([JSONResponse(cards)], "/v1/models")).load()
    with pytest.raises(ModelError, match="serves no model 'tiny'"):
        serve(fault=failing([JSONResponse({"data": ["tiny", {}]})], "/v1/models")).load()
    with pytest.raises(ModelError, match="not as a vLLM server writes it"):
        serve(fault=lambda path, number: PlainTextResponse("<html>")).load()


@contextmanager
def listening(behave):
    """A port that accepts connections and does with each what it is told."""
    accepted = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def run():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                accepted.append(connection)
                behave(connection)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield SimpleNamespace(address=f"vllm+http://127.0.0.1:{server.getsockname()[1]}/tiny", accepted=accepted)
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            for connection in accepted:
                connection.close()


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ModelError, match=r"cannot be reached \(ConnectError\): start it \(vllm serve\)"):
        load_model(f"vllm+http://127.0.0.1:{port}/tiny")


def test_connections_that_break():
    with listening(lambda connection: connection.close()) as server:
        with pytest.raises(ModelError, match="broke off"):
            load_model(server.address)
        assert len(server.accepted) == 5


def test_an_answer_that_breaks_off():
    def begin(connection):
        connection.recv(65536)
        connection.sendall(
            b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{"data": ['
        )
        connection.close()

    with listening(begin) as server:
        with pytest.raises(ModelError, match="broke off"):
            load_model(server.address)
        assert len(server.accepted) == 5


def test_a_server_that_does_not_answer_in_time():
    with listening(lambda connection: None) as server:
        began = time.monotonic()
        with pytest.raises(ModelError, match=r"did not answer within 0.1 s \(ReadTimeout\): .*\?timeout=SECONDS"):
            load_model(server.address + "?timeout=0.1")
        assert time.monotonic() - began < 30
        assert len(server.accepted) == 5
