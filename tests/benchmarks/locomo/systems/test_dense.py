"""Embeddings: the text that is embedded, the order, the costs. On a tiny random encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast

from benchmarks.locomo.systems import UnavailableError, Workplace, choose
from benchmarks.locomo.systems.dense import Dense, load_encoder, text_of
from shared_core import MemoryEntry

sentence_transformers = pytest.importorskip("sentence_transformers")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", ":", "?", "the", "kayak", "leaks", "fog", "feast", "ylva", "bram", "who"]
TURNS = [
    MemoryEntry("the kayak leaks", "a", "Ylva"),
    MemoryEntry("fog", "b", "Bram"),
    MemoryEntry("the feast", "c", "Bram", caption="the fog"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder of sentences, as one is found on a disk."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    place = tmp_path_factory.mktemp("encoder")
    (place / "vocab.txt").write_text("\n".join(WORDS))
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), **sizes, initializer_range=0.5)).save_pretrained(place / "bert")
    BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place / "bert")
    network = Transformer(str(place / "bert"))
    SentenceTransformer(modules=[network, Pooling(16)], device="cpu").save(str(place / "whole"))
    return place / "whole"


def test_turns_are_ranked_by_cosine(folder: Path):
    encoder = load_encoder(str(folder))
    system = Dense(encoder)
    done: list[int] = []
    wrote = system.write(TURNS, done.append)
    assert done == [3]
    assert (wrote.passes, wrote.tokens) == (1, 3 * 7)  # padded to "[CLS] ylva : the kayak leaks [SEP]"
    found = system.read("who leaks?", 35)
    vectors = encoder.encode([text_of(turn) for turn in TURNS])
    query = encoder.encode("who leaks?")
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    assert found.ids == [TURNS[place].id for place in np.argsort(-cosines)]
    assert (found.cost.passes, found.cost.tokens) == (1, 5)
    assert system.read("who leaks?", 2).ids == found.ids[:2]
    system.close()


def test_an_image_speaks_where_nothing_is_said():
    assert text_of(TURNS[2]) == "Bram: the feast"
    assert text_of(MemoryEntry("", "d", "Bram", caption="the fog")) == "Bram: the fog"
    assert text_of(MemoryEntry("the fog", "e")) == "the fog"


def test_an_encoder_is_loaded_once_for_all(folder: Path, tmp_path: Path):
    workplace = Workplace(tmp_path)
    (entrant,) = choose([f"dense:{folder}"])
    assert entrant.settings(workplace)["encoder"] == str(folder)
    entrant.open(workplace).close()
    assert workplace.encoder(str(folder)) is workplace.encoder(str(folder))


def test_an_encoder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(UnavailableError, match="could not be loaded"):
        load_encoder(str(tmp_path / "missing"))
