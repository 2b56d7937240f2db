"""The package's door: what it exports, and what it loads for it."""

import subprocess
import sys
from pathlib import Path

import pytest

import scg_langchain

ROOT = Path(__file__).parents[2]


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)


def test_everything_named_is_there():
    assert all(getattr(scg_langchain, name) is not None for name in scg_langchain.__all__)
    assert scg_langchain.__all__ == sorted(scg_langchain.__all__)
    with pytest.raises(AttributeError, match="no attribute 'SCGNothing'"):
        scg_langchain.SCGNothing  # noqa: B018


def test_the_core_of_langchain_is_enough_for_most():
    optional = {"langchain", "langchain_classic", "langgraph", "langchain_huggingface", "torch"}
    program = f"""
import sys
from scg_langchain import SCGChatMessageHistory, SCGRetriever, SCGVectorStore, recall_model
print({optional} & {{name.partition(".")[0] for name in sys.modules}})
"""
    assert run(program).stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("missing", "name", "extra"),
    [("langchain_classic", "SCGMemory", "langchain-classic"), ("langchain_core", "SCGRetriever", "langchain")],
)
def test_a_missing_package_is_named_with_its_extra(missing, name, extra):
    program = f"import sys; sys.modules[{missing!r}] = None\nfrom scg_langchain import {name}"
    ran = run(program)
    assert ran.returncode
    assert f"ImportError: {name} needs {missing}, which is not installed: pip install 'scg-mem[{extra}]'" in ran.stderr
