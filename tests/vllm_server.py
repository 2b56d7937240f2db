"""A server in this process that speaks as vLLM 0.32 does, of what the memory asks of it: the answers of a given model.

What it says is held against a real server by ``tests/servers``, request by request.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from shared_core.models import PROMPT

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from shared_core.models import TokenTree, TransformersModel

MOST_NAMED = 128


@dataclass
class ServedModel:
    """A served model, and what goes wrong with it.

    Attributes:
        model: Whose answers are given.
        name: What it is called.
        root: What the server would have loaded.
        length: Tokens that it reads, the generated one included.
        max_logprobs: As the option of vLLM.
        fingerprint: ``system_fingerprint``.
        key: What is asked for, if anything is.
        fault: Called with the path and the number of the request to it, from 1; what it returns is sent instead.
        asked: How many requests came to each path.
        met: How often a request that names tokens and one that does not were under way at the same time.
    """

    model: TransformersModel
    name: str = "tiny"
    root: str = "/models/tiny"
    length: int = 320
    max_logprobs: int = 128
    fingerprint: str | None = "vllm-0.32.0-1a2b3c4d"
    key: str | None = None
    fault: Callable[[str, int], Response | None] = lambda path, number: None
    asked: Counter[str] = field(default_factory=Counter)
    met: int = 0
    under_way: Counter[str] = field(default_factory=Counter)

    def app(self) -> ASGIApp:
        """The server."""
        return Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/v1/completions", self._completions, methods=["POST"]),
                Route("/tokenize", self._tokenize, methods=["POST"]),
            ]
        )

    async def _models(self, request: Request) -> Response:
        card = {"id": self.name, "object": "model", "created": 0, "owned_by": "vllm", "root": self.root}
        card |= {"parent": None, "max_model_len": self.length, "permission": []}
        return self._refusal(request) or JSONResponse({"object": "list", "data": [card]})

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        tokenizer = self.model._tokenizer
        tokens = tokenizer(body["prompt"], add_special_tokens=body.get("add_special_tokens", True))["input_ids"]
        answer = {"count": len(tokens), "max_model_len": self.length, "tokens": tokens, "token_strs": None}
        return self._refusal(request) or self._unknown(body) or JSONResponse(answer)

    async def _completions(self, request: Request) -> Response:
        body = await request.json()
        wrong = self._refusal(request) or self._unknown(body) or self._invalid(body)
        if wrong is not None:
            return wrong
        named = body.get("logprob_token_ids")
        kind = "named" if named else "likeliest"
        self.under_way[kind] += 1
        self.met += len(+self.under_way) > 1
        found = await asyncio.to_thread(self._scores, body["prompt"], body["logprobs"], named)
        self.under_way[kind] -= 1
        choices = [
            {
                "index": index,
                "text": "",
                "logprobs": {
                    "text_offset": [0],
                    "token_logprobs": [next(iter(scores.values()))],
                    "tokens": [next(iter(scores))],
                    "top_logprobs": [scores],
                },
                "finish_reason": "length",
                "stop_reason": None,
            }
            for index, scores in enumerate(found)
        ]
        return JSONResponse(
            {
                "id": "cmpl-0",
                "object": "text_completion",
                "created": 0,
                "model": self.name,
                "system_fingerprint": self.fingerprint,
                "choices": choices,
            }
        )

    def _scores(self, prompts: Sequence[list[int]], count: int, named: list[int] | None) -> list[dict[str, float]]:
        """Of each prompt, by token as it is written: the sampled token first, then what was asked for."""
        found = []
        for tree, nodes in self._read(prompts):
            best, logprobs = tree.likeliest(nodes, 1 if named else max(1, count))
            asked = np.zeros((len(nodes), 0), dtype=np.float32)
            if named:
                flat = tree.logprobs(np.repeat(nodes, len(named)), np.tile(named, len(nodes)))
                asked = flat.reshape(len(nodes), len(named))
            for row in range(len(nodes)):
                scores = dict(zip(best[row].tolist(), logprobs[row].tolist(), strict=True))
                scores |= dict(zip(named or [], asked[row].tolist(), strict=True))
                found.append({f"token_id:{token}": max(score, -9999.0) for token, score in scores.items()})
        return found

    def _read(self, prompts: Sequence[list[int]]) -> list[tuple[TokenTree, list[int]]]:
        """The prompts in trees, and where each ends, in their order; what all begin with is read once."""
        common = next(
            (at for at, tokens in enumerate(zip(*prompts, strict=False)) if len(set(tokens)) > 1), len(prompts[0])
        )
        shared = prompts[0][: min(common, min(map(len, prompts)) - 1)]
        if not shared:
            return [(self.model.tree(prompt), [PROMPT]) for prompt in prompts]
        tree = self.model.tree(shared)
        return [(tree, tree.read_many([prompt[len(shared) :] for prompt in prompts]))]

    def _refusal(self, request: Request) -> Response | None:
        path = request.url.path
        self.asked[path] += 1
        # The real one asks for its key below /v1 alone.
        wanted = f"Bearer {self.key}" if self.key is not None and path.startswith("/v1/") else None
        if wanted is not None and request.headers.get("authorization") != wanted:
            return JSONResponse({"error": "Unauthorized"}, 401)
        return self.fault(path, self.asked[path])

    def _unknown(self, body: dict[str, Any]) -> Response | None:
        if body["model"] == self.name:
            return None
        return error(404, f"The model `{body['model']}` does not exist.", "NotFoundError", "model")

    def _invalid(self, body: dict[str, Any]) -> Response | None:
        named, count = body.get("logprob_token_ids"), body["logprobs"]
        assert body["max_tokens"] == 1
        assert body["return_tokens_as_token_ids"] is True
        if named and len(named) > MOST_NAMED:
            message = (
                f"Requested logprob_token_ids of length {len(named)}, which is greater than max allowed: {MOST_NAMED}"
            )
            return error(400, message, "BadRequestError", "logprob_token_ids")
        if not named and count > self.max_logprobs:
            message = f"Requested sample logprobs of {count}, which is greater than max allowed: {self.max_logprobs}"
            return error(400, message, "BadRequestError", "logprobs")
        longest = max(map(len, body["prompt"]))
        if longest == self.length:
            return error(400, "max_tokens must be at least 1, got 0.", "BadRequestError", "max_tokens")
        assert longest < self.length, "longer ones are refused in other words"
        return None


def error(status: int, message: str, kind: str, parameter: str | None) -> Response:
    """A refusal in vLLM's form."""
    return JSONResponse({"error": {"message": message, "type": kind, "param": parameter, "code": status}}, status)
