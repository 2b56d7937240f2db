"""Requests are few, small enough, and give every prompt its tokens."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_core.models.vllm.planning import _WASTE, MOST_PROMPTS, MOST_TOKENS, plan

TOKENS = st.one_of(
    st.sets(st.integers(0, 20), max_size=6),
    st.sets(st.integers(0, 900), min_size=120, max_size=300),
    st.just({7}),
)


@given(st.lists(TOKENS, max_size=30), st.integers(1, 5))
def test_every_prompt_gets_its_tokens(wanted, repeated):
    wanted = wanted * repeated
    requests = plan([np.array(sorted(tokens), dtype=np.int64) for tokens in wanted])
    answered: list[set[int]] = [set() for _ in wanted]
    sent = needed = 0
    for request in requests:
        assert len(request.tokens) <= MOST_TOKENS
        assert len(request.rows) == len(set(request.rows)) <= MOST_PROMPTS
        sent += len(request.rows) * len(request.tokens)
        for row in request.rows:
            answered[row] |= request.tokens
    needed = sum(map(len, wanted))
    assert all(tokens <= got for tokens, got in zip(wanted, answered, strict=True))
    assert needed <= sent <= needed + _WASTE * len(requests)


def test_prompts_that_want_the_same_share_requests():
    assert len(plan([np.array([5])] * MOST_PROMPTS)) == 1
    assert len(plan([np.array([5])] * (MOST_PROMPTS + 1))) == 2
    assert len(plan([np.arange(MOST_TOKENS + 1)] * 2)) == 2


def test_prompts_that_want_little_share_requests():
    assert len(plan([np.array([number, 900]) for number in range(20)])) == 1


def test_nothing_is_asked_about_nothing():
    assert plan([]) == plan([np.zeros(0, dtype=np.int64)]) == []
