"""Addresses of models on servers: every part is read, and a key is never shown."""

from __future__ import annotations

import pytest

from shared_core.errors import ModelError
from shared_core.models import load_model
from shared_core.models.vllm import ServerAddress


@pytest.mark.parametrize(
    ("text", "base", "name"),
    [
        ("vllm+http://localhost:8000/tiny", "http://localhost:8000", "tiny"),
        (
            "vllm+https://models.example/HuggingFaceTB/SmolLM2-135M",
            "https://models.example",
            "HuggingFaceTB/SmolLM2-135M",
        ),
        ("vllm+http://[::1]:80/a%20model/", "http://[::1]:80", "a model"),
        ("vllm+http://10.0.0.7/m%3F", "http://10.0.0.7", "m?"),
    ],
)
def test_the_server_and_the_name(text, base, name, monkeypatch):
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    address = ServerAddress.parse(text)
    assert (address.base, address.name, address.key, address.tokenizer) == (base, name, None, None)


def test_the_options():
    address = ServerAddress.parse("vllm+http://host/m?tokenizer=%2Fa%20b&timeout=2.5")
    assert (address.tokenizer, address.timeout) == ("/a b", 2.5)


def test_the_key_of_the_address_comes_before_that_of_the_environment(monkeypatch):
    monkeypatch.setenv("VLLM_API_KEY", "general")
    assert ServerAddress.parse("vllm+http://host/m").key == "general"
    assert ServerAddress.parse("vllm+http://:spe%40cial@host:1/m").key == "spe@cial"
    shown = ServerAddress.parse("vllm+http://:spe%40cial@host:1/m")
    assert "cial" not in repr(shown) + str(shown) + shown.base


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("vllm+http://secret@host", "not complete"),
        ("vllm+http://:secret@/name", "not complete"),
        ("vllm+ftp://:secret@host/name", "not complete"),
        ("vllm+http://:secret@host/name#secret", "not complete"),
        ("vllm+http://:secret@host:port/name", "cannot be read"),
        ("vllm+http://:secret@[::1/name", "cannot be read"),
        ("vllm+http://:secret@host/name?model=x", "unknown options (model)"),
        ("vllm+http://:secret@host/name?timeout=soon", "timeout="),
        ("vllm+http://:secret@host/name?timeout=0", "timeout="),
        ("vllm+http://:secret@host/name?timeout=nan", "timeout="),
        ("vllm+http://:secr%C3%A9t@host/name", "no header"),
    ],
)
def test_what_is_no_address_says_how_to_write_one(text, said):
    with pytest.raises(ModelError) as refused:
        load_model(text)
    assert said in str(refused.value)
    assert "secr" not in str(refused.value)


@pytest.mark.parametrize("option", [{"device": "cpu"}, {"dtype": "bfloat16"}, {"threads": 1}])
def test_what_the_server_decides_cannot_be_asked_for(option):
    with pytest.raises(ModelError, match="the server's to choose"):
        load_model("vllm+http://localhost/tiny", **option)
