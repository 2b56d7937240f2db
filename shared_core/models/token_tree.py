"""Token trees over a Transformers model: tree attention, and a fallback by batches of whole paths."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from transformers import DynamicCache

from shared_core.models.branch_attention import BranchPlan, following
from shared_core.models.locality import Locality
from shared_core.models.port import PROMPT, FloatArray, IntArray

Mode: TypeAlias = Literal["branches", "tree", "paths", "recompute"]
"""How a token tree is run: tree attention branch by branch; masked tree attention; rows over a shared cache; rows
that hold everything."""

MODES: tuple[Mode, ...] = ("branches", "tree", "paths", "recompute")
"""Fastest first."""

# Long chains are read in pieces, since the mask of a piece has (piece × everything read) elements.
_PIECE = 512
# Rows of the fallback are run in batches of this many, each with a copy of the prompt's cache.
_ROWS = 64

KeyValues: TypeAlias = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of each layer, each of shape (1, heads, positions, head size)."""


class Forward:
    """A model's forward call, whatever its version names the arguments.

    Calls without gradients, and asks for the logits of chosen positions only where the model can do that.
    """

    def __init__(self, model: Any) -> None:
        parameters = inspect.signature(model.forward).parameters
        self._model = model
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self._keeps = "logits_to_keep" in parameters
        self._positions = "position_ids" in parameters
        self.device = model.device
        self.dtype = model.dtype
        self.vocabulary = int(model.config.get_text_config(decoder=True).vocab_size)
        self.locality = Locality.of(model.config)

    def __call__(
        self,
        tokens: torch.Tensor,
        *,
        mask: torch.Tensor | Mapping[str, torch.Tensor] | None,
        positions: torch.Tensor | None,
        cache: DynamicCache | None,
        keep: torch.Tensor,
    ) -> torch.Tensor:
        """Logits at the positions ``keep`` of every row, shape (rows, len(keep), vocabulary), float32."""
        arguments: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": mask,
            "use_cache": cache is not None,
        }
        if cache is not None:
            arguments[self._cache_argument] = cache
        if positions is not None and self._positions:
            arguments["position_ids"] = positions
        if self._keeps:
            arguments["logits_to_keep"] = keep
        with torch.inference_mode():
            logits: torch.Tensor = self._model(**arguments).logits
            return (logits if self._keeps else logits[:, keep]).float()


class LogitTable:
    """Logits of scored nodes: those of chain ends for good, those of the latest extension until the next."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._first = 0
        self._latest: tuple[torch.Tensor, torch.Tensor] | None = None

    def keep(self, node: int, logits: torch.Tensor) -> None:
        """Keep one node's logits, shape (vocabulary,)."""
        self._kept[node] = (logits[None], torch.logsumexp(logits[None], dim=-1))

    def set_latest(self, first: int, logits: torch.Tensor) -> None:
        """Logits of the nodes ``first``, ``first + 1``, …, shape (n, vocabulary)."""
        self._first, self._latest = first, (logits, torch.logsumexp(logits, dim=-1))

    def logprobs(self, nodes: NDArray[np.int64], tokens: NDArray[np.int64]) -> FloatArray:
        """See :meth:`TokenTree.logprobs`."""
        result = np.empty(len(nodes), dtype=np.float32)
        for chosen, scored, rows in self._rows(nodes):
            result[chosen] = _gather(scored, rows, tokens[chosen])
        return result

    def likeliest(self, nodes: NDArray[np.int64], count: int) -> tuple[IntArray, FloatArray]:
        """See :meth:`TokenTree.likeliest`."""
        tokens: list[IntArray] = [np.empty((0, count), dtype=np.int32)] * len(nodes)
        scores: list[FloatArray] = [np.empty((0, count), dtype=np.float32)] * len(nodes)
        for chosen, (logits, normaliser), rows in self._rows(nodes):
            at = torch.from_numpy(rows).to(logits.device)
            best = logits[at].topk(min(count, logits.shape[-1]), dim=-1)
            found = best.indices.int().cpu().numpy(), (best.values - normaliser[at, None]).cpu().numpy()
            for row, place in enumerate(np.flatnonzero(chosen).tolist()):
                tokens[place], scores[place] = (values[row : row + 1] for values in found)
        if not tokens:
            return np.empty((0, count), dtype=np.int32), np.empty((0, count), dtype=np.float32)
        return np.concatenate(tokens), np.concatenate(scores)

    def _rows(
        self, nodes: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.bool_], tuple[torch.Tensor, torch.Tensor], NDArray[np.int64]]]:
        """The nodes table by table: which of them, the table's logits and normalisers, and their rows in it."""
        kept = np.isin(nodes, np.fromiter(self._kept, dtype=np.int64, count=len(self._kept)))
        for node in np.unique(nodes[kept]):
            chosen = nodes == node
            yield chosen, self._kept[int(node)], np.zeros(int(chosen.sum()), dtype=np.int64)
        if not kept.all():
            rows = nodes[~kept] - self._first
            if self._latest is None or rows.min() < 0 or rows.max() >= len(self._latest[0]):
                raise LookupError("log-probabilities are kept for chain ends and the latest extension only")
            yield ~kept, self._latest, rows


