"""The engine: a causal language model on a vLLM server behind the port."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shared_core.errors import ModelError
from shared_core.models.tokenizing import TextTokens, end_tokens, vocabulary_lines
from shared_core.models.vllm.planning import Request, plan
from shared_core.models.vllm.server import IN_FLIGHT, ModelCard, Server
from shared_core.models.vllm.tree import PromptTree
from shared_core.models.vllm.turns import Turns

# Held against the server's own tokens: letters, digits, runs of spaces, line ends, other writing, marks.
_SAMPLES = (" the quick brown fox", "Text: 1,250 apples\nKeywords: fruit,  harvest", " naïve Ünsinn 中文 مرحبا 😀!?…")


class VLLMModel:
    """A language model that a vLLM server runs, and its tokenizer, which runs here.

    Log-probabilities are the server's raw ones, over the whole vocabulary, without temperature or penalties. Prompts
    are sent as token ids, so that text is data here as well, and nothing is added to them. Safe for threads, whose
    requests the server runs together.

    The fingerprint is a digest of what the server says of the model (name, what it was loaded from, the model under an
    adapter), of its version and settings (``system_fingerprint``: precision, quantisation and more), and of the
    vocabulary. It cannot know the weights: other weights under the same name, in the same place, with the same settings
    look the same. Give them another ``--served-model-name``, or say ``--fingerprint-mode custom --fingerprint-value …``
    when you start the server. Custom values serve the other way round as well: without them, a new version of vLLM is
    another model, whose log-probabilities are computed anew.

    Args:
        server: The way to the model.
        card: What the server says of it.
        tokenizer: Its tokenizer, of Transformers.
        configurations: Of the model and of its generation, where they are known: what ends a text, and the vocabulary.

    Raises:
        ModelError: if the server cannot do what is needed, or the tokenizer is not the model's.
    """

    def __init__(self, server: Server, card: ModelCard, tokenizer: Any, configurations: Sequence[Any] = ()) -> None:
        self._server = server
        self._text = TextTokens(tokenizer)
        self.start = self._text.start
        self.ends = end_tokens(tokenizer, *configurations)
        # A prompt leaves room for the token that the server generates after it.
        self.window = card.length - 1
        sizes = (getattr(one, "vocab_size", None) for one in configurations)
        self._vocabulary = int(next((size for size in sizes if size), len(tokenizer)))
        self.fingerprint = _fingerprint(server, card, tokenizer)
        self._check_tokens(tokenizer)
        self._turns = Turns()
        self._requests = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="scg-vllm")

    def encode(self, text: str) -> list[int]:
        """See :meth:`LanguageModel.encode`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """See :meth:`LanguageModel.encode_batch`."""
        return self._text.encode_batch(texts)

    def decode(self, tokens: Sequence[int]) -> str:
        """See :meth:`LanguageModel.decode`."""
        return self._text.decode(tokens)

    def tree(self, prompt: Sequence[int]) -> PromptTree:
        """See :meth:`LanguageModel.tree`."""
        if not len(prompt):
            raise ModelError("a token tree needs a root prompt of at least one token")
        return PromptTree(self, [int(token) for token in prompt])

    def logprobs(self, prompts: Sequence[list[int]], wanted: Sequence[NDArray[np.int64]]) -> list[dict[int, float]]:
        """See :meth:`Oracle.logprobs`."""
        requests = plan(wanted)
        found: list[dict[int, float]] = [{} for _ in prompts]

        def ask(request: Request) -> list[dict[int, float]]:
            return self._server.logprobs([prompts[row] for row in request.rows], sorted(request.tokens))

        with self._turns.of("named"):
            for request, answers in zip(requests, self._requests.map(ask, requests), strict=True):
                for row, answer in zip(request.rows, answers, strict=True):
                    found[row].update(answer)
        return found

    def likeliest(self, prompts: Sequence[list[int]], count: int) -> list[list[tuple[int, float]]]:
        """See :meth:`Oracle.likeliest`."""
        with self._turns.of("likeliest"):
            return self._server.likeliest(prompts, min(count, self._vocabulary))

    def _check_tokens(self, tokenizer: Any) -> None:
        """Hold the tokenizer against the server's, on texts without special tokens."""
        for text in _SAMPLES:
            theirs = self._server.tokenize(text, special=False)
            if theirs is not None and theirs != self.encode(text):
                self._refuse_tokenizer(tokenizer)
        theirs = self._server.tokenize(_SAMPLES[0], special=True)
        if theirs is not None and tuple(theirs[: len(self.start)]) != self.start:
            self._refuse_tokenizer(tokenizer)

    def _refuse_tokenizer(self, tokenizer: Any) -> None:
        where = getattr(tokenizer, "name_or_path", "")
        raise ModelError(
            f"the tokenizer from {where!r} is not that of {self._server.address}: name the right one with "
            "?tokenizer=FOLDER in the address"
        )


def _fingerprint(server: Server, card: ModelCard, tokenizer: Any) -> str:
    """A digest of what is known of the model (32 hex digits)."""
    known = [server.address.name, card.root, card.parent, server.fingerprint()]
    digest = hashlib.sha256("\x00".join(known).encode())
    for line in vocabulary_lines(tokenizer):
        digest.update(line)
    return digest.hexdigest()[:32]
