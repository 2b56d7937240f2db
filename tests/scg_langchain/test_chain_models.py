"""A chain's own model recalls where it can, and says so where it cannot."""

from types import SimpleNamespace

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser

from scg_langchain import SCGRetriever, recall_model
from shared_core import SchemaMemory
from shared_core.errors import InvalidInputError, ModelError, SCGError


def pipeline_of(embedded):
    """What langchain-huggingface's HuggingFacePipeline looks like from outside."""
    return SimpleNamespace(pipeline=SimpleNamespace(model=embedded._model, tokenizer=embedded._tokenizer))


def test_a_pipeline_shares_its_weights(embedded):
    pipeline = pipeline_of(embedded)
    chat = SimpleNamespace(llm=pipeline)  # ChatHuggingFace, from outside
    assert recall_model(chat) == recall_model(pipeline) == (embedded._model, embedded._tokenizer)
    with SchemaMemory.open(":memory:", model=recall_model(chat)) as memory:
        assert memory.model._model is embedded._model
        texts = ["I adopted a puppy named Rex from the shelter!", "We painted the kitchen green."]
        retriever = SCGRetriever.from_texts(texts, memory=memory, use_model=False, k=1)
        assert "puppy" in retriever.invoke("What pet did she get?")[0].page_content


@pytest.mark.parametrize("source", [None, "Qwen/Qwen2.5-1.5B-Instruct", "model.gguf"])
def test_what_the_memory_takes_is_handed_through(source):
    assert recall_model(source) is source


def test_a_model_behind_an_api_is_refused():
    api = FakeListChatModel(responses=["Rex"])
    for model in (api, api.with_config(tags=["x"]), api | StrOutputParser()):
        with pytest.raises(InvalidInputError, match=r"log-probabilities.*embedded one recalls"):
            recall_model(model)


def test_without_the_translation_the_memory_says_so():
    with SchemaMemory.open(":memory:", model=FakeListChatModel(responses=["Rex"])) as memory:
        with pytest.raises(
            ModelError, match=r"a FakeListChatModel is no language model.*embedded model recall"
        ) as caught:
            memory.remember("I adopted a puppy.")
        assert isinstance(caught.value, SCGError)
        assert not memory.entries
