"""An application's own model as the recall model, where it can be one."""

from __future__ import annotations

from llama_index.core.base.llms.base import BaseLLM

from shared_core.errors import InvalidInputError
from shared_core.models import ModelSource


def recall_model(model: object) -> ModelSource:
    """What :meth:`shared_core.SchemaMemory.open` takes as ``model``, from a model object of LlamaIndex.

    A ``HuggingFaceLLM`` has its model in this process: the memory shares the weights, and nothing is loaded twice.
    Anything else that the memory takes itself is handed through.

    Args:
        model: The application's model.

    Raises:
        InvalidInputError: if it is a model behind an API, which gives no log-probabilities over a whole vocabulary.
    """
    network, tokenizer = getattr(model, "_model", None), getattr(model, "_tokenizer", None)
    if isinstance(model, BaseLLM) and network is not None and tokenizer is not None:
        return network, tokenizer
    if isinstance(model, BaseLLM):
        raise InvalidInputError(
            f"a {type(model).__name__} cannot recall: that takes log-probabilities over a whole vocabulary, and only a"
            " model in this process gives those. Name no recall model, so that the embedded one recalls, and let your"
            " own model answer"
        )
    return model  # type: ignore[return-value]  # whatever else it is, the memory judges it
