"""An endless run: a thread that turns what the feeds bring into epochs, until it is stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from headrace.runtime.epochs import Run
from headrace.runtime.feeds import Feed
from headrace.runtime.streams import Intake

LINGER = 0.02
"""Seconds that an epoch waits, after something has come, for other streams to bring something too."""

_LOOK = 0.25
"""Seconds between two looks at whether all feeds are well."""


class LiveRun:
    """Runs epochs as input comes.

    Args:
        run: what commits the epochs; the thread is its only user while it runs.
        changed: notified after every commit and at the end.

    Attributes:
        error: what ended the run, or None.
        problems: streams that were given up, with the reason; the others go on.
    """

    def __init__(self, run: Run, changed: threading.Condition) -> None:
        self._run = run
        self._changed = changed
        self._feeds: Mapping[str, Feed] = {}
        self._stopping = False
        self._thread = threading.Thread(target=self._loop, name="headrace epochs", daemon=True)
        self.error: BaseException | None = None
        self.problems: dict[str, str] = {}

    def start(self, feeds: Mapping[str, Feed]) -> None:
        """Start the feeds and the thread; where a feed cannot start, those before it are stopped again."""
        self._feeds = feeds
        try:
            for name, feed in feeds.items():
                feed.start(self._run.point(name))
        except BaseException:
            for feed in feeds.values():
                feed.stop()
            raise
        self._thread.start()

    def wake(self) -> None:
        """Something has come."""
        with self._changed:
            self._changed.notify_all()

    @property
    def running(self) -> bool:
        """Whether epochs are still run."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """End after the epoch that is running."""
        self._stopping = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()

    def _loop(self) -> None:
        try:
            while not self._stopping:
                intakes = self._next()
                if intakes:
                    self._run.step(intakes)
                    self._settle(None)
                    self.wake()
        except BaseException as error:  # whatever it is, whoever waits has to hear of it
            self.error = error
            self._settle(error)
        finally:
            for feed in self._feeds.values():
                feed.stop()
            self._stopping = True
            self.wake()

    def _next(self) -> dict[str, Intake]:
        """What the next epoch takes; waits until there is something, or for a short while."""
        with self._changed:
            self._changed.wait_for(self._something, timeout=_LOOK)
        self._check()
        if self._stopping or not self._something():
            return {}
        if not all(feed.ready() for feed in self._feeds.values()):
            time.sleep(LINGER)
        intakes = self._run.next_share()
        for name, feed in self._feeds.items():
            intake = feed.take(self._run.point(name))
            if intake is not None:
                intakes[name] = intake
        return intakes

    def _something(self) -> bool:
        fed = any(feed.ready() for feed in self._feeds.values())
        return self._stopping or fed or bool(self._run.next_share())

    def _check(self) -> None:
        for name, feed in self._feeds.items():
            reason = None if name in self.problems else feed.check()
            if reason is not None:
                self.problems[name] = reason

    def _settle(self, error: BaseException | None) -> None:
        for feed in self._feeds.values():
            feed.settle(error)
