"""How often a source that is pulled is asked: until nothing comes if it drains, else once a time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.runtime.intake.pull_feed import PullFeed
from headrace.runtime.intake.pulling import PulledPiece
from headrace.runtime.journal.records import StreamPoint
from headrace.runtime.sources.composed.one_row import OneRow
from headrace.runtime.sources.rows.contract import SplitSource
from waiting import wait_until

_PIECES = 5


class _Numbers:
    """Something else at each pull, `_PIECES` times; nothing after that, for an hour."""

    every = 3600.0
    together = False

    def __init__(self, drains: bool) -> None:
        self.drains = drains
        self.pulled = 0

    def end(self) -> None:
        """Nothing is open."""

    def pull(self, last: int | None) -> PulledPiece | None:
        self.pulled += 1
        return PulledPiece(b"", 1, 1, self.pulled) if self.pulled <= _PIECES else None

    def opened(self, pieces: Sequence[PulledPiece], path: Path) -> SplitSource:
        return OneRow()


@pytest.mark.parametrize(("drains", "pulled"), [(False, 1), (True, _PIECES + 1)])
def test_a_source_that_does_not_drain_is_asked_once_a_time_whatever_it_brings(
    tmp_path: Path, drains: bool, pulled: int
) -> None:
    source = _Numbers(drains)
    feed = PullFeed("s", source, tmp_path, 1_000, 1_000, lambda: None)
    feed.start(StreamPoint(0), ())

    def takes_all() -> bool:
        if feed.take(StreamPoint(0)) is not None:
            feed.settle(None)
        return feed.caught_up()

    try:
        wait_until(takes_all, True)
        assert source.pulled == pulled
    finally:
        feed.stop()
