"""A run that its environment has ended begins again: what was short may be there by now."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

import anyio
import anyio.to_thread

from headrace.errors import StoreError, told
from headrace.runtime.outside.patience import Away
from headrace.server.session import Session

_LOG: Final = logging.getLogger("headrace")
_LOOK: Final = 0.2
"""Seconds between two looks at the run."""
_WELL: Final = 60.0
"""Seconds after which a run that goes on is well again: the next pause is short."""


class Supervisor:
    """Begins the run of a server again when it has ended, after pauses that grow while it ends again.

    Args:
        session: the database.
        stopping: whether the server is stopping.
    """

    def __init__(self, session: Session, stopping: Callable[[], bool]) -> None:
        self._session = session
        self._stopping = stopping
        self._away: Away | None = None
        self._begun = time.monotonic()
        self._refusal: BaseException | None = None

    @property
    def state(self) -> str:
        """How the run is: running, degraded, idle, starting, damaged or stopping."""
        db = self._session.db
        if self._stopping():
            return "stopping"
        error = self._error
        if error is not None:
            return "damaged" if isinstance(error, StoreError) else "starting"
        if not db.running:
            return "idle"
        return "degraded" if db.problems else "running"

    @property
    def _error(self) -> BaseException | None:
        """Why the run does not go on, if there is something to answer; None if nothing is wrong."""
        db = self._session.db
        return (self._refusal or db.served.ended_by) if db.queries else None

    async def keep_running(self) -> None:
        """Look after the run until it is cancelled."""
        while True:
            await anyio.sleep(_LOOK)
            if self._stopping():
                continue
            error = self._error
            if error is None:
                if self._away is not None and time.monotonic() - self._begun > _WELL:
                    self._away = None
            else:
                await self._begin_again(error)

    async def _begin_again(self, error: BaseException) -> None:
        """Wait, and begin the run again; who asks meanwhile is told to come again."""
        self._away = Away.after(self._away, error)
        _LOG.error("the run has ended, and begins again in %.1f s: %s", self._away.wait, told(error))
        while not self._away.is_due:
            await anyio.sleep(min(_LOOK, self._away.wait))
            if self._stopping():
                return
        try:
            await anyio.to_thread.run_sync(self._session.db.served.start)
        except Exception as refusal:  # whatever it is, it may be otherwise later
            self._refusal = refusal
        else:
            self._refusal = None
            self._begun = time.monotonic()
            _LOG.warning("the run has begun again")
