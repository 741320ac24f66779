"""Work that may be ended before it is done: because it takes too long, or since nobody wants it any more.

Whoever begins the work sets a limit for its thread. Loops that may be long ask `check`, directly or by going
over `checked(rows)`, and end with an error that only those who set limits catch. A kernel does one bounded
piece at a time, and the loop around it asks.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

T = TypeVar("T")


class CancelledWorkError(BaseException):
    """Work that ends before it is done; no `except Exception` on the way takes it for an error of its own.

    Attributes:
        limit: the limit that ended it.
        reason: why, in one sentence.
    """

    def __init__(self, limit: Limit, reason: str) -> None:
        super().__init__(reason)
        self.limit = limit
        self.reason = reason


class OutOfTimeError(CancelledWorkError):
    """Work that has taken as long as it may."""


class Limit:
    """When some work of one thread is to end.

    Args:
        seconds: so long it may take; infinite where it may take as long as it likes.
        unwanted: says why it is not wanted any more, or None while it is.
    """

    __slots__ = ("_begun", "_unwanted", "seconds")

    def __init__(self, seconds: float = math.inf, unwanted: Callable[[], str | None] = lambda: None) -> None:
        self.seconds = seconds
        self._begun = time.monotonic()
        self._unwanted = unwanted

    def check(self) -> None:
        """See that the work may go on.

        Raises:
            OutOfTimeError: it has taken too long.
            CancelledWorkError: nobody wants it any more.
        """
        reason = self._unwanted()
        if reason is not None:
            raise CancelledWorkError(self, reason)
        if self.spent > self.seconds:
            raise OutOfTimeError(self, f"it took more than {self.seconds:g} s")

    @property
    def spent(self) -> float:
        """How long it has taken (seconds)."""
        return time.monotonic() - self._begun

    def extend(self, seconds: float) -> None:
        """Let the work take longer, by what was spent on something that is not its own."""
        self._begun += seconds


_HERE: Final = threading.local()

_WAIT: Final = 0.05
"""Seconds between two looks at whether work is still wanted that waits for its turn."""


def check() -> None:
    """See that the work of this thread may go on.

    Raises:
        CancelledWorkError: it may not.
    """
    for limit in getattr(_HERE, "limits", ()):
        limit.check()


def checked(items: Iterable[T]) -> Iterator[T]:
    """The items, as long as the work of this thread may go on.

    Raises:
        CancelledWorkError: it may not.
    """
    limits: tuple[Limit, ...] = getattr(_HERE, "limits", ())
    if not limits:
        yield from items
        return
    for item in items:
        for limit in limits:
            limit.check()
        yield item


def begin(limit: Limit) -> tuple[Limit, ...]:
    """Add a limit to the work of this thread; returns what `end` takes."""
    before: tuple[Limit, ...] = getattr(_HERE, "limits", ())
    _HERE.limits = (*before, limit)
    return before


def end(before: tuple[Limit, ...]) -> None:
    """Take the limit of a `begin` away again."""
    _HERE.limits = before


@contextmanager
def within(limit: Limit) -> Iterator[None]:
    """Work of this thread with one more limit."""
    before = begin(limit)
    try:
        yield
    finally:
        end(before)


class _Untimed:
    """The seconds of work of this process that count for nobody: of what is done, and of what goes on."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = 0.0
        self._begun: list[float] = []

    def began(self, at: float) -> None:
        with self._lock:
            self._begun.append(at)

    def ended(self, at: float, spent: float) -> None:
        with self._lock:
            self._begun.remove(at)
            self._spent += spent

    def seconds(self) -> float:
        with self._lock:
            now = time.monotonic()
            return self._spent + sum(now - at for at in self._begun)


_UNTIMED: Final = _Untimed()


def untimed_seconds() -> float:
    """The seconds that `untimed` work has taken in this process so far, those of several threads added."""
    return _UNTIMED.seconds()


@contextmanager
def untimed() -> Iterator[None]:
    """Work that is done once for everybody, such as compiling; its time counts for nobody."""
    started = time.monotonic()
    _UNTIMED.began(started)
    try:
        yield
    finally:
        spent = time.monotonic() - started
        _UNTIMED.ended(started, spent)
        for limit in getattr(_HERE, "limits", ()):
            limit.extend(spent)


@contextmanager
def in_turn(lock: threading.RLock) -> Iterator[None]:
    """Let the code of users that this thread runs take turns with that of others by a lock."""
    before, _HERE.lock = getattr(_HERE, "lock", None), lock
    try:
        yield
    finally:
        _HERE.lock = before


@contextmanager
def turn() -> Iterator[None]:
    """Run code of users, by itself where this thread takes turns. The time that it waits counts for nobody.

    Raises:
        CancelledWorkError: nobody wants the work any more that waits for its turn.
    """
    lock = getattr(_HERE, "lock", None)
    if lock is None:
        yield
        return
    limits: tuple[Limit, ...] = getattr(_HERE, "limits", ())
    while not lock.acquire(timeout=_WAIT):
        for limit in limits:
            limit.extend(_WAIT)
            limit.check()
    try:
        yield
    finally:
        lock.release()
