"""Which items and namespaces of a LangGraph store are meant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final

from langgraph.store.base import ListNamespacesOp, MatchCondition

from shared_core.errors import InvalidInputError

_EQUALITY: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"$eq": eq, "$ne": ne}
_ORDER: Final[Mapping[str, Callable[[float, float], bool]]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}
# What other stores let stand where a field does. Taken for a field, it would be met by nothing and say nothing.
_NO_FIELDS: Final = {*_EQUALITY, *_ORDER, "$and", "$or", "$nor", "$not", "$in", "$nin"}


def check_filter(condition: object) -> None:
    """Refuse a filter that no item could be compared with.

    Raises:
        InvalidInputError: if it is no object, has an operator where a field belongs, or uses an unknown operator or an
            order of what is no number.
    """
    if not isinstance(condition, Mapping):
        raise InvalidInputError(f"a filter must be an object such as {{'kind': 'note'}}, not {condition!r:.200}")
    for name, wanted in condition.items():
        if not isinstance(name, str):
            raise InvalidInputError(f"the field names of a filter are text, not {name!r:.200}")
        if name in _NO_FIELDS:
            raise InvalidInputError(f"a filter has fields at its top, all of which must meet it, not {name!r:.200}")
        _check_wanted(wanted)


def meets_filter(value: Mapping[str, Any], condition: Mapping[str, Any]) -> bool:
    """Whether a value meets every condition on its fields."""
    return all(_compare(value.get(name), wanted) for name, wanted in condition.items())


def choose_namespaces(names: Iterable[tuple[str, ...]], op: ListNamespacesOp) -> list[tuple[str, ...]]:
    """The namespaces that an operation asks for, sorted.

    Raises:
        InvalidInputError: if a condition is of an unknown kind, or a number is negative.
    """
    check_counts(limit=op.limit, offset=op.offset)
    conditions = op.match_conditions or ()
    for condition in conditions:
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidInputError(f"namespaces match by 'prefix' or 'suffix', not {condition.match_type!r:.200}")
    chosen = [name for name in names if all(_matches(name, condition) for condition in conditions)]
    if op.max_depth is not None:
        check_counts(max_depth=op.max_depth)
        chosen = list({name[: op.max_depth] for name in chosen})
    return sorted(chosen)[op.offset : op.offset + op.limit]


def check_counts(**counts: object) -> None:
    """Refuse numbers that count nothing.

    Raises:
        InvalidInputError: if one is no whole number, or negative.
    """
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise InvalidInputError(f"{name} must be a whole number of at least 0, not {count!r:.200}")


def _check_wanted(wanted: object) -> None:
    if isinstance(wanted, list | tuple):
        for one in wanted:
            _check_wanted(one)
    if not isinstance(wanted, Mapping):
        return
    if not any(str(name).startswith("$") for name in wanted):
        check_filter(wanted)
        return
    for name, operand in wanted.items():
        if name in _ORDER and _number(operand) is None:
            raise InvalidInputError(f"{name} compares numbers, not {operand!r:.200}")
        if name not in _ORDER and name not in _EQUALITY:
            known = ", ".join([*_EQUALITY, *_ORDER])
            raise InvalidInputError(f"a filter knows no operator {name!r:.200}: use {known}")


def _compare(value: object, wanted: object) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_apply(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(_compare(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list | tuple):
        if not isinstance(value, list) or len(value) != len(wanted):
            return False
        return all(_compare(one, other) for one, other in zip(value, wanted, strict=True))
    return value == wanted


def _apply(value: object, name: str, operand: object) -> bool:
    if name in _EQUALITY:
        return _EQUALITY[name](value, operand)
    left, right = _number(value), _number(operand)
    return left is not None and right is not None and _ORDER[name](left, right)


def _number(value: object) -> float | None:
    """The number that a value is or spells; ``None`` if it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None


def _matches(name: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(name) < len(path):
        return False
    part = name[: len(path)] if condition.match_type == "prefix" else name[len(name) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))
