"""What a recall tells LlamaIndex's instrumentation."""

from __future__ import annotations

from typing import Any

from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]  # re-exported
from llama_index.core.instrumentation.events.base import BaseEvent  # type: ignore[attr-defined]  # re-exported

from shared_core import Recall

_dispatcher = get_dispatcher(__name__)


class SCGRecallEvent(BaseEvent):
    """A memory recalled.

    Attributes:
        recall: The recall as a JSON object: ``query``, ``entries`` with scores and reasons, ``seeds``, ``context``.
    """

    recall: dict[str, Any]

    @classmethod
    def class_name(cls) -> str:
        """The name in traces."""
        return "SCGRecallEvent"


def tell(recall: Recall) -> None:
    """Tell whoever listens."""
    _dispatcher.event(SCGRecallEvent(recall=recall.to_dict()))
