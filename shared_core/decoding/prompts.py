"""The prompt after which concepts are decoded."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConceptPrompt:
    """A few-shot prompt: worked examples that never change, then one text whose concepts are wanted.

    Plain text rather than a chat template: it needs no instruction-tuned model, and its fixed part is read once.

    Attributes:
        examples: The fixed part. Must end where no tokenizer would merge it with what follows (a blank line).
        before: Comes before the text.
        after: Comes after the text; a key follows, led by a space and ended by ``terminator``.
        neutral: The text that stands for no text in particular.
        terminator: Ends a key.
    """

    examples: str
    before: str = "Text: "
    after: str = "\nKeywords:"
    neutral: str = "?"
    terminator: str = ","

    @property
    def fingerprint(self) -> str:
        """Changes with any part: stored neutral log-probabilities depend on it (16 hex digits)."""
        parts = (self.examples, self.before, self.after, self.neutral, self.terminator)
        return hashlib.sha256("\x00".join(parts).encode()).hexdigest()[:16]


DEFAULT_PROMPT = ConceptPrompt(
    examples="""\
Text: What did Tomas buy at the farmers market last weekend?
Keywords: farmers market, vegetables, tomas, shopping, weekend

Text: Nadia: I finally signed up for cello lessons, the teacher plays in the city orchestra!
Keywords: cello lessons, music, nadia, teacher, orchestra, learning an instrument

Text: How long have the brothers been planning their camping trip?
Keywords: camping trip, brothers, planning, tent, lake, summer

"""
)
