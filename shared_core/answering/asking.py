"""What kind of answer a question asks for, judged by its own words."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Wanted: TypeAlias = Literal["date", "number", "verdict", "words"]
"""A time; an amount; yes or no; anything else."""

_DATE = re.compile(
    r"\bwhen\b(?! (?:he|she|they|it|i|we|you)\b)"
    r"|\b(?:what|which)\s+(?:\w+\s+)?(?:date|day|month|year|season|weekend)\b"
    r"|\bhow long ago\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bhow (?:many|much|old|often|long|far|big|tall|frequently)\b", re.IGNORECASE)
_VERDICT = re.compile(
    r"^(?:would|will|is|are|was|were|do|does|did|has|have|had|can|could|should|might|may)\b", re.IGNORECASE
)
_CHOICE = re.compile(r"\bor\b", re.IGNORECASE)
_OTHER = re.compile(r"^(?:what|which|who|whose|where|why|how)\b", re.IGNORECASE)


def wanted(question: str) -> Wanted:
    """The kind of answer that a question asks for."""
    asked = question.strip()
    if _NUMBER.search(asked) and not re.search(r"\bhow long ago\b", asked, re.IGNORECASE):
        return "number"
    found = _DATE.search(asked)
    if found and (found.start() == 0 or not _OTHER.match(asked) or not found[0].lower().startswith("when")):
        return "date"
    if _VERDICT.match(asked) and not _CHOICE.search(asked):
        return "verdict"
    return "words"
