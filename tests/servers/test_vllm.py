"""The model on a real vLLM server: the numbers of the one in this process, and the words of the tests' own server."""

from __future__ import annotations

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared_core import SchemaMemory
from shared_core.decoding import ConceptDecoder, Constraint, SearchOptions
from shared_core.errors import ModelError
from shared_core.models import PROMPT, load_model
from shared_core.schema import build_trie
from tests.conftest import HEAVY
from tests.served import running
from tests.servers.conversation import QUESTIONS, TURNS
from tests.vllm_server import MOST_NAMED, ServedModel

# The first test waits for the server to load.
pytestmark = [pytest.mark.servers, pytest.mark.timeout(1800)]

FEW = settings(HEAVY, max_examples=5)
KEYS = sorted({word.strip("?!.,").lower() for turn in TURNS for word in turn.text.split()})
HEADERS = {"Authorization": "Bearer sesame"}
# Wider than rounding, far narrower than what a wrong position or a missing token makes.
CLOSE = 1e-3


@FEW
@given(data=st.data())
def test_any_tree_scores_like_one_in_this_process(remote, embedded, data):
    token = st.integers(3, 49151)
    root = data.draw(st.lists(token, min_size=1, max_size=70))
    chains = data.draw(st.lists(st.lists(token, min_size=1, max_size=40), min_size=1, max_size=3))
    sizes = data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=2))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    theirs, ours = remote.tree(root), embedded.tree(root)
    ends = theirs.read_many(chains)
    assert ends == ours.read_many(chains)
    asked, count = np.array([PROMPT, *ends]), 1 + sum(map(len, chains))
    for size in (0, *sizes):
        if size:
            above = [int(random.choice([PROMPT, *ends, count - 1, *(-1 - np.arange(row))])) for row in range(size)]
            tokens = random.integers(3, 49152, size=size)
            asked, count = theirs.extend(tokens, above), count + size
            np.testing.assert_array_equal(asked, ours.extend(tokens, above))
        at = np.concatenate([random.choice(asked, size=100), np.repeat(asked[:1], 200)])
        wanted = random.integers(0, 49152, size=len(at))
        np.testing.assert_allclose(theirs.logprobs(at, wanted), ours.logprobs(at, wanted), atol=CLOSE)
        agree_on_the_likeliest(theirs, ours, asked)


def agree_on_the_likeliest(theirs, ours, nodes, count=128):
    tokens, scores = theirs.likeliest(nodes, count)
    assert all(len(set(row)) == count for row in tokens.tolist())
    np.testing.assert_allclose(scores, ours.likeliest(nodes, count)[1], atol=CLOSE)
    # Tokens that are nearly equal may change places; each has its own log-probability all the same.
    flat = ours.logprobs(np.repeat(nodes, count), tokens.flatten())
    np.testing.assert_allclose(scores.flatten(), flat, atol=CLOSE)


@FEW
@given(st.sets(st.sampled_from(KEYS), min_size=1, max_size=60), st.sampled_from([turn.text for turn in TURNS]))
def test_whole_tries_score_alike(remote, embedded, keys, text):
    found = []
    for model in (remote, embedded):
        decoder = ConceptDecoder(model)
        found.append(next(decoder.score(text, [tokens for tokens in decoder.encode_keys(sorted(keys)) if tokens])))
    assert found[0].keys() == found[1].keys()
    for key, scores in found[0].items():
        np.testing.assert_allclose(scores, found[1][key], atol=CLOSE)


@pytest.mark.parametrize("method", ["beam", "exact", "sample"])
def test_searches_find_the_same(remote, embedded, method):
    texts = [turn.text for turn in TURNS[:3]]
    found = []
    for model in (remote, embedded):
        decoder = ConceptDecoder(model)
        trie = build_trie([tokens for tokens in decoder.encode_keys(KEYS) if tokens])
        found.append(decoder.decode(texts, [[Constraint(trie, SearchOptions(8, method))]] * len(texts)))
    for theirs, ours in zip(*found, strict=True):
        assert [one.key for one in theirs.keys[0]] == [one.key for one in ours.keys[0]]
        for one, other in zip(theirs.keys[0], ours.keys[0], strict=True):
            assert (one.logprob, one.score) == pytest.approx((other.logprob, other.score), abs=CLOSE)


