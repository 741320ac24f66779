"""Heartbeats that sources send beside their rows, until they are committed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace

from headrace.errors import UserError
from headrace.runtime.driver.endless.feeds import Feeds, ReadUpTo
from headrace.runtime.intake.streams import Intake


@dataclass(frozen=True, eq=False)
class _Promise:
    """A heartbeat that a source has sent beside its rows.

    Attributes:
        stream: its stream.
        heartbeat: no later row is below it (instant).
        after: what had come of the stream before it; see `Feed.come`.
        done: resolved when it is committed.
    """

    stream: str
    heartbeat: int
    after: int
    done: Future[None]


class Promises:
    """The heartbeats that sources have sent, of which each waits for the rows before it.

    Args:
        lock: held while a heartbeat comes, and while they are taken.
        feeds: those of the streams.
    """

    def __init__(self, lock: threading.Condition, feeds: Feeds) -> None:
        self._lock = lock
        self._feeds = feeds
        self._waiting: list[_Promise] = []
        self._taken: list[_Promise] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, stream: str, heartbeat: int) -> Future[None]:
        """Take a heartbeat; resolved when it is committed. Whoever calls holds the lock.

        Args:
            stream: a live stream with a feed.
            heartbeat: no row that comes later is below it (instant).
        """
        feed = self._feeds.get(stream)
        assert feed is not None
        promise = _Promise(stream, heartbeat, feed.come(), Future())
        self._waiting.append(promise)
        return promise.done

    def take(self, intakes: dict[str, Intake], points: ReadUpTo) -> None:
        """Add those to what an epoch takes before which all rows are taken."""
        left = []
        with self._lock:
            for promise in self._waiting:
                feed = self._feeds.get(promise.stream)
                if feed is None:
                    message = f"no query reads a stream {promise.stream} any more"
                    promise.done.set_exception(UserError(message))
                elif feed.has_taken(promise.after):
                    take = intakes.get(promise.stream) or Intake(points(promise.stream).position)
                    heartbeat = max(take.promise, promise.heartbeat)
                    intakes[promise.stream] = replace(take, promise=heartbeat)
                    self._taken.append(promise)
                else:
                    left.append(promise)
            self._waiting = left

    def keep(self, failed: Mapping[str, BaseException]) -> None:
        """Let those who sent heartbeats know that they count; those of a stream that failed wait."""
        kept, self._taken = self._taken, []
        with self._lock:
            self._waiting = [promise for promise in kept if promise.stream in failed] + self._waiting
        for promise in kept:
            if promise.stream not in failed:
                promise.done.set_result(None)

    def end(self, error: Exception) -> None:
        """Let all who wait hear that nothing counts any more."""
        with self._lock:
            broken = [*self._taken, *self._waiting]
            self._taken, self._waiting = [], []
        for promise in broken:
            promise.done.set_exception(error)
