"""Packages whose names are loaded when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_door(
    package: str, homes: Mapping[str, str], extras: Mapping[str, str] | None = None
) -> Callable[[str], object]:
    """The ``__getattr__`` of a package that loads a name's module when the name is first asked for.

    Args:
        package: The package.
        homes: The module of the package that each name stands in.
        extras: The extra of this distribution that brings each package which may be missing.

    Returns:
        A function that raises ``AttributeError`` for an unknown name, and ``ImportError``, saying what to install, for
        one whose package is missing.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            home: object = import_module(f"{package}.{homes[name]}")
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in (extras or {}):
                raise
            raise ImportError(
                f"{name} needs {missing}, which is not installed: pip install 'scg-mem[{(extras or {})[missing]}]'"
            ) from error
        return getattr(home, name)

    return load
