"""The model that all systems share: greedy continuations, many at once, each kept on disk with what it took."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.lines import append_line, read_lines
from benchmarks.locomo.systems.replay import digest
from shared_core.decoding import generate
from shared_core.models import LanguageModel

_TOGETHER = 32
_TOKENS_TOGETHER = 4_096


@dataclass(frozen=True, slots=True)
class Spent:
    """What a system had the model do.

    Attributes:
        calls: Prompts.
        read: Tokens read.
        written: Tokens written.
        seconds: Time, of prompts that went together a share each.
        trimmed: Tokens left out of prompts because the model's window had no room for them.
    """

    calls: float = 0
    read: float = 0
    written: float = 0
    seconds: float = 0
    trimmed: float = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.calls + other.calls,
            self.read + other.read,
            self.written + other.written,
            self.seconds + other.seconds,
            self.trimmed + other.trimmed,
        )

    def __sub__(self, other: Spent) -> Spent:
        return Spent(
            self.calls - other.calls,
            self.read - other.read,
            self.written - other.written,
            self.seconds - other.seconds,
            self.trimmed - other.trimmed,
        )

    def share(self, among: int) -> Spent:
        """What each of so many takes of it."""
        return Spent(
            self.calls / among, self.read / among, self.written / among, self.seconds / among, self.trimmed / among
        )


class Writer:
    """A model that continues prompts. What it wrote once is taken from the file, at what it took then.

    Args:
        model: The model.
        path: The file of what it wrote; it may not be there yet.
    """

    def __init__(self, model: LanguageModel, path: Path) -> None:
        self.model = model
        self.spent = Spent()
        self._path = path
        self._kept = {row["prompt"]: (row["text"], Spent(**row["spent"])) for row in read_lines(path)}

    def tokens(self, text: str) -> list[int]:
        """The tokens of a text."""
        return self.model.encode(text)

    def room(self, root: str, max_tokens: int) -> int:
        """How many tokens a prompt may have below a root, with so many to be written."""
        return max(1, self.model.window - len(self._root(root)) - max_tokens)

    def trim(self, tokens: int) -> None:
        """Count tokens that a system left out for lack of room."""
        self.spent += Spent(trimmed=tokens)

    def complete(self, root: str, prompts: Sequence[str], max_tokens: int, stop: Sequence[str] = ("\n",)) -> list[str]:
        """Continue prompts that begin with one root, which is read once.

        Prompts that are too long lose their beginning, which is counted; systems see to it by rules of their own
        before.
        """
        start, room = self._root(root), self.room(root, max_tokens)
        chains = [self.model.encode(prompt) for prompt in prompts]
        self.trim(sum(max(0, len(chain) - room) for chain in chains))
        chains = [chain[-room:] for chain in chains]
        names = [digest(self.model.fingerprint, start, chain, max_tokens, list(stop)) for chain in chains]
        new = {name: chain for name, chain in zip(names, chains, strict=True) if name not in self._kept}
        for group in _groups(new.items()):
            self._write(start, dict(group), max_tokens, stop)
        for name in names:
            self.spent += self._kept[name][1]
        return [self._kept[name][0] for name in names]

    def _write(self, start: list[int], group: dict[str, list[int]], max_tokens: int, stop: Sequence[str]) -> None:
        begun = time.perf_counter()
        tree = self.model.tree(start)
        nodes = tree.read_many(list(group.values()))
        texts = generate(self.model, tree, nodes, max_tokens=max_tokens, stop=stop)
        share = (time.perf_counter() - begun) / len(group)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        for (name, chain), text in zip(group.items(), texts, strict=True):
            spent = Spent(1, len(start) + len(chain), len(self.model.encode(text)), share)
            self._kept[name] = text.strip(), spent
            append_line(self._path, {"prompt": name, "text": text.strip(), "spent": asdict(spent)})

    def _root(self, root: str) -> list[int]:
        tokens = [*self.model.start, *self.model.encode(root)]
        # Of a window smaller than the examples the end of them is left.
        return tokens[-max(1, self.model.window // 2) :]


def _groups(prompts: Iterable[tuple[str, list[int]]]) -> Iterator[list[tuple[str, list[int]]]]:
    """Prompts of similar lengths together, as many as a pass takes well."""
    group: list[tuple[str, list[int]]] = []
    size = 0
    for name, chain in sorted(prompts, key=lambda pair: len(pair[1])):
        if group and (len(group) == _TOGETHER or size + len(chain) > _TOKENS_TOGETHER):
            yield group
            group, size = [], 0
        group.append((name, chain))
        size += len(chain)
    if group:
        yield group
