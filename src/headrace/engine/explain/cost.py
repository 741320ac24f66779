"""EXPLAIN COST: the physical plan of a query with what its operators are expected to yield, keep and take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from headrace.algebra.nodes import Plan, Relation
from headrace.algebra.tunings.tunings import Tuned, Tuning, TuningKind, Tunings, size_of, sizes_in, with_sizes
from headrace.byte_sizes import format_bytes
from headrace.engine.catalog.definitions import RESULT, Definitions
from headrace.engine.planning.samples import LookAtRun, Sampled, sampled, unseen
from headrace.errors import Position
from headrace.lowering.costs import expectations, row_bytes, seconds
from headrace.lowering.explain import explain_graph
from headrace.lowering.graph import Graph
from headrace.lowering.lower import lower
from headrace.optimizer.cost.expected import Expectation
from headrace.optimizer.cost.work import EPOCH_ROWS
from headrace.runtime.writing.texts import count
from headrace.time import BEGINNING, MICROSECONDS, TimeDomain, format_instant

SAMPLE_ROWS: Final = 100_000
"""About so many rows of each stream are looked at."""


_NO_TUNINGS: Final[Mapping[Tuning, Tuned]] = MappingProxyType({})


def costs(
    defined: Definitions,
    plan: Plan,
    position: Position,
    epoch_rows: int | None,
    look: LookAtRun = unseen,
    tunings: Tunings = _NO_TUNINGS,
) -> str:
    """How a query is expected to run: each operator with its rate, the rows that it keeps and its time.

    Times are seconds of processor time for a million rows that the query reads, as on the machine that
    the constants are from. Of streams that never end it says from what their numbers are.

    Args:
        defined: the streams and relations.
        plan: the query's, optimized.
        position: where it is asked for.
        epoch_rows: so many rows are read in an epoch, if that is known.
        look: says what the run has seen of streams that never end.
        tunings: the sizes of windows within bounds that have changed.

    Raises:
        LanguageError: the query reads a stream that never ends and of which no run has had rows, or one that
            is timed by arrival.
        SourceError: an input is missing or damaged.
    """
    graph = lower({RESULT: plan})
    seen = sampled(defined, [node.plan for node in graph.nodes], SAMPLE_ROWS, position, look)
    found = expectations(graph, seen.samples, seen.sizes, seen.elapsed)
    read = _read(graph, found)
    taken = seconds(graph, found, seen.elapsed, epoch_rows or EPOCH_ROWS)
    taking = [part / max(read * seen.elapsed, 1.0) * 1e6 for part in taken]
    notes = {
        node.number: f"{_note(node.plan, found[node.number])}; takes {_number(taking[node.number])} s"
        for node in graph.nodes
    }
    lines = [
        explain_graph(graph, RESULT, notes),
        _time(plan, sum(taking), read),
        _kept(graph, found, seen.density),
        *_by_sizes(plan, seen, tunings),
        *(f"{name}: by {one.told}" for name, one in seen.running.items()),
    ]
    return "\n".join(lines)


def _by_sizes(plan: Plan, seen: Sampled, tunings: Tunings) -> Iterator[str]:
    """The bounds of windows and granules and their sizes now, and what is kept with others than the first."""
    windows = sizes_in(plan)
    for tuning in windows:
        kind, tuned, (least, most) = tuning.kind, tunings.get(tuning), tuning.kind.bounds
        sizes = (tuning.smallest, tuning.largest, size_of(tuning, tunings))
        smallest, largest, now = (kind.text(size, plan.domain) for size in sizes)
        begin = BEGINNING if tuned is None else tuned.steps[-1].begin
        since = "" if begin == BEGINNING else f" for rows from {format_instant(begin, plan.domain)} on"
        of = f"{kind.noun} of {', '.join(tuning.streams)}"
        yield f"{of}: {least} {smallest}, {most} {largest}, now {now}{since}"
    if not windows:
        return
    granules = any(tuning.kind is TuningKind.GRANULE for tuning in windows)
    smallest_sizes = "with the smallest windows" + (" and the coarsest granules" if granules else "")
    ways: dict[str, Callable[[Tuning], int]] = {
        "with the sizes in force": lambda tuning: size_of(tuning, tunings),
        smallest_sizes: lambda tuning: tuning.least,
    }
    for said, size in ways.items():
        graph = lower({RESULT: with_sizes(plan, size)})
        found = expectations(graph, seen.samples, seen.sizes, seen.elapsed)
        yield f"{said} it {_kept(graph, found, seen.density).replace(' in all', '')}"


def _kept(graph: Graph, found: Sequence[Expectation], density: float) -> str:
    """The rows that all operators keep, and about how many bytes where these have been measured."""
    text = f"keeps about {_rows(sum(part.state for part in found))} in all"
    widths = {node.number: row_bytes(graph, node) for node in graph.nodes if found[node.number].state}
    size = density * sum(width * found[number].state for number, width in widths.items())
    return f"{text}, some {format_bytes(size)}" if math.isfinite(size) else text


def _read(graph: Graph, found: Sequence[Expectation]) -> float:
    """How many rows a query reads of its streams and relations (per instant)."""
    return sum(found[node.number].flow.rate for node in graph.nodes if not node.inputs)


def _time(plan: Plan, taking: float, read: float) -> str:
    """What all operators take, and which part of a processor that is where the streams have times of day."""
    text = f"takes about {_number(taking)} s of processor time for a million rows that it reads"
    if plan.domain is not TimeDomain.TIMESTAMP:
        return text
    rate = read * MICROSECONDS["SECOND"]
    return f"{text}: {_number(taking * rate / 1e6 * 100)} % of a processor at {_number(rate)} rows/s"


def _note(plan: Plan, found: Expectation) -> str:
    """What is expected of an operator, on one line."""
    flow = found.flow
    if isinstance(plan, Relation) and not plan.is_chronon:
        return _rows(flow.live)
    if plan.domain is TimeDomain.TIMESTAMP:
        second = MICROSECONDS["SECOND"]
        rate, lifetime = f"{_number(flow.rate * second)} rows/s", f"{_number(flow.lifetime / second)} s"
    else:
        rate, lifetime = f"{_number(flow.rate)} rows per instant", _number(flow.lifetime)
    parts = [rate] if flow.lifetime <= 1 else [rate, f"each for {lifetime}"]
    text = ", ".join(parts) + (f"; keeps {_rows(found.state)}" if found.state else "")
    return text if found.exact is None else f"{text}, where the exact answer keeps {_rows(found.exact)}"


def _rows(number: float) -> str:
    return "rows without bound" if math.isinf(number) else count(round(number), "row")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
