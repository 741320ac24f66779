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
    """Whether rows are taken and queries answered; what has ended the run is in the log.

    `running`, `degraded` where an input or a sink has a problem, `idle` without a query; with 503 `starting`
    where the run has ended and begins again, `damaged` where its store cannot be used, and `stopping`.
    """
    state = context.supervisor.state
    return JSONResponse({"status": state}, 200 if state in ("running", "degraded", "idle") else 503)


@router.get("/metrics")
async def metrics(context: Ctx, caller: By) -> Response:
    """The numbers of server and run, in the text format of Prometheus."""
    caller.check_unlimited("the metrics")
    text = await context.blocking(context.metrics.text, caller.sees_texts)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
