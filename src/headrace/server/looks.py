"""Looks at the status, shared by all who watch it and may see the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StatusLook:
    """The status at a moment.

    Attributes:
        version: what differs when there is something new.
        event: the status as a server-sent event.
    """

    version: str
    event: bytes


class Looks:
    """The newest looks at the status, one for all who may see the same.

    Args:
        seconds: how long a look is the newest one.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._newest: dict[Hashable, tuple[float, asyncio.Task[StatusLook]]] = {}

    async def newest(self, who: Hashable, look: Callable[[], Awaitable[dict[str, Any]]]) -> StatusLook:
        """The newest look, made now if there is none.

        Args:
            who: what is equal for all who may see the same.
            look: gives the status that they may see.

        Raises:
            UserError: as `look` does.
        """
        now = asyncio.get_running_loop().time()
        known = {key: one for key, one in self._newest.items() if now - one[0] < self._seconds}
        if who not in known:
            known[who] = now, asyncio.ensure_future(_made(look))
        self._newest = known
        # Others wait for the same look, so that one who leaves must not end it.
        return await asyncio.shield(known[who][1])


async def _made(look: Callable[[], Awaitable[dict[str, Any]]]) -> StatusLook:
    found = await look()
    version = json.dumps([found["running"], found["epoch"], found["problems"]])
    return StatusLook(version, f"event: status\ndata: {json.dumps(found)}\n\n".encode())
