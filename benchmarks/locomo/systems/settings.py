"""Variations of the memory by name, such as ``scg:calibration=0`` or ``scg-paper:width=20,hops=2``."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import get_args, get_type_hints

from shared_core import SCGConfig
from shared_core.errors import InvalidInputError

_BASES = {"scg": SCGConfig, "scg-paper": SCGConfig.paper}

ABLATIONS = (
    "scg",
    "scg:calibration=0",
    "scg:lookahead=off",
    "scg:mentions=on",
    "scg:lexical_weight=0",
    "scg:generation_weight=0",
    "scg:anticipation_weight=0",
    "scg:passage_weight=0,session_weight=0,answer_weight=0,speaker_weight=0",
    "scg:passage_weight=0",
    "scg:session_weight=0",
    "scg:answer_weight=0",
    "scg:speaker_weight=0",
    "scg:assimilate=0",
    "scg:hops=1",
    "scg:hops=2",
    "scg:score=schema",
    "scg:width=10",
    "scg:width=50",
    "scg:accommodation=spans,new_concepts=4",
    "scg:accommodation=spans,new_concepts=8",
)
"""The default, and each of its parts switched off or replaced."""

# Everything else may change what is written. A setting that is added to the configuration is taken for one of these
# until it is named here.
_RECALL_ONLY = frozenset(
    {
        *("k", "width", "method", "generation_weight", "generation_temperature", "mentions", "mention_weight"),
        *("lexical_weight", "anticipation_weight", "passage_weight", "passage_radius", "answer_weight"),
        *("session_weight", "speaker_weight"),
        *("hops", "fan_out", "temperature", "sample_context", "context_weight", "concept_budget"),
        *("answer_tokens", "seed"),
    }
)
# Of those that may change what is written: what phrases as accommodation never look at, and what is left to matter
# when the model infers nothing either.
_MODEL_MADE = frozenset({"gate", "perplexity_threshold", "new_concepts", "grounded"})
_WITHOUT_MODEL = frozenset({"accommodation", "assimilate"})
_DECODING = ("width", "method", "score", "calibration", "lookahead")

_TRUTHS = {"on": True, "true": True, "yes": True, "1": True, "off": False, "false": False, "no": False, "0": False}


def is_memory(name: str) -> bool:
    """Whether a system's name is that of a memory of this project."""
    return name.partition(":")[0] in _BASES


def parse_config(name: str) -> SCGConfig:
    """The configuration that a name stands for.

    Raises:
        InvalidInputError: if a setting is unknown, or its value unusable.
    """
    base, colon, text = name.partition(":")
    changes: dict[str, object] = {}
    for part in text.split(",") if colon else ():
        setting, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise InvalidInputError(f"{name!r}: expected setting=value, found {part!r}: scg:hops=2,width=30")
        if setting in changes:
            raise InvalidInputError(f"{name!r}: the setting {setting!r} is there twice")
        changes[setting] = _value(name, setting, value)
    return _BASES[base]().replace(**changes)


def named_k(name: str) -> int | None:
    """The setting ``k``, if a memory's name has it."""
    settings = [part.partition("=")[0].strip() for part in name.partition(":")[2].split(",")]
    return parse_config(name).k if "k" in settings else None


def _value(name: str, setting: str, text: str) -> object:
    hints = get_type_hints(SCGConfig)
    settings = [field.name for field in fields(SCGConfig)]
    if setting not in settings:
        raise InvalidInputError(f"{name!r}: there is no setting {setting!r}; there are: {', '.join(settings)}")
    hint = hints[setting]
    if get_args(hint):  # one of several words
        return text
    try:
        return _TRUTHS[text.lower()] if hint is bool else hint(text)
    except (KeyError, ValueError):
        kind = {bool: "on or off", int: "a whole number", float: "a number"}[hint]
        raise InvalidInputError(f"{name!r}: {setting} must be {kind}, not {text!r}") from None


def write_settings(config: SCGConfig) -> dict[str, object]:
    """Those settings on which a written memory depends, at the values that matter."""
    settings = {name: value for name, value in asdict(config).items() if name not in _RECALL_ONLY}
    if config.accommodation == "phrases":
        unused = _MODEL_MADE if config.assimilate else settings.keys() - _WITHOUT_MODEL
        settings = {name: value for name, value in settings.items() if name not in unused}
    return settings


def decode_settings(config: SCGConfig) -> dict[str, object]:
    """Those settings on which the decoded seeds of a query depend, beside the memory."""
    drawn = {"seed": config.seed} if config.method == "sample" else {}
    return {name: getattr(config, name) for name in _DECODING} | drawn
