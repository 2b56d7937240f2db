"""Families: whatever the order they come in, those with equal sets of stems are together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_core.recall.families import Families

stem_sets = st.lists(st.sets(st.integers(0, 5), max_size=4), max_size=10)


@given(st.lists(stem_sets, max_size=4))
def test_a_family_is_named_by_the_first_concept_with_its_stems(several):
    families = Families.empty()
    for sets in several:
        stems = [stem for one in sets for stem in one]
        families = families.extend(
            np.array(stems, dtype=np.int32), np.array([len(one) for one in sets], dtype=np.int64)
        )
    together = [one for sets in several for one in sets]
    assert families.of.tolist() == [together.index(one) for one in together]
    assert families.signatures.tolist() == sorted(set(families.signatures.tolist()))
    assert set(families.names.tolist()) == set(families.of.tolist())
