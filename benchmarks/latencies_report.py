"""The time that answers take on all systems, as text with tables for RESULTS.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from latency import EVENT_RATE, Latencies
from paced import Pace
from peer import CORES
from results import Section, machine
from systems import versions


@dataclass(frozen=True)
class Way:
    """A system, and how it is set.

    Attributes:
        title: its name.
        options: of `latency.py`, or with Flink of `latency_flink.py`.
        flink: whether it is Flink.
        once: whether it runs only once.
    """

    title: str
    options: Sequence[str]
    flink: bool = False
    once: bool = False


WAYS: Final[Mapping[str, Way]] = {
    "inline": Way("Headrace, one process", ("--runner=inline",)),
    "spark": Way("Headrace on Spark", ("--runner=spark", f"--master=local[{CORES}]")),
    "flink": Way("Flink, watermarks of the source", ("--buffers=1",), flink=True),
    "flink-10": Way("Flink, watermarks every 10 ms", ("--watermarks=10", "--buffers=5"), True, once=True),
    "flink-200": Way("Flink, its defaults", ("--watermarks=200", "--buffers=100"), True, once=True),
}
"""The systems that are measured, by name."""


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        found: how long its answers took.
        foreign: the share of the machine that others used meanwhile, from 0 to 1.
    """

    found: Latencies
    foreign: float

    @classmethod
    def read(cls, found: Any) -> Measured:
        """A run of which `latency.py` has written a report."""
        return cls(Latencies(**found["found"]), found["foreign"])

    def __str__(self) -> str:
        return f"{self.found}  other load {self.foreign:4.0%}"


Figures = Mapping[tuple[str, str], Sequence[Measured]]
"""The runs, by query and system."""


def report(pace: Pace, queries: Sequence[str], figures: Figures, problems: Sequence[str]) -> str:
    """All figures as text.

    Args:
        pace: of the rows.
        queries: those that were asked for, in order.
        figures: what was measured.
        problems: what failed.
    """
    sections = (
        _table("Half of the answers are there within, ms", queries, figures, lambda run: run.found.middle),
        _table("99 of 100 are there within, ms", queries, figures, lambda run: run.found.high),
        _table("Load of others, percent of the machine", queries, figures, lambda run: 100 * run.foreign),
    )
    return "\n\n".join(
        [_preamble(pace, max(map(len, figures.values()), default=0)), _verdict(problems), *map(str, sections)]
    )


def _preamble(pace: Pace, runs: int) -> str:
    return "\n".join(
        [
            f"`python benchmarks/latencies.py --runs {runs} --write`, {machine()}, {versions()}; "
            f"each has {CORES} cores.",
            "",
            f"NEXMark bids at {pace.rate:,.0f} per second, event time {EVENT_RATE:,} events/s, in batches of",
            f"which one is due every {1000 * pace.every:g} ms, as rows that are in memory; for the join the",
            "auctions of the same time come as well. An answer is complete when a subscriber in the process,",
            "or Flink's sink, was given the last row that a batch makes final, and its clock starts when the",
            "batch is due. For tumbling only batches in which a window ends count.",
            "",
            "A cell is the median of the runs, with the least and the most of them. A run is a process of",
            f"its own, and {pace.seconds:g} seconds of it count, after {pace.warm_up:g} others. Flink has no",
            "mini-batches and no checkpoints, its state is on the heap, and objects are reused. At its best",
            "its source says at the end of a batch that it is over, and rows wait to be sent for 1 ms at",
            "most. Where the source does not say so, watermarks come every 10 ms and rows wait for 5 ms, or",
            "by Flink's defaults every 200 ms and for 100 ms. These two have one run each.",
        ]
    )


def _verdict(problems: Sequence[str]) -> str:
    if not problems:
        return "Flink's answers have as many rows as those of DuckDB."
    return "\n".join(["Not all went well:", "", *(f"- {' '.join(problem.split())}" for problem in problems)])


def _table(
    title: str, queries: Sequence[str], figures: Figures, value: Callable[[Measured], float]
) -> Section:
    """A row per query, with a cell per system."""
    rows = tuple(
        (query, *(_cell([value(run) for run in figures.get((query, name), ())]) for name in WAYS))
        for query in queries
    )
    return Section(title, ("query", *(way.title for way in WAYS.values())), rows)


def _cell(values: Sequence[float]) -> str:
    """Nothing where nothing was measured."""
    if not values:
        return ""
    spread = f" ({_digits(min(values))}–{_digits(max(values))})" if len(values) > 1 else ""
    return _digits(statistics.median(values)) + spread


def _digits(value: float) -> str:
    """A decimal for what is small."""
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"
