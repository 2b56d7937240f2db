"""The decoding benchmark: that it runs from end to end, and that what it measures by is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.decoding import __main__ as program
from benchmarks.decoding import experiment
from benchmarks.decoding import subject as subjects
from benchmarks.decoding.cells import Cell, CellFile, Row
from benchmarks.decoding.corpus import read_corpus
from benchmarks.decoding.floor import Floor, unavoidable_rounds
from benchmarks.decoding.keys import KeySet, build_keys
from benchmarks.decoding.meter import counted, peak_memory
from benchmarks.decoding.prompts import build_prompts
from benchmarks.decoding.report import figures
from benchmarks.decoding.spoken import NeutralScores, Schema, speak
from benchmarks.decoding.subject import Subject
from benchmarks.decoding.systems import EXACT_KEYS, Unavailable, build_system
from benchmarks.decoding.systems.grammar import Grammar
from benchmarks.decoding.systems.processor import Processor, prefill
from benchmarks.decoding.truth import Floats, recall, score_gap, true_scores
from shared_core.decoding import DEFAULT_PROMPT
from shared_core.errors import InvalidInputError
from shared_core.models import TransformersModel
from shared_core.schema import build_trie

FEW = 9


@pytest.fixture(scope="module")
def subject(embedded: TransformersModel) -> Iterator[Subject]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subjects, "load_model", lambda **_: embedded)  # loaded already
        patch.setattr(embedded.network, "generation_config", None)  # replaced by the subject, and put back behind it
        yield subjects.load_subject(threads=1)


@pytest.fixture(scope="module")
def prompt(subject: Subject) -> list[int]:
    return build_prompts(read_corpus(None).conversations, subject.decoder, 24, 1)[0]


@pytest.fixture(scope="module")
def schema(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> Schema:
    """A few keys, as the model can say them."""
    keys = build_keys(read_corpus(None).conversations, subject.decoder, FEW)
    neutral = NeutralScores(subject.decoder, tmp_path_factory.mktemp("neutral"))
    neutral.compute(keys.tokens, lambda _: None)
    return speak(keys, neutral, subject.decoder)


@pytest.fixture(scope="module")
def truth(subject: Subject, schema: Schema, prompt: list[int], tmp_path_factory: pytest.TempPathFactory) -> Floats:
    return true_scores(subject, prompt, schema.keys.tokens, tmp_path_factory.mktemp("truth"), lambda _: None)


def test_the_program_runs_and_goes_on_where_it_was(
    subject: Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "load_subject", lambda threads: subject)
    options = ["--keys", "12", "--prompt-tokens", "50", "--widths", "2", "--queries", "1", "--runs", "1"]
    options += ["--systems", "ours-beam", "hf-naive", "hf-cached", "--threads", "1"]
    options += ["--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "out")]
    measured: list[Cell] = []

    def measure(*arguments: object, width: int, **others: object) -> Cell:
        cell = replace(measured[0], width=width) if measured else measure_once(*arguments, width=width, **others)
        measured.append(cell)
        return cell

    measure_once = experiment.measure
    monkeypatch.setattr(experiment, "measure", measure)
    program.main(options)

    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    place = "12_keys_width_2_prompt_50"
    for name in ("floor_seconds", "floor_multiple", "floor_rounds"):
        assert summary[f"{name}_{place}"] > 0
    for system in ("ours_beam", "hf_naive", "hf_cached"):
        for name in ("seconds", "passes", "tokens", "recall_at_2"):
            assert summary[f"{name}_{system}_{place}"] > 0
        assert summary[f"memory_mib_{system}_{place}"] >= 0
        assert summary[f"keys_found_{system}_{place}"] == 2
    assert summary[f"recall_at_2_ours_beam_{place}"] <= 1
    assert {f"speedup_over_hf_naive_{place}", f"speedup_warm_over_hf_cached_{place}"} <= summary.keys()
    assert f"seconds_warm_hf_naive_{place}" not in summary  # it cannot tell reading from decoding
    assert summary["prior_known_share_12_keys"] == 1
    # The prompt goes through the model once for each beam, or once.
    assert summary[f"tokens_hf_naive_{place}"] > 2 * 50
    assert summary[f"tokens_hf_cached_{place}"] < 2 * 50
    assert "12 keys" in (tmp_path / "out" / "table.md").read_text()

    monkeypatch.setattr("benchmarks.decoding.plots.draw", lambda *_: None)  # drawn once already
    options[options.index("--widths") + 1] = "1"
    program.main(options)
    more = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary.items() <= more.items()  # what was measured before is still told
    assert "seconds_ours_beam_12_keys_width_1_prompt_50" in more

    program.main(options)
    assert [cell.width for cell in measured] == [2, 1]  # none was measured again
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == more


def test_plots_are_drawn(tmp_path: Path) -> None:
    from benchmarks.decoding.plots import draw

    files = draw([_cell(keys) for keys in (10, 100)], tmp_path)
    assert len(files) == 3
    assert all(0 < file.stat().st_size < 200_000 for file in files)


def test_ours_is_needed_to_compare_with() -> None:
    with pytest.raises(SystemExit):
        program.parse(["--systems", "hf-naive", "--out", "x"])


def test_true_scores_are_those_of_plain_passes(
    subject: Subject, schema: Schema, prompt: list[int], truth: Floats
) -> None:
    for key in range(0, FEW, 3):
        tokens = [*schema.keys.tokens[key], subject.terminator]
        with torch.inference_mode():
            logits = subject.model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0]
        steps = logits.log_softmax(dim=-1)[len(prompt) - 1 : -1]
        assert truth[key] == pytest.approx(float(steps[range(len(tokens)), tokens].sum()), abs=1e-3)


def test_true_scores_are_kept(subject: Subject, schema: Schema, prompt: list[int], tmp_path: Path) -> None:
    keys = schema.keys.tokens[:3]
    done: list[int] = []
    first = true_scores(subject, prompt, keys, tmp_path, done.append)
    with counted(subject.model) as passes:
        again = true_scores(subject, prompt, keys, tmp_path, done.append)
    assert passes.count == 0
    assert np.array_equal(first, again)
    assert sum(done) == 2 * len(keys)
    other = true_scores(subject, [*prompt[:-1], prompt[0]], keys, tmp_path, done.append)
    assert not np.allclose(first, other)


def test_a_beam_as_wide_as_the_key_set_finds_the_exhaustive_scores(
    subject: Subject, schema: Schema, prompt: list[int], truth: Floats
) -> None:
    cached = Processor(subject, schema, cached=True)
    found = cached.scored(prompt, prefill(subject, prompt), FEW, keep=True)
    assert sorted(found) == list(range(FEW))
    assert list(found.values()) == pytest.approx([truth[key] for key in found], abs=1e-3)
    assert np.all(np.diff(list(found.values())) <= 1e-3)


@pytest.mark.parametrize("name", ["ours-beam", "ours-recall", "ours-exact", "hf-naive", "hf-processor"])
def test_every_system_finds_the_same_keys_when_none_is_left_out(
    name: str, subject: Subject, schema: Schema, prompt: list[int], truth: Floats
) -> None:
    system, _ = build_system(name, subject, schema, compile_limit=0)
    found = system.read(prompt)(FEW)
    assert sorted(found) == list(range(FEW))
    assert np.all(np.diff(truth[found]) <= 1e-3)
    assert recall(found, truth, FEW) == 1


def test_a_recall_reads_what_follows_the_examples(subject: Subject, schema: Schema) -> None:
    prompt = build_prompts(read_corpus(None).conversations, subject.decoder, 150, 1)[0]
    read = {}
    for name in ("ours-beam", "ours-recall"):
        system, _ = build_system(name, subject, schema, compile_limit=0)
        system.read(prompt)
        with counted(subject.model, subject.optimized) as passes:
            system.read(prompt)
        read[name] = passes.tokens
    examples = len(subject.engine.start) + len(subject.engine.encode(DEFAULT_PROMPT.examples))
    assert read == {"ours-beam": 149, "ours-recall": 150 - examples}


@pytest.mark.parametrize("engine", [engine for engine in ("llguidance", "xgrammar") if find_spec(engine)])
def test_grammar_engines_return_keys(engine: str, subject: Subject, schema: Schema, prompt: list[int]) -> None:
    found = Grammar(subject, schema, engine).read(prompt)(FEW)
    assert len(found) == len(set(found))
    assert len(found) > 1  # not all of them: two spellings of a key take two beams
    assert set(found) <= set(range(FEW))


def test_the_exact_search_has_its_bound(subject: Subject, schema: Schema) -> None:
    many = Schema(KeySet([""] * (EXACT_KEYS + 1), [(1,)], 0), schema.spoken, 0.0)
    with pytest.raises(Unavailable, match="10,000"):
        build_system("ours-exact", subject, many, compile_limit=0)


def test_neutral_scores_are_kept(subject: Subject, schema: Schema, tmp_path: Path) -> None:
    keys = schema.keys.tokens[:5]
    first = NeutralScores(subject.decoder, tmp_path)
    first.compute(keys, lambda _: None)
    again = NeutralScores(subject.decoder, tmp_path)
    assert again.count == len(keys)
    assert again.seconds == pytest.approx(first.seconds)
    assert all(np.array_equal(again.scores[key], first.scores[key]) for key in keys)
    known = speak(schema.keys, again, subject.decoder)
    assert known.known == pytest.approx(5 / FEW)
    assert [known.spoken.trie.tokens_of(key) for key in range(FEW)] == [*schema.keys.tokens]


def test_key_sets_are_nested_and_distinct(subject: Subject) -> None:
    conversations = read_corpus(None).conversations
    large = build_keys(conversations, subject.decoder, 2_500)
    assert large.real < 2_500  # so that some are recombined
    assert len(set(large.texts)) == len(set(large.tokens)) == 2_500
    assert all(subject.terminator not in tokens for tokens in large.tokens)
    for count in (300, large.real + 100):
        small = build_keys(conversations, subject.decoder, count)
        assert [*small.texts] == [*large.texts[:count]]
        assert [*small.tokens] == [*large.first(count).tokens]
        assert small.real == min(count, large.real)


def test_too_many_keys_are_refused(subject: Subject) -> None:
    with pytest.raises(InvalidInputError, match="larger"):
        build_keys([read_corpus(None).conversations[0][:1]], subject.decoder, 100_000)


@pytest.mark.parametrize("length", [20, 50, 107, 108, 109, 130, 250, 400])
def test_prompts_have_their_exact_length(length: int, subject: Subject) -> None:
    prompts = build_prompts(read_corpus(None).conversations, subject.decoder, length, 3)
    assert [len(prompt) for prompt in prompts] == [length] * 3
    assert len({tuple(prompt) for prompt in prompts}) == 3
    for prompt in prompts:
        text = subject.engine.decode(prompt)
        assert text.endswith("\nKeywords:")
        assert "Text: " in text


KEYS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple), min_size=1, max_size=30, unique=True)


@given(KEYS, st.data())
def test_rounds_hold_each_prefix_once_and_as_early_as_it_can_be(
    keys: list[tuple[int, ...]], data: st.DataObject
) -> None:
    found = data.draw(st.lists(st.sampled_from(keys), min_size=1, unique=True))
    rounds = unavoidable_rounds(build_trie(keys), found)
    wanted = {key[:depth] for key in found for depth in range(1, len(key) + 1)}
    flat = [prefix for members in rounds for prefix in members]
    assert len(flat) == len(set(flat))
    assert set(flat) == wanted
    number = {prefix: at for at, members in enumerate(rounds) for prefix in members}
    for prefix in wanted:
        above = prefix[:-1]
        siblings = {key[len(above)] for key in keys if len(key) > len(above) and key[: len(above)] == above}
        if above:
            assert number[prefix] == number[above] + (len(siblings) > 1 and _branched(above, keys))
            assert flat.index(above) < flat.index(prefix)
        else:
            assert number[prefix] == 0


def _branched(prefix: tuple[int, ...], keys: list[tuple[int, ...]]) -> bool:
    """Whether a choice was made on the way to a prefix, so that the next one needs a round of its own."""
    for depth in range(len(prefix)):
        above = prefix[:depth]
        if len({key[depth] for key in keys if len(key) > depth and key[:depth] == above}) > 1:
            return True
    return False


def test_the_floor_runs_what_it_should(subject: Subject, schema: Schema, prompt: list[int]) -> None:
    rounds = unavoidable_rounds(schema.spoken.trie, schema.keys.tokens)
    floor = Floor(subject, prompt, rounds)
    with counted(subject.optimized) as passes:
        read, rest = floor.run()
    assert min(read, rest) > 0
    assert passes.count == 1 + floor.rounds == 1 + len(rounds)
    assert passes.tokens == len(prompt) + schema.spoken.trie.node_count - 1


def test_the_floor_masks_as_plain_passes_do(subject: Subject, schema: Schema, prompt: list[int]) -> None:
    key = max(schema.keys.tokens, key=len)
    floor = Floor(subject, prompt, unavoidable_rounds(schema.spoken.trie, schema.keys.tokens))
    last: list[tuple[list[int], torch.Tensor]] = []
    hook = subject.optimized.register_forward_hook(
        lambda _, __, given, output: last.append((given["input_ids"][0].tolist(), output.logits[0])), with_kwargs=True
    )
    try:
        floor.run()
    finally:
        hook.remove()
    rounds = unavoidable_rounds(schema.spoken.trie, schema.keys.tokens)
    at, row = next((at, members.index(key)) for at, members in enumerate(rounds) if key in members)
    with torch.inference_mode():
        plain = subject.model(input_ids=torch.tensor([[*prompt, *key]])).logits[0, -1]
    assert torch.allclose(last[1 + at][1][row], plain, atol=1e-3)


def test_passes_and_tokens_are_counted(subject: Subject) -> None:
    ids = torch.tensor([[5, 6, 7], [8, 9, 10]])
    with counted(subject.model) as passes, torch.inference_mode():
        subject.model(input_ids=ids)
        subject.model(input_ids=ids[:1, :1])
    with torch.inference_mode():
        subject.model(input_ids=ids)
    assert (passes.count, passes.tokens) == (2, 7)


def test_memory_that_a_call_takes_is_seen() -> None:
    # Freed again before the call returns: only the watching sees it.
    length, memory = peak_memory(lambda: len(np.ones(32 * 2**20)))
    assert length == 32 * 2**20
    assert 200 < memory < 400  # 256 and some, or a little less where the process gave memory back meanwhile


def test_recall_and_gap() -> None:
    scores = np.array([-3.0, -1.0, -2.0, -5.0])
    assert recall([1, 3], scores, 2) == 0.5
    assert recall([0, 1, 2, 3], scores, 10) == 1
    assert score_gap([1, 2], scores) == 0
    assert score_gap([3, 1], scores) == pytest.approx((0 + 3) / 2)
    assert score_gap([], scores) is None


def _cell(keys: int = 10, taken_with: str = "{}") -> Cell:
    rows = [
        Row("ours-beam", setup=0.1, cold=[1.0, 4.0], warm=[0.5, 2.0], passes=3, tokens=60, recall=1.0),
        Row("ours-recall", setup=0.1, cold=[0.5, 2.0], warm=[0.5, 2.0], passes=3, tokens=20, recall=1.0),
        Row("hf-naive", setup=0.2, cold=[3.0, 8.0], passes=3, tokens=260, recall=0.5),
        Row("xgrammar", reason="did not compile"),
    ]
    return Cell(taken_with, keys, keys, 1.0, 50, 5, rows, 10, [0.5, 1.0], [0.25, 1.0], [0.25, 1.0], 2.0)


def test_figures_compare_within_turns() -> None:
    flat = figures([_cell(), _cell(100)])
    assert flat["speedup_over_hf_naive_100_keys_width_5_prompt_50"] == 2.5
    assert flat["recall_speedup_over_hf_naive_100_keys_width_5_prompt_50"] == 5
    assert "recall_speedup_over_ours_beam_100_keys_width_5_prompt_50" not in flat
    assert flat["floor_multiple_100_keys_width_5_prompt_50"] == 2
    assert flat["slowdown_10_to_100_keys_width_5_prompt_50"] == 3
    assert flat["not_run_xgrammar_100_keys"] == "did not compile"
    assert "slowdown_10_to_10_keys_width_5_prompt_50" not in flat


def test_finished_cells_come_back(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    file = CellFile(path, "{}")
    file.append(_cell())
    file.append(_cell(100, taken_with="other"))
    with path.open("a") as broken:
        broken.write('{"settings": "{}", "keys"')  # killed while writing
    again = CellFile(path, "{}")
    assert again.cells == {(10, 50, 5): _cell()}
    again.append(_cell(200))
    assert CellFile(path, "{}").cells == {(10, 50, 5): _cell(), (200, 50, 5): _cell(200)}


def test_what_is_no_corpus_is_told_before_the_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "load_subject", None)
    wrong = tmp_path / "wrong.json"
    for content, message in (
        (None, "no file"),
        ('{"a": 1}', "not a LoCoMo"),
        ("[]", "no conversation"),
        ("no", "not a Lo"),
    ):
        if content is not None:
            wrong.write_text(content)
        with pytest.raises(SystemExit):
            program.main(["--locomo", str(wrong), "--out", str(tmp_path / "out")])
        assert message in capsys.readouterr().err
    with pytest.raises(SystemExit):
        program.main(["--keys", "0", "--out", str(tmp_path / "out")])
    assert "at least 1" in capsys.readouterr().err


def test_another_file_is_another_experiment(tmp_path: Path) -> None:
    turns = [{"speaker": "Ann", "dia_id": "D1:1", "text": "The kettle whistles."}]
    fingerprints = set()
    for text in ("The kettle whistles.", "The kettle sings."):
        turns[0]["text"] = text
        path = tmp_path / "file.json"
        path.write_text(json.dumps([{"sample_id": "a", "conversation": {"session_1": turns}}]))
        fingerprints.add(read_corpus(path).fingerprint)
    assert len(fingerprints | {read_corpus(None).fingerprint}) == 3
