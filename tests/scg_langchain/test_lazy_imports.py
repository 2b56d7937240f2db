"""What is not used is not loaded, and what is missing is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import scg_langchain

ROOT = Path(__file__).parents[2]


def run(program):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout


def test_the_tools_need_langchain_core_alone():
    loaded = run(
        "import scg_langchain, sys\n"
        "assert 'langchain_core' not in sys.modules\n"
        "from scg_langchain import create_memory_tools\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert "langchain_core" in loaded
    assert not {"langchain", "langchain_classic", "langgraph", "llama_index"} & set(loaded.split())


@pytest.mark.parametrize(("name", "missing"), [("SCGStore", "langgraph"), ("SCGMemoryMiddleware", "langchain")])
def test_what_an_extra_lacks_is_said(name, missing):
    said = run(
        f"import sys\nsys.modules[{missing!r}] = None\n"
        f"try:\n    from scg_langchain import {name}\nexcept ImportError as error:\n    print(error)"
    )
    assert "scg-mem[langgraph]'" in said


def test_every_name_is_there():
    for name in scg_langchain.__all__:
        assert getattr(scg_langchain, name).__name__ == name
    with pytest.raises(AttributeError, match="nobody"):
        scg_langchain.nobody  # noqa: B018
