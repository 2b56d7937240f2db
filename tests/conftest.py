"""Models that the tests run on: the embedded one, and tiny random ones of many architectures."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    import numpy as np
    import torch
    from transformers import PreTrainedTokenizerFast

    from shared_core.decoding import ConceptDecoder
    from shared_core.models import TransformersModel
    from tests.postgres import PostgresServer

# torch is imported where it is needed: the process that hands out the tests needs none, and the others wait for it.
# One thread, also in the processes that tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No deadline: how long an example takes says nothing on a machine that does other work as well.
# More examples: HYPOTHESIS_EXAMPLES=1000 make test
_EXAMPLES = int(os.environ.get("HYPOTHESIS_EXAMPLES", "20"))
settings.register_profile("untimed", deadline=None, max_examples=_EXAMPLES)
settings.load_profile("untimed")
HEAVY = settings(
    max_examples=max(1, _EXAMPLES // 2),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
"""For properties whose examples run a language model."""
REPEATED = settings(HEAVY, max_examples=max(6, _EXAMPLES // 8))
"""For those of them that are repeated for each architecture."""

VOCABULARY = 4096
"""Tokens that the tiny models know: most of their time would be the logits of more."""
_COMMON = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
_DECODER = {**_COMMON, "intermediate_size": 48, "num_key_value_heads": 2, "max_position_embeddings": 320}
# Sliding windows are shorter than the prompts of the tests, so that they matter.
_MIXED = ["sliding_attention", "sliding_attention", "full_attention"]
ARCHITECTURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "llama": ("llama", _DECODER, "tree"),
    "qwen2": ("qwen2", _DECODER, "tree"),
    "qwen2-sliding": (
        "qwen2",
        {**_DECODER, "use_sliding_window": True, "sliding_window": 6, "max_window_layers": 1},
        "tree",
    ),
    "qwen3": ("qwen3", {**_DECODER, "head_dim": 8}, "tree"),
    "gemma3": (
        "gemma3_text",
        {**_DECODER, "head_dim": 8, "sliding_window": 6, "layer_types": _MIXED, "query_pre_attn_scalar": 8},
        "tree",
    ),
    "mistral": ("mistral", {**_DECODER, "sliding_window": 6}, "tree"),
    "phi3": ("phi3", {**_DECODER, "pad_token_id": 0}, "tree"),
    "gpt2": (
        "gpt2",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 32,
            "n_layer": 3,
            "n_head": 4,
            "n_positions": 320,
            "bos_token_id": 0,
            "eos_token_id": 2,
        },
        "tree",
    ),
    "gpt-neox": ("gpt_neox", {**_COMMON, "intermediate_size": 48, "max_position_embeddings": 320}, "tree"),
    "opt": (
        "opt",
        {**_COMMON, "ffn_dim": 48, "max_position_embeddings": 320, "word_embed_proj_dim": 32},
        "tree",
    ),
    "bloom": ("bloom", {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 3, "n_head": 4}, "paths"),
    "mpt": (
        "mpt",
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layers": 3, "n_heads": 4, "max_seq_len": 320},
        "paths",
    ),
    "gpt-neo": (
        "gpt_neo",
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 6,
            "max_position_embeddings": 320,
        },
        "paths",
    ),
    "mamba": (
        "mamba",
        {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
        "recompute",
    ),
}
"""Name: configuration class, its settings, and how its token trees are expected to run."""


_LONGEST = ("test_cookbooks.py", "test_readme.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest go first: last, one process would wait for the other."""
    items.sort(key=lambda item: item.path.name not in _LONGEST)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is loaded by then lives to the end: garbage is looked for without it, hundreds of times."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server, which the tests of one process share."""
    from tests.postgres import PostgresServer

    server = PostgresServer()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def embedded() -> TransformersModel:
    """The embedded model."""
    from shared_core.models import TransformersModel, load_model

    model = load_model(threads=1)
    assert isinstance(model, TransformersModel)
    return model


@pytest.fixture(scope="session")
def plain_embedded() -> TransformersModel:
    """The embedded model as Transformers loads it."""
    from shared_core.models import TransformersModel, load_model

    model = load_model(threads=1, optimize=False)
    assert isinstance(model, TransformersModel)
    return model


@pytest.fixture(scope="session")
def decoder(embedded: TransformersModel) -> ConceptDecoder:
    from shared_core.decoding import ConceptDecoder

    return ConceptDecoder(embedded)


@pytest.fixture(scope="session")
def tokenizer(embedded: TransformersModel) -> PreTrainedTokenizerFast:
    """The embedded model's tokenizer with its most common tokens alone."""
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    known = json.loads(embedded._tokenizer.backend_tokenizer.to_str())
    vocabulary, merges = known["model"]["vocab"], known["model"]["merges"]
    # Each merge makes the next token.
    known["model"]["merges"] = merges[: len(merges) - len(vocabulary) + VOCABULARY]
    known["model"]["vocab"] = {token: number for token, number in vocabulary.items() if number < VOCABULARY}
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(known)), **embedded._tokenizer.special_tokens_map
    )


@pytest.fixture(scope="session")
def tiny(tokenizer: PreTrainedTokenizerFast) -> Callable[[str], TransformersModel]:
    """Tiny random models by architecture, each made once."""
    from shared_core.models import TransformersModel

    return cache(lambda name: TransformersModel(make(name), tokenizer, threads=1))


def plain(model: TransformersModel, path: list[int], tokens: list[int]) -> np.ndarray:
    """Log-probabilities of tokens after a path, from one plain forward pass."""
    import torch

    with torch.inference_mode():
        logits = model._model(torch.tensor([path])).logits[0, -1].float()
    return (logits - logits.logsumexp(-1)).numpy()[tokens]


def make(kind: str, **changes) -> torch.nn.Module:
    """A tiny random model; the caller's own, to do with as it likes."""
    import torch
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM

    name, options, _ = ARCHITECTURES[kind]
    torch.manual_seed(0)
    # Larger weights than usual make the log-probabilities of tokens differ by whole numbers.
    return AutoModelForCausalLM.from_config(CONFIG_MAPPING[name](**{**options, "initializer_range": 0.2, **changes}))


def run_program(program: str) -> list[str]:
    """Lines that a Python program prints, in a process of its own that has imported nothing."""
    root = Path(__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=False, timeout=100
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()
