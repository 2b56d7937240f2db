"""What is asked of a vLLM server, and what its answers mean."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import httpx

from shared_core.errors import ModelError
from shared_core.models.vllm.address import ServerAddress

_TRIES = 5
_FIRST_PAUSE = 0.2  # seconds; each further one is twice as long
# Other processes ask as well, and may do so for minutes: it takes a moment in which they do not.
_TRIES_BESIDE_OTHERS = 20
_LONGEST_PAUSE = 1.0
_CONNECT_SECONDS = 5.0
_TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
IN_FLIGHT = 8
"""Requests that are sent at the same time: the server runs together what it has."""

# What the server writes for a probability of zero: JSON has no infinity.
_NOTHING = -9999.0
# What any server may add to or take from a sampled token's log-probability: all of it is turned off, whatever the
# model's generation config or the server's defaults say. The raw log-probabilities would not show it, those of a server
# that was told to process them would.
_PLAIN: Mapping[str, Any] = {
    "max_tokens": 1,
    "temperature": 0.0,
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
    "repetition_penalty": 1.0,
    "add_special_tokens": False,
    "return_tokens_as_token_ids": True,
}
_TOKEN = "token_id:"


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What a server says of a model.

    Attributes:
        root: What the server has loaded: a hub id, or a folder of its own machine.
        parent: The model that an adapter (LoRA) was put on; empty for others.
        length: Tokens of prompt and answer together.
    """

    root: str
    parent: str
    length: int


