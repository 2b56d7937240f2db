"""The language model on a vLLM server, behind the port."""

from shared_core.models.vllm.address import SCHEMES, ServerAddress
from shared_core.models.vllm.engine import VLLMModel
from shared_core.models.vllm.server import Server

__all__ = ["SCHEMES", "Server", "ServerAddress", "VLLMModel"]
