"""The engine on a server against the same model in this process: the same numbers, whatever is asked."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.decoding import ConceptDecoder, Constraint, SearchOptions, generate
from shared_core.errors import ModelError
from shared_core.models import PROMPT, load_model
from shared_core.schema import build_trie
from tests.conftest import HEAVY, VOCABULARY, run_program
from tests.served import running
from tests.vllm_server import ServedModel

ROOT = [5, 9, 40, 17, 33]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]


@pytest.fixture(scope="module")
def shared_server(tiny, tokenizer_folder):
    """One server for the properties."""
    with running(ServedModel(tiny("llama"), root=str(tokenizer_folder)).app()) as address:
        yield f"vllm+{address}/tiny"


@pytest.fixture(scope="module")
def remote(shared_server):
    return load_model(shared_server)


@HEAVY
@given(data=st.data())
def test_any_tree_scores_like_one_in_this_process(remote, small_model, data):
    token = st.integers(3, 999)
    chains = data.draw(st.lists(st.lists(token, min_size=1, max_size=9), max_size=5))
    rounds = data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=3))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    theirs, ours = remote.tree(ROOT), small_model.tree(ROOT)
    ends = theirs.read_many(chains)
    assert ends == ours.read_many(chains)
    asked = np.array([PROMPT, *ends])
    count = 1 + sum(map(len, chains))
    for size in (0, *rounds):
        if size:
            above = np.array(
                [int(random.choice([PROMPT, *ends, count - 1, *(-1 - np.arange(row))])) for row in range(size)]
            )
            tokens = random.integers(3, 999, size=size)
            nodes = theirs.extend(tokens, above)
            np.testing.assert_array_equal(nodes, ours.extend(tokens, above))
            asked, count = nodes, count + size
        at = np.concatenate([random.choice(asked, size=60), np.repeat(asked[:1], 300)])
        wanted = random.integers(0, VOCABULARY, size=len(at))
        np.testing.assert_allclose(theirs.logprobs(at, wanted), ours.logprobs(at, wanted), atol=1e-4)
        best, scores = theirs.likeliest(asked, 7)
        our_best, our_scores = ours.likeliest(asked, 7)
        np.testing.assert_allclose(scores, our_scores, atol=1e-4)
        assert (best == our_best).mean() > 0.9  # all but the nearly equal


def test_trees_refuse_what_cannot_be(remote):
    tree = remote.tree(ROOT)
    with pytest.raises(ModelError, match="at least one token"):
        remote.tree([])
    with pytest.raises(ValueError, match="at least one token"):
        tree.read_many([[1], []])
    with pytest.raises(ValueError, match="must come before"):
        tree.extend([1, 2], [0, -2])
    for nodes in ([1], [-1]):
        with pytest.raises(ValueError, match="no such node"):
            tree.logprobs(nodes, [5])
    with pytest.raises(ValueError, match="no such node"):
        tree.read([5], 3)


def test_nothing_is_sent_about_nothing(serve):
    server = serve()
    tree = server.load().tree(ROOT)
    asked = server.served.asked["/v1/completions"]
    assert tree.logprobs([], []).shape == (0,)
    assert [part.shape for part in tree.likeliest([], 4)] == [(0, 4), (0, 4)]
    assert tree.read_many([]) == []
    tree.read_many([[1, 2], [3]])
    assert server.served.asked["/v1/completions"] == asked


def test_all_of_a_small_vocabulary(serve, small_model):
    model = serve(max_logprobs=VOCABULARY).load()
    tokens, scores = model.tree(ROOT).likeliest([PROMPT], VOCABULARY + 5)
    assert tokens.shape == scores.shape == (1, VOCABULARY)
    assert sorted(tokens[0]) == list(range(VOCABULARY))
    np.testing.assert_allclose(scores, small_model.tree(ROOT).likeliest([PROMPT], VOCABULARY)[1], atol=1e-4)


TEXT = st.lists(st.one_of(st.sampled_from(SPECIAL), st.text(st.sampled_from("aZ9 .,<|>\n_é中文😀"), max_size=8))).map(
    "".join
)


@given(st.lists(TEXT, max_size=4))
def test_text_is_encoded_as_in_this_process(remote, small_model, texts):
    encoded = remote.encode_batch(texts)
    assert encoded == small_model.encode_batch(texts)
    for text, tokens in zip(texts, encoded, strict=True):
        assert remote.encode(text) == tokens
        assert remote.decode(tokens) == small_model.decode(tokens)


def test_what_it_knows_of_the_model(remote, small_model):
    assert remote.start == small_model.start
    assert remote.ends == small_model.ends
    assert remote.window == 319  # one token less than the server reads, which must generate one


def test_the_longest_prompt(remote, small_model):
    tokens = np.random.default_rng(0).integers(3, 999, size=remote.window).tolist()
    found = remote.tree(tokens).logprobs([PROMPT] * 3, [4, 50, 300])
    np.testing.assert_allclose(found, small_model.tree(tokens).logprobs([PROMPT] * 3, [4, 50, 300]), atol=1e-4)
    with pytest.raises(ModelError, match="max_tokens must be at least 1"):
        remote.tree([*tokens, 7]).logprobs([PROMPT], [4])


def test_the_fingerprint(serve, shared_server, remote):
    same = load_model(shared_server).fingerprint
    assert same == remote.fingerprint != serve(fingerprint="vllm-0.32.0-ffff0000").load().fingerprint
    assert serve(name="other").load().fingerprint != same
    assert len(same) == 32
    assert len(serve(fingerprint=None).load().fingerprint) == 32


def test_decoding_and_scoring_give_the_same(remote, small_model):
    keys = [
        "red canoe",
        "red",
        "canoe paddle",
        "plum jam",
        "plum",
        "a cake of carrots",
        "beehive",
        "pear tree",
        "slugs",
    ]
    texts = ["I paddled the canoe", "The bees are in the pear tree", "jam"]
    results = []
    for model in (remote, small_model):
        decoder = ConceptDecoder(model)
        trie = build_trie([tokens for tokens in decoder.encode_keys(keys) if tokens])
        searches = [
            [Constraint(trie, SearchOptions(4, method, score))]
            for method in ("beam", "exact", "sample")
            for score in ("base", "schema")
        ]
        found = [decoder.decode(texts, [constraints] * len(texts)) for constraints in searches]
        scores = next(decoder.neutral_scores(list(trie)))
        results.append((found, scores, decoder.generate(texts, max_tokens=5)))
    (found, scores, written), (our_found, our_scores, our_written) = results
    assert written == our_written
    assert scores.keys() == our_scores.keys()
    for key, each in scores.items():
        np.testing.assert_allclose(each, our_scores[key], atol=1e-4)
    for theirs, ours in zip(found, our_found, strict=True):
        for reading, our_reading in zip(theirs, ours, strict=True):
            assert [[one.key for one in keys] for keys in reading.keys] == [
                [one.key for one in keys] for keys in our_reading.keys
            ]
            for one, other in zip(reading.keys[0], our_reading.keys[0], strict=True):
                assert (one.logprob, one.score) == pytest.approx((other.logprob, other.score), abs=1e-3)
            np.testing.assert_allclose(reading.anticipation.logprobs, our_reading.anticipation.logprobs, atol=1e-4)


def test_threads_share_it(serve, small_model):
    server = serve()
    remote = server.load()
    start = threading.Barrier(6)

    def use(number):
        start.wait()
        tree = remote.tree([*ROOT, number])
        node = tree.read([7, 8, number])
        return tree.logprobs([node] * 200, np.arange(200)), generate(remote, tree, [node], max_tokens=3)

    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(use, range(50, 56)))
    for number, (scores, written) in zip(range(50, 56), found, strict=True):
        tree = small_model.tree([*ROOT, number])
        node = tree.read([7, 8, number])
        np.testing.assert_allclose(scores, tree.logprobs([node] * 200, np.arange(200)), atol=1e-4)
        assert written == generate(small_model, tree, [node], max_tokens=3)
    assert server.served.met == 0


def test_without_httpx_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("shared_core.models.vllm")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelError, match=r"httpx, which is not installed: pip install 'scg-mem\[vllm\]'"):
        load_model("vllm+http://localhost/tiny")


def test_nothing_else_needs_httpx():
    program = """
import sys
sys.modules["httpx"] = None
import shared_core.memory, shared_core.models, shared_core.cli
"""
    assert run_program(program) == []
