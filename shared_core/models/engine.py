"""The in-process engine: any causal language model of Transformers behind the port."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike

from shared_core.errors import ModelError
from shared_core.models.port import PROMPT, FloatArray, IntArray
from shared_core.models.token_tree import (
    AttentionTree,
    Forward,
    KeyValues,
    PathBatch,
    TransformersTree,
    run_chain,
)

Mode: TypeAlias = Literal["tree", "paths", "recompute"]
"""How a token tree is run: tree attention; rows over a shared cache; rows that hold everything."""

_MODES: tuple[Mode, ...] = ("tree", "paths", "recompute")
_ROOT_PROMPTS_KEPT = 8
_MOST_THREADS = 8
# Largest difference of log-probabilities from a plain forward pass that a mode may show. A wrong mask or
# position is off by far more on any model with trained or random weights.
_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-6}
_LOW_PRECISION_TOLERANCE = 0.25


class TransformersModel:
    """A causal language model and its tokenizer, ready to read token trees.

    The model's own generation config is never consulted: it could remove valid tokens.
    Calls from several threads take turns.

    Args:
        model: A loaded ``AutoModelForCausalLM``.
        tokenizer: Its tokenizer.
        threads: Bound on torch's threads during a forward pass; ``None`` keeps torch's setting, which
            follows ``OMP_NUM_THREADS``, up to 8: small models gain nothing from more, and lose much beside other
            busy processes. The setting of the rest of the process is restored after each pass.
        mode: How trees are run; ``None`` tries tree attention on a short text and takes the fastest mode
            that agrees with a plain forward pass.

    Raises:
        ModelError: if no mode agrees with a plain forward pass of the model.
    """

    def __init__(self, model: Any, tokenizer: Any, *, threads: int | None = None, mode: Mode | None = None) -> None:
        if threads is not None and threads < 1:
            raise ModelError(f"threads must be at least 1, not {threads}")
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._threads = threads or min(torch.get_num_threads(), _MOST_THREADS)
        self._lock = threading.RLock()
        self._forward = Forward(model)
        self._prompts: OrderedDict[tuple[int, ...], tuple[KeyValues | None, torch.Tensor]] = OrderedDict()
        self.start = _start_tokens(tokenizer)
        self.ends = _end_tokens(model, tokenizer)
        self.window = int(getattr(model.config, "max_position_embeddings", 0) or 1 << 20)
        self.fingerprint = _fingerprint(model, tokenizer)
        self.mode: Mode = mode or self._choose_mode()

    def encode(self, text: str) -> list[int]:
        """See :meth:`LanguageModel.encode`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`LanguageModel.encode_batch`."""
        if not texts:
            return []
        # Fast tokenizers keep this setting in shared state and fail when borrowed by two threads.
        with self._lock:
            encoded = self._tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True)
        return [list(map(int, ids)) for ids in encoded["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """See :meth:`LanguageModel.decode`."""
        with self._lock:
            text = self._tokenizer.decode(
                list(map(int, tokens)), skip_special_tokens=False, clean_up_tokenization_spaces=False
            )
        return str(text)

    def tree(self, prompt: Sequence[int]) -> LockedTree:
        """See :meth:`LanguageModel.tree`."""
        key = tuple(map(int, prompt))
        if not key:
            raise ModelError("a token tree needs a root prompt of at least one token")
        with self._turn():
            return LockedTree(self, self._new_tree(key, self.mode))

    def forward_once(self, tokens: Sequence[int]) -> None:
        """One plain forward pass without any cache, as a yardstick for what a tree costs."""
        with self._turn():
            run_chain(self._forward, (), None, tokens)

    def _new_tree(self, prompt: tuple[int, ...], mode: Mode) -> TransformersTree:
        layers, logits = self._root(prompt, cached=mode != "recompute")
        if mode == "tree":
            return AttentionTree(self._forward, layers or [], len(prompt), logits)
        return PathBatch(self._forward, prompt, layers, logits)

    def _root(self, prompt: tuple[int, ...], *, cached: bool) -> tuple[KeyValues | None, torch.Tensor]:
        """State after a root prompt: kept for the last few, and grown from the longest kept one."""
        if not cached:
            return None, run_chain(self._forward, (), None, prompt)[0]
        if prompt not in self._prompts:
            past: tuple[int, ...] = ()
            layers: KeyValues | None = []
            for other, (other_layers, _) in self._prompts.items():
                if len(past) < len(other) < len(prompt) and prompt[: len(other)] == other:
                    past, layers = other, other_layers
            logits, grown = run_chain(self._forward, past, layers, prompt[len(past) :])
            self._prompts[prompt] = grown, logits
            if len(self._prompts) > _ROOT_PROMPTS_KEPT:
                self._prompts.popitem(last=False)
        self._prompts.move_to_end(prompt)
        return self._prompts[prompt]

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One caller at a time, with the bound on threads."""
        with self._lock:
            before = torch.get_num_threads()
            if self._threads != before:
                torch.set_num_threads(self._threads)
            try:
                yield
            except torch.OutOfMemoryError as error:
                raise ModelError(f"the model ran out of memory: lower the width or batch size ({error})") from error
            finally:
                if torch.get_num_threads() != before:
                    torch.set_num_threads(before)

    def _choose_mode(self) -> Mode:
        tolerance = _TOLERANCE.get(self._forward.dtype, _LOW_PRECISION_TOLERANCE)
        with self._turn():
            for mode in _MODES:
                try:
                    if self._disagreement(mode) <= tolerance:
                        return mode
                except (TypeError, ValueError, RuntimeError, AttributeError, KeyError, IndexError):
                    continue  # the architecture does not take such arguments
        raise ModelError(
            f"{type(self._model).__name__} cannot be used: its log-probabilities depend on how it is called"
        )

    def _disagreement(self, mode: Mode) -> float:
        """Largest difference of log-probabilities between a small tree and plain passes over its paths."""
        vocabulary = int(self._model.config.get_text_config().vocab_size)
        prompt = [*self.start, *np.random.default_rng(0).integers(3, vocabulary, size=9).tolist()]
        a, b, c, d = np.random.default_rng(1).integers(3, vocabulary, size=4).tolist()
        probes = np.arange(0, vocabulary, max(1, vocabulary // 64))
        self._prompts.clear()
        tree = self._new_tree(tuple(prompt), mode)
        chain = tree.read([a, b])
        nodes = tree.extend([c, d, a, b, c], [0, chain, -1, -3, chain])
        paths = [[c], [a, b, d], [c, a], [c, a, b], [a, b, c]]
        worst = 0.0
        for node, path in zip(nodes.tolist(), paths, strict=True):
            plain, _ = run_chain(self._forward, (), None, prompt + path)
            expected = (plain - plain.logsumexp(-1)).cpu().numpy()[probes]
            got = tree.logprobs(np.full(len(probes), node), probes)
            worst = max(worst, float(np.abs(got - expected).max()))
        self._prompts.clear()
        return worst if np.isfinite(worst) else float("inf")


class LockedTree:
    """A token tree whose forward passes wait for the model's turn."""

    def __init__(self, model: TransformersModel, tree: TransformersTree) -> None:
        self._model = model
        self._tree = tree

    def read(self, tokens: Sequence[int], parent: int = PROMPT) -> int:
        """See :meth:`TokenTree.read`."""
        return self.read_many([tokens], parent)[0]

    def read_many(self, chains: Sequence[Sequence[int]], parent: int = PROMPT) -> list[int]:
        """See :meth:`TokenTree.read_many`."""
        with self._model._turn():
            return self._tree.read_many(chains, parent)

    def extend(self, tokens: ArrayLike, parents: ArrayLike) -> IntArray:
        """See :meth:`TokenTree.extend`."""
        with self._model._turn():
            return self._tree.extend(tokens, parents)

    def logprobs(self, nodes: ArrayLike, tokens: ArrayLike) -> FloatArray:
        """See :meth:`TokenTree.logprobs`."""
        return self._tree.logprobs(nodes, tokens)

    def likeliest(self, nodes: ArrayLike) -> IntArray:
        """See :meth:`TokenTree.likeliest`."""
        return self._tree.likeliest(nodes)


def _start_tokens(tokenizer: Any) -> tuple[int, ...]:
    """What the tokenizer puts before a text on its own accord (BOS)."""
    whole = tokenizer("a")["input_ids"]
    plain = tokenizer("a", add_special_tokens=False)["input_ids"]
    for start in range(len(whole) - len(plain) + 1):
        if plain and whole[start : start + len(plain)] == plain:
            return tuple(map(int, whole[:start]))
    return ()


def _end_tokens(model: Any, tokenizer: Any) -> frozenset[int]:
    """Tokens that end a text. Of the generation config these alone are read: nothing else in it may interfere."""
    ends: set[int] = set()
    for holder in (tokenizer, model.config, getattr(model, "generation_config", None)):
        found = getattr(holder, "eos_token_id", None)
        ends.update([found] if isinstance(found, int) else found or [])
    return frozenset(map(int, ends))


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """A digest of configuration, precision, a sample of every weight, and the vocabulary (32 hex digits)."""
    digest = hashlib.sha256(json.dumps(model.config.to_dict(), sort_keys=True, default=str).encode())
    for name, weight in model.named_parameters():
        sample = weight.detach().flatten()[:64].float().cpu().numpy()
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype}".encode())
        digest.update(sample.tobytes())
    for token, number in sorted(tokenizer.get_vocab().items()):
        digest.update(f"{number} {token}\n".encode(errors="surrogatepass"))
    return digest.hexdigest()[:32]
