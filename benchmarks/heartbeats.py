"""What generating heartbeats costs per epoch, without the streams.

    python benchmarks/heartbeats.py

Epochs are of 10,000 rows: a hundred of them are a million arrivals. Beside each figure is the time to judge
the same rows, which every epoch has to do anyway.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Final
from unittest.mock import patch

import numpy as np

from headrace.elements import Int64Array
from headrace.heartbeats import generation as in_generation
from headrace.heartbeats.bounded import Arrivals, judge_in_order
from headrace.heartbeats.drained import DrainedClocks
from headrace.heartbeats.estimation import Adaptivity, EstimationRules, estimate
from headrace.heartbeats.estimation import start as start_estimation
from headrace.heartbeats.generation import generate, start
from headrace.heartbeats.groups import GroupedMatrix, Skew
from headrace.heartbeats.per_value import (
    ValueRules,
    ValuesState,
    heartbeat_after,
    judge_by_value,
    least,
)
from headrace.heartbeats.rules import Rules, SilencePolicy, granule_for
from headrace.heartbeats.skew import Bound, SkewMatrix
from headrace.time import BEGINNING, MAX_INSTANT
from results import Section
from timed_streams import Spent

STREAMS: Final = 100
EPOCHS: Final = 100
ROWS: Final = 10_000
DEVICES: Final = 100_000
SECOND: Final = 1_000_000

Epoch = dict[int, Arrivals]


def epochs(random: np.random.Generator) -> tuple[list[Epoch], float]:
    """The arrivals of epochs of a second each, and the seconds that judging their rows took, per epoch."""
    found = []
    used = 0.0
    for epoch in range(EPOCHS):
        times = random.integers(epoch * SECOND, (epoch + 3) * SECOND, (STREAMS, ROWS // STREAMS))
        begun = time.process_time()
        found.append(
            {stream: judge_in_order(row, BEGINNING, MAX_INSTANT).arrivals for stream, row in enumerate(times)}
        )
        used += time.process_time() - begun
    return found, used / EPOCHS


def scattered(random: np.random.Generator, sources: int) -> list[Epoch]:
    """The arrivals of epochs of a second each, whose rows come from any of very many sources."""
    found = []
    for epoch in range(EPOCHS):
        places = random.integers(0, sources, ROWS)
        times = random.integers(epoch * SECOND, (epoch + 3) * SECOND, ROWS)
        latest = np.full(sources, BEGINNING)
        np.maximum.at(latest, places, times)
        counts = np.bincount(places, minlength=sources)
        heard = np.flatnonzero(counts)
        rows = zip(heard.tolist(), counts[heard].tolist(), latest[heard].tolist(), strict=True)
        found.append({place: Arrivals(count, latest=newest) for place, count, newest in rows})
    return found


def matrices() -> dict[str, SkewMatrix]:
    """Bounds between a hundred streams: of each own disorder, and of each to each."""
    places = range(STREAMS)
    own = {(i, i): (Bound(5 * SECOND),) for i in places}
    skew = own | {(i, j): (Bound(9 * SECOND),) for i in places for j in places if i != j}
    waits = {
        (i, j): (Bound((5 + (i + j) % 7) * SECOND), Bound(0, (1 + (i * j) % 50) * SECOND))
        for i in places
        for j in places
    }
    counts = skew | {(i, i): (Bound(5 * SECOND), Bound(0, rows=1_000)) for i in places}
    still, travelling = (0,) * STREAMS, (2 * SECOND,) * STREAMS
    return {
        "disorder alone": SkewMatrix(still, own),
        "skew of each pair": SkewMatrix(still, skew),
        "two pairs with waits, latencies": SkewMatrix(travelling, waits),
        "skew, and counted rows": SkewMatrix(still, counts),
    }


def kinds(sources: int) -> GroupedMatrix:
    """Bounds between that many sensors of a hundred kinds, by how far their clocks may be off."""
    groups = [tuple(range(kind, sources, STREAMS)) for kind in range(STREAMS)]
    off = [SECOND + place for place in range(STREAMS)]
    skews = [
        Skew(first, second, (Bound(off[a] + off[b]),))
        for a, first in enumerate(groups)
        for b, second in enumerate(groups)
    ]
    own = [(Bound(off[place % STREAMS]),) for place in range(sources)]
    return GroupedMatrix.of([SECOND] * sources, own, skews)


def timed(steps: Iterator[Callable[[], None]]) -> float:
    """The median seconds of CPU of some steps."""
    used = []
    for step in steps:
        begun = time.process_time()
        step()
        used.append(time.process_time() - begun)
    return statistics.median(used)


def generation(matrix: GroupedMatrix, arrivals: list[Epoch]) -> tuple[float, float]:
    """Seconds per epoch, with idle streams and timeouts; and how many of them read what came of each."""
    policies = (SilencePolicy(60 * SECOND, 300 * SECOND),) * matrix.size
    read = Spent()
    rules = Rules(matrix, policies, granule_for(matrix), together=(tuple(range(matrix.size)),))
    state = start(rules)

    def steps() -> Iterator[Callable[[], None]]:
        for number, seen in enumerate(arrivals, 1):
            clocks = DrainedClocks.running(np.full(matrix.size, number * SECOND))

            def step(seen: Epoch = seen, clocks: DrainedClocks = clocks) -> None:
                nonlocal state
                state = generate(rules, state, seen, clocks, {})

            yield step

    with patch.object(in_generation, "_arrived", read.counted(in_generation._arrived)):
        return timed(steps()), read.seconds / len(arrivals)


def estimation(arrivals: list[Epoch]) -> float:
    """Seconds per epoch for the own disorder of each stream, adaptively, and three waits."""
    waits = (0, 2 * SECOND, 10 * SECOND)
    pairs = tuple((place, place) for place in range(STREAMS))
    rules = EstimationRules(STREAMS, pairs, waits, SECOND, Adaptivity(10_000, often=0.01))
    state = start_estimation(rules)

    def steps() -> Iterator[Callable[[], None]]:
        for number, seen in enumerate(arrivals, 1):

            def step(seen: Epoch = seen, clock: int = number * SECOND) -> None:
                nonlocal state
                state = estimate(rules, state, seen, clock)

            yield step

    return timed(steps())


def per_device(random: np.random.Generator) -> float:
    """Seconds per epoch for a stream of 100,000 devices."""
    rules = ValueRules(5 * SECOND, 60 * SECOND)
    state, heartbeat = ValuesState.listed(DEVICES), BEGINNING
    batches: list[tuple[Int64Array, Int64Array]] = [
        (random.integers(0, DEVICES, ROWS), random.integers(one * SECOND, (one + 3) * SECOND, ROWS))
        for one in range(EPOCHS)
    ]

    def steps() -> Iterator[Callable[[], None]]:
        for number, (codes, times) in enumerate(batches, 1):

            def step(
                codes: Int64Array = codes, times: Int64Array = times, clock: int = number * SECOND
            ) -> None:
                nonlocal heartbeat
                judge_by_value(rules, state, codes, times, heartbeat, clock)
                heartbeat = heartbeat_after(rules, heartbeat, [least(rules, state, clock)], 0, clock)

            yield step

    return timed(steps())


def closures() -> dict[str, float]:
    """Seconds that the closure takes, once, when bounds are declared."""
    found = {}
    for name, matrix in matrices().items():
        matrix.closure()
        found[name] = seconds(matrix.closure)
    return found


def seconds(work: Callable[[], object]) -> float:
    """The seconds of CPU that something takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def section() -> Section:
    """All figures."""
    random = np.random.default_rng(1)
    epochs(random)
    arrivals, judging = epochs(random)
    closed = closures()
    rows = []
    for name, matrix in matrices().items():
        once = f"{closed[name] * 1e3:.0f} ms"
        used, _ = generation(GroupedMatrix.single(matrix), arrivals)
        rows.append((f"{STREAMS} streams: {name}", used, once))
    for sources in (STREAMS * 10, DEVICES):
        sensors = kinds(sources)
        once = f"{seconds(sensors.closure) * 1e3:.0f} ms"
        used, read = generation(sensors, scattered(random, sources))
        rows.append((f"{sources:,} sources in {STREAMS} groups", used, once))
        rows.append(("without reading what came of each source", used - read, ""))
    rows.append((f"{STREAMS} streams: adaptive estimation", estimation(arrivals), ""))
    rows.append((f"a stream of {DEVICES:,} devices, judging included", per_device(random), ""))
    cells = tuple(
        (name, f"{seconds * 1e3:.2f} ms", f"{seconds / judging:.2f}", once) for name, seconds, once in rows
    )
    heads = ("what", "CPU per epoch", "to judging rows", "closure, once")
    text = (
        f"Medians over {EPOCHS} epochs of {ROWS:,} rows. To judge the rows of an epoch, stream by stream, "
        f"takes {judging * 1e3:.2f} ms."
    )
    return Section("Generating heartbeats", heads, cells, text)


if __name__ == "__main__":
    print(section())
