"""A chain's own model as the recall model, where it can be one."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from shared_core.errors import InvalidInputError
from shared_core.models import ModelSource


def recall_model(model: object) -> ModelSource:
    """What :meth:`shared_core.SchemaMemory.open` takes as ``model``, from a model object of LangChain.

    A ``HuggingFacePipeline``, or a ``ChatHuggingFace`` around one, has its model in this process: the memory shares
    the weights, and nothing is loaded twice. Anything else that the memory takes itself is handed through.

    Args:
        model: The chain's model.

    Raises:
        InvalidInputError: if it is a model behind an API, which gives no log-probabilities over a whole vocabulary.
    """
    pipeline = getattr(getattr(model, "llm", model), "pipeline", None)
    network, tokenizer = getattr(pipeline, "model", None), getattr(pipeline, "tokenizer", None)
    if network is not None and tokenizer is not None:
        return network, tokenizer
    if isinstance(model, Runnable):
        raise InvalidInputError(
            f"a {type(model).__name__} cannot recall: that takes log-probabilities over a whole vocabulary, and only a"
            " model in this process gives those. Name no recall model, so that the embedded one recalls, and let your"
            " own model answer"
        )
    return model  # type: ignore[return-value]  # whatever else it is, the memory judges it
