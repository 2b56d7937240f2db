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

    def likeliest(self, nodes, count):
        found = []
        for node in nodes:
            number, place = self.at[node]
            found.append(ord(self.texts[number][place]) if place < len(self.texts[number]) else 0)
        # The one letter of the script stands for all that a rule might choose instead.
        return torch.tensor(found)[:, None].expand(-1, count), torch.zeros(len(found), count)

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


def test_of_a_list_no_more_is_written_than_is_wanted():
    written, passes = scripted(["a, bc, d, e", "fg, h", "i,j,,k"], max_tokens=50, separator=",", items=3)
    assert written == ["a, bc, d", "fg, h", "i,j,"]
    assert len(passes) == len("a, bc, d")
    assert scripted(["a, b\nc, d, e"], max_tokens=50, separator=",", items=3, stop=("\n",))[0] == ["a, b"]


def test_nothing_to_continue_is_nothing():
    assert scripted([], max_tokens=5) == ([], [])


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_items_of_a_list_begin_each_with_another_token(tiny, kind):
    """Against going through all tokens in order of what ``logprobs`` gives them, for each text alone."""
    model = tiny(kind)
    prompts = ["a note about rain", "a longer note about the canoe"]
    separator = model.decode(model.encode("a note")[-1:])  # random models repeat themselves, and so write it often
    vocabulary = list(range(len(model._tokenizer)))

    def alone(prompt: str) -> str:
        tree = model.tree(model.encode(prompt))
        node, written, begun = 0, [], set()
        while len(written) < 12:
            order = sorted(
                vocabulary,
                key=dict(zip(vocabulary, -tree.logprobs([node] * len(vocabulary), vocabulary), strict=True)).get,
            )
            first = not written or model.decode(written).endswith(separator)
            token = next(one for one in order if not (first and one in begun))
            begun |= {token} if first else set()
            if token in model.ends:
                break
            written.append(token)
            (node,) = tree.extend([token], [node]).tolist()
        return model.decode(written)

    assert continued(model, prompts, max_tokens=12, separator=separator) == [alone(prompt) for prompt in prompts]


def test_the_embedded_model_lists_nothing_twice(decoder):
    """What it repeats without the rule: the test is of no use if it does not."""
    text = "Sam: My dog and I went hiking, what an adventure!"
    (line,) = decoder.generate([text], max_tokens=24)
    tree = decoder.model.tree(decoder.prompt_tokens(text))
    (freely,) = generate(decoder.model, tree, [0], max_tokens=24, stop=("\n",))
    listed, repeated = ([item.strip() for item in text.split(",")][:-1] for text in (line, freely))
    assert len(listed) == len(set(listed)) >= 4
    assert len(set(repeated)) < len(repeated)
