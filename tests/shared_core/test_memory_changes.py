"""What changes a memory: updates, repetitions, forgetting, interruptions, other namespaces, processes and models."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from shared_core import Filter, MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError
from shared_core.store import Store

ROOT = Path(__file__).parents[2]
PHRASES, MODEL_MADE = SCGConfig(), SCGConfig(accommodation="spans", gate="perplexity", batch=4)


def ids_of(recall):
    return [one.entry.id for one in recall.entries]


def exported(memory, tmp_path):
    """Everything the namespace holds, line by line."""
    memory.export(tmp_path / "exported.jsonl")
    return (tmp_path / "exported.jsonl").read_text().splitlines()


def on_disk(path):
    return b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))


@pytest.fixture(scope="module")
def other_model():
    """A tiny model with a tokenizer of its own, whose tokens are bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<end>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocabulary, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=2048,
        initializer_range=0.5,
        bos_token_id=None,
        eos_token_id=0,
    )
    return LlamaForCausalLM(config), PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def test_an_update_replaces_what_was_said(open_memory, tmp_path, turns):
    memory = open_memory()
    memory.remember(turns[:4])
    memory.recall("beehive")
    outcome = memory.remember("The rhubarb came up early", id="t02", speaker="Tobi")
    assert (outcome.ids, outcome.added, outcome.updated) == (("t02",), 0, 1)
    assert [entry.id for entry in memory.entries] == ["t01", "t02", "t03", "t04"]
    assert memory.get("t02").text == "The rhubarb came up early"
    assert ids_of(memory.recall("Who has rhubarb?", k=1)) == ["t02"]
    assert "beehive" not in memory.schema
    assert "beehive" not in memory.recall("beehive").as_text()
    assert memory.stats().waiting == 0
    assert b"swarmed" not in on_disk(tmp_path / "memory.db")
    unchanged = exported(memory, tmp_path)
    assert memory.remember("The rhubarb came up early", id="t02", speaker="Tobi").unchanged == 1
    assert exported(memory, tmp_path) == unchanged


def test_ids_are_made_where_none_is_given(open_memory):
    memory = open_memory()
    first = memory.remember("We drank tea", use_model=False)
    second = memory.remember("We drank tea", use_model=False)
    assert first.ids != second.ids
    assert [entry.id for entry in memory.entries] == [*first.ids, *second.ids]


def test_a_repetition_is_left_out_when_asked(open_memory):
    memory = open_memory()
    tea = MemoryEntry("We drank tea", speaker="Mira")
    [id] = memory.remember(tea, use_model=False).ids
    again = memory.remember([tea, tea.with_id("own"), tea], use_model=False, dedupe=True)
    assert (again.ids, again.unchanged, again.added) == ((id,), 1, 0)
    other = memory.remember("We drank tea", speaker="Tobi", use_model=False, dedupe=True)
    assert other.added == 1  # somebody else said so
    twice = memory.remember([MemoryEntry("Cake"), MemoryEntry("Cake")], use_model=False, dedupe=True)
    assert (twice.added, len(twice.ids)) == (1, 1)
    # What was derived from the content before is not overwritten when its entry says something else now.
    memory.remember("No cake", id=twice.ids[0], use_model=False)
    assert memory.remember("Cake", use_model=False, dedupe=True).added == 1
    assert sorted(entry.text for entry in memory.entries) == ["Cake", "No cake", "We drank tea", "We drank tea"]


def test_two_who_store_the_same_at_once_store_it_once(open_memory, monkeypatch):
    one, other = open_memory(), open_memory()
    find = Store.find_duplicates

    def find_late(store, *arguments):
        found = find(store, *arguments)
        if store is one._store:  # between looking and writing somebody else comes first
            other.remember("We drank tea", use_model=False, dedupe=True)
        return found

    monkeypatch.setattr(Store, "find_duplicates", find_late)
    assert one.remember("We drank tea", use_model=False, dedupe=True).unchanged == 1
    assert len(one.entries) == 1


