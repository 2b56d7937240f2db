"""Writing systems, as far as finding words needs them: what the write and the read path both build on."""

from __future__ import annotations

import unicodedata

# Blocks that hold combining marks. Python's \w leaves marks out, which would cut every Hindi word in two.
_MARK_BLOCKS = (
    (0x0300, 0x1E00),
    (0x20D0, 0x20F1),
    (0xA66F, 0xABF0),
    (0xFE20, 0xFE30),
    (0x10A00, 0x12000),
    (0x1E8D0, 0x1E950),
)


def _mark_ranges() -> str:
    ranges: list[tuple[int, int]] = []
    for first, end in _MARK_BLOCKS:
        for code in range(first, end):
            if unicodedata.category(chr(code))[0] != "M":
                continue
            start = ranges.pop()[0] if ranges and ranges[-1][1] == code - 1 else code
            ranges.append((start, code))
    return "".join(f"{chr(low)}-{chr(high)}" for low, high in ranges)


def word_set(words: str) -> frozenset[str]:
    """The words of a list written with spaces between them."""
    return frozenset(words.split())


# Each of these is the inside of a regular expression's character class.
MARKS = _mark_ranges()
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
HIRAGANA = "\u3041-\u3096\u309d-\u309f"
KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"
HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7ff"
SOUTHEAST = (  # Thai, Lao, Burmese and Khmer letters with their marks
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecd\u0edc-\u0edf\u1000-\u103f\u1050-\u109d\ua9e0-\ua9ef"
    "\uaa60-\uaa7f\u1780-\u17d3"
)
SPACELESS = HAN + HIRAGANA + KATAKANA + HANGUL + SOUTHEAST
"""Scripts in which a run of letters is no word: without spaces, or, as Korean, with particles attached."""

_PICTURE = (
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u2600-\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50"
    "\u2b55\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
)
_STYLE = "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]?"
EMOJI = (
    "(?:[\U0001f1e6-\U0001f1ff]{2}|[0-9#*]\ufe0f?\u20e3"
    f"|[{_PICTURE}]{_STYLE}(?:[\U000e0020-\U000e007e]+\U000e007f)?(?:\u200d[{_PICTURE}]{_STYLE})*)"
)
"""A pattern for one emoji with its skin tone, its joined parts, or its tags."""

FUNCTION_WORDS = word_set(
    """
    a about above after again all also am an and any anyone anything are aren't as at be because been
    before being below both but by can can't cannot could couldn't did didn't do does doesn't doing
    don't down during each either else ever every everyone everything few for from further had hadn't
    has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his how
    how's i i'd i'll i'm i've if in into is isn't it it'd it'll it's its itself just let let's me might
    more most must my myself neither no nor not now of off on once one only or other our ours ourselves
    out over own per please same shall she she'd she'll she's should shouldn't since so some someone
    something still such than that that'd that'll that's the their theirs them themselves then there
    there's these they they'd they'll they're they've this those though through to too under until up
    upon us very was wasn't we we'd we'll we're we've were weren't what what's whatever when when's
    whenever where where's wherever whether which while who who's whoever whom whose why will with
    within without won't would wouldn't yes yet you you'd you'll you're you've your yours yourself
    yourselves
    """
)
"""English words that carry grammar rather than content: no concept by themselves, no evidence in a query."""
