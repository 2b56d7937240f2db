"""Attention branch by branch gives what plain passes over single paths give."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from shared_core.models import PROMPT, TransformersModel
from shared_core.models.branch_attention import BranchPlan
from tests.conftest import ARCHITECTURES, REPEATED, VOCABULARY

ROOT = [5, 9, 40, 17, 33]
KIND = (torch.float32, torch.device("cpu"))
# What keeps to branches: full attention everywhere, by Transformers' exchangeable attention functions.
BRANCHING = ("llama", "qwen2", "qwen3", "phi3", "gpt2", "gpt-neox", "opt")


@pytest.fixture(scope="module")
def optimized(tiny) -> Callable[[str], TransformersModel]:
    made: dict[str, TransformersModel] = {}

    def make(name: str) -> TransformersModel:
        if name not in made:
            plain = tiny(name)
            made[name] = TransformersModel(copy.deepcopy(plain._model), plain._tokenizer, threads=1, optimize=True)
        return made[name]

    return make


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_which_architectures_keep_to_branches(optimized, tiny, name):
    assert optimized(name).mode == ("branches" if name in BRANCHING else ARCHITECTURES[name][2])
    assert tiny(name).mode == ARCHITECTURES[name][2]
    if name not in BRANCHING:
        assert optimized(name)._model.config._attn_implementation == tiny(name)._model.config._attn_implementation


@pytest.mark.parametrize("name", BRANCHING)
@REPEATED
@given(data=st.data())
def test_any_tree_scores_like_a_tree_of_a_plain_model(optimized, tiny, name, data):
    chains = data.draw(st.lists(st.lists(st.integers(3, 999), min_size=1, max_size=9), min_size=1, max_size=5))
    rounds = data.draw(st.lists(st.integers(1, 12), min_size=1, max_size=3))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    plans = []
    before = 1 + sum(map(len, chains))
    ends = (np.cumsum(list(map(len, chains)))).tolist()
    for size in rounds:
        above = [int(random.choice([PROMPT, *ends, *range(1, before), *(-1 - np.arange(row))])) for row in range(size)]
        plans.append((random.integers(3, 999, size=size), np.array(above)))
        before += size
    tokens = np.arange(0, VOCABULARY, 19)
    results = []
    for model in (optimized(name), tiny(name)):
        tree = model.tree(ROOT)
        nodes = tree.read_many(chains)
        assert nodes == ends
        scored = [tree.logprobs(np.full(len(tokens), node), tokens) for node in nodes]
        for new, above in plans:
            scored += [tree.logprobs(np.full(len(tokens), node), tokens) for node in tree.extend(new, above)]
        results.append(np.stack(scored))
    np.testing.assert_allclose(results[0], results[1], atol=2e-3)


@pytest.mark.parametrize("name", BRANCHING)
@pytest.mark.parametrize("rows", [1, 3, 5])
def test_many_texts_continue_like_those_of_a_plain_model(optimized, tiny, name, rows):
    """Few rows of many branches, and of branches of unequal lengths."""
    random = np.random.default_rng(rows)
    chains = [random.integers(3, 999, size=length).tolist() for length in (1, 9, 4, 2, 30, 7)]
    steps = [random.integers(3, 999, size=len(chains) * rows - (rows > 1)) for _ in range(3)]
    tokens = np.arange(0, VOCABULARY, 19)
    results = []
    for model in (optimized(name), tiny(name)):
        tree = model.tree(ROOT)
        above = np.repeat(tree.read_many(chains), rows)
        scored = []
        for new in steps:
            nodes = tree.extend(new, above[: len(new)])
            scored += [tree.logprobs(np.full(len(tokens), node), tokens) for node in nodes]
            above = np.append(nodes, nodes[-1])[: len(above)]
        results.append(np.stack(scored))
    np.testing.assert_allclose(results[0], results[1], atol=2e-3)


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_long_text_scores_like_one_of_a_plain_model(optimized, tiny, name):
    text = np.random.default_rng(0).integers(3, 999, size=170).tolist()
    tokens = np.arange(0, VOCABULARY, 19)
    results = []
    for model in (optimized(name), tiny(name)):
        tree = model.tree(ROOT)
        ends = tree.read_many([text, text[:40], text[30:]])
        results.append(np.stack([tree.logprobs(np.full(len(tokens), end), tokens) for end in ends]))
    np.testing.assert_allclose(results[0], results[1], atol=2e-3)


def test_branches_are_planned_apart_only_where_that_saves_work():
    sees = np.ones((4, 6), dtype=bool)
    alone = BranchPlan.build(np.array([3, 3, 3, 3]), np.array([-1, -1, 3, 3, 3, 3]), sees, *KIND)
    assert alone.rows is None
    assert alone.mask.shape == (1, 1, 4, 6)
    apart = BranchPlan.build(np.array([2, 4, 4, 2]), np.array([-1, -1, 2, 2, 4, 4]), sees, *KIND)
    assert apart.rows is not None
    assert apart.columns is not None
    assert apart.back is not None
    assert apart.rows.tolist() == [[0, 3], [1, 2]]
    assert apart.columns.tolist() == [[0, 1, 2, 3], [0, 1, 4, 5]]
    assert apart.back.tolist() == [0, 2, 3, 1]
    assert apart.shared == 0


@pytest.mark.parametrize(("branches", "rows", "shared"), [(4, 1, 2), (5, 4, 2), (3, 1, 0), (4, 5, 0)])
def test_the_root_prompt_is_shared_where_few_rows_of_many_branches_attend(branches, rows, shared):
    own = np.repeat(np.arange(1, branches + 1), rows)
    sees = np.concatenate([np.ones((len(own), 2), dtype=bool), own[:, None] == own], axis=1)
    plan = BranchPlan.build(own, np.concatenate([[-1, -1], own]), sees, *KIND)
    assert plan.shared == shared
    assert plan.columns is not None
    assert plan.columns.shape == (branches, rows + 2 - shared)
    assert plan.mask.shape == (branches, 1, rows, rows + 2 - shared)
