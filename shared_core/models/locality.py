"""How far the layers of a model look back, as far as its configuration tells."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias

Windows: TypeAlias = "dict[str, int | None] | int | None"

_FULL, _SLIDING = "full_attention", "sliding_attention"
# Settings of attention that sees less than everything before it, under whatever name.
_LOCAL = re.compile(r"window|attention_types|attention_chunk|local_attention|block_size")
_SLIDING_SETTINGS = {"sliding_window", "use_sliding_window"}
# These say which layers slide, which ``layer_types`` says too.
_LAYER_SETTINGS = {"max_window_layers", "_sliding_window_pattern", "sliding_window_pattern"}


@dataclass(frozen=True, slots=True)
class Locality:
    """What a mask must hide beside what comes later.

    Attributes:
        windows: Positions that each layer sees, its own included: for all layers alike, or per kind of layer;
            ``None`` for all positions.
        understood: False when a layer may be local in some other way. A short probe would not show it.
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
        explained = set(_SLIDING_SETTINGS)
        if kinds or window is None:
            explained |= _LAYER_SETTINGS
        others = {name for name, value in vars(text).items() if value and _LOCAL.search(name)} - explained
        understood = kinds <= {_FULL, _SLIDING} and not others
        if len(kinds) > 1:
            return cls({kind: window if kind == _SLIDING else None for kind in kinds}, understood)
        return cls(None if kinds == {_FULL} else window, understood)
