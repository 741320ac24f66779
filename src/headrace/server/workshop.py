"""The threads in which requests are carried out, each for so long and no longer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from headrace.runtime.driver.endless.withdrawal import Withdrawal, WithdrawnError
from headrace.server.errors import RequestError

T = TypeVar("T")

THREADS: Final = 64
"""So many requests are carried out at once; others wait for their turn, for as long as a request may take."""
_MOST_GIVEN_UP: Final = 48
"""So many of them may go on after their time; with more, requests are refused, and do not wait in vain."""
_GRACE: Final = 1.0
"""Seconds in which what is taken back says what has become of it."""


class Workshop:
    """Threads for what would hold up the others.

    Attributes:
        busy: how many requests are carried out, or wait for their turn.
        given_up: how many of them nobody waits for any more.
    """

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, "headrace request")
        self.busy = 0
        self.given_up = 0

    def close(self) -> None:
        """Let the threads end with what they do."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def do(self, work: Callable[[], T], seconds: float) -> T:
        """Do something in a thread, and take it back after some seconds.

        Args:
            work: it.
            seconds: after so many it is taken back, as far as it has had no effect.

        Raises:
            RequestError: it takes longer, or too much goes on that took longer.
        """
        if self.given_up >= _MOST_GIVEN_UP:
            raise RequestError(
                "busy", 429, "the server is busy with other requests", "try again later",
                headers={"Retry-After": "1"},
            )  # fmt: skip
        withdrawal = Withdrawal()

        def within() -> T:
            with withdrawal.within():
                withdrawal.check()
                return work()

        self.busy += 1
        done = asyncio.get_running_loop().run_in_executor(self._threads, within)
        done.add_done_callback(self._ended)
        if not (await asyncio.wait([done], timeout=seconds))[0]:
            withdrawal.take_back()
            if not (await asyncio.wait([done], timeout=_GRACE))[0]:
                self.given_up += 1
                done.add_done_callback(self._ended_late)
                raise _late(seconds, "it may still take effect: look before you repeat it")
        try:
            return done.result()
        except WithdrawnError:
            raise _late(seconds, "what had not taken effect by then was taken back") from None

    def _ended_late(self, _: asyncio.Future[T]) -> None:
        self.given_up -= 1

    def _ended(self, done: asyncio.Future[T]) -> None:
        self.busy -= 1
        if not done.cancelled():
            # Asked for, so that what nobody waits for any more is not reported as forgotten.
            done.exception()


def _late(seconds: float, hint: str) -> RequestError:
    return RequestError("timeout", 504, f"this took longer than {seconds:g} seconds", hint)
