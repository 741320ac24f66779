"""What the routes share: the session, the limits, the numbers, and who sends the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, ParamSpec, TypeVar, cast

import pyarrow as pa
from fastapi import Depends, Request
from starlette.responses import Response

from headrace.server.access import Caller, unauthorized
from headrace.server.formats import check_size, written
from headrace.server.hour import SampledHour
from headrace.server.limits import RequestLimits
from headrace.server.looks import Looks
from headrace.server.metrics import Metrics
from headrace.server.session import Session
from headrace.server.supervisor import Supervisor
from headrace.server.tails import Tails
from headrace.server.turns import HOLDING, Shares
from headrace.server.workshop import Workshop

P = ParamSpec("P")
T = TypeVar("T")

_ANSWER: Final = 32 * 2**20
"""Bytes that an answer has while it is not known how many it needs."""
STATUS_SECONDS: Final = 1.0
"""Between two looks at the status."""


@dataclass(frozen=True)
class ServerContext:
    """What the routes share.

    Attributes:
        session: the database.
        limits: what one request may take.
        metrics: the numbers of the server.
        tails: the changes of queries, for those who wait for them.
        workshop: the threads in which requests are carried out.
        looks: at the status, for those who watch it.
        supervisor: begins the run again where it has ended.
        hour: the numbers of the last hour.
        threads: the turns of the keys in the workshop.
    """

    session: Session
    limits: RequestLimits
    metrics: Metrics
    tails: Tails
    workshop: Workshop
    looks: Looks
    supervisor: Supervisor
    hour: SampledHour
    threads: Shares

    async def blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in a thread, for as long as a request may take; what takes longer is taken back.

        Raises:
            RequestError: it takes longer, or too much goes on that took longer.
        """
        key = HOLDING.get().key
        await self.threads.take(key, 1, self.limits.waiting)
        try:
            return await self.workshop.do(lambda: work(*args, **kwargs), self.limits.seconds)
        finally:
            self.threads.give_back(key, 1)

    async def answered(self, read: Callable[[], pa.Table], form: str, least: int = _ANSWER) -> Response:
        """The response with a table, in memory that the request has for it.

        Args:
            read: gives the table.
            form: the media type.
            least: bytes that it may take to read it.

        Raises:
            RequestError: it is over a limit, or there is no memory for it now.
        """
        held = HOLDING.get()
        await held.have(least)
        table = check_size(await self.blocking(read), self.limits)
        await held.have(2 * table.nbytes)
        return Response(await self.blocking(written, table, form), media_type=form)


# As coroutines these are called at once; functions would be given to a thread, and wait for it.
async def _context(request: Request) -> ServerContext:
    return cast(ServerContext, request.app.state.context)


async def _caller(request: Request) -> Caller:
    caller: Caller | None = request.state.caller
    if caller is None:
        raise unauthorized("a key is needed")
    return caller


async def _sender(request: Request) -> Caller | None:
    return cast("Caller | None", request.state.caller)


Ctx = Annotated[ServerContext, Depends(_context)]
By = Annotated[Caller, Depends(_caller)]
Sender = Annotated[Caller | None, Depends(_sender)]
"""Who sends rows; None where no key was sent and one is needed, so that the rows have to be signed."""
