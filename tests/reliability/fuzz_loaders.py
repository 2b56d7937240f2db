"""Inputs led by what they reach in the code: the readers of every import format, and the trie beside a dictionary.

    python -m tests.reliability.fuzz_loaders 100000

That many inputs for each target; each runs in a process of its own, which ends with the first failure and writes its
input down. Needs Atheris, which exists for Linux alone and so is an extra of its own: ``pip install '.[fuzz]'``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

try:
    import atheris
except ImportError:
    sys.exit("Atheris is not installed, so nothing was fuzzed: pip install '.[fuzz]' (on Linux)")

with atheris.instrument_imports(include=["shared_core.formats", "shared_core.store.transfer", "shared_core.entry"]):
    from shared_core.errors import SCGError
    from shared_core.formats import FORMATS, Format, read_entries
    from shared_core.store import Store, import_namespace
with atheris.instrument_imports(include=["shared_core.schema"]):
    from shared_core.schema import PrefixTrie, growth

SAID = [
    {"id": "1", "text": "Tea?", "speaker": "Ida", "session": "a", "occurred_at": "2024-05-08T13:56:00"},
    {"text": "", "caption": "a kettle", "metadata": {"x": [1, None, {"y": "\u2028"}]}},
]
EXPORT = [
    {"format": "scg-memory", "version": 1, "namespace": ["a"], "entries": 1},
    {**SAID[0], "assimilated": True, "concepts": [{"key": "tea", "surface": "Tea", "weight": 1.0, "origin": "said"}]},
]
TALK = {
    "sample_id": "talk-1",
    "conversation": {
        "speaker_a": "Ida",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ida", "dia_id": "D1:1", "text": "Tea?", "blip_caption": "a kettle"}],
    },
}
CHAT = [{"role": "user", "content": "Tea?"}, {"role": "assistant", "content": [{"type": "text", "text": "Yes"}]}]
SEEDS = [
    "\n".join(map(json.dumps, SAID)),
    "\n".join(map(json.dumps, EXPORT)),
    json.dumps([TALK]),
    json.dumps(CHAT),
    json.dumps({"messages": CHAT}),
    "Ida: Tea?\nBo: Yes\n  and cake\n\n[8 May 2023] Ida: Thanks",
]
WORDS = sorted({*re.findall(r'"\w+"', "".join(SEEDS)), "[{", "}]", "\\ud800", "\\u0000", "NaN", "1e999", "[" * 40})
Target = Callable[[bytes], None]


def reader(format: Format, folder: Path) -> Target:
    """What a reader gives can be written as JSON Lines and read again; whatever it refuses is told as our own error."""
    path, again = folder / "input", folder / "again.jsonl"

    def read(data: bytes) -> None:
        path.write_bytes(data)
        try:
            entries = read_entries(path, format)
        except SCGError:
            return
        assert entries
        assert len({entry.id for entry in entries}) == len(entries)
        again.write_text("".join(json.dumps(entry.to_dict()) + "\n" for entry in entries), encoding="utf-8")
        assert read_entries(again, "jsonl") == entries

    return read


def importer(folder: Path) -> Target:
    """An export is imported whole or not at all."""
    path, name = folder / "input", ("a",)
    store = Store.open(":memory:")

    def load(data: bytes) -> None:
        path.write_bytes(data)
        try:
            outcome = import_namespace(store, name, path)
        except SCGError:
            assert store.generation(name) == 0
            return
        assert len(store.load(name).entries) == len(set(outcome.ids))
        store.clear(name)

    return load


def grown(data: bytes) -> None:
    """A trie holds what a dictionary holds after the same insertions and deletions, and finds it by every prefix."""
    given = atheris.FuzzedDataProvider(data)
    trie, model = PrefixTrie(), {}
    while given.remaining_bytes():
        step = given.ConsumeIntInRange(0, 3)
        key = tuple(given.ConsumeIntInRange(0, 3) * 85 for _ in range(given.ConsumeIntInRange(1, 4)))
        if step < 2:
            assert trie.insert(key) == (key not in model)
            model.setdefault(key, True)
        elif step == 2:
            assert trie.delete(key) == model.pop(key, False)
        else:
            assert (key in trie) == (key in model)
    assert len(trie) == len(model)
    assert set(trie) == set(model)
    snapshot = trie.snapshot()
    for prefix in {key[:depth] for key in model for depth in range(len(key))}:
        node = snapshot.walk(prefix)
        assert node is not None
        longer = {key[len(prefix)] for key in model if key[: len(prefix)] == prefix and len(key) > len(prefix)}
        assert set(snapshot.allowed_tokens(node).tolist()) == longer


def target_of(name: str, folder: Path) -> Target:
    if name == "export":
        return importer(folder)
    if name == "trie":
        growth._SMALLEST_MERGED, growth._MERGED_PER_ROOT = 8, 1  # small tries are merged as large ones are
        return grown
    return reader(next(one for one in FORMATS if one == name), folder)


def fuzz(name: str, runs: int, folder: Path) -> None:
    """Fuzz one target; ends the process."""
    seeds, words = folder / "seeds", folder / "words"
    seeds.mkdir()
    for number, seed in enumerate(SEEDS):
        (seeds / str(number)).write_text(seed, encoding="utf-8")
    words.write_text("".join(f"{json.dumps(word)}\n" for word in WORDS), encoding="utf-8")
    options = [f"-runs={runs}", f"-dict={words}", "-max_len=4096", "-seed=1", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *options, str(seeds)], target_of(name, folder))
    atheris.Fuzz()


def main(runs: int) -> None:
    failed = False
    for name in (*FORMATS, "export", "trie"):
        with tempfile.TemporaryDirectory() as folder:
            program = [sys.executable, "-m", "tests.reliability.fuzz_loaders", str(runs), name, folder]
            ran = subprocess.run(program, capture_output=True, text=True, errors="replace", check=False)
        done = re.search(r"number_of_executed_units:\s*(\d+)", ran.stderr)
        wrong = ran.returncode != 0 or done is None
        failed |= wrong
        sys.stdout.write(f"{name}: {done[1] if done else 0} inputs, {'failed' if wrong else 'no failure'}\n")
        sys.stdout.write(ran.stdout[-4000:] + ran.stderr[-4000:] if wrong else "")
        sys.stdout.flush()
    sys.exit(failed)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        main(int(sys.argv[1]))
    else:
        fuzz(sys.argv[2], int(sys.argv[1]), Path(sys.argv[3]))
