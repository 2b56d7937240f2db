"""Evidence as LoCoMo has it, and as it was meant: ids of turns, some of them misspelt or of turns that don't exist."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

_BETWEEN = re.compile(r"[\s;,]+")
# "D8:6", and the misspellings "D:11:26" and "D30:05".
_TURN = re.compile(r"D:?0*(\d+):0*(\d+)", re.ASCII | re.IGNORECASE)


class TurnIds:
    """The turns of one conversation, found by session and number however these are spelt.

    Args:
        ids: Their ids.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = set(ids)
        self._by_number: Mapping[tuple[str, ...], str] = {
            match.groups(): id for id in self._ids if (match := _TURN.fullmatch(id))
        }

    def repair(self, evidence: object, defects: Counter[str]) -> list[str]:
        """The ids of existing turns that a question's evidence names, each once, in its order.

        Args:
            evidence: What stands in the file.
            defects: What was found is counted here: ``evidence_pieces``; of these ``evidence_joined`` (several ids in
                one piece); and of the ids in them ``evidence_respelled``, ``evidence_of_unknown_turns`` and
                ``evidence_unreadable`` (both dropped) and ``evidence_repeated``.
        """
        pieces = evidence if isinstance(evidence, Sequence) and not isinstance(evidence, str) else [evidence]
        found: list[str] = []
        for piece in pieces:
            if piece is None:
                continue
            defects["evidence_pieces"] += 1
            words = [word for word in _BETWEEN.split(str(piece)) if word]
            defects["evidence_joined"] += len(words) > 1
            defects["evidence_unreadable"] += not words
            found += [id for word in words if (id := self._read(word, defects)) is not None]
        once = list(dict.fromkeys(found))
        defects["evidence_repeated"] += len(found) - len(once)
        return once

    def _read(self, word: str, defects: Counter[str]) -> str | None:
        if word in self._ids:
            return word
        match = _TURN.fullmatch(word)
        if match is None:
            defects["evidence_unreadable"] += 1
            return None
        id = self._by_number.get(match.groups())
        defects["evidence_of_unknown_turns" if id is None else "evidence_respelled"] += 1
        return id
