"""The mechanisms of the baselines, with a writer that writes what it is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import numpy as np
import pytest

from benchmarks.locomo.answers.systems.amem import AMem
from benchmarks.locomo.answers.systems.bounds import FullContext, Nothing, Oracle
from benchmarks.locomo.answers.systems.memgpt import MemGPT
from benchmarks.locomo.answers.systems.memorybank import MemoryBank
from benchmarks.locomo.answers.systems.readagent import ReadAgent
from benchmarks.locomo.answers.systems.sessions import sessions
from benchmarks.locomo.answers.writer import Spent
from benchmarks.locomo.dataset import Conversation, Question
from shared_core import MemoryEntry

WORDS = ["kayak", "stern", "resin", "loaves", "feast", "tour", "fog", "museum", "odile"]


def embed(texts: Sequence[str]) -> np.ndarray:
    """One dimension for each word that matters, and one for none."""
    counts = np.array([[text.lower().count(word) for word in WORDS] + [0.1] for text in texts], dtype=np.float32)
    found: np.ndarray = counts / np.linalg.norm(counts, axis=1, keepdims=True)
    return found


class Told:
    """Writes what a function makes of root and prompt; a token is a word."""

    class model:  # noqa: N801
        @staticmethod
        def decode(tokens: Sequence[int]) -> str:
            return "x " * len(tokens)

    def __init__(self, say: Callable[[str, str], str], window: int = 10_000) -> None:
        self._say, self._window = say, window
        self.asked: list[str] = []
        self.trimmed = 0
        self.spent = Spent()

    def tokens(self, text: str) -> list[int]:
        return list(range(len(text.split())))

    def room(self, root: str, max_tokens: int) -> int:
        return self._window - max_tokens

    def trim(self, tokens: int) -> None:
        self.trimmed += tokens

    def complete(self, root: str, prompts: Sequence[str], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        self.asked += prompts
        assert all(len(self.tokens(prompt)) <= self._window for prompt in prompts)
        return [self._say(root, prompt) for prompt in prompts]


def question(text: str, *evidence: str) -> Question:
    return Question("c/0", text, 4, evidence, "?", None)


def ids(system, text: str, *evidence: str) -> list[str]:
    [context] = system.contexts([question(text, *evidence)])
    return [str(entry.id) for entry in context.entries]


@pytest.fixture
def turns(conversations: list[Conversation]) -> tuple[MemoryEntry, ...]:
    return conversations[0].turns


def test_floor_ceiling_and_everything(turns):
    for system, wanted in (
        (Nothing(), []),
        (Oracle(), ["D1:4", "D1:1"]),
        (FullContext(), [turn.id for turn in reversed(turns)]),
    ):
        system.write(turns)
        assert ids(system, "?", "D1:4", "D1:1") == wanted


def readagent(turns, say, window: int = 10_000) -> tuple[ReadAgent, Told]:
    told = Told(say, window)
    system = ReadAgent(told)
    system.write(turns)
    return system, told


LONG = [
    MemoryEntry(f"{WORDS[number % 9]} " + "filler " * 49, f"D1:{number}", "Ylva", "1", datetime(2021, 5, 8))
    for number in range(20)
]


def test_readagent_breaks_where_the_model_says_and_looks_up_what_it_names():
    def say(root: str, prompt: str) -> str:
        if "Break:" in prompt:
            return "2>"
        if prompt.endswith("Short:"):
            return f"gist of {len(prompt.splitlines()) - 2}"
        return "2, 1, 99]"

    system, told = readagent(LONG, say)
    # From the third turn on (140 words) a page may end; the second of the places is after four turns.
    assert [len(page) for page in system._pages] == [4, 4, 4, 4, 4]
    found = ids(system, "Where?")
    assert found[:8] == [f"D1:{number}" for number in (4, 5, 6, 7, 0, 1, 2, 3)]
    assert found[8:] == ["gist-2", "gist-3", "gist-4"]
    assert "<1>" in next(prompt for prompt in told.asked if "Break:" in prompt)


@pytest.mark.parametrize("answer", ["nowhere", "0>", "77>", ""])
def test_readagent_survives_a_model_that_makes_no_sense(answer):
    system, _ = readagent(LONG, lambda root, prompt: answer)
    assert [turn.id for page in system._pages for turn in page] == [turn.id for turn in LONG]
    assert len(system._pages) < 6
    assert [one for one in ids(system, "Where?") if not one.startswith("gist")] in ([], ["D1:18", "D1:19"])


def test_readagent_drops_the_oldest_gists_that_do_not_fit():
    system, told = readagent(LONG, lambda root, prompt: "gist", 400)
    told._window = 22  # of which 12 are for the answer and 4 for the question
    system.contexts([question("Where?")])
    assert told.asked[-1].startswith("[2]")
    assert told.trimmed > 0


def days(count: int) -> list[MemoryEntry]:
    start = datetime(2021, 1, 1)
    said = ["the kayak", "a feast", "the fog"]
    return [
        MemoryEntry(said[day % 3], f"D{day}:1", "Ylva", str(day), start + timedelta(days=day)) for day in range(count)
    ]


def memorybank(turns) -> tuple[MemoryBank, Told]:
    told = Told(lambda root, prompt: "a sum" if prompt.endswith("Summary:") else "a face")
    system = MemoryBank(told, embed, 2)
    system.write(turns)
    return system, told


def test_memorybank_summarises_each_day_and_all_of_them():
    system, told = memorybank(days(4))
    assert sum(prompt.endswith("Summary:") for prompt in told.asked) == 5
    assert sum(prompt.endswith("Portrait:") for prompt in told.asked) == 5
    assert ids(system, "fog")[-2:] == ["summary", "portrait"]
    [context] = system.contexts([question("fog")])
    assert context.entries[-1].text == "a face"


def test_memorybank_forgets_what_is_not_recalled():
    # The kayak is spoken of once, long ago; the fog again and again, which brings back what was said of it before.
    start = datetime(2021, 1, 1)
    old = [MemoryEntry("the kayak", "kayak", "Ylva", "0", start)]
    fog = [MemoryEntry("the fog", f"f{day}", "Ylva", str(day), start + timedelta(days=day)) for day in range(1, 30)]
    system, _ = memorybank([*old, *fog])
    kept = [memory.id for memory in system._memories]
    assert "f29" in kept  # said on the last day: retention 1
    assert "kayak" not in kept
    # At k = 3 and a day between turns, three earlier turns are recalled each day, the same ones: they hold out.
    assert len([one for one in kept if str(one).startswith("f") and one != "f29"]) >= 2


def test_memgpt_evicts_saves_and_searches(turns):
    def say(root: str, prompt: str) -> str:
        if prompt.endswith("Facts:"):
            return "Ylva owns a kayak; Bram bakes loaves"
        if prompt.endswith("New:"):
            return "they talk"
        if "nothing yet" in prompt:
            return "archival_search: kayak"
        return "recall_search: museum"

    told = Told(say)
    system = MemGPT(told, embed, 1)
    import benchmarks.locomo.answers.systems.memgpt as module

    room, module._QUEUE = module._QUEUE, 40
    try:
        system.write(turns)
    finally:
        module._QUEUE = room
    assert any(prompt.startswith("Old: nothing") for prompt in told.asked)
    assert any(prompt.startswith("Old: they talk") for prompt in told.asked)  # the summary is recursive
    assert len(system._queue) < len(turns)
    found = ids(system, "Where did they go?")
    assert found[:2] == ["fact-0", "D2:3"]  # one search in each storage
    assert "summary" in found
    assert found[-1] == system._queue[0].id


def test_memgpt_that_calls_nothing_searches_for_the_question(turns):
    system = MemGPT(Told(lambda root, prompt: "I am a small model"), embed, 1)
    system.write(turns)
    assert ids(system, "Who went to the museum?")[0] == "D2:3"
    ending = MemGPT(Told(lambda root, prompt: "answer: now"), embed, 1)
    ending.write(turns)
    assert ids(ending, "Who went to the museum?")[0] == "summary"


def test_amem_links_evolves_and_brings_linked_notes(turns):
    def say(root: str, prompt: str) -> str:
        if prompt.endswith("Note:"):
            return f"labels; tags; about {prompt.rpartition(': ')[2].removesuffix('Note:').strip()}"
        if prompt.startswith("New:"):
            return "[1] changed by the museum" if "museum" in prompt.split("\n")[0] else "none"
        return "museum"

    system = AMem(Told(say), embed, 1)
    system.write(turns)
    museum = next(place for place, note in enumerate(system._notes) if note.turn.id == "D2:3")
    [linked] = system._notes[museum].links
    assert system._notes[linked].context == "changed by the museum"
    assert museum in system._notes[linked].links
    assert embed([system._notes[linked].text]) == pytest.approx(system._vectors[[linked]])
    assert set(ids(system, "Who?")) == {"D2:3", str(system._notes[linked].turn.id)}


@pytest.mark.parametrize("answer", ["", "none", "[9] [x]", "] [1]", ";;;", "[1]"])
def test_amem_survives_a_model_that_makes_no_sense(turns, answer):
    system = AMem(Told(lambda root, prompt: answer), embed, 2)
    system.write(turns)
    assert len(ids(system, "fog")) >= 2


def test_sessions_are_runs_of_turns(turns):
    assert [len(own) for own in sessions(turns)] == [4, 3]
