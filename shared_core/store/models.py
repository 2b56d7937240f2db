"""The language models whose readings are stored, by number."""

from __future__ import annotations

from sqlalchemy import Connection, select, text

from shared_core.store.tables import models


def find_model(connection: Connection, fingerprint: str) -> int | None:
    """The number of a model; ``None`` if nothing of it is stored."""
    query = select(models.c.number).where(models.c.fingerprint == fingerprint)
    return connection.execute(query).scalar_one_or_none()


def model_number(connection: Connection, fingerprint: str) -> int:
    """The number of a model, which gets one if it has none."""
    number = find_model(connection, fingerprint)
    if number is None:
        # Two namespaces may be written at once, with the same new model.
        made = text("INSERT INTO models (fingerprint) VALUES (:fingerprint) ON CONFLICT DO NOTHING")
        connection.execute(made, {"fingerprint": fingerprint})
        number = find_model(connection, fingerprint)
        assert number is not None
    return number


def list_models(connection: Connection) -> list[str]:
    """The fingerprints of all models that have, or had, readings in the memory."""
    return list(connection.execute(select(models.c.fingerprint).order_by(models.c.number)).scalars())
