"""The package's door: what it exports, what it loads for it, and what it says where a package is missing."""

import pytest

import scg_langchain
from tests.conftest import run_program

# What needs a package, the package, and the extra that brings it. What all need stands first: once it was loaded,
# nobody could act as if it were missing.
NEEDS = [
    ("SCGRetriever", "langchain_core", "langchain"),
    ("SCGMemory", "langchain_classic", "langchain-classic"),
    ("SCGStore", "langgraph", "langgraph"),
    ("SCGMemoryMiddleware", "langchain", "langgraph"),
]


def test_everything_named_is_there():
    assert [getattr(scg_langchain, name).__name__ for name in scg_langchain.__all__] == scg_langchain.__all__
    assert scg_langchain.__all__ == sorted(scg_langchain.__all__)
    with pytest.raises(AttributeError, match="no attribute 'SCGNothing'"):
        scg_langchain.SCGNothing  # noqa: B018


def test_the_core_of_langchain_is_enough_for_most():
    before, after = run_program(
        "import scg_langchain, sys\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "from scg_langchain import SCGChatMessageHistory, SCGRetriever, SCGVectorStore\n"
        "from scg_langchain import create_memory_tools, recall_model\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert "langchain_core" not in before.split()
    assert "langchain_core" in after.split()
    optional = {"langchain", "langchain_classic", "langgraph", "langchain_huggingface", "llama_index", "torch"}
    assert not optional & set(after.split())


def test_a_missing_package_is_named_with_its_extra():
    said = run_program(
        "import sys, scg_langchain\n"
        f"for name, package, _ in {NEEDS}:\n"
        "    sys.modules[package] = None\n"
        "    try:\n"
        "        getattr(scg_langchain, name)\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
        "    del sys.modules[package]\n"
    )
    assert said == [
        f"{name} needs {package}, which is not installed: pip install 'scg-mem[{extra}]'"
        for name, package, extra in NEEDS
    ]
