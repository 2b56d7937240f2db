"""The in-process engine: any causal language model of Transformers behind the port."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from numpy.typing import ArrayLike

from shared_core.errors import ModelError
from shared_core.models.model_thread import on_model_thread
from shared_core.models.packed import pack_linear_layers
from shared_core.models.port import PROMPT, FloatArray, IntArray
from shared_core.models.probe import choose_mode
from shared_core.models.token_tree import Forward, KeyValues, Mode, TransformersTree, run_chain, start_tree
from shared_core.models.tokenizing import TextTokens, end_tokens, vocabulary_lines

_T = TypeVar("_T")

_ROOT_PROMPTS_KEPT = 8
_MOST_THREADS = 8
_SET_BY_SAVING = ("architectures", "dtype", "torch_dtype", "transformers_version")
_WEIGHTS_SAMPLED = 64


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
        mode: How trees are run; ``None`` takes the fastest mode that agrees with plain forward passes over a
            short text.
        optimize: Lay the weights of linear layers out for the processor, and let attention keep to the branches of a
            token tree, where that is possible. The results are the same but for rounding. The given model is changed
            by it, and serves inference only from then on.

    Raises:
        ModelError: if no mode agrees with a plain forward pass of the model.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        threads: int | None = None,
        mode: Mode | None = None,
        optimize: bool = False,
    ) -> None:
        if threads is not None and threads < 1:
            raise ModelError(f"threads must be at least 1, not {threads}")
        self._model = model.eval()
        self._tokenizer = tokenizer
        self._threads = threads or min(torch.get_num_threads(), _MOST_THREADS)
        self._text = TextTokens(tokenizer)
        self._forward = Forward(model)
        self._prompts: OrderedDict[tuple[int, ...], tuple[KeyValues | None, torch.Tensor]] = OrderedDict()
        self.start = self._text.start
        self.ends = end_tokens(tokenizer, model.config, getattr(model, "generation_config", None))
        self.window = _window(model.config.get_text_config(decoder=True))
        self.fingerprint = self._run(lambda: _fingerprint(model, tokenizer))
        self.mode: Mode = self._run(lambda: self._prepare(mode, optimize=optimize))

    def _prepare(self, mode: Mode | None, *, optimize: bool) -> Mode:
        if optimize:
            pack_linear_layers(self._model)
        return mode or choose_mode(self._model, self.start, branches=optimize)

    @property
    def network(self) -> Any:
        """The Transformers model that it runs, to watch it with hooks; to be run through this engine alone."""
        return self._model

    def encode(self, text: str) -> list[int]:
        """See :meth:`LanguageModel.encode`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`LanguageModel.encode_batch`."""
        return self._text.encode_batch(texts)

    def decode(self, tokens: Sequence[int]) -> str:
        """See :meth:`LanguageModel.decode`."""
        return self._text.decode(tokens)

    def tree(self, prompt: Sequence[int]) -> ModelTree:
        """See :meth:`LanguageModel.tree`."""
        key = tuple(map(int, prompt))
        if not key:
            raise ModelError("a token tree needs a root prompt of at least one token")
        return self._run(lambda: ModelTree(self, start_tree(self._forward, self.mode, key, *self._root(key))))

    def forward_once(self, tokens: Sequence[int]) -> None:
        """One plain forward pass without any cache, as a yardstick for what a tree costs."""
        self._run(lambda: run_chain(self._forward, (), None, tokens))

    def _root(self, prompt: tuple[int, ...]) -> tuple[KeyValues | None, torch.Tensor]:
        """State after a root prompt: kept for the last few, and grown from the longest kept one."""
        if self.mode == "recompute":
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

    def _run(self, call: Callable[[], _T]) -> _T:
        """A call on the thread of the models, with the bound on torch's threads."""
        return on_model_thread(lambda: self._bounded(call))

    def _bounded(self, call: Callable[[], _T]) -> _T:
        before = torch.get_num_threads()
        if self._threads != before:
            torch.set_num_threads(self._threads)
        try:
            return call()
        except torch.OutOfMemoryError as error:
            raise ModelError(f"the model ran out of memory: lower the width or batch size ({error})") from error
        finally:
            if torch.get_num_threads() != before:
                torch.set_num_threads(before)


class ModelTree:
    """A token tree whose computations run on the thread of the models."""

    def __init__(self, model: TransformersModel, tree: TransformersTree) -> None:
        self._model = model
        self._tree = tree

    def read(self, tokens: Sequence[int], parent: int = PROMPT) -> int:
        """See :meth:`TokenTree.read`."""
        return self.read_many([tokens], parent)[0]

    def read_many(self, chains: Sequence[Sequence[int]], parent: int = PROMPT) -> list[int]:
        """See :meth:`TokenTree.read_many`."""
        return self._model._run(lambda: self._tree.read_many(chains, parent))

    def extend(self, tokens: ArrayLike, parents: ArrayLike) -> IntArray:
        """See :meth:`TokenTree.extend`."""
        return self._model._run(lambda: self._tree.extend(tokens, parents))

    def logprobs(self, nodes: ArrayLike, tokens: ArrayLike) -> FloatArray:
        """See :meth:`TokenTree.logprobs`."""
        return self._model._run(lambda: self._tree.logprobs(nodes, tokens))

    def likeliest(self, nodes: ArrayLike, count: int = 1) -> tuple[IntArray, FloatArray]:
        """See :meth:`TokenTree.likeliest`."""
        return self._model._run(lambda: self._tree.likeliest(nodes, count))


def _window(config: Any) -> int:
    """Tokens that the model can read; without a bound in its configuration more than anyone has memory for."""
    found = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
    return next((int(length) for length in found if length), 1 << 20)


def _fingerprint(model: Any, tokenizer: Any) -> str:
    """A digest of configuration, precision, weights, and the vocabulary (32 hex digits)."""
    # Without where the model lies and what saving writes down: a copy elsewhere is the same model.
    settings = {
        name: value
        for name, value in model.config.to_dict().items()
        if not name.endswith("name_or_path") and name not in _SET_BY_SAVING
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode())
    for name, weight in model.named_parameters():
        digest.update(f"{name} {tuple(weight.shape)} {weight.dtype} {_checksum(weight.detach())}".encode())
        digest.update(weight.detach().flatten()[:_WEIGHTS_SAMPLED].float().cpu().numpy().tobytes())
    for line in vocabulary_lines(tokenizer):
        digest.update(line)
    return digest.hexdigest()[:32]


def _checksum(weight: torch.Tensor) -> int:
    """The sum of a weight's bits as 64-bit numbers: the same with any number of threads, and takes no time."""
    content = weight.contiguous().flatten().view(torch.uint8)
    if content.storage_offset() % 8:
        content = content.clone()
    whole = len(content) // 8 * 8
    return int(content[:whole].view(torch.int64).sum()) + int(content[whole:].sum())
