"""Generation free of any constraint, for many texts at once."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.models import LanguageModel, TokenTree


def generate(
    model: LanguageModel,
    tree: TokenTree,
    nodes: Sequence[int],
    *,
    max_tokens: int,
    stop: Sequence[str] = (),
    separator: str = "",
    items: int = 0,
) -> list[str]:
    """Continue the text at each node of a tree with its likeliest tokens.

    Args:
        model: The model that the tree belongs to.
        tree: The tree.
        nodes: Ends of chains that were read, or the root prompt.
        max_tokens: Most tokens for each.
        stop: Texts before the first of which a continuation is cut.
        separator: What stands between the items of a list, if a list is to be written: no item of it then begins with
            a token that an earlier one began with. A small model would write one item over and over.
        items: How many items of such a list are wanted: no more are written; 0 for all.

    Returns:
        For each node the text generated.
    """
    written: list[list[int]] = [[] for _ in nodes]
    texts = [""] * len(nodes)
    begun: list[set[int]] = [set() for _ in nodes]
    alive = list(range(len(nodes)))
    at = list(nodes)
    while alive:
        # One more than can be unfit, so that one is left.
        count = 1 + max(len(begun[index]) for index in alive)
        best = tree.likeliest([at[index] for index in alive], count)[0].tolist()
        growing = []
        for index, choice in zip(alive, best, strict=True):
            token = choice[0]
            if separator and (not texts[index] or texts[index].endswith(separator)):
                token = next((one for one in choice if one not in begun[index]), token)
                begun[index].add(token)
            if token in model.ends:
                continue
            written[index].append(token)
            text = model.decode(written[index])
            cuts = [place for place in map(text.find, stop) if place >= 0]
            listed = text.split(separator) if items else []
            if len(listed) > items:
                cuts.append(len(separator.join(listed[:items])))
            texts[index] = text[: min(cuts)] if cuts else text
            if not cuts and len(written[index]) < max_tokens:
                growing.append(index)
        alive = growing
        if alive:
            new = tree.extend([written[index][-1] for index in alive], [at[index] for index in alive])
            for index, node in zip(alive, new.tolist(), strict=True):
                at[index] = node
    return texts
