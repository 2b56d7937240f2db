"""How far the layers of a model look back, as far as its configuration tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

Windows: TypeAlias = "dict[str, int | None] | int | None"

_FULL, _SLIDING = "full_attention", "sliding_attention"
# Settings of attention that sees less than all that came before, under whatever name; and those that are understood.
_LOCAL = re.compile(r"window|attention_types|attention_chunk|local_attention|block_size")
_UNDERSTOOD = {
    "sliding_window",
    "use_sliding_window",
    "max_window_layers",
    "sliding_window_pattern",
    "_sliding_window_pattern",
}


@dataclass(frozen=True, slots=True)
class Locality:
    """What a mask must hide besides what comes later.

    Attributes:
        windows: Positions that a layer sees, its own included: for all layers alike, or per kind of layer;
            ``None`` for all positions.
        understood: False when a layer may be local in some other way, which a short text would not show.
    """

    windows: Windows
    understood: bool

    @classmethod
    def of(cls, config: Any) -> Locality:
        """The locality of the text layers of a Transformers configuration."""
        text = config.get_text_config(decoder=True)
        window = getattr(text, "sliding_window", None)
        if not getattr(text, "use_sliding_window", True):
            window = None
        kinds = set(getattr(text, "layer_types", None) or ())
        local = {name for name, value in vars(text).items() if value and _LOCAL.search(name)}
        understood = kinds <= {_FULL, _SLIDING} and local <= _UNDERSTOOD
        if len(kinds) > 1:
            return cls({kind: window if kind == _SLIDING else None for kind in kinds}, understood)
        return cls(None if kinds == {_FULL} else window, understood)


@contextmanager
def shortened_windows(model: Any, size: int) -> Iterator[None]:
    """Let the sliding layers of a model see ``size`` positions only, so that a short text shows how they are masked."""
    found: list[Any] = [getattr(module, "config", None) for module in model.modules()]
    configs = {id(config): config for config in found if getattr(config, "sliding_window", None)}
    before = [(config, config.sliding_window) for config in configs.values()]
    try:
        for config, _ in before:
            config.sliding_window = size
        yield
    finally:
        for config, window in before:
            config.sliding_window = window
