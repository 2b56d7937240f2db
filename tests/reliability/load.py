"""Workers on one memory: ``python -m tests.reliability.load PLACE FOLDER NAMESPACE…``, one for each log it is to write.

Each is a process with a memory and a tiny random model of its own; they are forked, so that torch is imported once.
Worker ``n`` appends to ``FOLDER/n.log``, one JSON list a call: what became of it (``+`` acknowledged, ``-`` said to
have stored nothing, ``?`` neither), what was called, in which namespace, with which ids. It goes on while the server is
away, and ends when there is a file ``FOLDER/stop``. Whatever it reads must be what it was told.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from shared_core import MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import StoreUnavailableError
from shared_core.evolution import said_concepts

WORKERS = 4
_EVERYTHING = 10**6


def said(id: str, name: str) -> MemoryEntry:
    """What an entry says, which tells its namespace."""
    return MemoryEntry(f"The parcel {id} came to harbour {name}", id=id)


def check_entries(name: str, entries: list[MemoryEntry], keys: set[str]) -> set[str]:
    """Whether a namespace is whole and holds nothing of another; returns its ids."""
    ids = [entry.id for entry in entries]
    assert [entry.text for entry in entries] == [said(id, name).text for id in ids]
    assert len(set(ids)) == len(ids)
    assert keys == {link.key for id in ids for link in said_concepts(said(id, name))}
    return set(ids)


class Worker:
    """Writes, forgets, recalls and consolidates in all namespaces, at random; its ids are its own."""

    def __init__(self, memory: SchemaMemory, number: int, names: list[str], log: Path) -> None:
        self._memories = {name: memory.in_namespace(name) for name in names}
        self._number = number
        self._chance = random.Random(number)
        self._log = log.open("ab", buffering=0)
        self._calls = 0
        self._mine: dict[str, set[str]] = {name: set() for name in names}
        self._unsure: set[str] = set()

    def call(self) -> None:
        """One call, and what is known of it."""
        self._calls += 1
        name = self._chance.choice(list(self._memories))
        kinds, weights = (self._write, self._forget, self._recall, self._list, self._consolidate), (8, 4, 8, 3, 1)
        [call] = self._chance.choices(kinds, weights)
        ids: list[str] = []
        if call == self._write:
            ids = [f"p{self._number}x{self._calls}x{part}" for part in range(2)]
        elif call == self._forget:
            ids = self._chance.sample(sorted(self._mine[name]), min(1, len(self._mine[name])))
        fate = "+"
        try:
            call(name, ids)
        except StoreUnavailableError as error:
            fate = "-" if "nothing of this write was stored" in str(error) else "?"
            if fate == "?":
                self._unsure |= set(ids)
                self._mine[name] -= set(ids)
        self._log.write(json.dumps([fate, call.__name__[1:], name, ids]).encode() + b"\n")
        if fate != "+":
            time.sleep(0.05)

    def _write(self, name: str, ids: list[str]) -> None:
        written = self._memories[name].remember([said(id, name) for id in ids], use_model=False)
        assert (written.added, written.ids) == (len(ids), tuple(ids))
        self._mine[name] |= set(ids)

    def _forget(self, name: str, ids: list[str]) -> None:
        assert self._memories[name].forget(ids=ids).entries == len(ids)
        self._mine[name] -= set(ids)

    def _recall(self, name: str, _: list[str]) -> None:
        recalled = self._memories[name].recall(f"What came to harbour {name}?", k=_EVERYTHING)
        entries = [one.entry for one in recalled.entries]
        assert all(entry.text == said(entry.id, name).text for entry in entries)
        self._check_own(name, {entry.id for entry in entries})
        known = {link.key for id in self._mine[name] for link in said_concepts(said(id, name))}
        # What others say names them: a key of another namespace would name that.
        others = {other for other in self._memories if other != name}
        assert all(seed.key in known or not others & set(seed.key.split()) for seed in recalled.seeds)

    def _list(self, name: str, _: list[str]) -> None:
        memory = self._memories[name]
        entries = memory.entries
        self._check_own(name, {entry.id for entry in entries})
        assert all(entry.text == said(entry.id, name).text for entry in entries)

    def _consolidate(self, name: str, _: list[str]) -> None:
        self._memories[name].consolidate()

    def _check_own(self, name: str, found: set[str]) -> None:
        """Of this worker's own entries a namespace holds those that were acknowledged, and no other."""
        own = {id for id in found if id.startswith(f"p{self._number}x")}
        assert own - self._unsure == self._mine[name]


def tiny_model() -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """A model of a hundred weights a byte, which knows bytes alone."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate([*alphabet, "<end>"])}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(alphabet) + 1,
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=4096,
        initializer_range=0.2,
        eos_token_id=len(alphabet),
    )
    return LlamaForCausalLM(config), PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>")


def work(place: str, folder: Path, number: int, names: list[str]) -> None:
    torch.set_num_threads(1)
    with SchemaMemory.open(
        place, model=tiny_model(), config=SCGConfig(width=4, assimilate=2, assimilate_width=2)
    ) as memory:
        worker = Worker(memory, number, names, folder / f"{number}.log")
        while not (folder / "stop").exists():
            worker.call()


def main(place: str, folder: Path, names: list[str]) -> None:
    children = []
    for number in range(WORKERS):
        child = os.fork()  # nothing is open yet
        if child == 0:
            code = 1
            try:
                signal.alarm(int(os.environ.get("LOAD_ALARM", "200")))
                work(place, folder, number, names)
                code = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        children.append(child)
    sys.stdout.write(f"{json.dumps(children)}\n")
    sys.stdout.flush()
    ended = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    sys.stdout.write(f"{json.dumps(ended)}\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
