"""Free, greedy generation over a token tree: several texts at once, sharing what they have in common."""

from __future__ import annotations

from collections.abc import Sequence

from shared_core.models import LanguageModel, TokenTree


def generate(
    model: LanguageModel, tree: TokenTree, nodes: Sequence[int], *, max_tokens: int, stop: Sequence[str] = ()
) -> list[str]:
    """Continue the text at each node of a tree with its likeliest tokens.

    Args:
        model: The model that the tree belongs to.
        tree: The tree.
        nodes: Ends of chains that were read, or the root prompt.
        max_tokens: Most tokens for each.
        stop: Texts before the first of which a continuation is cut.

    Returns:
        For each node the text generated.
    """
    written: list[list[int]] = [[] for _ in nodes]
    texts = [""] * len(nodes)
    alive = list(range(len(nodes)))
    at = list(nodes)
    while alive:
        tokens = tree.likeliest([at[index] for index in alive])[0][:, 0].tolist()
        growing = []
        for index, token in zip(alive, tokens, strict=True):
            if token in model.ends:
                continue
            written[index].append(token)
            text = model.decode(written[index])
            cuts = [place for place in map(text.find, stop) if place >= 0]
            texts[index] = text[: min(cuts)] if cuts else text
            if not cuts and len(written[index]) < max_tokens:
                growing.append(index)
        alive = growing
        if alive:
            new = tree.extend([written[index][-1] for index in alive], [at[index] for index in alive])
            for index, node in zip(alive, new.tolist(), strict=True):
                at[index] = node
    return texts
