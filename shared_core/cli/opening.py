"""Opening the memory that a command is about, before anything slow happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared_core.entry import DEFAULT_NAMESPACE, check_namespace
from shared_core.errors import NotFoundError

if TYPE_CHECKING:
    from shared_core.memory import SchemaMemory
    from shared_core.retention import Retention
    from shared_core.store import NamespaceInfo


@dataclass(frozen=True)
class Target:
    """Which memory a command is about.

    Attributes:
        memory: The path or URL of the memory.
        namespace: The namespace in it.
        model: The model's name or folder; ``None`` for the embedded one.
    """

    memory: str
    namespace: tuple[str, ...]
    model: str | None

    @classmethod
    def of(
        cls,
        memory: str,
        namespace: Sequence[str] | None,
        model: str | None,
        default_namespace: tuple[str, ...] = DEFAULT_NAMESPACE,
    ) -> Target:
        """The target of a command's options.

        Raises:
            InvalidInputError: if the namespace cannot be one.
            ModelError: if the model is a path at which there is nothing.
        """
        if model is not None:
            from shared_core.models import check_source

            check_source(model)
        return cls(memory, check_namespace(namespace or default_namespace), model)

    def open(self) -> SchemaMemory:
        """Open the memory, and create it if it is not there."""
        from shared_core.memory import SchemaMemory

        return SchemaMemory.open(self.memory, model=self.model, namespace=self.namespace)

    def open_existing(self, retention: Retention | None = None) -> SchemaMemory:
        """Open a memory that is there; never creates a file or a namespace.

        Args:
            retention: What it keeps when it is asked to expire the rest.

        Raises:
            NotFoundError: if there is no such memory, or it has no such namespace.
        """
        self.check_exists()
        from shared_core.memory import SchemaMemory

        return SchemaMemory.open(
            self.memory, model=self.model, namespace=self.namespace, create=False, retention=retention
        )

    def check_exists(self) -> None:
        """Look the memory and the namespace up in the store, without a model.

        Raises:
            NotFoundError: if there is no such memory, or it has no such namespace.
        """
        from shared_core.store import shown_location

        known = [info.name for info in namespaces_of(self.memory)]
        if self.namespace not in known:
            memory = shown_location(self.memory)  # a URL may have a password
            if not known:
                raise NotFoundError(f"{memory} is empty: fill it with `scg remember FILE --memory {memory}`")
            names = ", ".join(map(namespace_label, known))
            raise NotFoundError(f"{memory} has no namespace {namespace_label(self.namespace)}; it has: {names}")


def namespaces_of(memory: str) -> list[NamespaceInfo]:
    """The namespaces of a memory that is there.

    Raises:
        NotFoundError: if there is no such memory.
    """
    from shared_core.store import Store

    with Store.open(memory, create=False) as store:
        return store.namespaces()


def namespace_label(namespace: Sequence[str]) -> str:
    """A namespace as it is typed: its parts, each quoted."""
    return " ".join(map(repr, namespace))
