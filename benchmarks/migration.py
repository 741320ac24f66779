"""What exchanging a plan costs while it runs: the thesis' experiment of chapter 30, counted.

    python benchmarks/migration.py

Four streams of 100 numbers per second, uniform below 500 (A, B) and below 1,000 (C, D), are joined over
windows of 10 seconds. At 20 seconds ((A x B) x C) x D becomes A x (B x (C x D)), in one of three ways. All is
counted over application time, in epochs of half a second, so that the figures are the same on every machine.

- *Clips*: `Run.exchange`, which is GenMig.
- *Parallel track* (Zhu et al., SIGMOD 2004, as the thesis describes it): the new plan starts empty. Until
  40 seconds the old one's results count unless all their parts are new, and the new one's are held back.
- *Moving states*: the new plan goes on with states that are computed from the old plan's at 20 seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.algebra.nodes import Filter, Join, Plan, Project, Source, TimeWindow, column
from headrace.expressions.functions.functions import literal, resolve
from headrace.heartbeats.timing import Timing
from headrace.runtime.driver.change.wanted import Redefine, Wanted
from headrace.runtime.driver.epoch.run import Run
from headrace.runtime.driver.settings import RunSettings
from headrace.runtime.intake.streams import BoundedStream
from headrace.runtime.sources import open_source, write_arrow
from headrace.runtime.store.segments import MemoryStore
from headrace.runtime.tasks.inline import InlineRunner
from headrace.schema import BIGINT, Field, Schema
from headrace.time import Duration, TimeDomain
from results import Section

BOUNDS: Final = {"a": 500, "b": 500, "c": 1_000, "d": 1_000}
SECOND: Final = 1_000
WINDOW: Final = 10
START: Final = 20
END: Final = 50
PER_SECOND: Final = 100
PER_EPOCH: Final = 50

Numbers = Mapping[str, BoundedStream]


@dataclass
class Counted:
    """What one way has brought, per second of application time.

    Attributes:
        results: elements of the answer that are given out.
        state: rows that are kept, those that are held back included, the most in that second.
    """

    results: list[int] = field(default_factory=lambda: [0] * END)
    state: list[int] = field(default_factory=lambda: [0] * END)


def section() -> Section:
    """All figures."""
    with TemporaryDirectory() as folder:
        streams = _streams(Path(folder))
        ways = {"clips": clips(streams), "parallel track": parallel_track(streams)}
        moved, computed = moving_states(streams)
        ways["moving states"] = moved
    times = (10, START, START + WINDOW, START + 2 * WINDOW, START + 2 * WINDOW + 1, END)
    rows = []
    for name, found in ways.items():
        for begin, end in pairwise(times):
            results, state = found.results[begin:end], found.state[begin:end]
            cells = f"{sum(results) / len(results):,.0f}", f"{max(results):,}", f"{max(state):,}"
            rows.append((name, f"{begin} to {end} s", *cells))
    text = (
        "The order of joins is changed at 20 s of application time; windows are of 10 s. A result that goes "
        "on past the exchange is two elements by clips. Moving states have the state of either plan alone, "
        f"and compute {computed:,} rows of it at once at 20 s, while nothing is answered. Rows that have "
        "ended are counted until they are removed."
    )
    heads = ("way", "application time", "results/s", "most in a second", "rows of state, most")
    return Section("Exchanging a plan", heads, tuple(rows), text)


def clips(streams: Numbers) -> Counted:
    """The old plan and the new one, clipped and united."""
    run = _run(streams, {"q": old()})
    found = Counted()

    def give(second: int, before: Mapping[str, int]) -> None:
        found.results[second] += run.totals.emitted.get("q", 0) - before.get("q", 0)
        found.state[second] = max(found.state[second], _kept(run))
        run.end_exchanges()

    _play(run, give, {START: lambda: run.exchange("q", new())})
    return found


def parallel_track(streams: Numbers) -> Counted:
    """The old plan beside the new one, whose results wait."""
    run = _run(streams, {"old": old(), "marked": without_new(old())})
    found, waiting = Counted(), [0]

    def give(second: int, before: Mapping[str, int]) -> None:
        brought = Counter(run.totals.emitted)
        brought.subtract(before)
        if second < START:
            found.results[second] += brought["old"]
        elif second < START + 2 * WINDOW:
            found.results[second] += brought["marked"]
            waiting[0] += brought["new"]
        else:
            found.results[second] += brought["new"] + waiting[0]
            waiting[0] = 0
        found.state[second] = max(found.state[second], _kept(run) + waiting[0])

    changes = {
        START: lambda: run.change(Redefine(Wanted({"marked": without_new(old()), "new": new()}, streams))),
        START + 2 * WINDOW: lambda: run.change(Redefine(Wanted({"new": new()}, streams))),
    }
    _play(run, give, changes)
    return found


def moving_states(streams: Numbers) -> tuple[Counted, int]:
    """Each plan for a part of the time, and how many intermediate results the new one needs to begin with."""
    runs = {"old": _run(streams, {"q": old()}), "new": _run(streams, {"q": new()})}
    found, noted = Counted(), list[int]()
    for name, run in runs.items():

        def give(second: int, before: Mapping[str, int], name: str = name, run: Run = run) -> None:
            if (second < START) == (name == "old"):
                found.results[second] += run.totals.emitted.get("q", 0) - before.get("q", 0)
                found.state[second] = max(found.state[second], _kept(run))

        if name == "old":
            _play(run, give, {})
        else:
            _play(run, give, {START: lambda: noted.append(_kept(runs["new"]))})
    return found, noted[0] - len(BOUNDS) * WINDOW * PER_SECOND


def old() -> Plan:
    """((A x B) x C) x D."""
    return _joined(_joined(_joined(_window("a"), _window("b")), _window("c")), _window("d"))


def new() -> Plan:
    """A x (B x (C x D)), with the columns in the same order."""
    return _joined(_window("a"), _joined(_window("b"), _joined(_window("c"), _window("d"))))


def without_new(plan: Plan) -> Plan:
    """The results of which some part came before the exchange."""
    instants = [column(plan, place) for place, name in enumerate(plan.schema.names) if name.startswith("ts")]
    early = [resolve("<", (instant, literal(START * SECOND))) for instant in instants]
    condition = early[0]
    for other in early[1:]:
        condition = resolve("OR", (condition, other))
    return Filter(plan, condition)


def _window(name: str) -> Plan:
    schema = Schema((Field("x", BIGINT), Field("ts", BIGINT)))
    window = TimeWindow(Source(name, schema, "ts", TimeDomain.INTEGER), Duration(WINDOW * SECOND))
    return Project(window, (("x", column(window, 0)), (f"ts_{name}", column(window, 1))))


def _joined(left: Plan, right: Plan) -> Plan:
    names = (*left.schema.names, *(f"_{name}" for name in right.schema.names))
    pairs = Join(left, right, ((column(left, 0), column(right, 0)),), None, names)
    both = [*range(len(left.schema)), *range(len(left.schema) + 1, len(names))]
    return Project(pairs, tuple((names[place].lstrip("_"), column(pairs, place)) for place in both))


def _streams(folder: Path) -> Numbers:
    random = np.random.default_rng(30)
    instants = np.arange(END * PER_SECOND) * (SECOND // PER_SECOND)
    found = {}
    for name, bound in BOUNDS.items():
        table = pa.table({"x": random.integers(0, bound, len(instants)), "ts": instants})
        write_arrow(table, folder / f"{name}.arrow")
        source = open_source("arrow", {"path": f"{name}.arrow"}, None, "ts", name, folder)
        found[name] = BoundedStream(source, "ts", Timing(0))
    return found


def _run(streams: Numbers, plans: Mapping[str, Plan]) -> Run:
    settings = RunSettings(PER_EPOCH * len(BOUNDS), buckets=1, keep_results=False)
    return Run(InlineRunner(), MemoryStore(), streams, plans, settings)


def _play(
    run: Run, give: Callable[[int, Mapping[str, int]], None], changes: Mapping[int, Callable[[], object]]
) -> None:
    """Run to the end; after each epoch `give` is called with its second and what had been emitted before."""
    taken = 0
    while share := run.next_share():
        second, within = divmod(taken, PER_SECOND)
        if within == 0 and second in changes:
            changes[second]()
        before = dict(run.totals.emitted)
        run.step(share)
        taken += PER_EPOCH
        give(second, before)


def _kept(run: Run) -> int:
    areas = (area for manifest in run.reading.state.values() for area in manifest.values())
    return sum(part.rows for area in areas for part in area)


if __name__ == "__main__":
    print(section())
