"""Who may use which namespace: a file of keys, of which it holds nothing but their digests."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock

from shared_core.entry import check_namespace
from shared_core.errors import FormatError, InvalidInputError, NotFoundError

_VERSION = 1
_PREFIX = "scg_"
_SECRET_BYTES = 32
_ID_DIGITS = 12
_DIGEST_DIGITS = 64


@dataclass(frozen=True, slots=True)
class Key:
    """A key as its file has it.

    Attributes:
        digest: SHA-256 of the key, 64 hex digits. Keys are random, so that no salt is needed.
        namespace: What it is for: this namespace and every one below it, whose name begins with the same parts.
    """

    digest: str
    namespace: tuple[str, ...]

    @property
    def id(self) -> str:
        """What the key is called in lists; the key does not follow from it."""
        return self.digest[:_ID_DIGITS]

    def allows(self, namespace: tuple[str, ...]) -> bool:
        """Whether it is for a namespace."""
        return namespace[: len(self.namespace)] == self.namespace


class KeyFile:
    """The keys in a file, read again whenever the file has changed.

    Args:
        path: The file; :meth:`add` makes it.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path).resolve()
        self._seen: tuple[int, int, int] | None = None
        self._keys: tuple[Key, ...] = ()

    def known(self) -> tuple[Key, ...]:
        """All keys, in the order in which they were added.

        Raises:
            NotFoundError: if there is no file.
            FormatError: if it is no file of keys.
        """
        try:
            status = self._path.stat()
            signature = (status.st_mtime_ns, status.st_size, status.st_ino)
            if signature != self._seen:
                self._keys = _parse(self._path.read_text(encoding="utf-8"), self._path)
                self._seen = signature
        except FileNotFoundError:
            raise NotFoundError(f"there are no keys at {self._path}: make one with `scg key add`") from None
        except (OSError, ValueError) as error:
            raise FormatError(f"the keys at {self._path} cannot be read: {error}") from error
        return self._keys

    def find(self, secret: bytes) -> Key | None:
        """The key that a caller shows, if it is one; takes the same time whichever it is."""
        digest = hashlib.sha256(secret).hexdigest()
        found = None
        for key in self.known():
            if hmac.compare_digest(key.digest, digest):
                found = key
        return found

    def add(self, namespace: str | Sequence[str]) -> tuple[str, Key]:
        """Make a key for a namespace and all below it.

        Returns:
            The key itself, which is kept nowhere, and what is kept of it.
        """
        name = check_namespace(namespace)
        secret = _PREFIX + secrets.token_urlsafe(_SECRET_BYTES)
        key = Key(hashlib.sha256(secret.encode()).hexdigest(), name)
        with self._changing():
            self._write([*(self.known() if self._path.exists() else ()), key])
        return secret, key

    def remove(self, id: str) -> Key:
        """Remove a key: who shows it is refused from now on.

        Raises:
            NotFoundError: if there is no such key.
        """
        with self._changing():
            keys = self.known()
            named = [key for key in keys if key.id == id]
            if not named:
                raise NotFoundError(f"there is no key {id!r:.200} in {self._path}: see `scg key list`")
            self._write([key for key in keys if key not in named])
        return named[0]

    def _changing(self) -> FileLock:
        if not self._path.parent.is_dir():
            raise NotFoundError(f"the folder {self._path.parent} does not exist: create it first")
        return FileLock(f"{self._path}.lock")

    def _write(self, keys: Sequence[Key]) -> None:
        body = {
            "version": _VERSION,
            "keys": [{"id": key.id, "sha256": key.digest, "namespace": list(key.namespace)} for key in keys],
        }
        # The file changes at once or not at all, and nobody but its owner reads a new one.
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=f"{self._path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(json.dumps(body, indent=1) + "\n")
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():
                shutil.copymode(self._path, temporary)
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise


def _parse(text: str, path: Path) -> tuple[Key, ...]:
    try:
        body: Any = json.loads(text)
        if body["version"] != _VERSION:
            raise FormatError(f"the keys at {path} are of another version: upgrade this package")
        keys = tuple(Key(str(one["sha256"]), check_namespace(one["namespace"])) for one in body["keys"])
        if not all(len(key.digest) == _DIGEST_DIGITS and key.digest.isascii() for key in keys):
            raise ValueError
    except (LookupError, TypeError, ValueError, InvalidInputError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is no file of keys: make one with `scg key add`") from error
    return keys
