"""A service with two keys, and requests to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from shared_core import SCGConfig
from shared_core.serving import KeyFile, make_app
from tests.served import running

if TYPE_CHECKING:
    from shared_core.models import TransformersModel

# Entries are stored with the concepts that they say: what a random model adds means nothing.
QUICK = SCGConfig(assimilate=0)
ANNA, BEN = ("users", "anna"), ("users", "ben")


@pytest.fixture
def service(tmp_path: Path, small_model: TransformersModel) -> Iterator[SimpleNamespace]:
    """A running service: its address, files and keys, and ``ask`` for requests."""
    keys = KeyFile(tmp_path / "keys.json")
    anna, _ = keys.add(ANNA)
    ben, _ = keys.add(BEN)
    app = make_app(tmp_path / "memory.db", keys=keys, model=small_model, config=QUICK, most_bytes=100_000)
    with running(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        ask = asker(client, anna)
        yield SimpleNamespace(
            address=address, client=client, keys=keys, anna=anna, ben=ben, ask=ask, path=tmp_path / "memory.db"
        )


def asker(client: httpx.Client, usual: str) -> Callable[..., httpx.Response]:
    """Asks for an endpoint, with a body if there is one, as Anna unless another key or namespace is given."""

    def ask(
        name: str, body: Any = None, key: str | None = usual, namespace: tuple[str, ...] = ANNA, **options: Any
    ) -> httpx.Response:
        headers = {"X-SCG-Namespace": json.dumps(namespace)}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        method = "GET" if name in ("stats", "entries", "config") else "POST"
        given = options if body is None else {"json": body, **options}
        return client.request(method, f"/v1/{name}", headers=headers, **given)

    return ask
