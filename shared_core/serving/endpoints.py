"""Every endpoint of the service."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.security import HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import Response

from shared_core.adapting import memory_in
from shared_core.errors import StoreUnavailableError
from shared_core.evolution import Progress, Report
from shared_core.filters import Filter
from shared_core.memory import SchemaMemory
from shared_core.serving.bodies import (
    AnswerBody,
    AnswerResult,
    ClearBody,
    ConfigResult,
    ConsolidatedResult,
    EntriesResult,
    ErasedResult,
    ErrorResult,
    ExplainBody,
    ExplanationResult,
    FilterBody,
    ForgetBody,
    GetBody,
    PageResult,
    RecallBody,
    RecallResult,
    RememberBody,
    RememberedBody,
    StateResult,
    StatsResult,
)
from shared_core.serving.gate import NAMESPACE, NAMESPACE_HEADER
from shared_core.serving.metrics import Metrics
from shared_core.store import Erased

_MOST_LISTED = 500
_MOST_PLACE = 2**63 - 1

_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResult, "description": what}
    for status, what in (
        (401, "No key, or a wrong one"),
        (403, "The key is not for this namespace"),
        (408, "The body did not arrive in time"),
        (413, "The body is too long"),
        (422, "The request cannot be used"),
        (503, "The store or the model cannot be used now"),
    )
}
_NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorResult, "description": "There is no such entry"}}


def _root(request: Request) -> SchemaMemory:
    root: SchemaMemory = request.app.state.memory
    return root


def _figures(request: Request) -> Metrics:
    metrics: Metrics = request.app.state.metrics
    return metrics


def _named(
    request: Request,
    namespace: Annotated[
        str, Header(alias=NAMESPACE_HEADER, description='The namespace, a JSON array: ["users", "anna"]')
    ],
) -> SchemaMemory:
    # The gate has read it, and checked that the key is for it.
    return memory_in(_root(request), request.scope[NAMESPACE])


def _going_on(request: Request) -> Report:
    """Ends a long call of the model between two steps once the service is to end."""
    ending: threading.Event = request.app.state.ending

    def check(progress: Progress) -> None:
        if ending.is_set():
            raise StoreUnavailableError("the service was told to end: make the same call again, it goes on from here")

    return check


Root = Annotated[SchemaMemory, Depends(_root)]
Named = Annotated[SchemaMemory, Depends(_named)]
Figures = Annotated[Metrics, Depends(_figures)]
GoingOn = Annotated[Report, Depends(_going_on)]

state = APIRouter()
"""How the service is. These need no key, and say nothing of any memory."""

memories = APIRouter(prefix="/v1", responses=_REFUSALS, dependencies=[Depends(HTTPBearer(auto_error=False))])
"""What a memory does."""


@state.get("/health")
async def health() -> StateResult:
    """Whether the process answers."""
    return StateResult()


@state.get("/ready", responses={503: _REFUSALS[503]})
async def ready(root: Root) -> StateResult:
    """Whether the store can be used, and is of this version."""
    # Not in the memory's own threads: a long ranking must not make the service look dead.
    await asyncio.to_thread(root.store.check_usable)
    return StateResult()


@state.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def figures(metrics: Figures) -> Response:
    """Figures for Prometheus."""
    return Response(metrics.as_text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


@memories.post("/remember", response_model_exclude_unset=True)
async def remember(memory: Named, metrics: Figures, going_on: GoingOn, body: RememberBody) -> RememberedBody:
    """Store entries, and distil them into concepts. What the answer reports is durable."""
    entries = [one.to_entry() for one in body.entries]
    outcome = await memory.aremember(entries, use_model=body.use_model, dedupe=body.dedupe, progress=going_on)
    metrics.remembered(outcome)
    return RememberedBody(**asdict(outcome))


@memories.post("/recall", response_model_exclude_unset=True)
async def recall(memory: Named, metrics: Figures, body: RecallBody) -> RecallResult:
    """Recall what belongs to a query, with reasons, best first."""
    recalled = await memory.arecall(body.query, k=body.k, unit=body.unit, where=_filter(body.where))
    metrics.recalled()
    text = {"text": recalled.as_text()} if body.as_text else {}
    return RecallResult.model_validate(recalled.to_dict() | text)


@memories.post("/answer", response_model_exclude_unset=True)
async def answer(memory: Named, metrics: Figures, body: AnswerBody) -> AnswerResult:
    """Answer a question from what is recalled."""
    answered = await memory.aanswer(body.query, k=body.k, where=_filter(body.where), free=body.free)
    metrics.recalled()
    return AnswerResult.model_validate(answered.to_dict())


@memories.post("/explain", responses=_NOT_FOUND, response_model_exclude_unset=True)
async def explain(memory: Named, metrics: Figures, body: ExplainBody) -> ExplanationResult:
    """Why an entry comes back for a query, or does not."""
    explained = await memory.aexplain(body.query, body.entry_id, where=_filter(body.where))
    metrics.recalled()
    return ExplanationResult.model_validate(explained.to_dict())


@memories.post("/get", response_model_exclude_unset=True)
async def get(memory: Named, body: GetBody) -> EntriesResult:
    """Those of the entries that are stored, in the order of the ids."""
    found = await memory.afind(body.ids)
    return EntriesResult.model_validate({"entries": [entry.to_dict() for entry in found]})


@memories.get("/entries", response_model_exclude_unset=True)
async def entries(
    memory: Named,
    after: Annotated[int, Query(ge=-1, le=_MOST_PLACE, description="`next` of the page before")] = -1,
    limit: Annotated[int, Query(ge=1, le=_MOST_LISTED)] = 100,
) -> PageResult:
    """A page of the entries, in the order in which they were first stored."""
    page = await memory.apage(after)
    listed = page[:limit]
    following = await memory.apage(listed[-1].seq) if listed and len(page) <= limit else page[limit:]
    return PageResult.model_validate(
        {"entries": [one.entry.to_dict() for one in listed], "next": listed[-1].seq if following else None}
    )


@memories.post("/forget", response_model_exclude_unset=True)
async def forget(memory: Named, metrics: Figures, body: ForgetBody) -> ErasedResult:
    """Erase entries, and every concept that only they said."""
    erased = await memory.aforget(ids=body.ids, session=body.session, speaker=body.speaker, where=_filter(body.where))
    metrics.erased(erased)
    return _receipt(erased)


@memories.post("/clear", response_model_exclude_unset=True)
async def clear(memory: Named, metrics: Figures, body: ClearBody | None = None) -> ErasedResult:
    """Erase the whole namespace; a body with anything in it is refused."""
    erased = await memory.aclear()
    metrics.erased(erased)
    return _receipt(erased)


@memories.post("/consolidate", response_model_exclude_unset=True)
async def consolidate(memory: Named, going_on: GoingOn) -> ConsolidatedResult:
    """Let the model catch up with what was stored without it."""
    return ConsolidatedResult(waited=await memory.aconsolidate(going_on))


@memories.get("/stats", response_model_exclude_unset=True)
async def stats(memory: Named) -> StatsResult:
    """Figures of the namespace."""
    return StatsResult.model_validate((await memory.astats()).to_dict())


@memories.get("/config", response_model_exclude_unset=True)
async def config(memory: Named) -> ConfigResult:
    """The settings."""
    return ConfigResult(settings=asdict(memory.config))


def _filter(body: FilterBody | None) -> Filter | None:
    return None if body is None else body.to_filter()


def _receipt(erased: Erased) -> ErasedResult:
    return ErasedResult.model_validate(asdict(erased))
