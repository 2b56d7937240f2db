"""The identity of a concept: two texts name the same concept when their normalised keys are equal."""

from __future__ import annotations

import re
import unicodedata

from shared_core.schema.words import EMOJI, HAN

MAX_KEY_WORDS = 8
MAX_KEY_CHARACTERS = 80

# Invisible characters make keys that look alike differ, and can carry text past a reader: controls, soft
# hyphen, zero-width and bidi controls, fillers, variation selectors, tags. They stay only where they shape a
# letter or an emoji.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_JOINING = "\u0600-\u06ff\u0750-\u077f\u0900-\u0dff\u1780-\u17ff\u1820-\u18aa"
_KEPT_OR_INVISIBLE = re.compile(
    f"(?P<kept>{EMOJI}"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])"
    f"|(?<=[{HAN}])[\U000e0100-\U000e01ef]"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d\u180f]"
    f"|(?<=[\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299])[\ufe0e\ufe0f])"
    f"|[{_INVISIBLE}]"
)
_ONE_SPELLING = str.maketrans({"\u2019": "'", "\u02bc": "'", "\u2010": "-", "\u2011": "-"})

_ASCII_EDGES = frozenset("!\"#%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")
_OPENING = {")": "(", "]": "[", "}": "{", "\uff09": "\uff08", "\u300d": "\u300c", "\u3011": "\u3010"}
_INFORMATIVE = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Nd", "Nl", "No", "So"))


def normalise_key(text: str) -> str:
    """The one written form of a concept, in any script; ``""`` when nothing informative is left.

    Unicode NFC, lower case, single spaces, no invisible characters (emoji sequences stay whole, and so do
    joiners that shape a letter), no surrounding punctuation unless it means something (``c++``, ``50%``,
    ``-5``, ``f(x)``). Idempotent. Never shortens: :func:`fits_bounds` tells whether the result may be a
    concept.
    """
    key = text.lower()
    if key.isascii() and key.replace(" ", "").isalnum():
        return " ".join(key.split())
    # One step may uncover work: stripping a bracket bares its variation selector, reordering marks a joiner.
    # Steps end, because after the first they only shorten.
    while (step := _normalise_once(key)) != key:
        key = step
    return key


def fits_bounds(key: str) -> bool:
    """Whether a normalised key is neither empty nor too long to be a concept."""
    return 0 < len(key) <= MAX_KEY_CHARACTERS and key.count(" ") < MAX_KEY_WORDS


def _normalise_once(text: str) -> str:
    # Lower case, not full case folding, which respells words: "Maße" (measures) would become "masse" (mass).
    if text.isascii() and text.isprintable():
        key = text.lower()
    else:
        visible = _KEPT_OR_INVISIBLE.sub(_kept, text.translate(_ONE_SPELLING).lower())
        key = unicodedata.normalize("NFC", visible)
    key = _strip_edges(" ".join(key.split()))
    return key if _is_informative(key) else ""


def _kept(match: re.Match[str]) -> str:
    return match["kept"] or ""


def _strip_edges(key: str) -> str:
    start, end = 0, len(key)
    while start < end and _is_edge(key[start]) and not _opens_meaning(key, start):
        start += 1
    while start < end and _is_edge(key[end - 1]) and not _closes_meaning(key, start, end):
        end -= 1
    return key[start:end]


def _is_edge(character: str) -> bool:
    if character < "\x80":
        return character in _ASCII_EDGES
    return unicodedata.category(character)[0] in "PZ"


def _opens_meaning(key: str, at: int) -> bool:
    return key[at] in "-+" and key[at + 1 : at + 2].isdigit()


def _closes_meaning(key: str, start: int, end: int) -> bool:
    last, before = key[end - 1], key[end - 2 : end - 1]
    if last in "%\u2030":
        return before.isdigit()
    if last == "#":
        return before.isalpha()
    if last == "+":
        return key[start:end].rstrip("+")[-1:].isalnum()
    opening = _OPENING.get(last)
    if opening is None or end - start > MAX_KEY_CHARACTERS:
        return False  # counting the brackets of a long text for each of them would be quadratic
    return key.count(opening, start, end) >= key.count(last, start, end)


def _is_informative(key: str) -> bool:
    if key.isascii():
        return any(character.isalnum() for character in key)
    return any(unicodedata.category(character) in _INFORMATIVE for character in key)
