"""The engine: text is data, one prompt cache for all, settings of others left alone, and modes that can be trusted."""

from __future__ import annotations

import copy
import inspect
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.processors import TemplateProcessing
from transformers import GenerationConfig

from shared_core.errors import ModelError
from shared_core.models import PROMPT, TransformersModel
from shared_core.models.engine import _checksum, _fingerprint
from tests.conftest import HEAVY, VOCABULARY, make, plain

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>", "<repo_name>", "<file_sep>"]
LETTERS = st.text(st.sampled_from("aZ9 .,<|>\n_é中文مرحبا😀"), max_size=8)
TEXT = st.lists(st.one_of(st.sampled_from([*SPECIAL, "user\n"]), LETTERS)).map("".join)


@given(TEXT)
def test_text_never_becomes_a_special_token(embedded, text):
    tokens = embedded.encode(text)
    assert not set(tokens) & set(embedded._tokenizer.all_special_ids)
    assert embedded.decode(tokens) == text


@given(st.lists(TEXT, max_size=5))
def test_texts_together_are_encoded_as_alone(embedded, texts):
    assert embedded.encode_batch(texts) == [embedded.encode(text) for text in texts]


@pytest.mark.parametrize(
    ("template", "start"),
    [
        ("$A", ()),
        ("<|im_start|> $A", (1,)),
        ("<|im_start|> <|endoftext|> $A <|im_end|>", (1, 0)),
        ("$A <|im_end|>", ()),
    ],
)
def test_start_is_what_the_tokenizer_puts_before_a_text(tiny, template, start):
    model = tiny("llama")
    tokenizer = copy.deepcopy(model._tokenizer)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=template, special_tokens=[("<|endoftext|>", 0), ("<|im_start|>", 1), ("<|im_end|>", 2)]
    )
    engine = TransformersModel(model._model, tokenizer)
    assert engine.start == start
    assert engine.encode("a text") == model.encode("a text")
    assert engine.decode(engine.encode("a text")) == "a text"


