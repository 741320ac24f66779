"""What the keys of a server share: threads and memory, so much in all and so much for one, by turns."""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from headrace.server.errors import RequestError

_MOST_WAITING: Final = 2_000
"""So many requests of a key wait for their turn; further ones are refused."""


@dataclass
class _Line:
    """What one key has, and who of it waits for how much."""

    held: int
    waiting: deque[tuple[int, asyncio.Future[None]]]


class Shares:
    """Something of which there is so much; who wants more than there is waits, and the keys take turns.

    Args:
        total: how much there is.
        of_one: how much one key may have.
        what: what it is, for messages.

    Attributes:
        of_one: how much one key may have.
    """

    def __init__(self, total: int, of_one: int, what: str) -> None:
        self._free = total
        self.of_one = min(of_one, total)
        self._what = what
        self._lines: dict[str, _Line] = {}

    async def take(self, key: str, amount: int, seconds: float) -> int:
        """Take some, and wait for it where there is none, or where the key has its part.

        Args:
            key: the name of the key.
            amount: how much; what is more than a key may have counts as that.
            seconds: for how long to wait.

        Returns:
            How much has been taken, which has to be given back.

        Raises:
            RequestError: there was none for so long, or too many requests of the key wait.
        """
        amount = min(amount, self.of_one)
        line = self._lines.setdefault(key, _Line(0, deque()))
        if not line.waiting and self._fits(line, amount):
            self._grant(line, amount)
            return amount
        if len(line.waiting) >= _MOST_WAITING:
            raise self._busy(429)
        turn = asyncio.get_running_loop().create_future()
        line.waiting.append((amount, turn))
        try:
            await asyncio.wait_for(asyncio.shield(turn), seconds)
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # It has come just now.
                self.give_back(key, amount)
            turn.cancel()
            if isinstance(error, TimeoutError):
                raise self._busy(503) from None
            raise
        return amount

    def give_back(self, key: str, amount: int) -> None:
        """Give back what was taken; those who wait get it, each key in its turn."""
        line = self._lines[key]
        line.held -= amount
        self._free += amount
        while any(self._serve(name) for name in list(self._lines)):
            pass
        if line.held == 0 and not line.waiting:
            self._lines.pop(key, None)

    def _serve(self, name: str) -> bool:
        """Let the first who waits of a key have what it wants, if there is so much; the key is last then."""
        line = self._lines[name]
        while line.waiting and line.waiting[0][1].done():
            line.waiting.popleft()
        if not line.waiting or not self._fits(line, line.waiting[0][0]):
            return False
        amount, turn = line.waiting.popleft()
        self._grant(line, amount)
        turn.set_result(None)
        self._lines[name] = self._lines.pop(name)
        return True

    def _fits(self, line: _Line, amount: int) -> bool:
        return amount <= self._free and line.held + amount <= self.of_one

    def _grant(self, line: _Line, amount: int) -> None:
        line.held += amount
        self._free -= amount

    def _busy(self, status: int) -> RequestError:
        return RequestError(
            "busy", status, f"there is no {self._what} left for this key", "try again later",
            headers={"Retry-After": "1"},
        )  # fmt: skip


class HeldMemory:
    """The memory that a request has, until it is over.

    Args:
        shares: of which it is.
        key: the name of the key that asks.
        seconds: for how long it waits for memory.
    """

    def __init__(self, shares: Shares, key: str, seconds: float) -> None:
        self.key = key
        self._shares = shares
        self._seconds = seconds
        self._held = 0

    async def have(self, amount: int) -> None:
        """Have so much in all; what is more than a key may have counts as that.

        Raises:
            RequestError: there is not so much for now.
        """
        amount = min(amount, self._shares.of_one)
        if amount > self._held:
            self._held += await self._shares.take(self.key, amount - self._held, self._seconds)
        elif amount < self._held:
            self._shares.give_back(self.key, self._held - amount)
            self._held = amount

    def release(self) -> None:
        """Give back everything."""
        if self._held:
            self._shares.give_back(self.key, self._held)
            self._held = 0


HOLDING: Final[ContextVar[HeldMemory]] = ContextVar("HOLDING")
"""What the request holds that is being answered."""
