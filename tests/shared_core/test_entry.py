"""Entries of whatever a caller passes: stored as JSON has it, or refused with an error of this project."""

import enum
import json
from collections import OrderedDict, UserDict, namedtuple
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared_core import Filter, MemoryEntry, SCGConfig, SchemaMemory
from shared_core.errors import InvalidInputError, SCGError


class Mood(str, enum.Enum):  # noqa: UP042 - as older code has it
    GLAD = "glad"


class Name(enum.StrEnum):
    MIRA = "Mira"


class Size(enum.IntEnum):
    LARGE = 3


class Colour(enum.Enum):
    RED = "red"


class Loud(str):
    __slots__ = ()

    def __str__(self):
        return self.upper()


class Count(int):
    def __int__(self):
        raise RuntimeError("no")

    def __str__(self):
        return "many"


class Failing(Mapping):
    def __getitem__(self, key):
        raise RuntimeError("no")

    def __iter__(self):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")


@dataclass
class Point:
    x: int = 1


Pair = namedtuple("Pair", "left right")

ODD = st.sampled_from(
    [
        Mood.GLAD, Name.MIRA, Size.LARGE, Colour.RED, Loud("tea"), Count(7), Failing(), Point(), Pair(1, "b"),
        2**63, float("nan"), float("inf"), -0.0, 1e308,
        Decimal("1.5"), Fraction(1, 3), date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC), timedelta(1),
        b"x y", bytearray(b"x"), memoryview(b"x"), {1, 2}, frozenset(), range(3), (n for n in range(2)), iter([]),
        np.int64(3), np.float64(0.5), np.float32(0.5), np.bool_(True), np.str_("tea"), np.array([1, 2]), np.array(3),
        SimpleNamespace(a=1), PurePath("a"), object(), print, int, NotImplemented, ..., 1j, "\ud800", "a\x00",
    ]
)  # fmt: skip
LARGE = st.sampled_from([4299, 4300, 5000]).map(lambda digits: 10**digits)  # made late, for they cannot be shown
LEAVES = ODD | LARGE | st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
KEYS = st.text(max_size=3) | st.sampled_from([Mood.GLAD, Loud("key"), Size.LARGE, 1, None, b"k", ("a",), "\ud800"])


def mappings(values):
    plain = st.dictionaries(KEYS, values, max_size=3)
    kinds = st.sampled_from([dict, OrderedDict, MappingProxyType, UserDict])
    return st.builds(lambda kind, body: kind(body), kinds, plain)


def nested(values):
    lists = st.lists(values, max_size=3)
    return lists | lists.map(tuple) | lists.map(iter) | st.builds(Pair, values, values) | mappings(values)


METADATA = mappings(st.recursive(LEAVES, nested, max_leaves=6)) | ODD


@pytest.fixture(scope="module")
def memory():
    with SchemaMemory.open(":memory:", config=SCGConfig(assimilate=0)) as memory:
        yield memory


@given(METADATA)
@example({"n": 10**5000})
@example({"n": MappingProxyType({"x": 1})})
@example(MappingProxyType({"x": MappingProxyType({"y": (Mood.GLAD, Size.LARGE, Count(2))})}))
@example({Loud("a"): 1, "a": 2})
def test_metadata_is_stored_or_refused(memory, metadata):
    memory.clear()
    try:
        memory.remember("tea", id="1", metadata=metadata, use_model=False)
    except SCGError:
        assert memory.entries == []
        return
    kept = memory.get("1").metadata
    assert kept == json.loads(json.dumps(MemoryEntry("tea", metadata=metadata).metadata))
    assert [one.entry for one in memory.page()] == memory.entries == [MemoryEntry("tea", "1", metadata=metadata)]
    assert not kept or Filter(metadata=metadata).matches(memory.get("1"))


def test_what_json_means_is_what_is_kept():
    metadata = {"mood": Mood.GLAD, "size": Size.LARGE, "pair": Pair(1, Loud("x")), "count": Count(7)}
    metadata["f"] = np.float64(0.5)
    kept = MemoryEntry("tea", metadata=MappingProxyType(metadata)).metadata
    assert kept == {"mood": "glad", "size": 3, "pair": [1, "x"], "count": 7, "f": 0.5}
    assert {type(value) for value in kept.values()} == {str, int, list, float}


def test_what_the_caller_changes_later_is_not_changed_in_the_entry():
    inner = {"a": 1}
    entry = MemoryEntry("tea", metadata={"inner": inner})
    inner["a"] = object()
    assert entry.metadata == {"inner": {"a": 1}}


def test_texts_of_other_classes_are_kept_as_texts(memory):
    memory.clear()
    odd = {"speaker": Name.MIRA, "session": np.str_("s"), "caption": Loud("a cup")}
    memory.remember(Loud("some tea"), id=Mood.GLAD, **odd, use_model=False)
    [entry] = memory.entries
    assert entry == MemoryEntry("some tea", "glad", "Mira", "s", caption="a cup")
    assert {type(text) for text in (entry.text, entry.id, entry.speaker, entry.session, entry.caption)} == {str}


@pytest.mark.parametrize("what", [b"x y", bytearray(b"x"), memoryview(b"x")])
def test_bytes_are_called_bytes(memory, what):
    with pytest.raises(InvalidInputError, match=f"not {type(what).__name__}"):
        memory.remember(what, use_model=False)


def test_unknown_fields_are_named_but_not_at_any_length():
    with pytest.raises(InvalidInputError, match="unknown fields 'mood', 'place'"):
        MemoryEntry.from_dict({"text": "tea", "mood": "good", "place": "here"})
    with pytest.raises(InvalidInputError) as raised:
        MemoryEntry.from_dict({"text": "tea", "x" * 100_000: 1})
    assert len(str(raised.value)) < 300
