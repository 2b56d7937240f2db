"""What every system can do: read a prompt, then decode the best keys after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

Decode: TypeAlias = Callable[[int], list[int]]
"""Decodes the keys of a given width, best first: their numbers, each once, and none that is not a key."""


class System(Protocol):
    """A way of decoding keys, ready for one key set."""

    @property
    def reads_apart(self) -> bool:
        """Whether :meth:`read` reads the prompt; otherwise decoding does, and there is no warm time."""
        ...

    def read(self, prompt: Sequence[int]) -> Decode:
        """Read a prompt. What comes back is good for one decode; only ``ours-recall`` keeps anything for the next."""
        ...


class Unavailable(Exception):  # noqa: N818 - a finding, not an error
    """A system cannot be run on a key set; the message is the reason that the table gives."""
