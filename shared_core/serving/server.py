"""The process that serves: it listens, says where, and ends when it is told to, with nothing left half done."""

from __future__ import annotations

import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

import uvicorn
from fastapi import FastAPI

from shared_core.errors import InvalidInputError
from shared_core.serving.addresses import is_loopback

_FINISHING_SECONDS = 30


def listen(host: str, port: int, *, anywhere: bool) -> socket.socket:
    """A socket that is bound to an address.

    Args:
        host: A name or an address.
        port: 0 for one that is free.
        anywhere: Allow addresses that other machines can reach.

    Raises:
        InvalidInputError: if the address is none, is taken, or may not be used.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, OverflowError, UnicodeError) as error:
        raise InvalidInputError(f"{host!r:.200} port {port} is no address to listen on: {error}") from error
    if not anywhere and not is_loopback(str(address[0])):
        raise InvalidInputError(
            f"{host} can be reached from other machines, and without keys everybody could read every memory: make one "
            "with `scg key add` and pass --keys, or listen on 127.0.0.1"
        )
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise InvalidInputError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return bound


def serve(app: FastAPI, bound: socket.socket, announce: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT comes; then requests that run are finished, and the store is closed.

    A request that takes longer than 30 s from then on is given up: of what it was to store, whole entries are stored.

    Args:
        app: The service.
        bound: Where it listens.
        announce: Told the address as soon as it answers there.
    """
    host, port = bound.getsockname()[:2]
    address = f"http://[{host}]:{port}" if bound.family == socket.AF_INET6 else f"http://{host}:{port}"
    # Uvicorn passes the signal on once it has ended.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    # Requests are not logged: paths and addresses are somebody's.
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_FINISHING_SECONDS,
    )
    _Server(config, lambda: announce(address)).run(sockets=[bound])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)
