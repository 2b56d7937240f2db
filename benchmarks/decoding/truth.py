"""Exhaustive scoring: every key alone, the truth that a search is measured by."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.decoding.subject import Subject
from shared_core.models import PROMPT, LanguageModel
from shared_core.schema import Tokens

Floats: TypeAlias = NDArray[np.float64]

# Keys scored in one forward pass.
_TOGETHER = 64


def true_scores(
    subject: Subject, prompt: Sequence[int], keys: Sequence[Tokens], folder: Path, progress: Callable[[int], None]
) -> Floats:
    """``log P_θ`` of each key and the terminator after a prompt, shape (keys,); kept on disk.

    Args:
        subject: The model.
        prompt: The prompt's tokens.
        keys: Tokens of each key.
        folder: Where they are kept.
        progress: Told the number of keys done.
    """
    digest = hashlib.sha256(f"{subject.engine.fingerprint} {subject.terminator} {list(prompt)}".encode())
    for tokens in keys:
        digest.update(np.array([*tokens, -1], dtype=np.int32).tobytes())
    file = folder / f"truth-{digest.hexdigest()[:32]}.npz"
    if file.is_file():
        with np.load(file) as stored:
            scores: Floats = stored["scores"]
        progress(len(keys))
        return scores
    scores = np.empty(len(keys))
    order = sorted(range(len(keys)), key=keys.__getitem__)  # neighbours share their beginnings
    for start in range(0, len(order), _TOGETHER):
        group = order[start : start + _TOGETHER]
        scores[group] = _score(subject.engine, prompt, [keys[at] for at in group], subject.terminator)
        progress(len(group))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(file, scores=scores)
    return scores


def _score(model: LanguageModel, prompt: Sequence[int], keys: Sequence[Tokens], terminator: int) -> Floats:
    """Scores of a few keys by one forward pass over all their prefixes, shape (keys,)."""
    tree = model.tree(prompt)
    rows: dict[Tokens, int] = {}
    tokens: list[int] = []
    parents: list[int] = []
    for key in keys:
        for depth in range(1, len(key) + 1):
            prefix = key[:depth]
            if prefix not in rows:
                parents.append(PROMPT if depth == 1 else -1 - rows[prefix[:-1]])
                rows[prefix] = len(tokens)
                tokens.append(prefix[-1])
    nodes = tree.extend(tokens, parents).astype(np.int64)
    above = np.array(parents)
    step = tree.logprobs(np.where(above < 0, nodes[-1 - np.minimum(above, -1)], PROMPT), tokens).astype(np.float64)
    total = np.empty(len(tokens))
    for row, parent in enumerate(parents):  # parents come first
        total[row] = step[row] + (total[-1 - parent] if parent < 0 else 0.0)
    ends = np.array([rows[key] for key in keys])
    last: Floats = total[ends] + tree.logprobs(nodes[ends], np.full(len(keys), terminator))
    return last


def recall(found: Sequence[int], scores: Floats, width: int) -> float:
    """Share of the ``width`` best keys among those found."""
    best = np.argsort(-scores, kind="stable")[:width]
    return len(set(best.tolist()) & set(found)) / len(best)


def score_gap(found: Sequence[int], scores: Floats) -> float | None:
    """Mean, over the ranks that a system filled, of the best key's true score less that of the key found there."""
    if not found:
        return None
    mine = -np.sort(-scores[list(found)])
    best = -np.sort(-scores)[: len(mine)]
    return float(np.mean(best - mine))
