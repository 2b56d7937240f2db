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
_PLURAL = re.compile(
    r"^(?:what|which|who)\s+(?:are|were)\s+(?:the|some|[\w-]+['’]s)\b"
    r"|^(?:what|which)\s+(?:[\w'’-]+\s+){0,3}?(?!(?:this|his|its|was|has|does)\b)[\w-]{2,}[^\Ws]s"
    r"(?:\s*\?|$|\s+(?:do|does|did|has|have|had|are|were|can|could|will|would|might|may|should|of)\b)",
    re.IGNORECASE,
)
_VERB = re.compile(r"\s(?:is|was|does|did|do)\s.*\s|['’]s\s", re.IGNORECASE)
_WHETHER = re.compile(r",?\s+or\s+not\s*[?.!]*\s*$", re.IGNORECASE)
_OPTIONS = re.compile(r"(.+)\s+or\s+([^\s?.,;!][^?.,;!]*)", re.IGNORECASE | re.DOTALL)
_OTHER = re.compile(r"^(?:what|which|who|whose|where|why|how)\b", re.IGNORECASE)


def options(question: str) -> tuple[str, ...]:
    """What a question offers to choose from: "the lake" and "the sea" of "Is it by the lake or the sea?".

    The last option ends the question; those before it, parted by commas, are taken to be as many words long at most.
    Empty where the question offers nothing, asks for more than a decision ("What has she bought or made?"), or for no
    more than a yes ("Is it by the lake or not?").
    """
    found = _OPTIONS.match(question.strip())
    if found is None or not _VERDICT.match(question.strip()) or _WHETHER.search(question):
        return ()
    size = len(found[2].split())
    offered = [found[2].strip()]
    for part in reversed(found[1].rstrip(", ").split(",")):
        words = part.split()
        offered.append(" ".join(words[-size:]))
        if len(words) > size:  # what comes before is the question
            break
    return tuple(dict.fromkeys(option for option in reversed(offered) if option))


def offers_choice(question: str) -> bool:
    """Whether a question names what to choose from: "by the lake or the sea?"."""
    return _CHOICE.search(_WHETHER.sub("", question)) is not None


def asks_for_several(question: str) -> bool:
    """Whether a question asks for things in the plural: "Which instruments does Mira play?"."""
    found = _PLURAL.match(question.strip())
    return found is not None and _VERB.search(found[0]) is None


def wanted(question: str) -> Wanted:
    """The kind of answer that a question asks for."""
    asked = question.strip()
    if _NUMBER.search(asked) and not re.search(r"\bhow long ago\b", asked, re.IGNORECASE):
        return "number"
    found = _DATE.search(asked)
    if found and (found.start() == 0 or not _OTHER.match(asked) or not found[0].lower().startswith("when")):
        return "date"
    if _VERDICT.match(asked) and not offers_choice(asked):
        return "verdict"
    return "words"
