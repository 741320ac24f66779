"""The figures of all systems as text with tables, for RESULTS.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from measured import Measured
from peer import CORES
from results import Section, machine
from spellings import SPELLED
from systems import SYSTEMS, versions

Figures = Mapping[tuple[str, str], Measured]
"""What was measured, by query and system."""

_ORDER: Final = ("headrace", "inline", "flink", "streaming", "pathway", "duckdb")


def report(
    events: int, few_events: int, queries: Sequence[str], figures: Figures, problems: Sequence[str]
) -> str:
    """All figures as text.

    Args:
        events: of NEXMark, for the counted runs.
        few_events: for the answers that were compared.
        queries: those that were asked for, in order.
        figures: what was measured.
        problems: what failed, and what differs.
    """
    sections = (
        _rates(queries, figures),
        _ratios(queries, figures),
        _table("Seconds of processor time per million bids", queries, figures, _processor),
        _table("Most memory of all processes together, MB", queries, figures, _memory),
        _parts(queries, figures),
    )
    return "\n\n".join([_preamble(events), _verdict(few_events, problems), *map(str, sections)])


def _preamble(events: int) -> str:
    return "\n".join(
        [
            f"`python benchmarks/peers.py --events {events} --write`, {machine()}, {versions()}; "
            f"each system has {CORES} cores.",
            "",
            "NEXMark bids, half of them on hot auctions, event time 10,000 events/s, cut to milliseconds.",
            "Every query runs in a process of its own, and its results are computed and discarded. Headrace,",
            "Structured Streaming and DuckDB read Parquet files; Flink has all rows in memory before it",
            "starts (40 bytes a bid, which are in the figures for its memory), so its q0 is the rate of its",
            "source; Pathway reads CSV files. DuckDB answers as a batch.",
            "",
            "The queries are these, on Headrace as on Flink; Structured Streaming, Pathway and DuckDB say",
            "the same in their own words (`structured_streaming.py`, `peer_pathway.py`, `peer_duckdb.py`).",
            "",
            *(f"- {name}: `{SPELLED[name][0]}`" for name in _TOLD),
            "- 10 counts, 100 counts: so many queries at once, of the kind of this one,",
            f"  which is alone in 1 count: `{SPELLED['1 count'][0]}`",
            "",
            "Flink's join has `b.ts >= a.ts AND b.ts < a.ts + INTERVAL '60' SECONDS` as condition on time.",
            "",
            "A rate is the median of the counted runs in one session, after others that warm it up; Flink",
            "has one long run. Headrace's own clock runs from its first epoch to the last, Flink's for the",
            "job's net run time, that of Structured Streaming for its micro-batches. The caller's clock also",
            "runs for what comes before and after: planning, and starting a query or, with PyFlink, a",
            "cluster. In brackets is the share of the machine that other processes used in the meantime.",
        ]
    )


_TOLD: Final = ("q0", "project", "over", "join", "tumbling", "distinct", "hop")


def _verdict(few_events: int, problems: Sequence[str]) -> str:
    if not problems:
        return (
            f"All systems gave the same answers, compared row by row over {few_events:,} events.\n"
            "(Structured Streaming writes no windows that end after the last bid.)"
        )
    return "\n".join(["Not all went well:", "", *(f"- {' '.join(problem.split())}" for problem in problems)])


def _rates(queries: Sequence[str], figures: Figures) -> Section:
    """The rates by the systems' own clocks, and Flink's by the caller's."""
    heads = [
        "query",
        *(SYSTEMS[name].title for name in _ORDER),
        "Headrace on Spark, caller's clock",
        "Flink, caller's clock",
    ]
    rows = []
    for query in queries:
        own = (_cell(figures, query, name, _rate) for name in _ORDER)
        others = (_cell(figures, query, name, _callers_rate) for name in ("headrace", "flink"))
        rows.append((query, *own, *others))
    return Section("Millions of bids a second (and the load of others)", tuple(heads), tuple(rows))


def _ratios(queries: Sequence[str], figures: Figures) -> Section:
    """How many times as fast Headrace is, on Spark as in one process, and than others."""
    pairs = (
        ("on Spark / one process", "headrace", "inline", _own),
        ("on Spark / Flink", "headrace", "flink", _own),
        ("the same by the caller's clock", "headrace", "flink", _callers),
        ("on Spark / Structured Streaming", "headrace", "streaming", _own),
        ("on Spark / DuckDB", "headrace", "duckdb", _own),
        ("one process / Flink", "inline", "flink", _own),
        ("one process / Pathway", "inline", "pathway", _own),
        ("one process / DuckDB", "inline", "duckdb", _own),
    )
    rows = []
    for query in queries:
        cells = []
        for _, mine, theirs, clock in pairs:
            found, other = figures.get((query, mine)), figures.get((query, theirs))
            cells.append(f"{clock(found) / clock(other):.2f}" if found and other else "")
        rows.append((query, *cells))
    heads = ("query", *(head for head, *_ in pairs))
    return Section("Headrace's rate over that of another", heads, tuple(rows))


def _parts(queries: Sequence[str], figures: Figures) -> Section:
    return _table("Bids of a run, millions", queries, figures, lambda found: f"{found.rows / 1e6:.2f}")


def _table(title: str, queries: Sequence[str], figures: Figures, show: Callable[[Measured], str]) -> Section:
    """A row per query, with a cell per system."""
    rows = tuple((query, *(_cell(figures, query, name, show) for name in _ORDER)) for query in queries)
    return Section(title, ("query", *(SYSTEMS[name].title for name in _ORDER)), rows)


def _cell(figures: Figures, query: str, name: str, show: Callable[[Measured], str]) -> str:
    """Nothing where nothing was measured."""
    found = figures.get((query, name))
    return show(found) if found else ""


def _own(found: Measured) -> float:
    return found.rate


def _callers(found: Measured) -> float:
    return found.callers_rate


def _rate(found: Measured) -> str:
    return f"{_digits(found.rate / 1e6)} ({found.used.foreign:.0%})"


def _callers_rate(found: Measured) -> str:
    return _digits(found.callers_rate / 1e6)


def _processor(found: Measured) -> str:
    return _digits(found.processor)


def _memory(found: Measured) -> str:
    return f"{found.used.peak_bytes / 1e6:,.0f}"


def _digits(value: float) -> str:
    """Two decimals, and three for what is small."""
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}"