def test_the_fingerprint_follows_every_weight(tiny):
    model = make("llama")
    tokenizer = SimpleNamespace(get_vocab=lambda: {"a": 0})
    seen = {_fingerprint(model, tokenizer)}
    assert seen == {_fingerprint(tiny("llama")._model, tokenizer)}
    for _, weight in model.named_parameters():
        flat = weight.detach().view(-1)
        for place in (0, len(flat) // 3, len(flat) - 1):
            flat[place] += 0.01 * len(seen)
            seen.add(_fingerprint(model, tokenizer))
    assert len(seen) == 1 + 3 * len(list(model.parameters()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8, torch.int64])
def test_a_checksum_takes_any_tensor(dtype):
    numbers = torch.arange(70).to(dtype)
    for part in (numbers, numbers[1:], numbers[3:60:2], numbers[:1], numbers[:0]):
        assert _checksum(part) == _checksum(part.clone())
    assert len({_checksum(numbers[:length]) for length in range(1, 70)}) == 69


def test_the_fingerprint_follows_configuration_and_vocabulary(tiny):
    source = tiny("llama")
    tokenizer = copy.deepcopy(source._tokenizer)
    tokenizer.add_tokens(["<new>"])
    assert TransformersModel(source._model, tokenizer, mode="tree").fingerprint != source.fingerprint
    other = make("llama", rms_norm_eps=0.5)
    assert TransformersModel(other, source._tokenizer, mode="tree").fingerprint != source.fingerprint


def test_the_generation_config_is_ignored(tiny):
    source = tiny("llama")
    model = make("llama")
    model.generation_config = GenerationConfig(
        top_k=1,
        repetition_penalty=9.0,
        temperature=0.01,
        suppress_tokens=[5, 9],
        bad_words_ids=[[7]],
        eos_token_id=[2, 8],
    )
    engine = TransformersModel(model, source._tokenizer, threads=1)
    expected, got = source.tree([5, 7, 9]), engine.tree([5, 7, 9])
    tokens = np.arange(VOCABULARY)
    everywhere = np.zeros(VOCABULARY, dtype=int)
    # The last digit of a matrix product may depend on where in memory its operands lie.
    np.testing.assert_allclose(got.logprobs(everywhere, tokens), expected.logprobs(everywhere, tokens), atol=1e-4)
    assert got.likeliest([PROMPT])[0] == expected.likeliest([PROMPT])[0]
    # Where a text ends is all that is read of it.
    assert engine.ends == source.ends | {2, 8}


def counted(model: TransformersModel) -> list[int]:
    """From now on, the number of tokens of each forward pass of a model."""
    passes: list[int] = []
    forward = model._forward

    def count(tokens, **arguments):
        passes.append(tokens.numel())
        return forward(tokens, **arguments)

    model._forward = count
    for name in ("device", "dtype", "locality"):
        setattr(count, name, getattr(forward, name))
    return passes


@pytest.mark.parametrize("kind", ["qwen2-sliding", "bloom"])
def test_recent_root_prompts_are_read_once(tiny, kind):
    model = TransformersModel(make(kind), tiny(kind)._tokenizer, threads=1, mode=tiny(kind).mode)
    passes = counted(model)
    prompts = [[20 + number, 9, 40, 12, 17, 33, 60, 14] for number in range(9)]
    for prompt in prompts[:8]:
        model.tree(prompt)
    assert passes == [8] * 8
    model.tree(prompts[0])  # now the most recent
    assert passes == [8] * 8
    model.tree(prompts[8])  # crowds out the least recent
    model.tree(prompts[0])
    assert passes == [8] * 9
    model.tree(prompts[1])
    assert passes == [8] * 10
    assert len(model._prompts) == 8


@pytest.mark.parametrize("kind", ["qwen2-sliding", "gpt2", "bloom", "mamba"])
def test_root_prompts_grow_from_the_longest_kept_one(tiny, kind):
    model = TransformersModel(make(kind), tiny(kind)._tokenizer, threads=1, mode=tiny(kind).mode)
    longest = [20, 9, 40, 12, 17, 33, 60, 14, 81, 77, 35, 26]
    lengths = [3, 8, 5, 12, 1, 12]
    passes = counted(model)
    for length in lengths:
        tree = model.tree(longest[:length])
        np.testing.assert_allclose(
            tree.logprobs([PROMPT] * 3, [4, 50, 900]), plain(model, longest[:length], [4, 50, 900]), atol=2e-4
        )
    assert passes == ([3, 8, 5, 12, 1, 12] if kind == "mamba" else [3, 5, 2, 4, 1])


def test_the_bound_on_threads_holds_during_a_pass_only(tiny):
    model = TransformersModel(tiny("llama")._model, tiny("llama")._tokenizer, threads=3, mode="tree")
    during = []
    forward = model._forward

    def spy(*arguments, **named):
        during.append(torch.get_num_threads())
        return forward(*arguments, **named)

    for name in ("device", "dtype", "locality"):
        setattr(spy, name, getattr(forward, name))
    model._forward = spy
    before = torch.get_num_threads()
    tree = model.tree([5, 6])
    assert torch.get_num_threads() == before != 3
    tree.extend([7], [PROMPT])
    tree.read([8, 9])
    assert during == [3, 3, 3]
    assert torch.get_num_threads() == before


def test_the_setting_of_threads_survives_an_error(tiny):
    model = TransformersModel(tiny("llama")._model, tiny("llama")._tokenizer, threads=3, mode="tree")
    before = torch.get_num_threads()
    tree = model.tree([5, 6])
    with pytest.raises(ValueError, match="before"):
        tree.extend([6, 7], [-2, PROMPT])
    assert torch.get_num_threads() == before
    assert tree.extend([6], [PROMPT]).tolist() == [1]


def test_memory_that_runs_out_says_what_to_lower(tiny):
    model = TransformersModel(make("llama"), tiny("llama")._tokenizer, threads=1)
    tree = model.tree([5, 6])

    def full(*arguments, **named):
        raise torch.OutOfMemoryError("out of memory")

    model._model.forward = full
    with pytest.raises(ModelError, match="lower the width or batch size"):
        tree.extend([7], [PROMPT])
    del model._model.forward
    assert np.isfinite(tree.logprobs([PROMPT], [3])).all()


@pytest.mark.parametrize("kind", ["llama", "bloom"])
def test_threads_that_share_a_model_get_what_they_would_get_alone(tiny, kind):
    model = tiny(kind)
    chains = [[30 + number, 7, 9, 50 + number] for number in range(4)]

    def work(number: int) -> np.ndarray:
        found = []
        for turn in range(6):
            tree = model.tree([40, 41, 42 + turn % 2])
            node = tree.read(chains[number])
            below = tree.extend([60 + turn, 61, 62], [node, -1, node])
            found.append(tree.logprobs(np.repeat(below, 3), [5, 6, 7] * 3))
            assert len(model.encode("a <|im_start|> text")) > 4
        return np.stack(found)

    expected = [work(number) for number in range(4)]
    results: dict[int, np.ndarray] = {}
    threads = [
        threading.Thread(target=lambda number=number: results.update({number: work(number)})) for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(4):
        np.testing.assert_allclose(results[number], expected[number], atol=1e-5)


def test_a_model_that_cannot_be_trusted_is_refused(tiny):
    model = make("llama")
    forward = model.forward

    def unsteady(**arguments):
        output = forward(**arguments)
        output.logits = output.logits + torch.rand_like(output.logits)
        return output

    unsteady.__signature__ = inspect.signature(forward)
    model.forward = unsteady
    with pytest.raises(ModelError, match="LlamaForCausalLM cannot be used"):
        TransformersModel(model, tiny("llama")._tokenizer, threads=1)


def test_impossible_arguments_are_refused(tiny):
    model = tiny("llama")
    with pytest.raises(ModelError, match="threads must be at least 1"):
        TransformersModel(model._model, model._tokenizer, threads=0)
    with pytest.raises(ModelError, match="at least one token"):
        model.tree([])
    with pytest.raises(ValueError, match="at least one token"):
        model.tree([5]).read([])


def test_nothing_to_read_is_nothing(tiny):
    model = tiny("llama")
    assert model.encode_batch([]) == []
    assert model.encode("") == []
    tree = model.tree([5])
    assert tree.read_many([]) == []
    assert tree.extend([], []).tolist() == []


@HEAVY
@given(st.lists(st.integers(3, 400), min_size=2, max_size=8), st.integers(1, 7))
def test_a_prompt_cut_anywhere_gives_the_same(tiny, path, cut):
    """What belongs to the root prompt and what is read below it makes no difference."""
    model = tiny("qwen2-sliding")
    cut = min(cut, len(path) - 1)
    tree = model.tree(path[:cut])
    node = tree.read(path[cut:])
    whole = model.tree(path)
    np.testing.assert_allclose(
        tree.logprobs([node] * 3, [4, 50, 900]), whole.logprobs([PROMPT] * 3, [4, 50, 900]), atol=2e-4
    )
