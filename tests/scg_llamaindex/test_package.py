"""The package's door: what it exports, what it loads for it, and what it says where LlamaIndex is missing."""

import pytest

import scg_llamaindex
from tests.conftest import run_program


def test_everything_named_is_there():
    assert [getattr(scg_llamaindex, name).__name__ for name in scg_llamaindex.__all__] == scg_llamaindex.__all__
    assert scg_llamaindex.__all__ == sorted(scg_llamaindex.__all__)
    with pytest.raises(AttributeError, match="no attribute 'SCGNothing'"):
        scg_llamaindex.SCGNothing  # noqa: B018


def test_llamaindex_is_loaded_when_asked_for_and_named_where_it_is_missing():
    said, before, after = run_program(
        "import sys, scg_llamaindex\n"
        "sys.modules['llama_index'] = None\n"
        "try:\n"
        "    scg_llamaindex.SCGRetriever\n"
        "except ImportError as error:\n"
        "    print(error)\n"
        "del sys.modules['llama_index']\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
        "from scg_llamaindex import SCGIndex, SCGRetriever\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    assert said == "SCGRetriever needs llama_index, which is not installed: pip install 'scg-mem[llamaindex]'"
    assert "llama_index" not in before.split()
    assert "llama_index" in after.split()
    assert not {"langchain_core", "torch"} & set(after.split())
