"""Which way of running token trees a model supports: tried out on a short text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shared_core.errors import ModelError
from shared_core.models.branch_attention import install, uninstall
from shared_core.models.locality import shortened_windows
from shared_core.models.token_tree import MODES, Forward, Mode, run_chain, start_tree

# Largest difference of log-probabilities from a plain forward pass that a mode may show. A wrong mask or
# position is off by far more on any model with trained or random weights.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
_LOW_PRECISION_TOLERANCE = 0.25
_PROMPT = 9
# Shorter than the prompt, so that it hides something.
_WINDOW = 6
_TOKENS_COMPARED = 64


def choose_mode(model: Any, start: Sequence[int], *, branches: bool) -> Mode:
    """The fastest mode that agrees with plain forward passes.

    Takes some four passes of a dozen tokens. Sliding windows are shortened meanwhile. Other kinds of local attention
    would not show in a short text: such models are never run by tree attention.

    Args:
        model: The model.
        start: Tokens that each of its prompts begins with.
        branches: Whether the model may be told to use another attention function.

    Raises:
        ModelError: if no mode does.
    """
    with shortened_windows(model, _WINDOW):
        forward = Forward(model)
        tolerance = _TOLERANCE.get(forward.dtype, _LOW_PRECISION_TOLERANCE)
        probe = _Probe(forward, start)
        for mode in MODES:
            if mode == "branches" and not (branches and forward.locality.windows is None and install(model)):
                continue
            if mode in ("branches", "tree") and not forward.locality.understood:
                continue
            try:
                if probe.disagreement(mode) <= tolerance:
                    return mode
            except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError):
                pass  # the architecture does not take such arguments
            if mode == "branches":
                uninstall(model)
    raise ModelError(f"{type(model).__name__} cannot be used: its log-probabilities depend on how it is called")


class _Probe:
    """A small token tree, and what plain passes over its paths give."""

    def __init__(self, forward: Forward, start: Sequence[int]) -> None:
        self._forward = forward
        random = np.random.default_rng(0)
        self._prompt = (*start, *map(int, random.integers(3, forward.vocabulary, size=_PROMPT)))
        self._tokens = a, b, c, d = tuple(map(int, random.integers(3, forward.vocabulary, size=4)))
        self._compared = np.arange(0, forward.vocabulary, max(1, forward.vocabulary // _TOKENS_COMPARED))
        left, right, middle = self._plain([[a, b, d], [a, b, c], [c, a, b]])
        self._expected = np.stack([middle[0], left[2], middle[1], middle[2], right[2]])

    def disagreement(self, mode: Mode) -> float:
        """Largest difference of log-probabilities from the plain passes."""
        a, b, c, d = self._tokens
        cached = mode != "recompute"
        logits, layers = run_chain(self._forward, (), [] if cached else None, self._prompt)
        tree = start_tree(self._forward, mode, self._prompt, layers, logits)
        chain = tree.read([a, b])
        nodes = tree.extend([c, d, a, b, c], [0, chain, -1, -3, chain])  # two branches, of different sizes
        count = len(self._compared)
        got = tree.logprobs(np.repeat(nodes, count), np.tile(self._compared, len(nodes)))
        worst = float(np.abs(got.reshape(len(nodes), count) - self._expected).max())
        return worst if np.isfinite(worst) else float("inf")

    def _plain(self, paths: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Log-probabilities after each token of each path below the prompt, shape (paths, tokens, compared)."""
        rows = torch.tensor([[*self._prompt, *path] for path in paths], device=self._forward.device)
        length = rows.shape[1]
        logits = self._forward(
            rows,
            mask=torch.ones_like(rows),
            positions=torch.arange(length, device=rows.device).expand(len(paths), -1),
            cache=None,
            keep=torch.arange(len(self._prompt), length, device=rows.device),
        )
        expected: NDArray[np.float32] = torch.log_softmax(logits, dim=-1).cpu().numpy()[:, :, self._compared]
        return expected
