"""The commands that check, repair and back up a memory, without a model."""

import json
import sqlite3
from dataclasses import replace

from shared_core.store import Store


def test_a_sound_memory_is_said_to_be_sound(scg, stored):
    result = scg("check")
    assert (result.code, result.err) == (0, "")
    assert result.out == "Sound: 2 entries and 0 concepts in 2 namespaces.\n"
    body = json.loads(scg("check", "--json").out)
    assert body == {"namespaces": 2, "entries": 2, "concepts": 0, "faults": []}
    assert scg("repair").out == "Nothing was wrong.\n"


def test_a_fault_is_shown_and_mended(scg, stored):
    connection = sqlite3.connect(stored)
    with connection:
        connection.execute("UPDATE entries SET metadata = '{'")
    connection.close()
    result = scg("check")
    assert result.code == 1
    assert "entry: entry 0 cannot be read" in result.out
    assert "kettle" not in result.out
    assert "scg repair" in result.err
    result = scg("repair", "--json")
    body = json.loads(result.out)
    assert len([what for what in body["done"] if "metadata" in what]) == 2
    assert body["kept"] in result.err
    assert scg("check").code == 0


def test_everything_is_rebuilt_when_asked(scg, stored):
    result = scg("repair", "--rebuild")
    assert "distilled 2 entries anew" in result.out
    assert "2 entries wait for the model" in result.err
    with Store.open(stored) as store:
        assert "kettle" in [key for key, _ in store.load(("default",)).concepts]
    assert scg("repair", "--rebuild", "--into", "new.db").code == 2


def test_a_damaged_file_is_carried_over(scg, stored, folder):
    assert scg("repair", "--into", "new.db").out == "2 entries carried over to new.db.\n"
    assert json.loads(scg("check", "--memory", "new.db", "--json").out)["entries"] == 2
    assert scg("repair", "--into", "new.db").code == 2


def test_a_backup_is_a_memory(scg, stored, folder):
    result = scg("backup", "copy.db")
    assert result.out == f"2 entries backed up to {folder / 'copy.db'}.\n"
    assert json.loads(scg("backup", "copy.db", "--json").out)["entries"] == 2
    assert scg("check", "--memory", "copy.db").code == 0
    for command in (("check",), ("repair",), ("backup", "copy.db")):
        result = scg(*command, "--memory", "none.db")
        assert (result.code, result.out) == (2, "")


def test_a_memory_is_migrated_to_a_server_and_back(scg, stored, folder, postgres):
    url = postgres.url(postgres.database()).replace("scg@", "scg:secret@")
    result = scg("migrate", str(stored), url)
    assert (result.code, result.err) == (0, "")
    *namespaces, last = result.out.splitlines()
    assert [line.partition("  ")[2].startswith("1 entries, 2 rows, SHA-256 ") for line in namespaces] == [True, True]
    assert last.startswith("2 entries in 2 namespaces copied to postgresql")
    assert scg("check", "--memory", url).out == scg("check").out
    there = json.loads(scg("migrate", url, "back.db", "--json").out)
    assert [one["name"] for one in there] == [["default"], json.loads(scg("namespaces", "--json").out)[1]["namespace"]]
    assert scg("check", "--memory", "back.db").out == scg("check").out
    assert scg("backup", "copy.db", "--memory", url).code == 0
    assert json.loads(scg("namespaces", "--memory", "copy.db", "--json").out)[0]["entries"] == 1
    results = [result, scg("migrate", str(stored), url), scg("stats", "--memory", url, "--namespace", "nobody")]
    results += [scg("migrate", url, "back.db"), scg("repair", "--into", "new.db", "--memory", url)]
    results += [scg("check", "--memory", url.replace("/memory_", "/none_"))]
    assert [one.code for one in results] == [0, 2, 2, 2, 2, 1]
    assert all("secret" not in one.out + one.err for one in results)


def test_where_bytes_that_were_forgotten_may_be_is_said(scg, memory, stored, postgres):
    url = postgres.url(postgres.database())
    assert scg("migrate", str(stored), url).code == 0
    memory.erased = replace(memory.erased, wiped=False)
    assert "files of the server" in scg("forget", "--id", "t:1", "--yes", "--memory", url).err
