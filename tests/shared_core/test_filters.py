"""A filter against its definition, part by part."""

import json
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.errors import InvalidInputError, UnsupportedError
from shared_core.filters import Filter

NOON = datetime(2023, 5, 8, 12)
UTC = UTC
TOKYO = timezone(timedelta(hours=9))


def entry(**fields):
    return MemoryEntry("I adopted a puppy", id="1", **fields)


NAMES = st.sampled_from(["anna", "Anna", "ben", ""])
TIMES = st.builds(
    lambda hours, zone: (NOON + timedelta(hours=hours)).replace(tzinfo=zone),
    st.integers(-12, 12),
    st.sampled_from([None, UTC, TOKYO, timezone(-timedelta(hours=5))]),
)
VALUES = st.sampled_from([None, True, False, 0, 1, 1.0, "1", [1], [True], {"a": 1}, {"a": 1.0}, {"a": True}])
METADATA = st.dictionaries(st.sampled_from(["a", "b"]), VALUES)
CHOICES = st.none() | NAMES | st.lists(NAMES) | st.sets(NAMES) | st.lists(NAMES).map(tuple)


def as_utc(time):
    """Hours since an epoch, naive times taken as UTC."""
    offset = time.utcoffset() or timedelta()
    return time.replace(tzinfo=None) - offset


def canonical(value):
    """A form in which two JSON values are equal exactly when JSON says so."""
    if isinstance(value, bool):
        return f"bool {value}"
    if isinstance(value, int | float):
        return f"number {float(value)}"
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, dict):
        return {name: canonical(item) for name, item in value.items()}
    return value


@given(
    session=CHOICES,
    speaker=CHOICES,
    after=st.none() | TIMES,
    before=st.none() | TIMES,
    wanted=METADATA,
    own=st.fixed_dictionaries(
        {
            "session": st.none() | NAMES,
            "speaker": st.none() | NAMES,
            "occurred_at": st.none() | TIMES,
            "metadata": METADATA,
        }
    ),
)
def test_every_part_must_be_met(session, speaker, after, before, wanted, own):
    if after and before and as_utc(after) >= as_utc(before):
        with pytest.raises(InvalidInputError, match="swap"):
            Filter(session=session, speaker=speaker, after=after, before=before, metadata=wanted)
        return
    condition = Filter(session=session, speaker=speaker, after=after, before=before, metadata=wanted)
    parts = [
        chosen is None or value in ([chosen] if isinstance(chosen, str) else list(chosen))
        for chosen, value in ((session, own["session"]), (speaker, own["speaker"]))
    ]
    time = own["occurred_at"]
    parts.append(after is None or (time is not None and as_utc(time) >= as_utc(after)))
    parts.append(before is None or (time is not None and as_utc(time) < as_utc(before)))
    parts += [
        name in own["metadata"] and canonical(own["metadata"][name]) == canonical(value)
        for name, value in wanted.items()
    ]
    assert condition.matches(entry(**own)) == all(parts)
    assert condition.is_empty == (
        session is None and speaker is None and after is None and before is None and not wanted
    )


def test_an_empty_filter_matches_everything():
    assert Filter().is_empty
    assert Filter().matches(entry())
    assert Filter().matches(entry(session="1", occurred_at=NOON, metadata={"a": None}))


def test_no_session_at_all_matches_nothing():
    condition = Filter(session=[])
    assert not condition.is_empty
    assert not condition.matches(entry(session="1"))
    assert not condition.matches(entry())


def test_after_includes_its_moment_and_before_does_not():
    at_noon = entry(occurred_at=NOON)
    assert Filter(after=NOON).matches(at_noon)
    assert not Filter(before=NOON).matches(at_noon)


def test_naive_times_count_as_utc_on_both_sides():
    nine_in_tokyo = datetime(2023, 5, 8, 21, tzinfo=TOKYO)
    assert Filter(after=nine_in_tokyo).matches(entry(occurred_at=NOON))
    assert Filter(after=NOON).matches(entry(occurred_at=nine_in_tokyo))
    assert not Filter(before=NOON).matches(entry(occurred_at=nine_in_tokyo))


def test_a_change_of_the_callers_list_does_not_reach_the_filter():
    sessions = ["1"]
    condition = Filter(session=sessions)
    sessions.append("2")
    assert not condition.matches(entry(session="2"))


@pytest.mark.parametrize(
    "fields",
    [
        {"session": 1},
        {"session": b"1"},
        {"session": ["1", 2]},
        {"session": iter(["1"])},
        {"session": {"1": True}},
        {"speaker": ["\ud800"]},
        {"speaker": "a\x00"},
        {"after": "2023-05-08"},
        {"before": date(2023, 5, 8)},
        {"after": NOON, "before": NOON},
        {"after": NOON, "before": NOON.replace(tzinfo=TOKYO)},
        {"metadata": ["a"]},
        {"metadata": {"a": float("nan")}},
        {"metadata": {1: "a"}},
        {"metadata": None},
    ],
)
def test_parts_that_cannot_be_are_refused(fields):
    with pytest.raises(InvalidInputError):
        Filter(**fields)


def test_unknown_parts_are_refused():
    with pytest.raises(TypeError):
        Filter(mood="good")


@given(session=CHOICES, speaker=CHOICES, after=st.none() | TIMES, before=st.none() | TIMES, metadata=METADATA)
def test_as_json_it_is_the_same_filter(session, speaker, after, before, metadata):
    try:
        where = Filter(session, speaker, after, before, metadata)
    except InvalidInputError:
        return
    again = Filter.from_dict(json.loads(json.dumps(where.to_dict())))
    assert again == where
    assert again.to_dict() == where.to_dict()


def test_only_what_is_known_goes_to_json_and_back():
    class Odd(Filter):
        pass

    with pytest.raises(UnsupportedError, match="Odd"):
        Odd(speaker="anna").to_dict()
    for body in ({"colour": "red"}, {"after": "soon"}, {"session": 3}):
        with pytest.raises(InvalidInputError):
            Filter.from_dict(body)
