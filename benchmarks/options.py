"""What the programs' command lines have in common."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


positive.__name__ = "whole number"  # what argparse calls it in its errors


def existing_file(text: str) -> Path:
    """The path of a file that can be read, for argparse."""
    path = Path(text)
    if not path.is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text!r}")
    return path


def processor_name() -> str:
    """What the processor is called."""
    details = Path("/proc/cpuinfo")
    for line in details.read_text(encoding="utf-8").splitlines() if details.is_file() else []:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()
