"""Any text as text that the memory keeps: names are escaped and read back, prose is cleaned."""

from __future__ import annotations

import json
import re

_QUOTE = '"'
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def spell(name: str) -> str:
    """A key or label as an id; names that no id may be (empty, blank, with NUL) are written as JSON strings."""
    if name.strip() and not name.startswith(_QUOTE) and not _UNSTORABLE.search(name):
        return name
    return json.dumps(name)


def read(spelling: str) -> str:
    """The name that :func:`spell` wrote."""
    if not spelling.startswith(_QUOTE):
        return spelling
    name: str = json.loads(spelling)
    return name


def cleaned(text: str) -> str:
    """A text without what no store keeps: NUL characters and lone surrogates."""
    return _UNSTORABLE.sub("\ufffd", text)
