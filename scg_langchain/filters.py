"""Filters: metadata conditions as vector stores write them, translated to the core's filter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from shared_core import Filter
from shared_core.adapting import name_of
from shared_core.entry import parse_time
from shared_core.errors import UnsupportedError

_SUPPORTED = (
    "supported: metadata fields by equality ($eq), speaker and session by $eq and $in, occurred_at by $gte and $lt, and"
    " $and; or pass a shared_core.Filter"
)
# The part of a filter that each operator on a field of the source sets.
_PARTS = {
    ("speaker", "$eq"): "speaker",
    ("speaker", "$in"): "speaker",
    ("session", "$eq"): "session",
    ("session", "$in"): "session",
    ("occurred_at", "$gte"): "after",
    ("occurred_at", "$lt"): "before",
}
_SOURCE = {field for field, _ in _PARTS}


def as_filter(condition: object) -> Filter | None:
    """A filter from a dict of conditions, all of which must hold.

    ``{"channel": "club"}`` asks for an equal metadata value, ``{"speaker": ["Anna", "Ben"]}`` for one of the
    speakers, ``{"occurred_at": {"$gte": "2024-05-01", "$lt": "2024-06-01"}}`` for the time.

    Args:
        condition: The dict, a filter, or ``None`` for none.

    Raises:
        UnsupportedError: for any condition that the memory cannot check.
    """
    if condition is None or isinstance(condition, Filter):
        return condition
    if not isinstance(condition, Mapping):
        raise UnsupportedError(f"a filter of type {type(condition).__name__} is not supported ({_SUPPORTED})")
    parts: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for field, operator, operand in _conditions(condition):
        if field in _SOURCE:
            part, target = _PARTS.get((field, operator)), parts
            operand = parse_time(operand) if part in ("after", "before") else _names(operand, operator)
        else:
            part, target = field if operator == "$eq" else None, metadata
        if part is None or (operand is None and field in _SOURCE):
            raise UnsupportedError(f"the filter on {field!r:.200} with {operator} is not supported ({_SUPPORTED})")
        if part in target:
            raise UnsupportedError(f"the filter has two conditions {operator} on {field!r:.200}: join them into one")
        target[part] = operand
    return Filter(**parts, metadata=metadata)


def _conditions(condition: Mapping[str, object]) -> Iterator[tuple[str, str, Any]]:
    """Field, operator and operand of every condition."""
    for field, wanted in condition.items():
        if field == "$and" and isinstance(wanted, list | tuple) and all(isinstance(one, Mapping) for one in wanted):
            for one in wanted:
                yield from _conditions(one)
        elif isinstance(wanted, Mapping) and any(str(name).startswith("$") for name in wanted):
            yield from ((field, str(operator), operand) for operator, operand in wanted.items())
        elif str(field).startswith("$"):
            yield field, "this operand", wanted
        elif isinstance(wanted, list | tuple | set | frozenset):
            # Some stores read a plain list as "one of these"; equality to a list must be said.
            yield field, "$in", wanted
        else:
            yield field, "$eq", wanted


def _names(operand: object, operator: str) -> str | frozenset[str] | None:
    """The speakers or sessions that are meant; ``None`` if they are none."""
    if operator != "$in":
        return name_of(operand)
    names = [name_of(one) for one in operand] if isinstance(operand, list | tuple | set | frozenset) else [None]
    return None if None in names else frozenset(name for name in names if name is not None)