def _gather(
    scored: tuple[torch.Tensor, torch.Tensor], rows: NDArray[np.int64], tokens: NDArray[np.int64]
) -> FloatArray:
    logits, normaliser = scored
    at_rows = torch.from_numpy(np.ascontiguousarray(rows)).to(logits.device)
    at_tokens = torch.from_numpy(np.ascontiguousarray(tokens)).to(logits.device)
    values: FloatArray = (logits[at_rows, at_tokens] - normaliser[at_rows]).cpu().numpy()
    return values


class TransformersTree(ABC):
    """What both kinds of tree share: numbering of nodes, argument checks, logits."""

    def __init__(self, forward: Forward) -> None:
        self._forward = forward
        self._logits = LogitTable()
        self._count = 1  # the prompt

    def read(self, tokens: Sequence[int], parent: int = PROMPT) -> int:
        """See :meth:`TokenTree.read`."""
        return self.read_many([tokens], parent)[0]

    def read_many(self, chains: Sequence[Sequence[int]], parent: int = PROMPT) -> list[int]:
        """See :meth:`TokenTree.read_many`."""
        if not all(map(len, chains)):
            raise ValueError("a chain needs at least one token")
        return self._read(chains, parent) if chains else []

    def extend(self, tokens: ArrayLike, parents: ArrayLike) -> IntArray:
        """See :meth:`TokenTree.extend`."""
        new = np.asarray(tokens, dtype=np.int64)
        above = np.asarray(parents, dtype=np.int64)
        nodes = np.arange(self._count, self._count + len(new))
        above = np.where(above < 0, self._count - 1 - above, above)
        if len(new) == 0:
            return nodes.astype(np.int32)
        if (above >= nodes).any():
            raise ValueError("a token's parent must come before it")
        self._logits.set_latest(self._count, self._append(new, above, np.arange(len(new))))
        return nodes.astype(np.int32)

    def logprobs(self, nodes: ArrayLike, tokens: ArrayLike) -> FloatArray:
        """See :meth:`TokenTree.logprobs`."""
        return self._logits.logprobs(np.asarray(nodes, dtype=np.int64), np.asarray(tokens, dtype=np.int64))

    def likeliest(self, nodes: ArrayLike, count: int = 1) -> tuple[IntArray, FloatArray]:
        """See :meth:`TokenTree.likeliest`."""
        return self._logits.likeliest(np.asarray(nodes, dtype=np.int64), count)

    @abstractmethod
    def _append(self, tokens: NDArray[np.int64], parents: NDArray[np.int64], keep: NDArray[np.int64]) -> torch.Tensor:
        """Add nodes; return the logits of the new nodes ``keep``, shape (len(keep), vocabulary)."""

    @abstractmethod
    def _read(self, chains: Sequence[Sequence[int]], parent: int) -> list[int]: ...


