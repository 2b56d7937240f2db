"""The constraint inside ``model.generate``: whatever the settings, what comes out is a key."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import GenerationConfig, LogitsProcessorList

from shared_core.decoding import ConceptDecoder, SchemaLogitsProcessor, SearchOptions, SearchRequest, search
from shared_core.errors import InvalidInputError
from shared_core.models import TransformersModel
from shared_core.schema import build_trie
from tests.conftest import HEAVY

END = 2
PROMPT = "Text: I adopted a puppy named Rex.\nKeywords: adoption,"
# Keys that are prefixes of keys, also with the very token that ends a key; other scripts; an emoji of many tokens.
KEYS = [
    "puppy",
    "puppy training",
    "rex",
    "may 8",
    "may 8, 2023",
    "cello lessons",
    "北京大学",
    "👩\u200d💻",
    "dog",
    "dogs",
]
HOSTILE = {
    "top_k": 1,
    "top_p": 0.01,
    "repetition_penalty": 20.0,
    "no_repeat_ngram_size": 1,
    "suppress_tokens": [END, 28],
    "bad_words_ids": [[END]],
    "temperature": 0.05,
}
TERMINATOR = 28
# In some tries the terminator is a token of keys as well.
TOKEN = st.sampled_from([100, 101, 102, TERMINATOR])
TRIES = st.lists(st.lists(TOKEN, min_size=1, max_size=4).map(tuple), min_size=1, max_size=10, unique=True)


@pytest.fixture(scope="module")
def trie(decoder):
    return build_trie(decoder.encode_keys(KEYS))


def generated(model: TransformersModel, processor: SchemaLogitsProcessor, prompt, **options):
    """Sequences after the prompt, with their scores where there are beams."""
    options = {"do_sample": False, "max_new_tokens": processor.max_new_tokens, **options}
    config = GenerationConfig(
        pad_token_id=END, eos_token_id=END, return_dict_in_generate=True, output_scores=True, **options
    )
    inputs = torch.tensor([prompt])
    with torch.inference_mode():
        output = model._model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            generation_config=config,
            logits_processor=LogitsProcessorList([processor]),
        )
    scores = output.sequences_scores.tolist() if "sequences_scores" in output else None
    return [row[len(prompt) :] for row in output.sequences.tolist()], scores


def processor_for(trie, prompt, terminator=TERMINATOR) -> SchemaLogitsProcessor:
    return SchemaLogitsProcessor(trie, terminator=terminator, end=END, prompt_length=len(prompt))


MODES = {
    "greedy": {},
    "sampling": {"do_sample": True},
    "hot sampling": {"do_sample": True, "num_return_sequences": 6, "temperature": 3.0},
    "beams": {"num_beams": 4, "num_return_sequences": 4},
    "sampled beams": {"num_beams": 3, "num_return_sequences": 3, "do_sample": True},
    "hostile greedy": {**HOSTILE},
    "hostile sampling": {**HOSTILE, "do_sample": True},
    "hostile beams": {**HOSTILE, "num_beams": 3, "num_return_sequences": 3, "min_new_tokens": 4},
    "hostile sampled beams": {**HOSTILE, "num_beams": 3, "num_return_sequences": 3, "do_sample": True},
}


@pytest.mark.parametrize("mode", MODES)
def test_every_result_is_a_key(embedded, decoder, trie, mode):
    torch.manual_seed(0)
    options = MODES[mode]
    prompt = embedded.encode(PROMPT)
    processor = processor_for(trie, prompt, decoder.terminator)
    sequences, _ = generated(embedded, processor, prompt, **options)
    for sequence in sequences:
        key = processor.key(sequence)
        assert key is not None
        tokens = [*trie.tokens_of(key), decoder.terminator]
        assert sequence == tokens + [END] * (len(sequence) - len(tokens))
        assert embedded.decode(tokens) == f" {KEYS[key]},"
    if "num_beams" in options and not options.get("do_sample"):
        assert len({processor.key(sequence) for sequence in sequences}) == len(sequences)


def test_the_settings_of_the_model_itself_do_not_matter(tiny):
    """The generation config that came with the model applies where a call leaves something open."""
    model, prompt = tiny("qwen3"), [5, 9, 40]
    before = model._model.generation_config
    model._model.generation_config = GenerationConfig(**HOSTILE, do_sample=True, eos_token_id=7, pad_token_id=7)
    try:
        keys = [(100,), (100, 101), (102, TERMINATOR, 103), (102,)]
        processor = processor_for(build_trie(keys), prompt)
        inputs = torch.tensor([prompt])
        for beams in (1, 3):
            output = model._model.generate(
                inputs,
                attention_mask=torch.ones_like(inputs),
                max_new_tokens=processor.max_new_tokens,
                num_beams=beams,
                num_return_sequences=beams,
                logits_processor=[processor],
                return_dict_in_generate=True,
                output_scores=True,
            )
            found = [processor.key(row[3:]) for row in output.sequences.tolist()]
            assert found[0] is not None
            # With top_k=1 there are fewer hypotheses than beams; the surplus ones have no probability, and no key.
            scores = [0.0] if beams == 1 else output.sequences_scores.tolist()
            assert all(key is not None or score < -1e8 for key, score in zip(found, scores, strict=True))
    finally:
        model._model.generation_config = before


@given(keys=TRIES, beams=st.integers(1, 4), sample=st.booleans(), hostile=st.booleans(), seed=st.integers(0, 99))
def test_every_result_is_a_key_of_any_trie(tiny, keys, beams, sample, hostile, seed):
    torch.manual_seed(seed)
    trie = build_trie(keys)
    processor = processor_for(trie, [5, 9, 40])
    options = {**(HOSTILE if hostile else {}), "num_beams": beams, "do_sample": sample}
    (sequence,), _ = generated(tiny("llama"), processor, [5, 9, 40], **options)
    key = processor.key(sequence)
    assert key is not None
    assert sequence[: len(keys[key]) + 2] in ([*keys[key], TERMINATOR, END], [*keys[key], TERMINATOR])


@HEAVY
@given(TRIES)
def test_the_best_of_a_wide_beam_is_the_best_of_the_exact_search(tiny, keys):
    keys = sorted({tuple(103 if token == TERMINATOR else token for token in key) for key in keys})
    model, prompt, trie = tiny("llama"), [5, 9, 40], build_trie(keys)
    processor = processor_for(trie, prompt)
    tree = model.tree(prompt)
    (expected,) = search(tree, [SearchRequest(0, trie, TERMINATOR, None, SearchOptions(3, "exact", "base"))])
    # As wide as all prefixes of all keys: nothing is lost.
    sequences, scores = generated(
        model, processor, prompt, num_beams=trie.node_count + trie.key_count, num_return_sequences=1, length_penalty=0.0
    )
    assert processor.key(sequences[0]) == expected[0].key
    assert scores[0] == pytest.approx(expected[0].logprob, abs=2e-3)


def test_the_best_of_a_wide_beam_with_the_embedded_model(embedded, decoder, trie):
    prompt = embedded.encode(PROMPT)
    tree = embedded.tree(prompt)
    (expected,) = search(tree, [SearchRequest(0, trie, decoder.terminator, None, SearchOptions(3, "exact"))])
    processor = processor_for(trie, prompt, decoder.terminator)
    sequences, scores = generated(embedded, processor, prompt, num_beams=8, num_return_sequences=3, length_penalty=0.0)
    assert processor.key(sequences[0]) == expected[0].key
    assert scores[0] == pytest.approx(expected[0].logprob, abs=1e-2)


def test_one_processor_serves_prompts_of_a_batch_at_once(tiny):
    """Left-padded prompts in one call give what each gives alone."""
    model, trie = tiny("llama"), build_trie([(100, 101), (100,), (102, 103, 104), (105,)])
    prompts = [[5, 9, 40, 17], [33, 80]]
    processor = processor_for(trie, prompts[0])
    rows = torch.tensor([prompts[0], [0, 0, *prompts[1]]])
    output = model._model.generate(
        rows,
        attention_mask=torch.tensor([[1, 1, 1, 1], [0, 0, 1, 1]]),
        generation_config=GenerationConfig(
            do_sample=False, max_new_tokens=processor.max_new_tokens, pad_token_id=END, eos_token_id=END
        ),
        logits_processor=[processor],
    )
    for prompt, row in zip(prompts, output[:, 4:].tolist(), strict=True):
        (alone,), _ = generated(model, processor_for(trie, prompt), prompt)
        assert processor.key(row) == processor.key(alone)


@given(TRIES)
def test_what_may_follow_leads_to_keys_only_and_to_every_key(keys):
    trie = build_trie(keys)
    processor = processor_for(trie, [])
    found = set()
    waiting = [()]
    while waiting:
        generated = waiting.pop()
        allowed = processor.allowed(generated)
        assert len(allowed) == len(set(allowed)) > 0
        for token in allowed:
            if token == END:
                assert processor.key([*generated, END]) is not None
                assert processor.key([*generated, END, END]) == processor.key([*generated, END])
                assert processor.allowed([*generated, END]) == [END]
                found.add(processor.key([*generated, END]))
            else:
                waiting.append((*generated, token))
        assert len(generated) <= processor.max_new_tokens
    assert found == set(range(len(keys)))


@given(TRIES, st.lists(st.sampled_from([100, 101, 102, TERMINATOR, END, 7]), max_size=8))
def test_anything_else_is_no_key(keys, tokens):
    processor = processor_for(build_trie(keys), [])
    key = processor.key(tokens)
    finished = {(*one, TERMINATOR): number for number, one in enumerate(keys)}
    body = tuple(itertools.takewhile(lambda token: token != END, tokens))
    assert key in (finished.get(body), None)
    if END in tokens:
        assert key == finished.get(body)


def test_a_key_that_was_cut_is_no_key(decoder, trie):
    processor = processor_for(trie, [], decoder.terminator)
    for number, tokens in enumerate(trie):
        whole = [*tokens, decoder.terminator, END]
        for length in range(len(whole)):
            cut = processor.key(whole[:length])
            # Only the end itself may be missing, and not where a longer key goes on with the same token.
            assert cut is None or (cut == number and length == len(whole) - 1)
        assert processor.key(whole) == number
    short = [*trie.tokens_of(KEYS.index("may 8")), decoder.terminator]
    assert processor.key(short) is None
    assert processor.key([*short, END]) == KEYS.index("may 8")


@pytest.mark.parametrize("beams", [1, 3])
def test_generation_that_is_cut_gives_no_other_key(tiny, beams):
    keys = [(100, 101, 102, 103), (100, 101, 102, 104), (105, 101, 102, 103)]
    processor = processor_for(build_trie(keys), [5, 9, 40])
    assert processor.max_new_tokens == 6
    for length in range(1, 5):
        sequences, _ = generated(tiny("llama"), processor, [5, 9, 40], max_new_tokens=length, num_beams=beams)
        assert [processor.key(sequence) for sequence in sequences] == [None]


def test_tokens_outside_the_schema_have_no_probability(trie, decoder):
    processor = processor_for(trie, [1, 1], decoder.terminator)
    scores = torch.full((3, 49152), 1.0)
    tokens = trie.tokens_of(0)
    rows = [[1, 1, *tokens], [1, 1, tokens[0] + 1, *tokens[1:]], [1, 1, *tokens]]
    masked = processor(torch.tensor(rows), scores)
    for row, place in zip(masked, rows, strict=True):
        assert torch.isfinite(row).nonzero().flatten().tolist() == sorted(processor.allowed(place[2:]))
    assert torch.equal(scores, torch.full((3, 49152), 1.0))
    assert masked[1].max() == 0.0


def test_scores_that_were_removed_before_are_still_a_choice(trie, decoder):
    """An allowed token that another processor took away is unlikely, not impossible: a row is never empty."""
    processor = processor_for(trie, [], decoder.terminator)
    masked = processor(torch.zeros((1, 0), dtype=torch.long), torch.full((1, 49152), -torch.inf))
    assert torch.isfinite(masked).sum() == len(trie.allowed_tokens(0))


def test_more_beams_than_keys(tiny):
    keys = [(100,), (100, 101)]
    processor = processor_for(build_trie(keys), [5, 9, 40])
    sequences, scores = generated(tiny("llama"), processor, [5, 9, 40], num_beams=6, num_return_sequences=6)
    found = [processor.key(sequence) for sequence in sequences]
    sensible = [key for key, score in zip(found, scores, strict=True) if score > -1e8]
    assert sorted(sensible) == [0, 1]


def test_an_empty_schema_is_refused():
    with pytest.raises(InvalidInputError, match="the schema is empty"):
        processor_for(build_trie([]), [])


def test_the_decoders_prompt_can_be_used(embedded, decoder: ConceptDecoder, trie):
    prompt = decoder.prompt_tokens("I adopted a puppy named Rex")
    processor = processor_for(trie, prompt, decoder.terminator)
    (sequence,), _ = generated(embedded, processor, prompt)
    assert KEYS[processor.key(sequence)] in {"puppy", "puppy training", "rex", "dog"}
