"""Free generation equals greedy generation of Transformers."""

from __future__ import annotations

import pytest
import torch

from shared_core.decoding import generate
from shared_core.models import TransformersModel

PROMPTS = [
    "Question: What is the capital of France?\nAnswer:",  # which the model ends at once
    "Text: I planted tulips and roses.\nKeywords:",
    "One, two, three,",
]


def greedy(model: TransformersModel, prompt: str, max_tokens: int) -> str:
    """What ``generate`` of Transformers writes, without the end-of-sequence token."""
    tokens = model.encode(prompt)
    with torch.inference_mode():
        written = model._model.generate(
            torch.tensor([tokens]),
            attention_mask=torch.ones(1, len(tokens), dtype=torch.long),
            do_sample=False,
            max_new_tokens=max_tokens,
            pad_token_id=2,
        )
    return model.decode([token for token in written[0, len(tokens) :].tolist() if token not in model.ends])


def continued(model: TransformersModel, prompts, **options) -> list[str]:
    """All prompts below one root token, so that they are generated together."""
    encoded = [model.encode(prompt) for prompt in prompts]
    tree = model.tree([encoded[0][0]])
    nodes = [tree.read(tokens[1:]) for tokens in encoded]
    return generate(model, tree, nodes, **options)


@pytest.mark.parametrize("prompt", PROMPTS)
def test_it_equals_greedy_generation_of_transformers(embedded, prompt):
    tree = embedded.tree(embedded.encode(prompt))
    (text,) = generate(embedded, tree, [0], max_tokens=10)
    assert text == greedy(embedded, prompt, 10)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "bloom", "mamba"])
def test_several_at_once_equal_each_alone(tiny, kind):
    model = tiny(kind)
    prompts = ["a note about rain", "a longer note about the canoe", "a note", "a note about rain"]
    together = continued(model, prompts, max_tokens=6)
    assert together == [continued(model, [prompt], max_tokens=6)[0] for prompt in prompts]
    assert together == [greedy(model, prompt, 6) for prompt in prompts]


class Scripted:
    """A model and its tree that write given texts, one letter at a time, then end."""

    ends = frozenset([0])

    def __init__(self, texts):
        self.texts = texts
        self.at = {number: (number, 0) for number in range(len(texts))}
        self.passes = []

    def decode(self, tokens):
        return "".join(map(chr, tokens))

    def likeliest(self, nodes):
        found = []
        for node in nodes:
            number, place = self.at[node]
            found.append(ord(self.texts[number][place]) if place < len(self.texts[number]) else 0)
        return torch.tensor(found)[:, None], torch.zeros(len(found), 1)

    def extend(self, tokens, parents):
        self.passes.append(len(tokens))
        new = list(range(len(self.at), len(self.at) + len(tokens)))
        for node, parent in zip(new, parents, strict=True):
            number, place = self.at[parent]
            self.at[node] = (number, place + 1)
        return torch.tensor(new)


def scripted(texts, **options):
    script = Scripted(texts)
    return generate(script, script, list(range(len(texts))), **options), script.passes


def test_a_text_is_cut_at_the_first_stop():
    texts = ["one\ntwo", "no stop", "a.b\n", "\nat once", "", "ends in."]
    written, _ = scripted(texts, max_tokens=50, stop=("\n", "."))
    assert written == ["one", "no stop", "a", "", "", "ends in"]


def test_a_stop_of_several_letters_is_found_across_tokens():
    written, passes = scripted(["answer\n\nText: more", "other\nline"], max_tokens=50, stop=("\n\nText:",))
    assert written == ["answer", "other\nline"]
    assert len(passes) == len("answer\n\nText:") - 1


def test_without_a_stop_a_text_goes_on_to_its_end_or_the_limit():
    written, passes = scripted(["abcdef", "abc", "abcd"], max_tokens=4)
    assert written == ["abcd", "abc", "abcd"]
    # A text that has ended takes no further part in the passes.
    assert passes == [3, 3, 3]
    assert scripted(["abc"], max_tokens=1) == (["a"], [])


def test_nothing_to_continue_is_nothing():
    assert scripted([], max_tokens=5) == ([], [])
