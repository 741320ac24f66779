"""Work that somebody gives up waiting for, and that is taken back where it has had no effect yet.

Whoever waits makes a `Withdrawal` and begins the work within it. The work asks `check_wanted` before it takes
effect, and leaves its futures and queries with `withdrawing` while it waits for others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from headrace.errors import UserError
from headrace.limits import CancelledWorkError, Limit, within


class WithdrawnError(UserError):
    """Work that was taken back before it had an effect."""


def _withdrawn() -> WithdrawnError:
    return WithdrawnError("this took too long and was taken back", hint="it has changed nothing")


class Withdrawal:
    """Takes work back; for one piece of work, in whatever thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stops: list[Callable[[], object]] = []
        self._taken = False

    @contextmanager
    def within(self) -> Iterator[None]:
        """What is done in it, by this thread, is what is taken back.

        Raises:
            WithdrawnError: it was taken back, while it was computing.
        """
        token = _CURRENT.set(self)
        limit = Limit(unwanted=lambda: "it was taken back" if self._taken else None)
        try:
            with within(limit):
                yield
        except CancelledWorkError as error:
            if error.limit is not limit:
                raise
            raise _withdrawn() from None
        finally:
            _CURRENT.reset(token)

    def take_back(self) -> None:
        """Let the work end as soon as it can, if it has had no effect yet."""
        with self._lock:
            self._taken = True
            stops = list(self._stops)
        for stop in stops:
            stop()

    def check(self) -> None:
        """See that the work is wanted.

        Raises:
            WithdrawnError: it is not.
        """
        if self._taken:
            raise _withdrawn()

    @contextmanager
    def stopping(self, stop: Callable[[], object]) -> Iterator[None]:
        """What is called within it when the work is taken back; at once where it has been."""
        with self._lock:
            self._stops.append(stop)
            taken = self._taken
        try:
            if taken:
                stop()
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)


_CURRENT: Final[ContextVar[Withdrawal | None]] = ContextVar("withdrawal", default=None)


def check_wanted() -> None:
    """See that somebody still waits for what this thread does, before it takes effect.

    Raises:
        WithdrawnError: nobody does.
    """
    found = _CURRENT.get()
    if found is not None:
        found.check()


@contextmanager
def withdrawing(stop: Callable[[], object]) -> Iterator[None]:
    """Wait for something that `stop` ends, for when nobody waits for this thread any more."""
    found = _CURRENT.get()
    if found is None:
        yield
        return
    with found.stopping(stop):
        yield
