"""The store does what LangGraph's in-memory reference does, whatever the operations."""

from __future__ import annotations

import asyncio
from functools import cache
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from scg_langchain import SCGStore
from shared_core import SCGConfig, SchemaMemory

LABELS = ["a", "b", '"', "*", "langgraph"]
KEYS = ["k", "1", "", "\x00", '"k"', "a/b"]
FIELDS = ["x", "y", "$z"]

namespaces = st.lists(st.sampled_from(LABELS), min_size=1, max_size=3).map(tuple)
prefixes = st.lists(st.sampled_from(LABELS), max_size=2).map(tuple)
keys = st.sampled_from(KEYS)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([0.5, 1.0, -2.0]), st.sampled_from(["", "tea", "1"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
    max_leaves=6,
)
objects = st.dictionaries(st.sampled_from(FIELDS), values, max_size=3)
operators = st.dictionaries(st.sampled_from(["$eq", "$ne"]), values, min_size=1) | st.dictionaries(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), st.sampled_from([-2, 0, 0.5, 2, "1"]), min_size=1
)
# Fields that begin with $ can be stored, and a condition on one must not be taken for an operator below the top.
plain = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
)
filters = st.none() | st.dictionaries(st.sampled_from(FIELDS), plain | operators, max_size=2)
conditions = st.lists(
    st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), namespaces | st.just(())), max_size=2
).map(tuple)
indexes = st.sampled_from([None, False, ["x"], ["y.x", "x[*]"], []])
operations = st.one_of(
    st.tuples(namespaces, keys, objects, indexes).map(lambda parts: PutOp(*parts)),
    st.tuples(namespaces, keys).map(lambda parts: PutOp(*parts, None)),
    st.tuples(namespaces, keys).map(lambda parts: GetOp(*parts)),
    st.tuples(prefixes, filters, st.integers(0, 5), st.integers(0, 3)).map(lambda parts: SearchOp(*parts)),
    st.tuples(st.none() | conditions, st.none() | st.integers(0, 3), st.integers(0, 5), st.integers(0, 3)).map(
        lambda parts: ListNamespacesOp(*parts)
    ),
)
batches = st.lists(st.lists(operations, min_size=1, max_size=5), min_size=1, max_size=8)

_NUMBERS = count()
EVERYTHING = [SearchOp((), limit=99), *(ListNamespacesOp(max_depth=depth) for depth in (None, 0, 1, 2, 3))]


class Reference(InMemoryStore):
    """The reference without what comes from its dictionaries alone.

    There a mere read of a namespace makes it, one whose last item is gone is listed for ever, and an order such as
    ``$gt`` fails on the first item whose field is no number.
    """

    def batch(self, ops):
        results = super().batch(ops)
        self._known = self._inhabited()
        self._forget_unknown()
        return results

    def _prepare_ops(self, ops):
        prepared = super()._prepare_ops(ops)
        self._forget_unknown()  # before the writes, whose order in the batch is the order of the namespaces
        return prepared

    def _inhabited(self):
        """Namespaces that hold or held an item."""
        return getattr(self, "_known", set()) | {name for name, items in self._data.items() if items}

    def _forget_unknown(self):
        for name in set(self._data) - self._inhabited():
            del self._data[name]

    def _filter_items(self, op):
        bare = super()._filter_items(op._replace(filter=None, limit=10**6, offset=0))
        return [(item, found) for item, found in bare if self._meets(item, op)]

    def _meets(self, item, op):
        alone = InMemoryStore()
        alone._data[item.namespace][item.key] = item
        try:
            return bool(alone._filter_items(op._replace(limit=1, offset=0)))
        except (TypeError, ValueError):
            return False

    def _handle_list_namespaces(self, op):
        inhabited = Reference()
        inhabited._data.update({name: items for name, items in self._data.items() if items})
        return super(Reference, inhabited)._handle_list_namespaces(op)


def plainly(results):
    """Results without what no two stores have in common: the times."""

    def plain_one(result):
        if isinstance(result, list):
            return [plain_one(one) for one in result]
        if hasattr(result, "key"):
            return result.namespace, result.key, result.value, getattr(result, "score", None)
        return result

    return [plain_one(result) for result in results]


@cache
def file_without_model():
    """Listing, reading and writing need no model: there is none at this path."""
    return SchemaMemory.open(":memory:", model="/nowhere", config=SCGConfig(assimilate=0))


def new_store():
    """A store with nothing in it, beside those of other examples."""
    return SCGStore(file_without_model().in_namespace(f"example {next(_NUMBERS)}"))


@settings(max_examples=80)
@given(batches)
def test_any_operations_give_the_same_as_the_reference(sequence):
    store, reference = new_store(), Reference()
    for ops in sequence:
        assert plainly(store.batch(ops)) == plainly(reference.batch(ops))
    assert plainly(store.batch(EVERYTHING)) == plainly(reference.batch(EVERYTHING))


@settings(max_examples=25)
@given(batches)
def test_the_async_twins_do_the_same(sequence):
    store, twin = new_store(), new_store()

    async def use():
        return [plainly(await twin.abatch(ops)) for ops in sequence]

    assert asyncio.run(use()) == [plainly(store.batch(ops)) for ops in sequence]


@settings(max_examples=25)
@given(st.lists(st.tuples(namespaces, keys, objects), max_size=12), prefixes, filters, st.integers(1, 4))
def test_pages_add_up_to_the_whole(items, prefix, condition, size):
    store = new_store()
    store.batch([PutOp(*item) for item in items])
    whole = plainly([store.search(prefix, filter=condition, limit=1000)])[0]
    pages = [
        plainly([store.search(prefix, filter=condition, limit=size, offset=start)])[0] for start in range(0, 15, size)
    ]
    assert [one for page in pages for one in page] == whole
