"""One contender at one size, measured in a process of its own; prints its figures as JSON.

``python -m benchmarks.trie_contenders CONTENDER KEYS.npz FOLDER time|memory``
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from shared_core.schema import PrefixTrie, Trie, build_trie, build_trie_from_arrays

CONTENDERS = ("ours", "dicts", "marisa")
Key = tuple[int, ...]
Figures = dict[str, float]

_END = -1  # marks the end of a key in nested dicts
_LOOKUPS = 5_000
_INSERTS = 5_000


def main() -> None:
    contender, keys, folder, what = sys.argv[1:]
    with np.load(keys) as columns:
        flat, starts = columns["flat"], columns["starts"]
    measure = {"time": _TIMES, "memory": _MEMORIES}[what][contender]
    print(json.dumps(measure(flat, starts, Path(folder))))


def _tuples(flat: np.ndarray, starts: np.ndarray) -> Iterable[Key]:
    bounds = starts.tolist()
    for low, high in itertools.pairwise(bounds):
        yield tuple(flat[low:high].tolist())


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def _microseconds_each(call: Callable[[Any], Any], arguments: list[Any]) -> float:
    """Median time of a call, less that of a call which does nothing."""

    def median(one: Callable[[Any], Any]) -> float:
        times = []
        for argument in arguments:
            start = time.perf_counter()
            one(argument)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    return max(0.0, median(call) - median(lambda _: None)) * 1e6


def _prefixes(keys: list[Key], count: int) -> list[Key]:
    """Prefixes of keys chosen at random, none of them a whole key's."""
    chosen = random.Random(0)
    several = (chosen.choice(keys) for _ in range(count))
    return [key[: chosen.randrange(1, len(key))] for key in several]


def _new_keys(keys: list[Key], count: int) -> list[Key]:
    """Keys that are not there, each with a prefix that is."""
    chosen, held = random.Random(1), set(keys)
    new: dict[Key, None] = {}
    while len(new) < count:
        prefix = chosen.choice(keys)
        key = (*prefix[: chosen.randrange(1, len(prefix))], chosen.randrange(300, 49_000))
        if key not in held:
            new[key] = None
    return list(new)


# Ours


