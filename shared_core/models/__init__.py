"""The language-model port and its engines."""

from shared_core.models.engine import TransformersModel
from shared_core.models.loading import ModelSource, cache_folder, load_model
from shared_core.models.port import PROMPT, LanguageModel, TokenTree

__all__ = [
    "PROMPT",
    "LanguageModel",
    "ModelSource",
    "TokenTree",
    "TransformersModel",
    "cache_folder",
    "load_model",
]
