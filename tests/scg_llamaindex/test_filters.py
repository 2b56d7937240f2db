"""Metadata filters mean what they say, however they nest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from scg_llamaindex.filters import as_filter
from scg_llamaindex.nodes import entry_of

_VALUES = st.one_of(st.integers(-2, 2), st.sampled_from(["", "a", "b", "ab"]))
_METADATA = st.dictionaries(st.sampled_from(["x", "y", "speaker"]), _VALUES, max_size=3)
_ONE = st.builds(
    MetadataFilter,
    key=st.sampled_from(["x", "y", "speaker"]),
    value=_VALUES,
    operator=st.sampled_from([FilterOperator.EQ, FilterOperator.NE, FilterOperator.GT, FilterOperator.LTE]),
)
_CONDITION = st.sampled_from([FilterCondition.AND, FilterCondition.OR, FilterCondition.NOT])
_NESTED = st.recursive(
    st.builds(MetadataFilters, filters=st.lists(_ONE, min_size=1, max_size=3), condition=_CONDITION),
    lambda inner: st.builds(MetadataFilters, filters=st.lists(inner, min_size=1, max_size=3), condition=_CONDITION),
    max_leaves=4,
)


def meets(metadata, one):
    """The same, said plainly."""
    if isinstance(one, MetadataFilters):
        met = [meets(metadata, inner) for inner in one.filters]
        return {"and": all(met), "or": any(met), "not": not any(met)}[one.condition.value]
    value, wanted = metadata.get(one.key), one.value
    if value is None:
        return False
    if one.operator in (FilterOperator.EQ, FilterOperator.NE):
        return (value == wanted) == (one.operator == FilterOperator.EQ)
    if isinstance(value, str) != isinstance(wanted, str):
        return False
    return value > wanted if one.operator == FilterOperator.GT else value <= wanted


@given(_METADATA, _NESTED)
def test_nested_conditions_hold_as_they_are_read(metadata, filters):
    entry = entry_of(TextNode(text="text", id_="1", metadata=metadata))
    assert as_filter(filters).matches(entry) == meets(metadata, filters)


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("in", ["a", "b"], True),
        ("nin", ["a"], False),
        ("any", ["a", "z"], True),
        ("is_empty", None, False),
        (">", 3, False),
        ("contains", "a", True),
        ("contains", 1, False),
        ("any", [1, 2], False),
        ("all", [1, 2], False),
    ],
)
def test_other_operators(operator, value, expected):
    entry = entry_of(TextNode(text="text", id_="1", metadata={"x": "a"}))
    one = MetadataFilter(key="x", value=value, operator=FilterOperator(operator))
    assert as_filter(MetadataFilters(filters=[one])).matches(entry) is expected


@pytest.mark.parametrize(("operator", "expected"), [("<", False), ("<=", True), (">", False), (">=", True)])
def test_times_are_compared_by_when_they_are(operator, expected):
    entry = entry_of(TextNode(text="text", id_="1", metadata={"occurred_at": "2024-05-01T12:00:00+02:00"}))
    one = MetadataFilter(key="occurred_at", value="2024-05-01T10:00:00+00:00", operator=FilterOperator(operator))
    assert as_filter(MetadataFilters(filters=[one])).matches(entry) is expected
