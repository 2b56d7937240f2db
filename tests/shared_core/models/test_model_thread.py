"""Models compute on one thread, whoever calls."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from shared_core.models import on_model_thread


def test_all_callers_share_one_thread_that_is_none_of_theirs():
    with ThreadPoolExecutor(4) as callers:
        used = set(callers.map(lambda _: on_model_thread(threading.get_ident), range(20)))
        own = set(callers.map(lambda _: threading.get_ident(), range(20)))
    assert len(used) == 1
    assert not used & {*own, threading.get_ident()}
    assert used == {on_model_thread(threading.get_ident)}


def test_a_call_within_a_call_runs_at_once():
    assert on_model_thread(lambda: on_model_thread(lambda: 1) + 1) == 2


def test_an_error_reaches_the_caller_and_the_thread_goes_on():
    with pytest.raises(ZeroDivisionError):
        on_model_thread(lambda: 1 // 0)
    assert on_model_thread(lambda: 1) == 1


def test_a_forked_process_starts_a_thread_of_its_own():
    on_model_thread(threading.get_ident)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            os.write(write, str(on_model_thread(lambda: 41 + 1)).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        assert pipe.read() == "42"
    assert os.waitpid(child, 0)[1] == 0


def test_models_compute_there(tiny):
    engine = tiny("llama")
    seen = []
    hook = engine._model.register_forward_pre_hook(lambda *_: seen.append(threading.get_ident()))
    try:
        tree = engine.tree([5, 9, 40])
        node = tree.read([17, 33])
        tree.extend([80], [node])
        assert np.isfinite(tree.logprobs([node], [3])).all()
    finally:
        hook.remove()
    assert len(seen) >= 2
    assert set(seen) == {on_model_thread(threading.get_ident)}
