"""A token tree gives the log-probabilities of plain forward passes over its paths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared_core.models import PROMPT, TransformersModel
from tests.conftest import ARCHITECTURES, REPEATED, VOCABULARY

TOKENS = st.integers(3, 400)


def plain(model: TransformersModel, path: list[int], tokens: list[int]) -> np.ndarray:
    """Log-probabilities of tokens after a whole path, without cache, mask or positions of ours."""
    with torch.inference_mode():
        logits = model._model(torch.tensor([path])).logits[0, -1].float()
    return (logits - logits.logsumexp(-1)).numpy()[tokens]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_mode_of_each_architecture(tiny, name):
    assert tiny(name).mode == ARCHITECTURES[name][2]


@pytest.mark.parametrize("name", ARCHITECTURES)
@REPEATED
@given(data=st.data())
def test_every_path_equals_a_plain_pass(tiny, name, data):
    model = tiny(name)
    prompt = data.draw(st.lists(TOKENS, min_size=1, max_size=12))
    chains = data.draw(st.lists(st.lists(TOKENS, min_size=1, max_size=9), min_size=1, max_size=3))
    tree = model.tree(prompt)
    paths = {PROMPT: prompt}
    for node, chain in zip(tree.read_many(chains), chains, strict=True):
        paths[node] = prompt + chain
    for _ in range(2):
        known = list(paths)
        tokens = data.draw(st.lists(TOKENS, min_size=1, max_size=6))
        parents, called = [], []
        for place in range(len(tokens)):
            choices = [*known, *(-1 - earlier for earlier in range(place))]
            parents.append(data.draw(st.sampled_from(choices)))
            above = called[-1 - parents[-1]] if parents[-1] < 0 else paths[parents[-1]]
            called.append([*above, tokens[place]])
        nodes = tree.extend(tokens, parents).tolist()
        paths.update(zip(nodes, called, strict=True))
        asked = [5, 77, 301]
        for node in nodes:
            got = tree.logprobs([node] * 3, asked)
            np.testing.assert_allclose(got, plain(model, paths[node], asked), atol=2e-4)
    for node in tree.read_many(chains):
        assert node not in paths
    np.testing.assert_allclose(tree.logprobs([PROMPT] * 3, asked), plain(model, prompt, asked), atol=2e-4)


def test_embedded_model_reads_like_a_plain_pass(embedded):
    prompt, chain = embedded.encode("Text: the cat sat on"), embedded.encode(" the warm mat")
    tree = embedded.tree(prompt)
    node = tree.read(chain)
    below = tree.extend(chain[:2], [node, -1])
    tokens = [0, 11, 4093, 49000]
    np.testing.assert_allclose(
        tree.logprobs([below[1]] * 4, tokens),
        plain(embedded, prompt + chain + chain[:2], tokens),
        atol=1e-3,
    )


def test_a_long_chain_is_read_in_pieces(tiny):
    model = tiny("llama")
    chain = np.random.default_rng(0).integers(3, 400, size=1100).tolist()
    tree = model.tree([7])
    node = tree.read(chain)
    np.testing.assert_allclose(tree.logprobs([node], [9]), plain(model, [7, *chain], [9]), atol=1e-3)


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_the_likeliest_tokens_are_those_of_the_highest_log_probability(tiny, architecture):
    tree = tiny(architecture).tree([5, 6])
    end = tree.read([7, 8])
    nodes = [*tree.extend([8, 9], [PROMPT, -1]), end, PROMPT]
    everything = np.arange(VOCABULARY)
    tokens, scores = tree.likeliest(nodes, 20)
    for node, best, logprobs in zip(nodes, tokens, scores, strict=True):
        true = tree.logprobs([node] * VOCABULARY, everything)
        np.testing.assert_allclose(logprobs, np.sort(true)[::-1][:20], atol=1e-5)
        np.testing.assert_array_equal(true[best], logprobs)
    assert tree.likeliest(nodes, 2 * VOCABULARY)[0].shape == (4, VOCABULARY)
    assert tree.likeliest(nodes)[0].tolist() == tokens[:, :1].tolist()
    assert tree.likeliest([], 3)[0].shape == (0, 3)


def test_root_prompts_are_shared_and_never_written_to(tiny):
    model = tiny("gpt2")
    first = model.tree([5, 6, 7])
    before = first.logprobs([PROMPT], [42])
    first.extend([9, 9, 9], [PROMPT, -1, -2])
    first.read([1, 2, 3])
    longer = model.tree([5, 6, 7, 8])
    np.testing.assert_allclose(longer.logprobs([PROMPT], [42]), plain(model, [5, 6, 7, 8], [42]), atol=2e-4)
    np.testing.assert_array_equal(model.tree([5, 6, 7]).logprobs([PROMPT], [42]), before)


def test_log_probabilities_of_older_extensions_are_refused(tiny):
    tree = tiny("llama").tree([5])
    old = tree.extend([6], [PROMPT])
    tree.extend([7], [PROMPT])
    with pytest.raises(LookupError):
        tree.logprobs(old, [1])


def test_a_parent_must_come_first(tiny):
    tree = tiny("llama").tree([5])
    with pytest.raises(ValueError, match="before"):
        tree.extend([6, 7], [-2, PROMPT])
