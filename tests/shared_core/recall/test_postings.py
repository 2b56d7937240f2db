"""Postings: the same links read from both sides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from shared_core.recall.postings import Postings

documents = st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), max_size=8)


@given(documents, st.sets(st.sampled_from("abcxyz")))
def test_a_stem_leads_to_its_documents_and_counts(rows, stems):
    postings = Postings.build(rows)
    found = Counter()
    for stem in stems:
        places = postings.places(postings.known([stem]))
        for document, origin in zip(postings.documents[places], postings.origins[places], strict=True):
            found[int(document), stem] = int(postings.counts[origin])
    expected = {(number, stem): row.count(stem) for number, row in enumerate(rows) for stem in stems if stem in row}
    assert found == expected


@given(documents)
def test_a_document_knows_its_stems_and_its_length(rows):
    postings = Postings.build(rows)
    assert postings.document_count == len(rows)
    assert postings.lengths.tolist() == [len(row) for row in rows]
    names = {number: stem for stem, number in postings.vocabulary.items()}
    for number, row in enumerate(rows):
        owned = postings.stems[postings.starts[number] : postings.starts[number + 1]]
        assert [names[int(stem)] for stem in owned] == list(dict.fromkeys(row))


@given(documents, st.lists(st.sampled_from("abcxyz"), unique=True))
def test_several_stems_come_one_after_another(rows, stems):
    postings = Postings.build(rows)
    together = postings.documents[postings.places(postings.known(stems))].tolist()
    apart = [number for stem in stems for number, row in enumerate(rows) if stem in row]
    assert together == apart
