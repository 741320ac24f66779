"""Lanes as texts: SHOW LANES, the status and `headrace top` have the same ones."""

from __future__ import annotations

from typing import Final

from headrace.runtime.driver.lanes.status import AnswerWorth, LaneStatus
from headrace.runtime.writing.texts import count
from headrace.time import TimeDomain, format_length

LANES: Final = (
    "lane", "queries", "weight", "due", "had", "latency", "waiting", "behind", "turns", "seconds_per_row",
    "utility",
)  # fmt: skip
"""The columns of `lane_row`."""


def lane_row(one: LaneStatus) -> tuple[str, ...]:
    """A lane as texts, for `LANES`."""
    return (
        str(one.lane) if one.lane else "front",
        ", ".join(one.queries),
        f"{one.weight:g}",
        _percent(one.due),
        "" if one.had is None else _percent(one.had),
        "" if one.latency is None else format_length(one.latency, TimeDomain.TIMESTAMP),
        count(one.rows, "row") if one.lane else "",
        "" if one.behind is None else _seconds(one.behind),
        f"{one.turns:,}",
        f"{one.cost:.2g}" if one.cost else "",
        worth_text(one.worth),
    )


def worth_text(worth: tuple[AnswerWorth, ...]) -> str:
    """The utilities of queries."""
    return ", ".join(f"{one.query} {one.utility:.2f}" for one in worth)


def waiting_text(one: LaneStatus) -> str:
    """The rows that wait for the queries of a lane, and for how long; empty where none do."""
    if not one.rows:
        return ""
    return count(one.rows, "row") + ("" if one.behind is None else f", {_seconds(one.behind)}")


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f} s"
