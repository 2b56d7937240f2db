"""Hundreds of interleaved async tasks over many namespaces of one file: each reads and erases its own alone."""

import asyncio
import random

from shared_core import MemoryEntry, SCGConfig, SchemaMemory
from shared_core.upkeep import check_store

USERS, TASKS = 10, 100


def test_hundreds_of_interleaved_tasks_never_mix_their_namespaces(tmp_path):
    async def use(memory, task):
        user = f"user {task % USERS}"
        mine = memory.in_namespace(("users", user))
        await asyncio.sleep(random.Random(task).random() / 100)
        await mine.aremember(MemoryEntry(f"{user} feeds hedgehog {task}", str(task), user), use_model=False)
        assert (await mine.aget(str(task))).speaker == user
        if task % 20 == 0:
            assert (await mine.aforget(ids=[str(task), str(task + 1)])).ids == (str(task),)
        assert {entry.speaker for entry in mine.entries} <= {user}

    async def all_of_them(memory):
        await asyncio.gather(*(use(memory, task) for task in range(TASKS)))

    with SchemaMemory.open(tmp_path / "m.db", config=SCGConfig(assimilate=0)) as memory:
        asyncio.run(all_of_them(memory))
        for number in range(USERS):
            mine = memory.in_namespace(("users", f"user {number}"))
            kept = [str(task) for task in range(TASKS) if task % USERS == number and task % 20]
            assert sorted(entry.id for entry in mine.entries) == sorted(kept)
            # Counts of one are those of its own entries, so no weight depends on another.
            frequencies = dict(zip(mine.graph.keys, mine.graph.frequency.tolist(), strict=True))
            assert max(frequencies.values(), default=0) == len(kept)
        assert check_store(memory.store).faults == ()
