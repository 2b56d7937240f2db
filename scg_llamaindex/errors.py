"""What this adapter refuses."""

from __future__ import annotations

from shared_core.errors import InvalidInputError


class UnsupportedError(InvalidInputError, NotImplementedError):
    """Something of LlamaIndex's interfaces that this memory cannot do; never ignored in silence."""
