"""What the routes share: the session, the limits, the numbers, and who sends the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Final, ParamSpec, TypeVar, cast

from fastapi import Depends, Request

from headrace.server.access import Caller, unauthorized
from headrace.server.limits import RequestLimits
from headrace.server.looks import Looks
from headrace.server.metrics import Metrics
from headrace.server.session import Session
from headrace.server.supervisor import Supervisor
from headrace.server.tails import Tails
from headrace.server.workshop import Workshop

P = ParamSpec("P")
T = TypeVar("T")

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
    """

    session: Session
    limits: RequestLimits
    metrics: Metrics
    tails: Tails
    workshop: Workshop
    looks: Looks
    supervisor: Supervisor

    async def blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in a thread, for as long as a request may take; what takes longer is taken back.

        Raises:
            RequestError: it takes longer, or too much goes on that took longer.
        """
        return await self.workshop.do(lambda: work(*args, **kwargs), self.limits.seconds)


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
