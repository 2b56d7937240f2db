"""A batch of operations on a LangGraph store, checked and sorted before the first one runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp

from scg_langchain.conditions import check_counts, check_filter
from scg_langchain.items import new_item
from shared_core.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Operations:
    """A batch. Its reads see the store as it was before its writes.

    Attributes:
        reads: Everything but writes and natural-language searches, by place in the batch.
        queries: Natural-language searches, by place in the batch.
        writes: The last write to each item, in the order of the first, by namespace.
        count: How many operations there are.
    """

    reads: dict[int, GetOp | SearchOp | ListNamespacesOp] = field(default_factory=dict)
    queries: dict[int, SearchOp] = field(default_factory=dict)
    writes: dict[tuple[str, ...], dict[str, PutOp]] = field(default_factory=dict)
    count: int = 0

    @classmethod
    def of(cls, ops: Iterable[Op]) -> Operations:
        """Check and sort a batch.

        Raises:
            InvalidInputError: if an operation cannot be carried out; none was.
        """
        reads: dict[int, GetOp | SearchOp | ListNamespacesOp] = {}
        queries: dict[int, SearchOp] = {}
        writes: dict[tuple[str, ...], dict[str, PutOp]] = {}
        place = -1
        for place, op in enumerate(ops):
            if isinstance(op, PutOp):
                _check_item(op.namespace, op.key)
                _check_put(op)
                writes.setdefault(tuple(op.namespace), {})[op.key] = op
            elif isinstance(op, GetOp):
                _check_item(op.namespace, op.key)
                reads[place] = op
            elif isinstance(op, ListNamespacesOp):
                reads[place] = op
            elif isinstance(op, SearchOp):
                _check_labels(op.namespace_prefix)
                check_counts(limit=op.limit, offset=op.offset)
                if op.filter:
                    check_filter(op.filter)
                if op.query is not None and not isinstance(op.query, str):
                    raise InvalidInputError(f"the query must be text, not {op.query!r:.200}")
                (queries if op.query and op.query.strip() else reads)[place] = op
            else:
                raise InvalidInputError(f"the store knows no operation {type(op).__name__}")
        return cls(reads, queries, writes, place + 1)


def _check_item(namespace: object, key: object) -> None:
    _check_labels(namespace)
    if not namespace:
        raise InvalidInputError("the namespace of an item cannot be empty")
    if not isinstance(key, str):
        raise InvalidInputError(f"the key must be text, not {key!r:.200}")


def _check_labels(namespace: object) -> None:
    if not isinstance(namespace, tuple | list) or not all(isinstance(label, str) for label in namespace):
        raise InvalidInputError(f"a namespace is a tuple of texts, not {namespace!r:.200}")


def _check_put(op: PutOp) -> None:
    if op.value is None:
        return
    new_item(op.key, op.value, None)
    index: Any = op.index
    if index is not None and index is not False:
        check_paths(index)
    if op.ttl is not None:
        check_minutes("ttl", op.ttl)


def check_paths(paths: object) -> None:
    """Refuse what does not say which fields are searchable.

    Raises:
        InvalidInputError: if it is no list of paths.
    """
    if isinstance(paths, str | Mapping) or not isinstance(paths, list | tuple):
        raise InvalidInputError(f"searchable fields are a list of paths such as ['text'], not {paths!r:.200}")
    if not all(isinstance(path, str) and path for path in paths):
        raise InvalidInputError(f"a path is a text such as 'profile.name', not one of {paths!r:.200}")


def check_minutes(name: str, minutes: object) -> None:
    """Refuse what is no time to live.

    Raises:
        InvalidInputError: if it is no positive number.
    """
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < float("inf"):
        raise InvalidInputError(f"{name} must be a positive number of minutes, not {minutes!r:.200}")
