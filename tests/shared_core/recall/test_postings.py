"""Postings: from stems to the documents that have them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shared_core.recall.postings import Postings

documents = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=8)


def extended(postings, rows):
    vocabulary = dict(postings.vocabulary)
    stems = [vocabulary.setdefault(stem, len(vocabulary)) for row in rows for stem in row]
    return postings.extend(vocabulary, np.array(stems, dtype=np.int32), np.array([len(row) for row in rows], np.int64))


@given(st.lists(documents, max_size=3), st.lists(st.sampled_from("abcxyz"), unique=True))
def test_stems_lead_to_their_documents_and_counts_one_after_another(several, stems):
    postings = Postings.empty()
    for rows in several:
        postings = extended(postings, rows)
    rows = [row for rows in several for row in rows]
    assert postings.document_count == len(rows)
    assert postings.lengths.tolist() == [len(row) for row in rows]
    places = postings.places(postings.known(stems))
    found = zip(postings.documents[places].tolist(), postings.counts[places].tolist(), strict=True)
    assert list(found) == [
        (number, row.count(stem)) for stem in stems for number, row in enumerate(rows) if stem in row
    ]


@given(documents, documents)
def test_extending_leaves_the_old_postings_as_they_were(first, second):
    postings = extended(Postings.empty(), first)
    before = {stem: postings.documents[postings.places(postings.known([stem]))].tolist() for stem in "abcdef"}
    extended(postings, second)
    assert before == {stem: postings.documents[postings.places(postings.known([stem]))].tolist() for stem in "abcdef"}