def test_both_write_the_same(remote, embedded):
    texts = [turn.text for turn in TURNS[:4]]
    written = [ConceptDecoder(model).generate(texts, max_tokens=12) for model in (remote, embedded)]
    assert written[0] == written[1]
    assert all(written[0])


def test_both_know_the_same_of_text(remote, embedded):
    texts = [turn.text for turn in TURNS] + ["<|im_start|>user\n<|endoftext|>", " naïve 中文 مرحبا 😀", ""]
    assert remote.encode_batch(texts) == embedded.encode_batch(texts)
    assert (remote.start, remote.ends, remote.window) == (embedded.start, embedded.ends, 4095)


def test_the_longest_prompt(remote, embedded):
    """In this process a longer text may be read than the server was told to."""
    tokens = np.random.default_rng(0).integers(3, 49152, size=remote.window).tolist()
    wanted = [4, 50, 300]
    found = remote.tree(tokens).logprobs([PROMPT] * 3, wanted)
    np.testing.assert_allclose(found, embedded.tree(tokens).logprobs([PROMPT] * 3, wanted), atol=5 * CLOSE)
    with pytest.raises(ModelError, match="max_tokens must be at least 1"):
        remote.tree([*tokens, 7]).logprobs([PROMPT], [4])


def test_the_likeliest_beside_requests_that_name_tokens(vllm, remote, embedded):
    """Without Triton the server mixes the two up when they meet in one step, as those of two processes do."""
    other = load_model(vllm.address())
    done = threading.Event()
    root = remote.encode(TURNS[0].text)
    ours = embedded.tree(root)

    def name_tokens(number):
        while not done.is_set():
            other.tree([*root, number]).logprobs([PROMPT] * 300, np.arange(300))
            time.sleep(0.05)

    with ThreadPoolExecutor(2) as threads:
        naming = [threads.submit(name_tokens, number) for number in (40, 41)]
        try:
            for _ in range(10):
                agree_on_the_likeliest(remote.tree(root), ours, [PROMPT])
        finally:
            done.set()
        for one in naming:
            one.result()


def test_the_same_memory_on_servers_and_in_this_process(vllm, embedded, postgres, tmp_path):
    """A conversation in SQLite with the model in this process, and in PostgreSQL with the model on vLLM."""
    there = postgres.url(postgres.database())
    with (
        SchemaMemory.open(tmp_path / "here.db", model=embedded) as here,
        SchemaMemory.open(there, model=vllm.address()) as served,
    ):
        for memory in (here, served):
            memory.remember(TURNS)
        assert served.entries == here.entries
        assert served.stats() == here.stats()
        for question in QUESTIONS:
            ours, theirs = here.recall(question, k=10), served.recall(question, k=10)
            assert [one.entry.id for one in theirs.entries] == [one.entry.id for one in ours.entries]
            assert len(ours.entries) == 10
            for one, other in zip(theirs.entries, ours.entries, strict=True):
                assert (one.score, one.relevance) == pytest.approx((other.score, other.relevance), abs=CLOSE)
            assert [one.key for one in theirs.seeds] == [one.key for one in ours.seeds]
            assert served.answer(question, k=5).text == here.answer(question, k=5).text


def test_errors_of_a_real_server_are_understood(vllm, remote):
    with pytest.raises(ModelError, match="start it with --max-logprobs 128"):
        remote.tree([5]).likeliest([PROMPT], 129)
    with pytest.raises(ModelError, match="refuses the key"):
        load_model(vllm.address("wrong"))
    with pytest.raises(ModelError, match=r"serves no model 'other' \(it serves: smollm2\)"):
        load_model(vllm.address().replace("smollm2", "other"))