class Server:
    """The way to one model on one server. Safe for threads.

    Everything asked for may be asked twice, so it is sent again, with growing pauses, where a connection breaks or the
    server says that it is busy or failing.

    Args:
        address: Where it is.
    """

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        headers = {} if address.key is None else {"Authorization": f"Bearer {address.key}"}
        self._client = httpx.Client(
            base_url=address.base,
            headers=headers,
            timeout=httpx.Timeout(address.timeout, connect=min(address.timeout, _CONNECT_SECONDS)),
            limits=httpx.Limits(max_connections=2 * IN_FLIGHT, max_keepalive_connections=2 * IN_FLIGHT),
        )
        self._fingerprint: str | None = None

    def card(self) -> ModelCard:
        """What the server says of the model.

        Raises:
            ModelError: if there is no vLLM server, or it serves no model of that name.
        """
        served = self._send("GET", "/v1/models").get("data")
        cards = {one["id"]: one for one in served or [] if isinstance(one, dict) and isinstance(one.get("id"), str)}
        if self.address.name not in cards:
            names = ", ".join(sorted(cards)) or "none"
            raise ModelError(
                f"the model server at {self.address.base} serves no model {self.address.name!r} (it serves: {names}): "
                "name one of them in the address, or start the server with --served-model-name"
            )
        card = cards[self.address.name]
        length = card.get("max_model_len")
        if not isinstance(length, int) or length < 2:
            raise ModelError(
                f"what answers at {self.address.base} does not say how much its model can read: it is no vLLM server"
            )
        return ModelCard(str(card.get("root") or self.address.name), str(card.get("parent") or ""), length)

    def fingerprint(self) -> str:
        """What the server calls its version and settings (``system_fingerprint``), as of its first answer.

        Found out with a short request, which also shows whether the server can do what is needed.

        Raises:
            ModelError: if it cannot.
        """
        (named,) = self.logprobs([[1, 2, 3]], [1, 2])
        if max(named.values()) > 0:
            self._refuse_mode()
        return self._fingerprint or ""

    def logprobs(self, prompts: Sequence[Sequence[int]], tokens: Sequence[int]) -> list[dict[int, float]]:
        """Log-probabilities of the same tokens after each prompt: natural, over the whole vocabulary.

        Args:
            prompts: Token ids, none empty.
            tokens: At most 128.
        """
        wanted = sorted(tokens)
        found = self._complete(prompts, {"logprobs": len(wanted), "logprob_token_ids": wanted})
        for one in found:
            if not one.keys() >= set(wanted):
                raise ModelError(
                    f"the model server at {self.address.base} does not give log-probabilities of tokens that are named "
                    "(logprob_token_ids): it is too old, or no vLLM server. vLLM 0.32 does"
                )
        return found

    def likeliest(self, prompts: Sequence[Sequence[int]], count: int) -> list[list[tuple[int, float]]]:
        """The likeliest next tokens after each prompt, best first, with their log-probabilities."""
        result: list[list[tuple[int, float]]] = [[] for _ in prompts]
        waiting = list(range(len(prompts)))
        for tried in range(_TRIES_BESIDE_OTHERS):
            answers = self._complete([prompts[place] for place in waiting], {"logprobs": count})
            for place, found in zip(waiting, answers, strict=True):
                best = sorted(found.items(), key=lambda item: -item[1])[:count]
                # See Turns: of a wrong answer, the sampled token is all that is right.
                result[place] = best if len(best) == count and best[-1][1] > _NOTHING else []
            waiting = [place for place in waiting if not result[place]]
            if not waiting:
                break
            time.sleep(min(_pause(tried), _LONGEST_PAUSE))
        else:
            raise ModelError(
                f"the model server at {self.address.base} does not give the {count} likeliest tokens while others ask "
                "about tokens that they name: try again, or use a vLLM whose model runner (V2) does both at once"
            )
        if any(best[0][1] > 0 or sum(math.exp(score) for _, score in best) > 1.001 for best in result):
            self._refuse_mode()
        return result

    def tokenize(self, text: str, *, special: bool) -> list[int] | None:
        """Token ids of a text as the server itself sees it; ``None`` if it does not say.

        Args:
            text: The text.
            special: Whether with what every prompt begins with (such as BOS).
        """
        body = {"model": self.address.name, "prompt": text, "add_special_tokens": special}
        response = self._answered("POST", "/tokenize", body)
        if response.status_code in (404, 405):
            return None
        tokens = self._read(response).get("tokens")
        return [int(token) for token in tokens] if isinstance(tokens, list) else None

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _complete(self, prompts: Sequence[Sequence[int]], asked: Mapping[str, Any]) -> list[dict[int, float]]:
        """For each prompt the log-probabilities that come back, by token."""
        body = {"model": self.address.name, "prompt": [list(prompt) for prompt in prompts], **_PLAIN, **asked}
        answer = self._send("POST", "/v1/completions", body)
        fingerprint = str(answer.get("system_fingerprint") or "")
        if self._fingerprint is None:
            self._fingerprint = fingerprint
        elif self._fingerprint != fingerprint:
            raise ModelError(
                f"the model server at {self.address.base} was started anew with other settings or another version "
                f"({fingerprint!r}, before {self._fingerprint!r}): open the memory again"
            )
        try:
            choices = sorted(answer["choices"], key=lambda choice: int(choice["index"]))
            found = [_by_token(choice["logprobs"]["top_logprobs"][0]) for choice in choices]
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise self._unreadable() from error
        if len(found) != len(prompts):
            raise self._unreadable()
        return found

    def _send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._read(self._answered(method, path, body))

    def _answered(self, method: str, path: str, body: Mapping[str, Any] | None) -> httpx.Response:
        """The answer to a request; one that failed for a reason that may pass is sent again."""
        for tried in range(_TRIES):
            last = tried + 1 == _TRIES
            try:
                response = self._client.request(method, path, json=body)
                passes = response.status_code in _TRY_AGAIN or (response.is_success and _json(response) is None)
                if last or not passes:
                    return response
            except httpx.TransportError as error:
                if last:
                    raise self._lost(error) from error
            except RuntimeError as error:
                if not self._client.is_closed:
                    raise
                raise ModelError(f"the connection to the model server at {self.address.base} was closed") from error
            time.sleep(_pause(tried))
        raise AssertionError("unreachable")

    def _lost(self, error: httpx.TransportError) -> ModelError:
        kind = type(error).__name__
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            what = f"cannot be reached ({kind}): start it (vllm serve), or check the address"
        elif isinstance(error, httpx.TimeoutException):
            what = (
                f"did not answer within {self.address.timeout:g} s ({kind}): try again, or allow more with "
                "?timeout=SECONDS in the address"
            )
        else:
            what = f"broke off ({kind}): see whether it still runs, and try again"
        return ModelError(f"the model server at {self.address.base} {what}")

    def _read(self, response: httpx.Response) -> dict[str, Any]:
        told = _json(response)
        if response.is_success:
            if told is None:
                raise self._unreadable()
            return told
        base, status = self.address.base, response.status_code
        error = told.get("error") if told else None
        message = str(error.get("message", ""))[:300] if isinstance(error, dict) else ""
        if status in (401, 403):
            raise ModelError(
                f"the model server at {base} refuses the key, or the lack of one: set VLLM_API_KEY, or write "
                "vllm+http://:key@host:port/served-name"
            )
        if status == 404:
            raise ModelError(
                f"the model server at {base} does not know {self.address.name!r} ({message or status}): see what it "
                "serves at /v1/models"
            )
        if status in _TRY_AGAIN:
            raise ModelError(
                f"the model server at {base} is busy or failing (status {status}{': ' if message else ''}{message}): "
                "look at its log, and try again"
            )
        if "sample logprobs" in message and "max allowed" in message:
            raise ModelError(
                f"the model server at {base} gives too few of the likeliest tokens ({message}): start it with "
                "--max-logprobs 128"
            )
        why = message or "no reason given"
        raise ModelError(f"the model server at {base} refused a request (status {status}): {why}")

    def _unreadable(self) -> ModelError:
        return ModelError(
            f"what answers at {self.address.base} is cut short or not as a vLLM server writes it: check the address, "
            "and what stands between"
        )

    def _refuse_mode(self) -> NoReturn:
        raise ModelError(
            f"what the model server at {self.address.base} gives are no log-probabilities: start it with "
            "--logprobs-mode raw_logprobs, its default"
        )


def _by_token(written: Mapping[str, float]) -> dict[int, float]:
    return {int(token.removeprefix(_TOKEN)): float(score) for token, score in written.items()}


def _json(response: httpx.Response) -> dict[str, Any] | None:
    """The JSON object of an answer; ``None`` if it holds none."""
    try:
        told = response.json()
    except ValueError:
        return None
    return told if isinstance(told, dict) else None


def _pause(tried: int) -> float:
    """Seconds before the next try; at random, so that many callers do not come back together."""
    return _FIRST_PAUSE * 2.0**tried * random.uniform(0.5, 1.0)
