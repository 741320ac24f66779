"""How far a run is, as text, and the line that a notebook shows meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import headrace as hr
from headrace.engine.shown import progress_line
from headrace.engine.shown.progress_line import Line, describe, length_text
from headrace.time import BEGINNING, INFINITY, TimeDomain


@pytest.mark.parametrize(
    ("heartbeat", "domain", "end"),
    [
        (1_704_067_201_234_567, TimeDomain.TIMESTAMP, "  heartbeat 2024-01-01T00:00:01Z"),
        (1_234, TimeDomain.INTEGER, "  heartbeat 1234"),
        (BEGINNING, TimeDomain.INTEGER, ""),
        (INFINITY, TimeDomain.TIMESTAMP, ""),
    ],
)
def test_progress_tells_rows_rate_and_heartbeat(heartbeat: int, domain: TimeDomain, end: str) -> None:
    progress = hr.Progress(3, 1_500_000, 2_000_000, 2.0, heartbeat, domain, 99)
    assert describe(progress) == "1,500,000 rows  750,000 rows/s" + end


def at(rows: int, total: int | None, seconds: float = 2.0) -> hr.Progress:
    return hr.Progress(3, rows, total, seconds, INFINITY, TimeDomain.TIMESTAMP, 99)


def test_the_share_and_the_rest_are_estimates() -> None:
    quarter = at(500, 2_000)
    assert (quarter.share, quarter.remaining) == (0.25, 6.0)
    assert (at(500, 500).share, at(500, 500).remaining) == (1.0, 0.0)
    assert (at(0, 0).share, at(0, 0).remaining) == (1.0, 0.0)
    assert (at(0, 500).share, at(0, 500).remaining) == (0.0, None)
    # A stream never ends.
    assert (at(500, None).share, at(500, None).remaining) == (None, None)


def test_lengths_are_short() -> None:
    assert [length_text(seconds) for seconds in (0.4, 7.2, 59.6, 725, 3609)] == [
        *("0:00", "0:07", "1:00", "12:05", "1:00:09")
    ]


class Screen:
    """What a notebook shows: the newest form of each display."""

    def __init__(self) -> None:
        self.shown: list[Mapping[str, str]] = []
        self.displays = 0

    def display(self, bundle: Mapping[str, str], *, raw: bool, display_id: bool) -> Any:
        assert raw
        assert display_id
        self.displays += 1
        self.update(bundle, raw=True)
        return self

    def update(self, bundle: Mapping[str, str], *, raw: bool) -> None:
        assert raw
        self.shown.append(bundle)


def test_a_run_of_less_than_a_second_shows_nothing() -> None:
    screen, now = Screen(), [10.0]
    line = Line(screen.display, lambda: now[0])
    now[0] = 10.9
    line.update()
    line(at(500, 2_000))
    assert not screen.shown


def test_one_line_is_updated() -> None:
    screen, now = Screen(), [10.0]
    line = Line(screen.display, lambda: now[0])
    now[0] = 11.0
    line.update()
    now[0] = 12.5
    line(at(500, 2_000))
    now[0] = 14.0
    line.update()
    line(at(2_000, 2_000))
    assert screen.displays == 1
    assert [bundle["text/plain"] for bundle in screen.shown] == [
        "0:01  starting",
        "25%  0:02  about 0:06 left  500 rows  250 rows/s",
        "25%  0:04  about 0:06 left  500 rows  250 rows/s",
        "100%  0:04  2,000 rows  1,000 rows/s",
    ]
    assert screen.shown[0]["text/html"] == "<progress></progress> 0:01  starting"
    assert screen.shown[1]["text/html"].startswith('<progress value="0.250"></progress> 25%')


def test_where_a_stream_never_ends_there_is_no_share() -> None:
    screen = Screen()
    line = Line(screen.display, iter((0.0, 5.0)).__next__)
    line(at(500, None))
    (bundle,) = screen.shown
    assert bundle["text/html"] == "<progress></progress> 0:05  500 rows  250 rows/s"


def notebook(screen: Screen, kernel: object) -> ModuleType:
    """IPython as it is imported where a kernel runs, or without one on a terminal."""
    ipython: Any = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=kernel)
    ipython.display = SimpleNamespace(display=screen.display)
    return ipython  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kernel", "progress", "shown"),
    [("a kernel", None, True), (None, None, False), ("a kernel", False, False)],
)
def test_a_notebook_shows_the_line_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, kernel: object, progress: Any, shown: bool
) -> None:
    screen = Screen()
    monkeypatch.setitem(sys.modules, "IPython", notebook(screen, kernel))
    monkeypatch.setattr(progress_line, "DELAY", 0.0)
    with hr.connect(runner="inline", epoch_rows=2) as db:
        db.stream("s", pa.table({"ts": [1, 2, 3, 4]}), timestamp="ts")
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]")
        db.run(progress)
    assert screen.displays == shown
    if shown:
        assert "4 rows" in screen.shown[-1]["text/plain"]
        assert screen.shown[-1]["text/plain"].startswith("100%")


def test_a_function_is_called_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setitem(sys.modules, "IPython", notebook(screen, "a kernel"))
    monkeypatch.setattr(progress_line, "DELAY", 0.0)
    seen: list[float | None] = []
    with hr.connect(runner="inline", epoch_rows=2) as db:
        db.stream("s", pa.table({"ts": [1, 2, 3, 4]}), timestamp="ts")
        db.query("SELECT COUNT(*) AS n FROM s [RANGE 5]")
        db.run(lambda progress: seen.append(progress.share))
    assert seen == [0.5, 1.0]
    assert not screen.shown
