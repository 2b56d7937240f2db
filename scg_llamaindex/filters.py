"""Filters: LlamaIndex's metadata filters, nested as they come, as a condition on entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import ge, gt, le, lt
from typing import Any, Final

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from scg_llamaindex.nodes import metadata_of
from shared_core import Filter, MemoryEntry
from shared_core.entry import parse_time
from shared_core.errors import InvalidInputError, UnsupportedError
from shared_core.filters import instant


def _holds(value: list[Any] | str, wanted: object) -> bool:
    """Whether a list has an item, or a text a part."""
    return (not isinstance(value, str) or isinstance(wanted, str)) and wanted in value


_ORDER: Final[Mapping[FilterOperator, Callable[[Any, Any], bool]]] = {
    FilterOperator.GT: gt,
    FilterOperator.GTE: ge,
    FilterOperator.LT: lt,
    FilterOperator.LTE: le,
}
# Of a field that is missing, only its emptiness is true, as in LlamaIndex's own in-memory store.
_TESTS: Final[Mapping[FilterOperator, Callable[[Any, Any], bool]]] = {
    FilterOperator.EQ: lambda value, wanted: value == wanted,
    FilterOperator.NE: lambda value, wanted: value != wanted,
    FilterOperator.IN: lambda value, wanted: value in wanted,
    FilterOperator.NIN: lambda value, wanted: value not in wanted,
    FilterOperator.ANY: lambda value, wanted: any(_holds(value, one) for one in wanted),
    FilterOperator.ALL: lambda value, wanted: all(_holds(value, one) for one in wanted),
    FilterOperator.CONTAINS: _holds,
}
_OF_LISTS: Final = (FilterOperator.ANY, FilterOperator.ALL, FilterOperator.CONTAINS)
_WITH_LISTS: Final = (FilterOperator.IN, FilterOperator.NIN, FilterOperator.ANY, FilterOperator.ALL)


@dataclass(frozen=True, slots=True)
class MetadataCondition(Filter):
    """Metadata filters as a filter of the core.

    Attributes:
        filters: The filters.
    """

    filters: MetadataFilters = field(default_factory=lambda: MetadataFilters(filters=[]))

    @property
    def is_empty(self) -> bool:
        """Whether no condition is given, so that every entry matches."""
        return not self.filters.filters

    def matches(self, entry: MemoryEntry) -> bool:
        """Whether the entry's metadata meet the filters."""
        return self.is_empty or _meets(metadata_of(entry), self.filters)


def as_filter(condition: MetadataFilters | Filter | None) -> Filter | None:
    """A filter of the core from metadata filters; one of the core itself, or none, is handed through.

    Raises:
        UnsupportedError: for any condition that the memory cannot check.
    """
    if condition is None or isinstance(condition, Filter):
        return condition
    if not isinstance(condition, MetadataFilters):
        raise UnsupportedError(
            f"a filter of type {type(condition).__name__} is not supported: pass MetadataFilters, or a Filter"
        )
    _check(condition)
    return MetadataCondition(filters=condition.model_copy(deep=True))


def _check(filters: MetadataFilters) -> None:
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            _check(one)
        elif one.operator not in _ORDER and one.operator not in _TESTS and one.operator != FilterOperator.IS_EMPTY:
            raise UnsupportedError(
                f"the operator {one.operator.value!r} on {one.key!r:.200} is not supported: recall by text"
            )
        elif one.operator in _WITH_LISTS and not isinstance(one.value, list):
            raise UnsupportedError(f"the operator {one.operator.value!r} on {one.key!r:.200} takes a list")


def _meets(metadata: Mapping[str, Any], filters: MetadataFilters) -> bool:
    met = (
        _meets(metadata, one) if isinstance(one, MetadataFilters) else _meets_one(metadata.get(one.key), one)
        for one in filters.filters
    )
    if filters.condition == FilterCondition.OR:
        return any(met)
    if filters.condition == FilterCondition.NOT:
        return not any(met)
    return all(met)


def _meets_one(value: Any, one: MetadataFilter) -> bool:
    if one.operator == FilterOperator.IS_EMPTY:
        return value in (None, "", [])
    if value is None:
        return False
    if one.operator in _ORDER:
        return _compare(one, value)
    if one.operator in _OF_LISTS and not isinstance(value, list | str):
        return False
    return _TESTS[one.operator](value, one.value)


def _compare(one: MetadataFilter, value: object) -> bool:
    """Whether an order holds: of numbers, of texts, and of times by when they are; never of one with another."""
    test, wanted = _ORDER[one.operator], one.value
    if one.key == "occurred_at":
        try:
            return test(instant(parse_time(value)), instant(parse_time(wanted)))
        except InvalidInputError:
            return False
    if (_is_number(value) and _is_number(wanted)) or (isinstance(value, str) and isinstance(wanted, str)):
        return test(value, wanted)
    return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
