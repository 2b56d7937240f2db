"""Decodes that are asked for at the same time run together, and nobody notices."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, wait

import pytest

from shared_core.decoding import ConceptDecoder, Constraint, DecodeQueue, SearchOptions
from shared_core.errors import InvalidInputError
from shared_core.schema import build_trie

TEXTS = [f"note {number} about {word}" for number, word in enumerate(["rain", "canoe", "violin", "oven", "hedge"] * 5)]
# Longer than anything here takes, and never waited for unless something is broken.
PATIENCE = 60


class Held:
    """A decoder that waits before its first decode until it is let go, and notes what is decoded together."""

    def __init__(self, decoder: ConceptDecoder) -> None:
        self._decoder = decoder
        self.started, self.go = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []

    def decode(self, texts, constraints):
        self.batches.append(list(texts))
        self.started.set()
        assert self.go.wait(PATIENCE)
        if any("poison" in text for text in texts):
            raise ZeroDivisionError("poisoned")
        return self._decoder.decode(texts, constraints)


@pytest.fixture(scope="module")
def decoder(tiny) -> ConceptDecoder:
    return ConceptDecoder(tiny("llama"))


@pytest.fixture(scope="module")
def constraint(decoder) -> Constraint:
    keys = ["rain", "canoe", "violin lessons", "oven", "hedge", "violin"]
    return Constraint(build_trie(decoder.encode_keys(keys)), SearchOptions(3))


@pytest.fixture
def held(decoder):
    return Held(decoder)


@pytest.fixture
def queue(held):
    queue = DecodeQueue(held)
    yield queue
    held.go.set()
    queue.close()


def keys_of(reading):
    return [[one.key for one in keys] for keys in reading.keys]


def fill(queue, held, texts, constraint):
    """Submit a first text, and the others while it is being decoded."""
    first = queue.submit("the first", [constraint])
    assert held.started.wait(PATIENCE)
    return first, [queue.submit(text, [constraint]) for text in texts]


def test_what_waits_runs_together_in_order_and_gives_the_same_as_alone(decoder, held, queue, constraint):
    first, futures = fill(queue, held, TEXTS[:20], constraint)
    held.go.set()
    results = [future.result(PATIENCE) for future in futures]
    assert held.batches == [["the first"], TEXTS[:8], TEXTS[8:16], TEXTS[16:20]]
    alone = [decoder.decode([text], [[constraint]])[0] for text in TEXTS[:20]]
    for together, expected in zip(results, alone, strict=True):
        assert keys_of(together) == keys_of(expected)
        for one, other in zip(together.keys[0], expected.keys[0], strict=True):
            assert one.logprob == pytest.approx(other.logprob, abs=1e-3)
    assert len(first.result(PATIENCE).keys[0]) == 3


def test_each_waiter_gets_the_constraints_it_asked_for(decoder, held, queue, constraint):
    other = Constraint(build_trie(decoder.encode_keys(["rain", "oven"])), SearchOptions(2, "exact"))
    queue.submit("the first", [])
    assert held.started.wait(PATIENCE)
    asked = [[constraint], [], [other, constraint], [other]]
    futures = [queue.submit(text, several) for text, several in zip(TEXTS, asked, strict=False)]
    held.go.set()
    assert [[len(keys) for keys in future.result(PATIENCE).keys] for future in futures] == [[3], [], [2, 3], [2]]


def test_callers_of_many_threads_are_all_served(decoder, held, queue, constraint):
    held.go.set()
    results = {}

    def call(text):
        results[text] = queue.submit(text, [constraint]).result(PATIENCE)

    threads = [threading.Thread(target=call, args=(text,)) for text in TEXTS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(text for batch in held.batches for text in batch) == sorted(TEXTS)
    for text in TEXTS[::6]:
        assert keys_of(results[text]) == keys_of(decoder.decode([text], [[constraint]])[0])


def test_an_error_reaches_all_whose_decode_fails(held, queue, constraint):
    first, futures = fill(queue, held, ["poison", "more poison"], constraint)
    held.go.set()
    assert first.result(PATIENCE)
    for future in futures:
        with pytest.raises(ZeroDivisionError, match="poisoned"):
            future.result(PATIENCE)


def test_one_bad_decode_does_not_spoil_those_beside_it(held, queue, constraint):
    _, futures = fill(queue, held, ["good", "poison", "fine"], constraint)
    bad = queue.submit("uncalibrated", [Constraint(constraint.trie, SearchOptions(calibration=0.5))])
    held.go.set()
    assert len(futures[0].result(PATIENCE).keys[0]) == len(futures[2].result(PATIENCE).keys[0]) == 3
    with pytest.raises(ZeroDivisionError):
        futures[1].result(PATIENCE)
    with pytest.raises(InvalidInputError, match="neutral"):
        bad.result(PATIENCE)


def test_a_failed_decode_does_not_stop_the_queue(held, queue, constraint):
    held.go.set()
    with pytest.raises(ZeroDivisionError):
        queue.submit("poison", [constraint]).result(PATIENCE)
    assert len(queue.submit("fine", [constraint]).result(PATIENCE).keys[0]) == 3


def test_cancelled_decodes_are_left_out(held, queue, constraint):
    _, futures = fill(queue, held, TEXTS[:6], constraint)
    assert [future.cancel() for future in futures[::2]] == [True] * 3
    held.go.set()
    assert all(len(future.result(PATIENCE).keys[0]) == 3 for future in futures[1::2])
    assert held.batches == [["the first"], TEXTS[1:6:2]]
    for future in futures[::2]:
        with pytest.raises(CancelledError):
            future.result(PATIENCE)


def test_nothing_is_decoded_when_all_gave_up(held, queue, constraint):
    first, futures = fill(queue, held, TEXTS[:3], constraint)
    assert all(future.cancel() for future in futures)
    held.go.set()
    assert first.result(PATIENCE)
    assert queue.submit("later", [constraint]).result(PATIENCE)
    assert held.batches == [["the first"], ["later"]]


def test_closing_finishes_what_waits(held, queue, constraint):
    first, futures = fill(queue, held, TEXTS[:10], constraint)
    held.go.set()
    queue.close()
    done, waiting = wait([first, *futures], timeout=0)
    assert len(done) == 11
    assert not waiting
    assert all(len(future.result().keys[0]) == 3 for future in futures)


def test_callers_that_arrive_a_little_apart_are_decoded_together(held, queue, constraint, monkeypatch):
    late = iter(TEXTS[1:12])
    futures = []

    def lull(_: float) -> None:
        """Somebody else calls in the meantime, until nobody is left."""
        futures.extend(queue.submit(text, [constraint]) for text in [next(late, None)] if text)

    monkeypatch.setattr("shared_core.decoding.queue.sleep", lull)
    held.go.set()
    futures.append(queue.submit(TEXTS[0], [constraint]))
    wait([futures[0]], PATIENCE)
    while next(late, None) is not None:
        pass
    assert held.batches[0] == TEXTS[:8]  # as many as go together, and no longer
