"""What a run shows on a terminal, and that it shows nothing elsewhere."""

from __future__ import annotations

import io
import re
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import headrace as hr
from headrace.cli.progress import operator_table, progress_bar, waiting
from headrace.time import TimeDomain


class Terminal(io.StringIO):
    """Text that takes itself for a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("wanted", [True, False])
def test_a_terminal_shows_what_takes_a_while_if_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, wanted: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    output, errors = Terminal(), Terminal()
    with redirect_stdout(output), redirect_stderr(errors):
        with waiting(wanted, "starting Spark"):
            deadline = time.monotonic() + 30
            while wanted and "starting Spark ..." not in errors.getvalue():
                assert time.monotonic() < deadline, errors.getvalue()
        with progress_bar(wanted) as show:
            assert (show is not None) == wanted
    assert ("running the first epoch" in errors.getvalue()) == wanted
    assert wanted or not errors.getvalue()
    assert output.getvalue() == ""


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (
            6_000_000,
            "25 %  0:00  about 0:06 left 1,500,000 rows  750,000 rows/s  heartbeat 2024-05-01T09:00:00Z",
        ),
        (None, "0:00 1,500,000 rows  750,000 rows/s  heartbeat 2024-05-01T09:00:00Z"),
    ],
)
@pytest.mark.parametrize("width", [160, 60])
def test_the_bar_has_share_and_times_and_fits(
    monkeypatch: pytest.MonkeyPatch, total: int | None, expected: str, width: int
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(width))
    errors = Terminal()
    heartbeat = int(datetime(2024, 5, 1, 9, tzinfo=UTC).timestamp()) * 1_000_000
    with redirect_stderr(errors), progress_bar(True) as show:
        assert show is not None
        show(hr.Progress(3, 1_500_000, total, 2.0, heartbeat, TimeDomain.TIMESTAMP, 99))
    # The last of the lines that were drawn over each other, without the spinner and the bar.
    lines = [line for line in re.split(r"[\r\n]|\x1b\[[0-9?;]*[a-zA-Z]", errors.getvalue()) if line.strip()]
    text = re.sub(r"\s+", " ", "".join(lines)[-2 * width :])
    whole = re.sub(r"\s+", " ", expected)
    if width == 160:
        assert whole in text
    else:
        assert whole not in text
        assert "…" in text
        assert whole[:20] in text


def test_a_pipe_gets_nothing() -> None:
    errors = io.StringIO()
    with redirect_stderr(errors), waiting(True, "starting Spark"), progress_bar(True) as show:
        assert show is None
    assert errors.getvalue() == ""


def test_of_many_operators_the_slowest_are_shown() -> None:
    with hr.connect(runner="inline") as db:
        db.stream("s", pa.table({"ts": [1], "v": [1]}), timestamp="ts")
        db.query("SELECT v FROM s")
        db.run()
        one = db.status.operators[0]
    operators = [replace(one, number=number, seconds=float(number % 4)) for number in range(100)]
    table = operator_table(operators, 200)
    assert table.row_count == 50
    assert table.caption == "without 50 operators that took less"
    assert [str(cell) for cell in table.columns[0].cells][:2] == [
        "#2 Source s (v) by ts",
        "#3 Source s (v) by ts",
    ]
