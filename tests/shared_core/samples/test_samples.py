"""The packaged conversation is what its questions and the demonstration need."""

from collections import Counter

import pytest

from shared_core.formats import read_entries
from shared_core.samples import SAMPLE_QUESTIONS, sample_path


@pytest.fixture(scope="module")
def entries():
    return read_entries(sample_path())


def test_it_is_a_long_conversation_of_two_over_months(entries):
    assert len(entries) >= 72
    assert set(Counter(entry.speaker for entry in entries).values()) <= {
        len(entries) // 2,
        len(entries) // 2 + 1,
    }
    assert len({entry.session for entry in entries}) >= 6
    assert (entries[-1].occurred_at - entries[0].occurred_at).days > 180
    assert sum(entry.caption is not None for entry in entries) >= 4


def test_turns_are_numbered_and_dated_in_order_within_their_sessions(entries):
    times = [entry.occurred_at for entry in entries]
    assert times == sorted(times)
    position = Counter()
    for entry in entries:
        position[entry.session] += 1
        assert entry.id == f"s{entry.session}:{position[entry.session]:02d}"


def test_questions_expect_turns_that_exist_from_all_over(entries):
    ids = {entry.id: entry for entry in entries}
    questions = [question for question, _ in SAMPLE_QUESTIONS]
    assert len(set(questions)) == len(questions) == 12
    for _, expected in SAMPLE_QUESTIONS:
        assert expected
        assert len(set(expected)) == len(expected)
        assert set(expected) <= ids.keys()
    several = [{ids[id].session for id in expected} for _, expected in SAMPLE_QUESTIONS if len(expected) > 1]
    assert sum(len(sessions) > 1 for sessions in several) >= 3  # multi-hop, across sessions
    assert len({ids[id].session for _, expected in SAMPLE_QUESTIONS for id in expected}) >= 6


def test_questions_paraphrase(entries):
    """Fewer than half of a question's words stand in any turn that answers it."""
    texts = {entry.id: set(_words(entry.content)) for entry in entries}
    for question, expected in SAMPLE_QUESTIONS:
        words = _words(question)
        for id in expected:
            assert sum(word in texts[id] for word in words) < len(words) / 2, question


def _words(text):
    return [word for word in "".join(c if c.isalnum() else " " for c in text.lower()).split() if len(word) > 2]
