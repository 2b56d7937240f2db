"""Full-text scores equal BM25 computed by the book."""

import math
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_core.entry import MemoryEntry
from shared_core.recall.lexical import K1, B, LexicalIndex, asks, searchable_text
from shared_core.recall.stems import content_stems, word_stems

WORDS = ["garden", "gardens", "rose", "tulip", "the", "of", "water", "東京", "🎂", "May", "2023"]
texts = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
corpora = st.lists(texts, max_size=10)


def summands(corpus, query):
    """BM25 summand of every query stem (rows) in every text (columns), in Lucene's form."""
    documents = [word_stems(text) for text in corpus]
    mean = max(sum(map(len, documents)) / max(len(documents), 1), 1)
    rows = []
    for stem in content_stems(query):
        frequency = sum(stem in document for document in documents)
        idf = math.log(1 + (len(documents) - frequency + 0.5) / (frequency + 0.5))
        rows.append(
            [
                idf * document.count(stem) / (document.count(stem) + K1 * (1 - B + B * len(document) / mean))
                for document in documents
            ]
        )
    return np.array(rows).reshape(len(rows), len(documents))


@given(corpora, texts)
def test_scores_are_bm25(corpus, query):
    scores = LexicalIndex.build(corpus).scores(query)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, summands(corpus, query).sum(axis=0), rtol=1e-5, atol=1e-7)


@given(st.data(), corpora, texts)
def test_a_group_scores_every_stem_once_where_it_scores_best(data, corpus, query):
    size = len(corpus)
    groups = np.array(data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)), dtype=np.int64)
    parts = summands(corpus, query)
    count = int(groups.max(initial=-1)) + 1
    expected = [parts[:, groups == group].max(axis=1, initial=0).sum() for group in range(count)]
    scores = LexicalIndex.build(corpus).group_scores(query, groups)
    np.testing.assert_allclose(scores, np.array(expected).reshape(count), rtol=1e-5, atol=1e-7)


@given(corpora, corpora, texts)
def test_an_extended_index_equals_one_built_at_once(first, second, query):
    extended = LexicalIndex.build(first).extend(second)
    np.testing.assert_array_equal(extended.scores(query), LexicalIndex.build(first + second).scores(query))


def test_extending_leaves_the_old_index_as_it_was():
    index = LexicalIndex.build(["a rose", "a tulip"])
    before = index.scores("rose").tolist()
    index.extend(["rose rose rose"])
    assert index.scores("rose").tolist() == before


def test_function_words_are_no_evidence_beside_content():
    index = LexicalIndex.build(["what did they do there", "roses need water"])
    scores = index.scores("What did the roses need?")
    assert scores[0] == 0
    assert scores[1] > 0
    assert index.scores("what did they do")[0] > 0


def test_an_empty_index_has_no_scores():
    index = LexicalIndex.build([])
    assert index.scores("rose").shape == (0,)
    assert index.group_scores("rose", np.zeros(0, dtype=np.int64)).shape == (0,)
    assert LexicalIndex.build(["", "..."]).scores("rose").tolist() == [0, 0]


def test_an_entry_is_found_by_speaker_caption_and_day():
    entry = MemoryEntry(
        "I planted them", speaker="Rosa", caption="a bed of tulips", occurred_at=datetime(2023, 5, 8, 13, 56)
    )
    assert searchable_text(entry) == "Rosa I planted them a bed of tulips 8 May 2023"
    assert searchable_text(MemoryEntry("Tulips")) == "Tulips"


@pytest.mark.parametrize("text", ["Why?", "why?!?", "He asked “why?”", "Why? ", "どうして？", "لماذا؟", "(why?)"])
def test_questions_are_told_by_their_end(text):
    assert asks(text)


@pytest.mark.parametrize("text", ["", "Why? Because.", "Why not!", "?no"])
def test_other_texts_do_not_ask(text):
    assert not asks(text)
