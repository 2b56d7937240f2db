"""What the README shows is run, and the commands it names exist."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared_core.models import ModelSource, TransformersModel

ROOT = Path(__file__).parents[1]
PAGES = ["README.md"]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE_CODE = re.compile(r"`([^`\n]+)`")
_MAKE = re.compile(r"\bmake ([a-z][a-z-]*)")


def _fences(page: str) -> Iterator[tuple[str, int, str]]:
    """Language, number of the first line, and code of every fenced block."""
    for match in _FENCE.finditer(page):
        yield match[1], page.count("\n", 0, match.start(2)), match[2]


def _named_targets(page: str) -> set[str]:
    code = [block for language, _, block in _fences(page) if language != "python"]
    code += _INLINE_CODE.findall(_FENCE.sub("", page))
    return {target for piece in code for target in _MAKE.findall(piece)}


def _makefile_targets() -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _only(embedded: TransformersModel) -> Callable[[ModelSource], TransformersModel]:
    """Gives the embedded model where no other is named."""

    def load(source: ModelSource) -> TransformersModel:
        assert source is None
        return embedded

    return load


@pytest.mark.parametrize("name", PAGES)
def test_python_blocks_run_and_print_what_is_shown(
    name: str,
    tmp_path: Path,
    embedded: TransformersModel,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("shared_core.models.load_model", _only(embedded), raising=False)  # loaded already
    page = (ROOT / name).read_text(encoding="utf-8")
    fences = list(_fences(page))
    assert any(language == "python" for language, _, _ in fences), f"{name} shows no Python"
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "readme"}
    for (language, line, code), (following, _, shown) in zip(fences, [*fences[1:], ("", 0, "")], strict=True):
        if language != "python":
            continue
        # The blank lines make a traceback point at the line of the page.
        exec(compile("\n" * line + code, str(ROOT / name), "exec"), namespace)
        printed = capsys.readouterr().out
        assert printed == (shown if following == "text" and printed else "")


@pytest.mark.parametrize("name", PAGES)
def test_named_make_targets_exist(name: str) -> None:
    named = _named_targets((ROOT / name).read_text(encoding="utf-8"))
    assert {"demo", "test"} <= named
    assert named <= _makefile_targets()
