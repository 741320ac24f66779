"""Whether the server is there, whether it can answer, and its numbers."""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from headrace.server.context import By, Ctx

router: Final = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Whether the process answers."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {}})
async def readyz(context: Ctx) -> JSONResponse:
    """Whether rows are taken and queries answered; what has ended the run is in the log."""
    db = context.session.db
    ended = db.served.ended_by
    if context.tails.closing or ended is not None:
        return JSONResponse({"status": "stopping" if ended is None else "ended"}, 503)
    return JSONResponse({"status": "running" if db.running else "idle"})


@router.get("/metrics")
async def metrics(context: Ctx, caller: By) -> Response:
    """The numbers of server and run, in the text format of Prometheus."""
    caller.check_unlimited("the metrics")
    text = await context.blocking(context.metrics.text)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
