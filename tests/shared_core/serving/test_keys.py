"""The file of keys: what it holds, who may what, and that it changes while it is in use."""

import json
import stat
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.cli import main
from shared_core.errors import FormatError, InvalidInputError, NotFoundError
from shared_core.serving import Key, KeyFile

PARTS = st.lists(st.sampled_from(["a", "b", "a/b", "ä", ".."]), min_size=1, max_size=4).map(tuple)


@given(PARTS, PARTS)
def test_a_key_is_for_a_namespace_and_all_below_it(granted, asked):
    below = len(asked) >= len(granted) and all(one == other for one, other in zip(granted, asked, strict=False))
    assert Key("0" * 64, granted).allows(asked) == below


def test_the_file_keeps_no_key(tmp_path):
    file = KeyFile(tmp_path / "keys.json")
    secret, key = file.add(("users", "anna"))
    other, _ = file.add("users/anna")
    text = (tmp_path / "keys.json").read_text()
    assert secret not in text
    assert secret.removeprefix("scg_") not in text
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o600
    assert file.find(secret.encode()) == key
    assert KeyFile(tmp_path / "keys.json").find(other.encode()).namespace == ("users/anna",)
    assert file.find(key.digest.encode()) is None
    assert file.find(b"") is None
    assert [one.id for one in file.known()] == [body["id"] for body in json.loads(text)["keys"]]


def test_it_is_read_again_when_it_has_changed(tmp_path):
    used, changed = KeyFile(tmp_path / "keys.json"), KeyFile(tmp_path / "keys.json")
    first, key = changed.add("anna")
    assert used.find(first.encode())
    second, _ = changed.add("ben")
    assert used.find(second.encode())
    (tmp_path / "keys.json").chmod(0o640)
    changed.remove(key.id)
    assert used.find(first.encode()) is None
    assert used.find(second.encode())
    assert stat.S_IMODE((tmp_path / "keys.json").stat().st_mode) == 0o640  # as its owner wanted it
    with pytest.raises(NotFoundError, match=key.id):
        changed.remove(key.id)


def test_keys_that_are_added_at_once_are_all_there(tmp_path):
    secrets = []

    def add():
        secrets.extend(KeyFile(tmp_path / "keys.json").add("anna")[0] for _ in range(5))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    file = KeyFile(tmp_path / "keys.json")
    assert len(file.known()) == len(secrets) == 20
    assert all(file.find(secret.encode()) for secret in secrets)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 2, "keys": []}', '{"version": 1, "keys": [{}]}', '"x"'])
def test_what_is_no_file_of_keys_lets_nobody_in(tmp_path, text):
    file = KeyFile(tmp_path / "keys.json")
    with pytest.raises(NotFoundError, match="scg key add"):
        file.find(b"x")
    secret, _ = file.add("anna")
    (tmp_path / "keys.json").write_text(text)
    for _ in range(2):
        with pytest.raises(FormatError, match=r"keys\.json"):
            file.find(secret.encode())
    with pytest.raises(FormatError):
        file.add("ben")
    assert (tmp_path / "keys.json").read_text() == text
    with pytest.raises(InvalidInputError):
        file.add(())


def test_the_commands(tmp_path, capsys):
    def scg(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["key", *arguments, "--keys", str(tmp_path / "keys.json")])
        return stopped.value.code or 0, *capsys.readouterr()

    code, secret, told = scg("add", "--namespace", "users", "--namespace", "anna")
    assert (code, secret.count("\n")) == (0, 1)
    assert "'users' 'anna' and every namespace below" in told
    [key] = KeyFile(tmp_path / "keys.json").known()
    assert KeyFile(tmp_path / "keys.json").find(secret.strip().encode()) == key
    assert scg("list") == (0, f"{key.id}  'users' 'anna'\n", "")
    assert json.loads(scg("list", "--json")[1]) == [{"id": key.id, "namespace": ["users", "anna"]}]
    assert scg("remove", "nothing")[0] == 2
    assert scg("remove", key.id)[0] == 0
    assert scg("list") == (0, "", "")
