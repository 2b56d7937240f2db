"""The constraint for people who call ``model.generate`` themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_KEY, Trie


class SchemaLogitsProcessor(LogitsProcessor):
    """Confines ``model.generate`` to the keys of a trie (Eq. 5), in any of its modes.

    What is generated is a key, the terminator, then end-of-sequence tokens only. Stateless: one processor may serve
    several calls and beams at once. Generation itself must be long enough, see :attr:`max_new_tokens`, and should
    run without the model's own penalties and ``top_k``, which act before the constraint.

    Args:
        trie: The keys.
        terminator: Token that ends a key.
        end: End-of-sequence token of the model.
        prompt_length: Tokens of the (left-padded) prompt.

    Raises:
        InvalidInputError: if the trie has no key: then nothing could be generated.
    """

    def __init__(self, trie: Trie, *, terminator: int, end: int, prompt_length: int) -> None:
        if trie.key_count == 0:
            raise InvalidInputError("there is no key to generate: the schema is empty")
        self._trie = trie
        self._terminator = terminator
        self._end = end
        self._prompt_length = prompt_length

    @property
    def max_new_tokens(self) -> int:
        """Tokens that the longest key takes, with terminator and end of sequence."""
        return len(self._trie.levels) - 2 + 2

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Mask every token that leaves the schema.

        Args:
            input_ids: shape (rows, length).
            scores: shape (rows, vocabulary).

        Returns:
            The scores with ``-inf`` at tokens that are not allowed; at least one is in every row.
        """
        masked = torch.full_like(scores, float("-inf"))
        for row, generated in enumerate(input_ids[:, self._prompt_length :].tolist()):
            allowed = torch.tensor(self.allowed(generated), device=scores.device)
            masked[row, allowed] = scores[row, allowed].clamp_min(torch.finfo(scores.dtype).min)
        return masked  # type: ignore[return-value]

    def allowed(self, generated: Sequence[int]) -> list[int]:
        """Tokens that may follow what was generated so far; never empty."""
        node = self._trie.walk(generated)
        if node is None:  # the key is complete, or this is a beam that generate has given up
            return [self._end]
        tokens: list[int] = self._trie.allowed_tokens(node).tolist()
        if self._trie.key[node] != NO_KEY:
            tokens.append(self._terminator)
        return tokens

    def key(self, generated: Sequence[int]) -> int | None:
        """The key that was generated, as its number in the trie; ``None`` if generation was cut before its end."""
        tokens = list(generated)
        if self._terminator not in tokens:
            return None
        # The terminator may also occur inside a key: a key ends at the first place where one may end and does.
        for at, token in enumerate(tokens):
            if token == self._terminator:
                found = self._trie.find(tokens[:at])
                if found is not None and (at + 1 == len(tokens) or tokens[at + 1] == self._end):
                    return found
        return None
