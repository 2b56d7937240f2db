"""What the memories of the benchmark hold: sentences from a seed, which say about as many concepts as people do.

Beside the 1,451 turns of three conversations of LoCoMo, in brackets: 28 (24) words and 141 (132) characters an entry,
14.5 (15.3) concepts said in one, and of a namespace with 100, 300 and 1,000 entries 8.3 (8.6), 6.4 (6.7) and 4.3 (4.8)
distinct concepts for each entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from shared_core import MemoryEntry, SchemaMemory
from shared_core.decoding import ConceptDecoder
from shared_core.evolution import said_concepts
from shared_core.models import LanguageModel
from shared_core.store import (
    Anticipated,
    Anticipation,
    ConceptLink,
    EntryWrite,
    NamespaceState,
    ScoreColumns,
    Store,
)

WORDS = 3_000
_SKIPPED = 200
_TOKENS = 100_000  # beyond the vocabulary nothing is written
_GLUE = [
    *(
        "the",
        "a",
        "of",
        "and",
        "to",
        "in",
        "with",
        "for",
        "on",
        "at",
        "from",
        "about",
        "is",
        "was",
        "it",
        "that",
        "this",
    ),
    *("i", "you", "we", "they", "my", "your", "so", "but"),
]
_SESSION = 20
_INFERRED = 6
_ANTICIPATED = 128
_WRITTEN_TOGETHER = 1_000


def common_words(model: LanguageModel) -> list[str]:
    """Words that a model writes with one token, in the order of its tokenizer, which is about that of their use."""
    words: list[str] = []
    for token in range(_TOKENS):
        word = model.decode([token])
        if re.fullmatch(" [a-z]{4,12}", word):
            words.append(word[1:])
        if len(words) == WORDS + _SKIPPED:
            break
    return words[_SKIPPED:]


class Sentences:
    """Entries that never end.

    Args:
        words: Words of content, the most used first.
        mark: What their ids begin with.
        seed: Of everything drawn.
    """

    def __init__(self, words: Sequence[str], mark: str, seed: int) -> None:
        self._words = words
        self._mark = mark
        self._random = np.random.default_rng(seed)
        self._chances = np.cumsum(1 / np.arange(1, len(words) + 1))
        self._count = 0

    def __iter__(self) -> Iterator[MemoryEntry]:
        while True:
            yield self.entry()

    def entry(self) -> MemoryEntry:
        """The next entry."""
        random = self._random
        said: list[str] = []
        for _ in range(random.integers(4, 13)):
            said += [_GLUE[place] for place in random.integers(0, len(_GLUE), random.integers(1, 4))]
            word = self._draw()
            said.append(self._words[word])
            if random.random() < 0.5:  # words have companions, with whom they come back
                companion = (word * 31 + 7) % len(self._words) if random.random() < 0.5 else self._draw()
                said.append(self._words[companion])
        number = self._count
        self._count += 1
        return MemoryEntry(
            " ".join(said).capitalize() + ".",
            id=f"{self._mark} {number}",
            speaker=f"Speaker {number % 2}",
            session=f"{self._mark} {number // _SESSION}",
        )

    def question(self) -> str:
        """Something to ask."""
        return f"What about the {self._words[self._draw()]} and the {self._words[self._draw()]}?"

    def _draw(self) -> int:
        return int(np.searchsorted(self._chances, self._random.random() * self._chances[-1]))


def name_of(number: int) -> tuple[str, str]:
    """The name of a namespace."""
    return ("users", str(number))


@dataclass(frozen=True, slots=True, eq=False)
class Template:
    """All that is stored of a namespace, to be stored in others.

    Attributes:
        writes: Its entries and links.
        read: How each model reads its concepts, and what it expects of its entries.
    """

    writes: list[EntryWrite]
    read: list[tuple[ScoreColumns, Anticipated]]

    @classmethod
    def make(cls, place: str, words: Sequence[str], models: Sequence[LanguageModel], entries: int) -> Template:
        """Let a model remember entries in the first namespace of a new memory, and the others weigh and read them."""
        for number, model in enumerate(models):
            with SchemaMemory.open(place, model=model, namespace=name_of(0)) as memory:
                if number == 0:
                    memory.remember(list(islice(Sentences(words, "e", seed=0), entries)))
                memory.consolidate()
        with Store.open(place) as store:
            with store.scan(name_of(0)) as (_, writes):
                written = list(writes)
            # What is stored belongs to a model with its prompt.
            return cls(written, [_read(store, ConceptDecoder(model).fingerprint) for model in models])

    def store_in(self, store: Store, number: int) -> None:
        """The same in a new namespace: concepts are made in the same order, so that the numbers fit."""
        name = name_of(number)
        store.write(name, self.writes)
        state = store.load(name)
        for columns, anticipated in self.read:
            store.save_columns(name, anticipated.fingerprint, state, columns)
            store.save_anticipations(name, anticipated)


def _read(store: Store, fingerprint: str) -> tuple[ScoreColumns, Anticipated]:
    state = store.load(name_of(0))
    expected = store.load_anticipations(name_of(0), fingerprint, state)
    by_id = {}
    for place, entry in enumerate(expected.entry.tolist()):
        part = slice(int(expected.starts[place]), int(expected.starts[place + 1]))
        by_id[str(state.entries[entry].entry.id)] = Anticipation(expected.tokens[part], expected.logprobs[part])
    return store.load_scores(name_of(0), fingerprint, state), Anticipated(fingerprint, by_id)


def large_namespace(words: Sequence[str], entries: int) -> list[EntryWrite]:
    """Entries with the concepts they say, and links to earlier concepts, drawn at random, as a model would infer."""
    random = np.random.default_rng(entries)
    known: dict[str, str] = {}
    keys: list[str] = []
    writes = []
    for entry in islice(Sentences(words, "e", seed=1), entries):
        links = {link.key: link for link in said_concepts(entry)}
        for place in random.integers(0, len(keys), _INFERRED).tolist() if keys else ():
            links.setdefault(keys[place], ConceptLink(keys[place], known[keys[place]], 0.6, "inferred"))
        writes.append(EntryWrite(entry, tuple(links.values()), assimilated=True))
        keys += [key for key in links if key not in known]
        known.update({key: link.surface for key, link in links.items() if key not in known})
    return writes


def fill_at_random(store: Store, number: int, writes: Sequence[EntryWrite], model: LanguageModel) -> NamespaceState:
    """Store a large namespace, with numbers drawn at random where a model would compute them.

    The token ids of concepts are the model's; what is drawn takes the same bytes.
    """
    name = name_of(number)
    random = np.random.default_rng(0)
    for start in range(0, len(writes), _WRITTEN_TOGETHER):
        store.write(name, writes[start : start + _WRITTEN_TOGETHER])
    state = store.load(name)
    decoder = ConceptDecoder(model)
    spelled = decoder.encode_keys([key for key, _ in state.concepts])
    said = [at for at, tokens in enumerate(spelled) if tokens is not None]
    tokens = [spelled[at] or () for at in said]
    starts: NDArray[np.int64] = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(one) for one in tokens])])
    columns = ScoreColumns(
        saved=0,
        concept=np.array(said, dtype=np.int32),
        starts=starts,
        tokens=np.concatenate([np.array(one, dtype=np.int32) for one in tokens]),
        neutral=-random.exponential(6, int(starts[-1]) + len(said)).astype(np.float32),
        known=np.ones(len(said), dtype=np.bool_),
    )
    store.save_columns(name, decoder.fingerprint, state, columns)
    vocabulary = int(columns.tokens.max()) + 1
    for start in range(0, len(writes), _WRITTEN_TOGETHER):
        expected = {
            write.id: Anticipation(
                np.sort(random.choice(vocabulary, min(_ANTICIPATED, vocabulary), replace=False)).astype(np.int32),
                -random.exponential(6, min(_ANTICIPATED, vocabulary)).astype(np.float32),
            )
            for write in writes[start : start + _WRITTEN_TOGETHER]
        }
        store.save_anticipations(name, Anticipated(decoder.fingerprint, expected))
    return store.load(name)