class AttentionTree(TransformersTree):
    """The whole tree in one cache of batch size 1, where each token sees its ancestors only.

    A 4-D mask sees to that, or attention that keeps to the branches below the root prompt.
    Column ``P + i - 1`` of the cache holds node ``i``, where ``P`` is the length of the root prompt.
    """

    def __init__(
        self, forward: Forward, layers: KeyValues, prompt_length: int, logits: torch.Tensor, *, branches: bool
    ) -> None:
        super().__init__(forward)
        self._branches = branches
        self._cache = fork_cache(layers)
        self._prompt_length = prompt_length
        # _sees[i, j]: node i attends to node j (itself or an ancestor).
        self._sees = np.zeros((64, 64), dtype=bool)
        self._position = np.full(64, prompt_length - 1, dtype=np.int64)
        # The child of the root prompt above each node, or itself.
        self._branch = np.full(64, PROMPT, dtype=np.int64)
        self._logits.keep(PROMPT, logits)

    def _read(self, chains: Sequence[Sequence[int]], parent: int) -> list[int]:
        tokens = np.fromiter((token for chain in chains for token in chain), dtype=np.int64)
        lengths = np.fromiter(map(len, chains), dtype=np.int64, count=len(chains))
        last = np.cumsum(lengths) - 1
        first = self._count
        self._reserve(first + len(tokens))
        for start, stop in zip((last - lengths + 1 + first).tolist(), (last + 1 + first).tolist(), strict=True):
            chain = slice(start, stop)
            self._sees[chain] = self._sees[parent]
            self._sees[chain, chain] = np.tri(stop - start, dtype=bool)
            self._position[chain] = self._position[parent] + np.arange(1, stop - start + 1)
            self._branch[chain] = start if parent == PROMPT else self._branch[parent]
        for start in range(0, len(tokens), _PIECE):
            inside = np.flatnonzero((last >= start) & (last < start + _PIECE))
            logits = self._run(tokens[start : start + _PIECE], last[inside] - start)
            for row, chain_number in enumerate(inside.tolist()):
                self._logits.keep(first + int(last[chain_number]), logits[row])
        return [int(node) for node in last + first]

    def _append(self, tokens: NDArray[np.int64], parents: NDArray[np.int64], keep: NDArray[np.int64]) -> torch.Tensor:
        first = self._count
        self._reserve(first + len(tokens))
        placed = np.zeros(first + len(tokens), dtype=bool)
        placed[:first] = True
        waiting = np.arange(first, first + len(tokens))
        while len(waiting):  # level by level: a node is placed after the one it hangs from
            ready = placed[parents[waiting - first]]
            level = waiting[ready]
            above = parents[level - first]
            self._sees[level] = self._sees[above]
            self._sees[level, level] = True
            self._position[level] = self._position[above] + 1
            self._branch[level] = np.where(above == PROMPT, level, self._branch[above])
            placed[level] = True
            waiting = waiting[~ready]
        return self._run(tokens, keep)

    def _run(self, tokens: NDArray[np.int64], keep: NDArray[np.int64]) -> torch.Tensor:
        """Run the next nodes, which are in place already, through the model; logits as :meth:`_append`."""
        first, count = self._count, self._count + len(tokens)
        self._count = count
        device = self._forward.device
        with self._attention(first, count) as mask:
            logits = self._forward(
                torch.from_numpy(tokens)[None].to(device),
                mask=mask,
                positions=torch.from_numpy(self._position[first:count])[None].to(device),
                cache=self._cache,
                keep=torch.from_numpy(keep).to(device),
            )
        return logits[0]

    @contextmanager
    def _attention(self, first: int, count: int) -> Iterator[torch.Tensor | dict[str, torch.Tensor]]:
        """What keeps the new nodes to their ancestors: a plan for the time of the pass, or the mask."""
        visible = np.ones((count - first, self._prompt_length + count - 1), dtype=bool)
        visible[:, self._prompt_length :] = self._sees[first:count, 1:count]
        if not self._branches:
            yield self._mask(visible, first)
            return
        columns = np.concatenate([np.full(self._prompt_length, -1), self._branch[1:count]])
        dtype, device = self._forward.dtype, self._forward.device
        with following(BranchPlan.build(self._branch[first:count], columns, visible, dtype, device)):
            # Stands for a mask, so that Transformers makes none of its own.
            yield torch.zeros((1, 1, 1, 1), dtype=dtype, device=device)

    def _reserve(self, count: int) -> None:
        size = len(self._position)
        if count <= size:
            return
        size = max(count, 2 * size)
        sees = np.zeros((size, size), dtype=bool)
        sees[: self._count, : self._count] = self._sees[: self._count, : self._count]
        position = np.empty(size, dtype=np.int64)
        position[: self._count] = self._position[: self._count]
        self._sees, self._position = sees, position
        self._branch = np.concatenate([self._branch, np.full(size - len(self._branch), PROMPT)])

    def _mask(self, visible: NDArray[np.bool_], first: int) -> torch.Tensor | dict[str, torch.Tensor]:
        windows = self._forward.locality.windows
        if isinstance(windows, dict):
            return {kind: self._additive(visible, window, first) for kind, window in windows.items()}
        return self._additive(visible, windows, first)

    def _additive(self, visible: NDArray[np.bool_], window: int | None, first: int) -> torch.Tensor:
        if window is not None and visible.shape[1] > window:
            columns = np.concatenate([np.arange(self._prompt_length), self._position[1 : self._count]])
            distance = self._position[first : self._count, None] - columns[None]
            visible = visible & (distance < window)
        mask = torch.zeros(visible.shape, dtype=self._forward.dtype)
        mask.masked_fill_(torch.from_numpy(~visible), torch.finfo(self._forward.dtype).min)
        return mask[None, None].to(self._forward.device)


