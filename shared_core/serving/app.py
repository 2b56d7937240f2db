"""The service: every endpoint, put together."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from shared_core.config import SCGConfig
from shared_core.errors import InvalidInputError, NotFoundError, SCGError, StoreError
from shared_core.memory import SchemaMemory
from shared_core.models import ModelSource
from shared_core.serving import endpoints
from shared_core.serving.gate import Gate, Rules
from shared_core.serving.keys import KeyFile
from shared_core.serving.metrics import Metrics
from shared_core.serving.refusals import refusal, told, unreadable

_MOST_BYTES = 8 << 20
_BODY_SECONDS = 30.0

_log = logging.getLogger("shared_core.serving")


def make_app(
    location: str | Path,
    *,
    keys: KeyFile | None = None,
    model: ModelSource = None,
    config: SCGConfig | None = None,
    most_bytes: int = _MOST_BYTES,
    body_seconds: float = _BODY_SECONDS,
) -> FastAPI:
    """The service over one store, which is opened now and closed when the service ends.

    Namespaces share the store and the model; those that were used last are kept open.

    Args:
        location: The path or URL of the store.
        keys: Who may use which namespace; ``None`` lets everybody use every one, who reaches this machine by a
            loopback address.
        model: As in :meth:`shared_core.SchemaMemory.open`.
        config: The settings of every namespace.
        most_bytes: The longest body of a request.
        body_seconds: How long a body may take to arrive.

    Raises:
        SCGError: as :meth:`shared_core.SchemaMemory.open`; and if the keys cannot be read.
    """
    if keys is not None:
        keys.known()
    root = SchemaMemory.open(location, model=model, config=config)
    metrics = Metrics(lambda: root.queued)
    ending = threading.Event()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        ending.set()  # what nobody waits for any more stops where it can be taken up again
        await asyncio.to_thread(root.close)

    app = FastAPI(
        title="scg-mem",
        description="Schema-constrained memory. The namespace of a request travels in its header X-SCG-Namespace.",
        version="1",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.memory, app.state.metrics, app.state.ending = root, metrics, ending
    app.include_router(endpoints.state)
    app.include_router(endpoints.memories)
    app.add_exception_handler(SCGError, _refuse)
    app.add_exception_handler(RequestValidationError, _refuse_unreadable)
    app.add_exception_handler(HTTPException, _refuse_http)
    routes = frozenset({*app.openapi()["paths"], "/openapi.json"})
    app.add_middleware(Gate, rules=Rules(keys, most_bytes, body_seconds, routes), metrics=metrics)
    return app


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, SCGError)
    # Where the store is, and what its server says, is for those who run the service.
    hidden = [(request.app.state.memory.location, "of this service"), (error.quoted, "…")]
    if isinstance(error, StoreError):
        _log.error("%s: %s", type(error).__name__, error)
    return refusal(error, hidden=[(what, instead) for what, instead in hidden if what])


async def _refuse_unreadable(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return refusal(unreadable(error.errors()))


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refusal(NotFoundError("there is no such endpoint: see /openapi.json"))
    if error.status_code == 400:  # a body that is no JSON
        return refusal(InvalidInputError("the body cannot be read: send JSON"))
    return told(InvalidInputError.__name__, str(error.detail), error.status_code, error.headers)
