"""The language-model port and its engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared_core.models.model_thread import on_model_thread
from shared_core.models.port import PROMPT, LanguageModel, ModelSource, TokenTree
from shared_core.models.source import check_source

if TYPE_CHECKING:
    from shared_core.models.engine import TransformersModel
    from shared_core.models.loading import cache_folder, load_model

__all__ = [
    "PROMPT",
    "LanguageModel",
    "ModelSource",
    "TokenTree",
    "TransformersModel",
    "cache_folder",
    "check_source",
    "load_model",
    "on_model_thread",
]

_HOMES = {"TransformersModel": "engine", "cache_folder": "loading", "load_model": "loading"}


def __getattr__(name: str) -> object:
    # Engines are loaded when asked for: torch and Transformers take seconds, and storing needs neither.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home: object = import_module(f"{__name__}.{_HOMES[name]}")
    return getattr(home, name)
