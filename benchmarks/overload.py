"""The worth of answers under overload: rows left out by utility, the same share of all, and none.

First it is measured what a query of many groups takes at several shares of its rows. Then time is simulated:
rows come at a rate for which a run has just enough time, and at some times that. Three such queries bear
loss, and say what an answer of a part of their rows is worth; one bears none. After each second the policy of
the shedder says which shares are kept from then on, by what the run would be measured to need.

Each line of the table is a run of two minutes: what answers were worth on average over the queries that bear
loss, where an answer that is later than the bound is worth nothing; the shares in the end; and for how long
rows waited on average.

    python benchmarks/overload.py [--rows 300000] [--times 1 2 3 5]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

import headrace as hr
from headrace.algebra.tunings.loss import Loss
from headrace.language.parsing.statements.losses import loss_from
from headrace.runtime.driver.facts.capacity import HEADROOM
from headrace.runtime.driver.shedder.policy import LEAST, Pressure, ShareKnob, shares_wanted
from headrace.steps import WHOLE

BOUND = 1.0
"""Seconds that rows may wait."""
SECONDS = 120
DRAIN = 5
"""Seconds until windows have drained."""
KEYS = 97_000
STREAM = "CREATE STREAM s (k STRING, v BIGINT, ts BIGINT) FROM push TIMESTAMP BY ts"
EXACT = "CREATE QUERY exact AS SELECT COUNT(*) AS n FROM s [RANGE 100000 SLIDE 100]"
GROUPS = "SELECT k, COUNT(*) AS n, SUM(v) AS x FROM s [RANGE 100000 SLIDE 100] GROUP BY k"
QUERIES = {
    "trend": loss_from("LOSS TOLERANT (0.1: 0.95)"),
    "board": Loss(),
    "bill": loss_from("LOSS TOLERANT (0.5: 0.1, 0.9: 0.4)"),
}
"""A trend is nearly as good of a tenth of the rows, a bill is worth little without the last of them."""
SHARES = (0.01, 0.05, 0.2, 0.5, 1.0)
Policy = Callable[[Pressure, Sequence[ShareKnob]], tuple[int, ...]]


def uniform(pressure: Pressure, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """The same share of all queries that bear loss, as where rows are dropped at the door."""
    (present,) = {knob.share for knob in knobs}
    cost = sum(knob.cost for knob in knobs)
    rest = pressure.needed - cost * present / WHOLE
    wanted = min(WHOLE, max(LEAST, round(WHOLE * (HEADROOM - rest) / cost)))
    if pressure.is_overload:
        present = max(min(wanted, present), present // 4)
    elif pressure.is_calm and wanted > 1.15 * present and all(knob.drained for knob in knobs):
        present = min(wanted, 2 * present)
    return (present,) * len(knobs)


def everything(_: Pressure, knobs: Sequence[ShareKnob]) -> tuple[int, ...]:
    """All rows, whatever the load."""
    return tuple(knob.share for knob in knobs)


POLICIES: dict[str, Policy] = {"by utility": shares_wanted, "uniform": uniform, "all rows": everything}


@dataclass(frozen=True)
class Costs:
    """The time that rows take.

    Attributes:
        rest: of what bears no loss (seconds of processor time for a row).
        shares, each: of one query that bears loss, by the share that it keeps.
    """

    rest: float
    shares: np.ndarray
    each: np.ndarray

    def of(self, share: float) -> float:
        """A row of a query that keeps a share (seconds)."""
        return float(np.interp(share, self.shares, self.each))


def measured(rows: int) -> Costs:
    """The costs by this machine, each of one run over so many rows."""
    ts = np.arange(rows)
    names = pa.array([f"key {number}" for number in range(KEYS)])
    table = pa.table({"k": names.take(pa.array((ts * 7919) % KEYS)), "v": ts % 100, "ts": ts})
    rest = _taken(table, None)
    return Costs(rest, np.array(SHARES), np.array([_taken(table, share) - rest for share in SHARES]))


def _taken(table: pa.Table, share: float | None) -> float:
    """Processor time for a row, of the exact query alone or with one that keeps a share (seconds)."""
    with hr.connect(runner="inline", keep_results=False) as db:
        db.execute(f"{STREAM}; {EXACT}")
        if share is not None:
            db.execute(f"CREATE QUERY q LOSS TOLERANT AS {GROUPS}")
        db.start()
        # What is compiled and loaded by the first rows is not counted.
        db.push("s", table.slice(0, 1000))
        if share is not None:
            db.execute(f"ALTER QUERY q SET (KEEP {share})")
        db.push("s", table.slice(1000, 1000))
        begun = time.process_time()
        for first in range(2000, len(table), 50_000):
            db.push("s", table.slice(first, 50_000))
        return (time.process_time() - begun) / (len(table) - 2000)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a simulated run; see the module."""

    utility: float
    shares: tuple[float, ...]
    behind: float


def run(policy: Policy, rate: float, costs: Costs) -> Outcome:
    """Let rows come at a rate, second by second."""
    losses = list(QUERIES.values())
    shares, changed = [WHOLE] * len(losses), [-DRAIN] * len(losses)
    backlog, worth, behinds = 0.0, [], []
    hashing = costs.of(SHARES[0])
    for second in range(SECONDS):
        each = costs.rest + sum(costs.of(share / WHOLE) for share in shares)
        backlog = max(0.0, backlog + rate - 1 / each)
        behind = backlog * each
        utilities = [loss.utility(share) for loss, share in zip(losses, shares, strict=True)]
        worth.append(float(np.mean(utilities)) if behind <= BOUND else 0.0)
        behinds.append(behind)
        knobs = [
            ShareKnob(
                share,
                rate * (costs.of(share / WHOLE) - hashing) * WHOLE / share,
                loss.utility,
                drained=second >= since + DRAIN,
            )
            for share, loss, since in zip(shares, losses, changed, strict=True)
        ]
        found = policy(Pressure(rate * each, behind, BOUND), knobs)
        changed = [
            since if share == other else second
            for since, share, other in zip(changed, shares, found, strict=True)
        ]
        shares = list(found)
    return Outcome(float(np.mean(worth)), tuple(share / WHOLE for share in shares), float(np.mean(behinds)))


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--times", type=float, nargs="+", default=[1, 2, 3, 5])
    arguments = parser.parse_args()
    costs = measured(arguments.rows)
    rate = HEADROOM / (costs.rest + len(QUERIES) * costs.of(1.0))
    each = ", ".join(f"{1e6 * costs.of(share):.2f} at {share:g}" for share in SHARES)
    print(f"a million rows take {1e6 * costs.rest:.2f} s without loss, and one query besides {each}")
    print(f"once the load is {rate:,.0f} rows/s")
    print(
        f"{'load':>5} {'policy':<11} {'utility':>8} "
        f"{' '.join(f'{name:>7}' for name in QUERIES)} {'waiting':>9}"
    )
    for times in arguments.times:
        for name, policy in POLICIES.items():
            found = run(policy, times * rate, costs)
            shares = " ".join(f"{share:7.3f}" for share in found.shares)
            print(f"{times:4g}x {name:<11} {found.utility:8.3f} {shares} {found.behind:7.2f} s")


if __name__ == "__main__":
    main()