def test_forgotten_is_gone_from_results_schema_graph_and_file(open_memory, tmp_path, turns):
    memory, other = open_memory(), open_memory(namespace="other")
    memory.remember(turns)
    other.remember(turns[8:9])
    memory.recall("canoe")
    erased = memory.forget(ids=["t02", "t09", "t99"])
    assert (erased.entries, erased.wiped) == (2, True)
    for reader in (memory, open_memory()):
        assert "beehive" not in reader.schema
        assert "beehive" not in reader.graph.keys
        assert not {"t02", "t09"} & set(ids_of(reader.recall("the beehive, the cedar strips and the canoe", k=50)))
        assert "canoe" in reader.schema  # others said so as well
        assert reader.stats().entries == len(turns) - 2
        with pytest.raises(LookupError):
            reader.get("t02")
    assert b"swarmed" not in on_disk(tmp_path / "memory.db")
    assert ids_of(other.recall("cedar")) == ["t09"]
    other.forget(ids=["t09"])
    assert b"cedar strips" not in on_disk(tmp_path / "memory.db")
    # A link inferred from a concept that is gone has gone with it.
    assert all(key in memory.schema for line in memory.recall("bees", k=50).entries for key in _keys(line))


def _keys(recalled):
    return [reason.key for reason in recalled.reasons]


@pytest.mark.parametrize(
    ("condition", "gone"),
    [
        ({"session": "kitchen"}, lambda turn: turn.session == "kitchen"),
        (
            {"session": ["kitchen"], "speaker": "Mira"},
            lambda turn: turn.session == "kitchen" and turn.speaker == "Mira",
        ),
        ({"where": Filter(before=datetime(2024, 5, 11))}, lambda turn: turn.session == "allotment"),
        ({"ids": ["t01", "t02"], "speaker": "Tobi"}, lambda turn: turn.id == "t02"),
        ({"ids": []}, lambda turn: False),
        ({"speaker": "Petra"}, lambda turn: False),
    ],
)
def test_forgetting_takes_what_meets_every_condition(open_memory, turns, condition, gone):
    memory = open_memory(":memory:")
    memory.remember(turns, use_model=False)
    kept = [turn for turn in turns if not gone(turn)]
    assert memory.forget(**condition).entries == len(turns) - len(kept)
    assert memory.entries == kept


@pytest.mark.parametrize(
    "condition",
    [{}, {"where": Filter()}, {"ids": "t01"}, {"ids": [1, "t01"]}, {"where": {"session": "kitchen"}}, {"session": 3}],
)
def test_forgetting_without_a_usable_condition_is_refused(open_memory, turns, condition):
    memory = open_memory(":memory:")
    memory.remember(turns, use_model=False)
    with pytest.raises(InvalidInputError):
        memory.forget(**condition)
    assert memory.entries == turns


def test_clearing_leaves_the_other_namespaces(open_memory, tmp_path, turns):
    memory = open_memory(namespace=("mira", "home"))
    other = memory.in_namespace(("mira home",))
    memory.remember(turns[:8], use_model=False)
    other.remember(turns[8:12], use_model=False)
    assert memory.clear().entries == 8
    assert memory.entries == []
    assert memory.recall("bees").entries == ()
    assert other.entries == turns[8:12]
    assert b"swarmed" not in on_disk(tmp_path / "memory.db")