def _time_ours(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    keys = list(_tuples(flat, starts))
    build, _ = _seconds(lambda: build_trie(keys))
    columns, trie = _seconds(lambda: build_trie_from_arrays(flat, starts))
    nodes = [trie.walk(prefix) for prefix in _prefixes(keys, _LOOKUPS)]
    figures = {
        "build_seconds": build,
        "build_from_arrays_seconds": columns,
        "lookup_us": _microseconds_each(trie.allowed_tokens, nodes),
    }
    file = folder / "ours.npz"

    def save() -> None:
        _, tokens, offsets = trie.columns()
        np.savez(file, tokens=tokens, offsets=offsets)

    def reload() -> Trie:
        with np.load(file) as saved:
            return build_trie_from_arrays(saved["tokens"], saved["offsets"])

    figures["save_seconds"], _ = _seconds(save)
    figures["reload_seconds"], again = _seconds(reload)
    assert again.key_count == len(keys)
    return figures | _time_changes(PrefixTrie(trie), keys)


def _time_changes(trie: PrefixTrie, keys: list[Key]) -> Figures:
    """Inserts and deletes, a snapshot after each, while another thread reads the newest snapshot."""
    new = _new_keys(keys, min(_INSERTS, len(keys)))
    stop = threading.Event()
    reads = 0

    def read() -> None:
        nonlocal reads
        while not stop.wait(0.001):
            now = trie.snapshot()
            now.children(np.random.default_rng(reads).integers(0, now.layout.node_count, 64))
            reads += 1

    def change(one: Callable[[Key], bool]) -> tuple[float, float, float, float]:
        times, largest = [], 0.0
        for key in new:
            start = time.perf_counter()
            assert one(key)
            now = trie.snapshot()
            times.append(time.perf_counter() - start)
            if len(times) % 100 == 0:
                largest = max(largest, now.nbytes / now.key_count)
        return statistics.mean(times) * 1e3, statistics.median(times) * 1e3, max(times) * 1e3, largest

    reader = threading.Thread(target=read)
    reader.start()
    try:
        insert, median, longest, largest = change(trie.insert)
        snapshot = _microseconds_each(lambda _: trie.snapshot(), new)
        delete, *_ = change(trie.delete)
    finally:
        stop.set()
        reader.join()
    assert reads > 0
    return {
        "insert_ms": insert,
        "insert_median_ms": median,
        "insert_longest_ms": longest,
        "delete_ms": delete,
        "snapshot_us": snapshot,
        "bytes_per_key_grown": largest,
    }


def _memory_ours(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    build_trie([(1, 2), (3,)])  # loads what is loaded once
    before = _resident()
    trie = build_trie_from_arrays(flat, starts)
    after = _resident()
    keys = len(starts) - 1
    return {"bytes_per_key": trie.nbytes / keys, "rss_bytes_per_key": max(0, after - before) / keys}


# Nested dicts, as GENRE keeps its trie


def _insert_into(tree: dict[int, Any], key: Key) -> None:
    for token in key:
        tree = tree.setdefault(token, {})
    tree[_END] = {}


def _delete_from(tree: dict[int, Any], key: Key) -> None:
    path = [tree]
    for token in key:
        path.append(path[-1][token])
    del path[-1][_END]
    for above, token in zip(reversed(path[:-1]), reversed(key), strict=True):
        if above[token]:
            break
        del above[token]


def _nested(keys: Iterable[Key]) -> dict[int, Any]:
    tree: dict[int, Any] = {}
    for key in keys:
        _insert_into(tree, key)
    return tree


def _copied(tree: dict[int, Any]) -> dict[int, Any]:
    return {token: _copied(below) for token, below in tree.items()}


def _time_dicts(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    keys = list(_tuples(flat, starts))
    build, tree = _seconds(lambda: _nested(keys))
    nodes = []
    for prefix in _prefixes(keys, _LOOKUPS):
        below = tree
        for token in prefix:
            below = below[token]
        nodes.append(below)
    figures = {"build_seconds": build, "lookup_us": _microseconds_each(list, nodes)}
    file = folder / "dicts.json"
    figures["save_seconds"], _ = _seconds(lambda: file.write_text(json.dumps(tree)))
    figures["reload_seconds"], again = _seconds(
        lambda: json.loads(file.read_text(), object_pairs_hook=lambda pairs: {int(key): one for key, one in pairs})
    )
    assert again == tree
    del again
    copies = 3
    new = _new_keys(keys, copies)
    snapshots, inserts, deletes = [], [], []
    for change, times in ((_insert_into, inserts), (_delete_from, deletes)):
        for key in new:
            alone, _ = _seconds(lambda change=change, key=key: change(tree, key))
            snapshot, _ = _seconds(lambda: _copied(tree))
            snapshots.append(snapshot)
            times.append(alone + snapshot)
    return figures | {
        "insert_ms": statistics.mean(inserts) * 1e3,
        "delete_ms": statistics.mean(deletes) * 1e3,
        "snapshot_us": statistics.median(snapshots) * 1e6,
    }


def _memory_dicts(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    before = _resident()
    tree = _nested(_tuples(flat, starts))
    after = _resident()
    assert tree
    return {"bytes_per_key": max(0, after - before) / (len(starts) - 1)}


# marisa-trie, keys as the bytes of their big-endian tokens


def _as_bytes(keys: Iterable[Key]) -> list[bytes]:
    return [np.array(key, dtype=">u2").tobytes() for key in keys]


def _time_marisa(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    import marisa_trie

    keys = list(_tuples(flat, starts))
    encoded = _as_bytes(keys)
    build, trie = _seconds(lambda: marisa_trie.BinaryTrie(encoded))

    def allowed(prefix: bytes) -> set[bytes]:
        size = len(prefix)
        return {key[size : size + 2] for key in trie.iterkeys(prefix) if len(key) > size}

    prefixes = _as_bytes(_prefixes(keys, _LOOKUPS // 10))
    figures = {"build_seconds": build, "lookup_us": _microseconds_each(allowed, prefixes)}
    file = folder / "marisa.trie"
    figures["save_seconds"], _ = _seconds(lambda: trie.save(str(file)))
    again = marisa_trie.BinaryTrie()
    figures["reload_seconds"], _ = _seconds(lambda: again.load(str(file)))
    assert len(again) == len(keys)
    return figures


def _memory_marisa(flat: np.ndarray, starts: np.ndarray, folder: Path) -> Figures:
    """Of a trie that was loaded: building one leaves traces of what it was built from."""
    import marisa_trie

    file = folder / "marisa.trie"
    before = _resident()
    trie = marisa_trie.BinaryTrie()
    trie.load(str(file))
    after = _resident()
    assert len(trie) == len(starts) - 1
    return {"bytes_per_key": max(0, after - before) / len(trie)}


def _resident() -> int:
    """Bytes of this process in memory, after what is free was given back."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


_TIMES = {"ours": _time_ours, "dicts": _time_dicts, "marisa": _time_marisa}
_MEMORIES = {"ours": _memory_ours, "dicts": _memory_dicts, "marisa": _memory_marisa}

if __name__ == "__main__":
    main()
