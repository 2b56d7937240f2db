"""Run by test_workers: one of several processes that write, read and forget in the same namespaces of a server.

Prints one JSON line a call: what it did, to which ids of which namespace, and whether that was acknowledged (``+``),
was said to have stored nothing (``-``), or neither (``?``). It goes on while the server is away.
"""

import json
import random
import signal
import sys
import time

from shared_core.entry import MemoryEntry
from shared_core.errors import StoreUnavailableError
from shared_core.store import ConceptLink, EntryWrite, NamespaceState, Store


def entry(name: str, id: str) -> EntryWrite:
    said = tuple(ConceptLink(key, f"{key} of {name}", 1.0, "said") for key in ("shared", f"{id} in {name}"))
    return EntryWrite(MemoryEntry(f"{id} in {name}", id=id), said)


def check(name: str, state: NamespaceState) -> None:
    """A namespace is whole at every moment, and holds nothing of another."""
    ids = [one.entry.id for one in state.entries]
    assert all(one.entry.text == f"{one.entry.id} in {name}" for one in state.entries)
    keys = {key for key, _ in state.concepts}
    assert keys == {f"{id} in {name}" for id in ids} | ({"shared"} if ids else set())
    assert len(state.link_entry) == 2 * len(ids)


def work(place: str, worker: str, names: list[str], calls: int) -> None:
    chance = random.Random(int(worker))
    mine: list[tuple[str, str]] = []
    states: dict[str, NamespaceState] = {}
    with Store.open(place) as store:
        for number in range(calls):
            name = chance.choice(names)
            ids = [f"{worker}-{number}-{part}" for part in range(2)]
            kind = "write" if not mine or chance.random() < 0.6 else "forget"
            if kind == "forget":
                name, id = mine.pop(chance.randrange(len(mine)))
                ids = [id]
            fate = "+"
            try:
                if kind == "write":
                    assert store.write((name,), [entry(name, id) for id in ids]).added == 2
                    mine += [(name, id) for id in ids]
                else:
                    assert store.forget((name,), ids=ids).entries == 1
            except StoreUnavailableError as error:
                fate = "-" if "nothing of this call was stored" in str(error) else "?"
            sys.stdout.write(json.dumps([fate, kind, name, ids]) + "\n")
            sys.stdout.flush()
            try:
                state = states.get(name)
                change = None if state is None else store.changes((name,), state)
                states[name] = store.load((name,)) if state is None or change is None else state.after(change)
                check(name, states[name])
            except StoreUnavailableError:
                time.sleep(0.05)


if __name__ == "__main__":
    signal.alarm(100)
    work(sys.argv[1], sys.argv[2], sys.argv[4:], int(sys.argv[3]))
