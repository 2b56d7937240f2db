"""Forgotten means gone from every file a memory owns: the database, its log, its index, exports and backups made after.

Each forgotten string is looked for byte by byte, in UTF-8 and in UTF-16, while the memory is still open.
"""

import logging
import random
import string
from pathlib import Path

import pytest

from shared_core import MemoryEntry
from shared_core.store import Store

FORGOTTEN = 200


def word(chance, length=14):
    return "".join(chance.choices(string.ascii_lowercase, k=length))


@pytest.fixture
def secrets():
    """Strings that occur in one entry each, one in every field an entry has."""
    chance = random.Random(7)
    fields = ("text", "speaker", "session", "caption", "metadata", "id")
    found = []
    for number in range(FORGOTTEN):
        kind = fields[number % len(fields)]
        secret = word(chance)
        values = {"text": f"The kettle {word(chance)} on stove {number}", "id": f"e{number}"}
        values[kind] = f"my {secret} whistles" if kind == "text" else secret
        if kind == "metadata":
            values[kind] = {"note": [secret, {secret: 1}]}
        found.append((secret, MemoryEntry(**values)))
    return found


def files_under(*folders):
    return [file for folder in folders for file in Path(folder).rglob("*") if file.is_file()]


def traces(secrets, files):
    """The forgotten strings that are found, and where."""
    content = {file: file.read_bytes() for file in files}
    return [
        (secret, file.name)
        for secret in secrets
        for encoding in ("utf-8", "utf-16-le")
        for file, held in content.items()
        if secret.encode(encoding) in held
    ]


@pytest.mark.parametrize("model", [False, True], ids=["without the model", "with the model"])
def test_no_byte_of_200_forgotten_strings_is_left_in_any_file(
    open_memory, tmp_path, secrets, monkeypatch, caplog, capfd, model
):
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    for folder in (cache, temporary):
        folder.mkdir()
    monkeypatch.setenv("SCG_CACHE", str(cache))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("SQLITE_TMPDIR", str(temporary))
    caplog.set_level(logging.DEBUG)
    kept = [MemoryEntry(f"The walnut cake number {number} was good", f"k{number}") for number in range(50)]
    chosen = secrets[:FORGOTTEN]
    with open_memory("memory.db") as memory:
        for start in range(0, FORGOTTEN, 50):
            memory.remember([entry for _, entry in chosen[start : start + 50]], use_model=False)
            memory.remember(kept[start // 4 : start // 4 + 13], use_model=model)
        if model:
            memory.recall("Which kettle whistles?")
        words = [secret for secret, _ in chosen]
        assert {secret for secret, _ in traces(words, files_under(tmp_path))} == set(words)
        receipts = [
            memory.forget(ids=[entry.id for _, entry in chosen[:80]]),
            memory.forget(session=[entry.session for _, entry in chosen[80:] if entry.session]),
            memory.forget(speaker=[entry.speaker for _, entry in chosen[80:] if entry.speaker]),
        ]
        receipts.append(memory.forget(ids=[entry.id for _, entry in chosen]))
        # The receipts name all that went, and nothing of what it said.
        assert sorted(id for one in receipts for id in one.ids) == sorted(entry.id for _, entry in chosen)
        assert sum(one.entries for one in receipts) == FORGOTTEN
        assert all(one.wiped and one.namespace == ("default",) for one in receipts)
        assert [one.generation for one in receipts] == sorted({one.generation for one in receipts})
        text = repr([(one.entries, one.concepts, one.links, one.namespace) for one in receipts])
        assert not any(secret in text for secret in words)
        memory.export(tmp_path / "after.jsonl")
        memory.store.back_up(tmp_path / "after.db")
        assert traces(words, files_under(tmp_path)) == []
        assert not any(secret in text for secret in words for text in (caplog.text, *capfd.readouterr()))
        assert len(memory.entries) == len(kept)
        assert not any(secret in key for secret in words for key in memory.schema.keys)
    assert traces(words, files_under(tmp_path)) == []


def test_an_update_leaves_nothing_of_what_it_replaced(tmp_path, open_memory, secrets):
    with open_memory("memory.db") as memory:
        memory.remember([entry.with_id(f"e{n}") for n, (_, entry) in enumerate(secrets)], use_model=False)
        memory.remember([MemoryEntry("Something else", f"e{n}") for n in range(len(secrets))], use_model=False)
        assert traces([secret for secret, _ in secrets], files_under(tmp_path)) == []


def test_a_clear_leaves_nothing_of_the_namespace_nor_of_its_name(tmp_path, open_memory, secrets):
    with open_memory("memory.db", namespace=("a", secrets[0][0] * 2)) as memory:
        memory.remember([entry for _, entry in secrets], use_model=False)
        receipt = memory.clear()
        assert (receipt.entries, receipt.wiped, len(receipt.ids)) == (FORGOTTEN, True, FORGOTTEN)
        assert traces([secret for secret, _ in secrets], files_under(tmp_path)) == []


def test_another_who_has_the_file_open_keeps_no_byte_in_it(tmp_path, secrets, open_memory):
    with open_memory("memory.db") as memory, Store.open(tmp_path / "memory.db") as other:
        memory.remember([entry for _, entry in secrets], use_model=False)
        assert len(other.load(("default",)).entries) == FORGOTTEN
        assert memory.clear().wiped
        assert traces([secret for secret, _ in secrets], files_under(tmp_path)) == []
        assert other.load(("default",)).entries == []
