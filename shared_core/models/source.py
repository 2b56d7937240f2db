"""Whether a model that is named can be meant as a file or a folder, looked at before anything slow happens."""

from __future__ import annotations

from pathlib import Path

from shared_core.errors import ModelError

# No hub id begins so.
_OF_PATHS = ("/", ".", "~", "\\")


def check_source(source: str | Path) -> None:
    """Refuse a path at which there is nothing; what may be a hub id is let through.

    Raises:
        ModelError: if it is one.
    """
    path = Path(source).expanduser()
    if path.exists():
        return
    if path.suffix == ".gguf":
        raise ModelError(f"there is no model file {path}: check the path")
    if isinstance(source, Path) or source.startswith(_OF_PATHS):
        raise ModelError(f"there is no model folder {path}: check the path, or pass a hub id such as 'org/name'")
