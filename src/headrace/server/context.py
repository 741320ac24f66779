"""What the routes share: the session, the limits, the numbers, and who sends the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ParamSpec, TypeVar, cast

import anyio
import anyio.to_thread
from fastapi import Depends, Request

from headrace.server.access import Caller
from headrace.server.errors import RequestError
from headrace.server.limits import Limits
from headrace.server.metrics import Metrics
from headrace.server.session import Session
from headrace.server.tails import Tails

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """What the routes share.

    Attributes:
        session: the database.
        limits: what one request may take.
        metrics: the numbers of the server.
        tails: the changes of queries, for those who wait for them.
    """

    session: Session
    limits: Limits
    metrics: Metrics
    tails: Tails

    async def blocking(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something in a thread, for as long as a request may take.

        Raises:
            RequestError: it takes longer; it may still end, and take effect.
        """
        with anyio.move_on_after(self.limits.seconds):
            return await anyio.to_thread.run_sync(lambda: work(*args, **kwargs), abandon_on_cancel=True)
        raise RequestError(
            "timeout", 504, f"this took longer than {self.limits.seconds:g} seconds",
            "it may still take effect: look before you repeat it",
        )  # fmt: skip


def _context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


def _caller(request: Request) -> Caller:
    return cast(Caller, request.state.caller)


Ctx = Annotated[Context, Depends(_context)]
By = Annotated[Caller, Depends(_caller)]
