"""Every cookbook runs from the root of the project, offline, and gives what it promises and shows.

A cookbook's promises are assertions: each section has some. Its stored outputs, if it has any, are what comes out. All
run in one kernel, one after another, each with no variable of those before: what they import and the embedded model
are loaded once.
"""

import os
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import TypeAlias

import nbformat
import pytest
from jupyter_client import KernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

ROOT = Path(__file__).parents[1]
COOKBOOKS = sorted((ROOT / "cookbooks").glob("*.ipynb"))

_ASSERTION = re.compile(r"^\s*assert\b", re.MULTILINE)
_ADDRESS_OR_PATH = re.compile(r"0x[0-9a-f]{6,}|/(?:home|root|tmp|work|Users)/")


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


_SHARE_THE_MODEL = """
from functools import cache
from shared_core import models
models.load_model = cache(models.load_model)
"""

Run: TypeAlias = Callable[[NotebookNode], NotebookNode]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Executes a copy of a notebook."""
    changes = {
        "PYTHONPATH": str(ROOT),
        "IPYTHONDIR": str(tmp_path_factory.mktemp("ipython")),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(cwd=str(ROOT), env={**os.environ, **changes})

    def execute(notebook: NotebookNode) -> NotebookNode:
        executed = deepcopy(notebook)
        NotebookClient(executed, timeout=300, km=kernel).execute()
        return executed

    def execute_alone(notebook: NotebookNode) -> NotebookNode:
        execute(new_notebook(cells=[new_code_cell("%reset -f")]))
        return execute(notebook)

    execute(new_notebook(cells=[new_code_cell(_SHARE_THE_MODEL)]))
    yield execute_alone
    kernel.shutdown_kernel(now=True)


def shown(cell: NotebookNode) -> str:
    """What a code cell prints and returns; not what is said on the side, such as warnings of the machine."""
    parts = []
    for output in cell.outputs:
        if output.output_type == "stream" and output.name == "stdout":
            parts.append(output.text)
        elif output.output_type in ("execute_result", "display_data"):
            parts.append(output.data.get("text/plain", ""))
    return "".join(parts).strip()


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def differences(notebook: NotebookNode, executed: NotebookNode) -> list[tuple[str, str]]:
    """Stored and fresh output where they differ; none where all outputs were cleared."""
    stored, fresh = (list(map(shown, code_cells(one))) for one in (notebook, executed))
    if not any(stored):
        return []
    return [pair for pair in zip(stored, fresh, strict=True) if pair[0] != pair[1]]


def sections(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """Heading and code of each section that has code."""
    heading, code = "", ""
    for cell in [*notebook.cells, new_markdown_cell("## End")]:
        if cell.cell_type == "code":
            code += f"{cell.source}\n"
        elif cell.source.startswith("## "):
            if heading and code:
                yield heading, code
            heading, code = cell.source.partition("\n")[0], ""


def test_there_are_cookbooks():
    assert COOKBOOKS


@pytest.mark.parametrize("path", COOKBOOKS, ids=lambda path: path.name)
def test_a_cookbook_gives_what_it_promises_and_shows(path, run):
    notebook = read(path)
    assert differences(notebook, run(notebook)) == []


@pytest.mark.parametrize("path", COOKBOOKS, ids=lambda path: path.name)
def test_each_section_of_a_cookbook_promises_something(path):
    found = dict(sections(read(path)))
    assert found
    assert [heading for heading, code in found.items() if not _ASSERTION.search(code)] == []


@pytest.mark.parametrize("path", COOKBOOKS, ids=lambda path: path.name)
def test_stored_outputs_are_whole_and_of_no_one_machine(path):
    notebook = read(path)
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]
    assert not [shown(cell) for cell in code_cells(notebook) if _ADDRESS_OR_PATH.search(shown(cell))]


def test_a_promise_that_is_not_kept_is_found(run):
    with pytest.raises(CellExecutionError, match="AssertionError"):
        run(new_notebook(cells=[new_code_cell("assert 1 + 1 == 3")]))


def test_no_cookbook_knows_a_variable_of_another(run):
    run(new_notebook(cells=[new_code_cell("import sys\nmemory = 1")]))
    for name in ("sys", "memory"):
        with pytest.raises(CellExecutionError, match="NameError"):
            run(new_notebook(cells=[new_code_cell(name)]))


def test_an_output_that_is_not_shown_is_found():
    def printing(*texts):
        outputs = [new_output("stream", name="stdout", text=text) for text in texts]
        outputs.append(new_output("stream", name="stderr", text=str(len(texts))))
        return new_notebook(cells=[new_code_cell("", outputs=outputs)])

    assert differences(printing("a\n", "b\n"), printing("a\nb\n")) == []
    assert differences(printing("a\n"), printing("b\n")) == [("a", "b")]
    assert differences(printing(), printing("b\n")) == []
