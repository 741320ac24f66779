"""The numbers of the last hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter

from headrace.server.context import By, Ctx
from headrace.server.hour import SECONDS, by_name

router: Final = APIRouter(tags=["status"])


@dataclass(frozen=True)
class LastHour:
    """The numbers of the last hour, each with a value per sample; null where it was not known.

    Attributes:
        seconds: between two samples.
        at: when they were taken.
        rows: rows per second of all streams.
        lag: how far the query that is furthest behind is behind its newest row (seconds).
        epoch: seconds of work per epoch.
        memory: bytes of the process.
        streams: rows per second, by stream.
        queries: changes per second, by query.
    """

    seconds: float
    at: list[str]
    rows: list[float | None]
    lag: list[float | None]
    epoch: list[float | None]
    memory: list[int | None]
    streams: dict[str, list[float | None]]
    queries: dict[str, list[float | None]]


@router.get("/status/hour")
async def hour(context: Ctx, caller: By) -> LastHour:
    """The numbers of the last hour; for a key of some names those of its streams and queries alone."""
    samples = context.hour.samples
    whole = samples if caller.only is None else ()
    return LastHour(
        SECONDS,
        [datetime.fromtimestamp(one.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for one in samples],
        [_rounded(one.rows) for one in whole],
        [_rounded(one.lag) for one in whole],
        [_rounded(one.epoch) for one in whole],
        [one.memory for one in whole],
        by_name([one.streams for one in samples], caller.sees),
        by_name([one.queries for one in samples], caller.sees),
    )


def _rounded(found: float | None) -> float | None:
    return None if found is None else round(found, 6)
