"""What a sink has noted of rows that came at a pace is as long as the answers took."""

from pathlib import Path

import numpy as np
import pytest

from headrace.workloads.nexmark import Nexmark
from latencies_report import Measured, report
from latency import Latencies
from paced import Pace, read_notes

PACE = Pace(rate=100_000, every=0.01, warm_up=0.02, seconds=0.02)
MS = 1_000_000


def test_instances_of_a_sink_are_one(tmp_path: Path) -> None:
    np.array([[5, 1], [0, 0]], "<i8").tofile(tmp_path / "0.longs")
    np.array([[3, 2], [9, 1], [8, 4]], "<i8").tofile(tmp_path / "1.longs")
    assert read_notes(tmp_path).tolist() == [[5, 3], [9, 1], [8, 4]]


def test_batches_count_that_make_something_final_and_are_due_in_time() -> None:
    # The first is of the time that warms up, the fourth has no rows, and the fifth ends the input.
    notes = np.array([[900 * MS, 1], [900 * MS, 1], [24 * MS, 7], [0, 0], [900 * MS, 1]])
    found = PACE.latencies(notes)
    assert found.answers == 1
    assert found.most == pytest.approx(4.0)


def test_half_of_the_answers_and_99_of_100_came_within_what_is_told() -> None:
    found = Latencies.of(np.arange(1, 102) / 1000)
    assert (found.middle, found.high, found.most) == pytest.approx((51.0, 100.0, 101.0))
    assert found.answers == 101


def test_no_answer_has_no_latency() -> None:
    with pytest.raises(ValueError, match="no answer"):
        PACE.latencies(np.zeros((4, 2), np.int64))


def test_events_of_all_batches_are_those_of_their_instants() -> None:
    assert (PACE.events, PACE.batches) == (1087, 4)
    # What the source of Flink calculates with is whole, so that nothing drifts.
    assert Nexmark.start % 1000 == 0


def test_a_cell_is_the_median_of_runs_with_their_bounds_and_what_failed_is_told() -> None:
    runs = [Measured(Latencies(middle, 10 * middle, 100.0, 9), 0.25) for middle in (3.04, 1.0, 20.0)]
    figures = {("q0", "inline"): runs, ("q0", "flink"): runs[:1]}
    text = report(PACE, ["q0"], figures, ["q0 on Flink:\n1 row"])
    lines = [line for line in text.splitlines() if line.startswith("| q0")]
    assert lines == [
        "| q0 | 3.0 (1.0–20) |  | 3.0 |  |  |",
        "| q0 | 30 (10–200) |  | 30 |  |  |",
        "| q0 | 25 (25–25) |  | 25 |  |  |",
    ]
    assert "- q0 on Flink: 1 row" in text
