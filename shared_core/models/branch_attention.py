"""Attention within the branches of a token tree.

A tree of many queries lies in one cache, but a token sees its own branch and the root prompt only. Masked attention
over the whole cache computes what the mask then throws away, most of it when eight queries are read together. Here each
branch attends to its own columns, all branches in one call; query heads that share keys are laid side by side as
further rows, so that no key is copied per head. Where few rows attend, as when texts are continued token by token, the
root prompt, which all of them see, is not copied per branch either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

NAME = "scg_branches"
"""What Transformers knows this attention by."""

# The root prompt is attended to apart from so many branches on, and up to so many rows of each: a copy of it per branch
# is cheap for a few branches, and where many rows share it.
_SEVERAL_BRANCHES = 4
_FEW_ROWS = 4


@dataclass(frozen=True, slots=True, eq=False)
class BranchPlan:
    """Which rows attend to which columns.

    Attributes:
        rows: Rows of each branch, padded, shape (branches, most rows); None when one branch has all rows.
        columns: Columns of each branch, padded, shape (branches, most columns); None when one branch has all.
        shared: Columns at the front that all rows see, and that stand in ``columns`` of no branch; 0 where they do.
        mask: Additive, shape (branches, 1, most rows, most columns).
        back: Where each row stands in the flattened ``rows``, shape (rows,).
    """

    rows: torch.Tensor | None
    columns: torch.Tensor | None
    shared: int
    mask: torch.Tensor
    back: torch.Tensor | None
    _repeated: dict[int, torch.Tensor] = field(default_factory=dict)

    def mask_for(self, share: int) -> torch.Tensor:
        """The mask for ``share`` query heads side by side, made once for all layers."""
        if share not in self._repeated:
            self._repeated[share] = self.mask.repeat(1, 1, share, 1)
        return self._repeated[share]

    @classmethod
    def build(
        cls,
        branch_of_row: NDArray[np.int64],
        branch_of_column: NDArray[np.int64],
        sees: NDArray[np.bool_],
        dtype: torch.dtype,
        device: torch.device,
    ) -> BranchPlan:
        """Plan a forward pass.

        Args:
            branch_of_row: Branch of each new token, shape (rows,).
            branch_of_column: Branch of each column, -1 for those of the root prompt, shape (columns,).
            sees: Whether a row may attend to a column, shape (rows, columns).
            dtype: Of the mask.
            device: Of everything.
        """
        branches, branch = np.unique(branch_of_row, return_inverse=True)
        rows = [np.flatnonzero(branch == place) for place in range(len(branches))]
        root = branch_of_column == -1
        most_rows = max(map(len, rows))
        apart = len(branches) >= _SEVERAL_BRANCHES and most_rows <= _FEW_ROWS and sees[:, root].all()
        columns = [np.flatnonzero((root & (not apart)) | (branch_of_column == each)) for each in branches]
        most_columns = max(map(len, columns))
        if len(branches) * most_rows * most_columns >= sees.size:
            return cls(None, None, 0, _additive(sees[None], dtype, device), None)
        row_table = np.zeros((len(branches), most_rows), dtype=np.int64)
        column_table = np.zeros((len(branches), most_columns), dtype=np.int64)
        visible = np.zeros((len(branches), most_rows, most_columns), dtype=bool)
        back = np.empty(len(branch_of_row), dtype=np.int64)
        for place, (own, seen) in enumerate(zip(rows, columns, strict=True)):
            row_table[place, : len(own)] = own
            column_table[place, : len(seen)] = seen
            visible[place, : len(own), : len(seen)] = sees[np.ix_(own, seen)]
            back[own] = place * most_rows + np.arange(len(own))
        return cls(
            torch.from_numpy(row_table).to(device),
            torch.from_numpy(column_table).to(device),
            int(root.sum()) if apart else 0,
            _additive(visible, dtype, device),
            torch.from_numpy(back).to(device),
        )


def _additive(visible: NDArray[np.bool_], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    mask = torch.zeros(visible.shape, dtype=dtype)
    mask.masked_fill_(torch.from_numpy(~visible), torch.finfo(dtype).min)
    return mask[:, None].to(device)


_plan: ContextVar[BranchPlan | None] = ContextVar("branch plan", default=None)


@contextmanager
def following(plan: BranchPlan) -> Iterator[None]:
    """Let the attention of models that were told to use :data:`NAME` follow a plan."""
    token = _plan.set(plan)
    try:
        yield
    finally:
        _plan.reset(token)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """An attention function of Transformers: by the plan of the moment, and as ``sdpa`` where there is none.

    Args:
        module: The attention layer.
        query: shape (1, heads, rows, head size).
        key: shape (1, key heads, columns, head size).
        value: shape (1, key heads, columns, value size).
        attention_mask: Not looked at under a plan, which has its own.
        scaling: Of the products; ``None`` for the usual one.
        options: Anything else that Transformers passes.

    Returns:
        shape (1, rows, heads, value size), and nothing.
    """
    plan = _plan.get()
    if plan is None:
        attended: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return attended
    scaling = scaling if scaling is not None else 1 / math.sqrt(query.shape[-1])
    if plan.shared:
        return _attend_apart(plan, query[0] * scaling, key[0], value[0]), None
    heads, key_heads, count = query.shape[1], key.shape[1], query.shape[2]
    queries, keys, values = query[0], key[0], value[0]
    branches = 1
    if plan.rows is not None and plan.columns is not None:
        branches = len(plan.rows)
        queries = queries[:, plan.rows.flatten()]
        keys, values = keys[:, plan.columns.flatten()], values[:, plan.columns.flatten()]
    share = heads // key_heads
    queries = queries.reshape(key_heads, share, branches, -1, query.shape[-1]).permute(2, 0, 1, 3, 4)
    output = torch.nn.functional.scaled_dot_product_attention(
        queries.reshape(branches, key_heads, -1, query.shape[-1]),
        keys.reshape(key_heads, branches, -1, key.shape[-1]).transpose(0, 1),
        values.reshape(key_heads, branches, -1, value.shape[-1]).transpose(0, 1),
        attn_mask=plan.mask_for(share),
        scale=scaling,
    )
    # (branches, key heads, share × rows, size) to (branches × rows, heads, size)
    output = output.reshape(branches, heads, -1, value.shape[-1]).transpose(1, 2).reshape(-1, heads, value.shape[-1])
    if plan.back is not None:
        output = output[plan.back]
    return output[None, :count], None


def _attend_apart(plan: BranchPlan, queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Attention to the root prompt, of all branches at once, and to each branch's own columns, under one softmax.

    Args:
        plan: A plan with shared columns.
        queries: Scaled, shape (heads, rows, head size).
        keys: shape (key heads, columns, head size).
        values: shape (key heads, columns, value size).

    Returns:
        shape (1, rows, heads, value size).
    """
    assert plan.rows is not None
    assert plan.columns is not None
    (heads, _, size), (key_heads, _, value_size) = queries.shape, values.shape
    branches, most = plan.rows.shape
    share, root = heads // key_heads, plan.shared
    queries = queries[:, plan.rows.flatten()].reshape(key_heads, share, branches, most, size)
    queries = queries.transpose(1, 2).reshape(key_heads, branches, share * most, size)
    columns = plan.columns.flatten()
    own_keys = keys[:, columns].reshape(key_heads, branches, -1, size)
    own_values = values[:, columns].reshape(key_heads, branches, -1, value_size)
    at_root = queries.flatten(1, 2) @ keys[:, :root].transpose(1, 2)
    at_own = queries @ own_keys.transpose(2, 3) + plan.mask_for(share)[:, 0]
    scores = torch.cat([at_root.reshape(key_heads, branches, -1, root), at_own], dim=-1)
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(values.dtype)
    of_root = weights[..., :root].flatten(1, 2) @ values[:, :root]
    output = of_root.reshape(key_heads, branches, -1, value_size) + weights[..., root:] @ own_values
    # (key heads, branches, share × rows, size) to (branches × rows, heads, size)
    output = output.reshape(key_heads, branches, share, most, value_size).permute(1, 3, 0, 2, 4)
    return output.reshape(-1, heads, value_size)[None, plan.back]


def install(model: Any) -> bool:
    """Tell a model to use this attention; returns whether it does, and leaves it as it was if not."""
    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    if model.config._attn_implementation != "sdpa" or not model._can_set_attn_implementation():
        return False
    model.set_attn_implementation(NAME)
    return True


def uninstall(model: Any) -> None:
    """Undo :func:`install`."""
    model.set_attn_implementation("sdpa")
