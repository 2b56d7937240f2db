"""The write path: what is stored when, and that an interrupted write ends where it would have ended."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from shared_core.config import SCGConfig
from shared_core.decoding import ConceptDecoder, FollowedSchema, KeyVoice
from shared_core.entry import MemoryEntry
from shared_core.errors import ModelError, StoreUnavailableError
from shared_core.evolution import Evolution, Progress, extract_phrases
from shared_core.evolution import evolution as evolution_module
from shared_core.evolution.distillation import read_in_pieces
from shared_core.store import ORIGINS, EntryWrite, Store

NAMESPACE = ("anna",)
TEXTS = [
    "I adopted a puppy and named him Rex",
    "Rex chewed my cello bow",
    "My cello lessons start on Monday",
    "The canoe of cedar strips floats",
    "We paddled the canoe to the mill",
    "Petra is allergic to walnuts",
    "I baked a cake of purple carrots",
]
ENTRIES = [MemoryEntry(text, f"e{number}", speaker="Anna" if number % 2 else None) for number, text in enumerate(TEXTS)]
FEW = ENTRIES[:5]
"""Enough for two batches and a part of one."""


class StoppedError(Exception):
    """An interruption from outside."""


@pytest.fixture(scope="module")
def decoder(tiny) -> ConceptDecoder:
    return ConceptDecoder(tiny("llama"))


@pytest.fixture
def store():
    with Store.open(":memory:") as store:
        yield store


def evolution(store: Store, decoder: ConceptDecoder, config: SCGConfig) -> Evolution:
    """A write path as of a new process: nothing is known but what is stored."""
    voice = KeyVoice(decoder)
    schema = FollowedSchema(store, NAMESPACE, lambda: voice, config.score)
    return Evolution(store, NAMESPACE, config, lambda: voice, lambda: store.load(NAMESPACE), schema.current)


def unused(*_: object) -> Any:
    raise AssertionError("the model was asked for")


def wordless(store: Store, config: SCGConfig, namespace: tuple[str, ...] = NAMESPACE) -> Evolution:
    """A write path without a model."""
    return Evolution(store, namespace, config, unused, lambda: store.load(namespace), unused)


def ignore(progress: Progress) -> None:
    pass


def contents(store: Store) -> dict[str, dict[str, tuple[str, float]]]:
    """Origin and weight of each link, by entry and key."""
    state = store.load(NAMESPACE)
    links: dict[str, dict[str, tuple[str, float]]] = {one.entry.id: {} for one in state.entries}
    for entry, concept, weight, origin in zip(
        state.link_entry, state.link_concept, state.link_weight, state.link_origin, strict=True
    ):
        links[state.entries[entry].entry.id][state.concepts[concept][0]] = (ORIGINS[origin], float(weight))
    return links


def waiting(store: Store) -> list[str]:
    return [one.entry.id for one in store.load(NAMESPACE).entries if not one.assimilated]


def test_phrases_are_stored_without_the_model(store):
    outcome = wordless(store, SCGConfig()).remember(ENTRIES, use_model=False, report=ignore)
    assert (outcome.added, outcome.updated, outcome.unchanged) == (len(ENTRIES), 0, 0)
    assert outcome.ids == tuple(entry.id for entry in ENTRIES) == tuple(waiting(store))
    for entry in ENTRIES:
        phrases = extract_phrases(entry.content, speaker=entry.speaker)
        assert contents(store)[entry.id] == {phrase.key: ("said", 1.0) for phrase in phrases}


def test_without_assimilation_nothing_waits_and_no_model_is_needed(store):
    write_path = wordless(store, SCGConfig(assimilate=0))
    write_path.remember(ENTRIES, use_model=True, report=ignore)
    assert waiting(store) == []
    assert write_path.assimilate(ignore) == 0


def test_assimilation_adds_what_an_entry_does_not_say(store, decoder):
    config = SCGConfig(assimilate=3, inferred_weight=0.25, batch=2)
    evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=ignore)
    assert waiting(store) == []
    keys = {key for links in contents(store).values() for key, (origin, _) in links.items() if origin == "said"}
    for entry in ENTRIES:
        links = contents(store)[entry.id]
        inferred = {key for key, (origin, _) in links.items() if origin == "inferred"}
        assert len(inferred) == 3
        assert inferred <= keys - {phrase.key for phrase in extract_phrases(entry.content)}
        assert all(links[key] == ("inferred", 0.25) for key in inferred)


def test_what_the_model_caught_up_on_equals_what_it_did_at_once(store, decoder):
    config = SCGConfig(assimilate=3, batch=2)
    evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=ignore)
    with Store.open(":memory:") as other:
        wordless(other, config).remember(ENTRIES, use_model=False, report=ignore)
        write_path = evolution(other, decoder, config)
        assert write_path.assimilate(ignore) == len(ENTRIES)
        assert contents(other) == contents(store)
        assert write_path.assimilate(ignore) == 0


def test_only_what_is_written_is_assimilated(store, decoder):
    config = SCGConfig(assimilate=2)
    wordless(store, config).remember(ENTRIES[:3], use_model=False, report=ignore)
    evolution(store, decoder, config).remember(ENTRIES[3:5], use_model=True, report=ignore)
    assert waiting(store) == ["e0", "e1", "e2"]


CONFIGS = {
    "phrases": SCGConfig(assimilate=3, batch=2),
    "spans": SCGConfig(accommodation="spans", new_concepts=3, assimilate=2, batch=2),
    "gated spans": SCGConfig(accommodation="spans", gate="perplexity", score="schema", new_concepts=3, batch=3),
}


@pytest.fixture(scope="module")
def finished(decoder):
    """By settings: what is stored in the end, and every step that was reported on the way."""
    found = {}
    for name, config in CONFIGS.items():
        steps: list[Progress] = []
        with Store.open(":memory:") as store:
            evolution(store, decoder, config).remember(FEW, use_model=True, report=steps.append)
            assert waiting(store) == []
            found[name] = contents(store), steps
    return found


@pytest.mark.parametrize("name", CONFIGS)
def test_steps_are_reported_in_order(finished, name):
    _, steps = finished[name]
    stages = list(dict.fromkeys(step.stage for step in steps))
    model_made = ["distilling", "reading"]
    assert stages == (["storing", "weighing new concepts", "assimilating"] if name == "phrases" else model_made)
    for stage in stages:
        done = [step.done for step in steps if step.stage == stage]
        (total,) = {step.total for step in steps if step.stage == stage}
        assert done == sorted(set(done))
        assert (done[0], done[-1]) == (0, total)


@pytest.mark.parametrize("name", CONFIGS)
def test_an_interrupted_write_ends_with_the_same_links(decoder, finished, name, monkeypatch):
    """StoppedError at every step that is reported, and done again by a new process."""
    monkeypatch.setattr(evolution_module, "_STORED_TOGETHER", 3)
    expected, _ = finished[name]
    stopped_at = 0
    while True:
        reported = 0

        def stop(progress, at=stopped_at):
            nonlocal reported
            reported += 1
            if reported > at:
                raise StoppedError

        with Store.open(":memory:") as store:
            try:
                evolution(store, decoder, CONFIGS[name]).remember(FEW, use_model=True, report=stop)
            except StoppedError:
                outcome = evolution(store, decoder, CONFIGS[name]).remember(FEW, use_model=True, report=ignore)
                assert outcome.added + outcome.unchanged == len(FEW)
            else:
                break
            assert waiting(store) == []
            assert contents(store) == expected
        stopped_at += 1
    assert stopped_at >= 4


def test_an_interrupted_write_keeps_what_it_reported(decoder, store):
    config = CONFIGS["phrases"]
    seen = []

    def stop_while_assimilating(progress):
        seen.append(progress)
        if progress.stage == "assimilating" and progress.done == 4:
            raise StoppedError

    with pytest.raises(StoppedError):
        evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=stop_while_assimilating)
    assert waiting(store) == ["e4", "e5", "e6"]
    inferred = [sum(origin == "inferred" for origin, _ in links.values()) for links in contents(store).values()]
    assert inferred == [3, 3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_entries_again_change_nothing(decoder, finished, name, store):
    evolution(store, decoder, CONFIGS[name]).remember(FEW, use_model=True, report=ignore)
    generation = store.generation(NAMESPACE)
    outcome = evolution(store, decoder, CONFIGS[name]).remember(FEW, use_model=True, report=ignore)
    assert (outcome.added, outcome.updated, outcome.unchanged) == (0, 0, len(FEW))
    assert store.generation(NAMESPACE) == generation
    assert contents(store) == finished[name][0]


@pytest.mark.parametrize("name", CONFIGS)
def test_a_changed_entry_is_read_anew(decoder, name, store):
    write_path = evolution(store, decoder, CONFIGS[name])
    write_path.remember(ENTRIES[:3], use_model=True, report=ignore)
    changed = MemoryEntry("The kettle whistles", "e1")
    outcome = write_path.remember([changed], use_model=True, report=ignore)
    assert (outcome.added, outcome.updated, outcome.unchanged) == (0, 1, 0)
    links = contents(store)["e1"]
    said = {key for key, (origin, _) in links.items() if origin == "said"}
    assert said
    assert said <= {phrase.key for phrase in extract_phrases(changed.content)}
    assert waiting(store) == []


def test_the_last_entry_with_an_id_counts(decoder, store):
    twice = [MemoryEntry("The kettle whistles", "e0"), ENTRIES[1], ENTRIES[0]]
    outcome = evolution(store, decoder, SCGConfig(assimilate=0)).remember(twice, use_model=True, report=ignore)
    assert (outcome.added, outcome.ids) == (2, ("e0", "e1"))
    assert store.get(NAMESPACE, ["e0"]) == [ENTRIES[0]]


@pytest.mark.parametrize("accommodation", ["phrases", "spans", "generate"])
def test_later_batches_see_the_concepts_of_earlier_ones(decoder, store, accommodation):
    config = SCGConfig(accommodation=accommodation, assimilate=2, batch=1, new_concepts=2)
    first, second = ENTRIES[0], ENTRIES[3]  # without a word in common
    evolution(store, decoder, config).remember([first, second], use_model=True, report=ignore)
    links = contents(store)
    inferred = {key for key, (origin, _) in links["e3"].items() if origin == "inferred"}
    assert len(inferred) == 2
    assert inferred <= {key for key, (origin, _) in links["e0"].items() if origin != "inferred"}


@pytest.mark.parametrize("accommodation", ["phrases", "spans", "generate"])
def test_entries_without_any_concept_are_stored_all_the_same(decoder, store, accommodation):
    config = SCGConfig(accommodation=accommodation, assimilate=2)
    outcome = evolution(store, decoder, config).remember([MemoryEntry("...", "e0")], use_model=True, report=ignore)
    assert outcome.added == 1
    assert contents(store) == {"e0": {}}
    assert waiting(store) == []


def test_nothing_to_remember_is_nothing(store):
    outcome = wordless(store, SCGConfig()).remember([], use_model=True, report=ignore)
    assert (outcome.added, outcome.updated, outcome.unchanged, outcome.ids) == (0, 0, 0, ())


def test_neutral_scores_are_stored_and_computed_once(decoder, store, monkeypatch):
    computed = []
    neutral_scores = decoder.neutral_scores

    def spy(keys):
        computed.extend(keys)
        return neutral_scores(keys)

    monkeypatch.setattr(decoder, "neutral_scores", spy)
    config = SCGConfig(assimilate=2)
    evolution(store, decoder, config).remember(ENTRIES[:3], use_model=True, report=ignore)
    stored = store.load(NAMESPACE, decoder.fingerprint)
    assert set(stored.scores) == {key for key, _ in stored.concepts}
    assert len(computed) == len(stored.concepts)
    evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=ignore)
    assert len(computed) == len(set(computed)) == len(store.load(NAMESPACE).concepts)


def test_neutral_scores_are_not_computed_where_nothing_needs_them(decoder, store, monkeypatch):
    monkeypatch.setattr(decoder, "neutral_scores", unused)
    config = SCGConfig(assimilate=2, calibration=0.0, lookahead=False)
    evolution(store, decoder, config).remember(ENTRIES[:3], use_model=True, report=ignore)
    assert waiting(store) == []


def test_only_concepts_of_this_namespace_are_inferred(decoder, store):
    store.write(("tobi",), [EntryWrite(MemoryEntry("secret plans", "t0"))])
    config = SCGConfig(assimilate=5)
    wordless(store, config, ("tobi",)).remember(
        [MemoryEntry("The vault holds a secret ledger", "t1")], use_model=False, report=ignore
    )
    evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=ignore)
    keys = {key for links in contents(store).values() for key in links}
    assert not {"vault", "secret", "ledger"} & keys


def anticipated(store: Store, decoder: ConceptDecoder) -> dict[str | None, list[int]]:
    """The tokens that a model is stored to expect of each entry."""
    state = store.load(NAMESPACE)
    columns = store.load_anticipations(NAMESPACE, decoder.fingerprint, state)
    own = [columns.tokens[low:high].tolist() for low, high in pairwise(columns.starts.tolist())]
    return {state.entries[entry].entry.id: some for entry, some in zip(columns.entry.tolist(), own, strict=True)}


@pytest.mark.parametrize("accommodation", ["phrases", "spans"])
def test_what_the_model_expects_of_each_entry_is_stored_with_it(store, decoder, accommodation):
    config = SCGConfig(accommodation=accommodation, batch=3)
    silent = MemoryEntry("", "silent", metadata={"value": 1})
    write = evolution(store, decoder, config)
    write.remember([*ENTRIES, silent], use_model=True, report=ignore)
    found = anticipated(store, decoder)
    assert sorted(map(str, found)) == sorted(str(entry.id) for entry in ENTRIES)
    for entry in ENTRIES:
        (text,) = read_in_pieces(entry)
        (reading,) = decoder.decode([text], [[]])
        # Texts that are read together differ in the last digits, which may swap neighbours.
        assert len(set(found[entry.id]) ^ set(reading.anticipation.tokens.tolist())) <= 4
    assert write.anticipate(ignore) == 0
    changed = MemoryEntry("The quince jelly is sold out", "e0")
    write.remember([changed], use_model=True, report=ignore)
    assert anticipated(store, decoder)["e0"] != found["e0"]


def test_of_a_long_entry_counts_the_most_that_any_piece_makes_likely(store, decoder):
    entry = MemoryEntry(" ".join(["walnuts"] * 170 + ["canoe"] * 200), "long")
    pieces = [
        dict(zip(reading.anticipation.tokens.tolist(), reading.anticipation.logprobs.tolist(), strict=True))
        for reading in decoder.decode(read_in_pieces(entry), [[]] * 3)
    ]
    evolution(store, decoder, SCGConfig()).remember([entry], use_model=True, report=ignore)
    state = store.load(NAMESPACE)
    columns = store.load_anticipations(NAMESPACE, decoder.fingerprint, state)
    assert len(columns.tokens) == len(set(columns.tokens.tolist())) == 128
    for token, logprob in zip(columns.tokens.tolist(), columns.logprobs.tolist(), strict=True):
        assert logprob == pytest.approx(max(piece.get(token, -99) for piece in pieces), abs=2e-2)


def test_without_a_use_for_it_nothing_more_is_read(store, decoder):
    config = SCGConfig(accommodation="spans", anticipation_weight=0)
    evolution(store, decoder, config).remember(ENTRIES[:2], use_model=True, report=ignore)
    assert anticipated(store, decoder) == {}


def test_another_model_reads_what_it_has_not_and_may_be_cut_off(store, decoder, tiny):
    config = SCGConfig(batch=2)
    evolution(store, decoder, config).remember(ENTRIES, use_model=True, report=ignore)
    links = store.load(NAMESPACE).link_concept.tolist()
    other = ConceptDecoder(tiny("gpt2"))
    assert anticipated(store, other) == {}

    def stop(progress: Progress) -> None:
        if progress.done:
            raise StoppedError

    with pytest.raises(StoppedError):
        evolution(store, other, config).anticipate(stop)
    assert len(anticipated(store, other)) == 2
    assert evolution(store, other, config).anticipate(ignore) == len(ENTRIES) - 2
    assert evolution(store, other, config).anticipate(ignore) == 0
    assert len(anticipated(store, other)) == len(anticipated(store, decoder)) == len(ENTRIES)
    assert store.load(NAMESPACE).link_concept.tolist() == links


@pytest.mark.parametrize("accommodation", ["phrases", "spans"])
def test_an_error_tells_what_is_stored_nevertheless(store, decoder, accommodation, monkeypatch):
    """The model goes away after its first batch: who calls again with the same ids stores nothing twice."""
    config = SCGConfig(assimilate=2, batch=2, accommodation=accommodation)
    write_path = evolution(store, decoder, config)
    decode, calls = ConceptDecoder.decode, []

    def failing(self, *arguments):
        calls.append(arguments)
        if len(calls) == 2:
            raise ModelError("the server is gone")
        return decode(self, *arguments)

    monkeypatch.setattr(ConceptDecoder, "decode", failing)
    with pytest.raises(ModelError) as raised:
        write_path.remember(FEW, use_model=True, report=ignore)
    stored = tuple(one.entry.id for one in store.load(NAMESPACE).entries)
    assert raised.value.stored == stored
    assert len(stored) == (5 if accommodation == "phrases" else 2)
    told = "all 5 entries are stored, consolidate() does" if accommodation == "phrases" else "2 of 5 entries are stored"
    assert told in str(raised.value)
    assert str(raised.value).endswith("since the server is gone")
    outcome = write_path.remember(FEW, use_model=True, report=ignore)
    assert (outcome.added, outcome.unchanged) == (5 - len(stored), len(stored))


def test_an_error_before_anything_is_stored_is_left_as_it_is(store, monkeypatch):
    write_path = wordless(store, SCGConfig())
    monkeypatch.setattr(evolution_module, "_STORED_TOGETHER", 3)
    write, calls = Store.write, []

    def failing(self, *arguments):
        calls.append(arguments)
        if len(calls) in (1, 3):
            raise StoreUnavailableError("the disk is full")
        return write(self, *arguments)

    monkeypatch.setattr(Store, "write", failing)
    with pytest.raises(StoreUnavailableError, match=r"^the disk is full$") as raised:
        write_path.remember(FEW, use_model=False, report=ignore)
    assert raised.value.stored == ()
    with pytest.raises(StoreUnavailableError, match=r"^3 of 5 entries are stored") as raised:
        write_path.remember(FEW, use_model=False, report=ignore)
    assert raised.value.stored == ("e0", "e1", "e2")