class PathBatch(TransformersTree):
    """The fallback: every new node is a row that runs the whole path from the last chain end.

    For architectures that take no 4-D mask or no explicit positions (ALiBi). Rows are padded on the right,
    where causal attention cannot see the padding. With ``layers`` as ``None`` nothing is cached and each row
    holds the prompt as well, which any causal model can run.
    """

    def __init__(self, forward: Forward, prompt: Sequence[int], layers: KeyValues | None, logits: torch.Tensor) -> None:
        super().__init__(forward)
        self._parent: list[int] = [PROMPT]
        self._token: list[int] = [-1]
        # Chain ends: tokens of their whole path, and its cache.
        self._trunks: dict[int, tuple[list[int], KeyValues | None]] = {PROMPT: (list(prompt), layers)}
        self._logits.keep(PROMPT, logits)

    def _read(self, chains: Sequence[Sequence[int]], parent: int) -> list[int]:
        ends = []
        for chain in chains:
            trunk, path = self._path(parent)
            tokens, layers = self._trunks[trunk]
            rest = [*path, *map(int, chain)]
            logits, grown = run_chain(self._forward, tokens, layers, rest)
            self._parent.extend([parent, *range(self._count, self._count + len(chain) - 1)])
            self._token.extend(map(int, chain))
            self._count += len(chain)
            end = self._count - 1
            self._trunks[end] = (tokens + rest, grown)
            self._logits.keep(end, logits)
            ends.append(end)
        return ends

    def _path(self, node: int) -> tuple[int, list[int]]:
        """The nearest chain end above ``node`` (or itself), and the tokens from there to ``node``."""
        tokens: list[int] = []
        while node not in self._trunks:
            tokens.append(self._token[node])
            node = self._parent[node]
        return node, tokens[::-1]

    def _append(self, tokens: NDArray[np.int64], parents: NDArray[np.int64], keep: NDArray[np.int64]) -> torch.Tensor:
        first = self._count
        self._parent.extend(parents.tolist())
        self._token.extend(tokens.tolist())
        self._count += len(tokens)
        rows: dict[int, list[tuple[int, list[int]]]] = {}
        for node in range(first, self._count):
            trunk, path = self._path(node)
            rows.setdefault(trunk, []).append((node, path))
        logits: dict[int, torch.Tensor] = {}
        for trunk, members in rows.items():
            for start in range(0, len(members), _ROWS):
                batch = members[start : start + _ROWS]
                scored = self._run_rows(trunk, [path for _, path in batch])
                logits.update({node: scored[row] for row, (node, _) in enumerate(batch)})
        return torch.stack([logits[first + int(index)] for index in keep])

    def _run_rows(self, trunk: int, paths: list[list[int]]) -> torch.Tensor:
        """Logits after each path, shape (paths, vocabulary)."""
        tokens, layers = self._trunks[trunk]
        past = len(tokens) if layers is not None else 0
        prefix = [] if layers is not None else tokens
        length = len(prefix) + max(map(len, paths))
        ids = torch.zeros((len(paths), length), dtype=torch.long)
        mask = torch.zeros((len(paths), past + length), dtype=torch.long)
        for row, path in enumerate(paths):
            ids[row, : len(prefix) + len(path)] = torch.tensor(prefix + path)
            mask[row, : past + len(prefix) + len(path)] = 1
        cache = None
        if layers is not None:
            expand = (len(paths), -1, -1, -1)
            cache = fork_cache([(keys.expand(expand), values.expand(expand)) for keys, values in layers])
        ends = torch.tensor([len(prefix) + len(path) - 1 for path in paths])
        keep, row_of = torch.unique(ends, return_inverse=True)
        device = self._forward.device
        logits = self._forward(
            ids.to(device),
            mask=mask.to(device),
            positions=(torch.arange(length)[None] + past).to(device).expand(len(paths), -1),
            cache=cache,
            keep=keep.to(device),
        )
        return logits[torch.arange(len(paths)), row_of]