def test_namespaces_know_nothing_of_each_other(open_memory, turns):
    mira = open_memory(namespace="mira")
    tobi = mira.in_namespace(("tobi",))
    mira.remember([turn for turn in turns if turn.speaker == "Mira"])
    alone = mira.recall("Where is the canoe?", k=50), list(mira.schema.keys)
    tobi.remember([turn.with_id("t01") if turn.id == "t02" else turn for turn in turns if turn.speaker == "Tobi"])
    assert (mira.recall("Where is the canoe?", k=50), list(mira.schema.keys)) == alone
    for memory, speaker in ((mira, "Mira"), (tobi, "Tobi")):
        own = set(memory.schema.keys)
        for query in ("canoe", "Lindau", "carrots", "honey"):
            recall = memory.recall(query, k=50)
            assert {one.entry.speaker for one in recall.entries} == {speaker}
            assert {seed.key for seed in recall.seeds} | {one.key for one in recall.context} <= own
    assert mira.get("t01").speaker != tobi.get("t01").speaker
    mira.close()  # opened the file, and shares it with the other
    with pytest.raises(Exception, match="closed"):
        tobi.recall("canoe")


def test_closing_a_shared_namespace_leaves_the_file_open(open_memory, turns):
    memory = open_memory()
    memory.remember(turns[:2])
    with memory.in_namespace("other") as other:
        other.remember(turns[2:3])
    assert ids_of(memory.recall("beehive", k=1)) == ["t02"]


@pytest.mark.parametrize("config", [PHRASES, MODEL_MADE], ids=["phrases", "spans"])
def test_a_memory_is_the_same_after_opening_it_again(open_memory, turns, config):
    with open_memory(config=config) as memory:
        memory.remember(turns[:12])
        before = memory.recall("Where is the canoe?", k=20), memory.schema, memory.stats(), memory.entries
    again = open_memory(config=config, create=False)
    assert (again.recall("Where is the canoe?", k=20), again.schema, again.stats(), again.entries) == before


def test_what_was_stored_without_the_model_is_recalled_and_completed_later(open_memory, tmp_path, turns):
    later, at_once = open_memory(), open_memory("other.db")
    later.remember(turns, use_model=False)
    assert later.stats().waiting == len(turns)
    first = later.recall("Where is the canoe?")
    assert "t24" in ids_of(first)
    later.recall("Who is allergic?")
    for memory in (later, later.in_namespace("default")):
        assert memory.recall("Where is the canoe?") == first  # whatever was weighed in between
    assert {reason.origin for one in first.entries for reason in one.reasons} == {"said"}
    assert later.consolidate() == len(turns)
    assert later.consolidate() == later.stats().waiting == 0
    at_once.remember(turns)
    assert exported(later, tmp_path) == exported(at_once, tmp_path)


def interrupt_at(step):
    def report(_):
        nonlocal step
        if step == 0:
            raise KeyboardInterrupt
        step -= 1

    return report


@pytest.mark.parametrize("config", [PHRASES, MODEL_MADE], ids=["phrases", "spans"])
def test_remembering_that_was_cut_off_anywhere_is_completed_by_the_same_call(open_memory, tmp_path, turns, config):
    reports = []
    whole = open_memory("whole.db", config=config)
    whole.remember(turns[:12], progress=reports.append)
    expected = exported(whole, tmp_path)
    assert len(reports) > 3
    for step in range(len(reports)):
        memory = open_memory(f"{step}.db", config=config)
        with pytest.raises(KeyboardInterrupt):
            memory.remember(turns[:12], progress=interrupt_at(step))
        stored = memory.stats().entries
        outcome = memory.remember(turns[:12])
        assert (outcome.added, outcome.unchanged) == (12 - stored, stored)
        assert exported(memory, tmp_path) == expected


def test_consolidating_that_was_cut_off_is_resumed(open_memory, tmp_path, turns):
    whole, memory = open_memory("whole.db"), open_memory()
    whole.remember(turns)
    memory.remember(turns, use_model=False)
    reports = []
    for step in (0, 1, 3):
        with pytest.raises(KeyboardInterrupt):
            memory.consolidate(interrupt_at(step))
        reports.append(memory.stats().waiting)
    assert reports[-1] < len(turns)
    assert memory.consolidate() == reports[-1]
    assert exported(memory, tmp_path) == exported(whole, tmp_path)


