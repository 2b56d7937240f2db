"""Where a model is served: ``vllm+http://host:port/name``."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

from shared_core.errors import ModelError

SCHEMES = ("vllm+http://", "vllm+https://")
"""What an address of a model on a vLLM server begins with."""

_KEY = "VLLM_API_KEY"
_TIMEOUT = 120.0
_FORM = "vllm+http://host:port/served-name"


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """A model on a server.

    Attributes:
        base: The server: ``http://host:port``.
        name: What the server calls the model (``--served-model-name``; otherwise what it was started with).
        tokenizer: The folder or hub id that its tokenizer is read from; ``None``: what the server was started with.
        timeout: Seconds that an answer may take.
        key: The server's key; ``None`` if it asks for none. Never shown.
    """

    base: str
    name: str
    tokenizer: str | None = None
    timeout: float = _TIMEOUT
    key: str | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ServerAddress:
        """Read ``vllm+http://[:key@]host:port/served-name[?tokenizer=…&timeout=…]``.

        A key that the address does not have is taken from ``VLLM_API_KEY``.

        Raises:
            ModelError: if it is no such address; the message does not repeat it, since it may hold a key.
        """
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
            options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
        except ValueError as error:
            raise ModelError(f"the address of the model server cannot be read: write it as {_FORM}") from error
        name = unquote(parts.path.strip("/"))
        if not host or not name or parts.fragment or not text.startswith(SCHEMES):
            raise ModelError(f"the address of the model server is not complete: write it as {_FORM}")
        if unknown := options.keys() - {"tokenizer", "timeout"}:
            raise ModelError(
                f"the address of the model server has unknown options ({', '.join(sorted(unknown))}): "
                "it may have tokenizer= and timeout="
            )
        shown = f"[{host}]" if ":" in host else host
        base = f"{parts.scheme.removeprefix('vllm+')}://{shown}" + (f":{port}" if port is not None else "")
        key = unquote(parts.password) if parts.password else os.environ.get(_KEY) or None
        if key is not None and not (key.isascii() and key.isprintable()):
            raise ModelError("the key of the model server has characters that no header can carry: check it")
        return cls(base, name, options.get("tokenizer") or None, _seconds(options.get("timeout")), key)

    def __str__(self) -> str:
        return f"{self.name!r} at {self.base}"


def _seconds(text: str | None) -> float:
    try:
        seconds = _TIMEOUT if text is None else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ModelError("timeout= in the address of the model server must be a number of seconds above 0")
    return seconds
