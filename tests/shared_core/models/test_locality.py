"""How far layers look back is told by the configuration, and a mode chosen on a short text holds on a long one."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from shared_core.models import TransformersModel
from shared_core.models.locality import Locality, shortened_windows
from tests.conftest import make, plain

VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
}
_NARROW = {
    "vocab_size": 49152,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "initializer_range": 0.2,
}
# Windows longer than the probe's text: a wrong mask would not show in it.
LOCAL = {
    "gpt-neo": (
        "gpt_neo",
        {
            "vocab_size": 49152,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 24,
            "max_position_embeddings": 256,
            "initializer_range": 0.2,
        },
        "paths",
    ),
    "llama4": (
        "llama4_text",
        {**_NARROW, "attention_chunk_size": 24, "num_local_experts": 2, "intermediate_size_mlp": 48, "pad_token_id": 0},
        "paths",
    ),
    "mistral": ("mistral", {**_NARROW, "sliding_window": 24}, "tree"),
    "gemma3": (
        "gemma3",
        {
            "text_config": {**_NARROW, "sliding_window": 24, "layer_types": ["sliding_attention", "full_attention"]},
            "vision_config": VISION,
        },
        "tree",
    ),
}


@pytest.mark.parametrize("name", LOCAL)
def test_local_attention_beyond_the_probe(tiny, name):
    """Whatever mode was chosen on a short text is right on a long one."""
    kind, options, mode = LOCAL[name]
    torch.manual_seed(0)
    config = CONFIG_MAPPING[kind](**options)
    model = TransformersModel(AutoModelForCausalLM.from_config(config), tiny("llama")._tokenizer, threads=1)
    assert model.mode == mode
    assert model.window == 256
    path = np.random.default_rng(1).integers(3, 400, size=60).tolist()
    tree = model.tree(path[:20])
    node = tree.read(path[20:57])
    below = tree.extend([300, *path[57:], 9], [node, node, -2, -3, -3])
    for at, whole in [(node, path[:57]), (below[3], path), (below[4], [*path[:59], 9])]:
        np.testing.assert_allclose(tree.logprobs([at] * 3, [4, 50, 300]), plain(model, whole, [4, 50, 300]), atol=3e-4)


def test_a_window_that_the_model_does_not_keep_to_is_noticed(tiny):
    """Its configuration names a window that its layers ignore, longer than the probe's text."""
    model = make("llama")
    model.config.sliding_window = 100
    engine = TransformersModel(model, tiny("llama")._tokenizer, threads=1)
    assert engine.mode == "paths"
    assert model.config.sliding_window == 100


@pytest.mark.parametrize(
    ("kind", "options", "windows", "understood"),
    [
        ("llama", {}, None, True),
        ("mistral", {"sliding_window": 99}, 99, True),
        ("mistral", {"sliding_window": None}, None, True),
        ("qwen2", {"sliding_window": 99, "use_sliding_window": False}, None, True),
        (
            "qwen2",
            {"sliding_window": 99, "use_sliding_window": True, "max_window_layers": 1},
            {"full_attention": None, "sliding_attention": 99},
            True,
        ),
        ("gpt_neo", {}, None, False),
        ("llama4_text", {}, None, False),
        ("qwen3_next", {}, None, False),
    ],
)
def test_the_configuration_tells_how_far_layers_look_back(kind, options, windows, understood):
    locality = Locality.of(CONFIG_MAPPING[kind](**options))
    assert locality.understood == understood
    if understood:
        assert locality.windows == windows


def test_windows_are_shortened_for_a_moment_only():
    model = make("mistral", sliding_window=50)
    within = []

    def fail():
        with shortened_windows(model, 6):
            within.append(Locality.of(model.config).windows)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert within == [6]
    assert Locality.of(model.config).windows == 50