def start_tree(
    forward: Forward, mode: Mode, prompt: Sequence[int], layers: KeyValues | None, logits: torch.Tensor
) -> TransformersTree:
    """A tree that holds its root prompt only.

    Args:
        forward: The model.
        mode: How the tree is run.
        prompt: The root prompt.
        layers: Its cache, as from :func:`run_chain`; ``None`` in the mode ``recompute``.
        logits: Logits after it, shape (vocabulary,).
    """
    if mode in ("branches", "tree"):
        return AttentionTree(forward, layers or [], len(prompt), logits, branches=mode == "branches")
    return PathBatch(forward, prompt, layers, logits)


def fork_cache(layers: KeyValues) -> DynamicCache:
    """A cache that starts with the given layers; they are shared, not copied, and never written to.

    Built without the model's config on purpose: with it, sliding-window layers would drop the oldest
    positions, which shorter branches of the tree still see. The mask applies the window instead.
    """
    return DynamicCache(layers) if layers else DynamicCache()


def run_chain(
    forward: Forward, past: Sequence[int], layers: KeyValues | None, tokens: Sequence[int]
) -> tuple[torch.Tensor, KeyValues | None]:
    """Read ``tokens`` after ``past`` by plain causal attention.

    Args:
        forward: The model.
        past: Tokens already read.
        layers: Their cache; ``None`` for models without a usable one, which then read ``past`` again.
        tokens: What to read, non-empty.

    Returns:
        Logits after the last token, shape (vocabulary,), and the grown cache.
    """
    ids = list(tokens) if layers is not None else [*past, *tokens]
    before = len(past) if layers is not None else 0
    device = forward.device
    cache = None if layers is None else fork_cache(layers)
    logits = forward(
        torch.tensor([ids], device=device),
        mask=torch.ones((1, before + len(ids)), dtype=torch.long, device=device),
        positions=torch.arange(before, before + len(ids), device=device)[None],
        cache=cache,
        keep=torch.tensor([len(ids) - 1], device=device),
    )
    return logits[0, 0], None if cache is None else _layers(cache)


def _layers(cache: Any) -> KeyValues:
    return [(layer.keys, layer.values) for layer in cache.layers]
