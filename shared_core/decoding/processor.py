"""The constraint for people who call ``model.generate`` themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from shared_core.errors import InvalidInputError
from shared_core.schema import NO_KEY, Trie

# What an allowed token scores at least, when a penalty has removed it. Finite after division by a low temperature
# and in sums over a key, and above the -1e9 with which generate marks beams that do not exist.
_LEAST = -1e4


class SchemaLogitsProcessor(LogitsProcessor):
    """Confines ``model.generate`` to the keys of a trie (Eq. 5), in any of its modes.

    What is generated is a key, the terminator, then end-of-sequence tokens only. Stateless: one processor may serve
    several calls and beams at once. Generation itself must be long enough, see :attr:`max_new_tokens`. Penalties of
    the generation config act before the constraint: no token they remove makes another key possible, but which key is
    found is theirs as well.

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
        return self._trie.longest + 2

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
            tokens = self.allowed(generated)
            if tokens == [self._end]:
                masked[row, self._end] = 0.0  # costs nothing: a beam is ranked by its key and the terminator alone
                continue
            allowed = torch.tensor(tokens, device=scores.device)
            masked[row, allowed] = scores[row, allowed].clamp_min(_LEAST)
        return masked  # type: ignore[return-value]

    def allowed(self, generated: Sequence[int]) -> list[int]:
        """Tokens that may follow what was generated so far; never empty."""
        node = self._trie.walk(generated)
        if node is None:  # the key is complete, or this is a beam that generate has given up
            return [self._end]
        tokens: list[int] = self._trie.allowed_tokens(node).tolist()
        if self._trie.key_at(node) != NO_KEY and self._terminator not in tokens:
            tokens.append(self._terminator)
        if self._may_be_complete(generated):
            tokens.append(self._end)
        return tokens

    def _may_be_complete(self, generated: Sequence[int]) -> bool:
        """Whether this is a key and the terminator, even if a longer key goes on with the very same token."""
        *tokens, last = generated or [self._end]
        return last == self._terminator and self._trie.find(tokens) is not None

    def key(self, generated: Sequence[int]) -> int | None:
        """The key that was generated, as its number in the trie.

        ``None`` if generation was cut before its end, or if this is a surplus sequence: ``generate`` fills up with
        nonsense when it is asked for more than there are keys, or than its settings let through.
        """
        tokens = list(generated)
        stop = tokens.index(self._end) if self._end in tokens else len(tokens)
        body = tokens[:stop]
        # The terminator may also occur inside a key: without an end after it, a longer key may have been cut.
        if not self._may_be_complete(body) or (stop == len(tokens) and self._trie.walk(body) is not None):
            return None
        return self._trie.find(body[:-1])
