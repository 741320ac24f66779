"""The papers' scheduling: queues under STREAM's two strategies, progress charts, trains, Aurora's utility.

    python -m benchmarks.papers.scheduling --svg docs/assets/scheduling.svg

STREAM's table (section 4.2) of the sizes of queues under two strategies, and under the policies that there
are here. The progress chart of its path, and of two more, with their lower envelopes, and the rows in memory
after a burst on these two. Rows one at a time and in trains, through three operators, where a call takes as
long as several rows. The utility of answers whose delays have graphs, when less and when more comes than can
be answered. All of it is simulated, so the figures are the same everywhere.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from headrace.qos_graph import QosGraph
from headrace.scheduling.policies import POLICIES
from headrace.scheduling.progress import ChartPoint, PathStep, lower_envelope, progress_chart
from headrace.scheduling.simulation import Burst, QueuedOperator, Simulated, simulate

BATCH: Final = 5
"""n of STREAM's example: the second operator then takes one row in a unit of time."""
STREAM: Final = (QueuedOperator("O1", 1 / BATCH, 0.2, "O2"), QueuedOperator("O2", 1.0))
"""O1 takes a unit of time for n rows, of which n/5 are left, and O2 one for n/5 rows."""
STRATEGIES: Final = {"Strat. 1": "fifo", "Strat. 2": "chain"}

SLOW_START: Final = (
    QueuedOperator("A1", 0.15, 0.9, "A2"),
    QueuedOperator("A2", 0.05, 0.1, "A3"),
    QueuedOperator("A3", 0.5),
)
"""The first operator leaves nearly all rows, the second hardly any: a row is soon small, if it goes on."""
STEEP_START: Final = (QueuedOperator("B1", 0.2, 0.5, "B2"), QueuedOperator("B2", 1.0))
"""The first operator leaves half of the rows, and the second takes long."""
SHOWN: Final = ("round_robin", "fifo", "greedy", "chain")

BOXES: Final = (
    QueuedOperator("filter", 0.001, 0.5, "map"),
    QueuedOperator("map", 0.001, 1.0, "aggregate"),
    QueuedOperator("aggregate", 0.002),
)
CALL: Final = 0.004
"""A call takes as long as two to four rows (seconds)."""


class Train(NamedTuple):
    """Rows through operators in trains of one length.

    Attributes:
        seconds: how long a turn may take besides the call.
        calls: of operators.
        busy: the processor time (seconds).
        delay: the mean delay of an answer (seconds).
    """

    seconds: float
    calls: int
    busy: float
    delay: float


def table(policy: str, instants: Iterable[int] = range(1, 16)) -> tuple[float, ...]:
    """The sizes of both queues of STREAM's example, as multiples of n.

    Args:
        policy: the name of a policy.
        instants: at which.
    """
    bursts = [Burst(float(at), "O1", BATCH) for at in range(1, 8)]
    found = simulate(STREAM, bursts, POLICIES[policy], seconds=1.0)
    return tuple(found.memory_at(at) / BATCH for at in instants)


def path_of(operators: Sequence[QueuedOperator]) -> tuple[PathStep, ...]:
    """The steps of a row that goes through all of them, and leaves."""
    return tuple(PathStep(one.cost, one.selectivity if one.following else 0.0) for one in operators)


def two_paths(policy: str) -> Simulated:
    """Rows on both paths, of which four each come every second, for twenty seconds."""
    bursts = [Burst(float(at), name, 4) for at in range(20) for name in ("A1", "B1")]
    return simulate((*SLOW_START, *STEEP_START), bursts, POLICIES[policy])


def mean_memory(found: Simulated) -> float:
    """The mean number of rows in memory from the first that comes to the last that leaves."""
    parts = [rows * (end - begin) for (begin, rows), (end, _) in pairwise(found.memory)]
    return sum(parts) / (found.memory[-1][0] - found.memory[0][0])


def trains(seconds: float) -> Train:
    """Two hundred rows a second for half a minute, in turns of a length.

    Args:
        seconds: how long a turn may take besides the call; 0 for a row.
    """
    bursts = [Burst(one / 200, "filter", 1) for one in range(200 * 30)]
    found = simulate(BOXES, bursts, POLICIES["fifo"], seconds, CALL)
    delays = [one.left - one.arrived for one in found.departures]
    return Train(seconds, len(found.turns), sum(found.spent().values()), sum(delays) / len(delays))


def outputs() -> list[QueuedOperator]:
    """Eight queries: four that are soon of no use, four that may be late; half of each take twice as long."""
    soon, later = QosGraph(((1, 1), (3, 0))), QosGraph(((30, 1), (90, 0)))
    return [
        QueuedOperator(f"{kind}{place}", 0.02 * (1 + place % 2), delay=graph)
        for kind, graph in (("soon", soon), ("later", later))
        for place in range(4)
    ]


def overload(policy: str, load: float) -> float:
    """The mean utility of the answers of a minute.

    Args:
        policy: the name of a policy.
        load: the processor time that what comes in a second needs (seconds).
    """
    operators = outputs()
    graphs = {one.name: one.delay for one in operators if one.delay is not None}
    rate = load / sum(one.cost for one in operators)
    bursts = [
        Burst(one / rate + place / 100, operator.name, 1)
        for place, operator in enumerate(operators)
        for one in range(int(60 * rate))
    ]
    return simulate(operators, bursts, POLICIES[policy], seconds=0.2).utility(graphs)