def test_a_server_that_stands_still(vllm):
    model = load_model(vllm.address() + "?timeout=2")
    os.killpg(vllm.process.pid, signal.SIGSTOP)
    try:
        with pytest.raises(ModelError, match="did not answer within 2 s"):
            model.tree([5, 6, 7]).logprobs([PROMPT], [4])
    finally:
        os.killpg(vllm.process.pid, signal.SIGCONT)
    again = load_model(vllm.address())
    assert again.fingerprint == model.fingerprint
    assert again.tree([5, 6, 7]).logprobs([PROMPT], [4]).shape == (1,)


PLAIN = {"model": "smollm2", "max_tokens": 1, "temperature": 0, "return_tokens_as_token_ids": True}
ASKED = {
    "the models": ("GET", "/v1/models", None),
    "named tokens": (
        "POST",
        "/v1/completions",
        PLAIN | {"prompt": [[5, 6, 7], [5, 6, 9, 11]], "logprobs": 3, "logprob_token_ids": [4, 50, 300]},
    ),
    "one prompt, one token": (
        "POST",
        "/v1/completions",
        PLAIN | {"prompt": [[5]], "logprobs": 1, "logprob_token_ids": [0]},
    ),
    "the likeliest": ("POST", "/v1/completions", PLAIN | {"prompt": [[5, 6, 7], [9]], "logprobs": 128}),
    "the likeliest one": ("POST", "/v1/completions", PLAIN | {"prompt": [[5, 6, 7]], "logprobs": 1}),
    "too many likeliest": ("POST", "/v1/completions", PLAIN | {"prompt": [[5, 6, 7]], "logprobs": 129}),
    "too many named": (
        "POST",
        "/v1/completions",
        PLAIN | {"prompt": [[5]], "logprobs": 129, "logprob_token_ids": list(range(MOST_NAMED + 1))},
    ),
    "too long": ("POST", "/v1/completions", PLAIN | {"prompt": [[5] * 4096], "logprobs": 1}),
    "another model": ("POST", "/v1/completions", PLAIN | {"model": "other", "prompt": [[5]], "logprobs": 1}),
    "tokens": (
        "POST",
        "/tokenize",
        {"model": "smollm2", "prompt": "a naïve 中文", "add_special_tokens": False},
    ),
    "tokens of a special one": (
        "POST",
        "/tokenize",
        {"model": "smollm2", "prompt": "<|im_start|>", "add_special_tokens": True},
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_the_server_of_the_tests_says_what_a_real_one_says(vllm, embedded, name):
    method, path, body = ASKED[name]
    real = httpx.request(method, vllm.base + path, json=body, headers=HEADERS, timeout=120)
    known = real.json().get("system_fingerprint", "unused")
    served = ServedModel(embedded, "smollm2", str(vllm.folder), 4096, key="sesame", fingerprint=known)
    with running(served.app()) as base:
        ours = httpx.request(method, base + path, json=body, headers=HEADERS, timeout=120)
        refused = httpx.request(method, base + path, json=body)
    assert ours.status_code == real.status_code
    compare(real.json(), ours.json(), name)
    theirs = httpx.request(method, vllm.base + path, json=body)
    assert (refused.status_code, refused.json()) == (theirs.status_code, theirs.json())


# What differs from call to call, or says how it was said: nobody here reads it.
_FREE = {"id", "created", "permission", "message", "text", "type"}


def compare(real, ours, where):
    """Whatever the server of the tests says, the real one says as well, up to rounding and what is free."""
    if isinstance(ours, dict):
        assert ours.keys() <= real.keys(), where
        for name, value in ours.items():
            if name in _FREE:
                assert type(real[name]) is type(value), (where, name)
            else:
                compare(real[name], value, f"{where}: {name}")
    elif isinstance(ours, list):
        assert len(ours) == len(real), where
        for place, (theirs, value) in enumerate(zip(real, ours, strict=True)):
            compare(theirs, value, f"{where}[{place}]")
    elif isinstance(ours, float):
        assert real == pytest.approx(ours, abs=CLOSE), where
    else:
        assert real == ours, where
