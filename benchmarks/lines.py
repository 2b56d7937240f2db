"""JSON Lines that grow while a program runs, and survive that it is killed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a file, none if there is no file; lines that were torn are passed over."""
    if not path.is_file():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            fields = json.loads(line)
        except ValueError:  # empty, or written when the program was killed, perhaps in the middle of a character
            continue
        if isinstance(fields, dict):
            yield fields


def append_line(path: Path, fields: Mapping[str, object]) -> None:
    """Add an object, on a line of its own even after one that was torn."""
    with path.open("ab+") as file:
        torn = file.seek(0, os.SEEK_END) > 0
        if torn:
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
        file.write(b"\n" * torn + json.dumps(fields).encode() + b"\n")


def replace_lines(path: Path, objects: Iterable[Mapping[str, object]]) -> None:
    """Write a file anew, whole or not at all."""
    replace_text(path, "".join(json.dumps(fields) + "\n" for fields in objects))


def replace_text(path: Path, text: str) -> None:
    """Write a file anew, whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
