"""Linear layers laid out for the processor.

A search reads a few dozen tokens at a time, and for so few a plain matrix product spends most of its time on arranging
the weights. oneDNN can arrange them once. On two cores with AVX-512 a layer takes half the time for 10 to 50 tokens,
and as long as before from about 64 on; the numbers differ by rounding only.
"""

from __future__ import annotations

from typing import Any

import torch

# Largest difference of logits that rounding explains, relative to the largest of them.
_TOLERANCE = 1e-4
_TRIED = 20


class PackedLinear(torch.nn.Module):
    """A linear layer whose weights are kept in oneDNN's own layout only; for inference on the CPU in float32."""

    def __init__(self, layer: torch.nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = layer.in_features, layer.out_features
        self._packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), None)
        bias: torch.Tensor | None = layer.bias
        self._bias = None if bias is None else bias.detach()

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """As ``torch.nn.Linear``: (..., in_features) to (..., out_features)."""
        outputs: torch.Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self._packed, self._bias, "none", [], "")
        return outputs


def pack_linear_layers(model: Any) -> bool:
    """Replace every plain linear layer of a causal language model; it then serves inference only.

    Returns:
        Whether it was done. The model is left as it was where its layers are on another device or in another precision,
        where this build of torch lacks the operation, or where the logits for a short text do not stay the same.
    """
    places = [
        (parent, name, layer)
        for parent in model.modules()
        for name, layer in parent._modules.items()
        if type(layer) is torch.nn.Linear
    ]
    if not places or not all(_fits(layer) for _, _, layer in places):
        return False
    expected = _logits(model)
    try:
        packed = {layer: PackedLinear(layer) for _, _, layer in places}  # a layer may be used in several places
        for parent, name, layer in places:
            setattr(parent, name, packed[layer])
        same = bool((_logits(model) - expected).abs().max() <= _TOLERANCE * expected.abs().max())
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        same = False  # no such operation, or a model that looks at the weights of its layers itself
    if not same:
        for parent, name, layer in places:
            setattr(parent, name, layer)
    return same


def _fits(layer: torch.nn.Linear) -> bool:
    return layer.weight.device.type == "cpu" and layer.weight.dtype == torch.float32


def _logits(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        logits: torch.Tensor = model(input_ids=torch.arange(1, _TRIED + 1)[None], use_cache=False).logits
        return logits