def drawn() -> str:
    """Progress charts above, and the rows in memory after a burst below, as an SVG."""
    charts = {"STREAM, O1 and O2": STREAM, "A1, A2, A3": SLOW_START, "B1, B2": STEEP_START}
    parts = [_chart(60 + 230 * place, name, path_of(one)) for place, (name, one) in enumerate(charts.items())]
    parts.append(_memory({policy: two_paths(policy) for policy in SHOWN}))
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="750" height="440" '
        'font-family="sans-serif" font-size="12">'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


_SIDE: Final = 150
_COLOURS: Final = {"round_robin": "#888", "fifo": "#a60", "greedy": "#06c", "chain": "#080"}


def _text(x: float, y: float, what: str, colour: str = "#444") -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="{colour}">{what}</text>'


def _line(points: Iterable[tuple[float, float]], style: str) -> str:
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline fill="none" {style} points="{places}"/>'


def _frame(left: float, top: float, width: float) -> str:
    return f'<rect x="{left}" y="{top}" width="{width}" height="{_SIDE}" fill="none" stroke="#ccc"/>'


def _chart(left: float, name: str, steps: Sequence[PathStep]) -> str:
    top, chart = 40, progress_chart(steps)
    last = chart[-1].seconds

    def place(one: ChartPoint) -> tuple[float, float]:
        return left + _SIDE * one.seconds / last, top + _SIDE * (1 - one.size)

    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#444"/>' for x, y in map(place, chart))
    envelope = _line(
        map(place, lower_envelope(chart)), 'stroke="#080" stroke-width="2" stroke-dasharray="6 3"'
    )
    ends = (
        _text(left - 12, top + 12, "1"),
        _text(left - 12, top + _SIDE, "0"),
        _text(left + _SIDE - 20, top + _SIDE + 16, f"{last:.2g} s"),
    )
    head = _text(left, top - 10, f"Rows left of one: {name}")
    return (
        _frame(left, top, _SIDE)
        + envelope
        + _line(map(place, chart), 'stroke="#444"')
        + dots
        + head
        + "".join(ends)
    )


def _memory(found: Mapping[str, Simulated]) -> str:
    left, top, width = 60, 260, 610
    last = max(one.memory[-1][0] for one in found.values())
    most = 1.05 * max(rows for one in found.values() for _, rows in one.memory)
    parts = [_frame(left, top, width), _text(left, top - 10, f"Rows in memory, up to {most:.0f}:")]
    for number, (name, one) in enumerate(found.items()):
        points = [
            (left + width * at / last, top + _SIDE * (1 - rows / most))
            for (begin, rows), (end, _) in pairwise(one.memory)
            for at in (begin, end)
        ]
        parts.append(_line(points, f'stroke="{_COLOURS[name]}" stroke-width="1.5"'))
        parts.append(_text(left + 180 + 100 * number, top - 10, name, _COLOURS[name]))
    parts.append(_text(left + width - 30, top + _SIDE + 16, f"{last:.0f} s"))
    return "".join(parts)


def _tell_tables() -> None:
    print("Sizes of STREAM's queues, as multiples of n (CIDR 2003, section 4.2)")
    print("Time      " + "".join(f"{at:>5}" for at in range(1, 16)))
    for name, policy in (*STRATEGIES.items(), ("greedy", "greedy"), ("in turn", "round_robin")):
        print(f"{name:<10}" + "".join(f"{size:>5.3g}" for size in table(policy)))
    print("\nProgress charts, each point as (seconds, rows), and their lower envelopes")
    for name, path in (("O1, O2", STREAM), ("A1, A2, A3", SLOW_START), ("B1, B2", STEEP_START)):
        chart = progress_chart(path_of(path))
        for what, points in (("chart", chart), ("envelope", lower_envelope(chart))):
            print(f"{name:<11} {what:<9}" + " ".join(f"({x:.3g}, {y:.3g})" for x, y in points))
    print(
        "\nRows in memory on the paths A and B, of which four rows each come every second, for twenty seconds"
    )
    for policy in SHOWN:
        found = two_paths(policy)
        most = max(rows for _, rows in found.memory)
        print(f"{policy:<12} most {most:>3}, on average {mean_memory(found):.1f}")


def _tell_trains_and_utility() -> None:
    print("\nTrains through three operators, whose calls take 4 ms and rows 1 or 2 ms (Aurora, section 4.3)")
    for seconds in (0.0, 0.005, 0.02, 0.1, 0.5):
        one = trains(seconds)
        print(
            f"turns of {1000 * seconds:>3.0f} ms: {one.calls:>5,} calls, {one.busy:>5.1f} s busy, "
            f"answers {1000 * one.delay:>6,.0f} ms late"
        )
    print("\nUtility of the answers of eight queries with delay graphs")
    for load in (0.8, 1.0, 1.5, 2.0):
        worth = " ".join(f"{policy} {overload(policy, load):.3f}" for policy in POLICIES)
        print(f"{load:.1f} times the load: {worth}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--svg", type=Path, help="where the charts go")
    given = parser.parse_args(arguments)
    _tell_tables()
    _tell_trains_and_utility()
    if given.svg is not None:
        given.svg.write_text(drawn())


if __name__ == "__main__":
    main()
