"""Streams, relations, queries and sinks as resources, and how far they are."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from headrace.engine.catalog.listed_sinks import ListedSink
from headrace.language.statements.catalog import CatalogKind
from headrace.language.statements.statements import Stage
from headrace.server.access import Caller
from headrace.server.context import By, Ctx, ServerContext
from headrace.server.errors import not_found
from headrace.server.formats import preferred
from headrace.server.keys import Role
from headrace.server.session import (
    described_query,
    described_relation,
    described_stream,
)
from headrace.server.visible import check_text, shown_query, shown_sink, shown_status, shown_stream

router: Final = APIRouter()


@router.get("/streams", tags=["catalog"])
async def streams(context: Ctx, caller: By) -> dict[str, Any]:
    """All streams."""
    db = context.session.db
    return {"streams": [described_stream(one, db) for one in db.streams.values() if caller.sees(one.name)]}


@router.get("/streams/{name}", tags=["catalog"])
async def stream(name: str, context: Ctx, caller: By) -> dict[str, Any]:
    """One stream, and what is known of its progress."""
    session = context.session
    found = session.stream(name, caller)
    described = described_stream(found, session.db)
    status = await _status_of(context, "streams", found.name)
    return {**described, "status": status and shown_stream(status, caller)}


@router.get("/relations", tags=["catalog"])
async def relations(context: Ctx, caller: By) -> dict[str, Any]:
    """All relations."""
    found = context.session.db.relations.values()
    return {"relations": [described_relation(one) for one in found if caller.sees(one.name)]}


@router.get("/queries", tags=["catalog"])
async def queries(context: Ctx, caller: By) -> dict[str, Any]:
    """All queries, and what the store has and cannot answer, with the reason."""
    db = context.session.db

    def found() -> dict[str, Any]:
        shown = [described_query(query, db, caller) for query in db.queries if caller.sees(query.name)]
        return {"queries": shown, "waiting": dict(db.served.waiting) if caller.only is None else {}}

    return await context.blocking(found)


@router.get("/queries/{name}", tags=["catalog"])
async def query(name: str, context: Ctx, caller: By) -> dict[str, Any]:
    """One query, its plan as it runs, and what is known of its progress."""
    found = context.session.query(name, caller)
    described = await context.blocking(described_query, found, context.session.db, caller)
    status = await _status_of(context, "queries", found.name)
    return {**described, "status": status and shown_query(status, caller)}


@router.get("/sinks", tags=["catalog"])
async def sinks(context: Ctx, caller: By) -> dict[str, Any]:
    """All sinks: where the changes of queries go, how far they are there, and what is wrong."""
    found = await context.blocking(lambda: context.session.db.served.sinks)
    return {"sinks": [shown_sink(one, caller) for one in found if caller.sees(one.query)]}


@router.get("/sinks/{name}", tags=["catalog"])
async def sink(name: str, context: Ctx, caller: By) -> dict[str, Any]:
    """One sink."""
    return shown_sink(await _sink(name, context, caller), caller)


@router.get("/catalog", tags=["catalog"])
async def catalog(context: Ctx, caller: By) -> dict[str, str]:
    """Everything that is defined, as SQL that defines it again."""
    caller.check_unlimited("the catalog")
    caller.check(Role.ADMIN)
    return {"text": await context.blocking(lambda: context.session.db.served.catalog)}


@router.delete("/queries/{name}", tags=["catalog"])
async def drop_query(name: str, context: Ctx, caller: By, cascade: bool = False) -> dict[str, str]:
    """Drop a query; one that has sinks only with `cascade`, and these with it."""
    found = context.session.query(name, caller).name
    return await _drop(CatalogKind.QUERY, found, context, caller, cascade=cascade)


@router.delete("/sinks/{name}", tags=["catalog"])
async def drop_sink(name: str, context: Ctx, caller: By) -> dict[str, str]:
    """Drop a sink that a statement has defined, once it has taken what was committed."""
    return await _drop(CatalogKind.SINK, (await _sink(name, context, caller)).name, context, caller)


@router.delete("/streams/{name}", tags=["catalog"])
async def drop_stream(name: str, context: Ctx, caller: By) -> dict[str, str]:
    """Drop a stream that no query reads."""
    return await _drop(CatalogKind.STREAM, context.session.stream(name, caller).name, context, caller)


@router.delete("/relations/{name}", tags=["catalog"])
async def drop_relation(name: str, context: Ctx, caller: By) -> dict[str, str]:
    """Drop a relation that no query reads."""
    caller.check_name("relation", name)
    found = context.session.db.relations.get(name.lower())
    if found is None:
        raise not_found(f"relation {name}", "GET /relations lists them")
    return await _drop(CatalogKind.RELATION, found.name, context, caller)


@router.get("/status", tags=["status"])
async def status(context: Ctx, caller: By) -> dict[str, Any]:
    """How far the run is."""
    return await context.blocking(status_for, context, caller)


@router.get("/why/{name}", tags=["status"])
async def why(name: str, context: Ctx, caller: By) -> dict[str, Any]:
    """Why a query has no output, or no newer one."""
    query = context.session.query(name, caller)
    check_text("the reasons", query, caller)
    found = await context.blocking(query.why)
    return {
        "query": found.query,
        "findings": [{"message": one.message, "hint": one.hint} for one in found.findings],
        "chain": list(found.chain),
        "text": str(found),
    }


OneStage = Annotated[
    Stage | None, BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given)
]
"""A stage by its name, in small letters or in capitals."""


@router.get("/explain", tags=["status"])
async def explain(query: str, context: Ctx, caller: By, stage: OneStage = None) -> dict[str, str]:
    """The plan of a query, given by its name: as written, optimized and as it runs; or one of them."""
    found = context.session.query(query, caller)
    check_text("the plan", found, caller)
    if stage is not None:
        return {"text": await context.blocking(found.explain, stage.name)}
    texts = [f"== {one.value.lower()} ==\n{await context.blocking(found.explain, one.name)}" for one in Stage]
    return {"text": "\n".join(texts)}


@router.get("/store/check", tags=["status"])
async def check_store(context: Ctx, caller: By) -> dict[str, Any]:
    """Whether the store is whole: every file that counts is read and compared with its checksum."""
    caller.check(Role.ADMIN)
    caller.check_unlimited("the store")
    found = await context.blocking(context.session.db.served.check_store)
    problems = [{"file": one.file, "reason": one.reason} for one in found.problems]
    return {"problems": problems, "files": found.files, "bytes": found.bytes}


@router.get("/dead-letters", tags=["answers"])
async def dead_letters(request: Request, context: Ctx, caller: By) -> Response:
    """The rows that no query could use."""
    caller.check_unlimited("the dead letters of all streams")
    return await _letters(None, request, context, caller)


@router.get("/dead-letters/{stream}", tags=["answers"])
async def dead_letters_of(stream: str, request: Request, context: Ctx, caller: By) -> Response:
    """The dead letters of a stream with all its columns, as far as DEAD LETTERS KEEP keeps them."""
    return await _letters(context.session.stream(stream, caller).name, request, context, caller)


async def _letters(stream: str | None, request: Request, context: ServerContext, caller: Caller) -> Response:
    form = preferred(request.headers.get("accept"))

    return await context.answered(lambda: context.session.dead_letters(stream, caller), form)


async def _sink(name: str, context: ServerContext, caller: Caller) -> ListedSink:
    """The sink of a name, whatever its case.

    Raises:
        RequestError: there is none that the caller may see.
    """
    found = await context.blocking(lambda: context.session.db.served.sinks)
    seen = (one for one in found if one.name.lower() == name.lower() and caller.sees(one.query))
    if (sink := next(seen, None)) is None:
        raise not_found(f"sink {name}", "GET /sinks lists them")
    return sink


async def _drop(
    kind: CatalogKind, name: str, context: ServerContext, caller: Caller, *, cascade: bool = False
) -> dict[str, str]:
    caller.check(Role.ADMIN)
    caller.check_unlimited("dropping")
    served = context.session.db.served
    await context.blocking(lambda: served.drop(kind, name, cascade=cascade))
    return {"dropped": name}


def status_for(context: ServerContext, caller: Caller) -> dict[str, Any]:
    """The status as somebody may see it; an empty one while there is no run."""
    found = context.session.status()
    if found is None:
        return {
            "running": False, "epoch": 0, "at": None, "streams": [], "queries": [], "operators": [],
            "catching_up": None, "paused": [], "attempt": None,
            "ended": None, "managed": None, "shedding": None, "lanes": [], "problems": {},
        }  # fmt: skip
    problems = dict(context.session.db.problems) if caller.only is None else {}
    return {**shown_status(found.to_dict(), caller), "problems": problems}


async def _status_of(context: ServerContext, part: str, name: str) -> dict[str, Any] | None:
    """What the status says of a stream or a query; None while it is not part of a run."""

    def found() -> dict[str, Any] | None:
        status = context.session.status()
        shown = [] if status is None else status.to_dict()[part]
        return next((one for one in shown if one["name"] == name), None)

    return await context.blocking(found)
