"""The feeds of an endless run: what brings the rows of its live streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from headrace.runtime.driver.endless.retries import cause_of
from headrace.runtime.driver.facts.reports import LOG
from headrace.runtime.intake.feed import Feed, FittedRows
from headrace.runtime.intake.streams import Intake, LiveStream, Streams
from headrace.runtime.intake.system_feed import SystemFeed
from headrace.runtime.journal.records import StreamPoint

ReadUpTo = Callable[[str], StreamPoint]
"""The place up to which a stream has been read, by its name."""

ReadColumns = Mapping[str, Sequence[str]]
"""The columns that are read of each stream."""


class Feeds:
    """The feeds of a run by the names of their streams; the run's thread is the only one that changes them.

    Attributes:
        problems: streams that were given up, with the reason; the others go on.
    """

    def __init__(self) -> None:
        self._all: Mapping[str, Feed] = {}
        self.problems: dict[str, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def get(self, name: str) -> Feed | None:
        """The feed of a stream; None of one that has none."""
        return self._all.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The streams that have feeds."""
        return tuple(self._all)

    @property
    def troubles(self) -> dict[str, str]:
        """Streams that cannot be read for now, with the reason; they are tried again."""
        found = {name: feed.trouble() for name, feed in self._all.items() if name not in self.problems}
        return {name: trouble for name, trouble in found.items() if trouble is not None}

    @property
    def of_system(self) -> list[SystemFeed]:
        """Those of the streams about the run."""
        return [feed for feed in self._all.values() if isinstance(feed, SystemFeed)]

    def start(self, feeds: Mapping[str, Feed], points: ReadUpTo, columns: ReadColumns) -> None:
        """Start the first feeds; where one cannot start, those before it are stopped again."""
        try:
            for name, feed in feeds.items():
                feed.start(points(name), columns[name])
        except BaseException:
            for feed in feeds.values():
                feed.stop()
            raise
        self._all = dict(feeds)

    def add(self, started: Mapping[str, Feed]) -> None:
        """Take in feeds that have been started."""
        self._all = {**self._all, **started}

    def stop(self, stack: ExitStack) -> None:
        """Let all feeds stop when a stack is closed."""
        for feed in self._all.values():
            stack.callback(feed.stop)

    def read(self, columns: ReadColumns) -> None:
        """Say which columns are read now."""
        for name, feed in self._all.items():
            feed.read(columns[name])

    def take(self, points: ReadUpTo) -> dict[str, Intake]:
        """The intakes of the next epoch, of each that has something."""
        taken = ((name, feed.take(points(name))) for name, feed in self._all.items())
        return {name: intake for name, intake in taken if intake is not None}

    def fit(self, rows: int | None) -> None:
        """Let an epoch take no more rows than this of all of them together.

        Args:
            rows: how many fit; any number if None.
        """
        fitting = [feed for feed in self._all.values() if isinstance(feed, FittedRows)]
        each = None if rows is None else max(1, rows // max(1, len(fitting)))
        for feed in fitting:
            feed.fit(each)

    def any_ready(self) -> bool:
        """Whether one has something."""
        return any(feed.ready() for feed in self._all.values())

    def all_ready(self) -> bool:
        """Whether each has something."""
        return all(feed.ready() for feed in self._all.values())

    def waiting(self) -> dict[str, int | None]:
        """The number of rows that wait in each; None where that is not known."""
        return {name: feed.waiting() for name, feed in self._all.items()}

    def caught_up(self) -> dict[str, bool]:
        """Whether all that each source has is taken."""
        return {name: feed.caught_up() for name, feed in self._all.items()}

    def settle(self, failed: Mapping[str, BaseException]) -> None:
        """Say what became of what was taken; those that failed may bring it again."""
        with ExitStack() as stack:
            for name, feed in self._all.items():
                stack.callback(feed.settle, failed.get(name))

    def check(self, blamed: Mapping[str, BaseException]) -> None:
        """Give up those that have ended.

        Args:
            blamed: with which errors epochs have failed that read a stream.
        """
        for name, feed in self._all.items():
            reason = None if name in self.problems else feed.check()
            if reason is not None:
                error = blamed.get(name)
                self.problems[name] = reason if error is None else f"no epoch can read it: {cause_of(error)}"
                LOG.warning("the stream %s was given up: %s", name, self.problems[name])

    def retire(self, streams: Streams) -> None:
        """Stop those of streams that no query reads any more.

        Args:
            streams: those that some query reads.
        """
        retired = [feed for name, feed in self._all.items() if name not in streams]
        if retired:
            self.problems = {name: why for name, why in self.problems.items() if name in streams}
            self._all = {name: feed for name, feed in self._all.items() if name in streams}
            for feed in retired:
                feed.stop()

    def wider(self, known: Streams, streams: Streams) -> dict[str, LiveStream]:
        """The streams with feeds that have further columns from now on.

        Args:
            known: the streams so far.
            streams: those from now on.
        """
        found = {}
        for name, before in known.items():
            stream = streams.get(name)
            if name in self._all and isinstance(stream, LiveStream) and stream.schema != before.schema:
                found[name] = stream
        return found

    def widen(
        self,
        wider: Mapping[str, LiveStream],
        make: Callable[[str], Feed],
        points: ReadUpTo,
        columns: ReadColumns,
    ) -> None:
        """Let feeds bring further columns, or others in their place.

        The change is committed: a feed that does not start is given up, as one that ends while it is read.

        Args:
            wider: the streams that have further columns.
            make: makes another feed for a stream.
            points: how far streams have been read.
            columns: which columns are read.
        """
        for name, stream in wider.items():
            if name not in self._all or self._all[name].widen(stream):
                continue
            self._all[name].stop()
            other = make(name)
            other.start(points(name), columns[name])
            self.add({name: other})
