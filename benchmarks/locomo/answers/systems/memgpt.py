"""MemGPT (Packer et al., 2023, arXiv 2310.08560).

After summaries of the paper: the main context holds a working context of facts that the model writes itself, and a
queue of messages behind a recursive summary of what left it. When the queue passes 70 % of its room the model is warned
and may save facts before they go; when it is full, the older half of it is evicted, and the model writes the summary
anew from the old one and what leaves. Evicted messages stay in recall storage, which is searched by words; saved facts
go to archival storage, which is searched by embeddings. Asked a question, the model calls functions: it chooses where
to search and for what, sees what came back, and may search once more, before it answers.

Simplified: functions are lines of text (``recall_search: words``), since the model was not trained to call any; a
line that calls nothing searches recall storage for the question. The working context keeps the facts saved last.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.locomo.answers.systems.sessions import Embed, derived, line, nearest
from benchmarks.locomo.answers.systems.system import Context
from benchmarks.locomo.answers.writer import Writer
from benchmarks.locomo.dataset import Question
from benchmarks.locomo.systems.lexical import WordScores, best
from shared_core import MemoryEntry

_QUEUE = 1_024
_WARN_AT = 0.7
_WORKING = 8
_SEARCHES = 2
_CALL_TOKENS = 16
_WRITTEN_TOKENS = 64

_SAVE = """\
Messages are about to leave your memory. Write down what is worth keeping: short facts, parted by semicolons.

4 March 2021, Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
4 March 2021, Tomas: How nice! I was at the farmers market and bought tomatoes.
Facts: Nadia signed up for cello lessons on 3 March 2021; Tomas bought tomatoes at the farmers market

"""
_SUMMARY = """\
Write a new summary from the old one and the messages that leave.

Old: Nadia and Tomas are friends.
4 March 2021, Nadia: I finally signed up for cello lessons yesterday! The teacher plays in an orchestra.
4 March 2021, Tomas: How nice! I was at the farmers market and bought tomatoes.
New: Nadia and Tomas are friends; she signed up for cello lessons, he bought tomatoes at the farmers market.

"""
_CALL = """\
Find what answers the question. Call one function: recall_search: words finds messages, archival_search: words finds \
facts, answer: ends the search.

Question: Where did Ines's sister move?
Found: nothing yet
Call: recall_search: Ines sister moved

Question: When did Nadia sign up for cello lessons?
Found: 4 March 2021, Nadia: I finally signed up for cello lessons yesterday!
Call: answer:

"""

SETTINGS: dict[str, object] = {
    "prompts": [_SAVE, _SUMMARY, _CALL],
    "bounds": [_QUEUE, _WARN_AT, _WORKING, _SEARCHES, _CALL_TOKENS, _WRITTEN_TOKENS],
}
"""What contexts depend on."""


class MemGPT:
    """Main context, recall storage and archival storage under the model's own control.

    Args:
        writer: The model.
        embed: Embeds texts.
        k: Messages or facts that a search brings.
    """

    def __init__(self, writer: Writer, embed: Embed, k: int) -> None:
        self._writer = writer
        self._embed = embed
        self._k = k

    def write(self, turns: Sequence[MemoryEntry]) -> None:
        self._turns = {str(turn.id): turn for turn in turns}
        self._ids = list(self._turns)
        self._words = WordScores(turns)
        self._facts: list[MemoryEntry] = []
        self._summary = "nothing"
        queue: list[tuple[MemoryEntry, int]] = []
        room = min(_QUEUE, self._writer.room(_SAVE, _WRITTEN_TOKENS) - 64)
        warned = False
        for turn in turns:
            queue.append((turn, len(self._writer.tokens(line(turn)))))
            held = sum(size for _, size in queue)
            if held > _WARN_AT * room and not warned:
                self._save([turn for turn, _ in queue])
                warned = True
            if held > room and len(queue) > 1:
                gone = max(1, len(queue) // 2)
                self._evict([turn for turn, _ in queue[:gone]])
                queue, warned = queue[gone:], False
        self._queue = [turn for turn, _ in queue]
        self._vectors = (
            self._embed([fact.text for fact in self._facts]) if self._facts else np.zeros((0, 1), np.float32)
        )

    def _save(self, messages: Sequence[MemoryEntry]) -> None:
        text = "\n".join(map(line, messages))
        [facts] = self._writer.complete(_SAVE, [f"{text}\nFacts:"], _WRITTEN_TOKENS)
        self._facts += [
            derived(f"fact-{len(self._facts) + number}", fact.strip(), messages[-1])
            for number, fact in enumerate(facts.split(";"))
            if fact.strip()
        ]

    def _evict(self, messages: Sequence[MemoryEntry]) -> None:
        text = "\n".join(map(line, messages))
        [self._summary] = self._writer.complete(_SUMMARY, [f"Old: {self._summary}\n{text}\nNew:"], _WRITTEN_TOKENS)

    def contexts(self, questions: Sequence[Question]) -> list[Context]:
        found: list[list[MemoryEntry]] = [[] for _ in questions]
        open_ = list(range(len(questions)))
        for _ in range(_SEARCHES):
            prompts = [self._call(questions[place], found[place]) for place in open_]
            calls = self._writer.complete(_CALL, prompts, _CALL_TOKENS)
            searching = []
            for place, call in zip(open_, calls, strict=True):
                if not call.startswith("answer:"):
                    found[place] += [one for one in self._search(call, questions[place]) if one not in found[place]]
                    searching.append(place)
            open_ = searching
            if not open_:
                break
        summary = [derived("summary", self._summary, next(iter(self._turns.values())))]
        last = [*self._facts[-_WORKING:], *summary, *reversed(self._queue)]
        return [Context([*own, *(one for one in last if one not in own)]) for own in found]

    def _call(self, question: Question, found: Sequence[MemoryEntry]) -> str:
        shown = " | ".join(map(line, found[:3])) or "nothing yet"
        return f"Question: {question.text}\nFound: {shown}\nCall:"

    def _search(self, call: str, question: Question) -> list[MemoryEntry]:
        name, _, words = call.partition(":")
        if name.strip() == "archival_search" and self._facts:
            [wanted] = self._embed([words.strip() or question.text])
            return [self._facts[place] for place in nearest(self._vectors, wanted, self._k)]
        query = words.strip() if name.strip() == "recall_search" and words.strip() else question.text
        return [self._turns[id] for id in best(self._ids, self._words.of(query).sum(axis=0), self._k)]

    def close(self) -> None:
        """Nothing is held but text and arrays."""
