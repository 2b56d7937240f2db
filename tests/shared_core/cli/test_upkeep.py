"""The commands that check, repair and back up a memory, without a model."""

import json
import sqlite3

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
    assert len(body["done"]) == 2
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
