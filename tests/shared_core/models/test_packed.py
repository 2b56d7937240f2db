"""Packed layers give what plain ones give, and nobody's own model is touched."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from shared_core.models import TransformersModel, load_model
from shared_core.models.packed import PackedLinear, pack_linear_layers

PROMPT = [5, 9, 40, 17, 33]


def scores(model: TransformersModel) -> np.ndarray:
    """Log-probabilities all over a small token tree."""
    tree = model.tree(PROMPT)
    at = tree.read([80, 21, 60])
    nodes = tree.extend([100, 101, 102, 103], [at, at, -1, -3])
    tokens = np.arange(0, model.network.config.vocab_size, 41)
    return np.concatenate([tree.logprobs(np.full(len(tokens), node), tokens) for node in (at, *nodes)])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("rows", [1, 3, 16, 70])
def test_a_packed_layer_equals_the_plain_one(rows, bias):
    torch.manual_seed(rows)
    layer = torch.nn.Linear(96, 160, bias=bias)
    inputs = torch.randn(1, rows, 96)
    with torch.inference_mode():
        torch.testing.assert_close(PackedLinear(layer)(inputs), layer(inputs), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["llama", "qwen2", "gemma3", "gpt-neox", "opt", "bloom"])
def test_a_packed_model_scores_like_the_plain_one(tiny, name):
    plain = tiny(name)
    packed = TransformersModel(copy.deepcopy(plain._model), plain._tokenizer, threads=1, optimize=True)
    assert any(isinstance(layer, PackedLinear) for layer in packed._model.modules())
    assert packed.fingerprint == plain.fingerprint
    assert packed.mode in (plain.mode, "branches")
    np.testing.assert_allclose(scores(packed), scores(plain), atol=1e-4)


def test_the_embedded_model_is_packed_and_scores_like_a_plain_one(embedded, plain_embedded):
    assert any(isinstance(layer, PackedLinear) for layer in embedded._model.modules())
    assert not any(isinstance(layer, PackedLinear) for layer in plain_embedded._model.modules())
    np.testing.assert_allclose(scores(embedded), scores(plain_embedded), atol=1e-3)


def test_a_model_that_is_passed_in_stays_as_it_is(tiny):
    model = copy.deepcopy(tiny("llama")._model)
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    load_model((model, tiny("llama")._tokenizer), threads=1)
    assert not any(isinstance(layer, PackedLinear) for layer in model.modules())
    assert all(torch.equal(weight, before[name]) for name, weight in model.named_parameters())


def test_other_precisions_are_left_alone(tiny):
    model = copy.deepcopy(tiny("llama")._model).to(torch.bfloat16)
    assert not pack_linear_layers(model)
    assert not any(isinstance(layer, PackedLinear) for layer in model.modules())


def test_a_torch_without_the_operation_runs_plain_layers(tiny, monkeypatch):
    def missing(*_: object) -> None:
        raise AttributeError("no such operation")

    monkeypatch.setattr(PackedLinear, "__init__", missing)
    model = copy.deepcopy(tiny("llama")._model)
    assert not pack_linear_layers(model)
    assert TransformersModel(model, tiny("llama")._tokenizer, threads=1).mode == "tree"


def test_a_model_that_reads_its_weights_itself_stays_plain(tiny):
    plain = tiny("mamba")
    engine = TransformersModel(copy.deepcopy(plain._model), plain._tokenizer, threads=1, optimize=True)
    assert not any(isinstance(layer, PackedLinear) for layer in engine._model.modules())
    np.testing.assert_array_equal(scores(engine), scores(plain))


def test_a_layer_used_in_two_places_is_packed_once(tiny):
    model = copy.deepcopy(tiny("llama")._model)
    first, second = model.model.layers[0].mlp, model.model.layers[1].mlp
    second.up_proj = first.up_proj
    assert pack_linear_layers(model)
    assert isinstance(first.up_proj, PackedLinear)
    assert second.up_proj is first.up_proj
