"""Calls of a service: what is sent again, what is not, and what an answer means."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

import httpx

from shared_core import errors
from shared_core.errors import AccessError, InvalidInputError, SCGError, StoreError, StoreUnavailableError

_T = TypeVar("_T")

_TRIES = 4
_FIRST_PAUSE = 0.2  # seconds; each further one is twice as long
_CONNECT_SECONDS = 5.0
_NAMESPACE_HEADER = "X-SCG-Namespace"
# What a proxy says of a service that is not there; the service itself says what is wrong in a form of its own.
_GONE = frozenset({502, 503, 504})


@dataclass(frozen=True, slots=True)
class Call:
    """One call.

    Attributes:
        method: ``GET`` or ``POST``.
        path: The endpoint.
        namespace: Whose memory.
        repeatable: Whether it may be carried out twice: then it is sent again where nobody knows whether it was.
        body: The JSON object that is sent.
        query: Parameters.
    """

    method: str
    path: str
    namespace: tuple[str, ...]
    repeatable: bool
    body: Mapping[str, Any] | None = None
    query: Mapping[str, int] | None = None


class Connection:
    """The way to one service, for every namespace, thread and event loop.

    Args:
        address: ``http://host:port``.
        api_key: The key.
        timeout: Seconds that an answer may take.

    Raises:
        InvalidInputError: if the address is none, or holds a password; if the key or the timeout cannot be used.
    """

    def __init__(self, address: str, api_key: str | None, timeout: float) -> None:
        self.address = _checked_address(address)
        seconds = _checked_seconds(timeout)
        self._key = _checked_key(api_key)
        self._timeout = httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))
        self._client = httpx.Client(timeout=self._timeout)
        # The connections of an asynchronous client belong to the event loop that made them.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    def send(self, call: Call, read: Callable[[Mapping[str, Any]], _T]) -> _T:
        """Make a call, and give what the answer means.

        Args:
            call: The call.
            read: Reads the JSON object of an answer.

        Raises:
            SCGError: what the service says is wrong, of the kind that it names.
            StoreUnavailableError: if it cannot be reached, or does not answer in time.
            StoreError: if what answers is no service of this kind, or an answer does not say what it should.
        """
        for tried in range(_TRIES):
            try:
                response = self._client.request(**self._request(call))
                if not _again(call, response, tried):
                    return self._result(response, read)
            except httpx.HTTPError as error:
                self._check_again(call, error, tried)
            except RuntimeError as error:
                self._refuse_closed(error)
            time.sleep(_pause(tried))
        raise AssertionError("unreachable")

    async def asend(self, call: Call, read: Callable[[Mapping[str, Any]], _T]) -> _T:
        """:meth:`send`, without blocking the event loop."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            if self._client.is_closed:
                self._refuse_closed(None)
            client = self._clients[loop] = httpx.AsyncClient(timeout=self._timeout)
        for tried in range(_TRIES):
            try:
                response = await client.request(**self._request(call))
                if not _again(call, response, tried):
                    return self._result(response, read)
            except httpx.HTTPError as error:
                self._check_again(call, error, tried)
            except RuntimeError as error:
                self._refuse_closed(error)
            await asyncio.sleep(_pause(tried))
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections of synchronous calls."""
        self._client.close()

    async def aclose(self) -> None:
        """Close the connections of synchronous calls, and those of this event loop."""
        self._client.close()
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _request(self, call: Call) -> dict[str, Any]:
        headers = {_NAMESPACE_HEADER: json.dumps(call.namespace)}
        if self._key is not None:
            headers["Authorization"] = f"Bearer {self._key}"
        request = {"method": call.method, "url": self.address + call.path, "headers": headers, "params": call.query}
        if call.body is None:
            return request
        headers["Content-Type"] = "application/json"
        return {**request, "content": _encoded(call.body)}

    def _check_again(self, call: Call, error: httpx.HTTPError, tried: int) -> None:
        """Return if the call may be sent again, raise if not."""
        never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if (call.repeatable or never_sent) and tried + 1 < _TRIES and isinstance(error, httpx.TransportError):
            return
        kind = type(error).__name__
        if never_sent:
            what = f"cannot be reached ({kind}): start it with `scg serve`, or check the address"
        elif isinstance(error, httpx.TimeoutException):
            what = f"did not answer in time ({kind}): try again, or allow more with timeout="
        else:
            what = f"broke off ({kind}): try again"
        unknown = "" if never_sent or call.repeatable else "; whether it was carried out is not known"
        raise StoreUnavailableError(f"the memory at {self.address} {what}{unknown}") from error

    def _refuse_closed(self, error: RuntimeError | None) -> NoReturn:
        if error is not None and not self._client.is_closed:
            raise error
        raise StoreError(f"the memory at {self.address} was closed: open it again") from error

    def _result(self, response: httpx.Response, read: Callable[[Mapping[str, Any]], _T]) -> _T:
        told = _json(response)
        if response.is_success and isinstance(told, dict):
            try:
                return read(told)
            except (LookupError, TypeError, ValueError, AttributeError) as error:  # also errors of this project
                raise self._foreign(response) from error
        if response.status_code in _GONE and not isinstance(told, dict):
            raise StoreUnavailableError(
                f"the memory at {self.address} does not answer (status {response.status_code} of what stands before "
                "it): try again"
            )
        if not isinstance(told, dict) or not {"error", "message"} <= told.keys():
            raise self._foreign(response)
        kind = getattr(errors, str(told["error"]), None)
        if not (isinstance(kind, type) and issubclass(kind, SCGError)):
            kind = StoreError
        if issubclass(kind, AccessError):
            raise kind(f"{self.address}: {told['message']}")
        failed = kind(str(told["message"]))
        stored = told.get("stored")
        failed.stored = tuple(map(str, stored)) if isinstance(stored, list) else ()
        raise failed

    def _foreign(self, response: httpx.Response) -> StoreError:
        return StoreError(
            f"what answers at {self.address} is no memory, or one of another version (status {response.status_code}): "
            "check the address"
        )


def _checked_seconds(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InvalidInputError(f"timeout must be a number of seconds above 0, not {timeout!r:.80}")
    return timeout


def _checked_key(key: object) -> str | None:
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip() == key != "" or not key.isascii() or not key.isprintable():
        raise InvalidInputError("the key must be a text as `scg key add` prints it")
    return key


def _checked_address(address: object) -> str:
    if not isinstance(address, str) or not address.startswith(("http://", "https://")):
        shown = f"{address!r:.80}" if not isinstance(address, str) or "@" not in address else "that"
        raise InvalidInputError(f"{shown} is no address of a service: http://host:port")
    try:
        url = httpx.URL(address)
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidInputError("the address of the service cannot be read: http://host:port") from error
    if url.userinfo:
        raise InvalidInputError("the address of the service holds a user or a password: pass the key as api_key=")
    if not url.host or url.query or url.fragment:
        raise InvalidInputError(f"{address!r:.80} is no address of a service: http://host:port")
    return address.rstrip("/")


def _encoded(body: Mapping[str, Any]) -> bytes:
    """A body as it is sent.

    Raises:
        InvalidInputError: if JSON has no form for it, such as for bytes, NaN or a lone surrogate.
    """
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"this cannot be sent to a service: {error}") from None


def _json(response: httpx.Response) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return response.json()
    except ValueError:
        return None


def _again(call: Call, response: httpx.Response, tried: int) -> bool:
    """Whether a call is sent again for its answer."""
    return (
        call.repeatable
        and tried + 1 < _TRIES
        and response.status_code in _GONE
        and not isinstance(_json(response), dict)
    )


def _pause(tried: int) -> float:
    """Seconds before the next try; at random, so that many callers do not come back together."""
    return _FIRST_PAUSE * 2.0**tried * random.uniform(0.5, 1.0)
