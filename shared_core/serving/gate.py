"""What every request passes first: its figures, its key, its namespace, its size."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from time import perf_counter

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared_core.entry import check_namespace
from shared_core.errors import AccessError, InvalidInputError, SCGError, StoreUnavailableError
from shared_core.serving.addresses import is_loopback
from shared_core.serving.keys import KeyFile
from shared_core.serving.metrics import Metrics
from shared_core.serving.refusals import failed, refusal

NAMESPACE_HEADER = "X-SCG-Namespace"
"""Names the namespace of a request, as a JSON array of its parts: ``["users", "anna"]``.

A header, and not the path: parts may hold slashes, dots and any character, which proxies and servers take apart or
normalise in a path; and paths are what logs keep, while a namespace often names a person.
"""

NAMESPACE = "scg.namespace"
"""Where the gate leaves the namespace in a request's scope."""

_OPEN = frozenset({"/health", "/ready", "/metrics", "/openapi.json"})
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_OTHER = "other"

_log = logging.getLogger("shared_core.serving")


@dataclass(frozen=True, slots=True)
class Rules:
    """What the gate lets pass.

    Attributes:
        keys: The keys; ``None`` asks for none, and answers only what was sent to this machine by one of its names.
        most_bytes: Of a body.
        body_seconds: How long a body may take to arrive.
        routes: The paths that there are.
    """

    keys: KeyFile | None
    most_bytes: int
    body_seconds: float
    routes: frozenset[str]


class Gate:
    """Answers what may not pass, and hands on the rest.

    Nothing of a request is logged but its route, and the kind of an error that nobody foresaw.

    Args:
        app: What it guards.
        rules: What may pass.
        metrics: Told of every request.
    """

    def __init__(self, app: ASGIApp, rules: Rules, metrics: Metrics) -> None:
        self._app = app
        self._rules = rules
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        route = scope["path"] if scope["path"] in self._rules.routes else _OTHER
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        status = 0
        begin = perf_counter()
        self._metrics.begun(route)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["Cache-Control"] = "no-store"
            await send(message)

        try:
            passed = await self._admit(scope, receive)
            if isinstance(passed, Response):
                await passed(scope, receive, answer)
            else:
                await self._app(scope, passed, answer)
        except Exception as error:
            # Its message may quote what was sent; the kind and the place say enough to look for it.
            _log.error("%s in %s", _kind(error), route)
            if not status:
                await failed()(scope, receive, answer)
        finally:
            self._metrics.ended(method, route, status, perf_counter() - begin)

    async def _admit(self, scope: Scope, receive: Receive) -> Receive | Response:
        """Where the body of a request comes from, or why it is refused."""
        headers = Headers(scope=scope)
        path = scope["path"]
        try:
            if path not in _OPEN:
                refused = self._check_access(scope, headers, needs_namespace=path.startswith("/v1/"))
                if refused is not None:
                    return refused
        except SCGError as error:
            return refusal(error)
        try:
            # A client that stops in the middle would be waited for without end, also by a service that is to stop.
            async with asyncio.timeout(self._rules.body_seconds):
                return await self._body(headers, receive)
        except TimeoutError:
            late = f"the body did not arrive within {self._rules.body_seconds:g} s: send less at a time"
            return refusal(InvalidInputError(late), 408, {"Connection": "close"})

    def _check_access(self, scope: Scope, headers: Headers, *, needs_namespace: bool) -> Response | None:
        if self._rules.keys is None:
            # A page of somebody else's may reach this machine by a name of its own that leads here.
            if not is_loopback(_host(headers.get("host", ""))):
                raise AccessError("without keys only requests to a loopback address are answered")
            if needs_namespace:
                scope[NAMESPACE] = _namespace(headers)
            return None
        key = None
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            try:
                key = self._rules.keys.find(secret.strip().encode())
            except SCGError as error:
                _log.error("%s at the file of keys", type(error).__name__)
                raise StoreUnavailableError("the keys of this service cannot be read: nobody is let in") from error
        if key is None:
            unknown = AccessError("the key is missing or wrong: send it as `Authorization: Bearer …`")
            return refusal(unknown, 401, {"WWW-Authenticate": "Bearer"})
        if needs_namespace:
            namespace = _namespace(headers)
            if not key.allows(namespace):
                raise AccessError("the key is not for this namespace")
            scope[NAMESPACE] = namespace
        return None

    async def _body(self, headers: Headers, receive: Receive) -> Receive | Response:
        """The whole body, which is read before anything else is done with it."""
        most = self._rules.most_bytes
        too_large = InvalidInputError(f"the body is longer than {most} bytes: send less at a time")
        told = headers.get("content-length", "0")
        if not (told.isascii() and told.isdigit()) or int(told[:20]) > most:
            return refusal(too_large, 413)
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                break
            body += message.get("body", b"")
            if len(body) > most:
                return refusal(too_large, 413)
            if not message.get("more_body", False):
                break
        waiting: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return waiting.pop() if waiting else await receive()

        return replay


def _namespace(headers: Headers) -> tuple[str, ...]:
    named = [value for name, value in headers.raw if name == NAMESPACE_HEADER.lower().encode()]
    if len(named) != 1:
        raise InvalidInputError(f'name the namespace in the header {NAMESPACE_HEADER}: ["users", "anna"]')
    try:
        parts = json.loads(named[0])
    except (ValueError, RecursionError):
        parts = None
    if not isinstance(parts, list):
        raise InvalidInputError(f'{NAMESPACE_HEADER} must be a JSON array of texts: ["users", "anna"]')
    return check_namespace(parts)


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    name, _, port = header.rpartition(":")
    return (name if port.isdigit() and name else header).strip("[]")


def _kind(error: BaseException) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = "" if place is None else f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return f"{type(error).__name__}{where}"