def test_an_export_is_imported_as_the_same_memory(open_memory, tmp_path, turns):
    memory, copy = open_memory(), open_memory("copy.db", namespace="copy")
    memory.remember(turns[:16])
    memory.remember(turns[16:], use_model=False)
    assert memory.export(tmp_path / "memory.jsonl") == len(turns)
    reports = []
    outcome = copy.import_file(tmp_path / "memory.jsonl", progress=reports.append)
    assert (outcome.added, len(reports), reports[-1].done) == (len(turns), len(turns), len(turns))
    assert copy.import_file(tmp_path / "memory.jsonl").unchanged == len(turns)
    assert exported(copy, tmp_path)[1:] == exported(memory, tmp_path)[1:]
    assert copy.stats() == memory.stats()
    assert copy.consolidate() == len(turns)  # what a model made of them is not exported
    assert ids_of(copy.recall("Who is allergic to walnuts?", k=1)) == ["t19"]


def test_another_process_writes_while_this_one_recalls(open_memory, tmp_path, turns):
    memory = open_memory()
    memory.remember(turns[:2])
    memory.recall("beehive")
    program = (
        "import signal, sys\nfrom shared_core import SchemaMemory\n"
        "signal.alarm(100)\n"
        "with SchemaMemory.open(sys.argv[1]) as memory:\n"
        "    for number in range(12):\n"
        "        memory.remember(f'Basket {number} holds quinces', id=f'q{number}', use_model=False)\n"
        "        print(number, flush=True)\n"
        "    memory.forget(ids=['t02', 'q0'])\n"
    )
    writer = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "memory.db")],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    for line in writer.stdout:
        # What the other process has acknowledged is seen by the next recall.
        found = ids_of(memory.recall(f"basket {int(line)}", k=100))
        assert f"q{int(line)}" in found
    assert writer.wait(timeout=60) == 0
    assert {"q0", "t02"}.isdisjoint(ids_of(memory.recall("beehive and basket 0", k=100)))
    assert "beehive" not in memory.schema


def test_several_threads_write_and_recall(open_memory, turns):
    memory = open_memory()

    def remember(turn):
        return memory.remember(turn, use_model=turn.id < "t05").added

    def recall(_):
        return all(one.entry in turns for one in memory.recall("canoe and bees").entries)

    with ThreadPoolExecutor(6) as pool:
        written, recalled = pool.map(remember, turns), pool.map(recall, range(12))
        assert sum(written) == len(turns)
        assert all(recalled)
    assert sorted(entry.id for entry in memory.entries) == [turn.id for turn in turns]


def test_another_model_recalls_the_same_memory(open_memory, tmp_path, turns, sensible_model, other_model):
    """Each model spells the concepts in tokens of its own; the memory is the same."""
    with open_memory(model=sensible_model) as memory:
        memory.remember(turns[8:11])
        before, keys = exported(memory, tmp_path), memory.schema.keys
        first = memory.recall("Where will he paddle?", k=3)
    with open_memory(model=other_model) as memory:
        assert memory.model.encode("canoe") != sensible_model.encode("canoe")
        recall = memory.recall("Where will he paddle the canoe?", k=3)
        assert set(ids_of(recall)) == {"t09", "t10", "t11"}
        assert {seed.key for seed in recall.seeds} <= set(keys)
        assert sum(seed.logprob is not None for seed in recall.seeds) == min(memory.config.width, len(keys))
        assert exported(memory, tmp_path) == before
        memory.remember("The reservoir froze", id="ice")
        assert ids_of(memory.recall("frozen reservoir", k=1)) == ["ice"]
        memory.forget(ids=["ice"])
    with SchemaMemory.open(tmp_path / "memory.db", model=sensible_model) as memory:
        assert exported(memory, tmp_path) == before
        assert ids_of(memory.recall("Where will he paddle?", k=3)) == ids_of(first)
