"""Two kinds of calls never meet, calls of one kind do, and nobody waits for ever."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from shared_core.models.vllm.turns import Turns


def test_two_kinds_never_meet_and_both_get_on():
    turns, lock = Turns(), threading.Lock()
    running: list[str] = []
    met, together = [], []
    done = {"a": 0, "b": 0}

    def call(kind):
        while min(done.values()) < 30:  # each goes on until the other kind has had its turns as well
            with turns.of(kind):
                with lock:
                    running.append(kind)
                    met.append(len(set(running)))
                    together.append(len(running))
                time.sleep(0.001)
                with lock:
                    running.remove(kind)
                    done[kind] += 1

    with ThreadPoolExecutor(8) as threads:
        for one in [threads.submit(call, kind) for kind in "aaaaabbb"]:
            one.result(timeout=60)
    assert set(met) == {1}
    assert max(together) > 1


def test_a_call_that_fails_gives_its_turn_away():
    turns = Turns()
    try:
        with turns.of("a"):
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    with turns.of("b"):
        pass
