"""The lateness of answers lately, and their worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from headrace.qos_graph import QosGraph
from headrace.runtime.driver.lanes.lateness import QosMonitor, RecentSum, kept_rows
from headrace.runtime.driver.lanes.status import AnswerWorth
from headrace.runtime.intake.retained import RetainedSource
from headrace.runtime.intake.streams import Intake
from headrace.runtime.tasks.messages import RetainedFile
from headrace.schema import Schema

GRAPH = QosGraph(((0.0, 0.5), (4.0, 0.1), (8.0, 0.0)))


def worth(monitor: QosMonitor, now: float, *queries: str) -> list[AnswerWorth]:
    return list(monitor.worth(queries, str.upper, now))


def test_what_is_five_seconds_older_counts_half() -> None:
    found = RecentSum()
    assert found.at(7.0) == 0.0
    found.add(8.0, 10.0)
    found.add(1.0, 15.0)
    assert (found.at(15.0), found.at(20.0), found.at(25.0)) == (5.0, 2.5, 1.25)


def test_utility_is_a_part_of_that_of_an_answer_at_once() -> None:
    monitor = QosMonitor()
    monitor.note({"q": GRAPH}, 4.0, 10, now=0.0)
    assert worth(monitor, 0.0, "q", "other") == [AnswerWorth("Q", 0.2, 4.0)]
    # The first ten count as five by now.
    monitor.note({"q": GRAPH}, 0.0, 15, now=5.0)
    assert worth(monitor, 5.0, "q") == [AnswerWorth("Q", (5 * 0.2 + 15) / 20, 1.0)]
    # Time alone changes nothing: there are no answers in it.
    assert worth(monitor, 500.0, "q") == worth(monitor, 5.0, "q")


def test_where_no_answer_is_worth_anything_none_was() -> None:
    monitor = QosMonitor()
    monitor.note({"q": QosGraph(((0.0, 0.0),))}, 1.0, 3, now=0.0)
    assert worth(monitor, 0.0, "q") == [AnswerWorth("Q", 0.0, 1.0)]


def test_another_graph_begins_anew_and_what_is_gone_is_forgotten() -> None:
    monitor, other = QosMonitor(), QosGraph(((0.0, 1.0), (2.0, 0.0)))
    monitor.note({"q": GRAPH, "p": GRAPH}, 8.0, 10, now=0.0)
    monitor.keep((), {"q": GRAPH, "p": other})
    assert worth(monitor, 0.0, "q", "p") == [AnswerWorth("Q", 0.0, 8.0)]
    monitor.note({"q": other}, 1.0, 1, now=0.0)
    assert worth(monitor, 0.0, "q") == [AnswerWorth("Q", 0.5, 1.0)]


def test_shares_of_time_are_those_of_lately() -> None:
    monitor = QosMonitor()
    assert monitor.share_of(0, 0.0) is None
    monitor.note_time(0, 4.0, 0.0)
    monitor.note_time(3, 2.0, 5.0)
    assert [monitor.share_of(lane, 5.0) for lane in (0, 3, 7)] == [0.5, 0.5, 0.0]
    monitor.keep((), {})
    assert [monitor.share_of(lane, 9.0) for lane in (0, 3)] == [1.0, 0.0]


@dataclass
class NoStore:
    """A run of which nothing is read."""


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 9, [(1, 4), (2, 3), (5, 2)]),
        (3, 5, [(1, 1), (2, 1)]),
        (4, 7, [(2, 3)]),
        (8, 9, [(5, 1)]),
        (4, 4, []),
    ],
)
def test_the_rows_that_are_taken_of_each_file(start: int, end: int, expected: list[tuple[int, int]]) -> None:
    store: Any = NoStore()
    part: Any = None
    files = tuple(RetainedFile(part, rows, first, first, 0) for first, rows in ((1, 4), (2, 3), (5, 2)))
    source = RetainedSource(store, files, Schema(()))
    assert [(file.first, rows) for file, rows in kept_rows(Intake(9, source, start, end))] == expected
    assert not list(kept_rows(Intake(9)))
